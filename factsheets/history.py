"""Rows to a snapshot: the one place where the record is read whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import urlsplit

from django.conf import settings

from factsheets import canonical
from factsheets.models import (
    BotProfile,
    Check,
    Citation,
    Publication,
    Rule,
    Section,
    Sheet,
    SheetRuleSet,
    Source,
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
    citations: dict[int, list[CitationSnapshot]] = defaultdict(list)
    for citation in (
        Citation.objects.present()
        .filter(section__sheet=sheet)
        .select_related("source")
        .order_by("position", "id")
    ):
        citations[citation.section_id].append(_citation(citation))
    checks = latest_checks(sections)
    return SheetSnapshot(
        slug=sheet.slug,
        title=sheet.title,
        description=sheet.description,
        language=sheet.language,
        visibility=sheet.visibility,
        delivery=sheet.delivery,
        probe_scope=sheet.probe_scope,
        bot=bot_snapshot(sheet.bot),
        sections=tuple(
            SectionSnapshot(
                key=section.key,
                heading=section.heading,
                question=section.question,
                body=section.body,
                included=section.included,
                note=section.note,
                citations=tuple(citations[section.pk]),
                check=checks.get(section.key),
            )
            for section in sections
        ),
        rules=_rules(sheet),
    )


def candidate_now(sheet: Sheet) -> canonical.Candidate:
    """What publishing the draft would release."""
    return canonical.candidate(sheet.pk, snapshot_now(sheet))


def candidate_of(publication: Publication) -> canonical.Candidate:
    """What publishing a past publication's text and rules again would release, with today's bot."""
    sheet = publication.sheet
    past = canonical.read_record(bytes(publication.record))
    checks = latest_checks(list(sheet.sections.order_by("position", "id")))
    present = canonical.with_checks(past, checks, bot_snapshot(sheet.bot))
    # Served under the name that the sheet has now, whatever it was called then.
    return canonical.candidate(sheet.pk, replace(present, slug=sheet.slug))


def latest_checks(sections: Iterable[Section]) -> dict[str, CheckSnapshot | None]:
    """The newest check of each section that none supersedes, by the section's key."""
    keys = {section.pk: section.key for section in sections}
    latest: dict[str, CheckSnapshot | None] = {}
    for check in Check.objects.filter(section__in=keys, superseded_by__isnull=True).order_by(
        "checked_on", "recorded_at", "id"
    ):
        latest[keys[check.section_id]] = CheckSnapshot(
            text_hash=check.text_hash,
            checked_on=check.checked_on,
            checked_by=check.checked_by_name,
            outcome=check.outcome,
            method=check.method,
            note=check.note,
        )
    return latest


def bot_snapshot(bot: BotProfile) -> BotSnapshot:
    """The bot with the address it really calls: of the installation, never of a row.

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
    """Shared sets first, then the sheet's own; within each by position."""
    links = (
        SheetRuleSet.objects.present()
        .filter(sheet=sheet, ruleset__removed_at__isnull=True)
        .select_related("ruleset")
        .order_by("-ruleset__shared", "position", "id")
    )
    order = {link.ruleset_id: place for place, link in enumerate(links)}
    slugs = {link.ruleset_id: link.ruleset.slug for link in links}
    rules = Rule.objects.present().filter(ruleset__in=order).order_by("position", "id")
    return tuple(
        RuleSnapshot(slugs[rule.ruleset_id], rule.key, rule.kind, rule.text, rule.enabled)
        for rule in sorted(rules, key=lambda rule: order[rule.ruleset_id])
    )


def _citation(citation: Citation) -> CitationSnapshot:
    return CitationSnapshot(
        source=source_snapshot(citation.source),
        locator=citation.locator,
        claims=citation.claims,
        quote=citation.quote,
        role=citation.role,
        required=citation.required,
    )


def source_snapshot(source: Source) -> SourceSnapshot:
    """One source as the record keeps it."""
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
