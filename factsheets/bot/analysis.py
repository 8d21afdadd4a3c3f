"""Text to the terms a search compares: folded, without stop words, stemmed, in pairs.

The same on both sides, sheet and question, and in the language of the sheet.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import snowballstemmer

#: Snowball's name for a language, by the first part of its BCP 47 tag. Others go unstemmed.
STEMMERS: Mapping[str, str] = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german",
    "el": "greek", "en": "english", "es": "spanish", "et": "estonian", "eu": "basque",
    "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian",
    "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish",
    "ta": "tamil", "tr": "turkish",
}  # fmt: skip

_ENGLISH_STOP_WORDS = """
    a about above actually after again against all also am an and another any anybody anyone
    anything anyway anywhere are as at be because been before being below between both but by can
    could describe did do does doing done down during each either else ever every everybody everyone
    everything exactly explain few for from further get gets getting go goes going gone got had has
    have having he hello her here hers herself hi him himself his how however i if in into is it its
    itself just let like lot lots many may me might mine more most much must my myself neither no
    nobody none nor not nothing now of off often ok okay on once one only or other others ought our
    ours ourselves out over own perhaps please quite rather really roughly same shall she should
    since so some somebody someone something sorry still such tell than thank thanks that the their
    theirs them themselves then there these they thing things this those though through to too under
    until up upon us very was we were what whatever when where whether which while who whoever whom
    whose why will with within without would yes yet you your yours yourself yourselves
"""
_GERMAN_STOP_WORDS = """
    aber als am an auch auf aus bei bin bis bist da das dass dem den der des die dir du durch ein
    eine einem einen einer eines er es fur gibt habe haben hat hatte ich ihr im in ist ja kann
    konnen man mein mich mir mit nach nicht noch nur oder sein sich sie sind so uber um und uns
    unser vom von vor wann war waren warum was welche welcher welches wenn wer werden wie wieder
    wir wird wo zu zum zur
"""
_FRENCH_STOP_WORDS = """
    a ai au aux avec c ce ces cette comment d dans de des du elle elles en est et etes etre il ils
    j je l la le les leur leurs lui m ma mais me mes mon n ne nos notre nous on ou par pas pour
    pourquoi qu quand que quel quelle quelles quels qui s sa se ses son sont sur t ta te tes toi
    ton tu un une vos votre vous y
"""

#: Words that say nothing about the subject of a question, by language, folded.
STOP_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in (
        ("de", _GERMAN_STOP_WORDS),
        ("en", _ENGLISH_STOP_WORDS),
        ("fr", _FRENCH_STOP_WORDS),
    )
}

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ＇´`", "'"))
_LATIN_MARKS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
_TIME_OF_DAY = re.compile(r"(?<=\d):(?=\d\d\b)")
#: Letters and digits, with a point or comma inside a number: 4.30, 1,200.
_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")

#: English short forms, written out; without an apostrophe only where no other word is meant.
_SHORT_FORMS = tuple(
    (re.compile(pattern), full)
    for pattern, full in (
        (r"\bwon'?t\b", "will not"),
        (r"\bshan'?t\b", "shall not"),
        (r"\bcan'?t\b", "can not"),
        (r"\b(do|does|did|is|are|was|were|has|have|had|could|would|should|must|need)n'?t\b", r"\1 not"),
        (r"\b(i|you|we|they)'?ve\b", r"\1 have"),
        (r"\blet's\b", "let us"),
        (r"\bi'?m\b", "i am"),
        (r"'ll\b", " will"),
        (r"'re\b", " are"),
        (r"'d\b", " would"),
        (r"\b(what|where|when|who|how|that|there|here)s\b", r"\1"),
        (r"'s\b|(?<=s)'(?!\w)", ""),
        (r"'", ""),
    )
)  # fmt: skip

#: The short forms that may stand without an apostrophe; a text without either is spared the search.
_BARE_SHORT_FORMS = frozenset(
    [
        *("wont", "shant", "cant", "im", "ive", "youve", "weve", "theyve"),
        *(
            f"{verb}nt"
            for verb in (
                *("do", "does", "did", "is", "are", "was", "were", "has", "have", "had"),
                *("could", "would", "should", "must", "need"),
            )
        ),
        *(f"{word}s" for word in ("what", "where", "when", "who", "how", "that", "there", "here")),
    ]
)


@lru_cache(maxsize=256)
def base_of(language: str) -> str:
    """The language itself, without script, region or variant: "en" of "en-GB"."""
    return language.replace("_", "-").split("-")[0].lower()


@dataclass(frozen=True, slots=True)
class Analyser:
    """Text to stems in one language, given by its BCP 47 tag."""

    language: str

    def words(self, text: str) -> tuple[str, ...]:
        """The content words of a text as stems, in order, repetitions kept."""
        base = base_of(self.language)
        stop, algorithm = STOP_WORDS.get(base, frozenset()), STEMMERS.get(base, "")
        folded = _fold(text)
        found = _WORD.findall(folded)
        if base == "en" and ("'" in folded or not _BARE_SHORT_FORMS.isdisjoint(found)):
            found = _WORD.findall(_written_out(folded))
        return tuple(_stem(algorithm, word) for word in found if word not in stop)

    def terms(self, text: str) -> tuple[str, ...]:
        """The content words, then every two that are neighbours once stop words are dropped."""
        return with_pairs(self.words(text))


def with_pairs(words: Sequence[str]) -> tuple[str, ...]:
    """Words, then every two that are neighbours."""
    return (*words, *(f"{first} {second}" for first, second in pairwise(words)))


def _fold(text: str) -> str:
    """Lower case, straight apostrophes, no accents on Latin letters, times with a point."""
    text = text.translate(_APOSTROPHES).casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = unicodedata.normalize("NFC", _LATIN_MARKS.sub("", text))
    return _TIME_OF_DAY.sub(".", text) if ":" in text else text


def _written_out(text: str) -> str:
    """English short forms as the words that they stand for."""
    for pattern, full in _SHORT_FORMS:
        text = pattern.sub(full, text)
    return text


@lru_cache(maxsize=100_000)
def _stem(algorithm: str, word: str) -> str:
    # A stemmer of its own for each call: they hold state while they work, and
    # answers are made in several threads. Making one costs half a microsecond.
    return snowballstemmer.stemmer(algorithm).stemWord(word) if algorithm else word
