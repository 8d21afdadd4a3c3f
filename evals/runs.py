"""Start a run, keep it moving, close it. Whoever calls sends the tasks; nothing here does."""

from __future__ import annotations

import logging
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, Q

from evals import alarms, scoring, suites
from evals.models import Attempt, Run
from factsheets import canonical, changes, history
from factsheets.canonical import Candidate
from factsheets.errors import Refused
from factsheets.models import Outbox, Publication, Sheet
from factsheets.models.locking import begin_change, hold_still
from factsheets.publishing import NoSuchPublication

log = logging.getLogger(__name__)

#: Attempts of one run that may be with workers at a time.
WINDOW = 32

#: Tries for an attempt whose calls break. A fail is never tried again.
MAX_TRIES = 5

#: After this long a message that no worker has taken is taken for lost, and sent again.
RESEND_AFTER = timedelta(seconds=60)


_WITH_WORKERS = (Attempt.State.RUNNING, Attempt.State.REPLIED)
_OPEN = (Attempt.State.QUEUED, *_WITH_WORKERS)


class NothingToRun(Refused):
    """No probe would be asked."""

    code = "nothing-to-run"


class NoSuchSuite(Refused):
    """A suite that the sheet does not require."""

    code = "no-such-suite"


class UnderWay(Refused):
    """The same probes are being asked on the same subject already."""

    code = "run-under-way"


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
        silent = [suite for suite in plan if not suite["probes"]]
        if silent or not plan:
            raise NothingToRun(_why_nothing(sheet, silent))
        _is_the_first(sheet, candidate, publication_number, [s.slug for s in chosen])
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
            planned=sum(len(suite["probes"]) * suite["repeats"] for suite in plan),
            started_at=now,
            started_by=by,
            started_by_name=by.get_username(),
            changes_up_to_id=changes.newest(),
        )
        Attempt.objects.bulk_create(_attempts(run, plan, now))
    log.info("run %s of %s: %d attempts planned", run.id, sheet.slug, run.planned)
    return run


def advance(run_id: UUID, *, now: datetime, thorough: bool = True) -> list[UUID]:
    """What to send to workers next; closes the run when no attempt is open.

    Called after every attempt, and by the tick `thorough`: then lost workers and
    lost messages are looked for too. Sending an attempt twice does no harm: the
    second worker finds it claimed.
    """
    if not thorough and _is_under_way(run_id):
        return []
    with transaction.atomic():
        run = (
            Run.objects.select_for_update()
            .only("state", "cancel_requested", "stop_reason")
            .get(pk=run_id)
        )
        if run.state != Run.State.RUNNING:
            return []
        if run.cancel_requested or run.stop_reason:
            run.attempts.filter(state=Attempt.State.QUEUED).update(state=Attempt.State.CANCELLED)
        again = _take_back(run, now) if thorough else []
        open_attempts = (
            run.attempts.filter(state__in=_OPEN)
            .order_by("state")
            .values_list("state")
            .annotate(Count("id"), Count("sent_at"))
        )
        counts = {state: (count, sent) for state, count, sent in open_attempts}
        if not counts:
            _close(run, now)
            return []
        queued, on_their_way = counts.pop(Attempt.State.QUEUED, (0, 0))
        room = WINDOW - on_their_way - sum(count for count, _ in counts.values())
        chosen = _choose(run, now, room) if queued > on_their_way and room > 0 else []
        return [*again, *chosen]


def _is_under_way(run_id: UUID) -> bool:
    """Attempts are open and all of them with workers or sent: nothing to do, and no lock to take.

    What most calls find. A run that is to end is looked at closely.
    """
    open_attempts = Attempt.objects.filter(
        run_id=run_id, state__in=_OPEN, run__cancel_requested=False, run__stop_reason=""
    )
    counts = open_attempts.aggregate(
        open=Count("id"), unsent=Count("id", filter=Q(sent_at__isnull=True))
    )
    return bool(counts["open"]) and not counts["unsent"]


