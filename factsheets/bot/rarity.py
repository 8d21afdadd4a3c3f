"""How rare a word stem is in ordinary English.

A question is told from chit-chat by its rare words: "castle" says more about
what is meant than "time". The measure is the decimal logarithm of
(all blocks of text / blocks that hold the stem), so 1.0 means one block in ten
and 3.0 one in a thousand; a block is sixty content words. The table is of our
own making: `docs/decisions/0003-rarity-table.md` says from what texts, and
`scripts/make_rarity.py` makes it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Set
from functools import lru_cache
from importlib import resources

from factsheets.bot import analysis

TABLE = "data/rarity-en.txt"


def of(stem: str, language: str) -> float:
    """The rarity of a stem; one that the table lacks is as rare as any.

    The table is English. Words of other languages therefore weigh alike, and
    a weighted share of them is a plain one.
    """
    if analysis.base_of(language) != "en":
        return highest()
    return _table().get(stem, highest())


def mass(stems: Set[str], language: str) -> float:
    """sum(rarity), rounded once, so that the order of a set cannot show."""
    return math.fsum(of(stem, language) for stem in stems)


def share(found: Set[str], wanted: Set[str], language: str) -> float:
    """mass of those wanted that are found / mass of all wanted; 0 if none is wanted."""
    whole = mass(wanted, language)
    return mass(wanted & found, language) / whole if whole else 0.0


@lru_cache(maxsize=1)
def highest() -> float:
    """The rarity of a stem that the table does not have: just above its rarest."""
    return round(max(_table().values()) + 0.1, 2)


def table_digest() -> str:
    """SHA-256 (hex) of the table's bytes."""
    return hashlib.sha256(_table_bytes()).hexdigest()


def _table_bytes() -> bytes:
    return resources.files("factsheets").joinpath(TABLE).read_bytes()


@lru_cache(maxsize=1)
def _table() -> Mapping[str, float]:
    """Stem -> rarity, from lines of `stem rarity`; lines that begin with # are for people."""
    lines = _table_bytes().decode().splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {stem: float(rarity) for stem, rarity in pairs}
