"""Answers the gate's question: which passing run speaks for a subject, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils import timezone

from evals import alarms, regressions, runs, suites
from evals.models import Probe, Run
from factsheets import canonical, changes
from factsheets.canonical import Subject
from factsheets.gate import Evidence, Finding, PassingRun


def for_subject(subject: Subject) -> Evidence:
    """The latest passing full run of this sheet on these rules, with what else differs as findings."""
    required = suites.required(subject.sheet_id)
    found = [*_suites(required), *regressions.findings(subject)]
    ended = list(
        Run.objects.filter(
            sheet_id=subject.sheet_id,
            rules_hash=subject.rules_hash,
            state=Run.State.CLOSED,
            is_partial=False,
        )
        .defer("content", "rules_text")
        .order_by("-finished_at", "id")
    )
    failed_live = alarms.failed_run(subject.sheet_id)
    alarm = _alarm(failed_live) if failed_live else None
    passing = next((run for run in ended if _has_passed(run)), None)
    if passing is None:
        last = _last_passed(subject.sheet_id)
        return Evidence(None, (*found, _not_probed(ended)), last, alarm)
    found += _against(passing, required)
    failures = _newer_failures(passing, ended, subject, {s.slug: s.hash for s in required})
    found += failures
    if alarm and failed_live in ended[: ended.index(passing)] and not failures:
        found.append(alarm)
    found += _earlier_failures(passing, ended)
    return Evidence(
        PassingRun(
            run_id=str(passing.id),
            content_hash=passing.content_hash,
            bot_hash=passing.bot_hash,
            finished_on=timezone.localdate(passing.ended_at),
            summary=summary(passing),
            changes_up_to=_knew_of(passing),
        ),
        tuple(found),
        alarm=alarm,
    )


def _has_passed(run: Run) -> bool:
    """By its rows and not by its word alone."""
    passed = Run.Outcome.PASSED
    return run.outcome == passed and runs.result(run).outcome == passed


def _last_passed(sheet_id: int) -> int:
    passed = Run.objects.filter(sheet=sheet_id, outcome=Run.Outcome.PASSED, is_partial=False)
    newest = passed.defer("content", "rules_text").order_by("-finished_at", "id").first()
    return _knew_of(newest) if newest else 0


def _knew_of(run: Run) -> int:
    """The newest change set at the run's start; of runs that kept it not, by the time."""
    return run.changes_up_to_id or changes.at(run.started_at)


def _alarm(failed: Run) -> Finding:
    return Finding(
        "live-probes-failed",
        "block",
        "The probes failed on what bots get now; mend the rules or the text and run the probes, "
        "or withdraw it.",
        "probes",
        since=failed.ended_at,
    )


def summary(run: Run) -> bytes:
    """What a publication keeps of its run, recomputable from rows. No person, prompt or reply."""
    return _summary(run, run.counts)


def recomputed(run: Run) -> bytes:
    """The same with the counts taken from the attempts again, to find a forged one."""
    return _summary(run, runs.result(run).counts)


def _summary(run: Run, counts: dict[str, object]) -> bytes:
    return canonical.canonical_json(
        {
            "run": str(run.id),
            "content_hash": run.content_hash,
            "rules_hash": run.rules_hash,
            "bot_hash": run.bot_hash,
            "provider": run.plan["bot"]["provider"],
            "model": run.plan["bot"]["model"],
            "finished_at": canonical.instant(run.ended_at),
            "counts": counts,
            "suites": [
                {
                    "slug": suite["slug"],
                    "hash": suite["hash"],
                    "repeats": suite["repeats"],
                    "pass_bar": suite["pass_bar"],
                    "left_out": suite["left_out"],
                }
                for suite in run.plan["suites"]
            ],
        }
    )


#: Checks that a bot which turns everything away does not pass.
_ASKS_FOR_AN_ANSWER = frozenset({"contains-any", "answers"})


def _suites(required: Sequence[suites.FrozenSuite]) -> list[Finding]:
    if not required:
        return [
            Finding(
                "no-suite",
                "block",
                "The sheet requires no suite of probes, so nothing tests its rules; require one.",
                "suites",
            )
        ]
    return [
        Finding(
            "empty-suite",
            "block",
            f"The suite “{suite.title}” has no active probe with a check; add some or drop it.",
            "probe-list",
        )
        for suite in required
        if suite.is_empty
    ] + _no_control(required)


