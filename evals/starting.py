"""New sheets: from blank, with rules and probes to start from, or as a copy of another.

Every row of a new sheet is its own. What several sheets share is shared with it
too: sources, shared rule sets, and suites that belong to no sheet or to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from evals import exchange as probes_exchange
from evals.models import Suite, SuiteRequirement
from factsheets import editing, exchange
from factsheets.errors import Refused
from factsheets.models import Citation, GatePolicy, Sheet, SheetRuleSet, TrackedModel
from factsheets.models.locking import hold_still
from factsheets.models.tracking import change_set

#: Rules and probes of our own that fit any sheet, in the form of any other sheet's files.
STARTER = Path(__file__).resolve().parent / "data" / "starter"


class NameTaken(Refused):
    """Another sheet has this name in addresses, or was made with it in the same moment."""

    code = "name-taken"


def start_blank(
    *,
    slug: str,
    title: str,
    by: User,
    reason: str,
    now: datetime,
    language: str = "en-GB",
    description: str = "",
) -> Sheet:
    """A sheet without sections, with starter rules, and a starter suite that it requires.

    Raises NameTaken, or NotValid for a title, name or language that cannot be.
    """
    rules, probes = _starter()
    with _new(slug), change_set(by=by, reason=reason, now=now):
        sheet = editing.create_sheet(
            slug=slug,
            title=title,
            language=language,
            description=description,
            by=by,
            reason=reason,
            now=now,
        )
        exchange.apply_rules(sheet, rules, by=by, reason=reason, now=now)
        file = replace(
            probes,
            slug=_free(f"{sheet.slug}-starter"),
            values={**probes.values, "title": _title(f"{sheet.title}: starter probes")},
        )
        suite = probes_exchange.apply_suite(sheet, file, now)
        SuiteRequirement(sheet=sheet, suite=suite).save()
        return sheet


def start_copy(
    *,
    source: Sheet,
    slug: str,
    title: str,
    by: User,
    reason: str,
    now: datetime,
    language: str = "",
    description: str = "",
) -> Sheet:
    """A sheet with the draft of another: text, citations, rules, required suites, bot and policy.

    Language and description are the original's unless given. Checks are not
    copied: nobody has checked the copy. Nor are publications, runs and who may
    pull it. Raises NameTaken, or NotValid for a title, name or language that cannot be.
    """
    with _new(slug), transaction.atomic():
        # Held before the change set's own lock, so that no save of the original is seen half done.
        hold_still()
        with change_set(by=by, reason=reason, now=now):
            original = Sheet.objects.select_related("bot").get(pk=source.pk)
            sheet = editing.create_sheet(
                slug=slug,
                title=title,
                language=language or original.language,
                description=description or original.description,
                bot=original.bot,
                by=by,
                reason=reason,
                now=now,
            )
            exchange.put(sheet, probe_scope=original.probe_scope, delivery=original.delivery)
            _copy_policy(original, sheet)
            _copy_sections(original, sheet)
            own = editing.own_ruleset(sheet, by=by, reason=reason, now=now)
            for link in _links(original):
                if link.ruleset.shared:
                    SheetRuleSet(sheet=sheet, ruleset=link.ruleset, position=link.position).save()
                else:
                    _copy_rules(link, own.pk)
            for suite in _required(original):
                belongs = suite.sheet_id == original.pk
                taken = _copy_suite(suite, original, sheet) if belongs else suite
                SuiteRequirement(sheet=sheet, suite=taken).save()
            return sheet


@cache
def _starter() -> tuple[exchange.RulesFile, probes_exchange.ProbesFile]:
    rules = (STARTER / exchange.RULES_FILE).read_bytes()
    probes = (STARTER / probes_exchange.PROBES_FILE).read_bytes()
    return exchange.read_rules(rules), probes_exchange.read_probes(probes)


@contextmanager
def _new(slug: str) -> Iterator[None]:
    """A name that another sheet has is refused, also one taken while this one was made."""
    sentence = f"“{slug}” is the name of another sheet; choose another."
    if Sheet.objects.filter(slug=slug).exists():
        raise NameTaken(sentence)
    try:
        yield
    except IntegrityError as error:
        if Sheet.objects.filter(slug=slug).exists():
            raise NameTaken(sentence) from error
        raise


def _free(wanted: str) -> str:
    return editing.free_slug(Suite.objects.all(), wanted)


def _title(wanted: str) -> str:
    return wanted[: Suite._meta.get_field("title").max_length]


def _copy[M: TrackedModel](row: M, **changed: object) -> M:
    """A new row with the columns of a present one, but for those that are to differ."""
    columns = (c.attname for c in row._meta.concrete_fields if not c.primary_key)
    copy = type(row)(**{name: getattr(row, name) for name in columns} | changed)
    copy.save()
    return copy


def _copy_policy(original: Sheet, sheet: Sheet) -> None:
    policy = GatePolicy.objects.present().filter(sheet=original).first()
    if policy is not None:
        own = {"id", "sheet", "removed_at"}
        names = (field.name for field in policy._meta.concrete_fields)
        exchange.put(sheet.gate_policy, **{n: getattr(policy, n) for n in names if n not in own})


def _copy_sections(original: Sheet, sheet: Sheet) -> None:
    citations: dict[int, list[Citation]] = {}
    for citation in (
        Citation.objects.present()
        .filter(section__sheet=original)
        .select_related("source")
        .order_by("position", "id")
    ):
        citations.setdefault(citation.section_id, []).append(citation)
    for section in original.sections.present().order_by("position", "id"):
        copy = _copy(section, sheet_id=sheet.pk)
        for citation in citations.get(section.pk, []):
            # The source too: its key names the citation in the list of changes.
            _copy(citation, section_id=copy.pk, source=citation.source)


def _links(original: Sheet) -> list[SheetRuleSet]:
    """The rule sets that the original uses, in the order in which its rules are read."""
    return list(
        original.ruleset_links.present()
        .filter(ruleset__removed_at__isnull=True)
        .select_related("ruleset")
        .order_by("position", "id")
    )


def _copy_rules(link: SheetRuleSet, own_id: int) -> None:
    for rule in link.ruleset.rules.present().order_by("position", "id"):
        _copy(rule, ruleset_id=own_id)


def _required(original: Sheet) -> list[Suite]:
    required = SuiteRequirement.objects.present().filter(sheet=original)
    return list(Suite.objects.present().filter(id__in=required.values("suite_id")).order_by("id"))


def _copy_suite(suite: Suite, original: Sheet, sheet: Sheet) -> Suite:
    """A suite of the original under names of the copy: what named the original names the copy."""
    ending = suite.slug.removeprefix(f"{original.slug}-")
    what = suite.title.removeprefix(f"{original.title}: ")
    copy = _copy(
        suite,
        slug=_free(f"{sheet.slug}-{ending}"),
        title=_title(f"{sheet.title}: {what}"),
        sheet_id=sheet.pk,
    )
    for probe in suite.probes.present().order_by("position", "id"):
        _copy(probe, suite_id=copy.pk)
    return copy
