"""Keys of programs: shown once, kept as a hash, revoked for good."""

from __future__ import annotations

import hashlib
import re
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from factsheets import delivery, keys
from factsheets.keys import Issued, KeyNotMade, KeyRefused, ScopeRefused
from factsheets.models import ApiKey, Sheet
from tests import factories
from tests.factories import LATER, NOON, TODAY

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def castle() -> Sheet:
    return factories.sheet("castle")


def issue(sheet: Sheet, **how: Any) -> Issued:
    return keys.issue(
        sheet=sheet,
        **{
            "name": "guide bot",
            "scopes": ["usage"],
            "expires_on": None,
            "by": factories.person(),
            "now": NOON,
            "today": TODAY,
            **how,
        },
    )


def find(token: str, sheet: Sheet | None, *, scope: str = "usage", today: date = TODAY) -> ApiKey:
    return keys.find(token, scope=scope, sheet=sheet, today=today)


def test_a_key_is_found_by_what_was_shown_of_it(castle: Sheet) -> None:
    issued = issue(castle)

    assert re.fullmatch(rf"mun_{issued.key.prefix}_[0-9a-f]{{64}}", issued.token)
    assert find(issued.token, castle) == issued.key


def test_the_database_holds_the_hash_of_the_secret_and_not_the_secret(castle: Sheet) -> None:
    issued = issue(castle)
    secret = issued.token.rpartition("_")[2]

    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM factsheets_apikey")
        stored = repr(cursor.fetchall())

    assert secret not in stored
    assert hashlib.sha256(secret.encode()).hexdigest() in stored
    assert secret not in repr(issued)


def test_two_keys_have_nothing_in_common(castle: Sheet) -> None:
    one, other = issue(castle), issue(castle, name="other bot")

    assert not set(one.token.split("_")[1:]) & set(other.token.split("_")[1:])


@pytest.mark.parametrize(
    "change",
    [
        lambda token: "",
        lambda token: token[:-1],
        lambda token: token + "0",
        lambda token: token.upper(),
        lambda token: f"{token[:-64]}{'0' * 64}",
        lambda token: f"mun_00000000_{token[-64:]}",
        lambda token: token.replace("mun_", "key_"),
        lambda token: token[-64:],
        lambda token: f"{token}\n",
        lambda token: "mun_\0_é",
    ],
)
def test_anything_but_the_very_key_opens_nothing(castle: Sheet, change: Any) -> None:
    token = change(issue(castle).token)

    with pytest.raises(KeyRefused):
        find(token, castle)


def test_a_revoked_key_opens_nothing_and_stays_revoked(castle: Sheet) -> None:
    issued, anna, ben = issue(castle), factories.person(), factories.person("ben")

    keys.revoke(issued.key, by=anna, now=LATER)
    keys.revoke(issued.key, by=ben, now=LATER + timedelta(days=1))

    with pytest.raises(KeyRefused):
        find(issued.token, castle)
    issued.key.refresh_from_db()
    assert (issued.key.revoked_at, issued.key.revoked_by) == (LATER, anna)


def test_a_key_opens_on_its_last_day_and_not_on_the_next(castle: Sheet) -> None:
    issued = issue(castle, expires_on=TODAY)

    assert find(issued.token, castle, today=TODAY)
    with pytest.raises(KeyRefused):
        find(issued.token, castle, today=TODAY + timedelta(days=1))


def test_a_key_opens_what_it_was_made_for_and_nothing_else(castle: Sheet) -> None:
    issued = issue(castle, scopes=["retrieve", "read"])

    assert issued.key.scopes == ["read", "retrieve"]
    assert find(issued.token, castle, scope="read")
    with pytest.raises(ScopeRefused, match="usage"):
        find(issued.token, castle, scope="usage")


def test_a_key_to_one_sheet_does_not_say_whether_there_is_another(castle: Sheet) -> None:
    token, tower = issue(castle).token, factories.sheet("tower")

    said = set()
    for sheet in (tower, None):
        with pytest.raises(delivery.NotFound) as refused:
            find(token, sheet)
        said.add(refused.value.sentence)

    assert len(said) == 1


def test_use_is_noted_by_the_day_and_once_a_day(
    castle: Sheet, django_assert_num_queries: Any
) -> None:
    issued = issue(castle)

    find(issued.token, castle)
    with django_assert_num_queries(1):
        find(issued.token, castle)
    find(issued.token, castle, today=TODAY + timedelta(days=1))

    issued.key.refresh_from_db()
    assert issued.key.last_used_on == TODAY + timedelta(days=1)


def test_a_key_that_is_refused_is_not_used(castle: Sheet) -> None:
    issued = issue(castle)

    with pytest.raises(ScopeRefused):
        find(issued.token, castle, scope="read")

    issued.key.refresh_from_db()
    assert issued.key.last_used_on is None


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"name": " "}, "Name the bot"),
        ({"name": "x" * 101}, "Name the bot"),
        ({"scopes": []}, "Choose what the key opens"),
        ({"scopes": ["write"]}, "Choose what the key opens"),
        ({"expires_on": TODAY - timedelta(days=1)}, "has passed"),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(
    castle: Sheet, how: dict[str, Any], says: str
) -> None:
    with pytest.raises(KeyNotMade, match=says):
        issue(castle, **how)

    assert not ApiKey.objects.exists()


def test_a_name_is_free_again_once_its_key_is_revoked(castle: Sheet) -> None:
    first = issue(castle)

    with pytest.raises(KeyNotMade, match="in use"):
        issue(castle)
    keys.revoke(first.key, by=factories.person(), now=LATER)

    assert issue(castle).key.name == "guide bot"


@pytest.mark.parametrize(
    "change",
    [
        "key_hash = 'x'",
        "prefix = 'x'",
        "name = 'x'",
        "scopes = '[\"read\"]'",
        "expires_on = '2099-01-01'",
        "sheet_id = 0",
    ],
)
def test_the_database_lets_nobody_make_another_key_of_one(castle: Sheet, change: str) -> None:
    issue(castle)

    with pytest.raises(IntegrityError, match="what it was made for"), transaction.atomic():
        _sql(f"UPDATE factsheets_apikey SET {change}")


def test_the_database_lets_nobody_take_up_a_revoked_key_or_delete_one(castle: Sheet) -> None:
    keys.revoke(issue(castle).key, by=factories.person(), now=LATER)

    for statement in (
        "UPDATE factsheets_apikey SET revoked_at = NULL, revoked_by_id = NULL",
        "DELETE FROM factsheets_apikey",
    ):
        with (
            pytest.raises(IntegrityError, match=r"stays revoked|never deleted"),
            transaction.atomic(),
        ):
            _sql(statement)


def _sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
