"""Runs: a frozen plan, each attempt carried out once whatever happens to workers, and an honest end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from evals import attempts, graders, runs
from evals.models import Attempt, Run, Spend, Suite, Turn, Verdict
from factsheets import canonical, editing, publishing
from factsheets.models import BotProfile, Rule, Sheet
from tests import factories
from tests.factories import LATER, NOON
from tests.model_api import ModelApi, Step

pytestmark = pytest.mark.django_db

#: Longer than any lease and any back-off.
LONG = timedelta(hours=1)


class Killed(BaseException):
    """The worker's process ends here."""


class Clock:
    """Stands at one moment. `on` says what happens at the n-th look at it."""

    def __init__(self, now: datetime = NOON, on: dict[int, Callable[[], object]] | None = None):
        self.now = now
        self.on = on or {}
        self.looks = 0

    def __call__(self) -> datetime:
        self.looks += 1
        self.on.get(self.looks, lambda: None)()
        return self.now


#: With one question: the claim, before the call, after it, before the reply is stored, graded.
BEFORE_CALL, AFTER_CALL, STORING, GRADED = 2, 3, 4, 5


@pytest.fixture(scope="module")
def server() -> Iterator[ModelApi]:
    with ModelApi() as server:
        yield server


@pytest.fixture
def api(server: ModelApi, settings: Settings) -> Iterator[ModelApi]:
    """The stand-in, answering every question at ten."""
    settings.ANTHROPIC_API_KEY = server.key
    settings.ANTHROPIC_BASE_URL = server.url
    server.responder = lambda body: "It opens at ten."
    yield server
    server.finish()


def _with_model(sheet: Sheet, **values: object) -> Sheet:
    """The sheet, answered from by a model."""
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5", **values)
    factories.save(bot)
    editing.change(sheet, by=factories.person(), reason="a model", now=NOON, bot=bot)
    return sheet


@pytest.fixture
def modelled(api: ModelApi) -> Sheet:
    """A sheet with one probe, whose bot is a model."""
    return _with_model(factories.ready_sheet())


def _suite(sheet: Sheet) -> Suite:
    return sheet.suites.get()


def _start(sheet: Sheet, now: datetime = NOON, **how: object) -> Run:
    return runs.start(sheet_id=sheet.pk, by=factories.person(), now=now, **how)  # type: ignore[arg-type]


def _sent(run: Run, now: datetime = NOON) -> UUID:
    """The one attempt that is sent now."""
    (attempt_id,) = runs.advance(run.id, now=now)
    return attempt_id


def _kill(attempt_id: UUID, look: int, now: datetime = NOON) -> None:
    """A worker takes the attempt and is lost at that look at the clock."""

    def end() -> None:
        raise Killed

    with pytest.raises(Killed):
        attempts.perform(attempt_id, clock=Clock(now, {look: end}))


def _expire(attempt_id: UUID) -> None:
    Attempt.objects.filter(pk=attempt_id).update(lease_until=NOON - LONG)


def _probe(sheet: Sheet, key: str, **values: object) -> None:
    factories.probe(_suite(sheet), key, **values)


# ---- the frozen plan ----


def test_every_attempt_is_planned_with_the_run_probe_by_probe_and_repeat_by_repeat() -> None:
    sheet = factories.ready_sheet()
    _probe(sheet, "asks-again", severity="scored")
    editing.change(_suite(sheet), by=factories.person(), reason="x", now=NOON, repeats=2)

    run = _start(sheet)

    rows = run.attempts.order_by("position", "repeat").values_list("probe", "repeat", "severity")
    assert list(rows) == [
        ("asks-hours", 1, "critical"),
        ("asks-hours", 2, "critical"),
        ("asks-again", 1, "scored"),
        ("asks-again", 2, "scored"),
    ]
    assert run.planned == 4
    assert set(run.attempts.values_list("state", "outcome", "tries")) == {("queued", "", 0)}


def test_a_run_freezes_the_bytes_that_its_hashes_are_of() -> None:
    sheet = factories.ready_sheet()

    run = _start(sheet)

    look = publishing.look(sheet, now=NOON)
    assert canonical.sha256(bytes(run.content)) == run.content_hash
    assert run.rules_text == look.candidate.rules_text
    assert (run.content_hash, run.rules_hash, run.bot_hash) == (
        look.candidate.subject.content_hash,
        look.candidate.subject.rules_hash,
        look.candidate.subject.bot_hash,
    )


