"""What was served, and when: immutable publications, their events, and announcements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from django.conf import settings
from django.db import models

from factsheets.models.guarding import PastTheGate, refuse_fixtures
from factsheets.models.sheets import Sheet, SheetState
from factsheets.models.tracking import ChangeSet, SheetPath

_released: ContextVar[bool] = ContextVar("released", default=False)


@contextmanager
def released() -> Iterator[None]:
    """Where what bots get may be written. For `publishing`, which asks the gate, alone."""
    token = _released.set(True)
    try:
        yield
    finally:
        _released.reset(token)


def _refuse(what: str) -> NoReturn:
    raise PastTheGate(f"{what} would go past the gate; use the functions in `publishing`.")


class ReleasedQuerySet[M: models.Model](models.QuerySet[M]):
    """Rows are made one by one, by the publisher. That they never change is for triggers."""

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("bulk_create()")


class Released(models.Model):
    """A row that only the publisher makes."""

    objects = ReleasedQuerySet.as_manager()

    class Meta:
        abstract = True
        # The other manager would make rows in bulk.
        base_manager_name = "objects"

    def save_base(self, *args: Any, **kwargs: Any) -> None:
        """What `save` comes to. Raises PastTheGate unless the publisher is at work."""
        if not _released.get():
            _refuse(f"Saving a {self._meta.verbose_name}")
        super().save_base(*args, **kwargs)


refuse_fixtures(_refuse, Released, SheetState)


class Publication(Released):
    """A released bot view with its rules: the bytes served, and the evidence that let it out."""

    SHEETS = (SheetPath("sheet"),)
    #: Fields that a list of publications has no need to read.
    BYTES = ("body", "prompt", "record", "evidence")

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="publications")
    number = models.PositiveIntegerField()
    format = models.CharField(max_length=20)
    slug = models.CharField(max_length=80, help_text="The sheet's name at that time.")
    body = models.BinaryField()
    body_hash = models.CharField(max_length=64)
    prompt = models.BinaryField()
    prompt_hash = models.CharField(max_length=64)
    content_hash = models.CharField(max_length=64)
    rules_hash = models.CharField(max_length=64)
    bot_hash = models.CharField(max_length=64)
    record = models.BinaryField()
    record_hash = models.CharField(max_length=64)
    evidence = models.BinaryField()
    evidence_hash = models.CharField(max_length=64)
    published_at = models.DateTimeField()
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    published_by_name = models.CharField(max_length=150)
    reason = models.TextField()
    restores = models.PositiveIntegerField(
        null=True, blank=True, help_text="The number whose text a rollback published again."
    )
    changes_up_to = models.ForeignKey(
        ChangeSet,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The newest change set that it contains. Empty in those of earlier versions.",
    )

    class Meta:
        ordering = ["sheet", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["sheet", "number"], name="number_once_a_sheet"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="numbers_from_one"),
        ]

    def __str__(self) -> str:
        return f"publication {self.number}"


class PublicationEvent(Released):
    """A change of what is live. What was live at a moment is answered from these alone."""

    SHEETS = (SheetPath("sheet"),)

    class Kind(models.TextChoices):
        PUBLISHED = "published"
        ROLLED_BACK = "rolled-back", "rolled back"
        WITHDRAWN = "withdrawn"

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="events")
    kind = models.CharField(max_length=20, choices=Kind)
    at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=150)
    reason = models.TextField()
    from_publication = models.ForeignKey(
        Publication, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    to_publication = models.ForeignKey(
        Publication, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    seal = models.CharField(
        max_length=64,
        blank=True,
        help_text="Over this event, its publication and the seal before. "
        "Empty in those of earlier versions.",
    )

    class Meta:
        ordering = ["sheet", "-id"]

    def __str__(self) -> str:
        return f"{self.sheet}: {self.get_kind_display()}"


class Outbox(models.Model):
    """An announcement written in the transaction of what it announces, delivered later."""

    SHEETS = (SheetPath("sheet"),)

    topic = models.CharField(max_length=40)
    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="+")
    payload = models.JSONField()
    created_at = models.DateTimeField()
    mailed_at = models.DateTimeField(
        null=True, blank=True, help_text="When people were told, of what is mailed at all."
    )

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "outbox"

    def __str__(self) -> str:
        return f"{self.topic} {self.created_at:%Y-%m-%d %H:%M}"
