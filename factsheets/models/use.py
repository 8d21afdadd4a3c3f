"""Which sections of a sheet the answers to real questions needed."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from factsheets.models.keys import ApiKey
from factsheets.models.sheets import Sheet
from factsheets.models.tracking import SheetPath


class UseLog(models.Model):
    """One file of questions and replies that somebody uploaded."""

    SHEETS = (SheetPath("sheet"),)

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="use_logs")
    sha256 = models.CharField(max_length=64)
    uploaded_at = models.DateTimeField()
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    rows = models.PositiveIntegerField(help_text="Answers that were taken from it.")
    skipped = models.PositiveIntegerField(help_text="Answers that were known already.")
    keeps_texts = models.BooleanField(default=False)

    class Meta:
        ordering = ["sheet", "-id"]
        permissions = [("keep_texts_uselog", "Can keep questions and replies, and drop them")]
        constraints = [
            models.UniqueConstraint(fields=["sheet", "sha256"], name="log_once_a_sheet"),
        ]

    def __str__(self) -> str:
        return f"log of {self.uploaded_at:%Y-%m-%d %H:%M} UTC"


class UseRecord(models.Model):
    """One answer, and the sections that it needed. Only its tags are ever changed, by a person."""

    SHEETS = (SheetPath("sheet"),)

    class Origin(models.TextChoices):
        POSTED = "posted", "said by the bot"
        LOG = "log", "found in a log"

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="use")
    reference = models.CharField(max_length=100, help_text="What the sender calls the answer.")
    answered_at = models.DateTimeField()
    sections = models.JSONField(default=list, help_text="Keys of the sections that it needed.")
    publication = models.PositiveIntegerField(
        null=True, blank=True, help_text="The number that it was answered from."
    )
    origin = models.CharField(max_length=10, choices=Origin)
    key = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    log = models.ForeignKey(
        UseLog, on_delete=models.PROTECT, null=True, blank=True, related_name="records"
    )
    question = models.TextField(blank=True)
    reply = models.TextField(blank=True)
    support = models.JSONField(
        default=dict, help_text="By section: how much of a sentence of the reply stands there."
    )
    corrected_at = models.DateTimeField(null=True, blank=True)
    corrected_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    tagged = models.JSONField(
        null=True, blank=True, help_text="The sections before anybody corrected them."
    )

    class Meta:
        ordering = ["sheet", "-answered_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["sheet", "reference"], name="reference_once_a_sheet"),
        ]
        indexes = [models.Index(fields=["sheet", "answered_at"], name="use_of_sheet_in_period")]

    def __str__(self) -> str:
        return self.reference

    @property
    def first_said(self) -> list[str]:
        """The sections as they were before anybody corrected them."""
        first: Any = self.sections if self.corrected_at is None else self.tagged
        return list(first)
