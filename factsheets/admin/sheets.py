"""Sheets, their sections and the sources these cite."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from unfold.decorators import action
from unfold.widgets import UnfoldAdminSelectMultipleWidget

from factsheets import access, editing, gate, staleness, standings
from factsheets.admin import (
    bot_pages,
    checking_pages,
    key_pages,
    past_pages,
    publishing_pages,
    report_pages,
    search_pages,
    size_pages,
    timeline_pages,
    use_pages,
    workbench_pages,
)
from factsheets.admin.base import (
    OF_SHEET,
    OfSheet,
    TrackedAdmin,
    TrackedForm,
    TrackedStackedInline,
    person,
)
from factsheets.errors import Refused
from factsheets.models import Citation, GatePolicy, Section, Sheet, Source

#: Fields of a sheet that ask for more than the permission to change one.
_FIELD_PERMISSIONS = {
    "title": "factsheets.describe_sheet",
    "description": "factsheets.describe_sheet",
    "language": "factsheets.describe_sheet",
    "slug": "factsheets.rename_sheet",
    "visibility": "factsheets.change_visibility",
    "bot": "factsheets.assign_bot",
    "probe_scope": "factsheets.assign_bot",
    "delivery": "factsheets.assign_bot",
}


@admin.register(Sheet)
class SheetAdmin(TrackedAdmin):
    list_display = ["title", "slug", "live", "sections_in_use", "bot", "visibility", "publishing"]
    list_filter = ["visibility", "bot", ("archived_at", admin.EmptyFieldListFilter)]
    search_fields = ["title", "slug", "description", "sections__heading", "sections__body"]
    list_select_related = ["bot", "state__live_publication"]
    fields = [
        "title",
        "slug",
        "description",
        "language",
        "bot",
        "probe_scope",
        "visibility",
        "delivery",
        "why",
    ]
    actions_detail = [
        "open_workbench",
        "open_publishing",
        "open_sections",
        "open_timeline",
        "open_past",
    ]
    actions: Any = ["archive_selected", "unarchive_selected"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Sheet]:
        rows: QuerySet[Sheet] = super().get_queryset(request)
        return rows.annotate(
            section_count=Count(
                "sections", distinct=True, filter=Q(sections__removed_at__isnull=True)
            )
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Sheet | None = None) -> list[str]:
        closed = [
            field
            for field, permission in _FIELD_PERMISSIONS.items()
            if obj is not None and not request.user.has_perm(permission, obj)
        ]
        return closed

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """A sheet is made with rules and probes, on a page of the app that has both."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        address, asked = reverse("new_sheet"), request.GET.urlencode()
        return redirect(f"{address}?{asked}" if asked else address)

    def get_urls(self) -> list[URLPattern]:
        pages = [
            path(f"<int:sheet_id>/{name}/", self.admin_site.admin_view(view), name=f"sheet_{name}")
            for name, view in {
                **publishing_pages.PAGES,
                **past_pages.PAGES,
                **timeline_pages.PAGES,
                **bot_pages.PAGES,
                **use_pages.PAGES,
                **key_pages.PAGES,
                **size_pages.PAGES,
            }.items()
        ]
        bench = [
            path(f"<int:sheet_id>/{route}", self.admin_site.admin_view(view), name=f"sheet_{name}")
            for name, (route, view) in workbench_pages.PAGES.items()
        ]
        report = path(
            "stale-report/", self.admin_site.admin_view(report_pages.report), name="stale_report"
        )
        found = path("search/", self.admin_site.admin_view(search_pages.search), name="find")
        return [report, found, *pages, *bench, *super().get_urls()]

    @admin.display(description="live")
    def live(self, sheet: Sheet) -> str:
        return str(sheet.state.live_publication or "nothing")

    @admin.display(description="sections", ordering="section_count")
    def sections_in_use(self, sheet: Any) -> str:
        return format_html(
            '<a href="{}?sheet__id__exact={}">{}</a>',
            reverse("admin:factsheets_section_changelist"),
            sheet.pk,
            sheet.section_count,
        )

    @admin.display(description="publishing")
    def publishing(self, sheet: Sheet) -> str:
        return format_html(
            '<a href="{}">workbench</a> · <a href="{}">gate and publishing</a>',
            reverse("admin:sheet_workbench", args=[sheet.pk]),
            reverse("admin:sheet_gate", args=[sheet.pk]),
        )

    @action(  # type: ignore[untyped-decorator]
        description="Workbench", url_path="open-workbench", permissions=["open"]
    )
    def open_workbench(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect("admin:sheet_workbench", _number(object_id))

    @action(  # type: ignore[untyped-decorator]
        description="Gate and publishing", url_path="open-publishing", permissions=["open"]
    )
    def open_publishing(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return publishing_pages.to_gate(_number(object_id))

    @action(  # type: ignore[untyped-decorator]
        description="Sections", url_path="open-sections", permissions=["open"]
    )
    def open_sections(self, request: HttpRequest, object_id: int) -> HttpResponse:
        address = reverse("admin:factsheets_section_changelist")
        return redirect(f"{address}?sheet__id__exact={_number(object_id)}")

    @action(  # type: ignore[untyped-decorator]
        description="What changed", url_path="open-timeline", permissions=["open"]
    )
    def open_timeline(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect("admin:sheet_timeline", _number(object_id))

    @action(  # type: ignore[untyped-decorator]
        description="The text on any day", url_path="open-past", permissions=["open"]
    )
    def open_past(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect("admin:sheet_past", _number(object_id))

    def has_open_permission(self, request: HttpRequest, object_id: int | str | None = None) -> bool:
        sheet = Sheet(pk=_number(object_id or ""))
        return request.user.has_perm("factsheets.view_sheet", sheet)

    @admin.action(description="Archive", permissions=["archive"])
    def archive_selected(self, request: HttpRequest, rows: QuerySet[Sheet]) -> None:
        self._each(request, rows, editing.archive_sheet, "Archived.")

    @admin.action(description="Take out of the archive", permissions=["archive"])
    def unarchive_selected(self, request: HttpRequest, rows: QuerySet[Sheet]) -> None:
        self._each(request, rows, editing.unarchive_sheet, "Taken out of the archive.")

    def has_archive_permission(self, request: HttpRequest) -> bool:
        return access.somewhere(request.user, "factsheets.archive_sheet")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # A new sheet is on nobody's list of sheets yet.
        return request.user.has_perm("factsheets.add_sheet")

    def _each(self, request: HttpRequest, rows: Any, act: Any, reason: str) -> None:
        for sheet in rows:
            access.require(request.user, "factsheets.archive_sheet", sheet)
            try:
                act(sheet, by=person(request), reason=reason, now=timezone.now())
            except Refused as refused:
                messages.error(request, refused.sentence)
            else:
                messages.success(request, f"{sheet.slug}: {reason}")


def _number(object_id: int | str) -> int:
    if not str(object_id).isdecimal():
        raise Http404("No such sheet.")
    return int(object_id)


class GatePolicyForm(TrackedForm):
    """A policy whose warnings are chosen from those there are."""

    blocking_warnings = forms.MultipleChoiceField(
        choices=[(code, code) for code in sorted(gate.WARNINGS)],
        required=False,
        widget=UnfoldAdminSelectMultipleWidget,
        help_text="Warnings that block this sheet.",
    )


@admin.register(GatePolicy)
class GatePolicyAdmin(TrackedAdmin):
    form = GatePolicyForm
    list_display = [
        "sheet",
        "four_eyes",
        "evidence_max_age_days",
        "renew_days_before",
        "blocking_warnings",
    ]
    search_fields = ["sheet__title", "sheet__slug"]
    fields = [
        "sheet",
        "four_eyes",
        "evidence_max_age_days",
        "renew_days_before",
        "blocking_warnings",
        "inline_below_percent",
        "split_from_percent",
        "least_used_percent",
        "readers_differ",
        "why",
    ]
    actions: Any = None

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["sheet"] if obj else []


class CitationInline(TrackedStackedInline):
    model = Citation
    fields = ["source", "locator", "claims", "quote", "role", "required", "position"]
    autocomplete_fields = ["source"]
    verbose_name_plural = "sources of this section"


@admin.register(Citation)
class CitationAdmin(TrackedAdmin):
    """For finding citations, also those taken out of use. New ones are added with their section."""

    list_display = ["source", "section", "locator", "role", "required"]
    list_filter = [
        ("section__sheet", OfSheet),
        "role",
        "required",
        ("removed_at", admin.EmptyFieldListFilter),
    ]
    search_fields = ["source__title", "source__key", "section__heading", "locator", "claims"]
    list_select_related = ["source", "section"]
    fields = [
        "section",
        "source",
        "locator",
        "claims",
        "quote",
        "role",
        "required",
        "position",
        "why",
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Citation | None = None) -> list[str]:
        return ["section", "source"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class SectionList(ChangeList):
    """The page's sections with how each stands with its checks, looked up together."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        sections = list(self.result_list)
        found = standings.of_sections(sections, today=timezone.localdate())
        for section in sections:
            section.standing = found[section.pk]
        self.result_list = sections


@admin.register(Section)
class SectionAdmin(TrackedAdmin):
    list_display = ["heading", "sheet", "position", "included", "sources_cited", "state", "checked"]
    list_filter = [OF_SHEET, "included", ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["heading", "key", "question", "body", "note"]
    list_select_related = ["sheet"]
    ordering = ["sheet__title", "position", "id"]
    fields = [
        "sheet",
        "heading",
        "key",
        "question",
        "body",
        "note",
        "position",
        "included",
        "state_in_words",
        "why",
    ]
    inlines = [CitationInline]
    actions_detail = ["record_check"]

    def get_urls(self) -> list[URLPattern]:
        pages = [
            path(
                "<int:section_id>/check/",
                self.admin_site.admin_view(checking_pages.record),
                name="section_check",
            ),
            path(
                "<int:section_id>/next-due/",
                self.admin_site.admin_view(checking_pages.next_due),
                name="section_next_due",
            ),
        ]
        return [*pages, *super().get_urls()]

    @action(  # type: ignore[untyped-decorator]
        description="Record a check", url_path="record-check", permissions=["record_check"]
    )
    def record_check(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect("admin:section_check", _number(object_id))

    def has_record_check_permission(
        self, request: HttpRequest, object_id: int | str | None = None
    ) -> bool:
        section = Section.objects.filter(pk=_number(object_id or "")).first()
        return section is not None and request.user.has_perm("factsheets.add_check", section)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Section]:
        rows: QuerySet[Section] = super().get_queryset(request)
        return rows.annotate(
            citation_count=Count(
                "citations", distinct=True, filter=Q(citations__removed_at__isnull=True)
            )
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SectionList

    def get_readonly_fields(self, request: HttpRequest, obj: Section | None = None) -> list[str]:
        return ["sheet", "key", "state_in_words"] if obj else ["state_in_words"]

    def get_prepopulated_fields(
        self, request: HttpRequest, obj: Section | None = None
    ) -> dict[str, list[str]]:
        return {} if obj else {"key": ["heading"]}

    def save_model(self, request: HttpRequest, obj: Section, form: Any, change: bool) -> None:
        if not change and not obj.position:
            obj.position = editing.next_position(Section.objects.filter(sheet=obj.sheet))
        super().save_model(request, obj, form, change)

    @admin.display(description="citations", ordering="citation_count")
    def sources_cited(self, section: Any) -> int:
        return int(section.citation_count)

    @admin.display(description="state")
    def state(self, section: Any) -> str:
        return format_html(
            '<span class="m-state m-state-{}" title="{}">{}</span>',
            section.standing.state,
            " ".join(reason.sentence for reason in section.standing.reasons),
            section.standing.state,
        )

    @admin.display(description="checked on", empty_value="never")
    def checked(self, section: Any) -> Any:
        return section.standing.checked_on

    @admin.display(description="state")
    def state_in_words(self, section: Section) -> str:
        if section._state.adding:
            return "not written yet"
        standing = standings.of_section(section, today=timezone.localdate())
        words = [f"{standing.state}.", *(reason.sentence for reason in standing.reasons)]
        if standing.checked_on is not None:
            words.append(f"Last checked {staleness.words(standing.checked_on)}.")
        if standing.due_on is not None:
            words.append(f"Due by {staleness.words(standing.due_on)}.")
        return " ".join(words)


@admin.register(Source)
class SourceAdmin(TrackedAdmin):
    list_display = ["title", "kind", "publisher", "issued", "cited_by_sections"]
    list_filter = [
        "kind",
        ("citations__section__sheet", OfSheet),
        ("removed_at", admin.EmptyFieldListFilter),
    ]
    ordering = ["title", "id"]
    search_fields = ["title", "key", "author", "publisher", "url", "identifier", "note"]
    fields = [
        "title",
        "key",
        "kind",
        "author",
        "publisher",
        "issued",
        "url",
        "identifier",
        "licence",
        "access",
        "note",
        "cited_in",
        "why",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        rows: QuerySet[Source] = super().get_queryset(request)
        return rows.annotate(
            citation_count=Count(
                "citations", distinct=True, filter=Q(citations__removed_at__isnull=True)
            )
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Source | None = None) -> list[str]:
        if obj is not None:
            # What is shown of a source names only sections that the person may see.
            obj.shown_to = request.user  # type: ignore[attr-defined]
        return ["key", "cited_in"] if obj else ["cited_in"]

    @admin.display(description="citations", ordering="citation_count")
    def cited_by_sections(self, source: Any) -> int:
        return int(source.citation_count)

    @admin.display(description="cited in")
    def cited_in(self, source: Any) -> str:
        if source.pk is None:
            return "nowhere yet"
        citations = Citation.objects.present().filter(
            source=source.pk, section__removed_at__isnull=True
        )
        seen = (
            access.visible(source.shown_to, citations)
            .select_related("section__sheet")
            .order_by("section__sheet__title", "section__position", "position", "id")
        )
        links = format_html_join(
            "",
            '<div><a href="{}">{}: {}</a> {}</div>',
            (
                (
                    reverse("admin:factsheets_section_change", args=[c.section_id]),
                    c.section.sheet,
                    c.section,
                    c.locator,
                )
                for c in seen
            ),
        )
        hidden = citations.count() - len(seen)
        if hidden:
            links += format_html("<div>and on sheets that you do not see: {}</div>", hidden)
        return links or "nowhere yet"
