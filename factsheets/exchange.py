"""Sheets and rules from and to files.

Reading is strict and touches nothing. Applying makes the draft equal to the
file inside the caller's change set: what is missing from the file is removed
(and can be restored), sources never. Access, gate policy, bot and required
suites belong to the installation and stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from factsheets import canonical, checking, editing, history, staleness, standings, yaml_files
from factsheets.errors import Refused
from factsheets.models import (
    Citation,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
    SlugAlias,
    Source,
    TrackedModel,
)
from factsheets.models.sheets import SECTION_LIMIT, SHEET_LIMIT
from factsheets.models.tracking import NotValid
from factsheets.snapshot import CitationSnapshot, SectionSnapshot, SourceSnapshot
from factsheets.yaml_files import Fields

SHEET_FILE = "sheet.yaml"
RULES_FILE = "rules.yaml"

Values = Mapping[str, Any]


class ImportRefused(Refused):
    """Files that cannot become the draft; nothing was changed."""

    code = "import-refused"


@dataclass(frozen=True, slots=True)
class FileCitation:
    """A citation as a file has it."""

    source: str
    values: Values


@dataclass(frozen=True, slots=True)
class FileSection:
    """A section as a file has it. `checked_on` is None where the file states no check."""

    key: str
    values: Values
    citations: tuple[FileCitation, ...]
    checked_on: date | None


@dataclass(frozen=True, slots=True)
class SheetFile:
    """`sheet.yaml`, read."""

    slug: str
    values: Values
    sources: Mapping[str, Values]
    sections: tuple[FileSection, ...]


@dataclass(frozen=True, slots=True)
class RulesFile:
    """`rules.yaml`, read: the sheet's own rules, and the names of the shared sets it uses."""

    sheet: str
    shared: tuple[str, ...]
    rules: Mapping[str, Values]


# ---- reading ----


def read_sheet(data: bytes, *, name: str = SHEET_FILE) -> SheetFile:
    """Read `sheet.yaml`. Raises FileRefused with the place and what to do."""
    top = Fields(yaml_files.read(data, name=name), file=name)
    head = top.mapping("sheet", required=True)
    slug = head.key("slug")
    values = {
        "title": head.text("title", required=True, max_length=200),
        "language": head.text("language", default="en-GB", max_length=35),
        "description": head.text("description"),
    }
    head.done()
    sources = dict(unique(top.items("sources", label="source"), _source_values))
    sections = tuple(
        section for _, section in unique(top.items("sections", label="section"), _section)
    )
    top.done()
    for section in sections:
        for citation in section.citations:
            if citation.source not in sources:
                raise ImportRefused(
                    f'{name}, section "{section.key}": cites the source "{citation.source}", which '
                    "the file does not list; add it under sources or correct the key."
                )
    total = sum(len(section.values["body"]) for section in sections)
    if total > SHEET_LIMIT:
        raise ImportRefused(
            f"{name}: the sections have {total:,} characters together; "
            f"shorten them to {SHEET_LIMIT:,} or split the sheet."
        )
    return SheetFile(slug, values, sources, sections)


def read_rules(data: bytes, *, name: str = RULES_FILE) -> RulesFile:
    """Read `rules.yaml`. Raises FileRefused with the place and what to do."""
    top = Fields(yaml_files.read(data, name=name), file=name)
    sheet = top.key("sheet")
    shared = tuple(top.texts("shared"))
    if len(set(shared)) < len(shared):
        twice = next(slug for slug in shared if shared.count(slug) > 1)
        raise top.refusal("shared", f'names "{twice}" twice; name each set once')
    rules = dict(unique(top.items("rules", label="rule"), _rule_values))
    top.done()
    return RulesFile(sheet, shared, rules)


