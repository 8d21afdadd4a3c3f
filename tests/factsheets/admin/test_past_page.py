"""The page of the text on any day, and a complaint answered with it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from factsheets import editing, publishing, roles
from factsheets.models import Check, Member, Publication, Rule, Section, Sheet
from tests import factories
from tests.factories import LATER, NOON
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

NOW = datetime(2026, 6, 10, 15, 30, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7|add:7 }}&lt;b&gt;"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that the page reads, standing still until it is moved."""
    standing = SimpleNamespace(now=NOW)
    monkeypatch.setattr(timezone, "now", lambda: standing.now)
    return standing


@pytest.fixture
def castle() -> Sheet:
    """Publication 1 went live at noon of 1 June."""
    return factories.published_sheet("castle")


@pytest.fixture
def viewer() -> Client:
    return enter("vera", roles.VIEWER)


def enter(name: str, *groups: str) -> Client:
    client = Client()
    client.force_login(
        factories.person(name, *groups), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def ask(client: Client, sheet: Sheet, at: str = "", find: str = "") -> HttpResponse:
    asked = {name: value for name, value in (("at", at), ("find", find)) if value}
    return client.get(reverse("admin:sheet_past", args=[sheet.pk]), asked)


def page(client: Client, sheet: Sheet, at: str = "", find: str = "") -> Page:
    response = ask(client, sheet, at, find)
    assert response.status_code == 200
    return Page(response)


def words(of: Page) -> str:
    """The text of a page with every stretch of white space as one blank."""
    return " ".join(of.text.split())


def edit(row: Any, now: datetime = LATER, **values: Any) -> None:
    editing.change(row, by=factories.person(), reason="for a test", now=now, **values)


def withdraw(sheet: Sheet, now: datetime = LATER) -> None:
    publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="Wrong times.", now=now)


def marked(response: HttpResponse) -> list[str]:
    return re.findall(r'<mark class="m-found">(.*?)</mark>', response.content.decode(), re.DOTALL)


# ---- who may look ----


def test_who_is_not_logged_in_is_asked_to(client: Client, castle: Sheet) -> None:
    response = ask(client, castle)

    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")


def test_somebody_without_a_role_is_told_no(castle: Sheet) -> None:
    assert ask(enter("newcomer"), castle).status_code == 403


@pytest.mark.parametrize("role", roles.ROLES)
def test_everybody_with_a_role_may_look(castle: Sheet, role: str) -> None:
    assert ask(enter("somebody", role), castle).status_code == 200


def test_a_member_of_the_sheet_may_look_and_one_of_another_may_not(castle: Sheet) -> None:
    other = factories.sheet("tower")
    mine, theirs = enter("of-castle"), enter("of-tower")
    for name, sheet in (("of-castle", castle), ("of-tower", other)):
        factories.save(Member(sheet=sheet, user=factories.person(name), role=Member.Role.VIEWER))

    assert (ask(mine, castle).status_code, ask(mine, other).status_code) == (200, 403)
    assert (ask(theirs, castle).status_code, ask(theirs, other).status_code) == (403, 200)


def test_a_sheet_that_is_not_there_is_a_plain_no(viewer: Client) -> None:
    assert viewer.get(reverse("admin:sheet_past", args=[999_999])).status_code == 404


def test_the_page_is_for_reading(viewer: Client, castle: Sheet) -> None:
    address = reverse("admin:sheet_past", args=[castle.pk])

    assert viewer.post(address).status_code == 405
    assert viewer.head(address).status_code == 200


# ---- as served and as drafted ----


def test_a_draft_that_reads_like_what_was_live_is_shown_once(viewer: Client, castle: Sheet) -> None:
    edit(castle.sections.get(), note="For editors alone.")

    text = words(page(viewer, castle))

    assert "As served, and as drafted: The castle" in text
    assert text.count("closes at five") == 1
    assert "As served to bots" not in text


def test_a_draft_that_differs_stands_beside_what_was_live(viewer: Client, castle: Sheet) -> None:
    edit(castle.sections.get(), body="The castle is closed.")

    text = words(page(viewer, castle))

    served, drafted = text.index("As served to bots:"), text.index("As drafted:")
    assert served < text.index("closes at five") < drafted < text.index("The castle is closed.")


