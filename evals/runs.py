"""Start a run, keep it moving, close it. Whoever calls sends the tasks; nothing here does."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from evals import scoring, suites
from evals.models import Attempt, Run
from factsheets import history
from factsheets.canonical import Candidate
from factsheets.errors import Refused
from factsheets.models import Publication, Sheet
from factsheets.models.locking import hold_still

log = logging.getLogger(__name__)

#: Attempts of one run that may be with workers at a time.
WINDOW = 32

#: Tries for an attempt whose calls break. A fail is never tried again.
MAX_TRIES = 5

#: After this long a message that no worker has taken is taken for lost, and sent again.
RESEND_AFTER = timedelta(seconds=60)


class NothingToRun(Refused):
    """No probe would be asked."""

    code = "nothing-to-run"


class NoSuchSuite(Refused):
    """A suite that the sheet does not require."""

    code = "no-such-suite"


class AlreadyClosed(Refused):
    """The run has ended; what it found stays."""

    code = "run-closed"


def start(
    *,
    sheet_id: int,
    by: User,
    now: datetime,
    publication_number: int | None = None,
    suite_slug: str | None = None,
) -> Run:
    """Freeze the draft, or a publication with the sheet's present bot, and plan every attempt.

    With `suite_slug` only that suite runs, to look at: unless the sheet
    requires no other, the run opens no gate.
    """
    with transaction.atomic():
        hold_still()
        sheet = Sheet.objects.select_related("bot").get(pk=sheet_id)
        candidate = _subject(sheet, publication_number)
        required = suites.required(sheet_id)
        chosen = [s for s in required if suite_slug in (None, s.slug)]
        if suite_slug is not None and not chosen:
            raise NoSuchSuite(
                f"{sheet.slug} does not require a suite {suite_slug!r}; "
                f"it requires {', '.join(s.slug for s in required) or 'none'}."
            )
        offline = candidate.snapshot.bot.provider == "offline"
        plan = [_planned(suite, offline=offline) for suite in chosen]
        attempts = sum(len(s["probes"]) * s["repeats"] for s in plan)
        if not attempts:
            raise NothingToRun(_why_nothing(sheet, required, offline=offline))
        run = Run.objects.create(
            sheet=sheet,
            publication_number=publication_number,
            content_hash=candidate.subject.content_hash,
            rules_hash=candidate.subject.rules_hash,
            bot_hash=candidate.subject.bot_hash,
            content=candidate.content_bytes,
            rules_text=candidate.rules_text,
            plan={
                "bot": asdict(candidate.snapshot.bot),
                "delivery": candidate.snapshot.delivery,
                "suites": plan,
            },
            is_partial=len(chosen) < len(required),
            planned=attempts,
            started_at=now,
            started_by=by,
            started_by_name=by.get_username(),
        )
        Attempt.objects.bulk_create(_attempts(run, plan, now))
    log.info("run %s of %s: %d attempts planned", run.id, sheet.slug, attempts)
    return run


def advance(run_id: UUID, *, now: datetime) -> list[UUID]:
    """What to send to workers next; closes the run when no attempt is open.

    Called after every attempt and by the tick. Sending an attempt twice does no
    harm: the second worker finds it claimed.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        if run.state != Run.State.RUNNING:
            return []
        rows = Attempt.objects.filter(run=run)
        if run.cancel_requested or run.stop_reason:
            rows.filter(state=Attempt.State.QUEUED).update(state=Attempt.State.CANCELLED)
        lost = rows.filter(
            state__in=[Attempt.State.RUNNING, Attempt.State.REPLIED], lease_until__lt=now
        )
        lost.filter(tries__gte=MAX_TRIES).update(
            state=Attempt.State.DONE,
            outcome=Attempt.Outcome.ERROR,
            error_type="worker-lost",
            error=f"The worker was lost {MAX_TRIES} times in this attempt.",
            finished_at=now,
        )
        states = Counter(rows.values_list("state", flat=True))
        if not any(states[s] for s in (Attempt.State.QUEUED, *_WITH_WORKERS)):
            _close(run, now)
            return []
        lost.update(sent_at=now)
        again = list(lost.values_list("id", flat=True))
        unsent = rows.filter(state=Attempt.State.QUEUED, not_before__lte=now)
        waiting = unsent.filter(sent_at__gt=now - RESEND_AFTER).count()
        room = WINDOW - waiting - sum(states[s] for s in _WITH_WORKERS)
        chosen = list(
            unsent.exclude(sent_at__gt=now - RESEND_AFTER)
            .order_by("position", "repeat", "id")
            .values_list("id", flat=True)[: max(room, 0)]
        )
        if chosen:
            rows.filter(id__in=chosen).update(sent_at=now)
        return [*again, *chosen]


