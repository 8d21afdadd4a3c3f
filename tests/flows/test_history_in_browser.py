"""The history in a real browser: what changed, word by word, the way back, and who may only read."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.flows.browsing import listen, log_in, shoot
from tests.flows.product import CASTLE, Person, Product

pytestmark = [pytest.mark.browser, pytest.mark.services]

HEADING = "Boudica's attack"
OLD, NEW = "hated the retired soldiers", "resented the veterans"
LATER = "This is told by Tacitus alone."


@pytest.fixture(scope="module")
def address(product: Product) -> str:
    """The castle, published, and edited twice since."""
    for arguments in (
        ("import_sheet", CASTLE),
        ("run_probes", "colchester-castle", "--local"),
    ):
        answer = product.command(*arguments)
        assert answer.code == 0, (arguments, answer.err)
    product.user("paula", "publisher")
    published = product.command(
        "publish_sheet", "colchester-castle", "--by", "paula", "--reason", "First."
    )
    assert published.code == 0, published.err
    key = product.rows("Sheet.objects.get(slug='colchester-castle').pk")
    return f"http://127.0.0.1:{product.port}/admin/factsheets/sheet/{key}"


@pytest.fixture(scope="module")
def editor(product: Product, address: str) -> Person:
    return product.user("eva", "editor")


@pytest.fixture(scope="module")
def viewer(product: Product, address: str) -> Person:
    return product.user("vera", "viewer")


@pytest.fixture
def quiet(page: Page, hosts: set[str]) -> Iterator[Page]:
    """A browser that has no complaint to the end."""
    complaints = listen(page)
    page.set_viewport_size({"width": 1440, "height": 1000})
    yield page
    assert complaints == []
    assert hosts <= {"127.0.0.1"}


def card(page: Page) -> str:
    found = page.get_by_role("article").filter(has=page.get_by_role("heading", name=HEADING))
    return f"#{found.first.get_attribute('id')}"


def body(product: Product) -> str:
    found: str = product.rows(f"Section.objects.get(heading={HEADING!r}).body")
    return found


def counts(product: Product) -> list[int]:
    """Saves, publications and events that there are."""
    found: list[int] = product.rows(
        "[ChangeSet.objects.count(), Publication.objects.count(), PublicationEvent.objects.count()]"
    )
    return found


def test_from_the_timeline_to_the_words_and_a_section_back_to_how_it_stood(
    quiet: Page, product: Product, editor: Person, address: str
) -> None:
    page, before = quiet, body(product)
    log_in(page, product, editor)
    page.goto(f"{address}/workbench/")
    where = card(page)
    clearer = before.replace(OLD, NEW)
    for text, why in (
        (clearer, "A clearer story."),
        (f"{clearer} {LATER}", "What came then."),
    ):
        page.locator(f"{where} [data-edit]").click()
        page.locator(where).get_by_label("Body").fill(text)
        page.locator(where).get_by_label("Why").fill(why)
        page.locator(where).get_by_role("button", name="Save").click()
        expect(page.locator(where).get_by_text("Saved.")).to_be_visible()
    saves, *published = counts(product)

    # What changed, and the words of one save.
    page.get_by_role("link", name="What changed").click()
    lines = page.get_by_role("region", name="What changed").locator(".m-timeline > li")
    expect(lines.nth(0)).to_contain_text("What came then.")
    expect(lines.nth(1)).to_contain_text("A clearer story.")
    expect(lines.nth(2)).to_contain_text("Publication 1 live")
    shoot(page, "timeline")
    lines.nth(1).get_by_role("link", name="See the words").click()
    words = page.get_by_role("article", name=re.compile(HEADING))
    expect(words.locator("del").first).to_contain_text("hated")
    expect(words.locator("ins").first).to_contain_text("resented")
    expect(words).not_to_contain_text(LATER)
    expect(page.get_by_role("link", name="Bring this section back")).to_have_count(0)
    shoot(page, "compare")

    # Two moments of one's own choice: what the draft has beyond the first save.
    page.go_back()
    lines.nth(1).get_by_role("link", name="what changed since").click()
    expect(words.locator("ins")).to_have_text([LATER])

    # The section alone, back to that moment.
    words.get_by_role("link", name="Bring this section back").click()
    expect(page.get_by_role("heading", name="What will change")).to_be_visible()
    expect(words.locator("del")).to_have_text([LATER])
    page.get_by_label("Why").fill("Too much.")
    page.get_by_role("button", name="Bring it back").click()
    expect(page.get_by_text("Brought back, in one new change of 1 row.")).to_be_visible()
    expect(lines.nth(0)).to_contain_text("Too much.")
    assert body(product) == clearer
    assert counts(product) == [saves + 1, *published]

    # The whole, back to what was let out first.
    expect(lines.nth(3)).to_contain_text("Publication 1 live")
    lines.nth(4).get_by_role("link", name="bring it back").click()
    page.get_by_label("Why").fill("As it was.")
    page.get_by_role("button", name="Bring it back").click()
    expect(lines.nth(0)).to_contain_text("As it was.")
    assert body(product) == before
    assert counts(product) == [saves + 2, *published]


def test_undoing_is_undone_through_the_history(
    quiet: Page, product: Product, editor: Person, address: str
) -> None:
    page = quiet
    log_in(page, product, editor)
    page.goto(f"{address}/workbench/")
    where = card(page)
    page.locator(f"{where} [data-edit]").click()
    page.locator(where).get_by_label("Body").fill("Regretted and wanted again.")
    page.locator(where).get_by_label("Why").fill("A try.")
    page.locator(where).get_by_role("button", name="Save").click()
    page.locator(where).get_by_role("button", name="Undo").click()
    expect(page.locator(where).get_by_text("Regretted")).to_have_count(0)

    page.get_by_role("link", name="What changed").click()
    tried = page.locator(".m-timeline > li").filter(has_text="A try.").last
    tried.get_by_role("link", name="what changed since").click()
    page.get_by_role("link", name="Bring this section back").click()
    page.get_by_label("Why").fill("Wanted after all.")
    page.get_by_role("button", name="Bring it back").click()
    expect(page.get_by_text("Brought back")).to_be_visible()

    assert body(product) == "Regretted and wanted again."


def test_the_text_of_a_past_day_and_what_bots_got_then(
    quiet: Page, product: Product, editor: Person, address: str
) -> None:
    page = quiet
    log_in(page, product, editor)
    page.goto(f"{address}/timeline/")
    page.locator(".m-timeline > li").filter(has_text="A clearer story.").last.get_by_role(
        "link", name="the text then"
    ).click()

    expect(page.get_by_role("heading", name="As drafted")).to_be_visible()
    expect(page.get_by_role("region", name="As drafted")).to_contain_text(NEW)
    expect(page.get_by_role("region", name="As served to bots")).not_to_contain_text(NEW)
    page.get_by_label("Word or claim").fill("resented")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("mark.m-found")).to_have_text(["resented"])
    page.get_by_label("Day or moment").fill("2020-01-01")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("There was no draft yet either.")).to_be_visible()


def test_the_sheet_as_the_bot_sees_it(
    quiet: Page, product: Product, editor: Person, address: str
) -> None:
    page = quiet
    log_in(page, product, editor)
    page.goto(f"{address}/workbench/")
    page.get_by_role("link", name="As the bot sees it").click()

    page.get_by_role("link", name="See publication 1, which is live").click()
    expect(page.get_by_role("heading", name="Publication 1, which bots get now")).to_be_visible()
    page.get_by_label("Question").fill("Who built the castle?")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("heading", name="Answer")).to_be_visible()
    expect(page.get_by_text("are kept nowhere")).to_be_visible()
    expect(page.get_by_role("region", name=re.compile("Rules: about")).first).to_be_visible()
    shoot(page, "as-bot")


def test_a_viewer_reads_all_and_finds_no_way_to_change_anything(
    page: Page, product: Product, viewer: Person, address: str
) -> None:
    page.set_viewport_size({"width": 1440, "height": 1000})
    log_in(page, product, viewer)
    page.goto(f"{address}/workbench/")
    where, before, text = card(page), counts(product), body(product)
    panel = page.get_by_role("complementary", name="Ready to publish?")
    expect(panel).to_contain_text("The gate is")
    expect(page.get_by_role("article")).to_have_count(
        product.rows("Section.objects.filter(removed_at=None).count()")
    )
    expect(page.locator(where).get_by_text(text.split("\n")[0]).first).to_be_visible()

    workbench = page.locator("#workbench")
    for name in ("Edit", "Publish", "Run probes", "Take out of use", "Add", "Leave out", "Move"):
        expect(workbench.get_by_role("button", name=name)).to_have_count(0)
    page.get_by_role("link", name="Rules", exact=True).first.click()
    expect(page.get_by_text("Rules hash")).to_be_visible()
    expect(workbench.get_by_role("button")).to_have_count(0)
    page.get_by_role("link", name="What changed").click()
    expect(page.locator(".m-timeline > li").first).to_be_visible()
    expect(page.get_by_role("link", name="bring it back")).to_have_count(0)

    # By hand, with the same log-in.
    key = product.rows(f"Section.objects.get(heading={HEADING!r}).pk")
    forged = page.evaluate(
        """async ([address, key]) => {
          const token = document.querySelector('[name=csrfmiddlewaretoken]')?.value
            ?? document.cookie.match(/csrftoken=([^;]+)/)[1];
          const send = async (path, fields) => (await fetch(`${address}/${path}`, {method: 'POST',
            body: new URLSearchParams({csrfmiddlewaretoken: token, ...fields})})).status;
          return [
            await send('open-timeline/', {}),
            await send(`workbench/section/${key}/`, {[`s${key}-body`]: 'x', [`s${key}-why`]: 'x'}),
            await send(`workbench/section/${key}/act/`, {act: 'remove'}),
            await send('restore/', {at: '2026-01-01', reason: 'x'}),
            await send('publish/', {reason: 'x'}),
          ];
        }""",
        [address, key],
    )

    # The first may be asked by a viewer: it is not the form that is refused.
    assert forged == [200, 403, 403, 403, 403]
    assert (counts(product), body(product)) == (before, text)
