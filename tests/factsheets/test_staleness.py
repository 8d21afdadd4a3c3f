"""The state of a section: what stands between its text and the checks that cover it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factsheets import staleness
from factsheets.models import Check, CheckItem, Citation, Source
from factsheets.staleness import (
    CheckFacts,
    Cited,
    Interval,
    Item,
    Plan,
    SectionFacts,
    Standing,
    Unit,
)

CHECKED = date(2026, 3, 31)
EARLIER = date(2026, 1, 15)
TODAY = date(2026, 4, 10)
TEXT, OTHER_TEXT = "1" * 64, "2" * 64

#: Of a check on CHECKED against a source of one's own policy: twelve months.
LAST_GOOD_DAY = date(2027, 3, 31)


def cite(number: int = 1, **values: Any) -> Cited:
    return replace(
        Cited(number, f"use-{number}", f"Source {number}", "own-policy", "supports", True),
        **values,
    )


def item(of: Cited, outcome: str = "supports", *, on: date = CHECKED) -> Item:
    return Item(of.id, of.use_hash, outcome, on)


def check(
    *items: Item, outcome: str = "confirmed", text: str = TEXT, on: date = CHECKED
) -> CheckFacts:
    return CheckFacts(text, on, outcome, items)


def checked(
    *cited: Cited, outcome: str = "confirmed", text: str = TEXT, on: date = CHECKED
) -> CheckFacts:
    """A check that found all of these in support, on its own day."""
    return check(*(item(of, on=on) for of in cited), outcome=outcome, text=text, on=on)


def facts(
    citations: tuple[Cited, ...], *checks: CheckFacts, plan: Plan | None = None
) -> SectionFacts:
    return SectionFacts(citations, checks, plan or Plan(staleness.DEFAULT_INTERVALS))


def stand(of: SectionFacts, *, today: date = TODAY, retired: bool = False) -> Standing:
    return staleness.standing(of, text_hash=TEXT, today=today, is_retired=retired)


def covered(of: SectionFacts) -> date | None:
    return staleness.covered_on(of, text_hash=TEXT)


def codes(of: Standing) -> list[str]:
    return [reason.code for reason in of.reasons]


ONE, TWO = cite(1), cite(2)
FRESH = facts((ONE,), checked(ONE))


# ---- intervals ----


@pytest.mark.parametrize(
    ("text", "checked_on", "last_good_day"),
    [
        ("1 month", "2026-01-31", "2026-02-28"),
        ("1 month", "2028-01-31", "2028-02-29"),
        ("1 month", "2026-03-31", "2026-04-30"),
        ("1 month", "2026-02-28", "2026-03-28"),
        ("6 months", "2026-08-31", "2027-02-28"),
        ("6 months", "2027-08-31", "2028-02-29"),
        ("6 months", "2026-08-30", "2027-02-28"),
        ("12 months", "2028-02-29", "2029-02-28"),
        ("12 months", "2027-02-28", "2028-02-28"),
        ("1 year", "2028-02-29", "2029-02-28"),
        ("4 years", "2028-02-29", "2032-02-29"),
        # 2100 is no leap year.
        ("72 years", "2028-02-29", "2100-02-28"),
        ("3 months", "2026-11-30", "2027-02-28"),
        # From the check itself, never from a day that was clamped before.
        ("2 months", "2026-01-31", "2026-03-31"),
        ("12 months", "2026-08-31", "2027-08-31"),
        ("24 months", "2027-02-28", "2029-02-28"),
        ("36 months", "2026-03-31", "2029-03-31"),
        ("1 day", "2028-02-28", "2028-02-29"),
        ("1 day", "2026-02-28", "2026-03-01"),
        ("14 days", "2026-12-20", "2027-01-03"),
        # Calendar units stay what they are: six months are not 182 days.
        ("6 months", "2026-01-01", "2026-07-01"),
        ("182 days", "2026-01-01", "2026-07-02"),
    ],
)
def test_an_interval_is_added_in_calendar_units_and_clamped_to_the_months_end(
    text: str, checked_on: str, last_good_day: str
) -> None:
    day = Interval.parse(text).after(date.fromisoformat(checked_on))

    assert day == date.fromisoformat(last_good_day)


@pytest.mark.parametrize("text", ["9999 years", "9999 months", "9999 days"])
def test_an_interval_that_outlasts_the_calendar_holds_to_its_last_day(text: str) -> None:
    assert Interval.parse(text).after(date(9990, 1, 1)) == date.max


@pytest.mark.parametrize("text", ["1 day", "14 days", "1 month", "6 months", "1 year", "2 years"])
def test_an_interval_is_written_as_it_was_read(text: str) -> None:
    assert str(Interval.parse(text)) == text


@pytest.mark.parametrize(("text", "meant"), [("6 month", "6 months"), ("1 years", "1 year")])
def test_a_slip_of_grammar_in_an_interval_is_mended(text: str, meant: str) -> None:
    assert str(Interval.parse(text)) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "6",
        "months",
        "month",
        "0 months",
        "00 months",
        "06 months",
        "-1 day",
        "+1 day",
        "1.5 years",
        "1,5 years",
        "1e3 days",
        "10000 days",
        "6 weeks",
        "6 quarters",
        "6 Months",
        "6months",
        "6  months",
        " 6 months",
        "6 months ",
        "6 months\n",
        "six days",
        "6 monthss",
        "6 months 3 days",
        "P6M",
        "٦ months",
        "1٦ months",
        "６ months",
        "never",
    ],
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no interval"):
        Interval.parse(text)


@given(count=st.integers(1, 9999), unit=st.sampled_from(get_args(Unit)), day=st.dates())
def test_a_check_holds_at_least_to_the_day_after_it_or_to_the_end_of_the_calendar(
    count: int, unit: Unit, day: date
) -> None:
    assert Interval(count, unit).after(day) > day or day == date.max


def test_every_kind_of_source_has_an_interval() -> None:
    assert staleness.DEFAULT_INTERVALS.keys() == set(Source.Kind.values)


def test_the_words_of_checks_are_those_of_the_rows() -> None:
    assert set(Check.Outcome.values) > staleness.CONFIRMING
    assert set(CheckItem.Outcome.values) > staleness.SUPPORTING | staleness.AGAINST
    assert staleness.SUPPORTING.isdisjoint(staleness.AGAINST)


# ---- the last good day ----


@pytest.mark.parametrize(
    ("today", "state", "words"),
    [
        (date(2027, 3, 30), "due-soon", "due by 31 March 2027, in 1 day."),
        (date(2027, 3, 31), "due-soon", "due today."),
        (date(2027, 4, 1), "overdue", "due by 31 March 2027, 1 day ago."),
        (date(2027, 4, 2), "overdue", "due by 31 March 2027, 2 days ago."),
    ],
)
def test_the_last_good_day_is_still_good_and_the_next_is_not(
    today: date, state: str, words: str
) -> None:
    standing = stand(FRESH, today=today)

    assert (standing.state, standing.due_on) == (state, LAST_GOOD_DAY)
    assert words in standing.reasons[0].sentence


@pytest.mark.parametrize(
    ("interval_days", "days"),
    [
        (1, 3),
        (7, 3),
        (18, 3),
        (23, 3),
        (24, 4),
        (30, 5),
        (90, 15),
        (179, 29),
        (180, 30),
        (365, 30),
        (5_000, 30),
    ],
)
def test_a_check_is_due_soon_a_sixth_of_its_interval_before(interval_days: int, days: int) -> None:
    assert staleness.due_soon_days(interval_days) == days


@pytest.mark.parametrize(
    ("interval", "first_day"),
    [
        # Ninety-two days from 31 March to 30 June make fifteen.
        (Interval(3, "month"), date(2026, 6, 15)),
        (Interval(12, "month"), date(2027, 3, 1)),
        (Interval(36, "month"), date(2029, 3, 1)),
        (Interval(14, "day"), date(2026, 4, 11)),
    ],
)
def test_due_soon_begins_on_its_day(interval: Interval, first_day: date) -> None:
    of = replace(FRESH, plan=Plan({"own-policy": interval}))

    assert stand(of, today=first_day - timedelta(days=1)).state == "fresh"
    assert stand(of, today=first_day).state == "due-soon"


def test_a_check_that_holds_less_than_the_window_is_due_soon_from_the_start() -> None:
    of = replace(FRESH, plan=Plan({"own-policy": Interval(2, "day")}))

    assert stand(of, today=CHECKED).state == "due-soon"


def test_the_window_is_a_sixth_of_the_interval_of_the_source_that_is_due() -> None:
    page = cite(2, kind="news")
    of = facts(
        (ONE, page),
        check(item(ONE, on=date(2025, 12, 31)), item(page, on=CHECKED)),
    )

    assert stand(of).due_on == date(2026, 6, 30)
    assert stand(of, today=date(2026, 6, 14)).state == "fresh"
    assert stand(of, today=date(2026, 6, 15)).state == "due-soon"


def test_the_first_source_to_become_due_makes_the_section_due() -> None:
    page = cite(2, kind="museum-or-site-page")
    of = facts((ONE, page), checked(ONE, page))

    assert stand(of).due_on == date(2026, 6, 30)


def test_a_source_with_a_long_interval_may_be_the_first_if_it_was_seen_long_ago() -> None:
    page = cite(2, kind="museum-or-site-page")
    of = facts((ONE, page), check(item(ONE, on=date(2025, 4, 30)), item(page)))

    standing = stand(of)

    assert (standing.checked_on, standing.due_on) == (date(2025, 4, 30), date(2026, 4, 30))


@pytest.mark.parametrize(
    ("plan", "due_on"),
    [
        ({}, "2027-03-31"),
        ({"sheet": Interval(6, "month")}, "2026-09-30"),
        ({"section": Interval(14, "day")}, "2026-04-14"),
        ({"sheet": Interval(6, "month"), "section": Interval(1, "month")}, "2026-04-30"),
        ({"sheet": Interval(1, "month"), "section": Interval(6, "month")}, "2026-04-30"),
        ({"sheet": Interval(5, "year"), "section": Interval(24, "month")}, "2027-03-31"),
        ({"review_by": (date(2026, 5, 1),)}, "2026-05-01"),
        ({"review_by": (date(2030, 5, 1),)}, "2027-03-31"),
        ({"review_by": (date(2030, 5, 1), date(2026, 5, 1))}, "2026-05-01"),
        ({"review_by": (date(2026, 5, 1),), "section": Interval(14, "day")}, "2026-04-14"),
    ],
)
def test_intervals_of_sheet_and_section_and_a_fixed_day_only_bring_the_date_forward(
    plan: dict[str, Any], due_on: str
) -> None:
    of = replace(FRESH, plan=Plan(staleness.DEFAULT_INTERVALS, **plan))

    assert stand(of).due_on == date.fromisoformat(due_on)


@given(
    st.sampled_from(["sheet", "section"]),
    st.builds(Interval, st.integers(1, 60), st.sampled_from(get_args(Unit))),
)
def test_no_interval_of_sheet_or_section_puts_a_check_off(whose: str, interval: Interval) -> None:
    longer: dict[str, Any] = {whose: interval}

    due_on = stand(replace(FRESH, plan=Plan(staleness.DEFAULT_INTERVALS, **longer))).due_on

    assert due_on is not None
    assert due_on <= LAST_GOOD_DAY


def test_a_check_on_the_fixed_day_or_after_it_has_met_it() -> None:
    def due_on(fixed: date) -> date | None:
        return stand(
            replace(FRESH, plan=Plan(staleness.DEFAULT_INTERVALS, review_by=(fixed,)))
        ).due_on

    assert due_on(CHECKED + timedelta(days=1)) == CHECKED + timedelta(days=1)
    assert due_on(CHECKED) == LAST_GOOD_DAY
    assert due_on(date(2020, 1, 1)) == LAST_GOOD_DAY


def test_a_check_in_part_does_not_meet_the_fixed_day() -> None:
    fixed = Plan(staleness.DEFAULT_INTERVALS, review_by=(date(2026, 4, 1),))
    of = facts((ONE, TWO), checked(ONE, TWO), checked(ONE, on=date(2026, 4, 5)), plan=fixed)

    assert (stand(of).state, stand(of).due_on) == ("overdue", date(2026, 4, 1))


def test_a_fixed_day_that_was_met_does_not_hide_the_next() -> None:
    of = replace(
        FRESH,
        plan=Plan(staleness.DEFAULT_INTERVALS, review_by=(date(2026, 3, 1), date(2026, 7, 1))),
    )

    assert stand(of).due_on == date(2026, 7, 1)


def test_what_was_never_checked_has_no_day_on_which_it_is_due() -> None:
    plan = Plan(
        staleness.DEFAULT_INTERVALS, sheet=Interval(1, "day"), review_by=(date(2020, 1, 1),)
    )

    standing = stand(facts((ONE,), plan=plan))

    assert (standing.checked_on, standing.due_on) == (None, None)


def test_a_section_without_sources_is_due_only_by_a_plan() -> None:
    assert stand(facts((), checked())).due_on is None
    planned = Plan(staleness.DEFAULT_INTERVALS, section=Interval(1, "month"))
    assert stand(facts((), checked(), plan=planned)).due_on == date(2026, 4, 30)


def test_the_next_day_is_told_beforehand() -> None:
    page = cite(2, kind="news")

    assert staleness.next_due_on(facts((ONE, page)), checked_on=date(2026, 11, 30)) == date(
        2027, 2, 28
    )
    assert staleness.next_due_on(facts(()), checked_on=CHECKED) is None
    planned = Plan(staleness.DEFAULT_INTERVALS, sheet=Interval(1, "month"))
    assert staleness.next_due_on(facts((), plan=planned), checked_on=CHECKED) == date(2026, 4, 30)


def test_the_day_told_beforehand_is_the_day_after_the_check() -> None:
    page = cite(2, kind="news")
    fixed = Plan(staleness.DEFAULT_INTERVALS, review_by=(date(2026, 3, 1), date(2026, 5, 1)))
    before = facts((ONE, page), plan=fixed)
    after = replace(before, checks=(checked(ONE, page),))

    assert staleness.next_due_on(before, checked_on=CHECKED) == stand(after).due_on


# ---- states ----


def test_a_section_checked_with_all_its_sources_is_fresh() -> None:
    standing = stand(FRESH)

    assert (standing.state, standing.reasons) == ("fresh", ())
    assert standing.checked_on == CHECKED
    assert standing.covers_text


@pytest.mark.parametrize("outcome", ["confirmed", "corrected"])
@pytest.mark.parametrize("found", ["supports", "supports-partly"])
def test_a_check_confirms_whether_the_text_was_right_or_was_put_right(
    outcome: str, found: str
) -> None:
    assert stand(facts((ONE,), check(item(ONE, found), outcome=outcome))).state == "fresh"


#: What makes each reason hold, alone or with another. Without any the section is fresh.
HOLDS: dict[str, dict[str, Any]] = {
    "retired": {"retired": True},
    "disputed": {"disputes": 1},
    "unsourced": {"role": "background"},
    "never-checked": {"confirmations": 0},
    "edited-since-check": {"text": OTHER_TEXT},
    "overdue": {"today": LAST_GOOD_DAY + timedelta(days=1)},
    "due-soon": {"today": LAST_GOOD_DAY},
}

#: Reasons that exclude each other: nothing is edited or due that was never checked.
APART = (
    {"never-checked", "edited-since-check"},
    {"never-checked", "overdue"},
    {"never-checked", "due-soon"},
    {"overdue", "due-soon"},
)


def holding(*reasons: str) -> Standing:
    """A section of which exactly these reasons hold."""
    how: dict[str, Any] = {
        "retired": False,
        "disputes": 0,
        "role": "supports",
        "confirmations": 1,
        "text": TEXT,
        "today": TODAY,
    }
    for reason in reasons:
        how |= HOLDS[reason]
    cited = cite(1, role=how["role"])
    checks = [checked(cited, text=how["text"])] * how["confirmations"]
    disputes = [check(outcome="disputed")] * how["disputes"]
    return stand(facts((cited,), *checks, *disputes), today=how["today"], retired=how["retired"])


def test_each_state_has_its_turn() -> None:
    assert (*HOLDS, "fresh") == staleness.STATES


@pytest.mark.parametrize("reason", HOLDS)
def test_a_reason_that_holds_alone_is_the_state(reason: str) -> None:
    standing = holding(reason)

    assert (standing.state, codes(standing)) == (reason, [reason])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (first, second)
        for place, first in enumerate(HOLDS)
        for second in list(HOLDS)[place + 1 :]
        if {first, second} not in APART
    ],
)
def test_of_two_reasons_the_more_pressing_is_the_state_and_both_are_told(
    first: str, second: str
) -> None:
    standing = holding(second, first)

    assert (standing.state, codes(standing)) == (first, [first, second])
    assert standing.has(second)  # type: ignore[arg-type]


def test_all_reasons_that_can_hold_together_are_told_the_most_pressing_first() -> None:
    standing = holding("overdue", "edited-since-check", "unsourced", "disputed", "retired")

    assert codes(standing) == [
        "retired",
        "disputed",
        "unsourced",
        "edited-since-check",
        "overdue",
    ]


def test_a_reason_that_does_not_hold_is_not_told() -> None:
    assert not any(stand(FRESH).has(code) for code in staleness.STATES)


@pytest.mark.parametrize("reason", HOLDS)
def test_every_reason_is_a_sentence(reason: str) -> None:
    (told,) = holding(reason).reasons

    assert told.sentence[0].isupper()
    assert told.sentence.endswith(".")


# ---- unsourced, never checked ----


@pytest.mark.parametrize("role", Citation.Role.values[1:])
def test_without_a_citation_that_supports_it_a_section_is_unsourced(role: str) -> None:
    other = cite(1, role=role)

    assert stand(facts((other,), checked(other))).state == "unsourced"
    assert stand(facts((other, TWO), checked(other, TWO))).state == "fresh"


def test_a_section_that_cites_nothing_is_unsourced_and_never_checked() -> None:
    standing = stand(facts(()))

    assert codes(standing) == ["unsourced", "never-checked"]
    assert (standing.checked_on, standing.covers_text) == (None, False)


def test_a_section_that_cites_nothing_can_be_checked_and_stays_unsourced() -> None:
    standing = stand(facts((), checked()))

    assert codes(standing) == ["unsourced"]
    assert (standing.checked_on, standing.covers_text) == (CHECKED, True)


def test_a_section_that_cites_nothing_is_edited_when_its_text_changes() -> None:
    assert codes(stand(facts((), checked(text=OTHER_TEXT)))) == ["unsourced", "edited-since-check"]


def test_a_check_without_sources_does_not_cover_those_cited_since() -> None:
    assert stand(facts((ONE,), checked())).state == "never-checked"


def test_without_a_confirming_check_a_section_is_never_checked() -> None:
    assert stand(facts((ONE,))).state == "never-checked"
    assert stand(facts((ONE,), check(outcome="disputed", text=OTHER_TEXT))).state == "never-checked"


def test_what_a_disputing_check_found_in_support_confirms_nothing() -> None:
    standing = stand(facts((ONE,), checked(ONE, outcome="disputed")))

    assert codes(standing) == ["disputed", "never-checked"]


# ---- sources that were not reached ----


UNREACHED = check(item(ONE, "unreachable", on=TODAY), outcome="source-unreachable", on=TODAY)


def test_a_check_that_reached_no_source_confirms_nothing() -> None:
    assert stand(facts((ONE,), UNREACHED)).state == "never-checked"


def test_a_check_that_reached_no_source_moves_no_date() -> None:
    standing = stand(facts((ONE,), checked(ONE), UNREACHED))

    assert (standing.state, standing.checked_on) == ("fresh", CHECKED)


def test_a_check_that_reached_no_source_clears_no_dispute() -> None:
    disputed = check(outcome="disputed")
    against = check(item(ONE, "contradicts"), outcome="disputed")

    assert stand(facts((ONE,), checked(ONE), disputed, UNREACHED)).state == "disputed"
    assert stand(facts((ONE,), checked(ONE), against, UNREACHED)).state == "disputed"


def test_a_source_not_reached_in_a_confirming_check_keeps_its_dispute_and_its_date() -> None:
    against = check(item(ONE, "contradicts"), item(TWO))
    partly = check(item(ONE, "unreachable", on=TODAY), item(TWO, on=TODAY), on=TODAY)

    assert stand(facts((ONE, TWO), against, partly)).state == "disputed"
    assert stand(facts((ONE, TWO), checked(ONE, TWO), partly)).checked_on == CHECKED


def test_a_source_that_no_check_has_reached_yet_is_named() -> None:
    standing = stand(facts((ONE, TWO), check(item(ONE), item(TWO, "unreachable"))))

    assert standing.state == "edited-since-check"
    assert standing.reasons[0].sentence == "Not checked yet with “Source 2”."


# ---- edited since ----


def test_a_changed_text_is_edited_since_its_check() -> None:
    standing = stand(facts((ONE,), checked(ONE, text=OTHER_TEXT)))

    assert standing.state == "edited-since-check"
    assert not standing.covers_text
    assert "31 March 2026" in standing.reasons[0].sentence


def test_a_changed_text_keeps_the_dates_of_its_check() -> None:
    standing = stand(facts((ONE,), checked(ONE, text=OTHER_TEXT)))

    assert (standing.checked_on, standing.due_on) == (CHECKED, LAST_GOOD_DAY)


def test_a_changed_text_whose_check_is_overdue_has_both_reasons() -> None:
    standing = stand(facts((ONE,), checked(ONE, text=OTHER_TEXT)), today=date(2027, 4, 1))

    assert codes(standing) == ["edited-since-check", "overdue"]


def test_a_text_that_came_back_is_covered_again() -> None:
    older, newer = checked(ONE, on=EARLIER), checked(ONE, text=OTHER_TEXT)

    standing = stand(facts((ONE,), older, newer))

    assert (standing.state, standing.checked_on) == ("fresh", EARLIER)
    assert standing.covers_text


def test_a_source_cited_since_the_check_makes_it_edited() -> None:
    standing = stand(facts((ONE, TWO), checked(ONE)))

    assert standing.state == "edited-since-check"
    assert not standing.covers_text
    assert standing.reasons[0].sentence == "Not checked yet with “Source 2”."


@pytest.mark.parametrize(
    ("source", "locator"), [("leaflet", "page 2"), ("guide", "page 1"), ("guide", "")]
)
def test_a_citation_given_another_source_or_place_since_counts_as_not_looked_at(
    source: str, locator: str
) -> None:
    before = cite(1, use_hash=staleness.use_hash("leaflet", "page 1"))
    swapped = replace(before, use_hash=staleness.use_hash(source, locator))

    assert stand(facts((before,), checked(before))).state == "fresh"
    assert stand(facts((swapped,), checked(before))).state == "never-checked"
    assert stand(facts((swapped, TWO), checked(before, TWO))).state == "edited-since-check"


def test_a_use_is_a_source_and_a_place_and_not_their_letters() -> None:
    assert staleness.use_hash("ab", "c") != staleness.use_hash("a", "bc")
    assert staleness.use_hash("ab", "") != staleness.use_hash("a", "b")


def test_a_citation_whose_title_or_kind_changed_is_still_checked() -> None:
    renamed = replace(ONE, title="The source, corrected", kind="news")

    assert stand(facts((renamed,), checked(ONE))).state == "fresh"


def test_a_check_older_than_the_record_of_uses_still_counts() -> None:
    old = Item(ONE.id, "", "supports", CHECKED)

    assert stand(facts((ONE,), check(old))).state == "fresh"
    against = Item(ONE.id, "", "contradicts", CHECKED)
    assert stand(facts((ONE,), checked(ONE), check(against))).state == "disputed"


def test_a_source_taken_away_since_does_not_unsettle_the_check() -> None:
    assert stand(facts((ONE,), checked(ONE, TWO))).state == "fresh"


# ---- checks in part ----


def test_the_date_is_that_of_the_source_looked_at_longest_ago() -> None:
    of = facts((ONE, TWO), checked(ONE, TWO), checked(TWO, on=date(2026, 4, 1)))

    assert stand(of).checked_on == CHECKED


def test_the_days_on_which_sources_were_seen_count_and_not_that_of_the_check() -> None:
    of = facts((ONE, TWO), check(item(ONE, on=EARLIER), item(TWO), on=TODAY))

    assert stand(of).checked_on == EARLIER


def test_checks_in_part_refresh_the_whole_once_they_have_looked_at_all() -> None:
    first, second = date(2026, 4, 1), date(2026, 4, 3)
    of = facts((ONE, TWO), checked(ONE, TWO), checked(TWO, on=first), checked(ONE, on=second))

    assert stand(of).checked_on == first


def test_an_older_check_recorded_later_moves_no_date_back() -> None:
    of = facts((ONE,), checked(ONE, on=EARLIER), checked(ONE))

    assert stand(of).checked_on == CHECKED


def test_a_check_in_part_does_not_refresh_the_whole() -> None:
    changed = facts((ONE, TWO), checked(ONE, TWO, text=OTHER_TEXT), checked(ONE, on=TODAY))

    standing = stand(changed)

    assert (standing.state, standing.checked_on) == ("edited-since-check", CHECKED)
    assert "“Source 2”" in standing.reasons[0].sentence


def test_a_check_in_part_leaves_the_section_overdue() -> None:
    last_year = date(2025, 4, 1)
    of = facts((ONE, TWO), checked(ONE, TWO, on=last_year), checked(ONE, on=TODAY))

    assert (stand(of).state, stand(of).checked_on) == ("overdue", last_year)


# ---- disputes ----


@pytest.mark.parametrize("outcome", sorted(staleness.AGAINST))
def test_a_source_that_the_section_needs_and_that_is_against_it_disputes_it(outcome: str) -> None:
    against = check(item(ONE, outcome), item(TWO), on=TODAY)

    standing = stand(facts((ONE, TWO), checked(ONE, TWO), against))

    assert standing.state == "disputed"
    assert "“Source 1”" in standing.reasons[0].sentence
    assert "10 April 2026" in standing.reasons[0].sentence


@pytest.mark.parametrize("outcome", sorted(staleness.AGAINST))
def test_a_source_that_the_section_does_not_need_disputes_nothing(outcome: str) -> None:
    not_needed = replace(ONE, required=False)
    against = check(item(ONE, outcome, on=TODAY), item(TWO, on=TODAY), on=TODAY)

    standing = stand(facts((not_needed, TWO), against))

    # It was looked at like the other: nothing was edited since.
    assert (standing.state, standing.checked_on) == ("fresh", TODAY)


def test_a_source_that_the_section_has_come_to_need_disputes_it() -> None:
    against = check(item(ONE, "contradicts"), item(TWO))

    assert stand(facts((replace(ONE, required=False), TWO), against)).state == "fresh"
    assert stand(facts((ONE, TWO), against)).state == "disputed"


def test_a_source_swapped_since_it_was_against_the_text_disputes_nothing() -> None:
    swapped = replace(ONE, use_hash="another source")
    against = check(item(ONE, "contradicts"), item(TWO))

    assert stand(facts((swapped, TWO), against)).state == "edited-since-check"


def test_a_source_taken_away_since_it_was_against_the_text_disputes_nothing() -> None:
    against = check(item(ONE, "contradicts"), item(TWO))

    assert stand(facts((TWO,), against)).state == "fresh"


def test_a_later_look_at_the_source_ends_its_dispute() -> None:
    against, later = check(item(ONE, "contradicts")), checked(ONE, on=TODAY)

    assert stand(facts((ONE,), against, later)).state == "fresh"


def test_a_later_look_at_another_source_does_not_end_its_dispute() -> None:
    against = check(item(ONE, "contradicts"), item(TWO), outcome="disputed")

    assert stand(facts((ONE, TWO), against, checked(TWO, on=TODAY))).state == "disputed"


def test_a_dispute_is_of_the_text_that_it_saw() -> None:
    disputed = check(item(ONE, "contradicts"), outcome="disputed", text=OTHER_TEXT, on=TODAY)

    assert stand(facts((ONE,), checked(ONE), disputed)).state == "fresh"


def test_a_disputed_text_that_comes_back_is_disputed_again() -> None:
    disputed = check(outcome="disputed", on=EARLIER)
    other = checked(ONE, text=OTHER_TEXT)

    assert stand(facts((ONE,), disputed, other)).state == "disputed"


def test_a_later_confirmation_ends_a_dispute() -> None:
    disputed = check(outcome="disputed", on=date(2026, 3, 1))

    assert stand(facts((ONE,), disputed, checked(ONE))).state == "fresh"


def test_a_dispute_leaves_the_dates_as_they_were() -> None:
    standing = stand(facts((ONE,), checked(ONE), check(outcome="disputed", on=TODAY)))

    assert (standing.checked_on, standing.due_on) == (CHECKED, LAST_GOOD_DAY)


def test_what_bots_do_not_get_is_retired_whatever_else_holds() -> None:
    standing = stand(facts(()), retired=True)

    assert codes(standing) == ["retired", "unsourced", "never-checked"]


# ---- what an export may state ----


def test_the_day_of_a_check_is_stated_where_all_is_covered() -> None:
    assert covered(FRESH) == CHECKED
    assert covered(facts((), checked())) == CHECKED
    assert covered(facts((ONE, TWO), checked(ONE, TWO), checked(ONE, on=TODAY))) == CHECKED


@pytest.mark.parametrize(
    "of",
    [
        facts(()),
        facts((ONE,)),
        facts((ONE,), checked(ONE, text=OTHER_TEXT)),
        facts((ONE, TWO), checked(ONE)),
        facts((replace(ONE, use_hash="another source"),), checked(ONE)),
        facts((ONE,), UNREACHED),
        facts((ONE,), checked(ONE), check(outcome="disputed")),
        facts((ONE,), checked(ONE), check(item(ONE, "not-found"))),
    ],
)
def test_no_day_is_stated_of_what_is_not_covered_or_is_disputed(of: SectionFacts) -> None:
    assert covered(of) is None


def test_the_day_is_stated_however_long_ago_it_was() -> None:
    assert covered(facts((ONE,), checked(ONE, on=date(1999, 12, 31)))) == date(1999, 12, 31)


# ---- every day, exactly one state ----

AGES = ("fresh", "due-soon", "overdue")


@pytest.mark.parametrize("kind", sorted(staleness.DEFAULT_INTERVALS))
def test_on_every_day_around_its_check_a_section_is_in_one_state_and_only_ages(kind: str) -> None:
    of = cite(1, kind=kind)
    days = [CHECKED + timedelta(days=number) for number in range(-400, 401)]

    states = [stand(facts((of,), checked(of)), today=day).state for day in days]

    ages = [AGES.index(state) for state in states]
    assert ages == sorted(ages)
    due_on = staleness.DEFAULT_INTERVALS[kind].after(CHECKED)
    assert [day for day, state in zip(days, states, strict=True) if state == "overdue"] == [
        day for day in days if day > due_on
    ]


cited_somehow = st.builds(
    cite,
    st.integers(1, 3),
    role=st.sampled_from(Citation.Role.values),
    kind=st.sampled_from(sorted(staleness.DEFAULT_INTERVALS)),
    required=st.booleans(),
)
checks_somehow = st.builds(
    CheckFacts,
    st.sampled_from([TEXT, OTHER_TEXT]),
    st.dates(date(2024, 1, 1), TODAY),
    st.sampled_from(Check.Outcome.values),
    st.lists(
        st.builds(
            Item,
            st.integers(1, 3),
            st.sampled_from(["", "use-1", "use-2", "use-3", "another"]),
            st.sampled_from(CheckItem.Outcome.values),
            st.dates(date(2024, 1, 1), TODAY),
        ),
        max_size=3,
        unique_by=lambda item: item.citation_id,
    ).map(tuple),
)
intervals_somehow = st.none() | st.builds(
    Interval, st.integers(1, 40), st.sampled_from(get_args(Unit))
)
facts_somehow = st.builds(
    SectionFacts,
    st.lists(cited_somehow, max_size=3, unique_by=lambda cited: cited.id).map(tuple),
    st.lists(checks_somehow, max_size=4)
    .map(lambda checks: sorted(checks, key=lambda check: check.checked_on))
    .map(tuple),
    st.builds(
        Plan,
        st.just(staleness.DEFAULT_INTERVALS),
        intervals_somehow,
        intervals_somehow,
        st.lists(st.dates(date(2024, 1, 1), date(2028, 1, 1)), max_size=2).map(tuple),
    ),
)


@given(of=facts_somehow, days=st.integers(-400, 400), retired=st.booleans())
def test_whatever_was_recorded_a_section_is_in_one_state_its_first_reason(
    of: SectionFacts, days: int, retired: bool
) -> None:
    standing = stand(of, today=TODAY + timedelta(days=days), retired=retired)

    told = codes(standing)
    assert standing.state == [*told, "fresh"][0]
    assert told == sorted(set(told), key=staleness.STATES.index)  # type: ignore[arg-type]
    assert not any(pair <= set(told) for pair in APART)
    assert standing.has("never-checked") == (standing.checked_on is None)


@given(of=facts_somehow, days=st.integers(-400, 400), later=st.integers(0, 400))
def test_days_alone_change_nothing_but_how_near_the_last_good_day_is(
    of: SectionFacts, days: int, later: int
) -> None:
    day = TODAY + timedelta(days=days)
    before, after = stand(of, today=day), stand(of, today=day + timedelta(days=later))

    def age(standing: Standing) -> int:
        return standing.has("due-soon") + 2 * standing.has("overdue")

    assert age(before) <= age(after)
    assert replace(before, state="fresh", reasons=()) == replace(after, state="fresh", reasons=())
    assert set(codes(before)) - set(AGES) == set(codes(after)) - set(AGES)


@given(of=facts_somehow)
def test_a_day_is_stated_only_of_a_text_that_stands_checked_and_undisputed(
    of: SectionFacts,
) -> None:
    standing, stated = stand(of), covered(of)

    assert (stated is not None) == (standing.covers_text and not standing.has("disputed"))
    assert stated in {None, standing.checked_on}
