"""From questions with known answers, and what was retrieved for each, to figures.

Pure. Two kinds of leak are counted apart: a question about something else
(*off-topic*), and one about the sheet's subject that the sheet does not answer
(*near*). No rule that looks at words refuses the second kind.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factsheets.bot import baselines
from factsheets.bot.baselines import GroundingRule
from factsheets.bot.retrieval import Hit, Index, Retrieval
from factsheets.folding import words

#: How far down a right section is looked for, and how many count as "found".
DEPTH = 10
FIRST = 3

#: Every interval leaves out one time in twenty.
_Z = 1.959963984540054
#: Fixed, so that the same replies have the same interval on every machine.
SEED = 20261130
RESAMPLES = 1000

DEV, HELD_BACK = "dev", "held-back"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with its answer's place. `sections` is empty for one that the sheet does not answer.

    `sheet`: the slug of the sheet it is about, where several are searched together.
    """

    key: str
    question: str
    sections: tuple[str, ...] = ()
    is_off_topic: bool = False
    part: str = DEV
    sheet: str = ""

    @property
    def is_in_scope(self) -> bool:
        return bool(self.sections)


@dataclass(frozen=True, slots=True)
class Place:
    """A section among those found, by its best chunk."""

    sheet: str
    section: str
    hit: Hit


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question with what was found for it."""

    asked: Asked
    places: tuple[Place, ...]
    found: Retrieval

    @property
    def rank(self) -> int | None:
        """Where the first right section stands, counted from 1; None: not among the first ten."""
        for number, place in enumerate(self.places, start=1):
            if place.section in self.asked.sections and place.sheet == self.asked.sheet:
                return number
        return None

    @property
    def returned(self) -> frozenset[str]:
        """The sections that are handed on, by key; those of another sheet are not among them."""
        chunks = [hit.chunk for hit in self.found.hits]
        return frozenset(c.section for c in chunks if c.sheet == self.asked.sheet and c.section)

    @property
    def sections_returned(self) -> int:
        return len({(hit.chunk.sheet, hit.chunk.section) for hit in self.found.hits})

    @property
    def precision(self) -> float:
        """The share of the sections handed on that hold the answer."""
        right = len(self.returned & set(self.asked.sections))
        return right / self.sections_returned if self.sections_returned else 0.0

    @property
    def recall(self) -> float:
        """The share of the sections with the answer that are handed on."""
        return len(self.returned & set(self.asked.sections)) / len(set(self.asked.sections))


@dataclass(frozen=True, slots=True)
class Figure:
    """A share or a mean over `of` questions, with its 95 % interval."""

    value: float
    low: float
    high: float
    of: int

    def as_json(self) -> dict[str, object]:
        return {
            "value": round(self.value, 4),
            "low": round(self.low, 4),
            "high": round(self.high, 4),
            "of": self.of,
        }


def ask(index: Index, asked: Asked) -> Outcome:
    """Put one question to an index."""
    places: dict[tuple[str, str], Place] = {}
    # Sections that were cut come several times.
    for hit in index.ranked(asked.question, 5 * DEPTH):
        where = (hit.chunk.sheet, hit.chunk.section)
        places.setdefault(where, Place(*where, hit))
    return Outcome(asked, tuple(places.values())[:DEPTH], index.search(asked.question))


# ---- intervals ----


def share(right: int, of: int) -> Figure | None:
    """right / of with Wilson's interval; None where nothing was asked."""
    if not of:
        return None
    p, z2 = right / of, _Z * _Z
    middle = (p + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z / (1 + z2 / of) * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of))
    return Figure(p, max(0.0, middle - half), min(1.0, middle + half), of)


