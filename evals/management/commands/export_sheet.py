"""Write a sheet's draft as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evals import exchange
from factsheets.commands import SheetCommand, UsageRefused, sheet_named


class Command(SheetCommand):
    help = "Write a sheet with its rules, probes and questions as YAML files."
    example = "python manage.py export_sheet colchester-castle --out castle"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--out", type=Path, required=True, help="the folder to write to")

    def act(self, **options: Any) -> int:
        folder: Path = options["out"]
        files = exchange.export_folder(sheet_named(options["slug"]))
        left = sorted(
            path.name
            for pattern in ("probes*.yaml", "questions*.yaml")
            for path in folder.glob(pattern)
            if path.name not in files
        )
        if left:
            raise UsageRefused(
                f"{folder} holds {', '.join(left)} from elsewhere, which an import would read too; "
                "remove them or name another folder."
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, data in files.items():
                (folder / name).write_bytes(data)
        except OSError as error:
            raise UsageRefused(f"{folder} cannot be written: {error.strerror}.") from error
        for name in files:
            self.say(f"{folder / name}")
        return 0
