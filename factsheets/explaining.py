"""The gate in one read: of each finding, since when it holds, by whose change, and what opens it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time

from django.utils import timezone

from factsheets import changes, findings, gate, staleness
from factsheets.changes import Changed
from factsheets.models import Publication, Sheet

#: A finding that no table explains (of an installation's own evidence) is explained by itself.
_NOTHING = findings.Explanation("")


@dataclass(frozen=True, slots=True)
class Explained:
    """A finding, since when it holds (None: from the start, or not known), and who brought it up."""

    finding: gate.Finding
    since: date | datetime | None
    changes: tuple[Changed, ...]
    opens: str
    page: str

    @property
    def since_words(self) -> str:
        """When it came up, for people; empty where that is not known."""
        return when(self.since) if self.since else ""

    @property
    def by(self) -> tuple[str, ...]:
        """The people whose changes brought it up, each once, in order."""
        return tuple(dict.fromkeys(change.by for change in self.changes))


@dataclass(frozen=True, slots=True)
class Explanation:
    """The gate's findings explained, and all that changed since the last publication."""

    findings: tuple[Explained, ...]
    changed: tuple[Changed, ...]

    @property
    def since(self) -> date | datetime | None:
        """Since when something blocks; None where that is not known, or nothing does."""
        known = [each.since for each in self._blocks() if each.since]
        return min(known, key=_instant, default=None)

    @property
    def closed_since(self) -> str:
        """The same in words."""
        return when(self.since) if self.since else ""

    @property
    def closed_by(self) -> tuple[str, ...]:
        """Those whose changes block, each once."""
        return tuple(dict.fromkeys(name for each in self._blocks() for name in each.by))

    def _blocks(self) -> list[Explained]:
        return [each for each in self.findings if each.finding.level == "block"]


def _instant(moment: date | datetime) -> datetime:
    """A day counts from its first instant in the organisation's zone."""
    if isinstance(moment, datetime):
        return moment
    return timezone.make_aware(datetime.combine(moment, time()))


def when(moment: date | datetime) -> str:
    """A day, or a time in the organisation's zone, in words."""
    if not isinstance(moment, datetime):
        return staleness.words(moment)
    local = timezone.localtime(moment)
    return f"{staleness.words(local.date())}, {local:%H:%M}"


def explain(
    sheet: Sheet,
    report: gate.GateReport,
    evidence: gate.Evidence,
    last: Publication | None,
) -> Explanation:
    """Explain a report on a sheet's draft. `last`: its newest publication."""
    published = changes.base(last)
    passed = evidence.run.changes_up_to if evidence.run else evidence.last_passed
    changed = changes.of_sheet(sheet, after=min(published, passed or published))
    since = tuple(change for change in changed if change.id > published)
    return Explanation(
        tuple(
            _explained(finding, since, [c for c in changed if passed and c.id > passed])
            for finding in report.findings
        ),
        since if last else (),
    )


def _explained(
    finding: gate.Finding, since_published: Sequence[Changed], since_passed: Sequence[Changed]
) -> Explained:
    known = findings.CODES.get(finding.code, _NOTHING)
    if known.since_passed:
        mine = tuple(_touching(since_passed, known.changed, finding.key))
    else:
        # What stands there now is the newest change's doing.
        mine = tuple(_touching(since_published, known.changed, finding.key))[-1:]
    since = finding.since or (mine[0].at if mine else None)
    return Explained(finding, since, mine, known.opens, findings.page(finding.code))


def _touching(changed: Iterable[Changed], kinds: frozenset[str], key: str) -> Iterable[Changed]:
    """Those of the change sets that touched such rows; with a key, rows of that section."""
    for each in changed:
        touched = tuple(
            change
            for change in each.changes
            if change.kind in kinds and key in ("", change.section)
        )
        if touched:
            yield Changed(each.id, each.at, each.by, each.reason, touched)
