"""The page on which a sheet is made: who may, what it asks, and where it leads."""

from __future__ import annotations

import json

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from factsheets import editing, roles
from factsheets.models import ChangeSet, Section, Sheet
from tests import factories
from tests.factories import NOON
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def enter(role: str) -> Client:
    client = Client()
    client.force_login(factories.person(f"the-{role}".replace(" ", "-"), role))
    return client


def make(client: Client, address: str = "", **fields: str) -> HttpResponse:
    return client.post(address or reverse("new_sheet"), fields)


def gate(sheet: Sheet) -> str:
    return reverse("admin:sheet_gate", args=[sheet.pk])


# ---- who may ----


@pytest.mark.parametrize("role", [r for r in roles.ROLES if r != roles.MAINTAINER])
def test_only_a_maintainer_makes_sheets(role: str) -> None:
    client = enter(role)

    answers = [client.get(reverse("new_sheet")), make(client, title="Mine")]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert not Sheet.objects.exists()


def test_a_stranger_is_sent_to_the_log_in() -> None:
    response = Client().get(reverse("new_sheet"))

    assert response.status_code == 302
    assert response.headers["Location"].startswith(reverse("admin:login"))


def test_the_add_button_of_the_list_leads_there() -> None:
    client = enter(roles.MAINTAINER)
    add = reverse("admin:factsheets_sheet_add")

    assert add in Page(client.get(reverse("admin:factsheets_sheet_changelist"))).links()
    assert client.get(add).headers["Location"] == reverse("new_sheet")


# ---- making one ----


def test_a_title_is_enough_and_the_gate_comes_next() -> None:
    client = enter(roles.MAINTAINER)

    response = make(client, title="Café by the Harbour")

    sheet = Sheet.objects.get()
    assert response.headers["Location"] == gate(sheet)
    assert (sheet.slug, sheet.language) == ("cafe-by-the-harbour", "en-GB")
    assert sheet.suites.get().slug == "cafe-by-the-harbour-starter"


def test_all_fields_are_kept_and_the_history_says_who_and_why() -> None:
    client = enter(roles.MAINTAINER)

    make(
        client,
        title="Yr harbwr",
        slug="harbour",
        language="cy",
        description="For the staff",
        why="a new house",
    )

    sheet = Sheet.objects.get()
    assert (sheet.title, sheet.slug) == ("Yr harbwr", "harbour")
    assert (sheet.language, sheet.description) == ("cy", "For the staff")
    made = ChangeSet.objects.get()
    assert (made.by_name, made.reason) == ("the-maintainer", "a new house")


def test_a_sheet_is_started_from_another() -> None:
    original = factories.ready_sheet()

    response = make(enter(roles.MAINTAINER), start=str(original.pk), title="The harbour")

    copy = Sheet.objects.get(slug="the-harbour")
    assert response.headers["Location"] == gate(copy)
    assert Section.objects.get(sheet=copy).body == Section.objects.get(sheet=original).body
    assert copy.suites.get().slug == "the-harbour-safety"


def test_a_sheet_taken_out_of_use_is_not_offered() -> None:
    sheet = factories.sheet()
    editing.remove(sheet, by=factories.person(), reason="old", now=NOON)

    response = make(enter(roles.MAINTAINER), start=str(sheet.pk), title="The harbour")

    assert "Select a valid choice" in Page(response).text
    assert Sheet.objects.count() == 1


def test_in_a_pop_up_the_form_that_asked_gets_the_new_sheet() -> None:
    client = enter(roles.MAINTAINER)
    address = client.get(reverse("admin:factsheets_sheet_add") + "?_popup=1&_to_field=id").headers[
        "Location"
    ]

    framed = client.get(address)
    response = make(client, address, title="The harbour")

    assert framed.headers["X-Frame-Options"] == "SAMEORIGIN"
    data = json.loads(response.context["popup_response_data"])
    assert data == {"value": str(Sheet.objects.get().pk), "obj": "The harbour"}


