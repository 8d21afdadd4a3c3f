"""Two pictures side by side: words, moves, sources and rules, and a time limit that says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factsheets import comparing
from factsheets.comparing import Words
from factsheets.snapshot import RuleSnapshot, SheetSnapshot
from tests.factsheets.test_gate import SUPPORT, candidate, section


def sheet(**values: Any) -> SheetSnapshot:
    return candidate(**values).snapshot


def sections(*keys: str, **values: Any) -> tuple[Any, ...]:
    return tuple(section(key=key, heading=key.title(), **values) for key in keys)


def said(words: Words) -> str:
    """The text with [-what was removed-] and {+what was added+}."""
    shown = {"removed": "[-{}-]", "added": "{{+{}+}}", "": "{}"}
    return "".join(shown[piece.mark].format(piece.text) for piece in words.pieces)


def side(words: Words, left_out: str) -> str:
    return "".join(piece.text for piece in words.pieces if piece.mark != left_out)


# ---- words ----


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("Opens at ten.", "Opens at nine.", "Opens at [-ten-]{+nine+}."),
        ("Opens at ten.", "Opens at ten", "Opens at ten[-.-]"),
        ("Open", "Open daily", "Open{+ daily+}"),
        ("", "New text", "{+New text+}"),
        ("Old text", "", "[-Old text-]"),
        ("Same", "Same", "Same"),
        ("", "", ""),
        ("naïve café", "naïve cafés", "naïve [-café-]{+cafés+}"),
        ("a 👩‍🚀 b", "a 👩‍🚀 c", "a 👩‍🚀 [-b-]{+c+}"),
    ],
)
def test_words_are_compared_and_not_letters(before: str, after: str, shown: str) -> None:
    assert said(comparing.words(before, after)) == shown


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_pieces_hold_both_texts_whole(before: str, after: str) -> None:
    compared = comparing.words(before, after)

    assert side(compared, "added") == before
    assert side(compared, "removed") == after
    assert compared.changed == (before != after)


def test_more_different_words_than_there_are_low_letters_stay_apart() -> None:
    before = " ".join(f"word{number}" for number in range(60_000))

    compared = comparing.words(before, f"{before} more")

    assert said(compared).endswith("{+ more+}")
    assert side(compared, "added") == before


def test_a_limit_that_is_reached_is_said_and_nothing_is_lost() -> None:
    before = " ".join(f"a{number * 7919 % 5003}" for number in range(5000))
    after = " ".join(f"a{number * 104729 % 5003}" for number in range(5000))

    compared = comparing.words(before, after, seconds=0.001)

    assert not compared.is_whole
    assert side(compared, "added") == before
    assert side(compared, "removed") == after


def test_a_comparison_out_of_time_says_so() -> None:
    before = " ".join(f"a{number * 7919 % 5003}" for number in range(5000))
    after = " ".join(f"a{number * 104729 % 5003}" for number in range(5000))
    one, other = (sheet(sections=(section(body=body),)) for body in (before, after))

    assert not comparing.compare(one, other, seconds=0).is_whole


# ---- sections ----


def fates(compared: comparing.Comparison) -> dict[str, tuple[str, bool]]:
    return {each.key: (each.fate, each.moved) for each in compared.sections}


def test_nothing_changed_is_no_difference() -> None:
    compared = comparing.compare(sheet(), sheet())

    assert compared.is_empty
    assert compared.is_whole


def test_sections_are_added_removed_and_changed_by_their_keys() -> None:
    before = sheet(sections=sections("hours", "dogs"))
    changed = replace(sections("hours")[0], body="Closed.")
    after = sheet(sections=(changed, *sections("fees")))

    compared = comparing.compare(before, after)

    assert fates(compared) == {
        "hours": ("changed", False),
        "fees": ("added", False),
        "dogs": ("removed", False),
    }
    assert [change.name for change in compared.sections[0].changes] == ["text"]


def test_a_section_renamed_stays_itself() -> None:
    before = sheet(sections=(section(heading="Hours"),))
    after = sheet(sections=(section(heading="Opening hours"),))

    (only,) = comparing.compare(before, after).sections

    assert (only.fate, said(only.changes[0].words)) == ("changed", "[-Hours-]{+Opening hours+}")


@pytest.mark.parametrize(
    ("after", "moved"),
    [
        ("abcde", ""),
        ("bcdea", "a"),
        ("eabcd", "e"),
        ("abdce", "c"),
        ("edcba", "abcd"),
        ("xabcde", ""),
        ("acde", ""),
    ],
)
def test_the_fewest_moves_that_explain_the_order_are_told(after: str, moved: str) -> None:
    compared = comparing.compare(
        sheet(sections=sections(*"abcde")), sheet(sections=sections(*after))
    )

    found = {each.key for each in compared.sections if each.moved}
    assert len(found) == len(moved)
    if len(moved) == 1:
        # Of two that changed places either may be said to have moved.
        assert found <= set(moved) | {"d"}


def test_leaving_a_section_out_is_a_change_of_it() -> None:
    compared = comparing.compare(
        sheet(sections=(section(),)), sheet(sections=(section(included=False),))
    )

    (change,) = compared.sections[0].changes
    assert (change.name, said(change.words)) == ("included", "[-yes-]{+no+}")


# ---- sources, rules, settings ----


def test_sources_are_compared_in_a_pane_of_their_own() -> None:
    other = replace(SUPPORT, locator="page 9")
    quoted = replace(SUPPORT, quote="Opens at ten.")
    before = sheet(sections=(section(citations=(SUPPORT,)),))
    after = sheet(sections=(section(citations=(quoted, other)),))

    (only,) = comparing.compare(before, after).sections

    assert only.fate == "same"
    assert not only.is_same
    assert [(row.name, row.fate) for row in only.citations] == [
        ("Leaflet, page 1", "changed"),
        ("Leaflet, page 9", "added"),
    ]
    assert [change.name for change in only.citations[0].changes] == ["quote"]


def test_a_source_whose_own_data_changed_is_told_where_it_is_cited() -> None:
    renamed = replace(SUPPORT, source=replace(SUPPORT.source, title="New leaflet"))

    (only,) = comparing.compare(
        sheet(sections=(section(citations=(SUPPORT,)),)),
        sheet(sections=(section(citations=(renamed,)),)),
    ).sections

    (row,) = only.citations
    assert [(c.name, said(c.words)) for c in row.changes] == [
        ("title", "[-Leaflet-]{+New leaflet+}")
    ]


def test_one_place_cited_twice_is_two_citations() -> None:
    twice = (SUPPORT, SUPPORT)

    (only,) = comparing.compare(
        sheet(sections=(section(citations=twice),)), sheet(sections=(section(),))
    ).sections

    assert [row.fate for row in only.citations] == ["removed"]


def test_rules_are_added_removed_changed_switched_and_moved() -> None:
    def rules(*keys: str) -> tuple[RuleSnapshot, ...]:
        return tuple(RuleSnapshot("own", key, "refusal", f"Rule {key}.", True) for key in keys)

    before = sheet(rules=rules("a", "b", "c", "d"))
    off = replace(rules("b")[0], enabled=False)
    after = sheet(rules=(rules("c")[0], rules("a")[0], off, *rules("e")))

    found = {row.name: (row.fate, row.moved) for row in comparing.compare(before, after).rules}

    assert found == {
        "c": ("same", True),
        "b": ("changed", False),
        "e": ("added", False),
        "d": ("removed", False),
    }


def test_settings_and_the_bot_are_compared_too() -> None:
    before, after = sheet(), sheet(title="The old castle")
    other_bot = replace(after, bot=replace(after.bot, max_tokens=2048))

    settings = {c.name: said(c.words) for c in comparing.compare(before, other_bot).settings}

    assert settings == {
        "title": "The {+old +}castle",
        "bot: max tokens": "[-1024-]{+2048+}",
    }
