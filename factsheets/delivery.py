"""What a consumer may read: the live publication and its numbers, byte for byte as stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from factsheets.bot import prompt
from factsheets.errors import Refused
from factsheets.models import Publication, PublicationEvent, Sheet


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


#: Whether who asks may read a sheet that is not public. Asked of no other.
Admits = Callable[[Sheet], bool]


def nobody(sheet: Sheet) -> bool:
    """Without a key a sheet that asks for one is not there."""
    return False


def live(slug: str, admits: Admits = nobody) -> Delivered:
    """What bots get of a sheet now. Raises NotFound, Withdrawn or Renamed."""
    return _of(slug, admits, lambda sheet: _delivered(_live(sheet), sheet.slug))


def numbered(slug: str, number: int, admits: Admits = nobody) -> Delivered:
    """A numbered publication. One that was withdrawn while live stays withdrawn."""
    return _of(slug, admits, lambda sheet: _delivered(_numbered(sheet, number), sheet.slug))


def as_of(slug: str, moment: datetime, admits: Admits = nobody) -> Delivered:
    """What bots got at a moment. One that was withdrawn while live stays withdrawn."""
    return _of(slug, admits, lambda sheet: _delivered(_as_of(sheet, moment), sheet.slug))


def event_at(sheet: Sheet, moment: datetime) -> PublicationEvent | None:
    """The event that decided what was live at a moment; None before the first."""
    return (
        sheet.events.filter(at__lte=moment)
        .select_related("to_publication", "from_publication")
        .order_by("-id")
        .first()
    )


def evidence(slug: str, number: int, admits: Admits = nobody) -> bytes:
    """The summary of the run that opened a publication's gate, without its person."""
    return _of(slug, admits, lambda sheet: bytes(_numbered(sheet, number).evidence))


def publications(slug: str, admits: Admits = nobody) -> list[dict[str, object]]:
    """The sheet's publications that may still be pulled, newest first."""
    return _of(slug, admits, _listed)


def named(slug: str) -> Sheet | None:
    """The sheet of that name, present or old, whoever may read it."""
    return _sheets().filter(slug=slug).first() or _sheets().filter(aliases__slug=slug).first()


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


def _of[T](slug: str, admits: Admits, answer: Callable[[Sheet], T]) -> T:
    """What the sheet of that name answers. An old name leads on only where the present one
    would answer or say that it was withdrawn."""
    sheet = named(slug)
    if sheet is None or (sheet.visibility != Sheet.Visibility.PUBLIC and not admits(sheet)):
        raise unknown()
    is_present_name = sheet.slug == slug
    try:
        answered = answer(sheet)
    except Withdrawn:
        if is_present_name:
            raise
    else:
        if is_present_name:
            return answered
    raise Renamed(sheet.slug)


def unknown() -> NotFound:
    """The answer for a sheet that is not there, or not for who asks."""
    return NotFound("No sheet of that name is published; look at the list of sheets.")


def _live(sheet: Sheet) -> Publication:
    """The live publication. Raises NotFound for a sheet never published, else Withdrawn."""
    publication = sheet.state.live_publication
    if publication is None:
        last = sheet.events.order_by("-id").first()
        raise unknown() if last is None else Withdrawn(sheet.slug, last.at)
    return publication


def _numbered(sheet: Sheet, number: int) -> Publication:
    _live(sheet)
    publication = sheet.publications.filter(number=number).first()
    if publication is None:
        raise NotFound(f"{sheet.slug} has no publication {number}; look at its list.")
    event = _withdrawals(sheet).filter(from_publication=publication).order_by("-id").first()
    if event is not None:
        raise Withdrawn(f"Publication {number} of {sheet.slug}", event.at)
    return publication


def _as_of(sheet: Sheet, moment: datetime) -> Publication:
    _live(sheet)
    event = event_at(sheet, moment)
    if event is None or event.to_publication is None:
        raise NotFound(
            f"Nothing of {sheet.slug} was live at that moment; look at its list of publications."
        )
    return _numbered(sheet, event.to_publication.number)


def _listed(sheet: Sheet) -> list[dict[str, object]]:
    current = _live(sheet)
    withdrawn = set(_withdrawals(sheet).values_list("from_publication_id", flat=True))
    return [
        {
            "publication": p.number,
            "published_at": p.published_at,
            "content_hash": p.content_hash,
            "rules_hash": p.rules_hash,
            "live": p.pk == current.pk,
        }
        for p in sheet.publications.defer(*Publication.BYTES).order_by("-number")
        if p.pk not in withdrawn
    ]


def _withdrawals(sheet: Sheet) -> QuerySet[PublicationEvent]:
    return PublicationEvent.objects.filter(
        sheet=sheet, kind=PublicationEvent.Kind.WITHDRAWN, from_publication__isnull=False
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
