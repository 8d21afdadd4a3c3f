"""How often sections are to be checked, and by whom."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest

from factsheets.admin.base import OF_SHEET, TrackedAdmin
from factsheets.models import ReviewInterval, ReviewPlan


@admin.register(ReviewInterval)
class ReviewIntervalAdmin(TrackedAdmin):
    list_display = ["kind", "interval"]
    list_filter = [("removed_at", admin.EmptyFieldListFilter)]
    fields = ["kind", "interval", "why"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["kind"] if obj else []

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # It holds for all sheets at once.
        return request.user.has_perm("factsheets.add_reviewinterval")


@admin.register(ReviewPlan)
class ReviewPlanAdmin(TrackedAdmin):
    list_display = ["__str__", "sheet", "owner", "fallback", "interval", "review_by"]
    list_filter = [OF_SHEET, ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["sheet__title", "section__heading", "owner__username"]
    list_select_related = ["sheet", "section", "owner", "fallback"]
    fields = ["sheet", "section", "owner", "fallback", "interval", "review_by", "why"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["sheet", "section"] if obj else []

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.related_model is User:
            kwargs["queryset"] = User.objects.filter(is_active=True).order_by("username")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)
