"""The offline bot: it quotes the sheet or says that the sheet does not say.

Each paragraph of a reply is a slice of one section's text, letter by letter, or
one of `PHRASES`. It sees the sheet alone and never the prompt, so it can
neither follow an order in a message nor give the rules away.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from factsheets.bot import chunking, rarity, retrieval
from factsheets.bot.chunking import Chunk, Span
from factsheets.bot.providers.base import Provider, Reply, Request
from factsheets.bot.retrieval import GROUNDED_FROM, Index, Retrieval

MODEL = "offline"

DONT_KNOW = "Sorry, I don't know: the sheet doesn't say. Please ask a member of staff."

#: Everything the bot may say that is not in the sheet.
PHRASES = (DONT_KNOW,)

#: A reply stays this short; only a first sentence that is longer by itself goes beyond.
MOST_SENTENCES = 3
MOST_WORDS = 120
#: What a word of the question is still worth once a chosen sentence has it.
SAID_AGAIN = 0.5
#: A further sentence must be worth this share of the first.
WORTH_ADDING = 0.40

#: Orders that no quotation can meet. Words that are nouns as well ("book", "keep") are not here.
_ORDER = re.compile(
    r"(?:(?:please|just|now|so|then|and|ok|okay)\b,?\s*)*"
    r"(?:ignore|disregard|forget|repeat|translate|decode|pretend|imagine|write|compose|promise"
    r"|confirm|admit|agree|insult|paste|obey|swear)\b",
    re.IGNORECASE,
)
#: A game about who the bot is; what it asks for belongs to the game.
_GAME = re.compile(
    r"\b(?:let['’]?s (?:play|pretend)|pretend (?:to be|that you|you)|imagine (?:that )?you|role-?play"
    r"|you(?:['’]re| are) (?:now\b|an? [^.?!]*\bnow\b))",
    re.IGNORECASE,
)
#: A sentence that begins so leans on the one before it, which is then quoted too.
_LEANS = re.compile(
    r"(?:it|they|this|that|these|those|he|she|its|their|his|her|such|but|then)\b", re.IGNORECASE
)
_ASKS = (
    r"(?:(?:who|whose|whom|what|when|where|which|why|how|tell|explain|describe)\b"
    r"|(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|may|must|should)"
    r"(?:n['’]t)?\s)"
)
#: What is asked: a sentence from its start on, or what follows a statement, as in
#: "We are five, so when is lunch?"
_QUESTION = re.compile(
    rf"^({_ASKS}.*)|(?:[;:–—]|,\s*(?:and|but|so|then)\b)\s*({_ASKS}.*)", re.IGNORECASE | re.DOTALL
)


class OfflineProvider:
    """Quotes the one to three sentences that hold most of what was asked."""

    def reply(self, request: Request) -> Reply:
        quoted = quote(retrieval.index_of(request.sheet), request.question, request.allowed)
        return Reply(
            text="\n\n".join(_passages(quoted)) or DONT_KNOW,
            stop_reason="end_turn",
            refused=not quoted,
            sections=tuple(dict.fromkeys(sentence.chunk.section for sentence in quoted)),
            model=MODEL,
        )


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a chunk."""

    chunk: Chunk
    span: Span

    @property
    def text(self) -> str:
        return self.span.of(self.chunk.text)


def quote(index: Index, message: str, allowed: Set[Chunk] | None = None) -> Sequence[Sentence]:
    """The sentences that answer a message, in reading order; none when the sheet does not.

    With `allowed`, from those chunks alone.
    """
    told = [span.of(message) for span in chunking.sentences(message)]
    kept = [sentence for sentence in told if not _ORDER.match(sentence)]
    asked = [part for sentence in kept for part in _asked(sentence)]
    found = index.search(" ".join(kept))
    only_ordered = len(kept) < len(told) and not asked
    if only_ordered or _GAME.search(message):
        return ()
    if not found.grounded or not _found_more_than_numbers(found):
        return ()
    chunk = _best_chunk(index, found, asked, allowed)
    return _best_sentences(index, found, chunk) if chunk else ()


def _asked(sentence: str) -> Iterable[str]:
    """The part of a sentence that asks; all of it where only its mark tells."""
    if match := _QUESTION.search(sentence):
        yield match.group(1) or match.group(2)
    elif sentence.endswith("?"):
        yield sentence


