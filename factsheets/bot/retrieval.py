"""From a question to the chunks that may answer it, and whether they can.

BM25 in the form of Lucene (without the constant factor k1 + 1) over word stems
and pairs of neighbouring stems. Whether the sheet can answer at all is told by
**coverage**, not by the score, which grows with the number of sections and the
length of the question.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

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


# Tuples: a search makes dozens of these, and a tuple is made in half the time of a dataclass.
class TermScore(NamedTuple):
    """What one term, a stem or two stems with a space between, adds to a chunk's score."""

    term: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found for a question, and why: its score is the sum over `terms`."""

    chunk: Chunk
    score: float
    terms: tuple[TermScore, ...]


class QuestionWord(NamedTuple):
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
    terms; `postings` say what a term adds to the score of which chunk, by position.
    """

    chunks: tuple[Chunk, ...]
    analyser: Analyser
    stems: tuple[frozenset[str], ...]
    lengths: tuple[int, ...]
    postings: Mapping[str, Mapping[int, float]]

    @classmethod
    def build(cls, chunks: Iterable[Chunk], language: str) -> Index:
        kept = tuple(chunks)
        analyser = Analyser(language)
        words = [analyser.words(chunk.indexed) for chunk in kept]
        counts = [Counter(analysis.with_pairs(found)) for found in words]
        lengths = tuple(count.total() for count in counts)
        frequencies: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for position, count in enumerate(counts):
            for term, times in count.items():
                frequencies[term][position] = times
        postings = {term: _scores(places, lengths) for term, places in frequencies.items()}
        return cls(kept, analyser, tuple(map(frozenset, words)), lengths, postings)

    def search(self, question: str) -> Retrieval:
        """The best chunks for a question; of equals, the one that comes first in the sheet."""
        words = self.analyser.words(question)
        hits = self._ranked(words, MOST_HITS, LEAST_SHARE)
        kept = tuple(hit for hit in hits if hit.score >= LEAST_SHARE * hits[0].score)
        return Retrieval(kept, self._question_words(words, kept))

    def ranked(self, question: str, most: int) -> tuple[Hit, ...]:
        """The chunks that share a term with the question, best first, weak ones too: to measure."""
        return self._ranked(self.analyser.words(question), most)

    def idf(self, term: str) -> float:
        """ln(1 + (N - n + 0.5) / (n + 0.5)): N chunks, n of which have the term."""
        return _idf(len(self.chunks), len(self.postings.get(term, {})))

    def _ranked(self, words: Sequence[str], most: int, least: float = 0.0) -> tuple[Hit, ...]:
        """The best chunks; those under a share of the very best may be among them or not."""
        terms = {
            term: self.postings[term]
            for term in dict.fromkeys(analysis.with_pairs(words))
            if term in self.postings
        }
        sums = _sums(terms.values())
        hits = [(position, self._hit(terms, position)) for position in _best(sums, most, least)]
        hits.sort(key=lambda found: (-found[1].score, found[0]))
        return tuple(hit for _, hit in hits[:most])

    def _hit(self, terms: Mapping[str, Mapping[int, float]], position: int) -> Hit:
        trace = tuple(
            [
                TermScore(term, places[position])
                for term, places in terms.items()
                if position in places
            ]
        )
        return Hit(self.chunks[position], math.fsum([added.score for added in trace]), trace)

    def _question_words(
        self, words: Sequence[str], hits: tuple[Hit, ...]
    ) -> tuple[QuestionWord, ...]:
        in_top = {trace.term for trace in hits[0].terms} if hits else set()
        return tuple(
            QuestionWord(stem, rarity.of(stem, self.analyser.language), stem in in_top)
            for stem in dict.fromkeys(words)
        )


def _idf(chunks: int, having: int) -> float:
    return math.log(1 + (chunks - having + 0.5) / (having + 0.5))


def _scores(places: Mapping[int, int], lengths: Sequence[int]) -> dict[int, float]:
    """idf * tf / (tf + k1 * (1 - b + b * length / mean length)); lengths are in terms."""
    idf, mean_length = _idf(len(lengths), len(places)), sum(lengths) / len(lengths)
    return {
        position: idf * tf / (tf + K1 * (1 - B + B * lengths[position] / mean_length))
        for position, tf in places.items()
    }


def _sums(postings: Collection[Mapping[int, float]]) -> dict[int, float]:
    """The score of every chunk that has a term, summed in any order: exact to a hair."""
    # The longest is copied whole, which is most of the work.
    longest = max(postings, key=len, default={})
    sums = dict(longest)
    so_far = sums.get
    for places in postings:
        if places is not longest:
            for position, score in places.items():
                sums[position] = so_far(position, 0.0) + score
    return sums


_HAIR = 1e-9


def _best(sums: Mapping[int, float], most: int, least: float) -> list[int]:
    """The positions that may be among the best, given sums that are exact to a hair."""
    if not sums:
        return []
    bar = least * max(sums.values()) * (1 - _HAIR)
    found = [position for position, total in sums.items() if total >= bar]
    if len(found) > most:
        bar = heapq.nlargest(most, [sums[position] for position in found])[-1] * (1 - _HAIR)
        found = [position for position in found if sums[position] >= bar]
    return found


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
