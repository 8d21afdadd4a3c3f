"""Whatever was written, wherever it is shown: a browser shows it letter for letter and does nothing else.

The policy on what a page may load would stop most of it too, and complain: a
complaint counts as much as a deed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from playwright.sync_api import ConsoleMessage, Page, expect

from tests.factsheets.admin.test_every_address import (
    ADDRESSES,
    ADMINISTRATOR,
    SEEN,
    Rows,
    answers,
)
from tests.flows import hostile
from tests.flows.browsing import listen, send_log_in
from tests.flows.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.services]

#: What is asked of a page: did a trap go off, is one armed, and every word that stands there.
LOOK = """() => ({
  hit: window.hit ?? null,
  armed: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes]
    .filter(a => /^(on|x-|hx-|data-hx-|:|@)/.test(a.name) && a.value.includes('hit=1'))
    .map(a => `${e.tagName} ${a.name}`))
    .concat([...document.scripts].filter(s => s.type !== 'application/json'
      && s.textContent.includes('hit=1')).map(() => 'SCRIPT')),
  words: [document.body.textContent, ...[...document.querySelectorAll('input, textarea')]
    .map(e => e.value)].join(' ').replace(/\\s+/g, ' '),
})"""

#: Addresses that are no pages: what they answer is for scripts.
NOT_PAGES = {"admin:jsi18n", "admin:autocomplete"}

#: With what a page is asked for, where it is not shown without.
ASKED = {
    "admin:find": f"?q={quote('hit=1')}",
    "admin:sheet_past": f"?find={quote(hostile.TRAPS[0])}",
    "admin:sheet_as_bot": "?of=live",
    "admin:sheet_compare": "?from=publication+1&to=draft",
    "admin:sheet_restore": "?at=2026-06-01T13:00",
    "admin:sheet_rollback": "?to=1",
    "admin:search": "?s=hit",
    "admin:stale_report": "?state=all",
}


#: What the product keeps and no page of the admin shows.
SHOWN_NOWHERE = {
    "SizeReport.reasons",
    "UseRecord.support",
    "Heartbeat.name",
    "Turn.sections",
    "Turn.stop_reason",
    "Turn.model",
    "Turn.usage",
    "Turn.request_id",
    "Spend.provider",
    "Spend.model",
    "Spend.usage",
    "Spend.error_type",
    "TokenCount.model",
    "TrialAnswer.usage",
}

TOGETHER = " ".join(hostile.TRAPS)


@dataclass
class Watch:
    """Every page is looked at as it is left, and what was seen is kept."""

    page: Page
    root: str
    harm: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)

    def look(self, name: str) -> None:
        found = self.page.evaluate(LOOK)
        if found["hit"] is not None or found["armed"] or hostile.WORKED_OUT in found["words"]:
            self.harm.append(f"{name}: {found['hit']} {found['armed']}")
        self.words[name] = found["words"]

    def has_read(self, text: str) -> bool:
        """Whether a text stood on any page, as it is or as JSON writes it."""
        line = " ".join(text.split())
        return any(
            each in words
            for words in self.words.values()
            for each in (line, json.dumps(line)[1:-1])
        )

    def go(self, address: str) -> None:
        response = self.page.goto(f"{self.root}{address}")
        assert response is not None
        assert response.status == 200, (address, response.status)
        self.look(address)


@pytest.fixture(scope="module")
def keys(product: Product) -> dict[str, Any]:
    """The key of a row of every kind, by model."""
    code = "from tests.flows import hostile; hostile.write()"
    answer = product.command("shell", "-v", "0", "--no-imports", "-c", code)
    assert answer.code == 0, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


@pytest.fixture(scope="module")
def addresses(keys: dict[str, Any]) -> list[str]:
    """Every page of the admin that shows a row, of the rows that were written."""
    rows: dict[Any, Any] = {}
    for model in apps.get_models():
        if model.__name__ in keys:
            key, past = keys[model.__name__]
            entry = SimpleNamespace(pk=past)
            rows[model] = SimpleNamespace(
                pk=key, history=SimpleNamespace(latest=lambda entry=entry: entry)
            )
    of = Rows(
        *(
            rows[apps.get_model(name)]
            for name in (
                *("factsheets.sheet", "factsheets.section", "evals.run"),
                *("evals.retrievalreport", "evals.trial"),
            )
        ),
        rows,
    )
    return [
        each.of(rows, of).partition("?")[0] + ASKED.get(each.name, "")
        for each in ADDRESSES
        if each.name not in NOT_PAGES
        and each.kind != "leads"
        and answers(ADMINISTRATOR, each, reaches=True, alone=True)[0] == SEEN
    ]


def _complaint(message: ConsoleMessage) -> Iterator[str]:
    # A part of a page, opened by itself, names no icon: the browser asks for one of its own accord.
    where = message.location["url"]
    if message.type == "error" and not where.endswith("/favicon.ico"):
        yield f"{where}: {message.text}"


@pytest.fixture
def watch(page: Page, product: Product, keys: dict[str, Any], hosts: set[str]) -> Iterator[Watch]:
    """A log-in of somebody who sees everything, in a browser that has no complaint to the end."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.extend(_complaint(message)))
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    page.on("dialog", lambda each: complaints.append(each.message) if each.message else None)
    page.set_viewport_size({"width": 1440, "height": 1000})
    send_log_in(page, product, hostile.OWNER, hostile.PASSWORD)
    expect(page.get_by_role("link", name="Sheets").first).to_be_visible()
    watching = Watch(page, f"http://127.0.0.1:{product.port}")
    yield watching
    assert watching.harm == []
    assert complaints == []
    assert hosts == {"127.0.0.1"}


