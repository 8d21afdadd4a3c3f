"""Rows with a history: every change belongs to one change set that says who, when and why.

`change_set()` is the only way to write a tracked row. Inside it `save()` puts
the text into its one form, validates it, writes nothing if nothing changed,
and else writes the row with its history. What would leave no history
(`update()`, `bulk_*`, `delete()`, raw fixture saves) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, NoReturn, Self

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.dispatch import receiver
from simple_history.models import HistoricalRecords
from simple_history.signals import pre_create_historical_record

from factsheets import canonical
from factsheets.errors import Refused
from factsheets.models import locking
from factsheets.models.guarding import refuse_fixtures

#: What a form says of a key that is in use, or was: keys of removed rows stay reserved.
TAKEN = "That exists already, perhaps taken out of use; find it in the list and restore it there."


class LeavesNoHistory(Refused):
    """A write that would bypass the history."""

    code = "leaves-no-history"


class NotValid(Refused):
    """A row whose fields break their own rules; the sentence names each field."""

    code = "not-valid"


class ChangeSet(models.Model):
    """All that one save touched: who, when, why. Append-only."""

    at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=150)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.by_name}: {self.reason or 'no reason given'}"


@dataclass(frozen=True, slots=True)
class SheetPath:
    """A lookup from a row to sheets that use it. `present`: lookups of links that may have ended."""

    lookup: str
    present: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One row that a change set touched, in words for people. `section`: the key of its section."""

    kind: str
    label: str
    verb: str
    fields: tuple[str, ...] = ()
    section: str = field(default="", compare=False)

    def __str__(self) -> str:
        fields = f" ({', '.join(self.fields)})" if self.verb == "changed" else ""
        return f"{self.kind} {self.label} {self.verb}{fields}"


@dataclass
class OpenChangeSet:
    """The change set that saves now belong to; its row is written with the first change."""

    by: User
    reason: str
    at: datetime
    row: ChangeSet | None = None
    changes: list[Change] = field(default_factory=list)

    def row_for_history(self) -> ChangeSet:
        if self.row is None:
            self.row = ChangeSet.objects.create(
                at=self.at, by=self.by, by_name=self.by.get_username(), reason=self.reason
            )
        return self.row


_open: ContextVar[OpenChangeSet | None] = ContextVar("open_change_set", default=None)


@contextmanager
def change_set(*, by: User, reason: str, now: datetime) -> Iterator[OpenChangeSet]:
    """One transaction in which tracked rows may be saved. Inside another it joins that one."""
    outer = _open.get()
    if outer is not None:
        yield outer
        return
    with transaction.atomic():
        locking.begin_change()
        opened = OpenChangeSet(by=by, reason=canonical.normalise(reason), at=now)
        token = _open.set(opened)
        try:
            yield opened
        finally:
            _open.reset(token)


class HistoryRow(models.Model):
    """What every history row bears beside the copied fields."""

    change_set = models.ForeignKey(ChangeSet, on_delete=models.PROTECT, related_name="+")

    class Meta:
        abstract = True


@receiver(pre_create_historical_record)
def _stamp(sender: type[models.Model], history_instance: Any, **_: object) -> None:
    opened = _open.get()
    if opened is None:
        raise LeavesNoHistory(
            "A tracked row was saved outside a change set; use the functions in `editing`."
        )
    history_instance.change_set = opened.row_for_history()
    history_instance.history_user = opened.by
    history_instance.history_change_reason = opened.reason
    history_instance.history_date = opened.at


def _refuse(what: str) -> NoReturn:
    raise LeavesNoHistory(
        f"{what} would leave no history; change the rows one by one inside a change set."
    )


class TrackedQuerySet[M: "TrackedModel"](models.QuerySet[M]):
    """Reads as usual; every bulk write is refused."""

    def present(self) -> Self:
        """Rows that have not been removed."""
        return self.filter(removed_at__isnull=True)

    def update(self, **kwargs: Any) -> NoReturn:
        _refuse("update()")

    def delete(self) -> NoReturn:
        _refuse("delete()")

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("bulk_create()")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("bulk_update()")