def test_what_is_edited_after_the_start_changes_nothing_in_the_run(
    modelled: Sheet, api: ModelApi
) -> None:
    run = _start(modelled)
    before = (run.plan, run.rules_hash, run.content_hash)
    by = factories.person()
    probe = _suite(modelled).probes.get()
    rule = Rule.objects.get(ruleset__sheet_links__sheet=modelled)
    editing.change(
        probe,
        by=by,
        reason="harder",
        now=NOON,
        turns=["What is the capital of France?"],
        checks=[{"type": "contains-any", "values": ["Paris"], "match": "word"}],
    )
    editing.change(rule, by=by, reason="x", now=NOON, text="Speak French.")
    editing.change(modelled.sections.get(), by=by, reason="x", now=NOON, body="Closed.")
    editing.change(BotProfile.objects.get(slug="guide"), by=by, reason="x", now=NOON, model="other")

    factories.carry_out(run)

    body = api.calls[0].body
    assert (run.plan, run.rules_hash, run.content_hash) == before
    assert run.outcome == "passed"
    assert body["messages"][0]["content"] == "When does the castle open in the morning?"
    assert body["model"] == "claude-haiku-5-5"
    assert body["system"][0]["text"].startswith("Answer only from the sheet.")
    assert "opens at ten in the morning" in body["system"][1]["text"]
    assert run.attempts.get().verdicts.get().reason == "The reply says “ten”."


def test_a_removed_probe_is_still_asked_by_a_run_that_planned_it() -> None:
    sheet = factories.ready_sheet()
    run = _start(sheet)
    probe = _suite(sheet).probes.get()
    editing.remove(probe, by=factories.person(), reason="x", now=NOON)

    factories.carry_out(run)

    assert run.outcome == "passed"


def test_probes_that_need_a_model_are_left_out_offline_and_named() -> None:
    sheet = factories.ready_sheet()
    _probe(sheet, "asks-who", needs="model")
    _probe(sheet, "asks-how", needs="model")

    run = factories.passing_run(sheet)

    assert (run.planned, run.outcome) == (1, "passed")
    assert run.left_out == ["asks-who", "asks-how"]
    assert list(run.attempts.values_list("probe", flat=True)) == ["asks-hours"]


def test_a_model_is_asked_every_probe(modelled: Sheet, api: ModelApi) -> None:
    _probe(modelled, "asks-who", needs="model")

    run = factories.passing_run(modelled)

    assert (run.planned, run.left_out, len(api.calls)) == (2, [], 2)


def test_a_publication_is_run_with_its_own_text_and_rules_and_the_present_bot(
    api: ModelApi,
) -> None:
    sheet = factories.published_sheet()
    by = factories.person()
    editing.change(sheet.sections.get(), by=by, reason="x", now=NOON, body="Closed.")
    _with_model(sheet)

    run = factories.passing_run(sheet, publication_number=1)

    published = sheet.publications.get()
    assert (run.content_hash, run.rules_hash) == (published.content_hash, published.rules_hash)
    assert run.bot_hash != published.bot_hash
    assert "opens at ten in the morning" in api.calls[0].body["system"][1]["text"]


# ---- what cannot be started ----


def test_a_sheet_that_requires_no_suite_has_nothing_to_run() -> None:
    sheet = factories.sheet()

    with pytest.raises(runs.NothingToRun) as refused:
        _start(sheet)

    assert refused.value.sentence == ("castle requires no suite of probes; require one first.")


def test_a_suite_without_an_active_probe_has_nothing_to_run() -> None:
    sheet = factories.sheet()
    factories.probe(factories.suite(sheet), active=False)

    with pytest.raises(runs.NothingToRun) as refused:
        _start(sheet)

    assert "no active probe with a check; add some" in refused.value.sentence


def test_probes_that_all_need_a_model_are_nothing_to_run_offline() -> None:
    sheet = factories.sheet()
    factories.probe(factories.suite(sheet), needs="model")

    with pytest.raises(runs.NothingToRun) as refused:
        _start(sheet)

    assert refused.value.sentence == (
        "Every probe of the suite “Safety” needs a model, and the sheet's bot is the offline "
        "one; choose another bot."
    )


def test_a_suite_that_the_sheet_does_not_require_is_refused_with_those_it_does() -> None:
    sheet = factories.ready_sheet()
    factories.suite(sheet, "optional", required=False)

    with pytest.raises(runs.NoSuchSuite) as refused:
        _start(sheet, suite_slug="optional")

    assert refused.value.sentence == (
        "castle does not require a suite 'optional'; it requires castle-safety."
    )


