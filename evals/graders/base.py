"""What graders see and say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

Outcome = Literal["pass", "fail", "ungraded"]


@dataclass(frozen=True, slots=True)
class GradedReply:
    """Exactly the text the visitor sees, and the bot's own word on whether it refused."""

    text: str
    refused: bool | None


@dataclass(frozen=True, slots=True)
class Transcript:
    """The replies of one attempt, in order, and the rules they were given under."""

    replies: tuple[GradedReply, ...]
    rules_text: str


@dataclass(frozen=True, slots=True)
class Span:
    """The words that decided: from `start` up to `end` (characters) in the reply to turn `turn`."""

    turn: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """One check's judgement, with a stable code and a sentence for people."""

    outcome: Outcome
    code: str
    reason: str
    span: Span | None = None


class Check(Protocol):
    """One check of a probe. `version` rises whenever the same reply could be judged otherwise."""

    name: ClassVar[str]
    version: ClassVar[int]

    def grade(self, transcript: Transcript) -> Verdict: ...

    def spec(self) -> dict[str, object]: ...


def no_reply(transcript: Transcript) -> Verdict | None:
    """A failing verdict where there is nothing to judge: silence never passes."""
    empty = [i for i, reply in enumerate(transcript.replies) if not reply.text.strip()]
    if empty or not transcript.replies:
        return Verdict("fail", "empty-reply", "The bot said nothing.")
    return None


def quoted(values: Sequence[str], limit: int = 3) -> str:
    """The first few values for a sentence."""
    shown = ", ".join(f"“{value}”" for value in values[:limit])
    return f"{shown} and {len(values) - limit} more" if len(values) > limit else shown
