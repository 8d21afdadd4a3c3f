"""The Celery application. Rows in the database are the truth; tasks carry ids only."""

import os

from celery import Celery
from celery.signals import beat_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("muniment")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@beat_init.connect
def _tick_at_once(**_: object) -> None:
    """Beat waits a whole interval before its first round; what was left open should not.

    The broker may still be starting beside it.
    """
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=30, interval_start=0, interval_max=1)
        app.send_task("evals.tasks.tick", connection=connection)
