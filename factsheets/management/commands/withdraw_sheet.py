"""Withdraw what is live of a sheet."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from factsheets import publishing
from factsheets.commands import SheetCommand, person_named, sheet_named


class Command(SheetCommand):
    help = "Take a sheet's live publication away from bots. No gate stands before it."
    example = 'python manage.py withdraw_sheet colchester-castle --by anna --reason "Wrong prices"'
    refused_exit = 1

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--by", metavar="USER", required=True, help="who withdraws")
        parser.add_argument("--reason", required=True, help="why, for the record")

    def act(self, **options: Any) -> int:
        sheet = sheet_named(options["slug"])
        publishing.withdraw(
            sheet_id=sheet.pk,
            by=person_named(options["by"], "factsheets.withdraw_sheet", on=sheet),
            reason=options["reason"],
            now=timezone.now(),
        )
        self.say(f"{sheet.slug} is withdrawn; bots get 410 (gone).")
        return 0
