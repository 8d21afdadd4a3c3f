"""Pages that are neither the admin's nor the API's."""

from __future__ import annotations

import math
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from factsheets import health, log_ins
from factsheets import metrics as figures


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 when database, broker, beat and worker are up, else 503 with what is wrong."""
    faults = health.faults(now=timezone.now())
    response = JsonResponse(
        {"status": "failing" if faults else "ok", "faults": faults}, status=503 if faults else 200
    )
    response["Cache-Control"] = "no-store"
    return response


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Figures for Prometheus, for who bears the installation's token; else there is nothing here."""
    if not settings.METRICS_TOKEN:
        raise Http404
    said = request.headers.get("Authorization", "")
    if not constant_time_compare(said, f"Bearer {settings.METRICS_TOKEN}"):
        return HttpResponse(
            "Send the token of METRICS_TOKEN: Authorization: Bearer …\n",
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"},
        )
    return HttpResponse(
        figures.exposition(now=timezone.now()),
        content_type=CONTENT_TYPE_LATEST,
        headers={"Cache-Control": "no-store"},
    )


def locked_out(request: HttpRequest, *_: Any) -> HttpResponse:
    """The answer to a log-in that failed too often."""
    now = timezone.now()
    # The address as it was when the failures were counted.
    address: str | None = getattr(request, "axes_ip_address", None)
    opens_at = log_ins.opens_at(name=request.POST.get("username", ""), address=address, now=now)
    left = max(1, math.ceil((opens_at - now).total_seconds()))
    context = {**admin.site.each_context(request), "minutes": math.ceil(left / 60)}
    response = render(request, "locked_out.html", context, status=429)
    response["Retry-After"] = str(left)
    return response
