"""The state of a section: what stands between its text and the checks that cover it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factsheets import staleness
from factsheets.staleness import CheckFacts, Cited, Interval, Item, Plan, SectionFacts, Standing

CHECKED = date(2026, 3, 31)
TODAY = date(2026, 4, 10)
TEXT, OTHER_TEXT = "1" * 64, "2" * 64


def cite(number: int = 1, **values: object) -> Cited:
    return replace(
        Cited(number, f"use-{number}", f"Source {number}", "own-policy", "supports", True),
        **values,  # type: ignore[arg-type]
    )


def item(of: Cited, outcome: str = "supports", *, on: date = CHECKED) -> Item:
    return Item(of.id, of.use_hash, outcome, on)


def check(
    *items: Item, outcome: str = "confirmed", text: str = TEXT, on: date = CHECKED
) -> CheckFacts:
    return CheckFacts(text, on, outcome, items)


def facts(
    citations: tuple[Cited, ...], *checks: CheckFacts, plan: Plan | None = None
) -> SectionFacts:
    return SectionFacts(citations, checks, plan or Plan(staleness.DEFAULT_INTERVALS))


def stand(of: SectionFacts, *, today: date = TODAY, retired: bool = False) -> Standing:
    return staleness.standing(of, text_hash=TEXT, today=today, is_retired=retired)


def codes(of: Standing) -> list[str]:
    return [reason.code for reason in of.reasons]


ONE, TWO = cite(1), cite(2)
FRESH = facts((ONE,), check(item(ONE)))


# ---- intervals and days ----


@pytest.mark.parametrize(
    ("text", "checked_on", "last_good_day"),
    [
        ("1 month", "2026-01-31", "2026-02-28"),
        ("1 month", "2028-01-31", "2028-02-29"),
        ("6 months", "2026-08-31", "2027-02-28"),
        ("6 months", "2027-08-31", "2028-02-29"),
        ("12 months", "2028-02-29", "2029-02-28"),
        ("1 year", "2028-02-29", "2029-02-28"),
        ("3 months", "2026-11-30", "2027-02-28"),
        # From the check itself, never from a day that was clamped before.
        ("2 months", "2026-01-31", "2026-03-31"),
        ("14 days", "2026-12-20", "2027-01-03"),
        ("36 months", "2026-03-31", "2029-03-31"),
    ],
)
def test_an_interval_is_added_in_calendar_units_and_clamped_to_the_months_end(
    text: str, checked_on: str, last_good_day: str
) -> None:
    day = Interval.parse(text).after(date.fromisoformat(checked_on))

    assert day == date.fromisoformat(last_good_day)


@pytest.mark.parametrize("text", ["1 day", "14 days", "1 month", "6 months", "1 year", "2 years"])
def test_an_interval_is_written_as_it_was_read(text: str) -> None:
    assert str(Interval.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "6", "months", "0 months", "-1 day", "1.5 years", "6 weeks", "6 months ", "six days"],
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no interval"):
        Interval.parse(text)


def test_the_last_good_day_is_still_good_and_the_next_is_not() -> None:
    last_good_day = date(2027, 3, 31)

    assert stand(FRESH, today=last_good_day).state == "due-soon"
    assert "due today" in stand(FRESH, today=last_good_day).reasons[0].sentence
    late = stand(FRESH, today=last_good_day + timedelta(days=1))
    assert (late.state, late.due_on) == ("overdue", last_good_day)
    assert "1 day ago" in late.reasons[0].sentence


@pytest.mark.parametrize(
    ("interval_days", "days"), [(7, 3), (18, 3), (30, 5), (90, 15), (180, 30), (365, 30)]
)
def test_a_check_is_due_soon_a_sixth_of_its_interval_before(interval_days: int, days: int) -> None:
    assert staleness.due_soon_days(interval_days) == days


def test_due_soon_begins_on_its_day() -> None:
    # A year's interval: thirty days before 31 March 2027.
    assert stand(FRESH, today=date(2027, 2, 28)).state == "fresh"
    assert stand(FRESH, today=date(2027, 3, 1)).state == "due-soon"


def test_the_first_source_to_become_due_makes_the_section_due() -> None:
    page = cite(2, kind="museum-or-site-page")
    of = facts((ONE, page), check(item(ONE), item(page)))

    assert stand(of).due_on == date(2026, 6, 30)


def test_intervals_of_sheet_and_section_and_a_fixed_day_only_bring_the_date_forward() -> None:
    kinds = staleness.DEFAULT_INTERVALS

    def due(**plan: object) -> date | None:
        return stand(replace(FRESH, plan=Plan(kinds, **plan))).due_on  # type: ignore[arg-type]

    assert due() == date(2027, 3, 31)
    assert due(sheet=Interval(6, "month")) == date(2026, 9, 30)
    assert due(section=Interval(14, "day")) == date(2026, 4, 14)
    assert due(sheet=Interval(5, "year"), section=Interval(24, "month")) == date(2027, 3, 31)
    assert due(review_by=date(2026, 5, 1)) == date(2026, 5, 1)
    assert due(review_by=date(2030, 5, 1)) == date(2027, 3, 31)


def test_what_was_never_checked_has_no_day_on_which_it_is_due() -> None:
    plan = Plan(staleness.DEFAULT_INTERVALS, review_by=date(2020, 1, 1))

    assert stand(facts((ONE,), plan=plan)).due_on is None


def test_the_next_day_is_told_beforehand() -> None:
    page = cite(2, kind="news")

    assert staleness.next_due_on(facts((ONE, page)), checked_on=date(2026, 11, 30)) == date(
        2027, 2, 28
    )
    assert staleness.next_due_on(facts(()), checked_on=CHECKED) is None


# ---- states ----


def test_a_section_checked_with_all_its_sources_is_fresh() -> None:
    standing = stand(FRESH)

    assert (standing.state, standing.reasons) == ("fresh", ())
    assert standing.checked_on == CHECKED
    assert standing.covers_text


def test_what_bots_do_not_get_is_retired_whatever_else_holds() -> None:
    standing = stand(facts(()), retired=True)

    assert standing.state == "retired"
    assert codes(standing) == ["retired", "unsourced", "never-checked"]


@pytest.mark.parametrize("role", ["background", "qualifies", "contradicts"])
def test_without_a_citation_that_supports_it_a_section_is_unsourced(role: str) -> None:
    other = cite(1, role=role)

    assert stand(facts((other,), check(item(other)))).state == "unsourced"
    assert stand(facts((other, TWO), check(item(other), item(TWO)))).state == "fresh"


def test_without_a_confirming_check_a_section_is_never_checked() -> None:
    assert stand(facts((ONE,))).state == "never-checked"
    assert stand(facts((ONE,), check(outcome="disputed", text=OTHER_TEXT))).state == "never-checked"


def test_a_check_that_reached_no_source_says_nothing() -> None:
    unreachable = check(item(ONE, "unreachable"), outcome="source-unreachable", on=TODAY)

    assert stand(facts((ONE,), unreachable)).state == "never-checked"
    assert stand(facts((ONE,), check(item(ONE)), unreachable)).checked_on == CHECKED
    disputed = check(outcome="disputed")
    assert stand(facts((ONE,), check(item(ONE)), disputed, unreachable)).state == "disputed"


def test_a_changed_text_is_edited_since_its_check() -> None:
    standing = stand(facts((ONE,), check(item(ONE), text=OTHER_TEXT)))

    assert standing.state == "edited-since-check"
    assert not standing.covers_text
    assert "31 March 2026" in standing.reasons[0].sentence


def test_a_text_that_came_back_is_covered_again() -> None:
    older = check(item(ONE), on=date(2026, 1, 1))
    older = replace(older, items=(item(ONE, on=date(2026, 1, 1)),))
    newer = check(item(ONE), text=OTHER_TEXT)

    standing = stand(facts((ONE,), older, newer))

    assert (standing.state, standing.checked_on) == ("fresh", date(2026, 1, 1))


def test_a_source_cited_since_the_check_makes_it_edited() -> None:
    standing = stand(facts((ONE, TWO), check(item(ONE))))

    assert standing.state == "edited-since-check"
    assert "“Source 2”" in standing.reasons[0].sentence


def test_a_citation_given_another_source_since_counts_as_not_looked_at() -> None:
    swapped = replace(ONE, use_hash="another source")

    assert stand(facts((swapped,), check(item(ONE)))).state == "never-checked"
    assert stand(facts((swapped, TWO), check(item(ONE), item(TWO)))).state == "edited-since-check"


def test_a_check_older_than_the_record_of_uses_still_counts() -> None:
    old = Item(ONE.id, "", "supports", CHECKED)

    assert stand(facts((ONE,), check(old))).state == "fresh"


def test_a_source_taken_away_since_does_not_unsettle_the_check() -> None:
    assert stand(facts((ONE,), check(item(ONE), item(TWO)))).state == "fresh"


def test_the_date_is_that_of_the_source_looked_at_longest_ago() -> None:
    later = date(2026, 4, 1)
    of = facts((ONE, TWO), check(item(ONE), item(TWO)), check(item(TWO, on=later), on=later))

    assert stand(of).checked_on == CHECKED


def test_a_check_in_part_does_not_refresh_the_whole() -> None:
    changed = facts(
        (ONE, TWO),
        check(item(ONE), item(TWO), text=OTHER_TEXT),
        check(item(ONE, on=TODAY), on=TODAY),
    )

    standing = stand(changed)

    assert standing.state == "edited-since-check"
    assert "“Source 2”" in standing.reasons[0].sentence


@pytest.mark.parametrize("outcome", ["contradicts", "not-found"])
def test_a_source_that_the_section_needs_and_that_is_against_it_disputes_it(outcome: str) -> None:
    against = check(item(ONE, outcome), item(TWO), on=TODAY)

    assert stand(facts((ONE, TWO), check(item(ONE), item(TWO)), against)).state == "disputed"
    not_needed = replace(ONE, required=False)
    assert stand(facts((not_needed, TWO), check(item(ONE), item(TWO)), against)).state == "fresh"


def test_a_later_look_at_the_source_ends_its_dispute() -> None:
    against, later = check(item(ONE, "contradicts")), check(item(ONE, on=TODAY), on=TODAY)

    assert stand(facts((ONE,), against, later)).state == "fresh"


def test_a_dispute_is_of_the_text_that_it_saw() -> None:
    disputed = check(outcome="disputed", text=OTHER_TEXT, on=TODAY)

    assert stand(facts((ONE,), check(item(ONE)), disputed)).state == "fresh"


def test_a_later_confirmation_ends_a_dispute() -> None:
    disputed = check(outcome="disputed", on=date(2026, 3, 1))

    assert stand(facts((ONE,), disputed, check(item(ONE)))).state == "fresh"


def test_every_reason_stands_beside_the_state_the_most_pressing_first() -> None:
    of = facts(
        (cite(1, role="background"),),
        check(item(ONE), text=OTHER_TEXT, on=date(2024, 1, 1)),
        check(outcome="disputed", on=date(2024, 2, 1)),
    )
    of = replace(
        of, checks=(replace(of.checks[0], items=(item(ONE, on=date(2024, 1, 1)),)), of.checks[1])
    )

    standing = stand(of)

    assert standing.state == "disputed"
    assert codes(standing) == ["disputed", "unsourced", "edited-since-check", "overdue"]
    assert codes(standing) == sorted(codes(standing), key=staleness.STATES.index)  # type: ignore[arg-type]


# ---- what an export may state ----


def test_the_day_of_a_check_is_stated_only_where_all_is_covered() -> None:
    def covered(of: SectionFacts) -> date | None:
        return staleness.covered_on(of, text_hash=TEXT)

    assert covered(FRESH) == CHECKED
    assert covered(facts((), check())) == CHECKED
    assert covered(facts(())) is None
    assert covered(facts((ONE,), check(item(ONE), text=OTHER_TEXT))) is None
    assert covered(facts((ONE, TWO), check(item(ONE)))) is None
    assert covered(facts((ONE,), check(item(ONE)), check(outcome="disputed"))) is None


# ---- every day, exactly one state ----


@given(
    days=st.integers(-400, 400),
    edited=st.booleans(),
    disputed=st.booleans(),
    cited=st.booleans(),
    kind=st.sampled_from(sorted(staleness.DEFAULT_INTERVALS)),
)
def test_on_every_day_a_section_is_in_one_state_and_it_is_its_first_reason(
    days: int, edited: bool, disputed: bool, cited: bool, kind: str
) -> None:
    of = cite(1, kind=kind)
    checks = [check(item(of), text=OTHER_TEXT if edited else TEXT)]
    checks += [check(outcome="disputed", on=TODAY)] * disputed
    today = CHECKED + timedelta(days=days)

    standing = stand(facts((of,) * cited, *checks), today=today)

    assert standing.state in staleness.STATES
    assert standing.state == [*codes(standing), "fresh"][0]
    assert codes(standing).count("overdue") + codes(standing).count("due-soon") <= 1


@given(start=st.integers(0, 1_500), later=st.integers(0, 400))
def test_as_days_pass_a_check_only_ages(start: int, later: int) -> None:
    ages = ("fresh", "due-soon", "overdue")
    first = stand(FRESH, today=CHECKED + timedelta(days=start))
    second = stand(FRESH, today=CHECKED + timedelta(days=start + later))

    assert ages.index(first.state) <= ages.index(second.state)
