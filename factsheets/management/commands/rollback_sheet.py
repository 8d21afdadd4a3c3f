"""Publish an earlier publication's text and rules again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from factsheets import publishing
from factsheets.commands import SheetCommand, person_named, sheet_named


class Command(SheetCommand):
    help = "Publish the text and rules of publication N again, under a new number."
    example = 'python manage.py rollback_sheet colchester-castle --to 3 --by anna --reason "Typo"'
    refused_exit = 1

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--to", type=int, metavar="N", required=True, help="the publication")
        parser.add_argument("--by", metavar="USER", required=True, help="who rolls back")
        parser.add_argument("--reason", required=True, help="why, for the record")

    def act(self, **options: Any) -> int:
        sheet = sheet_named(options["slug"])
        live = sheet.state.live_publication
        publication = publishing.rollback(
            sheet_id=sheet.pk,
            to_number=options["to"],
            seen_live_number=live.number if live else None,
            by=person_named(options["by"], "factsheets.rollback_sheet", on=sheet),
            reason=options["reason"],
            now=timezone.now(),
        )
        self.say(
            f"Publication {publication.number} of {sheet.slug} is live, "
            f"with the text of {options['to']}."
        )
        return 0
