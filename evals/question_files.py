"""Questions from files of other kinds than ours: CSV, and the JSON of SQuAD."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evals.exchange import QuestionsFile, question_values, read_questions
from evals.models import Question
from factsheets import canonical, folding, yaml_files
from factsheets.exchange import ImportRefused, Values
from factsheets.snapshot import BotSheet
from factsheets.yaml_files import Fields

#: Columns of a CSV file. `question` and `scope` must be there.
COLUMNS = ("key", "question", "scope", "sections", "expected", "facts", "trap", "part", "note")

_NOT_IN_KEYS = re.compile(r"[^a-z0-9_-]+")
KEY_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Read:
    """A file as a question set, and the questions that could not be placed on the sheet."""

    file: QuestionsFile
    left_out: tuple[str, ...] = ()


def read(data: bytes, *, name: str, sheet: BotSheet, of: str, slug: str, title: str) -> Read:
    """Read a question set by the ending of the file's name: .yaml, .csv or .json (SQuAD).

    `of`: the slug of the sheet. `slug` and `title` name the set; a YAML file
    names itself where they are empty. Raises FileRefused or ImportRefused.
    """
    ending = name.rpartition(".")[2].lower()
    if ending in {"yaml", "yml"}:
        return Read(_named(read_questions(data, name=name), of=of, slug=slug, title=title))
    if ending not in {"csv", "json"}:
        raise ImportRefused(
            f"{name}: questions are read from .yaml, .csv and .json (SQuAD); rename or convert it."
        )
    if not slug or not title:
        raise ImportRefused(f"{name}: the file has no name for the set; give a slug and a title.")
    text = _text(data, name)
    items, left_out = (
        (list(_rows(text, name)), ()) if ending == "csv" else _squad(text, name, sheet)
    )
    questions: dict[str, Values] = {}
    for key, item in items:
        if key in questions:
            raise ImportRefused(f'{name}: the key "{key}" stands there twice; give each its own.')
        questions[key] = item
    if not questions:
        raise ImportRefused(f"{name}: no question in it fits this sheet; nothing was imported.")
    return Read(QuestionsFile(name, of, slug, {"title": title}, questions), tuple(left_out))


def _named(file: QuestionsFile, *, of: str, slug: str, title: str) -> QuestionsFile:
    if file.sheet != of:
        raise ImportRefused(
            f'{file.name} is about the sheet "{file.sheet}" and not about "{of}"; '
            "choose the other sheet, or correct the file."
        )
    values = {**file.values, **({"title": title} if title else {})}
    return QuestionsFile(file.name, of, slug or file.slug, values, file.questions)


def _text(data: bytes, name: str) -> str:
    if len(data) > yaml_files.LARGEST_FILE:
        raise ImportRefused(f"{name}: the file is larger than 5 MB; split it or leave parts out.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ImportRefused(f"{name}: this is not UTF-8; save the file as UTF-8.") from None


# ---- CSV ----


def _rows(text: str, name: str) -> Iterator[tuple[str, Values]]:
    """One question a row. Sections are parted by blanks, facts by `;`, alternatives by `|`."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise ImportRefused(f"{name}: this is no CSV file ({error}); save it as one.") from None
    head = [column.strip().lower() for column in rows[0]] if rows else []
    unknown = [column for column in head if column not in COLUMNS]
    if unknown or not {"question", "scope"} <= set(head) or len(set(head)) < len(head):
        raise ImportRefused(
            f"{name}: the first row must name the columns, each once: question, scope, and what "
            f"else there is of {', '.join(COLUMNS)}."
        )
    for number, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(head):
            raise ImportRefused(
                f"{name}, row {number}: there are {len(row)} cells, and {len(head)} columns; "
                "put texts with commas in quotes."
            )
        cells = dict(zip(head, map(canonical.normalise, row), strict=True))
        yield _question(
            {
                **cells,
                "key": cells.get("key") or f"row-{number}",
                "sections": cells.get("sections", "").replace(",", " ").split(),
                "facts": [
                    [canonical.normalise_line(word) for word in entry.split("|") if word.strip()]
                    for entry in cells.get("facts", "").split(";")
                    if entry.strip(" |\t")
                ],
            },
            name,
            f"row {number}",
        )


def _question(item: dict[str, object], name: str, place: str) -> tuple[str, Values]:
    fields = Fields(item, file=name, item=place)
    key = fields.key("key")
    values = question_values(key, fields)
    fields.done()
    return key, values


# ---- SQuAD ----


def _squad(
    text: str, name: str, sheet: BotSheet
) -> tuple[list[tuple[str, Values]], tuple[str, ...]]:
    """The questions of the article of the sheet's title, or of all, if none is called so.

    The section is the one that holds the whole paragraph of the question, or
    those that hold one of its answers.
    """
    sections = [(s.key, f" {' '.join(folding.words(s.text))} ") for s in sheet.sections]
    found: list[tuple[str, Values]] = []
    left_out: list[str] = []
    for paragraph, asked, number in _asked(_articles(text, name, sheet.title), name):
        key = _key(asked.get("id"), number)
        question = _line(asked.get("question"), name)
        answers = list(dict.fromkeys(_line(a.get("text"), name) for a in _answers(asked, name)))
        item: dict[str, object] = {"key": key, "question": question}
        if asked.get("is_impossible") is True:
            item |= {"scope": Question.Scope.OUT.value, "trap": Question.Trap.LEXICAL.value}
        else:
            places = _holding(sections, [paragraph]) or _holding(sections, answers)
            if not places or not answers:
                left_out.append(key)
                continue
            item |= {
                "scope": Question.Scope.IN.value,
                "sections": places,
                "expected": answers[0],
                "facts": [answers],
            }
        found.append(_question(item, name, f"question {key}"))
    return found, tuple(left_out)


def _articles(text: str, name: str, title: str) -> Sequence[dict[str, Any]]:
    try:
        articles = json.loads(text)["data"]
        titles = {_same(article["title"]) for article in articles}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _no_squad(name) from None
    wanted = _same(title)
    return [a for a in articles if wanted not in titles or _same(a["title"]) == wanted]


def _same(title: object) -> tuple[str, ...]:
    return folding.words(str(title).replace("_", " "))


def _asked(
    articles: Iterable[dict[str, Any]], name: str
) -> Iterator[tuple[str, dict[str, Any], int]]:
    number = 0
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                context = _line(paragraph["context"], name)
                for asked in paragraph["qas"]:
                    number += 1
                    yield context, dict(asked), number
    except (ValueError, TypeError, KeyError):
        raise _no_squad(name) from None


def _answers(asked: dict[str, Any], name: str) -> list[dict[str, Any]]:
    answers = asked.get("answers", [])
    if not isinstance(answers, list) or not all(isinstance(a, dict) for a in answers):
        raise _no_squad(name)
    return answers


def _holding(sections: Iterable[tuple[str, str]], texts: Iterable[str]) -> list[str]:
    wanted = [f" {' '.join(words)} " for text in texts if (words := folding.words(text))]
    return [key for key, body in sections if any(text in body for text in wanted)]


def _key(identifier: object, number: int) -> str:
    key = _NOT_IN_KEYS.sub("-", str(identifier or "").lower()).strip("-")[:KEY_LENGTH]
    return key or f"question-{number}"


def _line(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _no_squad(name)
    return canonical.normalise_line(value)


def _no_squad(name: str) -> ImportRefused:
    return ImportRefused(
        f"{name}: this is not the JSON of SQuAD (data, paragraphs, context, qas, question, answers); "
        "convert it, or use CSV."
    )
