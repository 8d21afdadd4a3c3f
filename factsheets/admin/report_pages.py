"""The stale-check report: as a page, as CSV and as JSON, with the same rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from factsheets import access, stale_report, stale_report_files, staleness, standings
from factsheets.admin.pages import page
from factsheets.models import Source
from factsheets.stale_report import ALL, AT_REST, NOBODY, Filter, Row


@require_safe
def report(request: HttpRequest) -> HttpResponse:
    """What wants checking on the sheets that the person may see."""
    if not access.somewhere(request.user, "factsheets.view_sheet"):
        raise PermissionDenied
    today = _day(request)
    every = stale_report.rows(access.sheets(request.user, "factsheets.view_sheet"), today=today)
    wanted = Filter(
        **{name: request.GET.get(name, "") for name in ("state", "sheet", "owner", "kind")}
    )
    if not wanted.is_known:
        # An empty list would say that all is well.
        messages.error(request, "There is no such state; this is all that wants checking.")
        wanted = replace(wanted, state="")
    rows = [row for row in every if wanted.takes(row)]
    form = request.GET.get("format", "")
    if form == "json":
        text = stale_report_files.as_json(rows, today=today)
        return _file(text, "application/json", f"stale-report-{today}.json")
    if form == "csv":
        text = stale_report_files.as_csv(rows)
        return _file(text, "text/csv; charset=utf-8", f"stale-report-{today}.csv")
    kinds = dict(Source.Kind.choices)
    checked = access.sheets(request.user, "factsheets.add_check")
    may_check = set(checked.values_list("pk", flat=True))
    return page(
        request,
        "factsheets/stale_report.html",
        title="What wants checking",
        rows=[_shown(row, kinds, may_check) for row in rows],
        counts=_counts(every),
        total=len(every),
        today=today,
        is_today=today == timezone.localdate(),
        wanted=wanted,
        states=[(ALL, "all, also fresh ones"), *((s, s) for s in staleness.STATES)],
        sheets=sorted({(row.sheet, row.sheet_title) for row in every}, key=lambda s: s[1]),
        owners=[(NOBODY, "nobody"), *((o, o) for o in sorted({r.owner for r in every} - {""}))],
        kinds=[(k, kinds[k]) for k in sorted({kind for row in every for kind in row.kinds})],
        query=_query(request),
        intervals=[
            (kinds[kind], interval) for kind, interval in standings.intervals_by_kind().items()
        ],
    )


def _day(request: HttpRequest) -> date:
    """The day asked for; today for none and for nonsense, which is said."""
    text = request.GET.get("on", "")
    try:
        return date.fromisoformat(text) if text else timezone.localdate()
    except ValueError:
        messages.error(request, "Choose a day such as 2027-06-01; this is today's report.")
        return timezone.localdate()


def _shown(row: Row, kinds: dict[str, str], may_check: set[int]) -> dict[str, Any]:
    return {
        "row": row,
        "kinds": ", ".join(kinds[kind] for kind in row.kinds),
        "may_check": row.sheet_id in may_check and row.state != "retired",
    }


def _counts(rows: list[Row]) -> list[tuple[str, int]]:
    found = Counter(row.state for row in rows)
    at_work = [state for state in staleness.STATES if state not in AT_REST]
    return [(state, found[state]) for state in (*at_work, *sorted(AT_REST))]


def _query(request: HttpRequest) -> str:
    """The filters in use, to go on with them in another form."""
    query = request.GET.copy()
    query.pop("format", None)
    return query.urlencode()


def _file(text: str, content_type: str, name: str) -> HttpResponse:
    return HttpResponse(
        text,
        content_type=content_type,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "private, no-store",
        },
    )
