"""How large sheets are: counts by the model service, and what was found at each look."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from factsheets.models.sheets import Sheet
from factsheets.models.tracking import SheetPath


class TokenCount(models.Model):
    """What the model service counted for one text and one model. Asked for once."""

    text_hash = models.CharField(max_length=64)
    model = models.CharField(max_length=100)
    tokens = models.PositiveIntegerField()
    counted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["text_hash", "model"], name="text_counted_once_a_model")
        ]

    def __str__(self) -> str:
        return f"{self.tokens} tokens by {self.model}"


class SizeReport(models.Model):
    """The sizing of a sheet on one day, with the figures it rests on. Append-only."""

    SHEETS = (SheetPath("sheet"),)

    class Advice(models.TextChoices):
        INLINE = "inline", "stay inline"
        SPLIT = "split", "split it"
        ASK_USE = "ask-use", "find out what is used"

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="size_reports")
    at = models.DateTimeField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    content_hash = models.CharField(max_length=64)
    rules_hash = models.CharField(max_length=64)
    figures = models.JSONField()
    advice = models.CharField(max_length=10, choices=Advice)
    sentence = models.TextField()
    reasons = models.JSONField(default=list)

    class Meta:
        ordering = ["sheet", "-at", "-id"]

    def __str__(self) -> str:
        return f"{self.sheet}: {self.Advice(self.advice).label}"
