"""A day or an instant, as people and programs write it, to the instant that is meant."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from factsheets.errors import Refused

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
# With its time: a day in another form (20260503, 2026-W18-7) would be taken for its first instant.
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*")


class MomentRefused(Refused):
    """A text that names no moment up to now."""

    code = "moment-refused"


def read(text: str, *, zone: tzinfo, now: datetime) -> datetime:
    """The instant that a text means, in UTC.

    A day (`2026-05-03`) means its last instant in `zone`, or now if the day is
    not over. An instant says its offset (`2026-05-03T14:30:00Z`); one without
    is taken in `zone`, and of an hour that comes twice the first is meant.
    Raises MomentRefused for anything else, and for what is still to come.
    """
    try:
        if _DAY.fullmatch(text):
            return _end_of(date.fromisoformat(text), zone=zone, now=now)
        if not _INSTANT.fullmatch(text):
            raise ValueError(text)
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        # Over the zone too: what its clocks cannot show, nobody can be shown.
        moment = moment.astimezone(zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise MomentRefused(
            "Give a day such as 2026-05-03, or an instant such as 2026-05-03T14:30:00Z."
        ) from error
    if moment > now:
        raise MomentRefused(f"{text} is still to come; give a day or an instant up to now.")
    return moment


def coming(text: str, *, zone: tzinfo, now: datetime) -> datetime:
    """The instant to come that a text means, in UTC, to the minute.

    It says its offset, or its time is taken in `zone`. Raises MomentRefused
    for anything else: a time that has passed, and one that the clocks of the
    zone skip or show twice.
    """
    try:
        if not _INSTANT.fullmatch(text):
            raise ValueError(text)
        given = datetime.fromisoformat(text)
        moment = (given if given.tzinfo else given.replace(tzinfo=zone)).astimezone(UTC)
        # Over the zone too: what its clocks cannot show, nobody can be shown.
        shown = moment.astimezone(zone)
    except (ValueError, OverflowError) as error:
        raise MomentRefused(
            "Give a time such as 2026-12-24T09:00, or with its offset 2026-12-24T09:00:00Z."
        ) from error
    if given.tzinfo is None:
        if shown.replace(tzinfo=None, fold=0) != given:
            raise MomentRefused(f"The clocks of {zone} skip {text}; choose another time.")
        if given.replace(tzinfo=zone, fold=1).astimezone(UTC) != moment:
            raise MomentRefused(
                f"The clocks of {zone} show {text} twice; give it with its offset from UTC."
            )
    moment = moment.replace(second=0, microsecond=0)
    if moment <= now:
        raise MomentRefused(f"{text} has passed; choose a time to come, or publish now.")
    return moment


def _end_of(day: date, *, zone: tzinfo, now: datetime) -> datetime:
    if day > now.astimezone(zone).date():
        raise MomentRefused(f"{day} is still to come; give a day or an instant up to now.")
    # The next day begins at midnight of the zone, whatever its clocks do that night.
    next_day = datetime.combine(day + timedelta(days=1), time(), tzinfo=zone)
    return min(next_day.astimezone(UTC) - timedelta(microseconds=1), now.astimezone(UTC))
