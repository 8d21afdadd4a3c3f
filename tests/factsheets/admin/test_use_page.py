"""The page of a sheet's use: a table, logs to send, tags to correct."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from factsheets import usage
from factsheets.models import Sheet, UseLog, UseRecord
from tests import factories
from tests.factories import LATER, NOON
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    standing = SimpleNamespace(now=LATER)
    monkeypatch.setattr(timezone, "now", lambda: standing.now)
    return standing


@pytest.fixture
def castle() -> Sheet:
    """Publication 1 live, with sections on hours and on dogs."""
    of = factories.ready_sheet("castle")
    factories.section(of, "dogs", heading="Dogs", body="Dogs stay on the lead in the courtyard.")
    factories.passing_run(of)
    factories.publish(of)
    return of


def browser(*roles: str) -> Client:
    client = Client()
    client.force_login(
        factories.person("mary", *roles), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def address(sheet: Sheet, name: str = "use") -> str:
    return reverse(f"admin:sheet_{name}", args=[sheet.pk])


LOG = "\n".join(
    json.dumps({"question": question, "reply": reply})
    for question, reply in (
        ("When does it open?", "The castle opens at ten in the morning."),
        ("zq May we bring <b>pets</b>?", "Sorry, I don't know."),
    )
)


def send(client: Client, sheet: Sheet, text: str = LOG, **form: Any) -> HttpResponse:
    file = SimpleUploadedFile("log.jsonl", text.encode())
    return client.post(address(sheet), {"log": file, **form}, follow=True)


def record(sheet: Sheet, *sections: str, reference: str = "a-1", at: Any = NOON) -> UseRecord:
    usage.record(sheet, [usage.Entry(reference, at, sections)], LATER)
    return sheet.use.get(reference=reference)


def test_the_table_says_which_sections_were_touched_and_which_never(castle: Sheet) -> None:
    record(castle, "hours")
    record(castle, "hours", reference="a-2")

    page = Page(browser("viewer").get(address(castle)))

    assert "2 questions, 4 May 2026 to 2 June 2026" in page.text
    assert "1 of 2 sections, 50 %" in page.text
    assert page.text.index("Opening hours") < page.text.index("Never touched")
    assert page.text.index("Never touched") < page.text.index("Dogs")


def test_the_period_is_what_is_asked_for(castle: Sheet) -> None:
    record(castle, "hours")
    client = browser("viewer")

    before = Page(client.get(f"{address(castle)}?since=2026-05-01&until=2026-05-31"))
    of_it = Page(client.get(f"{address(castle)}?since=2026-06-01&until=2026-06-01"))

    assert "0 questions" in before.text
    assert "No question is known of these days" in before.text
    assert "1 question, 1 June 2026 to 1 June 2026" in of_it.text


@pytest.mark.parametrize(
    "query",
    ["since=soon", "since=2026-06-02&until=2026-06-01", "until=0001-01-01", "since=9999-12-31"],
)
def test_a_period_that_is_none_is_told_and_the_usual_one_shown(castle: Sheet, query: str) -> None:
    page = Page(browser("viewer").get(f"{address(castle)}?{query}"))

    assert "Choose a first and a last day" in page.text
    assert "4 May 2026 to 2 June 2026" in page.text


def test_a_log_is_tagged_and_its_texts_are_dropped(castle: Sheet) -> None:
    response = send(browser("editor"), castle)

    page = Page(response)
    assert "2 answers tagged and counted." in page.text
    assert "dropped" in page.text
    assert "zq" not in page.text
    assert "1 of 2 sections" in page.text
    assert set(castle.use.values_list("question", "reply")) == {("", "")}


def test_a_maintainer_may_keep_the_texts_and_drop_them_later(castle: Sheet) -> None:
    client = browser("maintainer")

    kept = Page(send(client, castle, keep="on"))
    log = UseLog.objects.get()
    dropped = Page(client.post(address(castle, "drop_texts"), {"log": log.pk}, follow=True))

    assert "zq May we bring <b>pets</b>?" in kept.text
    assert "zq" not in dropped.text
    assert "what was counted stays" in dropped.text
    assert castle.use.count() == 2


def test_an_editor_may_not_keep_the_texts(castle: Sheet) -> None:
    client = browser("editor")

    response = send(client, castle, keep="on")

    assert response.status_code == 403
    assert "Keep the questions" not in Page(client.get(address(castle))).text
    assert not UseLog.objects.exists()


def test_a_file_at_fault_is_told_with_its_line_and_nothing_is_counted(castle: Sheet) -> None:
    page = Page(send(browser("editor"), castle, f'{LOG}\n{{"question": "Why?"}}'))

    assert "Line 3: reply is missing" in page.text
    assert not castle.use.exists()


def test_the_same_file_twice_is_told(castle: Sheet) -> None:
    client = browser("editor")
    send(client, castle)

    assert "This very file was taken on 2 June 2026 already" in Page(send(client, castle)).text


def test_sending_no_file_is_told(castle: Sheet) -> None:
    page = Page(browser("editor").post(address(castle), {}))

    assert "Choose a file of questions and replies." in page.text


def test_a_tag_is_corrected_and_what_was_said_first_is_shown(castle: Sheet) -> None:
    row, client = record(castle, "hours"), browser("editor")
    shown = Page(client.get(f"{address(castle)}?since=2026-06-01&until=2026-06-02"))
    form = shown.form_to(address(castle, "correct_use"))

    response = client.post(
        address(castle, "correct_use"), {**form.data, "sections": ["dogs"]}, follow=True
    )

    row.refresh_from_db()
    assert (row.sections, row.tagged) == (["dogs"], ["hours"])
    assert "before: hours" in Page(response).text
    assert response.redirect_chain[0][0].endswith("?since=2026-06-01&until=2026-06-02&page=1")


def test_all_ticks_taken_off_means_that_none_was_needed(castle: Sheet) -> None:
    row = record(castle, "hours")

    browser("editor").post(address(castle, "correct_use"), {"record": row.pk})

    row.refresh_from_db()
    assert row.sections == []


def test_an_unknown_section_is_refused_in_a_sentence(castle: Sheet) -> None:
    row = record(castle, "hours")

    response = browser("editor").post(
        address(castle, "correct_use"), {"record": row.pk, "sections": ["cats"]}, follow=True
    )

    assert "The sheet has no section cats" in Page(response).text
    row.refresh_from_db()
    assert row.corrected_at is None


def test_an_answer_of_another_sheet_is_not_corrected_from_here(castle: Sheet) -> None:
    tower = factories.sheet("tower")
    factories.section(tower)
    row = record(tower, "hours")

    response = browser("editor").post(
        address(castle, "correct_use"), {"record": row.pk, "sections": []}, follow=True
    )

    assert "There is no such answer" in Page(response).text
    row.refresh_from_db()
    assert row.corrected_at is None


@pytest.mark.parametrize("role", ["viewer", "rule keeper", "publisher"])
def test_others_look_and_neither_send_nor_correct(castle: Sheet, role: str) -> None:
    row, client = record(castle, "hours"), browser(role)

    page = Page(client.get(address(castle)))
    said = [
        send(client, castle).status_code,
        client.post(address(castle, "correct_use"), {"record": row.pk}).status_code,
        client.post(address(castle, "drop_texts"), {"log": 1}).status_code,
    ]

    assert said == [403, 403, 403]
    assert "Send a log" not in page.text
    assert "Correct" not in page.text


def test_answers_come_a_page_at_a_time(castle: Sheet, django_assert_max_num_queries: Any) -> None:
    usage.record(castle, [usage.Entry(f"a-{n:02}", NOON, ("hours",)) for n in range(25)], LATER)
    client = browser("viewer")

    with django_assert_max_num_queries(30):
        first = Page(client.get(address(castle)))
    second = Page(client.get(f"{address(castle)}?page=2"))

    assert ("a-24" in first.text, "a-05" in first.text, "a-04" in first.text) == (True, True, False)
    assert ("a-04" in second.text, "a-05" in second.text) == (True, False)
    assert any("page=2" in link for link in first.links())
    assert not any("page=3" in link for link in second.links())