def unique[V](items: Iterable[Fields], read: Callable[[str, Fields], V]) -> Iterator[tuple[str, V]]:
    """Read keyed items of a file one by one; a key that stands twice is refused."""
    seen: set[str] = set()
    for item in items:
        key = item.key("key")
        if key in seen:
            raise item.refusal("key", "stands twice in the file; give each its own")
        seen.add(key)
        value = read(key, item)
        item.done()
        yield key, value


def _source_values(key: str, item: Fields) -> Values:
    return {
        "kind": item.choice("kind", Source.Kind.values),
        "title": item.text("title", required=True, max_length=500),
        "author": item.text("author", max_length=300),
        "publisher": item.text("publisher", max_length=300),
        "issued": item.text("issued", max_length=100),
        "url": item.text("url", max_length=1000),
        "identifier": item.text("identifier", max_length=200),
        "licence": item.text("licence", max_length=300),
        "access": item.text("access", max_length=300),
        "note": item.text("note"),
    }


def _section(key: str, item: Fields) -> FileSection:
    return FileSection(
        key=key,
        values={
            "heading": item.text("heading", required=True, max_length=200),
            "question": item.text("question", max_length=300),
            "body": item.text("body", max_length=SECTION_LIMIT),
            "note": item.text("note"),
            "included": item.flag("included", default=True),
        },
        citations=tuple(_citation(c) for c in item.items("citations", label="citation")),
        checked_on=item.date("checked_on"),
    )


def _citation(item: Fields) -> FileCitation:
    citation = FileCitation(
        source=item.key("source"),
        values={
            # In the form of the row they are matched with.
            "locator": canonical.normalise_line(item.text("locator", max_length=300)),
            "claims": canonical.normalise(item.text("claims")),
            "quote": item.text("quote"),
            "role": item.choice("role", Citation.Role.values, default=Citation.Role.SUPPORTS),
            "required": item.flag("required", default=True),
        },
    )
    item.done()
    return citation


def _rule_values(key: str, item: Fields) -> Values:
    return {
        "kind": item.choice("kind", Rule.Kind.values),
        "text": item.text("text", required=True),
        "enabled": item.flag("enabled", default=True),
    }


# ---- applying: inside the caller's change set ----


def find_sheet(slug: str) -> Sheet | None:
    """The sheet of that name. Raises ImportRefused for a name that another one gave up."""
    sheet = Sheet.objects.select_related("bot", "state").filter(slug=slug).first()
    if sheet is None:
        alias = SlugAlias.objects.filter(slug=slug).select_related("sheet").first()
        if alias is not None:
            raise ImportRefused(
                f'"{slug}" is a former name of the sheet "{alias.sheet.slug}" and stays reserved; '
                "use the present name in the file, or another."
            )
    return sheet


@contextmanager
def naming(file: str) -> Iterator[None]:
    """What a row says against its values, with the file they stand in before it."""
    try:
        yield
    except (NotValid, canonical.TextRefused) as refused:
        raise ImportRefused(f"{file}, {refused.sentence}") from refused


def apply_sheet(file: SheetFile, *, by: User, reason: str, now: datetime) -> Sheet:
    """Make sheet, sources, sections, citations and stated checks equal to the file."""
    sheet = find_sheet(file.slug)
    if sheet is None:
        sheet = editing.create_sheet(slug=file.slug, **file.values, by=by, reason=reason, now=now)
    else:
        put(sheet, **file.values, removed_at=None)
    sources = _apply_sources(sheet, file.sources)
    known = {section.key: section for section in sheet.sections.all()}
    citations = _citations_of(sheet)
    today = timezone.localdate(now)
    for position, section in enumerate(file.sections):
        if section.checked_on is not None and section.checked_on > today:
            raise ImportRefused(
                f'{SHEET_FILE}, section "{section.key}", field "checked_on": {section.checked_on} is '
                "still to come; give the day on which it was checked."
            )
        row = known.pop(section.key, None) or Section(sheet=sheet, key=section.key)
        put(row, **section.values, position=position, removed_at=None)
        cited = _apply_citations(row, section.citations, sources, citations.get(row.pk, []), now)
        if section.checked_on is not None:
            checking.record_imported(
                section=row, citations=cited, checked_on=section.checked_on, by=by, now=now
            )
    remove_all(known.values(), now)
    return sheet