def test_a_publication_that_does_not_exist_is_refused() -> None:
    sheet = factories.ready_sheet()

    with pytest.raises(publishing.NoSuchPublication, match="castle has no publication 7"):
        _start(sheet, publication_number=7)


def test_a_refused_run_leaves_nothing_behind() -> None:
    sheet = factories.sheet()
    factories.suite(sheet)

    with pytest.raises(runs.NothingToRun):
        _start(sheet)

    assert not Run.objects.exists()


# ---- one suite alone ----


def test_one_suite_of_two_is_run_to_look_at_and_opens_no_gate() -> None:
    sheet = factories.ready_sheet()
    factories.probe(factories.suite(sheet, "accuracy"))

    run = factories.passing_run(sheet, suite_slug="castle-safety")

    blocks = publishing.look(sheet, now=NOON).report.blocks
    assert (run.outcome, run.is_partial, run.planned) == ("passed", True, 1)
    assert [finding.code for finding in blocks] == ["rules-not-probed"]


def test_a_run_of_the_sole_required_suite_by_name_opens_the_gate() -> None:
    sheet = factories.ready_sheet()

    run = factories.passing_run(sheet, suite_slug="castle-safety")

    assert (run.outcome, run.is_partial) == ("passed", False)
    assert publishing.look(sheet, now=NOON).report.is_open


# ---- one attempt, whoever delivers it how often ----


def test_two_deliveries_of_one_attempt_ask_once_and_grade_once(
    modelled: Sheet, api: ModelApi
) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)

    first = attempts.perform(attempt_id, clock=Clock())
    second = attempts.perform(attempt_id, clock=Clock())

    attempt = Attempt.objects.get()
    assert (first, second) == (run.id, None)
    assert (attempt.state, attempt.outcome, attempt.tries) == ("done", "pass", 1)
    assert (Turn.objects.count(), Verdict.objects.count(), len(api.calls)) == (1, 1, 1)


@pytest.mark.parametrize("look", [BEFORE_CALL, AFTER_CALL, STORING, GRADED])
def test_a_delivery_while_another_worker_has_the_attempt_does_nothing(
    modelled: Sheet, api: ModelApi, look: int
) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)
    others: list[UUID | None] = []

    def deliver_again() -> None:
        others.extend(attempts.perform(attempt_id, clock=Clock()) for _ in range(2))

    attempts.perform(attempt_id, clock=Clock(on={look: deliver_again}))

    assert others == [None, None]
    assert Attempt.objects.get().tries == 1
    assert (Turn.objects.count(), Verdict.objects.count(), len(api.calls)) == (1, 1, 1)


def test_three_deliveries_after_the_end_are_one_attempt(modelled: Sheet, api: ModelApi) -> None:
    run = factories.passing_run(modelled)
    attempt_id = Attempt.objects.get().id

    again = [attempts.perform(attempt_id, clock=Clock(LATER)) for _ in range(3)]

    assert again == [None, None, None]
    assert (Attempt.objects.get().tries, len(api.calls)) == (1, 1)
    assert run.outcome == "passed"


def test_an_attempt_is_not_taken_before_its_time() -> None:
    run = _start(factories.ready_sheet(), now=LATER)

    early = attempts.perform(Attempt.objects.get().id, clock=Clock(NOON))

    assert early is None
    assert run.attempts.get().state == "queued"


def test_what_is_sent_is_bounded_and_sent_again_only_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "WINDOW", 2)
    sheet = factories.ready_sheet()
    editing.change(_suite(sheet), by=factories.person(), reason="x", now=NOON, repeats=3)
    run = _start(sheet)

    first = runs.advance(run.id, now=NOON)
    at_once = runs.advance(run.id, now=NOON)
    attempts.perform(first[0], clock=Clock())
    topped_up = runs.advance(run.id, now=NOON)
    in_time = runs.advance(run.id, now=NOON + runs.RESEND_AFTER)

    assert len(first) == 2
    assert at_once == []
    assert len(topped_up) == 1
    assert set(in_time) == {first[1], *topped_up}


def test_a_run_is_closed_once_and_stays_closed() -> None:
    run = factories.passing_run(factories.ready_sheet())

    later = runs.advance(run.id, now=LATER)

    run.refresh_from_db()
    assert later == []
    assert (run.state, run.finished_at) == ("closed", NOON)


def test_a_run_with_an_open_attempt_is_not_closed() -> None:
    sheet = factories.ready_sheet()
    _probe(sheet, "asks-again")
    run = _start(sheet)
    first, _second = runs.advance(run.id, now=NOON)
    attempts.perform(first, clock=Clock())

    runs.advance(run.id, now=NOON)

    run.refresh_from_db()
    assert (run.state, run.outcome, run.finished_at) == ("running", "", None)


