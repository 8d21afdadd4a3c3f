"""What every provider takes and gives, and how one says that it could not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from factsheets.bot.chunking import Chunk
from factsheets.bot.prompt import Prompt
from factsheets.snapshot import BotSheet, BotSnapshot

Role = Literal["user", "assistant"]

#: "retry": the same call may succeed later. "fatal": it never will as it stands.
#: "account": no call will, until a person mends key, budget or permission.
Trouble = Literal["retry", "fatal", "account"]


#: Stop reasons of a reply that was cut off.
TRUNCATED = frozenset({"max_tokens", "model_context_window_exceeded"})


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """All a provider may use for one reply. `messages` ends with the visitor's turn as it is sent.

    Model providers send `prompt` and `messages`; the offline one answers
    `question` from `sheet` and never parses a prompt. `allowed`: the chunks
    that a split sheet passes on for the question; None is the whole sheet.
    `deadline_seconds` bounds the whole call.
    """

    bot: BotSnapshot
    prompt: Prompt
    sheet: BotSheet
    messages: tuple[Message, ...]
    question: str
    allowed: frozenset[Chunk] | None = None
    deadline_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service said, untouched.

    `refused` is None where the service cannot know (a model's text must be
    judged); `sections` are keys the reply is known to rest on; `usage` holds
    the service's raw token counters, never sums of ours.
    """

    text: str
    stop_reason: str
    refused: bool | None = None
    sections: tuple[str, ...] = ()
    usage: Mapping[str, object] = field(default_factory=dict)
    model: str = ""
    request_id: str = ""

    @property
    def is_truncated(self) -> bool:
        return self.stop_reason in TRUNCATED


class ProviderError(Exception):
    """No usable reply. Holds a type and a sentence, never the key or the prompt."""

    def __init__(
        self, kind: str, sentence: str, *, trouble: Trouble, retry_after: float | None = None
    ) -> None:
        self.kind = kind
        self.sentence = sentence
        self.trouble: Trouble = trouble
        self.retry_after = retry_after
        super().__init__(f"{kind}: {sentence}")


class Provider(Protocol):
    """A service that answers from a sheet."""

    def reply(self, request: Request) -> Reply: ...
