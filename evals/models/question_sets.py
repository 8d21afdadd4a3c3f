"""Questions with known answers: kept to measure with, never shown to the bot."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models

from factsheets.models.tracking import TAKEN, SheetPath, TrackedModel


class QuestionSet(TrackedModel):
    """A list of questions about one sheet. Change the sheet, not the questions."""

    KIND = "question set"
    SHEETS = (SheetPath("sheet"),)

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    sheet = models.ForeignKey(
        "factsheets.Sheet", on_delete=models.PROTECT, related_name="question_sets"
    )

    class Meta:
        ordering = ["title", "id"]

    def __str__(self) -> str:
        return self.title

    def label(self) -> str:
        return self.slug


class Question(TrackedModel):
    """One question, the sections that hold its answer, and what a right answer must name."""

    KIND = "question"
    SHEETS = (SheetPath("question_set__sheet"),)

    class Scope(models.TextChoices):
        IN = "in", "the sheet answers it"
        OUT = "out", "the sheet does not answer it"

    class Trap(models.TextChoices):
        LEXICAL = "lexical", "shares words with the sheet"
        PLAIN = "plain", "shares none"

    question_set = models.ForeignKey(
        QuestionSet, on_delete=models.PROTECT, related_name="questions"
    )
    key = models.SlugField(max_length=80)
    position = models.PositiveIntegerField(default=0)
    question = models.TextField()
    scope = models.CharField(max_length=5, choices=Scope)
    sections = models.JSONField(default=list, blank=True)
    expected = models.TextField(blank=True)
    facts = models.JSONField(default=list, blank=True)
    trap = models.CharField(max_length=10, choices=Trap, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["question_set", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["question_set", "key"],
                name="question_key_once",
                violation_error_message=TAKEN,
            )
        ]

    def __str__(self) -> str:
        return self.key

    def clean(self) -> None:
        if (self.scope == self.Scope.IN) != bool(self.sections):
            raise ValidationError(
                {"sections": "Name the sections that answer it, and none if the sheet does not."}
            )
