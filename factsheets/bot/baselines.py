"""Rules that tell whether a sheet can answer a question, by name, so that reports can compare them.

Ours is `retrieval.Retrieval.grounded`; the published one is kept beside it as
the bar. Each can be read at other thresholds than its own, for a curve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from factsheets.bot import retrieval
from factsheets.bot.retrieval import Retrieval


class GroundingRule(Protocol):
    """Accepts a question as one that the sheet answers, or turns it away."""

    @property
    def name(self) -> str: ...

    @property
    def threshold(self) -> float: ...

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Where a curve reads the rule, from the most open on."""
        ...

    def measure(self, found: Retrieval) -> float:
        """What the rule holds against its threshold."""
        ...


def accepts(rule: GroundingRule, found: Retrieval, at: float | None = None) -> bool:
    """Whether a rule lets a question through, at its own threshold or at another."""
    return rule.measure(found) >= (rule.threshold if at is None else at)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Ours: the share of the question in the top chunk, each word weighed by its rarity."""

    name: str = "ours"
    threshold: float = retrieval.GROUNDED_FROM
    thresholds: tuple[float, ...] = tuple(step / 20 for step in range(21))

    def measure(self, found: Retrieval) -> float:
        return found.coverage


@dataclass(frozen=True, slots=True)
class Published:
    """A published retriever's: top score of 6 or more, and half of the question's content words.

    Its threshold is that of the score, in the older form of BM25, which is ours
    times k1 + 1. A question of which too few words are in the top chunk is below
    every threshold, one of which all are is above.
    """

    name: str = "published"
    threshold: float = 6.0
    thresholds: tuple[float, ...] = tuple(float(step) for step in range(21))
    #: The least share of content words, each counting alike.
    share: float = 0.5

    def measure(self, found: Retrieval) -> float:
        if not found.words or not found.hits:
            return -math.inf
        has = sum(word.found for word in found.words) / len(found.words)
        if has == 1:
            return math.inf
        return found.hits[0].score * (retrieval.K1 + 1) if has >= self.share else -math.inf


OURS, PUBLISHED = Coverage(), Published()

RULES: Mapping[str, GroundingRule] = {rule.name: rule for rule in (OURS, PUBLISHED)}
