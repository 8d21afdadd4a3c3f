"""The main job in a real browser, by visible links and labels."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.flows.browsing import listen, log_in, shoot
from tests.flows.product import CASTLE, Person, Product

pytestmark = [pytest.mark.browser, pytest.mark.services]


@pytest.fixture(scope="module")
def sheet_id(product: Product) -> int:
    answer = product.command("import_sheet", CASTLE)
    assert answer.code == 0, answer.err
    return int(product.rows("Sheet.objects.get(slug='colchester-castle').pk"))


@pytest.fixture(scope="module")
def people(product: Product, sheet_id: int) -> dict[str, Person]:
    return {
        role: product.user(role.replace(" ", "-"), role)
        for role in ("publisher", "rule keeper", "viewer")
    }


def _open_gate(page: Page, product: Product) -> None:
    page.goto(f"http://127.0.0.1:{product.port}/admin/factsheets/sheet/")
    page.get_by_role("row", name="Colchester Castle").get_by_role(
        "link", name="gate and publishing"
    ).click()
    expect(page.get_by_role("heading", name="What bots get now")).to_be_visible()


def test_probe_publish_close_and_open_again(
    page: Page, product: Product, people: dict[str, Person], hosts: set[str]
) -> None:
    complaints = listen(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    log_in(page, product, people["publisher"])
    _open_gate(page, product)
    expect(page.get_by_role("heading", name="Gate: closed")).to_be_visible()
    expect(page.get_by_text("The probes have not run on these rules")).to_have_count(2)
    expect(page.get_by_role("button", name="Publish")).to_be_disabled()

    page.get_by_role("button", name="Run probes").click()
    expect(page.get_by_role("heading", name="Gate: open")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("29 of 29 asked")).to_be_visible()
    expect(page.get_by_text("The offline bot does not read the rules")).to_be_visible()

    page.get_by_label("Why").fill("First publication.")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("Publication 1 is live.")).to_be_visible()

    _log_out(page, product)
    log_in(page, product, people["rule keeper"])
    page.goto(f"http://127.0.0.1:{product.port}/admin/factsheets/rule/?q=short-prose")
    page.get_by_role("link", name="short-prose").click()
    page.get_by_label("Text").fill("Answer in no more than 100 words of plain prose.")
    page.get_by_label("Why").fill("Shorter answers.")
    page.get_by_role("button", name="Save", exact=True).click()
    _open_gate(page, product)
    expect(page.get_by_role("heading", name="Gate: closed")).to_be_visible()
    expect(page.get_by_text("Publication 1").first).to_be_visible()
    expect(page.get_by_role("button", name="Publish")).to_have_count(0)

    _log_out(page, product)
    log_in(page, product, people["publisher"])
    _open_gate(page, product)
    expect(page.get_by_text("by changes of rule-keeper.")).to_be_visible()
    expect(page.get_by_text("rule-keeper (“Shorter answers.”): rule short-prose")).to_be_visible()
    expect(page.get_by_role("heading", name="Changed since publication 1")).to_be_visible()
    shoot(page, "gate")

    assert complaints == []
    assert hosts == {"127.0.0.1"}


def test_the_probes_of_all_sheets_run_by_one_press_and_a_draft_is_published_later(
    page: Page, product: Product, people: dict[str, Person], hosts: set[str]
) -> None:
    complaints = listen(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    log_in(page, product, people["publisher"])
    page.get_by_role("link", name="Gates").click()
    row = page.get_by_role("row", name="Colchester Castle")
    expect(row).to_contain_text("closed")
    page.get_by_role("button", name="Run the probes of all that wait for them").click()
    expect(page.get_by_text("The probes of 1 sheet are running.")).to_be_visible()
    _open_gate(page, product)
    expect(page.get_by_role("heading", name="Gate: open")).to_be_visible(timeout=60_000)

    page.get_by_label("Why").fill("Shorter answers from tomorrow on.")
    page.get_by_text("Or publish later").click()
    tomorrow = datetime.now(ZoneInfo("Europe/London")) + timedelta(days=1)
    page.get_by_label("When, in Europe/London").fill(f"{tomorrow:%Y-%m-%dT09:30}")
    page.get_by_role("button", name="Publish at that time").click()
    expect(page.get_by_role("heading", name="Scheduled")).to_be_visible()
    expect(page.get_by_text("by publisher: Shorter answers from tomorrow on.")).to_be_visible()

    page.get_by_role("button", name="Cancel the schedule").click()
    expect(page.get_by_text("The schedule is cancelled")).to_be_visible()
    expect(page.get_by_role("heading", name="Scheduled")).to_have_count(0)
    assert complaints == []
    assert hosts == {"127.0.0.1"}


def test_a_viewer_reads_the_gate_and_has_no_button(
    page: Page, product: Product, people: dict[str, Person]
) -> None:
    log_in(page, product, people["viewer"])
    _open_gate(page, product)

    expect(page.get_by_role("heading", name="Probes")).to_be_visible()
    expect(page.get_by_role("button", name="Run probes")).to_have_count(0)
    expect(page.get_by_role("button", name="Publish")).to_have_count(0)
    expect(page.get_by_role("link", name="Withdraw …")).to_have_count(0)


def test_the_gate_fits_a_phone_and_the_dark(
    page: Page, product: Product, people: dict[str, Person]
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    log_in(page, product, people["publisher"])

    _open_gate(page, product)

    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    shoot(page, "gate-phone-dark")


def test_from_the_log_in_to_a_first_publication_by_visible_links_and_labels_alone(
    page: Page, product: Product, hosts: set[str]
) -> None:
    everybody = product.user("mo", "maintainer", "editor", "rule keeper", "publisher")
    complaints = listen(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    log_in(page, product, everybody)

    # A sheet.
    page.get_by_role("link", name="Sheets", exact=True).click()
    page.get_by_role("link", name="Add sheet").click()
    page.get_by_label("Title").fill("The harbour museum")
    page.get_by_label("Why").fill("A new house.")
    page.get_by_role("button", name="Make the sheet").click()
    expect(page.get_by_role("heading", name="To the first publication")).to_be_visible()
    expect(page.get_by_role("heading", name="Gate: closed")).to_be_visible()

    # A source, and a section that rests on it.
    page.get_by_role("link", name="add a source").click()
    page.get_by_label("Title").fill("The harbour leaflet")
    page.get_by_label("Key").fill("harbour-leaflet")
    page.get_by_label("Kind").select_option("own policy")
    page.get_by_role("button", name="Save", exact=True).click()
    _to_gate_of(page, "The harbour museum")
    page.get_by_role("link", name="Add a section").click()
    page.get_by_label("Heading").press_sequentially("Opening hours")
    page.get_by_label("Body").fill("The museum opens at ten in the morning and closes at four.")
    cited = page.get_by_role("group", name="Sources of this section")
    cited.get_by_role("link", name="Add another Citation").click()
    cited.get_by_role("combobox").first.click()
    page.get_by_role("searchbox").last.press_sequentially("leaflet")
    page.get_by_role("option", name="The harbour leaflet").click()
    cited.get_by_role("textbox", name="Locator").fill("page 1")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()

    # A control question.
    _to_gate_of(page, "The harbour museum")
    page.get_by_role("link", name="Fill in a control question").click()
    page.get_by_role("link", name="control-1").click()
    page.get_by_label("Turns").fill("When does the museum open?")
    page.get_by_label("Last reply must contain one of").fill("ten")
    page.get_by_label("Active").check()
    page.get_by_label("Why").fill("What visitors ask most.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()

    # The probes, and the publication.
    _to_gate_of(page, "The harbour museum")
    expect(page.get_by_text("no-control")).to_have_count(0)
    page.get_by_role("button", name="Run probes").click()
    expect(page.get_by_role("heading", name="Gate: open")).to_be_visible(timeout=60_000)
    page.get_by_label("Why").fill("First publication.")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("Publication 1 is live.")).to_be_visible()
    expect(page.get_by_role("heading", name="To the first publication")).to_have_count(0)

    assert complaints == []

    # What a bot gets.
    page.get_by_role("link", name="as served").click()
    expect(page.get_by_text("The museum opens at ten in the morning")).to_be_visible()
    served = json.loads(product.get("/api/v1/sheets/the-harbour-museum/").text)
    assert (served["publication"], served["content"]["title"]) == (1, "The harbour museum")
    assert hosts == {"127.0.0.1"}


def test_a_viewer_finds_no_way_to_make_a_sheet(
    page: Page, product: Product, people: dict[str, Person]
) -> None:
    page.set_viewport_size({"width": 1440, "height": 1000})
    log_in(page, product, people["viewer"])

    page.get_by_role("link", name="Sheets", exact=True).click()
    expect(page.get_by_role("link", name="gate and publishing").first).to_be_visible()

    expect(page.get_by_role("link", name="Add sheet")).to_have_count(0)
    assert people["viewer"].get("/admin/new-sheet/").status == 403


def test_the_page_for_a_new_sheet_fits_a_phone_and_the_dark(page: Page, product: Product) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    log_in(page, product, product.user("mei", "maintainer"))

    page.get_by_role("link", name="Sheets", exact=True).click()
    page.get_by_role("link", name="Add sheet").click()
    page.get_by_role("button", name="Make the sheet").click()

    expect(page.get_by_role("alert")).to_contain_text("Title: Write what the sheet is about.")
    page.get_by_role("alert").get_by_role("link", name="Title").click()
    expect(page.get_by_label("Title")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def _to_gate_of(page: Page, title: str) -> None:
    """From wherever one is, by the side bar and the list of sheets."""
    page.get_by_role("link", name="Sheets").first.click()
    page.get_by_role("row", name=title).get_by_role("link", name="gate and publishing").click()
    expect(page.get_by_role("heading", name="What bots get now")).to_be_visible()


def _log_out(page: Page, product: Product) -> None:
    page.context.clear_cookies()
