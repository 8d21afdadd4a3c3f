"""What bots got at a moment: the same bytes as then, and the instant that was meant."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from django.utils.http import http_date

from factsheets import canonical, editing, publishing
from factsheets.models import Publication, Sheet
from tests import factories
from tests.factories import LATER, NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

PROBLEM = "application/problem+json"
NEWEST = "public, max-age=30, stale-while-revalidate=300, stale-if-error=36000"
NUMBERED = "public, max-age=86400"
INSTANT = timedelta(microseconds=1)

#: Every test is told on this Monday, nine days after the first publication.
NOW = datetime(2026, 6, 10, 15, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that the routes read, standing still until it is moved."""
    standing = SimpleNamespace(now=NOW)
    monkeypatch.setattr(timezone, "now", lambda: standing.now)
    return standing


@pytest.fixture
def castle() -> Sheet:
    """Publication 1 went live at noon of 1 June."""
    return factories.published_sheet("castle")


def address(moment: datetime | str, slug: str = "castle") -> str:
    text = moment if isinstance(moment, str) else canonical.instant(moment)
    return f"/api/v1/sheets/{slug}/as-of/{text}/"


def ask(
    client: Client, moment: datetime | str, slug: str = "castle", **headers: str
) -> HttpResponse:
    return client.get(address(moment, slug), headers=headers)


def numbered(client: Client, number: int) -> HttpResponse:
    return client.get(f"/api/v1/sheets/castle/publications/{number}/")


def publish_anew(sheet: Sheet, body: str, now: datetime = LATER) -> Publication:
    edit(sheet.sections.get(), body=body)
    return factories.publish(sheet, now=now)


def edit(row: Any, **values: Any) -> None:
    editing.change(row, by=factories.person(), reason="for a test", now=NOON, **values)


def withdraw(sheet: Sheet, now: datetime = LATER) -> None:
    publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="It was wrong.", now=now)


def lasting(response: HttpResponse) -> dict[str, str]:
    """The headers without the one that is new with every request."""
    return {name: value for name, value in response.headers.items() if name != "X-Request-ID"}


