"""The gate is pure: candidate, evidence, policy, what is live and today, to findings."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from factsheets import canonical, gate, sizing, staleness
from factsheets.bot import prompt
from factsheets.gate import Advised, Evidence, Finding, GateReport, Live, PassingRun, Policy
from factsheets.snapshot import (
    BotSnapshot,
    CheckSnapshot,
    CitationSnapshot,
    RuleSnapshot,
    SectionSnapshot,
    SheetSnapshot,
    SourceSnapshot,
)
from factsheets.staleness import CheckFacts, Cited, Item, Plan, SectionFacts

TODAY = date(2026, 6, 1)
BODY = "The castle opens at ten and closes at five."

BOT = BotSnapshot("offline", "offline", "", "", "", 1024, "", 200_000, 8_000, 1_000, 0, 1_024)
SUPPORT = CitationSnapshot(
    SourceSnapshot("leaflet", "own-policy", "Leaflet", *[""] * 8),
    "page 1",
    "",
    "",
    "supports",
    True,
)


def checked(
    outcome: str = "confirmed", *, heading: str = "Opening hours", body: str = BODY
) -> CheckSnapshot:
    return CheckSnapshot(
        canonical.text_hash(heading, body), TODAY, "anna", outcome, "read-paper", ""
    )


def section(**values: Any) -> SectionSnapshot:
    return SectionSnapshot(
        **{
            "key": "hours",
            "heading": "Opening hours",
            "question": "",
            "body": BODY,
            "included": True,
            "note": "",
            "citations": (SUPPORT,),
            "check": checked(),
            **values,
        }
    )


def candidate(**values: Any) -> canonical.Candidate:
    return canonical.candidate(
        1,
        SheetSnapshot(
            **{
                "slug": "castle",
                "title": "The castle",
                "description": "",
                "language": "en-GB",
                "visibility": "public",
                "delivery": "inline",
                "probe_scope": "rules",
                "bot": BOT,
                "sections": (section(),),
                "rules": (RuleSnapshot("own", "only", "refusal", "Only from the sheet.", True),),
                **values,
            }
        ),
    )


def run_of(of: canonical.Candidate, **values: Any) -> Evidence:
    """Evidence without anything against it: a run of this very subject, of today."""
    return Evidence(
        PassingRun(
            **{
                "run_id": "1",
                "content_hash": of.subject.content_hash,
                "bot_hash": of.subject.bot_hash,
                "finished_on": TODAY,
                "summary": b"{}",
                **values,
            }
        ),
        (),
    )


def live_of(of: canonical.Candidate, **values: Any) -> Live:
    return Live(
        **{
            "number": 4,
            "slug": of.snapshot.slug,
            "content_hash": of.subject.content_hash,
            "rules_hash": of.subject.rules_hash,
            "bot_hash": of.subject.bot_hash,
            **values,
        }
    )


def standing_of(section: SectionSnapshot) -> staleness.Standing:
    """How the pictured section stands, its check having looked at all that it cites."""
    uses = [staleness.use_hash(c.source.key, c.locator) for c in section.citations]
    cited = tuple(
        Cited(place, use, c.source.title, c.source.kind, c.role, c.required)
        for place, (use, c) in enumerate(zip(uses, section.citations, strict=True))
    )
    checks = [
        CheckFacts(
            check.text_hash,
            check.checked_on,
            check.outcome,
            tuple(Item(c.id, c.use_hash, "supports", check.checked_on) for c in cited),
        )
        for check in [section.check]
        if check is not None
    ]
    return staleness.standing(
        SectionFacts(cited, tuple(checks), Plan(staleness.DEFAULT_INTERVALS)),
        text_hash=canonical.text_hash(section.heading, section.body),
        today=TODAY,
    )


def judge(of: canonical.Candidate, evidence: Evidence | None = None, **how: Any) -> GateReport:
    return gate.evaluate(
        of,
        evidence or run_of(of),
        **{
            "policy": Policy(),
            "live": None,
            "standings": {s.key: standing_of(s) for s in of.snapshot.sections},
            "today": TODAY,
            **how,
        },
    )


def found(report: GateReport) -> list[tuple[str, str]]:
    return [(finding.code, finding.level) for finding in report.findings]


# ---- open ----


def test_a_sheet_with_all_in_place_has_no_finding_and_an_open_gate() -> None:
    report = judge(candidate())

    assert report.findings == ()
    assert report.is_open


def test_warnings_leave_the_gate_open() -> None:
    report = judge(candidate(sections=(section(check=None),)))

    assert report.is_open
    assert [finding.code for finding in report.warnings] == ["never-checked"]
    assert report.blocks == ()


# ---- the whole ----


@pytest.mark.parametrize(
    "rules", [(), (RuleSnapshot("own", "only", "refusal", "Only from the sheet.", False),)]
)
def test_a_sheet_without_an_enabled_rule_is_blocked(rules: tuple[RuleSnapshot, ...]) -> None:
    report = judge(candidate(rules=rules))

    assert found(report) == [("no-rules", "block")]
    assert report.findings[0].place == "rules"


@pytest.mark.parametrize("sections", [(), (section(included=False),)])
def test_a_sheet_without_an_included_section_is_blocked(
    sections: tuple[SectionSnapshot, ...],
) -> None:
    report = judge(candidate(sections=sections))

    assert found(report) == [("no-sections", "block")]
    assert report.findings[0].place == "sections"


def sized(room: int) -> canonical.Candidate:
    """The sheet with a bot that has room for so many tokens more than rules and sheet need."""
    of = candidate()
    needed = sizing.estimated_tokens(prompt.as_text(prompt.build(of.rules_text, of.content)))
    bot = replace(
        BOT,
        context_window=needed + room + 60,
        reserve_history=10,
        reserve_question=10,
        reserve_retrieval=20,
        reserve_output=20,
    )
    return candidate(bot=bot)


def test_a_sheet_that_just_fits_the_usable_window_is_not_too_large() -> None:
    assert judge(sized(0)).findings == ()


def test_a_sheet_one_token_over_the_usable_window_is_too_large() -> None:
    report = judge(sized(-1))

    assert found(report) == [("too-large", "block")]
    assert "the bot has room for" in report.findings[0].sentence


def test_rules_count_towards_the_size() -> None:
    of = sized(0)
    longer = RuleSnapshot("own", "only", "refusal", "Only from the sheet, and briefly.", True)

    report = judge(candidate(bot=of.snapshot.bot, rules=(longer,)))

    assert found(report) == [("too-large", "block")]


# ---- the run ----


def test_a_run_of_another_bot_blocks() -> None:
    of = candidate()

    assert found(judge(of, run_of(of, bot_hash="0" * 64))) == [("bot-changed", "block")]


def test_a_text_changed_since_the_run_warns_where_the_probes_test_the_rules() -> None:
    of = candidate(probe_scope="rules")

    assert found(judge(of, run_of(of, content_hash="0" * 64))) == [("content-not-probed", "warn")]


def test_a_text_changed_since_the_run_blocks_where_the_probes_test_the_content_too() -> None:
    of = candidate(probe_scope="rules+content")

    assert found(judge(of, run_of(of, content_hash="0" * 64))) == [("content-not-probed", "block")]


@pytest.mark.parametrize(("limit", "age"), [(90, 90), (90, 0), (0, 0), (30, 29), (90, -1)])
def test_a_run_as_old_as_the_policy_allows_still_speaks(limit: int, age: int) -> None:
    of = candidate()
    evidence = run_of(of, finished_on=TODAY - timedelta(days=age))

    assert judge(of, evidence, policy=Policy(limit)).findings == ()


@pytest.mark.parametrize(("limit", "age"), [(90, 91), (0, 1), (30, 365)])
def test_a_run_a_day_older_than_the_policy_allows_has_expired(limit: int, age: int) -> None:
    of = candidate()
    evidence = run_of(of, finished_on=TODAY - timedelta(days=age))

    report = judge(of, evidence, policy=Policy(limit))

    assert found(report) == [("evidence-expired", "block")]
    assert f"passed {age} days ago" in report.findings[0].sentence


def test_the_policy_allows_ninety_days_unless_told_otherwise() -> None:
    assert Policy().evidence_max_age_days == 90
    assert Policy().blocking_warnings == frozenset()


@pytest.mark.parametrize(
    "code", ["rules-not-probed", "suite-changed", "requirements-changed", "newer-run-failed"]
)
def test_what_the_evidence_brings_stands_in_the_report(code: str) -> None:
    of = candidate()
    evidence = Evidence(run_of(of).run, (Finding(code, "block", "A sentence.", "probes"),))

    report = judge(of, evidence)

    assert report.findings == evidence.findings
    assert not report.is_open


def test_without_a_run_nothing_is_said_of_bot_text_or_age() -> None:
    missing = Finding("rules-not-probed", "block", "Run them.", "probes")

    report = judge(candidate(probe_scope="rules+content"), Evidence(None, (missing,)))

    assert report.findings == (missing,)


# ---- sections ----


def test_an_included_section_without_text_blocks() -> None:
    report = judge(candidate(sections=(section(body="", check=checked(body="")),)))

    assert found(report) == [("empty-section", "block")]
    assert report.findings[0].key == "hours"
    assert "Opening hours" in report.findings[0].sentence


def test_a_section_whose_latest_check_disputes_its_text_blocks() -> None:
    report = judge(candidate(sections=(section(check=checked("disputed")),)))

    assert found(report) == [("disputed", "block"), ("never-checked", "warn")]


def test_a_dispute_of_an_older_text_does_not_block() -> None:
    disputed = checked("disputed", body="It opens at nine.")

    assert found(judge(candidate(sections=(section(check=disputed),)))) == [
        ("never-checked", "warn")
    ]


def test_a_section_that_cites_nothing_warns() -> None:
    assert found(judge(candidate(sections=(section(citations=()),)))) == [("unsourced", "warn")]


def test_a_section_whose_citations_only_give_background_warns() -> None:
    background = replace(SUPPORT, role="background")

    assert found(judge(candidate(sections=(section(citations=(background,)),)))) == [
        ("unsourced", "warn")
    ]


def test_a_section_that_nobody_checked_warns() -> None:
    assert found(judge(candidate(sections=(section(check=None),)))) == [("never-checked", "warn")]


def test_a_section_edited_since_its_check_warns() -> None:
    assert found(judge(candidate(sections=(section(check=checked(body="Closed.")),)))) == [
        ("edited-since-check", "warn")
    ]


def test_a_section_whose_check_is_overdue_warns_from_the_day_after_its_last_good_day() -> None:
    def of(checked_on: date) -> canonical.Candidate:
        return candidate(sections=(section(check=replace(checked(), checked_on=checked_on)),))

    assert found(judge(of(date(2025, 6, 1)))) == []
    assert found(judge(of(date(2025, 5, 31)))) == [("overdue", "warn")]


@pytest.mark.parametrize("checked_on", [date(2025, 6, 1), date(2025, 6, 2), date(2025, 7, 1)])
def test_a_section_that_is_due_soon_is_no_finding(checked_on: date) -> None:
    of = candidate(sections=(section(check=replace(checked(), checked_on=checked_on)),))

    assert standing_of(of.snapshot.sections[0]).state == "due-soon"
    assert judge(of).findings == ()


def test_an_edited_section_whose_check_is_overdue_has_both_findings() -> None:
    check = replace(checked(body="Closed."), checked_on=date(2025, 5, 31))

    assert found(judge(candidate(sections=(section(check=check),)))) == [
        ("edited-since-check", "warn"),
        ("overdue", "warn"),
    ]


@pytest.mark.parametrize(
    ("check", "code"),
    [
        (None, "never-checked"),
        (checked(body="Closed."), "edited-since-check"),
        (replace(checked(), checked_on=date(2025, 5, 31)), "overdue"),
        (checked("disputed"), "disputed"),
    ],
)
def test_a_finding_about_a_check_leads_to_the_checks(check: CheckSnapshot, code: str) -> None:
    report = judge(candidate(sections=(section(check=check),)))

    places = {finding.code: (finding.place, finding.key) for finding in report.findings}
    assert places[code] == ("checks", "hours")


def test_a_finding_about_sources_leads_to_the_sections() -> None:
    (finding,) = judge(candidate(sections=(section(citations=()),))).findings

    assert (finding.place, finding.key) == ("sections", "hours")


def test_a_finding_about_a_section_says_which_and_why_and_what_to_do() -> None:
    check = replace(checked(), checked_on=date(2025, 5, 31))

    (finding,) = judge(candidate(sections=(section(check=check),))).findings

    assert finding.sentence == (
        "“Opening hours”: the check was due by 31 May 2026, 1 day ago; check it again."
    )


def test_the_gate_judges_by_the_standings_that_it_is_given() -> None:
    of = candidate()
    reason = staleness.Reason("overdue", "The check was due by 3 May 2026, 29 days ago.")
    late = staleness.Standing("overdue", (reason,), None, None, True)

    assert found(judge(of, standings={"hours": late})) == [("overdue", "warn")]


def test_findings_of_sections_come_by_code_and_then_in_reading_order() -> None:
    late = replace(checked(), checked_on=date(2025, 5, 31))
    of = candidate(
        sections=(
            section(key="a", check=late),
            section(key="b", check=None),
            section(key="c", check=late),
        )
    )

    assert [(finding.code, finding.key) for finding in judge(of).findings] == [
        ("never-checked", "b"),
        ("overdue", "a"),
        ("overdue", "c"),
    ]


def test_each_section_has_a_finding_of_its_own() -> None:
    of = candidate(sections=(section(check=None), section(key="way", heading="Way", check=None)))

    report = judge(of)

    assert [(finding.code, finding.key) for finding in report.findings] == [
        ("never-checked", "hours"),
        ("never-checked", "way"),
    ]


@pytest.mark.parametrize(
    "fault",
    [
        {"body": ""},
        {"check": None},
        {"citations": ()},
        {"check": checked("disputed")},
        {"check": checked(body="Closed.")},
        {"check": replace(checked(), checked_on=date(2025, 5, 31))},
    ],
)
def test_a_section_that_is_left_out_is_not_judged(fault: dict[str, Any]) -> None:
    of = candidate(sections=(section(), section(key="hidden", included=False, **fault)))

    assert judge(of).findings == ()


# ---- what is live ----


def test_what_is_live_already_is_not_published_again() -> None:
    of = candidate()

    report = judge(of, live=live_of(of))

    assert found(report) == [("nothing-changed", "block")]
    assert "publication 4" in report.findings[0].sentence


@pytest.mark.parametrize("changed", ["slug", "content_hash", "rules_hash", "bot_hash"])
def test_a_change_of_slug_text_rules_or_bot_is_a_change(changed: str) -> None:
    of = candidate()

    assert judge(of, live=live_of(of, **{changed: "another"})).findings == ()


@pytest.mark.parametrize(
    "change",
    [
        {"sections": (section(citations=(SUPPORT, SUPPORT)),)},
        {"sections": (section(check=replace(checked(), checked_on=date(2026, 5, 31))),)},
        {"sections": (section(note="Another note."),)},
        {"description": "Another description."},
        {"visibility": "key"},
    ],
)
def test_a_change_of_what_bots_never_see_is_none(change: dict[str, Any]) -> None:
    live = live_of(candidate())

    assert found(judge(candidate(**change), live=live)) == [("nothing-changed", "block")]


def test_when_nothing_is_live_anything_is_a_change() -> None:
    assert judge(candidate(), live=None).findings == ()


# ---- policy ----

LONG_WINDED = candidate(
    rules=(RuleSnapshot("own", "only", "refusal", "Only from the sheet. " * 220, True),)
)

#: A subject for each warning that raises it and nothing else.
WARNED: dict[str, tuple[canonical.Candidate, Evidence]] = {
    "content-not-probed": (candidate(), run_of(candidate(), content_hash="0" * 64)),
    "unsourced": (candidate(sections=(section(citations=()),)), run_of(candidate())),
    "never-checked": (candidate(sections=(section(check=None),)), run_of(candidate())),
    "edited-since-check": (
        candidate(sections=(section(check=checked(body="Closed.")),)),
        run_of(candidate()),
    ),
    # Of the evidence: the gate hands on what it is told.
    "no-control": (
        candidate(),
        replace(run_of(candidate()), findings=(Finding("no-control", "warn", "Ask for one."),)),
    ),
    "passed-after-failures": (
        candidate(),
        replace(
            run_of(candidate()), findings=(Finding("passed-after-failures", "warn", "Read them."),)
        ),
    ),
    "overdue": (
        candidate(sections=(section(check=replace(checked(), checked_on=date(2025, 5, 31))),)),
        run_of(candidate()),
    ),
    "rules-too-long": (LONG_WINDED, run_of(LONG_WINDED)),
    "sizing-advises-split": (candidate(), run_of(candidate())),
}
#: What else the gate is told for some of them.
TOLD: dict[str, dict[str, Any]] = {
    "sizing-advises-split": {"advised": Advised("split", "Split it: it has grown.", TODAY)}
}


def test_every_warning_can_be_made_to_block() -> None:
    assert WARNED.keys() == gate.WARNINGS


@pytest.mark.parametrize("code", sorted(WARNED))
def test_the_policy_turns_a_warning_into_a_block_and_changes_nothing_else(code: str) -> None:
    of, evidence = WARNED[code]
    told = TOLD.get(code, {})
    (warning,) = judge(of, evidence, **told).findings

    strict = judge(of, evidence, policy=Policy(90, frozenset({code})), **told)

    assert (warning.code, warning.level) == (code, "warn")
    assert strict.findings == (replace(warning, level="block"),)
    assert not strict.is_open


@pytest.mark.parametrize("code", sorted(WARNED))
def test_the_policy_leaves_other_warnings_as_they_are(code: str) -> None:
    of, evidence = WARNED[code]

    told = TOLD.get(code, {})

    report = judge(of, evidence, policy=Policy(90, gate.WARNINGS - {code}), **told)

    assert found(report) == [(code, "warn")]


# ---- rollback ----


@pytest.mark.parametrize(
    "code",
    [
        *("unsourced", "never-checked", "edited-since-check", "overdue"),
        *("rules-too-long", "sizing-advises-split"),
    ],
)
@pytest.mark.parametrize("blocking", [frozenset[str](), gate.WARNINGS])
def test_a_rollback_raises_no_warning_of_sources_checks_and_sizes_again(
    code: str, blocking: frozenset[str]
) -> None:
    of, evidence = WARNED[code]

    how = {"policy": Policy(90, blocking), "is_rollback": True, **TOLD.get(code, {})}
    report = judge(of, evidence, **how)

    assert report.findings == ()


def test_a_rollback_meets_disputes_size_rules_bot_and_age_like_any_other() -> None:
    of = candidate(
        sections=(section(check=checked("disputed")),),
        rules=(),
        bot=replace(BOT, context_window=9_000),
    )
    evidence = run_of(of, bot_hash="0" * 64, finished_on=TODAY - timedelta(days=91))

    report = judge(of, evidence, is_rollback=True)

    assert {finding.code for finding in report.blocks} == {
        "disputed",
        "too-large",
        "no-rules",
        "bot-changed",
        "evidence-expired",
    }


def test_a_rollback_to_what_is_live_is_refused() -> None:
    of = candidate()

    assert found(judge(of, live=live_of(of), is_rollback=True)) == [("nothing-changed", "block")]


# ---- the report ----


def test_blocks_come_first_and_each_keeps_its_order() -> None:
    of = candidate(
        sections=(
            section(key="a", heading="A", check=None),
            section(key="b", heading="B", body="", citations=(), check=None),
        ),
    )
    evidence = Evidence(None, (Finding("rules-not-probed", "block", "Run them.", "probes"),))

    report = judge(of, evidence, live=live_of(of))

    assert [(finding.level, finding.code, finding.key) for finding in report.findings] == [
        ("block", "rules-not-probed", ""),
        ("block", "empty-section", "b"),
        ("block", "nothing-changed", ""),
        ("warn", "unsourced", "b"),
        ("warn", "never-checked", "a"),
        ("warn", "never-checked", "b"),
    ]
    assert report.blocks + report.warnings == report.findings


def test_every_finding_is_a_sentence_and_says_where_to_mend_it() -> None:
    of = candidate(
        sections=(
            section(body="", citations=(), check=None),
            section(key="way", check=checked("disputed")),
        ),
        rules=(),
        bot=replace(BOT, context_window=9_000),
    )
    evidence = run_of(of, bot_hash="0", content_hash="0", finished_on=TODAY - timedelta(days=91))

    report = judge(of, evidence, live=live_of(of))

    assert len({finding.code for finding in report.findings}) == 10
    assert all(finding.sentence.endswith(".") for finding in report.findings)
    assert all(finding.place for finding in report.findings)
