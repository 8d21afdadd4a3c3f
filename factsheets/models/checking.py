"""A person's dated confirmation that a section agrees with its sources. Append-only."""

from __future__ import annotations

from typing import NoReturn

from django.conf import settings
from django.db import models

from factsheets.models.guarding import PastTheGate, refuse_fixtures
from factsheets.models.sheets import Section
from factsheets.models.sources import Citation
from factsheets.models.tracking import SheetPath


class Check(models.Model):
    """One check of one section. It confirms a text, not a row: the text's hash stands in it."""

    SHEETS = (SheetPath("section__sheet"),)

    class Outcome(models.TextChoices):
        CONFIRMED = "confirmed"
        CORRECTED = "corrected"
        DISPUTED = "disputed"
        SOURCE_UNREACHABLE = "source-unreachable", "source unreachable"

    class Method(models.TextChoices):
        READ_ONLINE = "read-online", "read online"
        READ_COPY = "read-copy", "read in a copy"
        READ_PAPER = "read-paper", "read on paper"
        ASKED_PERSON = "asked-person", "asked a person"
        IMPORTED = "imported", "imported"

    section = models.ForeignKey(Section, on_delete=models.PROTECT, related_name="checks")
    text_hash = models.CharField(max_length=64)
    checked_on = models.DateField(help_text="A day in the organisation's time zone.")
    recorded_at = models.DateTimeField()
    checked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    checked_by_name = models.CharField(max_length=150)
    outcome = models.CharField(max_length=20, choices=Outcome)
    method = models.CharField(max_length=20, choices=Method)
    note = models.TextField(blank=True)
    supersedes = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="superseded_by"
    )

    class Meta:
        ordering = ["section", "-checked_on", "-recorded_at", "-id"]

    def __str__(self) -> str:
        return f"{self.section} on {self.checked_on}: {self.get_outcome_display()}"


class CheckItem(models.Model):
    """What a check found in one citation's source."""

    class Outcome(models.TextChoices):
        SUPPORTS = "supports"
        SUPPORTS_PARTLY = "supports-partly", "supports in part"
        CONTRADICTS = "contradicts"
        NOT_FOUND = "not-found", "not found"
        UNREACHABLE = "unreachable"

    # Not `check`: Django's models have a method of that name.
    of = models.ForeignKey(Check, on_delete=models.PROTECT, related_name="items")
    citation = models.ForeignKey(Citation, on_delete=models.PROTECT, related_name="check_items")
    use_hash = models.CharField(
        max_length=64,
        blank=True,
        help_text="Which source the citation used then, and where in it. Empty in older checks.",
    )
    outcome = models.CharField(max_length=20, choices=Outcome)
    accessed_on = models.DateField(null=True, blank=True)

    class Meta:
        ordering = ["of", "id"]
        constraints = [
            models.UniqueConstraint(fields=["of", "citation"], name="one_item_a_citation")
        ]

    def __str__(self) -> str:
        return f"{self.citation}: {self.get_outcome_display()}"


def _refuse(what: str) -> NoReturn:
    raise PastTheGate(
        f"{what} would make a check that nobody did; use the functions in `checking`."
    )


refuse_fixtures(_refuse, Check, CheckItem)