# ---- lost workers ----


@pytest.mark.parametrize("look", [AFTER_CALL, STORING])
def test_a_worker_whose_claim_was_taken_over_writes_nothing(
    modelled: Sheet, api: ModelApi, look: int
) -> None:
    api.script(Step(text="The slow one says ten."), Step(text="The second says ten."))
    run = _start(modelled)
    attempt_id = _sent(run)

    def taken_over() -> None:
        _expire(attempt_id)
        attempts.perform(attempt_id, clock=Clock())

    attempts.perform(attempt_id, clock=Clock(on={look: taken_over}))

    attempt = Attempt.objects.get()
    assert Turn.objects.get().received == "The second says ten."
    assert Verdict.objects.count() == 1
    assert (attempt.state, attempt.outcome, attempt.tries) == ("done", "pass", 2)


def test_a_worker_whose_claim_was_taken_over_while_grading_writes_no_second_verdict(
    modelled: Sheet, api: ModelApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)
    judge = graders.grade
    others = [lambda: attempts.perform(attempt_id, clock=Clock())]

    def slow(*args: Any) -> tuple[graders.Verdict, ...]:
        _expire(attempt_id)
        while others:
            others.pop()()
        return judge(*args)

    monkeypatch.setattr(graders, "grade", slow)

    attempts.perform(attempt_id, clock=Clock())

    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.tries) == ("pass", 2)
    assert (Turn.objects.count(), Verdict.objects.count(), len(api.calls)) == (1, 1, 1)


def test_a_slow_worker_changes_nothing_in_a_run_that_has_closed_meanwhile(
    modelled: Sheet, api: ModelApi
) -> None:
    api.script(Step(text="Slow: never."), Step(text="At ten."))
    run = _start(modelled)
    attempt_id = _sent(run)

    def taken_over() -> None:
        _expire(attempt_id)
        attempts.perform(attempt_id, clock=Clock())
        runs.advance(run.id, now=NOON)

    attempts.perform(attempt_id, clock=Clock(on={STORING: taken_over}))

    run.refresh_from_db()
    assert (run.state, run.outcome) == ("closed", "passed")
    assert Turn.objects.get().received == "At ten."


def test_a_worker_that_breaks_after_its_claim_was_taken_over_does_not_queue_the_attempt_again(
    modelled: Sheet, api: ModelApi
) -> None:
    api.script(Step(status=529, type="overloaded_error"), Step(text="At ten."))
    run = _start(modelled)
    attempt_id = _sent(run)

    def taken_over() -> None:
        _expire(attempt_id)
        attempts.perform(attempt_id, clock=Clock())

    attempts.perform(attempt_id, clock=Clock(on={AFTER_CALL: taken_over}))

    attempt = Attempt.objects.get()
    assert (attempt.state, attempt.outcome, attempt.error_type) == ("done", "pass", "")


def test_a_lease_that_has_not_run_out_is_left_alone(modelled: Sheet) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)
    _kill(attempt_id, BEFORE_CALL)

    sent = runs.advance(run.id, now=NOON)
    taken = attempts.perform(attempt_id, clock=Clock())

    assert (sent, taken) == ([], None)
    assert Attempt.objects.get().tries == 1


def test_an_attempt_whose_worker_was_lost_is_sent_and_taken_again(modelled: Sheet) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)
    _kill(attempt_id, BEFORE_CALL)

    again = runs.advance(run.id, now=NOON + LONG)
    attempts.perform(attempt_id, clock=Clock(NOON + LONG))

    attempt = Attempt.objects.get()
    assert again == [attempt_id]
    assert (attempt.outcome, attempt.tries) == ("pass", 2)


def test_an_attempt_that_loses_every_worker_ends_as_an_error_and_the_run_as_incomplete(
    modelled: Sheet,
) -> None:
    run = _start(modelled)
    moments = [NOON + LONG * n for n in range(runs.MAX_TRIES)]
    for moment in moments:
        _kill(_sent(run, moment), BEFORE_CALL, moment)

    left = runs.advance(run.id, now=moments[-1] + LONG)

    attempt = Attempt.objects.get()
    run.refresh_from_db()
    assert left == []
    assert (attempt.state, attempt.outcome, attempt.error_type) == ("done", "error", "worker-lost")
    assert attempt.tries == runs.MAX_TRIES
    assert (run.state, run.outcome) == ("closed", "incomplete")