def apply_rules(sheet: Sheet, file: RulesFile, *, by: User, reason: str, now: datetime) -> None:
    """Make the sheet's own rules, and its use of shared sets, equal to the file."""
    own = editing.own_ruleset(sheet, by=by, reason=reason, now=now)
    put_all(own.rules.all(), file.rules, lambda key: Rule(ruleset=own, key=key), now)
    links = {
        link.ruleset.slug: link
        for link in sheet.ruleset_links.select_related("ruleset").filter(ruleset__shared=True)
    }
    for position, slug in enumerate(file.shared):
        link = links.pop(slug, None)
        if link is None:
            ruleset = RuleSet.objects.present().filter(slug=slug, shared=True).first()
            if ruleset is None:
                raise ImportRefused(
                    f'{RULES_FILE}: there is no shared rule set "{slug}"; make it first, or take '
                    "the name out."
                )
            link = SheetRuleSet(sheet=sheet, ruleset=ruleset)
        put(link, position=position, removed_at=None)
    remove_all(links.values(), now)


def put(row: TrackedModel, **values: Any) -> None:
    """Set fields and save. The row's own `save` writes nothing when nothing changes."""
    for name, value in values.items():
        setattr(row, name, value)
    row.save()


def put_all(
    rows: Iterable[Any],
    wanted: Mapping[str, Values],
    make: Callable[[str], TrackedModel],
    now: datetime,
) -> None:
    """Make keyed rows equal to a file's, in its order; what it does not name is removed."""
    known = {row.key: row for row in rows}
    for position, (key, values) in enumerate(wanted.items()):
        put(known.pop(key, None) or make(key), **values, position=position, removed_at=None)
    remove_all(known.values(), now)


def remove_all(rows: Iterable[TrackedModel], now: datetime) -> None:
    """Take rows out of use that no file names any more."""
    for row in rows:
        put(row, removed_at=row.removed_at or now)


def _apply_sources(sheet: Sheet, sources: Mapping[str, Values]) -> dict[str, Source]:
    known = {source.key: source for source in Source.objects.filter(key__in=sources)}
    elsewhere = dict(
        Citation.objects.present()
        .filter(source__key__in=sources, section__removed_at__isnull=True)
        .exclude(section__sheet=sheet)
        .order_by("section__sheet__slug")
        .values_list("source__key", "section__sheet__slug")
    )
    rows: dict[str, Source] = {}
    for key, values in sources.items():
        row = known.get(key) or Source(key=key)
        before = history.source_snapshot(row)
        for name, value in values.items():
            setattr(row, name, value)
        row.removed_at = None
        row.normalise()
        if key in elsewhere and history.source_snapshot(row) != before:
            raise ImportRefused(
                f'{SHEET_FILE}, source "{key}": the sheet "{elsewhere[key]}" cites a source of that '
                f'key with other data than "{sheet.slug}" brings; make them equal or use another key.'
            )
        row.save()
        rows[key] = row
    return rows


def _citations_of(sheet: Sheet) -> dict[int, list[Citation]]:
    found: dict[int, list[Citation]] = {}
    for citation in (
        Citation.objects.filter(section__sheet=sheet)
        .select_related("source")
        .order_by("position", "id")
    ):
        found.setdefault(citation.section_id, []).append(citation)
    return found


