"""What our own pages inside the admin share."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from factsheets import access
from factsheets.models import Sheet

#: What the workbench listens for after a save: contents and gate are asked for anew.
CHANGED = "sheet-changed"


def sheet_for(request: HttpRequest, sheet_id: int, permission: str) -> Sheet:
    """The sheet, for who has the permission on it; others are told no."""
    sheet = get_object_or_404(
        Sheet.objects.present().select_related("bot", "state__live_publication"), pk=sheet_id
    )
    access.require(request.user, permission, sheet)
    return sheet


def page(request: HttpRequest, template: str, *, title: str, **context: Any) -> HttpResponse:
    """A page in the admin's frame."""
    return render(
        request, template, {**admin.site.each_context(request), "title": title, **context}
    )


def number(text: str) -> int | None:
    """A number that a form or an address gives, or None."""
    return int(text) if text.isdecimal() and len(text) < 10 else None
