"""Count how many blocks of everyday text hold each word stem, and write the rarity table.

    python -m scripts.make_rarity --out factsheets/data/rarity-en.txt novels.txt letters/ ...

Each argument is one kind of text: a file, or a folder read in order of path.
Every kind lends at most as many blocks as the others, evenly spaced through it,
so that no kind drowns the rest. docs/decisions/0003-rarity-table.md names the
texts and the commands that fetch them.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from factsheets.bot.analysis import Analyser

#: Stems in one block: about the length of a paragraph.
BLOCK = 60
#: Blocks that one kind of text may lend.
MOST_BLOCKS = 4_000
#: A stem must stand in so many blocks, or its rarity is chance.
LEAST_BLOCKS = 10

HEADER = """\
# How rare a word stem is in ordinary English: log10(blocks / blocks that hold the stem).
# Made by scripts/make_rarity.py; where from: docs/decisions/0003-rarity-table.md
"""


def blocks(kind: Path, analyser: Analyser) -> Sequence[frozenset[str]]:
    """The stems of each block of a kind of text, thinned out evenly to MOST_BLOCKS."""
    stems = [stem for line in _lines(kind) for stem in analyser.words(line)]
    starts = range(0, len(stems), BLOCK)
    step = max(1.0, len(starts) / MOST_BLOCKS)
    kept = [starts[int(n * step)] for n in range(min(len(starts), MOST_BLOCKS))]
    return [frozenset(stems[start : start + BLOCK]) for start in kept]


def table(kinds: Sequence[Path]) -> dict[str, float]:
    """Stem -> rarity, over all kinds together."""
    analyser = Analyser("en")
    everything = [block for kind in kinds for block in blocks(kind, analyser)]
    holding = Counter(stem for block in everything for stem in block)
    return {
        stem: math.log10(len(everything) / count)
        for stem, count in sorted(holding.items())
        if count >= LEAST_BLOCKS and stem.isascii()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kinds", nargs="+", type=Path, metavar="TEXT", help="a file or a folder")
    parser.add_argument("--out", required=True, type=Path, help="the table to write")
    options = parser.parse_args()
    made = table(options.kinds)
    rows = (f"{stem} {rarity:.2f}\n" for stem, rarity in made.items())
    options.out.write_text(HEADER + "".join(rows), encoding="utf-8")
    print(f"{len(made)} stems, {options.out.stat().st_size} bytes")


def _lines(kind: Path) -> Iterator[str]:
    files = sorted(p for p in kind.rglob("*") if p.is_file()) if kind.is_dir() else [kind]
    for path in files:
        yield from path.read_text(encoding="utf-8", errors="replace").splitlines()


if __name__ == "__main__":
    main()
