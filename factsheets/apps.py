"""What the app puts in place around every `migrate`."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate


def _drop_triggers(using: str, **_: Any) -> None:
    from factsheets import triggers

    triggers.drop(connections[using], triggers.FACTSHEETS)


def _put_in_place(using: str, **_: Any) -> None:
    from factsheets import roles, triggers

    triggers.install(connections[using], triggers.FACTSHEETS)
    roles.install("factsheets", roles.FACTSHEETS)


class FactsheetsConfig(AppConfig):
    name = "factsheets"
    verbose_name = "Fact sheets"

    def ready(self) -> None:
        from factsheets import checks, log_ins  # noqa: F401

        pre_migrate.connect(_drop_triggers, sender=self)
        post_migrate.connect(_put_in_place, sender=self)
