"""Is the history whole? Every tracked row must equal the newest entry of its history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps

from factsheets.models import TrackedModel


@dataclass(frozen=True, slots=True)
class Result:
    """How many rows were compared, and a sentence for each that does not agree."""

    checked: int
    faults: tuple[str, ...]


def verify() -> Result:
    """Compare all tracked rows, whatever app they belong to."""
    faults: list[str] = []
    checked = 0
    for model in apps.get_models():
        if issubclass(model, TrackedModel):
            count = model._base_manager.count()
            checked += count
            faults += _of(model)
    return Result(checked, tuple(faults))


def _of(model: type[TrackedModel]) -> Iterator[str]:
    columns = [column.attname for column in model._meta.concrete_fields]
    newest: dict[Any, dict[str, Any]] = {}
    # Two entries may bear one date; the later id is the newer.
    for entry in model.history.order_by("history_date", "history_id").values(*columns).iterator():
        newest[entry["id"]] = entry
    for row in model._base_manager.order_by("pk").values(*columns).iterator():
        entry = newest.pop(row["id"], None)
        name = f"{model.KIND} {row['id']}"
        if entry is None:
            yield f"{name}: has no history; it was written past it."
        elif entry != row:
            differing = ", ".join(key for key in columns if entry[key] != row[key])
            yield f"{name}: differs from its newest history entry in {differing}."
    for lost in newest:
        yield f"{model.KIND} {lost}: was deleted; tracked rows are only removed."
