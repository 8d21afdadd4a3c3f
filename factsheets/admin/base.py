"""What all our admin pages share: one change set a save, read-only history, nothing deleted."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Max, Model, QuerySet, UniqueConstraint
from django.forms.models import BaseInlineFormSet, _get_foreign_key
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import format_html
from simple_history.admin import SimpleHistoryAdmin
from unfold.admin import ModelAdmin, StackedInline, TabularInline
from unfold.widgets import UnfoldAdminTextInputWidget

from factsheets import access, canonical, editing
from factsheets.admin.conflicts import Conflict, settle
from factsheets.errors import Refused
from factsheets.models import Sheet, TrackedModel
from factsheets.models.tracking import change_set


def person(request: HttpRequest) -> User:
    """Who is asking. The admin lets nobody in who has not logged in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


class OfSheet(admin.RelatedFieldListFilter):
    """A list filter by sheet that names only those which the person may see."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        seen = access.sheets(request.user, "factsheets.view_sheet").order_by("title", "id")
        return [(sheet.pk, str(sheet)) for sheet in seen]


OF_SHEET = ("sheet", OfSheet)

WHY_MISSING = "Say in a few words why you change this."


class ComparedForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form to which a text is the same when it would be stored the same."""

    @cached_property
    def changed_data(self) -> list[str]:
        # Browsers send line ends of their own.
        return [name for name in super().changed_data if not self._is_same_text(name)]

    def _is_same_text(self, name: str) -> bool:
        bound = self[name]
        before, now = bound.initial, bound.data
        return (
            isinstance(before, str)
            and isinstance(now, str)
            and canonical.normalise(before) == canonical.normalise(now)
        )


class TrackedForm(ComparedForm):
    """A form that asks why."""

    why = forms.CharField(
        label="Why",
        max_length=500,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="A few words for the history: what this change is for.",
    )

    #: What the form was made from; not shown.
    version = forms.CharField(required=False, widget=forms.HiddenInput)

    #: The version that stands there now. The page sets it for a row that exists.
    present_version: str = ""

    #: Somebody else saved meanwhile.
    conflict: Conflict | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["version"] = self.present_version

    @cached_property
    def changed_data(self) -> list[str]:
        return [name for name in super().changed_data if name != "version"]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        seen = data.get("version", "")
        if self.instance.pk and self.present_version not in ("", seen):
            self._meet(seen)
            raise forms.ValidationError(
                "Somebody else saved this while you wrote, so nothing was saved yet; "
                "look at what each of you changed, and save again."
            )
        return data

    def _meet(self, seen: str) -> None:
        """Show both, and let the next save be one over what stands there now."""
        own, _, rows = seen.partition(",")
        _, _, present_rows = self.present_version.partition(",")
        history = type(self.instance).history.filter(id=self.instance.pk)
        entries = history.select_related("change_set").order_by("history_id")
        newest = entries.last()
        began = entries.filter(history_id=own).first() if own.isdecimal() else None
        base = type(self)(instance=(began or newest).instance)
        self.conflict = settle(self, base, newest, of_rows=rows != present_rows)

    def clean_why(self) -> str:
        why: str = self.cleaned_data["why"]
        if self.instance.pk and self.has_changed() and not why.strip():
            raise forms.ValidationError(WHY_MISSING)
        return why


class KeepsRows(BaseInlineFormSet):  # type: ignore[type-arg]
    """Rows ticked for deletion are removed, never deleted; adding one again restores it."""

    def clean(self) -> None:
        super().clean()
        is_new = self.instance.pk is None or self.instance._state.adding
        if not is_new and self.has_changed() and not self.data.get("why", "").strip():
            raise forms.ValidationError(WHY_MISSING)

    def delete_existing(self, obj: TrackedModel, commit: bool = True) -> None:
        obj.removed_at = timezone.now()
        if commit:
            obj.save()

    def save_new(self, form: Any, commit: bool = True) -> TrackedModel:
        row: TrackedModel = super().save_new(form, commit=False)
        twin = self._removed_twin(row)
        if twin is not None:
            for name in form._meta.fields:
                setattr(twin, name, getattr(row, name))
            twin.removed_at = None
            row = twin
        if commit:
            row.save()
        return row

    def _removed_twin(self, row: TrackedModel) -> TrackedModel | None:
        """The row that was removed and has the key which this one asks for."""
        for constraint in row._meta.constraints:
            if isinstance(constraint, UniqueConstraint) and constraint.fields:
                same = {name: getattr(row, name) for name in constraint.fields}
                twin = type(row).objects.filter(**same, removed_at__isnull=False).first()
                if twin is not None:
                    return twin
        return None


