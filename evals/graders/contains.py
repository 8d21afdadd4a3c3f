"""What the last reply must contain, and what no reply may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from evals.graders.base import Span, Transcript, Verdict, no_reply, quoted
from evals.graders.matching import find
from factsheets.folding import fold

Match = Literal["word", "anywhere"]


@dataclass(frozen=True, slots=True)
class ContainsAny:
    """The last reply holds at least one of the values."""

    name: ClassVar[str] = "contains-any"
    version: ClassVar[int] = 1

    values: tuple[str, ...]
    match: Match = "word"

    def grade(self, transcript: Transcript) -> Verdict:
        if silence := no_reply(transcript):
            return silence
        turn = len(transcript.replies) - 1
        reply = transcript.replies[turn].text
        folded = fold(reply)
        for value in self.values:
            try:
                span = find(value, reply, folded, anywhere=self.match == "anywhere")
            except TimeoutError:
                return pattern_timed_out(value)
            if span:
                return Verdict("pass", "found", f"The reply says “{value}”.", Span(turn, *span))
        return Verdict("fail", "missing", f"The reply says none of {quoted(self.values)}.")

    def spec(self) -> dict[str, object]:
        return {"type": self.name, "values": list(self.values), "match": self.match}


@dataclass(frozen=True, slots=True)
class NotContains:
    """No reply holds any of the values. Silence is not innocence: an empty reply fails."""

    name: ClassVar[str] = "not-contains"
    version: ClassVar[int] = 1

    values: tuple[str, ...]
    match: Match = "word"

    def grade(self, transcript: Transcript) -> Verdict:
        if silence := no_reply(transcript):
            return silence
        for turn, reply in enumerate(transcript.replies):
            folded = fold(reply.text)
            for value in self.values:
                try:
                    span = find(value, reply.text, folded, anywhere=self.match == "anywhere")
                except TimeoutError:
                    return pattern_timed_out(value)
                if span:
                    return Verdict(
                        "fail", "forbidden", f"A reply says “{value}”.", Span(turn, *span)
                    )
        return Verdict("pass", "absent", f"No reply says {quoted(self.values)}.")

    def spec(self) -> dict[str, object]:
        return {"type": self.name, "values": list(self.values), "match": self.match}


def pattern_timed_out(value: str) -> Verdict:
    """A pattern that does not end judges nothing."""
    return Verdict(
        "ungraded", "pattern-timeout", f"The pattern “{value}” took too long; write it more simply."
    )
