from __future__ import annotations

import random

import pytest

from evals import measuring
from evals.measuring import Asked, Outcome, Place
from factsheets.bot import chunking
from factsheets.bot.baselines import OURS
from factsheets.bot.chunking import Chunk
from factsheets.bot.retrieval import Hit, Index, QuestionWord, Retrieval, TermScore
from factsheets.snapshot import BotSection, BotSheet


def hit(section: str, sheet: str = "", score: float = 1.0) -> Hit:
    chunk = Chunk(section, 0, "", "", "", section, sheet)
    return Hit(chunk, score, (TermScore("tower", score),))


def outcome(
    right: str = "",
    found: str = "",
    *,
    covered: float = 1.0,
    handed_on: str | None = None,
    off_topic: bool = False,
    part: str = "dev",
    key: str = "q",
    sheet: str = "",
) -> Outcome:
    """A question with the sections named, of which `found` were found in that order."""
    hits = [hit(name, sheet) for name in found.split()]
    kept = [hit(name, sheet) for name in (found if handed_on is None else handed_on).split()]
    words = (QuestionWord("a", covered, True), QuestionWord("b", 1 - covered, False))
    return Outcome(
        Asked(key, "Which?", tuple(right.split()), off_topic, part, sheet),
        tuple(Place(sheet, h.chunk.section, h) for h in hits),
        Retrieval(tuple(kept), words),
    )


def value(outcomes: list[Outcome], name: str) -> float:
    figure = measuring.figures(outcomes, OURS)[name]
    assert figure is not None
    return figure.value


# ---- intervals ----


@pytest.mark.parametrize(
    ("right", "of", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (29, 31, 0.7928, 0.9821),
    ],
)
def test_a_share_has_the_interval_of_wilson(right: int, of: int, low: float, high: float) -> None:
    figure = measuring.share(right, of)

    assert figure is not None
    assert figure.value == right / of
    assert (figure.low, figure.high) == pytest.approx((low, high), abs=5e-5)


def test_where_nothing_was_asked_there_is_no_figure() -> None:
    assert measuring.share(0, 0) is None
    assert measuring.mean([]) is None


def test_a_mean_has_the_same_interval_whoever_drew_chances_before() -> None:
    values = [1.0, 0.5, 0.0, 1.0, 1 / 3]
    first = measuring.mean(values)
    random.seed(1)

    assert measuring.mean(values) == first
    assert first is not None
    assert first.value == pytest.approx(17 / 30)
    assert 0 < first.low < first.value < first.high <= 1


def test_a_mean_of_equal_values_is_certain() -> None:
    figure = measuring.mean([0.5] * 7)

    assert figure is not None
    assert (figure.low, figure.value, figure.high) == (0.5, 0.5, 0.5)


# ---- figures, worked out by hand ----


def test_sections_are_right_at_one_and_at_three_and_by_their_rank() -> None:
    four = [
        outcome("a", "a b c d"),  # rank 1
        outcome("a", "b a c d"),  # rank 2
        outcome("a", "b c d a"),  # rank 4
        outcome("a", "b c"),  # not found
    ]

    assert value(four, "section_at_1") == 1 / 4
    assert value(four, "section_at_3") == 2 / 4
    assert value(four, "mrr_at_10") == pytest.approx((1 + 1 / 2 + 1 / 4 + 0) / 4)


def test_any_of_the_sections_with_the_answer_is_right() -> None:
    assert value([outcome("a b", "c b a")], "mrr_at_10") == 1 / 2


def test_precision_and_recall_are_of_the_sections_handed_on() -> None:
    two = [
        outcome("a b", "a c", handed_on="a c"),  # 1 of 2 handed on, 1 of 2 with the answer
        outcome("a", "a b c d", handed_on="a"),  # 1 of 1, 1 of 1
    ]

    assert value(two, "precision") == 3 / 4
    assert value(two, "recall") == 3 / 4


def test_a_question_for_which_nothing_is_handed_on_has_neither() -> None:
    assert value([outcome("a", "")], "precision") == 0
    assert value([outcome("a", "")], "recall") == 0


def test_false_rejects_and_the_two_kinds_of_leak_are_counted_apart() -> None:
    asked = [
        outcome("a", "a", covered=0.39),
        outcome("a", "a", covered=0.4),
        outcome("a", "a", covered=0.9),
        outcome("", "a", covered=0.5, off_topic=True),
        outcome("", "a", covered=0.1, off_topic=True),
        outcome("", "a", covered=0.9),
    ]

    assert value(asked, "false_rejects") == pytest.approx(1 / 3)
    assert value(asked, "leaks_off_topic") == 1 / 2
    assert value(asked, "leaks_near") == 1


def test_of_one_sheet_there_is_no_right_sheet_to_find() -> None:
    assert measuring.figures([outcome("a", "a")], OURS)["doc_at_1"] is None


def test_of_several_sheets_the_first_hit_is_of_the_right_one_or_not() -> None:
    wrong = Outcome(
        Asked("q", "Which?", ("a",), sheet="castle"),
        (Place("cafe", "a", hit("a", "cafe")), Place("castle", "a", hit("a", "castle"))),
        Retrieval((hit("a", "cafe"),), ()),
    )

    assert value([wrong, outcome("a", "a", sheet="castle")], "doc_at_1") == 1 / 2
    assert wrong.rank == 2
    assert (wrong.precision, wrong.recall) == (0, 0)


def test_the_parts_are_told_apart_and_never_together() -> None:
    told = measuring.by_part(
        [outcome("a", "a"), outcome("a", "b", part="held-back"), outcome("a", "a")], OURS
    )

    assert list(told) == ["dev", "held-back"]
    assert told["dev"]["figures"]["section_at_1"]["value"] == 1
    assert told["held-back"]["figures"]["section_at_1"]["value"] == 0
    assert told["held-back"]["figures"]["section_at_1"]["of"] == 1


