"""The route by which a bot tells which sections its answers needed."""

from __future__ import annotations

import json
import re
from datetime import datetime
from http import HTTPStatus
from typing import NoReturn

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.module_loading import import_string
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from factsheets import canonical, delivery, keys, usage
from factsheets.api import serializers
from factsheets.api.errors import MEDIA_TYPE
from factsheets.api.keyed import token_of
from factsheets.api.responses import JSON
from factsheets.api.taking import TakingView
from factsheets.models import ApiKey

#: Answers, and bytes, of one batch.
MOST_ANSWERS = 500
LARGEST = 1_000_000
#: Sections of one answer.
MOST_SECTIONS = 100

_FIELDS = {"reference": True, "answered_at": True, "sections": True, "publication": False}
#: With its offset: a bot's own time zone is not ours to guess.
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})")


class BadJson(exceptions.APIException):
    """A body that is not what the route takes."""

    status_code = HTTPStatus.BAD_REQUEST
    default_code = "bad-json"


class TooLarge(exceptions.APIException):
    """A body, or a batch, over the limit."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_code = "too-large"


class ByAddress(SimpleRateThrottle):
    """So many batches from one address, whoever sends them: asked before any key is looked at."""

    scope = "usage"
    THROTTLE_RATES = {"usage": "120/min"}

    def get_cache_key(self, request: Request, view: APIView) -> str:
        address = import_string(settings.AXES_CLIENT_IP_CALLABLE)(request._request)
        return f"{self.scope}:{address}"


_PROBLEMS = {
    (status, MEDIA_TYPE): OpenApiResponse(serializers.EntryProblem, description)
    for status, description in (
        (400, "No JSON of this form."),
        (401, "No key, or one that opens nothing."),
        (403, "A key to this sheet that does not open `usage`."),
        (404, "No such sheet, or not one that the key is for."),
        (409, "A reference that was sent before, with other sections."),
        (413, "Too many answers, or too many bytes."),
        (415, "Not JSON."),
        (422, "An answer that cannot be counted; `item` and `field` say which."),
        (429, "Too many batches; `Retry-After` says when to send again."),
    )
}


class UsageView(TakingView):
    """Takes answers from whoever shows a key. No cookie, no log-in."""

    throttle_classes = [ByAddress]

    @extend_schema(
        operation_id="postUsage",
        request=serializers.Usage,
        responses={200: serializers.Recorded, **_PROBLEMS},
        auth=[{"key": []}],  # type: ignore[list-item]  # as OpenAPI writes it
    )
    def post(self, request: Request, slug: str) -> HttpResponse:
        """Count which sections answers needed: the whole batch, or nothing of it."""
        self.without_parameters(request)
        sheet = delivery.named(slug)
        key = keys.find(
            token_of(request._request),
            scope=ApiKey.Scope.USAGE,
            sheet=sheet,
            today=timezone.localdate(),
        )
        if key.sheet.slug != slug:
            raise delivery.Renamed(key.sheet.slug)
        entries = _entries(_body(request._request))
        done = usage.record(key.sheet, entries, timezone.now(), key=key)
        return HttpResponse(
            canonical.canonical_json({"recorded": done.recorded, "repeated": done.repeated}),
            content_type=JSON,
            headers={"Cache-Control": "no-store"},
        )


def _body(request: HttpRequest) -> object:
    if request.content_type != JSON:
        raise exceptions.UnsupportedMediaType(request.content_type or "")
    data = request.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise TooLarge(f"A batch may have {LARGEST:,} bytes; send it in parts.")
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadJson('Send JSON of the form {"answers": [ … ]}, in UTF-8.') from error


def _entries(body: object) -> list[usage.Entry]:
    if not isinstance(body, dict) or body.keys() != {"answers"}:
        raise BadJson('Send an object with one member, "answers", a list.')
    answers = body["answers"]
    if not isinstance(answers, list) or not answers:
        raise BadJson('"answers" must be a list of at least one answer.')
    if len(answers) > MOST_ANSWERS:
        raise TooLarge(f"A batch may have {MOST_ANSWERS} answers; send it in parts.")
    return [_entry(item, answer) for item, answer in enumerate(answers)]


def _entry(item: int, answer: object) -> usage.Entry:
    def refuse(field: str, why: str) -> NoReturn:
        raise usage.EntryRefused(why, item=item, field=field)

    if not isinstance(answer, dict):
        refuse("answer", "It must be an object.")
    for name in answer:
        if name not in _FIELDS:
            refuse(f"{name!r:.40}", f"There is no such field; there are {', '.join(_FIELDS)}.")
    for name, is_required in _FIELDS.items():
        if is_required and name not in answer:
            refuse(name, "It is missing.")
    reference, sections, number = (
        answer.get(name) for name in ("reference", "sections", "publication")
    )
    if not isinstance(reference, str):
        refuse("reference", "It must be a text.")
    if not isinstance(sections, list) or not all(isinstance(key, str) for key in sections):
        refuse("sections", "It must be a list of keys of sections; empty where none was needed.")
    if len(sections) > MOST_SECTIONS:
        refuse("sections", f"One answer may name {MOST_SECTIONS} sections.")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        refuse("publication", "It must be the number of a publication.")
    moment = _moment(answer["answered_at"])
    if moment is None:
        refuse("answered_at", "Give an instant with its offset, such as 2026-05-03T14:30:00Z.")
    return usage.Entry(reference, moment, tuple(sections), number)


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        return None
    try:
        # Over the zone too: what its clocks cannot show, nobody can be shown.
        moment = datetime.fromisoformat(value)
        moment.astimezone(timezone.get_default_timezone())
    except (ValueError, OverflowError):
        return None
    return moment
