"""The routes of split delivery: the chunks for a question, with the reasons for each.

One looks in a sheet, the other in several at once.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions
from rest_framework.request import Request

from factsheets import canonical, delivery, keys
from factsheets.api import serializers
from factsheets.api.errors import MEDIA_TYPE
from factsheets.api.keyed import token_of
from factsheets.api.responses import JSON
from factsheets.api.taking import TakingView
from factsheets.api.usage import ByAddress
from factsheets.api.views import COPY_SECONDS
from factsheets.bot import answering, corpus, prompt
from factsheets.bot.corpus import Excluded, Member
from factsheets.bot.providers.base import Message
from factsheets.bot.retrieval import Hit, Retrieval
from factsheets.models import ApiKey, Sheet
from factsheets.snapshot import BotSheet

#: Characters of a question, and bytes of a request.
LONGEST = 1_000
LARGEST = 16_384

#: Sheets searched together, and what is left out of them.
MOST_SHEETS = 10
MOST_LEFT_OUT = 100

_FIELDS = frozenset({"question", "before", "publication"})
_FIELDS_OF_SEVERAL = frozenset({"question", "before", "sheets", "without"})
_PROBLEMS = {
    (status, MEDIA_TYPE): OpenApiResponse(serializers.Problem, description)
    for status, description in (
        (400, "No JSON of this form."),
        (404, "No such sheet, or nothing published yet."),
        (410, "Withdrawn: drop every copy."),
        (415, "Not JSON."),
    )
}


class BadQuestion(exceptions.APIException):
    """A body that is not what the route takes."""

    status_code = HTTPStatus.BAD_REQUEST
    default_code = "bad-question"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what the visitor asked before it, and the publication to look in (None: live)."""

    question: str
    before: str
    publication: int | None


@dataclass(frozen=True, slots=True)
class Published:
    """One publication to look in: everything of it from the same stored bytes."""

    slug: str
    number: int
    content_hash: str
    rules_hash: str
    content: BotSheet


_copies: dict[str, tuple[float, Published]] = {}


def forget_copies() -> None:
    """Look in the database again at once. For tests; elsewhere copies end by themselves."""
    _copies.clear()


class RetrieveView(TakingView):
    """Looks a question up in one publication. No cookie, no log-in; nothing of it is kept."""

    was_admitted = False

    def admits(self, sheet: Sheet) -> bool:
        """Whether the key that was sent retrieves from this sheet."""
        self.was_admitted = keys.opens(
            token_of(self.request._request),
            scope=ApiKey.Scope.RETRIEVE,
            sheet=sheet,
            today=timezone.localdate(),
        )
        return self.was_admitted

    @extend_schema(
        operation_id="retrieve",
        request=serializers.Question,
        responses={200: serializers.Retrieved, **_PROBLEMS},
    )
    def post(self, request: Request, slug: str) -> HttpResponse:
        """The chunks that a split sheet sends for a question, best first, and why."""
        self.without_parameters(request)
        asked = _asked(request._request)
        found = self._numbered(slug, asked) if asked.publication else self._live(slug)
        return HttpResponse(
            canonical.canonical_json(_answer(found, asked)),
            content_type=JSON,
            headers={"Cache-Control": "no-store", "X-Publication": str(found.number)},
        )

    def _numbered(self, slug: str, asked: Asked) -> Published:
        return _published(delivery.numbered(slug, asked.publication or 0, self.admits))

    def _live(self, slug: str) -> Published:
        copy = _copies.get(slug)
        if copy is not None and time.monotonic() < copy[0]:
            return copy[1]
        until = time.monotonic() + COPY_SECONDS
        found = _published(delivery.live(slug, self.admits))
        if not self.was_admitted:
            # What a key opened is looked up each time; the copy is for everybody.
            _copies[slug] = (until, found)
        return found


class SeveralByAddress(ByAddress):
    """So many questions to several sheets from one address: an index may have to be made."""

    scope = "retrieve"
    THROTTLE_RATES = {"retrieve": "120/min"}


class RetrieveFromSeveralView(TakingView):
    """Looks a question up in the live publications of several public sheets together."""

    throttle_classes = [SeveralByAddress]

    @extend_schema(
        operation_id="retrieveFromSeveral",
        request=serializers.QuestionToSeveral,
        responses={200: serializers.RetrievedFromSeveral, **_PROBLEMS},
    )
    def post(self, request: Request) -> HttpResponse:
        """The chunks of several sheets for a question, each sheet with a summary of its own."""
        self.without_parameters(request)
        body = _body(request._request, _FIELDS_OF_SEVERAL)
        slugs = _names(body, "sheets", MOST_SHEETS)
        if not slugs:
            raise BadQuestion('"sheets" must name at least one sheet.')
        found = list(dict.fromkeys(_live_of(slug) for slug in slugs))
        index = corpus.index_of(
            (Member(each.slug, each.content_hash, each.content) for each in found),
            _left_out(_names(body, "without", MOST_LEFT_OUT)),
        )
        talk = _talk(_text(body, "before"), _question(body))
        return HttpResponse(
            canonical.canonical_json(
                {
                    "publications": [
                        {
                            "slug": each.slug,
                            "publication": each.number,
                            "content_hash": each.content_hash,
                            "rules_hash": each.rules_hash,
                        }
                        for each in found
                    ],
                    **_told(answering.look_up_in(index, talk), talk[-1].text),
                }
            ),
            content_type=JSON,
            headers={"Cache-Control": "no-store"},
        )


