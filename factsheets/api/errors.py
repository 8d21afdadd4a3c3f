"""Every error of the API as a problem document (RFC 9457): a stable code and one sentence."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.views import defaults
from rest_framework import exceptions
from rest_framework.views import set_rollback

from factsheets import canonical, delivery, keys, moments, usage
from factsheets.bot import corpus
from factsheets.errors import Refused

MEDIA_TYPE = "application/problem+json"

#: A wrong answer may be put right soon: no cache keeps one for longer (seconds).
ERROR_MAX_AGE = 30

#: As `responses.FOR_ONE`: an answer to who showed a key is for nobody else.
FOR_ONE = "private, no-cache"

_STATUS: dict[type[Refused], HTTPStatus] = {
    delivery.NotFound: HTTPStatus.NOT_FOUND,
    delivery.Withdrawn: HTTPStatus.GONE,
    delivery.Renamed: HTTPStatus.PERMANENT_REDIRECT,
    moments.MomentRefused: HTTPStatus.BAD_REQUEST,
    corpus.MixedLanguages: HTTPStatus.BAD_REQUEST,
    keys.KeyRefused: HTTPStatus.UNAUTHORIZED,
    keys.ScopeRefused: HTTPStatus.FORBIDDEN,
    usage.EntryRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    usage.ReferenceTaken: HTTPStatus.CONFLICT,
}


class UnknownParameter(exceptions.APIException):
    """A query parameter that the route does not take."""

    status_code = HTTPStatus.BAD_REQUEST
    default_code = "unknown-parameter"


def problem(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """The answer to an exception; None for one that nobody foresaw, which rises."""
    response = _problem(exc, context)
    if response is None:
        return None
    if _writes(context):
        response["Cache-Control"] = "no-store"
    elif "HTTP_AUTHORIZATION" in context["request"].META:
        response["Cache-Control"] = FOR_ONE
    return response


def _problem(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    set_rollback()
    if isinstance(exc, Refused):
        return _refused(exc, context)
    if isinstance(exc, Http404):
        return document(HTTPStatus.NOT_FOUND, "not-found", "There is nothing at this address.")
    if isinstance(exc, PermissionDenied):
        return document(HTTPStatus.FORBIDDEN, "forbidden", "You may not do this.")
    if isinstance(exc, exceptions.APIException):
        detail = _detail(exc, writes=_writes(context))
        response = document(HTTPStatus(exc.status_code), _code(exc), detail)
        if isinstance(exc, exceptions.MethodNotAllowed):
            response["Allow"] = ", ".join(context["view"].allowed_methods)
        if isinstance(exc, exceptions.Throttled):
            response["Retry-After"] = str(math.ceil(getattr(exc, "wait", None) or 1))
        return response
    return None


def document(status: HTTPStatus, code: str, detail: str, **more: object) -> HttpResponse:
    """A problem document. `more` adds members of the problem's own."""
    response = HttpResponse(
        canonical.canonical_json(
            {
                "type": "about:blank",
                "title": status.phrase,
                "status": int(status),
                "code": code,
                "detail": detail,
                **more,
            }
        ),
        status=status,
        content_type=MEDIA_TYPE,
    )
    response["Cache-Control"] = f"public, max-age={ERROR_MAX_AGE}"
    # Who shows a key may be told otherwise.
    response["Vary"] = "Authorization"
    response["Access-Control-Allow-Origin"] = "*"
    return response


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's own page for people, a problem document below the API."""
    if request.path.startswith("/api/"):
        return document(HTTPStatus.NOT_FOUND, "not-found", "There is nothing at this address.")
    return defaults.page_not_found(request, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Likewise, for what cannot be read at all."""
    if request.path.startswith("/api/"):
        return document(HTTPStatus.BAD_REQUEST, "bad-request", "The request cannot be read.")
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Likewise, for our own faults."""
    if request.path.startswith("/api/"):
        response = document(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "server-error",
            "Something broke here; go on with your last good copy and ask again later.",
        )
        response["Cache-Control"] = "no-store"
        return response
    return defaults.server_error(request)


def _refused(refused: Refused, context: dict[str, Any]) -> HttpResponse:
    status = _STATUS.get(type(refused), HTTPStatus.CONFLICT)
    if isinstance(refused, delivery.Withdrawn):
        return document(
            status, refused.code, refused.sentence, withdrawn_at=canonical.instant(refused.at)
        )
    if isinstance(refused, usage.EntryRefused | usage.ReferenceTaken):
        return document(
            status, refused.code, refused.sentence, item=refused.item, field=refused.field
        )
    response = document(status, refused.code, refused.sentence)
    if isinstance(refused, keys.KeyRefused):
        response["WWW-Authenticate"] = "Bearer"
    if isinstance(refused, delivery.Renamed):
        request, kwargs = context["request"], context["kwargs"]
        response["Location"] = request.get_full_path().replace(
            f"/sheets/{kwargs['slug']}/", f"/sheets/{refused.slug}/", 1
        )
    return response


def _writes(context: dict[str, Any]) -> bool:
    """Whether the route takes something, and is not for reading."""
    return getattr(context.get("view"), "writes", False)


def _code(exc: exceptions.APIException) -> str:
    codes = exc.get_codes()
    return (codes if isinstance(codes, str) else "invalid").replace("_", "-")


def _detail(exc: exceptions.APIException, *, writes: bool) -> str:
    if isinstance(exc, exceptions.MethodNotAllowed):
        if writes:
            return "Answers are sent to this address; use POST."
        return "This address can only be read; use GET or HEAD."
    if isinstance(exc, exceptions.UnsupportedMediaType):
        return "Send JSON, with the header Content-Type: application/json."
    if isinstance(exc, exceptions.Throttled):
        return "Too many requests from this address; send again after Retry-After, in seconds."
    if isinstance(exc, exceptions.NotAcceptable):
        return "The answer has no such form; ask for application/json or for any (*/*)."
    return str(exc.detail)
