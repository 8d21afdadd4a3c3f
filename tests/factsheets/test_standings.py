"""How sections stand: from rows to states, and what an export says of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from factsheets import checking, editing, exchange, history, publishing, standings, yaml_files
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
from factsheets.staleness import DEFAULT_INTERVALS, Interval, Standing
from tests import factories
from tests.factories import LATER, NOON

pytestmark = pytest.mark.django_db

FIRST = date(2026, 6, 2)
SECOND = date(2026, 6, 5)
TODAY = date(2026, 6, 8)
NOW = datetime(2026, 6, 8, 12, 0, tzinfo=UTC)


@pytest.fixture
def sheet() -> Sheet:
    return factories.sheet()


@pytest.fixture
def hours(sheet: Sheet) -> Section:
    """A section that cites the leaflet and the guide, policies of the house."""
    row = factories.section(sheet, source=factories.source("leaflet"))
    cite(row, "guide")
    return row


def cite(section: Section, key: str, *, kind: str = "own-policy", **values: Any) -> Citation:
    row = Citation(
        section=section,
        source=factories.source(key, title=f"The {key}", kind=kind),
        locator="page 1",
        position=editing.next_position(section.citations.all()),
        **values,
    )
    factories.save(row)
    return row


def cited(section: Section, key: str) -> Citation:
    return section.citations.get(source__key=key)


def check(section: Section, *keys: str, on: date, **how: Any) -> Check:
    """A check of the sources named, that found them in support unless told otherwise."""
    return checking.record(
        **{
            "section": section,
            "seen": checking.seen_now(section),
            "checked_on": on,
            "outcome": "confirmed",
            "method": "read-online",
            "items": {cited(section, key).pk: "supports" for key in keys},
            "by": factories.person("ben"),
            "now": NOW,
            **how,
        }
    )


def plan(sheet: Sheet, section: Section | None = None, **values: Any) -> ReviewPlan:
    row = ReviewPlan(sheet=sheet, section=section, **values)
    factories.save(row)
    return row


def change(row: TrackedModel, **values: Any) -> None:
    editing.change(row, by=factories.person(), reason="for a test", now=LATER, **values)


def remove(row: TrackedModel) -> None:
    editing.remove(row, by=factories.person(), reason="gone", now=LATER)


def stand(section: Section, *, today: date = TODAY) -> Standing:
    return standings.of_section(section, today=today)


# ---- rows to states ----


def test_a_section_that_nobody_checked_is_never_checked(hours: Section) -> None:
    assert stand(hours).state == "never-checked"


def test_a_section_checked_with_all_its_sources_is_fresh(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)

    standing = stand(hours)

    assert (standing.state, standing.checked_on) == ("fresh", FIRST)
    assert standing.due_on == date(2027, 6, 2)


def test_a_section_becomes_due_and_overdue_with_the_days(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)

    assert stand(hours, today=date(2027, 6, 2)).state == "due-soon"
    assert stand(hours, today=date(2027, 6, 3)).state == "overdue"


def test_a_text_edited_since_is_edited_and_the_row_in_hand_is_what_is_judged(
    hours: Section,
) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    before = Section.objects.get(pk=hours.pk)
    change(hours, body="The castle opens at nine.")

    assert stand(hours).state == "edited-since-check"
    assert stand(before).state == "fresh"


def test_a_disputed_text_is_disputed_until_it_is_checked_again(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    check(hours, on=FIRST, outcome="disputed")
    assert stand(hours).state == "disputed"

    check(hours, "leaflet", on=FIRST)

    assert (stand(hours).state, stand(hours).checked_on) == ("fresh", FIRST)


def test_checks_of_one_day_count_in_the_order_in_which_they_were_recorded(
    hours: Section,
) -> None:
    check(hours, "leaflet", "guide", on=FIRST, now=NOW + timedelta(hours=1))
    check(hours, on=FIRST, outcome="disputed", now=NOW)

    assert stand(hours).state == "fresh"


def test_a_check_recorded_late_counts_by_its_day(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=SECOND)
    check(hours, on=FIRST, outcome="disputed", now=NOW + timedelta(days=1), note="Found a slip.")

    assert (stand(hours).state, stand(hours).checked_on) == ("fresh", SECOND)


def test_a_check_in_part_leaves_the_oldest_date(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    check(hours, "guide", on=SECOND)

    assert (stand(hours).state, stand(hours).checked_on) == ("fresh", FIRST)


def test_a_citation_given_another_source_is_not_checked(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    change(cited(hours, "guide"), source=factories.source("sign", title="The sign"))

    standing = stand(hours)

    assert standing.state == "edited-since-check"
    assert "“The sign”" in standing.reasons[0].sentence


def test_a_citation_whose_words_changed_is_still_checked(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    change(cited(hours, "guide"), claims="the hours", quote="ten to five", position=9)

    assert stand(hours).state == "fresh"


def test_an_item_older_than_the_record_of_uses_still_counts(hours: Section) -> None:
    old = Check.objects.create(
        section=hours,
        text_hash=hours.text_hash,
        checked_on=FIRST,
        recorded_at=NOON,
        checked_by=factories.person("ben"),
        checked_by_name="ben",
        outcome="confirmed",
        method="read-paper",
    )
    for citation in hours.citations.all():
        CheckItem.objects.create(of=old, citation=citation, outcome="supports")

    # Without a day of their own they are of the day of the check.
    assert (stand(hours).state, stand(hours).checked_on) == ("fresh", FIRST)


def test_a_removed_citation_is_neither_missed_nor_due_nor_in_dispute(hours: Section) -> None:
    page = cite(hours, "page", kind="news")
    check(
        hours,
        on=FIRST,
        outcome="disputed",
        items={
            cited(hours, "leaflet").pk: "supports",
            cited(hours, "guide").pk: "supports",
            page.pk: "contradicts",
        },
    )
    check(hours, "leaflet", "guide", on=FIRST)
    assert stand(hours).state == "disputed"

    remove(page)

    assert (stand(hours).state, stand(hours).due_on) == ("fresh", date(2027, 6, 2))


def test_a_citation_that_comes_back_is_checked_as_it_was(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    guide = cited(hours, "guide")
    remove(guide)
    check(hours, "leaflet", on=SECOND)
    assert stand(hours).checked_on == SECOND

    editing.restore(guide, by=factories.person(), reason="back", now=LATER)

    assert (stand(hours).state, stand(hours).checked_on) == ("fresh", FIRST)


def test_a_section_without_a_supporting_citation_is_unsourced(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    remove(cited(hours, "guide"))
    change(cited(hours, "leaflet"), role="background")

    assert stand(hours).state == "unsourced"


@pytest.mark.parametrize("values", [{"included": False}, {"removed_at": NOW}])
def test_what_bots_do_not_get_is_retired(hours: Section, values: dict[str, Any]) -> None:
    change(hours, **values)

    assert stand(hours).state == "retired"


def test_sections_do_not_mix(sheet: Sheet, hours: Section) -> None:
    other = factories.section(sheet, "way", source=cited(hours, "leaflet").source)
    check(hours, "leaflet", "guide", on=FIRST)

    found = standings.of_sections([hours, other], today=TODAY)

    assert {pk: standing.state for pk, standing in found.items()} == {
        hours.pk: "fresh",
        other.pk: "never-checked",
    }


# ---- a picture of the sheet ----


def picture(sheet: Sheet) -> dict[str, Standing]:
    return standings.of_snapshot(sheet, history.snapshot_now(sheet), today=TODAY)


def test_each_section_of_a_picture_stands_by_its_key(sheet: Sheet, hours: Section) -> None:
    factories.section(sheet, "way", source=factories.source("map"))
    remove(factories.section(sheet, "gone"))
    check(hours, "leaflet", "guide", on=FIRST)

    found = picture(sheet)

    assert {key: standing.state for key, standing in found.items()} == {
        "hours": "fresh",
        "way": "never-checked",
    }


def test_the_text_of_the_picture_is_judged_with_the_checks_and_sources_of_now(
    sheet: Sheet, hours: Section
) -> None:
    past = history.snapshot_now(sheet)
    check(hours, "leaflet", "guide", on=FIRST)
    change(hours, body="The castle opens at nine.")

    assert picture(sheet)["hours"].state == "edited-since-check"
    assert standings.of_snapshot(sheet, past, today=TODAY)["hours"].state == "fresh"


def test_a_section_of_a_past_picture_stands_though_it_was_removed_since(
    sheet: Sheet, hours: Section
) -> None:
    past = history.snapshot_now(sheet)
    check(hours, "leaflet", "guide", on=FIRST)
    remove(hours)

    assert standings.of_snapshot(sheet, past, today=TODAY)["hours"].state == "fresh"


def test_a_section_of_the_same_key_on_another_sheet_is_another(
    sheet: Sheet, hours: Section
) -> None:
    other = factories.sheet("tower")
    factories.section(other, source=cited(hours, "leaflet").source)
    check(hours, "leaflet", "guide", on=FIRST)

    assert picture(other)["hours"].state == "never-checked"


def test_publishing_judges_by_the_rows_and_the_organisations_day() -> None:
    ready = factories.ready_sheet()
    # Half past midnight in London, the day after the last good day of a year's check.
    night = datetime(2027, 6, 1, 23, 30, tzinfo=UTC)

    report = publishing.look(
        Sheet.objects.select_related("bot", "state__live_publication").get(pk=ready.pk), now=night
    ).report

    assert "overdue" in [finding.code for finding in report.warnings]


# ---- how long a check holds ----


def test_without_rows_the_defaults_hold() -> None:
    assert standings.intervals_by_kind() == DEFAULT_INTERVALS


def test_the_installation_may_have_intervals_of_its_own(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    factories.save(ReviewInterval(kind="own-policy", interval="14 days"))

    assert standings.intervals_by_kind() == {
        **DEFAULT_INTERVALS,
        "own-policy": Interval(14, "day"),
    }
    assert stand(hours).due_on == date(2026, 6, 16)


def test_an_interval_of_the_installation_may_be_longer(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    factories.save(ReviewInterval(kind="own-policy", interval="3 years"))

    assert stand(hours).due_on == date(2029, 6, 2)


def test_an_interval_taken_out_of_use_gives_way_to_the_default(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    own = ReviewInterval(kind="own-policy", interval="14 days")
    factories.save(own)

    remove(own)

    assert standings.intervals_by_kind() == DEFAULT_INTERVALS
    assert stand(hours).due_on == date(2027, 6, 2)


def test_an_interval_of_another_kind_does_not_matter(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    factories.save(ReviewInterval(kind="news", interval="1 day"))

    assert stand(hours).due_on == date(2027, 6, 2)


def test_the_kind_that_the_source_has_now_counts(hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)

    change(cited(hours, "guide").source, kind="news")

    assert stand(hours).due_on == date(2026, 9, 2)


def test_the_plan_of_a_sheet_holds_for_all_its_sections(sheet: Sheet, hours: Section) -> None:
    other = factories.sheet("tower")
    elsewhere = factories.section(other, source=cited(hours, "leaflet").source)
    for section, keys in ((hours, ["leaflet", "guide"]), (elsewhere, ["leaflet"])):
        check(section, *keys, on=FIRST)

    plan(sheet, interval="1 month")

    assert stand(hours).due_on == date(2026, 7, 2)
    assert stand(elsewhere).due_on == date(2027, 6, 2)


def test_the_plan_of_a_section_holds_for_it_alone(sheet: Sheet, hours: Section) -> None:
    other = factories.section(sheet, "way", source=cited(hours, "leaflet").source)
    check(hours, "leaflet", "guide", on=FIRST)
    check(other, "leaflet", on=FIRST)

    plan(sheet, hours, interval="14 days")

    assert stand(hours).due_on == date(2026, 6, 16)
    assert stand(other).due_on == date(2027, 6, 2)


@pytest.mark.parametrize(
    ("of_sheet", "of_section", "due_on"),
    [
        ({"interval": "1 month"}, {"interval": "6 months"}, date(2026, 7, 2)),
        ({"interval": "6 months"}, {"interval": "1 month"}, date(2026, 7, 2)),
        ({"interval": "5 years"}, {"interval": "5 years"}, date(2027, 6, 2)),
        ({"interval": "1 month"}, {"review_by": date(2026, 6, 9)}, date(2026, 6, 9)),
        ({"review_by": date(2026, 6, 9)}, {"review_by": date(2026, 6, 10)}, date(2026, 6, 9)),
        # Met by the check of 2 June; the other is still to come.
        ({"review_by": date(2026, 6, 1)}, {"review_by": date(2026, 6, 10)}, date(2026, 6, 10)),
        ({"review_by": date(2026, 6, 10)}, {"review_by": date(2026, 6, 1)}, date(2026, 6, 10)),
        ({}, {}, date(2027, 6, 2)),
    ],
)
def test_of_all_that_plans_say_the_earliest_day_counts(
    sheet: Sheet,
    hours: Section,
    of_sheet: dict[str, Any],
    of_section: dict[str, Any],
    due_on: date,
) -> None:
    check(hours, "leaflet", "guide", on=FIRST)

    plan(sheet, **of_sheet)
    plan(sheet, hours, **of_section)

    assert stand(hours).due_on == due_on


def test_a_plan_taken_out_of_use_no_longer_counts(sheet: Sheet, hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    whole, part = plan(sheet, interval="1 month"), plan(sheet, hours, interval="14 days")

    remove(part)
    assert stand(hours).due_on == date(2026, 7, 2)

    remove(whole)
    assert stand(hours).due_on == date(2027, 6, 2)


# ---- queries ----


@pytest.mark.parametrize("number", [2, 30])
def test_the_queries_do_not_grow_with_the_sections(
    sheet: Sheet, number: int, django_assert_num_queries: Callable[[int], Any]
) -> None:
    leaflet = factories.source()
    plan(sheet, interval="6 months")
    for place in range(number):
        section = factories.section(sheet, f"s-{place}", position=place, source=leaflet)
        cite(section, f"guide-{place}")
        check(section, "leaflet", f"guide-{place}", on=FIRST)
        plan(sheet, section, interval="1 month")
    sections = list(sheet.sections.order_by("id"))
    snapshot = history.snapshot_now(sheet)

    with django_assert_num_queries(5):
        found = standings.of_sections(sections, today=TODAY)
    with django_assert_num_queries(6):
        pictured = standings.of_snapshot(sheet, snapshot, today=TODAY)

    assert [standing.due_on for standing in found.values()] == [date(2026, 7, 2)] * number
    assert list(pictured.values()) == list(found.values())


def test_of_no_sections_nothing_is_said() -> None:
    assert standings.of_sections([], today=TODAY) == {}


# ---- what an export says of checks ----


def stated(sheet: Sheet) -> list[str]:
    value = yaml_files.read(exchange.write_sheet(sheet), name="sheet.yaml")
    assert isinstance(value, dict)
    return [section["checked_on"] for section in value["sections"]]


def test_an_export_states_the_day_of_the_check(sheet: Sheet, hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)

    assert stated(sheet) == ["2026-06-02"]


def test_an_export_after_a_check_in_part_states_the_oldest_day(
    sheet: Sheet, hours: Section
) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    check(hours, "guide", on=SECOND)

    assert stated(sheet) == ["2026-06-02"]


def test_an_export_after_a_first_check_in_part_states_no_day(sheet: Sheet, hours: Section) -> None:
    check(hours, "guide", on=SECOND)

    assert stated(sheet) == [""]


def test_an_export_after_a_dispute_states_no_day(sheet: Sheet, hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    check(hours, on=SECOND, outcome="disputed")

    assert stated(sheet) == [""]


def test_an_export_after_a_source_was_found_against_the_text_states_no_day(
    sheet: Sheet, hours: Section
) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    found = {cited(hours, "guide").pk: "contradicts"}
    check(hours, on=SECOND, outcome="disputed", items=found)
    check(hours, "leaflet", on=SECOND)

    assert stated(sheet) == [""]


def test_an_export_after_a_dispute_was_taken_back_states_the_day_again(
    sheet: Sheet, hours: Section
) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    wrong = check(hours, on=SECOND, outcome="disputed")
    check(
        hours,
        on=SECOND,
        outcome="source-unreachable",
        supersedes=wrong,
        note="That was another section; nobody reached the leaflet.",
    )

    assert stated(sheet) == ["2026-06-02"]


def test_an_export_after_a_citation_was_swapped_states_no_day(sheet: Sheet, hours: Section) -> None:
    check(hours, "leaflet", "guide", on=FIRST)
    change(cited(hours, "guide"), locator="page 2")

    assert stated(sheet) == [""]


def in_part(section: Section) -> None:
    check(section, "leaflet", "guide", on=FIRST)
    check(section, "guide", on=SECOND)


def in_dispute(section: Section) -> None:
    check(section, "leaflet", "guide", on=FIRST)
    check(section, on=SECOND, outcome="disputed")


def replaced(section: Section) -> None:
    wrong = check(section, "leaflet", "guide", on=SECOND)
    check(section, "leaflet", "guide", on=FIRST, supersedes=wrong, note="Wrong day.")


def edited(section: Section) -> None:
    check(section, "leaflet", "guide", on=FIRST)
    change(section, body="The castle opens at nine.")


def load(sheet: Sheet, data: bytes) -> None:
    file = exchange.read_sheet(data)
    with change_set(by=factories.person(), reason="import", now=NOW):
        exchange.apply_sheet(file, by=factories.person(), reason="import", now=NOW)


@pytest.mark.parametrize("history_of_checks", [in_part, in_dispute, replaced, edited])
def test_an_export_is_the_same_after_it_was_imported(
    sheet: Sheet, hours: Section, history_of_checks: Callable[[Section], None]
) -> None:
    history_of_checks(hours)
    before, checks = exchange.write_sheet(sheet), Check.objects.count()

    load(sheet, before)

    assert exchange.write_sheet(sheet) == before
    assert Check.objects.count() == checks


@pytest.mark.parametrize("history_of_checks", [in_part, in_dispute, replaced, edited])
def test_an_export_is_the_same_after_it_was_imported_as_another_sheet(
    sheet: Sheet, hours: Section, history_of_checks: Callable[[Section], None]
) -> None:
    history_of_checks(hours)
    before = exchange.write_sheet(sheet)

    load(sheet, before.replace(b"slug: castle", b"slug: tower"))

    copy = exchange.write_sheet(Sheet.objects.get(slug="tower"))
    assert copy.replace(b"slug: tower", b"slug: castle") == before
