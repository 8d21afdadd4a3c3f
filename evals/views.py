"""Pages and fragments about runs. The sheet's own pages show the fragments by their addresses."""

from __future__ import annotations

from uuid import UUID

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from evals import highlight, runs, tasks
from evals.models import Attempt, Run
from factsheets import access
from factsheets.admin.base import person
from factsheets.errors import Refused
from factsheets.models import Sheet


def _sheet(request: HttpRequest, sheet_id: int, permission: str) -> Sheet:
    """The sheet, for who has the permission on it; others are told no."""
    sheet = get_object_or_404(Sheet.objects.present(), pk=sheet_id)
    access.require(request.user, permission, sheet)
    return sheet


@admin.site.admin_view
@require_POST
def start(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Start a run on the draft, or on a publication, and go back to the gate."""
    sheet = _sheet(request, sheet_id, "evals.start_run")
    number = request.POST.get("publication", "")
    if number and not (number.isdecimal() and len(number) < 10):
        messages.error(request, "Choose a publication by its number.")
        return redirect("admin:sheet_gate", sheet.pk)
    if sheet.runs.filter(state=Run.State.RUNNING).exists():
        # Twice pressed would be twice paid.
        messages.error(request, "A run of this sheet is under way; wait for it, or cancel it.")
        return redirect("admin:sheet_gate", sheet.pk)
    try:
        run = runs.start(
            sheet_id=sheet.pk,
            publication_number=int(number) if number else None,
            by=person(request),
            now=timezone.now(),
        )
    except Refused as refused:
        messages.error(request, refused.sentence)
    else:
        _send(request, run.id)
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
        _send(request, run.id)
    return redirect("admin:sheet_gate", run.sheet_id)


@admin.site.admin_view
@require_safe
def progress(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The sheet's newest runs as a fragment; it asks for itself again while one is open."""
    sheet = _sheet(request, sheet_id, "evals.view_run")
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
    if request.GET.get("was") == "open" and not is_open:
        # The gate above this fragment has a new answer.
        response["HX-Refresh"] = "true"
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
    return render(
        request,
        "evals/run.html",
        {
            **admin.site.each_context(request),
            "title": f"Run of {run.started_at:%d %B %Y, %H:%M} on {run.sheet}",
            "run": run,
            "attempts": [(attempt, highlight.turns(attempt)) for attempt in worst_first],
            "spends": sum(len(attempt.spends.all()) for attempt in attempts),
        },
    )


def _send(request: HttpRequest, run_id: UUID) -> None:
    def send() -> None:
        if not tasks.dispatch(run_id):
            messages.warning(
                request,
                "The broker is out of reach; the run goes on by itself once it is back.",
            )

    transaction.on_commit(send)
