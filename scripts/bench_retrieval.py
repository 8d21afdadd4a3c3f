"""Retrieval measured on public data, beside other engines on the same texts in the same run.

`BENCH_DATA=FOLDER make bench` reads files of other people, which are not part
of this project, from the folder: `xquad.en.json` and `squad2-8-articles.json`
(SQuAD's JSON) and, if it is there, `clinc_oos.json`. One article is one sheet,
one paragraph one section.
"""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import bm25s
import snowballstemmer

from evals import measuring
from evals.measuring import Asked, Outcome
from factsheets.bot import baselines, chunking, corpus, retrieval
from factsheets.bot.analysis import STOP_WORDS
from factsheets.bot.corpus import Member
from factsheets.bot.retrieval import Index
from factsheets.snapshot import BotSection, BotSheet

NO_DATA = "Quality on public data is left out: BENCH_DATA names no folder with the files."
FILES = {"XQuAD": "xquad.en.json", "SQuAD 2.0": "squad2-8-articles.json"}
CHAT = "clinc_oos.json"
SEED = 20261130
#: Rounds of a comparison of speed; in each, both sides run in turn.
ROUNDS = 15
QUERIES = 100

Cells = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Data:
    """Articles as sheets, and the questions about them."""

    name: str
    sheets: tuple[Member, ...]
    inside: tuple[Asked, ...]
    near: tuple[Asked, ...]


def sections() -> list[tuple[str, list[Cells]]]:
    """Every table: its title, and its rows as what, measured, beside, ratio and bar."""
    folder = _folder()
    if folder is None:
        return [("Retrieval on public data", [(NO_DATA, "", "", "", "")])]
    chat = _chat(folder)
    found = []
    for name, file in FILES.items():
        data = _read(name, folder / file)
        sizes = sorted(len(member.sheet.sections) for member in data.sheets)
        many = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        title = f"{name}: {len(data.sheets)} sheets of {many} sections"
        found.append((f"{title}, searched together", _together(data)))
        found.append((f"{title}, each by itself", _apart(data, chat)))
    texts = [_read(name, folder / file) for name, file in FILES.items()]
    found.append(("Retrieval: speed and memory", _speed(texts)))
    return found


def _folder() -> Path | None:
    named = os.environ.get("BENCH_DATA", "")
    folder = Path(named)
    return folder if named and all((folder / f).is_file() for f in FILES.values()) else None


# ---- reading ----


def _read(name: str, path: Path) -> Data:
    members, inside, near = [], [], []
    for place, article in enumerate(json.loads(path.read_text())["data"]):
        slug = f"sheet-{place:02}"
        paragraphs = article["paragraphs"]
        sheet = BotSheet(
            "en",
            article["title"].replace("_", " "),
            tuple(BotSection(f"s{n}", "", "", p["context"]) for n, p in enumerate(paragraphs)),
        )
        members.append(Member(slug, f"{name} {slug}", sheet))
        for number, paragraph in enumerate(paragraphs):
            for asked in paragraph["qas"]:
                if asked.get("is_impossible"):
                    near.append(Asked(asked["id"], asked["question"], sheet=slug))
                else:
                    right = (f"s{number}",)
                    inside.append(Asked(asked["id"], asked["question"], right, sheet=slug))
    return Data(name, tuple(members), tuple(inside), tuple(near))


def _chat(folder: Path) -> list[str]:
    path = folder / CHAT
    if not path.is_file():
        return []
    return [text for asked in json.loads(path.read_text()).values() for text, _ in asked]


# ---- engines ----

#: Numbers of paragraphs for a question, best first.
Search = Callable[[str], Sequence[int]]


def _text(member: Member, section: BotSection) -> str:
    """What every engine is given: the sheet's title, then the paragraph."""
    return f"{member.sheet.title}\n{section.text}"


@cache
def _stem(word: str) -> str:
    return str(snowballstemmer.stemmer("english").stemWord(word))


def _stems(words: list[str]) -> list[str]:
    """Each word is stemmed once and remembered: bm25s is given the best that Python has."""
    return [_stem(word) for word in words]


def _bm25s(texts: Sequence[str]) -> Search:
    """bm25s as its makers recommend it: its own stop words, and a stemmer."""
    engine = bm25s.BM25(method="lucene", k1=retrieval.K1, b=retrieval.B)
    engine.index(_tokens(list(texts)), show_progress=False)
    most = min(measuring.DEPTH, len(texts))

    def search(question: str) -> Sequence[int]:
        found, _ = engine.retrieve(_tokens([question]), k=most, show_progress=False)
        return [int(number) for number in found[0]]

    return search


def _tokens(texts: list[str]):  # type: ignore[no-untyped-def]
    return bm25s.tokenize(texts, stopwords="en", stemmer=_stems, show_progress=False)


