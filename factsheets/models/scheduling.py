"""A publication that somebody approved for a later moment."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from factsheets.models.publications import Publication
from factsheets.models.sheets import Sheet
from factsheets.models.tracking import SheetPath


class Schedule(models.Model):
    """One approved subject and its time. It waits, then it is closed for good, with the reason."""

    SHEETS = (SheetPath("sheet"),)

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        DONE = "done", "published"
        SUSPENDED = "suspended", "suspended"
        MISSED = "missed", "missed"
        CANCELLED = "cancelled", "cancelled"

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="schedules")
    due_at = models.DateTimeField()
    zone = models.CharField(max_length=60, help_text="The time zone that its time was given in.")
    content_hash = models.CharField(max_length=64)
    rules_hash = models.CharField(max_length=64)
    bot_hash = models.CharField(max_length=64)
    seen_live_number = models.PositiveIntegerField(null=True, blank=True)
    reason = models.TextField()
    scheduled_at = models.DateTimeField()
    scheduled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    scheduled_by_name = models.CharField(max_length=150)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_because = models.TextField(blank=True)
    publication = models.OneToOneField(
        Publication, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["-due_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["sheet"],
                condition=models.Q(state="waiting"),
                name="one_schedule_waits_a_sheet",
            ),
            models.CheckConstraint(
                condition=models.Q(state="waiting", closed_at__isnull=True)
                | (~models.Q(state="waiting") & models.Q(closed_at__isnull=False)),
                name="schedule_is_closed_at_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sheet} at {self.due_at:%Y-%m-%d %H:%M} UTC"
