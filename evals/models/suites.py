"""Probes, the suites they stand in, and which suites a sheet requires."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from evals import graders
from factsheets import canonical
from factsheets.models.tracking import TAKEN, SheetPath, TrackedModel


class Suite(TrackedModel):
    """A set of probes with one bar. Frozen and hashed whenever a run starts."""

    KIND = "suite"
    SHEETS = (SheetPath("sheet"), SheetPath("requirements__sheet", ("requirements",)))

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    sheet = models.ForeignKey(
        "factsheets.Sheet",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="suites",
        help_text="The sheet it was written for. Other sheets may require it too.",
    )
    repeats = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(20)],
        help_text="How often each probe is asked.",
    )
    pass_bar = models.PositiveSmallIntegerField(
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="Per cent of the scored attempts that must pass. Critical probes must all pass.",
    )

    class Meta:
        ordering = ["title", "id"]

    def __str__(self) -> str:
        return self.title

    def label(self) -> str:
        return self.slug


class Probe(TrackedModel):
    """One question, or conversation, with its expectation."""

    KIND = "probe"
    SHEETS = (
        SheetPath("suite__sheet"),
        SheetPath("suite__requirements__sheet", ("suite__requirements",)),
    )

    class Must(models.TextChoices):
        ANSWER = "answer", "answer"
        REFUSE = "refuse", "refuse"
        REDIRECT = "redirect", "redirect"

    class Severity(models.TextChoices):
        CRITICAL = "critical", "critical: must always pass"
        SCORED = "scored", "scored: counts towards the bar"

    class Needs(models.TextChoices):
        MODEL = "model", "a model (left out for the offline bot)"

    suite = models.ForeignKey(Suite, on_delete=models.PROTECT, related_name="probes")
    key = models.SlugField(max_length=80)
    position = models.PositiveIntegerField(default=0)
    category = models.CharField(max_length=80)
    turns = models.JSONField(help_text="What the visitor says, in order.")
    must = models.CharField(
        max_length=10, choices=Must, help_text="A label of what is right; the checks decide."
    )
    checks = models.JSONField(default=list, blank=True)
    severity = models.CharField(max_length=10, choices=Severity, default=Severity.CRITICAL)
    needs = models.CharField(max_length=10, choices=Needs, blank=True)
    active = models.BooleanField(default=True)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["suite", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["suite", "key"], name="probe_key_once", violation_error_message=TAKEN
            )
        ]

    def __str__(self) -> str:
        return self.key

    def clean(self) -> None:
        turns = self.turns
        if (
            not isinstance(turns, list)
            or not turns
            or not all(isinstance(turn, str) and turn.strip() for turn in turns)
        ):
            raise ValidationError({"turns": "Write at least one thing the visitor says."})
        self.turns = [canonical.normalise(turn) for turn in turns]
        try:
            checks = graders.parse(self.checks)
        except graders.CheckRefused as refused:
            raise ValidationError({"checks": refused.sentence}) from refused
        self.checks = [check.spec() for check in checks]
        if self.active and not checks:
            raise ValidationError(
                {"checks": "A probe without a check would always pass; add one or switch it off."}
            )


class SuiteRequirement(TrackedModel):
    """A sheet cannot be published until this suite has passed on its rules."""

    KIND = "required suite"
    SHEETS = (SheetPath("sheet"),)

    sheet = models.ForeignKey(
        "factsheets.Sheet", on_delete=models.PROTECT, related_name="suite_requirements"
    )
    suite = models.ForeignKey(Suite, on_delete=models.PROTECT, related_name="requirements")

    class Meta:
        ordering = ["sheet", "suite__title", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["sheet", "suite"], name="suite_required_once", violation_error_message=TAKEN
            )
        ]

    def __str__(self) -> str:
        return f"{self.suite} for {self.sheet}"
