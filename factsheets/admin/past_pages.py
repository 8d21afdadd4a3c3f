"""The text on any day: as drafted and as served, and whether it said this or that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from factsheets import canonical, claims, delivery, history, moments, rulesets
from factsheets.admin.pages import page, sheet_for
from factsheets.errors import Refused
from factsheets.marking import Piece, pieces
from factsheets.models import PublicationEvent, Sheet
from factsheets.snapshot import SectionSnapshot, SheetSnapshot, bot_view

#: Characters of a word or claim to look for.
LONGEST_CLAIM = 2_000


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
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
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
    if served is not None and drafted is not None and _reads_alike(served, drafted):
        return [_side("As served, and as drafted", drafted, claim)]
    named = (("As served to bots", served), ("As drafted", drafted))
    return [_side(name, snapshot, claim) for name, snapshot in named if snapshot is not None]


def _reads_alike(one: SheetSnapshot, other: SheetSnapshot) -> bool:
    """Whether a bot reads the same of both."""
    first, second = ((bot_view(each), rulesets.rules_text(each.rules)) for each in (one, other))
    return first == second


def _side(name: str, snapshot: SheetSnapshot, claim: str) -> Side:
    view = bot_view(snapshot)
    mentions = claims.mentions(claim, view) if claim else ()
    spans: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for mention in mentions:
        spans[mention.section].append((mention.start, mention.end, "found"))
    return Side(
        name=name,
        snapshot=snapshot,
        sections=tuple((s, pieces(s.body, spans[s.key])) for s in snapshot.sections),
        mentions=len(mentions),
        supports=claims.support(claim, view) if claim else (),
    )
