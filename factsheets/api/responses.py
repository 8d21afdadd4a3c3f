"""Stored bytes as HTTP: validators, caching and digests, alike for 200 and 304."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import cast

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotModified
from django.utils.cache import get_conditional_response
from django.utils.http import http_date

from factsheets.api.errors import document

#: Shared caches may lag by the first figure, and serve old copies while they
#: ask again (second) or while the server is down (third). Seconds.
CURRENT = "public, max-age=30, stale-while-revalidate=300, stale-if-error=36000"
NUMBERED = "public, max-age=86400"
#: For the holder of a key: no shared cache keeps it, and their own asks each time.
FOR_ONE = "private, no-cache"

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


_CONDITIONS = frozenset(
    {
        "HTTP_IF_NONE_MATCH",
        "HTTP_IF_MATCH",
        "HTTP_IF_MODIFIED_SINCE",
        "HTTP_IF_UNMODIFIED_SINCE",
    }
)


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes with everything that their headers say."""

    body: bytes
    body_hash: str
    content_type: str
    cache_control: str
    last_modified: datetime | None = None
    publication: int | None = None
    permalink: str = ""
    vary: str = ""
    as_of: str = ""

    @property
    def etag(self) -> str:
        return f'"sha256-{self.body_hash}"'

    def for_one_alone(self) -> Stored:
        """The same bytes for the holder of a key."""
        vary = ", ".join(name for name in (self.vary, "Authorization") if name)
        return replace(self, cache_control=FOR_ONE, vary=vary)

    def headers(self) -> dict[str, str]:
        """Sent with 200 and 304 alike."""
        headers = {
            "ETag": self.etag,
            "Cache-Control": self.cache_control,
            "Repr-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(self.body_hash)).decode()}:",
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Expose-Headers": "ETag, X-Publication, X-As-Of, Repr-Digest, Link",
        }
        if self.last_modified is not None:
            headers["Last-Modified"] = http_date(self.last_modified.timestamp())
        if self.publication is not None:
            headers["X-Publication"] = str(self.publication)
        if self.as_of:
            headers["X-As-Of"] = self.as_of
        if self.permalink:
            headers["Link"] = f'<{self.permalink}>; rel="permalink"'
        if self.vary:
            headers["Vary"] = self.vary
        return headers


def respond(request: HttpRequest, stored: Stored, headers: dict[str, str]) -> HttpResponseBase:
    """200 with the bytes, or 304 where the client has them. `headers`: what `headers()` made."""
    if (
        request.META.get("HTTP_IF_NONE_MATCH") == stored.etag
        and "HTTP_IF_MATCH" not in request.META
    ):
        # What nearly every poll asks, answered without reading it any closer.
        return HttpResponseNotModified(headers=headers)
    response = HttpResponse(stored.body, content_type=stored.content_type, headers=headers)
    if _CONDITIONS.isdisjoint(request.META):
        return response
    answer = cast(
        HttpResponseBase,
        get_conditional_response(
            request,
            etag=stored.etag,
            last_modified=int(stored.last_modified.timestamp()) if stored.last_modified else None,
            response=response,
        ),
    )
    if answer.status_code == HTTPStatus.PRECONDITION_FAILED:
        return document(
            HTTPStatus.PRECONDITION_FAILED,
            "precondition-failed",
            "The sheet is not the one that If-Match names; ask again without that header.",
        )
    for name, value in headers.items():
        answer.headers[name] = value
    return answer
