"""Record a person's check. Saving a text never makes or moves one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import takewhile
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from factsheets import canonical, staleness
from factsheets.errors import Refused
from factsheets.models import Check, CheckItem, Citation, Section, TrackedModel
from factsheets.models.locking import begin_change

#: Days after which a check recorded late must say why.
LATE_DAYS = 7


class CheckNotRecorded(Refused):
    """A check that contradicts itself, the calendar or what stands there now."""

    code = "check-not-recorded"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a person looked at while checking: the text, and each citation's use of its source."""

    text_hash: str
    uses: Mapping[int, str]


@transaction.atomic
def record(
    *,
    section: Section,
    seen: Seen,
    checked_on: date | None,
    outcome: str,
    method: str,
    items: Mapping[int, str],
    by: User,
    now: datetime,
    note: str = "",
    supersedes: Check | None = None,
) -> Check:
    """Record that a person held a section against its sources.

    `items` has an outcome for each citation looked at, by the citation's id; one
    that is left out was not looked at, and its date stays what it was. Raises
    CheckNotRecorded, with the sentence that says what to mend.
    """
    begin_change()
    # Read after the lock: what is confirmed is what the person saw, or nothing is.
    section = Section.objects.get(pk=section.pk)
    citations = present_citations(section)
    _unchanged(section, citations, seen)
    note = canonical.normalise(note)
    if checked_on is None:
        raise CheckNotRecorded("Say on which day you checked.")
    _told(outcome, method, items)
    _agrees(outcome, items, citations)
    _on_a_possible_day(section, citations, items, checked_on, note, timezone.localdate(now))
    _supersedes(section, supersedes, note)
    return _store(
        section,
        citations,
        items,
        by=by,
        now=now,
        checked_on=checked_on,
        outcome=outcome,
        method=method,
        note=note,
        supersedes=supersedes,
    )


@transaction.atomic
def record_imported(
    *,
    section: Section,
    citations: Iterable[Citation],
    checked_on: date,
    by: User,
    now: datetime,
) -> Check | None:
    """The check that an imported file states, or None if the section has one on that day.

    It confirms the section's present text, one item for each citation.
    """
    if section.checks.filter(checked_on=checked_on).exists():
        return None
    cited = list(citations)
    return _store(
        section,
        cited,
        {citation.pk: CheckItem.Outcome.SUPPORTS for citation in cited},
        by=by,
        now=now,
        checked_on=checked_on,
        outcome=Check.Outcome.CONFIRMED,
        method=Check.Method.IMPORTED,
    )


def seen_now(section: Section) -> Seen:
    """What there is to look at in a section as it stands."""
    return Seen(section.text_hash, {c.pk: c.use_hash for c in present_citations(section)})


def present_citations(section: Section) -> list[Citation]:
    """The section's citations with their sources, in order."""
    return list(section.citations.present().select_related("source").order_by("position", "id"))


def written_on(section: Section) -> date:
    """The day since when the section has had its present text, in the organisation's zone."""
    return _since(
        section, lambda row: canonical.text_hash(row.heading, row.body) == section.text_hash
    )


def cited_on(citation: Citation) -> date:
    """The day since when the citation has used its present source, and the place in it."""
    present = (citation.source_id, citation.locator)
    return _since(citation, lambda row: (row.source_id, row.locator) == present)


def _since(row: TrackedModel, is_same: Callable[[Any], bool]) -> date:
    """The day of the oldest of the newest history entries that are all the same in something."""
    entries = row.history.order_by("-history_date", "-history_id").iterator(chunk_size=50)
    *_, oldest = takewhile(is_same, entries)
    return timezone.localdate(oldest.history_date)


