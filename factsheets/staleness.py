"""The state of a section: what stands between its text and the checks that cover it.

Pure, and the specification of the gate's and the report's words on checks. A
check confirms a *text* and a set of citations, by their hashes and not by the
dates of rows: saving, re-assigning or changing an interval never makes or
moves one. What can change with a day alone is computed from that day.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal, Self, get_args

from dateutil.relativedelta import relativedelta

State = Literal[
    "retired",
    "disputed",
    "unsourced",
    "never-checked",
    "edited-since-check",
    "overdue",
    "due-soon",
    "fresh",
]

#: From the most pressing to the least: a section is in the first that holds.
STATES: tuple[State, ...] = get_args(State)

#: Outcomes of a check that say that the text is right.
CONFIRMING = frozenset({"confirmed", "corrected"})

#: Outcomes of a check that say anything about the text: an unreachable source says nothing.
_DECIDING = CONFIRMING | {"disputed"}

#: What a check found in a source that stands behind the text, and in one that does not.
SUPPORTING = frozenset({"supports", "supports-partly"})
AGAINST = frozenset({"contradicts", "not-found"})

Unit = Literal["day", "month", "year"]


@dataclass(frozen=True, slots=True)
class Interval:
    """How long a check holds, in calendar units: six months are not 182 days."""

    count: int
    unit: Unit

    @classmethod
    def parse(cls, text: str) -> Self:
        """“14 days”, “6 months”, “1 year”. Raises ValueError for anything else."""
        found = re.fullmatch(r"([1-9][0-9]{0,3}) (day|month|year)s?", text)
        if found is None:
            raise ValueError(f"{text!r} is no interval.")
        unit: Unit = found[2]  # type: ignore[assignment]
        return cls(int(found[1]), unit)

    def after(self, day: date) -> date:
        """The last good day after a check on `day`. Months and years are clamped to the month's end.

        What would end after the calendar does holds to its last day.
        """
        try:
            return day + relativedelta(**{f"{self.unit}s": self.count})  # type: ignore[arg-type]
        except (OverflowError, ValueError):
            return date.max

    def __str__(self) -> str:
        return f"{self.count} {self.unit}{'' if self.count == 1 else 's'}"


#: How long a check against a source of each kind holds, unless the installation says otherwise.
DEFAULT_INTERVALS: Mapping[str, Interval] = {
    "official-list-entry": Interval(6, "month"),
    "law-or-regulation": Interval(6, "month"),
    "reference-history": Interval(24, "month"),
    "primary-narrative": Interval(36, "month"),
    "scholarly-book-or-article": Interval(24, "month"),
    "museum-or-site-page": Interval(3, "month"),
    "government-page": Interval(3, "month"),
    "news": Interval(3, "month"),
    "interview": Interval(24, "month"),
    "own-policy": Interval(12, "month"),
    "other": Interval(12, "month"),
}


@dataclass(frozen=True, slots=True)
class Cited:
    """One present citation. `use_hash` says which source it uses, and where in it."""

    id: int
    use_hash: str
    title: str
    kind: str
    role: str
    required: bool

    @property
    def must_bear_out(self) -> bool:
        """Whether the section cannot stand if this source is against it."""
        return must_bear_out(self.role, required=self.required)


@dataclass(frozen=True, slots=True)
class Item:
    """What a check found for one citation. `use_hash` is empty in checks older than the field."""

    citation_id: int
    use_hash: str
    outcome: str
    seen_on: date


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """One check that no other supersedes."""

    text_hash: str
    checked_on: date
    outcome: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How often a section is to be checked. The earliest day that any of these gives counts.

    `review_by`: days by which it must be looked at in any case. A day counts
    until every citation has been looked at on it or after it.
    """

    by_kind: Mapping[str, Interval]
    sheet: Interval | None = None
    section: Interval | None = None
    review_by: tuple[date, ...] = ()


