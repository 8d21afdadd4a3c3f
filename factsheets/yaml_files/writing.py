"""Plain values to canonical YAML: the same values always give the same bytes.

Block style, keys in the order given, long text folded or literal. What any
reader of YAML might take for a date, a number, a yes or a null is quoted.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

from factsheets.yaml_files.reading import DECIMAL, DEEPEST, FORBIDDEN, INTEGER, LONGEST_KEY

WIDTH = 100

_WORDS_WITH_A_MEANING = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
#: Characters that are safe only as an escape: readers fold, drop or refuse them.
_ESCAPED = re.compile("[\t\r\u2028\u2029\ufeff\ufffe\uffff]")
_SINGLE_SPACE = re.compile(r"(?<! ) (?! )")


def write(value: object, *, comment: str = "") -> bytes:
    """The file for a value of the kinds that `read` gives; tuples are written as lists.

    `read` and other loaders of YAML give equal values back. The comment stands
    at the top, a line for each of its lines.
    Raises ValueError or TypeError for a value that no file could give back.
    """
    _refuse_forbidden(comment)
    lines = [f"# {_ESCAPED.sub(' ', line)}".rstrip() for line in comment.splitlines()]
    return ("\n".join([*lines, *_lines(value, "", depth=1)]) + "\n").encode()


def _lines(value: object, pad: str, *, depth: int) -> list[str]:
    """The lines of a value, indented by `pad`; the first line of a scalar or of nothing is not."""
    if not isinstance(value, dict | list | tuple):
        return _scalar(value, pad)
    if depth > DEEPEST:
        raise ValueError(f"Values nested more than {DEEPEST} deep cannot be written.")
    if not value:
        return ["{}" if isinstance(value, dict) else "[]"]
    lines: list[str] = []
    if isinstance(value, dict):
        for key, item in value.items():
            lead = f"{pad}{_key(key)}:"
            # The dashes of a list stand under its key, which makes them clear enough.
            inner = pad if item and isinstance(item, list | tuple) else f"{pad}  "
            below = _lines(item, inner, depth=depth + 1)
            if item and isinstance(item, dict | list | tuple):
                lines += [lead, *below]
            else:
                lines += [f"{lead} {below[0]}", *below[1:]]
        return lines
    for item in value:
        first, *rest = _lines(item, f"{pad}  ", depth=depth + 1)
        lines += [f"{pad}- {first.removeprefix(f'{pad}  ')}", *rest]
    return lines


def _scalar(value: object, pad: str) -> list[str]:
    """The lines of a scalar; those after the first are indented."""
    if isinstance(value, str):
        _refuse_forbidden(value)
        # A text alone in its file has no indentation to stand under.
        return _block(value, pad or "  ") or [_inline(value)]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int) and INTEGER.fullmatch(written := str(value)):
        return [written]
    if isinstance(value, float) and DECIMAL.fullmatch(written := _decimal(value)):
        return [written]
    raise TypeError(f"A value of type {type(value).__name__} cannot be written: {value!r:.60}.")


def _key(key: object) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
        raise TypeError(f"A key must be text of 1 to {LONGEST_KEY} characters, not {key!r:.60}.")
    _refuse_forbidden(key)
    return _inline(key)


def _inline(text: str) -> str:
    """Text on one line: as it is where no reader could mistake it, else in quotes."""
    if "\n" in text or _ESCAPED.search(text):
        quoted = json.dumps(text, ensure_ascii=False)
        return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
    if (
        text[:1].isalpha()
        and text.lower() not in _WORDS_WITH_A_MEANING
        and not text.endswith((" ", ":"))
        and ": " not in text
        and " #" not in text
    ):
        return text
    return "'" + text.replace("'", "''") + "'"


def _block(text: str, pad: str) -> list[str] | None:
    """Text as a block, folded or literal; None where it is short or a block would lose something."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    width = WIDTH - len(pad)
    if (
        (len(lines) == 1 and len(body) <= width)
        or _ESCAPED.search(text)
        or any(line.endswith(" ") for line in lines)
        or body.startswith((" ", "\n"))
        or body.endswith("\n")
    ):
        return None
    style = "|"
    if max(map(len, lines)) > width and not any(line.startswith(" ") for line in lines):
        style = ">"
        # Within a folded block one line break reads as a blank, and n + 1 as n.
        doubled = re.sub(r"\n+", lambda breaks: f"{breaks[0]}\n", body)
        lines = [part for line in doubled.split("\n") for part in _filled(line, width)]
    if len(lines) == 1:
        return None
    header = style if body != text else f"{style}-"
    return [header, *(f"{pad}{line}" if line else "" for line in lines)]


def _filled(line: str, width: int) -> list[str]:
    """A line broken at single blanks, each part as long as fits."""
    parts = [""]
    for word in _SINGLE_SPACE.split(line):
        if parts[-1] and len(parts[-1]) + 1 + len(word) > width:
            parts.append(word)
        else:
            parts[-1] = f"{parts[-1]} {word}" if parts[-1] else word
    return parts


def _decimal(value: float) -> str:
    plain = format(Decimal(repr(value)), "f")
    return plain if "." in plain else f"{plain}.0"


def _refuse_forbidden(text: str) -> None:
    if found := FORBIDDEN.search(text):
        raise ValueError(
            f"The control character U+{ord(found[0]):04X} cannot be written to a file."
        )
