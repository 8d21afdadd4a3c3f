"""Races for what bots get, on PostgreSQL: real transactions, many tries, and nothing wrong goes live.

In each try two people, workers or beats set out at once, each with a connection
of its own. Who is ahead is drawn from SEED: from the one well before the other,
over neck and neck, to the other well before the one. Nothing is asserted of
speed; what is asserted is that both came first at least once, and that after
every try the books agree.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection

from evals import alarms, attempts, renewal, runs, verification
from evals.models import Probe, Run, Suite, SuiteRequirement
from factsheets import canonical, editing, keys, publishing, scheduling, usage, use_logs
from factsheets.errors import Refused
from factsheets.models import (
    BotProfile,
    GatePolicy,
    Outbox,
    Publication,
    PublicationEvent,
    Rule,
    Schedule,
    Section,
    Sheet,
)
from factsheets.models.tracking import TrackedModel, change_set
from factsheets.publishing import ChangedMeanwhile, PublishRefused
from tests import factories
from tests.factories import LATER, NOON

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("quiet"),
    pytest.mark.skipif(
        connection.vendor != "postgresql",
        reason="SQLite lets one writer in at a time, so nothing races there",
    ),
]

SEED = 20260601
TRIES = 20

#: Seconds. The most that one side sets out before the other, several times as long as an act
#: takes, and the most that somebody thinks between looking and acting.
LEAD = 0.2
THOUGHT = 0.02

#: Seconds. No act takes a fraction of this; whoever does not end by then waits for ever.
PATIENCE = 30


# Two at once


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long the one and the other wait before they set out, and think after they looked."""

    one: float
    other: float
    thought: float


def _tries(race: str) -> Iterator[Pauses]:
    """The same for the same race, whichever other races run. Most of them are neck and neck."""
    chance = random.Random(f"{SEED} {race}")
    ahead = [2 * (n + chance.random()) / TRIES - 1 for n in range(TRIES)]
    chance.shuffle(ahead)
    for share in ahead:
        lead = LEAD * share**3
        yield Pauses(max(-lead, 0.0), max(lead, 0.0), chance.uniform(0, THOUGHT))


