"""From a question to the chunks that may answer it, and whether they can.

BM25 in the form of Lucene (without the constant factor k1 + 1) over word stems
and pairs of neighbouring stems. Whether the sheet can answer at all is told by
**coverage**, not by the score, which grows with the number of sections and the
length of the question.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from factsheets.bot import analysis, chunking, rarity
from factsheets.bot.analysis import Analyser
from factsheets.bot.chunking import Chunk
from factsheets.snapshot import BotSection, BotSheet

#: How soon a repeated term stops counting, and how much long chunks are held back.
K1 = 1.2
B = 0.75
#: At most so many hits, none with less than this share of the best score.
MOST_HITS = 5
LEAST_SHARE = 0.40
#: A question is grounded when the top chunk covers at least this share of it.
GROUNDED_FROM = 0.40


@dataclass(frozen=True, slots=True)
class TermScore:
    """What one term, a stem or two stems with a space between, adds to a chunk's score."""

    term: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found for a question, and why: its score is the sum over `terms`."""

    chunk: Chunk
    score: float
    terms: tuple[TermScore, ...]


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A content word of the question as a stem, how rare it is, and whether the top chunk has it."""

    stem: str
    rarity: float
    found: bool


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The hits, best first, and what the grounding rule saw."""

    hits: tuple[Hit, ...]
    words: tuple[QuestionWord, ...]

    @property
    def coverage(self) -> float:
        """Share of the question's content words found in the top chunk, each weighed by its rarity.

        sum(rarity of the words found) / sum(rarity of all words); 0 without a content word.
        """
        total = math.fsum(word.rarity for word in self.words)
        return math.fsum(w.rarity for w in self.words if w.found) / total if total else 0.0

    @property
    def grounded(self) -> bool:
        """Whether the sheet has enough of what is asked to answer from."""
        return self.coverage >= GROUNDED_FROM


@dataclass(frozen=True, slots=True)
class Index:
    """Term statistics of some chunks.

    `stems` are the content words of each chunk and `lengths` the number of its
    terms; `postings` say how often a term stands in which chunk, by position.
    """

    chunks: tuple[Chunk, ...]
    analyser: Analyser
    stems: tuple[frozenset[str], ...]
    lengths: tuple[int, ...]
    postings: Mapping[str, Mapping[int, int]]

    @classmethod
    def build(cls, chunks: Iterable[Chunk], language: str) -> Index:
        kept = tuple(chunks)
        analyser = Analyser(language)
        texts = [analyser.terms(chunk.indexed) for chunk in kept]
        postings: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for position, terms in enumerate(texts):
            for term, count in Counter(terms).items():
                postings[term][position] = count
        stems = tuple(frozenset(analyser.words(chunk.indexed)) for chunk in kept)
        return cls(kept, analyser, stems, tuple(map(len, texts)), dict(postings))

    def search(self, question: str) -> Retrieval:
        """The best chunks for a question; of equals, the one that comes first in the sheet."""
        traces: defaultdict[int, list[TermScore]] = defaultdict(list)
        for term in dict.fromkeys(self.analyser.terms(question)):
            for position in self.postings.get(term, {}):
                traces[position].append(TermScore(term, self._score(term, position)))
        hits = [
            Hit(self.chunks[position], math.fsum(t.score for t in trace), tuple(trace))
            for position, trace in sorted(traces.items())
        ]
        hits.sort(key=lambda hit: -hit.score)
        kept = tuple(hit for hit in hits[:MOST_HITS] if hit.score >= LEAST_SHARE * hits[0].score)
        return Retrieval(kept, self._question_words(question, kept))

    def idf(self, term: str) -> float:
        """ln(1 + (N - n + 0.5) / (n + 0.5)): N chunks, n of which have the term."""
        n = len(self.postings.get(term, {}))
        return math.log(1 + (len(self.chunks) - n + 0.5) / (n + 0.5))

    def _score(self, term: str, position: int) -> float:
        """idf * tf / (tf + k1 * (1 - b + b * length / mean length)); lengths are in terms."""
        tf = self.postings[term][position]
        mean_length = sum(self.lengths) / len(self.lengths)
        return self.idf(term) * tf / (tf + K1 * (1 - B + B * self.lengths[position] / mean_length))

    def _question_words(self, question: str, hits: tuple[Hit, ...]) -> tuple[QuestionWord, ...]:
        in_top = {trace.term for trace in hits[0].terms} if hits else set()
        return tuple(
            QuestionWord(stem, rarity.of(stem, self.analyser.language), stem in in_top)
            for stem in dict.fromkeys(self.analyser.words(question))
        )


@lru_cache(maxsize=64)
def index_of(sheet: BotSheet) -> Index:
    """The index of a whole sheet; kept, because a picture of a sheet never changes."""
    return Index.build(chunking.chunks(sheet), sheet.language)


def form_digest() -> str:
    """SHA-256 (hex) of retrieval itself, so that a change in it changes every bot hash.

    Computed from the parameters, the lists and what a search makes of a fixed
    sample: nobody has to remember to raise a version number.
    """
    made = [
        [K1, B, MOST_HITS, LEAST_SHARE, GROUNDED_FROM, chunking.MAX_WORDS, rarity.table_digest()],
        [[language, sorted(words)] for language, words in sorted(analysis.STOP_WORDS.items())],
        sorted(analysis.STEMMERS.items()),
        [_picture(sample(language), question) for language, question in SAMPLE_QUESTIONS],
    ]
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()


#: A question of each kind that analysis treats apart, with the language of its sheet.
SAMPLE_QUESTIONS = (
    ("en-GB", "Won't the visitors' café be opening at 4:30, or isn't it known?"),
    ("de", "Wann öffnet das Café der Besucher?"),
    ("mul", "Quando abre o café?"),
)


def sample(language: str) -> BotSheet:
    """A small fixed sheet: one section that stays whole, one that is cut."""
    paragraph = (
        "Visitors may see the towers’ clocks (c. 1700) daily. Dr. Öz's café opens at 4.30 pm. "
    )
    return BotSheet(
        language=language,
        title="The tower",
        sections=(
            BotSection("short", "Opening times", "When is it open?", paragraph),
            BotSection("long", "Museen und Cafés", "", (paragraph * 9 + "\n\n") * 3),
        ),
    )


def _picture(sheet: BotSheet, question: str) -> list[object]:
    """Everything that chunking, analysis and search make of a sheet and a question."""
    index = Index.build(chunking.chunks(sheet), sheet.language)
    found = index.search(question)
    return [
        [[chunk.text, index.analyser.terms(chunk.indexed)] for chunk in index.chunks],
        [[hit.chunk.section, hit.chunk.ordinal, round(hit.score, 6)] for hit in found.hits],
        [[word.stem, word.rarity, word.found] for word in found.words],
    ]
