"""Run a sheet's probes, on the workers or in this process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser
from django.utils import timezone

from evals import attempts, junit, runs, tasks
from evals.models import Attempt, Run
from factsheets.commands import (
    ERROR,
    SheetCommand,
    UsageRefused,
    import_account,
    person_named,
    sheet_named,
)

#: Exit codes by outcome. Cancelled is no verdict, as incomplete is none.
EXIT = {"passed": 0, "failed": 1, "incomplete": 2, "cancelled": 2, "stopped": 4}
NOTHING_RAN = 3

#: Seconds between two looks at a run that workers carry out.
LOOK_EVERY = 0.5

#: Seconds without progress after which somebody should look at the worker.
STANDS_STILL = 30.0


class Command(SheetCommand):
    help = "Run the probes that a sheet requires on its draft, or on one of its publications."
    example = "python manage.py run_probes colchester-castle --wait"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the sheet")
        parser.add_argument("--publication", type=int, metavar="N", help="instead of the draft")
        parser.add_argument("--suite", metavar="S", help="one suite alone, to look at")
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--wait", action="store_true", help="wait for the workers")
        how.add_argument("--local", action="store_true", help="run here, without broker or workers")
        parser.add_argument("--junit", type=Path, metavar="F", help="write a JUnit report")
        parser.add_argument(
            "--by", metavar="USER", help="who starts it (default: the import account)"
        )

    def act(self, **options: Any) -> int:
        if options["junit"] and not (options["wait"] or options["local"]):
            raise UsageRefused("--junit needs the outcome; add --wait or --local.")
        if options["junit"] and not options["junit"].resolve().parent.is_dir():
            raise UsageRefused(f"{options['junit']} cannot be written: its folder is not there.")
        sheet = sheet_named(options["slug"])
        by = (
            person_named(options["by"], "evals.start_run", on=sheet)
            if options["by"] is not None
            else import_account()
        )
        try:
            run = runs.start(
                sheet_id=sheet.pk,
                by=by,
                now=timezone.now(),
                publication_number=options["publication"],
                suite_slug=options["suite"],
            )
        except runs.NothingToRun as refused:
            return self.complain(refused.sentence, NOTHING_RAN)
        if options["local"]:
            try:
                self._here(run.id)
            except KeyboardInterrupt:
                runs.cancel(run.id)
                runs.advance(run.id, now=timezone.now())
                return self.complain("Interrupted; what was left of the run is cancelled.", ERROR)
        elif not tasks.dispatch(run.id):
            self.stderr.write("The broker is out of reach; the run goes on once it is back.")
        if not (options["wait"] or options["local"]):
            self.say(f"Run {run.id} is queued: {run.planned} attempts.")
            return 0
        if options["wait"]:
            self._watch(run.id)
        run.refresh_from_db()
        self._report(run)
        if options["junit"]:
            try:
                options["junit"].write_bytes(junit.report(run))
            except OSError as error:
                return self.complain(
                    f"{options['junit']} cannot be written: {error.strerror}.", ERROR
                )
        return EXIT[run.outcome]

    def _here(self, run_id: UUID) -> None:
        """The work of broker, worker and tick, one attempt after the other."""
        while Run.objects.filter(pk=run_id, state=Run.State.RUNNING).exists():
            sent = runs.advance(run_id, now=timezone.now())
            for attempt_id in sent:
                attempts.perform(attempt_id, clock=timezone.now)
            if not sent and Run.objects.filter(pk=run_id, state=Run.State.RUNNING).exists():
                # Something waits for its back-off to pass.
                time.sleep(LOOK_EVERY)

    def _watch(self, run_id: UUID) -> None:
        """Show progress until the run is closed. Interrupting leaves the run going."""
        shown, moved, warned = "", time.monotonic(), False
        while True:
            run = Run.objects.only("state", "planned").get(pk=run_id)
            done = run.attempts.filter(state=Attempt.State.DONE).count()
            text = f"{done} of {run.planned}"
            if text != shown:
                filled = round(20 * done / run.planned)
                self.stdout.write(f"\r[{'#' * filled}{'.' * (20 - filled)}] {text}", ending="")
                self.stdout.flush()
                shown, moved = text, time.monotonic()
            elif time.monotonic() - moved > STANDS_STILL and not warned:
                self.stderr.write(
                    f"\nNothing has moved for {STANDS_STILL:.0f} seconds; see whether a worker runs. "
                    "Interrupting leaves the run going."
                )
                warned = True
            if run.state == Run.State.CLOSED:
                self.say("")
                return
            time.sleep(LOOK_EVERY)

    def _report(self, run: Run) -> None:
        outcomes = run.counts["outcomes"]
        counted = ", ".join(
            f"{count} {name}" for name, count in sorted(outcomes.items()) if name != "planned"
        )
        self.say(f"{run.outcome}: {run.planned} planned, {counted}.")
        if run.left_out:
            self.say(
                f"{len(run.left_out)} left out, for they need a model: {', '.join(run.left_out)}."
            )
        if run.is_offline:
            self.say("The offline bot does not read the rules; this run does not test them.")
        if run.stop_reason:
            self.say(f"Stopped: {run.stop_reason}")
        for attempt in run.attempts.exclude(outcome=Attempt.Outcome.PASS).prefetch_related(
            "verdicts"
        ):
            reasons = [v.reason for v in attempt.verdicts.all() if v.outcome != "pass"]
            self.say(
                f"{attempt.outcome or attempt.state} {attempt.probe}: "
                f"{' '.join(reasons) or attempt.error or 'not asked'}"
            )
