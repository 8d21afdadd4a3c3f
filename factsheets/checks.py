"""System checks: what must be true before the product may run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.utils.module_loading import import_string

from factsheets import triggers


@register(Tags.database)
def triggers_stand(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Every trigger is there, or the append-only tables are not."""
    return missing_triggers(databases, triggers.FACTSHEETS, "factsheets.W001")


def missing_triggers(
    databases: Sequence[str] | None, wanted: Sequence[triggers.Trigger], code: str
) -> list[CheckMessage]:
    """One warning that names the triggers missing on any of the databases with our tables."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        connection = connections[alias]
        # Before the first migration there is nothing to protect.
        if wanted[0].table not in connection.introspection.table_names():
            continue
        names = triggers.missing(connection, wanted)
        if names:
            found.append(
                # A warning, for an error would stop the very `migrate` that mends it.
                Warning(
                    f"Triggers are missing: {', '.join(names)}.",
                    hint="Run `python manage.py migrate`; it puts them in place.",
                    id=code,
                )
            )
    return found


@register()
def evidence_answers(**_: Any) -> list[CheckMessage]:
    """The setting FACTSHEETS_EVIDENCE names something that can be imported."""
    name = getattr(settings, "FACTSHEETS_EVIDENCE", "")
    try:
        if name:
            import_string(name)
    except ImportError as error:
        return [
            Error(
                f"FACTSHEETS_EVIDENCE names {name!r}, which cannot be imported: {error}.",
                hint="Use evals.evidence.for_subject, or leave it empty.",
                id="factsheets.E002",
            )
        ]
    return []


@register()
def history_is_kept(**_: Any) -> list[CheckMessage]:
    """Nobody switched the history off."""
    if getattr(settings, "SIMPLE_HISTORY_ENABLED", True) and not getattr(
        settings, "SIMPLE_HISTORY_EDIT", False
    ):
        return []
    return [
        Error(
            "The history is switched off or open to editing.",
            hint="Leave SIMPLE_HISTORY_ENABLED and SIMPLE_HISTORY_EDIT unset.",
            id="factsheets.E003",
        )
    ]
