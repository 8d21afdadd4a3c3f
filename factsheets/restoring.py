"""Back to how it stood: a section or the whole draft, as one new change. Nothing is published."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from factsheets import editing, history
from factsheets.errors import Refused
from factsheets.models import Citation, Rule, RuleSet, Section, Sheet, TrackedModel
from factsheets.models.tracking import OpenChangeSet, change_set


class NothingThen(Refused):
    """At that moment there was nothing to go back to."""

    code = "nothing-then"


#: What a sheet gets back. Its name in addresses, who may pull it and its bot are no matter of text.
_SHEET_FIELDS = ("title", "description", "language")

#: What places a row, which never changes, and what is said apart.
_NOT_VALUES = {"id", "removed_at", "sheet", "section", "ruleset", "key"}


def section_to(
    section: Section, moment: datetime, *, by: User, reason: str, now: datetime
) -> OpenChangeSet:
    """One section with its citations as they stood at a moment, taken into use again if need be.

    Its place among the others stays. Raises NothingThen where it was not there.
    """
    past = _then(Section, moment, id=section.pk)
    if section.pk not in past:
        raise NothingThen(f"“{section.heading}” was not there at that moment; choose a later one.")
    with change_set(by=by, reason=reason, now=now) as changed:
        past[section.pk].position = section.position
        _restore([section], past, changed)
        _restore(section.citations.all(), _then(Citation, moment, section=section), changed)
        return changed


def sheet_to(
    sheet: Sheet, moment: datetime, *, with_rules: bool, by: User, reason: str, now: datetime
) -> OpenChangeSet:
    """Title, description, language, sections and citations as they stood at a moment; and the
    sheet's own rules, if asked. Shared rule sets stay, for other sheets use them.

    Raises NothingThen for a moment before there was a sheet.
    """
    past = _then(Sheet, moment, id=sheet.pk).get(sheet.pk)
    if past is None:
        raise NothingThen(f"{sheet.slug} was not there at that moment; choose a later one.")
    with change_set(by=by, reason=reason, now=now) as changed:
        values = {name: getattr(past, name) for name in _SHEET_FIELDS}
        editing.change(sheet, by=by, reason=reason, now=now, **values)
        _restore(sheet.sections.all(), _then(Section, moment, sheet=sheet), changed)
        cited = Citation.objects.filter(section__sheet=sheet).select_related("source", "section")
        _restore(cited, _then(Citation, moment, section__sheet=sheet), changed)
        if with_rules:
            own = RuleSet.objects.filter(
                shared=False, sheet_links__sheet=sheet, sheet_links__removed_at__isnull=True
            )
            rules = Rule.objects.filter(ruleset__in=own)
            _restore(rules, _then(Rule, moment, ruleset__in=own), changed)
        return changed


def _then(model: type[TrackedModel], moment: datetime, **of: Any) -> dict[int, Any]:
    """The rows of a kind that were in use at a moment, as they were, by key."""
    return {row.id: row for row in history.rows_as_of(model, moment, **of)}


def _restore(rows: Iterable[TrackedModel], past: dict[int, Any], changed: OpenChangeSet) -> None:
    """Rows as they were, and those that were not in use then taken out of use."""
    by, reason, now = changed.by, changed.reason, changed.at
    for row in rows:
        then = past.get(row.pk)
        if then is None:
            editing.remove(row, by=by, reason=reason, now=now)
            continue
        values = {
            column.attname: getattr(then, column.attname)
            for column in row._meta.concrete_fields
            if column.name not in _NOT_VALUES
        }
        editing.change(row, by=by, reason=reason, now=now, removed_at=None, **values)
