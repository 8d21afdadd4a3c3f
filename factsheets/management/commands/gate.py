"""Say whether a sheet's gate is open, and every reason why not."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from factsheets import publishing
from factsheets.commands import SheetCommand, sheet_named


class Command(SheetCommand):
    help = "Print what stands in the way of publishing: `code: sentence`, blocks first."
    example = "python manage.py gate colchester-castle --json"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--json", action="store_true", help="as JSON, for programs")

    def act(self, **options: Any) -> int:
        sheet = sheet_named(options["slug"])
        view = publishing.look(sheet, now=timezone.now())
        if options["json"]:
            self.say(
                json.dumps(
                    {
                        "sheet": sheet.slug,
                        "open": view.report.is_open,
                        "live": view.live_number,
                        "subject": {
                            "content_hash": view.candidate.subject.content_hash,
                            "rules_hash": view.candidate.subject.rules_hash,
                            "bot_hash": view.candidate.subject.bot_hash,
                        },
                        "findings": [asdict(finding) for finding in view.report.findings],
                    },
                    ensure_ascii=False,
                    indent=2,
                )
            )
        else:
            self.say("open" if view.report.is_open else "closed")
            for finding in view.report.findings:
                self.say(f"{finding.code}: {finding.sentence}")
        return 0 if view.report.is_open else 1