def test_no_worker_takes_an_attempt_beyond_the_cap(modelled: Sheet) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)
    for n in range(runs.MAX_TRIES):
        _kill(attempt_id, BEFORE_CALL, NOON + LONG * n)

    beyond = attempts.perform(attempt_id, clock=Clock(NOON + LONG * runs.MAX_TRIES))

    assert beyond is None


@pytest.mark.parametrize("look", [GRADED])
def test_a_stored_reply_whose_worker_was_lost_is_graded_without_a_second_call(
    modelled: Sheet, api: ModelApi, look: int
) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)
    _kill(attempt_id, look)
    stored = Attempt.objects.get()

    again = runs.advance(run.id, now=NOON + LONG)
    attempts.perform(attempt_id, clock=Clock(NOON + LONG))

    attempt = Attempt.objects.get()
    assert (stored.state, stored.replied_at, stored.outcome) == ("replied", NOON, "")
    assert again == [attempt_id]
    assert (attempt.outcome, attempt.tries, len(api.calls)) == ("pass", 2, 1)
    assert Turn.objects.count() == Verdict.objects.count() == 1


def test_a_conversation_is_stored_whole_or_not_at_all(modelled: Sheet, api: ModelApi) -> None:
    probe = _suite(modelled).probes.get()
    by = factories.person()
    editing.change(probe, by=by, reason="x", now=NOON, turns=["Hello?", "When is it open?"])
    run = _start(modelled)
    attempt_id = _sent(run)
    _kill(attempt_id, BEFORE_CALL + 3)
    stored = Turn.objects.count()

    attempts.perform(attempt_id, clock=Clock(NOON + LONG))

    assert len(api.calls) == 3
    assert stored == 0
    assert list(Turn.objects.values_list("index", "sent")) == [
        (0, "Hello?"),
        (1, "When is it open?"),
    ]


def test_a_later_turn_is_asked_with_the_whole_conversation(modelled: Sheet, api: ModelApi) -> None:
    api.script(Step(text="Good morning."), Step(text="At ten."))
    probe = _suite(modelled).probes.get()
    by = factories.person()
    editing.change(probe, by=by, reason="x", now=NOON, turns=["Hello?", "When is it open?"])

    run = factories.passing_run(modelled)

    said = [(turn["role"], turn["content"]) for turn in api.calls[1].body["messages"]]
    assert said == [
        ("user", "Hello?"),
        ("assistant", "Good morning."),
        ("user", "When is it open?"),
    ]
    assert run.outcome == "passed"


# ---- trouble with the service ----


RETRIED = [
    Step(status=529, type="overloaded_error"),
    Step(status=500, type="api_error"),
    Step(status=429, type="rate_limit_error", headers={"retry-after": "1"}),
    Step(drop=True),
    Step(raw=b"<html>"),
    Step(text=""),
    Step(without=("usage",)),
]


@pytest.mark.parametrize("step", RETRIED, ids=lambda step: f"{step.status}-{step.type}")
def test_an_error_that_may_pass_is_tried_again_after_its_back_off(
    modelled: Sheet, api: ModelApi, step: Step
) -> None:
    api.script(step, Step(text="At ten."))
    run = _start(modelled)
    attempt_id = _sent(run)
    attempts.perform(attempt_id, clock=Clock())
    waiting = Attempt.objects.get()

    too_early = runs.advance(run.id, now=NOON)
    not_taken = attempts.perform(attempt_id, clock=Clock())
    due = runs.advance(run.id, now=waiting.not_before)
    attempts.perform(attempt_id, clock=Clock(waiting.not_before))

    attempt = Attempt.objects.get()
    assert (waiting.state, waiting.outcome) == ("queued", "")
    assert waiting.error_type
    assert waiting.not_before > NOON
    assert (too_early, not_taken) == ([], None)
    assert due == [attempt_id]
    assert (attempt.outcome, attempt.tries, len(api.calls)) == ("pass", 2, 2)


def test_the_back_off_grows_and_is_never_shorter_than_the_service_asks(
    modelled: Sheet, api: ModelApi
) -> None:
    asked = Step(status=429, type="rate_limit_error", headers={"retry-after": "90"})
    busy = Step(status=529, type="overloaded_error")
    api.script(busy, busy, asked)
    run = _start(modelled)
    attempt_id = _sent(run)
    waits: list[timedelta] = []
    now = NOON
    for _ in range(3):
        attempts.perform(attempt_id, clock=Clock(now))
        not_before = Attempt.objects.get().not_before
        waits.append(not_before - now)
        now = not_before

    assert waits[0] < waits[1] < waits[2]
    assert waits[2] >= timedelta(seconds=90)


