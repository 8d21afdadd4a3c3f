"""The probes of what is live, run again before their evidence is too old."""

from __future__ import annotations

import logging
from datetime import date, datetime, timedelta
from uuid import UUID

from django.utils import timezone

from evals import runs
from evals.models import Run
from factsheets import editing, publishing
from factsheets.errors import Refused
from factsheets.models import Publication, Sheet

log = logging.getLogger(__name__)

#: After a run that found no verdict it is tried again, but not at once: a run costs.
AGAIN_AFTER = timedelta(days=1)


def renews_on(sheet: Sheet) -> date | None:
    """The day from which the probes of what is live run again by themselves.

    None: nothing is live, or its evidence is never renewed.
    """
    live = sheet.state.live_publication
    passed = _last_passed(sheet, live) if live else None
    if passed is None:
        return None
    return publishing.policy_of(sheet).renews_on(timezone.localdate(passed.ended_at))


def due(*, now: datetime) -> list[Sheet]:
    """Live sheets whose evidence should be renewed now.

    Not one whose probes run, ran within a day, or failed: a run that failed
    calls for people, and is not repeated until one passes.
    """
    live = Sheet.objects.present().filter(
        state__live_publication__isnull=False, archived_at__isnull=True
    )
    return [sheet for sheet in live.select_related("state").order_by("id") if _is_due(sheet, now)]


def renew(sheet: Sheet, *, now: datetime) -> UUID | None:
    """Start the probes on what is live. None, and a line in the log, where nothing can be asked."""
    live = sheet.state.live_publication
    if live is None:
        return None
    try:
        run = runs.start(
            sheet_id=sheet.pk,
            publication_number=live.number,
            by=editing.service_account(editing.RENEWAL_ACCOUNT),
            now=now,
        )
    except Refused as refused:
        log.warning("sheet %s: evidence is not renewed: %s", sheet.slug, refused.sentence)
        return None
    return run.id


def _is_due(sheet: Sheet, now: datetime) -> bool:
    live, day = sheet.state.live_publication, renews_on(sheet)
    if live is None or day is None or timezone.localdate(now) < day:
        return False
    whole = Run.objects.filter(sheet=sheet, is_partial=False)
    if whole.filter(state=Run.State.RUNNING).exists():
        return False
    mine = whole.filter(publication_number=live.number)
    passed = _last_passed(sheet, live)
    failed = mine.filter(outcome=Run.Outcome.FAILED)
    if passed is not None:
        failed = failed.filter(finished_at__gt=passed.ended_at)
    return not failed.exists() and not mine.filter(started_at__gt=now - AGAIN_AFTER).exists()


def _last_passed(sheet: Sheet, live: Publication) -> Run | None:
    """The newest passing run that speaks for what is live; on its very text, if the sheet asks so."""
    passed = Run.objects.filter(
        sheet=sheet,
        rules_hash=live.rules_hash,
        outcome=Run.Outcome.PASSED,
        is_partial=False,
    )
    if sheet.probe_scope == Sheet.ProbeScope.RULES_AND_CONTENT:
        passed = passed.filter(content_hash=live.content_hash)
    return passed.defer("content", "rules_text", "plan").order_by("-finished_at", "id").first()
