"""The pages where the gates of many sheets are read together, and their probes run together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from evals import runs
from evals.models import Run, Suite
from evals.views import send
from factsheets import access, explaining, publishing
from factsheets.admin.base import person
from factsheets.admin.pages import number, page
from factsheets.errors import Refused
from factsheets.explaining import Explanation
from factsheets.models import BotProfile, RuleSet, Sheet, TrackedModel

#: Sheets a page: each asks the database for its whole record.
PER_PAGE = 20

#: What sheets have in common, by the name of the parameter: its rows, and how a sheet leads to them.
COMMON: dict[str, tuple[type[TrackedModel], str, str]] = {
    "ruleset": (RuleSet, "ruleset_links__ruleset", "ruleset_links"),
    "suite": (Suite, "suite_requirements__suite", "suite_requirements"),
    "bot": (BotProfile, "bot", ""),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One sheet with its gate."""

    sheet: Sheet
    view: publishing.Look
    explanation: Explanation
    is_running: bool

    @property
    def attention(self) -> list[tuple[str, int]]:
        """What wants attention besides what blocks: how many of which warning."""
        return Counter(finding.code for finding in self.view.report.warnings).most_common()


@admin.site.admin_view
@require_safe
def gates(request: HttpRequest) -> HttpResponse:
    """Every sheet, or those that use one rule set, suite or bot, each with its gate."""
    if not access.somewhere(request.user, "factsheets.view_sheet"):
        raise PermissionDenied
    chosen, sheets = _chosen(request, request.GET)
    paginator = Paginator(sheets.order_by("title", "id"), PER_PAGE)
    shown = paginator.get_page(request.GET.get("page"))
    running = set(
        Run.objects.filter(sheet__in=list(shown), state=Run.State.RUNNING).values_list(
            "sheet_id", flat=True
        )
    )
    return page(
        request,
        "evals/gates.html",
        title=f"Gates of the sheets that use “{chosen}”" if chosen else "Gates of all sheets",
        chosen=chosen,
        kind=chosen.KIND if chosen else "",
        rows=[_row(sheet, sheet.pk in running) for sheet in shown],
        shown=shown,
        count=paginator.count,
        may_run=access.somewhere(request.user, "evals.start_run"),
        query=request.GET,
    )


@admin.site.admin_view
@require_POST
def run_all(request: HttpRequest) -> HttpResponse:
    """Run the probes of every sheet that the page lists and whose gate waits for them."""
    if not access.somewhere(request.user, "evals.start_run"):
        raise PermissionDenied
    _, sheets = _chosen(request, request.POST)
    may = access.sheets(request.user, "evals.start_run")
    started: list[UUID] = []
    told = 0
    for sheet in sheets.filter(pk__in=may.values("pk")).order_by("title", "id"):
        if not _waits_for_probes(sheet):
            continue
        try:
            run = runs.start(sheet_id=sheet.pk, by=person(request), now=timezone.now())
        except Refused as refused:
            messages.error(request, f"{sheet}: {refused.sentence}")
            told += 1
            continue
        started.append(run.id)
    send(request, *started)
    if started:
        many = "1 sheet" if len(started) == 1 else f"{len(started)} sheets"
        messages.success(request, f"The probes of {many} are running.")
    elif not told:
        messages.info(request, "No gate of these waits for its probes.")
    address = reverse("runs:gates")
    parameters = _parameters(request.POST)
    return redirect(f"{address}?{parameters.urlencode()}" if parameters else address)


def _chosen(
    request: HttpRequest, parameters: QueryDict
) -> tuple[TrackedModel | None, QuerySet[Sheet]]:
    """What the sheets have in common, if anything, and those of them that the person may see.

    A row that there is not, or that the person may not see, has no sheets.
    """
    sheets = (
        access.sheets(request.user, "factsheets.view_sheet")
        .filter(archived_at__isnull=True)
        .select_related("bot", "state__live_publication")
    )
    for name, (model, path, link) in COMMON.items():
        if name in parameters:
            key = number(str(parameters[name]))
            rows = access.visible(request.user, model._base_manager.filter(pk=key))
            chosen = rows.first()
            used = Q(**{path: chosen}) if chosen else Q(pk__in=[])
            if link:
                used &= Q(**{f"{link}__removed_at__isnull": True})
            return chosen, sheets.filter(used).distinct()
    return None, sheets


def _parameters(posted: QueryDict) -> QueryDict:
    kept = QueryDict(mutable=True)
    kept.update({name: str(posted[name]) for name in COMMON if name in posted})
    return kept


def _row(sheet: Sheet, is_running: bool) -> Row:
    view = publishing.look(sheet, now=timezone.now())
    explanation = explaining.explain(
        sheet, view.report, view.evidence, publishing.last_publication(sheet)
    )
    return Row(sheet, view, explanation, is_running)


def _waits_for_probes(sheet: Sheet) -> bool:
    report = publishing.look(sheet, now=timezone.now()).report
    return any(finding.place == "probes" for finding in report.blocks)
