"""The guides are true: every command and snippet in them is carried out on a running product."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.flows.product import CASTLE, ROOT, Product

pytestmark = pytest.mark.services

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PORT = "127.0.0.1:8000"

#: Commands that are carried out elsewhere, and where.
ELSEWHERE = {
    "sh scripts/setup.sh prod": "`.ci/run` makes a server's environment in a fresh clone",
}

#: Blocks that say what they show and cannot be carried out where tests run.
NOT_RUN = {"text": "needs systemd or a container engine"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a guide."""

    language: str
    text: str


def blocks(guide: Path) -> list[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", guide.read_text(), re.MULTILINE | re.DOTALL)
    return [Block(language, text) for language, text in found]


def commands(block: Block) -> list[tuple[str, str]]:
    """Each command of a console block with the output that stands below it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(shown)) for command, shown in found]


def says(shown: str, said: str) -> bool:
    """Whether an output is the one shown, but for figures and what `…` leaves out."""
    if re.fullmatch(r"\d{3}", shown):
        # A status, and no figure.
        return said.strip() == shown

    def plain(text: str) -> str:
        return re.sub(r"\d[\d,]*", "#", text.strip())

    pattern = re.escape(plain(shown)).replace("…", ".*")
    return re.fullmatch(pattern, plain(said), re.DOTALL) is not None


def test_an_output_is_compared_but_for_its_figures() -> None:
    assert says("a.backup: 1,703,936 bytes.", "a.backup: 12 bytes.\n")
    assert says("unsourced …", "unsourced  shop\nnever-checked  hours\n")
    assert not says("a.backup: 1 bytes.", "error: a.backup is there already.")
    assert not says("304", "200")


@pytest.fixture(scope="module")
def running(product: Product) -> Product:
    """The castle published and the café imported, as after `make demo`."""
    for arguments in (
        ("import_sheet", CASTLE),
        ("import_sheet", CASTLE.replace("castle", "cafe")),
        ("run_probes", "colchester-castle", "--wait"),
    ):
        answer = product.command(*arguments)
        assert answer.code == 0, answer.err
    product.user("anna", "publisher")
    published = product.command(
        "publish_sheet", "colchester-castle", "--by", "anna", "--reason", "First."
    )
    assert published.code == 0, published.err
    return product


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that looks like the project, in which guides may leave files."""
    for entry in ROOT.iterdir():
        if entry.name not in {"static", "var", ".env"}:
            (tmp_path / entry.name).symlink_to(entry)
    if not (tmp_path / ".venv").exists():
        (tmp_path / ".venv" / "bin").mkdir(parents=True)
        (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def carry_out(
    found: list[tuple[str, str]], running: Product, place: Path
) -> Iterator[tuple[str, str, str, int]]:
    """Commands one after the other in one shell: command, shown, said, exit code."""
    mark = "--said-until-here--"
    script = "".join(
        f"{command.replace(PORT, f'127.0.0.1:{running.port}')}\nprintf '\\n{mark} %s\\n' $?\n"
        for command, _ in found
    )
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=place,
        env={
            **running.environment,
            "PATH": f"{Path(sys.executable).parent}:{running.environment['PATH']}",
            "STATIC_ROOT": str(place / "static"),
            **PRODUCTION,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    parts = re.split(rf"\n{mark} (\d+)\n", ended.stdout)
    assert len(parts) == 2 * len(found) + 1, ended.stderr
    assert "Traceback" not in ended.stderr
    for place_of, (command, shown) in enumerate(found):
        yield command, shown, parts[2 * place_of], int(parts[2 * place_of + 1])


#: What the operators' guide has set before its commands, beside database and broker.
PRODUCTION = {
    "SECRET_KEY": "at-least-fifty-random-characters-0123456789-0123456789",
    "ALLOWED_HOSTS": "sheets.example.org,localhost,127.0.0.1",
    "HTTPS_ONLY": "yes",
    "BEHIND_PROXY": "yes",
}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_block_of_a_guide_is_of_a_kind_that_is_tested(guide: Path) -> None:
    known = {"console", "python", "json", "yaml", "env", *NOT_RUN}

    assert {block.language for block in blocks(guide)} <= known


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_command_of_a_guide_does_what_the_guide_shows(
    guide: Path, running: Product, place: Path
) -> None:
    found = [
        (command, shown)
        for block in blocks(guide)
        if block.language == "console"
        for command, shown in commands(block)
        if command not in ELSEWHERE
    ]

    for command, shown, said, code in carry_out(found, running, place):
        assert code in {0, 1}, command
        assert not shown or says(shown, said), f"{command}\n{said}"


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_configuration_in_a_guide_can_be_read(guide: Path) -> None:
    for block in blocks(guide):
        if block.language == "json":
            json.loads(block.text)
        if block.language == "yaml":
            yaml.safe_load(block.text)
        if block.language == "env":
            example = (ROOT / ".env.example").read_text()
            told = dict(line.split("=", 1) for line in block.text.splitlines())
            assert [name for name in told if f"{name}=" not in example] == []


def test_every_snippet_for_bots_runs_as_it_stands(
    running: Product, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    # The guide polls in a thread of its own; here it asks once, and leaves no thread behind.
    monkeypatch.setattr("threading.Thread.start", lambda thread: None)
    bot: dict[str, object] = {"__name__": "bot"}

    for block in blocks(ROOT / "docs" / "guides" / "bot-authors.md"):
        if block.language == "python":
            code = block.text.replace(PORT, f"127.0.0.1:{running.port}")
            exec(compile(code, "guide", "exec"), bot)

    assert bot["sheet"] is None or bot["sheet"]["publication"] == 1  # type: ignore[index]


def test_the_client_of_twenty_lines_does_what_is_said_of_it(running: Product) -> None:
    (code,) = [
        b.text for b in blocks(ROOT / "docs" / "guides" / "bot-authors.md") if "def pull" in b.text
    ]
    bot: dict[str, object] = {}
    exec(compile(code.replace(PORT, f"127.0.0.1:{running.port}"), "guide", "exec"), bot)

    bot["pull"]()  # type: ignore[operator]
    first = bot["sheet"]
    bot["pull"]()  # type: ignore[operator]
    again = bot["sheet"]
    gone = running.command(
        "withdraw_sheet", "colchester-castle", "--by", "anna", "--reason", "Wrong."
    )
    assert gone.code == 0, gone.err
    time.sleep(1.2)  # as long as a process may answer from its own copy
    bot["pull"]()  # type: ignore[operator]

    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    assert first is not None
    assert again is first
    assert bot["sheet"] is None
