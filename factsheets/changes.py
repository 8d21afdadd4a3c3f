"""Who changed what on a sheet, read from the histories of all that it uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import Max, Q, QuerySet

from factsheets import findings
from factsheets.models import ChangeSet, Publication, Sheet, TrackedModel
from factsheets.models.tracking import Change, SheetPath, verb

#: Kinds of rows that bear on what is published or on what its gate asks.
KINDS = findings.SERVED | findings.BESIDE | findings.ASKED

#: What of these a publication of an earlier text still takes from the present.
KINDS_OF_ROLLBACK = findings.ASKED | {"bot", "sheet"}

#: Entries looked at of each kind of row, the newest: a list longer than this nobody reads.
LIMIT = 200


@dataclass(frozen=True, slots=True)
class Changed:
    """One change set, as far as it touched one sheet."""

    id: int
    at: datetime
    by: str
    reason: str
    changes: tuple[Change, ...]


def of_sheet(
    sheet: Sheet,
    *,
    after: int,
    kinds: Collection[str] = KINDS,
    by: User | None = None,
) -> tuple[Changed, ...]:
    """The change sets after a given one (by key) that touched what the sheet uses, oldest first.

    Of each kind of row the newest `LIMIT` entries. With `by` only that person's.
    """
    since = moment_of(after)
    entries = {}
    for model in _models(kinds):
        rows = _rows_of(sheet, model, since)
        mine = model.history.filter(change_set_id__gt=after, id__in=rows.values("pk"))
        if by is not None:
            mine = mine.filter(change_set__by=by)
        newest = mine.select_related("change_set").order_by("-history_id")[:LIMIT]
        entries[model] = list(newest)[::-1]
    return _together(entries)


def timeline(sheet: Sheet, *, before: int | None, count: int) -> tuple[Changed, ...]:
    """The newest change sets on a sheet, or the newest before a given one (by key), newest first.

    In a fixed number of queries, however long the history is.
    """
    used = {model: _rows_of(sheet, model, None).values("pk") for model in _models(KINDS)}
    ids: set[int] = set()
    for model, rows in used.items():
        mine = model.history.filter(id__in=rows)
        if before is not None:
            mine = mine.filter(change_set_id__lt=before)
        newest = mine.order_by("-change_set_id").values_list("change_set_id", flat=True).distinct()
        ids.update(newest[:count])
    chosen = sorted(ids, reverse=True)[:count]
    entries = {
        model: list(
            model.history.filter(id__in=rows, change_set_id__in=chosen)
            .select_related("change_set")
            .order_by("history_id")
        )
        for model, rows in used.items()
    }
    return _together(entries)[::-1]


def base(publication: Publication | None) -> int:
    """The newest change set that a publication contains, by key; 0 where there is none.

    A rollback contains those of the publication that it brought back.
    """
    if publication is None:
        return 0
    if publication.changes_up_to_id is not None:
        return publication.changes_up_to_id
    # Published by an earlier version, which kept the time alone.
    while publication.restores is not None:
        publication = Publication.objects.only("restores", "published_at", "sheet").get(
            sheet=publication.sheet_id, number=publication.restores
        )
    return at(publication.published_at)


def at(moment: datetime) -> int:
    """The newest change set up to a moment, by key; 0 where there is none."""
    found: int | None = ChangeSet.objects.filter(at__lte=moment).aggregate(newest=Max("id"))[
        "newest"
    ]
    return found or 0


def moment_of(change_set: int) -> datetime | None:
    """When a change set was, by its key."""
    return ChangeSet.objects.filter(pk=change_set).values_list("at", flat=True).first()


def newest() -> int | None:
    """The newest change set of all, by key. Exact while changes are kept waiting (`locking`)."""
    found: int | None = ChangeSet.objects.aggregate(newest=Max("id"))["newest"]
    return found


def _models(kinds: Collection[str]) -> Iterator[type[TrackedModel]]:
    for model in apps.get_models():
        if issubclass(model, TrackedModel) and model.KIND in kinds:
            yield model


def _together(entries: Mapping[type[TrackedModel], list[Any]]) -> tuple[Changed, ...]:
    """History entries of several kinds, each oldest first, by the change set that they belong to."""
    found: dict[int, list[Change]] = defaultdict(list)
    sets: dict[int, Any] = {}
    for model, rows in entries.items():
        for entry, change in _described(model, rows):
            sets[entry.change_set_id] = entry.change_set
            found[entry.change_set_id].append(change)
    return tuple(
        Changed(key, sets[key].at, sets[key].by_name, sets[key].reason, tuple(found[key]))
        for key in sorted(found)
    )


def _rows_of(
    sheet: Sheet, model: type[TrackedModel], since: datetime | None
) -> QuerySet[TrackedModel]:
    """The rows of a kind that the sheet uses, or used since then."""
    used = Q(pk__in=[])
    for path in model.SHEETS:
        used |= Q(**{path.lookup or "pk": sheet.pk}) & _linked(path, since)
    return model._base_manager.filter(used)


def _linked(path: SheetPath, since: datetime | None) -> Q:
    linked = Q()
    for link in path.present:
        ended = Q(**{f"{link}__removed_at__gt": since}) if since else ~Q(pk__in=[])
        linked &= Q(**{f"{link}__removed_at__isnull": True}) | ended
    return linked


def _described(model: type[TrackedModel], entries: list[Any]) -> Iterator[tuple[Any, Change]]:
    """Each entry, oldest first, with what it changed of the row, named as the row is named today."""
    if not entries:
        return
    ids = {entry.id for entry in entries}
    relations = [column.name for column in model._meta.concrete_fields if column.is_relation]
    rows = model._base_manager.filter(pk__in=ids).select_related(*relations)
    named = {row.pk: (row.label(), row.section_key()) for row in rows}
    columns = {column.attname: column.name for column in model._meta.concrete_fields}
    former = _former(model, ids, before=min(entry.history_id for entry in entries))
    for entry in entries:
        before = former.get(entry.id)
        changed = tuple(
            name
            for attname, name in columns.items()
            if before is not None and getattr(entry, attname) != getattr(before, attname)
        )
        said = verb(is_new=before is None, changed=changed, is_removed=entry.removed_at is not None)
        former[entry.id] = entry
        label, section = named[entry.id]
        yield entry, Change(model.KIND, label, said, changed, section)


def _former(model: type[TrackedModel], ids: set[int], *, before: int) -> dict[int, Any]:
    """The last entry of each row before a given one."""
    entries = model.history.filter(id__in=ids, history_id__lt=before)
    last = entries.order_by().values("id").annotate(last=Max("history_id")).values("last")
    return {entry.id: entry for entry in model.history.filter(history_id__in=last)}
