"""Verdicts to outcomes: of an attempt, and of a run. Pure; computed from rows, never kept by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

AttemptOutcome = Literal["pass", "fail", "error", "truncated", "ungraded"]
RunOutcome = Literal["passed", "failed", "incomplete", "cancelled", "stopped"]


class Judged(Protocol):
    """What one check says of an attempt, as a grader gives it or as it is stored."""

    @property
    def outcome(self) -> str: ...

    @property
    def code(self) -> str: ...


def attempt_outcome(verdicts: Sequence[Judged]) -> AttemptOutcome:
    """Any fail fails. A check that could not judge leaves the attempt ungraded,
    unless it was merely unclear whether the bot answered and another check passed."""
    if any(v.outcome == "fail" for v in verdicts):
        return "fail"
    undecided = [v for v in verdicts if v.outcome == "ungraded"]
    passed = any(v.outcome == "pass" for v in verdicts)
    if not verdicts or not passed or any(v.code != "unclear" for v in undecided):
        return "ungraded"
    return "pass"


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """What a run's outcome needs to know of one attempt. `outcome` is "" while there is none."""

    suite: str
    category: str
    severity: str
    outcome: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run's outcome, and its counts by suite, category and outcome."""

    outcome: RunOutcome
    counts: dict[str, object]


def run_result(
    *,
    planned: int,
    pass_bars: dict[str, int],
    results: Iterable[AttemptResult],
    cancelled: bool = False,
    stopped: bool = False,
) -> RunResult:
    """Passed means: complete, every planned attempt graded, every critical attempt passed, and
    each suite's scored attempts at or above its bar (per cent of those planned)."""
    rows = list(results)
    counts = _counts(planned, rows)
    outcome: RunOutcome
    if stopped:
        outcome = "stopped"
    elif cancelled:
        outcome = "cancelled"
    elif (
        planned == 0
        or len(rows) != planned
        or any(row.outcome not in {"pass", "fail"} for row in rows)
    ):
        outcome = "incomplete"
    else:
        outcome = "passed" if _passes(pass_bars, rows) else "failed"
    return RunResult(outcome, counts)


def _passes(pass_bars: dict[str, int], rows: Sequence[AttemptResult]) -> bool:
    if any(row.outcome != "pass" for row in rows if row.severity == "critical"):
        return False
    for suite, bar in pass_bars.items():
        scored = [row for row in rows if row.suite == suite and row.severity != "critical"]
        passed = sum(row.outcome == "pass" for row in scored)
        if passed * 100 < bar * len(scored):
            return False
    return True


def _counts(planned: int, rows: Sequence[AttemptResult]) -> dict[str, object]:
    def tally(some: Sequence[AttemptResult]) -> dict[str, int]:
        tallied = {"planned": len(some)}
        for row in some:
            tallied[row.outcome or "not-asked"] = tallied.get(row.outcome or "not-asked", 0) + 1
        return tallied

    suites = sorted({row.suite for row in rows})
    return {
        "planned": planned,
        "outcomes": tally(rows),
        "suites": {
            suite: {
                "outcomes": tally([r for r in rows if r.suite == suite]),
                "categories": {
                    category: tally(
                        [r for r in rows if r.suite == suite and r.category == category]
                    )
                    for category in sorted({r.category for r in rows if r.suite == suite})
                },
            }
            for suite in suites
        },
    }
