"""Celery's doorways: ids in, clock read, one call. A task is a hint; rows decide."""

from __future__ import annotations

import logging
from uuid import UUID

from celery import shared_task
from django.utils import timezone
from kombu.exceptions import OperationalError

from evals import attempts, question_sets, renewal, runs, trials
from factsheets import health

log = logging.getLogger(__name__)


def dispatch(run_id: UUID, *, thorough: bool = True) -> bool:
    """Send a run's next attempts to the workers. False when the broker is out of reach:
    the tick sends them once it is back."""
    try:
        for attempt_id in runs.advance(run_id, now=timezone.now(), thorough=thorough):
            run_attempt.delay(attempt_id=str(attempt_id))
    except OperationalError:
        log.warning("the broker is out of reach; run %s goes on when it is back", run_id)
        return False
    return True


@shared_task
def run_attempt(*, attempt_id: str, **_later: object) -> None:
    # _later: a worker from before a deploy survives arguments added by it.
    run_id = attempts.perform(UUID(attempt_id), clock=timezone.now)
    if run_id is not None:
        dispatch(run_id, thorough=False)


@shared_task
def tick(**_later: object) -> None:
    """The backstop: lost workers, lost messages, back-off that has passed, runs left open."""
    health.beat(now=timezone.now())
    for run_id in runs.open_runs():
        advance_run.delay(run_id=str(run_id))
    for trial_id in trials.waiting(now=timezone.now()):
        work_on_trial.delay(trial_id=trial_id)


@shared_task
def advance_run(*, run_id: str, **_later: object) -> None:
    dispatch(UUID(run_id))


@shared_task
def renew_evidence(**_later: object) -> None:
    for sheet in renewal.due(now=timezone.now()):
        run_id = renewal.renew(sheet, now=timezone.now())
        if run_id is not None:
            dispatch(run_id)


@shared_task
def measure_published(**_later: object) -> None:
    question_sets.measure_due(now=timezone.now())


def dispatch_trial(trial_id: int) -> bool:
    """Send a trial to the workers. False when the broker is out of reach: the tick sends it."""
    try:
        work_on_trial.delay(trial_id=trial_id)
    except OperationalError:
        log.warning("the broker is out of reach; trial %s begins when it is back", trial_id)
        return False
    return True


@shared_task
def work_on_trial(*, trial_id: int, **_later: object) -> None:
    trials.work(trial_id, clock=timezone.now)
