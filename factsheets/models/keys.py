"""Keys of programs: what a bot shows in place of a log-in."""

from __future__ import annotations

from datetime import date

from django.conf import settings
from django.db import models

from factsheets.models.sheets import Sheet
from factsheets.models.tracking import SheetPath


class ApiKey(models.Model):
    """A key to one sheet. Only the hash of its secret is kept; it is revoked, never deleted."""

    SHEETS = (SheetPath("sheet"),)

    class Scope(models.TextChoices):
        READ = "read", "pull the sheet"
        USAGE = "usage", "say which sections answers needed"
        RETRIEVE = "retrieve", "search the sheet"

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=100, help_text="Which bot or program holds it.")
    prefix = models.CharField(
        max_length=16, unique=True, help_text="The first letters, by which people know it again."
    )
    key_hash = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    expires_on = models.DateField(
        null=True, blank=True, help_text="The last day on which it opens."
    )
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # A day: a bot that polls writes once a day.
    last_used_on = models.DateField(null=True, blank=True)

    class Meta:
        ordering = ["sheet", "-id"]
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        constraints = [
            models.UniqueConstraint(
                fields=["sheet", "name"],
                condition=models.Q(revoked_at__isnull=True),
                name="key_name_once_a_sheet",
            ),
            models.CheckConstraint(
                condition=models.Q(revoked_at__isnull=True, revoked_by__isnull=True)
                | models.Q(revoked_at__isnull=False, revoked_by__isnull=False),
                name="key_is_revoked_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"

    def is_open_on(self, day: date) -> bool:
        """Whether it opens anything on a day: neither revoked nor past its last day."""
        return self.revoked_at is None and (self.expires_on is None or day <= self.expires_on)
