"""Finding words in a reply: folded alike, and shown where they stand in the reply as it is."""

from __future__ import annotations

from functools import cache

import regex

from factsheets.folding import Folded, places

#: Seconds for one search; a pattern that takes longer is broken, and the check ungraded.
PATTERN_SECONDS = 1.0

PATTERN = "re:"


def find(value: str, reply: str, folded: Folded, *, anywhere: bool) -> tuple[int, int] | None:
    """Where a value stands in a reply, or None.

    Plain values are looked for in the folded reply, on word boundaries unless
    `anywhere`. A value that begins with `re:` is a pattern for the reply as it
    is. Raises TimeoutError for a pattern that does not end.
    """
    if value.startswith(PATTERN):
        match = compiled(value).search(reply, timeout=PATTERN_SECONDS)
        return match.span() if match else None
    return next(places(value, folded, anywhere=anywhere), None)


@cache
def compiled(value: str) -> regex.Pattern[str]:
    """The pattern after `re:`, without regard to case, line by line. Raises regex.error."""
    return regex.compile(value.removeprefix(PATTERN), regex.IGNORECASE | regex.MULTILINE)
