"""The keys of a sheet: who holds one, and the one chance to read a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from factsheets import access, keys
from factsheets.admin.base import person
from factsheets.admin.pages import number, page, sheet_for
from factsheets.models import ApiKey, Sheet


class KeyForm(forms.Form):
    """What a key is for."""

    name = forms.CharField(
        label="Who holds it",
        max_length=keys.LONGEST_NAME,
        help_text="The bot or program, as you will know it again.",
        error_messages={"required": "Name the bot or program that will hold the key."},
    )
    scopes = forms.MultipleChoiceField(
        label="What it opens",
        choices=ApiKey.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose what the key opens."},
    )
    expires_on = forms.DateField(
        label="Last day",
        required=False,
        widget=forms.DateInput(attrs={"type": "date", "class": "m-input"}, format="%Y-%m-%d"),
        help_text="Empty: until it is revoked.",
        error_messages={"invalid": "Choose a day such as 2027-06-01."},
    )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("issued")
def key_list(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The keys of a sheet; posted, a new one is made and shown this once."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_apikey")
    form = KeyForm(request.POST if request.method == "POST" else None)
    issued = None
    if request.method == "POST":
        access.require(request.user, "factsheets.add_apikey", sheet)
        if form.is_valid():
            try:
                issued = keys.issue(
                    sheet=sheet,
                    **form.cleaned_data,
                    by=person(request),
                    now=timezone.now(),
                    today=timezone.localdate(),
                )
                form = KeyForm()
            except keys.KeyNotMade as refused:
                form.add_error(None, refused.sentence)
    response = page(
        request,
        "factsheets/keys.html",
        title=f"Keys: {sheet.title}",
        sheet=sheet,
        issued=issued,
        form=form,
        keys=_rows(sheet),
        is_public=sheet.visibility == Sheet.Visibility.PUBLIC,
    )
    response["Cache-Control"] = "no-store"
    return response


@require_POST
def revoke(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Have a key open nothing any more."""
    sheet = sheet_for(request, sheet_id, "factsheets.change_apikey")
    wanted = number(request.POST.get("key", "")) or 0
    key = sheet.api_keys.filter(pk=wanted).first()
    if key is None:
        messages.error(request, "There is no such key; choose one from the list.")
    else:
        keys.revoke(key, by=person(request), now=timezone.now())
        messages.success(request, f"Revoked: {key} opens nothing any more.")
    return redirect("admin:sheet_keys", sheet.pk)


PAGES: Mapping[str, Callable[..., HttpResponse]] = {"keys": key_list, "revoke_key": revoke}


def _rows(sheet: Sheet) -> list[tuple[ApiKey, str]]:
    """Each key, and how it stands."""
    today = timezone.localdate()
    return [
        (key, "revoked" if key.revoked_at else "open" if key.is_open_on(today) else "expired")
        for key in sheet.api_keys.select_related("created_by", "revoked_by").order_by("-id")
    ]
