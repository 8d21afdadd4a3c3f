"""Recording a check: an act of its own, beside the sources, with nothing chosen beforehand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from factsheets import checking, editing, roles
from factsheets.models import Check, Citation, Member, ReviewPlan, Section, Source
from tests import factories
from tests.factories import LATER, TODAY
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.fixture
def section() -> Section:
    """Never checked; it cites a leaflet, and a page that it cannot stand without."""
    row = factories.section(factories.sheet(), source=factories.source())
    page = factories.source(
        "page",
        kind=Source.Kind.MUSEUM_OR_SITE_PAGE,
        title="The museum's page",
        url="https://museum.example/",
    )
    factories.save(Citation(section=row, source=page, locator="home", position=1, required=True))
    return row


def browser(role: str, *, of: Section | None = None) -> Client:
    """Somebody in that role, in the house or on the section's sheet alone."""
    user = factories.person("carla", *([role] if of is None else []))
    if of is not None:
        factories.save(Member(sheet=of.sheet, user=user, role=role))
    client = Client(raise_request_exception=False)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def editor() -> Client:
    return browser(roles.EDITOR)


def address(section: Section, page: str = "check") -> str:
    return reverse(f"admin:section_{page.replace('-', '_')}", args=[section.pk])


def form(response: HttpResponse) -> dict[str, str]:
    """What a browser would send from the form without anybody touching it."""
    return next(f.data for f in Page(response).forms if "text_hash" in f.data)


def filled(section: Section, **changed: str) -> dict[str, str]:
    """A form filled in with a check that stands, but for what is said."""
    leaflet, page = checking.present_citations(section)
    return {
        "checked_on": f"{timezone.localdate()}",
        "method": "read-online",
        "outcome": "confirmed",
        "note": "",
        f"citation_{leaflet.pk}": "supports",
        f"citation_{page.pk}": "supports",
        **changed,
    }


def record(client: Client, section: Section, query: str = "", **changed: str) -> HttpResponse:
    """Open the page, fill in its form, and send it."""
    path = address(section) + query
    return client.post(path, {**form(client.get(path)), **filled(section, **changed)})


def said(response: HttpResponse) -> str:
    return " ".join(Page(response).text.split())


# ---- the form ----


def test_nothing_is_ticked_beforehand_and_the_day_is_offered(
    section: Section, editor: Client
) -> None:
    response = editor.get(address(section))

    page = Page(response)
    radios = [tag for tag in page.all("input") if tag.get("type") in {"radio", "checkbox"}]
    assert len(radios) == 2 * 6 + 4 + 4
    assert [tag for tag in radios if "checked" in tag] == []
    assert form(response)["checked_on"] == f"{timezone.localdate()}"


def test_the_text_stands_beside_its_sources_and_their_claims(
    section: Section, editor: Client
) -> None:
    response = editor.get(address(section))

    text = said(response)
    assert "The castle opens at ten in the morning and closes at five." in text
    assert "The leaflet" in text
    assert "page 1" in text
    assert "Carries: hours" in text
    assert "the section cannot stand without it" in text
    assert "https://museum.example/" in Page(response).links()


def test_imported_is_no_way_to_check(section: Section, editor: Client) -> None:
    values = {tag.get("value") for tag in Page(editor.get(address(section))).all("input")}

    assert "read-online" in values
    assert "imported" not in values


def test_looking_records_nothing(section: Section, editor: Client) -> None:
    editor.get(address(section))
    editor.head(address(section))

    assert not Check.objects.exists()


# ---- recording ----


