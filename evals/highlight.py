"""A reply in pieces, so that a page can mark the words that decided. No HTML is made here."""

from __future__ import annotations

from dataclasses import dataclass

from evals.models import Attempt, Turn, Verdict
from factsheets.marking import Piece, pieces


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """What was said, and the reply in pieces."""

    turn: Turn
    pieces: tuple[Piece, ...]


def turns(attempt: Attempt) -> list[ShownTurn]:
    """An attempt's turns with the deciding words apart. Expects turns and verdicts prefetched."""
    verdicts = list(attempt.verdicts.all())
    return [
        ShownTurn(turn, _pieces(turn.received, [v for v in verdicts if v.turn_index == turn.index]))
        for turn in attempt.turns.all()
    ]


def _pieces(text: str, verdicts: list[Verdict]) -> tuple[Piece, ...]:
    """Marked stretches do not overlap: the first to begin wins, a failing one before others."""
    spans = sorted(
        (
            (v.span_start, v.outcome != "fail", v.span_end, v.outcome)
            for v in verdicts
            if v.span_start is not None and v.span_end is not None
        ),
    )
    return pieces(text, [(start, end, outcome) for start, _, end, outcome in spans])
