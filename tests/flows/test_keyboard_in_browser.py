"""The editors' whole path without a mouse: from the log-in to a publication."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.flows.browsing import listen
from tests.flows.product import CASTLE, Person, Product

pytestmark = [pytest.mark.browser, pytest.mark.services]

#: So often at most is Tab pressed to get anywhere.
FAR = 250


@pytest.fixture(scope="module")
def editor(product: Product) -> Person:
    answer = product.command("import_sheet", CASTLE)
    assert answer.code == 0, answer.err
    return product.user("eva", "editor", "publisher")


def tab_to(page: Page, there: Locator) -> None:
    """Press Tab until the focus stands there, and see that it is seen."""
    for _ in range(FAR):
        if there.count() and there.first.evaluate("e => e === document.activeElement"):
            expect(there.first).to_be_in_viewport()
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{FAR} times Tab do not lead to {there}.")


def press(page: Page, there: Locator, key: str = "Enter") -> None:
    tab_to(page, there)
    page.keyboard.press(key)


def write(page: Page, there: Locator, text: str) -> None:
    tab_to(page, there)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(text)


def test_from_the_log_in_to_a_publication_without_a_mouse(
    page: Page, product: Product, editor: Person, hosts: set[str]
) -> None:
    complaints = listen(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(f"http://127.0.0.1:{product.port}/admin/login/")
    write(page, page.get_by_label("Username"), editor.name)
    write(page, page.get_by_label("Password"), editor.password)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Sheets").first).to_be_visible()

    # The list, and the workbench of the castle.
    press(page, page.get_by_role("link", name="Sheets", exact=True))
    castle = page.get_by_role("row", name="Colchester Castle")
    press(page, castle.get_by_role("link", name="workbench"))
    cards = page.get_by_role("article")
    expect(page.get_by_text("The gate is closed")).to_be_visible()
    headings = cards.locator("h2").all_inner_texts()

    # A card is reached, edited and saved by keys; Escape leaves the field, not the words.
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(cards.nth(1)).to_be_focused()
    page.keyboard.press("e")
    expect(cards.nth(1).get_by_label("Heading")).to_be_focused()
    write(page, cards.nth(1).get_by_label("Note"), "Written without a mouse.")
    page.keyboard.press("Escape")
    expect(cards.nth(1)).to_be_focused()
    write(page, cards.nth(1).get_by_label("Why"), "By keys.")
    press(page, cards.nth(1).get_by_role("button", name="Save"))
    expect(cards.nth(1).get_by_text("Note: Written without a mouse.")).to_be_visible()
    expect(cards.nth(1)).to_be_focused()

    # Its place among the others; whoever moves it stays with it.
    first, moved, third = headings[:3]
    press(page, page.get_by_role("button", name=f"Move {moved} up"))
    expect(cards.first.locator("h2")).to_have_text(moved)
    expect(cards.first).to_be_focused()
    down = page.get_by_role("button", name=f"Move {moved} down")
    press(page, down)
    expect(cards.nth(1).locator("h2")).to_have_text(moved)
    expect(down).to_be_focused()
    page.keyboard.press("Enter")
    expect(cards.nth(2).locator("h2")).to_have_text(moved)
    assert product.rows(
        "list(Section.objects.order_by('position').values_list('heading', flat=True)[:3])"
    ) == [first, third, moved]

    # The probes, and the publication.
    panel = page.get_by_role("complementary", name="Ready to publish?")
    press(page, panel.get_by_role("button", name="Run probes"))
    expect(panel.get_by_text("29 of 29 asked")).to_be_visible(timeout=60_000)
    expect(panel.get_by_text("The gate is open.")).to_be_visible()
    write(page, panel.get_by_label("Why"), "Without a mouse.")
    press(page, panel.get_by_role("button", name="Publish"))
    expect(page.get_by_text("Publication 1 is live.")).to_be_visible()

    assert product.rows("[p.reason for p in Publication.objects.all()]") == ["Without a mouse."]
    assert complaints == []
    assert hosts == {"127.0.0.1"}
