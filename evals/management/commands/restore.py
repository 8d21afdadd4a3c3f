"""Read a backup into an empty database, and see whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandParser

from evals import verification
from factsheets import backups, history_check
from factsheets.commands import SheetCommand


class Command(SheetCommand):
    help = (
        "Read a backup into the database that DATABASE_URL names, which must be empty; migrate it, "
        "and verify publications and history."
    )
    example = "python manage.py restore muniment-2026-11-30.backup"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="what `backup` wrote")

    def act(self, **options: Any) -> int:
        backups.read(options["file"])
        # Also puts triggers and roles in place.
        call_command("migrate", verbosity=0)
        publications = verification.verify_publications()
        history = history_check.verify()
        for fault in publications.faults:
            self.say(f"{fault.code}: {fault.sentence}")
        for sentence in history.faults:
            self.say(sentence)
        faults = len(publications.faults) + len(history.faults)
        self.say(
            f"Restored: {publications.checked} publications and {history.checked} rows verified, "
            f"{faults} faults."
        )
        return 1 if faults else 0
