"""A question set answered inline and split, side by side: what was right, sent and paid.

Pure. Every question is answered twice by the same bot from the same text, so
the two are compared question by question: what one had right and the other
wrong is what counts, not the difference of two shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean
from typing import Any, Literal

from evals import measuring
from evals.graders import GradedReply, Transcript
from evals.graders.contains import ContainsAny
from evals.graders.refusals import Refuses
from factsheets import sizing

Delivery = Literal["inline", "split"]
DELIVERIES: tuple[Delivery, ...] = ("inline", "split")

#: A split that saves less of the payload is not worth its keep.
LEAST_SAVED = 0.30
#: Nor is one that loses so large a share of the questions, net.
MOST_LOST = 0.05
#: Or loses more than chance explains (sign test on the questions that differ, two-sided).
CHANCE = 0.05


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer, graded. Tokens as the service counted them, else estimates.

    `right`: an in-scope question answered with its facts, or an out-of-scope
    one turned away; None where the reply leaves it unclear. `support`: share of
    the reply's claims that the sheet has; None where it makes none.
    """

    key: str
    delivery: Delivery
    is_in_scope: bool
    right: bool | None
    refused: bool | None
    support: float | None
    input_tokens: int
    cached_tokens: int
    error: str = ""


def is_refusal(text: str, flag: bool | None) -> bool | None:
    """Whether a reply turns the question away; None where that is unclear."""
    verdict = Refuses().grade(Transcript(rules_text="", replies=(GradedReply(text, flag),)))
    return {"pass": True, "fail": False}.get(verdict.outcome)


def is_right(
    text: str, refused: bool | None, *, is_in_scope: bool, facts: Sequence[Sequence[str]]
) -> bool | None:
    """Whether a reply is right: one word of each fact, or a refusal where the sheet has nothing.

    An in-scope question without facts is right if it is not turned away.
    """
    if not is_in_scope:
        return refused
    if refused is not False and not facts:
        return None if refused is None else False
    reply = (GradedReply(text, refused),)
    return all(
        ContainsAny(tuple(alternatives), "anywhere")
        .grade(Transcript(rules_text="", replies=reply))
        .outcome
        == "pass"
        for alternatives in facts
    )


def figures(answers: Sequence[Answered]) -> dict[str, Any]:
    """The figures of each delivery, and the two compared, as plain JSON."""
    by = {d: [a for a in answers if a.delivery == d] for d in DELIVERIES}
    return {**{d: _figures(by[d]) for d in DELIVERIES}, "compared": _compared(by)}


def _figures(answers: Sequence[Answered]) -> dict[str, Any]:
    usable = [a for a in answers if not a.error]
    inside = [a for a in usable if a.is_in_scope]
    outside = [a for a in usable if not a.is_in_scope]
    claimed = [a.support for a in usable if a.support is not None]
    return {
        "answers": len(answers),
        "errors": len(answers) - len(usable),
        "unclear": sum(a.right is None for a in usable),
        "right": _share(a.right is True for a in inside),
        "turned_away": _share(a.refused is True for a in inside),
        "refused_outside": _share(a.right is True for a in outside),
        "grounded": _share(share == 1.0 for share in claimed),
        "payload": round(fmean(a.input_tokens for a in usable)) if usable else None,
        "cost": round(fmean(billed(a) for a in usable)) if usable else None,
    }


def billed(answer: Answered) -> float:
    """Input tokens as they are paid for: those read from the cache count a tenth."""
    plain = answer.input_tokens - answer.cached_tokens
    return plain + answer.cached_tokens * sizing.CACHE_READ


def _share(values: Iterable[bool]) -> dict[str, Any] | None:
    kept = list(values)
    found = measuring.share(sum(kept), len(kept))
    return None if found is None else found.as_json()


def _compared(by: Mapping[Delivery, Sequence[Answered]]) -> dict[str, Any]:
    inline, split = ({a.key: a for a in by[d]} for d in DELIVERIES)
    both = [key for key in inline if key in split]
    clear = [k for k in both if inline[k].right is not None and split[k].right is not None]
    lost = sorted(k for k in clear if inline[k].right and not split[k].right)
    gained = sorted(k for k in clear if split[k].right and not inline[k].right)
    whole = [k for k in both if not inline[k].error and not split[k].error]
    before = fmean(inline[k].input_tokens for k in whole) if whole else 0.0
    after = fmean(split[k].input_tokens for k in whole) if whole else 0.0
    return {
        "questions": len(both),
        "clear": len(clear),
        "lost": lost,
        "gained": gained,
        "saved": round(1 - after / before, 4) if before else None,
        "chance": round(sign_test(len(lost), len(gained)), 4),
    }


def sign_test(lost: int, gained: int) -> float:
    """Two-sided probability of a split this uneven if either side were as likely.

    The exact binomial form of McNemar's test, on the questions that differ.
    """
    differing = lost + gained
    if not differing:
        return 1.0
    tail: int = sum(comb(differing, k) for k in range(min(lost, gained) + 1))
    return float(min(1.0, 2 * tail / 2**differing))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the split is worth it, in one sentence; None where nothing could be compared."""

    is_worth_it: bool | None
    sentence: str


def verdict(found: Mapping[str, Any]) -> Verdict:
    """Worth it: it saves enough, and loses no more answers than chance and a small share explain."""
    compared = found["compared"]
    clear, saved = compared["clear"], compared["saved"]
    if not clear or saved is None:
        return Verdict(
            None, "Nothing could be compared: no question has a clear answer in both deliveries."
        )
    lost, gained = len(compared["lost"]), len(compared["gained"])
    net = lost - gained
    told = (
        f"a question sends {abs(saved):.0%} {'less' if saved >= 0 else 'more'}, and of {clear} "
        f"questions it loses {lost} that were right inline and gains {gained}"
    )
    if saved < LEAST_SAVED:
        return Verdict(False, f"The split is not worth it: {told}.")
    if net > 0 and (net / clear > MOST_LOST or compared["chance"] < CHANCE):
        return Verdict(False, f"The split is not worth it yet: {told}; look at what it loses.")
    return Verdict(True, f"The split is worth it: {told}.")
