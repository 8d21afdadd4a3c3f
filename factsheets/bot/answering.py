"""From question to answer: the one path that probes, pages and the API share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factsheets.bot import prompt, providers
from factsheets.bot.providers.base import Message, Reply, Request
from factsheets.snapshot import BotSheet, BotSnapshot


@dataclass(frozen=True, slots=True)
class Answer:
    """The bot's final product: its text, and the sections it rests on where that is known."""

    text: str
    sections: tuple[str, ...]
    refused: bool | None
    reply: Reply


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

    Raises ProviderError when the service gives no usable reply.
    """
    request = Request(
        bot=bot,
        prompt=prompt.build(rules_text, sheet, delivery=delivery),
        sheet=sheet,
        messages=tuple(messages),
        deadline_seconds=deadline_seconds,
    )
    reply = providers.for_bot(bot).reply(request)
    return Answer(text=reply.text, sections=reply.sections, refused=reply.refused, reply=reply)
