"""Import a folder of files as a sheet's draft."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from evals import exchange
from factsheets.commands import SheetCommand, import_account, person_named
from factsheets.exchange import find_sheet


class Command(SheetCommand):
    help = "Make a sheet's draft equal to sheet.yaml, rules.yaml, probes.yaml and questions.yaml."
    example = "python manage.py import_sheet factsheets/data/demo/castle --dry-run"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="the folder with the files")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would change; do nothing"
        )
        parser.add_argument(
            "--by", metavar="USER", help="who imports (default: the import account)"
        )
        parser.add_argument("--reason", default="", help="why, for the history")

    def act(self, **options: Any) -> int:
        folder = exchange.read_folder(options["folder"])
        by = (
            person_named(options["by"], *_permissions(folder), on=find_sheet(folder.slug))
            if options["by"] is not None
            else import_account()
        )
        changes = exchange.import_folder(
            folder,
            by=by,
            reason=options["reason"] or f"Imported from {options['folder'].resolve().name}.",
            now=timezone.now(),
            dry_run=options["dry_run"],
        )
        for change in changes:
            fields = f" ({', '.join(change.fields)})" if change.verb == "changed" else ""
            self.say(f"{change.kind} {change.label}: {change.verb}{fields}")
        if not changes:
            self.say(f"{folder.slug}: nothing changes.")
        elif options["dry_run"]:
            self.say(f"{folder.slug}: {len(changes)} changes; nothing was written (--dry-run).")
        else:
            self.say(f"{folder.slug}: {len(changes)} changes written.")
        return 0


def _permissions(folder: exchange.Folder) -> list[str]:
    """What the admin would ask for each part of the folder."""
    needed: list[str] = []
    if folder.sheet:
        needed += ["factsheets.change_section", "factsheets.change_source"]
        needed += ["factsheets.change_citation", "factsheets.change_sheet"]
        if find_sheet(folder.slug) is None:
            needed.append("factsheets.add_sheet")
        if any(section.checked_on for section in folder.sheet.sections):
            needed.append("factsheets.add_check")
    if folder.rules:
        needed.append("factsheets.change_rule")
    if folder.suites:
        needed.append("evals.change_probe")
    if folder.question_sets:
        needed.append("evals.change_questionset")
    return needed
