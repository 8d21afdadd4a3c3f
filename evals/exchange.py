"""Probes and questions from and to files, and the whole of a sheet in one folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from evals.models import Probe, Question, QuestionSet, Suite, SuiteRequirement
from factsheets import exchange, yaml_files
from factsheets.exchange import ImportRefused, Values, put, put_all
from factsheets.models import Sheet
from factsheets.models.locking import hold_still
from factsheets.models.tracking import Change, change_set
from factsheets.yaml_files import Fields

PROBES_FILE = "probes.yaml"
QUESTIONS_FILE = "questions.yaml"


@dataclass(frozen=True, slots=True)
class ProbesFile:
    """A suite's file, read."""

    name: str
    sheet: str
    slug: str
    values: Values
    probes: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class QuestionsFile:
    """A question set's file, read."""

    name: str
    sheet: str
    slug: str
    values: Values
    questions: Mapping[str, Values]


@dataclass(slots=True)
class Folder:
    """All that a folder holds, read. A part that has no file stays as it is."""

    sheet: exchange.SheetFile | None = None
    rules: exchange.RulesFile | None = None
    suites: list[ProbesFile] = field(default_factory=list)
    question_sets: list[QuestionsFile] = field(default_factory=list)

    @property
    def slug(self) -> str:
        """The one sheet that every file is about. Raises ImportRefused for none or several."""
        names: dict[str, str] = {}
        if self.sheet:
            names[exchange.SHEET_FILE] = self.sheet.slug
        if self.rules:
            names[exchange.RULES_FILE] = self.rules.sheet
        names |= {suite.name: suite.sheet for suite in self.suites}
        names |= {questions.name: questions.sheet for questions in self.question_sets}
        if not names:
            raise ImportRefused(
                "The folder holds none of sheet.yaml, rules.yaml, probes.yaml and questions.yaml; "
                "name the folder that does."
            )
        if len(set(names.values())) > 1:
            said = ", ".join(f"{file} says {slug!r}" for file, slug in names.items())
            raise ImportRefused(f"The files are about different sheets: {said}. Make them agree.")
        return next(iter(names.values()))


# ---- reading ----


def read_folder(folder: Path) -> Folder:
    """Read every file of a folder. Raises FileRefused or ImportRefused; nothing is changed."""
    if not folder.is_dir():
        raise ImportRefused(f"{folder} is not a folder; name one that holds sheet.yaml.")
    found = Folder()
    if (path := folder / exchange.SHEET_FILE).is_file():
        found.sheet = exchange.read_sheet(_bytes(path))
    if (path := folder / exchange.RULES_FILE).is_file():
        found.rules = exchange.read_rules(_bytes(path))
    found.suites = [read_probes(_bytes(p), name=p.name) for p in _files(folder, PROBES_FILE)]
    found.question_sets = [
        read_questions(_bytes(p), name=p.name) for p in _files(folder, QUESTIONS_FILE)
    ]
    _once(found.suites)
    _once(found.question_sets)
    return found


def _once(files: Sequence[ProbesFile | QuestionsFile]) -> None:
    """Two files of one slug would undo each other."""
    seen: dict[str, str] = {}
    for file in files:
        if file.slug in seen:
            raise ImportRefused(
                f'{file.name}: the slug "{file.slug}" stands in {seen[file.slug]} already; '
                "give each its own."
            )
        seen[file.slug] = file.name


def _files(folder: Path, first: str) -> list[Path]:
    """`probes.yaml` and then `probes-*.yaml`, by name."""
    stem = first.removesuffix(".yaml")
    paths = [folder / first, *sorted(folder.glob(f"{stem}-*.yaml"))]
    return [path for path in paths if path.is_file()]


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            # One byte more than is taken tells the reader that there is too much.
            return file.read(yaml_files.LARGEST_FILE + 1)
    except OSError as error:
        raise ImportRefused(f"{path} cannot be read: {error.strerror}.") from error


def read_probes(data: bytes, *, name: str = PROBES_FILE) -> ProbesFile:
    """Read a suite. Raises FileRefused with the place and what to do."""
    top = Fields(yaml_files.read(data, name=name), file=name)
    sheet = top.key("sheet")
    head = top.mapping("suite", required=True)
    slug = head.key("slug")
    values = {
        "title": head.text("title", required=True, max_length=200),
        "repeats": head.number("repeats", default=1, minimum=1, maximum=20),
        "pass_bar": head.number("pass_bar", default=100, minimum=1, maximum=100),
    }
    head.done()
    probes = dict(_unique(top, "probes", "probe", _probe_values))
    top.done()
    return ProbesFile(name, sheet, slug, values, probes)


