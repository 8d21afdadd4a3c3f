"""State for tests, built with plain functions through the product's own writers."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, User

from evals import attempts, exchange, runs
from evals.models import Probe, Question, QuestionSet, Run, Suite, SuiteRequirement
from factsheets import checking, editing, publishing, scheduling
from factsheets.models import (
    Citation,
    Publication,
    Rule,
    Schedule,
    Section,
    Sheet,
    Source,
)
from factsheets.models.tracking import change_set

NOON = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
LATER = datetime(2026, 6, 2, 12, 0, tzinfo=UTC)
TODAY = date(2026, 6, 1)

#: After every check that the demo sheets state.
DEMO_DAY = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)

DEMO = Path(__file__).resolve().parent.parent / "factsheets" / "data" / "demo"


def person(name: str = "anna", *roles: str, superuser: bool = False) -> User:
    """A user in the roles named."""
    user, _ = User.objects.get_or_create(
        username=name, defaults={"is_staff": True, "is_superuser": superuser}
    )
    user.groups.set(Group.objects.filter(name__in=roles))
    return user


def sheet(slug: str = "castle", *, by: User | None = None, **values: Any) -> Sheet:
    """A sheet with nothing on it."""
    return editing.create_sheet(
        slug=slug,
        title=values.pop("title", "The castle"),
        by=by or person(),
        reason="made for a test",
        now=NOON,
        **values,
    )


def section(
    of: Sheet,
    key: str = "hours",
    *,
    by: User | None = None,
    source: Source | None = None,
    **values: Any,
) -> Section:
    """A section that answers when the castle opens, with one source unless told otherwise."""
    row = Section(
        sheet=of,
        key=key,
        heading=values.pop("heading", "Opening hours"),
        question=values.pop("question", "When is the castle open?"),
        body=values.pop("body", "The castle opens at ten in the morning and closes at five."),
        position=values.pop("position", editing.next_position(Section.objects.filter(sheet=of))),
        **values,
    )
    save(row, by=by)
    if source is not None:
        save(Citation(section=row, source=source, locator="page 1", claims="hours"), by=by)
    return row


def source(key: str = "leaflet", *, by: User | None = None, **values: Any) -> Source:
    """A work to cite."""
    row = Source(
        key=key,
        kind=values.pop("kind", Source.Kind.OWN_POLICY),
        title=values.pop("title", "The leaflet"),
        **values,
    )
    save(row, by=by)
    return row


def rule(of: Sheet, key: str = "sheet-only", *, by: User | None = None, **values: Any) -> Rule:
    """A rule of the sheet's own set."""
    ruleset = editing.own_ruleset(of, by=by or person(), reason="for a test", now=NOON)
    row = Rule(
        ruleset=ruleset,
        key=key,
        kind=values.pop("kind", Rule.Kind.REFUSAL),
        text=values.pop("text", "Answer only from the sheet."),
        position=values.pop("position", editing.next_position(ruleset.rules.all())),
        **values,
    )
    save(row, by=by)
    return row


def suite(
    of: Sheet, slug: str = "safety", *, required: bool = True, by: User | None = None, **values: Any
) -> Suite:
    """A suite without probes, required by the sheet unless told otherwise."""
    row = Suite(slug=slug, title=values.pop("title", "Safety"), sheet=of, **values)
    save(row, by=by)
    if required:
        save(SuiteRequirement(sheet=of, suite=row), by=by)
    return row


def probe(of: Suite, key: str = "asks-hours", *, by: User | None = None, **values: Any) -> Probe:
    """A probe that the offline bot passes on the section above."""
    row = Probe(
        suite=of,
        key=key,
        category=values.pop("category", "control"),
        turns=values.pop("turns", ["When does the castle open in the morning?"]),
        must=values.pop("must", Probe.Must.ANSWER),
        checks=values.pop("checks", [{"type": "contains-any", "values": ["ten"], "match": "word"}]),
        position=values.pop("position", editing.next_position(Probe.objects.filter(suite=of))),
        **values,
    )
    save(row, by=by)
    return row


