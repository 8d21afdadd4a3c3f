"""Texts without the differences that no reader sees, and where a phrase stands in them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_ALIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        # No reader sees these; a word is the same with them and without.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff"),
    }
)

#: A word of a folded text, an apostrophe inside it included.
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Folded:
    """A text without differences that no reader sees, and where each character came from."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the original that a stretch of the folded text stands for."""
        return self.starts[start], self.ends[end - 1]

    def cuts_no_letter(self, start: int, end: int) -> bool:
        """Whether a stretch begins and ends where letters of the original do."""
        return self._begins_a_letter(start) and self._begins_a_letter(end)

    def _begins_a_letter(self, position: int) -> bool:
        inside = 0 < position < len(self.text)
        return not inside or self.starts[position] != self.starts[position - 1]


@lru_cache(maxsize=128)
def fold(text: str) -> Folded:
    """Fold case, curly quotes, dashes, white space and compatibility forms alike."""
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position = 0
    while position < len(text):
        end = position + 1
        # However a line was broken, it is one blank.
        belongs = str.isspace if text[position].isspace() else _belongs_to_the_letter_before
        while end < len(text) and belongs(text[end]):
            end += 1
        piece = " " if text[position:end].isspace() else text[position:end].translate(_ALIKE)
        for character in unicodedata.normalize(
            "NFKC", unicodedata.normalize("NFKC", piece).casefold()
        ).translate(_ALIKE):
            characters.append(character)
            starts.append(position)
            ends.append(end)
        position = end
    return Folded("".join(characters), tuple(starts), tuple(ends))


def _belongs_to_the_letter_before(character: str) -> bool:
    """Accents, and the vowels and finals of Korean syllables, whose combining class is 0."""
    return unicodedata.combining(character) != 0 or "\u1160" <= character <= "\u11ff"


def words(text: str) -> tuple[str, ...]:
    """The words of a text as they are compared."""
    return tuple(found.group() for found in WORD.finditer(fold(text).text))


@lru_cache(maxsize=4096)
def needle(value: str) -> str:
    """A value as it is looked for. Those of probes are few and asked for again and again."""
    return fold(value).text


def places(value: str, folded: Folded, *, anywhere: bool = False) -> Iterator[tuple[int, int]]:
    """Every place of a value in the original text, on word boundaries unless `anywhere`.

    A place that begins or ends inside a letter of the original (in “ﬀ”, which
    folds to two) counts only where there is no other: what is shown would be
    more than was looked for.
    """
    found = list(_places(needle(value), folded, anywhere=anywhere))
    whole = [place for place in found if folded.cuts_no_letter(*place)]
    for start, end in whole or found:
        yield folded.original(start, end)


def _places(wanted: str, folded: Folded, *, anywhere: bool) -> Iterator[tuple[int, int]]:
    start = folded.text.find(wanted) if wanted else -1
    while start >= 0:
        end = start + len(wanted)
        if anywhere or _on_boundaries(folded.text, start, end):
            yield start, end
        start = folded.text.find(wanted, start + 1)


def _on_boundaries(text: str, start: int, end: int) -> bool:
    def joins(left: int, right: int) -> bool:
        inside = left >= 0 and right < len(text)
        return inside and _is_word(text[left]) and _is_word(text[right])

    return not joins(start - 1, start) and not joins(end - 1, end)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
