"""Which sections answers needed: counted once, found in logs, corrected by people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, connection, transaction

from factsheets import editing, publishing, usage, use_logs
from factsheets.models import Sheet, UseLog, UseRecord
from factsheets.usage import Entry, EntryRefused, NotCorrected, Recorded, ReferenceTaken
from factsheets.use_logs import Lines, LogRefused
from tests import factories
from tests.factories import LATER, NOON, TODAY

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def castle() -> Sheet:
    """Publication 1 is live since noon of 1 June; it has a section on hours, and one on dogs."""
    of = factories.ready_sheet("castle")
    factories.section(of, "dogs", heading="Dogs", body="Dogs stay on the lead in the courtyard.")
    factories.passing_run(of)
    factories.publish(of)
    return Sheet.objects.select_related("bot", "state__live_publication").get(pk=of.pk)


def entry(
    reference: str = "a-1",
    sections: Sequence[str] = ("hours",),
    at: datetime = NOON,
    publication: int | None = None,
) -> Entry:
    return Entry(reference, at, tuple(sections), publication)


def record(sheet: Sheet, *entries: Entry) -> Recorded:
    return usage.record(sheet, entries, LATER)


def log(*answers: dict[str, str]) -> Lines:
    text = "\n".join(json.dumps({"question": "When?", **answer}) for answer in answers)
    return use_logs.read(text.encode(), zone=ZoneInfo("Europe/London"), now=LATER)


def take(sheet: Sheet, *answers: dict[str, str], keeps_texts: bool = False) -> UseLog:
    return usage.take_log(
        sheet, log(*answers), by=factories.person(), keeps_texts=keeps_texts, now=LATER
    )


def tagged(sheet: Sheet) -> list[list[str]]:
    return [row.sections for row in sheet.use.order_by("id")]


HOURS = {"reply": "The castle opens at ten in the morning."}
DOGS = {"reply": "Please keep dogs on the lead in the courtyard."}


# ---- said by bots ----


def test_a_batch_counts_each_answer_once(castle: Sheet) -> None:
    first = record(castle, entry("a-1"), entry("a-2", ("dogs", "hours", "dogs")))
    again = record(castle, entry("a-2", ("hours", "dogs")), entry("a-3", ()))

    assert (first, again) == (Recorded(2, 0), Recorded(1, 1))
    assert tagged(castle) == [["hours"], ["dogs", "hours"], []]


def test_an_answer_twice_in_one_batch_is_a_repeat(castle: Sheet) -> None:
    assert record(castle, entry("a-1"), entry("a-1")) == Recorded(1, 1)


def test_the_same_reference_with_other_sections_is_refused_with_all_its_batch(
    castle: Sheet,
) -> None:
    record(castle, entry("a-1"))

    with pytest.raises(ReferenceTaken) as refused:
        record(castle, entry("a-2"), entry("a-1", ("dogs",)))

    assert (refused.value.item, refused.value.field) == (1, "reference")
    assert "a-1 was sent before, with hours" in refused.value.sentence
    assert [row.reference for row in castle.use.all()] == ["a-1"]


def test_a_reference_with_other_sections_within_a_batch_is_refused(castle: Sheet) -> None:
    with pytest.raises(ReferenceTaken):
        record(castle, entry("a-1"), entry("a-1", ("dogs",)))

    assert not castle.use.exists()


def test_two_sheets_may_be_sent_the_same_reference(castle: Sheet) -> None:
    tower = factories.sheet("tower")
    factories.section(tower)

    assert record(castle, entry()) == record(tower, entry()) == Recorded(1, 0)


def test_a_correction_does_not_make_a_repeat_a_conflict(castle: Sheet) -> None:
    record(castle, entry("a-1"))
    usage.correct(castle.use.get(), ["dogs"], by=factories.person(), now=LATER)

    assert record(castle, entry("a-1")) == Recorded(0, 1)
    with pytest.raises(ReferenceTaken):
        record(castle, entry("a-1", ("dogs",)))


@pytest.mark.parametrize(
    ("wrong", "field", "says"),
    [
        (entry(sections=("hours", "cats")), "sections", "no section 'cats'"),
        (entry(publication=2), "publication", "no publication 2"),
        (entry(at=LATER + timedelta(minutes=6)), "answered_at", "still to come"),
        (entry(reference=""), "reference", "without blanks"),
        (entry(reference="a b"), "reference", "without blanks"),
        (entry(reference="ä"), "reference", "without blanks"),
        (entry(reference="x" * 101), "reference", "without blanks"),
    ],
)
def test_an_answer_that_cannot_be_counted_is_named_and_nothing_is_recorded(
    castle: Sheet, wrong: Entry, field: str, says: str
) -> None:
    with pytest.raises(EntryRefused, match=says) as refused:
        record(castle, entry("good"), wrong)

    assert (refused.value.item, refused.value.field) == (1, field)
    assert not castle.use.exists()


def test_a_clock_a_little_ahead_is_believed(castle: Sheet) -> None:
    assert record(castle, entry(at=LATER + timedelta(minutes=5), publication=1)) == Recorded(1, 0)


def test_a_section_that_was_taken_out_since_is_known_still(castle: Sheet) -> None:
    dogs = castle.sections.get(key="dogs")
    editing.remove(dogs, by=factories.person(), reason="No dogs.", now=LATER)

    assert record(castle, entry(sections=("dogs",))) == Recorded(1, 0)


# ---- found in logs ----


def test_each_reply_is_tagged_by_where_it_finds_support(castle: Sheet) -> None:
    made = take(castle, HOURS, DOGS, {"reply": "I don't know."})

    assert tagged(castle) == [["hours"], ["dogs"], []]
    assert (made.rows, made.skipped) == (3, 0)
    assert {row.origin for row in castle.use.all()} == {"log"}
    assert castle.use.earliest("id").support == {"hours": 1.0}


def test_texts_are_nowhere_once_they_are_tagged(castle: Sheet) -> None:
    take(castle, {"question": "zqquestion?", "reply": f"{HOURS['reply']} zqreply"})

    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            assert "zq" not in repr(cursor.fetchall()), table


def test_texts_are_kept_for_whom_chose_so_until_they_are_dropped(castle: Sheet) -> None:
    made = take(castle, HOURS, keeps_texts=True)
    kept = castle.use.values_list("question", "reply").get()

    usage.drop_texts(made)

    made.refresh_from_db()
    assert kept == ("When?", HOURS["reply"])
    assert castle.use.values_list("question", "reply").get() == ("", "")
    assert (made.keeps_texts, tagged(castle)) == (False, [["hours"]])


def test_the_same_file_is_taken_once(castle: Sheet) -> None:
    take(castle, HOURS)

    with pytest.raises(LogRefused, match="taken on 2 June 2026 already"):
        take(castle, HOURS)

    assert (UseLog.objects.count(), UseRecord.objects.count()) == (1, 1)


def test_another_sheet_may_be_sent_the_same_file(castle: Sheet) -> None:
    take(castle, HOURS)

    take(factories.sheet("tower"), HOURS)

    assert UseLog.objects.count() == 2


def test_what_the_bot_said_of_an_answer_goes_before_what_is_found_in_a_log(castle: Sheet) -> None:
    record(castle, entry("a-1", ("dogs",)))

    made = take(castle, {**HOURS, "reference": "a-1"}, {**HOURS, "reference": "a-2"})

    assert (made.rows, made.skipped) == (1, 1)
    assert tagged(castle) == [["dogs"], ["hours"]]


def test_a_reply_is_held_against_what_bots_got_when_it_was_given(castle: Sheet) -> None:
    editing.change(
        castle.sections.get(key="dogs"),
        by=factories.person(),
        reason="Otherwise.",
        now=LATER,
        body="Animals are welcome everywhere.",
    )
    factories.publish(castle, now=LATER)
    publishing.withdraw(
        sheet_id=castle.pk,
        by=factories.person(),
        reason="Wrong.",
        now=LATER + timedelta(hours=2),
    )
    now = LATER + timedelta(days=1)
    moments = [NOON - timedelta(hours=1), NOON, LATER, LATER + timedelta(hours=3)]
    text = "\n".join(
        json.dumps({"question": "Dogs?", **DOGS, "at": f"{at:%Y-%m-%dT%H:%M:%SZ}"})
        for at in moments
    )
    lines = use_logs.read(text.encode(), zone=ZoneInfo("Europe/London"), now=now)

    usage.take_log(castle, lines, by=factories.person(), keeps_texts=False, now=now)

    rows = castle.use.order_by("answered_at").values_list("publication", "sections")
    assert list(rows) == [(None, []), (1, ["dogs"]), (2, []), (None, [])]


def test_a_reply_without_its_time_was_given_now(castle: Sheet) -> None:
    take(castle, HOURS)

    assert castle.use.values_list("answered_at", "publication").get() == (LATER, 1)


# ---- corrected ----


def test_a_correction_keeps_what_was_said_first(castle: Sheet) -> None:
    take(castle, HOURS)
    anna = factories.person()

    changed = [
        usage.correct(castle.use.get(), sections, by=anna, now=LATER)
        for sections in (["dogs", "hours"], ["hours", "dogs"], ["dogs"])
    ]

    row = castle.use.get()
    assert changed == [True, False, True]
    assert (row.sections, row.tagged, row.support) == (["dogs"], ["hours"], {"hours": 1.0})
    assert (row.corrected_at, row.corrected_by) == (LATER, anna)


def test_a_correction_to_a_section_that_there_never_was_is_refused(castle: Sheet) -> None:
    take(castle, HOURS)

    with pytest.raises(NotCorrected, match="cats"):
        usage.correct(castle.use.get(), ["cats"], by=factories.person(), now=LATER)

    assert castle.use.get().corrected_at is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE factsheets_userecord SET reference = 'x'",
        "UPDATE factsheets_userecord SET answered_at = '2020-01-01T00:00:00+00:00'",
        "UPDATE factsheets_userecord SET publication = 7",
        "UPDATE factsheets_userecord SET support = '{}'",
        "UPDATE factsheets_userecord SET tagged = '[\"dogs\"]'",
        "DELETE FROM factsheets_userecord",
        "UPDATE factsheets_uselog SET rows = 7",
        "DELETE FROM factsheets_uselog",
    ],
)
def test_the_database_keeps_what_was_counted(castle: Sheet, statement: str) -> None:
    take(castle, HOURS)
    usage.correct(castle.use.get(), ["dogs"], by=factories.person(), now=LATER)

    with (
        pytest.raises(IntegrityError, match=r"ever|never"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


# ---- how much of a sheet was touched ----


def test_sections_are_counted_by_the_questions_that_touched_them(castle: Sheet) -> None:
    factories.section(castle, "parking", heading="Parking", body="Park by the gate.")
    record(castle, entry("a"), entry("b"), entry("c", ("dogs", "hours")), entry("d", ()))

    use = usage.of_sheet(castle, since=TODAY, until=TODAY)

    assert (use.questions, list(use.touched.items())) == (4, [("hours", 3), ("dogs", 1)])
    assert use.never == ("parking",)
    assert use.share == 2 / 3


def test_days_are_those_of_the_organisation_and_both_ends_count(castle: Sheet) -> None:
    # Half past midnight in London, of 2 June.
    late = datetime(2026, 6, 1, 23, 30, tzinfo=UTC)
    record(castle, entry("a", at=late - timedelta(hours=1)), entry("b", at=late))

    counts = {
        (since, until): usage.of_sheet(
            castle, since=date(2026, 6, since), until=date(2026, 6, until)
        ).questions
        for since, until in ((1, 1), (2, 2), (1, 2), (3, 3))
    }

    assert counts == {(1, 1): 1, (2, 2): 1, (1, 2): 2, (3, 3): 0}


def test_sections_out_of_use_or_left_out_are_neither_touched_nor_never(castle: Sheet) -> None:
    anna = factories.person()
    record(castle, entry("a", ("dogs", "hours")))
    editing.remove(castle.sections.get(key="dogs"), by=anna, reason="No dogs.", now=LATER)
    factories.section(castle, "hidden", heading="Hidden", included=False)

    use = usage.of_sheet(castle, since=TODAY, until=TODAY)

    assert (use.touched, use.never, use.share) == ({"hours": 1}, (), 1.0)


def test_without_a_question_there_is_no_share(castle: Sheet) -> None:
    use = usage.of_sheet(castle, since=TODAY, until=TODAY)

    assert (use.questions, use.touched, use.share) == (0, {}, None)
    assert use.never == ("hours", "dogs")


def test_the_number_of_queries_is_the_same_for_any_number_of_answers(
    castle: Sheet, django_assert_num_queries: Any
) -> None:
    record(castle, *(entry(f"a-{n}") for n in range(1200)))

    with django_assert_num_queries(2):
        use = usage.of_sheet(castle, since=TODAY, until=TODAY)

    assert use.touched == {"hours": 1200}