@dataclass(frozen=True, slots=True)
class SectionFacts:
    """All that decides a section's state beside its text and the day. Checks oldest first."""

    citations: tuple[Cited, ...]
    checks: tuple[CheckFacts, ...]
    plan: Plan


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason beside the state, in words."""

    code: State
    sentence: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A section's state, every reason that holds, and its dates.

    `checked_on` is its oldest citation's; `due_on` is the last good day.
    `covers_text` is true when checks cover this text with all its citations.
    """

    state: State
    reasons: tuple[Reason, ...]
    checked_on: date | None
    due_on: date | None
    covers_text: bool

    def has(self, code: State) -> bool:
        """Whether that reason is among those that hold."""
        return any(reason.code == code for reason in self.reasons)


def use_hash(source_key: str, locator: str) -> str:
    """Which source a citation uses, and where in it: what a check of the citation looked at."""
    return hashlib.sha256(f"{source_key}\n{locator}".encode()).hexdigest()


def must_bear_out(role: str, *, required: bool) -> bool:
    """Whether a section cannot stand if a source cited in that role is against it.

    One cited *because* it contradicts, or for background, may be.
    """
    return required and role in {"supports", "qualifies"}


def standing(
    facts: SectionFacts, *, text_hash: str, today: date, is_retired: bool = False
) -> Standing:
    """The state of a section with that text on that day."""
    looks = _looks(facts, text_hash)
    seen = [look for look in looks if look.seen_on is not None]
    checked_on = min((look.seen_on for look in seen if look.seen_on), default=None)
    due = _due_on(facts.plan, seen)
    never = not seen
    covers_text = bool(looks) and all(look.covers_text for look in looks)
    reasons = [
        *_retired(is_retired),
        *_disputed(facts, text_hash),
        *_unsourced(facts.citations),
        *_never(never),
        *([] if never else _edited(looks)),
        *([] if due is None else _due(due, today)),
    ]
    state = reasons[0].code if reasons else "fresh"
    return Standing(state, tuple(reasons), checked_on, due.on if due else None, covers_text)


def covered_on(facts: SectionFacts, *, text_hash: str) -> date | None:
    """The day on which this text stood checked with all its citations; None if it does not."""
    looks = _looks(facts, text_hash)
    if not all(look.covers_text for look in looks) or any(_disputed(facts, text_hash)):
        return None
    return min((look.seen_on for look in looks if look.seen_on), default=None)


def next_due_on(facts: SectionFacts, *, checked_on: date) -> date | None:
    """The last good day after a check of every citation on that day."""
    cited = facts.citations or (None,)
    looks = [_Look("", each.kind if each is not None else "", checked_on, True) for each in cited]
    due = _due_on(facts.plan, looks)
    return due.on if due else None


