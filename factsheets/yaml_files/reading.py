"""Bytes of a YAML file to plain values, refusing whatever could mean two things.

The values are text, whole numbers, decimals, `true` and `false`, lists and
mappings. Everything else a YAML reader may guess at (dates, times, yes and no,
octal) stays the text it is. Nothing after a colon or a dash is empty text;
`null` and `~` are refused, since no field of ours can hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from factsheets.errors import Refused

LARGEST_FILE = 5 * 1024 * 1024
DEEPEST = 20
#: Other readers give up on a key that takes more than 1,024 characters to write.
LONGEST_KEY = 100

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,16})\.[0-9]{1,40}")
#: Line feed, tab and carriage return may stand in text; other control characters
#: and halves of surrogate pairs may not.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
NULLS = {"null", "Null", "NULL", "~"}

#: Twenty times as fast as the one in Python, which stands in where it is missing.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FileRefused(Refused):
    """A file cannot be taken as it stands; the sentence names file, place and remedy."""

    code = "file-refused"


def read(data: bytes, *, name: str) -> object:
    """The one document of a YAML file; `name` is what people call the file.

    Raises FileRefused for anything else, whatever the bytes.
    """
    if len(data) > LARGEST_FILE:
        raise FileRefused(f"{name}: the file is larger than 5 MB; split it or leave parts out.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(name, line, "this is not UTF-8; save the file as UTF-8") from None
    if found := FORBIDDEN.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise _refused(name, line, f"{_control(found[0])} stands here; delete it")
    try:
        return _Document(name, text).value()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "a character that YAML does not allow"
        raise _refused(
            name,
            mark.line + 1 if mark else None,
            f"this is not YAML ({problem}); look at indentation and colons, and put text "
            "with special characters in quotes",
        ) from None
    except (ValueError, OverflowError):
        # The reader in Python passes on what its escapes and numbers run into.
        raise _refused(
            name, None, "an escape or a number in this file stands for nothing; write it out"
        ) from None


class _Document:
    """One document, read event by event, so that a refusal knows its line and nothing is built twice."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.events: Iterator[Any] = iter(yaml.parse(text, Loader=_Loader))

    def value(self) -> object:
        next(self.events)  # the start of the stream
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise FileRefused(
                f"{self.name}: there is nothing in the file; fill it or leave it out."
            )
        value = self._value(next(self.events), depth=1)
        next(self.events)  # the end of the document
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._refused(event, "a second document begins here; keep one to a file")
        return value

    def _value(self, event: Any, *, depth: int) -> object:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._refused(
                event, "anchors (&) and aliases (*) are not taken; write it out, or quote it"
            )
        if event.tag is not None:
            raise self._refused(event, "tags (!) are not taken; leave the tag out, or quote it")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if depth > DEEPEST:
            raise self._refused(event, f"this is nested more than {DEEPEST} deep; flatten it")
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[object] = []
            while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
                items.append(self._value(event, depth=depth + 1))
            return items
        mapping: dict[str, object] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event)
            if key in mapping:
                raise self._refused(event, f'the key "{key}" stands here a second time; remove one')
            mapping[key] = self._value(next(self.events), depth=depth + 1)
        return mapping

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._refused(event, "a key must be a word; write it as `name: value`")
        if event.value == "<<" and not event.style:
            raise self._refused(event, "merge keys (<<) are not taken; write the fields out")
        key = self._value(event, depth=1)
        if not isinstance(key, str):
            raise self._refused(event, f"the key {event.value} is not text; put it in quotes")
        if not 0 < len(key) <= LONGEST_KEY:
            raise self._refused(event, f"a key must have 1 to {LONGEST_KEY} characters; rename it")
        return key

    def _scalar(self, event: Any) -> object:
        text: str = event.value
        if found := FORBIDDEN.search(text):
            raise self._refused(
                event, f"{_control(found[0])} is written here as an escape; delete it"
            )
        if event.style:
            return text
        if text in NULLS:
            raise self._refused(event, f"{text} is not taken; leave the field empty, or quote it")
        if text in {"true", "false"}:
            return text == "true"
        if INTEGER.fullmatch(text):
            return int(text)
        return float(text) if DECIMAL.fullmatch(text) else text

    def _refused(self, event: Any, what: str) -> FileRefused:
        return _refused(self.name, event.start_mark.line + 1, what)


def _refused(name: str, line: int | None, what: str) -> FileRefused:
    return FileRefused(f"{name}{'' if line is None else f', line {line}'}: {what}.")


def _control(character: str) -> str:
    return f"the control character U+{ord(character):04X}"