def question_set(of: Sheet, slug: str = "visitors", *, by: User | None = None) -> QuestionSet:
    """A set with one question that the section above answers, and one that it does not."""
    row = QuestionSet(slug=slug, title="What visitors ask", sheet=of)
    save(row, by=by)
    question(row, by=by)
    question(row, "opera", question="Who wrote this opera?", sections=[], scope="out", trap="plain")
    return row


def question(
    of: QuestionSet, key: str = "closing", *, by: User | None = None, **values: Any
) -> Question:
    """A question that the section above answers."""
    row = Question(
        question_set=of,
        key=key,
        question=values.pop("question", "Does it close at five?"),
        scope=values.pop("scope", "in"),
        sections=values.pop("sections", ["hours"]),
        position=values.pop(
            "position", editing.next_position(Question.objects.filter(question_set=of))
        ),
        **values,
    )
    save(row, by=by)
    return row


def save(row: Any, *, by: User | None = None, now: datetime = NOON) -> None:
    """Save a tracked row in a change set of its own."""
    with change_set(by=by or person(), reason="for a test", now=now):
        row.save()


def ready_sheet(slug: str = "castle") -> Sheet:
    """A sheet whose gate only waits for its probes: one section, source, check, rule and probe."""
    of = sheet(slug)
    row = section(of, source=source(f"{slug}-leaflet"))
    checking.record_imported(
        section=row, citations=row.citations.all(), checked_on=TODAY, by=person(), now=NOON
    )
    rule(of)
    probe(suite(of, f"{slug}-safety"))
    return of


def passing_run(of: Sheet, *, now: datetime = NOON, **how: Any) -> Run:
    """A run carried out here, by the sheet's own bot. It passes if the sheet deserves it."""
    run = runs.start(sheet_id=of.pk, by=person(), now=now, **how)
    return carry_out(run, now=now)


def carry_out(run: Run, *, now: datetime = NOON) -> Run:
    """Do what workers would, until the run is closed."""
    while sent := runs.advance(run.id, now=now):
        for attempt_id in sent:
            attempts.perform(attempt_id, clock=lambda: now)
    run.refresh_from_db()
    return run


def publish(of: Sheet, *, by: User | None = None, now: datetime = NOON) -> Publication:
    """Publish the draft as it stands. Refused like any other if the gate is closed."""
    fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=of.pk)
    view = publishing.look(fresh, now=now)
    return publishing.publish(
        sheet_id=of.pk,
        seen=view.candidate.subject,
        seen_live_number=view.live_number,
        by=by or person(),
        reason="for a test",
        now=now,
    )


def schedule(of: Sheet, *, due_at: datetime = LATER, by: User | None = None) -> Schedule:
    """Schedule the draft as it stands. Refused like any publication if the gate is closed."""
    fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=of.pk)
    view = publishing.look(fresh, now=NOON)
    return scheduling.schedule(
        sheet_id=of.pk,
        seen=view.candidate.subject,
        seen_live_number=view.live_number,
        due_at=due_at,
        zone="Europe/London",
        by=by or person("paula", "publisher"),
        reason="for a test",
        now=NOON,
    )


def published_sheet(slug: str = "castle") -> Sheet:
    """A sheet with publication 1 live."""
    of = ready_sheet(slug)
    passing_run(of)
    publish(of)
    return Sheet.objects.select_related("bot", "state__live_publication").get(pk=of.pk)


def demo(name: str, *, by: User | None = None) -> Sheet:
    """One of the demo sheets, imported: "castle" or "cafe"."""
    folder = exchange.read_folder(DEMO / name)
    exchange.import_folder(folder, by=by or person(), reason="demo", now=DEMO_DAY)
    return Sheet.objects.select_related("bot", "state__live_publication").get(slug=folder.slug)
