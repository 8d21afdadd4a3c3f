"""What the database itself refuses, whoever asks: the same rules on SQLite and PostgreSQL.

Triggers are put in place after every `migrate` and dropped before the next
one: SQLite rebuilds a table to alter it, and drops its triggers silently.
A system check says when one is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from django.db.backends.base.base import BaseDatabaseWrapper

Event = Literal["INSERT", "UPDATE", "DELETE", "TRUNCATE"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """Refuse an event on a table when a condition holds.

    `condition` is SQL that both databases read, over NEW and OLD. TRUNCATE has
    no rows to look at and exists on PostgreSQL alone.
    """

    table: str
    event: Event
    sentence: str
    condition: str = "1 = 1"
    #: Tells it from another on the same table and event.
    label: str = ""

    @property
    def name(self) -> str:
        label = f"_{self.label}" if self.label else ""
        return f"refuse_{self.event.lower()}_{self.table}{label}"


def append_only(table: str, what: str) -> tuple[Trigger, ...]:
    """Rows are written once and stay."""
    sentence = f"{what} are never changed or deleted."
    return tuple(Trigger(table, event, sentence) for event in ("UPDATE", "DELETE", "TRUNCATE"))


def _frozen(table: str, sentence: str, *columns: str, or_when: str = "1 = 0") -> Trigger:
    """These columns stay as they were written; `or_when` is a further reason to refuse."""
    # As text: a JSON column compares alike on both databases, and an empty one like no text.
    changed = (
        f"COALESCE(CAST(NEW.{column} AS TEXT), '') <> COALESCE(CAST(OLD.{column} AS TEXT), '')"
        for column in columns
    )
    return Trigger(table, "UPDATE", sentence, " OR ".join([*changed, or_when]))


def _kept(table: str, sentence: str) -> tuple[Trigger, ...]:
    return tuple(Trigger(table, event, sentence) for event in ("DELETE", "TRUNCATE"))


FACTSHEETS: tuple[Trigger, ...] = (
    *append_only("factsheets_publication", "Publications"),
    *append_only("factsheets_publicationevent", "Publication events"),
    *append_only("factsheets_check", "Checks"),
    *append_only("factsheets_checkitem", "Check items"),
    *append_only("factsheets_changeset", "Change sets"),
    *append_only("factsheets_slugalias", "Reserved names"),
    *append_only("factsheets_sizereport", "Size reports"),
    *(
        Trigger(
            "factsheets_sheetstate",
            event,
            "What is live follows the newest publication event.",
            "COALESCE(NEW.live_publication_id, 0) <> COALESCE((SELECT to_publication_id "
            "FROM factsheets_publicationevent WHERE sheet_id = NEW.sheet_id "
            "ORDER BY id DESC LIMIT 1), 0)",
        )
        for event in ("INSERT", "UPDATE")
    ),
    *(
        Trigger("factsheets_sheetstate", event, "The state of a sheet is never deleted.")
        for event in ("DELETE", "TRUNCATE")
    ),
    Trigger(
        "factsheets_publicationevent",
        "INSERT",
        "A publication never goes live twice, nor on another sheet; roll back to publish it again.",
        "NEW.to_publication_id IS NOT NULL AND (EXISTS (SELECT 1 FROM factsheets_publicationevent "
        "WHERE to_publication_id = NEW.to_publication_id) OR NOT EXISTS (SELECT 1 FROM "
        "factsheets_publication WHERE id = NEW.to_publication_id AND sheet_id = NEW.sheet_id))",
    ),
    Trigger(
        "factsheets_schedule",
        "UPDATE",
        "A schedule that is closed is never changed.",
        "OLD.state <> 'waiting'",
    ),
    *(t for t in append_only("factsheets_schedule", "Schedules") if t.event != "UPDATE"),
    _frozen(
        "factsheets_apikey",
        "A key opens what it was made for, and a revoked one stays revoked.",
        *("sheet_id", "name", "prefix", "key_hash", "scopes", "expires_on"),
        *("created_at", "created_by_id"),
        or_when="OLD.revoked_at IS NOT NULL AND (NEW.revoked_at IS NULL "
        "OR NEW.revoked_at <> OLD.revoked_at OR NEW.revoked_by_id <> OLD.revoked_by_id)",
    ),
    *_kept("factsheets_apikey", "Keys are revoked, never deleted."),
    _frozen(
        "factsheets_userecord",
        "Of an answer only its tags are ever corrected.",
        *("sheet_id", "reference", "answered_at", "publication", "origin", "key_id", "log_id"),
        *("support",),
        or_when="OLD.tagged IS NOT NULL AND "
        "COALESCE(CAST(NEW.tagged AS TEXT), '') <> CAST(OLD.tagged AS TEXT)",
    ),
    *_kept("factsheets_userecord", "Answers that were counted are never deleted."),
    _frozen(
        "factsheets_uselog",
        "Of a log only whether its texts are kept is ever changed.",
        *("sheet_id", "sha256", "uploaded_at", "uploaded_by_id", "rows", "skipped"),
    ),
    *_kept("factsheets_uselog", "Logs that were counted are never deleted."),
)


def install(connection: BaseDatabaseWrapper, triggers: Sequence[Trigger]) -> None:
    """Put triggers in place on the tables that exist, replacing what stands there."""
    drop(connection, triggers)
    tables = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for trigger in triggers:
            if trigger.table in tables:
                for statement in _create(connection.vendor, trigger):
                    cursor.execute(statement)


def drop(connection: BaseDatabaseWrapper, triggers: Sequence[Trigger]) -> None:
    """Take triggers away; those that are not there do not matter."""
    with connection.cursor() as cursor:
        for trigger in triggers:
            if connection.vendor == "postgresql":
                cursor.execute(f"DROP FUNCTION IF EXISTS {trigger.name}() CASCADE")
            else:
                cursor.execute(f"DROP TRIGGER IF EXISTS {trigger.name}")


def missing(connection: BaseDatabaseWrapper, triggers: Sequence[Trigger]) -> list[str]:
    """Names of triggers that should stand and do not."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'O'"
            )
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        present = {row[0] for row in cursor.fetchall()}
    return sorted(t.name for t in _for_vendor(connection.vendor, triggers) if t.name not in present)


