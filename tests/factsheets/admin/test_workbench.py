"""The workbench: one card at a time, what others wrote is never taken back, and the page stays small."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from factsheets import editing, history, roles
from factsheets.models import Citation, Rule, Section, Sheet, Source
from tests import factories
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

TRICKY = "<script>alert(1)</script> {{ 7 }} <b x-data='{}' hx-on:click='b'>"


@pytest.fixture
def sheet() -> Sheet:
    """Three sections with a source each, published."""
    of = factories.ready_sheet()
    for key in ("dogs", "fees"):
        factories.section(of, key, heading=key.title(), source=factories.source(key))
    factories.passing_run(of)
    factories.publish(of)
    return of


def enter(*in_roles: str) -> Client:
    client = Client()
    client.force_login(
        factories.person("mine", *in_roles), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


@pytest.fixture
def editor() -> Client:
    return enter(roles.EDITOR)


def at(name: str, sheet: Sheet, *more: int) -> str:
    suffix = f"_{name}" if name else ""
    return reverse(f"admin:sheet_workbench{suffix}", args=[sheet.pk, *more])


def read(client: Client, address: str) -> Page:
    response = client.get(address)
    assert response.status_code == 200, address
    return Page(response)


def said(page: Page) -> str:
    return " ".join(page.text.split())


def opened(client: Client, address: str) -> dict[str, str]:
    """What the card's form would send."""
    page = read(client, f"{address}?edit" if "cit" not in address else address)
    return next(form.data for form in page.forms if "data-draft" in form.attributes)


def save(client: Client, address: str, form: dict[str, str], **typed: str) -> Any:
    prefix = next(name for name in form if name.endswith("-why")).removesuffix("why")
    values = {f"{prefix}{name}": value for name, value in {"why": "mine", **typed}.items()}
    return client.post(address, {**form, **values})


def theirs(row: Any, **values: object) -> None:
    fresh = type(row).objects.get(pk=row.pk)
    editing.change(fresh, by=factories.person("otto"), reason="his", now=timezone.now(), **values)


def keys(sheet: Sheet) -> list[str]:
    return [section.key for section in history.snapshot_now(sheet).sections]


# ---- reading ----


def test_every_section_is_a_card_with_its_state_tokens_and_sources(
    editor: Client, sheet: Sheet
) -> None:
    page = read(editor, at("", sheet))

    cards = [tag["id"] for tag in page.all("article")]
    assert cards == ["card-hours", "card-dogs", "card-fees"]
    text = said(page)
    assert "never-checked" in text
    assert "about 26 tokens" in text
    assert "The leaflet, page 1" in text
    assert "About" in text
    assert "of 189976." in text


def test_cards_to_read_carry_no_fields(editor: Client, sheet: Sheet) -> None:
    page = read(editor, at("", sheet))

    drafts = [form for form in page.forms if "data-draft" in form.attributes]
    assert [form.attributes["data-draft"] for form in drafts] == ["section-new"]


def test_the_gate_stands_beside_and_leads_to_the_card_that_mends(
    editor: Client, sheet: Sheet
) -> None:
    theirs(sheet.sections.get(key="fees"), body="")

    panel = read(editor, at("gate", sheet))

    assert "The gate is closed" in said(panel)
    assert f"{at('', sheet)}#card-fees" in panel.links()
    assert "Since publication 1" in said(panel)


def test_a_publisher_publishes_from_the_panel_what_it_showed(sheet: Sheet) -> None:
    client = enter(roles.PUBLISHER)
    theirs(sheet.sections.get(key="dogs"), body="No dogs.")
    factories.passing_run(sheet, now=timezone.now())
    form = read(client, at("gate", sheet)).form_to(reverse("admin:sheet_publish", args=[sheet.pk]))

    client.post(form.attributes["action"], {**form.data, "reason": "go"})

    assert sheet.publications.count() == 2


def test_a_closed_gate_names_its_reason_at_the_button(sheet: Sheet) -> None:
    theirs(Rule.objects.get(), text="Be kind.")

    panel = read(enter(roles.PUBLISHER), at("gate", sheet))

    buttons = [b for b in panel.all("button") if "m-primary" in b.get("class", "")]
    assert [("disabled" in b, b.get("aria-describedby")) for b in buttons] == [
        (True, "bench-closed")
    ]
    assert "Closed: The probes have not run on these rules" in said(panel)


