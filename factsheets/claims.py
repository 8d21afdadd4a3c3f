"""Does a text say this? Each sentence of a claim against what stands in a sheet.

Words of any sheet are *somewhere* in it, so support is looked for locally: a
sentence of the claim against every three neighbouring sentences of a section,
by the share of its content words, weighted by their rarity. Nothing is
*verified* here: what is found is shown, and a person reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from factsheets.bot import chunking, rarity
from factsheets.bot.analysis import Analyser
from factsheets.folding import fold, places
from factsheets.snapshot import BotSection, BotSheet

#: Neighbouring sentences that a claim may rest on together.
WINDOW = 3

#: The share from which a passage is called support. At 0.5, three of four
#: sentences that a source does not bear out were below it in a published
#: measurement, and one in twenty of those that it does.
ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a phrase stands, word for word, in a section's text."""

    section: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Support:
    """The passage of a sheet nearest to one sentence of a claim.

    `share` (0 to 1) is how much of the sentence the passage has; `missing` are
    the sentence's content words that it lacks, whole or in part, as written.
    """

    claim: str
    section: str
    heading: str
    passage: str
    share: float
    missing: tuple[str, ...]

    @property
    def is_found(self) -> bool:
        return self.share >= ENOUGH


def mentions(phrase: str, sheet: BotSheet) -> tuple[Mention, ...]:
    """Every place of a phrase, whatever its case, quotes and dashes."""
    return tuple(
        Mention(section.key, start, end)
        for section in sheet.sections
        for start, end in places(phrase, fold(section.text), anywhere=True)
    )


def support(claim: str, sheet: BotSheet) -> tuple[Support, ...]:
    """For each sentence of a claim that says anything, the nearest passage of the sheet."""
    analyser = Analyser(sheet.language)
    stretches = [each for section in sheet.sections for each in windows(section, analyser)]
    found = (
        _nearest(span.of(claim), stretches, analyser, sheet.language)
        for span in chunking.sentences(claim)
    )
    return tuple(one for one in found if one is not None)


def _nearest(
    sentence: str,
    stretches: Sequence[tuple[BotSection, str, frozenset[str]]],
    analyser: Analyser,
    language: str,
) -> Support | None:
    wanted = frozenset(analyser.words(sentence))
    if not wanted:
        return None
    # Most windows have few of the words wanted, and the same ones.
    share = cache(lambda found: rarity.share(found, wanted, language))
    best = max(
        stretches,
        # Of equals the shorter: it shows the place more closely.
        key=lambda window: (share(window[2] & wanted), -len(window[1])),
        default=None,
    )
    if best is None or not best[2] & wanted:
        return Support(sentence, "", "", "", 0.0, _lacking(sentence, frozenset(), analyser))
    section, passage, stems = best
    return Support(
        claim=sentence,
        section=section.key,
        heading=section.heading,
        passage=passage,
        share=rarity.share(stems, wanted, language),
        missing=_lacking(sentence, stems, analyser),
    )


def _lacking(sentence: str, stems: frozenset[str], analyser: Analyser) -> tuple[str, ...]:
    words = (word.strip(".,;:!?()[]“”\"'‘’") for word in sentence.split())
    # Of a range such as 10–17 both ends must stand there.
    lacking = [word for word in words if not stems.issuperset(analyser.words(word))]
    return tuple(dict.fromkeys(lacking))


def windows(
    section: BotSection, analyser: Analyser
) -> Iterator[tuple[BotSection, str, frozenset[str]]]:
    """Every stretch of up to three neighbouring sentences, with its stems and the heading's."""
    heading = frozenset(analyser.words(section.heading))
    spans = chunking.sentences(section.text)
    stems = [frozenset(analyser.words(span.of(section.text))) for span in spans]
    for first in range(len(spans)):
        for last in range(first, min(first + WINDOW, len(spans))):
            passage = section.text[spans[first].start : spans[last].end]
            yield section, passage, heading.union(*stems[first : last + 1])