def _no_control(required: Sequence[suites.FrozenSuite]) -> list[Finding]:
    """A bot that turns everything away passes suites that never ask for an answer."""
    probes = [probe for suite in required for probe in suite.probes]
    if not probes or any(_is_control(probe) for probe in probes):
        return []
    return [
        Finding(
            "no-control",
            "warn",
            "No active probe must be answered, so a bot that turns every question away would pass; "
            "fill in a control question: what it asks, the words of a right answer, and “active”.",
            "probe-list",
        )
    ]


def _is_control(probe: Mapping[str, Any]) -> bool:
    return probe["must"] == Probe.Must.ANSWER and any(
        check["type"] in _ASKS_FOR_AN_ANSWER for check in probe["checks"]
    )


def _not_probed(ended: Sequence[Run]) -> Finding:
    if not ended:
        sentence = "The probes have not run on these rules; run them."
    else:
        last = ended[0]
        sentence = (
            "A run on these rules is called passed, and what its attempts say is not so; find out "
            "who altered it, and run the probes again."
            if last.outcome == Run.Outcome.PASSED
            else f"No run on these rules has passed; the last one ended {last.get_outcome_display()}. "
            "See what went wrong and run the probes again."
        )
    return Finding("rules-not-probed", "block", sentence, "probes")


def _against(passing: Run, required: Sequence[suites.FrozenSuite]) -> list[Finding]:
    ran = {suite["slug"]: suite for suite in passing.plan["suites"]}
    wanted = {suite.slug: suite for suite in required}
    if not wanted:
        return []
    new = [suite.title for slug, suite in wanted.items() if slug not in ran]
    dropped = [suite["title"] for slug, suite in ran.items() if slug not in wanted]
    said = [
        f"now requires {_listed(new)} too" if new else "",
        f"no longer requires {_listed(dropped)}" if dropped else "",
    ]
    what = " and ".join(filter(None, said))
    requirements = Finding(
        "requirements-changed",
        "block",
        f"Since the probes passed the sheet {what}; run them again.",
        "probes",
    )
    return ([requirements] if what else []) + [
        Finding(
            "suite-changed",
            "block",
            f"The suite “{suite.title}” {how} since it passed; run the probes again.",
            "probes",
        )
        for slug, suite in wanted.items()
        if slug in ran
        for how in suites.differences(ran[slug], suite)
    ]


def _newer_failures(
    passing: Run, ended: Sequence[Run], subject: Subject, required: dict[str, str]
) -> list[Finding]:
    """A later full run of the same subject that failed, with the suites that passed or those
    required now; other endings do not count."""

    def same_suites(run: Run) -> bool:
        return _hashes(run.plan) in (_hashes(passing.plan), required)

    later = [
        run
        for run in ended[: ended.index(passing)]
        if run.outcome == Run.Outcome.FAILED
        and (run.content_hash, run.bot_hash) == (subject.content_hash, subject.bot_hash)
        and same_suites(run)
    ]
    if not later:
        return []
    return [
        Finding(
            "newer-run-failed",
            "block",
            "A later run of the same probes on the same text, rules and bot failed; "
            "mend what it found and run them again.",
            "probes",
            since=later[-1].ended_at,
        )
    ]


def _earlier_failures(passing: Run, ended: Sequence[Run]) -> list[Finding]:
    """A run is never tried until it passes without anybody's notice."""
    failed = [
        run
        for run in ended[ended.index(passing) + 1 :]
        if run.outcome == Run.Outcome.FAILED
        and (run.content_hash, run.bot_hash) == (passing.content_hash, passing.bot_hash)
        and _hashes(run.plan) == _hashes(passing.plan)
    ]
    if not failed:
        return []
    times = "once" if len(failed) == 1 else f"{len(failed)} times"
    return [
        Finding(
            "passed-after-failures",
            "warn",
            f"The same probes failed {times} on the same text, rules and bot before they passed; "
            "read what failed before you trust the run.",
            "probes",
            since=failed[-1].ended_at,
        )
    ]


def _hashes(plan: dict[str, Any]) -> dict[str, str]:
    return {suite["slug"]: suite["hash"] for suite in plan["suites"]}


def _listed(titles: Iterable[str]) -> str:
    return ", ".join(f"“{title}”" for title in sorted(titles))