def test_a_viewer_reads_and_has_nothing_to_press(sheet: Sheet) -> None:
    page = read(enter(roles.VIEWER), at("", sheet))

    assert not [form for form in page.forms if "hx-post" in form.attributes]
    assert "Edit" not in said(page)


def test_the_panel_starts_the_probes_and_the_page_stays(sheet: Sheet) -> None:
    client = enter(roles.EDITOR)
    start = reverse("runs:start", args=[sheet.pk])

    first = client.post(start, headers={"HX-Request": "true"})
    second = client.post(start, headers={"HX-Request": "true"})

    assert (first.status_code, "running" in Page(first).text) == (200, True)
    assert second.status_code == 204
    assert "under way" in second.headers["HX-Trigger"]
    assert "bench-says" in second.headers["HX-Trigger"]


def test_the_end_of_a_run_asks_the_panel_anew_and_leads_nowhere(sheet: Sheet) -> None:
    client = enter(roles.EDITOR)
    progress = f"{reverse('runs:progress', args=[sheet.pk])}?was=open"

    answer = client.get(progress, headers={"HX-Current-URL": f"http://testserver{at('', sheet)}"})

    assert answer.headers["HX-Trigger"] == "sheet-changed"
    assert "HX-Redirect" not in answer.headers


# ---- editing ----


def test_a_card_is_edited_in_its_place_and_touches_no_other(editor: Client, sheet: Sheet) -> None:
    section = sheet.sections.get(key="dogs")
    address = at("section", sheet, section.pk)

    answer = save(editor, address, opened(editor, address), body="No dogs, but guide dogs.")

    section.refresh_from_db()
    assert section.body == "No dogs, but guide dogs."
    assert answer.headers["HX-Trigger"] == "sheet-changed"
    assert "No dogs, but guide dogs." in said(Page(answer))
    assert section.history.latest().history_change_reason == "mine"
    assert {s.key: s.history.count() for s in sheet.sections.all()} == {
        "hours": 1,
        "dogs": 2,
        "fees": 1,
    }


def test_without_a_reason_the_card_comes_back_with_the_words(editor: Client, sheet: Sheet) -> None:
    section = sheet.sections.get(key="dogs")
    address = at("section", sheet, section.pk)

    answer = save(editor, address, opened(editor, address), body="No dogs.", why="")

    assert "Say in a few words why you change this." in said(Page(answer))
    assert "No dogs." in Page(answer).text
    assert "HX-Trigger" not in answer.headers
    assert Section.objects.get(pk=section.pk).body != "No dogs."


def test_a_save_over_another_s_shows_both_and_the_next_keeps_mine(
    editor: Client, sheet: Sheet
) -> None:
    section = sheet.sections.get(key="dogs")
    address = at("section", sheet, section.pk)
    form = opened(editor, address)
    theirs(section, body="Dogs on leads.", heading="Dogs and cats")

    first = save(editor, address, form, body="No dogs.")
    page = Page(first)
    again = next(f.data for f in page.forms if "data-draft" in f.attributes)
    save(editor, address, again)

    section.refresh_from_db()
    assert "otto saved this on" in said(page)
    assert "changed by both" in said(page)
    assert {"del", "ins"} <= {tag for tag, _ in page.tags}
    assert (section.body, section.heading) == ("No dogs.", "Dogs and cats")


def test_the_last_save_is_undone(editor: Client, sheet: Sheet) -> None:
    section = sheet.sections.get(key="dogs")
    before = section.body
    address = at("section", sheet, section.pk)
    page = Page(save(editor, address, opened(editor, address), body="No dogs."))
    (undo,) = (b["value"] for b in page.all("button") if b.get("name") == "undo")

    editor.post(address, {"undo": undo})

    section.refresh_from_db()
    assert section.body == before
    assert section.history.count() == 3


def test_what_somebody_saved_since_is_not_undone(editor: Client, sheet: Sheet) -> None:
    section = sheet.sections.get(key="dogs")
    address = at("section", sheet, section.pk)
    page = Page(save(editor, address, opened(editor, address), body="No dogs."))
    (undo,) = (b["value"] for b in page.all("button") if b.get("name") == "undo")
    theirs(section, body="Dogs on leads.")

    answer = editor.post(address, {"undo": undo})

    section.refresh_from_db()
    assert "not the newest save any more" in said(Page(answer))
    assert section.body == "Dogs on leads."


# ---- order and use ----


def act(client: Client, sheet: Sheet, key: str, what: str) -> Any:
    return client.post(at("act", sheet, Section.objects.get(key=key).pk), {"act": what})


