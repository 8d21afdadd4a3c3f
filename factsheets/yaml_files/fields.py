"""Values of a file, taken field by field, with errors that name file, item and field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from datetime import date

from factsheets import canonical
from factsheets.yaml_files.reading import FileRefused

#: Characters of a key or slug.
KEY_LENGTH = 80

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Fields:
    """One mapping of a file. `item` is what people call it, such as `section "hours"`.

    A field that is missing, or left empty, has its default. Every reader of a
    field raises FileRefused for a value of another kind. End with `done()`.
    """

    def __init__(self, value: object, *, file: str, item: str = "") -> None:
        self.file = file
        self.item = item
        if not isinstance(value, dict):
            raise FileRefused(f"{self._place()}: there must be fields here, each as `name: value`.")
        self._values: dict[str, object] = value
        self._known: list[str] = []

    def __contains__(self, name: str) -> bool:
        """Whether the file has the field at all, even empty."""
        return name in self._values

    def text(
        self, name: str, *, required: bool = False, default: str = "", max_length: int | None = None
    ) -> str:
        value = self._take(name, required=required)
        if not isinstance(value, str):
            raise self.refusal(name, "must be text; put it in quotes")
        if max_length is not None and len(value) > max_length:
            raise self.refusal(name, f"has {len(value)} characters; shorten it to {max_length}")
        return value or default

    def key(self, name: str) -> str:
        """A name that other rows are found by, in the form in which names are stored. Required."""
        return canonical.normalise_line(self.text(name, required=True, max_length=KEY_LENGTH))

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._take(name)
        if value == "":
            return default
        if not isinstance(value, bool):
            raise self.refusal(name, "must be true or false, in small letters without quotes")
        return value

    def number(
        self, name: str, *, default: int = 0, minimum: int | None = None, maximum: int | None = None
    ) -> int:
        value = self._take(name)
        if value == "":
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.refusal(name, "must be a whole number without quotes")
        if minimum is not None and value < minimum:
            raise self.refusal(name, f"is {value}; the smallest that is taken is {minimum}")
        if maximum is not None and value > maximum:
            raise self.refusal(name, f"is {value}; the largest that is taken is {maximum}")
        return value

    def choice(self, name: str, allowed: Collection[str], *, default: str | None = None) -> str:
        """One of the allowed words; without a default the field is required."""
        value = self.text(name, required=default is None, default=default or "")
        if value not in allowed and value != default:
            listed = ", ".join(allowed)
            raise self.refusal(
                name, f'"{_short(value)}" is not known here; choose one of: {listed}'
            )
        return value

    def date(self, name: str, *, required: bool = False) -> date | None:
        """A day written YYYY-MM-DD; None where the field is empty."""
        value = self._take(name, required=required)
        if value == "":
            return None
        try:
            if isinstance(value, str) and _DATE.fullmatch(value):
                return date.fromisoformat(value)
        except ValueError:
            pass
        raise self.refusal(name, "must be a day of the calendar, written YYYY-MM-DD")

    def texts(self, name: str, *, required: bool = False) -> list[str]:
        """A list of texts, none of them empty."""
        return self._texts(name, self._list(name, required=required))

    def text_lists(self, name: str, *, required: bool = False) -> list[list[str]]:
        """A list of lists of texts, none of them empty."""
        lists = self._list(name, required=required)
        if not all(isinstance(entry, list) and entry for entry in lists):
            raise self.refusal(name, "must be a list of lists; begin each entry with `- - `")
        return [self._texts(name, entry) for entry in lists]

    def items(self, name: str, *, label: str, required: bool = False) -> list[Fields]:
        """A list of mappings, called by the label and their key, slug or place in the list."""
        entries = self._list(name, required=required)
        return [
            Fields(entry, file=self.file, item=self._inside(f"{label} {_called(entry, number)}"))
            for number, entry in enumerate(entries, start=1)
        ]

    def mapping(self, name: str, *, required: bool = False) -> Fields:
        """A mapping within this one; without any field where it is missing."""
        value = self._take(name, required=required)
        return Fields({} if value == "" else value, file=self.file, item=self._inside(name))

    def done(self) -> None:
        """Refuse the fields that nobody asked for."""
        unknown = [name for name in self._values if name not in self._known]
        if not unknown:
            return
        near = difflib.get_close_matches(unknown[0], self._known, n=1)
        listed = ", ".join(f'"{_short(name)}"' for name in unknown)
        raise FileRefused(
            f"{self._place()}: {listed} {'is' if len(unknown) == 1 else 'are'} not known here; "
            f"{f'did you mean "{near[0]}"? The' if near else 'the'} known fields are: "
            f"{', '.join(self._known)}."
        )

    def refusal(self, name: str, what: str) -> FileRefused:
        """The refusal of one field, for its reader to raise; `what` says what is wrong and what to do."""
        return FileRefused(f'{self._place()}, field "{name}": {what}.')

    def _take(self, name: str, *, required: bool = False) -> object:
        if name not in self._known:
            self._known.append(name)
        value = self._values.get(name, "")
        if required and (value == [] or (isinstance(value, str) and not value.strip())):
            raise self.refusal(name, "is missing or empty; fill it in")
        return value

    def _list(self, name: str, *, required: bool) -> list[object]:
        value = self._take(name, required=required)
        if value == "":
            return []
        if not isinstance(value, list):
            raise self.refusal(name, "must be a list; begin each entry with `- `")
        return value

    def _texts(self, name: str, entries: object) -> list[str]:
        texts: list[str] = []
        for entry in entries if isinstance(entries, list) else []:
            if not isinstance(entry, str):
                raise self.refusal(name, "must hold texts alone; put each entry in quotes")
            if not entry.strip():
                raise self.refusal(name, "has an empty entry; fill it in or remove it")
            texts.append(entry)
        return texts

    def _place(self) -> str:
        return f"{self.file}, {self.item}" if self.item else self.file

    def _inside(self, item: str) -> str:
        return f"{self.item}, {item}" if self.item else item


def _called(entry: object, number: int) -> str:
    """How people know an entry: by its key, else by its place."""
    named = isinstance(entry, dict) and (entry.get("key") or entry.get("slug"))
    return f'"{_short(named)}"' if isinstance(named, str) else str(number)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
