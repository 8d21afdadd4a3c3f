"""The Celery application. Rows in the database are the truth; tasks carry ids only."""

import os
import sys
import time
from pathlib import Path

from celery import Celery
from celery.signals import beat_init, setup_logging, task_prerun
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.exceptions import OperationalError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("muniment")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Tasks log under the id of the request that sent them.
app.steps["worker"].add(DjangoStructLogInitStep)


@app.on_configure.connect
def _say_nonsense_in_one_sentence(**_: object) -> None:
    """Worker and beat end as every command does when a setting cannot be read."""
    try:
        settings.DEBUG  # noqa: B018  (reads them all)
    except ImproperlyConfigured as error:
        if Path(sys.argv[0]).name in {"celery", "__main__.py"}:
            sys.exit(f"error: {error}")
        raise


@setup_logging.connect
def _log_as_django_does(**_: object) -> None:
    """Leaves logging as the settings have it."""


@task_prerun.connect
def _drop_dead_connections(**_: object) -> None:
    """Connections outlive tasks here; one that the server has closed must not meet the next."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


@beat_init.connect
def _tick_at_once(**_: object) -> None:
    """Beat waits a whole interval before its first round; what was left open should not.

    The broker may still be starting beside it. If it does not come, the rounds find out.
    """
    for _try in range(30):
        try:
            app.send_task("evals.tasks.tick")
        except OperationalError:
            time.sleep(0.5)
        else:
            return
