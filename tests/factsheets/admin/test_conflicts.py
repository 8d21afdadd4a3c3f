"""Two people on one form: the second is shown both texts, and nobody's words are lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evals.models import Probe
from factsheets import editing, roles
from factsheets.models import Citation, GatePolicy, Rule, Section, Sheet, Source
from tests import factories
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

SAID = "Somebody else saved this while you wrote"


@pytest.fixture
def sheet() -> Sheet:
    return factories.ready_sheet()


@pytest.fixture
def client() -> Client:
    """Somebody who may edit everything, in a browser."""
    browser = Client()
    browser.force_login(
        factories.person("mine", roles.EDITOR, roles.RULE_KEEPER, roles.MAINTAINER),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return browser


def address(row: Any) -> str:
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])


def opened(client: Client, row: Any) -> dict[str, str]:
    """The form of a row as it stands now."""
    return Page(client.get(address(row))).form(f"{row._meta.model_name}_form").data


def send(client: Client, row: Any, form: dict[str, str], **typed: str) -> Any:
    return client.post(address(row), {**form, "why": "my reason", **typed})


def theirs(row: Any, **values: object) -> None:
    """Somebody else saves meanwhile."""
    fresh = type(row).objects.get(pk=row.pk)
    editing.change(
        fresh, by=factories.person("otto"), reason="his reason", now=timezone.now(), **values
    )


def said(response: Any) -> str:
    return " ".join(Page(response).text.split())


#: Of each kind of row: what the other changes, and what I type.
ROWS: dict[type[Any], tuple[dict[str, object], dict[str, str]]] = {
    Section: ({"body": "Closed on Mondays."}, {"body": "Closed on Sundays."}),
    Sheet: ({"title": "The old castle"}, {"title": "The new castle"}),
    Rule: ({"text": "Be kind."}, {"text": "Be brief."}),
    Source: ({"title": "The old leaflet"}, {"title": "The new leaflet"}),
    Probe: ({"category": "hours"}, {"category": "times"}),
    GatePolicy: ({"evidence_max_age_days": 30}, {"evidence_max_age_days": "60"}),
}


@pytest.mark.parametrize("model", ROWS, ids=lambda model: model.__name__)
def test_the_second_save_writes_nothing_and_shows_both(
    sheet: Sheet, client: Client, model: type[Any]
) -> None:
    row = model.objects.get()
    other, own = ROWS[model]
    form = opened(client, row)
    theirs(row, **other)

    answer = send(client, row, form, **own)

    text = said(answer)
    row.refresh_from_db()
    (field,) = other
    assert answer.status_code == 200
    assert SAID in text
    assert "otto saved this on" in text
    assert "his reason" in text
    assert getattr(row, field) == other[field]
    assert "changed by both" in text
    assert str(other[field]).split()[-1].rstrip(".") in text


@pytest.mark.parametrize("model", ROWS, ids=lambda model: model.__name__)
def test_saving_again_keeps_mine(sheet: Sheet, client: Client, model: type[Any]) -> None:
    row = model.objects.get()
    other, own = ROWS[model]
    form = opened(client, row)
    theirs(row, **other)
    again = Page(send(client, row, form, **own)).form(f"{row._meta.model_name}_form").data

    answer = send(client, row, again)

    row.refresh_from_db()
    (field,) = own
    assert answer.status_code == 302
    assert str(getattr(row, field)) == own[field]


def test_what_only_the_other_changed_is_not_taken_back(sheet: Sheet, client: Client) -> None:
    section = sheet.sections.get()
    form = opened(client, section)
    theirs(section, heading="Hours", included=False)
    answer = send(client, section, form, body="Closed on Sundays.")
    again = Page(answer).form("section_form").data

    send(client, section, again)

    section.refresh_from_db()
    assert (section.heading, section.included, section.body) == (
        "Hours",
        False,
        "Closed on Sundays.",
    )


def test_the_other_s_bot_and_tick_are_taken_over_too(sheet: Sheet, client: Client) -> None:
    policy = GatePolicy.objects.get()
    form = opened(client, policy)
    theirs(policy, four_eyes=True, blocking_warnings=["unsourced", "overdue"])
    answer = send(client, policy, form, evidence_max_age_days="60")
    again = Page(answer).form("gatepolicy_form")

    client.post(
        address(policy),
        {
            **again.data,
            "why": "mine",
            "blocking_warnings": ["unsourced", "overdue"],
        },
    )

    policy.refresh_from_db()
    assert (policy.four_eyes, policy.evidence_max_age_days) == (True, 60)
    assert sorted(policy.blocking_warnings) == ["overdue", "unsourced"]


def test_a_third_save_in_between_is_met_again(sheet: Sheet, client: Client) -> None:
    rule = Rule.objects.get()
    form = opened(client, rule)
    theirs(rule, text="Be kind.")
    again = Page(send(client, rule, form, text="Be brief.")).form("rule_form").data
    theirs(rule, text="Be kind and quick.")

    answer = send(client, rule, again)

    rule.refresh_from_db()
    assert SAID in said(answer)
    assert rule.text == "Be kind and quick."


def test_a_form_that_nobody_else_touched_is_saved(sheet: Sheet, client: Client) -> None:
    section = sheet.sections.get()
    form = opened(client, section)
    other = factories.section(sheet, "dogs", heading="Dogs")
    theirs(other, body="No dogs.")

    assert send(client, section, form, body="Closed.").status_code == 302


def test_the_own_second_save_is_no_conflict(sheet: Sheet, client: Client) -> None:
    section = sheet.sections.get()
    for body in ("Closed.", "Open."):
        assert send(client, section, opened(client, section), body=body).status_code == 302


def test_a_form_without_its_version_is_not_believed(sheet: Sheet, client: Client) -> None:
    section = sheet.sections.get()
    form = opened(client, section)
    del form["version"]

    answer = send(client, section, form, body="Closed.")

    section.refresh_from_db()
    assert SAID in said(answer)
    assert section.body != "Closed."


@pytest.mark.parametrize("version", ["x", "0", "-1", "9" * 40, "²,1", ",", "1,2,3,4"])
def test_a_version_that_there_never_was_is_met_with_the_same_page(
    sheet: Sheet, client: Client, version: str
) -> None:
    section = sheet.sections.get()
    form = opened(client, section)

    answer = send(client, section, form, version=version, body="Closed.")

    assert answer.status_code == 200
    assert SAID in said(answer)


def test_citations_saved_by_another_are_never_taken_back(sheet: Sheet, client: Client) -> None:
    section = sheet.sections.get()
    cited = section.citations.get()
    form = opened(client, section)
    theirs(cited, locator="page 9")

    first = send(client, section, form, body="Closed.")
    second = send(client, section, Page(first).form("section_form").data)

    cited.refresh_from_db()
    section.refresh_from_db()
    assert "Rows below were saved by somebody else too." in said(first)
    assert SAID in said(second)
    assert (cited.locator, section.body == "Closed.") == ("page 9", False)


def test_a_citation_added_meanwhile_is_a_conflict_of_rows_too(sheet: Sheet, client: Client) -> None:
    section = sheet.sections.get()
    form = opened(client, section)
    factories.save(Citation(section=section, source=factories.source("new"), locator="page 2"))

    answer = send(client, section, form, body="Closed.")

    assert "Rows below were saved by somebody else too." in said(answer)


def test_what_people_wrote_is_shown_and_never_obeyed(sheet: Sheet, client: Client) -> None:
    rule = Rule.objects.get()
    form = opened(client, rule)
    theirs(rule, text="<script>alert(1)</script> <b x-data='{}'>")

    page = Page(send(client, rule, form, text="<i hx-on:click='alert(2)'>"))

    assert "alert(1)" not in page.scripts
    assert not [a for _, attributes in page.tags for a in attributes if a.startswith("hx-on")]


def test_a_reader_is_sent_no_version(sheet: Sheet) -> None:
    browser = Client()
    browser.force_login(
        factories.person("vera", roles.VIEWER), backend="django.contrib.auth.backends.ModelBackend"
    )

    page = Page(browser.get(address(sheet.sections.get())))

    assert not [tag for tag in page.all("input") if tag.get("name") == "version"]


@pytest.mark.database
@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="two connections do not share SQLite in memory"
)
@pytest.mark.django_db(transaction=True)
def test_of_two_who_save_at_the_same_moment_one_is_shown_the_other() -> None:
    section = factories.ready_sheet().sections.get()
    browsers = []
    for name in ("anna", "ben"):
        browser = Client()
        browser.force_login(
            factories.person(name, roles.EDITOR),
            backend="django.contrib.auth.backends.ModelBackend",
        )
        browsers.append((name, browser, opened(browser, section)))
    start = Barrier(len(browsers))

    def save(name: str, browser: Client, form: dict[str, str]) -> int:
        try:
            start.wait(timeout=30)
            return int(send(browser, section, form, body=f"By {name}.").status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(browsers)) as pool:
        answers = list(pool.map(lambda each: save(*each), browsers))

    assert sorted(answers) == [200, 302]
    section.refresh_from_db()
    assert section.body == f"By {browsers[answers.index(302)][0]}."
    assert section.history.count() == 2
