"""Publish a sheet's draft later, or take that back."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management.base import CommandParser
from django.utils import timezone

from factsheets import explaining, moments, publishing, scheduling
from factsheets.commands import SheetCommand, UsageRefused, person_named, sheet_named
from factsheets.models import Schedule


class Command(SheetCommand):
    help = (
        "Approve a sheet's draft as it is now for a time to come. Beat publishes it then, if "
        "nothing changed and its gate is open."
    )
    example = (
        "python manage.py schedule_sheet colchester-castle --at 2027-04-01T00:00 --by anna "
        '--reason "Summer opening times"'
    )
    refused_exit = 1

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--at", metavar="T", help="when: 2027-04-01T00:00 in ORG_TIME_ZONE, or with an offset"
        )
        what.add_argument("--cancel", action="store_true", help="take back what is scheduled")
        parser.add_argument("--by", metavar="USER", required=True, help="who schedules")
        parser.add_argument("--reason", help="why, for the record; needed with --at")

    def act(self, **options: Any) -> int:
        sheet = sheet_named(options["slug"])
        by = person_named(options["by"], "factsheets.publish_sheet", on=sheet)
        now = timezone.now()
        if options["cancel"]:
            waiting = sheet.schedules.filter(state=Schedule.State.WAITING).first()
            if waiting is None:
                raise scheduling.NothingScheduled(f"Nothing of {sheet.slug} is scheduled.")
            scheduling.cancel(schedule_id=waiting.pk, by=by, now=now)
            self.say(f"The schedule of {sheet.slug} is cancelled.")
            return 0
        if options["reason"] is None:
            raise UsageRefused("--at needs --reason; say why in a few words.")
        view = publishing.look(sheet, now=now, by=by)
        row = scheduling.schedule(
            sheet_id=sheet.pk,
            seen=view.candidate.subject,
            seen_live_number=view.live_number,
            due_at=moments.coming(options["at"], zone=ZoneInfo(settings.ORG_TIME_ZONE), now=now),
            zone=settings.ORG_TIME_ZONE,
            by=by,
            reason=options["reason"],
            now=now,
        )
        self.say(f"{sheet.slug} is scheduled for {explaining.when(row.due_at)} ({row.zone}).")
        return 0
