"""Runs and all that happens in one. Rows are the truth; a broker only carries hints."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import NoReturn

from django.conf import settings
from django.db import models

from factsheets.models.guarding import PastTheGate, refuse_fixtures
from factsheets.models.tracking import SheetPath


class Run(models.Model):
    """The required suites against one subject. Everything it needs is frozen at its start."""

    SHEETS = (SheetPath("sheet"),)

    class State(models.TextChoices):
        RUNNING = "running", "running"
        CLOSED = "closed", "closed"

    class Outcome(models.TextChoices):
        PASSED = "passed", "passed"
        FAILED = "failed", "failed"
        INCOMPLETE = "incomplete", "incomplete"
        CANCELLED = "cancelled", "cancelled"
        STOPPED = "stopped", "stopped"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    sheet = models.ForeignKey("factsheets.Sheet", on_delete=models.PROTECT, related_name="runs")
    publication_number = models.PositiveIntegerField(
        null=True, blank=True, help_text="Empty: the draft."
    )
    content_hash = models.CharField(max_length=64)
    rules_hash = models.CharField(max_length=64)
    bot_hash = models.CharField(max_length=64)
    content = models.BinaryField()
    rules_text = models.TextField()
    plan = models.JSONField()
    is_partial = models.BooleanField(
        default=False, help_text="Ran fewer suites than the sheet requires; opens no gate."
    )
    planned = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    outcome = models.CharField(max_length=12, choices=Outcome, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    cancel_requested = models.BooleanField(default=False)
    stop_reason = models.TextField(blank=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    started_by_name = models.CharField(max_length=150)
    changes_up_to = models.ForeignKey(
        "factsheets.ChangeSet",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The newest change set when its plan was frozen. Empty in runs of earlier versions.",
    )

    class Meta:
        ordering = ["-started_at", "id"]
        indexes = [
            models.Index(fields=["sheet", "rules_hash", "-finished_at"], name="run_evidence")
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(planned__gt=0), name="run_plans_something"),
            models.CheckConstraint(
                condition=models.Q(state="running", outcome="")
                | (models.Q(state="closed") & ~models.Q(outcome="")),
                name="run_has_an_outcome_when_closed",
            ),
        ]
        permissions = [("start_run", "Can run probes")]

    def __str__(self) -> str:
        return f"run {str(self.id)[:8]}"

    @property
    def ended_at(self) -> datetime:
        """When the run closed. Raises ValueError while it is open."""
        if self.finished_at is None:
            raise ValueError("The run has not ended yet.")
        return self.finished_at

    @property
    def is_offline(self) -> bool:
        """The bot of this run quotes the sheet and reads no rules."""
        return bool(self.plan["bot"]["provider"] == "offline")

    @property
    def left_out(self) -> list[str]:
        """Keys of the probes that need a model and were not asked."""
        return [key for suite in self.plan["suites"] for key in suite["left_out"]]


class Attempt(models.Model):
    """One answer to one probe within a run, or the error that stood in its way."""

    SHEETS = (SheetPath("run__sheet"),)

    class State(models.TextChoices):
        QUEUED = "queued", "waiting"
        RUNNING = "running", "running"
        REPLIED = "replied", "replied, not graded"
        DONE = "done", "done"
        CANCELLED = "cancelled", "not asked"

    class Outcome(models.TextChoices):
        PASS = "pass", "pass"
        FAIL = "fail", "fail"
        ERROR = "error", "error"
        TRUNCATED = "truncated", "truncated"
        UNGRADED = "ungraded", "ungraded"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="attempts")
    suite = models.CharField(max_length=80)
    probe = models.CharField(max_length=80)
    category = models.CharField(max_length=80)
    severity = models.CharField(max_length=10)
    repeat = models.PositiveSmallIntegerField(default=1)
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    claim_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    replied_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error_type = models.CharField(max_length=60, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["run", "position", "repeat", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "suite", "probe", "repeat"], name="attempt_once_a_repeat"
            )
        ]
        indexes = [models.Index(fields=["run", "state", "position"], name="attempt_open")]

    def __str__(self) -> str:
        return f"{self.probe} ({self.repeat})"


class Turn(models.Model):
    """What was said and what came back, as it came."""

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="turns")
    index = models.PositiveSmallIntegerField()
    sent = models.TextField()
    received = models.TextField(blank=True)
    refused = models.BooleanField(null=True)
    sections = models.JSONField(default=list, blank=True)
    stop_reason = models.CharField(max_length=60, blank=True)
    model = models.CharField(max_length=100, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    latency_ms = models.PositiveIntegerField()
    request_id = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ["attempt", "index"]
        constraints = [
            models.UniqueConstraint(fields=["attempt", "index"], name="turn_once_an_attempt")
        ]

    def __str__(self) -> str:
        return f"turn {self.index + 1}"


class Verdict(models.Model):
    """What one check says of an attempt, and the words that decided."""

    class Outcome(models.TextChoices):
        PASS = "pass", "pass"
        FAIL = "fail", "fail"
        UNGRADED = "ungraded", "ungraded"

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="verdicts")
    position = models.PositiveSmallIntegerField()
    grader = models.CharField(max_length=40)
    grader_version = models.PositiveSmallIntegerField()
    outcome = models.CharField(max_length=10, choices=Outcome)
    code = models.CharField(max_length=40)
    reason = models.TextField()
    turn_index = models.PositiveSmallIntegerField(null=True, blank=True)
    span_start = models.PositiveIntegerField(null=True, blank=True)
    span_end = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["attempt", "position"]
        constraints = [
            models.UniqueConstraint(fields=["attempt", "position"], name="verdict_once_a_check")
        ]

    def __str__(self) -> str:
        return f"{self.grader}: {self.outcome}"


class Spend(models.Model):
    """One call that may cost money, written before it is made.

    A call whose worker died has no `finished_at`: its cost is unknown, never nothing.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="spends")
    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="spends")
    try_number = models.PositiveSmallIntegerField()
    turn_index = models.PositiveSmallIntegerField()
    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=100)
    usage = models.JSONField(null=True, blank=True)
    error_type = models.CharField(max_length=60, blank=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.provider} call, try {self.try_number}"


def _refuse(what: str) -> NoReturn:
    raise PastTheGate(f"{what} would make evidence that no probe gave; start a run.")


refuse_fixtures(_refuse, Run, Attempt, Turn, Verdict)
