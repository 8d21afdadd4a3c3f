"""Figures for Prometheus, read from the database when they are asked for.

Nothing is counted in a process: with several web processes, each would have a
part of the truth. Labels are few and name no sheet and no person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from factsheets import health
from factsheets.models import Heartbeat, Outbox, Schedule, Section, Sheet


@dataclass(frozen=True, slots=True)
class Gauge:
    """One figure, or one for each value of a label."""

    name: str
    help: str
    values: Sequence[tuple[str, float]]
    label: str = ""


Source = Callable[[datetime], Iterable[Gauge]]

#: Who is asked, in order. The probes' app adds itself (`add`).
_sources: list[Source] = []


def add(source: Source) -> None:
    """Ask this source too, once."""
    if source not in _sources:
        _sources.append(source)


def exposition(*, now: datetime) -> bytes:
    """Every figure in the text form of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Collector(now))
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterator[Metric]:
        faults = health.faults(now=self._now)
        yield _family(
            Gauge(
                "muniment_up",
                "1 where a part is up, 0 where it is not.",
                [(part, float(part not in faults)) for part in health.PARTS],
                "part",
            )
        )
        # Without the database nothing else is known; this much is said all the same.
        if "database" not in faults:
            for source in (of_factsheets, *_sources):
                yield from map(_family, source(self._now))


def _family(gauge: Gauge) -> Metric:
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=[gauge.label] if gauge.label else [])
    for value, figure in gauge.values:
        family.add_metric([value] if gauge.label else [], figure)
    return family


def of_factsheets(now: datetime) -> Iterator[Gauge]:
    """Sheets, sections, announcements, and signs of life."""
    sheets = Sheet.objects.present().filter(archived_at__isnull=True)
    live = sheets.filter(state__live_publication__isnull=False).count()
    withdrawn = (
        sheets.filter(state__live_publication__isnull=True, events__isnull=False).distinct().count()
    )
    yield Gauge(
        "muniment_sheets",
        "Sheets by what bots get of them.",
        [
            ("live", live),
            ("withdrawn", withdrawn),
            ("never_published", sheets.count() - live - withdrawn),
        ],
        "state",
    )
    included = Section.objects.present().filter(included=True, sheet__in=sheets).count()
    yield Gauge("muniment_sections_included", "Included sections of drafts.", [("", included)])
    announced = Outbox.objects.values_list("topic").annotate(n=Count("id")).order_by("topic")
    yield Gauge(
        "muniment_announcements", "Announcements written.", [(t, n) for t, n in announced], "topic"
    )
    scheduled = dict(
        Schedule.objects.values_list("state").annotate(n=Count("id")).order_by("state")
    )
    yield Gauge(
        "muniment_schedules",
        "Publications approved for a later time, by what became of them.",
        [(state, scheduled.get(state, 0)) for state in Schedule.State.values],
        "state",
    )
    last = Heartbeat.objects.filter(name=health.BEAT).values_list("at", flat=True).first()
    if last is not None:
        yield Gauge(
            "muniment_beat_age_seconds",
            "Seconds since beat, broker and a worker were last seen to work together.",
            [("", (now - last).total_seconds())],
        )
