"""Pages in a real browser under the content policy, the log-in that closes, and mail."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.flows.browsing import send_log_in
from tests.flows.product import CASTLE, Product, until
from tests.mail_server import MailServer

pytestmark = [pytest.mark.browser, pytest.mark.services]

PASSWORD = "correct-horse-battery-staple"


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, mail: MailServer) -> Iterator[Product]:
    """A product that sends mail, with a sheet that was probed and published."""
    running = Product(
        tmp_path_factory.mktemp("guarded"),
        extra={"EMAIL_URL": mail.url, "MAIL_FROM": "muniment@example.org"},
    )
    try:
        running.start()
        maker = (
            "from django.contrib.auth.models import User; "
            f"User.objects.create_superuser('root', 'root@example.org', {PASSWORD!r})"
        )
        for arguments in (
            ("shell", "-v", "0", "--no-imports", "-c", maker),
            ("import_sheet", CASTLE),
            ("run_probes", "colchester-castle", "--local"),
            ("publish_sheet", "colchester-castle", "--by", "root", "--reason", "First."),
        ):
            answer = running.command(*arguments)
            assert answer.code == 0, (arguments, answer.err)
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def addresses(product: Product) -> dict[str, str]:
    """Every kind of page that has scripts or styles of its own."""
    sheet, section, source, rule, probe, run = product.rows(
        "[Sheet.objects.get().pk, Section.objects.first().pk, Source.objects.first().pk, "
        "Rule.objects.first().pk, Probe.objects.first().pk, str(Run.objects.get().pk)]"
    )
    admin = "/admin/factsheets"
    return {
        "index": "/admin/",
        "sheets": f"{admin}/sheet/",
        "sheet form": f"{admin}/sheet/{sheet}/change/",
        "sheet history": f"{admin}/sheet/{sheet}/history/",
        "gate": f"{admin}/sheet/{sheet}/gate/",
        "past": f"{admin}/sheet/{sheet}/past/",
        "sections": f"{admin}/section/",
        "section form": f"{admin}/section/{section}/change/",
        "section form, new": f"{admin}/section/add/?sheet={sheet}",
        "source form": f"{admin}/source/{source}/change/",
        "rule form": f"{admin}/rule/{rule}/change/",
        "probe form": f"/admin/evals/probe/{probe}/change/",
        "new sheet": "/admin/new-sheet/",
        "runs": "/admin/evals/run/",
        "run": f"/admin/runs/{run}/",
        "users": "/admin/auth/user/",
        "a new password": "/admin/password_change/",
        "log-in": "/admin/login/",
        "password reset": "/admin/password-reset/",
    }


@pytest.fixture
def violations(page: Page) -> list[str]:
    """What the content policy blocked."""
    found: list[str] = []
    page.expose_function("noteViolation", lambda text: found.append(text))
    page.add_init_script(
        "addEventListener('securitypolicyviolation', e => noteViolation("
        "`${location.pathname}: ${e.violatedDirective} ${e.blockedURI}`))"
    )
    return found


def test_the_policy_blocks_nothing_on_any_page_and_no_other_host_is_asked(
    page: Page,
    product: Product,
    addresses: dict[str, str],
    violations: list[str],
    hosts: set[str],
) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: errors.append(message.text) if message.type == "error" else None,
    )
    page.set_viewport_size({"width": 1440, "height": 1000})
    send_log_in(page, product, "root", PASSWORD)
    expect(page.get_by_role("link", name="Sheets").first).to_be_visible()

    for address in addresses.values():
        response = page.goto(f"http://127.0.0.1:{product.port}{address}")
        assert response is not None
        assert response.status == 200, address
        page.wait_for_load_state("networkidle")

    assert violations == []
    assert errors == []
    assert hosts == {"127.0.0.1"}


def test_the_theme_works_under_the_policy(
    page: Page, product: Product, addresses: dict[str, str], violations: list[str]
) -> None:
    page.set_viewport_size({"width": 1440, "height": 1000})
    send_log_in(page, product, "root", PASSWORD)
    page.goto(f"http://127.0.0.1:{product.port}{addresses['section form']}")

    cited = page.get_by_role("group", name="Sources of this section")
    cited.get_by_role("link", name="Add another Citation").click()
    cited.get_by_role("combobox").nth(-2).click()

    expect(page.get_by_role("searchbox").last).to_be_visible()
    assert violations == []


def test_the_policy_blocks_what_a_page_did_not_bring(
    page: Page, product: Product, violations: list[str], hosts: set[str]
) -> None:
    page.goto(f"http://127.0.0.1:{product.port}/admin/login/")

    page.evaluate(
        "() => { for (const [tag, at] of [['script', 'src'], ['img', 'src'], ['iframe', 'src']]) {"
        "const e = document.createElement(tag); e[at] = 'http://127.0.0.2:9/'; document.body.append(e); }"
        "const s = document.createElement('script'); s.textContent = 'window.got = 1'; document.body.append(s); }"
    )

    until(lambda: _pumped(page, violations) >= 4, what="four complaints")
    assert page.evaluate("window.got") is None
    assert {v.split(": ")[1].split()[0] for v in violations} == {
        "script-src-elem",
        "img-src",
        "frame-src",
    }


def _pumped(page: Page, violations: list[str]) -> int:
    """How many there are by now; the browser tells only while it is asked something."""
    page.evaluate("1")
    return len(violations)


def test_a_closed_log_in_is_a_page_of_one_sentence(
    page: Page, product: Product, violations: list[str]
) -> None:
    for _ in range(5):
        send_log_in(page, product, "nobody", "wrong")

    expect(page.get_by_role("heading", name="Log-in closed for now")).to_be_visible()
    expect(page.get_by_text("Try again in 15 minutes")).to_be_visible()
    assert violations == []


def test_a_forgotten_password_is_set_anew_by_mail(
    page: Page, product: Product, mail: MailServer, violations: list[str]
) -> None:
    new = "another-horse-battery-staple"
    maker = (
        "from django.contrib.auth.models import User; "
        f"User.objects.create_superuser('mo', 'mo@example.org', {PASSWORD!r})"
    )
    assert product.command("shell", "-v", "0", "--no-imports", "-c", maker).code == 0
    page.goto(f"http://127.0.0.1:{product.port}/admin/login/")

    page.get_by_role("link", name=re.compile("Forgotten your")).click()
    page.get_by_label("Email").fill("mo@example.org")
    page.get_by_role("button", name="Send the link").click()
    expect(page.get_by_role("heading", name="Look into your mail")).to_be_visible()
    (message,) = mail.messages
    (link,) = re.findall(r"http://\S+", message.get_content())
    page.goto(link)
    page.get_by_label("New password", exact=True).fill(new)
    page.get_by_label("New password confirmation").fill(new)
    page.get_by_role("button", name="Set the password").click()
    expect(page.get_by_role("heading", name="The new password is set")).to_be_visible()
    page.goto(link)
    expect(page.get_by_text("This link was used already, or is too old.")).to_be_visible()
    send_log_in(page, product, "mo", new)

    expect(page.get_by_role("link", name="Sheets").first).to_be_visible()
    assert (message["From"], message["To"]) == ("muniment@example.org", "mo@example.org")
    assert violations == []


def test_an_address_that_nobody_has_gets_the_same_answer_and_no_mail(
    page: Page, product: Product, mail: MailServer
) -> None:
    before = len(mail.messages)
    page.goto(f"http://127.0.0.1:{product.port}/admin/password-reset/")

    page.get_by_label("Email").fill("nobody@example.org")
    page.get_by_role("button", name="Send the link").click()

    expect(page.get_by_role("heading", name="Look into your mail")).to_be_visible()
    assert len(mail.messages) == before