def test_sections_move_by_buttons_and_only_what_moved_is_written(
    editor: Client, sheet: Sheet
) -> None:
    act(editor, sheet, "fees", "up")
    act(editor, sheet, "hours", "up")
    act(editor, sheet, "dogs", "down")

    assert keys(sheet) == ["hours", "fees", "dogs"]
    assert {s.key: s.history.count() for s in sheet.sections.all()} == {
        "hours": 1,
        "dogs": 2,
        "fees": 2,
    }


def test_a_section_is_left_out_taken_in_out_of_use_and_back(editor: Client, sheet: Sheet) -> None:
    section = Section.objects.get(key="dogs")
    act(editor, sheet, "dogs", "leave-out")
    section.refresh_from_db()
    left_out = section.included
    act(editor, sheet, "dogs", "include")
    page = Page(act(editor, sheet, "dogs", "remove"))
    removed = keys(sheet)
    act(editor, sheet, "dogs", "restore")

    assert not left_out
    assert removed == ["hours", "fees"]
    assert "1 section out of use" in said(page)
    assert keys(sheet) == ["hours", "dogs", "fees"]


def test_a_section_is_added_at_the_end_under_a_key_of_its_own(editor: Client, sheet: Sheet) -> None:
    for body in ("Free.", "Not free."):
        editor.post(at("add", sheet), {"new-heading": "Fees", "new-body": body})

    assert keys(sheet) == ["hours", "dogs", "fees", "fees-2", "fees-3"]


def test_a_section_without_a_heading_is_not_added(editor: Client, sheet: Sheet) -> None:
    answer = editor.post(at("add", sheet), {"new-heading": "", "new-body": "Lost?"})

    assert "This field is required." in said(Page(answer))
    assert "Lost?" in Page(answer).text
    assert sheet.sections.count() == 3


# ---- sources ----


def test_a_source_that_there_is_becomes_cited(editor: Client, sheet: Sheet) -> None:
    section = Section.objects.get(key="dogs")
    source = factories.source("handbook", title="The handbook")
    address = at("cite", sheet, section.pk)

    answer = save(editor, address, opened(editor, address), source=str(source.pk), locator="p. 3")

    assert "The handbook, p. 3" in said(Page(answer))
    assert section.citations.count() == 2


def test_a_new_source_is_made_with_its_citation_in_one_change(editor: Client, sheet: Sheet) -> None:
    section = Section.objects.get(key="dogs")
    address = at("cite", sheet, section.pk)

    save(
        editor,
        address,
        opened(editor, address),
        new_title="Byelaws of the park",
        new_kind="law-or-regulation",
        new_url="https://example.org/byelaws",
    )

    source = Source.objects.get(title="Byelaws of the park")
    made = Citation.objects.get(source=source)
    assert (source.key, made.section) == ("byelaws-of-the-park", section)
    assert source.history.get().change_set == made.history.get().change_set


@pytest.mark.parametrize(
    "typed", [{}, {"source": "1", "new_title": "Both"}, {"new_title": "X", "new_url": "ftp://x"}]
)
def test_a_citation_of_nothing_of_two_things_or_of_no_address_is_refused(
    editor: Client, sheet: Sheet, typed: dict[str, str]
) -> None:
    section = Section.objects.get(key="dogs")
    address = at("cite", sheet, section.pk)
    if "source" in typed:
        typed = {**typed, "source": str(Source.objects.first().pk)}  # type: ignore[union-attr]
    before = Source.objects.count()

    answer = save(editor, address, opened(editor, address), **typed)

    assert [tag for tag in Page(answer).all("p") if tag.get("role") == "alert"]
    assert (section.citations.count(), Source.objects.count()) == (1, before)


def test_a_citation_is_edited_and_no_longer_cited(editor: Client, sheet: Sheet) -> None:
    cited = Section.objects.get(key="dogs").citations.get()
    address = at("citation", sheet, cited.pk)

    save(editor, address, opened(editor, address), locator="page 7")
    cited.refresh_from_db()
    locator = cited.locator
    editor.post(address, {"act": "remove"})

    cited.refresh_from_db()
    assert (locator, cited.removed_at is not None) == ("page 7", True)


