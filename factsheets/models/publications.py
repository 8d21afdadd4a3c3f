"""What was served, and when: immutable publications, their events, and announcements."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from factsheets.models.sheets import Sheet
from factsheets.models.tracking import SheetPath


class Publication(models.Model):
    """A released bot view with its rules: the bytes served, and the evidence that let it out."""

    SHEETS = (SheetPath("sheet"),)

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

    class Meta:
        ordering = ["sheet", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["sheet", "number"], name="number_once_a_sheet"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="numbers_from_one"),
        ]

    def __str__(self) -> str:
        return f"publication {self.number}"


class PublicationEvent(models.Model):
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

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "outbox"

    def __str__(self) -> str:
        return f"{self.topic} {self.created_at:%Y-%m-%d %H:%M}"
