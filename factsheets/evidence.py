"""The question "has a run passed on this?". The probes' app answers it.

The setting FACTSHEETS_EVIDENCE names the answering function; without it
nothing is ever found, so silence means no.
"""

from __future__ import annotations

from typing import Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from factsheets.canonical import Subject
from factsheets.gate import Evidence, Finding


class ForSubject(Protocol):
    """What the setting must name."""

    def __call__(self, subject: Subject) -> Evidence: ...


def for_subject(subject: Subject) -> Evidence:
    """The evidence for a subject, from whoever keeps runs."""
    name = getattr(settings, "FACTSHEETS_EVIDENCE", "")
    answer = cast(ForSubject, import_string(name)) if name else nothing_found
    return answer(subject)


def nothing_found(subject: Subject) -> Evidence:
    """The answer where no probes are installed."""
    return Evidence(
        run=None,
        findings=(
            Finding(
                "rules-not-probed",
                "block",
                "No probes are installed here, so none has passed on these rules.",
                "probes",
            ),
        ),
    )