def test_an_error_that_does_not_pass_ends_as_an_error_after_the_last_try(
    modelled: Sheet, api: ModelApi
) -> None:
    api.script(*[Step(status=529, type="overloaded_error")] * runs.MAX_TRIES)
    run = _start(modelled)
    now = NOON
    while sent := runs.advance(run.id, now=now):
        attempts.perform(sent[0], clock=Clock(now))
        now = now + LONG

    attempt = Attempt.objects.get()
    run.refresh_from_db()
    assert (attempt.outcome, attempt.error_type) == ("error", "overloaded_error")
    assert (attempt.tries, len(api.calls)) == (runs.MAX_TRIES, runs.MAX_TRIES)
    assert run.outcome == "incomplete"


def test_a_request_that_the_service_refuses_is_an_error_at_once_and_the_run_incomplete(
    modelled: Sheet, api: ModelApi
) -> None:
    _probe(modelled, "asks-again")
    api.script(Step(status=400, type="invalid_request_error"))

    run = factories.passing_run(modelled)

    first, second = run.attempts.order_by("position")
    assert (first.outcome, first.error_type, first.tries) == ("error", "invalid_request_error", 1)
    assert second.outcome == "pass"
    assert run.outcome == "incomplete"
    assert run.counts["outcomes"] == {"planned": 2, "error": 1, "pass": 1}


def test_an_error_is_never_kept_as_a_reply(modelled: Sheet, api: ModelApi) -> None:
    api.script(Step(status=400, type="invalid_request_error", message="It opens at ten."))

    run = factories.passing_run(modelled)

    assert run.attempts.get().error
    assert not Turn.objects.exists()
    assert not Verdict.objects.exists()


def test_a_reply_that_fails_its_checks_is_not_tried_again(modelled: Sheet, api: ModelApi) -> None:
    api.responder = lambda body: "At noon."

    run = factories.passing_run(modelled)

    assert (run.outcome, run.attempts.get().tries, len(api.calls)) == ("failed", 1, 1)


ACCOUNT = [
    Step(status=401, type="authentication_error"),
    Step(status=402, type="billing_error"),
    Step(status=403, type="permission_error"),
    Step(status=429, type="rate_limit_error"),
]


@pytest.mark.parametrize("step", ACCOUNT, ids=lambda step: step.type)
def test_trouble_with_the_account_stops_the_run_and_asks_nothing_more(
    modelled: Sheet, api: ModelApi, step: Step
) -> None:
    _probe(modelled, "asks-again")
    _probe(modelled, "asks-more")
    api.script(step)

    run = factories.passing_run(modelled)

    assert (run.state, run.outcome) == ("closed", "stopped")
    assert "ANTHROPIC_API_KEY" in run.stop_reason
    assert len(api.calls) == 1
    assert sorted(run.attempts.values_list("state", "outcome")) == [
        ("cancelled", ""),
        ("cancelled", ""),
        ("done", "error"),
    ]
    assert not publishing.look(modelled, now=NOON).report.is_open


def test_a_missing_key_stops_the_run(modelled: Sheet, settings: Settings) -> None:
    settings.ANTHROPIC_API_KEY = ""

    run = factories.passing_run(modelled)

    assert (run.outcome, run.attempts.get().error_type) == ("stopped", "no-key")


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_a_reply_that_was_cut_off_is_kept_and_not_graded(
    modelled: Sheet, api: ModelApi, reason: str
) -> None:
    api.script(Step(text="It opens at ten and", stop_reason=reason))

    run = factories.passing_run(modelled)

    attempt = run.attempts.get()
    assert (attempt.outcome, attempt.error_type) == ("truncated", "truncated")
    assert attempt.turns.get().received == "It opens at ten and"
    assert not attempt.verdicts.exists()
    assert run.outcome == "incomplete"


def test_a_conversation_cut_off_at_its_first_turn_is_not_asked_on(
    modelled: Sheet, api: ModelApi
) -> None:
    probe = _suite(modelled).probes.get()
    by = factories.person()
    editing.change(probe, by=by, reason="x", now=NOON, turns=["Hello?", "When is it open?"])
    api.script(Step(text="At ten", stop_reason="max_tokens"))

    run = factories.passing_run(modelled)

    assert (run.attempts.get().outcome, len(api.calls)) == ("truncated", 1)


