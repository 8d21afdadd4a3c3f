"""The stale-check report: which sections want looking at, why, and who sees to them.

What bots get is judged: the live text, or the draft of a sheet that has none
live. One service for the page, CSV, JSON and the command, so that all say the
same. States depend on the day, so none is stored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from django.db.models import QuerySet

from factsheets import canonical, staleness, standings
from factsheets.models import ReviewPlan, Section, Sheet
from factsheets.staleness import Reason, State

#: States that ask for nothing.
AT_REST: frozenset[State] = frozenset({"fresh", "retired"})

#: The filter that lists sections at rest too.
ALL = "all"

#: What a filter by state may say.
CHOICES: tuple[str, ...] = (ALL, *staleness.STATES)


@dataclass(frozen=True, slots=True)
class Row:
    """One section on one day. `owner` is who sees to it now, by name; empty if nobody does."""

    sheet_id: int
    sheet: str
    sheet_title: str
    section_id: int
    section: str
    heading: str
    text: str
    state: State
    reasons: tuple[Reason, ...]
    checked_on: date | None
    due_on: date | None
    days_overdue: int
    kinds: tuple[str, ...]
    owner: str
    stands_in_for: str


@dataclass(frozen=True, slots=True)
class Filter:
    """What of the report is asked for. Empty values ask for all, but for sections at rest."""

    state: str = ""
    sheet: str = ""
    owner: str = ""
    kind: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is such a state."""
        return self.state in {"", *CHOICES}

    def takes(self, row: Row) -> bool:
        """Whether the filter leaves a row in."""
        return (
            self._takes_state(row.state)
            and self.sheet in {"", row.sheet}
            and self.owner in {"", row.owner or NOBODY}
            and (not self.kind or self.kind in row.kinds)
        )

    def _takes_state(self, state: State) -> bool:
        return state not in AT_REST if not self.state else self.state in {ALL, state}


#: How the filter names sections that nobody sees to.
NOBODY = "-"


@dataclass(frozen=True, slots=True)
class _Text:
    """A section's text as it is judged."""

    section_id: int
    text_hash: str
    heading: str
    is_live: bool
    is_retired: bool


def rows(sheets: QuerySet[Sheet], *, today: date) -> list[Row]:
    """Every section of the sheets, the most pressing first, in a fixed number of queries."""
    chosen = list(
        sheets.filter(archived_at__isnull=True)
        .select_related("state__live_publication")
        .order_by("title", "id")
    )
    sections: dict[int, list[Section]] = defaultdict(list)
    for section in Section.objects.filter(sheet__in=chosen).order_by("position", "id"):
        sections[section.sheet_id].append(section)
    judged = {sheet.pk: _texts(sheet, sections[sheet.pk]) for sheet in chosen}
    plans = standings.plans_of([sheet.pk for sheet in chosen])
    known = standings.facts(
        {text.section_id: pk for pk, texts in judged.items() for text in texts}, plans
    )
    keys = {section.pk: section.key for each in sections.values() for section in each}
    found = [
        _row(sheet, keys[text.section_id], text, known[text.section_id], plans, today)
        for sheet in chosen
        for text in judged[sheet.pk]
    ]
    return sorted(found, key=_urgency)


def as_plain(row: Row) -> dict[str, object]:
    """A row for programs: JSON and CSV have the same names and values."""
    return {
        "sheet": row.sheet,
        "section": row.section,
        "heading": row.heading,
        "text": row.text,
        "state": row.state,
        "reasons": [{"code": r.code, "sentence": r.sentence} for r in row.reasons],
        "checked_on": row.checked_on.isoformat() if row.checked_on else None,
        "due_on": row.due_on.isoformat() if row.due_on else None,
        "days_overdue": row.days_overdue,
        "kinds": list(row.kinds),
        "owner": row.owner or None,
        "stands_in_for": row.stands_in_for or None,
    }


def _texts(sheet: Sheet, sections: Iterable[Section]) -> list[_Text]:
    """What bots get of a sheet; of one that has nothing live, what they would get."""
    live = sheet.state.live_publication
    if live is None:
        return [
            _Text(
                section.pk,
                section.text_hash,
                section.heading,
                is_live=False,
                is_retired=not section.included,
            )
            for section in sections
            if section.removed_at is None
        ]
    by_key = {section.key: section for section in sections}
    content = json.loads(bytes(live.body))["content"]
    return [
        _Text(
            by_key[raw["key"]].pk,
            canonical.text_hash(raw["heading"], raw["text"]),
            raw["heading"],
            is_live=True,
            is_retired=False,
        )
        for raw in content["sections"]
    ]


def _row(
    sheet: Sheet,
    key: str,
    text: _Text,
    known: staleness.SectionFacts,
    plans: standings.Plans,
    today: date,
) -> Row:
    standing = staleness.standing(
        known, text_hash=text.text_hash, today=today, is_retired=text.is_retired
    )
    owner, stands_in_for = _responsible(
        plans.get((sheet.pk, text.section_id)), plans.get((sheet.pk, None))
    )
    due_on = standing.due_on
    return Row(
        sheet_id=sheet.pk,
        sheet=sheet.slug,
        sheet_title=sheet.title,
        section_id=text.section_id,
        section=key,
        heading=text.heading,
        text="live" if text.is_live else "draft",
        state=standing.state,
        reasons=standing.reasons,
        checked_on=standing.checked_on,
        due_on=due_on,
        days_overdue=max(0, (today - due_on).days) if due_on else 0,
        kinds=tuple(dict.fromkeys(cited.kind for cited in known.citations)),
        owner=owner,
        stands_in_for=stands_in_for,
    )


def _responsible(*plans: ReviewPlan | None) -> tuple[str, str]:
    """Who sees to a section, and for whom: the first who is still active, section before sheet."""
    gone = ""
    for plan in plans:
        for person in (plan.owner, plan.fallback) if plan is not None else ():
            if person is None:
                continue
            if person.is_active:
                return person.get_username(), gone
            gone = gone or person.get_username()
    return "", gone


def _urgency(row: Row) -> tuple[object, ...]:
    # Stable: within a sheet sections stay in reading order.
    at_rest = row.state in AT_REST
    return at_rest, staleness.STATES.index(row.state), row.due_on or date.min, row.sheet_title
