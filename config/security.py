"""What browsers may load, and who is behind a log-in that fails."""

from __future__ import annotations

from typing import Any

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

#: Outside the admin nothing is shown that loads anything.
STRICT: dict[str, list[Any]] = {
    "default-src": [NONE],
    "base-uri": [NONE],
    "form-action": [NONE],
    "frame-ancestors": [NONE],
}

#: The least that the admin's theme works under: it evaluates expressions that stand
#: in its own pages, and sets styles of single elements. No other host, ever.
ADMIN: dict[str, list[Any]] = {
    "default-src": [NONE],
    "script-src": [SELF, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],
    "img-src": [SELF, "data:"],
    "font-src": [SELF],
    "connect-src": [SELF],
    "base-uri": [SELF],
    "form-action": [SELF],
    "frame-ancestors": [NONE],
}


class ContentPolicy(CSPMiddleware):
    """The strict policy, and below /admin/ the admin's."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if not report_only and request.path_info.startswith("/admin/"):
            parts.replace = ADMIN
        return parts


class PermissionsPolicy:
    """Nothing here needs a camera, a place or a payment."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response: HttpResponse = self.get_response(request)
        response["Permissions-Policy"] = "camera=(), geolocation=(), microphone=(), payment=()"
        return response


def client_address(request: HttpRequest) -> str:
    """Where a request comes from.

    Behind a proxy that is the entry which our own proxy appended; those before
    it are what the client said of itself.
    """
    if settings.BEHIND_PROXY:
        said: str = request.META.get("HTTP_X_FORWARDED_FOR", "")
        if said:
            return said.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))