def test_a_refusal_by_the_service_itself_counts_as_a_refusal(
    modelled: Sheet, api: ModelApi
) -> None:
    probe = _suite(modelled).probes.get()
    by = factories.person()
    editing.change(probe, by=by, reason="x", now=NOON, checks=[{"type": "refuses"}])
    api.script(Step(text="At ten.", stop_reason="refusal"))

    run = factories.passing_run(modelled)

    assert run.attempts.get().outcome == "pass"


# ---- cancelling ----


def test_a_cancelled_run_asks_no_further_probe_and_ends_cancelled(
    modelled: Sheet, api: ModelApi
) -> None:
    _probe(modelled, "asks-again")
    run = _start(modelled)
    first, second = runs.advance(run.id, now=NOON)
    attempts.perform(first, clock=Clock())

    runs.cancel(run.id)
    taken = attempts.perform(second, clock=Clock())
    runs.advance(run.id, now=NOON)

    run.refresh_from_db()
    assert taken is None
    assert len(api.calls) == 1
    assert (run.state, run.outcome) == ("closed", "cancelled")
    assert list(run.attempts.order_by("position").values_list("state", "outcome")) == [
        ("done", "pass"),
        ("cancelled", ""),
    ]


def test_what_is_being_asked_when_a_run_is_cancelled_is_let_end(modelled: Sheet) -> None:
    _probe(modelled, "asks-again")
    run = _start(modelled)
    first, _second = runs.advance(run.id, now=NOON)

    def cancel() -> None:
        runs.cancel(run.id)
        runs.advance(run.id, now=NOON)

    attempts.perform(first, clock=Clock(on={AFTER_CALL: cancel}))
    runs.advance(run.id, now=NOON)

    run.refresh_from_db()
    assert (run.state, run.outcome) == ("closed", "cancelled")
    assert run.attempts.get(pk=first).outcome == "pass"


def test_a_run_cancelled_during_its_last_attempt_ends_cancelled(modelled: Sheet) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)

    attempts.perform(attempt_id, clock=Clock(on={AFTER_CALL: lambda: runs.cancel(run.id)}))
    runs.advance(run.id, now=NOON)

    run.refresh_from_db()
    assert (run.state, run.outcome) == ("closed", "cancelled")


@pytest.mark.parametrize("look", [BEFORE_CALL, GRADED])
def test_a_cancelled_run_whose_worker_was_lost_ends(modelled: Sheet, look: int) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)
    _kill(attempt_id, look)
    runs.cancel(run.id)

    for n in range(1, 4):
        for sent in runs.advance(run.id, now=NOON + LONG * n):
            attempts.perform(sent, clock=Clock(NOON + LONG * n))

    run.refresh_from_db()
    assert (run.state, run.outcome) == ("closed", "cancelled")


def test_a_stopped_run_whose_worker_was_lost_ends(modelled: Sheet, api: ModelApi) -> None:
    _probe(modelled, "asks-again")
    run = _start(modelled)
    first, second = runs.advance(run.id, now=NOON)
    _kill(first, BEFORE_CALL)
    api.script(Step(status=401, type="authentication_error"))
    attempts.perform(second, clock=Clock())

    for n in range(1, 4):
        for sent in runs.advance(run.id, now=NOON + LONG * n):
            attempts.perform(sent, clock=Clock(NOON + LONG * n))

    run.refresh_from_db()
    assert (run.state, run.outcome) == ("closed", "stopped")


def test_a_run_that_has_ended_cannot_be_cancelled() -> None:
    run = factories.passing_run(factories.ready_sheet())

    with pytest.raises(runs.AlreadyClosed):
        runs.cancel(run.id)

    run.refresh_from_db()
    assert (run.outcome, run.cancel_requested) == ("passed", False)


def test_the_tick_looks_after_open_runs_alone() -> None:
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)

    open_run = _start(sheet)

    assert runs.open_runs() == [open_run.id]


# ---- what it cost ----


def test_each_call_has_one_row_with_what_the_service_counted(
    modelled: Sheet, api: ModelApi
) -> None:
    counted = {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 40}
    api.script(Step(text="At ten.", usage=counted))

    run = factories.passing_run(modelled)

    spend = Spend.objects.get()
    assert spend.run_id == run.id
    assert (spend.try_number, spend.turn_index, spend.provider) == (1, 0, "anthropic")
    assert spend.model == "claude-haiku-5-5"
    assert spend.usage is not None
    assert counted.items() <= spend.usage.items()
    assert (spend.started_at, spend.finished_at, spend.error_type) == (NOON, NOON, "")


