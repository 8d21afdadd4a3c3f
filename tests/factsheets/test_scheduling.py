"""Publishing later: what was approved and nothing else, at its time or not at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from factsheets import canonical, editing, moments, publishing, scheduling
from factsheets.models import GatePolicy, Outbox, Publication, Rule, Schedule, Sheet
from factsheets.moments import MomentRefused
from tests import factories
from tests.factories import LATER, NOON

pytestmark = pytest.mark.django_db

LONDON = ZoneInfo("Europe/London")
IN_TIME = LATER + timedelta(seconds=20)


@pytest.fixture
def sheet() -> Sheet:
    """A sheet that may be published."""
    of = factories.ready_sheet()
    factories.passing_run(of)
    return of


@pytest.fixture
def publisher() -> User:
    return factories.person("paula", "publisher")


def _change(row: object, by: User | None = None, **values: object) -> None:
    editing.change(
        row,  # type: ignore[arg-type]
        by=by or factories.person("ben"),
        reason="edit",
        now=NOON,
        **values,
    )


def _fire(row: Schedule, now: datetime = IN_TIME) -> Schedule:
    fired = scheduling.fire(row.pk, now=now)
    assert fired is not None
    return Schedule.objects.get(pk=row.pk)


# ---- at its time ----


def test_what_was_approved_is_published_at_its_time(sheet: Sheet, publisher: User) -> None:
    row = _fire(factories.schedule(sheet, by=publisher))

    publication = sheet.publications.get()
    assert (row.state, row.publication, row.closed_at) == ("done", publication, IN_TIME)
    assert (publication.published_by, publication.published_at) == (publisher, IN_TIME)
    assert publication.content_hash == row.content_hash
    assert not Outbox.objects.filter(topic__startswith="schedule").exists()


def test_nothing_is_published_before_its_time(sheet: Sheet) -> None:
    row = factories.schedule(sheet)

    early = LATER - timedelta(seconds=1)

    assert scheduling.due(now=early) == []
    assert scheduling.fire(row.pk, now=early) is None
    assert not Publication.objects.exists()


def test_what_is_due_is_found_once_its_time_has_come(sheet: Sheet) -> None:
    row = factories.schedule(sheet)

    assert scheduling.due(now=LATER) == [row.pk]


def test_a_schedule_that_has_fired_never_fires_again(sheet: Sheet) -> None:
    row = _fire(factories.schedule(sheet))

    assert scheduling.fire(row.pk, now=IN_TIME) is None
    assert scheduling.due(now=IN_TIME) == []
    assert sheet.publications.count() == 1


# ---- a conflict suspends it ----


def _edits_the_text(sheet: Sheet) -> None:
    _change(sheet.sections.get(), body="The castle opens at nine.")


def _edits_a_rule(sheet: Sheet) -> None:
    _change(Rule.objects.get(), text="Answer nothing.")


def _changes_the_bot(sheet: Sheet) -> None:
    _change(sheet.bot, max_tokens=2048)


def _requires_more(sheet: Sheet) -> None:
    factories.probe(factories.suite(sheet, "accuracy", title="Accuracy"))


def _archives(sheet: Sheet) -> None:
    editing.archive_sheet(sheet, by=factories.person(), reason="x", now=NOON)


def _publishes_by_hand(sheet: Sheet) -> None:
    factories.publish(sheet)


def _publishes_and_withdraws(sheet: Sheet) -> None:
    factories.publish(sheet)
    publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="wrong", now=NOON)


def _shortens_the_age(sheet: Sheet) -> None:
    _change(GatePolicy.objects.get(), evidence_max_age_days=0)


def _asks_for_four_eyes(sheet: Sheet) -> None:
    _change(GatePolicy.objects.get(), by=User.objects.get(username="paula"), four_eyes=True)


def _takes_the_role_away(sheet: Sheet) -> None:
    factories.person("paula")


def _closes_the_account(sheet: Sheet) -> None:
    User.objects.filter(username="paula").update(is_active=False)


CONFLICTS = {
    _edits_the_text: "changed while you looked",
    _edits_a_rule: "changed while you looked",
    _changes_the_bot: "changed while you looked",
    _requires_more: "the sheet now requires “Accuracy” too",
    _archives: "The sheet is archived",
    _publishes_by_hand: "publication 1 is live",
    _shortens_the_age: "the policy allows 0",
    _asks_for_four_eyes: "you changed gate policy",
    _takes_the_role_away: "paula, who scheduled it, may no longer publish the sheet",
    _closes_the_account: "paula, who scheduled it, may no longer publish the sheet",
}


@pytest.mark.parametrize("happens", CONFLICTS, ids=lambda happens: happens.__name__.strip("_"))
def test_a_conflict_suspends_it_with_the_reason_and_publishes_nothing(
    sheet: Sheet, publisher: User, happens: object
) -> None:
    row = factories.schedule(sheet, by=publisher)
    happens(sheet)  # type: ignore[operator]
    before = Publication.objects.count()

    row = _fire(row)

    assert row.state == "suspended"
    assert CONFLICTS[happens] in row.closed_because  # type: ignore[index]
    assert (Publication.objects.count(), row.publication) == (before, None)
    (told,) = Outbox.objects.filter(topic=scheduling.SUSPENDED)
    assert told.payload == {
        "slug": "castle",
        "due_at": canonical.instant(LATER),
        "because": row.closed_because,
    }


def test_a_text_changed_and_changed_back_is_still_what_was_approved(sheet: Sheet) -> None:
    row = factories.schedule(sheet)
    section = sheet.sections.get()
    body = section.body
    _change(section, body="Closed.")
    _change(section, body=body)

    assert _fire(row).state == "done"


def test_what_was_published_and_withdrawn_meanwhile_is_no_conflict_of_what_is_live(
    sheet: Sheet,
) -> None:
    row = factories.schedule(sheet)
    _publishes_and_withdraws(sheet)

    assert _fire(row).state == "done"
    assert sheet.publications.count() == 2


# ---- a missed time ----


def test_a_time_that_nobody_kept_is_missed_and_never_made_up_for(sheet: Sheet) -> None:
    row = factories.schedule(sheet)

    row = _fire(row, LATER + scheduling.LATE_AFTER + timedelta(seconds=1))

    assert row.state == "missed"
    assert "not made up for" in row.closed_because
    assert not Publication.objects.exists()
    assert Outbox.objects.filter(topic=scheduling.MISSED).count() == 1


def test_a_few_minutes_late_is_in_time(sheet: Sheet) -> None:
    assert _fire(factories.schedule(sheet), LATER + scheduling.LATE_AFTER).state == "done"


# ---- approving ----


def test_a_closed_gate_schedules_nothing() -> None:
    with pytest.raises(publishing.PublishRefused, match="have not run on these rules"):
        factories.schedule(factories.ready_sheet())

    assert not Schedule.objects.exists()


def test_what_will_be_closed_by_then_is_refused_now(sheet: Sheet) -> None:
    with pytest.raises(scheduling.ClosedByThen, match="By that time the gate will be closed: The"):
        factories.schedule(sheet, due_at=NOON + timedelta(days=91))


def test_one_schedule_waits_at_a_time(sheet: Sheet) -> None:
    factories.schedule(sheet)

    with pytest.raises(scheduling.AlreadyScheduled, match="scheduled for 2026-06-02 12:00 UTC"):
        factories.schedule(sheet, due_at=LATER + timedelta(days=1))


def test_two_waiting_schedules_of_a_sheet_are_refused_by_the_database(sheet: Sheet) -> None:
    row = factories.schedule(sheet)
    row.pk = None

    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


def test_a_schedule_says_why(sheet: Sheet) -> None:
    view = publishing.look(sheet, now=NOON)

    with pytest.raises(publishing.ReasonMissing):
        scheduling.schedule(
            sheet_id=sheet.pk,
            seen=view.candidate.subject,
            seen_live_number=None,
            due_at=LATER,
            zone="Europe/London",
            by=factories.person(),
            reason="  ",
            now=NOON,
        )


def test_what_changed_since_the_look_is_not_scheduled(sheet: Sheet) -> None:
    seen = publishing.look(sheet, now=NOON).candidate.subject
    _edits_the_text(sheet)

    with pytest.raises(publishing.ChangedMeanwhile):
        scheduling.schedule(
            sheet_id=sheet.pk,
            seen=seen,
            seen_live_number=None,
            due_at=LATER,
            zone="Europe/London",
            by=factories.person(),
            reason="go",
            now=NOON,
        )


# ---- taking back ----


def test_a_cancelled_schedule_publishes_nothing_and_makes_room(sheet: Sheet) -> None:
    row = factories.schedule(sheet)

    scheduling.cancel(schedule_id=row.pk, by=factories.person("ben"), now=NOON)

    row.refresh_from_db()
    assert (row.state, row.closed_because) == ("cancelled", "ben cancelled it.")
    assert scheduling.fire(row.pk, now=IN_TIME) is None
    assert factories.schedule(sheet).state == "waiting"


def test_what_is_over_is_not_cancelled(sheet: Sheet) -> None:
    row = _fire(factories.schedule(sheet))

    with pytest.raises(scheduling.NothingScheduled):
        scheduling.cancel(schedule_id=row.pk, by=factories.person(), now=IN_TIME)


@pytest.mark.database
@pytest.mark.parametrize("write", ["update", "delete"])
def test_the_database_keeps_a_closed_schedule_as_it_is(sheet: Sheet, write: str) -> None:
    row = _fire(factories.schedule(sheet))
    rows = Schedule.objects.filter(pk=row.pk)

    with pytest.raises(IntegrityError, match="never"), transaction.atomic():
        rows.update(state="waiting", closed_at=None) if write == "update" else rows.delete()


# ---- the time ----

WINTER = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-07-01T09:00", datetime(2026, 7, 1, 8, 0, tzinfo=UTC)),
        ("2026-12-01T09:00", datetime(2026, 12, 1, 9, 0, tzinfo=UTC)),
        ("2026-07-01 09:00", datetime(2026, 7, 1, 8, 0, tzinfo=UTC)),
        ("2026-07-01T09:00:59.5", datetime(2026, 7, 1, 8, 0, tzinfo=UTC)),
        ("2026-07-01T09:00Z", datetime(2026, 7, 1, 9, 0, tzinfo=UTC)),
        ("2026-10-25T01:30+01:00", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("2026-10-25T01:30+00:00", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
    ],
)
def test_a_time_is_taken_in_the_zone_and_kept_to_the_minute(text: str, moment: datetime) -> None:
    assert moments.coming(text, zone=LONDON, now=WINTER) == moment


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-03-29T01:30", "The clocks of Europe/London skip 2026-03-29T01:30;"),
        ("2026-10-25T01:30", "show 2026-10-25T01:30 twice; give it with its offset"),
        ("2026-01-05T12:00", "2026-01-05T12:00 has passed; choose a time to come, or publish now."),
        ("2026-01-05T12:00:40Z", "has passed"),
        ("2026-07-01", "Give a time such as"),
        ("tomorrow", "Give a time such as"),
        ("", "Give a time such as"),
        ("2026-13-01T09:00", "Give a time such as"),
        ("9999-12-31T23:59-12:00", "Give a time such as"),
    ],
)
def test_a_time_that_is_none_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(MomentRefused) as refused:
        moments.coming(text, zone=LONDON, now=WINTER)

    assert said in refused.value.sentence
