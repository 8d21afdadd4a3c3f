"""A run as a JUnit report. An attempt without a verdict is an error, never a pass or a failure."""

from __future__ import annotations

from xml.etree import ElementTree

from evals.models import Attempt, Run


def report(run: Run) -> bytes:
    """`tests` counts what was planned, so that a gap cannot hide."""
    attempts = list(run.attempts.prefetch_related("verdicts").order_by("position", "repeat", "id"))
    root = ElementTree.Element("testsuites")
    for suite in run.plan["suites"]:
        rows = [attempt for attempt in attempts if attempt.suite == suite["slug"]]
        failed = sum(attempt.outcome == Attempt.Outcome.FAIL for attempt in rows)
        passed = sum(attempt.outcome == Attempt.Outcome.PASS for attempt in rows)
        element = ElementTree.SubElement(
            root,
            "testsuite",
            name=suite["slug"],
            tests=str(len(suite["probes"]) * suite["repeats"]),
            failures=str(failed),
            errors=str(len(rows) - failed - passed),
            timestamp=run.started_at.isoformat(),
        )
        for attempt in rows:
            _case(element, attempt)
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data


def _case(suite: ElementTree.Element, attempt: Attempt) -> None:
    name = f"{attempt.probe} #{attempt.repeat}"
    case = ElementTree.SubElement(suite, "testcase", classname=attempt.category, name=name)
    if attempt.outcome == Attempt.Outcome.PASS:
        return
    if attempt.outcome == Attempt.Outcome.FAIL:
        reasons = [v.reason for v in attempt.verdicts.all() if v.outcome == "fail"]
        ElementTree.SubElement(case, "failure", message=_xml(" ".join(reasons)))
    else:
        said = attempt.error or attempt.outcome or attempt.get_state_display()
        ElementTree.SubElement(case, "error", message=_xml(said))


def _xml(text: str) -> str:
    """Without characters that no XML can carry."""
    return "".join(
        c
        for c in text
        if c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff"
    )
