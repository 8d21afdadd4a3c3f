"""`make bench`: ratios against named baselines, measured in one run, to docs/benchmarks.md."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts import bench_retrieval
from tests.flows.product import Product

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
SLUG = "colchester-castle"

#: Rounds of a comparison; in each, both sides run in turn.
ROUNDS = 41


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    figure: str
    baseline: str
    ratio: str
    bar: str


def main() -> int:
    """Measure everything, print the table, write the page."""
    sections: list[tuple[str, list[Row]]] = []
    with _product() as product:
        sections.append(("Delivery over HTTP", _delivery(product)))
        sections.append(("A probe run on the worker", _probes(product)))
        sections.append(("A history of 10,000 saves", _history(product)))
    sections.append(("Retrieval", _retrieval()))
    for title, rows in bench_retrieval.sections():
        sections.append((title, [Row(*row) for row in rows]))
    sections.append(("From a bare clone to the served sheet", _demo()))
    page = _page(sections)
    print(page)
    PAGE.write_text(page)
    return 0


# ---- the pieces ----


@contextmanager
def _product() -> Iterator[Product]:
    folder = Path(tempfile.mkdtemp(prefix="muniment-bench-"))
    product = Product(
        folder, extra={"DJANGO_SETTINGS_MODULE": "scripts.bench_settings", "TICK_SECONDS": "20"}
    )
    try:
        product.start()
        for name in ("castle", "cafe"):
            _must(product, "import_sheet", f"factsheets/data/demo/{name}")
        yield product
    finally:
        product.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _must(product: Product, *command: str) -> str:
    answer = product.command(*command)
    if answer.code:
        sys.exit(f"error: {' '.join(command)} ended with {answer.code}: {answer.err}")
    return answer.out


def _delivery(product: Product) -> list[Row]:
    """Alternating rounds over one kept connection each; the client is the same for both."""
    _must(product, "run_probes", SLUG, "--local")
    product.user("bench", "publisher")
    _must(product, "publish_sheet", SLUG, "--by", "bench", "--reason", "bench")
    current = f"/api/v1/sheets/{SLUG}/"
    etag = product.get(current).headers["etag"]
    question = json.dumps({"question": "How many Norman towers does the castle keep have?"})
    pairs = (
        ("current sheet, 200", current, "", "", "/bare/", "≥ 0.9"),
        ("current sheet, 304", current, f"If-None-Match: {etag}\r\n", "", "/bare-304/", "≥ 0.9"),
        ("a question to `retrieve`", f"{current}retrieve/", "", question, "/bare/", "≥ 0.5"),
    )
    rows = []
    for what, path, header, body, bare, bar in pairs:
        ours, theirs = _in_turn(
            lambda p=path, h=header, b=body: _requests(product.port, p, h, b),  # type: ignore[misc]
            lambda p=bare: _requests(product.port, p, ""),  # type: ignore[misc]
        )
        ratio = statistics.median(t / o for o, t in zip(ours, theirs, strict=True))
        rows.append(
            Row(
                what,
                f"{1 / statistics.median(ours):,.0f} requests/s",
                f"bare Django view, same bytes: {1 / statistics.median(theirs):,.0f} requests/s",
                f"{ratio:.2f}",
                bar,
            )
        )
    return rows


def _requests(port: int, path: str, header: str, body: str = "", count: int = 300) -> float:
    """Seconds a request, one after the other on one connection; posted where there is a body."""
    if body:
        header += f"Content-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n"
    request = (
        f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n{body}"
    ).encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _answer(connection, request)
        began = time.perf_counter()
        for _ in range(count):
            _answer(connection, request)
        return (time.perf_counter() - began) / count


def _answer(connection: socket.socket, request: bytes) -> None:
    connection.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += connection.recv(65536)


def _in_turn(
    ours: Callable[[], float], theirs: Callable[[], float], rounds: int = ROUNDS
) -> tuple[list[float], list[float]]:
    """Both sides in turn, so that a drift of the machine meets both."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return [o for o, _ in pairs], [t for _, t in pairs]


def _probes(product: Product) -> list[Row]:
    """Processor time of the worker a run, less what the bot itself takes for the same questions."""
    _must(product, "run_probes", SLUG, "--wait")
    worker = product.processes["worker"].pid
    costs: list[float] = []
    for _ in range(5):
        before = _processor_seconds(worker)
        planned = 0
        for slug in (SLUG, "example-castle-cafe"):
            _must(product, "run_probes", slug, "--wait")
            planned += int(product.rows("Run.objects.order_by('-started_at').first().planned"))
        costs.append((_processor_seconds(worker) - before) / planned)
    bot = _bot_alone()
    beyond = statistics.median(costs) - bot
    return [
        Row(
            "offline run of both suites, an attempt",
            f"{statistics.median(costs) * 1000:.1f} ms of processor",
            f"the bot alone: {bot * 1000:.1f} ms",
            f"{beyond * 1000:.1f} ms beyond it",
            "≤ 12 ms beyond",
        )
    ]


