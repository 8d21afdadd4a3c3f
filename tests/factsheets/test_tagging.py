"""Which sections of a sheet a reply rests on."""

from __future__ import annotations

from typing import Any

import pytest

from factsheets import tagging
from factsheets.snapshot import BotSection, BotSheet
from tests.factsheets.bot import demo

CASTLE = demo.sheet("castle")


def tags(reply: str, sheet: BotSheet = CASTLE) -> list[str]:
    return list(tagging.tag(reply, sheet))


def sheet(**texts: str) -> BotSheet:
    """A sheet with a section for each text, all under one heading."""
    return BotSheet(
        "en-GB", "The tower", tuple(BotSection(k, "Visiting", "", t) for k, t in texts.items())
    )


def _with(scope: str) -> list[Any]:
    return [
        pytest.param(name, question, id=question["key"])
        for name in demo.NAMES
        for question in demo.questions(name)
        if question["scope"] == scope
    ]


# ---- the demo's own questions, with what a good answer to each would say ----


@pytest.mark.parametrize(("name", "question"), _with("in"))
def test_a_good_answer_is_tagged_with_the_sections_that_hold_it(
    name: str, question: dict[str, Any]
) -> None:
    found = tags(question["expected"], demo.sheet(name))

    assert found
    assert set(found) <= set(question["sections"])


@pytest.mark.parametrize(("name", "question"), _with("out"))
def test_an_answer_that_turns_a_question_away_is_tagged_with_nothing(
    name: str, question: dict[str, Any]
) -> None:
    assert tags(question["expected"], demo.sheet(name)) == []


# ---- what tags, and what does not ----


def test_each_sentence_tags_the_section_that_has_most_of_it() -> None:
    reply = (
        "It is the largest Norman keep in England. "
        "Work on the Temple of Claudius began beneath it much earlier."
    )

    assert tags(reply) == ["temple-of-claudius", "size-and-plan"]


def test_the_share_says_how_much_of_the_sentence_stands_there() -> None:
    text = CASTLE.sections[3].text.split(". ")[0] + "."

    assert tagging.tag(text, CASTLE) == {"boudica-revolt": 1.0}


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "…",
        "Hello!",
        "Good morning! Happy to help with your visit to the castle.",
        "Welcome to Colchester Castle!",
        "Thank you for your question about the Norman keep!",
        "You’re welcome. Is there anything else about the castle and its museum?",
        "Sorry, I don't know: the sheet doesn't say. Please ask a member of staff.",
        "I can’t say who built the Temple of Claudius.",
        "I’m sorry, there is no information on the temple of Claudius in the sheet.",
        "Our café serves cakes and scones all day, with jam from local farms.",
    ],
)
def test_what_makes_no_claim_or_stands_nowhere_tags_nothing(reply: str) -> None:
    assert tags(reply) == []


def test_a_greeting_does_not_hide_the_claim_behind_it() -> None:
    assert tags("Hello there, it is the largest Norman keep in England.") == ["size-and-plan"]


def test_a_refusal_does_not_hide_the_sentence_beside_it() -> None:
    reply = "I don't know about dogs. It is the largest Norman keep in England."

    assert tags(reply) == ["size-and-plan"]


def test_of_sections_that_have_the_same_of_it_all_are_tagged_in_the_order_of_the_sheet() -> None:
    of = sheet(
        b="The tower opens at ten.", a="On Sundays the tower opens at ten.", c="Dogs stay out."
    )

    assert tags("The tower opens at ten o'clock.", of) == ["b", "a"]


def test_one_word_is_too_little_to_tell_by() -> None:
    of = sheet(hours="The tower opens at ten.", prices="Entry is ten pounds.")

    assert tags("Ten.", of) == []


def test_support_is_looked_for_in_three_neighbouring_sentences() -> None:
    near = sheet(a="Bring a lantern. Mind the ladder. Leave the hammer. Rain falls.")
    far = sheet(a="Bring a lantern. Rain falls. Wind blows. Snow drifts. Mind the ladder, hammer.")
    reply = "You need lantern, ladder and hammer."

    assert tagging.tag(reply, near)["a"] > tagging.tag(reply, far).get("a", 0)


def test_less_than_half_of_a_sentence_is_too_little() -> None:
    of = sheet(a="The lantern stands on the ladder.")

    assert tags("Lantern and ladder.", of) == ["a"]
    assert tags("Lantern, hammer, chisel, pliers and anvil.", of) == []


def test_a_sheet_without_sections_tags_nothing() -> None:
    assert tags("The tower opens at ten.", sheet()) == []


def test_a_sheet_of_another_language_is_tagged_by_its_own_words() -> None:
    of = BotSheet(
        "de",
        "Der Turm",
        (
            BotSection("zeiten", "Zeiten", "", "Der Turm öffnet morgens um zehn Uhr."),
            BotSection("hunde", "Hunde", "", "Hunde bleiben an der Leine."),
        ),
    )

    assert tags("Guten Tag! Morgens um zehn öffnet der Turm.", of) == ["zeiten"]
    assert tags("Das weiß ich nicht.", of) == []
