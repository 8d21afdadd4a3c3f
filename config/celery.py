"""The Celery application. Rows in the database are the truth; tasks carry ids only."""

import os
import time

from celery import Celery
from celery.signals import beat_init, setup_logging
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.exceptions import OperationalError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("muniment")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Tasks log under the id of the request that sent them.
app.steps["worker"].add(DjangoStructLogInitStep)


@setup_logging.connect
def _log_as_django_does(**_: object) -> None:
    """Leaves logging as the settings have it."""


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
