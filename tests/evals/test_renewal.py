"""Evidence ages: what is live is probed again in time, and people hear of it when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from evals import alarms, evidence, renewal, runs
from evals.models import Run
from factsheets import editing, gate, notices, publishing
from factsheets.models import BotProfile, GatePolicy, Outbox, Rule, Sheet
from tests import factories
from tests.factories import LATER, NOON
from tests.model_api import ModelApi

pytestmark = pytest.mark.django_db

#: Published on 1 June with evidence of that day: 90 days, renewed 7 before.
DUE = NOON + timedelta(days=83)


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


@pytest.fixture
def live(api: ModelApi) -> Sheet:
    """A live sheet whose bot is a model."""
    of = factories.ready_sheet()
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)
    _change(of, bot=bot)
    factories.passing_run(of)
    factories.publish(of)
    return _fresh(of)


def _fresh(sheet: Sheet) -> Sheet:
    return Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)


def _change(row: Any, **values: object) -> None:
    editing.change(row, by=factories.person("ben"), reason="edit", now=NOON, **values)


def _edit_text(sheet: Sheet) -> None:
    _change(sheet.sections.get(), body="The castle opens at ten.")


def _renew(sheet: Sheet, now: datetime = DUE) -> Run:
    run_id = renewal.renew(sheet, now=now)
    assert run_id is not None
    return factories.carry_out(Run.objects.get(pk=run_id), now=now)


def _fail(sheet: Sheet, api: ModelApi, now: datetime = DUE) -> Run:
    api.responder = lambda body: "At noon."
    run = _renew(sheet, now)
    api.responder = lambda body: "It opens at ten."
    return run


def _blocks(sheet: Sheet, now: datetime = DUE) -> list[str]:
    report = publishing.look(_fresh(sheet), now=now).report
    return [finding.code for finding in report.blocks]


# ---- when ----


@pytest.mark.parametrize(
    ("age", "before", "day"),
    [
        (90, 7, date(2026, 8, 23)),
        (90, 1, date(2026, 8, 29)),
        (90, 0, None),
        (7, 7, date(2026, 6, 5)),
        (1, 7, date(2026, 6, 2)),
        (0, 7, date(2026, 6, 1)),
        (4_000_000_000, 7, date.max),
    ],
)
def test_evidence_is_renewed_before_it_expires_and_not_in_its_first_half(
    age: int, before: int, day: date | None
) -> None:
    policy = gate.Policy(evidence_max_age_days=age, renew_days_before=before)

    assert policy.renews_on(date(2026, 6, 1)) == day


def test_what_is_live_is_due_a_week_before_its_evidence_expires(live: Sheet) -> None:
    assert renewal.due(now=DUE - timedelta(days=1)) == []
    assert renewal.due(now=DUE) == [live]


def test_a_run_on_the_draft_with_the_same_rules_renews_it_too(live: Sheet) -> None:
    _edit_text(live)
    factories.passing_run(live, now=LATER)

    assert renewal.due(now=DUE) == []
    assert renewal.renews_on(live) == date(2026, 8, 24)


def test_a_sheet_that_asks_for_its_very_text_is_renewed_on_that_text(live: Sheet) -> None:
    _change(live, probe_scope=Sheet.ProbeScope.RULES_AND_CONTENT)
    _edit_text(live)
    factories.passing_run(live, now=LATER)

    assert renewal.due(now=DUE) == [live]


def test_neither_drafts_nor_what_is_withdrawn_is_renewed(live: Sheet) -> None:
    factories.passing_run(factories.ready_sheet("abbey"))
    publishing.withdraw(sheet_id=live.pk, by=factories.person(), reason="wrong", now=NOON)

    assert renewal.due(now=DUE) == []


def test_a_policy_of_nought_days_renews_nothing(live: Sheet) -> None:
    _change(GatePolicy.objects.get(), renew_days_before=0)

    assert renewal.due(now=DUE) == []


# ---- the run ----


def test_the_run_is_on_what_is_live_whatever_the_draft_says(live: Sheet) -> None:
    publication = live.publications.get()
    _edit_text(live)
    _change(Rule.objects.get(), text="Answer nothing.")

    run = _renew(live)

    assert (run.publication_number, run.outcome) == (1, "passed")
    assert (run.content_hash, run.rules_hash) == (publication.content_hash, publication.rules_hash)
    assert run.started_by_name == "renewal"
    assert not run.started_by.is_active


def test_a_renewal_that_passed_keeps_the_evidence_from_expiring(live: Sheet) -> None:
    _edit_text(live)
    later = NOON + timedelta(days=91)
    before = _blocks(live, later)

    _renew(live)

    assert (before, _blocks(live, later)) == (["evidence-expired"], [])
    assert renewal.due(now=later) == []


def test_while_a_run_is_under_way_none_is_started(live: Sheet) -> None:
    renewal.renew(live, now=DUE)

    assert renewal.due(now=DUE) == []
    with pytest.raises(runs.UnderWay):
        runs.start(sheet_id=live.pk, publication_number=1, by=factories.person(), now=DUE)
    assert renewal.renew(live, now=DUE) is None


def test_a_run_without_a_verdict_is_tried_again_the_day_after(live: Sheet, api: ModelApi) -> None:
    runs.cancel(renewal.renew(live, now=DUE))  # type: ignore[arg-type]
    runs.advance(Run.objects.get(publication_number=1).id, now=DUE)

    assert Run.objects.get(publication_number=1).outcome == "cancelled"
    assert renewal.due(now=DUE + timedelta(hours=23)) == []
    assert renewal.due(now=DUE + timedelta(hours=25)) == [live]


def test_a_run_that_failed_is_not_repeated_until_one_passes(live: Sheet, api: ModelApi) -> None:
    _fail(live, api)

    assert renewal.due(now=DUE + timedelta(days=3)) == []


@pytest.mark.usefixtures("quiet")
def test_where_nothing_can_be_asked_nothing_is_started(live: Sheet) -> None:
    editing.remove(live.suite_requirements.get(), by=factories.person(), reason="x", now=NOON)

    assert renewal.renew(live, now=DUE) is None
    assert Run.objects.count() == 1


# ---- the alarm ----


def test_a_renewal_that_fails_closes_the_gate_and_withdraws_nothing(
    live: Sheet, api: ModelApi
) -> None:
    _edit_text(live)
    assert _blocks(live) == []

    run = _fail(live, api)

    assert run.outcome == "failed"
    assert _blocks(live) == ["live-probes-failed"]
    assert _fresh(live).state.live_publication == live.publications.get()
    assert [event.kind for event in live.events.all()] == ["published"]


def test_the_failure_is_announced_in_the_run_s_own_closing(live: Sheet, api: ModelApi) -> None:
    run = _fail(live, api)

    (told,) = Outbox.objects.filter(topic=alarms.TOPIC)
    assert (told.sheet, told.created_at, told.mailed_at) == (live, DUE, None)
    assert {**told.payload, "at": ""} == {
        "slug": "castle",
        "publication": 1,
        "run": str(run.id),
        "at": "",
    }


def test_the_alarm_stands_whatever_rules_the_draft_has(live: Sheet, api: ModelApi) -> None:
    _fail(live, api)
    _change(Rule.objects.get(), text="Answer nothing.")

    found = publishing.look(_fresh(live), now=DUE).evidence

    assert found.alarm is not None
    assert found.alarm.since == DUE
    assert [finding.code for finding in found.findings] == ["rules-not-probed"]


def test_of_the_very_text_that_is_live_the_newer_failure_is_named_once(
    live: Sheet, api: ModelApi
) -> None:
    _fail(live, api)

    assert _blocks(live) == ["newer-run-failed", "nothing-changed"]


def test_a_later_run_that_passes_ends_the_alarm_and_opens_the_gate(
    live: Sheet, api: ModelApi
) -> None:
    _edit_text(live)
    _fail(live, api)

    factories.passing_run(live, now=DUE + timedelta(hours=1), publication_number=1)

    look = publishing.look(_fresh(live), now=DUE + timedelta(hours=1))
    assert look.evidence.alarm is None
    assert look.report.is_open


def test_a_draft_that_passed_since_may_be_published_and_ends_the_alarm(
    live: Sheet, api: ModelApi
) -> None:
    _edit_text(live)
    _fail(live, api)
    factories.passing_run(live, now=DUE + timedelta(hours=1))
    with_draft = publishing.look(_fresh(live), now=DUE + timedelta(hours=1))

    factories.publish(live, now=DUE + timedelta(hours=1))

    assert (with_draft.report.is_open, with_draft.evidence.alarm is not None) == (True, True)
    assert alarms.failed_run(live.pk) is None


def test_a_failing_run_on_another_draft_is_no_alarm(live: Sheet, api: ModelApi) -> None:
    _edit_text(live)
    api.responder = lambda body: "At noon."

    factories.passing_run(live, now=LATER)

    assert not Outbox.objects.filter(topic=alarms.TOPIC).exists()
    assert alarms.failed_run(live.pk) is None


def test_one_suite_alone_that_fails_on_what_is_live_is_no_alarm(live: Sheet, api: ModelApi) -> None:
    factories.probe(factories.suite(live, "accuracy", title="Accuracy"))
    api.responder = lambda body: "At noon."

    run = factories.passing_run(live, now=LATER, publication_number=1, suite_slug="accuracy")

    assert run.outcome == "failed"
    assert not Outbox.objects.filter(topic=alarms.TOPIC).exists()


def test_trying_another_bot_on_the_text_that_is_live_is_no_alarm(
    live: Sheet, api: ModelApi
) -> None:
    _change(live.bot, max_tokens=2048)
    api.responder = lambda body: "At noon."

    factories.passing_run(live, now=LATER)

    assert alarms.failed_run(live.pk) is None


def test_what_was_withdrawn_has_no_alarm(live: Sheet, api: ModelApi) -> None:
    _fail(live, api)
    publishing.withdraw(sheet_id=live.pk, by=factories.person(), reason="wrong", now=DUE)

    assert alarms.failed_run(live.pk) is None
    assert alarms.count() == 0


def test_alarms_are_counted_for_the_metrics(live: Sheet, api: ModelApi) -> None:
    factories.published_sheet("abbey")
    before = alarms.count()

    _fail(live, api)

    assert (before, alarms.count()) == (0, 1)


def test_publishers_and_rule_keepers_are_told_by_mail(
    live: Sheet, api: ModelApi, mailoutbox: list[Any]
) -> None:
    for name, role in (("paula", "publisher"), ("kim", "rule keeper"), ("eve", "editor")):
        user = factories.person(name, role)
        user.email = f"{name}@example.org"
        user.save()
    _fail(live, api)

    notices.send(now=DUE)

    assert [message.to for message in mailoutbox] == [["paula@example.org"], ["kim@example.org"]]
    assert mailoutbox[0].subject == "The castle: the probes failed on what is live"
    assert "Nothing was withdrawn." in mailoutbox[0].body
    assert "opens at ten" not in mailoutbox[0].body
    assert "At noon" not in mailoutbox[0].body


# ---- a run is not tried until it passes without notice ----


def test_a_run_that_passed_after_others_failed_says_so(live: Sheet, api: ModelApi) -> None:
    _edit_text(live)
    api.responder = lambda body: "At noon."
    factories.passing_run(live, now=LATER)
    factories.passing_run(live, now=LATER + timedelta(minutes=1))
    api.responder = lambda body: "It opens at ten."
    factories.passing_run(live, now=LATER + timedelta(minutes=2))

    report = publishing.look(_fresh(live), now=LATER).report

    (warning,) = [f for f in report.warnings if f.code == "passed-after-failures"]
    assert "failed 2 times on the same text, rules and bot before they passed" in warning.sentence
    assert warning.since == LATER
    assert report.is_open


def test_the_summary_of_evidence_stays_without_the_probes_hashes(live: Sheet) -> None:
    assert b"probe_hashes" not in evidence.summary(live.runs.get())
