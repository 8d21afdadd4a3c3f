"""The delivery routes: each finds stored bytes and hands them over."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from factsheets import canonical, delivery, keys, moments
from factsheets.api import serializers
from factsheets.api.errors import MEDIA_TYPE, UnknownParameter
from factsheets.api.keyed import token_of
from factsheets.api.responses import CURRENT, JSON, NUMBERED, TEXT, Stored, respond
from factsheets.models import ApiKey, Sheet

_PROBLEMS = {
    (status, MEDIA_TYPE): OpenApiResponse(serializers.Problem, description)
    for status, description in (
        (400, "A query parameter that the route does not take, or a moment that is none."),
        (404, "No such sheet, or nothing published yet."),
        (410, "Withdrawn: drop every copy."),
    )
}


class DeliveryView(APIView):
    """Read-only, without cookies; no query parameter is known.

    A key is looked at for a sheet that asks for one, and for no other.
    """

    http_method_names = ["get", "head", "options"]

    #: Whether the answer is for the holder of a key alone.
    was_admitted = False

    def admits(self, sheet: Sheet) -> bool:
        """Whether the key that was sent reads this sheet."""
        self.was_admitted = keys.opens(
            token_of(self.request._request),
            scope=ApiKey.Scope.READ,
            sheet=sheet,
            today=timezone.localdate(),
        )
        return self.was_admitted

    @property
    def default_response_headers(self) -> dict[str, str]:
        """None: headers stand with the stored bytes, alike from a copy and from the database."""
        return {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.query_params:
            names = ", ".join(sorted(request.query_params))
            raise UnknownParameter(f"This address takes no parameter {names}; leave it out.")

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """What a browser asks before it sends a validator from a page of another origin."""
        return HttpResponse(
            status=HTTPStatus.NO_CONTENT,
            headers={
                "Allow": ", ".join(self.allowed_methods),
                "Access-Control-Allow-Origin": "*",
                "Access-Control-Allow-Methods": "GET, HEAD",
                "Access-Control-Allow-Headers": "Accept, If-None-Match, If-Modified-Since",
                "Access-Control-Max-Age": "86400",
            },
        )

    def serve(self, request: Request, stored: Stored) -> HttpResponseBase:
        if self.was_admitted:
            stored = stored.for_one_alone()
        return respond(request._request, stored, stored.headers())


class IndexView(DeliveryView):
    @extend_schema(operation_id="listSheets", responses={200: serializers.Index})
    def get(self, request: Request) -> HttpResponseBase:
        """All live public sheets."""
        return self.serve(request, _listed({"sheets": _plain(delivery.index())}))


#: Seconds for which a process may answer from its own copy of a live sheet.
COPY_SECONDS = 1.0

_copies: dict[str, tuple[float, Stored, dict[str, str]]] = {}


def forget_copies() -> None:
    """Answer from the database again at once. For tests; elsewhere copies end by themselves."""
    _copies.clear()


class CurrentView(DeliveryView):
    """The address that every bot polls. `current` below answers for it while it has a copy."""

    @extend_schema(operation_id="getSheet", responses={200: serializers.Body, **_PROBLEMS})
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """What bots get of a sheet now."""
        until = time.monotonic() + COPY_SECONDS
        stored = _body(delivery.live(slug, self.admits), CURRENT)
        if self.was_admitted:
            # Never kept: the copy is handed out without a look at who asks.
            return self.serve(request, stored)
        headers = stored.headers()
        # Only live sheets are kept, so strangers cannot fill the memory with names.
        _copies[slug] = (until, stored, headers)
        return respond(request._request, stored, headers)


_current = CurrentView.as_view()


@wraps(_current)
def current(request: HttpRequest, slug: str) -> HttpResponseBase:
    """What bots get of a sheet now, from a copy at most a second old where there is one."""
    copy = _copies.get(slug)
    meta = request.META
    if (
        copy is not None
        and time.monotonic() < copy[0]
        and request.method in {"GET", "HEAD"}
        and not meta.get("QUERY_STRING")
        and meta.get("HTTP_ACCEPT", "*/*") in {"*/*", JSON}
    ):
        return respond(request, copy[1], copy[2])
    return _current(request, slug=slug)


class PlainTextRenderer(BaseRenderer):
    """Names the form; the bytes are ready when it would be asked."""

    media_type = "text/plain"
    format = "txt"

    def render(self, data: Any, *_: object, **__: object) -> bytes:
        return bytes(data)


class PromptView(DeliveryView):
    renderer_classes = [PlainTextRenderer, JSONRenderer]

    @extend_schema(
        operation_id="getPrompt",
        responses={
            (200, "text/plain"): str,
            (200, "application/json"): serializers.Prompt,
            **_PROBLEMS,
        },
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """The live prompt: as text, or as system blocks for the model API (`Accept`)."""
        live = delivery.live(slug, self.admits)
        if request.accepted_renderer.media_type == JSON:
            body, body_hash, content_type = live.prompt, live.prompt_hash, JSON
        else:
            body = delivery.prompt_text(live)
            body_hash, content_type = canonical.sha256(body), TEXT
        return self.serve(
            request,
            Stored(
                body=body,
                body_hash=body_hash,
                content_type=content_type,
                cache_control=CURRENT,
                last_modified=live.published_at,
                publication=live.number,
                permalink=_permalink(live),
                vary="Accept",
            ),
        )


class PublicationsView(DeliveryView):
    @extend_schema(
        operation_id="listPublications", responses={200: serializers.Publications, **_PROBLEMS}
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """A sheet's publications, newest first. Withdrawn ones are not listed."""
        rows = _plain(delivery.publications(slug, self.admits))
        return self.serve(request, _listed({"slug": slug, "publications": rows}))