def problem(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(response.content)
    assert response.status_code == status
    assert response["Content-Type"] == PROBLEM
    assert (document["status"], document["code"]) == (status, code)
    assert document["detail"].endswith(".")
    assert response["Cache-Control"] == "public, max-age=30"
    return document


# ---- the bytes ----


def test_the_answer_is_byte_for_byte_that_of_the_number_that_was_live(
    client: Client, castle: Sheet
) -> None:
    publish_anew(castle, "The castle opens at ten and closes at six.")

    first, second = ask(client, "2026-06-01"), ask(client, "2026-06-02")

    assert first.content == numbered(client, 1).content == bytes(stored(1).body)
    assert second.content == numbered(client, 2).content == bytes(stored(2).body)
    assert first.content != second.content


def stored(number: int) -> Publication:
    return Publication.objects.get(sheet__slug="castle", number=number)


def test_what_was_edited_since_does_not_show(client: Client, castle: Sheet) -> None:
    before = ask(client, "2026-06-01").content

    edit(castle.sections.get(), body="Draft.")
    edit(castle, title="Draft title")

    assert ask(client, "2026-06-01").content == before


def test_a_publication_is_live_from_its_very_moment(client: Client, castle: Sheet) -> None:
    publish_anew(castle, "The castle opens at ten and closes at six.")

    assert ask(client, LATER - INSTANT)["X-Publication"] == "1"
    assert ask(client, LATER)["X-Publication"] == "2"


def test_a_rollback_is_a_number_of_its_own_from_its_moment(client: Client, castle: Sheet) -> None:
    publish_anew(castle, "The castle opens at ten and closes at six.")
    moment = LATER + timedelta(hours=1)
    publishing.rollback(
        sheet_id=castle.pk,
        to_number=1,
        seen_live_number=2,
        by=factories.person(),
        reason="It was right before.",
        now=moment,
    )

    before, after = ask(client, moment - INSTANT), ask(client, moment)

    assert (before["X-Publication"], after["X-Publication"]) == ("2", "3")
    text = [json.loads(r.content)["content"] for r in (ask(client, NOON), after)]
    assert text[0] == text[1]


def test_two_publications_within_a_second_are_told_apart(client: Client, castle: Sheet) -> None:
    publish_anew(castle, "Second.", LATER + timedelta(milliseconds=200))
    publish_anew(castle, "Third.", LATER + timedelta(milliseconds=700))

    moments = ["12:00:00", "12:00:00.200", "12:00:00.699999", "12:00:00.7", "12:00:01"]
    numbers = [ask(client, f"2026-06-02T{moment}Z")["X-Publication"] for moment in moments]

    assert numbers == ["1", "2", "2", "3", "3"]


def test_of_two_publications_at_the_very_same_moment_the_later_counts(
    client: Client, castle: Sheet
) -> None:
    publish_anew(castle, "Second.")
    publish_anew(castle, "Third.")

    assert ask(client, LATER)["X-Publication"] == "3"
    assert ask(client, LATER - INSTANT)["X-Publication"] == "1"


def test_what_was_taken_back_in_the_moment_of_its_publication_was_not_live(
    client: Client, castle: Sheet
) -> None:
    publish_anew(castle, "Second.")
    withdraw(castle)
    publish_anew(castle, "Third.", LATER + timedelta(hours=1))

    problem(ask(client, LATER), 404, "not-found")


# ---- which instant was meant ----


def test_the_answer_says_the_last_instant_of_the_day_in_the_organisations_zone(
    client: Client, castle: Sheet
) -> None:
    response = ask(client, "2026-06-01")

    assert response["X-As-Of"] == "2026-06-01T22:59:59.999999Z"


@pytest.mark.parametrize(
    ("moment", "instant"),
    [
        ("2026-06-02T12:00:00Z", "2026-06-02T12:00:00.000000Z"),
        ("2026-06-02T12:00:00+02:00", "2026-06-02T10:00:00.000000Z"),
        ("2026-06-02T12:00", "2026-06-02T11:00:00.000000Z"),
        ("2026-06-02%2012:00Z", "2026-06-02T12:00:00.000000Z"),
    ],
)
def test_the_answer_says_the_instant_in_utc(
    client: Client, castle: Sheet, moment: str, instant: str
) -> None:
    assert ask(client, moment)["X-As-Of"] == instant


def test_the_instant_that_is_said_gives_the_same_answer(client: Client, castle: Sheet) -> None:
    by_day = ask(client, "2026-06-02")

    again = ask(client, by_day["X-As-Of"])

    assert again.content == by_day.content
    assert lasting(again) == lasting(by_day)


def test_today_means_up_to_now(client: Client, castle: Sheet) -> None:
    assert ask(client, "2026-06-10")["X-As-Of"] == "2026-06-10T15:30:00.000000Z"


def test_what_is_published_after_midnight_in_the_zone_is_of_the_next_day(
    client: Client, castle: Sheet
) -> None:
    # Half past midnight in London, and still the second of June in UTC.
    publish_anew(castle, "Second.", datetime(2026, 6, 2, 23, 30, tzinfo=UTC))

    assert ask(client, "2026-06-02")["X-Publication"] == "1"
    assert ask(client, "2026-06-03")["X-Publication"] == "2"


def test_a_day_is_one_of_the_organisations_zone(
    client: Client, castle: Sheet, settings: Any
) -> None:
    settings.TIME_ZONE = "Pacific/Kiritimati"

    problem(ask(client, "2026-06-01"), 404, "not-found")
    assert ask(client, "2026-06-02")["X-As-Of"] == "2026-06-02T09:59:59.999999Z"


# ---- validators and caching ----


def test_the_headers_are_those_of_the_number_and_the_instant(client: Client, castle: Sheet) -> None:
    headers, of_the_number = lasting(ask(client, NOON)), lasting(numbered(client, 1))

    assert headers["ETag"] == f'"sha256-{hashlib.sha256(bytes(stored(1).body)).hexdigest()}"'
    assert headers == {**of_the_number, "X-As-Of": "2026-06-01T12:00:00.000000Z"}
    assert headers["Last-Modified"] == http_date(NOON.timestamp())


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_who_has_the_bytes_gets_304_that_says_the_instant(
    client: Client, castle: Sheet, form: str
) -> None:
    whole = ask(client, "2026-06-01")

    response = ask(client, "2026-06-01", if_none_match=form.format(whole["ETag"]))

    same = (
        "ETag",
        "X-As-Of",
        "X-Publication",
        "Cache-Control",
        "Last-Modified",
        "Link",
        "Repr-Digest",
        "Access-Control-Expose-Headers",
    )
    assert response.status_code == 304
    assert response.content == b""
    assert {name: response[name] for name in same} == {name: whole[name] for name in same}


def test_who_has_the_bytes_of_another_moment_gets_these(client: Client, castle: Sheet) -> None:
    publish_anew(castle, "Second.")
    tag = ask(client, "2026-06-01")["ETag"]

    response = ask(client, "2026-06-02", if_none_match=tag)

    assert response.status_code == 200
    assert response.content == bytes(stored(2).body)


def test_head_is_answered_like_get_without_a_body(client: Client, castle: Sheet) -> None:
    whole = ask(client, "2026-06-01")

    response = client.head(address("2026-06-01"))

    assert response.status_code == 200
    assert response.content == b""
    assert lasting(response) == lasting(whole)


def test_options_says_what_a_page_of_another_origin_may_send(client: Client) -> None:
    response = client.options(address("2026-06-01"))

    assert response.status_code == 204
    assert response["Allow"] == "GET, HEAD, OPTIONS"
    assert response["Access-Control-Allow-Origin"] == "*"
    assert "If-None-Match" in response["Access-Control-Allow-Headers"]


def test_a_page_of_another_origin_may_read_the_instant(client: Client, castle: Sheet) -> None:
    response = ask(client, "2026-06-01", origin="https://bot.example")

    assert "X-As-Of" in response["Access-Control-Expose-Headers"]


def test_what_has_passed_may_be_kept_for_long_and_today_may_not(
    client: Client, castle: Sheet
) -> None:
    kept = {day: ask(client, day)["Cache-Control"] for day in ("2026-06-09", "2026-06-10")}

    assert kept == {"2026-06-09": NUMBERED, "2026-06-10": NEWEST}


def test_this_very_instant_may_not_be_kept_for_long(client: Client, castle: Sheet) -> None:
    assert ask(client, NOW)["Cache-Control"] == NEWEST


def test_an_instant_just_gone_may_not_be_kept_for_long(client: Client, castle: Sheet) -> None:
    # A publication of that instant may still be under way and not yet to be seen.
    assert ask(client, NOW - timedelta(seconds=5))["Cache-Control"] == NEWEST
    assert ask(client, NOW - timedelta(hours=1))["Cache-Control"] == NUMBERED


def test_today_is_another_answer_once_something_is_published(
    client: Client, castle: Sheet, clock: SimpleNamespace
) -> None:
    before = ask(client, "2026-06-10")
    clock.now += timedelta(minutes=1)
    publish_anew(castle, "Second.", clock.now)

    after = ask(client, "2026-06-10", if_none_match=before["ETag"])

    assert (before["X-Publication"], after["X-Publication"]) == ("1", "2")
    assert after.status_code == 200


def test_a_logged_in_browser_gets_the_same_answer_without_a_cookie(
    client: Client, castle: Sheet
) -> None:
    public = ask(Client(), "2026-06-01")
    client.force_login(factories.person("root", superuser=True))

    response = ask(client, "2026-06-01")

    assert lasting(response) == lasting(public)
    assert not response.cookies


# ---- nothing was live, or is to be had ----


def test_before_the_first_publication_nothing_was_live(client: Client, castle: Sheet) -> None:
    document = problem(ask(client, NOON - INSTANT), 404, "not-found")

    assert document["detail"] == (
        "Nothing of castle was live at that moment; look at its list of publications."
    )
    problem(ask(client, "2026-05-31"), 404, "not-found")
    problem(ask(client, "0001-01-01"), 404, "not-found")


def test_between_a_withdrawal_and_the_next_publication_nothing_was_live(
    client: Client, castle: Sheet
) -> None:
    again = LATER + timedelta(days=1)
    withdraw(castle)
    publish_anew(castle, "Second.", again)

    problem(ask(client, LATER), 404, "not-found")
    problem(ask(client, again - INSTANT), 404, "not-found")
    assert ask(client, again)["X-Publication"] == "2"


def test_a_number_that_was_withdrawn_while_live_stays_gone_after_the_next(
    client: Client, castle: Sheet
) -> None:
    withdraw(castle)
    publish_anew(castle, "Second.", LATER + timedelta(days=1))

    response = ask(client, LATER - INSTANT)

    document = problem(response, 410, "withdrawn")
    assert document["withdrawn_at"] == "2026-06-02T12:00:00.000000Z"
    assert response.content == numbered(client, 1).content


def test_a_number_that_another_replaced_before_the_withdrawal_is_still_to_be_had(
    client: Client, castle: Sheet
) -> None:
    publish_anew(castle, "Second.")
    withdraw(castle, LATER + timedelta(hours=1))
    publish_anew(castle, "Third.", LATER + timedelta(hours=2))

    assert ask(client, NOON)["X-Publication"] == "1"
    problem(ask(client, LATER), 410, "withdrawn")


def test_of_a_withdrawn_sheet_every_moment_is_gone(client: Client, castle: Sheet) -> None:
    tag = ask(client, NOON)["ETag"]
    withdraw(castle)

    for moment in (NOON - INSTANT, NOON, LATER, LATER + timedelta(days=1), "2026-06-10"):
        document = problem(ask(client, moment, if_none_match=tag), 410, "withdrawn")

        assert "drop every copy" in document["detail"]


def test_an_old_name_leads_to_the_present_one_with_its_moment(
    client: Client, castle: Sheet
) -> None:
    edit(castle, slug="keep")

    response = ask(client, "2026-06-01T13:00:00+01:00")

    problem(response, 308, "renamed")
    assert response["Location"] == "/api/v1/sheets/keep/as-of/2026-06-01T13:00:00+01:00/"
    followed = client.get(response["Location"])
    assert followed["X-As-Of"] == "2026-06-01T12:00:00.000000Z"


def test_an_old_name_with_a_blank_in_its_moment_leads_on_too(client: Client, castle: Sheet) -> None:
    edit(castle, slug="keep")

    location = ask(client, "2026-06-01%2013:00Z")["Location"]

    assert client.get(location).status_code == 200


def test_an_old_name_leads_nowhere_where_the_present_one_has_nothing(
    client: Client, castle: Sheet
) -> None:
    edit(castle, slug="keep")

    problem(ask(client, NOON - INSTANT), 404, "not-found")


def test_what_was_served_under_an_old_name_is_served_with_it_under_the_present_one(
    client: Client, castle: Sheet
) -> None:
    edit(castle, slug="keep")

    response = ask(client, NOON, "keep")

    assert response.content == bytes(Publication.objects.get().body)
    assert json.loads(response.content)["slug"] == "castle"
    assert response["Link"] == '</api/v1/sheets/keep/publications/1/>; rel="permalink"'


def test_unknown_unpublished_and_non_public_sheets_give_the_same_404(
    client: Client, castle: Sheet
) -> None:
    factories.ready_sheet("moat")
    edit(castle, visibility=Sheet.Visibility.KEY)

    answers = [ask(client, "2026-06-01", slug) for slug in ("none", "moat", "castle")]

    for response in answers:
        problem(response, 404, "not-found")
    assert len({response.content for response in answers}) == 1


# ---- what is not understood ----


@pytest.mark.parametrize(
    "moment",
    [
        "yesterday",
        "1",
        "2026-02-29",
        "2026-6-1",
        "20260601",
        "2026-W01-1",
        "2026-06-01T25:00",
        "2026-06-01T12:00:00+99:00",
        "0001-01-01T00:00:00+14:00",
        "0001-01-01T00:00:00Z",
        "%00",
        "%20",
        "%F0%9F%8F%B0",
        "%ff%fe",
        "<script>",
        "9" * 3_000,
    ],
)
def test_nonsense_is_refused_with_an_example(client: Client, castle: Sheet, moment: str) -> None:
    document = problem(ask(client, moment), 400, "moment-refused")

    assert "2026-05-03T14:30:00Z" in document["detail"]


@pytest.mark.parametrize("moment", ["2026-06-11", "2026-06-10T15:30:00.000001Z", "9999-12-31"])
def test_what_is_still_to_come_is_refused(client: Client, castle: Sheet, moment: str) -> None:
    document = problem(ask(client, moment), 400, "moment-refused")

    assert document["detail"] == f"{moment} is still to come; give a day or an instant up to now."


def test_a_moment_with_a_stroke_in_it_is_no_address(client: Client, castle: Sheet) -> None:
    problem(ask(client, "01/06/2026"), 404, "not-found")


def test_a_parameter_is_refused_by_its_name(client: Client, castle: Sheet) -> None:
    response = client.get(address("2026-06-01") + "?zone=UTC")

    document = problem(response, 400, "unknown-parameter")
    assert "zone" in document["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_but_reading_is_allowed(client: Client, castle: Sheet, method: str) -> None:
    response = client.generic(method, address("2026-06-01"), b"{}", content_type="application/json")

    problem(response, 405, "method-not-allowed")
    assert response["Allow"] == "GET, HEAD, OPTIONS"


# ---- what it costs ----


def test_an_answer_takes_four_queries_however_many_events_there_are(
    client: Client, castle: Sheet, django_assert_num_queries: Callable[[int], Any]
) -> None:
    for number in range(12):
        publish_anew(castle, f"Text {number}.", LATER + timedelta(minutes=number))

    with django_assert_num_queries(4):
        response = ask(client, LATER + timedelta(minutes=5))

    assert response["X-Publication"] == "7"


def test_a_moment_that_is_none_costs_no_query(
    client: Client, django_assert_num_queries: Callable[[int], Any]
) -> None:
    with django_assert_num_queries(0):
        response = ask(client, "nonsense")

    problem(response, 400, "moment-refused")
