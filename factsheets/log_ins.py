"""What an operator hears of log-ins that fail, and how long those are remembered."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from axes.models import AccessAttempt
from axes.signals import user_locked_out
from django.conf import settings
from django.dispatch import receiver

log = logging.getLogger(__name__)

#: Failed log-ins bear a name and an address; a day is longer than any lock.
KEPT = timedelta(days=1)


@receiver(user_locked_out)
def _say_locked(**_: Any) -> None:
    log.warning("a log-in failed too often and is closed for a while")


def opens_at(*, name: str, address: str | None, now: datetime) -> datetime:
    """When a closed log-in opens: as soon as enough of its failures are old enough.

    They are kept a row for each browser, so that several may have to pass.
    """
    pause: timedelta = settings.AXES_COOLOFF_TIME
    failures = AccessAttempt.objects.filter(
        username=name, ip_address=address, attempt_time__gte=now - pause
    ).order_by("attempt_time", "pk")
    left = sum(failure.failures_since_start for failure in failures)
    for failure in failures:
        left -= failure.failures_since_start
        if left < settings.AXES_FAILURE_LIMIT:
            opens: datetime = failure.attempt_time + pause
            return opens
    return now


def forget(*, now: datetime) -> int:
    """Delete failed log-ins of more than a day ago; how many there were."""
    deleted, _ = AccessAttempt.objects.filter(attempt_time__lt=now - KEPT).delete()
    return int(deleted)
