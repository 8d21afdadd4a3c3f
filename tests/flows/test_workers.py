"""Real workers, a real broker: duplicates, kill -9, and a gate that never opens on a gap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.product import Product, until
from tests.model_api import ModelApi, Step

pytestmark = [pytest.mark.services, pytest.mark.database]

SLUG = "small"
PROBES = 12

SHEET = """
sheet: {slug: small, title: Small sheet, language: en-GB, description: ''}
sources: []
sections:
- {key: hours, heading: Hours, question: When?, body: Open at ten., note: '', checked_on: '', citations: []}
"""
RULES = """
sheet: small
rules:
- {key: only, kind: refusal, text: Answer only from the sheet.}
"""


@pytest.fixture(scope="module")
def sheet(product: Product, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("small")
    (folder / "sheet.yaml").write_text(SHEET)
    (folder / "rules.yaml").write_text(RULES)
    probes = [
        {
            "key": f"p{i:02}",
            "category": "control",
            "turns": [f"Question {i}?"],
            "must": "answer",
            "must_contain_any": ["ten"],
        }
        for i in range(PROBES)
    ]
    (folder / "probes.yaml").write_text(
        "sheet: small\nsuite: {slug: small-safety, title: Small}\nprobes: " + json.dumps(probes)
    )
    answer = product.command("import_sheet", str(folder))
    assert answer.code == 0, answer.err
    code = (
        "from factsheets.commands import import_account; from factsheets import editing; "
        "from django.utils import timezone; from factsheets.models import *; "
        "now = timezone.now(); by = import_account(); s = Sheet.objects.get(slug='small')\n"
        "from factsheets.models.tracking import change_set\n"
        "with change_set(by=by, reason='a model', now=now):\n"
        "    bot = BotProfile(slug='model', provider='anthropic', model='claude-haiku-5-5'); bot.save()\n"
        "editing.change(s, by=by, reason='a model', now=now, bot=bot)"
    )
    changed = product.command("shell", "-v", "0", "--no-imports", "-c", code)
    assert changed.code == 0, changed.err
    return SLUG


def _state(product: Product) -> dict[str, object]:
    found: dict[str, object] = product.rows(
        "(lambda r: {'state': r.state, 'outcome': r.outcome, 'planned': r.planned, "
        "'outcomes': [a.outcome for a in r.attempts.all()], 'tries': [a.tries for a in r.attempts.all()], "
        "'turns': [a.turns.count() for a in r.attempts.all()], "
        "'verdicts': [a.verdicts.count() for a in r.attempts.all()], "
        "'spends': r.spends.count(), 'unfinished': r.spends.filter(finished_at=None).count()})"
        "(Run.objects.order_by('-started_at').first())"
    )
    return found


def _closed(product: Product) -> dict[str, object]:
    def look() -> dict[str, object] | None:
        state = _state(product)
        return state if state["state"] == "closed" else None

    return until(look, what="the end of the run", patience=120)


def test_a_killed_worker_leaves_no_gap_and_a_repeated_call_shows_as_spent(
    product: Product, sheet: str, model_api: ModelApi
) -> None:
    calls = len(model_api.calls)
    # Three calls that are still under way when the worker is killed, however busy the machine.
    model_api.script(*[Step(text="We open at ten.", delay=2.9) for _ in range(3)])
    model_api.responder = lambda body: "We open at ten."
    assert product.command("run_probes", sheet).code == 0
    until(lambda: len(model_api.calls) - calls >= 3, what="calls under way")

    product.kill("worker")
    product.spawn_worker()
    state = _closed(product)

    assert state["outcome"] == "passed"
    assert state["outcomes"] == ["pass"] * PROBES
    assert state["turns"] == state["verdicts"] == [1] * PROBES
    assert state["unfinished"] >= 1
    assert state["spends"] == PROBES + state["unfinished"]
    # A worker killed between booking a call and making it leaves a booking alone.
    assert PROBES < len(model_api.calls) - calls <= state["spends"]


def test_a_task_delivered_three_times_is_one_attempt(
    product: Product, sheet: str, model_api: ModelApi
) -> None:
    calls = len(model_api.calls)
    model_api.responder = lambda body: "We open at ten."
    product.kill("worker")
    assert product.command("run_probes", sheet).code == 0
    code = (
        "from evals.models import *; from evals.tasks import run_attempt; "
        "r = Run.objects.order_by('-started_at').first()\n"
        "for a in list(r.attempts.all()) * 3: run_attempt.delay(attempt_id=str(a.id))"
    )
    sent = product.command("shell", "-v", "0", "--no-imports", "-c", code)
    assert sent.code == 0, sent.err

    product.spawn_worker()
    state = _closed(product)

    assert state["outcome"] == "passed"
    assert state["tries"] == [1] * PROBES
    assert state["turns"] == state["verdicts"] == [1] * PROBES
    assert len(model_api.calls) - calls == PROBES


def test_a_model_that_is_away_leaves_the_run_incomplete_and_the_gate_closed(
    product: Product, sheet: str, model_api: ModelApi
) -> None:
    bad = {"type": "invalid_request_error", "status": 400, "message": "No such model."}
    model_api.script(Step(**bad))  # type: ignore[arg-type]
    rule = (
        "from factsheets.commands import import_account; from factsheets import editing; "
        "from django.utils import timezone; from factsheets.models import *; "
        "editing.change(Rule.objects.get(key='only', ruleset__sheet_links__sheet__slug='small'), "
        "by=import_account(), reason='new', now=timezone.now(), text='Answer from the sheet alone.')"
    )
    assert product.command("shell", "-v", "0", "--no-imports", "-c", rule).code == 0

    answer = product.command("run_probes", sheet, "--wait")

    gate = product.command("gate", sheet)
    assert answer.code == 2
    assert "1 error" in answer.out
    assert gate.code == 1
    assert "rules-not-probed" in gate.out
