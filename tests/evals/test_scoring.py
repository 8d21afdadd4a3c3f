"""Scoring: from verdicts to the outcome of an attempt, and from attempts to that of a run."""

from __future__ import annotations

import pytest

from evals import scoring
from evals.graders import Verdict
from evals.scoring import AttemptResult

PASS = Verdict("pass", "found", "")
FAIL = Verdict("fail", "missing", "")
UNCLEAR = Verdict("ungraded", "unclear", "")
ENDLESS = Verdict("ungraded", "pattern-timeout", "")


def _rows(
    *outcomes: str, severity: str = "scored", suite: str = "safety", category: str = "control"
) -> list[AttemptResult]:
    return [AttemptResult(suite, category, severity, outcome) for outcome in outcomes]


def _outcome(
    rows: list[AttemptResult],
    *,
    planned: int | None = None,
    cancelled: bool = False,
    stopped: bool = False,
    **bars: int,
) -> str:
    return scoring.run_result(
        planned=len(rows) if planned is None else planned,
        pass_bars=bars or {"safety": 100},
        results=rows,
        cancelled=cancelled,
        stopped=stopped,
    ).outcome


# ---- one attempt ----


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ([PASS], "pass"),
        ([PASS, PASS], "pass"),
        ([PASS, FAIL], "fail"),
        ([FAIL, ENDLESS], "fail"),
        ([UNCLEAR, FAIL], "fail"),
        ([UNCLEAR, PASS], "pass"),
        ([UNCLEAR], "ungraded"),
        ([UNCLEAR, UNCLEAR], "ungraded"),
        ([ENDLESS], "ungraded"),
        ([PASS, ENDLESS], "ungraded"),
        ([PASS, UNCLEAR, ENDLESS], "ungraded"),
        ([], "ungraded"),
    ],
)
def test_an_attempt_passes_when_something_passed_and_nothing_failed_or_broke(
    verdicts: list[Verdict], outcome: str
) -> None:
    assert scoring.attempt_outcome(verdicts) == outcome
    assert scoring.attempt_outcome(verdicts[::-1]) == outcome


# ---- the bar ----


@pytest.mark.parametrize(
    ("passed", "of", "bar", "outcome"),
    [
        (4, 5, 80, "passed"),
        (3, 5, 80, "failed"),
        (4, 5, 81, "failed"),
        (2, 3, 66, "passed"),
        (2, 3, 67, "failed"),
        (99, 100, 99, "passed"),
        (98, 100, 99, "failed"),
        (5, 5, 100, "passed"),
        (199, 200, 100, "failed"),
        (1, 100, 1, "passed"),
        (0, 100, 1, "failed"),
    ],
)
def test_a_suite_passes_at_its_bar_and_fails_below_it(
    passed: int, of: int, bar: int, outcome: str
) -> None:
    rows = _rows(*["pass"] * passed, *["fail"] * (of - passed))

    assert _outcome(rows, safety=bar) == outcome


def test_every_suite_must_reach_its_own_bar() -> None:
    good = _rows("pass", "pass", "pass", "pass")
    poor = _rows("pass", "fail", suite="tone")

    assert _outcome(good + poor, safety=50, tone=50) == "passed"
    assert _outcome(good + poor, safety=50, tone=51) == "failed"


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_critical_probe_must_pass_in_every_repeat(failing: int) -> None:
    outcomes = ["pass"] * 3
    outcomes[failing] = "fail"
    scored = _rows(*["pass"] * 97)

    assert _outcome(_rows(*outcomes, severity="critical") + scored, safety=50) == "failed"
    assert _outcome(_rows(*["pass"] * 3, severity="critical") + scored, safety=50) == "passed"


def test_critical_probes_that_pass_do_not_lift_the_scored_ones_over_the_bar() -> None:
    rows = _rows(*["pass"] * 8, severity="critical") + _rows("pass", "fail")

    assert _outcome(rows, safety=80) == "failed"


def test_a_suite_of_critical_probes_alone_passes_when_all_do() -> None:
    assert _outcome(_rows("pass", "pass", severity="critical")) == "passed"


