"""A sheet's history as people read it: the timeline, any two states, and the way back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from factsheets import canonical, editing, history, publishing, roles
from factsheets.models import ChangeSet, Rule, Section, Sheet
from tests import factories
from tests.factories import NOON
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

DAY = timedelta(days=1)
TRICKY = "<script>alert(1)</script> {{ 7 }} x-data=\"a\" <b hx-on:click='b'>"


@pytest.fixture
def live() -> Sheet:
    return factories.published_sheet()


def enter(*in_roles: str) -> Client:
    client = Client()
    client.force_login(
        factories.person("reader", *in_roles),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return client


def address(name: str, sheet: Sheet) -> str:
    return reverse(f"admin:sheet_{name}", args=[sheet.pk])


def read(client: Client, name: str, sheet: Sheet, **query: Any) -> Page:
    response = client.get(address(name, sheet), query)
    assert response.status_code == 200
    return Page(response)


def said(page: Page) -> str:
    return " ".join(page.text.split())


def edit(row: Any, days: int, by: str = "ben", reason: str = "edit", **values: object) -> None:
    editing.change(row, by=factories.person(by), reason=reason, now=NOON + days * DAY, **values)


# ---- timeline ----


def test_saves_and_publications_stand_in_one_line_newest_first(live: Sheet) -> None:
    section = live.sections.get()
    edit(section, 1, "ben", "in short", body="The castle opens at ten.")
    factories.passing_run(live, now=NOON + 2 * DAY)
    factories.publish(live, now=NOON + 2 * DAY)
    edit(Rule.objects.get(), 3, "kim", "kinder", text="Be kind.")

    text = said(read(enter(roles.VIEWER), "timeline", live))

    order = [
        text.index(words)
        for words in (
            "kim, 4 June 2026",
            "rule sheet-only changed (text)",
            "Publication 2 live",
            "ben, 2 June 2026",
            "section hours changed (body)",
            "Publication 1 live",
        )
    ]
    assert order == sorted(order)


def test_a_withdrawal_stands_in_the_line_with_its_reason(live: Sheet) -> None:
    publishing.withdraw(
        sheet_id=live.pk, by=factories.person("paula"), reason="wrong price", now=NOON + DAY
    )

    assert "Nothing live, withdrawn on 2 June 2026, 13:00:00 by paula: wrong price" in said(
        read(enter(roles.VIEWER), "timeline", live)
    )


def test_older_pages_follow_until_the_first_and_nothing_is_told_twice(live: Sheet) -> None:
    section = live.sections.get()
    for number in range(45):
        edit(section, number + 1, reason=f"edit {number}.", body=f"Opens at {number}.")
    client = enter(roles.VIEWER)
    seen: list[str] = []
    query: dict[str, str] = {}
    while True:
        page = read(client, "timeline", live, **query)
        seen += [word for word in page.text.split("\n") if "edit " in word]
        older = [link for link in page.links() if link.startswith("?before=")]
        if not older:
            break
        query = {"before": older[0].removeprefix("?before=")}

    text = " ".join(seen)
    found = [text.index(f": edit {number}.") for number in reversed(range(45))]
    assert found == sorted(found)
    assert text.count(": edit ") == 45
    assert "Publication 1 live" in said(page)


@pytest.mark.parametrize("before", ["x", "-1", "0", "9" * 30, "²"])
def test_an_address_that_means_nothing_is_answered_with_a_page(live: Sheet, before: str) -> None:
    read(enter(roles.VIEWER), "timeline", live, before=before)


def test_a_long_history_costs_as_many_questions_as_a_short_one(
    live: Sheet, django_assert_num_queries: Any
) -> None:
    client = enter(roles.VIEWER)
    section = live.sections.get()
    for number in range(25):
        edit(section, number + 1, body=f"Opens at {number}.")
    read(client, "timeline", live)
    with django_assert_num_queries(33):
        read(client, "timeline", live)
    for number in range(25, 75):
        edit(section, number + 1, body=f"Opens at {number}.")

    with django_assert_num_queries(33):
        read(client, "timeline", live)


def test_an_instant_is_headed_as_people_write_it(live: Sheet) -> None:
    edit(live.sections.get(), 1, body="Opens at ten.")

    text = said(
        read(
            enter(roles.VIEWER),
            "compare",
            live,
            **{"from": "2026-06-01T12:30:00.000001+00:00", "to": "draft"},
        )
    )

    assert "From 1 June 2026, 13:30 to draft" in text


def test_ten_thousand_change_sets_are_read_at_the_same_number_of_questions(
    live: Sheet, django_assert_num_queries: Any
) -> None:
    client = enter(roles.VIEWER)
    section = live.sections.get()
    edit(section, 1, body="Opens at ten.")
    _repeat_newest_save(section, 10_000)
    read(client, "timeline", live)

    with django_assert_num_queries(33):
        page = read(client, "timeline", live)
    with django_assert_num_queries(9):
        picture = history.snapshot_as_of(live, NOON + 2 * DAY)

    assert "save 10000" in said(page)
    assert picture is not None
    assert picture.sections[0].body == "Opens at 1440."


def _repeat_newest_save(section: Section, count: int) -> None:
    """As many later saves, a minute apart, put straight into the tables: saving takes minutes."""
    newest = section.history.latest()
    own = {f.attname: getattr(newest, f.attname) for f in newest._meta.concrete_fields}
    del own["history_id"]
    last = ChangeSet.objects.latest("pk").pk
    times = [NOON + DAY + timedelta(minutes=number) for number in range(1, count + 1)]
    ChangeSet.objects.bulk_create(
        ChangeSet(
            pk=last + number,
            at=at,
            by_id=newest.history_user_id,
            by_name="reader",
            reason=f"save {number}",
        )
        for number, at in enumerate(times, 1)
    )
    Section.history.bulk_create(
        Section.history.model(
            **{
                **own,
                "change_set_id": last + number,
                "history_date": at,
                "body": f"Opens at {number}.",
            }
        )
        for number, at in enumerate(times, 1)
    )


# ---- comparing ----


def test_the_draft_is_compared_with_the_newest_publication_unless_told(live: Sheet) -> None:
    edit(live.sections.get(), 1, body="The castle opens at nine in the morning and closes at five.")

    page = read(enter(roles.VIEWER), "compare", live)

    assert [t for t, _ in page.tags if t in {"del", "ins"}] == ["del", "ins"]
    assert "From publication 1 to draft" in said(page)


def test_any_two_moments_and_publications_are_compared(live: Sheet) -> None:
    section = live.sections.get()
    edit(section, 1, body="The castle opens at nine.")
    edit(section, 2, body="The castle opens at eight.")
    client = enter(roles.VIEWER)
    moment = canonical.instant(NOON + DAY)

    then = read(client, "compare", live, **{"from": moment, "to": "draft"})
    days = read(client, "compare", live, **{"from": "2026-06-01", "to": "2026-06-02"})
    same = read(client, "compare", live, **{"from": "publication 1", "to": "2026-06-01"})

    assert "opens at nine eight." in said(then).replace("nineeight", "nine eight")
    assert "nine" in said(days)
    assert "eight" not in said(days)
    assert "There is no difference." in said(same)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("publication 9", "castle has no publication 9; choose one from the list."),
        ("yesterday", "Give a day such as"),
        ("2020-01-01", "castle was not there at that moment"),
        ("2999-01-01", "is still to come"),
        ("publication 99999999999", "Give a day such as"),
    ],
)
def test_a_state_that_there_is_not_is_answered_with_a_sentence(
    live: Sheet, state: str, words: str
) -> None:
    assert words in said(read(enter(roles.VIEWER), "compare", live, **{"from": state}))


def test_what_people_wrote_is_shown_and_never_obeyed(live: Sheet) -> None:
    section = live.sections.get()
    edit(section, 1, reason=TRICKY, heading=TRICKY[:200], body=TRICKY, note=TRICKY)
    edit(Rule.objects.get(), 1, reason=TRICKY, text=TRICKY)
    edit(section.citations.get(), 1, quote=TRICKY, claims=TRICKY)
    client = enter(roles.EDITOR)

    for name, query in (("compare", {}), ("timeline", {}), ("restore", {"at": "2026-06-01"})):
        page = read(client, name, live, **query)

        assert TRICKY[:30] in page.text.replace("\n", ""), name
        assert not [a for _, attributes in page.tags for a in attributes if a.startswith("hx-on")]
        assert not [t for t, attributes in page.tags if attributes.get("x-data") == "a"]
        assert "alert(1)" not in page.scripts


# ---- the way back ----


def send(client: Client, sheet: Sheet, reason: str = "a mistake", **query: str) -> Page:
    form = next(f for f in read(client, "restore", sheet, **query).forms if "reason" in f.data)
    return Page(
        client.post(address("restore", sheet), {**form.data, "reason": reason}, follow=True)
    )


def test_an_editor_brings_the_draft_back_and_what_is_live_stays(live: Sheet) -> None:
    section = live.sections.get()
    edit(section, 1, body="Closed.")
    edit(Rule.objects.get(), 1, text="Be kind.")

    page = send(enter(roles.EDITOR), live, at="2026-06-01")

    assert "Brought back, in one new change of 1 row. What is live stays." in page.text
    section.refresh_from_db()
    assert section.body.startswith("The castle opens at ten")
    assert Rule.objects.get().text == "Be kind."
    assert live.publications.count() == 1


def test_a_rule_keeper_who_edits_brings_the_rules_back_too(live: Sheet) -> None:
    edit(Rule.objects.get(), 1, text="Be kind.")

    send(enter(roles.EDITOR, roles.RULE_KEEPER), live, at="2026-06-01")

    assert Rule.objects.get().text == "Answer only from the sheet."


def test_one_section_is_brought_back(live: Sheet) -> None:
    section = live.sections.get()
    edit(section, 1, body="Closed.")
    other = factories.section(live, "dogs", heading="Dogs", body="No dogs.")

    send(enter(roles.EDITOR), live, at="2026-06-01", section="hours")

    section.refresh_from_db()
    assert section.body.startswith("The castle opens at ten")
    assert Section.objects.get(pk=other.pk).removed_at is None


def ways_back(page: Page) -> list[str]:
    return [tag["href"] for _, tag in page.tags if "section=" in tag.get("href", "")]


def test_each_section_that_differs_from_a_past_moment_has_its_own_way_back(live: Sheet) -> None:
    edit(live.sections.get(), 1, body="Closed.")
    factories.save(Section(sheet=live, key="new", heading="New", body="x"), now=NOON + DAY)
    client = enter(roles.EDITOR)

    (way,) = ways_back(read(client, "compare", live, **{"from": "2026-06-01", "to": "draft"}))

    assert way == f"{address('restore', live)}?at=2026-06-01&section=hours"
    assert "becomes what it was then" in said(Page(client.get(way)))


@pytest.mark.parametrize(
    ("role", "one", "other"),
    [
        (roles.VIEWER, "2026-06-01", "draft"),
        (roles.EDITOR, "publication 1", "draft"),
        (roles.EDITOR, "2026-06-01", "2026-06-02"),
        (roles.EDITOR, "draft", "draft"),
        (roles.EDITOR, "no moment", "draft"),
    ],
)
def test_there_is_no_way_back_elsewhere_or_for_who_may_not(
    live: Sheet, role: str, one: str, other: str
) -> None:
    edit(live.sections.get(), 1, body="Closed.")

    page = read(enter(role), "compare", live, **{"from": one, "to": other})

    assert ways_back(page) == []


def test_the_page_shows_beforehand_what_will_change(live: Sheet) -> None:
    edit(live.sections.get(), 1, body="Closed.")

    page = read(enter(roles.EDITOR), "restore", live, at="2026-06-01")

    assert "What will change" in page.text
    assert {"del", "ins"} <= {tag for tag, _ in page.tags}


def test_without_a_reason_nothing_is_brought_back(live: Sheet) -> None:
    section = live.sections.get()
    edit(section, 1, body="Closed.")

    page = send(enter(roles.EDITOR), live, reason="", at="2026-06-01")

    assert "Say in a few words why" in page.text
    section.refresh_from_db()
    assert section.body == "Closed."


@pytest.mark.parametrize("at", ["", "yesterday", "2999-01-01", "2020-01-01"])
def test_a_moment_that_there_was_not_is_answered_with_a_sentence(live: Sheet, at: str) -> None:
    response = enter(roles.EDITOR).get(address("restore", live), {"at": at}, follow=True)

    assert response.redirect_chain == [(address("timeline", live), 302)]
    assert any(w in Page(response).text for w in ("Give a day", "still to come", "was not there"))


@pytest.mark.parametrize("role", [roles.VIEWER, roles.PUBLISHER, roles.RULE_KEEPER])
def test_whoever_may_not_edit_has_no_way_back(live: Sheet, role: str) -> None:
    edit(live.sections.get(), 1, body="Closed.")
    client = enter(role)

    answer = client.post(address("restore", live), {"at": "2026-06-01", "reason": "x"})

    assert answer.status_code == 403
    assert "bring it back" not in read(client, "timeline", live).text
    assert live.sections.get().body == "Closed."
