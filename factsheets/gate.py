"""The test before publication: a candidate, its evidence, the policy and today, to findings.

Pure. There is no bypass: publishing needs a report without a *block*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal

from factsheets import sizing, staleness
from factsheets.bot import prompt
from factsheets.canonical import Candidate

Level = Literal["block", "warn"]

#: Where a finding is mended; pages turn it into a link. "probes" is where they are run,
#: "probe-list" where they are written.
Place = Literal[
    "probes", "probe-list", "suites", "rules", "sections", "checks", "sheet", "sizes", "bot", ""
]

#: Warnings that a sheet's policy may turn into blocks.
WARNINGS = frozenset(
    {
        "content-not-probed",
        "no-control",
        "passed-after-failures",
        "rules-too-long",
        "sizing-advises-split",
        "unsourced",
        "never-checked",
        "edited-since-check",
        "overdue",
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason, in one sentence, and where to mend it (`key`: the section's).

    `since`: when it came up, where that is known of itself and needs no look at the history.
    """

    code: str
    level: Level
    sentence: str
    place: Place = ""
    key: str = ""
    since: date | datetime | None = None


@dataclass(frozen=True, slots=True)
class PassingRun:
    """The run that speaks for a subject. `summary` is what a publication keeps of it.

    `changes_up_to`: the newest change set that it knew of, by key.
    """

    run_id: str
    content_hash: str
    bot_hash: str
    finished_on: date
    summary: bytes
    changes_up_to: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The run that speaks for a subject, and what keeps it, or any run, from doing so.

    `last_passed`: the newest change set that any passing run of the sheet knew
    of. `alarm`: what is live has failed its probes, whatever the subject.
    """

    run: PassingRun | None
    findings: tuple[Finding, ...]
    last_passed: int = 0
    alarm: Finding | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How strict one sheet's gate is."""

    evidence_max_age_days: int = 90
    blocking_warnings: frozenset[str] = frozenset()
    renew_days_before: int = 7
    four_eyes: bool = False

    def expires_after(self, passed_on: date) -> date:
        """The last day on which a run that passed on a day opens the gate."""
        return _later(passed_on, self.evidence_max_age_days)

    def renews_on(self, passed_on: date) -> date | None:
        """The day from which the probes of what is live run again by themselves; None: never.

        Not in the first half of the evidence's age, or a short age would mean a run every day.
        """
        if not self.renew_days_before:
            return None
        lead = min(self.renew_days_before, self.evidence_max_age_days // 2)
        return _later(passed_on, self.evidence_max_age_days - lead)


def _later(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return date.max


@dataclass(frozen=True, slots=True)
class Live:
    """What bots get now."""

    number: int
    slug: str
    content_hash: str
    rules_hash: str
    bot_hash: str
    published_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Advised:
    """What the newest size report advises, in its sentence, and when it was made."""

    advice: sizing.Advice
    sentence: str
    on: date


@dataclass(frozen=True, slots=True)
class GateReport:
    """All findings, blocks first."""

    findings: tuple[Finding, ...]

    @property
    def blocks(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.level == "block")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.level == "warn")

    @property
    def is_open(self) -> bool:
        return not self.blocks


def evaluate(
    candidate: Candidate,
    evidence: Evidence,
    *,
    policy: Policy,
    live: Live | None,
    standings: Mapping[str, staleness.Standing],
    today: date,
    is_rollback: bool = False,
    is_archived: bool = False,
    own_changes: Sequence[str] = (),
    advised: Advised | None = None,
) -> GateReport:
    """Every reason why the candidate may not be published today, and every warning.

    `standings`: how each of its sections stands with its checks, by the section's key.
    `own_changes`: what the person who would publish has changed, in words.
    `advised`: what the newest look at the sheet's sizes said.
    A rollback publishes a text that was let out before: its warnings about
    sources and checks are history, so they are not raised again.
    """
    archived = Finding(
        "archived", "block", "The sheet is archived; take it out of the archive first.", "sheet"
    )
    found = [
        *([archived] if is_archived else []),
        *_whole(candidate),
        *evidence.findings,
        *_run(candidate, evidence.run, policy, today),
        *_sections(candidate, standings, is_rollback=is_rollback),
        *_live(candidate, live),
        *_four_eyes(policy, own_changes),
        *([] if is_rollback else _sizes(candidate, advised)),
    ]
    strict = [replace(f, level="block") if f.code in policy.blocking_warnings else f for f in found]
    return GateReport(tuple(sorted(strict, key=lambda f: f.level)))


def _whole(candidate: Candidate) -> Iterable[Finding]:
    if not candidate.rules_text:
        yield Finding(
            "no-rules", "block", "The sheet has no enabled rule; write at least one.", "rules"
        )
    if not candidate.content.sections:
        yield Finding(
            "no-sections",
            "block",
            "No section is included; write one or include one.",
            "sections",
        )
    built = prompt.build(
        candidate.rules_text, candidate.content, delivery=candidate.snapshot.delivery
    )
    needed = sizing.estimated_tokens(prompt.as_text(built))
    usable = sizing.usable_window(candidate.snapshot.bot)
    if needed > usable:
        yield Finding(
            "too-large",
            "block",
            f"Rules and sheet need about {needed:,} tokens, and the bot has room for {usable:,}; "
            "shorten the text or choose a bot with a larger window.",
            "sections",
        )


def _run(
    candidate: Candidate, run: PassingRun | None, policy: Policy, today: date
) -> Iterable[Finding]:
    if run is None:
        return
    if run.bot_hash != candidate.subject.bot_hash:
        yield Finding(
            "bot-changed",
            "block",
            "The probes passed with another bot than the sheet has now; run them again.",
            "probes",
        )
    if run.content_hash != candidate.subject.content_hash:
        covers_content = candidate.snapshot.probe_scope == "rules+content"
        yield Finding(
            "content-not-probed",
            "block" if covers_content else "warn",
            "The text has changed since the probes passed; run them again to test it too.",
            "probes",
        )
    age = (today - run.finished_on).days
    if age > policy.evidence_max_age_days:
        yield Finding(
            "evidence-expired",
            "block",
            f"The probes passed {age} days ago, and the policy allows "
            f"{policy.evidence_max_age_days}; run them again.",
            "probes",
            since=_later(policy.expires_after(run.finished_on), 1),
        )


#: What stands against a section in the gate: level, and what to do about it.
_STANDINGS: Mapping[staleness.State, tuple[Level, Place, str]] = {
    "disputed": ("block", "checks", "correct the text or check it again"),
    "unsourced": ("warn", "sections", "add one"),
    "never-checked": ("warn", "checks", "check it"),
    "edited-since-check": ("warn", "checks", "check it again"),
    "overdue": ("warn", "checks", "check it again"),
}


def _sections(
    candidate: Candidate, standings: Mapping[str, staleness.Standing], *, is_rollback: bool
) -> Iterable[Finding]:
    included = [section for section in candidate.snapshot.sections if section.included]
    for section in included:
        if not section.body:
            yield Finding(
                "empty-section",
                "block",
                f"The section “{section.heading}” has no text; write it or take the section out.",
                "sections",
                section.key,
            )
    for code, (level, place, advice) in _STANDINGS.items():
        if is_rollback and level == "warn":
            continue
        for section in included:
            for reason in standings[section.key].reasons:
                if reason.code == code:
                    said = f"{reason.sentence[0].lower()}{reason.sentence[1:].rstrip('.')}"
                    yield Finding(
                        code,
                        level,
                        f"“{section.heading}”: {said}; {advice}.",
                        place,
                        section.key,
                        _overdue_since(standings[section.key]) if code == "overdue" else None,
                    )


def _sizes(candidate: Candidate, advised: Advised | None) -> Iterable[Finding]:
    if (
        advised is not None
        and advised.advice == "split"
        and candidate.snapshot.delivery == "inline"
    ):
        yield Finding(
            "sizing-advises-split",
            "warn",
            f"{advised.sentence[:1].upper()}{advised.sentence[1:]} Counted on "
            f"{advised.on.day} {advised.on:%B %Y}; look at the split, or count again.",
            "sizes",
            since=advised.on,
        )
    tokens = sizing.estimated_tokens(candidate.rules_text)
    if tokens > sizing.LONG_RULES_TOKENS:
        told = [remark.sentence for remark in sizing.rule_remarks(candidate.snapshot.rules)]
        yield Finding(
            "rules-too-long",
            "warn",
            f"The rules take about {tokens:,} tokens of every prompt, also of a split one; "
            + (f"shorten them: {' '.join(told[:3])}" if told else "shorten them."),
            "rules",
        )


def _overdue_since(standing: staleness.Standing) -> date | None:
    return None if standing.due_on is None else _later(standing.due_on, 1)


def _four_eyes(policy: Policy, own_changes: Sequence[str]) -> Iterable[Finding]:
    if policy.four_eyes and own_changes:
        first, more = own_changes[0], len(own_changes) - 1
        yield Finding(
            "same-person",
            "block",
            f"Four eyes are asked for, and you changed {first}{f' and {more} more' if more else ''} "
            "yourself; ask somebody to publish who wrote none of the changes.",
        )


def _live(candidate: Candidate, live: Live | None) -> Iterable[Finding]:
    if live is None:
        return
    now = (
        candidate.snapshot.slug,
        candidate.subject.content_hash,
        candidate.subject.rules_hash,
        candidate.subject.bot_hash,
    )
    if now == (live.slug, live.content_hash, live.rules_hash, live.bot_hash):
        yield Finding(
            "nothing-changed",
            "block",
            f"This is what publication {live.number} already serves; change the text, the rules "
            "or the bot first.",
            "sheet",
            since=live.published_at,
        )
