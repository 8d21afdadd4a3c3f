"""The text on any day: as drafted and as served, and whether it said this or that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from factsheets import canonical, claims, delivery, history, moments
from factsheets.admin.pages import page, sheet_for
from factsheets.errors import Refused
from factsheets.models import PublicationEvent, Sheet
from factsheets.snapshot import BotSheet, SectionSnapshot, SheetSnapshot, bot_view

#: Characters of a word or claim to look for.
LONGEST_CLAIM = 2_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; `found` where it is what was looked for."""

    text: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """One picture of the sheet at the moment, as the page shows it."""

    name: str
    snapshot: SheetSnapshot
    sections: tuple[tuple[SectionSnapshot, tuple[Piece, ...]], ...]
    mentions: int
    supports: tuple[claims.Support, ...]


@require_safe
def past(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Sections, rules and sources of the sheet at one moment."""
    sheet = sheet_for(request, sheet_id, "view_sheet")
    now = timezone.now()
    zone = timezone.get_default_timezone()
    text = request.GET.get("at", "").strip()
    claim = request.GET.get("find", "").strip()[:LONGEST_CLAIM]
    error = ""
    try:
        moment = moments.read(text, zone=zone, now=now) if text else now
        claim = canonical.normalise(claim)
    except Refused as refused:
        error, moment = refused.sentence, now
    event = delivery.event_at(sheet, moment)
    sides = [] if error else _sides(sheet, event, moment, claim)
    return page(
        request,
        "factsheets/past.html",
        title=f"The text on any day: {sheet.title}",
        sheet=sheet,
        moment=moment,
        at=text or timezone.localdate(moment).isoformat(),
        find=claim,
        error=error,
        event=event,
        sides=sides,
        zone=timezone.get_default_timezone_name(),
    )


PAGES: Mapping[str, Callable[..., HttpResponse]] = {"past": past}


def _sides(
    sheet: Sheet, event: PublicationEvent | None, moment: datetime, claim: str
) -> list[Side]:
    """The sheet as served and as drafted, or once where both were the same to a bot."""
    served = (
        canonical.read_record(bytes(event.to_publication.record))
        if event is not None and event.to_publication is not None
        else None
    )
    drafted = history.snapshot_as_of(sheet, moment)
    if served is not None and drafted is not None and _reads_alike(sheet, served, drafted):
        return [_side("As served, and as drafted", drafted, claim)]
    named = (("As served to bots", served), ("As drafted", drafted))
    return [_side(name, snapshot, claim) for name, snapshot in named if snapshot is not None]


def _reads_alike(sheet: Sheet, one: SheetSnapshot, other: SheetSnapshot) -> bool:
    first, second = canonical.candidate(sheet.pk, one), canonical.candidate(sheet.pk, other)
    return (first.content_bytes, first.rules_text) == (second.content_bytes, second.rules_text)


def _side(name: str, snapshot: SheetSnapshot, claim: str) -> Side:
    view = bot_view(snapshot)
    mentions = claims.mentions(claim, view) if claim else ()
    return Side(
        name=name,
        snapshot=snapshot,
        sections=tuple((s, _pieces(s, mentions)) for s in snapshot.sections),
        mentions=len(mentions),
        supports=_supports(claim, view),
    )


def _supports(claim: str, view: BotSheet) -> tuple[claims.Support, ...]:
    return claims.support(claim, view) if claim else ()


def _pieces(section: SectionSnapshot, mentions: tuple[claims.Mention, ...]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    position = 0
    for mention in mentions:
        if mention.section == section.key and mention.start >= position:
            pieces += [
                Piece(section.body[position : mention.start]),
                Piece(section.body[mention.start : mention.end], found=True),
            ]
            position = mention.end
    pieces.append(Piece(section.body[position:]))
    return tuple(piece for piece in pieces if piece.text)
