"""One search over sections, sources and rules, of what the person may see."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from factsheets import editing, roles
from factsheets.models import Member, Rule, Section, Sheet
from tests import factories
from tests.factories import NOON
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.fixture
def castle() -> Sheet:
    return factories.ready_sheet("castle")


def enter(name: str, *in_roles: str) -> Client:
    client = Client()
    client.force_login(
        factories.person(name, *in_roles), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def found(client: Client, text: str) -> Page:
    response = client.get(reverse("admin:find"), {"q": text})
    assert response.status_code == 200
    return Page(response)


def change(row: Any, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=NOON, **values)


def test_sections_sources_and_rules_that_say_the_words_are_found(castle: Sheet) -> None:
    change(Rule.objects.get(), text="Never speak of the dungeon.")
    change(Section.objects.get(), body="The dungeon is closed.")
    change(Section.objects.get().citations.get().source, title="The dungeon book")

    page = found(enter("vera", roles.VIEWER), "DUNGEON")

    text = " ".join(page.text.split())
    assert "Sections: 1" in text
    assert "Sources: 1" in text
    assert "Rules: 1" in text
    assert f"{reverse('admin:sheet_workbench', args=[castle.pk])}#card-hours" in page.links()
    assert [tag for tag, _ in page.tags if tag == "mark"] == ["mark"] * 3


def test_nothing_is_found_in_what_is_out_of_use(castle: Sheet) -> None:
    editing.remove(Section.objects.get(), by=factories.person(), reason="", now=NOON)

    assert "Sections: 0" in found(enter("vera", roles.VIEWER), "morning").text


def test_a_member_finds_the_own_sheets_alone(castle: Sheet) -> None:
    other = factories.ready_sheet("abbey")
    change(Section.objects.get(sheet=other), body="The abbey keeps a secret.")
    member = factories.person("mia")
    factories.save(Member(sheet=castle, user=member, role=Member.Role.VIEWER))
    client = Client()
    client.force_login(member, backend="django.contrib.auth.backends.ModelBackend")

    assert "Sections: 0" in found(client, "secret").text
    assert "Sections: 1" in found(client, "morning").text


@pytest.mark.parametrize("text", ["", "   ", "%", "_", "<b x-data='{}'>", "\x00", "x" * 500])
def test_any_text_is_answered_with_a_page(castle: Sheet, text: str) -> None:
    page = found(enter("vera", roles.VIEWER), text)

    assert not [
        a
        for _, attributes in page.tags
        for a in attributes
        if a == "x-data" and attributes[a] == "{}"
    ]
    if text in {"%", "_"}:
        assert "Sections: 0" in page.text


def test_a_long_list_says_that_there_is_more(castle: Sheet) -> None:
    for number in range(51):
        factories.section(castle, f"more-{number}", heading=f"More {number}", body="Morning.")

    assert "Sections: 50 and more" in " ".join(
        found(enter("vera", roles.VIEWER), "morning").text.split()
    )


def test_whoever_has_no_role_is_told_no() -> None:
    assert enter("nobody").get(reverse("admin:find"), {"q": "x"}).status_code == 403
