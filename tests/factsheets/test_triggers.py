"""What the database itself refuses, whoever asks: on SQLite and on PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from evals import checks as evals_checks
from evals import runs
from evals import triggers as evals_triggers
from evals.models import Attempt, Run, Turn, Verdict
from factsheets import checks, editing, triggers
from factsheets.models import Publication, PublicationEvent, Sheet, SheetState
from factsheets.models.publications import released
from tests import factories
from tests.factories import LATER, NOON

pytestmark = [pytest.mark.database, pytest.mark.django_db]

on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="only PostgreSQL has this statement"
)
on_sqlite = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="only SQLite has this statement"
)

APPEND_ONLY = {
    "factsheets_publication": "Publications are never changed or deleted.",
    "factsheets_publicationevent": "Publication events are never changed or deleted.",
    "factsheets_check": "Checks are never changed or deleted.",
    "factsheets_checkitem": "Check items are never changed or deleted.",
    "factsheets_changeset": "Change sets are never changed or deleted.",
    "factsheets_slugalias": "Reserved names are never changed or deleted.",
}
FROZEN = "A run that has ended is never changed."
RUN_TABLES = ("evals_run", "evals_attempt", "evals_turn", "evals_verdict")
ALL = (*triggers.FACTSHEETS, *evals_triggers.EVALS)


@pytest.fixture
def sheet() -> Sheet:
    """A sheet with publication 1 live and a former name: a row in every table."""
    published = factories.published_sheet()
    editing.change(published, by=factories.person(), reason="renamed", now=LATER, slug="tower")
    return published


def sql(statement: str, *values: object) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


def rows(table: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        return list(cursor.fetchall())


def refuses(sentence: str, statement: str, *values: object) -> None:
    with pytest.raises(IntegrityError, match=sentence):
        sql(statement, *values)


# ---- append-only tables ----


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_no_row_of_an_append_only_table_is_changed(sheet: Sheet, table: str) -> None:
    before = rows(table)
    assert before

    refuses(APPEND_ONLY[table], f"UPDATE {table} SET id = id + 1000")

    assert rows(table) == before


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_no_row_of_an_append_only_table_is_deleted(sheet: Sheet, table: str) -> None:
    before = rows(table)
    assert before

    refuses(APPEND_ONLY[table], f"DELETE FROM {table}")

    assert rows(table) == before


@on_postgresql
@pytest.mark.parametrize("table", APPEND_ONLY)
def test_no_append_only_table_is_truncated(sheet: Sheet, table: str) -> None:
    before = rows(table)
    sql("SET CONSTRAINTS ALL IMMEDIATE")

    refuses(APPEND_ONLY[table], f"TRUNCATE {table} CASCADE")

    assert rows(table) == before


@on_sqlite
@pytest.mark.parametrize(
    "table", [*APPEND_ONLY, "factsheets_sheetstate", "evals_run", "evals_turn", "evals_verdict"]
)
@pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE"])
def test_no_row_is_replaced(sheet: Sheet, table: str, verb: str) -> None:
    before = rows(table)
    assert before

    refuses("never", f"{verb} INTO {table} SELECT * FROM {table}")

    assert rows(table) == before


def test_the_bytes_of_a_publication_are_not_changed_through_the_orm(sheet: Sheet) -> None:
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        Publication.objects.update(body=b"{}")

    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic(), released():
        Publication.objects.get().save()

    assert bytes(Publication.objects.get().body) != b"{}"


def test_the_time_of_an_event_is_not_changed_through_the_orm(sheet: Sheet) -> None:
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        PublicationEvent.objects.update(at=LATER)

    assert PublicationEvent.objects.get().at == NOON


# ---- what is live ----


def test_what_is_live_cannot_point_to_an_older_publication(sheet: Sheet) -> None:
    first = Publication.objects.get()
    factories.publish(sheet)

    with pytest.raises(IntegrityError, match="follows the newest"), transaction.atomic():
        SheetState.objects.update(live_publication=first)

    assert SheetState.objects.get().live_publication == Publication.objects.get(number=2)


def test_what_is_live_cannot_be_taken_away_without_an_event(sheet: Sheet) -> None:
    with pytest.raises(IntegrityError, match="follows the newest"), transaction.atomic():
        SheetState.objects.update(live_publication=None)

    assert SheetState.objects.get().live_publication == Publication.objects.get()


def test_what_is_live_cannot_be_another_sheets_publication(sheet: Sheet) -> None:
    other = factories.sheet("keep")

    with pytest.raises(IntegrityError, match="follows the newest"), transaction.atomic():
        SheetState.objects.filter(sheet=other).update(live_publication=Publication.objects.get())

    assert SheetState.objects.get(sheet=other).live_publication is None


def test_the_state_of_a_sheet_is_not_deleted(sheet: Sheet) -> None:
    refuses("The state of a sheet is never deleted", "DELETE FROM factsheets_sheetstate")


# ---- what a run was started for ----


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("rules_hash", "0" * 64),
        ("content_hash", "0" * 64),
        ("bot_hash", "0" * 64),
        ("rules_text", "Say what you like."),
        ("plan", '{"suites": []}'),
        ("planned", 99),
        ("is_partial", True),
        ("publication_number", 7),
        ("changes_up_to_id", None),
    ],
)
def test_a_run_under_way_keeps_what_it_was_started_for(column: str, value: object) -> None:
    sheet = factories.ready_sheet()
    runs.start(sheet_id=sheet.pk, by=factories.person(), now=NOON)

    refuses("started for is never changed", f"UPDATE evals_run SET {column} = %s", value)


# ---- publications need a passed run ----


def publish_past_the_gate(sheet: Sheet, rules_hash: str) -> Publication:
    with transaction.atomic(), released():
        return Publication.objects.create(
            sheet=sheet,
            number=99,
            format="body/1",
            slug=sheet.slug,
            rules_hash=rules_hash,
            published_at=NOON,
            published_by=factories.person(),
            reason="past the gate",
            **dict.fromkeys(("body", "prompt", "record", "evidence"), b"{}"),
        )


def test_a_publication_without_any_run_is_refused() -> None:
    sheet = factories.ready_sheet()

    with pytest.raises(IntegrityError, match="No run of the probes has passed on these rules"):
        publish_past_the_gate(sheet, "0" * 64)

    assert not Publication.objects.exists()


@pytest.mark.parametrize("outcome", ["failed", "incomplete", "cancelled", "stopped"])
def test_a_publication_on_a_run_that_did_not_pass_is_refused(outcome: str) -> None:
    sheet = factories.ready_sheet()
    run = ended_run(sheet, outcome)

    with pytest.raises(IntegrityError, match="No run of the probes has passed"):
        publish_past_the_gate(sheet, run.rules_hash)

    assert not Publication.objects.exists()


def test_a_publication_on_a_run_that_goes_on_is_refused() -> None:
    sheet = factories.ready_sheet()
    run = runs.start(sheet_id=sheet.pk, by=factories.person(), now=NOON)

    with pytest.raises(IntegrityError, match="No run of the probes has passed"):
        publish_past_the_gate(sheet, run.rules_hash)


def test_a_publication_of_other_rules_than_passed_is_refused() -> None:
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)

    with pytest.raises(IntegrityError, match="No run of the probes has passed"):
        publish_past_the_gate(sheet, "0" * 64)


def test_a_publication_on_another_sheets_run_is_refused() -> None:
    run = factories.passing_run(factories.ready_sheet())
    other = factories.ready_sheet("tower")

    with pytest.raises(IntegrityError, match="No run of the probes has passed"):
        publish_past_the_gate(other, run.rules_hash)


def test_a_publication_of_rules_that_passed_is_let_in() -> None:
    sheet = factories.ready_sheet()
    run = factories.passing_run(sheet)

    publication = publish_past_the_gate(sheet, run.rules_hash)

    assert publication.pk is not None


# ---- runs that have ended ----


def ended_run(sheet: Sheet, outcome: str) -> Run:
    """A run that asked its probe and then ended as told."""
    run = runs.start(sheet_id=sheet.pk, by=factories.person(), now=NOON)
    add_turn(run.attempts.get(), 0)
    add_verdict(run.attempts.get(), 0)
    Run.objects.filter(pk=run.pk).update(state="closed", outcome=outcome, finished_at=NOON)
    return run


def add_turn(attempt: Attempt, index: int) -> None:
    with transaction.atomic():
        Turn.objects.create(attempt=attempt, index=index, sent="Hello?", latency_ms=1)


def add_verdict(attempt: Attempt, position: int) -> None:
    with transaction.atomic():
        Verdict.objects.create(
            attempt=attempt,
            position=position,
            grader="refuses",
            grader_version=1,
            outcome="pass",
            code="refused",
            reason="It refused.",
        )


def add_attempt(run: Run) -> None:
    with transaction.atomic():
        Attempt.objects.create(
            run=run, suite="s", probe="late", category="c", position=9, not_before=NOON
        )


@pytest.mark.parametrize("outcome", ["passed", "failed", "cancelled", "stopped"])
def test_a_run_that_has_ended_and_what_happened_in_it_stay_as_they_are(outcome: str) -> None:
    run = ended_run(factories.ready_sheet(), outcome)
    before = [rows(table) for table in RUN_TABLES]

    refuses(FROZEN, "UPDATE evals_run SET outcome = 'passed', planned = 1")
    refuses(FROZEN, "UPDATE evals_attempt SET outcome = 'pass'")
    refuses(FROZEN, "UPDATE evals_turn SET received = 'I cannot say.'")
    refuses(FROZEN, "UPDATE evals_verdict SET outcome = 'pass'")
    refuses(FROZEN, "DELETE FROM evals_verdict")
    refuses(FROZEN, "DELETE FROM evals_turn")
    refuses(FROZEN, "DELETE FROM evals_attempt WHERE run_id = %s", run.id.hex)
    refuses("Runs are never changed or deleted", "DELETE FROM evals_run")

    assert [rows(table) for table in RUN_TABLES] == before


def test_nothing_is_added_to_a_run_that_has_ended() -> None:
    run = ended_run(factories.ready_sheet(), "failed")
    attempt = run.attempts.get()
    before = [rows(table) for table in RUN_TABLES]

    with pytest.raises(IntegrityError, match=FROZEN):
        add_attempt(run)
    with pytest.raises(IntegrityError, match=FROZEN):
        add_turn(attempt, 1)
    with pytest.raises(IntegrityError, match=FROZEN):
        add_verdict(attempt, 1)

    assert [rows(table) for table in RUN_TABLES] == before


#: Move what happened in the second run, the open one, into the first.
MOVES = {
    "evals_attempt": "UPDATE evals_attempt SET run_id = %s, probe = 'moved' WHERE run_id = %s",
    "evals_turn": 'UPDATE evals_turn SET attempt_id = %s, "index" = 7 WHERE attempt_id = %s',
    "evals_verdict": "UPDATE evals_verdict SET attempt_id = %s, position = 7 WHERE attempt_id = %s",
}


@pytest.mark.parametrize("table", MOVES)
def test_nothing_is_moved_into_a_run_that_has_ended(table: str) -> None:
    sheet = factories.ready_sheet()
    ended, going_on = ended_run(sheet, "failed"), open_run(sheet)
    before = rows(table)
    ids = {
        "evals_attempt": (ended.id, going_on.id),
        "evals_turn": (ended.attempts.get().id, going_on.attempts.get().id),
        "evals_verdict": (ended.attempts.get().id, going_on.attempts.get().id),
    }

    refuses(FROZEN, MOVES[table], *(one.hex for one in ids[table]))

    assert rows(table) == before


@pytest.mark.parametrize("table", MOVES)
def test_nothing_is_moved_out_of_a_run_that_has_ended(table: str) -> None:
    sheet = factories.ready_sheet()
    ended, going_on = ended_run(sheet, "failed"), open_run(sheet)
    before = rows(table)
    ids = {
        "evals_attempt": (going_on.id, ended.id),
        "evals_turn": (going_on.attempts.get().id, ended.attempts.get().id),
        "evals_verdict": (going_on.attempts.get().id, ended.attempts.get().id),
    }

    refuses(FROZEN, MOVES[table], *(one.hex for one in ids[table]))

    assert rows(table) == before


def open_run(sheet: Sheet) -> Run:
    run = runs.start(sheet_id=sheet.pk, by=factories.person(), now=NOON)
    add_turn(run.attempts.get(), 0)
    add_verdict(run.attempts.get(), 0)
    return run


WRITES: dict[str, Callable[[Run], object]] = {
    "run": lambda run: Run.objects.filter(pk=run.pk).update(cancel_requested=True),
    "attempt": lambda run: run.attempts.update(tries=1),
    "turn": lambda run: add_turn(run.attempts.get(), 1),
    "verdict": lambda run: add_verdict(run.attempts.get(), 1),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_run_that_goes_on_is_written_to(what: str) -> None:
    run = open_run(factories.ready_sheet())
    before = [rows(table) for table in RUN_TABLES]

    WRITES[what](run)

    assert [rows(table) for table in RUN_TABLES] != before


@pytest.mark.parametrize("what", WRITES)
def test_a_run_that_ended_incomplete_may_be_taken_up_again(what: str) -> None:
    run = ended_run(factories.ready_sheet(), "incomplete")
    before = [rows(table) for table in RUN_TABLES]

    WRITES[what](run)

    assert [rows(table) for table in RUN_TABLES] != before


def test_a_run_that_goes_on_is_not_deleted() -> None:
    open_run(factories.ready_sheet())

    refuses("Runs are never changed or deleted", "DELETE FROM evals_run")


@on_postgresql
@pytest.mark.parametrize("table", RUN_TABLES)
def test_no_table_of_runs_is_truncated(sheet: Sheet, table: str) -> None:
    before = rows(table)
    sql("SET CONSTRAINTS ALL IMMEDIATE")

    refuses("are never changed or deleted", f"TRUNCATE {table} CASCADE")

    assert rows(table) == before


def test_closing_a_run_with_another_id_of_its_own_is_no_way_round() -> None:
    run = ended_run(factories.ready_sheet(), "failed")

    refuses(FROZEN, "UPDATE evals_run SET id = %s WHERE id = %s", uuid.uuid4().hex, run.id.hex)


# ---- the triggers are there ----


def test_every_trigger_stands_after_migrating() -> None:
    assert triggers.missing(connection, ALL) == []
    assert checks.triggers_stand(databases=["default"]) == []
    assert evals_checks.triggers_stand(databases=["default"]) == []


@pytest.mark.parametrize(
    "name",
    [
        "refuse_update_factsheets_publication",
        "refuse_delete_factsheets_check",
        "refuse_insert_factsheets_sheetstate",
    ],
)
def test_the_system_check_names_a_missing_trigger(name: str) -> None:
    gone = [trigger for trigger in triggers.FACTSHEETS if trigger.name == name]
    triggers.drop(connection, gone)

    found = checks.triggers_stand(databases=["default"])

    assert [(message.id, message.msg) for message in found] == [
        ("factsheets.W001", f"Triggers are missing: {name}.")
    ]


@pytest.mark.parametrize(
    "name", ["refuse_update_evals_run", "refuse_insert_factsheets_publication"]
)
def test_the_system_check_of_the_probes_app_names_a_missing_trigger(name: str) -> None:
    gone = [trigger for trigger in evals_triggers.EVALS if trigger.name == name]
    triggers.drop(connection, gone)

    found = evals_checks.triggers_stand(databases=["default"])

    assert [(message.id, message.msg) for message in found] == [
        ("evals.W001", f"Triggers are missing: {name}.")
    ]


def test_the_checks_are_among_those_of_the_database() -> None:
    triggers.drop(connection, ALL)

    found = {message.id for message in run_checks(tags=["database"], databases=["default"])}

    assert {"factsheets.W001", "evals.W001"} <= found


def test_without_a_database_the_checks_look_at_none() -> None:
    triggers.drop(connection, ALL)

    assert checks.triggers_stand(databases=None) == []


@on_postgresql
def test_a_trigger_that_is_switched_off_counts_as_missing() -> None:
    sql("ALTER TABLE factsheets_check DISABLE TRIGGER refuse_update_factsheets_check")

    assert triggers.missing(connection, ALL) == ["refuse_update_factsheets_check"]


def test_no_two_triggers_have_one_name() -> None:
    names = [trigger.name for trigger in ALL]

    assert len(names) == len(set(names))


def test_triggers_stand_after_another_migrate(sheet: Sheet) -> None:
    call_command("migrate", verbosity=0, interactive=False)

    assert triggers.missing(connection, ALL) == []
    refuses("never changed or deleted", "DELETE FROM factsheets_check")


def test_migrating_puts_back_what_is_missing() -> None:
    triggers.drop(connection, ALL)

    call_command("migrate", verbosity=0, interactive=False)

    assert triggers.missing(connection, ALL) == []


def test_lifted_triggers_stand_again_afterwards(sheet: Sheet) -> None:
    with triggers.lifted(connection, triggers.FACTSHEETS):
        sql("UPDATE factsheets_check SET note = 'lifted'")

    refuses("never changed or deleted", "UPDATE factsheets_check SET note = 'standing'")


@pytest.mark.django_db(transaction=True)
def test_what_was_committed_is_refused_a_change_just_the_same() -> None:
    factories.published_sheet()
    before = rows("factsheets_publication")

    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute("UPDATE factsheets_publication SET reason = 'another'")

    assert rows("factsheets_publication") == before
