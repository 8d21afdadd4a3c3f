"""What the app puts in place around every `migrate`."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate


def _drop_triggers(using: str, **_: Any) -> None:
    from evals import triggers
    from factsheets import triggers as machinery

    machinery.drop(connections[using], triggers.EVALS)


def _put_in_place(using: str, **_: Any) -> None:
    from evals import roles, triggers
    from factsheets import triggers as machinery
    from factsheets.roles import install

    machinery.install(connections[using], triggers.EVALS)
    install("evals", roles.EVALS)


class EvalsConfig(AppConfig):
    name = "evals"
    verbose_name = "Probes"

    def ready(self) -> None:
        from evals import alarms, checks  # noqa: F401
        from evals.metrics import of_evals
        from evals.notices import of_failed_live
        from factsheets import metrics
        from factsheets.notices import add

        metrics.add(of_evals)
        add(alarms.TOPIC, of_failed_live)

        pre_migrate.connect(_drop_triggers, sender=self)
        post_migrate.connect(_put_in_place, sender=self)