def test_a_check_is_recorded_with_what_was_found_in_each_source(
    section: Section, editor: Client
) -> None:
    leaflet, page = checking.present_citations(section)

    response = record(
        editor, section, note="Rang them.", **{f"citation_{page.pk}": "supports-partly"}
    )

    check = Check.objects.get()
    assert response.status_code == 302
    assert response["Location"] == reverse("admin:factsheets_section_change", args=[section.pk])
    assert (check.section, check.checked_on) == (section, timezone.localdate())
    assert (check.outcome, check.method, check.note) == ("confirmed", "read-online", "Rang them.")
    assert check.checked_by_name == "carla"
    assert check.text_hash == section.text_hash
    assert {item.citation: item.outcome for item in check.items.all()} == {
        leaflet: "supports",
        page: "supports-partly",
    }


def test_a_source_not_looked_at_has_no_item(section: Section, editor: Client) -> None:
    leaflet, page = checking.present_citations(section)

    record(editor, section, **{f"citation_{page.pk}": "not-looked-at"})

    assert [item.citation for item in Check.objects.get().items.all()] == [leaflet]


def test_the_next_page_says_when_the_next_check_is_due(section: Section, editor: Client) -> None:
    response = record(editor, section)

    text = said(editor.get(response["Location"]))
    assert "Recorded. The next check is due by" in text


def test_after_a_check_in_part_the_next_page_says_what_is_left(
    section: Section, editor: Client
) -> None:
    page = checking.present_citations(section)[1]

    response = record(editor, section, **{f"citation_{page.pk}": "not-looked-at"})

    assert "Not checked yet with “The museum's page”" in said(editor.get(response["Location"]))


def test_a_section_without_a_source_can_be_disputed(editor: Client) -> None:
    bare = factories.section(factories.sheet())
    path = address(bare)
    data = {**form(editor.get(path)), "method": "asked-person", "outcome": "disputed"}

    response = editor.post(path, data)

    assert "No source is cited here." in said(editor.get(path))
    assert response.status_code == 302
    assert Check.objects.get().outcome == "disputed"


# ---- refusals keep what was typed ----


TOMORROW = f"{timezone.localdate() + timedelta(days=1)}"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"outcome": ""}, "Say what the check came to."),
        ({"method": ""}, "Say how you checked."),
        ({"checked_on": ""}, "Say on which day you checked."),
        ({"checked_on": "yesterday"}, "Enter a valid date."),
        ({"checked_on": TOMORROW}, "is still to come"),
        ({"checked_on": "2026-05-31"}, "The text has stood like this since 1 June 2026"),
        ({"checked_on": "2026-06-03", "note": ""}, "say in the note why it is recorded now"),
        ({"outcome": "source-unreachable"}, "You reached some of the sources"),
        ({"outcome": "nonsense"}, "Select a valid choice."),
        ({"method": "imported"}, "Select a valid choice."),
    ],
)
def test_what_is_refused_is_said_and_what_was_typed_is_kept(
    section: Section, editor: Client, changed: dict[str, str], words: str
) -> None:
    sent = filled(section, **{"note": "Rang them.", **changed})

    response = record(editor, section, **sent)

    text = said(response)
    assert response.status_code == 200
    assert "The check was not recorded" in text
    assert words in text
    assert not Check.objects.exists()
    offered = {k: v for k, v in sent.items() if v not in {"", "nonsense", "imported"}}
    assert {name: form(response).get(name) for name in offered} == offered


def test_a_source_of_which_nothing_is_said_is_asked_about(section: Section, editor: Client) -> None:
    page = checking.present_citations(section)[1]

    response = record(editor, section, **{f"citation_{page.pk}": ""})

    assert "Say what you found, or that you did not look." in said(response)
    assert not Check.objects.exists()


def test_a_source_that_the_section_needs_cannot_be_against_a_confirmed_text(
    section: Section, editor: Client
) -> None:
    page = checking.present_citations(section)[1]

    response = record(editor, section, **{f"citation_{page.pk}": "contradicts"})

    assert "“The museum's page” does not bear the text out" in said(response)
    assert form(response)[f"citation_{page.pk}"] == "contradicts"
    assert not Check.objects.exists()


def test_an_empty_form_is_refused_in_words(section: Section, editor: Client) -> None:
    response = editor.post(address(section))

    assert "The check was not recorded" in said(response)
    assert "Say what the check came to." in said(response)