def cancel(run_id: UUID) -> None:
    """Ask no further probe. What is being asked is let end; then the run closes as cancelled."""
    with transaction.atomic():
        if not Run.objects.filter(pk=run_id, state=Run.State.RUNNING).update(cancel_requested=True):
            raise AlreadyClosed("The run has ended already; start a new one if you need it.")


def open_runs() -> list[UUID]:
    """Runs that the tick must look after."""
    return list(
        Run.objects.filter(state=Run.State.RUNNING)
        .order_by("started_at", "id")
        .values_list("id", flat=True)
    )


_WITH_WORKERS = (Attempt.State.RUNNING, Attempt.State.REPLIED)


def _close(run: Run, now: datetime) -> None:
    """The one closing write: outcome and counts, computed from rows."""
    found = result(run)
    Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(
        state=Run.State.CLOSED, outcome=found.outcome, counts=found.counts, finished_at=now
    )
    log.info("run %s ended: %s", run.id, found.outcome)


def result(run: Run) -> scoring.RunResult:
    """A run's outcome and counts as its attempts have them."""
    return scoring.run_result(
        planned=run.planned,
        pass_bars={suite["slug"]: suite["pass_bar"] for suite in run.plan["suites"]},
        results=[
            scoring.AttemptResult(*row)
            for row in Attempt.objects.filter(run=run)
            .order_by("position", "repeat", "id")
            .values_list("suite", "category", "severity", "outcome")
        ],
        cancelled=run.cancel_requested,
        stopped=bool(run.stop_reason),
    )


def _subject(sheet: Sheet, publication_number: int | None) -> Candidate:
    if publication_number is None:
        return history.candidate_now(sheet)
    publication = Publication.objects.filter(sheet=sheet, number=publication_number).first()
    if publication is None:
        raise NothingToRun(f"{sheet.slug} has no publication {publication_number}.")
    publication.sheet = sheet
    return history.candidate_of(publication)


def _planned(suite: suites.FrozenSuite, *, offline: bool) -> dict[str, Any]:
    """A suite as the run keeps it. Probes that need a model are left out offline, and named."""
    asked = [p for p in suite.probes if not (offline and p["needs"] == "model")]
    return {
        "slug": suite.slug,
        "title": suite.title,
        "hash": suite.hash,
        "repeats": suite.repeats,
        "pass_bar": suite.pass_bar,
        "probes": asked,
        "left_out": [p["key"] for p in suite.probes if p not in asked],
    }


def _attempts(run: Run, plan: list[dict[str, Any]], now: datetime) -> list[Attempt]:
    probes = [(suite, probe) for suite in plan for probe in suite["probes"]]
    return [
        Attempt(
            run=run,
            suite=suite["slug"],
            probe=probe["key"],
            category=probe["category"],
            severity=probe["severity"],
            repeat=repeat,
            position=position,
            not_before=now,
        )
        for position, (suite, probe) in enumerate(probes)
        for repeat in range(1, suite["repeats"] + 1)
    ]


def _why_nothing(sheet: Sheet, required: tuple[suites.FrozenSuite, ...], *, offline: bool) -> str:
    if not required:
        return f"{sheet.slug} requires no suite of probes; require one first."
    if all(suite.is_empty for suite in required):
        return f"The suites that {sheet.slug} requires have no active probe with a check; add some."
    if offline:
        return (
            "Every probe needs a model, and the sheet's bot is the offline one; choose another bot."
        )
    return "No probe of these suites would be asked."