def _found_more_than_numbers(found: Retrieval) -> bool:
    """A small number that the sheet happens to have as well says nothing about the subject."""
    return any(w.found and not (w.stem.isdigit() and len(w.stem) < 3) for w in found.words)


def _best_chunk(
    index: Index, found: Retrieval, asked: Sequence[str], allowed: Set[Chunk] | None
) -> Chunk | None:
    """The chunk to quote from, if any covers the message and each question in it by itself.

    A section whose own question stands whole in the message comes first, the
    weightiest of several. Else the score decides, times the share of the
    message covered, and up to twice that where heading or question are named.
    """
    language = index.analyser.language
    scores = {hit.chunk: hit.score for hit in found.hits}
    message = frozenset(word.stem for word in found.words)
    wholes = [message, *filter(None, (frozenset(index.analyser.words(part)) for part in asked))]

    def rank(chunk: Chunk, stems: Set[str]) -> tuple[float, float]:
        question, heading = (
            frozenset(index.analyser.words(text)) for text in (chunk.question, chunk.heading)
        )
        named = max(rarity.share(message, own, language) for own in (question, heading))
        covered = rarity.share(stems, message, language)
        return (
            rarity.mass(question, language) if question <= message else 0.0,
            scores.get(chunk, 0.0) * covered * (1 + named),
        )

    able = [
        (chunk, stems)
        for chunk, stems in zip(index.chunks, index.stems, strict=True)
        if (allowed is None or chunk in allowed)
        and all(rarity.share(stems, whole, language) >= GROUNDED_FROM for whole in wholes)
    ]
    best = max(able, key=lambda pair: rank(*pair), default=None)
    return best[0] if best else None


def _best_sentences(index: Index, found: Retrieval, chunk: Chunk) -> Sequence[Sentence]:
    """Sentences by the rarity of the message's words they hold; a word said already counts half."""
    weights = {word.stem: word.rarity for word in found.words}
    stems: dict[Sentence, Set[str]] = {
        Sentence(chunk, span): set(index.analyser.words(span.of(chunk.text))) & weights.keys()
        for span in chunking.sentences(chunk.text)
    }
    before = {second: first for first, second in pairwise(stems) if _LEANS.match(second.text)}
    chosen: set[Sentence] = set()

    def worth(sentence: Sentence) -> float:
        said = {stem for earlier in chosen for stem in stems[earlier]}
        return math.fsum(weights[s] * (SAID_AGAIN if s in said else 1.0) for s in stems[sentence])

    least = WORTH_ADDING * max(map(worth, stems))
    while left := [s for s in stems if s not in chosen and (worth(s) >= least or not chosen)]:
        best = max(left, key=worth)
        more = chosen | {best, before.get(best, best)}
        if chosen and (len(more) > MOST_SENTENCES or _words(more) > MOST_WORDS):
            break
        chosen = more
    return sorted(chosen, key=lambda sentence: sentence.span.start)


def _passages(quoted: Sequence[Sentence]) -> Iterable[str]:
    """Slices of the text, from a chunk's sentences in order; neighbours stay together."""
    spans = [sentence.span for sentence in quoted]
    starts = [
        position
        for position, sentence in enumerate(quoted)
        if position == 0
        or sentence.chunk.text[spans[position - 1].end : sentence.span.start].strip()
    ]
    for first, after in pairwise([*starts, len(quoted)]):
        text = quoted[first].chunk.text
        yield text[spans[first].start : spans[after - 1].end]


def _words(sentences: Iterable[Sentence]) -> int:
    return sum(chunking.word_count(sentence.text) for sentence in sentences)


def form_digest() -> str:
    """SHA-256 (hex) of how this bot retrieves and chooses, so that a change shows in its hash."""
    sheet = retrieval.sample("en-GB")
    index = retrieval.index_of(sheet)
    made = [
        [retrieval.form_digest(), PHRASES, MOST_SENTENCES, MOST_WORDS, SAID_AGAIN, WORTH_ADDING],
        [pattern.pattern for pattern in (_ORDER, _GAME, _LEANS, _QUESTION)],
        [list(_passages(quote(index, question))) for _, question in retrieval.SAMPLE_QUESTIONS],
    ]
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()


PROVIDER: Provider = OfflineProvider()
