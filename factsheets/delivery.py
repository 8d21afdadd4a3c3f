"""What a consumer may read: the live publication and its numbers, byte for byte as stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from factsheets.bot import prompt
from factsheets.errors import Refused
from factsheets.models import Publication, PublicationEvent, Sheet, SlugAlias


class NotFound(Refused):
    """No such sheet, none published yet, or none for the public: the same answer for all."""

    code = "not-found"


class Withdrawn(Refused):
    """What was asked for was taken back; every copy should be dropped."""

    code = "withdrawn"

    def __init__(self, slug: str, at: datetime) -> None:
        self.slug = slug
        self.at = at
        super().__init__(
            f"{slug} was withdrawn; drop every copy of it and stop answering from it until it is "
            "published again."
        )


class Renamed(Refused):
    """The sheet goes by another name now."""

    code = "renamed"

    def __init__(self, slug: str) -> None:
        self.slug = slug
        super().__init__(f"The sheet is now called {slug}; ask for it by that name.")


@dataclass(frozen=True, slots=True)
class Delivered:
    """Bytes to serve, and what a consumer needs to know of them."""

    slug: str
    number: int
    published_at: datetime
    body: bytes
    body_hash: str
    prompt: bytes
    prompt_hash: str


def live(slug: str) -> Delivered:
    """What bots get of a sheet now. Raises NotFound, Withdrawn or Renamed."""
    sheet = _public(slug)
    publication = sheet.state.live_publication
    if publication is None:
        raise _gone(sheet)
    return _delivered(publication, sheet.slug)


def numbered(slug: str, number: int) -> Delivered:
    """A numbered publication. One that was withdrawn while live stays withdrawn."""
    publication, sheet = _publication(slug, number)
    return _delivered(publication, sheet.slug)


def evidence(slug: str, number: int) -> bytes:
    """The summary of the run that opened a publication's gate, without its person."""
    publication, _ = _publication(slug, number)
    return bytes(publication.evidence)


def publications(slug: str) -> list[dict[str, object]]:
    """The sheet's publications that may still be pulled, newest first."""
    sheet = _public(slug)
    live_publication = sheet.state.live_publication
    if live_publication is None:
        raise _gone(sheet)
    withdrawn = _withdrawn_ids(sheet)
    return [
        {
            "publication": p.number,
            "published_at": p.published_at,
            "content_hash": p.content_hash,
            "rules_hash": p.rules_hash,
            "live": p.pk == live_publication.pk,
        }
        for p in sheet.publications.defer("body", "prompt", "record", "evidence").order_by(
            "-number"
        )
        if p.pk not in withdrawn
    ]


def index() -> list[dict[str, object]]:
    """All live public sheets by slug, so that one poll covers many."""
    return [
        {
            "slug": sheet.slug,
            "title": _title(publication),
            "publication": publication.number,
            "published_at": publication.published_at,
            "content_hash": publication.content_hash,
            "rules_hash": publication.rules_hash,
        }
        for sheet in _sheets()
        .filter(visibility=Sheet.Visibility.PUBLIC, state__live_publication__isnull=False)
        .order_by("slug")
        if (publication := sheet.state.live_publication) is not None
    ]


def prompt_text(delivered: Delivered) -> bytes:
    """Both prompt blocks as one plain text."""
    blocks = [block["text"] for block in json.loads(delivered.prompt)["system"]]
    return prompt.SEPARATOR.join(blocks).encode()


def _sheets() -> QuerySet[Sheet]:
    return Sheet.objects.present().select_related("state__live_publication")


def _public(slug: str) -> Sheet:
    sheet = _sheets().filter(slug=slug).first()
    if sheet is None:
        alias = SlugAlias.objects.filter(slug=slug).select_related("sheet").first()
        if alias is None:
            raise _unknown()
        # An old name leads on only where the present one would answer.
        sheet = _public(alias.sheet.slug)
        _gone_or_live(sheet)
        raise Renamed(sheet.slug)
    if sheet.visibility != Sheet.Visibility.PUBLIC:
        raise _unknown()
    return sheet


def _unknown() -> NotFound:
    return NotFound("No sheet of that name is published; look at the list of sheets.")


def _gone_or_live(sheet: Sheet) -> None:
    """Raises NotFound for a sheet that was never published."""
    if sheet.state.live_publication is None and isinstance(problem := _gone(sheet), NotFound):
        raise problem


def _gone(sheet: Sheet) -> Refused:
    """Why a sheet has nothing live."""
    last = sheet.events.order_by("-id").first()
    return _unknown() if last is None else Withdrawn(sheet.slug, last.at)


def _publication(slug: str, number: int) -> tuple[Publication, Sheet]:
    sheet = _public(slug)
    if sheet.state.live_publication is None:
        raise _gone(sheet)
    publication = sheet.publications.filter(number=number).first()
    if publication is None:
        raise NotFound(f"{sheet.slug} has no publication {number}; look at its list.")
    event = (
        sheet.events.filter(kind=PublicationEvent.Kind.WITHDRAWN, from_publication=publication)
        .order_by("-id")
        .first()
    )
    if event is not None:
        raise Withdrawn(f"Publication {number} of {sheet.slug}", event.at)
    return publication, sheet


def _withdrawn_ids(sheet: Sheet) -> set[int]:
    return set(
        sheet.events.filter(
            kind=PublicationEvent.Kind.WITHDRAWN, from_publication__isnull=False
        ).values_list("from_publication_id", flat=True)
    )


def _title(publication: Publication) -> str:
    """The title as published: the draft's may have changed since."""
    title: str = json.loads(bytes(publication.body))["content"]["title"]
    return title


def _delivered(publication: Publication, slug: str) -> Delivered:
    return Delivered(
        slug=slug,
        number=publication.number,
        published_at=publication.published_at,
        body=bytes(publication.body),
        body_hash=publication.body_hash,
        prompt=bytes(publication.prompt),
        prompt_hash=publication.prompt_hash,
    )