def due_soon_days(interval_days: int) -> int:
    """How many days before its last good day a check is due soon: a sixth, from 3 to 30."""
    return min(30, max(3, interval_days // 6))


@dataclass(frozen=True, slots=True)
class _Look:
    """The check that counts for one citation (or for a section without any)."""

    title: str
    kind: str
    seen_on: date | None
    covers_text: bool


def _looks(facts: SectionFacts, text_hash: str) -> list[_Look]:
    """For each citation the newest check of this text, or else of any text."""
    confirming = [check for check in facts.checks if check.outcome in CONFIRMING]
    if not facts.citations:
        found = [(check, check.checked_on) for check in confirming]
        return [_look("", "", found, text_hash)] if found else []
    return [
        _look(
            cited.title,
            cited.kind,
            [
                (check, item.seen_on)
                for check in confirming
                for item in check.items
                if _is_about(item, cited) and _is_a_look(item, cited)
            ],
            text_hash,
        )
        for cited in facts.citations
    ]


def _look(title: str, kind: str, found: list[tuple[CheckFacts, date]], text_hash: str) -> _Look:
    covering = [day for check, day in found if check.text_hash == text_hash]
    days = covering or [day for _, day in found]
    return _Look(title, kind, max(days, default=None), bool(covering))


def _is_about(item: Item, cited: Cited) -> bool:
    return item.citation_id == cited.id and item.use_hash in {"", cited.use_hash}


def _is_a_look(item: Item, cited: Cited) -> bool:
    """Whether a confirming check held the text against that source.

    It may confirm the text although a source that it does not need is against it.
    """
    return item.outcome in SUPPORTING or (not cited.must_bear_out and item.outcome in AGAINST)


@dataclass(frozen=True, slots=True)
class _Due:
    """The last good day, and the day of the look that it is reckoned from."""

    on: date
    since: date


def _due_on(plan: Plan, seen: Iterable[_Look]) -> _Due | None:
    """The earliest of what kinds, sheet, section and fixed days say; None without a check."""
    days = [
        _Due(day, look.seen_on)
        for look in seen
        if look.seen_on is not None
        for day in (
            *(
                interval.after(look.seen_on)
                for interval in (plan.by_kind.get(look.kind), plan.sheet, plan.section)
                if interval is not None
            ),
            *(day for day in plan.review_by if day > look.seen_on),
        )
    ]
    return min(days, key=lambda due: (due.on, due.since), default=None)


def _retired(is_retired: bool) -> Iterator[Reason]:
    if is_retired:
        yield Reason("retired", "Bots do not get this section.")


def _disputed(facts: SectionFacts, text_hash: str) -> Iterator[Reason]:
    about = [c for c in facts.checks if c.text_hash == text_hash and c.outcome in _DECIDING]
    if about and about[-1].outcome == "disputed":
        yield Reason("disputed", f"The check of {words(about[-1].checked_on)} disputes this text.")
        return
    for cited in facts.citations:
        found = [
            (check, item)
            for check in facts.checks
            if check.text_hash == text_hash
            for item in check.items
            if _is_about(item, cited) and item.outcome != "unreachable"
        ]
        if cited.must_bear_out and found and found[-1][1].outcome in AGAINST:
            check, item = found[-1]
            what = "contradicts it" if item.outcome == "contradicts" else "does not say this"
            yield Reason(
                "disputed", f"“{cited.title}” {what}, by the check of {words(check.checked_on)}."
            )
            return


def _unsourced(citations: Iterable[Cited]) -> Iterator[Reason]:
    if not any(cited.role == "supports" for cited in citations):
        yield Reason("unsourced", "No source is cited that supports it.")


def _never(never: bool) -> Iterator[Reason]:
    if never:
        yield Reason("never-checked", "Nobody has confirmed it with a source that it cites.")


def _edited(looks: Iterable[_Look]) -> Iterator[Reason]:
    every = list(looks)
    edited = [look for look in every if look.seen_on is not None and not look.covers_text]
    added = [look.title for look in every if look.seen_on is None]
    if edited:
        last = max(look.seen_on for look in edited if look.seen_on)
        partly = f" with “{edited[0].title}”" if len(edited) < len(every) else ""
        yield Reason(
            "edited-since-check",
            f"Its text has changed since it was last checked{partly}, on {words(last)}.",
        )
    elif added:
        yield Reason("edited-since-check", f"Not checked yet with “{added[0]}”.")


def _due(due: _Due, today: date) -> Iterator[Reason]:
    late = (today - due.on).days
    days = f"{abs(late)} {'day' if abs(late) == 1 else 'days'}"
    if late > 0:
        yield Reason("overdue", f"The check was due by {words(due.on)}, {days} ago.")
    elif late == 0:
        yield Reason("due-soon", "The check is due today.")
    elif -late <= due_soon_days((due.on - due.since).days):
        yield Reason("due-soon", f"The check is due by {words(due.on)}, in {days}.")


def words(day: date) -> str:
    """A date for people: 3 May 2026."""
    return f"{day.day} {day:%B %Y}"
