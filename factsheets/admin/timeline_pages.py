"""The history of a sheet for people: what changed when, two states side by side, and the way back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from factsheets import canonical, changes, comparing, history, moments, restoring
from factsheets.admin.base import person
from factsheets.admin.pages import number, page, sheet_for
from factsheets.admin.publishing_pages import ReasonForm
from factsheets.changes import Changed
from factsheets.errors import Refused
from factsheets.models import Publication, PublicationEvent, Section, Sheet
from factsheets.snapshot import SheetSnapshot

#: Saves a page of the timeline.
PER_PAGE = 20

_PUBLICATION = re.compile(r"publication (\d{1,9})")


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the timeline: a save, or an event of publishing."""

    at: datetime
    moment: str
    change: Changed | None = None
    event: PublicationEvent | None = None
    before: str = ""


@require_safe
def timeline(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Saves and publications, newest first."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    before = number(request.GET.get("before", ""))
    # One more than is shown says whether there are more, and what the last is compared with.
    found = changes.timeline(sheet, before=before, count=PER_PAGE + 1)
    shown, more = found[:PER_PAGE], found[PER_PAGE:]
    newer = changes.moment_of(before) if before is not None else None
    return page(
        request,
        "factsheets/timeline.html",
        title=f"What changed: {sheet.title}",
        sheet=sheet,
        items=_items(shown, more, _events(sheet, more, newer)),
        more=shown[-1].id if more else None,
        before=before,
        zone=timezone.get_default_timezone_name(),
    )


@require_safe
def compare(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Two states of the sheet, word by word."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    last = sheet.publications.order_by("-number").values_list("number", flat=True).first()
    one = request.GET.get("from", "").strip() or (f"publication {last}" if last else "draft")
    other = request.GET.get("to", "").strip() or "draft"
    now = timezone.now()
    error, compared = "", None
    try:
        compared = comparing.compare(_picture(sheet, one, now), _picture(sheet, other, now))
    except Refused as refused:
        error = refused.sentence
    numbers = sheet.publications.order_by("-number").values_list("number", flat=True)[:50]
    return page(
        request,
        "factsheets/compare.html",
        title=f"Compare: {sheet.title}",
        sheet=sheet,
        one=one,
        other=other,
        from_in_words=_in_words(one),
        to_in_words=_in_words(other),
        error=error,
        compared=compared,
        same=[s for s in compared.sections if s.is_same] if compared else [],
        back_to=one if _is_past(one, other) and _may_restore_sections(request, sheet) else "",
        choices=["draft", *(f"publication {n}" for n in numbers)],
        zone=timezone.get_default_timezone_name(),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def restore(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Ask why, then bring the draft, or one section, back to how it stood."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    asked = request.POST if request.method == "POST" else request.GET
    at, key = asked.get("at", "").strip(), asked.get("section", "")
    section = get_object_or_404(Section, sheet=sheet, key=key) if key else None
    if not _may_restore(request, sheet, section):
        raise PermissionDenied
    with_rules = section is None and request.user.has_perm("factsheets.change_rule", sheet)
    now = timezone.now()
    form = ReasonForm(request.POST if request.method == "POST" else None)
    try:
        moment = moments.read(at, zone=timezone.get_default_timezone(), now=now)
        then = _picture(sheet, at, now)
        if request.method == "POST" and form.is_valid():
            return _restored(
                request, sheet, section, moment, form.cleaned_data["reason"], with_rules
            )
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("admin:sheet_timeline", sheet.pk)
    compared = comparing.compare(history.snapshot_now(sheet), then)
    return page(
        request,
        "factsheets/restore.html",
        title=f"Bring back {section.heading if section else sheet.title}",
        sheet=sheet,
        section=section,
        at=at,
        moment=moment,
        with_rules=with_rules,
        form=form,
        compared=compared,
        sections=[
            each
            for each in compared.sections
            if not each.is_same and (section is None or each.key == section.key)
        ],
    )


PAGES: Mapping[str, Callable[..., HttpResponse]] = {
    "timeline": timeline,
    "compare": compare,
    "restore": restore,
}


def _in_words(state: str) -> str:
    """A state for a heading: an instant as people write it, in the organisation's zone."""
    try:
        instant = datetime.fromisoformat(state)
    except ValueError:
        return state
    if instant.tzinfo is None:
        return state
    local = timezone.localtime(instant)
    return f"{local.day} {local:%B %Y, %H:%M}"


def _is_past(one: str, other: str) -> bool:
    """Whether the draft is compared with a moment of its own history."""
    return other == "draft" and one != "draft" and not _PUBLICATION.fullmatch(one)


def _may_restore(request: HttpRequest, sheet: Sheet, section: Section | None) -> bool:
    return _may_restore_sections(request, sheet) and (
        section is not None or request.user.has_perm("factsheets.describe_sheet", sheet)
    )


def _may_restore_sections(request: HttpRequest, sheet: Sheet) -> bool:
    wanted = ("factsheets.change_section", "factsheets.change_citation")
    return all(request.user.has_perm(name, sheet) for name in wanted)


def _restored(
    request: HttpRequest,
    sheet: Sheet,
    section: Section | None,
    moment: datetime,
    reason: str,
    with_rules: bool,
) -> HttpResponse:
    by, now = person(request), timezone.now()
    if section is not None:
        changed = restoring.section_to(section, moment, by=by, reason=reason, now=now)
    else:
        changed = restoring.sheet_to(
            sheet, moment, with_rules=with_rules, by=by, reason=reason, now=now
        )
    if count := len(changed.changes):
        messages.success(
            request,
            f"Brought back, in one new change of {count} row{'' if count == 1 else 's'}. "
            "What is live stays.",
        )
    else:
        messages.info(request, "It stands so already; nothing was changed.")
    return redirect("admin:sheet_timeline", sheet.pk)


def _picture(sheet: Sheet, text: str, now: datetime) -> SheetSnapshot:
    """The sheet as a text says: “draft”, “publication 3”, a day or a moment. Raises Refused."""
    if text == "draft":
        return history.snapshot_now(sheet)
    published = _PUBLICATION.fullmatch(text)
    if published:
        found = sheet.publications.filter(number=int(published[1])).first()
        if found is None:
            raise moments.MomentRefused(f"{sheet.slug} has no {text}; choose one from the list.")
        return canonical.read_record(bytes(found.record))
    moment = moments.read(text, zone=timezone.get_default_timezone(), now=now)
    then = history.snapshot_as_of(sheet, moment)
    if then is None:
        raise restoring.NothingThen(
            f"{sheet.slug} was not there at that moment; choose a later one."
        )
    return then


def _events(
    sheet: Sheet, more: tuple[Changed, ...], newer: datetime | None
) -> Iterable[PublicationEvent]:
    """The events between the oldest save of the page and the newest of the page before."""
    rows = sheet.events.select_related("to_publication", "from_publication").defer(
        *(
            f"{way}__{part}"
            for way in ("to_publication", "from_publication")
            for part in Publication.BYTES
        )
    )
    if more:
        rows = rows.filter(at__gt=more[0].at)
    if newer is not None:
        rows = rows.filter(at__lte=newer)
    return rows.order_by("-id")


def _items(
    shown: tuple[Changed, ...],
    more: tuple[Changed, ...],
    events: Iterable[PublicationEvent],
) -> list[Item]:
    older = [*shown[1:], *more[:1], None]
    saves = [
        Item(
            change.at,
            canonical.instant(change.at),
            change=change,
            before=canonical.instant(before.at) if before else "",
        )
        for change, before in zip(shown, older, strict=False)
    ]
    published = [Item(event.at, canonical.instant(event.at), event=event) for event in events]
    # An event stands above the save that it let out.
    return sorted(
        [*published, *saves], key=lambda item: (item.at, item.event is not None), reverse=True
    )