def _at_once(one: Callable[[], Any], other: Callable[[], Any], pauses: Pauses) -> tuple[Any, Any]:
    """What came back from both, a refusal too, each from a thread with its own connection."""
    barrier = threading.Barrier(2)
    ends: dict[int, Any] = {}

    def side(place: int, act: Callable[[], Any], pause: float) -> None:
        try:
            with connection.cursor() as cursor:
                # The database lets go who waits for ever, or the clean-up would wait for them.
                cursor.execute(f"SET statement_timeout = '{PATIENCE - 5}s'")
            barrier.wait(PATIENCE)
            time.sleep(pause)
            ends[place] = act()
        except Exception as error:
            ends[place] = error
        finally:
            connection.close()

    sides = [(0, one, pauses.one), (1, other, pauses.other)]
    threads = [threading.Thread(target=side, args=each, daemon=True) for each in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(ends) == 2, f"Somebody did not end within {PATIENCE} seconds."
    for end in ends.values():
        if isinstance(end, Exception) and not isinstance(end, Refused):
            raise end
    return ends[0], ends[1]


# What people and workers do


@dataclass(frozen=True, slots=True)
class Done:
    """An act on what is live: what was seen before, and the event that came of it."""

    saw_live: int | None
    saw: canonical.Candidate | None
    event: PublicationEvent

    @property
    def released(self) -> Publication:
        assert self.event.to_publication is not None
        return self.event.to_publication


def _fresh(of: Sheet) -> Sheet:
    return Sheet.objects.select_related("bot", "state__live_publication").get(pk=of.pk)


def _live_number(of: Sheet) -> int | None:
    live = _fresh(of).state.live_publication
    return live.number if live else None


def _publishes(
    of: Sheet, *, now: datetime = LATER, by: User | None = None, thought: float = 0
) -> Callable[[], Done]:
    publisher = by or factories.person("paula", "publisher")

    def act() -> Done:
        view = publishing.look(_fresh(of), now=now, by=publisher)
        time.sleep(thought)
        publication = publishing.publish(
            sheet_id=of.pk,
            seen=view.candidate.subject,
            seen_live_number=view.live_number,
            by=publisher,
            reason="a race",
            now=now,
        )
        event = PublicationEvent.objects.get(to_publication=publication)
        return Done(view.live_number, view.candidate, event)

    return act


def _rolls_back(
    of: Sheet, *, to: int = 1, now: datetime = LATER, thought: float = 0
) -> Callable[[], Done]:
    publisher = factories.person("rolf", "publisher")

    def act() -> Done:
        past = Publication.objects.select_related("sheet__state__live_publication").get(
            sheet=of, number=to
        )
        view = publishing.look_back(past, now=now, by=publisher)
        time.sleep(thought)
        publication = publishing.rollback(
            sheet_id=of.pk,
            to_number=to,
            seen_live_number=view.live_number,
            by=publisher,
            reason="a race",
            now=now,
        )
        event = PublicationEvent.objects.get(to_publication=publication)
        return Done(view.live_number, view.candidate, event)

    return act


def _withdraws(of: Sheet, *, thought: float = 0) -> Callable[[], Done]:
    publisher = factories.person("wanda", "publisher")

    def act() -> Done:
        seen = _live_number(of)
        time.sleep(thought)
        event = publishing.withdraw(
            sheet_id=of.pk, by=publisher, reason="a race", now=LATER, seen_live_number=seen
        )
        return Done(seen, None, event)

    return act


def _fires(row: Schedule) -> Callable[[], Schedule | None]:
    return lambda: scheduling.fire(row.pk, now=row.due_at)


def _schedules(of: Sheet, name: str, *, thought: float) -> Callable[[], Schedule]:
    publisher = factories.person(name, "publisher")

    def act() -> Schedule:
        view = publishing.look(_fresh(of), now=NOON, by=publisher)
        time.sleep(thought)
        return scheduling.schedule(
            sheet_id=of.pk,
            seen=view.candidate.subject,
            seen_live_number=view.live_number,
            due_at=LATER,
            zone="Europe/London",
            by=publisher,
            reason="a race",
            now=NOON,
        )

    return act


def _closes(run: Run, *, now: datetime) -> Callable[[], list[UUID]]:
    return lambda: runs.advance(run.id, now=now)


def _changes(row: TrackedModel, *, by: User | None = None, **values: Any) -> int:
    """Edit a row. Returns the key of the change set."""
    with change_set(by=by or factories.person("eddie"), reason="a race", now=LATER) as opened:
        editing.change(row, by=opened.by, reason="a race", now=LATER, **values)
        return opened.row_for_history().pk


# What must hold after every try


def _books(of: Sheet) -> list[PublicationEvent]:
    """The sheet's events, oldest first: all else that is kept of them says the same."""
    events = list(of.events.select_related("from_publication", "to_publication").order_by("id"))
    released = [event.to_publication for event in events if event.to_publication]
    numbers = of.publications.order_by("id").values_list("number", flat=True)
    announced = Outbox.objects.filter(sheet=of, topic__in=PublicationEvent.Kind.values)
    live = [None, *(event.to_publication for event in events)]

    assert [publication.number for publication in released] == list(numbers)
    assert list(numbers) == list(range(1, len(released) + 1))
    assert [event.from_publication for event in events] == live[:-1]
    assert _fresh(of).state.live_publication == live[-1]
    assert [
        (row.topic, row.payload["publication"], row.payload["content_hash"])
        for row in announced.order_by("id")
    ] == [(e.kind, *_named(e.to_publication)) for e in events]
    return events


def _named(publication: Publication | None) -> tuple[int | None, str | None]:
    return (publication.number, publication.content_hash) if publication else (None, None)


def _as_seen(end: Done | Refused) -> list[Done]:
    """What was done, if it was: on exactly what its doer looked at. A refusal says that it was not."""
    if isinstance(end, Refused):
        return []
    before = end.event.from_publication
    assert (before.number if before else None) == end.saw_live
    if end.saw is not None:
        after = end.released
        subject = canonical.Subject(
            after.sheet_id, after.content_hash, after.rules_hash, after.bot_hash
        )
        assert subject == end.saw.subject
        assert bytes(after.prompt) == canonical.prompt_bytes(end.saw)
    return [end]


def _first(one: Done | Refused, other: Done | Refused) -> int:
    """Which of two came first: 0 or 1. The one who came too late was told so, or saw the other's."""
    ends = (one, other)
    done = sorted(
        (each.event.pk, place) for place, end in enumerate(ends) for each in _as_seen(end)
    )
    assert done, "Both were refused."
    return done[0][1]


def _closed_by(refused: Refused) -> set[str]:
    """The codes of what closed the gate; none where something changed after the look."""
    assert isinstance(refused, PublishRefused | ChangedMeanwhile)
    if isinstance(refused, PublishRefused):
        return {finding.code for finding in refused.report.blocks}
    return set()


def _nothing_is_wrong() -> None:
    assert verification.verify_publications().faults == ()


# Edits


def _probed(*, four_eyes: bool = False, **values: Any) -> Sheet:
    """A sheet with a passing run and an open gate, where every sort of edit can close it."""
    of = factories.ready_sheet()
    factories.save(BotProfile(slug="other", max_tokens=2_048))
    spare = factories.suite(of, "manners")
    factories.probe(spare, "asks-again")
    unused = factories.suite(of, "unused")
    factories.probe(unused, "asks-more")
    _changes(SuiteRequirement.objects.get(suite=unused), removed_at=NOON)
    _changes(of, **({"probe_scope": Sheet.ProbeScope.RULES_AND_CONTENT} | values))
    _changes(GatePolicy.objects.get(sheet=of), four_eyes=four_eyes)
    factories.passing_run(of)
    return of


def _required(slug: str) -> SuiteRequirement:
    return SuiteRequirement.objects.get(suite__slug=slug)


@dataclass(frozen=True, slots=True)
class Edit:
    """What somebody changes, and the finding that closes the gate then."""

    name: str
    row: Callable[[], TrackedModel]
    values: Callable[[], dict[str, Any]]
    closes_by: str
    is_the_publishers: bool = False


EDITS = [
    Edit("rule", Rule.objects.get, lambda: {"text": "Answer in verse."}, "rules-not-probed"),
    Edit("section", Section.objects.get, lambda: {"body": "Open at ten."}, "content-not-probed"),
    Edit(
        "repeats",
        lambda: Suite.objects.get(slug="castle-safety"),
        lambda: {"repeats": 2},
        "suite-changed",
    ),
    Edit(
        "probe",
        lambda: Probe.objects.get(key="asks-hours"),
        lambda: {"turns": ["When does it open?"]},
        "suite-changed",
    ),
    Edit(
        "requirement-added",
        lambda: _required("unused"),
        lambda: {"removed_at": None},
        "requirements-changed",
    ),
    Edit(
        "requirement-dropped",
        lambda: _required("manners"),
        lambda: {"removed_at": LATER},
        "requirements-changed",
    ),
    Edit(
        "bot-profile",
        lambda: BotProfile.objects.get(slug="offline"),
        lambda: {"max_tokens": 2_048},
        "bot-changed",
    ),
    Edit(
        "bot-of-the-sheet",
        Sheet.objects.get,
        lambda: {"bot": BotProfile.objects.get(slug="other")},
        "bot-changed",
    ),
    Edit(
        "stricter-policy",
        GatePolicy.objects.get,
        lambda: {"evidence_max_age_days": 0},
        "evidence-expired",
    ),
    Edit("own-note", Section.objects.get, lambda: {"note": "Mine."}, "same-person", True),
]


def _nothing_live(of: Sheet) -> None:
    """The same draft can be published again."""
    if _live_number(of) is not None:
        _withdraws(of)()


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_an_edit_that_closes_the_gate_stops_a_publication_or_comes_after_it(edit: Edit) -> None:
    of = _probed(four_eyes=edit.is_the_publishers)
    back = {name: getattr(edit.row(), name) for name in edit.values()}
    first = set()

    for n, pauses in enumerate(_tries(edit.name)):
        # Anew in every try, so that nobody has changed anything before.
        publisher = factories.person(f"publisher-{n}", "publisher")
        editor = publisher if edit.is_the_publishers else factories.person("eddie")
        before = _books(of)
        published, change_set_id = _at_once(
            _publishes(of, by=publisher, thought=pauses.thought),
            partial(_changes, edit.row(), by=editor, **edit.values()),
            pauses,
        )
        after = _books(of)

        done = _as_seen(published)
        assert after == before + [each.event for each in done]
        assert all(change_set_id > _contains(each.released) for each in done)
        assert done or _closed_by(published) <= {edit.closes_by}
        first.add("publisher" if done else "editor")
        _changes(edit.row(), **back)
        _nothing_live(of)

    assert first == {"publisher", "editor"}
    _nothing_is_wrong()


def _contains(publication: Publication) -> int:
    """The newest change set that a publication says it contains."""
    assert publication.changes_up_to_id is not None
    return publication.changes_up_to_id


def test_a_publication_says_whether_it_contains_an_edit_of_the_text_made_meanwhile() -> None:
    of = _probed(probe_scope=Sheet.ProbeScope.RULES)
    contained = set()

    for n, pauses in enumerate(_tries("text")):
        before = _books(of)
        text = f"The castle opens at ten. Text {n}."
        published, change_set_id = _at_once(
            _publishes(of, thought=pauses.thought),
            partial(_changes, Section.objects.get(), body=text),
            pauses,
        )
        after = _books(of)

        done = _as_seen(published)
        assert after == before + [each.event for each in done]
        has_text = [text.encode() in bytes(each.released.body) for each in done]
        assert has_text == [change_set_id <= _contains(each.released) for each in done]
        contained |= set(has_text)
        assert done or isinstance(published, ChangedMeanwhile)
        _nothing_live(of)

    assert contained == {True, False}
    _nothing_is_wrong()


# Others who move what is live


def _new_draft(of: Sheet, name: str) -> None:
    """Something is live that neither the draft nor publication 1 says."""
    section = Section.objects.get()
    _changes(section, body=f"Live before try {name}.")
    _publishes(of)()
    _changes(section, body=f"Draft of try {name}.")


@pytest.mark.parametrize("acts", [_withdraws, _rolls_back], ids=["withdraw", "rollback"])
def test_who_moves_what_is_live_moves_what_was_seen_or_is_told_to_look_again(
    acts: Callable[..., Callable[[], Done]],
) -> None:
    of = factories.published_sheet()
    first = set()

    for n, pauses in enumerate(_tries(acts.__name__)):
        _new_draft(of, str(n))
        before = _books(of)
        ends = _at_once(
            _publishes(of, thought=pauses.thought), acts(of, thought=pauses.thought), pauses
        )
        after = _books(of)

        first.add(_first(*ends))
        done = [each.event for end in ends for each in _as_seen(end)]
        assert after == before + sorted(done, key=lambda event: event.pk)
        assert all(isinstance(end, Done | ChangedMeanwhile) for end in ends)

    assert first == {0, 1}
    _nothing_is_wrong()


def test_of_two_publishers_of_one_draft_one_publishes_it() -> None:
    of = factories.published_sheet()
    first = set()

    for n, pauses in enumerate(_tries("publishers")):
        _changes(Section.objects.get(), body=f"Draft of try {n}.")
        before = _books(of)
        ends = _at_once(
            _publishes(of, thought=pauses.thought),
            _publishes(of, thought=pauses.thought, by=factories.person("rolf", "publisher")),
            pauses,
        )
        after = _books(of)

        winner = _first(*ends)
        first.add(winner)
        assert after == [*before, ends[winner].event]
        assert _closed_by(ends[1 - winner]) <= {"nothing-changed"}

    assert first == {0, 1}
    _nothing_is_wrong()


# A run that closes


GOOD, BAD = "The castle opens at ten.", "The castle opens at nine."


def _about_to_fail(of: Sheet, number: int | None, *, now: datetime) -> Run:
    """Every attempt of it is graded; only its closing is left."""
    run = runs.start(sheet_id=of.pk, publication_number=number, by=factories.person(), now=now)
    for attempt_id in runs.advance(run.id, now=now):
        attempts.perform(attempt_id, clock=lambda: now)
    return run


@pytest.mark.parametrize(
    ("acts", "number"), [(_publishes, None), (_rolls_back, 1)], ids=["publish", "rollback"]
)
def test_a_run_that_fails_meanwhile_closes_the_gate_or_raises_the_alarm(
    acts: Callable[..., Callable[[], Done]], number: int | None
) -> None:
    of = factories.ready_sheet()
    factories.passing_run(of)
    section = Section.objects.get()
    _changes(section, body=BAD)
    _publishes(of)()
    first = set()

    for n, pauses in enumerate(_tries(f"run {acts.__name__}")):
        now = LATER + timedelta(hours=n)
        _changes(section, body=GOOD)
        factories.passing_run(of, now=now)
        _nothing_live(of)
        _changes(section, body=BAD)
        run = _about_to_fail(of, number, now=now + timedelta(minutes=1))
        before = _books(of)

        moment = now + timedelta(minutes=2)
        released, _ = _at_once(
            acts(of, now=moment, thought=pauses.thought), _closes(run, now=moment), pauses
        )
        after = _books(of)

        run.refresh_from_db()
        assert run.outcome == Run.Outcome.FAILED
        done = _as_seen(released)
        assert after == before + [each.event for each in done]
        alarm = Outbox.objects.filter(topic=alarms.TOPIC, payload__run=str(run.id))
        assert [row.payload["publication"] for row in alarm] == [
            each.released.number for each in done
        ]
        assert done or _closed_by(released) == {"newer-run-failed"}
        first.add("publisher" if done else "run")

    assert first == {"publisher", "run"}
    _nothing_is_wrong()


# Schedules


def _scheduled(of: Sheet, name: str) -> Schedule:
    """A new draft, approved for LATER."""
    _changes(Section.objects.get(), body=f"Draft of try {name}.")
    return _schedules(of, "paula", thought=0)()


def _only(ends: tuple[Any, Any]) -> int:
    """Which of two did something, where one alone may: 0 or 1."""
    did = [place for place, end in enumerate(ends) if end and not isinstance(end, Refused)]
    assert len(did) == 1
    return did[0]


def _released_since(before: list[PublicationEvent], of: Sheet) -> list[Publication | None]:
    """What went live after those events."""
    after = _books(of)
    assert after[: len(before)] == before
    return [event.to_publication for event in after[len(before) :]]


def _fired(row: Schedule) -> list[Publication]:
    """What a schedule that was fired let out, or nothing, and then people are told."""
    told = Outbox.objects.filter(topic=scheduling.SUSPENDED).order_by("-id").first()
    if row.publication is not None:
        assert row.state == Schedule.State.DONE
        return [row.publication]
    assert row.state == Schedule.State.SUSPENDED
    assert told is not None
    assert told.payload["because"] == row.closed_because
    return []


def test_what_two_beats_fire_at_once_is_published_once() -> None:
    of = factories.published_sheet()
    first = set()

    for n, pauses in enumerate(_tries("two beats")):
        row = _scheduled(of, str(n))
        before = _books(of)
        ends = _at_once(_fires(row), _fires(row), pauses)

        winner = _only(ends)
        first.add(winner)
        assert _released_since(before, of) == [ends[winner].publication]

    assert first == {0, 1}
    _nothing_is_wrong()


def test_what_is_fired_as_somebody_publishes_it_by_hand_is_published_once() -> None:
    of = factories.published_sheet()
    first = set()

    for n, pauses in enumerate(_tries("by hand")):
        row = _scheduled(of, str(n))
        before = _books(of)
        published, fired = _at_once(_publishes(of, thought=pauses.thought), _fires(row), pauses)

        by_hand = [each.released for each in _as_seen(published)]
        by_itself = _fired(fired)
        assert len(by_hand + by_itself) == 1
        assert _released_since(before, of) == by_hand + by_itself
        assert by_hand or _closed_by(published) <= {"nothing-changed"}
        first.add("hand" if by_hand else "beat")

    assert first == {"hand", "beat"}
    _nothing_is_wrong()


def test_an_edit_suspends_what_is_fired_at_once_or_comes_after_it() -> None:
    of = factories.published_sheet()
    first = set()

    for n, pauses in enumerate(_tries("fired and edited")):
        row = _scheduled(of, str(n))
        before = _books(of)
        fired, change_set_id = _at_once(
            _fires(row),
            partial(_changes, Section.objects.get(), body=f"Edited in try {n}."),
            pauses,
        )

        released = _fired(fired)
        assert _released_since(before, of) == released
        assert all(change_set_id > _contains(publication) for publication in released)
        assert all(publication.content_hash == row.content_hash for publication in released)
        first.add("beat" if released else "editor")

    assert first == {"beat", "editor"}
    _nothing_is_wrong()


def test_a_schedule_that_is_cancelled_as_it_is_fired_ends_one_way() -> None:
    of = factories.published_sheet()
    paula = factories.person("paula", "publisher")
    first = set()

    for n, pauses in enumerate(_tries("cancelled")):
        row = _scheduled(of, str(n))
        before = _books(of)
        ends = _at_once(
            _fires(row),
            partial(scheduling.cancel, schedule_id=row.pk, by=paula, now=LATER),
            pauses,
        )

        winner = _only(ends)
        first.add(winner)
        row.refresh_from_db()
        assert row.state == (Schedule.State.DONE, Schedule.State.CANCELLED)[winner]
        assert _released_since(before, of) == [row.publication][: 1 - winner]

    assert first == {0, 1}
    _nothing_is_wrong()


def test_of_two_who_schedule_at_once_one_does() -> None:
    of = factories.published_sheet()
    paula = factories.person("paula", "publisher")
    first = set()
    _changes(Section.objects.get(), body="A draft for later.")

    for pauses in _tries("two schedules"):
        ends = _at_once(
            _schedules(of, "paula", thought=pauses.thought),
            _schedules(of, "rolf", thought=pauses.thought),
            pauses,
        )

        winner = _only(ends)
        first.add(winner)
        assert isinstance(ends[1 - winner], scheduling.AlreadyScheduled)
        assert list(of.schedules.filter(state=Schedule.State.WAITING)) == [ends[winner]]
        scheduling.cancel(schedule_id=ends[winner].pk, by=paula, now=NOON)

    assert first == {0, 1}
    assert len(_books(of)) == 1
    _nothing_is_wrong()


# Renewal


def _renews(now: datetime) -> Callable[[], list[UUID | None]]:
    return lambda: [renewal.renew(sheet, now=now) for sheet in renewal.due(now=now)]


def test_two_beats_that_renew_at_once_start_one_run() -> None:
    of = factories.published_sheet()
    first = set()

    for n, pauses in enumerate(_tries("renewal")):
        now = NOON + timedelta(days=90 * (n + 1))
        ends = _at_once(_renews(now), _renews(now), pauses)

        winner = _only((any(ends[0]), any(ends[1])))
        first.add(winner)
        under_way = list(Run.objects.filter(state=Run.State.RUNNING))
        assert [run.id for run in under_way] == ends[winner]
        factories.carry_out(under_way[0], now=now)

    assert first == {0, 1}
    assert Run.objects.filter(outcome=Run.Outcome.PASSED).count() == TRIES + 1
    assert renewal.due(now=now) == []
    assert len(_books(of)) == 1
    _nothing_is_wrong()


# Use


def _posts(
    of: Sheet, *references: str, sections: tuple[str, ...] = ("hours",)
) -> Callable[[], Any]:
    entries = [usage.Entry(reference, NOON, sections) for reference in references]
    return lambda: usage.record(of, entries, LATER)


def test_of_two_same_batches_at_once_each_answer_counts_once() -> None:
    of = factories.published_sheet()
    first = set()

    for n, pauses in enumerate(_tries("two batches")):
        references = [f"{n}-{m}" for m in range(50)]
        ends = _at_once(_posts(of, *references), _posts(of, *reversed(references)), pauses)

        first.add(_only((ends[0].recorded, ends[1].recorded)))
        assert sorted((end.recorded, end.repeated) for end in ends) == [(0, 50), (50, 0)]
        assert of.use.count() == 50 * (n + 1)

    assert first == {0, 1}


def test_of_two_batches_at_once_that_disagree_one_is_refused_whole() -> None:
    of = factories.published_sheet()
    first = set()

    for n, pauses in enumerate(_tries("two batches that disagree")):
        ends = _at_once(
            _posts(of, f"{n}-a", f"{n}-b"), _posts(of, f"{n}-b", f"{n}-c", sections=()), pauses
        )

        winner = _only(ends)
        first.add(winner)
        assert isinstance(ends[1 - winner], usage.ReferenceTaken)
        assert of.use.count() == 2 * (n + 1)

    assert first == {0, 1}


def test_of_two_same_logs_at_once_one_is_taken() -> None:
    of, anna = factories.published_sheet(), factories.person()
    line = '{"question": "When?", "reply": "The castle opens at ten in the morning.", "at": "%s"}'
    first = set()

    for n, pauses in enumerate(_tries("two logs")):
        data = (line % f"2026-06-01T12:00:{n:02}Z").encode()
        lines = use_logs.read(data, zone=UTC, now=LATER)
        take = partial(usage.take_log, of, lines, by=anna, keeps_texts=False, now=LATER)
        ends = _at_once(take, take, pauses)

        winner = _only(ends)
        first.add(winner)
        assert isinstance(ends[1 - winner], use_logs.LogRefused)
        assert of.use.count() == of.use_logs.count() == n + 1

    assert first == {0, 1}


def test_of_two_keys_of_one_name_made_at_once_one_is_made() -> None:
    of, anna = factories.published_sheet(), factories.person()
    first = set()

    for n, pauses in enumerate(_tries("two keys")):
        make = partial(
            keys.issue,
            sheet=of,
            name=f"bot {n}",
            scopes=["read"],
            expires_on=None,
            by=anna,
            now=NOON,
            today=NOON.date(),
        )
        ends = _at_once(make, make, pauses)

        winner = _only(ends)
        first.add(winner)
        assert isinstance(ends[1 - winner], keys.KeyNotMade)
        assert of.api_keys.count() == n + 1

    assert first == {0, 1}
