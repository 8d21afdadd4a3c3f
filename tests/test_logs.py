"""What stands in the logs, and above all what does not."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from django.test import Client
from django.urls import reverse

from config import logs
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Everything that the product logs, in the form of a server."""
    formatters = logs.configured(level="DEBUG", form="json")["formatters"]["structured"]
    made = structlog.stdlib.ProcessorFormatter(
        processors=formatters["processors"], foreign_pre_chain=formatters["foreign_pre_chain"]
    )
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(made)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield out
    root.removeHandler(handler)
    root.setLevel(before)


def events(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_request_leaves_one_line_with_the_id_that_its_answer_bears(lines: io.StringIO) -> None:
    response = Client().get("/api/v1/sheets/")

    (line,) = [e for e in events(lines) if e["event"] == "request_finished"]
    assert line["request_id"] == response["X-Request-ID"]
    assert (line["request"], line["code"]) == ("GET /api/v1/sheets/", 200)
    assert isinstance(line["ms"], float)


def test_a_harmless_id_of_the_client_is_kept(lines: io.StringIO) -> None:
    response = Client().get("/api/v1/sheets/", headers={"x-request-id": "proxy-7f3a9c21"})

    (line,) = [e for e in events(lines) if e["event"] == "request_finished"]
    assert (response["X-Request-ID"], line["request_id"]) == ("proxy-7f3a9c21", "proxy-7f3a9c21")


@pytest.mark.parametrize(
    "said",
    ["", "short", "x" * 65, "two words here", "anna@example.org", "'; DROP TABLE", "[31mred[0m"],
)
def test_any_other_id_is_replaced_by_one_of_ours(lines: io.StringIO, said: str) -> None:
    ids = {
        Client().get("/api/v1/sheets/", headers={"x-request-id": said})["X-Request-ID"]
        for _ in range(2)
    }

    assert len(ids) == 2
    assert said not in ids


def test_what_is_secret_or_of_a_person_stands_in_no_line(lines: io.StringIO) -> None:
    sheet = factories.sheet()
    client = Client(headers={"user-agent": "canary-agent"}, REMOTE_ADDR="192.0.2.77")
    client.force_login(factories.person("canary-name", "viewer"))
    past = reverse("admin:sheet_past", args=[sheet.pk])

    client.get(past, {"find": "canary-claim"})
    client.get("/api/v1/sheets/", {"key": "canary-query"})
    client.get("/metrics", headers={"authorization": "Bearer canary-token"})
    client.post(reverse("admin:login"), {"username": "canary-name", "password": "canary-password"})
    client.get("/admin/password-reset/canary-uid/canary-reset/")
    logging.getLogger("factsheets").warning("said", extra={"api_key": "canary-key"})

    written = lines.getvalue()
    assert written.count("request_finished") >= 4
    assert "canary" not in written
    assert "192.0.2.77" not in written


def test_members_with_the_names_of_secrets_are_dropped_whoever_writes_them(
    lines: io.StringIO,
) -> None:
    structlog.get_logger("anybody").warning("asked", prompt="canary", Authorization="canary", n=1)

    (line,) = [e for e in events(lines) if e["event"] == "asked"]
    assert line["n"] == 1
    assert not {"prompt", "Authorization"} & line.keys()


def test_a_request_that_breaks_leaves_its_traceback_under_its_id(
    lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("factsheets.delivery.index", broken)
    response = Client(raise_request_exception=False).get("/api/v1/sheets/")

    failed = [e for e in events(lines) if e["event"] == "request_failed"]
    assert response.status_code == 500
    assert [e["request_id"] for e in failed] == [response["X-Request-ID"]]
    assert "the disk is full" in str(failed[0]["exception"])
