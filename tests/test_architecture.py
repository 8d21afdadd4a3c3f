"""The layers: what may import what, and which way foreign keys may point."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).resolve().parent.parent

#: Pure: no database, clock, network or settings. Packages stand for all their modules.
CORE = {
    "factsheets.errors",
    "factsheets.snapshot",
    "factsheets.canonical",
    "factsheets.rulesets",
    "factsheets.gate",
    "factsheets.findings",
    "factsheets.comparing",
    "factsheets.sealing",
    "factsheets.staleness",
    "factsheets.sizing",
    "factsheets.splitting",
    "factsheets.folding",
    "factsheets.claims",
    "factsheets.tagging",
    "factsheets.use_logs",
    "factsheets.marking",
    "factsheets.moments",
    "factsheets.yaml_files",
    "factsheets.bot.chunking",
    "factsheets.bot.analysis",
    "factsheets.bot.rarity",
    "factsheets.bot.retrieval",
    "factsheets.bot.baselines",
    "factsheets.bot.corpus",
    "factsheets.bot.prompt",
    "factsheets.bot.answering",
    "factsheets.bot.providers",
    "evals.graders",
    "evals.scoring",
    "evals.trial_scoring",
    "evals.measuring",
}
#: Calls a service, so it reads its key and address from the settings.
CORE_WITH_SETTINGS = {"factsheets.bot.providers.anthropic"}
MODELS = {"factsheets.models", "evals.models"}
READERS = {
    "factsheets.history",
    "factsheets.history_check",
    "factsheets.changes",
    "factsheets.explaining",
    "factsheets.searching",
    "factsheets.standings",
    "factsheets.stale_report",
    "factsheets.metrics",
    "evals.metrics",
    "evals.alarms",
    "factsheets.access",
    "factsheets.delivery",
    "factsheets.evidence",
    "evals.suites",
    "evals.evidence",
    "evals.regressions",
    "evals.verification",
    "evals.highlight",
    "evals.junit",
}
WRITERS = {
    "factsheets.editing",
    "factsheets.publishing",
    "factsheets.checking",
    "factsheets.exchange",
    "factsheets.health",
    "factsheets.log_ins",
    "factsheets.backups",
    "factsheets.scheduling",
    "factsheets.restoring",
    "factsheets.notices",
    "factsheets.keys",
    "factsheets.counting",
    "factsheets.sizes",
    "factsheets.usage",
    "evals.runs",
    "evals.renewal",
    "evals.trials",
    "evals.notices",
    "evals.attempts",
    "evals.exchange",
    "evals.question_files",
    "evals.question_sets",
    "evals.starting",
}
#: What puts the database's own rules and the roles in place.
PLACED = {"factsheets.triggers", "factsheets.roles", "evals.triggers", "evals.roles"}

#: What `evals` may use of `factsheets`, beside what interfaces of both apps share.
FOR_EVALS = CORE | {
    "factsheets.bot",
    "factsheets.models",
    "factsheets.evidence",
    "factsheets.changes",
    "factsheets.explaining",
    "factsheets.history",
    "factsheets.delivery",
    "factsheets.exchange",
    "factsheets.editing",
    "factsheets.publishing",
    "factsheets.health",
    "factsheets.metrics",
    "factsheets.notices",
    "factsheets.backups",
    "factsheets.history_check",
    "factsheets.triggers",
    "factsheets.roles",
    "factsheets.checks",
    "factsheets.commands",
    "factsheets.access",
    "factsheets.admin.base",
    "factsheets.admin.pages",
}


def _modules() -> Iterator[tuple[str, Path]]:
    for package in ("factsheets", "evals"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__"), path


def _imports(path: Path) -> set[str]:
    """Every module that a file imports at its top or inside functions, `from a import b` as a.b too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _is_in(module: str, layer: set[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in layer)


ALL = dict(_modules())


def _ours(module: str) -> set[str]:
    return {name for name in _imports(ALL[module]) if name.split(".")[0] in {"factsheets", "evals"}}


@pytest.mark.parametrize("module", [m for m in ALL if _is_in(m, CORE)])
def test_core_imports_core_alone(module: str) -> None:
    strangers = {name for name in _ours(module) if not _is_in(name, CORE | CORE_WITH_SETTINGS)}
    django = {name for name in _imports(ALL[module]) if name.startswith("django")}

    assert {name for name in strangers if name != "factsheets.bot"} - _packages() == set()
    assert django <= ({"django.conf.settings"} if _is_in(module, CORE_WITH_SETTINGS) else set())


@pytest.mark.parametrize("module", [m for m in ALL if _is_in(m, READERS)])
def test_readers_import_core_models_and_readers(module: str) -> None:
    allowed = CORE | MODELS | READERS | {"evals.runs", "factsheets.health"}

    assert {n for n in _ours(module) if not _is_in(n, allowed)} - _packages() == set()


@pytest.mark.parametrize("module", [m for m in ALL if _is_in(m, WRITERS)])
def test_writers_know_nothing_of_requests_and_send_no_task(module: str) -> None:
    allowed = CORE | MODELS | READERS | WRITERS
    imported = _imports(ALL[module])

    assert {n for n in _ours(module) if not _is_in(n, allowed)} - _packages() == set()
    assert not {n for n in imported if n.startswith(("django.http", "celery", "rest_framework"))}
    assert ".delay(" not in ALL[module].read_text()


@pytest.mark.parametrize("module", [m for m in ALL if m.startswith("factsheets")])
def test_factsheets_never_imports_evals(module: str) -> None:
    assert {name for name in _imports(ALL[module]) if name.split(".")[0] == "evals"} == set()


@pytest.mark.parametrize("module", [m for m in ALL if m.startswith("evals")])
def test_evals_uses_only_what_factsheets_offers_it(module: str) -> None:
    used = {name for name in _ours(module) if name.startswith("factsheets")}

    assert {name for name in used if not _is_in(name, FOR_EVALS)} - _packages() == set()


def test_no_foreign_key_of_factsheets_points_at_evals() -> None:
    pointing = {
        f"{model.__name__}.{field.name}"
        for model in apps.get_app_config("factsheets").get_models()
        for field in model._meta.concrete_fields
        if field.related_model and field.related_model._meta.app_label == "evals"
    }

    assert pointing == set()


def test_only_one_module_imports_the_sdk() -> None:
    importing = {
        m for m, path in ALL.items() if any(n.split(".")[0] == "anthropic" for n in _imports(path))
    }

    assert importing == {"factsheets.bot.providers.anthropic"}


def test_migrations_import_no_project_code() -> None:
    importing = {
        str(path.relative_to(ROOT))
        for package in ("factsheets", "evals")
        for path in (ROOT / package / "migrations").glob("*.py")
        if any(n.split(".")[0] in {"factsheets", "evals"} for n in _imports(path))
    }

    assert importing == set()


def test_nothing_is_marked_safe() -> None:
    marked = {
        str(path.relative_to(ROOT))
        for folder in ("factsheets", "evals", "templates")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".html"}
        and any(word in path.read_text() for word in ("mark_safe(", "|safe", "autoescape off"))
    }

    assert marked == set()


def _packages() -> set[str]:
    """`from package import module` names the package's own names too; those are looked up apart."""
    return {"factsheets", "evals"}
