"""Pages that are neither the admin's nor the API's."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from factsheets import health


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 when database, broker, beat and worker are up, else 503 with what is wrong."""
    faults = health.faults(now=timezone.now())
    response = JsonResponse(
        {"status": "failing" if faults else "ok", "faults": faults}, status=503 if faults else 200
    )
    response["Cache-Control"] = "no-store"
    return response