class AsksEachSheet:
    """Permissions hold on the sheets that use a row. Asked without a row: on any sheet at all.

    What a page adds or changes is asked about once more as it was saved.
    """

    opts: Any
    model: type[Model]

    def may(self, request: HttpRequest, verb: str, row: Model | None = None) -> bool:
        """Whether who asks may do that to a row (of an inline: to rows of that parent)."""
        permission = self.permission(verb)
        if row is None or row.pk is None:
            return access.somewhere(request.user, permission)
        return bool(request.user.has_perm(permission, row))

    def permission(self, verb: str) -> str:
        return f"{self.opts.app_label}.{verb}_{self.opts.model_name}"

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may(request, "view", obj) or self.may(request, "change", obj)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may(request, "change", obj)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may(request, "add", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]
        return access.visible(request.user, rows)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        """A row of other sheets is not there for the person; who may see no row at all is told so."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        answer: HttpResponse = super()._get_obj_does_not_exist_redirect(  # type: ignore[misc]
            request, opts, object_id
        )
        return answer

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer what the person may choose, and nothing of other sheets."""
        related = db_field.remote_field.model
        if issubclass(related, Sheet):
            kwargs.setdefault("queryset", access.sheets(request.user, self.permission("add")))
        elif issubclass(related, TrackedModel):
            kwargs.setdefault("queryset", access.visible(request.user, related.objects.present()))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]


class PresentRows(AsksEachSheet):
    """Inlines show what is in use."""

    form = ComparedForm
    formset = KeepsRows
    extra = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(removed_at__isnull=True)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)  # type: ignore[misc]
        # The admin's look for rows that a deletion would take along: here nothing is deleted.
        formset.form.hand_clean_DELETE = lambda form: None
        return formset

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Taking a row out of use is a change of it, and asks for that permission.
        return self.has_change_permission(request, obj)


class TrackedStackedInline(PresentRows, StackedInline):  # type: ignore[misc]
    """Tall rows beside their parent."""


class TrackedTabularInline(PresentRows, TabularInline):  # type: ignore[misc]
    """Flat rows beside their parent."""


