"""What browser tests share: logging in, listening, and pictures for the documentation."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Page, expect

from tests.flows.product import Person, Product

IMAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "images"


def send_log_in(page: Page, product: Product, name: str, password: str) -> None:
    """Fill in the log-in and send it, whatever comes of it."""
    page.goto(f"http://127.0.0.1:{product.port}/admin/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def log_in(page: Page, product: Product, person: Person) -> None:
    """Log in, and wait for the first page."""
    send_log_in(page, product, person.name, person.password)
    expect(page.get_by_role("link", name="Sheets").first).to_be_visible()


def listen(page: Page) -> list[str]:
    """What the browser's console complains of from now on."""
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    page.on("console", hear)
    return complaints


def shoot(page: Page, name: str) -> None:
    """Pictures for the documentation, made only when asked for."""
    if os.environ.get("SCREENSHOTS"):
        IMAGES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=IMAGES / f"{name}.png")