def test_citations_change_places_in_one_change(editor: Client, sheet: Sheet) -> None:
    section = Section.objects.get(key="dogs")
    for name in ("first", "second"):
        row = Citation(section=section, source=factories.source(name, title=name.title()))
        row.position = editing.next_position(section.citations.all())
        factories.save(row)
    last = section.citations.get(source__key="second")
    untouched = Section.objects.get(key="fees").citations.get()
    entries = Citation.history.filter(id=untouched.pk).count()

    answer = editor.post(at("citation", sheet, last.pk), {"act": "up"})

    order = [c.source.key for c in section.citations.order_by("position")]
    assert order == ["dogs", "second", "first"]
    text = said(Page(answer))
    assert text.index("Second") < text.index("First")
    assert Citation.history.filter(id=untouched.pk).count() == entries
    moved = {
        row.history.latest().change_set for row in section.citations.exclude(source__key="dogs")
    }
    assert len(moved) == 1


# ---- rules ----


def test_rules_are_kept_on_their_own_tab_with_their_hash(sheet: Sheet) -> None:
    keeper = enter(roles.RULE_KEEPER)
    rule = Rule.objects.get()
    address = at("rule", sheet, rule.pk)
    candidate = history.candidate_now(Sheet.objects.select_related("bot").get(pk=sheet.pk))

    page = read(keeper, at("rules", sheet))
    answer = save(keeper, address, opened(keeper, address), text="Be kind.")

    rule.refresh_from_db()
    assert candidate.subject.rules_hash in said(page)
    assert rule.text == "Be kind."
    assert "Be kind." in said(Page(answer))


def test_rules_move_and_go_out_of_use(sheet: Sheet) -> None:
    keeper = enter(roles.RULE_KEEPER)
    factories.rule(sheet, "second", text="Second.")
    second = Rule.objects.get(key="second")
    address = at("rule", sheet, second.pk)

    keeper.post(address, {"act": "up"})
    order = [rule.key for rule in history.snapshot_now(sheet).rules]
    keeper.post(address, {"act": "remove"})

    assert order == ["second", "sheet-only"]
    assert [rule.key for rule in history.snapshot_now(sheet).rules] == ["sheet-only"]


def test_a_rule_is_added_to_the_sheet_s_own_at_the_end(sheet: Sheet) -> None:
    keeper = enter(roles.RULE_KEEPER)
    new = {"new-key": "no-prices", "new-kind": "refusal", "new-text": "Name no price."}

    first = keeper.post(at("add_rule", sheet), new)
    again = keeper.post(at("add_rule", sheet), new)

    assert first.headers["HX-Retarget"] == "#cards"
    assert [rule.key for rule in history.snapshot_now(sheet).rules] == ["sheet-only", "no-prices"]
    assert "That exists already" in said(Page(again))
    assert "Name no price." in Page(again).text


def test_a_rule_of_another_sheet_is_not_there(sheet: Sheet) -> None:
    other = factories.ready_sheet("abbey")
    rule = Rule.objects.get(ruleset__sheet_links__sheet=other)

    assert enter(roles.RULE_KEEPER).get(at("rule", sheet, rule.pk)).status_code == 404


# ---- what people wrote, and what it costs ----


def test_what_people_wrote_is_shown_and_never_obeyed(sheet: Sheet) -> None:
    section = Section.objects.get(key="dogs")
    theirs(section, heading=TRICKY, question=TRICKY, body=TRICKY, note=TRICKY)
    theirs(section.citations.get(), locator=TRICKY, quote=TRICKY)
    theirs(section.citations.get().source, title=TRICKY)
    theirs(Rule.objects.get(), text=TRICKY)
    client = enter(roles.EDITOR, roles.RULE_KEEPER)

    for address in (
        at("", sheet),
        at("rules", sheet),
        at("contents", sheet),
        at("gate", sheet),
        f"{at('section', sheet, section.pk)}?edit",
        at("cite", sheet, section.pk),
    ):
        page = read(client, address)
        names = {name for _, attributes in page.tags for name in attributes}
        assert not {name for name in names if name.startswith("hx-on")}, address
        assert "alert(1)" not in page.scripts, address


def test_sixty_sections_of_nine_sources_are_a_small_page_and_few_questions(
    editor: Client, sheet: Sheet, django_assert_num_queries: Any
) -> None:
    sources = [factories.source(f"s{number}", title=f"Source {number}") for number in range(9)]
    for number in range(57):
        row = factories.section(
            sheet, f"more-{number}", heading=f"More {number}", body="Text. " * 60
        )
        for source in sources:
            factories.save(Citation(section=row, source=source, locator="page 1"))
    read(editor, at("", sheet))

    with django_assert_num_queries(13):
        response = editor.get(at("", sheet))

    assert len(response.content) < 300_000
    assert sheet.sections.count() == 60