@pytest.mark.parametrize(
    "change",
    [
        lambda section: editing.change(
            section, by=factories.person(), reason="new", now=LATER, body="At eleven."
        ),
        lambda section: editing.change(
            section.citations.first(), by=factories.person(), reason="new", now=LATER, locator="2"
        ),
        lambda section: factories.save(
            Citation(section=section, source=factories.source("new"), position=9)
        ),
        lambda section: editing.remove(
            section.citations.first(), by=factories.person(), reason="new", now=LATER
        ),
    ],
    ids=["the text", "a place in a source", "a source added", "a source taken away"],
)
def test_what_changed_while_somebody_checked_is_not_confirmed(
    section: Section, editor: Client, change: Any
) -> None:
    data = {**form(editor.get(address(section))), **filled(section)}
    change(section)

    response = editor.post(address(section), data)

    assert response.status_code == 200
    assert not Check.objects.exists()
    assert form(response)["text_hash"] == Section.objects.get(pk=section.pk).text_hash


def test_the_page_after_a_change_shows_the_new_text_and_says_why(
    section: Section, editor: Client
) -> None:
    data = {**form(editor.get(address(section))), **filled(section)}
    editing.change(section, by=factories.person(), reason="new", now=LATER, body="At eleven.")

    text = said(editor.post(address(section), data))

    assert "changed while you checked; look at them as they stand now" in text
    assert "At eleven." in text


@pytest.mark.parametrize("forged", ["seen_x", "seen_", "seen_-1", "seen_²", "citation_999"])
def test_a_form_with_strange_fields_breaks_nothing(
    section: Section, editor: Client, forged: str
) -> None:
    assert record(editor, section, **{forged: "1"}).status_code in {200, 302}


def test_an_archived_or_removed_section_is_not_checked(section: Section, editor: Client) -> None:
    data = {**form(editor.get(address(section))), **filled(section)}
    editing.remove(section, by=factories.person(), reason="out", now=LATER)

    response = editor.post(address(section), data)

    assert "taken out of use; restore it before you check it" in said(response)
    assert not Check.objects.exists()


# ---- when the next one is due ----


def due(client: Client, section: Section, day: str) -> str:
    response = client.get(address(section, "next-due"), {"checked_on": day})
    assert response.status_code == 200
    return said(response)


def test_the_page_says_when_the_next_check_would_be_due(section: Section, editor: Client) -> None:
    response = editor.get(address(section))

    assert "The next check would be due by" in said(response)
    (day,) = [tag for tag in Page(response).all("input") if tag.get("name") == "checked_on"]
    assert day["hx-get"] == address(section, "next-due")
    assert day["hx-target"] == "#next-due"


def test_the_fragment_goes_by_the_kind_that_holds_shortest(
    section: Section, editor: Client
) -> None:
    # The page of a museum holds three months, the leaflet twelve.
    assert due(editor, section, "2026-11-30") == (
        "The next check would be due by 28 February 2027."
    )


def test_the_fragment_goes_by_the_plan_of_the_section_too(section: Section, editor: Client) -> None:
    factories.save(ReviewPlan(sheet=section.sheet, section=section, interval="14 days"))

    assert "14 December 2026" in due(editor, section, "2026-11-30")


@pytest.mark.parametrize("day", ["", "soon", "2026-02-30", "9" * 30, "²", "<b>", "\0"])
def test_for_a_day_that_is_none_the_fragment_asks_for_one(
    section: Section, editor: Client, day: str
) -> None:
    assert due(editor, section, day) == "Choose a day to see when the next check would be due."


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_ends_of_the_calendar_break_nothing(section: Section, editor: Client, day: str) -> None:
    assert "The next check would be due by" in due(editor, section, day)


def test_the_fragment_takes_no_post(section: Section, editor: Client) -> None:
    assert editor.post(address(section, "next-due")).status_code == 405


