"""A text in pieces, so that a page can mark some of it. No HTML is made here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; `mark` says as what it is marked, or ""."""

    text: str
    mark: str = ""


def pieces(text: str, spans: Iterable[tuple[int, int, str]]) -> tuple[Piece, ...]:
    """The text cut at spans of start, end and mark, in order. Of spans that overlap the first wins."""
    found: list[Piece] = []
    position = 0
    for start, end, mark in spans:
        if start >= position:
            found += [Piece(text[position:start]), Piece(text[start:end], mark)]
            position = end
    found.append(Piece(text[position:]))
    return tuple(piece for piece in found if piece.text)
