"""Two pictures of a sheet side by side: what was added, removed, moved, and which words changed.

Pure. No HTML is made here: a page marks the pieces (`marking`).
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from diff_match_patch import diff_match_patch

from factsheets.marking import Piece
from factsheets.snapshot import CitationSnapshot, RuleSnapshot, SectionSnapshot, SheetSnapshot

Fate = Literal["same", "changed", "added", "removed"]

#: Seconds that the words of one text, and those of all together, may take. A text rewritten
#: whole costs the most.
TIME_LIMIT = 0.5
WHOLE_LIMIT = 3.0

#: Words, blanks and signs apart, so that a comma alone can change.
_TOKEN = re.compile(r"\w+|\s|[^\w\s]")

#: Code points that stand for tokens: any but the surrogates, which no text may hold.
_FIRST, _SURROGATES, _AFTER = 0x100, 0xD800, 0xE000


@dataclass(frozen=True, slots=True)
class Words:
    """A text before and after, in pieces marked "removed" and "added".

    `is_whole`: false where the time limit came first; then stretches that have
    words in common may be shown as replaced.
    """

    pieces: tuple[Piece, ...]
    is_whole: bool = True

    @property
    def changed(self) -> bool:
        return any(piece.mark for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One value that differs, by its name for people."""

    name: str
    words: Words


@dataclass(frozen=True, slots=True)
class RowChange:
    """A rule, or a citation with its source: what became of it and which values differ."""

    name: str
    fate: Fate
    moved: bool
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class SectionChange:
    """One section, by its key, with what became of it, its texts and its citations."""

    key: str
    heading: str
    fate: Fate
    moved: bool
    changes: tuple[FieldChange, ...]
    citations: tuple[RowChange, ...]

    @property
    def is_same(self) -> bool:
        """Nothing of it changed, its sources included."""
        return self.fate == "same" and not self.moved and not self.citations


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that differs between two pictures. Settings first, then in the later one's order."""

    settings: tuple[FieldChange, ...]
    sections: tuple[SectionChange, ...]
    rules: tuple[RowChange, ...]

    @property
    def is_empty(self) -> bool:
        return not self.settings and not self.rules and all(s.is_same for s in self.sections)

    @property
    def is_whole(self) -> bool:
        """Whether every text was compared to its end."""
        of_rows = [*self.rules, *(c for s in self.sections for c in s.citations)]
        changes = [
            *self.settings,
            *(c for s in self.sections for c in s.changes),
            *(c for row in of_rows for c in row.changes),
        ]
        return all(change.words.is_whole for change in changes)


def words(before: str, after: str, *, seconds: float = TIME_LIMIT) -> Words:
    """The two texts as one, word by word, with what was taken out before what came in."""
    if before == after:
        return Words((Piece(after),) if after else ())
    letters: dict[str, str] = {}
    tokens: list[str] = []
    one, other = (_lettered(text, letters, tokens) for text in (before, after))
    differ = diff_match_patch()
    differ.Diff_Timeout = seconds
    began = time.monotonic()
    found = differ.diff_main(one, other, False)
    is_whole = time.monotonic() - began < seconds
    differ.diff_cleanupSemantic(found)
    by_letter = dict(zip(letters.values(), tokens, strict=True))
    marks = {-1: "removed", 0: "", 1: "added"}
    return Words(
        tuple(
            Piece("".join(by_letter[letter] for letter in run), marks[kind]) for kind, run in found
        ),
        is_whole,
    )


def _lettered(text: str, letters: dict[str, str], tokens: list[str]) -> str:
    """The text with one letter for each token, the same for both texts."""
    found = []
    for token in _TOKEN.findall(text):
        if token not in letters:
            code = _FIRST + len(tokens)
            letters[token] = chr(code if code < _SURROGATES else code + _AFTER - _SURROGATES)
            tokens.append(token)
        found.append(letters[token])
    return "".join(found)


#: What is compared of each, with its name for people.
_SETTINGS = {
    "title": "title",
    "slug": "name in addresses",
    "language": "language",
    "description": "description",
    "visibility": "visibility",
    "delivery": "delivery",
    "probe_scope": "probe scope",
}
_SECTION = {
    "heading": "heading",
    "question": "question",
    "body": "text",
    "included": "included",
    "note": "note",
}
_CITATION = {
    "locator": "locator",
    "claims": "claims",
    "quote": "quote",
    "role": "role",
    "required": "required",
}
_SOURCE = {
    "title": "title",
    "kind": "kind",
    "author": "author",
    "publisher": "publisher",
    "issued": "issued",
    "url": "address",
    "identifier": "identifier",
    "licence": "licence",
    "access": "access",
    "note": "note of the source",
}
_RULE = {"kind": "kind", "text": "text", "enabled": "enabled"}


