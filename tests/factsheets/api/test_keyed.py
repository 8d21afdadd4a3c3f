"""Sheets behind a key: there for its holder, and for nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from factsheets import editing, keys, publishing
from factsheets.api import views
from factsheets.models import Sheet
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

#: Every route that reads one sheet, and what it varies by.
ROUTES = {
    "": "Authorization",
    "prompt/": "Accept, Authorization",
    "publications/": "Authorization",
    "publications/1/": "Authorization",
    "publications/1/evidence/": "Authorization",
    f"as-of/{factories.LATER:%Y-%m-%d}/": "Authorization",
}


@pytest.fixture
def castle() -> Sheet:
    """Publication 1 live, and only for holders of a key."""
    sheet = factories.published_sheet("castle")
    set_visibility(sheet, "key")
    return sheet


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: factories.DEMO_DAY)


def set_visibility(sheet: Sheet, visibility: str) -> None:
    editing.change(
        sheet, by=factories.person(), reason="for a test", now=factories.NOON, visibility=visibility
    )


def key_to(sheet: Sheet, *scopes: str) -> keys.Issued:
    return keys.issue(
        sheet=sheet,
        name=f"bot {len(scopes)} {sheet.slug}",
        scopes=scopes or ("read",),
        expires_on=None,
        by=factories.person(),
        now=factories.NOON,
        today=factories.TODAY,
    )


def get(path: str, token: str = "", slug: str = "castle", **headers: str) -> HttpResponse:
    if token:
        headers["authorization"] = f"Bearer {token}"
    return Client().get(f"/api/v1/sheets/{slug}/{path}", headers=headers)


@pytest.mark.parametrize("path", ROUTES)
def test_the_holder_gets_the_same_bytes_and_no_shared_cache_keeps_them(
    castle: Sheet, path: str
) -> None:
    token = key_to(castle).token
    behind = get(path, token)
    set_visibility(castle, "public")

    public = get(path)

    assert (behind.status_code, behind.content) == (200, public.content)
    assert behind["Cache-Control"] == "private, no-cache"
    assert behind["Vary"] == ROUTES[path]
    assert behind["ETag"] == public["ETag"]


@pytest.mark.parametrize("path", ROUTES)
def test_the_holder_who_has_the_bytes_is_told_so(castle: Sheet, path: str) -> None:
    token = key_to(castle).token
    tag = get(path, token)["ETag"]

    again = get(path, token, if_none_match=tag)

    assert again.status_code == 304
    assert (again["Cache-Control"], again["Vary"]) == ("private, no-cache", ROUTES[path])


@pytest.mark.parametrize("path", ROUTES)
def test_for_strangers_there_is_no_such_sheet(castle: Sheet, path: str) -> None:
    tower = key_to(factories.published_sheet("tower")).token
    other, revoked = key_to(castle, "usage", "retrieve").token, key_to(castle)
    keys.revoke(revoked.key, by=factories.person(), now=factories.NOON)
    nothing = get(path, slug="nothing")

    for token in ("", "x", tower, other, revoked.token):
        said = get(path, token)

        assert (said.status_code, said.content) == (404, nothing.content)
        assert said["Vary"] == "Authorization"


def test_what_a_stranger_hears_is_kept_for_strangers_alone(castle: Sheet) -> None:
    assert get("")["Cache-Control"] == "public, max-age=30"
    assert get("", "x")["Cache-Control"] == "private, no-cache"


def test_the_copy_that_public_sheets_are_answered_from_never_has_it(castle: Sheet) -> None:
    token = key_to(castle).token

    found = [get("", token).status_code, get("").status_code, get("", token).status_code]

    assert found == [200, 404, 200]
    assert views._copies == {}


def test_it_stands_in_no_list_for_the_holder_either(castle: Sheet) -> None:
    token = key_to(castle).token

    listed = Client().get("/api/v1/sheets/", headers={"authorization": f"Bearer {token}"})

    assert json.loads(listed.content) == {"sheets": []}


def test_the_holder_hears_that_it_was_withdrawn_and_a_stranger_does_not(castle: Sheet) -> None:
    token = key_to(castle).token
    publishing.withdraw(
        sheet_id=castle.pk, by=factories.person(), reason="Wrong.", now=factories.LATER
    )

    held, strange = get("", token), get("")

    assert (held.status_code, strange.status_code) == (410, 404)
    assert held["Cache-Control"] == "private, no-cache"


def test_an_old_name_leads_the_holder_on_and_nobody_else(castle: Sheet) -> None:
    token = key_to(castle).token
    editing.change(castle, by=factories.person(), reason="x", now=factories.NOON, slug="keep")

    held, strange = get("prompt/", token), get("prompt/")

    assert (held.status_code, held["Location"]) == (308, "/api/v1/sheets/keep/prompt/")
    assert strange.status_code == 404


def test_a_public_sheet_looks_at_no_key(castle: Sheet, django_assert_num_queries: Any) -> None:
    token = key_to(castle).token
    set_visibility(castle, "public")

    with django_assert_num_queries(1):
        with_key = get("", token)
    views.forget_copies()
    without = get("")

    assert {**with_key.headers, "X-Request-ID": ""} == {**without.headers, "X-Request-ID": ""}
    assert "Vary" not in with_key
    castle.api_keys.get().refresh_from_db()
    assert castle.api_keys.get().last_used_on is None


def test_a_poll_behind_a_key_asks_the_database_twice_and_writes_once_a_day(
    castle: Sheet, django_assert_num_queries: Any
) -> None:
    token = key_to(castle).token

    with django_assert_num_queries(3):
        get("", token)
    with django_assert_num_queries(2):
        get("", token)
