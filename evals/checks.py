"""System checks of the probes' app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, register

from evals import triggers
from factsheets.checks import missing_triggers


@register(Tags.database)
def triggers_stand(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Every trigger is there, or runs could be rewritten."""
    return missing_triggers(databases, triggers.EVALS, "evals.W001")