def test_a_rule_that_differs_is_enough_to_show_both(viewer: Client, castle: Sheet) -> None:
    edit(Rule.objects.get(), text="Say nothing at all.")

    text = words(page(viewer, castle))

    assert "As served to bots:" in text
    assert "Say nothing at all." in text
    assert "Answer only from the sheet." in text


def test_the_draft_is_that_of_the_moment(viewer: Client, castle: Sheet) -> None:
    edit(castle.sections.get(), LATER, body="The castle is closed.")
    edit(castle.sections.get(), LATER + timedelta(hours=1), body="The castle has burnt down.")

    text = words(page(viewer, castle, "2026-06-02T12:30:00Z"))

    assert "The castle is closed." in text
    assert "burnt" not in text


def test_before_the_first_publication_only_the_draft_is_shown(
    viewer: Client, clock: SimpleNamespace
) -> None:
    sheet = factories.ready_sheet("castle")

    text = words(page(viewer, sheet))

    assert "Nothing was live. The sheet had not been published." in text
    assert "As drafted: The castle" in text
    assert "As served" not in text


def test_before_there_was_anything_the_page_says_so(viewer: Client, castle: Sheet) -> None:
    text = words(page(viewer, castle, "2026-05-31"))

    assert "Nothing was live. The sheet had not been published." in text
    assert "There was no draft yet either." in text
    assert "closes at five" not in text


def test_while_it_was_withdrawn_the_page_says_since_when_and_why(
    viewer: Client, castle: Sheet
) -> None:
    withdraw(castle)

    text = words(page(viewer, castle, "2026-06-03"))

    assert "Nothing was live. Withdrawn on 2 June 2026, 13:00 by anna: Wrong times." in text
    assert "As served" not in text
    assert "As drafted:" in text


def test_people_read_what_was_live_before_it_was_withdrawn(viewer: Client, castle: Sheet) -> None:
    withdraw(castle)

    text = words(page(viewer, castle, "2026-06-01"))

    assert "Publication 1 was live, published on 1 June 2026, 13:00 by anna: for a test" in text
    assert "closes at five" in text


def test_the_number_that_was_live_leads_to_its_page(viewer: Client, castle: Sheet) -> None:
    links = page(viewer, castle).links()

    address = reverse("admin:factsheets_publication_change", args=[Publication.objects.get().pk])
    assert address in links
    assert viewer.get(address).status_code == 200


def test_a_section_left_out_is_shown_as_such_and_not_searched(
    viewer: Client, castle: Sheet
) -> None:
    with_note = factories.section(castle, "moat", heading="The moat", body="Pike swim there.")
    edit(with_note, included=False)

    response = ask(viewer, castle, find="pike")

    text = words(Page(response))
    assert "The moat (left out)" in text
    assert "Does not stand there word for word." in text
    assert marked(response) == []


def test_sources_and_checks_stand_beside_each_section(viewer: Client, castle: Sheet) -> None:
    text = words(page(viewer, castle))

    assert "1 source, checked on 1 June 2026 by anna: confirmed" in text
    assert "The leaflet, page 1: hours" in text
    assert "1 rule Answer only from the sheet." in text


def test_a_sheet_whose_bot_went_out_of_use_is_still_shown(viewer: Client, castle: Sheet) -> None:
    editing.remove(castle.bot, by=factories.person(), reason="gone", now=LATER)

    assert "closes at five" in words(page(viewer, castle))


# ---- the moment ----


def test_without_a_moment_now_is_shown(viewer: Client, castle: Sheet) -> None:
    shown = page(viewer, castle)

    assert "At 10 June 2026, 16:30:00" in words(shown)
    (form,) = [form for form in shown.forms if "at" in form.data]
    assert form.data["at"] == "2026-06-10"


def test_a_day_means_its_end(viewer: Client, castle: Sheet) -> None:
    assert "At 1 June 2026, 23:59:59" in words(page(viewer, castle, "2026-06-01"))


def test_what_was_asked_stands_in_the_form_again(viewer: Client, castle: Sheet) -> None:
    shown = page(viewer, castle, " 2026-06-01T14:30+02:00 ", "closes at five")

    (form,) = [form for form in shown.forms if "at" in form.data]
    assert form.data == {"at": "2026-06-01T14:30+02:00", "find": "closes at five"}