def test_a_part_without_questions_is_not_told() -> None:
    assert list(measuring.by_part([outcome("a", "a")], OURS)) == ["dev"]


def test_the_curve_gives_up_leaks_for_false_rejects_and_marks_the_chosen_point() -> None:
    asked = [
        outcome("a", "a", covered=0.3),
        outcome("a", "a", covered=0.8),
        outcome("", "a", covered=0.5, off_topic=True),
    ]

    points = {point["threshold"]: point for point in measuring.curve(asked, OURS)}

    assert [t for t, point in points.items() if point["chosen"]] == [0.4]
    assert (points[0.0]["false_rejects"], points[0.0]["leaks_off_topic"]) == (0, 1)
    assert (points[0.4]["false_rejects"], points[0.4]["leaks_off_topic"]) == (0.5, 1)
    assert (points[0.6]["false_rejects"], points[0.6]["leaks_off_topic"]) == (0.5, 0)
    assert points[1.0]["false_rejects"] == 1
    assert points[0.4]["leaks_near"] is None


def test_the_worst_sheet_stands_beside_the_mean() -> None:
    asked = [
        outcome("a", "a", sheet="castle"),
        outcome("a", "a", sheet="cafe"),
        outcome("a", "b", sheet="cafe"),
        outcome("", "b", sheet="abbey"),
    ]

    worst = measuring.worst(asked)

    assert worst is not None
    assert (worst.sheet, worst.value, worst.mean, worst.sheets) == ("cafe", 0.5, 0.75, 2)


def test_one_sheet_alone_has_no_worst() -> None:
    assert measuring.worst([outcome("a", "a")]) is None


# ---- asking ----


def index_of(*texts: str) -> Index:
    sections = tuple(BotSection(f"s{n}", "", "", text) for n, text in enumerate(texts))
    return Index.build(chunking.chunks(BotSheet("en", "", sections)), "en")


def test_a_section_that_was_cut_takes_one_place() -> None:
    long = "The tower stands here. " * 100
    index = index_of(long, "A tower.")

    found = measuring.ask(index, Asked("q", "Where is the tower?", ("s0",)))

    assert len(index.chunks) > 2
    assert sorted(place.section for place in found.places) == ["s0", "s1"]


def test_places_go_on_where_hits_end() -> None:
    index = index_of(*["The tower."] * 12)

    found = measuring.ask(index, Asked("q", "tower", ("s9",)))

    assert (len(found.found.hits), found.rank) == (5, 10)


# ---- misses ----


def test_a_miss_names_what_ranked_above_and_why() -> None:
    (miss,) = measuring.misses([outcome("a", "b a", key="closing")], OURS)

    assert (miss["key"], miss["kinds"], miss["rank"]) == ("closing", ["not-first"], 2)
    assert [place["section"] for place in miss["above"]] == ["b"]
    assert miss["above"][0]["terms"] == [{"term": "tower", "score": 1.0}]
    assert miss["right"]["section"] == "a"


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        (outcome("a", "b"), ["not-found"]),
        (outcome("a", "a", covered=0.1), ["turned-away"]),
        (outcome("a", "b a", covered=0.1), ["not-first", "turned-away"]),
        (outcome("", "a", off_topic=True), ["leaked"]),
        (outcome("", "a"), ["leaked-near"]),
    ],
)
def test_every_kind_of_miss_has_its_name(asked: Outcome, kinds: list[str]) -> None:
    (miss,) = measuring.misses([asked], OURS)

    assert miss["kinds"] == kinds
    assert set(kinds) <= measuring.KINDS.keys()


def test_what_went_right_is_no_miss() -> None:
    right = [outcome("a", "a"), outcome("", "a", covered=0.1), outcome("", "")]

    assert measuring.misses(right[:2], OURS) == []


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (outcome("a", "a"), outcome("a", "b c d a"), ["q"]),
        (outcome("a", "a"), outcome("a", "b c a"), []),
        (outcome("a", "a"), outcome("a", "b"), ["q"]),
        (outcome("a", "a"), outcome("a", "a", covered=0.1), ["q"]),
        (outcome("a", "b c d a"), outcome("a", "b"), []),
        (outcome("", "a", covered=0.1, off_topic=True), outcome("", "a", off_topic=True), ["q"]),
        (outcome("", "a", covered=0.1), outcome("", "a"), []),
    ],
)
def test_lost_is_what_was_right_and_is_so_no_longer(
    before: Outcome, after: Outcome, lost: list[str]
) -> None:
    assert measuring.lost(measuring.misses([before], OURS), measuring.misses([after], OURS)) == lost


# ---- the answer key in the index ----


@pytest.mark.parametrize(
    ("question", "text", "is_quoted"),
    [
        ("When does the castle close?", "People ask: “WHEN does the castle close”?", True),
        ("When does the castle close?", "The castle closes at five.", False),
        ("Tickets, please?", "Tickets, please.", False),
        (
            "My dad has a parking permit for the disabled, where can he leave it?",
            "He has a parking permit for the disabled, where it is needed.",
            True,
        ),
        (
            "My dad has a parking permit for the disabled, where can he leave it?",
            "He has a parking permit for the disabled.",
            False,
        ),
    ],
)
def test_eight_words_in_a_row_or_the_whole_of_a_shorter_question_is_a_quote(
    question: str, text: str, is_quoted: bool
) -> None:
    assert measuring.quotes(question, text) is is_quoted
