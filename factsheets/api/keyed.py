"""The key that a request shows."""

from __future__ import annotations

from django.http import HttpRequest


def token_of(request: HttpRequest) -> str:
    """What stands after `Authorization: Bearer`; empty without one."""
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
