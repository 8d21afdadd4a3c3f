"""Record a person's check. Saving a text never makes or moves one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

from django.contrib.auth.models import User
from django.db import transaction

from factsheets import canonical
from factsheets.models import Check, CheckItem, Citation, Section


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
    check = Check.objects.create(
        section=section,
        text_hash=canonical.text_hash(section.heading, section.body),
        checked_on=checked_on,
        recorded_at=now,
        checked_by=by,
        checked_by_name=by.get_username(),
        outcome=Check.Outcome.CONFIRMED,
        method=Check.Method.IMPORTED,
    )
    CheckItem.objects.bulk_create(
        CheckItem(
            of=check,
            citation=citation,
            outcome=CheckItem.Outcome.SUPPORTS,
            accessed_on=checked_on,
        )
        for citation in citations
    )
    return check
