"""Counting without a tokeniser errs on the safe side; two ratios advise how a sheet is delivered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from factsheets import sizing
from factsheets.sizing import Count, Facts, Thresholds
from factsheets.snapshot import BotSnapshot, RuleSnapshot

BOT = BotSnapshot(
    slug="guide",
    provider="offline",
    model="",
    effort="",
    thinking="",
    max_tokens=1024,
    endpoint="",
    context_window=10_000,
    reserve_history=1_000,
    reserve_question=200,
    reserve_retrieval=30,
    reserve_output=4,
)


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (2, 1), (3, 2), (28, 10)])
def test_a_text_has_a_token_for_every_2_8_characters_rounded_up(
    characters: int, tokens: int
) -> None:
    assert sizing.estimated_tokens("x" * characters) == tokens


@pytest.mark.parametrize("characters", [14, 42, 630, 11_200, 200_000])
def test_a_size_is_never_understated_and_overstated_by_a_token_at_most(characters: int) -> None:
    tokens = sizing.estimated_tokens("x" * characters)

    # 2.8 characters are 14 fifths: whole numbers, so that no rounding is in the test.
    assert tokens * 14 >= characters * 5
    assert (tokens - 2) * 14 < characters * 5


def test_characters_are_counted_and_not_bytes() -> None:
    assert sizing.estimated_tokens("🏰" * 28) == sizing.estimated_tokens("x" * 28)


def test_every_reserve_is_taken_from_the_window() -> None:
    assert sizing.usable_window(BOT) == 8_766


@pytest.mark.parametrize(
    "reserve", ["reserve_history", "reserve_question", "reserve_retrieval", "reserve_output"]
)
def test_a_larger_reserve_leaves_less(reserve: str) -> None:
    larger = replace(BOT, **{reserve: getattr(BOT, reserve) + 7})

    assert sizing.usable_window(larger) == sizing.usable_window(BOT) - 7


def test_reserves_over_the_window_leave_less_than_nothing() -> None:
    assert sizing.usable_window(replace(BOT, reserve_history=20_000)) < 0


# ---- the advice ----


def facts(**values: Any) -> Facts:
    """A sheet of 12 sections that takes 5 % of the window and is used widely."""
    start: dict[str, Any] = {
        "rules": Count(500, "exact"),
        "sheet": Count(5_000, "exact"),
        "window": 100_000,
        "sections": 12,
        "used": 10,
        "questions": 200,
        "changes_a_week": 0.2,
        "checks_a_week": 0.5,
        "readers_differ": False,
    }
    return Facts(**{**start, **values})


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        ({}, "inline"),
        ({"sheet": Count(9_999, "exact")}, "inline"),
        ({"sheet": Count(12_000, "exact")}, "inline"),
        ({"sheet": Count(12_000, "exact"), "used": 3}, "split"),
        ({"sheet": Count(12_000, "exact"), "questions": 0, "used": 0}, "ask-use"),
        ({"sheet": Count(15_000, "exact")}, "inline"),
        ({"sheet": Count(15_001, "exact")}, "split"),
        ({"sheet": Count(15_001, "exact"), "questions": 0}, "split"),
        ({"used": 4}, "inline"),
        ({"used": 3}, "split"),
        ({"used": 1, "questions": 11}, "inline"),
        ({"questions": 0, "used": 0}, "inline"),
        ({"changes_a_week": 1.0, "checks_a_week": 0.9}, "split"),
        ({"changes_a_week": 1.0, "checks_a_week": 1.0}, "inline"),
        ({"changes_a_week": 0.9, "checks_a_week": 0.0}, "inline"),
        ({"changes_a_week": None, "checks_a_week": None}, "inline"),
        ({"readers_differ": True}, "split"),
        ({"readers_differ": None}, "inline"),
        ({"window": 0}, "split"),
    ],
)
def test_size_use_change_and_readers_decide(values: dict[str, Any], advice: str) -> None:
    assert sizing.verdict(facts(**values), Thresholds()).advice == advice


def test_the_advice_names_its_figures_and_every_reason() -> None:
    found = sizing.verdict(facts(sheet=Count(20_000, "exact"), used=3), Thresholds())

    assert found.sentence == "Split it: it takes 20.0% of the usable window, more than 15%."
    assert found.reasons[1] == "200 questions touched 3 of 12 sections (25%), less than 33%."


def test_a_sheet_may_have_bounds_of_its_own() -> None:
    bounds = Thresholds(inline_below=0.02, split_from=0.04, least_used=0.9)

    assert sizing.verdict(facts(), bounds).advice == "split"


def test_what_nobody_knows_yet_is_said() -> None:
    found = sizing.verdict(facts(questions=3, used=2, readers_differ=None), Thresholds())

    said = " ".join(found.reasons)
    assert "3 questions in the period, and at least 12 are wanted" in said
    assert "Nobody has said yet whether all readers may see the same facts." in said


@pytest.mark.parametrize(
    ("count", "is_near"),
    [
        (Count(8_400, "estimate"), False),
        (Count(8_500, "estimate"), True),
        (Count(17_250, "estimate"), True),
        (Count(17_260, "estimate"), False),
        (Count(12_000, "exact"), False),
        (Count(12_000, "offline"), False),
    ],
)
def test_an_estimate_near_a_bound_is_said_to_be_one(count: Count, is_near: bool) -> None:
    found = sizing.verdict(facts(sheet=count), Thresholds())

    assert any("near a bound" in reason for reason in found.reasons) is is_near


# ---- cost ----


def test_an_inline_answer_pays_for_all_of_it_at_each_pass() -> None:
    cost = sizing.cost_inline(rules=500, sheet=4_000, question=20, passes=3)

    assert cost.plain == 3 * 4_520
    assert cost.cached == pytest.approx(3 * (450 + 20))


def test_a_split_answer_pays_for_what_was_found_and_only_rules_and_titles_are_cached() -> None:
    cost = sizing.cost_split(rules=500, titles=100, retrieved=600.0, question=20, passes=1)

    assert (cost.plain, cost.cached) == (1_220.0, pytest.approx(680.0))


# ---- rules ----


def rule(text: str, **values: Any) -> RuleSnapshot:
    return RuleSnapshot(
        **{"ruleset": "r", "key": "k", "kind": "persona", "text": text, "enabled": True, **values}
    )


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("Be kind. " * 61, "has 122 words"),
        ("Adults pay £12, children £6, families £30 and groups £5.", "holds 4 figures"),
        ("Send them to https://example.org/tickets.", "holds an address"),
        ("Write to desk@example.org.", "holds an address"),
    ],
)
def test_a_rule_that_is_long_or_reads_like_reference_is_named(text: str, sign: str) -> None:
    (remark,) = sizing.rule_remarks([rule(text), rule("Be kind.", key="other")])

    assert remark.key == "k"
    assert sign in remark.sentence


@pytest.mark.parametrize(
    "remarked",
    [
        rule("Answer in at most 90 words. Write money as £6.50 and times as 2.30 pm."),
        rule("Be kind. " * 200, enabled=False),
        rule("Send them to https://example.org/tickets.", kind="signpost"),
    ],
)
def test_a_rule_of_conduct_a_disabled_one_and_a_signpost_are_not(remarked: RuleSnapshot) -> None:
    assert sizing.rule_remarks([remarked]) == ()
