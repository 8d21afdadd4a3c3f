"""From the log-in to a recorded check in a real browser, by visible links, labels and keys."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.flows.browsing import listen, log_in, shoot
from tests.flows.product import CASTLE, Person, Product

pytestmark = [pytest.mark.browser, pytest.mark.services]

CAFE = "factsheets/data/demo/cafe"


@pytest.fixture(scope="module")
def maintainer(product: Product) -> Person:
    """Somebody who sees to the checks of both demo sheets."""
    for folder in (CASTLE, CAFE):
        answer = product.command("import_sheet", folder)
        assert answer.code == 0, answer.err
    return product.user("mei", "maintainer")


@pytest.fixture
def complaints(page: Page) -> list[str]:
    """What the browser's console complains of."""
    return listen(page)


def _width(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


def test_from_the_log_in_to_a_check_and_back_to_the_report(
    page: Page,
    product: Product,
    maintainer: Person,
    complaints: list[str],
    hosts: set[str],
) -> None:
    page.set_viewport_size({"width": 1440, "height": 1000})
    log_in(page, product, maintainer)

    # What wants checking.
    page.get_by_role("link", name="What wants checking").click()
    report = page.get_by_role("table")
    allergens = report.get_by_role("row", name="Allergens")
    expect(allergens).to_contain_text("never-checked")
    expect(allergens).to_contain_text("Nobody has confirmed it with a source that it cites.")
    shoot(page, "stale-report")

    # The section beside its source; nothing is chosen beforehand.
    allergens.get_by_role("link", name="Record a check of Allergens").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Allergens", exact=True)).to_be_visible()
    expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    found = page.get_by_role("group", name="Allergen handling procedure")
    result = page.get_by_role("group", name="What the check came to")
    how = page.get_by_role("group", name="How you checked")

    # Sent too early, it says what is missing.
    page.get_by_role("button", name="Record the check").click()
    expect(page.get_by_role("alert")).to_contain_text("The check was not recorded")

    # By the keyboard: a space chooses.
    for choice in (
        found.get_by_label("supports", exact=True),
        result.get_by_label("confirmed"),
        how.get_by_label("read in a copy"),
    ):
        choice.focus()
        page.keyboard.press("Space")
        expect(choice).to_be_checked()
    day = page.get_by_label("Checked on")
    today = day.input_value()
    due = page.locator("#next-due")
    expect(due).to_contain_text("The next check would be due by")
    before = due.inner_text()
    day.fill("2026-01-31")
    day.dispatch_event("change")
    expect(due).to_contain_text("31 January 2027")
    day.fill(today)
    day.dispatch_event("change")
    expect(due).to_have_text(before)
    page.get_by_role("button", name="Record the check").focus()
    page.keyboard.press("Enter")

    # Back on the report, where it is gone.
    expect(page.get_by_text("Recorded. The next check is due by")).to_be_visible()
    expect(page.get_by_role("heading", name="What wants checking").first).to_be_visible()
    expect(page.get_by_role("row", name="Allergens")).to_have_count(0)
    assert product.rows(
        "[(c.section.key, c.outcome, c.method, c.checked_by_name)"
        " for c in Check.objects.exclude(method='imported')]"
    ) == [["allergens", "confirmed", "read-copy", "mei"]]

    assert complaints == []
    assert hosts == {"127.0.0.1"}


def test_the_report_and_the_check_fit_a_phone(
    page: Page, product: Product, maintainer: Person
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    log_in(page, product, maintainer)

    page.goto(f"http://127.0.0.1:{product.port}/admin/factsheets/sheet/stale-report/?state=all")
    expect(page.get_by_role("table")).to_be_visible()
    report = _width(page)
    page.get_by_role("link", name="Record a check of What and where it is").click()
    expect(page.get_by_role("button", name="Record the check")).to_be_visible()
    check = _width(page)

    assert report <= 390
    assert check <= 390