class ReadOnlyHistory(SimpleHistoryAdmin):  # type: ignore[misc]
    """History is for reading. Restoring has its own door."""

    history_list_per_page = 20

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        try:
            # Without an address for users: few may open their pages.
            response: HttpResponse = super().history_view(
                request, object_id, {**(extra_context or {}), "admin_user_view": ""}
            )
        except (ValueError, ValidationError) as error:
            raise Http404("No such row.") from error
        return response

    def history_form_view(
        self, request: HttpRequest, object_id: str, version_id: str, extra_context: Any = None
    ) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            raise PermissionDenied("History pages are read-only.")
        try:
            # The row's own, from which the theme makes links: a history entry has no pages.
            response: HttpResponse = super().history_form_view(
                request, object_id, version_id, {**(extra_context or {}), "opts": self.opts}
            )
        except (ValueError, ValidationError) as error:
            raise Http404("No such moment.") from error
        return response

    def revert_disabled(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


class TrackedAdmin(AsksEachSheet, ReadOnlyHistory, ModelAdmin):  # type: ignore[misc]
    """A page that edits tracked rows: every save is one change set with who and why."""

    form = TrackedForm
    warn_unsaved_form = True
    list_per_page = 50
    actions = ["remove_selected", "restore_selected"]

    #: What sheets may have in common with such a row: a parameter of the page of gates, and the
    #: attribute that holds its key. A save that reaches several sheets says so.
    in_common: ClassVar[tuple[str, str] | None] = None

    change_form_before_template = "factsheets/conflict.html"

    def get_list_display(self, request: HttpRequest) -> list[str]:
        return [*super().get_list_display(request), "in_use"]

    @admin.display(description="in use", boolean=True, ordering="removed_at")
    def in_use(self, row: TrackedModel) -> bool:
        return row.removed_at is None

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Whoever may only look is not asked why."""
        fieldsets = super().get_fieldsets(request, obj)
        may_save = self.has_change_permission(request, obj) if obj else True
        if may_save and obj:
            return [*fieldsets, (None, {"fields": ["version"], "classes": ["m-hidden"]})]
        if may_save:
            return fieldsets
        return [
            (name, {**options, "fields": [f for f in options["fields"] if f != "why"]})
            for name, options in fieldsets
        ]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """For a row that exists the form carries the version of what it was made from."""
        form = super().get_form(request, obj, change, **kwargs)
        if obj is None or not issubclass(form, TrackedForm):
            return form
        form.present_version = self._version(request, obj)  # Made for this request alone.
        return form

    def _version(self, request: HttpRequest, row: TrackedModel) -> str:
        """Of the row itself and, after commas, of the rows below it on its page."""
        below = []
        for inline in self.get_inline_instances(request, row):
            key = _get_foreign_key(self.model, inline.model, fk_name=inline.fk_name).attname
            entries = inline.model.history.filter(**{key: row.pk})
            below.append(entries.aggregate(newest=Max("history_id"))["newest"] or 0)
        return ",".join(map(str, [editing.version(row), *below]))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method != "POST":
            response: HttpResponse = super().changeform_view(
                request, object_id, form_url, extra_context
            )
            return response
        try:
            with change_set(
                by=person(request), reason=request.POST.get("why", ""), now=timezone.now()
            ):
                self._wait_for_others(object_id)
                response = super().changeform_view(request, object_id, form_url, extra_context)
        except Refused as refused:
            messages.error(request, refused.sentence)
            return HttpResponseRedirect(request.get_full_path())
        return response

    def _wait_for_others(self, object_id: str | None) -> None:
        """Two saves of one row come one after the other, so that the second sees the first."""
        if object_id is not None and unquote(object_id).isdecimal():
            editing.hold(self.model, int(unquote(object_id)))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """The last look, in the transaction of the save: is it still on the person's own sheets?"""
        super().save_related(request, form, formsets, change)
        if form.has_changed():
            access.require(
                request.user, self.permission("change" if change else "add"), form.instance
            )
        for formset in formsets:
            model = formset.model._meta
            for inline in formset.forms:
                if inline.has_changed() and inline.instance.pk:
                    access.require(
                        request.user,
                        f"{model.app_label}.change_{model.model_name}",
                        inline.instance,
                    )
        if form.has_changed() or any(formset.has_changed() for formset in formsets):
            self._tell_of_other_sheets(request, form.instance)

    def _tell_of_other_sheets(self, request: HttpRequest, row: TrackedModel) -> None:
        used_by = len(access.sheets_using(row))
        if self.in_common is not None and used_by > 1:
            parameter, key = self.in_common
            messages.warning(
                request,
                format_html(
                    '{} sheets use this: <a href="{}">see what the change does to their gates and '
                    "run their probes</a>.",
                    used_by,
                    gates_address(parameter, getattr(row, key)),
                ),
            )

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """What rows refuse is told, and nothing of the action is done."""
        try:
            return super().response_action(request, queryset)
        except Refused as refused:
            messages.error(request, refused.sentence)
            return HttpResponseRedirect(request.get_full_path())

    @admin.action(description="Take out of use", permissions=["change"])
    def remove_selected(self, request: HttpRequest, rows: QuerySet[TrackedModel]) -> None:
        with change_set(by=person(request), reason="Taken out of use.", now=timezone.now()) as now:
            for row in rows:
                access.require(request.user, self.permission("change"), row)
                editing.remove(row, by=now.by, reason=now.reason, now=now.at)
        messages.success(request, "Taken out of use; restore them here if you need them again.")

    @admin.action(description="Take into use again", permissions=["change"])
    def restore_selected(self, request: HttpRequest, rows: QuerySet[TrackedModel]) -> None:
        with change_set(
            by=person(request), reason="Taken into use again.", now=timezone.now()
        ) as now:
            for row in rows:
                access.require(request.user, self.permission("change"), row)
                editing.restore(row, by=now.by, reason=now.reason, now=now.at)
        messages.success(request, "Taken into use again.")


def gates_address(parameter: str, key: int) -> str:
    """The page with the gates of all sheets that have a row in common."""
    return f"{reverse('runs:gates')}?{parameter}={key}"


def linked_count(parameter: str, key: int, count: int) -> str:
    """How many sheets use a row, as a link to their gates."""
    return format_html('<a href="{}">{}</a>', gates_address(parameter, key), count)


class AppendOnlyAdmin(AsksEachSheet, ModelAdmin):  # type: ignore[misc]
    """Rows that are written once: everyone may look at most."""

    actions: ClassVar[Any] = None

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
