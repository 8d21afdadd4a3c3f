"""Recording a check: what is kept of it, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction

from factsheets import canonical, checking, editing, exchange, staleness, standings
from factsheets.checking import CheckNotRecorded, Seen
from factsheets.models import (
    Check,
    CheckItem,
    Citation,
    ReviewInterval,
    ReviewPlan,
    Section,
    Sheet,
    TrackedModel,
)
from factsheets.models.tracking import change_set
from tests import factories
from tests.factories import LATER, NOON

pytestmark = pytest.mark.django_db

#: Everything in the sheets was written on 1 June; checks are recorded on 8 June.
WRITTEN = date(2026, 6, 1)
NOW = datetime(2026, 6, 8, 12, 0, tzinfo=UTC)
TODAY = date(2026, 6, 8)


@pytest.fixture
def sheet() -> Sheet:
    return factories.sheet()


@pytest.fixture
def hours(sheet: Sheet) -> Section:
    """A section that cites the leaflet, which it needs, and the guide, which it does not."""
    row = factories.section(sheet, source=factories.source("leaflet"))
    cite(row, "guide", required=False)
    return row


@pytest.fixture
def ben() -> User:
    return factories.person("ben")


def cite(section: Section, key: str, *, now: datetime = NOON, **values: Any) -> Citation:
    row = Citation(
        section=section,
        source=factories.source(key, title=f"The {key}"),
        locator="page 1",
        position=editing.next_position(section.citations.all()),
        **values,
    )
    factories.save(row, now=now)
    return row


def change(row: TrackedModel, *, now: datetime = LATER, **values: Any) -> None:
    editing.change(row, by=factories.person(), reason="for a test", now=now, **values)


def leaflet(section: Section) -> Citation:
    return section.citations.get(source__key="leaflet")


def guide(section: Section) -> Citation:
    return section.citations.get(source__key="guide")


def all_support(section: Section) -> dict[int, str]:
    return {citation.pk: "supports" for citation in checking.present_citations(section)}


def record(section: Section, **how: Any) -> Check:
    """A check that is taken, unless told otherwise: today, and everything in support."""
    return checking.record(
        **{
            "section": section,
            "seen": checking.seen_now(section),
            "checked_on": TODAY,
            "outcome": "confirmed",
            "method": "read-online",
            "items": all_support(section),
            "by": factories.person("ben"),
            "now": NOW,
            **how,
        }
    )


def refuses(sentence: str, section: Section, **how: Any) -> None:
    """The check is refused in a sentence that has these words, and nothing is written."""
    before = (list(Check.objects.values()), list(CheckItem.objects.values()))

    with pytest.raises(CheckNotRecorded, match=sentence) as refused:
        record(section, **how)

    assert refused.value.code == "check-not-recorded"
    assert refused.value.sentence.endswith(".")
    assert (list(Check.objects.values()), list(CheckItem.objects.values())) == before


def checks() -> list[dict[str, Any]]:
    """Every check and item, as the database has them."""
    return [
        *Check.objects.order_by("id").values(),
        *CheckItem.objects.order_by("id").values(),
    ]


def state(section: Section) -> str:
    return standings.of_section(section, today=TODAY).state


# ---- what is kept ----


def test_a_check_keeps_what_was_confirmed_by_whom_when_and_how(hours: Section, ben: User) -> None:
    check = record(hours, by=ben, note="Asked at the desk too.", checked_on=date(2026, 6, 5))

    check.refresh_from_db()
    assert check.section == hours
    assert check.text_hash == canonical.text_hash(hours.heading, hours.body)
    assert check.checked_on == date(2026, 6, 5)
    assert check.recorded_at == NOW
    assert (check.checked_by, check.checked_by_name) == (ben, "ben")
    assert (check.outcome, check.method) == ("confirmed", "read-online")
    assert check.note == "Asked at the desk too."
    assert check.supersedes is None


def test_a_check_keeps_for_each_source_what_was_found_where_and_when(hours: Section) -> None:
    found = {leaflet(hours).pk: "supports", guide(hours).pk: "supports-partly"}

    check = record(hours, items=found, checked_on=date(2026, 6, 5))

    kept = {item.citation_id: item for item in check.items.all()}
    assert {pk: item.outcome for pk, item in kept.items()} == found
    assert {item.accessed_on for item in kept.values()} == {date(2026, 6, 5)}
    assert kept[leaflet(hours).pk].use_hash == staleness.use_hash("leaflet", "page 1")
    assert kept[guide(hours).pk].use_hash == staleness.use_hash("guide", "page 1")


def test_a_source_that_was_not_looked_at_has_no_item(hours: Section) -> None:
    check = record(hours, items={leaflet(hours).pk: "supports"})

    assert [item.citation_id for item in check.items.all()] == [leaflet(hours).pk]


def test_a_check_keeps_the_name_that_the_person_had(hours: Section, ben: User) -> None:
    check = record(hours, by=ben)
    ben.username = "benjamin"
    ben.save()

    check.refresh_from_db()
    assert (check.checked_by.get_username(), check.checked_by_name) == ("benjamin", "ben")


def test_a_note_is_put_into_its_one_form(hours: Section) -> None:
    check = record(hours, note="Cafe\u0301  \r\n\r\n\r\n\r\nOpen.\n")

    assert check.note == "Café\n\nOpen."


def test_what_is_kept_is_what_stands_there_and_not_the_row_in_hand(hours: Section) -> None:
    in_hand = Section.objects.get(pk=hours.pk)
    change(hours, body="The castle opens at nine.")

    check = record(in_hand, seen=checking.seen_now(hours), items=all_support(hours))

    assert check.text_hash == canonical.text_hash(hours.heading, "The castle opens at nine.")


@pytest.mark.parametrize("method", ["read-online", "read-copy", "read-paper", "asked-person"])
def test_a_check_may_be_made_in_any_of_the_ways(hours: Section, method: str) -> None:
    assert record(hours, method=method).method == method


@pytest.mark.parametrize(
    ("outcome", "first", "second", "state_after"),
    [
        ("confirmed", "supports", "supports", "fresh"),
        ("confirmed", "supports-partly", "supports", "fresh"),
        ("confirmed", "supports", "contradicts", "fresh"),
        ("confirmed", "supports", "not-found", "fresh"),
        ("confirmed", "supports", "unreachable", "edited-since-check"),
        ("confirmed", "unreachable", "supports", "edited-since-check"),
        ("corrected", "supports", "supports", "fresh"),
        ("disputed", "contradicts", "supports", "disputed"),
        ("disputed", "not-found", "not-found", "disputed"),
        ("disputed", "supports", "contradicts", "disputed"),
        ("disputed", "unreachable", "unreachable", "disputed"),
        ("source-unreachable", "unreachable", "unreachable", "never-checked"),
    ],
)
def test_a_check_whose_whole_agrees_with_its_parts_is_taken(
    hours: Section, outcome: str, first: str, second: str, state_after: str
) -> None:
    record(hours, outcome=outcome, items={leaflet(hours).pk: first, guide(hours).pk: second})

    assert state(hours) == state_after


@pytest.mark.parametrize("outcome", ["disputed", "source-unreachable"])
def test_what_confirms_nothing_need_say_nothing_of_the_sources(
    hours: Section, outcome: str
) -> None:
    assert record(hours, outcome=outcome, items={}).items.count() == 0


def test_a_section_that_cites_nothing_can_be_checked(sheet: Sheet) -> None:
    bare = factories.section(sheet)

    record(bare)

    standing = standings.of_section(bare, today=TODAY)
    assert (standing.state, standing.checked_on) == ("unsourced", TODAY)


def test_a_section_that_bots_do_not_get_can_be_checked(hours: Section) -> None:
    change(hours, included=False)

    assert record(hours).outcome == "confirmed"


# ---- what is to be said ----


def test_the_day_is_to_be_said(hours: Section) -> None:
    refuses("on which day", hours, checked_on=None)


@pytest.mark.parametrize("outcome", ["", "fine", "Confirmed"])
def test_what_it_came_to_is_to_be_said(hours: Section, outcome: str) -> None:
    refuses("what the check came to", hours, outcome=outcome)


@pytest.mark.parametrize("method", ["", "guessed", "imported"])
def test_how_it_was_checked_is_to_be_said_and_nobody_imports_by_hand(
    hours: Section, method: str
) -> None:
    refuses("how you checked", hours, method=method)


@pytest.mark.parametrize("outcome", ["", "yes", "confirmed"])
def test_what_a_source_says_is_one_of_the_outcomes(hours: Section, outcome: str) -> None:
    refuses("what you found", hours, items={leaflet(hours).pk: outcome})


# ---- the whole and its parts ----


@pytest.mark.parametrize("outcome", ["confirmed", "corrected"])
@pytest.mark.parametrize("said", ["contradicts", "not-found"])
def test_a_text_is_not_confirmed_against_a_source_that_it_needs(
    hours: Section, outcome: str, said: str
) -> None:
    found = {leaflet(hours).pk: said, guide(hours).pk: "supports"}

    refuses("“The leaflet” does not bear the text out", hours, outcome=outcome, items=found)


@pytest.mark.parametrize("outcome", ["confirmed", "corrected"])
@pytest.mark.parametrize("said", ["unreachable", "contradicts", "not-found"])
def test_a_text_is_not_confirmed_with_nothing_behind_it(
    hours: Section, outcome: str, said: str
) -> None:
    refuses("at least one source", hours, outcome=outcome, items={guide(hours).pk: said})
    refuses("at least one source", hours, outcome=outcome, items={})


@pytest.mark.parametrize("said", ["supports", "supports-partly", "contradicts", "not-found"])
def test_what_was_reached_was_not_unreachable(hours: Section, said: str) -> None:
    found = {leaflet(hours).pk: "unreachable", guide(hours).pk: said}

    refuses("reached some of the sources", hours, outcome="source-unreachable", items=found)


def test_a_citation_of_another_section_is_refused(sheet: Sheet, hours: Section) -> None:
    other = factories.section(sheet, "way", source=factories.source("map"))

    refuses("no citation", hours, items={**all_support(hours), **all_support(other)})


def test_a_citation_that_was_removed_is_refused(hours: Section) -> None:
    found = all_support(hours)
    editing.remove(guide(hours), by=factories.person(), reason="gone", now=LATER)

    refuses("no citation", hours, items=found)


# ---- what changed while the person looked ----


@pytest.mark.parametrize("values", [{"body": "The castle opens at nine."}, {"heading": "Opening"}])
def test_a_text_that_changed_meanwhile_is_not_confirmed(
    hours: Section, values: dict[str, str]
) -> None:
    seen = checking.seen_now(hours)
    change(hours, **values)

    refuses("changed while you checked", hours, seen=seen)


def test_a_text_that_was_only_set_differently_meanwhile_is_confirmed(hours: Section) -> None:
    seen = checking.seen_now(hours)
    change(hours, body=hours.body.replace(" and closes", "\n\nand closes"))

    assert record(hours, seen=seen).text_hash == seen.text_hash


def test_what_no_check_confirms_may_change_meanwhile(hours: Section) -> None:
    seen = checking.seen_now(hours)
    change(hours, question="When?", note="Ask again in spring.", position=7, included=False)
    change(leaflet(hours), claims="the hours", quote="ten to five", role="background")

    assert record(hours, seen=seen).outcome == "confirmed"


def add_a_source(section: Section) -> None:
    cite(section, "sign", now=LATER)


def remove_a_source(section: Section) -> None:
    editing.remove(guide(section), by=factories.person(), reason="gone", now=LATER)


def swap_a_source(section: Section) -> None:
    change(guide(section), source=factories.source("sign"))


def move_to_another_page(section: Section) -> None:
    change(guide(section), locator="page 2")


@pytest.mark.parametrize(
    "act", [add_a_source, remove_a_source, swap_a_source, move_to_another_page]
)
def test_sources_that_changed_meanwhile_are_not_confirmed(
    hours: Section, act: Callable[[Section], None]
) -> None:
    seen = checking.seen_now(hours)
    act(hours)

    refuses("changed while you checked", hours, seen=seen)


def test_whoever_looked_at_nothing_confirms_nothing(hours: Section) -> None:
    refuses("changed while you checked", hours, seen=Seen("", {}))
    refuses("changed while you checked", hours, seen=Seen(hours.text_hash, {}))


def test_a_section_taken_out_of_use_is_not_checked(hours: Section) -> None:
    editing.remove(hours, by=factories.person(), reason="gone", now=LATER)

    refuses("out of use", hours)


# ---- the day ----


def test_a_day_still_to_come_is_refused(hours: Section) -> None:
    refuses("9 June 2026 is still to come", hours, checked_on=TODAY + timedelta(days=1))


def test_the_day_is_that_of_the_organisation(hours: Section) -> None:
    # Half past midnight in London, in summer.
    late = datetime(2026, 6, 8, 23, 30, tzinfo=UTC)

    assert record(hours, now=late, checked_on=date(2026, 6, 9)).checked_on == date(2026, 6, 9)
    refuses("still to come", hours, now=late, checked_on=date(2026, 6, 10))


def test_a_text_may_be_checked_on_the_day_on_which_it_was_written(hours: Section) -> None:
    assert record(hours, checked_on=WRITTEN).checked_on == WRITTEN


def test_a_day_before_the_text_was_written_is_refused(hours: Section) -> None:
    change(hours, body="The castle opens at nine.", now=datetime(2026, 6, 5, 12, tzinfo=UTC))

    refuses("since 5 June 2026", hours, checked_on=date(2026, 6, 4))
    assert record(hours, checked_on=date(2026, 6, 5)).checked_on == date(2026, 6, 5)


def test_the_text_is_as_old_as_its_words_and_not_as_their_setting(hours: Section) -> None:
    change(hours, body=hours.body.replace(" ", "\n"), now=datetime(2026, 6, 5, 12, tzinfo=UTC))
    change(hours, note="Set anew.", now=datetime(2026, 6, 6, 12, tzinfo=UTC))

    assert record(hours, checked_on=date(2026, 6, 2)).checked_on == date(2026, 6, 2)


def test_a_text_that_came_back_is_as_old_as_its_return(hours: Section) -> None:
    first = hours.body
    change(hours, body="The castle opens at nine.", now=datetime(2026, 6, 3, 12, tzinfo=UTC))
    change(hours, body=first, now=datetime(2026, 6, 5, 12, tzinfo=UTC))

    assert checking.written_on(hours) == date(2026, 6, 5)
    refuses("since 5 June 2026", hours, checked_on=date(2026, 6, 2))


def test_a_day_before_the_source_was_cited_is_refused(hours: Section) -> None:
    cite(hours, "sign", now=datetime(2026, 6, 5, 12, tzinfo=UTC))

    refuses("“The sign” has been cited like this since 5 June", hours, checked_on=date(2026, 6, 4))
    assert record(hours, checked_on=date(2026, 6, 5)).items.count() == 3


def test_a_source_cited_since_does_not_matter_if_it_was_not_looked_at(hours: Section) -> None:
    found = all_support(hours)
    cite(hours, "sign", now=datetime(2026, 6, 5, 12, tzinfo=UTC))

    assert record(hours, items=found, checked_on=date(2026, 6, 4)).items.count() == 2


@pytest.mark.parametrize("act", [swap_a_source, move_to_another_page])
def test_a_day_before_the_citation_was_given_its_source_or_place_is_refused(
    hours: Section, act: Callable[[Section], None]
) -> None:
    act(hours)

    refuses("cited like this since 2 June 2026", hours, checked_on=WRITTEN)
    assert record(hours, checked_on=date(2026, 6, 2)).items.count() == 2


def test_a_citation_is_as_old_as_its_use_and_not_as_its_words(hours: Section) -> None:
    change(guide(hours), claims="the hours", quote="ten to five")

    assert record(hours, checked_on=WRITTEN).checked_on == WRITTEN


def test_a_week_late_needs_no_reason(hours: Section) -> None:
    assert record(hours, checked_on=TODAY - timedelta(days=7)).note == ""


@pytest.mark.parametrize("note", ["", "  ", "\n\t\n"])
def test_more_than_a_week_late_needs_a_reason(hours: Section, note: str) -> None:
    day_after = NOW + timedelta(days=1)

    refuses("more than 7 days ago", hours, checked_on=WRITTEN, now=day_after, note=note)
    assert record(hours, checked_on=WRITTEN, now=day_after, note="Was ill.").note == "Was ill."


# ---- a check that sets another right ----


def test_a_check_that_was_replaced_no_longer_counts(hours: Section) -> None:
    wrong = record(hours, outcome="disputed", items={})
    assert state(hours) == "disputed"

    right = record(hours, supersedes=wrong, note="That was another section.")

    assert right.supersedes == wrong
    assert state(hours) == "fresh"


def test_the_dates_of_a_check_that_was_replaced_no_longer_count(hours: Section) -> None:
    record(hours, checked_on=date(2026, 6, 2))
    wrong = record(hours)

    record(hours, items={guide(hours).pk: "supports"}, supersedes=wrong, note="Only the guide.")

    assert standings.of_section(hours, today=TODAY).checked_on == date(2026, 6, 2)


def test_what_replaces_a_check_says_what_was_wrong_with_it(hours: Section) -> None:
    wrong = record(hours)

    refuses("what was wrong", hours, supersedes=wrong)
    refuses("what was wrong", hours, supersedes=wrong, note="  ")


def test_a_check_is_replaced_once(hours: Section) -> None:
    wrong = record(hours)
    in_hand = Check.objects.get(pk=wrong.pk)
    assert not hasattr(in_hand, "superseded_by")
    record(hours, supersedes=wrong, note="Wrong day.")

    refuses("replaced already", hours, supersedes=wrong, note="Wrong day.")
    # A row read before, that remembers nothing to have replaced it.
    refuses("replaced already", hours, supersedes=in_hand, note="Wrong day.")


def test_what_replaced_a_check_can_be_replaced(hours: Section) -> None:
    first = record(hours, outcome="disputed", items={})
    second = record(hours, supersedes=first, note="Another section.")

    record(hours, outcome="disputed", items={}, supersedes=second, note="This one after all.")

    assert state(hours) == "disputed"


def test_a_check_of_another_section_is_not_replaced(sheet: Sheet, hours: Section) -> None:
    other = record(factories.section(sheet, "way"))

    refuses("another section", hours, supersedes=other, note="Wrong one.")


# ---- checks that a file states ----


def test_a_stated_check_has_an_item_for_each_citation_with_its_use(hours: Section) -> None:
    check = checking.record_imported(
        section=hours,
        citations=checking.present_citations(hours),
        checked_on=date(2020, 2, 29),
        by=factories.person(),
        now=NOW,
    )

    assert check is not None
    assert (check.method, check.outcome) == ("imported", "confirmed")
    assert {(item.use_hash, item.outcome, item.accessed_on) for item in check.items.all()} == {
        (staleness.use_hash("leaflet", "page 1"), "supports", date(2020, 2, 29)),
        (staleness.use_hash("guide", "page 1"), "supports", date(2020, 2, 29)),
    }
    assert state(hours) == "overdue"


@pytest.mark.parametrize("outcome", ["confirmed", "disputed", "source-unreachable"])
def test_a_file_states_nothing_about_a_day_on_which_a_person_checked(
    hours: Section, outcome: str
) -> None:
    record(hours, outcome=outcome, items={leaflet(hours).pk: FITTING[outcome]})
    before = checks()

    stated = checking.record_imported(
        section=hours,
        citations=checking.present_citations(hours),
        checked_on=TODAY,
        by=factories.person(),
        now=NOW,
    )

    assert stated is None
    assert checks() == before


FITTING = {
    "confirmed": "supports",
    "disputed": "contradicts",
    "source-unreachable": "unreachable",
}


# ---- what makes or moves no check ----


def edit_the_text(sheet: Sheet, section: Section) -> None:
    change(section, body="The castle opens at nine.")


def put_the_text_back(sheet: Sheet, section: Section) -> None:
    body = section.body
    change(section, body="The castle opens at nine.")
    change(section, body=body)


def save_without_a_change(sheet: Sheet, section: Section) -> None:
    change(section, body=section.body)


def change_the_sources(sheet: Sheet, section: Section) -> None:
    move_to_another_page(section)
    add_a_source(section)


def import_what_was_exported(sheet: Sheet, section: Section) -> None:
    load(sheet, exchange.write_sheet(sheet))


def import_another_text(sheet: Sheet, section: Section) -> None:
    data = exchange.write_sheet(sheet)
    assert b"opens at ten" in data
    load(sheet, data.replace(b"opens at ten", b"opens at nine"))


def change_the_interval_of_a_kind(sheet: Sheet, section: Section) -> None:
    factories.save(ReviewInterval(kind="own-policy", interval="1 day"), now=LATER)


def plan_the_sheet(sheet: Sheet, section: Section) -> None:
    plan = ReviewPlan(sheet=sheet, owner=factories.person("ben"), interval="1 day")
    factories.save(plan, now=LATER)
    change(plan, owner=factories.person("cara"), interval="5 years")


def plan_the_section(sheet: Sheet, section: Section) -> None:
    plan = ReviewPlan(sheet=sheet, section=section, owner=factories.person("ben"))
    factories.save(plan, now=LATER)
    change(plan, owner=factories.person("cara"), review_by=date(2026, 6, 3))
    editing.remove(plan, by=factories.person(), reason="gone", now=LATER)


def remove_and_restore_the_section(sheet: Sheet, section: Section) -> None:
    editing.remove(section, by=factories.person(), reason="gone", now=LATER)
    editing.restore(section, by=factories.person(), reason="back", now=LATER)


def load(sheet: Sheet, data: bytes) -> None:
    file = exchange.read_sheet(data)
    with change_set(by=factories.person(), reason="import", now=NOW):
        exchange.apply_sheet(file, by=factories.person(), reason="import", now=NOW)


@pytest.mark.parametrize(
    "act",
    [
        edit_the_text,
        put_the_text_back,
        save_without_a_change,
        change_the_sources,
        import_what_was_exported,
        import_another_text,
        change_the_interval_of_a_kind,
        plan_the_sheet,
        plan_the_section,
        remove_and_restore_the_section,
    ],
)
@pytest.mark.parametrize("looked_at", [2, 1])
def test_nothing_but_recording_makes_or_moves_a_check(
    sheet: Sheet, hours: Section, act: Callable[[Sheet, Section], None], looked_at: int
) -> None:
    record(hours, checked_on=WRITTEN)
    record(hours, items=dict(list(all_support(hours).items())[:looked_at]))
    before = checks()

    act(sheet, hours)

    assert checks() == before


@pytest.mark.parametrize(
    "act", [change_the_interval_of_a_kind, plan_the_sheet, plan_the_section, put_the_text_back]
)
def test_none_of_it_moves_the_day_on_which_the_section_was_checked(
    sheet: Sheet, hours: Section, act: Callable[[Sheet, Section], None]
) -> None:
    record(hours, checked_on=WRITTEN)

    act(sheet, hours)

    assert standings.of_section(hours, today=TODAY).checked_on == WRITTEN


# ---- what the database refuses ----


@pytest.mark.database
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE factsheets_check SET checked_on = '2026-06-09'",
        "UPDATE factsheets_check SET outcome = 'confirmed'",
        "UPDATE factsheets_check SET text_hash = 'another'",
        "UPDATE factsheets_check SET note = 'another'",
        "UPDATE factsheets_check SET checked_by_name = 'another'",
        "UPDATE factsheets_check SET supersedes_id = NULL",
        "UPDATE factsheets_checkitem SET outcome = 'supports'",
        "UPDATE factsheets_checkitem SET accessed_on = '2026-06-09'",
        "UPDATE factsheets_checkitem SET use_hash = ''",
        "DELETE FROM factsheets_checkitem",
        "DELETE FROM factsheets_check",
    ],
)
def test_what_was_recorded_is_not_changed_or_deleted(hours: Section, statement: str) -> None:
    record(hours)
    before = checks()

    with (
        pytest.raises(IntegrityError, match="never changed or deleted"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert checks() == before


@pytest.mark.database
def test_what_was_recorded_is_not_changed_through_the_orm(hours: Section) -> None:
    check = record(hours)
    before = checks()
    check.note = "another"

    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        check.save()
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        check.items.update(outcome="contradicts")
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        check.items.all().delete()

    assert checks() == before


@pytest.mark.database
def test_a_check_is_replaced_once_in_the_database_too(hours: Section) -> None:
    wrong = record(hours)
    right = record(hours, supersedes=wrong, note="Wrong day.")

    with pytest.raises(IntegrityError), transaction.atomic():
        Check.objects.create(
            section=hours,
            text_hash=right.text_hash,
            checked_on=TODAY,
            recorded_at=NOW,
            checked_by=right.checked_by,
            checked_by_name="ben",
            outcome="confirmed",
            method="read-online",
            supersedes=wrong,
        )


@pytest.mark.database
def test_a_check_says_one_thing_of_a_citation(hours: Section) -> None:
    check = record(hours)

    with pytest.raises(IntegrityError), transaction.atomic():
        CheckItem.objects.create(of=check, citation=leaflet(hours), outcome="contradicts")
