"""Celery's doorways into this app: clock read, one call."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from factsheets import log_ins, notices, scheduling, sizes


@shared_task
def forget_failed_log_ins(**_later: object) -> None:
    log_ins.forget(now=timezone.now())


@shared_task
def publish_due(**_later: object) -> None:
    """Each in a task of its own: one that breaks keeps no other from its time."""
    for schedule_id in scheduling.due(now=timezone.now()):
        publish_scheduled.delay(schedule_id=schedule_id)


@shared_task
def publish_scheduled(*, schedule_id: int, **_later: object) -> None:
    scheduling.fire(schedule_id, now=timezone.now())


@shared_task
def count_again(**_later: object) -> None:
    """The sheets that were not counted for a quarter, each in a task of its own."""
    for sheet_id in sizes.due(now=timezone.now()):
        count_sheet_again.delay(sheet_id=sheet_id)


@shared_task
def count_sheet_again(*, sheet_id: int, **_later: object) -> None:
    sizes.recount(sheet_id, now=timezone.now())


@shared_task
def send_notices(**_later: object) -> None:
    notices.send(now=timezone.now())
