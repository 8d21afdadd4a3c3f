"""How a history of 10,000 saves reads beside one of 100: run in the product's own settings."""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from factsheets import changes, editing, history
from factsheets.models import Section, Sheet
from factsheets.models.tracking import change_set

SHORT, LONG = 100, 10_000
SECTIONS = 15
ROUNDS = 15
SEED = 20261130


def measure() -> str:
    """Median seconds of each page's reading, for both histories in turn, as JSON."""
    # From now on: the bot of the sheets may have been made a minute ago.
    began = timezone.now()
    sheets = {count: _walk(count, began) for count in (SHORT, LONG)}
    middle = {count: began + timedelta(minutes=count // 2) for count in sheets}
    before = {
        count: changes.timeline(sheet, before=None, count=count // 2)[-1].id
        for count, sheet in sheets.items()
    }
    acts: dict[str, Callable[[int], object]] = {
        "newest page of the timeline": lambda n: changes.timeline(sheets[n], before=None, count=21),
        "a page from the middle": lambda n: changes.timeline(sheets[n], before=before[n], count=21),
        "the text as of the middle": lambda n: history.snapshot_as_of(sheets[n], middle[n]),
    }
    return json.dumps({what: _in_turn(act) for what, act in acts.items()})


def _in_turn(act: Callable[[int], object]) -> dict[str, float]:
    times: dict[int, list[float]] = {SHORT: [], LONG: []}
    for _ in range(ROUNDS):
        for count, spent in times.items():
            began = time.perf_counter()
            act(count)
            spent.append(time.perf_counter() - began)
    return {
        "short": statistics.median(times[SHORT]),
        "long": statistics.median(times[LONG]),
        "ratio": statistics.median(
            long / short for short, long in zip(times[SHORT], times[LONG], strict=True)
        ),
    }


def _walk(count: int, began: datetime) -> Sheet:
    """A sheet with so many saves of one section each, a minute apart."""
    by = editing.service_account("bench")
    chance = random.Random(SEED)
    slug = f"history-of-{count}"
    with transaction.atomic():
        sheet = editing.create_sheet(
            slug=slug, title=slug, by=by, reason="bench", now=began - timedelta(days=1)
        )
        with change_set(by=by, reason="bench", now=began - timedelta(days=1)):
            for number in range(SECTIONS):
                Section(sheet=sheet, key=f"s{number}", heading=f"S{number}", position=number).save()
        rows = list(sheet.sections.all())
        for number in range(count):
            row = chance.choice(rows)
            with change_set(by=by, reason=f"save {number}", now=began + timedelta(minutes=number)):
                row.body = f"Save {number} says this. " * 40
                row.save()
    return sheet
