"""Is everything up that must be: database, broker, and beat with a worker behind it?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from kombu import Connection
from kombu.exceptions import OperationalError

from factsheets.models.operations import Heartbeat

BEAT = "beat"

#: What is looked at, in order.
PARTS = ("database", "broker", "beat")


def beat(*, now: datetime) -> None:
    """Called by a task that beat sends: proof that beat, broker and a worker work together."""
    Heartbeat.objects.update_or_create(name=BEAT, defaults={"at": now})


def faults(*, now: datetime) -> dict[str, str]:
    """What is wrong, one sentence a part; empty when all is well."""
    found: dict[str, str] = {}
    probes: dict[str, Callable[[], str]] = {
        "database": _database,
        "broker": _broker,
        "beat": lambda: _beat(now),
    }
    for part, probe in probes.items():
        sentence = probe()
        if sentence:
            found[part] = sentence
    return found


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "The database does not answer."
    return ""


def _broker() -> str:
    try:
        with Connection(settings.CELERY_BROKER_URL, connect_timeout=2) as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
    except (OSError, OperationalError, redis.RedisError):
        return "The broker does not answer."
    return ""


def _beat(now: datetime) -> str:
    try:
        last = Heartbeat.objects.filter(name=BEAT).values_list("at", flat=True).first()
    except DatabaseError:
        return "Unknown, for the database does not answer."
    if last is None:
        return "Beat has not been seen yet; start worker and beat."
    if now - last > late_after():
        return f"Beat was last seen at {last:%Y-%m-%d %H:%M:%S} UTC; start worker and beat."
    return ""


def late_after() -> timedelta:
    """How long beat may be silent: a few missed ticks, and never less than a minute and a half."""
    return timedelta(seconds=max(90.0, 3 * settings.TICK_SECONDS))
