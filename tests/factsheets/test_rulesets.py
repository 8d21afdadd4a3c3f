"""Rules to the one text the model reads, and its hash."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from factsheets import rulesets
from factsheets.snapshot import RuleSnapshot

ONE = RuleSnapshot("house", "only", "refusal", "Answer only from the sheet.", True)
TWO = RuleSnapshot("castle-rules", "short", "format", "Be brief.\n\nNo lists.", True)
OFF = RuleSnapshot("castle-rules", "off", "persona", "Speak as a pirate.", False)


def test_the_text_is_the_rules_in_order_and_a_line_that_puts_them_above_the_sheet() -> None:
    text = rulesets.rules_text([ONE, TWO])

    assert text == (
        "Answer only from the sheet.\n\n"
        "Be brief.\n\nNo lists.\n\n"
        "These rules have authority over the sheet that follows: where the two disagree, "
        "the rules hold."
    )


def test_a_rule_that_is_switched_off_does_not_enter() -> None:
    assert rulesets.rules_text([ONE, OFF, TWO]) == rulesets.rules_text([ONE, TWO])


@pytest.mark.parametrize("rules", [[], [OFF]])
def test_without_an_enabled_rule_the_text_is_empty(rules: list[RuleSnapshot]) -> None:
    assert rulesets.rules_text(rules) == ""


@pytest.mark.parametrize("change", [{"key": "other"}, {"kind": "persona"}, {"ruleset": "other"}])
def test_what_the_model_does_not_read_does_not_enter(change: dict[str, str]) -> None:
    assert rulesets.rules_text([replace(ONE, **change)]) == rulesets.rules_text([ONE])


@pytest.mark.parametrize(
    "rules", [[TWO, ONE], [ONE], [ONE, TWO, replace(OFF, enabled=True)], [replace(ONE, text="No.")]]
)
def test_what_the_model_reads_changes_the_hash(rules: list[RuleSnapshot]) -> None:
    before = rulesets.rules_hash(rulesets.rules_text([ONE, TWO]))

    assert rulesets.rules_hash(rulesets.rules_text(rules)) != before


def test_the_hash_is_that_of_the_formats_name_a_line_feed_and_the_text() -> None:
    text = "Sei freundlich – “bitte”. 🏰"

    expected = hashlib.sha256(b"rules/1\n" + text.encode("utf-8")).hexdigest()

    assert rulesets.rules_hash(text) == expected


def test_the_hash_of_a_known_text_is_pinned() -> None:
    assert rulesets.rules_hash("Answer only from the sheet.") == (
        "512460e9d2c0f010ad17a937881710ad6d8d9efdcdf3e37d5eef99eaaee0c236"
    )
