"""What wants checking, as a page and as files: the same rows as the service and the command."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from evals import exchange
from factsheets import roles, stale_report
from factsheets.models import Member, ReviewPlan, Sheet
from tests import factories
from tests.factsheets.admin import Page

pytestmark = pytest.mark.django_db

CASTLE, CAFE = "colchester-castle", "example-castle-cafe"
IN_HALF_A_YEAR = "2027-06-01"


@pytest.fixture
def demo() -> None:
    """Both demo sheets; Olga sees to the castle, nobody to the café."""
    for name in ("castle", "cafe"):
        folder = exchange.read_folder(factories.DEMO / name)
        exchange.import_folder(
            folder,
            by=factories.person(),
            reason="demo",
            now=datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
        )
    sheet = Sheet.objects.get(slug=CASTLE)
    factories.save(ReviewPlan(sheet=sheet, owner=factories.person("olga")))


@pytest.fixture
def viewer() -> Client:
    return browser(factories.person("vera", roles.VIEWER))


def browser(user: Any) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def ask(client: Client, **query: str) -> HttpResponse:
    return client.get(reverse("admin:stale_report"), {"on": IN_HALF_A_YEAR, **query})


def shown(response: HttpResponse) -> list[tuple[str, str]]:
    """The sheet and section of each row of the page."""
    return [(each["row"].sheet, each["row"].section) for each in response.context["rows"]]


def from_json(response: HttpResponse) -> list[tuple[str, str]]:
    return [(row["sheet"], row["section"]) for row in response.json()["rows"]]


def from_csv(response: HttpResponse) -> list[tuple[str, str]]:
    lines = csv.DictReader(io.StringIO(response.content.decode("utf-8-sig")))
    return [(line["sheet"], line["section"]) for line in lines]


# ---- the same rows everywhere ----


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ({}, 17),
        ({"state": "all"}, 27),
        ({"state": "overdue"}, 15),
        ({"state": "disputed"}, 0),
        ({"sheet": CAFE}, 3),
        ({"owner": "olga"}, 14),
        ({"owner": "-"}, 3),
        ({"kind": "own-policy"}, 2),
        ({"kind": "own-policy", "state": "fresh"}, 9),
        ({"on": "2026-11-30"}, 3),
    ],
)
def test_page_csv_and_json_have_the_same_rows(
    demo: None, viewer: Client, query: dict[str, str], number: int
) -> None:
    page = shown(ask(viewer, **query))
    as_csv = from_csv(ask(viewer, format="csv", **query))
    as_json = from_json(ask(viewer, format="json", **query))

    assert len(page) == number
    assert page == as_csv == as_json


def test_the_files_of_the_page_are_those_of_the_command(demo: None, viewer: Client) -> None:
    def printed(form: str) -> str:
        out = io.StringIO()
        call_command("stale_report", "--on", IN_HALF_A_YEAR, "--format", form, stdout=out)
        return out.getvalue()

    assert ask(viewer, format="csv").content.decode() == printed("csv")
    assert ask(viewer, format="json").content.decode() == printed("json").rstrip("\n")


def test_files_have_the_day_in_their_names_and_are_kept_by_nobody(
    demo: None, viewer: Client
) -> None:
    as_csv, as_json = ask(viewer, format="csv"), ask(viewer, format="json")

    assert as_csv["Content-Type"] == "text/csv; charset=utf-8"
    assert as_csv["Content-Disposition"] == 'attachment; filename="stale-report-2027-06-01.csv"'
    assert as_csv.content.startswith(b"\xef\xbb\xbfsheet,section,")
    assert as_json["Content-Type"] == "application/json"
    assert as_json["Content-Disposition"] == 'attachment; filename="stale-report-2027-06-01.json"'
    assert "private, no-store" in as_csv["Cache-Control"]
    assert "private, no-store" in as_json["Cache-Control"]


def test_the_links_to_the_files_keep_the_filters(demo: None, viewer: Client) -> None:
    address = reverse("admin:stale_report")
    links = Page(ask(viewer, sheet=CAFE, state="overdue")).links()

    found = {link for link in links if "format=" in link}

    kept = f"?on=2027-06-01&sheet={CAFE}&state=overdue&format="
    assert found == {f"{kept}csv", f"{kept}json"}
    assert from_json(viewer.get(f"{address}{kept}json")) == [(CAFE, "hot-food-times")]


# ---- the page ----


def test_a_row_says_state_reasons_days_and_who_sees_to_it(demo: None, viewer: Client) -> None:
    text = " ".join(Page(ask(viewer, state="overdue", sheet=CASTLE)).text.split())

    assert "The check was due by 28 February 2027, 93 days ago." in text
    assert "29 Nov 2026 28 Feb 2027 olga" in text


def test_every_row_leads_to_its_section_and_to_the_check_of_it_and_back(demo: None) -> None:
    editor = browser(factories.person("edward", roles.EDITOR))
    response = ask(editor, sheet=CAFE)
    links = Page(response).links()
    sections = [each["row"].section_id for each in response.context["rows"]]

    assert len(sections) == 3
    for pk in sections:
        section = reverse("admin:factsheets_section_change", args=[pk])
        assert section in links
        assert editor.get(section).status_code == 200
        check = reverse("admin:section_check", args=[pk])
        back = f"?next=%2Fadmin%2Ffactsheets%2Fsheet%2Fstale-report%2F%3Fon%3D{IN_HALF_A_YEAR}"
        assert f"{check}{back}%26sheet%3D{CAFE}" in links


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_check_is_offered_to_who_may_record_one(demo: None, role: str) -> None:
    client = browser(factories.person("somebody", role))

    checks = [link for link in Page(ask(client)).links() if "/check/?next=" in link]

    assert len(checks) == {roles.EDITOR: 17, roles.MAINTAINER: 17}.get(role, 0)


def test_a_check_is_offered_on_the_sheet_alone_where_one_may_record_it(demo: None) -> None:
    user = factories.person("member", roles.VIEWER)
    factories.save(Member(sheet=Sheet.objects.get(slug=CAFE), user=user, role=roles.EDITOR))

    response = ask(browser(user))

    checks = [link for link in Page(response).links() if "/check/?next=" in link]
    assert (len(shown(response)), len(checks)) == (17, 3)


def test_who_has_left_is_named_beside_who_stands_in(demo: None, viewer: Client) -> None:
    olga = factories.person("olga")
    olga.is_active = False
    olga.save()

    text = " ".join(Page(ask(viewer, sheet=CASTLE)).text.split())

    assert "nobodyfor olga, who has left" in text


def test_every_state_is_counted_and_none_is_said(demo: None, viewer: Client) -> None:
    text = " ".join(Page(ask(viewer, sheet=CAFE)).text.split())

    # Counts are of all sheets, whatever the filter.
    assert (
        "none disputed · 1 unsourced · 1 never-checked · none edited-since-check · 15 overdue "
        "· none due-soon · 10 fresh · none retired, of 27 sections." in text
    )


def test_without_a_day_it_is_todays(viewer: Client) -> None:
    response = viewer.get(reverse("admin:stale_report"))

    assert "today" in Page(response).text
    assert response.context["is_today"]


def test_a_report_without_sections_says_so(viewer: Client) -> None:
    response = viewer.get(reverse("admin:stale_report"))

    assert response.status_code == 200
    assert "of 0 sections" in Page(response).text


# ---- nonsense ----


@pytest.mark.parametrize("day", ["yesterday", "2027-02-30", "01.06.2027", "9" * 40, "²", "\0"])
def test_a_day_that_is_none_is_said_and_the_report_is_todays(
    demo: None, viewer: Client, day: str
) -> None:
    response = ask(viewer, on=day)

    assert response.status_code == 200
    assert "Choose a day such as 2027-06-01" in Page(response).text
    assert response.context["is_today"]


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_first_and_the_last_day_of_the_calendar_break_nothing(
    demo: None, viewer: Client, day: str
) -> None:
    assert ask(viewer, on=day, state="all").status_code == 200


@pytest.mark.parametrize("form", ["", "csv", "json"])
def test_a_state_that_there_is_not_hides_nothing(demo: None, viewer: Client, form: str) -> None:
    response = ask(viewer, state="stale", format=form)

    assert b"shop-returns" in ask(viewer, state="stale", format="json").content
    assert response.status_code == 200
    assert len(shown(ask(viewer, state="stale"))) == 17


def test_a_state_that_there_is_not_is_said(demo: None, viewer: Client) -> None:
    assert "There is no such state" in Page(ask(viewer, state="stale")).text


@pytest.mark.parametrize("form", ["xlsx", "CSV", "../etc"])
def test_a_form_that_there_is_not_is_the_page(demo: None, viewer: Client, form: str) -> None:
    assert ask(viewer, format=form)["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("field", ["on", "state", "sheet", "owner", "kind", "format"])
def test_html_in_the_address_is_shown_as_text(demo: None, viewer: Client, field: str) -> None:
    response = ask(viewer, **{field: '"><script>evil()</script>'})

    assert response.status_code == 200
    assert b"<script>evil" not in response.content


def test_html_in_texts_and_names_is_shown_as_text(viewer: Client) -> None:
    evil = "<img src=x onerror=evil()>"
    sheet = factories.sheet(title=evil)
    source = factories.source(title=evil)
    factories.section(sheet, heading=evil, source=source)
    owner = factories.person(evil)
    factories.save(ReviewPlan(sheet=sheet, owner=owner))

    response = ask(viewer)

    assert evil in Page(response).text
    assert evil.encode() not in response.content


# ---- who may ----


@pytest.mark.parametrize("role", roles.ROLES)
def test_every_role_sees_the_report(demo: None, role: str) -> None:
    assert len(shown(ask(browser(factories.person("somebody", role))))) == 17


def test_without_a_role_nobody_sees_it(demo: None) -> None:
    assert ask(browser(factories.person("newcomer"))).status_code == 403


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("role", roles.ROLES)
def test_a_member_sees_the_rows_of_their_sheet_alone(demo: None, role: str, form: str) -> None:
    cafe = Sheet.objects.get(slug=CAFE)
    user = factories.person("member")
    factories.save(Member(sheet=cafe, user=user, role=role))
    client = browser(user)

    page = ask(client, state="all")
    file = ask(client, state="all", format=form)

    assert {sheet for sheet, _ in shown(page)} == {CAFE}
    assert len(shown(page)) == 12
    for content in (page.content, file.content, ask(client, sheet=CASTLE).content):
        assert b"Colchester" not in content
        assert b"olga" not in content


def test_it_is_asked_for_by_get_alone(viewer: Client) -> None:
    address = reverse("admin:stale_report")

    found = {m: getattr(viewer, m)(address).status_code for m in ("post", "put", "delete")}

    assert set(found.values()) == {405}


# ---- cost ----


@pytest.mark.parametrize(("sheets", "sections"), [(1, 2), (1, 40), (6, 2)])
def test_the_page_asks_the_database_as_often_for_many_as_for_few(
    viewer: Client, sheets: int, sections: int, django_assert_max_num_queries: Any
) -> None:
    cited = factories.source()
    for number in range(sheets):
        of = factories.sheet(f"sheet-{number}")
        for n in range(sections):
            factories.section(of, f"s{n}", heading=f"Section {n}", source=cited)
        factories.save(ReviewPlan(sheet=of, owner=factories.person("olga")))
    ask(viewer)

    with django_assert_max_num_queries(16):
        response = ask(viewer)

    assert len(shown(response)) == sheets * sections


def test_the_page_and_the_service_agree(demo: None, viewer: Client) -> None:
    rows = stale_report.rows(Sheet.objects.present(), today=date(2027, 6, 1))

    assert shown(ask(viewer, state="all")) == [(row.sheet, row.section) for row in rows]
