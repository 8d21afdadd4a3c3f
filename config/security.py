"""What browsers may load, and who is behind a log-in that fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from ipaddress import ip_address
from typing import Any

from csp.constants import HEADER, NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.utils import build_policy
from django.conf import settings
from django.http import HttpRequest, HttpResponse

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


#: Nothing here needs any of these.
_PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=()"


class BrowserPolicy:
    """What browsers may load and do: the strict policy, and below /admin/ the admin's."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response["Permissions-Policy"] = _PERMISSIONS
        # Django's own pages for those who look for a mistake bring their style with them.
        if not (settings.DEBUG and response.status_code in {404, 500}):
            response[HEADER] = _policy(is_admin=request.path_info.startswith("/admin/"))
        return response


@cache
def _policy(*, is_admin: bool) -> str:
    # Built once: it would be a fifth of what the polled address costs.
    return build_policy(config=ADMIN if is_admin else STRICT)


def client_address(request: HttpRequest) -> str | None:
    """Where a request comes from.

    Behind a proxy that is the entry which our own proxy appended; those before
    it are what the client said of itself.
    """
    said: list[str] = [request.META.get("REMOTE_ADDR", "")]
    if settings.BEHIND_PROXY:
        said.insert(0, request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip())
    return next((address for address in said if _is_address(address)), None)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
