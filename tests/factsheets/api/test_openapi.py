"""The description of the API: it is what the code says, whole, and true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command

from factsheets.api.urls import urlpatterns

FILE = Path(__file__).resolve().parents[3] / "docs" / "openapi.yaml"


@pytest.fixture
def described() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return document


def responses(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Address, status and description of every answer."""
    return [
        (path, status, answer)
        for path, methods in described["paths"].items()
        for operation in methods.values()
        for status, answer in operation["responses"].items()
    ]


def test_the_description_is_what_the_code_says_now(tmp_path: Path) -> None:
    generated = tmp_path / "openapi.yaml"

    call_command("spectacular", file=str(generated), validate=True, fail_on_warn=True)

    assert FILE.read_text() == generated.read_text(), "Run `make openapi`."


def test_every_route_is_described(described: dict[str, Any]) -> None:
    routes = {f"/api/v1/{re.sub(r'<\w+:(\w+)>', r'{\1}', str(p.pattern))}" for p in urlpatterns}

    found = set(described["paths"])

    assert found == routes


#: The routes that take something.
USAGE = "/api/v1/sheets/{slug}/usage/"
RETRIEVE = "/api/v1/sheets/{slug}/retrieve/"
RETRIEVE_FROM_SEVERAL = "/api/v1/retrieve/"


def test_every_route_can_only_be_read_but_those_that_take_something(
    described: dict[str, Any],
) -> None:
    methods = {path: set(operations) for path, operations in described["paths"].items()}

    taken = {methods.pop(path).pop() for path in (USAGE, RETRIEVE, RETRIEVE_FROM_SEVERAL)}
    assert taken == {"post"}
    assert all(found == {"get"} for found in methods.values()), methods


def test_nothing_asks_for_a_log_in_and_only_what_is_sent_for_a_key(
    described: dict[str, Any],
) -> None:
    asked = {
        path: operation["security"]
        for path, methods in described["paths"].items()
        for operation in methods.values()
    }

    assert asked.pop(USAGE) == [{"key": []}]
    assert set(map(str, asked.values())) == {"[{}]"}
    assert described["components"]["securitySchemes"] == {
        "key": {"type": "http", "scheme": "bearer"}
    }


def test_no_parameter_is_described_that_the_api_refuses(described: dict[str, Any]) -> None:
    parameters = [
        (path, parameter["name"])
        for path, methods in described["paths"].items()
        for operation in methods.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query"
    ]

    assert parameters == []


def test_every_refusal_is_described_as_a_problem_document(described: dict[str, Any]) -> None:
    kinds = {
        (path, status): set(answer["content"])
        for path, status, answer in responses(described)
        if status.startswith(("4", "5"))
    }

    assert kinds
    assert {
        key: found for key, found in kinds.items() if found != {"application/problem+json"}
    } == {}


def test_every_sheet_route_describes_what_unknown_withdrawn_and_odd_requests_get(
    described: dict[str, Any],
) -> None:
    statuses: dict[str, set[str]] = {}
    for path, status, _ in responses(described):
        statuses.setdefault(path, set()).add(status)

    usage = statuses.pop(USAGE)
    of_sheets = {path: found for path, found in statuses.items() if "{slug}" in path}

    assert usage == {"200", "400", "401", "403", "404", "409", "413", "415", "422", "429"}
    assert of_sheets
    assert all({"200", "400", "404", "410"} <= found for found in of_sheets.values()), of_sheets


def test_the_prompt_is_described_in_both_its_forms(described: dict[str, Any]) -> None:
    answer = described["paths"]["/api/v1/sheets/{slug}/prompt/"]["get"]["responses"]["200"]

    assert set(answer["content"]) == {"text/plain", "application/json"}
