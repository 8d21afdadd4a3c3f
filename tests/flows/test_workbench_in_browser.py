"""The workbench in a real browser: nothing that somebody wrote is lost, whatever happens to the page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.flows.browsing import listen, log_in, shoot
from tests.flows.product import CASTLE, Person, Product

pytestmark = [pytest.mark.browser, pytest.mark.services]

FIRST, SECOND = "Boudica's attack", "Who built it and when"


@pytest.fixture(scope="module")
def address(product: Product) -> str:
    answer = product.command("import_sheet", CASTLE)
    assert answer.code == 0, answer.err
    key = product.rows("Sheet.objects.get(slug='colchester-castle').pk")
    return f"http://127.0.0.1:{product.port}/admin/factsheets/sheet/{key}/workbench/"


@pytest.fixture(scope="module")
def editor(product: Product, address: str) -> Person:
    return product.user("eva", "editor", "publisher")


@pytest.fixture(scope="module")
def other(product: Product, address: str) -> Person:
    return product.user("otto", "editor")


@pytest.fixture
def bench(
    page: Page, product: Product, editor: Person, address: str, hosts: set[str]
) -> Iterator[Page]:
    """The workbench of the castle, open in a browser that has no complaint to the end."""
    complaints = listen(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    log_in(page, product, editor)
    page.goto(address)
    yield page
    assert complaints == []
    assert hosts <= {"127.0.0.1"}


def card(page: Page, heading: str) -> str:
    """The selector of a card, which stays the same while it is edited."""
    found = page.get_by_role("article").filter(has=page.get_by_role("heading", name=heading))
    return f"#{found.first.get_attribute('id')}"


def edit(page: Page, where: str, body: str, why: str = "A word.") -> None:
    page.locator(f"{where} [data-edit]").click()
    page.locator(where).get_by_label("Body").fill(body)
    page.locator(where).get_by_label("Why").fill(why)


def press_save(page: Page, where: str) -> None:
    page.locator(where).get_by_role("button", name="Save").click()


def body_of(product: Product, where: str) -> str:
    key = where.removeprefix("#card-")
    found: str = product.rows(f"Section.objects.get(key={key!r}).body")
    return found


def test_a_card_is_edited_saved_and_undone_in_its_place(bench: Page, product: Product) -> None:
    where = card(bench, FIRST)
    before = body_of(product, where)
    expect(bench.get_by_text("The gate is closed")).to_be_visible()

    edit(bench, where, "Boudica burnt the temple.")
    expect(bench.locator(where).get_by_text("About 9 tokens")).to_be_visible()
    shoot(bench, "workbench-edit")
    press_save(bench, where)

    expect(bench.locator(where).get_by_text("Boudica burnt the temple.")).to_be_visible()
    expect(bench.get_by_role("status").filter(has_text="Saved.").first).to_be_visible()
    assert body_of(product, where) == "Boudica burnt the temple."
    bench.locator(where).get_by_role("button", name="Undo").click()
    expect(bench.locator(where).get_by_text("Boudica burnt the temple.")).to_have_count(0)
    assert body_of(product, where) == before


def test_two_who_edit_one_section_are_shown_each_other(
    bench: Page, browser: Browser, product: Product, other: Person, address: str
) -> None:
    where = card(bench, FIRST)
    second = browser.new_context().new_page()
    log_in(second, product, other)
    second.goto(address)
    edit(second, where, "Boudica came in AD 60.")
    edit(bench, where, "Boudica came in AD 61.")
    press_save(second, where)
    expect(second.locator(where).get_by_text("Boudica came in AD 60.")).to_be_visible()

    press_save(bench, where)

    expect(bench.locator(where).get_by_text("otto saved this on")).to_be_visible()
    expect(bench.locator(where).get_by_text("changed by both")).to_be_visible()
    assert body_of(product, where) == "Boudica came in AD 60."
    shoot(bench, "workbench-conflict")
    press_save(bench, where)
    expect(bench.locator(where).get_by_text("Boudica came in AD 61.").first).to_be_visible()
    assert body_of(product, where) == "Boudica came in AD 61."
    second.context.close()


def test_an_ended_log_in_is_made_good_in_place(
    bench: Page, product: Product, editor: Person
) -> None:
    where = card(bench, FIRST)
    edit(bench, where, "Written for a long time.")
    bench.context.clear_cookies(name="sessionid")

    press_save(bench, where)
    dialog = bench.get_by_role("dialog", name="Log in again")
    expect(dialog).to_be_visible()
    with bench.expect_response(re.compile("/admin/login/")):
        # The gate's panel asks after it, and in vain as well; the form is still the one to send.
        bench.evaluate("htmx.trigger(document.body, 'sheet-changed')")
    dialog.get_by_label("Name").fill(editor.name)
    dialog.get_by_label("Password").fill("not this one")
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog.get_by_text("do not fit; try again")).to_be_visible()
    dialog.get_by_label("Password").fill(editor.password)
    dialog.get_by_role("button", name="Log in").click()

    expect(dialog).to_be_hidden()
    expect(bench.locator(where).get_by_text("Written for a long time.")).to_be_visible()
    expect(bench.locator(where).get_by_label("Body")).to_have_count(0)
    assert body_of(product, where) == "Written for a long time."
    expect(bench.get_by_role("complementary", name="Ready to publish?")).to_contain_text(
        "The gate is closed"
    )


def test_a_button_pressed_with_an_ended_log_in_does_its_work_after_it(
    bench: Page, product: Product, editor: Person
) -> None:
    where = card(bench, FIRST)
    bench.context.clear_cookies(name="sessionid")

    bench.locator(where).get_by_role("button", name="Leave out").click()
    dialog = bench.get_by_role("dialog", name="Log in again")
    dialog.get_by_label("Name").fill(editor.name)
    dialog.get_by_label("Password").fill(editor.password)
    dialog.get_by_role("button", name="Log in").click()

    expect(dialog).to_be_hidden()
    bench.locator(where).get_by_role("button", name="Include").click()
    expect(bench.locator(where).get_by_role("button", name="Leave out")).to_be_visible()


def test_words_outlive_a_lost_network(
    page: Page, product: Product, editor: Person, address: str
) -> None:
    page.set_viewport_size({"width": 1440, "height": 1000})
    log_in(page, product, editor)
    page.goto(address)
    where = card(page, FIRST)
    edit(page, where, "Written on a train.")
    page.context.set_offline(True)

    press_save(page, where)
    expect(page.get_by_text("Not saved: there is no connection.")).to_be_visible()
    expect(page.locator(where).get_by_label("Body")).to_have_value("Written on a train.")
    page.context.set_offline(False)
    press_save(page, where)

    expect(page.locator(where).get_by_label("Body")).to_have_count(0)
    assert body_of(product, where) == "Written on a train."


def test_words_outlive_a_closed_tab(bench: Page, product: Product, address: str) -> None:
    where = card(bench, SECOND)
    edit(bench, where, "Half a sentence")
    second = bench.context.new_page()
    bench.close(run_before_unload=False)
    second.goto(address)

    expect(second.get_by_text(f"Unsaved words of {SECOND}.")).to_be_visible()
    second.get_by_role("button", name="Go on writing").click()
    second.get_by_role("button", name="Put them back").click()

    expect(second.locator(where).get_by_label("Body")).to_have_value("Half a sentence")
    second.locator(where).get_by_label("Why").fill("Done.")
    press_save(second, where)
    expect(second.locator(where).get_by_label("Body")).to_have_count(0)
    assert body_of(product, where) == "Half a sentence"
    second.reload()
    expect(second.get_by_text("Unsaved words")).to_have_count(0)


def test_leaving_with_unsaved_words_warns(bench: Page) -> None:
    where = card(bench, SECOND)
    asked: list[str] = []
    bench.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    edit(bench, where, "Unsaved")

    bench.get_by_role("link", name="What changed").click()
    bench.wait_for_timeout(300)

    assert asked == ["beforeunload"]
    expect(bench.locator(where).get_by_label("Body")).to_have_value("Unsaved")
    bench.locator(where).get_by_role("button", name="Cancel").click()
    expect(bench.locator(where).get_by_label("Body")).to_have_count(0)


def test_order_is_changed_by_buttons_and_cards_are_reached_by_keys(
    bench: Page, product: Product
) -> None:
    where = card(bench, SECOND)
    before = [a.get_attribute("id") for a in bench.get_by_role("article").all()]
    bench.get_by_role("button", name=f"Move {SECOND} up").press("Enter")
    expect(bench.get_by_role("article").nth(before.index(where[1:]) - 1)).to_have_attribute(
        "id", where[1:]
    )
    bench.get_by_role("button", name=f"Move {SECOND} down").press("Enter")
    expect(bench.get_by_role("article").nth(before.index(where[1:]))).to_have_attribute(
        "id", where[1:]
    )

    bench.locator(where).focus()
    bench.keyboard.press("k")
    bench.keyboard.press("j")
    expect(bench.locator(where)).to_be_focused()
    bench.keyboard.press("e")
    expect(bench.locator(where).get_by_label("Heading")).to_be_focused()
    bench.locator(where).get_by_label("Note").fill("by keys")
    bench.locator(where).get_by_label("Why").fill("by keys")
    bench.keyboard.press("Control+s")
    expect(bench.locator(where).get_by_text("Note: by keys")).to_be_visible()
    expect(bench.locator(where)).to_be_focused()


def test_a_section_is_added_and_its_form_is_empty_again(bench: Page, product: Product) -> None:
    form = bench.get_by_role("region", name="Add a section")
    form.get_by_label("Heading").fill("Parking")
    form.get_by_label("Body").fill("There is no car park.")
    form.get_by_role("button", name="Add").click()

    expect(bench.locator("#card-parking").get_by_text("There is no car park.")).to_be_visible()
    expect(form.get_by_label("Heading")).to_have_value("")
    assert body_of(product, "#card-parking") == "There is no car park."
    bench.locator("#card-parking").get_by_role("button", name="Take out of use").click()
    expect(bench.locator("#card-parking")).to_have_count(0)


def test_it_fits_a_phone_and_the_dark(bench: Page) -> None:
    bench.set_viewport_size({"width": 390, "height": 844})
    bench.emulate_media(color_scheme="dark")
    bench.reload()
    expect(bench.get_by_role("article").first).to_be_visible()

    assert bench.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(bench, "workbench-phone-dark")


def test_a_source_is_added_and_the_panel_publishes(
    bench: Page, product: Product, address: str
) -> None:
    where = card(bench, SECOND)
    bench.locator(where).get_by_role("button", name="Add a source").click()
    bench.locator(where).get_by_label("… or a new source: its title").fill("The town charter")
    bench.locator(where).get_by_label("Locator").fill("clause 2")
    press_save(bench, where)
    expect(bench.locator(where).get_by_text("The town charter, clause 2")).to_be_visible()

    panel = bench.get_by_role("complementary", name="Ready to publish?")
    # Pressed before the list of runs has come, as on a slow line: its answer never does.
    bench.route(re.compile(r"/runs/of/\d+/$"), lambda route: None, times=1)
    with bench.expect_request(re.compile(r"/runs/of/\d+/$")):
        bench.evaluate("htmx.trigger(document.body, 'sheet-changed')")
    panel.get_by_role("button", name="Run probes").click()
    expect(panel.get_by_text("29 of 29 asked")).to_be_visible(timeout=60_000)
    expect(panel.get_by_text("The gate is open.")).to_be_visible()
    assert bench.url == address
    panel.get_by_label("Why").fill("From the panel.")
    panel.get_by_role("button", name="Publish").click()
    expect(bench.get_by_text("Publication 1 is live.")).to_be_visible()
