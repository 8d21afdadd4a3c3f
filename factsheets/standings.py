"""How sections stand with their checks: rows to facts, whatever the number of sections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import date

from factsheets import canonical, staleness
from factsheets.models import (
    Check,
    CheckItem,
    Citation,
    ReviewInterval,
    ReviewPlan,
    Section,
    Sheet,
)
from factsheets.snapshot import SheetSnapshot
from factsheets.staleness import CheckFacts, Cited, Interval, Item, Plan, SectionFacts, Standing

#: Review plans by sheet and section; that of the whole sheet under None.
Plans = Mapping[tuple[int, int | None], ReviewPlan]


def of_snapshot(sheet: Sheet, snapshot: SheetSnapshot, *, today: date) -> dict[str, Standing]:
    """Every section of a picture of the sheet, by key, with its present sources and checks."""
    keys = [section.key for section in snapshot.sections]
    rows = dict(sheet.sections.filter(key__in=keys).values_list("key", "pk"))
    known = facts(dict.fromkeys(rows.values(), sheet.pk))
    return {
        section.key: staleness.standing(
            known[rows[section.key]],
            text_hash=canonical.text_hash(section.heading, section.body),
            today=today,
        )
        for section in snapshot.sections
    }


def of_sections(sections: Collection[Section], *, today: date) -> dict[int, Standing]:
    """Sections as drafted, by primary key."""
    known = facts({section.pk: section.sheet_id for section in sections})
    return {section.pk: drafted(section, known[section.pk], today=today) for section in sections}


def of_section(section: Section, *, today: date) -> Standing:
    """One section as drafted."""
    return drafted(section, facts_of(section), today=today)


def drafted(section: Section, known: SectionFacts, *, today: date) -> Standing:
    """How a section as drafted stands, by facts that are known already."""
    return staleness.standing(
        known,
        text_hash=section.text_hash,
        today=today,
        is_retired=not section.included or section.removed_at is not None,
    )


def facts_of(section: Section) -> SectionFacts:
    """What decides the state of one section."""
    return facts({section.pk: section.sheet_id})[section.pk]


def facts(sections: Mapping[int, int], plans: Plans | None = None) -> dict[int, SectionFacts]:
    """What decides the state of sections, by their primary keys.

    `sections`: each one's sheet. `plans`: those of the sheets, if they are known already.
    """
    cited = _cited(sections)
    checks = _checks(sections)
    plans = plans_of(set(sections.values())) if plans is None else plans
    by_kind = intervals_by_kind()
    return {
        pk: SectionFacts(
            tuple(cited[pk]),
            tuple(checks[pk]),
            _plan(by_kind, plans.get((sheet, None)), plans.get((sheet, pk))),
        )
        for pk, sheet in sections.items()
    }


def plans_of(sheets: Collection[int]) -> Plans:
    """The review plans of sheets, with the people they name."""
    return {
        (plan.sheet_id, plan.section_id): plan
        for plan in ReviewPlan.objects.present()
        .filter(sheet__in=sheets)
        .select_related("owner", "fallback")
    }


def intervals_by_kind() -> Mapping[str, Interval]:
    """How long a check against each kind of source holds here."""
    own = {row.kind: Interval.parse(row.interval) for row in ReviewInterval.objects.present()}
    return {**staleness.DEFAULT_INTERVALS, **own}


def _cited(sections: Collection[int]) -> dict[int, list[Cited]]:
    found: dict[int, list[Cited]] = defaultdict(list)
    for citation in (
        Citation.objects.present()
        .filter(section__in=sections)
        .select_related("source")
        .order_by("position", "id")
    ):
        found[citation.section_id].append(
            Cited(
                id=citation.pk,
                use_hash=citation.use_hash,
                title=citation.source.title,
                kind=citation.source.kind,
                role=citation.role,
                required=citation.required,
            )
        )
    return found


def _checks(sections: Collection[int]) -> dict[int, list[CheckFacts]]:
    items: dict[int, list[Item]] = defaultdict(list)
    for item in (
        CheckItem.objects.filter(of__section__in=sections, of__superseded_by__isnull=True)
        .select_related("of")
        .order_by("id")
    ):
        seen_on = item.accessed_on or item.of.checked_on
        items[item.of_id].append(Item(item.citation_id, item.use_hash, item.outcome, seen_on))
    found: dict[int, list[CheckFacts]] = defaultdict(list)
    for check in Check.objects.filter(section__in=sections, superseded_by__isnull=True).order_by(
        "checked_on", "recorded_at", "id"
    ):
        found[check.section_id].append(
            CheckFacts(check.text_hash, check.checked_on, check.outcome, tuple(items[check.pk]))
        )
    return found


def _plan(
    by_kind: Mapping[str, Interval], sheet: ReviewPlan | None, section: ReviewPlan | None
) -> Plan:
    days = (plan.review_by for plan in (sheet, section) if plan and plan.review_by)
    return Plan(
        by_kind=by_kind,
        sheet=_interval(sheet),
        section=_interval(section),
        review_by=tuple(days),
    )


def _interval(plan: ReviewPlan | None) -> Interval | None:
    return Interval.parse(plan.interval) if plan is not None and plan.interval else None
