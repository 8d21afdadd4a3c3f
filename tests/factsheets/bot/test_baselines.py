from __future__ import annotations

import math

import pytest

from factsheets.bot import baselines, retrieval
from factsheets.bot.baselines import OURS, PUBLISHED
from factsheets.bot.chunking import Chunk
from factsheets.bot.retrieval import Hit, QuestionWord, Retrieval


def found(score: float, *words: bool) -> Retrieval:
    """What the published rule looks at: a top score, and which words the top chunk has."""
    hit = Hit(Chunk("s", 0, "", "", "", ""), score / (retrieval.K1 + 1), ())
    return Retrieval((hit,), tuple(QuestionWord(str(n), 1.0, has) for n, has in enumerate(words)))


@pytest.mark.parametrize(
    ("score", "words", "accepted"),
    [
        (6.0, (True, False), True),
        (5.9, (True, False), False),
        (20.0, (True, False, False), False),
        (0.1, (True, True), True),
    ],
)
def test_the_published_rule_asks_for_six_and_half_of_the_words_or_for_all_of_them(
    score: float, words: tuple[bool, ...], accepted: bool
) -> None:
    assert baselines.accepts(PUBLISHED, found(score + 1e-9, *words)) is accepted


def test_the_published_rule_turns_away_what_has_no_content_word() -> None:
    assert PUBLISHED.measure(found(20.0)) == -math.inf
    assert PUBLISHED.measure(Retrieval((), (QuestionWord("a", 1.0, False),))) == -math.inf


def test_ours_is_the_rule_that_the_bot_goes_by() -> None:
    for words in ((True, False), (True, False, False), (False,)):
        assert baselines.accepts(OURS, found(1.0, *words)) is found(1.0, *words).grounded


def test_a_rule_can_be_read_at_another_threshold() -> None:
    assert baselines.accepts(OURS, found(1.0, True, False), at=0.5)
    assert not baselines.accepts(OURS, found(1.0, True, False), at=0.51)


def test_every_rule_is_found_by_its_name() -> None:
    assert {name: rule.name for name, rule in baselines.RULES.items()} == {
        "ours": "ours",
        "published": "published",
    }
