"""Several sheets searched together: their chunks, and a summary of each.

A sheet's text is known by its content hash, so an index is made once for each
publication that takes part, whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache

from factsheets.bot import analysis, chunking
from factsheets.bot.chunking import Chunk
from factsheets.bot.retrieval import Index
from factsheets.errors import Refused
from factsheets.snapshot import BotSheet


class MixedLanguages(Refused):
    """Sheets of several languages have no words to compare."""

    code = "mixed-languages"


@dataclass(frozen=True, slots=True)
class Member:
    """One sheet of the corpus. Its hash stands for its text."""

    slug: str
    content_hash: str
    sheet: BotSheet = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Excluded:
    """What takes no part: whole sheets by slug, and single sections by slug and key."""

    sheets: frozenset[str] = frozenset()
    sections: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(
        cls, sheets: Set[str] = frozenset(), sections: Iterable[tuple[str, str]] = ()
    ) -> Excluded:
        return cls(frozenset(sheets), frozenset(sections))

    def left(self, member: Member) -> Member:
        """The sheet without the sections that take no part."""
        kept = tuple(
            section
            for section in member.sheet.sections
            if (member.slug, section.key) not in self.sections
        )
        return replace(member, sheet=replace(member.sheet, sections=kept))


NOTHING = Excluded()


def index_of(members: Iterable[Member], excluded: Excluded = NOTHING) -> Index:
    """The index of several sheets, in the order of their slugs; kept for the texts it was made of.

    Raises MixedLanguages: stems of two languages are not compared.
    """
    chosen = sorted((m for m in members if m.slug not in excluded.sheets), key=lambda m: m.slug)
    languages = sorted({analysis.base_of(member.sheet.language) for member in chosen})
    if len(languages) > 1:
        raise MixedLanguages(
            f"The sheets are written in several languages ({', '.join(languages)}); "
            "search those of one language together."
        )
    return _index(tuple(chosen), excluded)


@lru_cache(maxsize=16)
def _index(members: tuple[Member, ...], excluded: Excluded) -> Index:
    language = members[0].sheet.language if members else "en"
    return Index.build(
        (chunk for member in members for chunk in _chunks(excluded.left(member))), language
    )


def _chunks(member: Member) -> Iterable[Chunk]:
    summary = chunking.summary(member.sheet)
    for chunk in (*([summary] if summary else []), *chunking.chunks(member.sheet)):
        yield replace(chunk, sheet=member.slug)
