"""Inline and split compared: worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evals import trial_scoring
from evals.trial_scoring import Answered, Delivery


def answered(key: str, delivery: Delivery, **values: Any) -> Answered:
    start: dict[str, Any] = {
        "is_in_scope": True,
        "right": True,
        "refused": False,
        "support": 1.0,
        "input_tokens": 1_000 if delivery == "inline" else 250,
        "cached_tokens": 0,
    }
    return Answered(key=key, delivery=delivery, **{**start, **values})


def both(count: int, **of_split: Any) -> list[Answered]:
    return [
        each
        for n in range(count)
        for each in (answered(f"q{n}", "inline"), answered(f"q{n}", "split", **of_split))
    ]


# ---- one answer ----


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("It opens at ten, on weekdays.", True),
        ("It opens at 10 on WEEKDAYS.", True),
        ("It opens at ten.", False),
        ("", False),
    ],
)
def test_a_right_answer_names_one_word_of_each_fact(text: str, right: bool) -> None:
    facts = [["ten", "10"], ["weekday*", "weekdays"]]

    assert trial_scoring.is_right(text, False, is_in_scope=True, facts=facts) is right


@pytest.mark.parametrize(("refused", "right"), [(True, True), (False, False), (None, None)])
def test_what_the_sheet_does_not_answer_is_right_when_turned_away(
    refused: bool | None, right: bool | None
) -> None:
    assert trial_scoring.is_right("x", refused, is_in_scope=False, facts=[]) is right


@pytest.mark.parametrize(("refused", "right"), [(True, False), (False, True), (None, None)])
def test_without_facts_an_answer_that_is_none_is_not_right(
    refused: bool | None, right: bool | None
) -> None:
    assert trial_scoring.is_right("Yes.", refused, is_in_scope=True, facts=[]) is right


@pytest.mark.parametrize(
    ("text", "flag", "refused"),
    [
        ("At ten.", None, False),
        ("I don't know.", None, True),
        ("At ten.", True, True),
        (
            "The castle is open daily and has four floors and a long gallery to see, but I can't say when.",
            None,
            None,
        ),
    ],
)
def test_a_refusal_is_what_the_bot_says_or_its_words(
    text: str, flag: bool | None, refused: bool | None
) -> None:
    assert trial_scoring.is_refusal(text, flag) is refused


def test_what_is_read_from_the_cache_is_billed_a_tenth() -> None:
    assert trial_scoring.billed(answered("q", "inline", cached_tokens=900)) == pytest.approx(190)


# ---- figures ----


def test_shares_are_of_the_answers_that_could_be_judged() -> None:
    found = trial_scoring.figures(
        [
            answered("a", "inline"),
            answered("b", "inline", right=False, refused=True, support=None),
            answered("c", "inline", right=None, refused=None, support=0.5),
            answered("d", "inline", right=None, error="timeout", input_tokens=0),
            answered("e", "inline", is_in_scope=False, refused=True, support=None),
            answered("f", "inline", is_in_scope=False, right=False),
        ]
    )["inline"]

    assert (found["answers"], found["errors"], found["unclear"]) == (6, 1, 1)
    assert (found["right"]["value"], found["right"]["of"]) == (pytest.approx(1 / 3, abs=1e-4), 3)
    assert found["turned_away"]["value"] == pytest.approx(1 / 3, abs=1e-4)
    assert (found["refused_outside"]["value"], found["refused_outside"]["of"]) == (0.5, 2)
    assert (found["grounded"]["value"], found["grounded"]["of"]) == (
        pytest.approx(2 / 3, abs=1e-4),
        3,
    )
    assert found["payload"] == 1_000


def test_questions_are_compared_one_by_one() -> None:
    found = trial_scoring.figures(
        [
            *both(3),
            answered("lost", "inline"),
            answered("lost", "split", right=False),
            answered("gained", "inline", right=False),
            answered("gained", "split"),
            answered("unclear", "inline", right=None),
            answered("unclear", "split"),
            answered("alone", "inline"),
        ]
    )["compared"]

    assert (found["questions"], found["clear"]) == (6, 5)
    assert (found["lost"], found["gained"]) == (["lost"], ["gained"])
    assert found["saved"] == 0.75


@pytest.mark.parametrize(
    ("lost", "gained", "chance"),
    [(0, 0, 1.0), (1, 1, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (1, 8, 0.0390625)],
)
def test_the_sign_test_is_exact(lost: int, gained: int, chance: float) -> None:
    assert trial_scoring.sign_test(lost, gained) == pytest.approx(chance)


# ---- the sentence ----


def judged(*answers: Answered) -> trial_scoring.Verdict:
    return trial_scoring.verdict(trial_scoring.figures(answers))


def test_a_split_that_saves_and_loses_nothing_is_worth_it() -> None:
    found = judged(*both(40))

    assert found.is_worth_it is True
    assert found.sentence == (
        "The split is worth it: a question sends 75% less, and of 40 questions it loses 0 that "
        "were right inline and gains 0."
    )


def test_a_split_that_saves_little_is_not() -> None:
    assert judged(*both(40, input_tokens=701)).is_worth_it is False
    assert judged(*both(40, input_tokens=700)).is_worth_it is True


def test_a_split_that_sends_more_says_so() -> None:
    found = judged(*both(4, input_tokens=1_500))

    assert found.is_worth_it is False
    assert "sends 50% more" in found.sentence


def test_a_split_that_loses_more_than_one_in_twenty_is_not() -> None:
    lost = [
        each
        for n in range(3)
        for each in (answered(f"l{n}", "inline"), answered(f"l{n}", "split", right=False))
    ]

    assert judged(*both(57), *lost).is_worth_it is True
    assert judged(*both(56), *lost).is_worth_it is False


def test_a_split_that_loses_more_than_chance_explains_is_not() -> None:
    lost = [
        each
        for n in range(6)
        for each in (answered(f"l{n}", "inline"), answered(f"l{n}", "split", right=False))
    ]

    assert judged(*both(400), *lost).is_worth_it is False
    assert judged(*both(400), *lost[:10]).is_worth_it is True


def test_where_nothing_is_clear_nothing_is_said_of_worth() -> None:
    found = judged(*both(3, right=None))

    assert found.is_worth_it is None
    assert found.sentence.startswith("Nothing could be compared")
