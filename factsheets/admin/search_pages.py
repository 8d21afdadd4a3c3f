"""One search over sections, sources and rules."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from factsheets import access, canonical, searching
from factsheets.admin.pages import page
from factsheets.errors import Refused

#: A longer text is looked for on the page of a sheet's past, claim by claim.
LONGEST = 200


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """What says the words, of all that the person may see."""
    if not access.somewhere(request.user, "factsheets.view_sheet"):
        raise PermissionDenied
    try:
        text = canonical.normalise_line(request.GET.get("q", ""))[:LONGEST]
    except Refused:
        text = ""
    return page(
        request,
        "factsheets/search.html",
        title="Search",
        text=text,
        found=searching.everywhere(text, request.user) if text else (),
        longest=LONGEST,
    )