def test_a_repeated_call_is_a_second_row(modelled: Sheet, api: ModelApi) -> None:
    api.script(Step(status=529, type="overloaded_error"), Step(text="At ten."))
    run = _start(modelled)
    attempt_id = _sent(run)
    attempts.perform(attempt_id, clock=Clock())

    attempts.perform(attempt_id, clock=Clock(NOON + LONG))

    first, second = Spend.objects.order_by("id")
    assert (first.try_number, first.error_type, first.usage) == (1, "overloaded_error", None)
    assert first.finished_at == NOON
    assert (second.try_number, second.error_type) == (2, "")
    assert second.usage


def test_each_turn_is_a_call_of_its_own(modelled: Sheet) -> None:
    probe = _suite(modelled).probes.get()
    by = factories.person()
    editing.change(probe, by=by, reason="x", now=NOON, turns=["Hello?", "When is it open?"])

    factories.passing_run(modelled)

    assert list(Spend.objects.values_list("try_number", "turn_index")) == [(1, 0), (1, 1)]


def test_a_call_that_never_came_back_shows_and_its_cost_is_unknown(
    modelled: Sheet, api: ModelApi
) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)
    _kill(attempt_id, AFTER_CALL)

    attempts.perform(attempt_id, clock=Clock(NOON + LONG))

    lost, answered = Spend.objects.order_by("id")
    assert len(api.calls) == 2
    assert (lost.finished_at, lost.usage, lost.error_type) == (None, None, "")
    assert answered.finished_at == NOON + LONG
    assert answered.usage


def test_the_call_of_a_worker_whose_claim_was_taken_over_is_still_booked(
    modelled: Sheet, api: ModelApi
) -> None:
    run = _start(modelled)
    attempt_id = _sent(run)

    def taken_over() -> None:
        _expire(attempt_id)
        attempts.perform(attempt_id, clock=Clock())

    attempts.perform(attempt_id, clock=Clock(on={AFTER_CALL: taken_over}))

    assert len(api.calls) == 2
    assert all(spend.usage and spend.finished_at for spend in Spend.objects.all())
    assert Spend.objects.count() == 2


def test_the_offline_bot_costs_nothing() -> None:
    factories.passing_run(factories.ready_sheet())

    assert not Spend.objects.exists()


def test_what_the_service_said_of_itself_is_kept_with_the_turn(
    modelled: Sheet, api: ModelApi
) -> None:
    factories.passing_run(modelled)

    turn = Turn.objects.get()
    assert (turn.stop_reason, turn.model) == ("end_turn", "claude-haiku-5-5")
    assert turn.request_id.startswith("req_")
    assert turn.usage["output_tokens"] > 0
    assert turn.refused is None


def test_signs_that_no_database_can_hold_are_stored_as_missing(
    modelled: Sheet, api: ModelApi
) -> None:
    api.responder = lambda body: "We open at ten.\x00"
    run = _start(modelled)

    attempts.perform(_sent(run), clock=lambda: NOON)

    turn = Turn.objects.get(attempt__run=run)
    assert turn.received == "We open at ten.\ufffd"
    assert Attempt.objects.get(run=run).outcome == "pass"


def test_a_slow_worker_that_was_given_up_writes_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sheet = factories.ready_sheet()
    run = _start(sheet)
    attempt_id = _sent(run)
    Attempt.objects.filter(pk=attempt_id).update(tries=runs.MAX_TRIES - 1)
    claim = attempts._claim(attempt_id, now=NOON)
    assert claim is not None
    runs.advance(run.id, now=LATER)

    with pytest.raises(attempts.LostClaim):
        attempts._write(claim, state=Attempt.State.DONE, outcome=Attempt.Outcome.PASS)

    run.refresh_from_db()
    assert (run.outcome, Attempt.objects.get(pk=attempt_id).outcome) == ("incomplete", "error")


def test_a_conversation_ends_where_the_service_falls_silent_and_fails(
    modelled: Sheet, api: ModelApi
) -> None:
    _probe(modelled, "talk", turns=["One?", "Two?", "Three?"])
    api.responder = lambda body: "We open at ten."
    run = _start(modelled)
    first, talk = runs.advance(run.id, now=NOON)
    attempts.perform(first, clock=lambda: NOON)
    calls = len(api.calls)
    api.script(Step(content=[], stop_reason="refusal"))

    attempts.perform(talk, clock=lambda: NOON)

    assert Attempt.objects.get(pk=talk).outcome == "fail"
    assert len(api.calls) == calls + 1
