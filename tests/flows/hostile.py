"""A sheet on which every text that there is was written by somebody who means harm.

Which texts there are is asked of the models, so that a field added later is
written too, or missed by its name. `write` runs inside the product, on its
database: through the product's writers, and past them for what no person writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.validators import MaxLengthValidator, ProhibitNullCharactersValidator
from django.db import transaction
from django.db.models import CharField, Field, JSONField, Model, TextField
from django.utils import timezone

from evals import question_sets, runs, trials
from evals.models import (
    Question,
    QuestionSet,
    Run,
    Spend,
    TrialAnswer,
    Turn,
    Verdict,
)
from factsheets import checking, editing, publishing, scheduling, sizes
from factsheets.models import (
    ApiKey,
    Heartbeat,
    Member,
    Outbox,
    ReviewInterval,
    ReviewPlan,
    Schedule,
    Sheet,
    Source,
    TokenCount,
    TrackedModel,
    UseLog,
    UseRecord,
)
from tests import factories

#: Each would set `window.hit` where text is taken for markup or for an expression.
TRAPS = (
    "<script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    '<b x-data="{a: window.hit=1}" x-init="window.hit=1"></b>',
    '<b hx-on:click="window.hit=1" hx-get="/healthz" hx-trigger="load" hx-on::load="window.hit=1">',
    "'+(window.hit=1)+'${window.hit=1}",
    "{{ 7777*7777 }}{% debug %}",
    "</textarea></script><svg onload=window.hit=1>",
)
#: For a text with room for little.
SMALL_TRAP = "<a onclick=hit=1>"
#: What the template tags among the traps come to.
WORKED_OUT = "60481729"

#: Texts that the product copies from another.
COPIED = {
    "Check.checked_by_name": "ChangeSet.by_name",
    "Publication.published_by_name": "ChangeSet.by_name",
    "PublicationEvent.by_name": "ChangeSet.by_name",
    "PublicationEvent.reason": "Publication.reason",
    "Run.started_by_name": "ChangeSet.by_name",
    "Run.plan": "Probe.turns",
    "Run.rules_text": "Rule.text",
    "Schedule.scheduled_by_name": "ChangeSet.by_name",
    "RetrievalReport.misses": "Question.question",
    "Trial.rules_text": "Rule.text",
}
#: Texts that no trap can be in, and why. All that end in `_hash` are digits of a hash.
NO_TRAP_FITS = {
    "PublicationEvent.seal": "digits of a hash",
    "Publication.format": "the number of a format",
    "Publication.slug": "the sheet's slug, which is validated",
    "GatePolicy.blocking_warnings": "codes of warnings, which are validated",
    "Schedule.zone": "the name of a time zone, from the settings",
    "Attempt.severity": "one of two words",
    "Run.counts": "numbers",
    "ApiKey.prefix": "digits of our own making",
    "ApiKey.scopes": "names of scopes, which are validated",
    "UseLog.sha256": "digits of a hash",
    "RetrievalReport.figures": "numbers",
    "Trial.figures": "numbers",
    "TrialAnswer.delivery": "one of two words",
}

PASSWORD = "correct-horse-battery-staple"
OWNER = "root"


def texts() -> dict[str, tuple[type[Model], Field[Any, Any]]]:
    """Every field of both apps that holds free text, by model and name."""
    found: dict[str, tuple[type[Model], Field[Any, Any]]] = {}
    for app in ("factsheets", "evals"):
        for model in apps.get_app_config(app).get_models():
            for column in model._meta.concrete_fields:
                name = f"{model.__name__}.{column.name}"
                if _is_free(column) and not hasattr(model, "history_id"):
                    found[name] = model, column
    return {name: found[name] for name in found if name not in NO_TRAP_FITS}


def _is_free(column: Field[Any, Any]) -> bool:
    if not isinstance(column, CharField | TextField | JSONField):
        return False
    if column.choices or column.name.endswith("_hash"):
        return False
    lax = (MaxLengthValidator, ProhibitNullCharactersValidator)
    # An address may hold anything but a blank after its host.
    return column.name == "url" or all(isinstance(each, lax) for each in column.validators)


def trap(name: str) -> str:
    """The text of a field: a number of its own, and as many traps as it has room for."""
    name = COPIED.get(name, name)
    number = list(texts()).index(name)
    _, column = texts()[name]
    if column.name == "url":
        return f"https://example.org/{number}{TRAPS[0]}{TRAPS[4]}"
    room = getattr(column, "max_length", None) or 10_000
    said = f"{number}."
    for turn in range(len(TRAPS)):
        more = f"{said} {TRAPS[(number + turn) % len(TRAPS)]}"
        said = more if len(more) <= room else said
    return said if said != f"{number}." else f"{number}{SMALL_TRAP}"


def unwritten() -> list[str]:
    """Texts that no row of the database has with its trap."""
    return [name for name in texts() if not any(_has(name, value) for value in _values(name))]


def _values(name: str) -> Iterator[object]:
    model, column = texts()[name]
    return model._default_manager.values_list(column.name, flat=True).iterator()


def _has(name: str, value: object) -> bool:
    return trap(name) in (value if isinstance(value, str) else " ".join(_strings(value)))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def write() -> None:
    """Make the sheet, and print the key of a row of every kind, and what was left unwritten."""
    # In one go: the worker takes no part in runs that stand half written.
    with transaction.atomic():
        rows = _write()
    print(json.dumps({**rows, "unwritten": unwritten()}))


def _write() -> dict[str, Any]:
    by = factories.person(trap("ChangeSet.by_name"))
    by.first_name, by.last_name = TRAPS[0], TRAPS[1]
    by.save()
    Group.objects.create(name=TRAPS[1])
    User.objects.create_superuser(OWNER, f"{OWNER}@example.org", PASSWORD)
    sheet = _a_row_of_every_kind(by)
    for model in apps.get_models():
        if issubclass(model, TrackedModel):
            for row in model._default_manager.all():
                _spoil(row, by)
    now = timezone.now()
    section = sheet.sections.get()
    checking.record(
        section=section,
        seen=checking.seen_now(section),
        checked_on=timezone.localdate(),
        outcome="confirmed",
        method="read-online",
        items={each.pk: "supports" for each in checking.present_citations(section)},
        by=by,
        now=now,
        note=trap("Check.note"),
    )
    factories.passing_run(sheet, now=now)
    _publish(sheet, by)
    _broken_run(sheet, by)
    _measured(sheet, by)
    _used(sheet, by)
    Heartbeat.objects.create(name=trap("Heartbeat.name"), at=now)
    Outbox.objects.create(
        topic=trap("Outbox.topic"),
        sheet=sheet,
        payload={"said": trap("Outbox.payload")},
        created_at=now,
    )
    return _keys(sheet, by)


def _a_row_of_every_kind(by: User) -> Sheet:
    sheet = factories.ready_sheet()
    questions = QuestionSet(slug="questions", title="Questions", sheet=sheet)
    factories.save(questions, by=by)
    factories.save(Question(question_set=questions, key="one", question="When?", scope="out"))
    factories.save(Member(sheet=sheet, user=by, role=Member.Role.VIEWER), by=by)
    factories.save(ReviewPlan(sheet=sheet, owner=by, interval="6 months"), by=by)
    factories.save(ReviewInterval(kind=Source.Kind.NEWS, interval="1 month"), by=by)
    factories.passing_run(sheet)
    factories.publish(sheet)
    return sheet


def _spoil(row: TrackedModel, by: User) -> None:
    """Add its trap to every text of a row."""
    name = type(row).__name__
    values: dict[str, Any] = {}
    for column in row._meta.concrete_fields:
        if f"{name}.{column.name}" in texts():
            before, more = getattr(row, column.attname), trap(f"{name}.{column.name}")
            values[column.name] = _with(column, before, more)
    if name == "Probe":
        (check,) = row.checks  # type: ignore[attr-defined]
        values["checks"] = [{**check, "values": [*check["values"], trap("Probe.checks")]}]
        # The last reply is the one that is graded.
        values["turns"] = [trap("Probe.turns"), *row.turns]  # type: ignore[attr-defined]
    if name == "Question":
        values["scope"] = "in"
        values["facts"] = [[trap("Question.facts")]]
    reason = trap("ChangeSet.reason")
    editing.change(row, by=by, reason=reason, now=timezone.now(), **values)


def _with(column: Field[Any, Any], before: Any, more: str) -> Any:
    if isinstance(column, JSONField):
        return [*before, more]
    both = f"{before} {more}".strip()
    return more if column.name == "url" or len(both) > (column.max_length or 10_000) else both


def _broken_run(sheet: Sheet, by: User) -> None:
    """A run of which the service said what it liked, and which it stopped."""
    now = timezone.now()
    run = runs.start(sheet_id=sheet.pk, by=by, now=now)
    names = ("suite", "probe", "category", "error_type", "error")
    run.attempts.update(
        **{each: trap(f"Attempt.{each}") for each in names}, state="done", outcome="error"
    )
    attempt = run.attempts.get()
    Turn.objects.create(
        attempt=attempt,
        index=0,
        latency_ms=1,
        sections=[trap("Turn.sections")],
        usage={"note": trap("Turn.usage")},
        **{
            each: trap(f"Turn.{each}")
            for each in ("sent", "received", "stop_reason", "model", "request_id")
        },
    )
    Verdict.objects.create(
        attempt=attempt,
        position=0,
        grader_version=1,
        outcome="ungraded",
        **{each: trap(f"Verdict.{each}") for each in ("grader", "code", "reason")},
    )
    Spend.objects.create(
        run=run,
        attempt=attempt,
        try_number=1,
        turn_index=0,
        usage={"note": trap("Spend.usage")},
        started_at=now,
        **{each: trap(f"Spend.{each}") for each in ("provider", "model", "error_type")},
    )
    Run.objects.filter(pk=run.pk).update(
        state="closed", outcome="stopped", finished_at=now, stop_reason=trap("Run.stop_reason")
    )


def _measured(sheet: Sheet, by: User) -> None:
    """What was found with the questions, answered to them, and counted."""
    now = timezone.now()
    questions = QuestionSet.objects.get(sheet=sheet)
    report = question_sets.run(questions, by=by, now=now)
    report.pk = None
    report.ran_by_name = trap("RetrievalReport.ran_by_name")
    report.configuration = {
        **report.configuration,
        "rule": trap("RetrievalReport.configuration"),
    }
    report.save(force_insert=True)
    trial = trials.start(questions, by=by, now=now)
    trials.work(trial.pk, clock=timezone.now)
    trial.refresh_from_db()
    trial.pk = None
    trial.sentence = trap("Trial.sentence")
    trial.bot = {**trial.bot, "slug": trap("Trial.bot")}
    trial.save(force_insert=True)
    for delivery, values in {
        "inline": {
            "reply": trap("TrialAnswer.reply"),
            "sections": [trap("TrialAnswer.sections")],
            "usage": {"note": trap("TrialAnswer.usage")},
        },
        "split": {"error": trap("TrialAnswer.error")},
    }.items():
        TrialAnswer.objects.create(
            trial=trial, key="one", delivery=delivery, is_in_scope=True, at=now, **values
        )
    TokenCount.objects.create(
        text_hash="0" * 64, model=trap("TokenCount.model"), tokens=1, counted_at=now
    )
    report_of_size = sizes.record(sheet, now=now, by=by)
    report_of_size.pk = None
    report_of_size.advice = "split"
    report_of_size.sentence = trap("SizeReport.sentence")
    report_of_size.reasons = [trap("SizeReport.reasons")]
    report_of_size.figures = {**report_of_size.figures, "method": trap("SizeReport.figures")}
    report_of_size.save(force_insert=True)


def _used(sheet: Sheet, by: User) -> None:
    """A key, and an answer of a log whose texts are kept."""
    now = timezone.now()
    ApiKey.objects.create(
        sheet=sheet, name=trap("ApiKey.name"), prefix="0" * 8, created_at=now, created_by=by
    )
    log = UseLog.objects.create(
        sheet=sheet,
        sha256="0" * 64,
        uploaded_at=now,
        uploaded_by=by,
        rows=1,
        skipped=0,
        keeps_texts=True,
    )
    UseRecord.objects.create(
        sheet=sheet,
        log=log,
        origin="log",
        answered_at=now,
        corrected_at=now,
        corrected_by=by,
        support={trap("UseRecord.support"): 0.7},
        sections=[trap("UseRecord.sections")],
        tagged=[trap("UseRecord.tagged")],
        **{each: trap(f"UseRecord.{each}") for each in ("reference", "question", "reply")},
    )


def _publish(sheet: Sheet, by: User) -> None:
    """Publications and schedules, each with its reason; one schedule waits."""
    for field in ("Schedule.reason", "Publication.reason"):
        now = timezone.now()
        fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)
        view = publishing.look(fresh, now=now)
        seen: dict[str, Any] = {
            "sheet_id": sheet.pk,
            "seen": view.candidate.subject,
            "seen_live_number": view.live_number,
            "by": by,
            "reason": trap(field),
            "now": now,
        }
        if field.startswith("Schedule"):
            tomorrow = now + timedelta(days=1)
            row = scheduling.schedule(due_at=tomorrow, zone="Europe/London", **seen)
            Schedule.objects.filter(pk=row.pk).update(
                state="suspended", closed_at=now, closed_because=trap("Schedule.closed_because")
            )
        else:
            publishing.publish(**seen)


def _keys(sheet: Sheet, by: User) -> dict[str, Any]:
    """By model: the key of its newest row, and of that row's newest history entry if it has one."""
    found: dict[str, Any] = {}
    for model in apps.get_models():
        row = model._default_manager.order_by("pk").last()
        if row is not None:
            past = row.history.latest().pk if isinstance(row, TrackedModel) else None
            found[model.__name__] = [str(row.pk), past]
    run = Run.objects.get(outcome="stopped")
    return {
        **found,
        "Run": [str(run.pk), None],
        "Attempt": [str(run.attempts.get().pk), None],
        "User": [str(by.pk), None],
        "Group": [str(Group.objects.get(name=TRAPS[1]).pk), None],
    }
