"""What every test stands on: no network but loopback, no clock but the one passed in."""

from __future__ import annotations

import ipaddress
import logging
import os
import shutil
import socket
from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.db import connections
from django.test import TransactionTestCase

from evals import triggers as evals_triggers
from factsheets import triggers
from factsheets.api import views


def pytest_report_header() -> str:
    return "" if _CHROMIUM else "Browser tests left out: no Chromium is installed here."


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a browser the tests that need one are left out, and the header says so."""
    left_out = [item for item in items if item.get_closest_marker("browser") and not _CHROMIUM]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

# A browser that a test drove leaves its event loop behind in this process; the
# tests after it are as synchronous as before.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

_ALL_TRIGGERS = (*triggers.FACTSHEETS, *evals_triggers.EVALS)
_flush = TransactionTestCase._fixture_teardown


def _flush_without_triggers(case: TransactionTestCase) -> None:
    """Append-only tables refuse to be emptied, which is what a flush does."""
    connection = connections["default"]
    with triggers.lifted(connection, _ALL_TRIGGERS):
        _flush(case)


TransactionTestCase._fixture_teardown = _flush_without_triggers  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _no_network_but_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple):
            host = str(address[0])
            loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
            assert loopback, f"A test tried to reach {host}."
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _fresh_copies() -> Iterator[None]:
    """Neither copies of sheets nor counts of requests outlast a test."""
    views.forget_copies()
    cache.clear()
    yield
    views.forget_copies()


@pytest.fixture
def quiet() -> Iterator[None]:
    """For tests of refusals: their log lines would only hide a failure."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
