"""The documentation names everything that the product can say, and leads nowhere that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from factsheets import (
    checking,  # noqa: F401  (each module brings its refusals)
    delivery,  # noqa: F401
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


@pytest.mark.parametrize(
    "code",
    sorted(
        _codes("factsheets", r'Finding\(\s*"([a-z-]+)"')
        | _codes("evals", r'Finding\(\s*"([a-z-]+)"')
        | {"empty-section", "disputed", "unsourced", "never-checked", "edited-since-check"}
    ),
)
def test_every_finding_is_explained(code: str) -> None:
    assert f"`{code}`" in FINDINGS


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
