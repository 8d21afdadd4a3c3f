"""A word looked for in all that a person may see: sections, sources and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, Q, QuerySet

from factsheets import access
from factsheets.folding import fold, places
from factsheets.marking import Piece, pieces
from factsheets.models import Rule, Section, Source

#: Rows of each kind that are shown; more are only said to be there.
LIMIT = 50

#: Characters shown before and after what was found.
_AROUND = 80

#: What is looked through, of each kind of row.
_FIELDS: dict[type[Model], Sequence[str]] = {
    Section: ("heading", "question", "body", "note", "key"),
    Source: ("title", "author", "publisher", "url", "identifier", "note", "key"),
    Rule: ("text", "key"),
}


@dataclass(frozen=True, slots=True)
class Hit:
    """One row, with the place where the words stand."""

    row: Any
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows of one kind; `more`: there are others beyond the limit."""

    name: str
    hits: tuple[Hit, ...]
    more: bool


def everywhere(text: str, user: Any) -> tuple[Hits, ...]:
    """Rows in use that say the words as they are typed, capitals or not. Of what a person may see."""
    rows: list[tuple[str, QuerySet[Any]]] = [
        (
            "Sections",
            Section.objects.present().select_related("sheet").order_by("sheet__title", "position"),
        ),
        ("Sources", Source.objects.present().order_by("title", "id")),
        (
            "Rules",
            Rule.objects.present().select_related("ruleset").order_by("ruleset__title", "position"),
        ),
    ]
    return tuple(_found(name, access.visible(user, each), text) for name, each in rows)


def _found(name: str, rows: QuerySet[Any], text: str) -> Hits:
    fields = _FIELDS[rows.model]
    wanted = Q()
    for field in fields:
        wanted |= Q(**{f"{field}__icontains": text})
    found = list(rows.filter(wanted)[: LIMIT + 1])
    hits = tuple(Hit(row, _place(row, fields, text)) for row in found[:LIMIT])
    return Hits(name, hits, more=len(found) > LIMIT)


def _place(row: Any, fields: Sequence[str], text: str) -> tuple[Piece, ...]:
    """The first place where the words stand, with a little before and after it."""
    for field in fields:
        value: str = getattr(row, field)
        place = next(places(text, fold(value), anywhere=True), None)
        if place is not None:
            start, stop = place
            begin, end = max(0, start - _AROUND), stop + _AROUND
            return (
                *((Piece("… "),) if begin else ()),
                *pieces(value[begin:end], [(start - begin, stop - begin, "found")]),
                *((Piece(" …"),) if end < len(value) else ()),
            )
    return ()
