"""What a sheet would be in split delivery: what each question would send, and what would break.

An inline sheet is read whole, so a sentence may lean on any other. Split, the
model reads the rules, the titles and a few chunks; what leans on a chunk that
was not sent hangs in the air. The remarks here name such places. They are
signs in the words, not understanding: each is for a person to judge.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from factsheets import sizing
from factsheets.bot import answering, chunking, prompt, rarity, retrieval
from factsheets.bot.analysis import Analyser
from factsheets.bot.chunking import Chunk
from factsheets.bot.providers.base import Message
from factsheets.snapshot import BotSheet

#: Two chunks whose content words overlap by so much (Jaccard) answer the same.
SAME_FROM = 0.6
#: A sentence belongs with another of which it shares this much of the rarity.
BELONGS_FROM = 0.35

_CONDITION = re.compile(
    r"^(?:except|unless|only (?:if|when|on|for)|apart from|other than|but not|not on|excluding"
    r"|this does not apply|that does not apply|the exception|exceptions?\b)",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(
    r"\b(?:except(?:ion|ions)?|does not apply|do not apply|not apply to|other than|apart from)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[£$€]?\d+(?:[.,:]\d+)*\s*(?:%|pm|am|pounds|days?|hours?|minutes?)?", re.I)
_PRONOUN = re.compile(
    r"^(?:it|its|they|their|them|this|that|these|those|he|she|his|her|both|such|the same)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=\s)[A-ZÀ-ÖØ-Þ][\w'’-]+")
#: "the Friends means …", "(MAG)": where a term of one's own is introduced.
_ABBREVIATION = re.compile(r"\(([A-Z]{2,6})\)")
_DEFINITION = re.compile(r"[“\"‘']([^”\"’']{2,40})[”\"’'] (?:means|refers to|is|are)\b")


@dataclass(frozen=True, slots=True)
class Remark:
    """One place to look at before the split. `section`: its key; `code`: the kind of place."""

    code: str
    section: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Payload:
    """What one question sends, in tokens (estimates), inline and split, and what would be passed."""

    question: str
    inline: int
    split: int
    sections: tuple[str, ...]
    grounded: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """A sheet in split delivery, on questions that were really asked.

    `fixed`: tokens that every question sends (rules and titles). `dormant`:
    keys of sections that none of the questions would bring up.
    """

    chunks: tuple[Chunk, ...]
    rules: int
    titles: int
    sheet: int
    payloads: tuple[Payload, ...]
    dormant: tuple[str, ...]
    remarks: tuple[Remark, ...]

    @property
    def fixed(self) -> int:
        return self.rules + self.titles

    @property
    def mean_inline(self) -> float:
        """Mean tokens a question sends inline; without questions, rules and sheet."""
        return fmean(p.inline for p in self.payloads) if self.payloads else self.rules + self.sheet

    @property
    def mean_split(self) -> float | None:
        """Mean tokens a question sends in split delivery; None without a question."""
        return fmean(p.split for p in self.payloads) if self.payloads else None

    @property
    def saved(self) -> float | None:
        """Share of the payload that the split saves on these questions: 1 - split / inline."""
        if self.mean_split is None or not self.mean_inline:
            return None
        return 1 - self.mean_split / self.mean_inline


def preview(sheet: BotSheet, rules_text: str, questions: Sequence[str]) -> Preview:
    """The sheet as it would be delivered split, measured on questions."""
    inline = prompt.build(rules_text, sheet)
    split = prompt.build(rules_text, sheet, delivery="split")
    rules = sizing.estimated_tokens(inline.rules)
    whole, titles = (sizing.estimated_tokens(built.sheet) for built in (inline, split))
    payloads = tuple(
        _payload(sheet, question, inline=rules + whole, fixed=rules + titles)
        for question in questions
    )
    brought = Counter(key for payload in payloads for key in payload.sections)
    dormant = tuple(s.key for s in sheet.sections if not brought[s.key]) if payloads else ()
    chunks = chunking.chunks(sheet)
    return Preview(
        chunks=chunks,
        rules=rules,
        titles=titles,
        sheet=whole,
        payloads=payloads,
        dormant=dormant,
        remarks=remarks(sheet, questions),
    )


def _payload(sheet: BotSheet, question: str, *, inline: int, fixed: int) -> Payload:
    found = answering.look_up(sheet, [Message("user", question)])
    hits = answering.passed(found)
    turn = prompt.user_turn(question, [hit.chunk for hit in hits])
    return Payload(
        question,
        inline + sizing.estimated_tokens(question),
        fixed + sizing.estimated_tokens(turn),
        tuple(dict.fromkeys(hit.chunk.section for hit in hits)),
        found.grounded,
    )


def remarks(sheet: BotSheet, questions: Sequence[str] = ()) -> tuple[Remark, ...]:
    """Every place to look at, in the order of the sheet, each once."""
    chunks = chunking.chunks(sheet)
    analyser = Analyser(sheet.language)
    stems = {chunk: frozenset(analyser.words(chunk.text)) for chunk in chunks}
    found = [
        *_conditions_apart(chunks, analyser, sheet.language),
        *_exceptions_apart(chunks, analyser, sheet.language),
        *_definitions_apart(chunks),
        *_pronoun_starts(chunks, analyser),
        *_answering_nothing(sheet, chunks, questions),
        *_answering_the_same(chunks, stems),
    ]
    order = {section.key: place for place, section in enumerate(sheet.sections)}
    return tuple(sorted(dict.fromkeys(found), key=lambda r: (order[r.section], r.code)))


def _named(chunk: Chunk) -> str:
    part = f" (part {chunk.ordinal + 1})" if chunk.ordinal else ""
    return f"“{chunk.heading}”{part}"


def _told(chunk: Chunk) -> list[str]:
    return [span.of(chunk.text) for span in chunking.sentences(chunk.text)]


def _short(sentence: str) -> str:
    words = " ".join(sentence.split())
    return words if len(words) <= 90 else f"{words[:89].rstrip()}…"


def _conditions_apart(
    chunks: Sequence[Chunk], analyser: Analyser, language: str
) -> Iterable[Remark]:
    """A condition that opens a chunk, with no number before it there to belong to."""
    for chunk in chunks:
        first = next(iter(_told(chunk)), "")
        if not _CONDITION.match(first):
            continue
        at = _best_elsewhere(chunk, first, chunks, analyser, language, with_number=True)
        place = f"; the number may stand in {_named(at)}" if at else ""
        yield Remark(
            "number-apart",
            chunk.section,
            f"{_named(chunk)} begins with a condition (“{_short(first)}”) whose number is not in "
            f"it{place}; put both into one section.",
        )


def _exceptions_apart(
    chunks: Sequence[Chunk], analyser: Analyser, language: str
) -> Iterable[Remark]:
    """An exception whose rule is better told in another section than in its own."""
    for chunk in chunks:
        told = _told(chunk)
        for place, sentence in enumerate(told):
            if not _EXCEPTION.search(sentence) or (place == 0 and _CONDITION.match(sentence)):
                continue
            wanted = frozenset(analyser.words(sentence))
            rest = frozenset(analyser.words(" ".join(told[:place] + told[place + 1 :])))
            own = rarity.share(rest, wanted, language)
            at = _best_elsewhere(chunk, sentence, chunks, analyser, language, above=own)
            if at is not None:
                yield Remark(
                    "exception-apart",
                    chunk.section,
                    f"{_named(chunk)} has an exception (“{_short(sentence)}”) whose rule seems to "
                    f"stand in {_named(at)}; put both into one section.",
                )


def _best_elsewhere(
    chunk: Chunk,
    sentence: str,
    chunks: Sequence[Chunk],
    analyser: Analyser,
    language: str,
    *,
    above: float = 0.0,
    with_number: bool = False,
) -> Chunk | None:
    """The chunk of another section with the sentence that shares most with this one."""
    wanted = frozenset(analyser.words(sentence))
    best, best_share = None, max(above, BELONGS_FROM)
    for other in chunks:
        if other.section == chunk.section:
            continue
        for told in _told(other):
            if with_number and not _NUMBER.search(told):
                continue
            share = rarity.share(frozenset(analyser.words(told)), wanted, language)
            if share > best_share:
                best, best_share = other, share
    return best


def _definitions_apart(chunks: Sequence[Chunk]) -> Iterable[Remark]:
    """A term or abbreviation used in a chunk and explained in that of another section."""
    defined: dict[str, Chunk] = {}
    for chunk in chunks:
        for pattern in (_ABBREVIATION, _DEFINITION):
            for match in pattern.finditer(chunk.text):
                defined.setdefault(match.group(1), chunk)
    for term, at in defined.items():
        used = re.compile(rf"(?<!\w){re.escape(term)}(?!\w)")
        for chunk in chunks:
            if chunk.section != at.section and used.search(chunk.text):
                yield Remark(
                    "definition-apart",
                    chunk.section,
                    f"{_named(chunk)} uses “{term}”, which {_named(at)} explains; say what it "
                    "means here too.",
                )


def _pronoun_starts(chunks: Sequence[Chunk], analyser: Analyser) -> Iterable[Remark]:
    """A chunk that begins with a pronoun, in a sentence that names nothing."""
    for chunk in chunks:
        first = next(iter(_told(chunk)), "")
        titled = set(analyser.words(f"{chunk.heading} {chunk.question}"))
        names = _NAME.search(first) or titled & set(analyser.words(first))
        if _PRONOUN.match(first) and not names:
            yield Remark(
                "pronoun-start",
                chunk.section,
                f"{_named(chunk)} begins with “{first.split()[0]}” and names nothing; say what is "
                "meant.",
            )


def _answering_nothing(
    sheet: BotSheet, chunks: Sequence[Chunk], questions: Sequence[str]
) -> Iterable[Remark]:
    """A section that says of no question that it answers it, and that no known question finds."""
    index = retrieval.index_of(sheet)
    brought = {hit.chunk.section for question in questions for hit in index.search(question).hits}
    for section in sheet.sections:
        if not section.question and section.key not in brought:
            yield Remark(
                "answers-nothing",
                section.key,
                f"“{section.heading}” names no question that it answers"
                f"{', and none of the known questions finds it' if questions else ''}; write the "
                "question into it.",
            )


def _answering_the_same(
    chunks: Sequence[Chunk], stems: Mapping[Chunk, frozenset[str]]
) -> Iterable[Remark]:
    """Two sections that name one question, or have nearly the same words."""
    for one, other in combinations(chunks, 2):
        if one.section == other.section:
            continue
        asks_alike = one.question and one.question.casefold() == other.question.casefold()
        both = stems[one] | stems[other]
        alike = len(stems[one] & stems[other]) / len(both) if both else 0.0
        if asks_alike or alike >= SAME_FROM:
            yield Remark(
                "answers-same",
                other.section,
                f"{_named(other)} answers the same as {_named(one)}; make them one, or a "
                "question finds both or the wrong one.",
            )