class IndexedHistory(HistoricalRecords):  # type: ignore[misc]
    """History that is read as of a moment: the newest entry of each row up to then."""

    def get_meta_options(self, model: type[models.Model]) -> dict[str, Any]:
        options: dict[str, Any] = super().get_meta_options(model)
        by_row = models.Index(fields=(model._meta.pk.attname, "history_date", "history_id"))
        return {**options, "indexes": (*options.get("indexes", ()), by_row)}


class TrackedModel(models.Model):
    """A row whose every change is kept. Removed rows stay; their keys are reserved."""

    removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = TrackedQuerySet.as_manager()
    history = IndexedHistory(inherit=True, bases=[HistoryRow])

    #: Words for people when a row is named in a list of changes.
    KIND: ClassVar[str] = "row"

    #: Ways from the row to the sheets that use it (`access`); none: it belongs to no sheet.
    SHEETS: ClassVar[tuple[SheetPath, ...]] = ()

    #: Common stock of the house: seen by whoever may see rows of its kind on any sheet.
    COMMON: ClassVar[bool] = False

    class Meta:
        abstract = True
        # `sheet.sections.add(row)` updates through the base manager.
        base_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write the row and its history if anything changed, else nothing.

        Raises LeavesNoHistory outside a change set or for a partial save, and
        NotValid when a field breaks its rules.
        """
        opened = _open.get()
        if opened is None:
            _refuse("Saving outside a change set")
        if args or kwargs.get("update_fields") is not None:
            _refuse("A partial save")
        if hasattr(self, "skip_history_when_saving"):
            _refuse("A save without its history")
        self.normalise()
        self._validate()
        is_new, changed = self._state.adding, self._changed_fields()
        if not is_new and not changed:
            return
        super().save(**kwargs)
        opened.changes.append(
            Change(
                self.KIND,
                self.label(),
                verb(is_new=is_new, changed=changed, is_removed=self.removed_at is not None),
                () if is_new else changed,
                self.section_key(),
            )
        )

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("delete()")

    def label(self) -> str:
        """What people call this row."""
        return str(self)

    def section_key(self) -> str:
        """The key of the section that this row is or belongs to, if any."""
        return ""

    def normalise(self) -> None:
        """Put every text into the form in which it is stored."""
        for column in self._meta.concrete_fields:
            value = getattr(self, column.attname)
            if isinstance(value, str) and isinstance(column, models.CharField | models.TextField):
                form = (
                    canonical.normalise_line
                    if isinstance(column, models.CharField)
                    else canonical.normalise
                )
                setattr(self, column.attname, form(value))

    def _validate(self) -> None:
        relations = [column.name for column in self._meta.concrete_fields if column.is_relation]
        try:
            self.clean_fields(exclude=relations)
            self.clean()
        except ValidationError as error:
            raise NotValid(f"{self.KIND} {self.label()!r}: {sentences(error)}") from error

    def _changed_fields(self) -> tuple[str, ...]:
        """Names of the fields that differ from the stored row; none for a new one."""
        if self._state.adding:
            return ()
        columns = {column.attname: column for column in self._meta.concrete_fields}
        stored = type(self)._base_manager.filter(pk=self.pk).values(*columns).get()
        return tuple(
            column.name
            for name, column in columns.items()
            if stored[name] != column.to_python(getattr(self, name))
        )


def verb(*, is_new: bool, changed: tuple[str, ...], is_removed: bool) -> str:
    """What happened to a row, in a word."""
    if is_new:
        return "added"
    if "removed_at" in changed:
        return "removed" if is_removed else "restored"
    return "moved" if changed == ("position",) else "changed"


refuse_fixtures(_refuse, TrackedModel)


def sentences(error: ValidationError) -> str:
    """A validation error in one line, field by field."""
    if hasattr(error, "error_dict"):
        parts: Sequence[str] = [
            f"{name}: {' '.join(messages)}" if name != "__all__" else " ".join(messages)
            for name, messages in error.message_dict.items()
        ]
    else:
        parts = error.messages
    return " ".join(parts)
