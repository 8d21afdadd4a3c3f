"""Publishing later: what was approved, at its time, through the gate as it then stands, or not at all."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from factsheets import canonical, publishing
from factsheets.errors import Refused
from factsheets.models import Outbox, Schedule
from factsheets.models.locking import hold_still

log = logging.getLogger(__name__)

#: Later than this a publication is not made up for: somebody decides anew.
LATE_AFTER = timedelta(minutes=10)

SUSPENDED = "schedule-suspended"
MISSED = "schedule-missed"


class AlreadyScheduled(Refused):
    """Another publication of the sheet waits for its time."""

    code = "already-scheduled"


class NothingScheduled(Refused):
    """Nothing waits, or no longer."""

    code = "nothing-scheduled"


class ClosedByThen(Refused):
    """The gate is open now, and what is known now closes it before the time comes."""

    code = "closed-by-then"


def schedule(
    *,
    sheet_id: int,
    seen: canonical.Subject,
    seen_live_number: int | None,
    due_at: datetime,
    zone: str,
    by: User,
    reason: str,
    now: datetime,
) -> Schedule:
    """Approve the draft that was seen for a time to come (`moments.coming`).

    Raises what `publishing.publish` would raise now, ClosedByThen and AlreadyScheduled.
    """
    with transaction.atomic():
        sheet = publishing.locked(sheet_id)
        waiting = sheet.schedules.filter(state=Schedule.State.WAITING).first()
        if waiting is not None:
            raise AlreadyScheduled(
                f"A publication of {sheet.slug} is scheduled for {waiting.due_at:%Y-%m-%d %H:%M} "
                "UTC already; cancel it first."
            )
        view = publishing.look(sheet, now=now, by=by)
        publishing.same_as_seen(view, seen, seen_live_number)
        if not view.report.is_open:
            raise publishing.PublishRefused(view.report)
        then = publishing.look(sheet, now=due_at, by=by).report
        if not then.is_open:
            raise ClosedByThen(f"By that time the gate will be closed: {then.blocks[0].sentence}")
        return Schedule.objects.create(
            sheet=sheet,
            due_at=due_at,
            zone=zone,
            content_hash=seen.content_hash,
            rules_hash=seen.rules_hash,
            bot_hash=seen.bot_hash,
            seen_live_number=seen_live_number,
            reason=publishing.reason_given(reason),
            scheduled_at=now,
            scheduled_by=by,
            scheduled_by_name=by.get_username(),
        )


def due(*, now: datetime) -> list[int]:
    """Schedules whose time has come, by key."""
    waiting = Schedule.objects.filter(state=Schedule.State.WAITING, due_at__lte=now)
    return list(waiting.order_by("due_at", "id").values_list("id", flat=True))


def fire(schedule_id: int, *, now: datetime) -> Schedule | None:
    """Publish what was approved if the gate lets it out now, else suspend it and say why.

    Whoever comes too late makes nothing up: the time is marked as missed. None
    where nothing waits under that key, or its time has not come.
    """
    with transaction.atomic():
        hold_still()
        row = (
            Schedule.objects.select_for_update(of=("self",))
            .select_related("sheet", "scheduled_by")
            .filter(pk=schedule_id, state=Schedule.State.WAITING, due_at__lte=now)
            .first()
        )
        if row is None:
            return None
        if now - row.due_at > LATE_AFTER:
            _close(
                row,
                Schedule.State.MISSED,
                "No worker carried it out in time, and it is not made up for; "
                "look at the sheet and publish or schedule it again.",
                now,
            )
        else:
            _publish(row, now)
        return row


def cancel(*, schedule_id: int, by: User, now: datetime) -> Schedule:
    """Take a schedule back while it waits. Raises NothingScheduled."""
    with transaction.atomic():
        hold_still()
        row = Schedule.objects.filter(pk=schedule_id, state=Schedule.State.WAITING).first()
        if row is None:
            raise NothingScheduled("Nothing is scheduled any more; look at the sheet's gate again.")
        _close(row, Schedule.State.CANCELLED, f"{by.get_username()} cancelled it.", now)
        return row


def _publish(row: Schedule, now: datetime) -> None:
    approver = row.scheduled_by
    if not approver.has_perm("factsheets.publish_sheet", row.sheet):
        _close(
            row,
            Schedule.State.SUSPENDED,
            f"{row.scheduled_by_name}, who scheduled it, may no longer publish the sheet; "
            "ask a publisher to look and publish.",
            now,
        )
        return
    try:
        # A transaction within this one: a refusal leaves nothing of the publication.
        row.publication = publishing.publish(
            sheet_id=row.sheet_id,
            seen=canonical.Subject(row.sheet_id, row.content_hash, row.rules_hash, row.bot_hash),
            seen_live_number=row.seen_live_number,
            by=approver,
            reason=row.reason,
            now=now,
        )
    except Refused as refused:
        _close(row, Schedule.State.SUSPENDED, refused.sentence, now)
    else:
        _close(row, Schedule.State.DONE, "Published at its time.", now)


def _close(row: Schedule, state: Schedule.State, because: str, now: datetime) -> None:
    row.state, row.closed_because, row.closed_at = state, because, now
    row.save()
    log.info("sheet %s: schedule %d is %s", row.sheet.slug, row.pk, state)
    topics = {Schedule.State.SUSPENDED: SUSPENDED, Schedule.State.MISSED: MISSED}
    if state in topics:
        Outbox.objects.create(
            topic=topics[state],
            sheet=row.sheet,
            payload={
                "slug": row.sheet.slug,
                "due_at": canonical.instant(row.due_at),
                "because": because,
            },
            created_at=now,
        )