@pytest.mark.parametrize(
    "at",
    ["yesterday", "2026-02-29", "20260601", "0001-01-01T00:00Z", "\x00", "9" * 5_000, HOSTILE],
)
def test_a_moment_that_is_none_is_answered_with_a_sentence_beside_the_form(
    viewer: Client, castle: Sheet, at: str
) -> None:
    shown = page(viewer, castle, at)

    sentence = "Give a day such as 2026-05-03, or an instant such as 2026-05-03T14:30:00Z."
    assert sentence in words(shown)
    (field,) = [tag for tag in shown.all("input") if tag.get("name") == "at"]
    assert field["aria-invalid"] == "true"
    assert "at-error" in field["aria-describedby"].split()
    assert "closes at five" not in words(shown)


def test_a_moment_to_come_is_answered_with_a_sentence(viewer: Client, castle: Sheet) -> None:
    assert "2026-06-11 is still to come;" in words(page(viewer, castle, "2026-06-11"))


@pytest.mark.parametrize("at", ["0001-01-01", "0001-01-01T00:02:00Z"])
def test_the_first_day_of_the_calendar_is_shown(viewer: Client, castle: Sheet, at: str) -> None:
    assert "There was no draft yet either." in words(page(viewer, castle, at))


# ---- a word, or a claim ----


def test_a_phrase_is_marked_where_it_stands_in_the_letters_of_the_text(
    viewer: Client, castle: Sheet
) -> None:
    response = ask(viewer, castle, find="OPENS  at ten")

    text = words(Page(response))
    assert marked(response) == ["opens at ten"]
    assert "Stands word for word 1 time, marked below." in text


def test_every_place_is_marked_in_what_was_served_and_in_the_draft(
    viewer: Client, castle: Sheet
) -> None:
    edit(castle.sections.get(), body="Closes at noon, then closes again.")

    response = ask(viewer, castle, find="closes")

    assert marked(response) == ["closes", "Closes", "closes"]
    assert "Stands word for word 2 times, marked below." in words(Page(response))


def test_the_text_around_a_mark_stays_whole(viewer: Client, castle: Sheet) -> None:
    plain, found = page(viewer, castle), page(viewer, castle, find="ten in the")

    sentence = "The castle opens at ten in the morning and closes at five."
    assert sentence in plain.text
    assert sentence in found.text


def test_a_claim_is_answered_with_the_nearest_passage_and_what_it_lacks(
    viewer: Client, castle: Sheet
) -> None:
    shown = page(viewer, castle, find="The castle opens at ten on Sundays.")

    text = words(shown)
    assert "Found in part for “The castle opens at ten on Sundays.”" in text
    assert "Not there: Sundays." in text
    assert "#1-hours" in shown.links()
    assert "1-hours" in [tag.get("id") for tag in shown.all("h3")]


def test_a_claim_that_the_sheet_does_not_bear_out_is_answered_so(
    viewer: Client, castle: Sheet
) -> None:
    text = words(page(viewer, castle, find="Dragons guard the treasury."))

    assert "No support found for “Dragons guard the treasury.”" in text
    assert "Not there: Dragons, guard, treasury." in text


def test_a_claim_is_cut_where_the_form_would_cut_it(viewer: Client, castle: Sheet) -> None:
    shown = page(viewer, castle, find="x" * 3_000)

    (form,) = [form for form in shown.forms if "find" in form.data]
    assert len(form.data["find"]) == 2_000


# ---- hostile text ----


@pytest.fixture
def hostile() -> Sheet:
    """A published sheet with markup in every field that takes any text."""
    sheet = factories.ready_sheet("castle")
    edit(sheet, NOON, title=HOSTILE, description=HOSTILE)
    section = sheet.sections.get()
    body = f"The castle opens at ten in the morning. {HOSTILE}"
    edit(section, NOON, heading=HOSTILE, question=HOSTILE, body=body, note=HOSTILE)
    citation = section.citations.get()
    edit(citation, NOON, locator=HOSTILE, claims=HOSTILE, quote=HOSTILE)
    edit(citation.source, NOON, title=HOSTILE, author=HOSTILE, note=HOSTILE)
    edit(Rule.objects.get(), NOON, text=HOSTILE)
    Check.objects.create(
        section=section,
        text_hash="0" * 64,
        checked_on=NOON.date(),
        recorded_at=NOON,
        checked_by=factories.person(),
        checked_by_name=HOSTILE,
        outcome="confirmed",
        method="read-paper",
        note=HOSTILE,
    )
    factories.passing_run(sheet)
    view = publishing.look(Sheet.objects.get(pk=sheet.pk), now=NOON)
    publishing.publish(
        sheet_id=sheet.pk,
        seen=view.candidate.subject,
        seen_live_number=None,
        by=factories.person(),
        reason=HOSTILE,
        now=NOON,
    )
    return sheet


