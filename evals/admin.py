"""Suites, probes and question sets to edit; runs to read."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from unfold.widgets import UnfoldAdminTextareaWidget

from evals import graders
from evals.models import (
    Attempt,
    Probe,
    Question,
    QuestionSet,
    Run,
    Suite,
    SuiteRequirement,
)
from factsheets import editing
from factsheets.admin.base import (
    OF_SHEET,
    AppendOnlyAdmin,
    OfSheet,
    TrackedAdmin,
    TrackedForm,
    TrackedTabularInline,
    linked_count,
)

OF_SUITE = ("suite", admin.RelatedOnlyFieldListFilter)


class Lines(forms.CharField):
    """A list of texts, one a line."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return _lines(super().to_python(value) or "")

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(_lines("\n".join(initial or [])) != self.to_python(data))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def _as_stored(lines: list[str], stored: list[str]) -> list[str]:
    """What was stored, where the form shows no difference: blanks at the ends of a value and
    line ends within a turn mean something, and a field of lines cannot show them."""
    if lines == _lines("\n".join(stored)):
        return stored
    exact = {value.strip(): value for value in stored}
    return [exact.get(line, line) for line in lines]


#: Form fields that stand for checks without values.
_TICKED = {"refuses": "refuses", "answers": "answers", "no-leak": "no_leak"}


_INSIDE = "Match these inside words too"
_WHOLE = "Without the tick they are matched as whole words."


#: What a form shows in place of the stored checks; a reader sees those as they are.
_CHECK_FIELDS = [
    "contains_any",
    "contains_any_anywhere",
    "not_contains",
    "not_contains_anywhere",
    "refuses",
    "answers",
    "no_leak",
]