# ---- what it refuses ----


@pytest.mark.parametrize(
    ("fields", "field", "sentence"),
    [
        ({}, "title", "Write what the sheet is about."),
        ({"title": "   "}, "title", "Write what the sheet is about."),
        ({"title": "Κάστρο"}, "slug", "No name can be made from the title"),
        ({"title": "Another", "slug": "castle"}, "slug", "“castle” is the name of another sheet"),
        ({"title": "Castle"}, "slug", "“castle” is the name of another sheet"),
        ({"title": "Another", "slug": "old-castle"}, "slug", "was once the name of another"),
        ({"title": "Another", "slug": "two words"}, "slug", "valid “slug”"),
        ({"title": "Another", "language": "English"}, "language", "Give a language tag"),
    ],
)
def test_an_error_stands_beside_its_field_and_in_a_summary_that_leads_to_it(
    fields: dict[str, str], field: str, sentence: str
) -> None:
    sheet = factories.sheet("old-castle")
    editing.change(sheet, by=factories.person(), reason="shorter", now=NOON, slug="castle")

    page = Page(make(enter(roles.MAINTAINER), **fields))

    assert page.text.count(sentence) == 2
    assert f"#id_{field}" in page.links()
    marked = [tag for name, tag in page.tags if tag.get("aria-invalid") == "true"]
    assert [tag["id"] for tag in marked] == [f"id_{field}"]
    described = set(marked[0]["aria-describedby"].split())
    assert described <= {tag.get("id") for _, tag in page.tags}
    assert f"id_{field}_error" in described
    assert Sheet.objects.count() == 1


def test_every_field_has_its_label_and_its_help() -> None:
    page = Page(enter(roles.MAINTAINER).get(reverse("new_sheet")))

    labelled = {tag["for"] for tag in page.all("label")}
    fields = {
        tag["id"]: tag
        for name, tag in page.tags
        if name in {"input", "select", "textarea"} and tag.get("id", "").startswith("id_")
    }
    helped = {tag["id"] for tag in page.all("p") if "id" in tag}
    assert len(fields) == 6
    assert fields.keys() <= labelled
    assert {tag["aria-describedby"] for tag in fields.values()} <= helped


# ---- what the gate page says next ----


def test_the_gate_of_a_new_sheet_leads_to_each_step_with_the_sheet_chosen() -> None:
    client = enter(roles.MAINTAINER)
    make(client, title="The harbour")
    sheet = Sheet.objects.get()
    keeper = factories.person("all", roles.EDITOR, roles.RULE_KEEPER, roles.PUBLISHER)
    client.force_login(keeper)

    page = Page(client.get(gate(sheet)))

    links = page.links()
    add_section = f"{reverse('admin:factsheets_section_add')}?sheet={sheet.pk}"
    probes = (
        f"{reverse('admin:evals_probe_changelist')}"
        f"?suite__requirements__sheet__id__exact={sheet.pk}"
    )
    # In the steps, and as what mends the finding.
    assert links.count(add_section) == 2
    assert f"{probes}&category=control" in links
    assert probes in links
    shown = client.get(f"{probes}&category=control").context["cl"].queryset
    assert [probe.key for probe in shown] == ["control-1", "control-2", "control-3"]


def test_a_viewer_is_not_sent_to_pages_that_refuse() -> None:
    make(enter(roles.MAINTAINER), title="The harbour")
    client = enter(roles.VIEWER)

    page = Page(client.get(gate(Sheet.objects.get())))

    inner = [link for link in page.links() if link.startswith("/admin/")]
    assert inner
    assert not [link for link in inner if client.get(link).status_code == 403]


def test_the_steps_are_gone_once_something_was_published() -> None:
    client = enter(roles.VIEWER)
    before, after = factories.ready_sheet(), factories.published_sheet("keep")

    pages = [Page(client.get(gate(sheet))).text for sheet in (before, after)]

    assert ["To the first publication" in text for text in pages] == [True, False]
