"""The route by which bots tell which sections their answers needed."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from factsheets import editing, keys
from factsheets.api.usage import ByAddress
from factsheets.models import ApiKey, Sheet
from tests import factories
from tests.factories import NOON, TODAY

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.usefixtures("quiet")]

NOW = datetime(2026, 6, 10, 15, 30, tzinfo=UTC)
ADDRESS = "/api/v1/sheets/castle/usage/"
GOOD = {"reference": "a-1", "answered_at": "2026-06-10T15:00:00Z", "sections": ["hours"]}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that the route reads, standing still until it is moved."""
    standing = SimpleNamespace(now=NOW)
    monkeypatch.setattr(timezone, "now", lambda: standing.now)
    return standing


@pytest.fixture
def castle() -> Sheet:
    return factories.published_sheet("castle")


def key_to(sheet: Sheet, *scopes: str, **how: Any) -> keys.Issued:
    return keys.issue(
        sheet=sheet,
        name=how.pop("name", "guide bot"),
        scopes=scopes or ("usage",),
        expires_on=how.pop("expires_on", None),
        by=factories.person(),
        now=NOON,
        today=TODAY,
    )


@pytest.fixture
def token(castle: Sheet) -> str:
    return key_to(castle).token


def send(
    body: object,
    token: str = "",
    *,
    address: str = ADDRESS,
    content_type: str = "application/json",
    **headers: str,
) -> HttpResponse:
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    if token:
        headers["authorization"] = f"Bearer {token}"
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    return browser.post(address, data, content_type=content_type, headers=headers)


def answers(*more: dict[str, object]) -> dict[str, object]:
    return {"answers": [GOOD, *more]}