# ---- where one goes afterwards ----


def test_one_goes_back_to_where_one_came_from(section: Section, editor: Client) -> None:
    report = reverse("admin:stale_report") + "?state=never-checked"

    response = record(editor, section, f"?next={report.replace('?', '%3F')}")

    assert response["Location"] == report


@pytest.mark.parametrize(
    "evil",
    [
        "//evil.example",
        "///evil.example",
        "https://evil.example/",
        "https:evil.example",
        "http:///evil.example",
        "\\\\evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "javascript:alert(1)",
        " //evil.example",
        "evil.example",
        "data:text/html,x",
    ],
)
def test_nobody_is_led_to_another_place_by_an_address(
    section: Section, editor: Client, evil: str
) -> None:
    home = reverse("admin:factsheets_section_change", args=[section.pk])

    page = editor.get(address(section), {"next": evil})
    response = record(editor, section, next=evil)

    assert form(page)["next"] == home
    assert evil not in Page(page).links()
    assert response["Location"] == home


# ---- replacing a check ----


@pytest.fixture
def checked(section: Section) -> Check:
    return checking.record(
        section=section,
        seen=checking.seen_now(section),
        checked_on=TODAY,
        outcome="confirmed",
        method="read-paper",
        items={c.pk: "supports" for c in checking.present_citations(section)},
        by=factories.person(),
        now=factories.NOON,
    )


def test_a_check_is_replaced_and_stays_on_record(
    section: Section, editor: Client, checked: Check
) -> None:
    query = f"?supersedes={checked.pk}"

    response = record(editor, section, query, note="It was another leaflet.")

    new = Check.objects.get(supersedes=checked)
    assert response.status_code == 302
    assert new.note == "It was another leaflet."
    assert Check.objects.count() == 2
    text = said(editor.get(address(section)))
    assert "replaced" in text
    assert "It was another leaflet." in text


def test_a_replacement_says_what_it_replaces_and_wants_a_note(
    section: Section, editor: Client, checked: Check
) -> None:
    query = f"?supersedes={checked.pk}"

    response = record(editor, section, query, note="")

    assert "This replaces the check of 1 June 2026 by anna" in said(response)
    assert "Say in the note what was wrong with the check that this replaces." in said(response)
    assert form(response)["supersedes"] == f"{checked.pk}"
    assert Check.objects.count() == 1


def test_a_check_is_replaced_once(section: Section, editor: Client, checked: Check) -> None:
    query = f"?supersedes={checked.pk}"
    record(editor, section, query, note="First.")

    response = record(editor, section, query, note="Second.")

    assert "That check has been replaced already" in said(response)
    assert Check.objects.count() == 2


def test_the_link_to_replace_a_check_remembers_where_one_came_from(
    section: Section, editor: Client, checked: Check
) -> None:
    report = reverse("admin:stale_report")

    (link,) = [
        link
        for link in Page(editor.get(address(section), {"next": report})).links()
        if "supersedes=" in link
    ]

    assert form(editor.get(address(section) + link))["next"] == report


@pytest.mark.parametrize("number", ["999999", "9" * 9])
def test_a_check_that_is_not_there_is_not_replaced(
    section: Section, editor: Client, number: str
) -> None:
    assert editor.get(address(section), {"supersedes": number}).status_code == 404


def test_a_check_of_another_section_is_not_replaced(
    section: Section, editor: Client, checked: Check
) -> None:
    other = factories.section(section.sheet, "tower", source=factories.source("tower"))

    assert editor.get(address(other), {"supersedes": checked.pk}).status_code == 404


# ---- who may ----


@pytest.mark.parametrize("role", [roles.EDITOR, roles.MAINTAINER])
@pytest.mark.parametrize("where", ["in the house", "on the sheet"])
def test_editors_and_maintainers_record_checks(section: Section, role: str, where: str) -> None:
    client = browser(role, of={"in the house": None, "on the sheet": section}[where])

    response = record(client, section)

    assert response.status_code == 302
    assert Check.objects.get().checked_by_name == "carla"


