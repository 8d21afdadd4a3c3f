"""Say which sections want checking, why, and who sees to them."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from factsheets import stale_report, stale_report_files
from factsheets.commands import SheetCommand, UsageRefused, sheet_named
from factsheets.models import Sheet
from factsheets.stale_report import Filter, Row


class Command(SheetCommand):
    help = "Print the sections that want checking, the most pressing first, with their reasons."
    example = "python manage.py stale_report --format csv > stale.csv"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--format", choices=["table", "csv", "json"], default="table")
        parser.add_argument("--on", metavar="DAY", help="the day to judge by (default: today)")
        parser.add_argument("--sheet", default="", metavar="SLUG", help="one sheet alone")
        parser.add_argument(
            "--state", default="", help="one state alone, or `all` for fresh sections too"
        )

    def act(self, **options: Any) -> int:
        today = _day(options["on"])
        if options["sheet"]:
            sheet_named(options["sheet"])
        wanted = Filter(state=options["state"], sheet=options["sheet"])
        if not wanted.is_known:
            raise UsageRefused(
                f"There is no state {options['state']!r}; there are: "
                f"{', '.join(stale_report.CHOICES)}."
            )
        every = stale_report.rows(Sheet.objects.present(), today=today)
        rows = [row for row in every if wanted.takes(row)]
        match options["format"]:
            case "csv":
                self.stdout.write(stale_report_files.as_csv(rows), ending="")
            case "json":
                self.say(stale_report_files.as_json(rows, today=today))
            case _:
                self._table(rows, today, len(every))
        return 0

    def _table(self, rows: list[Row], today: date, total: int) -> None:
        for row in rows:
            owner = row.owner or "nobody"
            self.say(f"{row.state:<19} {row.sheet}/{row.section}  ({owner})")
            for reason in row.reasons:
                self.say(f"{'':<19} {reason.sentence}")
        self.say(f"{today}: {len(rows)} of {total} sections.")


def _day(text: str | None) -> date:
    try:
        return date.fromisoformat(text) if text else timezone.localdate()
    except ValueError as error:
        raise UsageRefused(f"{text!r} is no day; write it as 2027-06-01.") from error