def problem(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(response.content)
    assert (response.status_code, document["code"]) == (status, code), document
    assert response["Content-Type"] == "application/problem+json"
    assert document["detail"].endswith(".")
    assert response["Cache-Control"] == "no-store"
    return document


# ---- counted ----


def test_a_batch_is_counted_and_its_repeat_counts_nothing(castle: Sheet, token: str) -> None:
    batch = answers({**GOOD, "reference": "a-2", "sections": [], "publication": 1})

    first, again = send(batch, token), send(batch, token)

    assert first.content == b'{"recorded":2,"repeated":0}'
    assert again.content == b'{"recorded":0,"repeated":2}'
    assert (first.status_code, first["Content-Type"]) == (200, "application/json")
    assert first["Cache-Control"] == "no-store"
    rows = castle.use.order_by("id").values_list("reference", "sections", "publication", "origin")
    assert list(rows) == [("a-1", ["hours"], None, "posted"), ("a-2", [], 1, "posted")]


def test_each_answer_bears_the_key_that_told_of_it(castle: Sheet, token: str) -> None:
    send(answers(), token)

    key = castle.use.get().key
    assert key is not None
    assert (key.name, key.last_used_on) == ("guide bot", NOW.date())


def test_five_hundred_answers_are_one_batch_and_more_are_refused(
    castle: Sheet, token: str, django_assert_max_num_queries: Any
) -> None:
    many = [{**GOOD, "reference": f"a-{n}"} for n in range(501)]

    too_many = send({"answers": many}, token)
    # SQLite takes a few dozen rows at once.
    with django_assert_max_num_queries(20):
        enough = send({"answers": many[:500]}, token)

    assert "500 answers" in problem(too_many, 413, "too-large")["detail"]
    assert enough.content == b'{"recorded":500,"repeated":0}'


def test_a_sheet_that_is_not_public_or_not_published_counts_too() -> None:
    tower, anna = factories.sheet("tower"), factories.person()
    factories.section(tower)
    editing.change(tower, by=anna, reason="For us.", now=NOON, visibility="key")

    response = send(answers(), key_to(tower).token, address="/api/v1/sheets/tower/usage/")

    assert response.status_code == 200


def test_an_old_name_leads_the_holder_of_a_key_on(castle: Sheet, token: str) -> None:
    editing.change(castle, by=factories.person(), reason="Renamed.", now=NOON, slug="keep")

    response = send(answers(), token)

    problem(response, 308, "renamed")
    assert response["Location"] == "/api/v1/sheets/keep/usage/"
    assert send(answers(), token, address=response["Location"]).status_code == 200


# ---- whose key ----


def test_without_a_key_one_is_asked_for(castle: Sheet) -> None:
    response = send(answers())

    problem(response, 401, "key-refused")
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer", "Bearer x", "Basic {}", "{}", "Bearer  {}x"])
def test_anything_but_a_key_is_none(castle: Sheet, token: str, header: str) -> None:
    problem(send(answers(), authorization=header.format(token)), 401, "key-refused")


def test_a_revoked_or_expired_key_is_none(castle: Sheet) -> None:
    revoked, expired = key_to(castle), key_to(castle, name="old bot", expires_on=TODAY)
    keys.revoke(revoked.key, by=factories.person(), now=NOON)

    for issued in (revoked, expired):
        problem(send(answers(), issued.token), 401, "key-refused")

    assert not castle.use.exists()


def test_a_key_for_something_else_is_forbidden(castle: Sheet) -> None:
    document = problem(send(answers(), key_to(castle, "read").token), 403, "scope-refused")

    assert "usage" in document["detail"]


def test_a_key_to_another_sheet_hears_what_it_would_of_none(castle: Sheet) -> None:
    token = key_to(factories.sheet("tower")).token

    said = {
        json.dumps(problem(send(answers(), token, address=address), 404, "not-found"))
        for address in (ADDRESS, "/api/v1/sheets/nothing/usage/")
    }

    assert len(said) == 1


def test_without_a_key_nothing_is_said_of_which_sheets_there_are(castle: Sheet) -> None:
    there, not_there = send(answers()), send(answers(), address="/api/v1/sheets/nothing/usage/")

    assert there.content == not_there.content
    assert there.status_code == not_there.status_code == 401


def test_a_log_in_is_not_looked_at(castle: Sheet) -> None:
    browser = Client()
    browser.force_login(factories.person("root", superuser=True))

    response = browser.post(ADDRESS, json.dumps(answers()), content_type="application/json")

    problem(response, 401, "key-refused")
    assert "Set-Cookie" not in response


# ---- what cannot be counted ----


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"reference": 7}, "reference"),
        ({"reference": "a b"}, "reference"),
        ({"reference": "half \ud800"}, "reference"),
        ({"reference": "a\0"}, "reference"),
        ({"sections": "hours"}, "sections"),
        ({"sections": [1]}, "sections"),
        ({"sections": ["cats"]}, "sections"),
        ({"sections": ["\ud800"]}, "sections"),
        ({"sections": ["hours"] * 101}, "sections"),
        ({"publication": 2}, "publication"),
        ({"publication": True}, "publication"),
        ({"publication": "1"}, "publication"),
        ({"publication": 10**40}, "publication"),
        ({"answered_at": None}, "answered_at"),
        ({"answered_at": "2026-06-10"}, "answered_at"),
        ({"answered_at": "2026-06-10T15:00:00"}, "answered_at"),
        ({"answered_at": "2026-02-30T15:00:00Z"}, "answered_at"),
        ({"answered_at": "0001-01-01T00:00:00+23:59"}, "answered_at"),
        ({"answered_at": "2026-06-10T15:36:00Z"}, "answered_at"),
        ({"question": "Who asked?"}, "'question'"),
    ],
)
def test_an_answer_at_fault_is_named_with_its_field_and_nothing_is_recorded(
    castle: Sheet, token: str, change: dict[str, object], field: str
) -> None:
    response = send(answers({**GOOD, "reference": "a-2", **change}), token)

    document = problem(response, 422, "usage-refused")
    assert (document["item"], document["field"]) == (1, field)
    assert document["detail"].startswith(f"answers[1].{field}: ")
    assert not castle.use.exists()


@pytest.mark.parametrize("field", ["reference", "answered_at", "sections"])
def test_a_field_that_is_missing_is_named(castle: Sheet, token: str, field: str) -> None:
    answer = {name: value for name, value in GOOD.items() if name != field}

    assert problem(send({"answers": [answer]}, token), 422, "usage-refused")["field"] == field


