"""What axe finds on our pages: nothing serious, in light and dark. The theme's frame is its own."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.flows.browsing import log_in
from tests.flows.product import CASTLE, Person, Product

pytestmark = [pytest.mark.browser, pytest.mark.services]

#: Our pages, by their addresses below the admin; {sheet}, {section} and {run} are keys.
PAGES = [
    "factsheets/sheet/{sheet}/gate/",
    "factsheets/sheet/{sheet}/workbench/",
    "factsheets/sheet/{sheet}/workbench/rules/",
    "factsheets/sheet/{sheet}/timeline/",
    "factsheets/sheet/{sheet}/compare/?from=2020-01-01",
    "factsheets/sheet/{sheet}/compare/?from=publication+1&to=draft",
    "factsheets/sheet/{sheet}/restore/?at={moment}",
    "factsheets/sheet/{sheet}/as_bot/",
    "factsheets/sheet/{sheet}/size/",
    "factsheets/sheet/{sheet}/split/",
    "factsheets/sheet/{sheet}/past/",
    "factsheets/sheet/{sheet}/keys/",
    "factsheets/sheet/{sheet}/use/",
    "factsheets/sheet/{sheet}/withdraw/",
    "factsheets/sheet/{sheet}/rollback/?to=1",
    "factsheets/sheet/stale-report/",
    "factsheets/sheet/search/?q=castle",
    "factsheets/section/{section}/check/",
    "runs/gates/",
    "runs/{run}/",
]


@pytest.fixture(scope="module")
def keys(product: Product) -> dict[str, str]:
    """The castle, published, with an edit since."""
    assert product.command("import_sheet", CASTLE).code == 0
    assert product.command("run_probes", "colchester-castle", "--local").code == 0
    product.user("paula", "publisher")
    published = product.command(
        "publish_sheet", "colchester-castle", "--by", "paula", "--reason", "First."
    )
    assert published.code == 0, published.err
    edit = (
        "from django.utils import timezone; from factsheets import editing, keys, usage; "
        "from factsheets.commands import import_account; from factsheets.models import Section\n"
        "row, now, today = Section.objects.earliest('pk'), timezone.now(), timezone.localdate()\n"
        "keys.issue(sheet=row.sheet, name='bot', scopes=['usage'], expires_on=None, "
        "by=import_account(), now=now, today=today)\n"
        "usage.record(row.sheet, [usage.Entry('a-1', now, (row.key,))], now)\n"
        "editing.change(row, by=import_account(), reason='x', now=timezone.now(), body='New text.')"
    )
    assert product.command("shell", "-v", "0", "--no-imports", "-c", edit).code == 0
    found: dict[str, str] = product.rows(
        "{'sheet': Sheet.objects.get().pk, 'section': Section.objects.earliest('pk').pk, "
        "'run': str(Run.objects.get().pk), "
        "'moment': PublicationEvent.objects.get().at.strftime('%Y-%m-%dT%H:%M:%SZ')}"
    )
    return found


@pytest.fixture(scope="module")
def everybody(product: Product, keys: dict[str, str]) -> Person:
    return product.user("mo", "editor", "rule keeper", "publisher", "maintainer")


@pytest.fixture(scope="module", params=["light", "dark"])
def page(
    request: pytest.FixtureRequest, browser: Browser, product: Product, everybody: Person
) -> Page:
    """A browser into which the checker may be loaded, past the policy that would keep it out."""
    context = browser.new_context(
        bypass_csp=True,
        color_scheme=request.param,
        viewport={"width": 1440, "height": 1000},
    )
    opened = context.new_page()
    log_in(opened, product, everybody)
    return opened


def serious(page: Page) -> list[dict[str, Any]]:
    """Violations within our own part of the page, each with the places where it stands."""
    found = Axe().run(page, context=".muniment").response["violations"]
    return [
        {"rule": each["id"], "where": [node["target"] for node in each["nodes"]][:4]}
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("address", PAGES)
def test_axe_finds_nothing_serious(
    page: Page, product: Product, keys: dict[str, str], address: str
) -> None:
    page.goto(f"http://127.0.0.1:{product.port}/admin/{address.format(**keys)}")
    page.wait_for_load_state("networkidle")
    expect(page.locator(".muniment").first).to_be_visible()

    assert serious(page) == []


def test_axe_finds_nothing_serious_on_a_card_that_is_edited(
    page: Page, product: Product, keys: dict[str, str]
) -> None:
    page.goto(f"http://127.0.0.1:{product.port}/admin/factsheets/sheet/{keys['sheet']}/workbench/")
    page.locator("[data-edit]").first.click()
    expect(page.get_by_label("Heading").first).to_be_visible()
    page.get_by_role("article").nth(1).get_by_role("button", name="Add a source").click()
    expect(page.get_by_label("An existing source")).to_be_visible()

    assert serious(page) == []
