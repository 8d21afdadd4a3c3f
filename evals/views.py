"""Pages and fragments about runs. The sheet's own pages show the fragments by their addresses."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evals import highlight, runs, starting, tasks
from evals.forms import NewSheetForm
from evals.models import Attempt, Run
from factsheets import access
from factsheets.admin.base import person
from factsheets.admin.pages import CHANGED, number, page, sheet_for
from factsheets.errors import Refused
from factsheets.models import Sheet


@admin.site.admin_view
@require_POST
def start(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Start a run on the draft, or on a publication, and go back to the gate."""
    sheet = sheet_for(request, sheet_id, "evals.start_run")
    wanted = request.POST.get("publication", "")
    publication = number(wanted)
    if wanted and publication is None:
        return _not_started(request, sheet, "Choose a publication by its number.")
    if sheet.runs.filter(state=Run.State.RUNNING).exists():
        # Twice pressed would be twice paid.
        return _not_started(
            request, sheet, "A run of this sheet is under way; wait for it, or cancel it."
        )
    try:
        run = runs.start(
            sheet_id=sheet.pk,
            publication_number=publication,
            by=person(request),
            now=timezone.now(),
        )
    except Refused as refused:
        return _not_started(request, sheet, refused.sentence)
    send(request, run.id)
    if _is_fragment(request):
        return _newest(request, sheet, was_open=True)
    # A run may be over before the page asks for it: the page is told that one was open.
    return redirect(f"{reverse('admin:sheet_gate', args=[sheet.pk])}?run=started")


#: What the workbench shows as a sentence.
_SAYS = "bench-says"


def _is_fragment(request: HttpRequest) -> bool:
    """Asked for by a page that stays where it is."""
    return "HX-Request" in request.headers


def _not_started(request: HttpRequest, sheet: Sheet, sentence: str) -> HttpResponse:
    if _is_fragment(request):
        response = HttpResponse(status=204)
        response["HX-Trigger"] = json.dumps({_SAYS: sentence})
        return response
    messages.error(request, sentence)
    return redirect("admin:sheet_gate", sheet.pk)


@admin.site.admin_view
@require_POST
def cancel(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Ask no further probe of a run."""
    run = get_object_or_404(Run, pk=run_id)
    access.require(request.user, "evals.start_run", run)
    try:
        runs.cancel(run.id)
    except Refused as refused:
        messages.error(request, refused.sentence)
    else:
        send(request, run.id)
    return redirect("admin:sheet_gate", run.sheet_id)


@admin.site.admin_view
@require_safe
def progress(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The sheet's newest runs as a fragment; it asks for itself again while one is open."""
    sheet = sheet_for(request, sheet_id, "evals.view_run")
    return _newest(request, sheet, was_open=request.GET.get("was") == "open")


def _newest(request: HttpRequest, sheet: Sheet, *, was_open: bool) -> HttpResponse:
    """`was_open`: the page knew of an open run, and must hear if there is none any more."""
    newest = list(
        Run.objects.filter(sheet=sheet)
        .defer("content", "rules_text")
        .annotate(
            done=Count("attempts", filter=Q(attempts__state=Attempt.State.DONE)),
            failed=Count("attempts", filter=Q(attempts__outcome=Attempt.Outcome.FAIL)),
            broken=Count(
                "attempts",
                filter=Q(attempts__outcome__in=["error", "truncated", "ungraded"]),
            ),
        )
        .order_by("-started_at", "id")[:5]
    )
    is_open = any(run.state == Run.State.RUNNING for run in newest)
    response = render(
        request, "evals/progress.html", {"runs": newest, "is_open": is_open, "sheet": sheet}
    )
    if was_open and not is_open:
        # The gate beside this fragment has a new answer; the workbench asks for it by itself.
        if "/workbench/" in urlsplit(request.headers.get("HX-Current-URL", "")).path:
            response["HX-Trigger"] = CHANGED
        else:
            response["HX-Redirect"] = reverse("admin:sheet_gate", args=[sheet.pk])
    response["Cache-Control"] = "no-store"
    return response


@admin.site.admin_view
@require_safe
def detail(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One run: what was asked, what came back, and the words that decided."""
    run = get_object_or_404(Run.objects.select_related("sheet"), pk=run_id)
    access.require(request.user, "evals.view_run", run)
    attempts = list(
        run.attempts.prefetch_related("turns", "verdicts", "spends").order_by(
            "position", "repeat", "id"
        )
    )
    worst_first = sorted(attempts, key=lambda a: a.outcome == Attempt.Outcome.PASS)
    return page(
        request,
        "evals/run.html",
        title=f"Run of {run.started_at:%d %B %Y, %H:%M} on {run.sheet}",
        run=run,
        attempts=[(attempt, highlight.turns(attempt)) for attempt in worst_first],
        spends=sum(len(attempt.spends.all()) for attempt in attempts),
    )


@xframe_options_sameorigin  # Other forms of the admin open it in a frame, as they do its own.
@admin.site.admin_view
@require_http_methods(["GET", "HEAD", "POST"])
def new_sheet(request: HttpRequest) -> HttpResponse:
    """Make a sheet, from blank or as a copy, and go to its gate, which says what to do next."""
    # A new sheet is on nobody's list of sheets yet.
    if not request.user.has_perm("factsheets.add_sheet"):
        raise PermissionDenied
    is_popup = IS_POPUP_VAR in request.GET
    form = NewSheetForm(
        request.POST if request.method == "POST" else None,
        originals=access.sheets(request.user, "factsheets.view_sheet"),
    )
    if request.method == "POST" and form.is_valid():
        try:
            sheet = _make(form.cleaned_data, request)
        except Refused as refused:
            form.add_error(None, refused.sentence)
        else:
            if is_popup:
                made = json.dumps({"value": str(sheet.pk), "obj": str(sheet)})
                return render(request, "admin/popup_response.html", {"popup_response_data": made})
            messages.success(request, f"The sheet “{sheet}” is made. Nothing of it is live yet.")
            return redirect("admin:sheet_gate", sheet.pk)
    return page(request, "evals/new_sheet.html", title="New sheet", form=form, is_popup=is_popup)


def _make(data: dict[str, Any], request: HttpRequest) -> Sheet:
    by, now = person(request), timezone.now()
    told = {
        "slug": data["slug"],
        "title": data["title"],
        "description": data["description"],
        "reason": data["why"],
    }
    # What is left empty is as in the original, or the default.
    if data["language"]:
        told["language"] = data["language"]
    if data["start"] is None:
        return starting.start_blank(**told, by=by, now=now)
    return starting.start_copy(source=data["start"], **told, by=by, now=now)


def send(request: HttpRequest, *run_ids: UUID) -> None:
    """Send the attempts of runs to the workers once they are committed, and say if that cannot be."""

    def dispatch() -> None:
        # The first that finds no broker is the last to look for one.
        if not all(tasks.dispatch(run_id) for run_id in run_ids):
            messages.warning(
                request,
                "The broker is out of reach; the run goes on by itself once it is back.",
            )

    transaction.on_commit(dispatch)
