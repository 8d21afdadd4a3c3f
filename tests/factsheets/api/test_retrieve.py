"""Split delivery over HTTP: the chunks for a question, of one publication, with their reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from factsheets import editing, keys, publishing
from factsheets.api import retrieve
from factsheets.models import Sheet
from tests import factories
from tests.factories import LATER, NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

ADDRESS = "/api/v1/sheets/castle/retrieve/"
ASKED = "When does the castle open in the morning?"


@pytest.fixture(autouse=True)
def _no_copies() -> Iterator[None]:
    retrieve.forget_copies()
    yield
    retrieve.forget_copies()


@pytest.fixture
def castle() -> Sheet:
    of = factories.ready_sheet()
    factories.section(of, "fees", heading="Fees", body="A ticket costs two pounds at the kiosk.")
    factories.passing_run(of)
    factories.publish(of)
    return Sheet.objects.select_related("bot", "state__live_publication").get(pk=of.pk)


def ask(body: object, address: str = ADDRESS, **headers: str) -> HttpResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Client().post(address, data, content_type="application/json", headers=headers)


def read(body: object, **headers: str) -> dict[str, Any]:
    answer = ask(body, **headers)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = json.loads(answer.content)
    return found


def change(row: Any, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=NOON, **values)


def test_a_question_gets_its_chunks_with_their_reasons(castle: Sheet) -> None:
    found = read({"question": ASKED})

    source = found["sources"][0]
    assert (source["number"], source["section"], source["heading"]) == (1, "hours", "Opening hours")
    assert source["text"].startswith("The castle opens at ten")
    assert source["score"] == pytest.approx(sum(source["terms"].values()), abs=1e-3)
    assert (found["grounded"], found["publication"]) == (True, 1)
    assert {word["stem"]: word["found"] for word in found["words"]}["castl"] is True
    assert [each["number"] for each in found["sources"]] == [1, 2]
    assert found["sources"][0]["score"] > found["sources"][1]["score"]
    assert found["turn"].startswith("From the sheet:\n\n[1] Opening hours\n\n")
    assert found["turn"].endswith(f"Question: {ASKED}")


def test_a_question_that_the_sheet_has_too_little_of_gets_none(castle: Sheet) -> None:
    found = read({"question": "Who won the football final yesterday evening?"})

    assert (found["grounded"], found["sources"]) == (False, [])
    assert found["turn"].startswith("Nothing in the sheet was found")


def test_a_question_that_says_too_little_is_looked_up_with_the_one_before(castle: Sheet) -> None:
    alone = read({"question": "And for giraffes?"})
    after = read(
        {"question": "And for giraffes?", "before": "What does a ticket cost at the kiosk?"}
    )

    assert alone["sources"] == []
    assert [source["section"] for source in after["sources"]] == ["fees"]
    assert after["turn"].endswith("Question: And for giraffes?")


def test_chunks_and_hashes_are_of_one_publication_and_never_of_the_draft(castle: Sheet) -> None:
    price = "What does a ticket cost at the kiosk?"
    change(castle.sections.get(key="fees"), body="A ticket costs three pounds at the kiosk.")
    before = read({"question": price})
    factories.passing_run(castle, now=LATER)
    second = factories.publish(castle, now=LATER)
    retrieve.forget_copies()

    after = read({"question": price})
    first_again = read({"question": price, "publication": 1})

    assert "two pounds" in before["sources"][0]["text"]
    assert "three pounds" in after["sources"][0]["text"]
    assert (after["publication"], after["content_hash"]) == (2, second.content_hash)
    assert first_again == before


def test_what_was_withdrawn_is_gone_at_once_but_for_the_copy_of_a_second(castle: Sheet) -> None:
    publishing.withdraw(
        sheet_id=castle.pk, by=factories.person("paula", "publisher"), reason="wrong", now=LATER
    )

    gone = ask({"question": ASKED})

    assert (gone.status_code, json.loads(gone.content)["code"]) == (410, "withdrawn")


def test_a_sheet_behind_a_key_answers_to_a_key_that_retrieves(castle: Sheet) -> None:
    change(castle, visibility="key")
    tokens = {
        scope: keys.issue(
            sheet=castle,
            name=scope,
            scopes=[scope],
            expires_on=None,
            by=factories.person(),
            now=timezone.now(),
            today=timezone.localdate(),
        ).token
        for scope in ("read", "retrieve")
    }

    assert ask({"question": ASKED}).status_code == 404
    assert ask({"question": ASKED}, authorization=f"Bearer {tokens['read']}").status_code == 404
    assert read({"question": ASKED}, authorization=f"Bearer {tokens['retrieve']}")["sources"]
    # What the key opened is not left lying for the next who asks.
    assert ask({"question": ASKED}).status_code == 404


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b" ", "Send JSON"),
        (b"\xff", "Send JSON"),
        (b"[" * 5_000, "Send JSON"),
        ([], "Send an object"),
        ({}, "Send an object"),
        ({"question": ASKED, "limit": 3}, "Send an object"),
        ({"question": ""}, "must say something"),
        ({"question": " \n "}, "must say something"),
        ({"question": 3}, "must be a text"),
        ({"question": "x" * 1_001}, "must be a text of at most 1,000"),
        ({"question": "\ud800"}, "half of a character"),
        ({"question": ASKED, "before": ["x"]}, "must be a text"),
        ({"question": ASKED, "publication": "1"}, "must be the number"),
        ({"question": ASKED, "publication": True}, "must be the number"),
        ({"question": ASKED, "publication": 0}, "must be the number"),
        ({"question": ASKED, "publication": 10**20}, "must be the number"),
        (b'{"question": "' + b"x" * 20_000 + b'"}', "shorten it"),
    ],
)
def test_what_cannot_be_looked_up_is_refused_in_a_sentence(
    castle: Sheet, body: object, sentence: str
) -> None:
    answer = ask(body)

    problem = json.loads(answer.content)
    assert (answer.status_code, problem["status"]) == (400, 400)
    assert sentence in problem["detail"]


@pytest.mark.parametrize(
    ("status", "how"),
    [
        (404, {"address": "/api/v1/sheets/none/retrieve/"}),
        (404, {"body": {"question": ASKED, "publication": 9}}),
        (400, {"address": f"{ADDRESS}?k=3"}),
    ],
)
def test_what_is_not_there_is_a_problem_document(
    castle: Sheet, status: int, how: dict[str, Any]
) -> None:
    answer = ask(how.get("body", {"question": ASKED}), how.get("address", ADDRESS))

    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["Cache-Control"] == "no-store"


def test_it_is_asked_by_post_in_json_and_sets_no_cookie(castle: Sheet) -> None:
    form = Client().post(ADDRESS, {"question": ASKED})
    good = ask({"question": ASKED})

    assert Client().get(ADDRESS).status_code == 405
    assert form.status_code == 415
    assert (good["Cache-Control"], good["X-Publication"], good.cookies) == ("no-store", "1", {})


def test_an_old_name_leads_on(castle: Sheet) -> None:
    change(castle, slug="keep")

    answer = ask({"question": ASKED})

    assert (answer.status_code, answer["Location"]) == (308, "/api/v1/sheets/keep/retrieve/")


def test_a_live_sheet_is_read_once_a_second(castle: Sheet, django_assert_num_queries: Any) -> None:
    read({"question": ASKED})

    with django_assert_num_queries(0):
        read({"question": ASKED})


def test_a_run_on_a_split_sheet_asks_with_what_is_retrieved(castle: Sheet) -> None:
    change(castle, delivery="split")

    run = factories.passing_run(castle, now=LATER + timedelta(hours=1))

    assert run.plan["delivery"] == "split"
    assert run.outcome == "passed"


# ---- several sheets ----

SEVERAL = "/api/v1/retrieve/"


@pytest.fixture
def park(castle: Sheet) -> Sheet:
    of = factories.ready_sheet("park")
    change(of, title="The park")
    factories.section(
        of, "herons", heading="Herons", body="Herons nest beside the old mill pond in spring."
    )
    factories.passing_run(of)
    factories.publish(of)
    return of


def test_several_sheets_are_searched_together_and_each_source_says_whose_it_is(park: Sheet) -> None:
    answer = ask({"question": "Where do herons nest?", "sheets": ["castle", "park"]}, SEVERAL)

    found = json.loads(answer.content)
    assert (found["sources"][0]["sheet"], found["sources"][0]["section"]) == ("park", "herons")
    assert "[1] The park: Herons" in found["turn"]
    assert {(p["slug"], p["publication"]) for p in found["publications"]} == {
        ("castle", 1),
        ("park", 1),
    }


def test_sheets_and_sections_can_be_left_out(park: Sheet) -> None:
    for without in (["park"], ["park/herons"]):
        asked = {
            "question": "Where do herons nest?",
            "sheets": ["castle", "park"],
            "without": without,
        }
        assert json.loads(ask(asked, SEVERAL).content)["sources"] == []


def test_an_old_name_is_followed_and_a_sheet_named_twice_counts_once(park: Sheet) -> None:
    change(park, slug="gardens")

    found = json.loads(
        ask({"question": "Where do herons nest?", "sheets": ["park", "gardens"]}, SEVERAL).content
    )

    assert [p["slug"] for p in found["publications"]] == ["gardens"]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"sheets": []}, 400, "at least one sheet"),
        ({"sheets": "castle"}, 400, "must be a list of at most 10 names"),
        ({"sheets": [f"s{n}" for n in range(11)]}, 400, "must be a list of at most 10 names"),
        ({"sheets": [3]}, 400, "must be a list"),
        ({"sheets": ["castle"], "without": ["x"] * 101}, 400, "at most 100"),
        ({"sheets": ["castle"], "publication": 1}, 400, "Send an object"),
        ({"sheets": ["castle", "none"]}, 404, "none: No sheet of that name"),
    ],
)
def test_what_cannot_be_searched_together_is_refused_in_a_sentence(
    castle: Sheet, body: dict[str, Any], status: int, sentence: str
) -> None:
    answer = ask({"question": ASKED, **body}, SEVERAL)

    assert answer.status_code == status
    assert sentence in json.loads(answer.content)["detail"]


def test_sheets_of_two_languages_are_refused(park: Sheet) -> None:
    change(park, language="de")
    factories.passing_run(park, now=LATER)
    factories.publish(park, now=LATER)

    answer = ask({"question": ASKED, "sheets": ["castle", "park"]}, SEVERAL)

    assert (answer.status_code, json.loads(answer.content)["code"]) == (400, "mixed-languages")


def test_a_sheet_behind_a_key_is_not_among_several(park: Sheet) -> None:
    change(park, visibility="key")

    assert ask({"question": ASKED, "sheets": ["castle", "park"]}, SEVERAL).status_code == 404
