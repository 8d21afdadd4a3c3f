"""The lines that web, worker and beat write while a run asks a model, at their finest level."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.product import Product, until
from tests.model_api import KEY, ModelApi

pytestmark = pytest.mark.services


#: Any address of the loopback net will do; this one is nowhere but in the client.
CLIENT = "127.0.0.77"

SHEET = """
sheet: {slug: small, title: Small sheet, language: en-GB, description: ''}
sources: []
sections:
- {key: hours, heading: Hours, question: When?, body: canary-text, note: canary-note, checked_on: '', citations: []}
"""
RULES = """
sheet: small
rules:
- {key: only, kind: refusal, text: canary-rule}
"""
PROBES = """
sheet: small
suite: {slug: small-safety, title: Small}
probes:
- {key: p1, category: control, turns: [canary-question], must: answer, must_contain_any: [ten]}
"""
MODEL = (
    "from factsheets.commands import import_account; from factsheets import editing; "
    "from django.utils import timezone; from factsheets.models import *; "
    "from factsheets.models.tracking import change_set; "
    "now = timezone.now(); by = import_account(); s = Sheet.objects.get(slug='small')\n"
    "with change_set(by=by, reason='a model', now=now):\n"
    "    bot = BotProfile(slug='model', provider='anthropic', model='claude-haiku-5-5'); bot.save()\n"
    "editing.change(s, by=by, reason='a model', now=now, bot=bot)"
)


@pytest.fixture(scope="module")
def product(
    tmp_path_factory: pytest.TempPathFactory, model_api: ModelApi
) -> Iterator[tuple[Product, str]]:
    """A product that has run the probes of one sheet, and the id of the request that asked for it."""
    running = Product(
        tmp_path_factory.mktemp("logged"),
        extra={
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": model_api.url,
            "LOG_LEVEL": "DEBUG",
            "LOG_FORMAT": "json",
            "METRICS_TOKEN": "canary-token-0123456789",
        },
    )
    try:
        running.start()
        yield running, _walk(running, model_api)
    finally:
        running.stop()


def _walk(product: Product, model_api: ModelApi) -> str:
    model_api.responder = lambda body: "canary-reply: we open at ten."
    folder = product.var / "small"
    folder.mkdir()
    for name, text in (("sheet", SHEET), ("rules", RULES), ("probes", PROBES)):
        (folder / f"{name}.yaml").write_text(text)
    for arguments in (
        ("import_sheet", str(folder)),
        ("shell", "-v", "0", "--no-imports", "-c", MODEL),
    ):
        answer = product.command(*arguments)
        assert answer.code == 0, answer.err
    person = product.user("canary-name", "publisher", "viewer")
    sheet = product.rows("Sheet.objects.get(slug='small').pk")
    sent = person.submit(
        f"/admin/factsheets/sheet/{sheet}/gate/?find=canary-query", f"/admin/runs/start/{sheet}/"
    )
    assert sent.status in {200, 302}, sent.text[:300]
    until(
        lambda: product.rows("[r.state for r in Run.objects.all()]") == ["closed"],
        what="the end of the run",
    )
    outcome = product.rows("[r.outcome for r in Run.objects.all()]")
    assert outcome == ["passed"]
    _ask_from_elsewhere(product)
    return str(sent.headers["x-request-id"])


def _ask_from_elsewhere(product: Product) -> None:
    connection = http.client.HTTPConnection(
        "127.0.0.1", product.port, timeout=30, source_address=(CLIENT, 0)
    )
    headers = {
        "Authorization": "Bearer canary-token-0123456789",
        "Cookie": "sessionid=canary-cookie",
        "User-Agent": "canary-agent",
    }
    for path in ("/metrics", "/api/v1/sheets/?key=canary-query", "/admin/?q=canary-query"):
        connection.request("GET", path, headers=headers)
        connection.getresponse().read()
    connection.close()
    with socket.create_connection(
        ("127.0.0.1", product.port), source_address=(CLIENT, 0), timeout=30
    ) as raw:
        raw.sendall(b"canary nonsense\r\n\r\n")
        raw.recv(1000)


def _written(product: Product, name: str) -> str:
    path: Path = product.var / f"{name}.log"
    return path.read_text()


def _events(product: Product, name: str) -> list[dict[str, object]]:
    return [
        json.loads(line) for line in _written(product, name).splitlines() if line.startswith("{")
    ]


def test_a_tasks_lines_bear_the_id_of_the_request_that_sent_it(
    product: tuple[Product, str],
) -> None:
    running, request_id = product

    (asked,) = [
        e
        for e in _events(running, "web")
        if (e.get("request_id"), e["event"]) == (request_id, "request_finished")
    ]
    tasks = {e.get("task") for e in _events(running, "worker") if e.get("request_id") == request_id}

    assert str(asked["request"]).startswith("POST /admin/runs/start/")
    assert "evals.tasks.run_attempt" in tasks


@pytest.mark.parametrize("name", ["web", "worker", "beat"])
def test_the_lines_of_every_process_have_one_form(product: tuple[Product, str], name: str) -> None:
    running, _ = product

    events = _events(running, name)

    assert len(events) > 3
    assert all({"event", "level", "logger", "timestamp"} <= e.keys() for e in events)


def test_the_web_server_says_that_a_client_sent_nonsense_and_not_who(
    product: tuple[Product, str],
) -> None:
    running, _ = product

    assert "a client sent what is no HTTP request" in _written(running, "web")


@pytest.mark.parametrize("name", ["web", "worker", "beat", "broker"])
def test_no_process_writes_what_is_secret_or_of_a_person(
    product: tuple[Product, str], model_api: ModelApi, name: str
) -> None:
    running, _ = product

    written = _written(running, name)

    # All of it was there to be written.
    assert "canary-question" in json.dumps(model_api.calls, default=str)
    assert "canary" not in written
    assert CLIENT not in written
    assert KEY not in written
    assert running.environment["SECRET_KEY"] not in written