def _live_of(slug: str) -> Published:
    """What is live of a public sheet, by its present name or an old one."""
    try:
        return _published(delivery.live(slug))
    except delivery.Renamed as renamed:
        return _published(delivery.live(renamed.slug))
    except delivery.NotFound as missing:
        raise delivery.NotFound(f"{slug}: {missing.sentence}") from missing


def _names(body: dict[str, Any], name: str, most: int) -> list[str]:
    """A list of names, each once."""
    value = body.get(name, [])
    if (
        not isinstance(value, list)
        or len(value) > most
        or not all(isinstance(each, str) and 0 < len(each) <= 200 for each in value)
    ):
        raise BadQuestion(f'"{name}" must be a list of at most {most} names.')
    return list(dict.fromkeys(value))


def _left_out(names: list[str]) -> Excluded:
    """Whole sheets by their slug, single sections as slug/key."""
    pairs = [name.partition("/") for name in names]
    return Excluded.of(
        {sheet for sheet, _, section in pairs if not section},
        [(sheet, section) for sheet, _, section in pairs if section],
    )


def _asked(request: HttpRequest) -> Asked:
    body = _body(request, _FIELDS)
    number = body.get("publication")
    if number is not None and (type(number) is not int or not 0 < number < 2**31):
        raise BadQuestion('"publication" must be the number of a publication.')
    return Asked(_question(body), _text(body, "before"), number)


def _body(request: HttpRequest, fields: frozenset[str]) -> dict[str, Any]:
    if request.content_type != JSON:
        raise exceptions.UnsupportedMediaType(request.content_type or "")
    data = request.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise BadQuestion(f"A question may have {LONGEST:,} characters; shorten it.")
    try:
        body = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadQuestion('Send JSON of the form {"question": "…"}, in UTF-8.') from error
    if not isinstance(body, dict) or "question" not in body or body.keys() - fields:
        others = ", ".join(f'"{name}"' for name in sorted(fields - {"question"}))
        raise BadQuestion(f'Send an object with "question", and of {others} what you need.')
    return body


def _question(body: dict[str, Any]) -> str:
    question = _text(body, "question")
    if not question:
        raise BadQuestion('"question" must say something.')
    return question


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise BadQuestion(f'"{name}" must be a text of at most {LONGEST:,} characters.')
    try:
        return canonical.normalise_line(value)
    except canonical.TextRefused as refused:
        raise BadQuestion(refused.sentence) from refused


def _published(delivered: delivery.Delivered) -> Published:
    return _read(delivered.slug, delivered.number, delivered.body)


@lru_cache(maxsize=64)
def _read(slug: str, number: int, body: bytes) -> Published:
    stored = json.loads(body)
    content = canonical.read_content(canonical.canonical_json(stored["content"]))
    return Published(slug, number, stored["content_hash"], stored["rules_hash"], content)


def _talk(before: str, question: str) -> list[Message]:
    return [Message("user", text) for text in (before, question) if text]


def _answer(found: Published, asked: Asked) -> dict[str, object]:
    looked = answering.look_up(found.content, _talk(asked.before, asked.question))
    return {
        "slug": found.slug,
        "publication": found.number,
        "content_hash": found.content_hash,
        "rules_hash": found.rules_hash,
        **_told(looked, asked.question),
    }


def _told(looked: Retrieval, question: str) -> dict[str, object]:
    hits = answering.passed(looked)
    return {
        "grounded": looked.grounded,
        "coverage": round(looked.coverage, 4),
        "sources": [_source(number, hit) for number, hit in enumerate(hits, 1)],
        "words": [
            {"stem": word.stem, "rarity": word.rarity, "found": word.found} for word in looked.words
        ],
        "turn": prompt.user_turn(question, [hit.chunk for hit in hits]),
    }


def _source(number: int, hit: Hit) -> dict[str, object]:
    return {
        "number": number,
        # Where several are searched: whose it is. A summary of a sheet has no section.
        **({"sheet": hit.chunk.sheet} if hit.chunk.sheet else {}),
        "section": hit.chunk.section,
        "part": hit.chunk.ordinal + 1,
        "heading": hit.chunk.heading,
        "text": hit.chunk.text,
        "score": round(hit.score, 4),
        "terms": {each.term: round(each.score, 4) for each in hit.terms},
    }