def _apply_citations(
    section: Section,
    wanted: tuple[FileCitation, ...],
    sources: Mapping[str, Source],
    known: list[Citation],
    now: datetime,
) -> list[Citation]:
    """Match by source, locator and claims, then by position; what is left over is removed."""
    rows: dict[int, Citation] = {}
    left = list(known)
    for position, citation in enumerate(wanted):
        same = next((row for row in left if _is_same(row, citation)), None)
        if same is not None:
            rows[position] = same
            left.remove(same)
    present = [row for row in left if row.removed_at is None]
    for position, citation in enumerate(wanted):
        if position not in rows:
            row = next((r for r in present if r.position == position), None)
            if row is None:
                row = Citation(section=section)
            else:
                present.remove(row)
            rows[position] = row
        row = rows[position]
        row.source = sources[citation.source]
        put(row, **citation.values, position=position, removed_at=None)
    remove_all(present, now)
    return [rows[position] for position in range(len(wanted))]


def _is_same(row: Citation, citation: FileCitation) -> bool:
    return (
        row.source.key == citation.source
        and row.locator == citation.values["locator"]
        and row.claims == citation.values["claims"]
    )


# ---- writing ----


def write_sheet(sheet: Sheet) -> bytes:
    """`sheet.yaml` of the draft. Optional keys stand only where they are not the default."""
    snapshot = history.snapshot_now(sheet)
    keys = dict(sheet.sections.present().values_list("key", "pk"))
    known = standings.facts(dict.fromkeys(keys.values(), sheet.pk))
    cited = (
        Source.objects.filter(
            citations__removed_at__isnull=True,
            citations__section__sheet=sheet,
            citations__section__removed_at__isnull=True,
        )
        .distinct()
        .order_by("id")
    )
    return yaml_files.write(
        {
            "sheet": {
                "slug": snapshot.slug,
                "title": snapshot.title,
                "language": snapshot.language,
                "description": snapshot.description,
            },
            "sources": [_write_source(history.source_snapshot(source)) for source in cited],
            "sections": [
                _write_section(section, known[keys[section.key]]) for section in snapshot.sections
            ],
        }
    )


def write_rules(sheet: Sheet) -> bytes:
    """`rules.yaml`: the sheet's own rules, and shared sets by name."""
    links = (
        sheet.ruleset_links.present()
        .filter(ruleset__removed_at__isnull=True)
        .select_related("ruleset")
        .order_by("position", "id")
    )
    shared = [link.ruleset.slug for link in links if link.ruleset.shared]
    rules = (
        Rule.objects.present()
        .filter(ruleset__in=[link.ruleset_id for link in links if not link.ruleset.shared])
        .order_by("ruleset__id", "position", "id")
    )
    return yaml_files.write(
        {
            "sheet": sheet.slug,
            **({"shared": shared} if shared else {}),
            "rules": [
                {
                    "key": rule.key,
                    "kind": str(rule.kind),
                    "text": rule.text,
                    **({} if rule.enabled else {"enabled": False}),
                }
                for rule in rules
            ],
        }
    )


def _write_source(source: SourceSnapshot) -> dict[str, object]:
    return {
        "key": source.key,
        "kind": source.kind,
        "title": source.title,
        "author": source.author,
        "publisher": source.publisher,
        "issued": source.issued,
        "url": source.url,
        "identifier": source.identifier,
        "licence": source.licence,
        **({"access": source.access} if source.access else {}),
        "note": source.note,
    }


def _write_section(section: SectionSnapshot, facts: staleness.SectionFacts) -> dict[str, object]:
    checked_on = staleness.covered_on(
        facts, text_hash=canonical.text_hash(section.heading, section.body)
    )
    return {
        "key": section.key,
        "heading": section.heading,
        "question": section.question,
        "body": section.body,
        **({} if section.included else {"included": False}),
        "note": section.note,
        "checked_on": checked_on.isoformat() if checked_on is not None else "",
        "citations": [_write_citation(citation) for citation in section.citations],
    }


def _write_citation(citation: CitationSnapshot) -> dict[str, object]:
    return {
        "source": citation.source.key,
        "locator": citation.locator,
        "claims": citation.claims,
        **({"quote": citation.quote} if citation.quote else {}),
        **({"role": citation.role} if citation.role != Citation.Role.SUPPORTS else {}),
        **({} if citation.required else {"required": False}),
    }
