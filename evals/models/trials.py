"""A question set put to a sheet's bot inline and split, to see what the split costs and saves."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from evals.models.question_sets import QuestionSet
from factsheets.models.tracking import SheetPath


class Trial(models.Model):
    """One comparison, on a frozen subject. It is open while answers are missing, then closed for
    good with its figures."""

    SHEETS = (SheetPath("sheet"),)

    class State(models.TextChoices):
        OPEN = "open", "under way"
        DONE = "done", "done"
        STOPPED = "stopped", "stopped"

    question_set = models.ForeignKey(QuestionSet, on_delete=models.PROTECT, related_name="trials")
    sheet = models.ForeignKey("factsheets.Sheet", on_delete=models.PROTECT, related_name="trials")
    frozen_hash = models.CharField(max_length=64)
    content = models.BinaryField()
    content_hash = models.CharField(max_length=64)
    rules_text = models.TextField()
    rules_hash = models.CharField(max_length=64)
    bot = models.JSONField()
    started_at = models.DateTimeField()
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    token = models.UUIDField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveSmallIntegerField(default=0)
    closed_at = models.DateTimeField(null=True, blank=True)
    figures = models.JSONField(null=True, blank=True)
    is_worth_it = models.BooleanField(null=True, blank=True)
    sentence = models.TextField(blank=True)

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["question_set"],
                condition=models.Q(state="open"),
                name="one_trial_open_a_question_set",
            )
        ]

    def __str__(self) -> str:
        return f"{self.question_set}: inline and split"


class TrialAnswer(models.Model):
    """One question answered in one delivery. Written once."""

    SHEETS = (SheetPath("trial__sheet"),)

    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="answers")
    key = models.SlugField(max_length=80)
    delivery = models.CharField(max_length=10)
    is_in_scope = models.BooleanField()
    reply = models.TextField(blank=True)
    refused = models.BooleanField(null=True)
    right = models.BooleanField(null=True)
    support = models.FloatField(null=True)
    sections = models.JSONField(default=list)
    input_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    usage = models.JSONField(null=True, blank=True)
    error = models.CharField(max_length=60, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["trial", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "key", "delivery"], name="answer_once_a_trial_and_delivery"
            )
        ]

    def __str__(self) -> str:
        return f"{self.key}, {self.delivery}"
