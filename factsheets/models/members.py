"""Who may do what on which sheet."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from factsheets.models.sheets import Sheet
from factsheets.models.tracking import TAKEN, SheetPath, TrackedModel


class Member(TrackedModel):
    """A person's role on one sheet. A role given as a group holds on every sheet."""

    KIND = "member"
    SHEETS = (SheetPath("sheet"),)

    class Role(models.TextChoices):
        VIEWER = "viewer"
        EDITOR = "editor"
        RULE_KEEPER = "rule keeper"
        PUBLISHER = "publisher"
        MAINTAINER = "maintainer"

    sheet = models.ForeignKey(Sheet, on_delete=models.PROTECT, related_name="members")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="sheet_roles",
        verbose_name="person",
    )
    role = models.CharField(max_length=20, choices=Role)

    class Meta:
        ordering = ["sheet", "user__username", "role"]
        constraints = [
            models.UniqueConstraint(
                fields=["sheet", "user", "role"],
                name="role_once_a_sheet",
                violation_error_message=TAKEN,
            )
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.get_role_display()} of {self.sheet}"

    def label(self) -> str:
        return f"{self.user.get_username()}, {self.role} of {self.sheet.slug}"
