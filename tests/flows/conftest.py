"""One running product for a module of stories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.product import Product
from tests.model_api import KEY, ModelApi


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
