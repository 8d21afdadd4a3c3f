"""Does the sheet still fit the prompt? Two ratios, and what they advise.

Ratio one is the share of the usable window that the sheet takes; ratio two the
share of its sections that real questions touched. The bounds are published
rules of thumb, so a sheet's policy may set its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from factsheets.snapshot import BotSnapshot, RuleSnapshot

#: Characters to a token at the upper end of what current models make of English
#: prose (observed 2.83 to 3.33): a size must not be under-stated.
CHARACTERS_PER_TOKEN = 2.8

#: "exact": the model service counted. "offline": a rebuilt tokeniser. "estimate": by length.
Method = Literal["exact", "offline", "estimate"]

#: How far the true number may lie from an estimate, as a share of it.
ESTIMATE_ERROR = 0.15

Advice = Literal["inline", "split", "ask-use"]

#: What a prompt costs that is written to the cache or read from it, as multiples of the price
#: of plain input (published prices of the model service, five-minute cache).
CACHE_WRITE = 1.25
CACHE_READ = 0.10

#: From so many tokens on, rules are worth a second look.
LONG_RULES_TOKENS = 1_500
#: A single rule of more words reads like a text about the subject.
LONG_RULE_WORDS = 120
#: With so many figures a rule reads like reference.
REFERENCE_FIGURES = 4

_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_ADDRESS = re.compile(r"https?://|www\.|@[\w-]+\.")


def estimated_tokens(text: str) -> int:
    """Tokens of a text, an upper estimate (about ±15 % around the middle)."""
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


def usable_window(bot: BotSnapshot) -> int:
    """Tokens left for rules and sheet once every reserve is taken from the context window."""
    reserves = (
        bot.reserve_history + bot.reserve_question + bot.reserve_retrieval + bot.reserve_output
    )
    return bot.context_window - reserves


@dataclass(frozen=True, slots=True)
class Count:
    """Tokens of a text, and how they were counted."""

    tokens: int
    method: Method

    @property
    def in_words(self) -> str:
        """The method, with its error where it has one."""
        return {
            "exact": "counted by the model service",
            "offline": "counted offline by a rebuilt tokeniser",
            "estimate": f"estimate, ±{ESTIMATE_ERROR:.0%}",
        }[self.method]


def estimate(text: str) -> Count:
    """Counted by length."""
    return Count(estimated_tokens(text), "estimate")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The bounds of both ratios, as shares from 0 to 1."""

    inline_below: float = 0.10
    split_from: float = 0.15
    least_used: float = 1 / 3


@dataclass(frozen=True, slots=True)
class Facts:
    """What the advice rests on.

    `window`: usable tokens. `used`, `sections`: how many sections real
    questions touched, of how many. `questions`: how many of those there were in
    the period. `changes_a_week`, `checks_a_week`: of section texts; None while
    the sheet is too young to tell. `readers_differ`: whether some readers may
    not see all of it; None until its owner has said.
    """

    rules: Count
    sheet: Count
    window: int
    sections: int
    used: int = 0
    questions: int = 0
    changes_a_week: float | None = None
    checks_a_week: float | None = None
    readers_differ: bool | None = None

    @property
    def sheet_share(self) -> float:
        """Ratio one: tokens of the sheet / usable window. A window of nothing is full."""
        return self.sheet.tokens / self.window if self.window > 0 else 1.0

    @property
    def used_share(self) -> float | None:
        """Ratio two: sections touched / sections; None while too few questions are known.

        Fewer questions than sections could not have touched them all.
        """
        if not self.sections or self.questions < self.sections:
            return None
        return self.used / self.sections


@dataclass(frozen=True, slots=True)
class Verdict:
    """The advice in one sentence, with every reason for and against it."""

    advice: Advice
    sentence: str
    reasons: tuple[str, ...]


def verdict(facts: Facts, bounds: Thresholds) -> Verdict:
    """What the two ratios advise, with the changes and the readers beside them."""
    for_split = tuple(_for_split(facts, bounds))
    known = tuple(_known(facts, bounds))
    size, used = facts.sheet_share, facts.used_share
    if for_split:
        return Verdict("split", f"Split it: {for_split[0]}", (*for_split, *known))
    if size >= bounds.inline_below and used is None:
        return Verdict(
            "ask-use",
            f"The size leaves it open ({size:.1%} of the usable window): find out which sections "
            "real questions need, then look again.",
            known,
        )
    use = "" if used is None else f", and {used:.0%} of the sections are used"
    return Verdict(
        "inline", f"Keep it inline: it takes {size:.1%} of the usable window{use}.", known
    )