def read_questions(data: bytes, *, name: str = QUESTIONS_FILE) -> QuestionsFile:
    """Read a question set. Raises FileRefused with the place and what to do."""
    top = Fields(yaml_files.read(data, name=name), file=name)
    sheet = top.key("sheet")
    head = top.mapping("question_set", required=True)
    slug = head.key("slug")
    values = {"title": head.text("title", required=True, max_length=200)}
    head.done()
    questions = dict(_unique(top, "questions", "question", question_values))
    top.done()
    return QuestionsFile(name, sheet, slug, values, questions)


def _unique(top: Fields, name: str, label: str, read: Any) -> Iterator[tuple[str, Values]]:
    return exchange.unique(top.items(name, label=label), read)


def _probe_values(key: str, item: Fields) -> Values:
    any_of, none_of = item.texts("must_contain_any"), item.texts("must_not_contain")
    lists = [
        {"type": kind, "values": values, "match": "anywhere"}
        for kind, values in (("contains-any", any_of), ("not-contains", none_of))
        if values
    ]
    return {
        "category": item.text("category", required=True, max_length=80),
        "turns": item.texts("turns", required=True),
        "must": item.choice("must", Probe.Must.values),
        "needs": item.choice("needs", Probe.Needs.values, default=""),
        "severity": item.choice("severity", Probe.Severity.values, default=Probe.Severity.CRITICAL),
        "active": item.flag("active", default=True),
        "checks": [*lists, *(_check(check) for check in item.items("checks", label="check"))],
        "note": item.text("note"),
    }


def _check(item: Fields) -> dict[str, object]:
    """A check of another form than the two lists; the probe itself refuses what makes no sense."""
    spec: dict[str, object] = {"type": item.text("type", required=True)}
    if values := item.texts("values"):
        spec |= {
            "values": values,
            "match": item.choice("match", ("word", "anywhere"), default="word"),
        }
    item.done()
    return spec


def question_values(key: str, item: Fields) -> Values:
    """The fields of one question, whatever kind of file they stand in."""
    return {
        "question": item.text("question", required=True),
        "scope": item.choice("scope", Question.Scope.values),
        "sections": item.texts("sections"),
        "expected": item.text("expected"),
        "facts": item.text_lists("facts"),
        "trap": item.choice("trap", Question.Trap.values, default=""),
        "part": item.choice("part", Question.Part.values, default=Question.Part.DEV),
        "note": item.text("note"),
    }


# ---- applying ----


class _DryRun(Exception):
    """Takes back what a dry run did."""


def import_folder(
    folder: Folder, *, by: User, reason: str, now: datetime, dry_run: bool = False
) -> list[Change]:
    """Make the draft equal to the files in one change set, and say what changed.

    A dry run does the same and takes it back, so it meets every refusal that
    the import would.
    """
    changes: list[Change] = []
    try:
        with change_set(by=by, reason=reason, now=now) as opened:
            _apply(folder, by=by, reason=reason, now=now)
            changes = opened.changes
            if dry_run:
                raise _DryRun
    except _DryRun:
        pass
    return changes


def _apply(folder: Folder, *, by: User, reason: str, now: datetime) -> None:
    sheet = exchange.find_sheet(folder.slug)
    is_new = sheet is None
    if folder.sheet is not None:
        with exchange.naming(exchange.SHEET_FILE):
            sheet = exchange.apply_sheet(folder.sheet, by=by, reason=reason, now=now)
    if sheet is None:
        raise ImportRefused(
            f'There is no sheet "{folder.slug}", and the folder has no sheet.yaml to make it from.'
        )
    if folder.rules is not None:
        with exchange.naming(exchange.RULES_FILE):
            exchange.apply_rules(sheet, folder.rules, by=by, reason=reason, now=now)
    for position, suite in enumerate(folder.suites):
        with exchange.naming(suite.name):
            row = apply_suite(sheet, suite, now)
        if is_new and position == 0:
            SuiteRequirement(sheet=sheet, suite=row).save()
    for questions in folder.question_sets:
        with exchange.naming(questions.name):
            apply_questions(sheet, questions, now)


def apply_suite(sheet: Sheet, file: ProbesFile, now: datetime) -> Suite:
    """Make the suite of that slug equal to the file, inside the caller's change set."""
    suite = Suite.objects.filter(slug=file.slug).select_related("sheet").first()
    if suite is not None and suite.sheet_id != sheet.pk:
        owner = suite.sheet.slug if suite.sheet else "no sheet"
        raise ImportRefused(
            f'{file.name}: the suite "{file.slug}" belongs to "{owner}" and not to "{sheet.slug}"; '
            "give it another slug."
        )
    suite = suite or Suite(slug=file.slug, sheet=sheet)
    put(suite, **file.values, removed_at=None)
    put_all(suite.probes.all(), file.probes, lambda key: Probe(suite=suite, key=key), now)
    return suite


