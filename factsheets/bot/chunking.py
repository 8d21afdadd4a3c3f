"""Sheets to chunks, and text to sentences.

Chunks and sentences are slices of the section's text, so that whatever is
quoted from them stands in the sheet letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from factsheets.snapshot import BotSection, BotSheet

#: A section of up to so many words stays whole.
MAX_WORDS = 220

_TITLE_WORDS = """
    mr mrs ms dr prof st ste rev hon capt col gen lt maj sgt sir messrs mt ft vs cf viz eg ie e.g i.e
"""
_NUMBERED_WORDS = """
    no nos c ca circa p pp para vol vols ch chap fig figs ed eds art sec approx est b d r fl tel ext
"""
#: Never the end of a sentence: what follows belongs to them.
_TITLES = frozenset(_TITLE_WORDS.split())
#: Not the end of a sentence when a number follows: "No. 3", "c. 1076", "pp. 4-9".
_BEFORE_NUMBERS = frozenset(_NUMBERED_WORDS.split())

_PARAGRAPH_BREAK = re.compile(r"\n[^\S\n]*\n\s*")
#: A line that begins a list item, a heading or a table row is a unit of its own.
_LINE_BREAK = re.compile(r"\n(?=[^\S\n]*(?:[-*+•#|]|\d{1,3}[.)])\s)")
#: Closing marks, then white space and what may begin a sentence; or a full stop
#: of Chinese or Japanese, which needs no space.
_STOP = re.compile(
    r"[.!?…]+[\"'”’»)\]]*(?=\s+[\"'“‘«(\[£$€]*[^\W_a-zß-öø-ÿ])|[。！？]+[」』”）]*", re.UNICODE
)
_LAST_WORD = re.compile(r"[\w.]+$")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable piece of a section. `ordinal` counts from 0 within the section.

    `sheet`: the slug of its sheet, where several are searched together. A chunk
    without a section is the summary of its sheet.
    """

    section: str
    ordinal: int
    heading: str
    question: str
    title: str
    text: str
    sheet: str = ""

    @property
    def indexed(self) -> str:
        """What a search looks at: sheet title, heading and question once each, then the text."""
        return "\n".join([self.title, self.heading, self.question, self.text])


@dataclass(frozen=True, slots=True)
class Span:
    """A slice of a text: from `start` up to, not including, `end`."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def chunks(sheet: BotSheet) -> tuple[Chunk, ...]:
    """The sheet's chunks in reading order; a section without text has none."""
    return tuple(
        Chunk(section.key, ordinal, section.heading, section.question, sheet.title, text)
        for section in sheet.sections
        for ordinal, text in enumerate(_cut(section))
    )


def summary(sheet: BotSheet) -> Chunk | None:
    """What the sheet is about, as one chunk: its title and its first paragraph."""
    for section in sheet.sections:
        for paragraph in _split(section.text, Span(0, len(section.text)), _PARAGRAPH_BREAK):
            return Chunk("", 0, "", "", sheet.title, paragraph.of(section.text))
    return None


def sentences(text: str) -> tuple[Span, ...]:
    """Where each sentence stands in the text; white space between them belongs to none."""
    return tuple(
        sentence
        for paragraph in _split(text, Span(0, len(text)), _PARAGRAPH_BREAK)
        for line in _split(text, paragraph, _LINE_BREAK)
        for sentence in _sentences_of(text, line)
    )


def word_count(text: str) -> int:
    return len(text.split())


def _cut(section: BotSection) -> Iterator[str]:
    """The section whole, or slices of it that share one sentence with the slice before."""
    text = section.text
    units = list(_units(text))
    if word_count(text) <= MAX_WORDS:
        yield from [text] if units else []
        return
    start, end = units[0].start, units[0].end
    for unit in units[1:]:
        if word_count(text[start : unit.end]) > MAX_WORDS:
            yield text[start:end]
            start = max(s.start for s in sentences(text) if s.start < end)
        end = unit.end
    yield text[start:end]


def _units(text: str) -> Iterator[Span]:
    """Paragraphs, and the sentences of those that are too long to stay whole."""
    for paragraph in _split(text, Span(0, len(text)), _PARAGRAPH_BREAK):
        if word_count(paragraph.of(text)) <= MAX_WORDS:
            yield paragraph
        else:
            yield from (s for s in sentences(text) if paragraph.start <= s.start < paragraph.end)


def _split(text: str, span: Span, at: re.Pattern[str]) -> Iterator[Span]:
    """The non-blank parts of a span between the places a pattern matches."""
    start = span.start
    for match in at.finditer(text, span.start, span.end):
        yield from _trimmed(text, start, match.start())
        start = match.end()
    yield from _trimmed(text, start, span.end)


def _sentences_of(text: str, line: Span) -> Iterator[Span]:
    start = line.start
    for stop in _STOP.finditer(text, line.start, line.end):
        if not _goes_on(text, start, stop):
            yield from _trimmed(text, start, stop.end())
            start = stop.end()
    yield from _trimmed(text, start, line.end)


def _goes_on(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a full stop marks an abbreviation, a name's initial or a list number."""
    last_word = _LAST_WORD.search(text, start, stop.start())
    if stop.group() != "." or last_word is None:
        return False
    word = last_word.group()
    if word.casefold() in _TITLES:
        return True
    before = text[start : last_word.start()].split()
    if text[stop.end() :].lstrip()[:1].isdigit():
        return word.casefold() in _BEFORE_NUMBERS
    # "G. T. Clark" goes on; "Henry I. In 1101" does not; "I. K. Brunel" does.
    if len(word) == 1 and word.isupper():
        return word != "I" or not before or not before[-1][0].isupper()
    return word.isdigit() and not before


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    piece = text[start:end]
    if stripped := piece.strip():
        start += piece.index(stripped)
        yield Span(start, start + len(stripped))
