"""What an operator hears of log-ins that fail, and how long those are remembered."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from axes.models import AccessAttempt
from axes.signals import user_locked_out
from django.dispatch import receiver

log = logging.getLogger(__name__)

#: Failed log-ins bear a name and an address; a day is longer than any lock.
KEPT = timedelta(days=1)


@receiver(user_locked_out)
def _say_locked(**_: Any) -> None:
    log.warning("a log-in failed too often and is closed for a while")


def forget(*, now: datetime) -> int:
    """Delete failed log-ins of more than a day ago; how many there were."""
    deleted, _ = AccessAttempt.objects.filter(attempt_time__lt=now - KEPT).delete()
    return int(deleted)