def test_a_clock_five_minutes_ahead_is_believed(castle: Sheet, token: str) -> None:
    response = send({"answers": [{**GOOD, "answered_at": "2026-06-10T15:35:00Z"}]}, token)

    assert response.status_code == 200


def test_a_reference_with_other_sections_is_a_conflict_and_named(castle: Sheet, token: str) -> None:
    send(answers(), token)

    document = problem(
        send({"answers": [{**GOOD, "reference": "a-2"}, {**GOOD, "sections": []}]}, token),
        409,
        "reference-taken",
    )

    assert (document["item"], document["field"]) == (1, "reference")
    assert castle.use.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        b" ",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"answers": {}}',
        b'{"answers": []}',
        b'{"answers": [], "more": 1}',
        b"[" * 100_000,
        b'{"answers": ' + b"9" * 5_000 + b"}",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_no_batch_is_told_so(castle: Sheet, token: str, body: bytes) -> None:
    problem(send(body, token), 400, "bad-json")


def test_an_answer_that_is_no_object_is_named(castle: Sheet, token: str) -> None:
    assert problem(send({"answers": [7]}, token), 422, "usage-refused")["item"] == 0


def test_more_than_a_megabyte_is_too_much(castle: Sheet, token: str) -> None:
    problem(send(b" " * 1_000_001, token), 413, "too-large")


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_anything_but_json_is_refused(castle: Sheet, token: str, content_type: str) -> None:
    response = send(b'{"answers": []}', token, content_type=content_type)

    assert "application/json" in problem(response, 415, "unsupported-media-type")["detail"]


def test_a_query_parameter_is_refused(castle: Sheet, token: str) -> None:
    problem(send(answers(), token, address=f"{ADDRESS}?dry=1"), 400, "unknown-parameter")


@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete"])
def test_no_other_method_is_known(castle: Sheet, method: str) -> None:
    response = getattr(Client(), method)(ADDRESS)

    assert response.status_code == 405
    assert response["Allow"] == "POST, OPTIONS"
    assert response["Cache-Control"] == "no-store"


def test_no_page_of_another_origin_may_send(castle: Sheet) -> None:
    response = Client().options(ADDRESS, headers={"origin": "https://elsewhere.example"})

    assert response.status_code == 204
    assert "Access-Control-Allow-Methods" not in response


def test_too_many_batches_from_one_address_wait(
    castle: Sheet, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ByAddress, "THROTTLE_RATES", {"usage": "2/min"})

    said = [send(answers(), token) for _ in range(3)]

    assert [response.status_code for response in said] == [200, 200, 429]
    problem(said[2], 429, "throttled")
    assert 1 <= int(said[2]["Retry-After"]) <= 60


# ---- what stands in the logs ----


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """All that any logger says, at the finest level."""
    logging.disable(logging.NOTSET)
    out, root = io.StringIO(), logging.getLogger()
    handler, before = logging.StreamHandler(out), root.level
    handler.setLevel(logging.DEBUG)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield out
    root.removeHandler(handler)
    root.setLevel(before)


def test_no_log_holds_a_key_or_a_reference(
    castle: Sheet, token: str, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = {**GOOD, "reference": "zq-reference", "sections": ["cats"]}

    send(answers(), token)
    send({"answers": [fault]}, token)
    send(answers(), token[:-1])
    monkeypatch.setattr(ApiKey, "is_open_on", lambda *_: 1 / 0)
    broken = send(answers(), token)

    written = lines.getvalue()
    assert broken.status_code == 500
    assert "ZeroDivisionError" in written
    assert token.rpartition("_")[2][:20] not in written
    assert "zq-reference" not in written


def test_an_answer_of_another_day_counts_on_its_own(castle: Sheet, token: str) -> None:
    moment = (NOW - timedelta(days=3)).isoformat()

    send({"answers": [{**GOOD, "answered_at": moment}]}, token)

    assert castle.use.get().answered_at == NOW - timedelta(days=3)
