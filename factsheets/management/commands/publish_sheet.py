"""Publish a sheet's draft."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from factsheets import publishing
from factsheets.commands import SheetCommand, person_named, sheet_named


class Command(SheetCommand):
    help = "Publish a sheet's draft, if its gate is open."
    example = (
        'python manage.py publish_sheet colchester-castle --by anna --reason "New opening times"'
    )
    refused_exit = 1

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--by", metavar="USER", required=True, help="who publishes")
        parser.add_argument("--reason", required=True, help="why, for the record")

    def act(self, **options: Any) -> int:
        sheet = sheet_named(options["slug"])
        by = person_named(options["by"], "factsheets.publish_sheet", on=sheet)
        view = publishing.look(sheet, now=timezone.now(), by=by)
        publication = publishing.publish(
            sheet_id=sheet.pk,
            seen=view.candidate.subject,
            seen_live_number=view.live_number,
            by=by,
            reason=options["reason"],
            now=timezone.now(),
        )
        self.say(f"Publication {publication.number} of {sheet.slug} is live.")
        return 0