def _take_back(run: Run, now: datetime) -> list[UUID]:
    """Attempts whose worker was lost: to be sent again, or given up after too many tries.

    Messages that nobody took in time are taken for lost, so that they are sent again too.
    """
    run.attempts.filter(state=Attempt.State.QUEUED, sent_at__lte=now - RESEND_AFTER).update(
        sent_at=None
    )
    lost = run.attempts.filter(state__in=_WITH_WORKERS, lease_until__lt=now)
    # Nobody may claim an attempt of a run that is to end, so a lost one would keep it open.
    ending = run.cancel_requested or bool(run.stop_reason)
    (lost if ending else lost.filter(tries__gte=MAX_TRIES)).update(
        state=Attempt.State.DONE,
        # Whoever still holds the claim, slow and not lost, finds it gone.
        claim_token=None,
        outcome=Attempt.Outcome.ERROR,
        error_type="worker-lost",
        error="Every worker that took this attempt was lost.",
        finished_at=now,
    )
    # Sent once when the lease has run out, and again only when that message is lost too.
    chosen = list(
        lost.filter(
            Q(sent_at__isnull=True)
            | Q(sent_at__lt=F("lease_until"))
            | Q(sent_at__lte=now - RESEND_AFTER)
        ).values_list("id", flat=True)
    )
    run.attempts.filter(id__in=chosen).update(sent_at=now)
    return chosen


def _choose(run: Run, now: datetime, room: int) -> list[UUID]:
    """As many unsent attempts as there is room for, in the plan's order."""
    chosen = list(
        run.attempts.filter(state=Attempt.State.QUEUED, sent_at__isnull=True, not_before__lte=now)
        .order_by("position", "repeat", "id")
        .values_list("id", flat=True)[:room]
    )
    run.attempts.filter(id__in=chosen).update(sent_at=now)
    return chosen


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


def _close(run: Run, now: datetime) -> None:
    """The one closing write: outcome and counts, computed from rows.

    What is published meanwhile waits: it either knows of this run, or this run of it.
    """
    begin_change()
    found = result(run)
    Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(
        state=Run.State.CLOSED, outcome=found.outcome, counts=found.counts, finished_at=now
    )
    if found.outcome == "failed" and alarms.is_raised_by(run.pk):
        _raise_alarm(run, now)
    log.info("run %s ended: %s", run.id, found.outcome)


def _raise_alarm(run: Run, now: datetime) -> None:
    """Told in the transaction that closes the run, so that no alarm is lost with a worker."""
    live = run.sheet.state.live_publication
    Outbox.objects.create(
        topic=alarms.TOPIC,
        sheet=run.sheet,
        payload={
            "slug": run.sheet.slug,
            "publication": live and live.number,
            "run": str(run.pk),
            "at": canonical.instant(now),
        },
        created_at=now,
    )
    log.warning("the probes failed on what is live of sheet %s; run %s", run.sheet.slug, run.pk)


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
        raise NoSuchPublication(
            f"{sheet.slug} has no publication {publication_number}; look at its list of publications."
        )
    publication.sheet = sheet
    return history.candidate_of(publication)


def _is_the_first(
    sheet: Sheet, candidate: Candidate, publication_number: int | None, chosen: list[str]
) -> None:
    """Twice asked would be twice paid. Raises UnderWay."""
    running = Run.objects.filter(
        sheet=sheet,
        state=Run.State.RUNNING,
        publication_number=publication_number,
        content_hash=candidate.subject.content_hash,
        rules_hash=candidate.subject.rules_hash,
        bot_hash=candidate.subject.bot_hash,
    )
    for plan in running.values_list("plan", flat=True):
        if [suite["slug"] for suite in plan["suites"]] == chosen:
            raise UnderWay(
                f"The same probes of {sheet.slug} are under way; wait for that run, or cancel it."
            )


def _planned(suite: suites.FrozenSuite, *, offline: bool) -> dict[str, Any]:
    """A suite as the run keeps it. Probes that need a model are left out offline, and named."""
    asked = [p for p in suite.probes if not (offline and p["needs"] == "model")]
    return {
        "slug": suite.slug,
        "title": suite.title,
        "hash": suite.hash,
        "repeats": suite.repeats,
        "pass_bar": suite.pass_bar,
        "probe_hashes": suite.probe_hashes,
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


def _why_nothing(sheet: Sheet, silent: list[dict[str, Any]]) -> str:
    """A suite that asks nothing has not passed, whatever the others do."""
    if not silent:
        return f"{sheet.slug} requires no suite of probes; require one first."
    title = silent[0]["title"]
    if silent[0]["left_out"]:
        return (
            f"Every probe of the suite “{title}” needs a model, and the sheet's bot is the offline "
            "one; choose another bot."
        )
    return f"The suite “{title}” has no active probe with a check; add some or drop it."
