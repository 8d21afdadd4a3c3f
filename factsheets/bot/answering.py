"""From question to answer: the one path that probes, pages and the API share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factsheets.bot import prompt, providers, retrieval
from factsheets.bot.providers.base import Message, Reply, Request
from factsheets.bot.retrieval import Hit, Index, Retrieval
from factsheets.snapshot import BotSheet, BotSnapshot


@dataclass(frozen=True, slots=True)
class Answer:
    """The bot's final product: its text, and the sections it rests on where that is known.

    `sent`: the visitor's turn as the model read it. `retrieval`: what was
    looked up for it in split delivery.
    """

    text: str
    sections: tuple[str, ...]
    refused: bool | None
    reply: Reply
    sent: str
    retrieval: Retrieval | None = None


def answer(
    *,
    sheet: BotSheet,
    rules_text: str,
    bot: BotSnapshot,
    messages: Sequence[Message],
    delivery: str = "inline",
    deadline_seconds: float = 60.0,
) -> Answer:
    """Answer the last message of a conversation from the sheet, under the rules.

    In split delivery the model is sent the sections found for it, and nothing
    of the others but their titles. Raises ProviderError when the service gives
    no usable reply.
    """
    found = look_up(sheet, messages) if delivery == "split" else None
    sent = messages[-1].text
    if found is not None:
        sent = prompt.user_turn(sent, [hit.chunk for hit in passed(found)])
    request = Request(
        bot=bot,
        prompt=prompt.build(rules_text, sheet, delivery=delivery),
        sheet=sheet,
        messages=(*messages[:-1], Message("user", sent)),
        question=messages[-1].text,
        allowed=None if found is None else frozenset(hit.chunk for hit in passed(found)),
        deadline_seconds=deadline_seconds,
    )
    reply = providers.for_bot(bot).reply(request)
    return Answer(
        text=reply.text,
        sections=reply.sections,
        refused=reply.refused,
        reply=reply,
        sent=sent,
        retrieval=found,
    )


def look_up(sheet: BotSheet, messages: Sequence[Message]) -> Retrieval:
    """What the sheet has for the last message; for one that says too little by itself ("And on
    Sundays?"), for it together with what the visitor said before."""
    return look_up_in(retrieval.index_of(sheet), messages)


def look_up_in(index: Index, messages: Sequence[Message]) -> Retrieval:
    """The same in any index."""
    asked = [message.text for message in messages if message.role == "user"]
    found = index.search(asked[-1])
    if found.grounded or len(asked) < 2:
        return found
    together = index.search(" ".join(asked[-2:]))
    return together if together.grounded else found


def passed(found: Retrieval) -> tuple[Hit, ...]:
    """The hits that the model gets to read: none where the grounding rule finds too little."""
    return found.hits if found.grounded else ()