def _history(product: Product) -> list[Row]:
    """The same pages of two sheets in one database, one with a hundred times the saves."""
    code = "from scripts.bench_history import measure; print(measure())"
    found = json.loads(_must(product, "shell", "-v", "0", "--no-imports", "-c", code))
    return [
        Row(
            what,
            f"{times['long'] * 1000:.1f} ms",
            f"a history of 100: {times['short'] * 1000:.1f} ms",
            f"{times['ratio']:.2f} of its time",
            "",
        )
        for what, times in found.items()
    ]


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bot_alone() -> float:
    """Processor seconds of the offline bot for an attempt of both suites, index built once."""
    from factsheets.bot import retrieval
    from factsheets.bot.providers import offline

    spent, attempts = 0.0, 0
    for name in ("castle", "cafe"):
        sheet = _bot_sheet(name)
        index = retrieval.index_of(sheet)
        probes = _yaml(name, "probes.yaml")["probes"]
        asked = [probe for probe in probes if "needs" not in probe]
        began = time.process_time()
        for probe in asked:
            for turn in probe["turns"]:
                offline.quote(index, turn)
        spent += time.process_time() - began
        attempts += len(asked)
    return spent / attempts


def _retrieval() -> list[Row]:
    """The castle's frozen questions, one by one, both indexes built beforehand."""
    import bm25s

    from factsheets.bot import chunking, retrieval
    from factsheets.bot.analysis import Analyser

    sheet = _bot_sheet("castle")
    questions = [q["question"] for q in _yaml("castle", "questions.yaml")["questions"]]
    index = retrieval.index_of(sheet)
    analyser = Analyser(sheet.language)
    peer = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    peer.index(
        [list(analyser.terms(c.indexed)) for c in chunking.chunks(sheet)], show_progress=False
    )
    most = min(5, len(chunking.chunks(sheet)))

    def ours() -> float:
        began = time.perf_counter()
        for question in questions:
            index.search(question)
        return (time.perf_counter() - began) / len(questions)

    def theirs() -> float:
        began = time.perf_counter()
        for question in questions:
            peer.retrieve([list(analyser.terms(question))], k=most, show_progress=False)
        return (time.perf_counter() - began) / len(questions)

    mine, other = _in_turn(ours, theirs)
    ratio = statistics.median(m / o for m, o in zip(mine, other, strict=True))
    return [
        Row(
            "a query on the castle, analysis and trace included",
            f"{statistics.median(mine) * 1e6:,.0f} µs",
            f"bm25s on the same words: {statistics.median(other) * 1e6:,.0f} µs",
            f"{ratio:.2f} of its time",
            "",
        )
    ]


def _demo() -> list[Row]:
    """`make demo ONCE=1` in a clone, in a bare environment, as a newcomer would."""
    folder = Path(tempfile.mkdtemp(prefix="muniment-clone-"))
    try:
        clone = folder / "muniment"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        bare = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}
        began = time.monotonic()
        subprocess.run(["sh", "scripts/setup.sh", "base"], cwd=clone, env=bare, check=True)
        steps = {"virtual environment and locked packages": time.monotonic() - began}
        subprocess.run(
            ["make", "demo", "ONCE=1", f"PORT={port}"],
            cwd=clone,
            env=bare,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        total = time.monotonic() - began
        steps |= json.loads((clone / "var" / "demo-steps.json").read_text())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows = [Row(name, f"{seconds:.1f} s", "", "", "") for name, seconds in steps.items()]
    rows.append(Row("in all, start and end of processes included", f"{total:.1f} s", "", "", ""))
    return rows


def _bot_sheet(name: str):  # type: ignore[no-untyped-def]
    from factsheets.snapshot import BotSection, BotSheet

    raw = _yaml(name, "sheet.yaml")
    return BotSheet(
        language=raw["sheet"]["language"],
        title=raw["sheet"]["title"],
        sections=tuple(
            BotSection(s["key"], s["heading"], s["question"], s["body"]) for s in raw["sections"]
        ),
    )


def _yaml(name: str, file: str):  # type: ignore[no-untyped-def]
    import yaml

    return yaml.safe_load((ROOT / "factsheets" / "data" / "demo" / name / file).read_text())


def _page(sections: list[tuple[str, list[Row]]]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Measured by `make bench`, everything in one run; medians, and ratios taken round by round.",
        f"Machine: {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, "
        "SQLite and the embedded broker. Absolute figures differ from machine to machine; compare "
        "the ratios.",
    ]
    for title, rows in sections:
        lines += [
            "",
            f"## {title}",
            "",
            "| what | measured | beside | ratio | bar |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [f"| {r.what} | {r.figure} | {r.baseline} | {r.ratio} | {r.bar} |" for r in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
