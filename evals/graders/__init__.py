"""Graders: each reads one attempt's replies and says pass, fail or ungraded, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import regex

from evals.graders.base import Check, GradedReply, Span, Transcript, Verdict
from evals.graders.contains import ContainsAny, NotContains
from evals.graders.leaks import NoLeak
from evals.graders.matching import PATTERN, compiled
from evals.graders.refusals import Answers, Refuses
from factsheets.errors import Refused
from factsheets.folding import needle

__all__ = [
    "TYPES",
    "Check",
    "CheckRefused",
    "GradedReply",
    "Span",
    "Transcript",
    "Verdict",
    "grade",
    "parse",
]

_LISTS: Mapping[str, type[ContainsAny] | type[NotContains]] = {
    ContainsAny.name: ContainsAny,
    NotContains.name: NotContains,
}
_PLAIN: Mapping[str, type[Answers] | type[Refuses] | type[NoLeak]] = {
    Answers.name: Answers,
    Refuses.name: Refuses,
    NoLeak.name: NoLeak,
}
TYPES = (*_LISTS, *_PLAIN)


class CheckRefused(Refused):
    """A check that could not judge anything."""

    code = "check-refused"


def parse(specs: object) -> tuple[Check, ...]:
    """Checks from their stored form. Raises CheckRefused with a sentence for whoever wrote them."""
    if not isinstance(specs, Sequence) or isinstance(specs, str):
        raise CheckRefused("The checks must be a list.")
    return tuple(_parse(spec) for spec in specs)


def grade(checks: Sequence[Check], transcript: Transcript) -> tuple[Verdict, ...]:
    """One verdict for each check, in order."""
    return tuple(check.grade(transcript) for check in checks)


def _parse(spec: object) -> Check:
    kind = spec.get("type") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or kind not in TYPES:
        raise CheckRefused(f"No check is called {kind!r}; choose from {', '.join(TYPES)}.")
    if kind in _PLAIN:
        _only(spec, {"type"})
        return _PLAIN[kind]()
    _only(spec, {"type", "values", "match"})
    values = spec.get("values")
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise CheckRefused(f"The check {kind!r} needs a list of values.")
    match = spec.get("match", "word")
    if match not in ("word", "anywhere"):
        raise CheckRefused(f"`match` is either word or anywhere, not {match!r}.")
    for value in values:
        _value(kind, value)
    return _LISTS[kind](tuple(values), match)


def _only(spec: Mapping[object, object], known: set[str]) -> None:
    unknown = sorted(str(key) for key in spec if key not in known)
    if unknown:
        raise CheckRefused(f"The check {spec['type']!r} takes no {', '.join(unknown)}.")


def _value(kind: str, value: object) -> None:
    if not isinstance(value, str):
        raise CheckRefused(f"The check {kind!r} takes texts; write {value!r} in quotes.")
    if not needle(value.removeprefix(PATTERN)).strip():
        raise CheckRefused(f"The check {kind!r} has an empty value; take it out.")
    if value.startswith(PATTERN):
        try:
            pattern = compiled(value)
        except regex.error as error:
            raise CheckRefused(f"The pattern {value!r} cannot be read: {error}.") from error
        if pattern.search("", timeout=1.0):
            raise CheckRefused(
                f"The pattern {value!r} matches an empty text, so it would always match."
            )
