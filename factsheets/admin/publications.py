"""What was served, and who changed what: for reading only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.html import format_html

from factsheets.admin.base import OF_SHEET, AppendOnlyAdmin, OfSheet
from factsheets.models import (
    ChangeSet,
    Check,
    Outbox,
    Publication,
    PublicationEvent,
    Schedule,
)


@admin.register(Publication)
class PublicationAdmin(AppendOnlyAdmin):
    list_display = ["__str__", "sheet", "published_at", "published_by_name", "reason", "restores"]
    list_filter = [OF_SHEET, "published_at"]
    search_fields = ["sheet__title", "slug", "reason", "content_hash", "rules_hash"]
    list_select_related = ["sheet"]
    ordering = ["-published_at", "-id"]
    fields = [
        "sheet",
        "number",
        "slug",
        "published_at",
        "published_by_name",
        "reason",
        "restores",
        "content_hash",
        "rules_hash",
        "bot_hash",
        "record_hash",
        "body_as_text",
        "record_as_text",
        "evidence_as_text",
    ]

    @admin.display(description="body as served")
    def body_as_text(self, publication: Publication) -> str:
        return _bytes(publication.body)

    @admin.display(description="record with sources and checks")
    def record_as_text(self, publication: Publication) -> str:
        return _bytes(publication.record)

    @admin.display(description="evidence")
    def evidence_as_text(self, publication: Publication) -> str:
        return _bytes(publication.evidence)

    def get_readonly_fields(self, request: Any, obj: Any = None) -> list[str]:
        return ["body_as_text", "record_as_text", "evidence_as_text"]


def _bytes(data: Any) -> str:
    return format_html('<div class="muniment-bytes">{}</div>', bytes(data).decode())


@admin.register(PublicationEvent)
class PublicationEventAdmin(AppendOnlyAdmin):
    list_display = [
        "at",
        "sheet",
        "kind",
        "from_publication",
        "to_publication",
        "by_name",
        "reason",
    ]
    list_filter = [OF_SHEET, "kind", "at"]
    search_fields = ["sheet__title", "reason", "by_name"]
    list_select_related = ["sheet", "from_publication", "to_publication"]
    ordering = ["-at", "-id"]
    fields = [
        "sheet",
        "kind",
        "at",
        "by_name",
        "reason",
        "from_publication",
        "to_publication",
        "seal",
    ]


@admin.register(Schedule)
class ScheduleAdmin(AppendOnlyAdmin):
    list_display = ["due_at", "sheet", "state", "scheduled_by_name", "reason", "closed_because"]
    list_filter = [OF_SHEET, "state", "due_at"]
    search_fields = ["sheet__title", "reason", "scheduled_by_name"]
    list_select_related = ["sheet"]
    ordering = ["-due_at", "-id"]
    fields = [
        "sheet",
        "due_at",
        "zone",
        "state",
        "reason",
        "scheduled_by_name",
        "scheduled_at",
        "closed_at",
        "closed_because",
        "publication",
        "content_hash",
        "rules_hash",
        "bot_hash",
        "seen_live_number",
    ]


@admin.register(Check)
class CheckAdmin(AppendOnlyAdmin):
    list_display = ["section", "checked_on", "outcome", "method", "checked_by_name"]
    list_filter = [
        ("section__sheet", OfSheet),
        "outcome",
        "method",
        "checked_on",
    ]
    search_fields = ["section__heading", "note", "checked_by_name"]
    list_select_related = ["section"]
    ordering = ["-checked_on", "-id"]
    fields = [
        "section",
        "checked_on",
        "outcome",
        "method",
        "checked_by_name",
        "recorded_at",
        "note",
        "text_hash",
        "supersedes",
    ]


@admin.register(ChangeSet)
class ChangeSetAdmin(AppendOnlyAdmin):
    list_display = ["at", "by_name", "reason"]
    list_filter = ["at", "by_name"]
    search_fields = ["reason", "by_name"]
    fields = ["at", "by_name", "reason"]


@admin.register(Outbox)
class OutboxAdmin(AppendOnlyAdmin):
    list_display = ["created_at", "topic", "sheet", "mailed_at"]
    list_filter = ["topic", OF_SHEET]
    list_select_related = ["sheet"]
