"""Run the probes of what is live again, before their evidence is too old."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from evals import renewal, tasks
from factsheets.commands import SheetCommand


class Command(SheetCommand):
    help = "Start the probes on every live sheet whose evidence is due for renewal, as beat does."
    example = "python manage.py renew_evidence --dry-run"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="name them and start nothing")

    def act(self, **options: Any) -> int:
        now = timezone.now()
        due = renewal.due(now=now)
        for sheet in due:
            if options["dry_run"]:
                self.say(f"{sheet.slug}: due")
                continue
            run_id = renewal.renew(sheet, now=now)
            if run_id is None:
                self.say(f"{sheet.slug}: nothing could be asked; look at its gate.")
            elif tasks.dispatch(run_id):
                self.say(f"{sheet.slug}: run {run_id} is queued.")
            else:
                self.say(f"{sheet.slug}: run {run_id} waits for the broker, which is out of reach.")
        if not due:
            self.say("Nothing is due.")
        return 0