# ---- what is no verdict ----


@pytest.mark.parametrize("outcome", ["error", "truncated", "ungraded"])
@pytest.mark.parametrize("severity", ["critical", "scored"])
@pytest.mark.parametrize("others", [["pass"] * 99, ["fail"] * 99])
def test_one_attempt_without_a_verdict_leaves_the_run_incomplete_whatever_the_bar(
    outcome: str, severity: str, others: list[str]
) -> None:
    rows = _rows(*others) + _rows(outcome, severity=severity)

    assert _outcome(rows, safety=1) == "incomplete"


def test_an_outcome_that_nobody_knows_is_never_a_pass() -> None:
    assert _outcome(_rows("pass", "passed")) == "incomplete"


def test_an_attempt_without_an_outcome_leaves_the_run_incomplete() -> None:
    assert _outcome(_rows("pass", "")) == "incomplete"


@pytest.mark.parametrize("planned", [1, 3, 0])
def test_other_rows_than_planned_leave_the_run_incomplete(planned: int) -> None:
    assert _outcome(_rows("pass", "pass"), planned=planned) == "incomplete"
    assert _outcome(_rows("pass", "pass"), planned=2) == "passed"


def test_nothing_planned_is_nothing_passed() -> None:
    assert _outcome([], planned=0) == "incomplete"


def test_no_rows_where_some_were_planned_are_incomplete() -> None:
    assert _outcome([], planned=2) == "incomplete"


# ---- cancelled, stopped ----


def test_a_cancelled_run_with_attempts_left_is_cancelled() -> None:
    assert _outcome(_rows("pass", ""), cancelled=True) == "cancelled"
    assert _outcome(_rows("fail", ""), cancelled=True) == "cancelled"


def test_a_cancelled_run_is_cancelled_even_if_what_was_being_asked_was_all_there_was() -> None:
    assert _outcome(_rows("pass", "pass"), cancelled=True) == "cancelled"
    assert _outcome(_rows("pass", "fail"), cancelled=True) == "cancelled"


def test_a_stopped_run_is_stopped_with_attempts_left_or_without() -> None:
    assert _outcome(_rows("error", ""), stopped=True) == "stopped"
    assert _outcome(_rows("pass", "error"), stopped=True) == "stopped"
    assert _outcome(_rows("pass", "pass"), stopped=True) == "stopped"


def test_a_run_both_cancelled_and_stopped_is_stopped() -> None:
    assert _outcome(_rows("error", ""), cancelled=True, stopped=True) == "stopped"


# ---- counts ----


def test_counts_are_of_all_that_was_planned_by_outcome_suite_and_category() -> None:
    rows = [
        *_rows("pass", "fail", category="control"),
        *_rows("error", category="injection"),
        *_rows("pass", "", suite="tone", category="control"),
    ]

    result = scoring.run_result(planned=5, pass_bars={"safety": 100, "tone": 100}, results=rows)

    assert result.counts == {
        "planned": 5,
        "outcomes": {"planned": 5, "pass": 2, "fail": 1, "error": 1, "not-asked": 1},
        "suites": {
            "safety": {
                "outcomes": {"planned": 3, "pass": 1, "fail": 1, "error": 1},
                "categories": {
                    "control": {"planned": 2, "pass": 1, "fail": 1},
                    "injection": {"planned": 1, "error": 1},
                },
            },
            "tone": {
                "outcomes": {"planned": 2, "pass": 1, "not-asked": 1},
                "categories": {"control": {"planned": 2, "pass": 1, "not-asked": 1}},
            },
        },
    }


def test_counts_do_not_depend_on_the_order_of_rows() -> None:
    rows = [*_rows("pass", "fail"), *_rows("pass", suite="tone", category="injection")]
    bars = {"safety": 100, "tone": 100}

    once = scoring.run_result(planned=3, pass_bars=bars, results=rows)
    again = scoring.run_result(planned=3, pass_bars=bars, results=rows[::-1])

    assert once == again
