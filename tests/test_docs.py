"""The documentation names everything that the product can say, and leads nowhere that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from factsheets import (
    checking,  # noqa: F401  (each module brings its refusals)
    delivery,  # noqa: F401
    findings,
    gate,
)
from factsheets.errors import Refused

ROOT = Path(__file__).resolve().parent.parent
DOCS = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]
FINDINGS = (ROOT / "docs" / "reference" / "findings.md").read_text()


def _codes(folder: str, pattern: str) -> set[str]:
    return {
        code
        for path in (ROOT / folder).rglob("*.py")
        for code in re.findall(pattern, path.read_text())
    }


def _refusals(base: type[Refused]) -> set[str]:
    return {base.code}.union(*(_refusals(sub) for sub in base.__subclasses__()))


#: Every code that a finding is made with, wherever that is.
MADE = (
    _codes("factsheets", r'Finding\(\s*"([a-z-]+)"')
    | _codes("evals", r'Finding\(\s*"([a-z-]+)"')
    | set(gate._STANDINGS)
)


def test_every_finding_says_what_opens_the_gate_and_has_a_page() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "findings").glob("*.md")}

    assert MADE == findings.CODES.keys() == pages


@pytest.mark.parametrize("code", sorted(findings.CODES))
def test_every_finding_is_explained(code: str) -> None:
    page = (ROOT / findings.page(code)).read_text()

    assert f"[`{code}`](../findings/{code}.md)" in FINDINGS
    assert page.startswith(f"# `{code}`\n")
    assert findings.CODES[code].opens in page
    assert "## Since when, and by whom" in page


def test_what_may_be_made_to_block_says_so_on_its_page() -> None:
    warned = {
        code
        for code in findings.CODES
        if "**Warns; a gate policy" in (ROOT / findings.page(code)).read_text()
    }

    assert warned == gate.WARNINGS


@pytest.mark.parametrize(
    "code", sorted(_codes("evals/graders", r'"(?:pass|fail|ungraded)",\s*"([a-z-]+)"'))
)
def test_every_verdict_is_explained(code: str) -> None:
    assert f"`{code}`" in FINDINGS


@pytest.mark.parametrize("code", sorted(_refusals(Refused) - {"refused"}))
def test_every_refusal_is_explained(code: str) -> None:
    assert f"`{code}`" in FINDINGS


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text())

    missing = [target for target in targets if not (page.parent / target).exists()]

    assert missing == []


def test_every_variable_stands_in_the_example() -> None:
    source = (ROOT / "config" / "settings.py").read_text()
    names = set(re.findall(r'(?:env\.\w+|flag|seconds|http_url|time_zone)\(\s*"([A-Z_]+)"', source))
    example = (ROOT / ".env.example").read_text()

    missing = {name for name in names if not re.search(rf"^#?\s*{name}=", example, re.MULTILINE)}

    assert names
    assert missing == set()


def test_every_command_is_documented() -> None:
    names = {
        path.stem
        for app in ("factsheets", "evals")
        for path in (ROOT / app / "management" / "commands").glob("*.py")
        if path.stem != "__init__"
    }
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()

    assert {name for name in names if f"`{name}" not in page and name not in page} == set()
