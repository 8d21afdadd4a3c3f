"""The page of a sheet's keys: made, shown once, revoked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from factsheets import keys
from factsheets.models import ApiKey, Sheet
from tests import factories
from tests.factories import NOON, TODAY
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

WANTED: dict[str, Any] = {"name": "guide bot", "scopes": ["usage", "read"]}


@pytest.fixture
def castle() -> Sheet:
    return factories.published_sheet("castle")


def browser(*roles: str) -> Client:
    client = Client()
    client.force_login(
        factories.person("paula", *roles), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def make(client: Client, sheet: Sheet, **form: Any) -> HttpResponse:
    return client.post(reverse("admin:sheet_keys", args=[sheet.pk]), {**WANTED, **form})


def look(client: Client, sheet: Sheet) -> Page:
    return Page(client.get(reverse("admin:sheet_keys", args=[sheet.pk])))


def shown(response: HttpResponse) -> str:
    found = re.search(r"mun_[0-9a-f]{8}_[0-9a-f]{64}", response.content.decode())
    return found[0] if found else ""


@pytest.mark.parametrize("role", ["publisher", "maintainer"])
def test_a_key_is_made_and_opens_what_was_ticked(castle: Sheet, role: str) -> None:
    response = make(browser(role), castle, expires_on="2999-12-31")

    key = castle.api_keys.get()
    assert keys.find(shown(response), scope="usage", sheet=castle, today=TODAY) == key
    assert (key.name, key.scopes, str(key.expires_on)) == (
        "guide bot",
        ["read", "usage"],
        "2999-12-31",
    )
    assert "no-store" in response["Cache-Control"]


def test_a_secret_is_shown_once_and_lies_nowhere_afterwards(castle: Sheet) -> None:
    client = browser("publisher")
    secret = shown(make(client, castle)).rpartition("_")[2]

    again = look(client, castle)
    others = [look(browser("viewer"), castle), look(browser("maintainer"), castle)]

    assert len(secret) == 64
    assert all(secret not in page.text for page in (again, *others))
    assert all(castle.api_keys.get().prefix in page.text for page in (again, *others))
    assert secret not in repr([s.get_decoded() for s in Session.objects.all()])
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            assert secret not in repr(cursor.fetchall()), table


def test_sending_the_form_again_makes_no_second_key(castle: Sheet) -> None:
    client = browser("publisher")
    make(client, castle)

    again = make(client, castle)

    assert "A key of the name guide bot is in use" in Page(again).text
    assert shown(again) == ""
    assert castle.api_keys.count() == 1


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"name": ""}, "Name the bot"),
        ({"scopes": []}, "Choose what the key opens"),
        ({"scopes": ["write"]}, "Select a valid choice"),
        ({"expires_on": "soon"}, "Choose a day"),
        ({"expires_on": "2020-01-01"}, "has passed"),
    ],
)
def test_a_form_that_makes_no_sense_is_told_so(
    castle: Sheet, form: dict[str, Any], says: str
) -> None:
    response = make(browser("publisher"), castle, **form)

    assert says in Page(response).text
    assert not ApiKey.objects.exists()


def test_a_revoked_key_stays_in_the_list_with_who_and_when(castle: Sheet) -> None:
    client = browser("publisher")
    make(client, castle)

    client.post(
        reverse("admin:sheet_revoke_key", args=[castle.pk]), {"key": castle.api_keys.get().pk}
    )

    assert castle.api_keys.get().revoked_at is not None
    page = look(client, castle)
    assert "by paula" in page.text
    assert "revoked on" in page.text
    assert reverse("admin:sheet_revoke_key", args=[castle.pk]) not in str(page.all("form"))


def test_a_key_of_another_sheet_is_not_revoked_from_here(castle: Sheet) -> None:
    tower = factories.sheet("tower")
    issued = keys.issue(
        sheet=tower,
        name="tower bot",
        scopes=["read"],
        expires_on=None,
        by=factories.person(),
        now=NOON,
        today=TODAY,
    )
    client = browser("publisher")

    response = client.post(
        reverse("admin:sheet_revoke_key", args=[castle.pk]), {"key": issued.key.pk}, follow=True
    )

    assert "There is no such key" in Page(response).text
    issued.key.refresh_from_db()
    assert issued.key.revoked_at is None


@pytest.mark.parametrize("role", ["viewer", "editor", "rule keeper"])
def test_others_see_the_keys_and_make_and_revoke_none(castle: Sheet, role: str) -> None:
    make(browser("publisher"), castle)
    key, client = castle.api_keys.get(), browser(role)

    page = look(client, castle)
    said = [
        make(client, castle, name="mine").status_code,
        client.post(
            reverse("admin:sheet_revoke_key", args=[castle.pk]), {"key": key.pk}
        ).status_code,
    ]

    assert "guide bot" in page.text
    assert "Make a key" not in page.text
    assert "Revoke" not in page.text
    assert said == [403, 403]
    assert castle.api_keys.get().revoked_at is None


def test_the_workbench_leads_to_the_keys_and_to_the_use(castle: Sheet) -> None:
    client = browser("viewer")

    links = Page(client.get(reverse("admin:sheet_workbench", args=[castle.pk]))).links()

    assert {reverse(f"admin:sheet_{name}", args=[castle.pk]) for name in ("keys", "use")} <= {
        *links
    }
