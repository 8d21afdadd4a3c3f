"""Write the whole database to one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from factsheets import backups
from factsheets.commands import SheetCommand


class Command(SheetCommand):
    help = "Write the whole database to a new file, as it stands at one moment."
    example = "python manage.py backup --out muniment-2026-11-30.backup"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--out", type=Path, metavar="FILE", required=True, help="the new file")

    def act(self, **options: Any) -> int:
        backups.write(options["out"])
        self.say(f"{options['out']}: {options['out'].stat().st_size:,} bytes.")
        return 0
