"""How often sections are to be checked, and by whom."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from factsheets import staleness
from factsheets.models.sheets import Section, Sheet
from factsheets.models.sources import Source
from factsheets.models.tracking import TAKEN, SheetPath, TrackedModel


def interval_in_words(text: str) -> None:
    """Refuse what is no interval."""
    try:
        staleness.Interval.parse(text)
    except ValueError as error:
        raise ValidationError("Write a number and days, months or years, as 6 months.") from error


class IntervalField(models.CharField):  # type: ignore[type-arg]
    """An interval in words: “14 days”, “6 months”, “1 year”."""

    default_validators = [interval_in_words]

    def deconstruct(self) -> Any:
        # A plain column to migrations, which import nothing of ours.
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


class ReviewInterval(TrackedModel):
    """How long a check against one kind of source holds here. Without a row the default holds."""

    KIND = "review interval"
    COMMON = True

    kind = models.CharField("kind of source", max_length=30, choices=Source.Kind, unique=True)
    interval = IntervalField(
        max_length=20, help_text="How long a check holds: 14 days, 6 months, 1 year."
    )

    class Meta:
        ordering = ["kind"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.interval}"

    def label(self) -> str:
        return self.kind


class ReviewPlan(TrackedModel):
    """Who checks a sheet, or one section of it, and how often. A section's own plan goes first."""

    KIND = "review plan"
    SHEETS = (SheetPath("sheet"),)

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="review_plans")
    section = models.ForeignKey(
        Section,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="review_plans",
        help_text="Empty: the plan of the whole sheet.",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who sees to its checks.",
    )
    fallback = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who does when the owner has left.",
    )
    interval = IntervalField(
        max_length=20,
        blank=True,
        help_text="As 6 months. It can only shorten what the kinds of the sources ask for.",
    )
    review_by = models.DateField(
        null=True,
        blank=True,
        help_text="A day by which it must be looked at in any case: a new law, the end of a season.",
    )

    class Meta:
        ordering = ["sheet", "section__position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["sheet", "section"],
                name="review_plan_once_a_section",
                violation_error_message=TAKEN,
            ),
            models.UniqueConstraint(
                fields=["sheet"],
                condition=models.Q(section__isnull=True),
                name="review_plan_once_a_sheet",
                violation_error_message=TAKEN,
            ),
        ]

    def __str__(self) -> str:
        return f"review plan of {self.section or self.sheet}"

    def label(self) -> str:
        return f"{self.sheet.slug}/{self.section.key}" if self.section else self.sheet.slug

    def clean(self) -> None:
        if self.section is not None and self.section.sheet_id != self.sheet_id:
            raise ValidationError({"section": "Choose a section of this sheet."})
