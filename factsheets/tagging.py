"""Which sections does a reply rest on? By where its sentences find support.

The measure is that of `claims`: a sentence of the reply against every stretch
of up to three neighbouring sentences of a section, by the share of its content
words, weighted by their rarity. `claims` shows one claim to a person; here
thousands of replies are told apart, so the words of a sheet are looked up and
not gone through. A tag is a guess that a person may correct.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from factsheets import claims
from factsheets.bot import chunking, rarity
from factsheets.bot.analysis import Analyser
from factsheets.snapshot import BotSheet

#: The share from which a section is tagged.
ENOUGH = claims.ENOUGH

#: One content word stands in many sections and says of none that it was needed.
LEAST_WORDS = 2

_ALIKE = str.maketrans({**dict.fromkeys("‘’ʼ", "'"), "\u00a0": " "})

#: What is taken off the start of a sentence before it is read, in lower case.
_GREETING = re.compile(
    r"^(?:(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|guten (?:tag|morgen|abend)|bonjour)"
    r"(?: there| everyone)?[ ,.!:-]*)+"
)

#: Sentences that say nothing of the subject: thanks and offers, by how they
#: begin, and refusals, wherever they stand.
_NO_CLAIM = re.compile(
    r"""
    ^(?:welcome|thank|thanks|you're\ welcome|you\ are\ welcome|goodbye|bye|feel\ free|enjoy\ your
      |(?:i'm\ |i\ am\ |i'd\ be\ )?(?:happy|glad)\ to|let\ (?:me|us)\ know|is\ there\ anything
      |if\ you\ have\ (?:any|more|other)|(?:can|may|could)\ i|how\ (?:can|may)\ i|please\ ask
      |i\ hope|vielen\ dank|merci)\b
    |\bi\ (?:can't|cannot|can\ not|don't|do\ not|won't|will\ not|am\ not\ able|am\ unable)\b
    |\bi'm\ (?:not\ able|unable|not\ sure)\b
    |\bno\ information\b
    |\b(?:sheet|information)\b[^.]*\b(?:doesn't|does\ not|says\ nothing)\b
    |\b(?:weiss|weiß)\ ich\ nicht\b|\bje\ ne\ sais\ pas\b
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Windows:
    """The stretches of a sheet, each with its section, and by stem the numbers of those that have it."""

    sections: tuple[str, ...]
    having: Mapping[str, tuple[int, ...]]
    analyser: Analyser

    @classmethod
    def of(cls, sheet: BotSheet) -> Windows:
        analyser = Analyser(sheet.language)
        sections: list[str] = []
        having: defaultdict[str, list[int]] = defaultdict(list)
        for section in sheet.sections:
            stretches = {stems for _, _, stems in claims.windows(section, analyser)}
            # One that is part of another never has more of a sentence.
            whole = (s for s in stretches if not any(s < other for other in stretches))
            for stems in whole:
                for stem in stems:
                    having[stem].append(len(sections))
                sections.append(section.key)
        return cls(tuple(sections), {s: tuple(found) for s, found in having.items()}, analyser)

    def best(self, sentence: str) -> Mapping[str, float]:
        """By section the share of a sentence that its best stretch has."""
        wanted = frozenset(self.analyser.words(sentence))
        if len(wanted) < LEAST_WORDS:
            return {}
        weights = {stem: rarity.of(stem, self.analyser.language) for stem in sorted(wanted)}
        found: defaultdict[int, float] = defaultdict(float)
        for stem, weight in weights.items():
            for window in self.having.get(stem, ()):
                found[window] += weight
        mass: dict[str, float] = {}
        for window, weight in found.items():
            section = self.sections[window]
            mass[section] = max(mass.get(section, 0.0), weight)
        whole = math.fsum(weights.values())
        return {section: round(weight / whole, 6) for section, weight in mass.items() if weight}


@lru_cache(maxsize=64)
def windows_of(sheet: BotSheet) -> Windows:
    """Kept, because a picture of a sheet never changes."""
    return Windows.of(sheet)


def tag(reply: str, sheet: BotSheet) -> Mapping[str, float]:
    """The sections that a reply rests on, in the order of the sheet, each with its best share.

    Each sentence tags the section that has most of it, if that is enough;
    several only where they have the same share. What makes no claim tags nothing.
    """
    windows = windows_of(sheet)
    tagged: dict[str, float] = {}
    for sentence in _claims_of(reply):
        shares = windows.best(sentence)
        best = max(shares.values(), default=0.0)
        if best < ENOUGH:
            continue
        for section, share in shares.items():
            if share == best:
                tagged[section] = max(tagged.get(section, 0.0), share)
    return {s.key: tagged[s.key] for s in sheet.sections if s.key in tagged}


def _claims_of(reply: str) -> Iterator[str]:
    for span in chunking.sentences(reply):
        sentence = _GREETING.sub("", span.of(reply).translate(_ALIKE).casefold())
        if not _NO_CLAIM.search(sentence):
            yield sentence


def supported(reply: str, sheet: BotSheet) -> float | None:
    """The share of a reply's claims that some section has enough of; None where it makes none.

    A sign, not a proof: a wrong sentence of right words counts as supported.
    """
    windows = windows_of(sheet)
    best = [
        max(windows.best(sentence).values(), default=0.0)
        for sentence in _claims_of(reply)
        if len(frozenset(windows.analyser.words(sentence))) >= LEAST_WORDS
    ]
    return sum(share >= ENOUGH for share in best) / len(best) if best else None