def compare(
    before: SheetSnapshot, after: SheetSnapshot, *, seconds: float = WHOLE_LIMIT
) -> Comparison:
    """What changed from one picture to the other."""
    return _Comparing(seconds).sheets(before, after)


class _Comparing:
    """One comparison with its time."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def sheets(self, before: SheetSnapshot, after: SheetSnapshot) -> Comparison:
        names = {field.name: f"bot: {field.name.replace('_', ' ')}" for field in fields(after.bot)}
        return Comparison(
            settings=(
                *self._fields(before, after, _SETTINGS),
                *self._fields(before.bot, after.bot, names),
            ),
            sections=tuple(self._sections(before.sections, after.sections)),
            rules=tuple(self._rules(before.rules, after.rules)),
        )

    def _sections(
        self, before: Sequence[SectionSnapshot], after: Sequence[SectionSnapshot]
    ) -> Iterator[SectionChange]:
        """By key, so that a section stays itself wherever it stands. Those taken out come last."""
        then, now = ({section.key: section for section in side} for side in (before, after))
        moved = _moved(list(then), list(now))
        for key, section in now.items():
            yield self._section(section, then.get(key), section, moved=key in moved)
        for key, section in then.items():
            if key not in now:
                yield self._section(section, section, None, moved=False)

    def _section(
        self,
        named: SectionSnapshot,
        before: SectionSnapshot | None,
        after: SectionSnapshot | None,
        *,
        moved: bool,
    ) -> SectionChange:
        changes = self._fields(before, after, _SECTION)
        cited = self._citations(
            before.citations if before else (), after.citations if after else ()
        )
        fate = _fate(before, after, changes)
        return SectionChange(named.key, named.heading, fate, moved, changes, tuple(cited))

    def _citations(
        self, before: Sequence[CitationSnapshot], after: Sequence[CitationSnapshot]
    ) -> Iterator[RowChange]:
        """By source and place in it; the same place cited twice by its turn."""
        then, now = _numbered(before), _numbered(after)
        for key in {**now, **then}:
            one, other = then.get(key), now.get(key)
            changes = (
                *self._fields(one, other, _CITATION),
                *self._fields(one and one.source, other and other.source, _SOURCE),
            )
            fate = _fate(one, other, changes)
            if fate != "same":
                yield RowChange(_cited(now[key] if other else then[key]), fate, False, changes)

    def _rules(
        self, before: Sequence[RuleSnapshot], after: Sequence[RuleSnapshot]
    ) -> Iterator[RowChange]:
        then, now = ({(rule.ruleset, rule.key): rule for rule in side} for side in (before, after))
        moved = _moved(list(then), list(now))
        for key in {**now, **then}:
            changes = self._fields(then.get(key), now.get(key), _RULE)
            fate = _fate(then.get(key), now.get(key), changes)
            if fate != "same" or key in moved:
                yield RowChange(key[1], fate, key in moved, changes)

    def _fields(
        self, before: object, after: object, names: Mapping[str, str]
    ) -> tuple[FieldChange, ...]:
        """The named fields that differ. Of what was added or removed, those that say something."""
        found = []
        for field, name in names.items():
            left = max(0.001, min(TIME_LIMIT, self._deadline - time.monotonic()))
            compared = words(
                _as_text(getattr(before, field, "")),
                _as_text(getattr(after, field, "")),
                seconds=left,
            )
            if compared.changed:
                found.append(FieldChange(name, compared))
        return tuple(found)


def _fate(before: object, after: object, changes: Sequence[FieldChange]) -> Fate:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    return "changed" if changes else "same"


def _numbered(
    citations: Iterable[CitationSnapshot],
) -> dict[tuple[str, str, int], CitationSnapshot]:
    found: dict[tuple[str, str, int], CitationSnapshot] = {}
    for citation in citations:
        turn = 0
        while (citation.source.key, citation.locator, turn) in found:
            turn += 1
        found[citation.source.key, citation.locator, turn] = citation
    return found


def _cited(citation: CitationSnapshot) -> str:
    place = f", {citation.locator}" if citation.locator else ""
    return f"{citation.source.title}{place}"


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _moved[K](before: Sequence[K], after: Sequence[K]) -> set[K]:
    """The fewest keys whose moves explain the new order of those that both have."""
    place = {key: number for number, key in enumerate(before)}
    common = [key for key in after if key in place]
    # The longest run that kept its order stays; the others moved.
    tails: list[int] = []
    ends: list[int] = []
    former: list[int | None] = []
    for index, key in enumerate(common):
        at = bisect_left(tails, place[key])
        former.append(ends[at - 1] if at else None)
        tails[at : at + 1] = [place[key]]
        ends[at : at + 1] = [index]
    stayed = set()
    index_or_none: int | None = ends[-1] if ends else None
    while index_or_none is not None:
        stayed.add(common[index_or_none])
        index_or_none = former[index_or_none]
    return {key for key in common if key not in stayed}