def _for_split(facts: Facts, bounds: Thresholds) -> Iterable[str]:
    size, used = facts.sheet_share, facts.used_share
    if size > bounds.split_from:
        yield f"it takes {size:.1%} of the usable window, more than {bounds.split_from:.0%}."
    if used is not None and used < bounds.least_used:
        yield (
            f"{facts.questions:,} questions touched {facts.used} of {facts.sections} sections "
            f"({used:.0%}), less than {bounds.least_used:.0%}."
        )
    if _changes_faster(facts):
        yield (
            f"its text changes {facts.changes_a_week:.1f} times a week and is checked "
            f"{facts.checks_a_week:.1f} times."
        )
    if facts.readers_differ:
        yield "not all readers may see the same facts, and an inline sheet shows everything to all."


def _changes_faster(facts: Facts) -> bool:
    """Weekly change that the checks do not keep up with."""
    changes, checks = facts.changes_a_week, facts.checks_a_week
    return changes is not None and checks is not None and changes >= 1 and changes > checks


def _known(facts: Facts, bounds: Thresholds) -> Iterable[str]:
    """What is known besides, and what is not."""
    if facts.used_share is None:
        yield (
            f"Which sections are used is not known yet: {facts.questions:,} questions in the "
            f"period, and at least {facts.sections} are wanted."
        )
    elif facts.used_share >= bounds.least_used:
        yield (
            f"{facts.questions:,} questions touched {facts.used} of {facts.sections} sections "
            f"({facts.used_share:.0%})."
        )
    if facts.readers_differ is None:
        yield "Nobody has said yet whether all readers may see the same facts."
    if is_borderline(facts, bounds):
        yield (
            f"The size is an estimate (±{ESTIMATE_ERROR:.0%}) near a bound; have the model "
            "service count it."
        )


def is_borderline(facts: Facts, bounds: Thresholds) -> bool:
    """Whether the error of the count reaches over one of the bounds."""
    low = bounds.inline_below * (1 - ESTIMATE_ERROR)
    high = bounds.split_from * (1 + ESTIMATE_ERROR)
    return facts.sheet.method == "estimate" and low <= facts.sheet_share <= high


# ---- what an answer costs ----


@dataclass(frozen=True, slots=True)
class Cost:
    """Input tokens that one answer is billed for, as tokens of plain input.

    `plain`: nothing cached. `cached`: the system prompt read from the cache.
    """

    plain: float
    cached: float


def cost_inline(*, rules: int, sheet: int, question: int, passes: int) -> Cost:
    """Every pass sends rules, sheet and question; the first two may come from the cache."""
    system = rules + sheet
    return Cost(passes * (system + question), passes * (system * CACHE_READ + question))


def cost_split(*, rules: int, titles: int, retrieved: float, question: int, passes: int) -> Cost:
    """Every pass sends rules, titles, the retrieved chunks and the question; chunks vary with the
    question and so are never cached."""
    system, varying = rules + titles, retrieved + question
    return Cost(passes * (system + varying), passes * (system * CACHE_READ + varying))


# ---- rules that have grown into something else ----


@dataclass(frozen=True, slots=True)
class RuleRemark:
    """One rule that would be better in the sheet or shorter, and why."""

    key: str
    sentence: str


def rule_remarks(rules: Sequence[RuleSnapshot]) -> tuple[RuleRemark, ...]:
    """Enabled rules that are long, or full of facts that could be checked and dated in a section."""
    return tuple(
        RuleRemark(rule.key, f"“{rule.key}” {said}")
        for rule in rules
        if rule.enabled and (said := _remark(rule))
    )


def _remark(rule: RuleSnapshot) -> str:
    text = rule.text
    words, figures = len(text.split()), len(set(_FIGURE.findall(text)))
    if words > LONG_RULE_WORDS:
        return f"has {words} words; a rule says how to behave, so move what it knows to a section."
    if figures >= REFERENCE_FIGURES:
        return f"holds {figures} figures and reads like reference; move them to a section."
    # To send people somewhere is what a signpost is for.
    if rule.kind != "signpost" and _ADDRESS.search(text):
        return "holds an address, which can go stale unchecked; move it to a section."
    return ""
