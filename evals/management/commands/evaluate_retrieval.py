"""Measure what the search finds for the questions of a set."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from evals import measuring, question_sets
from evals.models import QuestionSet, RetrievalReport
from factsheets import canonical, history
from factsheets.bot import baselines
from factsheets.commands import (
    SheetCommand,
    UsageRefused,
    import_account,
    person_named,
    sheet_named,
)
from factsheets.models import Publication, Sheet
from factsheets.publishing import NoSuchPublication

ALL = "all"


class Command(SheetCommand):
    help = (
        "Put every question of a set to the search on a sheet's draft, or on a publication, and "
        "say what came out. The first run freezes the set; every run is kept."
    )
    example = (
        "python manage.py evaluate_retrieval colchester-castle --questions colchester-castle-frozen"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--questions", required=True, metavar="SET", help="the question set")
        parser.add_argument("--publication", type=int, metavar="N", help="instead of the draft")
        parser.add_argument(
            "--part",
            choices=[measuring.DEV, measuring.HELD_BACK, ALL],
            default=ALL,
            help="which part to print (both are measured; default: both, apart)",
        )
        parser.add_argument(
            "--rule", choices=list(baselines.RULES), default="ours", help="the grounding rule"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument(
            "--by", metavar="USER", help="who measures (default: the import account)"
        )

    def act(self, **options: Any) -> int:
        sheet = sheet_named(options["slug"])
        chosen = set_named(sheet, options["questions"])
        by = (
            person_named(options["by"], "evals.start_run", on=sheet)
            if options["by"] is not None
            else import_account()
        )
        publication = _numbered(sheet, options["publication"])
        report = question_sets.run(
            chosen,
            publication,
            rule=baselines.RULES[options["rule"]],
            by=by,
            now=timezone.now(),
        )
        content = (
            history.candidate_of(publication) if publication else history.candidate_now(sheet)
        ).content
        quoted = question_sets.quoted(chosen, content)
        parts = [
            part for part in report.figures if options["part"] in (ALL, part)
        ]  # In the order of measuring.
        if not parts:
            raise UsageRefused(f"{chosen.slug} has no question in the part {options['part']!r}.")
        if options["json"]:
            self.say(json.dumps(_as_json(report, parts, quoted), ensure_ascii=False, indent=2))
        else:
            self._tell(report, parts, quoted)
        return 0

    def _tell(
        self, report: RetrievalReport, parts: list[str], quoted: list[question_sets.Quoted]
    ) -> None:
        how = report.configuration
        self.say(
            f"{report.question_set.slug} on {report.subject} of {report.sheet.slug}; "
            f"rule {how['rule']} at {how['threshold']:g}; frozen as {report.frozen_hash[:12]}."
        )
        for part in parts:
            self.say(f"\n{part:<24} {'value':>7}  {'95 % interval':<17} questions")
            for name, figure in report.figures[part]["figures"].items():
                if figure is None:
                    continue
                value = f"{figure['value']:7.3f}  {figure['low']:.3f} to {figure['high']:.3f}"
                self.say(f"{measuring.NAMES[name]:<24} {value:<26} {figure['of']}")
        misses = [miss for miss in report.misses if miss["part"] in parts]
        self.say(f"\n{len(misses)} {'miss' if len(misses) == 1 else 'misses'}.")
        for miss in misses:
            self.say(f"{miss['key']}: {_why(miss)}")
        for each in quoted:
            self.say(f"warning: section {each.section} quotes question {each.question}.")


def _why(miss: dict[str, Any]) -> str:
    said = "; ".join(measuring.KINDS[kind] for kind in miss["kinds"])
    right = miss["right"]
    above = ", ".join(
        f"{place['section'] or 'summary'} {place['score']:.2f} "
        f"({' '.join(t['term'].replace(' ', '+') for t in place['terms'])})"
        for place in miss["above"]
    )
    stands = f" The right one: rank {miss['rank']}, {right['score']:.2f}." if right else ""
    return f"{said}.{f' Above: {above}.' if above else ''}{stands}"


def _as_json(
    report: RetrievalReport, parts: list[str], quoted: list[question_sets.Quoted]
) -> dict[str, object]:
    return {
        "report": report.pk,
        "sheet": report.sheet.slug,
        "question_set": report.question_set.slug,
        "frozen_hash": report.frozen_hash,
        "publication": report.publication.number if report.publication else None,
        "content_hash": report.content_hash,
        "configuration": report.configuration,
        "ran_at": canonical.instant(report.ran_at),
        "parts": {part: report.figures[part] for part in parts},
        "misses": [miss for miss in report.misses if miss["part"] in parts],
        "quoted": [{"section": q.section, "question": q.question} for q in quoted],
    }


def set_named(sheet: Sheet, slug: str) -> QuestionSet:
    sets = QuestionSet.objects.present().filter(sheet=sheet).select_related("sheet__bot")
    found = sets.filter(slug=slug).first()
    if found is None:
        names = ", ".join(sets.order_by("slug").values_list("slug", flat=True))
        raise UsageRefused(
            f"{sheet.slug} has no question set {slug!r}; there are: {names or 'none yet'}."
        )
    return found


def _numbered(sheet: Sheet, number: int | None) -> Publication | None:
    if number is None:
        return None
    found = sheet.publications.select_related("sheet__bot").filter(number=number).first()
    if found is None:
        raise NoSuchPublication(f"{sheet.slug} has no publication {number}; look at the list.")
    return found