class PublicationView(DeliveryView):
    @extend_schema(operation_id="getPublication", responses={200: serializers.Body, **_PROBLEMS})
    def get(self, request: Request, slug: str, number: int) -> HttpResponseBase:
        """One publication, byte for byte as it was served."""
        return self.serve(request, _body(delivery.numbered(slug, number, self.admits), NUMBERED))


#: What is older has settled: a publication bears the moment at which it was asked for, and can
#: be seen a little later.
SETTLED = timedelta(minutes=1)


class AsOfView(DeliveryView):
    @extend_schema(
        operation_id="getSheetAsOf",
        parameters=[
            OpenApiParameter(
                "moment",
                str,
                OpenApiParameter.PATH,
                description="A day, which means up to its end in the organisation's time zone, or "
                "an instant with its offset. Neither may be still to come.",
            )
        ],
        responses={200: serializers.Body, **_PROBLEMS},
    )
    def get(self, request: Request, slug: str, moment: str) -> HttpResponseBase:
        """What bots got at a moment; `X-As-Of` says which instant that is."""
        now = timezone.now()
        instant = moments.read(moment, zone=timezone.get_default_timezone(), now=now)
        delivered = delivery.as_of(slug, instant, self.admits)
        # What has settled stays; what was asked up to now may be another in a moment.
        cache_control = NUMBERED if instant < now - SETTLED else CURRENT
        stored = replace(_body(delivered, cache_control), as_of=canonical.instant(instant))
        return self.serve(request, stored)


class EvidenceView(DeliveryView):
    @extend_schema(operation_id="getEvidence", responses={200: serializers.Evidence, **_PROBLEMS})
    def get(self, request: Request, slug: str, number: int) -> HttpResponseBase:
        """The summary of the run that opened a publication's gate."""
        data = delivery.evidence(slug, number, self.admits)
        return self.serve(
            request,
            Stored(
                body=data,
                body_hash=canonical.sha256(data),
                content_type=JSON,
                cache_control=NUMBERED,
                publication=number,
            ),
        )


def _body(delivered: delivery.Delivered, cache_control: str) -> Stored:
    return Stored(
        body=delivered.body,
        body_hash=delivered.body_hash,
        content_type=JSON,
        cache_control=cache_control,
        last_modified=delivered.published_at,
        publication=delivered.number,
        permalink=_permalink(delivered),
    )


def _permalink(delivered: delivery.Delivered) -> str:
    return reverse("api:publication", args=[delivered.slug, delivered.number])


def _listed(value: dict[str, object]) -> Stored:
    data = canonical.canonical_json(value)
    return Stored(
        body=data,
        body_hash=canonical.sha256(data),
        content_type=JSON,
        cache_control=CURRENT,
    )


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "published_at": canonical.instant(row["published_at"])} for row in rows]
