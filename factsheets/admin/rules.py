"""Rules and the bots that must obey them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest

from factsheets import editing
from factsheets.admin.base import (
    OF_SHEET,
    OfSheet,
    TrackedAdmin,
    TrackedTabularInline,
    linked_count,
)
from factsheets.models import BotProfile, Rule, RuleSet, SheetRuleSet

OF_RULESET = ("ruleset", admin.RelatedOnlyFieldListFilter)


class SheetRuleSetInline(TrackedTabularInline):
    model = SheetRuleSet
    fields = ["sheet", "position"]
    verbose_name_plural = "sheets that use this set"


@admin.register(RuleSet)
class RuleSetAdmin(TrackedAdmin):
    in_common = ("ruleset", "pk")
    list_display = ["title", "slug", "shared", "rules_in_use", "used_by"]
    list_filter = ["shared", ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["title", "slug", "rules__text"]
    fields = ["title", "slug", "shared", "why"]
    inlines = [SheetRuleSetInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[RuleSet]:
        rows: QuerySet[RuleSet] = super().get_queryset(request)
        return rows.annotate(
            rule_count=Count("rules", distinct=True, filter=Q(rules__removed_at__isnull=True)),
            sheet_count=Count(
                "sheet_links", distinct=True, filter=Q(sheet_links__removed_at__isnull=True)
            ),
        )

    @admin.display(description="rules", ordering="rule_count")
    def rules_in_use(self, ruleset: Any) -> int:
        return int(ruleset.rule_count)

    @admin.display(description="used by sheets", ordering="sheet_count")
    def used_by(self, ruleset: Any) -> str:
        return linked_count("ruleset", ruleset.pk, ruleset.sheet_count)


@admin.register(SheetRuleSet)
class SheetRuleSetAdmin(TrackedAdmin):
    """For finding which sheets use which sets, also those that no longer do."""

    list_display = ["sheet", "ruleset", "position"]
    list_filter = [OF_SHEET, OF_RULESET, ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["sheet__title", "ruleset__title"]
    list_select_related = ["sheet", "ruleset"]
    fields = ["sheet", "ruleset", "position", "why"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: SheetRuleSet | None = None
    ) -> list[str]:
        return ["sheet", "ruleset"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Rule)
class RuleAdmin(TrackedAdmin):
    in_common = ("ruleset", "ruleset_id")
    list_display = ["key", "kind", "ruleset", "position", "enabled", "text"]
    list_filter = [
        OF_RULESET,
        ("ruleset__sheet_links__sheet", OfSheet),
        "kind",
        "enabled",
        ("removed_at", admin.EmptyFieldListFilter),
    ]
    search_fields = ["key", "text"]
    list_select_related = ["ruleset"]
    ordering = ["ruleset__title", "position", "id"]
    fields = ["ruleset", "key", "kind", "text", "position", "enabled", "why"]

    def get_readonly_fields(self, request: HttpRequest, obj: Rule | None = None) -> list[str]:
        return ["ruleset", "key"] if obj else []

    def save_model(self, request: HttpRequest, obj: Rule, form: Any, change: bool) -> None:
        if not change and not obj.position:
            obj.position = editing.next_position(Rule.objects.filter(ruleset=obj.ruleset))
        super().save_model(request, obj, form, change)


@admin.register(BotProfile)
class BotProfileAdmin(TrackedAdmin):
    in_common = ("bot", "pk")
    list_display = ["slug", "provider", "model", "max_tokens", "context_window", "used_by"]
    list_filter = ["provider", ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["slug", "model"]
    fields = [
        "slug",
        "provider",
        "model",
        "effort",
        "thinking",
        "max_tokens",
        "context_window",
        "reserve_history",
        "reserve_question",
        "reserve_retrieval",
        "reserve_output",
        "passes",
        "input_price",
        "why",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[BotProfile]:
        rows: QuerySet[BotProfile] = super().get_queryset(request)
        in_use = Q(sheets__removed_at__isnull=True)
        return rows.annotate(sheet_count=Count("sheets", distinct=True, filter=in_use))

    @admin.display(description="used by sheets", ordering="sheet_count")
    def used_by(self, bot: Any) -> str:
        return linked_count("bot", bot.pk, bot.sheet_count)
