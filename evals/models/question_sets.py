"""Questions with known answers: kept to measure with, never shown to the bot."""

from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from factsheets.models.guarding import PastTheGate, refuse_fixtures
from factsheets.models.tracking import TAKEN, SheetPath, TrackedModel

FROZEN = (
    "The set is frozen, so that what was measured with it stays comparable; copy it under a new "
    "name and change the copy."
)


class QuestionSet(TrackedModel):
    """A list of questions about one sheet. Change the sheet, not the questions.

    Frozen from its first run on: `frozen_hash` is the SHA-256 of its questions
    in canonical form (`question_sets.hash_of`).
    """

    KIND = "question set"
    SHEETS = (SheetPath("sheet"),)

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    sheet = models.ForeignKey(
        "factsheets.Sheet", on_delete=models.PROTECT, related_name="question_sets"
    )
    frozen_at = models.DateTimeField(null=True, blank=True, editable=False)
    frozen_hash = models.CharField(max_length=64, blank=True, editable=False)

    class Meta:
        ordering = ["title", "id"]

    def __str__(self) -> str:
        return self.title

    def clean(self) -> None:
        """What a frozen set is about and was frozen as does not change."""
        kept = ("sheet_id", "frozen_at", "frozen_hash")
        stored = _stored(self, *kept)
        if stored and stored["frozen_at"] and any(stored[n] != getattr(self, n) for n in kept):
            raise ValidationError(FROZEN)

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

    class Part(models.TextChoices):
        DEV = "dev", "to work with"
        HELD_BACK = "held-back", "held back: nothing is tuned on it"

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
    part = models.CharField(max_length=10, choices=Part, default=Part.DEV)
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
        _lists_of_text(self.sections, self.facts)
        if (self.scope == self.Scope.IN) != bool(self.sections):
            raise ValidationError(
                {"sections": "Name the sections that answer it, and none if the sheet does not."}
            )
        self._keep_what_is_frozen()

    def _keep_what_is_frozen(self) -> None:
        """In a frozen set, notes and order are all that may change."""
        self.normalise()
        names = [
            column.attname
            for column in self._meta.concrete_fields
            if column.name not in ("id", "position", "note")
        ]
        stored = _stored(self, *names)
        if stored and all(stored[name] == getattr(self, name) for name in names):
            return
        touched = {self.question_set_id, *([stored["question_set_id"]] if stored else [])}
        if QuestionSet.objects.filter(pk__in=touched - {None}, frozen_at__isnull=False).exists():
            raise ValidationError(FROZEN)


def _stored(row: models.Model, *names: str) -> dict[str, Any] | None:
    """Fields of a row as they stand in the database; None for a new one."""
    if row._state.adding:
        return None
    return type(row)._base_manager.filter(pk=row.pk).values(*names).first()


def _lists_of_text(sections: object, facts: object) -> None:
    if not _are_texts(sections):
        raise ValidationError({"sections": "Write a list of the sections' keys."})
    if not isinstance(facts, list) or not all(_are_texts(entry) and entry for entry in facts):
        raise ValidationError(
            {"facts": "Write a list of lists: of each inner list one text must be named."}
        )


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and text for text in value)


class RetrievalReport(models.Model):
    """What a frozen question set found on one text. Written once."""

    SHEETS = (SheetPath("sheet"),)

    class Trigger(models.TextChoices):
        HAND = "hand", "by hand"
        PUBLICATION = "publication", "by itself, for what is live"

    question_set = models.ForeignKey(QuestionSet, on_delete=models.PROTECT, related_name="reports")
    frozen_hash = models.CharField(max_length=64)
    sheet = models.ForeignKey(
        "factsheets.Sheet", on_delete=models.PROTECT, related_name="retrieval_reports"
    )
    publication = models.ForeignKey(
        "factsheets.Publication",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty: the draft.",
    )
    content_hash = models.CharField(max_length=64)
    configuration = models.JSONField()
    figures = models.JSONField()
    misses = models.JSONField()
    ran_at = models.DateTimeField()
    ran_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    ran_by_name = models.CharField(max_length=150, blank=True)
    trigger = models.CharField(max_length=12, choices=Trigger)

    class Meta:
        ordering = ["-ran_at", "-id"]
        indexes = (models.Index(fields=["sheet", "content_hash"], name="evals_report_of_text"),)

    def __str__(self) -> str:
        return f"{self.question_set} on {self.subject}"

    @property
    def subject(self) -> str:
        """What was measured, in words."""
        return f"publication {self.publication.number}" if self.publication else "the draft"


def _refuse(what: str) -> NoReturn:
    raise PastTheGate(
        f"{what} would forge a report that the gate reads; measure with `evaluate_retrieval`."
    )


refuse_fixtures(_refuse, RetrievalReport)
