"""One running product for a module of stories."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.flows.product import Product
from tests.model_api import KEY, ModelApi

# How long a page may take on a busy machine; a test that passes never waits for it.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def model_api() -> Iterator[ModelApi]:
    """The stand-in of the model service that the product's worker calls."""
    with ModelApi() as api:
        yield api


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, model_api: ModelApi) -> Iterator[Product]:
    folder: Path = tmp_path_factory.mktemp("product")
    running = Product(
        folder,
        extra={
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": model_api.url,
            "MODEL_CALL_SECONDS": "3",
        },
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """The machine's own browser, asking for nothing by itself."""
    return {
        "executable_path": shutil.which("chromium") or shutil.which("google-chrome"),
        "args": [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
        ],
    }


@pytest.fixture
def hosts(page: Page) -> set[str]:
    """Every host that the page asked for anything."""
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url.split("/")[2].split(":")[0]))
    return asked
