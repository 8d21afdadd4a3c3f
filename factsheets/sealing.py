"""Seals: one chain over all that a sheet has published, so that no byte of it alters unnoticed.

Each event bears the SHA-256 of itself, of the publication that it let out (by
the hashes of its bytes) and of the seal before. Whoever alters a row, or takes
one out of the middle, breaks every seal from there on.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from factsheets import canonical

FORMAT = "seal/1"

_EVENT = ("sheet_id", "kind", "at", "by_id", "by_name", "reason")
_PUBLICATION = (
    "sheet_id",
    "number",
    "format",
    "slug",
    "body_hash",
    "prompt_hash",
    "content_hash",
    "rules_hash",
    "bot_hash",
    "record_hash",
    "evidence_hash",
    "published_at",
    "published_by_id",
    "published_by_name",
    "reason",
    "restores",
    "changes_up_to_id",
)


def seal(before: str, event: Any) -> str:
    """The seal of an event (`PublicationEvent`) after the one before; "" before the first."""
    taken, let_out = event.from_publication, event.to_publication
    return canonical.sha256(
        canonical.canonical_json(
            {
                "format": FORMAT,
                "before": before,
                "event": _plain(event, _EVENT),
                "from": taken and taken.number,
                "publication": let_out and _plain(let_out, _PUBLICATION),
            }
        )
    )


def last(events: Iterable[Any]) -> str:
    """The seal at the end of a sheet's events, oldest first.

    Events of before there were seals bear none; theirs are computed, so that
    the first seal of all covers them too.
    """
    found = ""
    for event in events:
        found = event.seal or seal(found, event)
    return found


def _plain(row: Any, names: Iterable[str]) -> dict[str, object]:
    values = {name: getattr(row, name) for name in names}
    return {
        name: canonical.instant(value) if isinstance(value, datetime) else value
        for name, value in values.items()
    }
