"""Say whether a sheet's gate is open, and every reason why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from factsheets import canonical, explaining, publishing
from factsheets.changes import Changed
from factsheets.commands import SheetCommand, person_named, sheet_named
from factsheets.explaining import Explained


class Command(SheetCommand):
    help = (
        "Print what stands in the way of publishing: `code: sentence`, blocks first, each with what "
        "opens the gate, since when and by whose change."
    )
    example = "python manage.py gate colchester-castle --json"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--json", action="store_true", help="as JSON, for programs")
        parser.add_argument(
            "--by", metavar="USER", help="who would publish (matters where four eyes are asked for)"
        )

    def act(self, **options: Any) -> int:
        sheet = sheet_named(options["slug"])
        by = (
            person_named(options["by"], "factsheets.publish_sheet", on=sheet)
            if options["by"] is not None
            else None
        )
        view = publishing.look(sheet, now=timezone.now(), by=by)
        last = publishing.last_publication(sheet)
        explanation = explaining.explain(sheet, view.report, view.evidence, last)
        if options["json"]:
            self.say(
                json.dumps(
                    {
                        "sheet": sheet.slug,
                        "open": view.report.is_open,
                        "closed_since": _iso(explanation.since),
                        "closed_by": explanation.closed_by,
                        "live": view.live_number,
                        "alarm": view.evidence.alarm and view.evidence.alarm.sentence,
                        "subject": {
                            "content_hash": view.candidate.subject.content_hash,
                            "rules_hash": view.candidate.subject.rules_hash,
                            "bot_hash": view.candidate.subject.bot_hash,
                        },
                        "findings": [_finding(each) for each in explanation.findings],
                        "changed_since_publication": {
                            "publication": last and last.number,
                            "changes": [_change(each) for each in explanation.changed],
                        },
                    },
                    ensure_ascii=False,
                    indent=2,
                )
            )
        else:
            self.say("open" if view.report.is_open else "closed")
            if view.evidence.alarm:
                self.say(f"alarm: {view.evidence.alarm.sentence}")
            for each in explanation.findings:
                self.say(f"{each.finding.code}: {each.finding.sentence}")
                for line in _about(each):
                    self.say(f"  {line}")
        return 0 if view.report.is_open else 1


def _about(each: Explained) -> Iterator[str]:
    if each.opens:
        yield f"{'opens' if each.finding.level == 'block' else 'clears'}: {each.opens}"
    if each.since:
        yield f"since: {each.since_words}"
    for change in each.changes:
        reason = f" ({change.reason})" if change.reason else ""
        yield f"by: {change.by}{reason}: {', '.join(map(str, change.changes))}"
    yield f"read: {each.page}"


def _finding(each: Explained) -> dict[str, Any]:
    finding = each.finding
    return {
        "code": finding.code,
        "level": finding.level,
        "sentence": finding.sentence,
        "opens": each.opens,
        "since": _iso(each.since),
        "by": each.by,
        "changes": [_change(change) for change in each.changes],
        "place": finding.place,
        "key": finding.key,
        "page": each.page,
    }


def _change(change: Changed) -> dict[str, Any]:
    return {
        "at": canonical.instant(change.at),
        "by": change.by,
        "reason": change.reason,
        "what": [str(what) for what in change.changes],
    }


def _iso(moment: date | datetime | None) -> str | None:
    """A day as a day, an instant in UTC."""
    if isinstance(moment, datetime):
        return canonical.instant(moment)
    return moment.isoformat() if moment else None
