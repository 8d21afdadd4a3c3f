"""Figures about runs, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count

from evals import alarms
from evals.models import Attempt, Run
from factsheets.metrics import Gauge


def of_evals(now: datetime) -> Iterator[Gauge]:
    """Runs by outcome, and what is still to be asked."""
    outcomes = dict(
        Run.objects.exclude(outcome="")
        .values_list("outcome")
        .annotate(n=Count("id"))
        .order_by("outcome")
    )
    yield Gauge(
        "muniment_runs",
        "Runs of the probes that have ended, by outcome.",
        [(outcome, outcomes.get(outcome, 0)) for outcome in Run.Outcome.values],
        "outcome",
    )
    running = Run.objects.filter(state=Run.State.RUNNING)
    yield Gauge("muniment_runs_open", "Runs under way.", [("", running.count())])
    attempts = Attempt.objects.filter(run__in=running).exclude(state=Attempt.State.DONE)
    yield Gauge(
        "muniment_attempts_open", "Probes of open runs still to be asked.", [("", attempts.count())]
    )
    yield Gauge(
        "muniment_live_probes_failed",
        "Sheets of which what is live has failed its newest run of the probes.",
        [("", alarms.count())],
    )
    oldest = running.order_by("started_at").values_list("started_at", flat=True).first()
    yield Gauge(
        "muniment_run_oldest_seconds",
        "Age of the oldest run under way; 0 without one.",
        [("", (now - oldest).total_seconds() if oldest else 0)],
    )