def test_markup_in_any_field_is_shown_as_text(viewer: Client, hostile: Sheet) -> None:
    edit(hostile.sections.get(), body=f"{HOSTILE} again")

    for find in (HOSTILE, "<script>", "alert", "gt;"):
        shown = page(viewer, hostile, find=find)

        sources = [tag.get("src", "") for tag in (*shown.all("script"), *shown.all("img"))]
        assert "x" not in sources
        assert [name for _, tag in shown.tags for name in tag if name.startswith("onerror")] == []
        assert "alert(" not in shown.scripts
        assert shown.text.count("<script>alert(1)</script>") >= 8
        assert "{{ 7|add:7 }}&lt;b&gt;" in shown.text


def test_markup_in_what_was_asked_is_shown_as_text(viewer: Client, castle: Sheet) -> None:
    for asked in ({"at": HOSTILE}, {"find": HOSTILE}, {"at": HOSTILE, "find": HOSTILE}):
        shown = page(viewer, castle, **asked)

        assert "alert(" not in shown.scripts
        assert [tag for tag in shown.all("img") if tag.get("src") == "x"] == []


def test_a_mark_in_the_middle_of_markup_opens_nothing(viewer: Client, hostile: Sheet) -> None:
    response = ask(viewer, hostile, find="<script>alert")

    assert marked(response) == ["&lt;script&gt;alert"]


# ---- what it costs ----


def _filled(sections: int) -> Sheet:
    sheet = factories.ready_sheet(f"castle-{sections}")
    for number in range(sections):
        factories.section(sheet, f"s-{number}", source=factories.source(f"{sheet.slug}-{number}"))
    factories.passing_run(sheet)
    factories.publish(sheet)
    edit(sheet.sections.order_by("pk").first(), body="The castle is closed.")
    return sheet


def test_the_page_asks_the_database_as_often_for_many_sections_as_for_few(viewer: Client) -> None:
    few, many = _filled(2), _filled(20)
    ask(viewer, few)

    counts = []
    for sheet in (few, many):
        with CaptureQueriesContext(connection) as queries:
            ask(viewer, sheet, find="closes at five")
        counts.append(len(queries))

    assert counts == [QUERIES, QUERIES]


#: Who asks and what they may (5), the sheet, the event, and nine for the draft of the moment.
QUERIES = 16


# ---- a complaint, from end to end ----


def test_a_complaint_of_a_past_day_is_answered_with_what_was_said_then(
    viewer: Client, client: Client, clock: SimpleNamespace
) -> None:
    """A visitor came at five on 2 June: your assistant said six. Did it?"""
    clock.now = NOON
    sheet = factories.ready_sheet("castle")
    section = sheet.sections.get()
    edit(section, NOON, body="The castle opens at ten and closes at six.")
    factories.passing_run(sheet)
    factories.publish(sheet, now=NOON)
    changed = NOON + timedelta(days=2)
    edit(section, changed, body="The castle opens at ten and closes at five.")
    factories.publish(sheet, now=changed)
    clock.now = NOW

    then = words(page(viewer, sheet, "2026-06-02", "The castle closes at six."))
    today = words(page(viewer, sheet, "", "The castle closes at six."))
    served = client.get("/api/v1/sheets/castle/as-of/2026-06-02/").content.decode()

    assert "Publication 1 was live" in then
    assert "Found for “The castle closes at six.”" in then
    assert "closes at five" not in then
    assert "Publication 2 was live" in today
    assert "Not there: six." in today
    assert "closes at six" in served
    assert "closes at five" not in served


def test_a_past_that_was_looked_at_is_not_written(viewer: Client, castle: Sheet) -> None:
    before = (Section.history.count(), Publication.objects.count())

    page(viewer, castle, "2026-06-01", "closes")

    assert (Section.history.count(), Publication.objects.count()) == before
