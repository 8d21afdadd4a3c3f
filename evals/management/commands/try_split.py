"""Put a question set to a sheet's bot inline and split."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from evals import trials
from evals.management.commands.evaluate_retrieval import set_named
from evals.models import Trial
from evals.trial_pages import FIGURES
from factsheets.commands import (
    SheetCommand,
    import_account,
    person_named,
    sheet_named,
)

WORTH_IT, NOT_WORTH_IT, STOPPED = 0, 1, 4


class Command(SheetCommand):
    help = (
        "Put every question of a set to a sheet's bot twice, inline and split, and say whether the "
        "split is worth it. Needs no broker. The set is frozen; the trial is kept."
    )
    example = "python manage.py try_split colchester-castle --questions colchester-castle-frozen"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--questions", required=True, metavar="SET", help="the question set")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--by", metavar="USER", help="who tries (default: the import account)")

    def act(self, **options: Any) -> int:
        sheet = sheet_named(options["slug"])
        by = (
            person_named(options["by"], "evals.start_run", on=sheet)
            if options["by"] is not None
            else import_account()
        )
        trial = trials.start(set_named(sheet, options["questions"]), by=by, now=timezone.now())
        trials.work(trial.pk, clock=timezone.now)
        trial.refresh_from_db()
        if trial.state == Trial.State.OPEN:
            self.say(
                "The model service does not answer just now; the workers go on with the trial."
            )
            return STOPPED
        if options["json"]:
            self.say(json.dumps(_as_json(trial), ensure_ascii=False, indent=2))
        else:
            self._table(trial)
        if trial.state == Trial.State.STOPPED or trial.is_worth_it is None:
            return STOPPED
        return WORTH_IT if trial.is_worth_it else NOT_WORTH_IT

    def _table(self, trial: Trial) -> None:
        if trial.figures is not None:
            self.say(f"{'':<52} {'inline':>8} {'split':>8}")
            for key, name, is_share in FIGURES:
                shown = [_cell(trial.figures[d][key], is_share) for d in ("inline", "split")]
                self.say(f"{name:<52} {shown[0]:>8} {shown[1]:>8}")
            for key in trial.figures["compared"]["lost"]:
                self.say(f"lost    {key}")
            for key in trial.figures["compared"]["gained"]:
                self.say(f"gained  {key}")
        self.say(trial.sentence)


def _cell(value: Any, is_share: bool) -> str:
    if value is None:
        return "-"
    return f"{value['value']:.1%}" if is_share else f"{value:,}"


def _as_json(trial: Trial) -> dict[str, object]:
    return {
        "sheet": trial.sheet.slug,
        "questions": trial.question_set.slug,
        "bot": trial.bot["slug"],
        "state": trial.state,
        "is_worth_it": trial.is_worth_it,
        "sentence": trial.sentence,
        "figures": trial.figures,
    }
