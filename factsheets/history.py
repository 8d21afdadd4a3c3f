"""Rows to a snapshot: the one place where the record is read whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import OuterRef, Subquery

from factsheets import canonical
from factsheets.models import (
    BotProfile,
    Check,
    Citation,
    Publication,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
    Source,
    TrackedModel,
)
from factsheets.snapshot import (
    BotSnapshot,
    CheckSnapshot,
    CitationSnapshot,
    RuleSnapshot,
    SectionSnapshot,
    SheetSnapshot,
    SourceSnapshot,
)


def snapshot_now(sheet: Sheet) -> SheetSnapshot:
    """The sheet's record as it stands, in a fixed number of queries.

    Whoever freezes what this returns calls `locking.hold_still()` first, in the
    same transaction, or an editor's save could be seen half done.
    """
    # Sort by id too: positions may repeat while an editor reorders.
    sections = list(sheet.sections.present().order_by("position", "id"))
    citations = (
        Citation.objects.present()
        .filter(section__sheet=sheet)
        .select_related("source")
        .order_by("position", "id")
    )
    return _snapshot(
        sheet,
        sheet.bot,
        sections,
        [(c, c.source) for c in citations],
        latest_checks({section.pk: section.key for section in sections}),
        _rules(sheet),
    )


def snapshot_as_of(sheet: Sheet, moment: datetime) -> SheetSnapshot | None:
    """The sheet's record as it was drafted at a moment, in a fixed number of queries.

    Whole: a save bears one moment for all that it touched, so it is seen with
    everything or not at all. Sources, rules, bot and checks are those of the
    moment too. None for a moment before there was a sheet.
    """
    then = {row.id: row for row in rows_as_of(Sheet, moment, id=sheet.pk)}.get(sheet.pk)
    if then is None:
        return None
    # A bot or a source out of use still stands where it is used.
    bot = rows_as_of(BotProfile, moment, in_use=False, id=then.bot_id)[0]
    sections = sorted(rows_as_of(Section, moment, sheet=sheet), key=_place)
    cited = sorted(rows_as_of(Citation, moment, section__sheet=sheet), key=_place)
    used = {citation.source_id for citation in cited}
    sources = {row.id: row for row in rows_as_of(Source, moment, in_use=False, id__in=used)}
    return _snapshot(
        then,
        bot,
        sections,
        [(c, sources[c.source_id]) for c in cited if c.source_id in sources],
        latest_checks({row.id: row.key for row in sections}, moment),
        _rules_as_of(sheet, moment),
    )


def _place(row: Any) -> tuple[int, int]:
    return row.position, row.id


def rows_as_of(
    model: type[TrackedModel], moment: datetime, *, in_use: bool = True, **of: Any
) -> list[Any]:
    """What rows were at a moment: the newest history entry of each, of those in use then.

    Without `in_use` also of those that had been taken out of use.
    """
    entries = model.history.filter(history_date__lte=moment)
    newest = (
        entries.filter(id=OuterRef("pk"))
        # Two entries may bear one date; the later id is the newer.
        .order_by("-history_date", "-history_id")
        .values("history_id")[:1]
    )
    # By the history: a row may belong to another today than it did then.
    rows = model._base_manager.filter(pk__in=entries.filter(**of).values("id"))
    found = model.history.filter(
        history_id__in=rows.annotate(newest=Subquery(newest)).values("newest"), **of
    )
    return list((found.filter(removed_at__isnull=True) if in_use else found).order_by("id"))


def _snapshot(
    sheet: Any,
    bot: Any,
    sections: Sequence[Any],
    cited: Iterable[tuple[Any, Any]],
    checks: Mapping[str, CheckSnapshot | None],
    rules: tuple[RuleSnapshot, ...],
) -> SheetSnapshot:
    """One picture of rows, present or past: both have the same fields."""
    citations: dict[int, list[CitationSnapshot]] = defaultdict(list)
    for citation, source in cited:
        citations[citation.section_id].append(_citation(citation, source))
    return SheetSnapshot(
        slug=sheet.slug,
        title=sheet.title,
        description=sheet.description,
        language=sheet.language,
        visibility=sheet.visibility,
        delivery=sheet.delivery,
        probe_scope=sheet.probe_scope,
        bot=bot_snapshot(bot),
        sections=tuple(
            SectionSnapshot(
                key=section.key,
                heading=section.heading,
                question=section.question,
                body=section.body,
                included=section.included,
                note=section.note,
                citations=tuple(citations[section.id]),
                check=checks.get(section.key),
            )
            for section in sections
        ),
        rules=rules,
    )


def candidate_now(sheet: Sheet) -> canonical.Candidate:
    """What publishing the draft would release."""
    return canonical.candidate(sheet.pk, snapshot_now(sheet))


def candidate_of(publication: Publication) -> canonical.Candidate:
    """What publishing a past publication's text and rules again would release, with today's bot."""
    sheet = publication.sheet
    past = canonical.read_record(bytes(publication.record))
    checks = latest_checks(dict(sheet.sections.values_list("pk", "key")))
    present = canonical.with_checks(past, checks, bot_snapshot(sheet.bot))
    # Served under the name that the sheet has now, whatever it was called then.
    return canonical.candidate(sheet.pk, replace(present, slug=sheet.slug))


def latest_checks(
    keys: Mapping[int, str], moment: datetime | None = None
) -> dict[str, CheckSnapshot | None]:
    """The newest check of each section that none supersedes, now or at a moment.

    `keys`: each section's key by its primary key; the answer is by the key.
    """
    checks = Check.objects.filter(section__in=keys)
    if moment is None:
        checks = checks.filter(superseded_by__isnull=True)
    else:
        checks = checks.filter(recorded_at__lte=moment).exclude(
            superseded_by__recorded_at__lte=moment
        )
    latest: dict[str, CheckSnapshot | None] = {}
    for check in checks.order_by("checked_on", "recorded_at", "id"):
        latest[keys[check.section_id]] = CheckSnapshot(
            text_hash=check.text_hash,
            checked_on=check.checked_on,
            checked_by=check.checked_by_name,
            outcome=check.outcome,
            method=check.method,
            note=check.note,
        )
    return latest


def bot_snapshot(bot: Any) -> BotSnapshot:
    """A bot, present or past, with the address it really calls: of the installation, never of a row.

    An address that an editor could type would be a way to send the key elsewhere.
    """
    endpoint = settings.ANTHROPIC_BASE_URL if bot.provider == "anthropic" else ""
    return BotSnapshot(
        slug=bot.slug,
        provider=bot.provider,
        model=bot.model,
        effort=bot.effort,
        thinking=bot.thinking,
        max_tokens=bot.max_tokens,
        endpoint=_without_secrets(endpoint),
        context_window=bot.context_window,
        reserve_history=bot.reserve_history,
        reserve_question=bot.reserve_question,
        reserve_retrieval=bot.reserve_retrieval,
        reserve_output=bot.reserve_output,
    )


def _without_secrets(address: str) -> str:
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _rules(sheet: Sheet) -> tuple[RuleSnapshot, ...]:
    links = (
        SheetRuleSet.objects.present()
        .filter(sheet=sheet, ruleset__removed_at__isnull=True)
        .select_related("ruleset")
    )
    sets = {link.ruleset_id: link.ruleset for link in links}
    return _in_order(links, sets, Rule.objects.present().filter(ruleset__in=sets))


def _rules_as_of(sheet: Sheet, moment: datetime) -> tuple[RuleSnapshot, ...]:
    links = rows_as_of(SheetRuleSet, moment, sheet=sheet)
    sets = {
        row.id: row for row in rows_as_of(RuleSet, moment, id__in={li.ruleset_id for li in links})
    }
    in_use = [link for link in links if link.ruleset_id in sets]
    return _in_order(in_use, sets, rows_as_of(Rule, moment, ruleset__in=sets))


def _in_order(
    links: Iterable[Any], sets: Mapping[int, Any], rules: Iterable[Any]
) -> tuple[RuleSnapshot, ...]:
    """Rules, present or past: shared sets first, then the sheet's own; within each by position."""
    read = sorted(links, key=lambda link: (not sets[link.ruleset_id].shared, *_place(link)))
    order = {link.ruleset_id: place for place, link in enumerate(read)}
    return tuple(
        RuleSnapshot(sets[rule.ruleset_id].slug, rule.key, rule.kind, rule.text, rule.enabled)
        for rule in sorted(rules, key=lambda rule: (order[rule.ruleset_id], *_place(rule)))
    )


def _citation(citation: Any, source: Any) -> CitationSnapshot:
    return CitationSnapshot(
        source=source_snapshot(source),
        locator=citation.locator,
        claims=citation.claims,
        quote=citation.quote,
        role=citation.role,
        required=citation.required,
    )


def source_snapshot(source: Any) -> SourceSnapshot:
    """One source, present or past, as the record keeps it."""
    return SourceSnapshot(
        key=source.key,
        kind=source.kind,
        title=source.title,
        author=source.author,
        publisher=source.publisher,
        issued=source.issued,
        url=source.url,
        identifier=source.identifier,
        licence=source.licence,
        access=source.access,
        note=source.note,
    )
