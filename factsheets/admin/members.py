"""Who has which role on which sheet."""

from __future__ import annotations

from django.contrib import admin

from factsheets.admin.base import OF_SHEET, TrackedAdmin
from factsheets.models import Member


@admin.register(Member)
class MemberAdmin(TrackedAdmin):
    list_display = ["user", "role", "sheet"]
    list_filter = [OF_SHEET, "role", ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["user__username", "sheet__title", "sheet__slug"]
    list_select_related = ["user", "sheet"]
    fields = ["sheet", "user", "role", "why"]
