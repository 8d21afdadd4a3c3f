"""A file of questions and replies to lines: JSON objects, one a line, or CSV with a header.

Read strictly, for a line that was misread would be counted: unknown members,
missing texts and moments that are none are refused, each with its line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

from factsheets import canonical, moments
from factsheets.errors import Refused

#: Bytes and lines. Half a year of a busy bot goes in parts.
LARGEST = 5_000_000
MOST_LINES = 20_000

#: Characters of one text.
LONGEST = 20_000

REQUIRED = ("question", "reply")
OPTIONAL = ("at", "reference")

#: What an answer may be called: visible characters without blanks.
REFERENCE = re.compile(r"[\x21-\x7e]{1,100}")


class LogRefused(Refused):
    """A file that cannot be counted. Nothing of it was."""

    code = "log-refused"


@dataclass(frozen=True, slots=True)
class Line:
    """One answer of a log. `at` is None, and `reference` empty, where the file says none."""

    number: int
    question: str
    reply: str
    at: datetime | None
    reference: str


@dataclass(frozen=True, slots=True)
class Lines:
    """A whole file, by the hash of its bytes."""

    sha256: str
    rows: tuple[Line, ...]


def read(data: bytes, *, zone: tzinfo, now: datetime) -> Lines:
    """The lines of a file. A moment without an offset is one of `zone`. Raises LogRefused."""
    if len(data) > LARGEST:
        raise LogRefused(
            f"The file is larger than {LARGEST // 1_000_000} MB; cut it in parts and send each."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogRefused(
            "The file is not UTF-8 text; save it as UTF-8 and send it again."
        ) from error
    found = _json_lines(text) if text.lstrip().startswith("{") else _csv_lines(text)
    rows: list[Line] = []
    seen: dict[str, int] = {}
    for number, members in found:
        if len(rows) == MOST_LINES:
            raise LogRefused(
                f"The file has more than {MOST_LINES:,} answers; cut it in parts and send each."
            )
        line = _line(number, members, zone, now)
        if line.reference and line.reference in seen:
            raise _refused(
                number, f"the reference {line.reference} stands on line {seen[line.reference]} too"
            )
        seen[line.reference] = number
        rows.append(line)
    if not rows:
        raise LogRefused("The file has no answer; send lines with a question and a reply.")
    return Lines(hashlib.sha256(data).hexdigest(), tuple(rows))


def _refused(number: int, why: str) -> LogRefused:
    return LogRefused(f"Line {number}: {why}. Nothing was taken; mend the line and send it again.")


def _json_lines(text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    # Not splitlines(): other line ends may stand inside a JSON text.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            members = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _refused(number, "it is no JSON object") from error
        if not isinstance(members, dict):
            raise _refused(number, "it is no JSON object")
        _know(number, members)
        yield number, members


def _csv_lines(text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _know(1, dict.fromkeys(header))
        if len(set(header)) < len(header):
            raise _refused(1, "a column stands there twice")
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise _refused(
                    reader.line_num, f"it has {len(cells)} cells, and the header {len(header)}"
                )
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise _refused(reader.line_num, "its quotes do not close, or a cell is too long") from error


def _know(number: int, members: Mapping[str, object]) -> None:
    unknown = [name for name in members if name not in {*REQUIRED, *OPTIONAL}]
    if unknown:
        raise _refused(
            number,
            f"{unknown[0]!r:.40} is not known here; there are {', '.join((*REQUIRED, *OPTIONAL))}",
        )
    missing = [name for name in REQUIRED if name not in members]
    if missing:
        raise _refused(number, f"{missing[0]} is missing")


def _line(number: int, members: Mapping[str, object], zone: tzinfo, now: datetime) -> Line:
    texts = {name: _text(number, name, members.get(name)) for name in (*REQUIRED, *OPTIONAL)}
    for name in REQUIRED:
        if not texts[name].strip():
            raise _refused(number, f"{name} is empty")
    if texts["reference"] and not REFERENCE.fullmatch(texts["reference"]):
        raise _refused(
            number, "the reference must be up to 100 letters, digits and signs without blanks"
        )
    at = None
    if texts["at"]:
        try:
            at = moments.read(texts["at"], zone=zone, now=now)
        except moments.MomentRefused as refused:
            raise _refused(number, f"at: {refused.sentence.rstrip('.')}") from refused
    return Line(number, texts["question"], texts["reply"], at, texts["reference"])


def _text(number: int, name: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _refused(number, f"{name} is no text")
    if len(value) > LONGEST:
        raise _refused(number, f"{name} has more than {LONGEST:,} characters")
    try:
        return canonical.normalise(value).strip()
    except canonical.TextRefused as refused:
        raise _refused(number, f"{name} holds half of a character") from refused
