"""Celery's doorways into this app: clock read, one call."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from factsheets import log_ins


@shared_task
def forget_failed_log_ins(**_later: object) -> None:
    log_ins.forget(now=timezone.now())