def test_every_text_of_every_model_is_written(keys: dict[str, Any]) -> None:
    # As it was written: another test has a text changed since.
    assert keys["unwritten"] == []


def test_a_trap_goes_off_where_text_is_taken_for_markup(page: Page, product: Product) -> None:
    """What the other tests look for is there to be seen, past the policy or in its complaints."""
    complaints = listen(page)
    page.goto(f"http://127.0.0.1:{product.port}/admin/login/")

    gone_off = [
        page.evaluate(
            "trap => { window.hit = undefined; const e = document.createElement('div');"
            "e.innerHTML = trap; document.body.append(e); Alpine.initTree(e);"
            "return new Promise(done => setTimeout(() => done(window.hit === 1), 50)); }",
            trap,
        )
        for trap in hostile.TRAPS
    ]
    armed = page.evaluate(LOOK)["armed"]

    assert gone_off == ["x-init" in trap for trap in hostile.TRAPS]
    assert {each.split()[1] for each in armed if " " in each} >= {
        "onerror",
        "x-init",
        "hx-on:click",
        "onload",
    }
    assert "SCRIPT" in armed
    assert any("Content Security Policy" in each for each in complaints)


def test_every_page_shows_it_and_every_text_is_read_somewhere_letter_for_letter(
    watch: Watch, addresses: list[str]
) -> None:
    for address in addresses:
        watch.go(address)

    unread = [name for name in hostile.texts() if not watch.has_read(hostile.trap(name))]
    assert sorted(unread) == sorted(SHOWN_NOWHERE)


def test_pages_that_fetch_their_parts_show_it(watch: Watch, keys: dict[str, Any]) -> None:
    page, sheet = watch.page, f"/admin/factsheets/sheet/{keys['Sheet'][0]}"
    panel = page.get_by_role("complementary", name="Ready to publish?")

    watch.go(f"{sheet}/gate/")
    expect(page.locator("#runs")).to_contain_text(hostile.trap("Run.stop_reason"))
    watch.look("gate with its runs")
    watch.go(f"{sheet}/workbench/rules/")
    expect(panel.locator("#runs")).to_contain_text(hostile.trap("Run.stop_reason"))
    page.get_by_role("button", name="Edit").first.click()
    expect(page.get_by_label("Text").first).to_have_value(_ending(hostile.trap("Rule.text")))
    watch.look("a rule that is edited")
    watch.go(f"{sheet}/workbench/")
    expect(panel).to_contain_text("The gate is closed")
    page.locator("[data-edit]").click()
    expect(page.get_by_label("Body").first).to_have_value(_ending(hostile.trap("Section.body")))
    watch.look("a card that is edited")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("article").get_by_role("button", name="Add a source").click()
    expect(page.get_by_label("An existing source")).to_contain_text(hostile.trap("Source.title"))
    watch.look("a source that is added")
    page.get_by_role("button", name="Cancel").click()
    page.locator(".m-sources").get_by_role("button", name="edit").click()
    expect(page.get_by_label("Quote")).to_have_value(hostile.trap("Citation.quote"))
    watch.look("a citation that is edited")


def test_the_bot_is_asked_in_it(watch: Watch, keys: dict[str, Any]) -> None:
    page = watch.page
    watch.go(f"/admin/factsheets/sheet/{keys['Sheet'][0]}/as_bot/")

    page.get_by_label("Question").fill(f"When does the castle open? {TOGETHER}")
    page.get_by_role("button", name="Ask").click()

    expect(page.get_by_role("heading", name="Answer")).to_be_visible()
    expect(page.get_by_label("Question")).to_have_value(f"When does the castle open? {TOGETHER}")
    watch.look("an answer")


def test_a_conflict_and_words_that_wait_show_it(
    watch: Watch, product: Product, keys: dict[str, Any]
) -> None:
    page, (key, _) = watch.page, keys["Section"]
    watch.go(f"/admin/factsheets/sheet/{keys['Sheet'][0]}/workbench/")
    page.locator("[data-edit]").click()
    page.get_by_label("Note").first.fill(f"Mine: {TOGETHER}")
    page.get_by_label("Why").first.fill(TOGETHER)
    code = (
        "from django.utils import timezone; from django.contrib.auth.models import User; "
        "from factsheets import editing; from factsheets.models import Section; "
        f"editing.change(Section.objects.get(pk={key}), by=User.objects.earliest('pk'), "
        f"reason={TOGETHER!r}, now=timezone.now(), note={'Theirs: ' + TOGETHER!r})"
    )
    assert product.command("shell", "-v", "0", "--no-imports", "-c", code).code == 0

    page.get_by_role("article").get_by_role("button", name="Save").click()
    expect(page.locator(".m-conflict")).to_contain_text("changed by both")
    expect(page.locator(".m-conflict")).to_contain_text(hostile.trap("ChangeSet.by_name"))
    watch.look("a conflict")
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.get_by_text("Unsaved words of")).to_contain_text(hostile.trap("Section.heading"))
    watch.look("words that wait")
    page.get_by_role("button", name="Throw them away").click()

    assert watch.has_read(f"Theirs: {TOGETHER}")


def _ending(text: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(text)}$")