def apply_questions(sheet: Sheet, file: QuestionsFile, now: datetime) -> QuestionSet:
    """Make the set of that slug equal to the file, inside the caller's change set."""
    # Those taken out of use too: their keys stay reserved, and questions may outlive them.
    known_sections = set(sheet.sections.values_list("key", flat=True))
    for key, values in file.questions.items():
        unknown = [name for name in values["sections"] if name not in known_sections]
        if unknown:
            raise ImportRefused(
                f'{file.name}, question "{key}": the sheet has no section "{unknown[0]}"; '
                "correct the key."
            )
    row = QuestionSet.objects.filter(slug=file.slug).select_related("sheet").first()
    if row is not None and row.sheet_id != sheet.pk:
        raise ImportRefused(
            f'{file.name}: the question set "{file.slug}" belongs to "{row.sheet.slug}" and not to '
            f'"{sheet.slug}"; give it another slug.'
        )
    row = row or QuestionSet(slug=file.slug, sheet=sheet)
    put(row, **file.values, removed_at=None)
    put_all(
        row.questions.all(), file.questions, lambda key: Question(question_set=row, key=key), now
    )
    return row


# ---- writing ----


def export_folder(sheet: Sheet) -> dict[str, bytes]:
    """File names and bytes of the whole draft. A part that the sheet lacks has no file."""
    with transaction.atomic():
        # No save may be seen half done.
        hold_still()
        return _export(sheet)


def _export(sheet: Sheet) -> dict[str, bytes]:
    files = {
        exchange.SHEET_FILE: exchange.write_sheet(sheet),
        exchange.RULES_FILE: exchange.write_rules(sheet),
    }
    for place, suite in enumerate(sheet.suites.present().order_by("id")):
        name = PROBES_FILE if place == 0 else f"probes-{suite.slug}.yaml"
        files[name] = write_probes(sheet, suite)
    for place, questions in enumerate(sheet.question_sets.present().order_by("id")):
        name = QUESTIONS_FILE if place == 0 else f"questions-{questions.slug}.yaml"
        files[name] = write_questions(sheet, questions)
    return files


def write_probes(sheet: Sheet, suite: Suite) -> bytes:
    """A suite's file."""
    return yaml_files.write(
        {
            "sheet": sheet.slug,
            "suite": {
                "slug": suite.slug,
                "title": suite.title,
                **({"repeats": suite.repeats} if suite.repeats != 1 else {}),
                **({"pass_bar": suite.pass_bar} if suite.pass_bar != 100 else {}),
            },
            "probes": [_write_probe(p) for p in suite.probes.present().order_by("position", "id")],
        }
    )


def write_questions(sheet: Sheet, questions: QuestionSet) -> bytes:
    """A question set's file."""
    return yaml_files.write(
        {
            "sheet": sheet.slug,
            "question_set": {"slug": questions.slug, "title": questions.title},
            "questions": [
                _write_question(q) for q in questions.questions.present().order_by("position", "id")
            ],
        }
    )


def _write_probe(probe: Probe) -> dict[str, object]:
    lists, others = _as_lists(probe.checks)
    return {
        "key": probe.key,
        "category": probe.category,
        "turns": probe.turns,
        "must": str(probe.must),
        **({"needs": str(probe.needs)} if probe.needs else {}),
        **lists,
        **({"checks": others} if others else {}),
        **({"severity": str(probe.severity)} if probe.severity != Probe.Severity.CRITICAL else {}),
        **({} if probe.active else {"active": False}),
        "note": probe.note,
    }


def _as_lists(checks: list[dict[str, Any]]) -> tuple[dict[str, object], list[dict[str, Any]]]:
    """Checks that the two lists can say, in the order that reading gives them; the rest apart."""
    names = {"contains-any": "must_contain_any", "not-contains": "must_not_contain"}
    lists: dict[str, object] = {}
    rest = list(checks)
    for kind, name in names.items():
        if rest and rest[0]["type"] == kind and rest[0].get("match") == "anywhere":
            lists[name] = rest.pop(0)["values"]
    return lists, rest


def _write_question(question: Question) -> dict[str, object]:
    return {
        "key": question.key,
        "question": question.question,
        "scope": str(question.scope),
        "sections": question.sections,
        "expected": question.expected,
        **({"facts": question.facts} if question.facts else {}),
        **({"trap": str(question.trap)} if question.trap else {}),
        **({"part": str(question.part)} if question.part != Question.Part.DEV else {}),
        **({"note": question.note} if question.note else {}),
    }
