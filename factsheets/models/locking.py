"""Who waits for whom: changes go on side by side, a picture that must be whole waits for them.

Editors take one shared lock for their transaction, and whoever freezes a
picture (a publication, a run's plan) takes it alone. So no picture is ever
taken in the middle of a save, whatever rows the save touches: shared rules,
bots and suites as well as sections. PostgreSQL only: SQLite lets one writer in
at a time.
"""

from __future__ import annotations

from django.db import connection

#: Any number that nothing else in the database uses for an advisory lock.
_KEY = 7_361_904


def begin_change() -> None:
    """Held to the end of the transaction, beside any number of other changes."""
    _lock("pg_advisory_xact_lock_shared")


def hold_still() -> None:
    """Wait for changes under way and keep new ones waiting to the end of the transaction."""
    _lock("pg_advisory_xact_lock")


def _lock(function: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s)", [_KEY])
