"""Did the bot answer, or turn the question away?

The offline bot says so itself. A model's text is held against a short list of
phrases; where they leave it unclear the check is ungraded, and other checks of
the probe decide if there are any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evals.graders.base import GradedReply, Outcome, Span, Transcript, Verdict, no_reply
from evals.graders.matching import find
from factsheets.folding import fold

#: Ways to decline. Deliberately more than "sorry": sympathy is not a refusal.
PHRASES = (
    "i can't help with",
    "i cannot help with",
    "i can't share",
    "i cannot share",
    "i can't do that",
    "i cannot do that",
    "i can't discuss",
    "i cannot discuss",
    "i can't give",
    "i cannot give",
    "i can't say",
    "i cannot say",
    "i can't answer",
    "i cannot answer",
    "i don't know",
    "i do not know",
    "i'm not able to",
    "i am not able to",
    "i'm unable to",
    "i am unable to",
    "i won't",
    "i will not",
    "i don't have that information",
    "i do not have that information",
    "the sheet doesn't say",
    "the sheet does not say",
)

#: A phrase within this many characters of the start is the gist of the reply.
GIST = 60


@dataclass(frozen=True, slots=True)
class _Finding:
    refused: bool | None
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Refuses:
    """The last reply turns the question away."""

    name: ClassVar[str] = "refuses"
    version: ClassVar[int] = 1

    def grade(self, transcript: Transcript) -> Verdict:
        return _grade(transcript, wanted=True)

    def spec(self) -> dict[str, object]:
        return {"type": self.name}


@dataclass(frozen=True, slots=True)
class Answers:
    """The last reply answers."""

    name: ClassVar[str] = "answers"
    version: ClassVar[int] = 1

    def grade(self, transcript: Transcript) -> Verdict:
        return _grade(transcript, wanted=False)

    def spec(self) -> dict[str, object]:
        return {"type": self.name}


def _grade(transcript: Transcript, *, wanted: bool) -> Verdict:
    if silence := no_reply(transcript):
        return silence
    turn = len(transcript.replies) - 1
    found = _look(transcript.replies[turn])
    span = Span(turn, *found.span) if found.span else None
    if found.refused is None:
        return Verdict(
            "ungraded",
            "unclear",
            "The reply declines something and says more; whether it answers is unclear.",
            span,
        )
    did = "turned the question away" if found.refused else "answered"
    outcome: Outcome = "pass" if found.refused == wanted else "fail"
    code = "refused" if found.refused else "answered"
    return Verdict(outcome, code, f"The bot {did}.", span)


def _look(reply: GradedReply) -> _Finding:
    if reply.refused is not None:
        return _Finding(reply.refused, None)
    folded = fold(reply.text)
    spans = [
        span
        for phrase in PHRASES
        if (span := find(phrase, reply.text, folded, anywhere=False)) is not None
    ]
    if not spans:
        return _Finding(False, None)
    first = min(spans)
    return _Finding(True if first[0] <= GIST else None, first)
