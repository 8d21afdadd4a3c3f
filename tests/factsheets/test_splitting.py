"""What a sheet would be split: the payload of real questions, and what would hang in the air."""

from __future__ import annotations

import pytest

from factsheets import splitting
from factsheets.bot import answering, prompt
from factsheets.bot.providers.base import Message
from factsheets.snapshot import BotSection, BotSheet


def sheet(*texts: str, questions: tuple[str, ...] = ()) -> BotSheet:
    """Sections with the headings Alpha, Beta, …, each of which names a question."""
    names = ("Alpha", "Beta", "Gamma", "Delta")
    asked = [*questions, *(f"What about {name}?" for name in names[len(questions) :])]
    return BotSheet(
        "en-GB",
        "The park",
        tuple(
            BotSection(name.lower(), name, question, text)
            for name, question, text in zip(names, asked, texts, strict=False)
        ),
    )


def codes(of: BotSheet, *questions: str) -> set[tuple[str, str]]:
    return {(remark.code, remark.section) for remark in splitting.remarks(of, questions)}


# ---- remarks ----


def test_a_condition_apart_from_its_number_is_named_with_the_place_of_the_number() -> None:
    of = sheet(
        "Dogs pay £2 for a day ticket at the kiosk.",
        "Except dogs that guide visitors, who need no day ticket. The kiosk sells leads.",
    )

    (remark,) = splitting.remarks(of)

    assert (remark.code, remark.section) == ("number-apart", "beta")
    assert "the number may stand in “Alpha”" in remark.sentence


def test_a_condition_beside_its_number_is_left_alone() -> None:
    of = sheet("Dogs pay £2 for a day ticket at the kiosk. Except guide dogs.", "Swans live here.")

    assert codes(of) == set()


def test_an_exception_apart_from_its_rule_is_named() -> None:
    of = sheet(
        "Cycling is allowed on every gravel path of the park.",
        "The pond is deep. Cycling on the gravel path does not apply to tandems. Herons nest there.",
    )

    assert codes(of) == {("exception-apart", "beta")}


def test_an_exception_beside_its_rule_is_left_alone() -> None:
    of = sheet(
        "Cycling is allowed on every gravel path of the park, except for tandems.",
        "The pond is deep. Herons nest there.",
    )

    assert codes(of) == set()


@pytest.mark.parametrize(
    ("defined", "used"),
    [
        ("The Marsh Action Group (MAG) keeps the reeds.", "Ask MAG for a key to the hide."),
        ("A “long stay” means four hours or more.", "A long stay costs extra at the gate."),
    ],
)
def test_a_term_apart_from_its_definition_is_named(defined: str, used: str) -> None:
    assert codes(sheet(defined, used)) == {("definition-apart", "beta")}


def test_a_term_explained_where_it_is_used_is_left_alone() -> None:
    of = sheet("The Marsh Action Group (MAG) keeps the reeds. Ask MAG for a key.", "Swans swim.")

    assert codes(of) == set()


def test_a_chunk_that_begins_with_a_pronoun_and_names_nothing_is_named() -> None:
    assert codes(sheet("It was dug by hand.", "Swans swim.")) == {("pronoun-start", "alpha")}


@pytest.mark.parametrize("text", ["It was dug by Telford.", "This alpha was dug by hand."])
def test_a_pronoun_in_a_sentence_that_names_something_is_left_alone(text: str) -> None:
    assert codes(sheet(text, "Swans swim.")) == set()


def test_a_section_that_names_no_question_and_that_none_finds_is_named() -> None:
    of = sheet("Herons nest by the pond.", "Swans swim.", questions=("", "Do swans swim?"))

    assert codes(of, "Do swans swim?") == {("answers-nothing", "alpha")}
    assert codes(of, "Where do herons nest?") == set()


def test_two_sections_with_one_question_or_the_same_words_are_named() -> None:
    asked = sheet("Herons nest here.", "Swans swim.", questions=("What lives here?",) * 2)
    alike = sheet("Herons nest by the deep pond in spring.", "In spring herons nest by the pond.")

    assert codes(asked) == {("answers-same", "beta")}
    assert codes(alike) == {("answers-same", "beta")}


# ---- payload ----


def test_a_question_sends_rules_titles_and_what_was_found_for_it() -> None:
    of = sheet("Herons nest by the pond.", "Tickets cost £2 at the kiosk.")

    preview = splitting.preview(of, "Be kind.", ["Where do herons nest?", "Who won the cup?"])

    found, nothing = preview.payloads
    assert (found.sections, found.grounded) == (("alpha",), True)
    assert (nothing.sections, nothing.grounded) == ((), False)
    assert preview.dormant == ("beta",)
    assert found.split > nothing.split > preview.fixed


def test_what_is_saved_is_the_share_of_the_mean_payload() -> None:
    long = " ".join(f"Herons number {n} nest by the pond." for n in range(40))
    of = sheet(long, "Tickets cost £2 at the kiosk.")

    preview = splitting.preview(of, "Be kind.", ["What does a ticket cost at the kiosk?"])

    assert preview.mean_split is not None
    assert preview.saved == pytest.approx(1 - preview.mean_split / preview.mean_inline)
    assert preview.saved > 0.5


def test_without_a_question_nothing_is_measured() -> None:
    preview = splitting.preview(sheet("Herons nest."), "Be kind.", [])

    assert (preview.saved, preview.mean_split, preview.dormant) == (None, None, ())


# ---- what the model is sent ----


def test_the_sources_stand_numbered_before_the_question() -> None:
    of = sheet("Herons nest by the pond.", "Swans nest by the weir.")
    hits = answering.passed(answering.look_up(of, [Message("user", "Where do herons nest?")]))

    sent = prompt.user_turn("Where do herons nest?", [hit.chunk for hit in hits])

    assert sent == (
        "From the sheet:\n\n[1] Alpha\n\nHerons nest by the pond.\n\n"
        "Question: Where do herons nest?"
    )


def test_where_nothing_is_found_the_model_is_told_so() -> None:
    assert prompt.user_turn("Who won?", []) == (
        "Nothing in the sheet was found for this question.\n\nQuestion: Who won?"
    )


def test_a_question_that_says_too_little_is_looked_up_with_the_one_before() -> None:
    of = sheet("Herons nest by the pond in spring.", "Tickets cost £2 at the kiosk on Sundays.")
    talk = [
        Message("user", "What does a ticket cost at the kiosk?"),
        Message("assistant", "Two pounds."),
        Message("user", "And for giraffes?"),
    ]

    assert not answering.look_up(of, talk[-1:]).grounded
    assert [hit.chunk.section for hit in answering.look_up(of, talk).hits] == ["beta"]