@pytest.mark.parametrize("role", [roles.VIEWER, roles.RULE_KEEPER, roles.PUBLISHER])
@pytest.mark.parametrize("where", ["in the house", "on the sheet"])
def test_others_record_none_and_may_ask_when_one_is_due(
    section: Section, role: str, where: str
) -> None:
    client = browser(role, of={"in the house": None, "on the sheet": section}[where])
    seen = checking.seen_now(section)
    data = {"text_hash": seen.text_hash, **{f"seen_{pk}": use for pk, use in seen.uses.items()}}

    found = client.get(address(section)), client.post(address(section), {**data, **filled(section)})

    assert [response.status_code for response in found] == [403, 403]
    assert not Check.objects.exists()
    assert "would be due by" in due(client, section, "2026-11-30")


def test_a_member_of_another_sheet_sees_and_records_nothing(section: Section) -> None:
    other = factories.section(factories.sheet("other"), source=factories.source("other"))
    client = browser(roles.EDITOR, of=other)

    for page in ("check", "next-due"):
        assert client.get(address(section, page)).status_code == 403
    assert client.post(address(section), filled(section)).status_code == 403
    assert not Check.objects.exists()


def test_the_button_on_a_section_is_there_for_who_may_record_a_check(section: Section) -> None:
    page = reverse("admin:factsheets_section_change", args=[section.pk])
    button = reverse("admin:factsheets_section_record_check", args=[section.pk])

    offered = {
        role: any(button in link for link in Page(browser(role).get(page)).links())
        for role in roles.ROLES
    }

    assert {role for role, is_there in offered.items() if is_there} == {
        roles.EDITOR,
        roles.MAINTAINER,
    }


# ---- what stands in the way of nothing ----


EVIL = "<img src=x onerror=evil()>"


def test_html_in_every_text_is_shown_as_text(editor: Client) -> None:
    sheet = factories.sheet(title=f"Sheet {EVIL}")
    source = factories.source(title=f"Source {EVIL}", access=f"Access {EVIL}")
    section = factories.section(sheet, heading=f"Heading {EVIL}", body=f"Body {EVIL}")
    factories.save(
        Citation(
            section=section,
            source=source,
            locator=f"Locator {EVIL}",
            claims=f"Claims {EVIL}",
            quote=f"Quote {EVIL}",
        )
    )
    evil_person = factories.person(f"by {EVIL}")
    checking.record(
        section=section,
        seen=checking.seen_now(section),
        checked_on=TODAY,
        outcome="confirmed",
        method="read-online",
        items={c.pk: "supports" for c in checking.present_citations(section)},
        by=evil_person,
        now=factories.NOON,
        note=f"Note {EVIL}",
    )

    response = editor.get(address(section))

    words = ("Sheet", "Source", "Access", "Heading", "Body", "Locator", "Claims", "Quote", "Note")
    for word in (*words, "by"):
        assert f"{word} {EVIL}" in Page(response).text, word
    assert EVIL.encode() not in response.content


@pytest.mark.parametrize("field", ["note", "checked_on", "next", "outcome", "text_hash"])
def test_html_that_was_typed_is_shown_as_text(section: Section, editor: Client, field: str) -> None:
    evil = f'">{EVIL}'

    response = record(editor, section, **{"outcome": "", field: evil})

    assert response.status_code == 200
    assert EVIL.encode() not in response.content


def test_saving_the_text_of_a_section_records_no_check(section: Section, editor: Client) -> None:
    path = reverse("admin:factsheets_section_change", args=[section.pk])
    data = Page(editor.get(path)).form("section_form").data

    response = editor.post(path, {**data, **filled(section), "body": "At eleven.", "why": "new"})

    section.refresh_from_db()
    assert response.status_code == 302
    assert section.body == "At eleven."
    assert not Check.objects.exists()
