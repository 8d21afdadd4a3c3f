"""Figures for Prometheus: right, guarded, and without a name in them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, override_settings
from prometheus_client.parser import text_string_to_metric_families

from evals import runs
from factsheets import editing, metrics, publishing
from factsheets.models import Heartbeat
from tests import factories
from tests.factories import LATER, NOON

pytestmark = pytest.mark.django_db

TOKEN = "a-token-of-more-than-twenty-characters"


def figures(**_: Any) -> dict[str, float]:
    """Every figure by its name and label."""
    text = metrics.exposition(now=LATER).decode()
    return {
        ".".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_sheets_are_counted_by_what_bots_get_of_them() -> None:
    factories.published_sheet("live-one")
    gone = factories.published_sheet("gone")
    publishing.withdraw(sheet_id=gone.pk, by=factories.person(), reason="wrong", now=LATER)
    factories.sheet("draft")
    away = factories.sheet("away")
    editing.archive_sheet(away, by=factories.person(), reason="over", now=LATER)

    found = figures()

    assert found["muniment_sheets.live"] == 1
    assert found["muniment_sheets.withdrawn"] == 1
    assert found["muniment_sheets.never_published"] == 1
    assert found["muniment_announcements.published"] == 2
    assert found["muniment_announcements.withdrawn"] == 1
    assert found["muniment_runs.passed"] == 2
    assert found["muniment_runs_open"] == 0


def test_an_open_run_shows_its_probes_and_its_age() -> None:
    sheet = factories.ready_sheet()
    runs.start(sheet_id=sheet.pk, by=factories.person(), now=NOON)

    found = figures()

    assert found["muniment_runs_open"] == 1
    assert found["muniment_attempts_open"] == 1
    assert found["muniment_run_oldest_seconds"] == (LATER - NOON).total_seconds()


def test_a_silent_beat_shows_its_age_and_is_not_up() -> None:
    Heartbeat.objects.create(name="beat", at=LATER - timedelta(minutes=10))

    found = figures()

    assert found["muniment_beat_age_seconds"] == 600
    assert found["muniment_up.beat"] == 0
    assert found["muniment_up.database"] == 1


def test_without_the_database_the_page_still_says_that_it_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr("django.db.backends.utils.CursorWrapper.execute", broken)

    found = figures()

    assert found["muniment_up.database"] == 0
    assert "muniment_sheets.live" not in found


def test_the_number_of_questions_to_the_database_does_not_grow_with_the_sheets(
    django_assert_max_num_queries: Any,
) -> None:
    for n in range(5):
        factories.published_sheet(f"sheet-{n}")

    with django_assert_max_num_queries(14):
        metrics.exposition(now=LATER)


def test_no_name_of_a_sheet_or_a_person_is_a_label() -> None:
    factories.published_sheet("canary-sheet")

    assert b"canary" not in metrics.exposition(now=LATER)
    assert b"anna" not in metrics.exposition(now=LATER)


def test_without_a_token_in_the_settings_there_is_no_such_page() -> None:
    assert Client().get("/metrics").status_code == 404


@override_settings(METRICS_TOKEN=TOKEN)
@pytest.mark.parametrize("said", ["", "Bearer wrong", TOKEN, f"Basic {TOKEN}"])
def test_only_the_bearer_of_the_token_may_read(said: str) -> None:
    response = Client().get("/metrics", headers={"authorization": said})

    assert response.status_code == 401
    assert b"muniment_" not in response.content


@override_settings(METRICS_TOKEN=TOKEN)
def test_the_bearer_of_the_token_reads_fresh_figures() -> None:
    response = Client().get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})

    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=")
    assert response["Cache-Control"] == "no-store"
    assert b"muniment_sheets{" in response.content


@override_settings(METRICS_TOKEN=TOKEN)
def test_figures_are_only_read() -> None:
    assert Client().post("/metrics").status_code == 405
