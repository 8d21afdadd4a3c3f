"""Has what bots get now failed its probes? Read from runs; nothing is withdrawn by itself."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, Q, QuerySet

from evals.models import Run

#: The announcement of a run that failed on what is live.
TOPIC = "live-probes-failed"


def failed_run(sheet_id: int) -> Run | None:
    """The newest whole run on what is live of a sheet, if it failed."""
    newest = (
        _of_live()
        .filter(sheet=sheet_id)
        .defer("content", "rules_text")
        .order_by("-finished_at", "id")
        .first()
    )
    return newest if newest is not None and newest.outcome == Run.Outcome.FAILED else None


def is_raised_by(run_id: UUID) -> bool:
    """Whether a run that has ended is a whole one on what is live now."""
    return _of_live().filter(pk=run_id).exists()


def count() -> int:
    """Sheets of which what is live has failed its newest whole run."""
    newest = _of_live().order_by("sheet_id", "-finished_at", "id")
    outcomes: dict[int, str] = {}
    for sheet_id, outcome in newest.values_list("sheet_id", "outcome"):
        outcomes.setdefault(sheet_id, outcome)
    return sum(outcome == Run.Outcome.FAILED for outcome in outcomes.values())


def _of_live() -> QuerySet[Run]:
    """Whole runs that ended with a verdict on a live publication: on its number, or on the same
    text, rules and bot."""
    live = "sheet__state__live_publication__"
    return Run.objects.filter(
        Q(publication_number=F(f"{live}number")) | Q(bot_hash=F(f"{live}bot_hash")),
        state=Run.State.CLOSED,
        is_partial=False,
        outcome__in=[Run.Outcome.PASSED, Run.Outcome.FAILED],
        content_hash=F(f"{live}content_hash"),
        rules_hash=F(f"{live}rules_hash"),
    )