class ProbeForm(TrackedForm):
    """A probe with its checks as fields and not as JSON."""

    turns = Lines(help_text="What the visitor says, one turn a line, in order.")
    contains_any = Lines(
        label="Last reply must contain one of",
        required=False,
        help_text="One a line. A line that begins with re: is a regular expression.",
    )
    contains_any_anywhere = forms.BooleanField(label=_INSIDE, required=False, help_text=_WHOLE)
    not_contains = Lines(
        label="No reply may contain", required=False, help_text="One a line, likewise."
    )
    not_contains_anywhere = forms.BooleanField(label=_INSIDE, required=False, help_text=_WHOLE)
    refuses = forms.BooleanField(label="Must turn the question away", required=False)
    answers = forms.BooleanField(label="Must answer", required=False)
    no_leak = forms.BooleanField(label="Must not repeat the rules", required=False)

    class Meta:
        model = Probe
        fields = [
            "suite",
            "key",
            "category",
            "turns",
            "must",
            "severity",
            "needs",
            "active",
            "note",
            "position",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored: dict[str, list[str]] = {"turns": list(self.instance.turns or [])}
        #: Further checks of a kind that has its fields filled already: kept as they are.
        self.others: list[dict[str, Any]] = []
        seen: set[str] = set()
        for check in self.instance.checks or []:
            kind = check["type"]
            if kind in seen:
                self.others.append(check)
                continue
            seen.add(kind)
            if kind in _TICKED:
                self.initial[_TICKED[kind]] = True
            else:
                field = kind.replace("-", "_")
                self.initial[field] = self.stored[field] = check["values"]
                self.initial[f"{field}_anywhere"] = check["match"] == "anywhere"

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        for field, stored in self.stored.items():
            data[field] = _as_stored(data[field], stored)
        checks = self._checks(data)
        try:
            graders.parse(checks)
        except graders.CheckRefused as refused:
            raise forms.ValidationError(refused.sentence) from refused
        if data.get("active") and not checks:
            raise forms.ValidationError(
                "A probe without a check would always pass; add one or switch it off."
            )
        before = self.instance.checks or []
        if sorted(map(repr, checks)) != sorted(map(repr, before)):
            # Only then: an order of one's own enters the suite's hash.
            self.instance.checks = checks
        return data

    def add_error(self, field: str | None, error: Any) -> None:
        """What the row says of its checks is said of the form, which has other fields for them."""
        found = getattr(error, "error_dict", {})
        if "checks" in found:
            said = found.pop("checks")
            if not self.non_field_errors():
                super().add_error(None, said)
            if not found:
                return
        super().add_error(field, error)

    def _checks(self, data: dict[str, Any]) -> list[dict[str, object]]:
        lists: list[dict[str, object]] = [
            {
                "type": kind,
                "values": data[field],
                "match": "anywhere" if data.get(f"{field}_anywhere") else "word",
            }
            for kind, field in (("contains-any", "contains_any"), ("not-contains", "not_contains"))
            if data.get(field)
        ]
        ticked: list[dict[str, object]] = [
            {"type": kind} for kind, field in _TICKED.items() if data.get(field)
        ]
        return [*lists, *ticked, *self.others]


class SuiteRequirementInline(TrackedTabularInline):
    model = SuiteRequirement
    fields = ["sheet"]
    verbose_name_plural = "required by sheets"


@admin.register(Suite)
class SuiteAdmin(TrackedAdmin):
    in_common = ("suite", "pk")
    list_display = [
        "title",
        "slug",
        "sheet",
        "repeats",
        "pass_bar",
        "probes_in_use",
        "required_by",
    ]
    list_filter = [OF_SHEET, ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["title", "slug", "probes__key", "probes__turns"]
    list_select_related = ["sheet"]
    fields = ["title", "slug", "sheet", "repeats", "pass_bar", "why"]
    inlines = [SuiteRequirementInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Suite]:
        rows: QuerySet[Suite] = super().get_queryset(request)
        return rows.annotate(
            probe_count=Count(
                "probes",
                distinct=True,
                filter=Q(probes__removed_at__isnull=True, probes__active=True),
            ),
            sheet_count=Count(
                "requirements", distinct=True, filter=Q(requirements__removed_at__isnull=True)
            ),
        )

    @admin.display(description="active probes", ordering="probe_count")
    def probes_in_use(self, suite: Any) -> str:
        return format_html(
            '<a href="{}?suite__id__exact={}">{}</a>',
            reverse("admin:evals_probe_changelist"),
            suite.pk,
            suite.probe_count,
        )

    @admin.display(description="required by sheets", ordering="sheet_count")
    def required_by(self, suite: Any) -> str:
        return linked_count("suite", suite.pk, suite.sheet_count)


@admin.register(Probe)
class ProbeAdmin(TrackedAdmin):
    in_common = ("suite", "suite_id")
    form = ProbeForm
    list_display = ["key", "suite", "category", "must", "severity", "needs", "active", "first_turn"]
    list_filter = [
        OF_SUITE,
        ("suite__requirements__sheet", OfSheet),
        "category",
        "must",
        "severity",
        "needs",
        "active",
        ("removed_at", admin.EmptyFieldListFilter),
    ]
    search_fields = ["key", "category", "turns", "note"]
    list_select_related = ["suite"]
    ordering = ["suite__title", "position", "id"]
    fieldsets = [
        (None, {"fields": ["suite", "key", "category", "turns", "must", "note"]}),
        ("Checks", {"fields": _CHECK_FIELDS}),
        (None, {"fields": ["severity", "needs", "active", "position", "why"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (
                name,
                {
                    **options,
                    "fields": ["checks"]
                    if name == "Checks"
                    else [f for f in options["fields"] if f not in _CHECK_FIELDS],
                },
            )
            for name, options in fieldsets
        ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Probe], search_term: str
    ) -> tuple[QuerySet[Probe], bool]:
        """SQLite keeps JSON with escapes, so a word beyond ASCII is looked for in that form too."""
        found, duplicates = super().get_search_results(request, queryset, search_term)
        escaped = json.dumps(search_term)[1:-1]
        if escaped != search_term:
            more, again = super().get_search_results(request, queryset, escaped)
            found, duplicates = found | more, duplicates or again
        return found, duplicates

    def save_model(self, request: HttpRequest, obj: Probe, form: Any, change: bool) -> None:
        if not change and not obj.position:
            obj.position = editing.next_position(Probe.objects.filter(suite=obj.suite))
        super().save_model(request, obj, form, change)

    @admin.display(description="first turn")
    def first_turn(self, probe: Probe) -> str:
        return str(probe.turns[0]) if probe.turns else ""


@admin.register(SuiteRequirement)
class SuiteRequirementAdmin(TrackedAdmin):
    list_display = ["sheet", "suite"]
    list_filter = [OF_SHEET, OF_SUITE, ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["sheet__title", "suite__title"]
    list_select_related = ["sheet", "suite"]
    fields = ["sheet", "suite", "why"]


@admin.register(QuestionSet)
class QuestionSetAdmin(TrackedAdmin):
    list_display = ["title", "slug", "sheet", "frozen_at", "reports"]
    list_filter = [OF_SHEET, ("removed_at", admin.EmptyFieldListFilter)]
    search_fields = ["title", "slug", "questions__question"]
    list_select_related = ["sheet"]
    fields = ["title", "slug", "sheet", "frozen_at", "reports", "why"]
    readonly_fields = ["frozen_at", "reports"]

    @admin.display(description="reports")
    def reports(self, question_set: QuestionSet) -> str:
        if question_set._state.adding:
            return ""
        return format_html(
            '<a href="{}">measure, and read what was</a>',
            reverse("runs:question_set", args=[question_set.pk]),
        )


@admin.register(Question)
class QuestionAdmin(TrackedAdmin):
    list_display = ["key", "question_set", "question", "scope", "part"]
    list_filter = [
        ("question_set", admin.RelatedOnlyFieldListFilter),
        "scope",
        "part",
        ("removed_at", admin.EmptyFieldListFilter),
    ]
    search_fields = ["key", "question", "expected"]
    list_select_related = ["question_set"]
    fields = [
        "question_set",
        "key",
        "question",
        "scope",
        "sections",
        "expected",
        "facts",
        "trap",
        "part",
        "note",
        "position",
        "why",
    ]


@admin.register(Run)
class RunAdmin(AppendOnlyAdmin):
    list_display = [
        "started_at",
        "sheet",
        "state",
        "outcome",
        "planned",
        "started_by_name",
        "replies",
    ]
    list_filter = [OF_SHEET, "outcome", "state", "is_partial", "started_at"]
    search_fields = ["sheet__title", "rules_hash", "content_hash", "started_by_name"]
    list_select_related = ["sheet"]
    fields = [
        "sheet",
        "publication_number",
        "state",
        "outcome",
        "planned",
        "counts",
        "is_partial",
        "started_at",
        "finished_at",
        "started_by_name",
        "stop_reason",
        "content_hash",
        "rules_hash",
        "bot_hash",
        "replies",
    ]
    readonly_fields = ["replies"]

    @admin.display(description="replies")
    def replies(self, run: Run) -> str:
        return format_html(
            '<a href="{}">see every reply</a>', reverse("runs:detail", args=[run.pk])
        )


@admin.register(Attempt)
class AttemptAdmin(AppendOnlyAdmin):
    list_display = ["probe", "repeat", "run", "category", "state", "outcome", "tries", "error_type"]
    list_filter = [
        ("run__sheet", OfSheet),
        "outcome",
        "state",
        "category",
        "suite",
    ]
    search_fields = ["probe", "error", "turns__sent", "turns__received"]
    list_select_related = ["run"]
