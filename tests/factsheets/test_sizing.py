"""Counting without a tokeniser errs on the safe side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from factsheets import sizing
from factsheets.snapshot import BotSnapshot

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
