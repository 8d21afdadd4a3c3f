"""The pinned form of the prompt: what the model reads, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from factsheets.bot import prompt
from factsheets.bot.prompt import Prompt
from factsheets.snapshot import BotSection, BotSheet

RULES = "Answer only from the sheet.\n\nBe brief."
SHEET = BotSheet(
    language="en-GB",
    title="The castle",
    sections=(
        BotSection("hours-key", "Opening hours", "When is it open?", "From ten.\n\nUntil five."),
        BotSection("way-key", "The way in", "", "By the *north* gate. 🏰"),
    ),
)


def test_the_prompt_is_the_rules_and_then_the_sheet() -> None:
    built = prompt.build(RULES, SHEET)

    assert built == Prompt(
        rules="Answer only from the sheet.\n\nBe brief.",
        sheet=(
            "# The castle\n\n"
            "## Opening hours\n\nFrom ten.\n\nUntil five.\n\n"
            "## The way in\n\nBy the *north* gate. 🏰"
        ),
    )


def test_in_split_delivery_the_second_block_lists_the_titles_alone() -> None:
    built = prompt.build(RULES, SHEET, delivery="split")

    assert built == Prompt(rules=RULES, sheet="# The castle\n\n- Opening hours\n- The way in")


@pytest.mark.parametrize("delivery", ["inline", "split"])
@pytest.mark.parametrize("canary", ["hours-key", "way-key", "When is it open?", "en-GB"])
def test_keys_questions_and_language_do_not_reach_the_model(delivery: str, canary: str) -> None:
    text = prompt.as_text(prompt.build(RULES, SHEET, delivery=delivery))

    assert canary not in text


@pytest.mark.parametrize("change", [{"key": "other"}, {"question": "Another question?"}])
def test_what_does_not_reach_the_model_leaves_the_prompt(change: dict[str, str]) -> None:
    other = replace(SHEET, sections=(replace(SHEET.sections[0], **change), SHEET.sections[1]))

    assert prompt.build(RULES, other) == prompt.build(RULES, SHEET)


def test_as_one_text_a_blank_line_stands_between_the_blocks() -> None:
    assert prompt.as_text(Prompt("Rules.", "# Sheet")) == "Rules.\n\n# Sheet"


def test_without_rules_no_blank_line_leads_the_text() -> None:
    assert prompt.as_text(prompt.build("", SHEET)).startswith("# The castle\n")


def test_as_system_blocks_the_cache_breakpoint_stands_on_the_second() -> None:
    assert prompt.as_system(Prompt("Rules.", "# Sheet")) == [
        {"type": "text", "text": "Rules."},
        {"type": "text", "text": "# Sheet", "cache_control": {"type": "ephemeral"}},
    ]


def test_an_empty_block_is_left_out_of_the_system_blocks() -> None:
    assert prompt.as_system(Prompt("", "# Sheet")) == [
        {"type": "text", "text": "# Sheet", "cache_control": {"type": "ephemeral"}}
    ]
    assert prompt.as_system(Prompt("", "")) == []


def test_the_same_sheet_always_makes_the_same_blocks() -> None:
    assert prompt.as_system(prompt.build(RULES, SHEET)) == prompt.as_system(
        prompt.build(RULES, SHEET)
    )


def test_the_digest_of_the_form_is_pinned() -> None:
    # A new value means that every bot counts as changed and all probes must run
    # again; that is right when the form has changed, and never otherwise.
    assert prompt.FORMAT == "prompt/1"
    assert prompt.form_digest() == (
        "2591097b43a95e7f310a7ad51448b73e84fb547ff9457a07b278fec45f41377a"
    )


def heading_of_another_depth(rules: str, sheet: BotSheet, *, delivery: str = "inline") -> Prompt:
    built = BUILD(rules, sheet, delivery=delivery)
    return replace(built, sheet=built.sheet.replace("## ", "### "))


def sheet_before_rules(rules: str, sheet: BotSheet, *, delivery: str = "inline") -> Prompt:
    built = BUILD(rules, sheet, delivery=delivery)
    return Prompt(rules=built.sheet, sheet=built.rules)


def another_bullet(rules: str, sheet: BotSheet, *, delivery: str = "inline") -> Prompt:
    built = BUILD(rules, sheet, delivery=delivery)
    return replace(built, sheet=built.sheet.replace("\n- ", "\n* "))


def keys_shown(rules: str, sheet: BotSheet, *, delivery: str = "inline") -> Prompt:
    keyed = tuple(replace(s, heading=f"{s.heading} [{s.key}]") for s in sheet.sections)
    return BUILD(rules, replace(sheet, sections=keyed), delivery=delivery)


def questions_shown(rules: str, sheet: BotSheet, *, delivery: str = "inline") -> Prompt:
    asked = tuple(replace(s, text=f"{s.question}\n\n{s.text}") for s in sheet.sections)
    return BUILD(rules, replace(sheet, sections=asked), delivery=delivery)


def rules_with_a_heading(rules: str, sheet: BotSheet, *, delivery: str = "inline") -> Prompt:
    return BUILD(f"# Rules\n\n{rules}", sheet, delivery=delivery)


BUILD = prompt.build


@pytest.mark.parametrize(
    "builder",
    [
        heading_of_another_depth,
        sheet_before_rules,
        another_bullet,
        keys_shown,
        questions_shown,
        rules_with_a_heading,
    ],
)
def test_another_builder_has_another_digest_without_anybody_raising_a_number(
    builder: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = prompt.form_digest()
    monkeypatch.setattr(prompt, "build", builder)

    assert prompt.form_digest() != before


def test_a_breakpoint_in_another_place_has_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompt.form_digest()
    real = prompt.as_system
    monkeypatch.setattr(
        prompt, "as_system", lambda p: [{"type": b["type"], "text": b["text"]} for b in real(p)]
    )

    assert prompt.form_digest() != before