def _store(
    section: Section,
    citations: Iterable[Citation],
    items: Mapping[int, str],
    *,
    by: User,
    now: datetime,
    **told: Any,
) -> Check:
    """A check of the section's present text, with an item for each citation looked at."""
    check = Check.objects.create(
        section=section,
        text_hash=section.text_hash,
        recorded_at=now,
        checked_by=by,
        checked_by_name=by.get_username(),
        **told,
    )
    CheckItem.objects.bulk_create(
        CheckItem(
            of=check,
            citation=citation,
            use_hash=citation.use_hash,
            outcome=items[citation.pk],
            accessed_on=check.checked_on,
        )
        for citation in citations
        if citation.pk in items
    )
    return check


def _unchanged(section: Section, citations: Iterable[Citation], seen: Seen) -> None:
    if section.removed_at is not None:
        raise CheckNotRecorded("The section was taken out of use; restore it before you check it.")
    if seen != Seen(section.text_hash, {c.pk: c.use_hash for c in citations}):
        raise CheckNotRecorded(
            "The text or its sources changed while you checked; look at them as they stand now."
        )


def _told(outcome: str, method: str, items: Mapping[int, str]) -> None:
    if outcome not in Check.Outcome.values:
        raise CheckNotRecorded("Say what the check came to: choose one of its outcomes.")
    if method not in Check.Method.values or method == Check.Method.IMPORTED:
        raise CheckNotRecorded("Say how you checked: choose one of the ways.")
    if any(found not in CheckItem.Outcome.values for found in items.values()):
        raise CheckNotRecorded("Say of each source what you found: choose one of the outcomes.")


def _agrees(outcome: str, items: Mapping[int, str], citations: Iterable[Citation]) -> None:
    """The whole says what its parts say."""
    cited = {citation.pk: citation for citation in citations}
    if unknown := items.keys() - cited.keys():
        raise CheckNotRecorded(
            f"The section has no citation {min(unknown)}; look at its sources as they stand now."
        )
    found = set(items.values())
    if outcome in staleness.CONFIRMING:
        if cited and not found & staleness.SUPPORTING:
            raise CheckNotRecorded(
                "Nothing stands behind the text yet: say of at least one source that it supports it."
            )
        for pk, said in items.items():
            if cited[pk].must_bear_out and said in staleness.AGAINST:
                raise CheckNotRecorded(
                    f"“{cited[pk].source.title}” does not bear the text out, and the section cannot "
                    "stand without it; choose disputed, or correct the text or its sources first."
                )
    if outcome == Check.Outcome.SOURCE_UNREACHABLE and found - {CheckItem.Outcome.UNREACHABLE}:
        raise CheckNotRecorded(
            "You reached some of the sources; choose what the check came to by what they say."
        )


def _on_a_possible_day(
    section: Section,
    citations: Iterable[Citation],
    items: Mapping[int, str],
    checked_on: date,
    note: str,
    today: date,
) -> None:
    if checked_on > today:
        raise CheckNotRecorded(
            f"{staleness.words(checked_on)} is still to come; give the day on which you checked."
        )
    if checked_on < (written := written_on(section)):
        raise CheckNotRecorded(
            f"The text has stood like this since {staleness.words(written)}; nobody can have checked "
            "it before."
        )
    for citation in citations:
        if citation.pk in items and checked_on < (cited := cited_on(citation)):
            raise CheckNotRecorded(
                f"“{citation.source.title}” has been cited like this since {staleness.words(cited)}; "
                "nobody can have checked it before."
            )
    if checked_on < today - timedelta(days=LATE_DAYS) and not note:
        raise CheckNotRecorded(
            f"That was more than {LATE_DAYS} days ago; say in the note why it is recorded now."
        )


def _supersedes(section: Section, supersedes: Check | None, note: str) -> None:
    if supersedes is None:
        return
    if supersedes.section_id != section.pk:
        raise CheckNotRecorded("That check is of another section; replace it there.")
    # Asked anew: the row in hand may remember that nothing had replaced it.
    if Check.objects.filter(supersedes=supersedes).exists():
        raise CheckNotRecorded("That check has been replaced already; look at the list of checks.")
    if not note:
        raise CheckNotRecorded("Say in the note what was wrong with the check that this replaces.")