def _fts5(texts: Sequence[str], stop: frozenset[str] = frozenset()) -> Search:
    """SQLite's own search with its porter stemmer; any word of the question may match."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize = 'porter unicode61')")
    database.executemany(
        "INSERT INTO t (rowid, body) VALUES (?, ?)", list(enumerate(texts, start=1))
    )

    def search(question: str) -> Sequence[int]:
        words = [w for w in re.findall(r"\w+", question.lower()) if w not in stop]
        if not words:
            return []
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        rows = database.execute(
            "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank, rowid LIMIT ?",
            (match, measuring.DEPTH),
        )
        return [row[0] - 1 for row in rows]

    return search


# ---- quality, all sheets together ----


def _together(data: Data) -> list[Cells]:
    """One index over all sections, as the other engines have it."""
    every = [(m, s) for m in data.sheets for s in m.sheet.sections]
    texts = [_text(member, section) for member, section in every]
    places = {(m.slug, s.key): number for number, (m, s) in enumerate(every)}
    right = {a.key: places[a.sheet, a.sections[0]] for a in data.inside}
    # Summaries are left out, so that all engines search the same texts.
    with_summaries = corpus.index_of(data.sheets)
    index = Index.build((chunk for chunk in with_summaries.chunks if chunk.section), "en")
    outcomes = [measuring.ask(index, asked) for asked in data.inside]
    ours = [[places[p.sheet, p.section] for p in outcome.places] for outcome in outcomes]
    rankings = {
        "bm25s with a stemmer": _bm25s(texts),
        "SQLite FTS5 porter": _fts5(texts),
        "SQLite FTS5 porter, given our stop words": _fts5(texts, STOP_WORDS["en"]),
    }
    found = {name: [search(a.question) for a in data.inside] for name, search in rankings.items()}
    mine = _ranked(ours, data, right)
    rows = []
    for name, ranking in found.items():
        theirs = _ranked(ranking, data, right)
        for figure, value in mine.items():
            beside = theirs[figure]
            rows.append(
                (
                    f"{figure}, {len(data.inside):,} questions",
                    _told(value),
                    f"{name}: {_told(beside)}",
                    f"{value.value - beside.value:+.4f}",
                    "" if "given" in name else "≥ 0",
                )
            )
    summed_up = [measuring.ask(with_summaries, asked) for asked in data.inside]
    doc, doc_with = (
        measuring.figures(some, baselines.OURS)["doc_at_1"] for some in (outcomes, summed_up)
    )
    if doc and doc_with:
        rows.append(("Doc@1", _told(doc), f"with a summary a sheet: {_told(doc_with)}", "", ""))
    rows.append(_agreement(index, data))
    return rows


def _ranked(
    ranking: Sequence[Sequence[int]], data: Data, right: dict[str, int]
) -> dict[str, measuring.Figure]:
    ranks = [
        1 + list(found).index(right[a.key]) if right[a.key] in found else 0
        for a, found in zip(data.inside, ranking, strict=True)
    ]
    three = measuring.share(sum(0 < r <= measuring.FIRST for r in ranks), len(ranks))
    mrr = measuring.mean([1 / r if r else 0.0 for r in ranks])
    return {"Section@3": _asked(three), "MRR@10": _asked(mrr)}


def _asked(figure: measuring.Figure | None) -> measuring.Figure:
    if figure is None:
        sys.exit("error: a file in BENCH_DATA has no questions; get it anew.")
    return figure


def _agreement(index: Index, data: Data) -> Cells:
    """bm25s given our own terms finds the same first chunk; of equals, either may stand first."""
    engine = bm25s.BM25(method="lucene", k1=retrieval.K1, b=retrieval.B)
    engine.index(
        [list(index.analyser.terms(chunk.indexed)) for chunk in index.chunks], show_progress=False
    )
    same = asked = 0
    numbers = {chunk: number for number, chunk in enumerate(index.chunks)}
    for question in data.inside:
        terms = dict.fromkeys(index.analyser.terms(question.question))
        known = [term for term in terms if term in index.postings]
        if not known:
            continue
        scores = engine.get_scores(known)
        top = index.ranked(question.question, 1)[0]
        asked += 1
        # Their scores have seven digits.
        same += bool(scores[numbers[top.chunk]] >= scores.max() * (1 - 1e-6))
    return ("first hit equal to bm25s on the same terms", f"{same} of {asked}", "", "", "all")


def _told(figure: measuring.Figure) -> str:
    return f"{figure.value:.4f} ({figure.low:.3f} to {figure.high:.3f})"


# ---- quality and grounding, each sheet by itself ----


def _apart(data: Data, chat: Sequence[str]) -> list[Cells]:
    """Every sheet has its own index, as when one sheet has one bot."""
    indexes = {member.slug: retrieval.index_of(member.sheet) for member in data.sheets}

    def ask(asked: Asked, to: str) -> Outcome:
        found = measuring.ask(indexes[to], Asked(asked.key, asked.question, asked.sections))
        return Outcome(asked, tuple(_of(place, to) for place in found.places), found.found)

    inside = [ask(asked, asked.sheet) for asked in data.inside]
    worst = measuring.worst(inside)
    figures = measuring.figures(inside, baselines.OURS)
    rows: list[Cells] = [
        (measuring.NAMES[name], _told(figure), "", "", "")
        for name in ("section_at_1", "section_at_3", "mrr_at_10")
        if (figure := figures[name])
    ]
    if worst is not None:
        rows.append(
            (
                "Section@3, worst sheet",
                f"{worst.value:.4f}",
                f"mean of sheets: {worst.mean:.4f}",
                "",
                "",
            )
        )
    chance = random.Random(SEED)
    slugs = sorted(indexes)
    kinds = {
        "leaks, off-topic: questions about other sheets": [
            ask(asked, chance.choice([slug for slug in slugs if slug != asked.sheet]))
            for asked in data.inside
        ],
        "leaks, off-topic: chit-chat": [
            ask(Asked(str(n), text), chance.choice(slugs)) for n, text in enumerate(chat)
        ],
        "leaks, near: about the subject, answered nowhere": [
            ask(asked, asked.sheet) for asked in data.near
        ],
    }
    rows.append(_beside("false rejects", inside, rejected=True))
    rows += [_beside(kind, some, rejected=False) for kind, some in kinds.items() if some]
    return rows


def _of(place: measuring.Place, slug: str) -> measuring.Place:
    return measuring.Place(slug, place.section, place.hit)


def _beside(what: str, outcomes: Sequence[Outcome], *, rejected: bool) -> Cells:
    told = []
    for rule in (baselines.OURS, baselines.PUBLISHED):
        passed = sum(baselines.accepts(rule, o.found) for o in outcomes)
        count = len(outcomes) - passed if rejected else passed
        told.append(_told(_asked(measuring.share(count, len(outcomes)))))
    threshold = f"ours at {baselines.OURS.threshold:.2f}"
    return (
        f"{what}, {len(outcomes):,} questions",
        f"{threshold}: {told[0]}",
        f"published rule: {told[1]}",
        "",
        "",
    )


# ---- speed ----


def _speed(data: Sequence[Data]) -> list[Cells]:
    texts = [
        section.text for some in data for member in some.sheets for section in member.sheet.sections
    ]
    questions = [asked.question for some in data for asked in some.inside]
    chance = random.Random(SEED)
    asked = chance.sample(questions, QUERIES)
    rows = []
    for count in (50, 1000):
        chosen = _distinct(texts, count)
        sheet = BotSheet(
            "en", "Sheet", tuple(BotSection(f"s{n}", "", "", t) for n, t in enumerate(chosen))
        )
        began = time.perf_counter()
        index = Index.build(chunking.chunks(sheet), "en")
        first = time.perf_counter() - began
        search = _bm25s([f"Sheet\n{text}" for text in chosen])
        ours, theirs = _in_turn(index, search, asked)
        ratio = statistics.median(o / t for o, t in zip(ours, theirs, strict=True))
        rows.append(
            (
                f"a query at {count:,} sections ({len(index.chunks):,} chunks), trace included",
                f"{statistics.median(ours) * 1e6:,.0f} µs",
                f"bm25s with a stemmer: {statistics.median(theirs) * 1e6:,.0f} µs",
                f"{ratio:.2f} of its time",
                "≤ 1",
            )
        )
        built = statistics.median(_build_times(sheet))
        rows.append(
            (
                f"building the index of {count:,} sections",
                f"{built * 1e3:,.1f} ms",
                f"the first time, no stem known yet: {first * 1e3:,.1f} ms",
                "",
                "",
            )
        )
        rows.append(
            ("memory of that index, text left out", f"{_memory(sheet):,.1f} MB", "", "", "")
        )
    return rows


def _distinct(texts: Sequence[str], count: int) -> list[str]:
    """So many texts of which none stands twice: paragraphs, or halves where they are too few."""
    if count <= len(texts):
        return list(texts[:count])
    halves = [
        " ".join(half)
        for words in map(str.split, texts)
        for half in (words[: len(words) // 2], words[len(words) // 2 :])
    ]
    if count > len(halves):
        sys.exit(f"error: the files in BENCH_DATA have too few paragraphs for {count:,} sections.")
    return halves[:count]


def _in_turn(index: Index, search: Search, asked: Sequence[str]) -> tuple[list[float], list[float]]:
    sides: dict[str, Callable[[str], object]] = {"ours": index.search, "theirs": search}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS + 1):
        for name, side in sides.items():
            began = time.perf_counter()
            for question in asked:
                side(question)
            times[name].append((time.perf_counter() - began) / len(asked))
    # The first round warms up.
    return times["ours"][1:], times["theirs"][1:]


def _build_times(sheet: BotSheet) -> Iterator[float]:
    for _ in range(5):
        began = time.perf_counter()
        Index.build(chunking.chunks(sheet), "en")
        yield time.perf_counter() - began


def _memory(sheet: BotSheet) -> float:
    """Megabytes that an index holds, with all stems known beforehand."""
    chunks = chunking.chunks(sheet)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        index = Index.build(chunks, "en")
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / 1e6 if index.chunks else 0.0


def main() -> int:
    """Print the tables alone, without writing the page."""
    for title, rows in sections():
        print(f"\n{title}")
        for row in rows:
            print("  " + " | ".join(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