def mean(values: Sequence[float]) -> Figure | None:
    """The mean with an interval by resampling the questions; None where nothing was asked."""
    if not values:
        return None
    chance = random.Random(SEED)  # noqa: S311  (no secret: the same on every machine)
    count = len(values)
    means = sorted(math.fsum(chance.choices(values, k=count)) / count for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    return Figure(math.fsum(values) / count, low, high, count)


# ---- figures ----

#: Every figure in the order of reading, with what people call it.
NAMES: Mapping[str, str] = {
    "doc_at_1": "Doc@1",
    "section_at_1": "Section@1",
    "section_at_3": "Section@3",
    "mrr_at_10": "MRR@10",
    "precision": "precision of the hits",
    "recall": "recall of the hits",
    "false_rejects": "false rejects",
    "leaks_off_topic": "leaks, off-topic",
    "leaks_near": "leaks, near",
}
#: Of these less is better.
LESS_IS_BETTER = frozenset({"false_rejects", "leaks_off_topic", "leaks_near"})


def figures(outcomes: Sequence[Outcome], rule: GroundingRule) -> dict[str, Figure | None]:
    """Every figure over some questions. Doc@1 is None unless several sheets were searched."""
    inside = [o for o in outcomes if o.asked.is_in_scope]
    off = [o for o in outcomes if not o.asked.is_in_scope and o.asked.is_off_topic]
    near = [o for o in outcomes if not o.asked.is_in_scope and not o.asked.is_off_topic]

    def accepted(some: Sequence[Outcome]) -> int:
        return sum(baselines.accepts(rule, o.found) for o in some)

    def within(depth: int) -> int:
        return sum(o.rank is not None and o.rank <= depth for o in inside)

    return {
        "doc_at_1": share(sum(_right_sheet(o) for o in inside), len(inside))
        if any(o.asked.sheet for o in inside)
        else None,
        "section_at_1": share(within(1), len(inside)),
        "section_at_3": share(within(FIRST), len(inside)),
        "mrr_at_10": mean([1 / o.rank if o.rank else 0.0 for o in inside]),
        "precision": mean([o.precision for o in inside]),
        "recall": mean([o.recall for o in inside]),
        "false_rejects": share(len(inside) - accepted(inside), len(inside)),
        "leaks_off_topic": share(accepted(off), len(off)),
        "leaks_near": share(accepted(near), len(near)),
    }


def by_part(outcomes: Sequence[Outcome], rule: GroundingRule) -> dict[str, dict[str, Any]]:
    """The figures and the curve of each part that has questions, as JSON: never of both together."""
    return {
        part: {
            "figures": {
                name: figure and figure.as_json() for name, figure in figures(some, rule).items()
            },
            "curve": curve(some, rule),
        }
        for part in (DEV, HELD_BACK)
        if (some := [o for o in outcomes if o.asked.part == part])
    }


def _right_sheet(outcome: Outcome) -> bool:
    return bool(outcome.places) and outcome.places[0].sheet == outcome.asked.sheet


def curve(outcomes: Sequence[Outcome], rule: GroundingRule) -> list[dict[str, Any]]:
    """False rejects against leaks, threshold by threshold; the rule's own is marked `chosen`."""
    points = sorted({*rule.thresholds, rule.threshold})
    return [
        {
            "threshold": point,
            "chosen": point == rule.threshold,
            **_at(outcomes, rule, point),
        }
        for point in points
    ]


def _at(
    outcomes: Sequence[Outcome], rule: GroundingRule, threshold: float
) -> dict[str, float | None]:
    def rate(some: list[Outcome], *, rejected: bool) -> float | None:
        if not some:
            return None
        passed = sum(baselines.accepts(rule, o.found, threshold) for o in some)
        return round((len(some) - passed if rejected else passed) / len(some), 4)

    inside = [o for o in outcomes if o.asked.is_in_scope]
    outside = [o for o in outcomes if not o.asked.is_in_scope]
    return {
        "false_rejects": rate(inside, rejected=True),
        "leaks_off_topic": rate([o for o in outside if o.asked.is_off_topic], rejected=False),
        "leaks_near": rate([o for o in outside if not o.asked.is_off_topic], rejected=False),
    }


@dataclass(frozen=True, slots=True)
class Worst:
    """Of several sheets, the one with the lowest Section@3, beside the mean of all."""

    sheet: str
    value: float
    mean: float
    sheets: int


def worst(outcomes: Iterable[Outcome], *, depth: int = FIRST) -> Worst | None:
    """The worst sheet by Section@`depth`; of equals, the first by slug. None for fewer than two."""
    shares: dict[str, list[bool]] = {}
    for outcome in outcomes:
        if outcome.asked.is_in_scope:
            rank = outcome.rank
            shares.setdefault(outcome.asked.sheet, []).append(rank is not None and rank <= depth)
    if len(shares) < 2:
        return None
    values = {sheet: sum(right) / len(right) for sheet, right in shares.items()}
    lowest = min(values, key=lambda sheet: (values[sheet], sheet))
    return Worst(lowest, values[lowest], math.fsum(values.values()) / len(values), len(values))


# ---- misses ----

#: What can go wrong with a question, in words.
KINDS: Mapping[str, str] = {
    "not-first": "another section ranked above the right one",
    "not-found": "the right section is not among the first ten",
    "turned-away": "the sheet answers it, and it was turned away",
    "leaked": "it is about something else, and was let through",
    "leaked-near": "it is near the subject, the sheet does not answer it, and it was let through",
}


def misses(outcomes: Iterable[Outcome], rule: GroundingRule) -> list[dict[str, Any]]:
    """Every question that went wrong, by key, with what ranked above and why, as JSON."""
    return [miss for outcome in outcomes if (miss := _miss(outcome, rule))]


def _miss(outcome: Outcome, rule: GroundingRule) -> dict[str, Any] | None:
    kinds = list(_kinds(outcome, rule))
    if not kinds:
        return None
    asked, rank = outcome.asked, outcome.rank
    above = outcome.places[: rank - 1 if rank else FIRST]
    if not asked.is_in_scope:
        above = outcome.places[:1]
    return {
        "key": asked.key,
        "question": asked.question,
        "part": asked.part,
        "kinds": kinds,
        "sections": list(asked.sections),
        "rank": rank,
        "above": [_placed(place) for place in above],
        "right": _placed(outcome.places[rank - 1]) if rank else None,
        "words": [
            {"stem": word.stem, "rarity": word.rarity, "found": word.found}
            for word in outcome.found.words
        ],
    }


def _kinds(outcome: Outcome, rule: GroundingRule) -> Iterator[str]:
    passed = baselines.accepts(rule, outcome.found)
    if not outcome.asked.is_in_scope:
        if passed:
            yield "leaked" if outcome.asked.is_off_topic else "leaked-near"
        return
    if outcome.rank is None:
        yield "not-found"
    elif outcome.rank > 1:
        yield "not-first"
    if not passed:
        yield "turned-away"


def _placed(place: Place) -> dict[str, Any]:
    return {
        **({"sheet": place.sheet} if place.sheet else {}),
        "section": place.section,
        "score": round(place.hit.score, 4),
        "terms": [{"term": t.term, "score": round(t.score, 4)} for t in place.hit.terms],
    }


# ---- comparing ----


def lost(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> list[str]:
    """The questions that went right before and do not any more, by key.

    Right is: the answer's section is among the first three and the question is
    let through, or it is about something else and was turned away. Both lists
    are misses of the same frozen set.
    """
    was = {miss["key"] for miss in before if _is_lost(miss)}
    return [miss["key"] for miss in after if _is_lost(miss) and miss["key"] not in was]


def _is_lost(miss: Mapping[str, Any]) -> bool:
    if {"turned-away", "leaked", "not-found"} & set(miss["kinds"]):
        return True
    return miss["rank"] is not None and miss["rank"] > FIRST


# ---- the answer key in the index ----

WORDS_IN_A_ROW = 8
#: A question of fewer words stands in many a text by chance.
FEWEST_WORDS = 4


def quotes(question: str, text: str) -> bool:
    """Whether a text has eight words in a row of a question, or the whole of a shorter one."""
    asked, said = words(question), words(text)
    length = min(WORDS_IN_A_ROW, len(asked))
    if length < FEWEST_WORDS:
        return False
    runs = {asked[i : i + length] for i in range(len(asked) - length + 1)}
    return any(said[i : i + length] in runs for i in range(len(said) - length + 1))
