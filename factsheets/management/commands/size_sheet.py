"""Say how large a sheet is, and whether it still fits."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from factsheets import sizes
from factsheets.commands import SheetCommand, sheet_named
from factsheets.sizes import Look


class Command(SheetCommand):
    help = "Count a sheet's tokens and say whether it stays inline or is better split."
    example = "python manage.py size_sheet colchester-castle"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet's name")
        parser.add_argument("--json", action="store_true", help="all figures as JSON")
        parser.add_argument(
            "--count",
            action="store_true",
            help="have the model service count first, where the sheet's bot has one",
        )
        parser.add_argument("--keep", action="store_true", help="keep the report with its date")

    def act(self, **options: Any) -> int:
        sheet, now = sheet_named(options["slug"]), timezone.now()
        if options["count"] and not sizes.have_counted(sheet, now=now):
            self.stderr.write("The model service did not count; these are offline counts.")
        seen = sizes.look(sheet, today=timezone.localdate(now))
        if options["keep"]:
            sizes.record(sheet, now=now)
        if options["json"]:
            self.say(json.dumps(_as_json(seen), ensure_ascii=False, indent=2))
        else:
            self._table(seen)
        return 0

    def _table(self, seen: Look) -> None:
        facts, preview = seen.facts, seen.preview
        self.say(seen.verdict.sentence)
        for reason in seen.verdict.reasons:
            self.say(f"  {reason[:1].upper()}{reason[1:]}")
        self.say(f"rules        {facts.rules.tokens:>8,} tokens, {facts.rules.in_words}")
        self.say(f"sheet        {facts.sheet.tokens:>8,} tokens, {facts.sheet.in_words}")
        self.say(f"usable       {facts.window:>8,} tokens of the window")
        self.say(f"ratio one    {facts.sheet_share:>8.1%} of the usable window")
        used = "not known" if facts.used_share is None else f"{facts.used_share:.0%}"
        self.say(
            f"ratio two    {used:>8}  ({facts.used} of {facts.sections} sections, "
            f"{facts.questions:,} questions)"
        )
        self.say(f"inline       {preview.mean_inline:>8,.0f} tokens a question")
        if preview.mean_split is not None and preview.saved is not None:
            self.say(
                f"split        {preview.mean_split:>8,.0f} tokens a question, {preview.saved:.0%} "
                f"less ({len(preview.payloads)} of {seen.asked})"
            )
        for remark in seen.remarks:
            self.say(f"rule         {remark.sentence}")


def _as_json(seen: Look) -> dict[str, object]:
    return {
        "sheet": seen.candidate.snapshot.slug,
        "advice": seen.verdict.advice,
        "sentence": seen.verdict.sentence,
        "reasons": list(seen.verdict.reasons),
        **sizes.figures(seen),
        "cost_inline": round(seen.inline.plain),
        "cost_inline_cached": round(seen.inline.cached),
        "cost_split": None if seen.split is None else round(seen.split.plain),
        "cost_split_cached": None if seen.split is None else round(seen.split.cached),
        "dormant": list(seen.preview.dormant),
        "rules": [remark.sentence for remark in seen.remarks],
        "remarks": [
            {"code": each.code, "section": each.section, "sentence": each.sentence}
            for each in seen.preview.remarks
        ],
    }