@contextmanager
def lifted(connection: BaseDatabaseWrapper, triggers: Sequence[Trigger]) -> Iterator[None]:
    """Without triggers for a while. For tests that empty the database, and for nothing else."""
    drop(connection, triggers)
    try:
        yield
    finally:
        install(connection, triggers)


def _for_vendor(vendor: str, triggers: Sequence[Trigger]) -> list[Trigger]:
    return [t for t in triggers if vendor == "postgresql" or t.event != "TRUNCATE"]


def _create(vendor: str, trigger: Trigger) -> Iterator[str]:
    sentence = trigger.sentence.replace("'", "''")
    if vendor == "postgresql":
        row = "OLD" if trigger.event == "DELETE" else "NEW"
        result = "NULL" if trigger.event == "TRUNCATE" else row
        level = "STATEMENT" if trigger.event == "TRUNCATE" else "ROW"
        yield (
            f"CREATE FUNCTION {trigger.name}() RETURNS trigger LANGUAGE plpgsql AS $refuse$ BEGIN "
            f"IF {trigger.condition} THEN RAISE EXCEPTION '{sentence}' "
            "USING ERRCODE = 'integrity_constraint_violation'; END IF; "
            f"RETURN {result}; END $refuse$"
        )
        yield (
            f"CREATE TRIGGER {trigger.name} BEFORE {trigger.event} ON {trigger.table} "
            f"FOR EACH {level} EXECUTE FUNCTION {trigger.name}()"
        )
    elif trigger.event != "TRUNCATE":
        yield (
            f"CREATE TRIGGER {trigger.name} BEFORE {trigger.event} ON {trigger.table} "
            f"WHEN {trigger.condition} BEGIN SELECT RAISE(ABORT, '{sentence}'); END"
        )
