"""Evidence: which run speaks for a sheet, what speaks against it, and what a publication keeps of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from pytest_django import Settings

from evals import attempts, evidence, runs
from evals.models import Probe, Run, Suite, SuiteRequirement
from factsheets import editing, publishing
from factsheets.models import BotProfile, GatePolicy, Rule, Section, Sheet, SheetRuleSet
from tests import factories
from tests.factories import NOON
from tests.model_api import ModelApi, Step

pytestmark = pytest.mark.django_db

SOON = NOON + timedelta(minutes=5)
LATER_STILL = NOON + timedelta(minutes=10)


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
def sheet() -> Sheet:
    """A sheet with one passing run, at noon."""
    of = factories.ready_sheet()
    factories.passing_run(of, now=NOON)
    return of


def _look(sheet: Sheet, now: datetime = NOON) -> publishing.Look:
    fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)
    return publishing.look(fresh, now=now)


def _blocks(sheet: Sheet, now: datetime = NOON) -> list[str]:
    return [finding.code for finding in _look(sheet, now).report.blocks]


def _change(row: object, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=NOON, **values)  # type: ignore[arg-type]


def _remove(row: object) -> None:
    editing.remove(row, by=factories.person(), reason="edit", now=NOON)  # type: ignore[arg-type]


def _rule(sheet: Sheet) -> Rule:
    return Rule.objects.get(ruleset__sheet_links__sheet=sheet)


def _probe(sheet: Sheet) -> Probe:
    return Probe.objects.get(suite__sheet=sheet)


def _model(slug: str = "guide", model: str = "claude-haiku-5-5") -> BotProfile:
    bot = BotProfile(slug=slug, provider="anthropic", model=model)
    factories.save(bot)
    return bot


def _run(sheet: Sheet, now: datetime, **how: object) -> Run:
    return factories.passing_run(sheet, now=now, **how)


def _failing_run(sheet: Sheet, api: ModelApi, now: datetime, **how: object) -> Run:
    """A run of the same probes on the same text, rules and bot, on a bad day of the model."""
    api.responder = lambda body: "At noon."
    run = _run(sheet, now, **how)
    api.responder = lambda body: "It opens at ten."
    return run


# ---- the run that speaks ----


def test_a_passing_run_on_the_present_rules_opens_the_gate(sheet: Sheet) -> None:
    look = _look(sheet)

    run = Run.objects.get()
    assert look.report.findings == ()
    assert look.evidence.run is not None
    assert (look.evidence.run.run_id, look.evidence.run.summary) == (
        str(run.id),
        evidence.summary(run),
    )


def test_the_latest_passing_run_speaks(sheet: Sheet) -> None:
    later = _run(sheet, SOON)

    found = _look(sheet).evidence.run

    assert found is not None
    assert found.run_id == str(later.id)


def test_without_any_run_the_rules_are_not_probed() -> None:
    sheet = factories.ready_sheet()

    (finding,) = _look(sheet).report.blocks

    assert (finding.code, finding.place) == ("rules-not-probed", "probes")
    assert finding.sentence == "The probes have not run on these rules; run them."


def test_a_run_under_way_is_no_evidence() -> None:
    sheet = factories.ready_sheet()

    runs.start(sheet_id=sheet.pk, by=factories.person(), now=NOON)

    assert _blocks(sheet) == ["rules-not-probed"]


def test_a_run_that_failed_is_no_evidence_and_the_finding_says_so() -> None:
    sheet = factories.ready_sheet()
    _change(_probe(sheet), checks=[{"type": "contains-any", "values": ["noon"]}])
    _run(sheet, NOON)

    (finding,) = _look(sheet).report.blocks

    assert finding.code == "rules-not-probed"
    assert "the last one ended failed" in finding.sentence


def test_a_run_of_another_sheet_with_the_same_rules_does_not_count(sheet: Sheet) -> None:
    other = factories.ready_sheet("abbey")

    same_rules = _look(sheet).candidate.subject.rules_hash == (
        _look(other).candidate.subject.rules_hash
    )

    assert same_rules
    assert _blocks(other) == ["rules-not-probed"]
    assert _blocks(sheet) == []


# ---- rules ----


def test_a_run_on_older_rules_does_not_count(sheet: Sheet) -> None:
    _change(_rule(sheet), text="Answer only from the sheet, in one sentence.")

    assert _blocks(sheet) == ["rules-not-probed"]


@pytest.mark.parametrize("values", [{"enabled": False}, {"text": "Answer from the sheet."}])
def test_any_change_of_what_the_model_reads_closes_the_gate(values: dict[str, object]) -> None:
    sheet = factories.ready_sheet()
    factories.rule(sheet, "polite", text="Be polite.")
    _run(sheet, NOON)
    before = _blocks(sheet)

    _change(Rule.objects.get(key="polite"), **values)

    assert (before, _blocks(sheet)) == ([], ["rules-not-probed"])


def test_a_change_of_a_shared_rule_closes_the_gate_of_every_sheet_that_uses_it(
    sheet: Sheet,
) -> None:
    other = factories.ready_sheet("abbey")
    shared = SheetRuleSet.objects.get(sheet=sheet).ruleset
    _change(shared, shared=True)
    factories.save(SheetRuleSet(sheet=other, ruleset=shared))
    _run(sheet, SOON)
    _run(other, SOON)
    before = (_blocks(sheet), _blocks(other))

    _change(shared.rules.get(), text="Answer in verse.")

    assert before == ([], [])
    assert (_blocks(sheet), _blocks(other)) == (["rules-not-probed"], ["rules-not-probed"])


def test_restoring_the_old_rules_opens_the_gate_again(sheet: Sheet) -> None:
    rule = _rule(sheet)
    old = rule.text
    _change(rule, text="Another rule.")
    closed = _blocks(sheet)

    _change(rule, text=old)

    assert (closed, _blocks(sheet)) == (["rules-not-probed"], [])


def test_what_the_model_does_not_read_of_a_rule_does_not_close_the_gate(sheet: Sheet) -> None:
    _change(_rule(sheet), key="another-key", kind="format")

    assert _blocks(sheet) == []


# ---- suites and requirements ----


def test_a_sheet_that_requires_no_suite_is_told_so(sheet: Sheet) -> None:
    _remove(SuiteRequirement.objects.get())

    assert _blocks(sheet) == ["no-suite"]


def test_a_suite_without_an_active_probe_is_named(sheet: Sheet) -> None:
    empty = factories.suite(sheet, "accuracy", title="Accuracy")
    factories.probe(empty, active=False)

    findings = _look(sheet).report.blocks

    assert [finding.code for finding in findings] == ["empty-suite", "requirements-changed"]
    assert "“Accuracy”" in findings[0].sentence


def _warnings(sheet: Sheet) -> list[str]:
    return [finding.code for finding in _look(sheet).report.warnings]


@pytest.mark.parametrize(
    "asking",
    [
        {"must": "refuse"},
        {"must": "redirect"},
        {"checks": [{"type": "not-contains", "values": ["midnight"]}]},
        {"checks": [{"type": "no-leak"}, {"type": "refuses"}]},
    ],
)
def test_suites_that_ask_for_no_answer_bring_a_warning_that_says_what_to_do(
    sheet: Sheet, asking: dict[str, object]
) -> None:
    _change(_probe(sheet), **asking)

    (finding,) = _look(sheet).report.warnings

    assert (finding.code, finding.place) == ("no-control", "probe-list")
    assert "fill in a control question" in finding.sentence


@pytest.mark.parametrize(
    "checks",
    [[{"type": "contains-any", "values": ["ten"]}], [{"type": "no-leak"}, {"type": "answers"}]],
)
def test_one_active_probe_of_any_required_suite_that_must_be_answered_is_enough(
    sheet: Sheet, checks: list[dict[str, object]]
) -> None:
    _change(_probe(sheet), must="refuse")
    without = _warnings(sheet)
    control = factories.probe(factories.suite(sheet, "more"), "control", checks=checks)
    with_it = _warnings(sheet)

    _change(control, active=False)

    assert (without, with_it, _warnings(sheet)) == (["no-control"], [], ["no-control"])


def test_without_any_probe_the_gate_says_that_and_not_that_none_must_be_answered(
    sheet: Sheet,
) -> None:
    _change(_probe(sheet), active=False)

    assert _warnings(sheet) == []


def test_a_policy_can_make_a_suite_without_a_control_question_block(sheet: Sheet) -> None:
    _change(GatePolicy.objects.get(sheet=sheet), blocking_warnings=["no-control"])
    _change(_probe(sheet), must="refuse")

    assert "no-control" in _blocks(sheet)


def test_a_suite_emptied_since_it_passed_closes_the_gate(sheet: Sheet) -> None:
    _change(_probe(sheet), active=False)

    assert _blocks(sheet) == ["empty-suite", "suite-changed"]


def test_a_suite_changed_since_it_passed_closes_the_gate_until_it_is_as_it_was(
    sheet: Sheet,
) -> None:
    probe = _probe(sheet)
    turns = probe.turns
    _change(probe, turns=["When?"])
    changed = _blocks(sheet)

    _change(probe, turns=turns)

    assert (changed, _blocks(sheet)) == (["suite-changed"], [])


def test_a_suite_required_since_the_run_closes_the_gate_until_it_has_run(sheet: Sheet) -> None:
    factories.probe(factories.suite(sheet, "accuracy"))
    before = _blocks(sheet)

    _run(sheet, SOON)

    assert (before, _blocks(sheet)) == (["requirements-changed"], [])


def test_a_suite_no_longer_required_closes_the_gate_too(sheet: Sheet) -> None:
    other = factories.suite(sheet, "accuracy", title="Accuracy")
    factories.probe(other)
    _run(sheet, SOON)

    _remove(SuiteRequirement.objects.get(suite=other))

    finding = _look(sheet).report.blocks[0]
    assert finding.code == "requirements-changed"
    assert "no longer requires “Accuracy”" in finding.sentence


def test_another_suite_in_place_of_the_one_that_ran_closes_the_gate(sheet: Sheet) -> None:
    _remove(SuiteRequirement.objects.get())
    factories.probe(factories.suite(sheet, "accuracy"))

    assert _blocks(sheet) == ["requirements-changed"]


# ---- later runs ----


@pytest.fixture
def modelled(api: ModelApi) -> Sheet:
    """A sheet whose bot is a model, with one passing run at noon."""
    of = factories.ready_sheet()
    _change(of, bot=_model())
    _run(of, NOON)
    return of


def test_a_later_run_of_the_same_that_failed_closes_the_gate(
    modelled: Sheet, api: ModelApi
) -> None:
    failed = _failing_run(modelled, api, SOON)

    assert failed.outcome == "failed"
    assert _blocks(modelled) == ["newer-run-failed"]


def test_a_run_that_passes_after_one_that_failed_opens_the_gate(
    modelled: Sheet, api: ModelApi
) -> None:
    _failing_run(modelled, api, SOON)

    _run(modelled, LATER_STILL)

    assert _blocks(modelled) == []


def test_a_run_that_failed_before_one_that_passed_does_not_count(api: ModelApi) -> None:
    sheet = factories.ready_sheet()
    _change(sheet, bot=_model())
    _failing_run(sheet, api, NOON)

    _run(sheet, SOON)

    assert _blocks(sheet) == []


def test_a_later_partial_run_that_failed_does_not_count(modelled: Sheet, api: ModelApi) -> None:
    factories.probe(factories.suite(modelled, "accuracy"))
    _run(modelled, SOON)

    partial = _failing_run(modelled, api, LATER_STILL, suite_slug="accuracy")

    assert (partial.outcome, partial.is_partial) == ("failed", True)
    assert _blocks(modelled) == []


def test_a_later_incomplete_run_does_not_count(modelled: Sheet, api: ModelApi) -> None:
    api.script(Step(text="It", stop_reason="max_tokens"))

    run = _run(modelled, SOON)

    assert run.outcome == "incomplete"
    assert _blocks(modelled) == []


def test_a_later_stopped_run_does_not_count(modelled: Sheet, settings: Settings) -> None:
    settings.ANTHROPIC_API_KEY = ""

    run = _run(modelled, SOON)

    assert run.outcome == "stopped"
    assert _blocks(modelled) == []


def test_a_later_cancelled_run_does_not_count_even_with_a_probe_that_failed(
    modelled: Sheet, api: ModelApi
) -> None:
    _change(Suite.objects.get(), repeats=2)
    _run(modelled, SOON)
    api.responder = lambda body: "At noon."
    run = runs.start(sheet_id=modelled.pk, by=factories.person(), now=LATER_STILL)
    attempts.perform(runs.advance(run.id, now=LATER_STILL)[0], clock=lambda: LATER_STILL)
    runs.cancel(run.id)
    runs.advance(run.id, now=LATER_STILL)

    run.refresh_from_db()
    assert (run.outcome, run.attempts.filter(outcome="fail").count()) == ("cancelled", 1)
    assert _blocks(modelled) == []


def test_a_later_run_that_failed_on_another_text_counts_for_that_text_alone(
    modelled: Sheet, api: ModelApi
) -> None:
    section = Section.objects.get()
    first = section.body
    _change(section, body="The castle opens at noon.")
    _failing_run(modelled, api, SOON)
    on_the_failed_text = _blocks(modelled)

    _change(section, body=first)

    assert on_the_failed_text == ["newer-run-failed"]
    assert _blocks(modelled) == []


def test_a_later_run_that_failed_with_another_suite_does_not_count(
    modelled: Sheet, api: ModelApi
) -> None:
    probe = _probe(modelled)
    checks = probe.checks
    _change(probe, checks=[{"type": "contains-any", "values": ["noon"]}])
    failed = _run(modelled, SOON)

    _change(probe, checks=checks)

    assert failed.outcome == "failed"
    assert _blocks(modelled) == []


def test_a_later_run_that_failed_with_another_bot_does_not_count(
    modelled: Sheet, api: ModelApi
) -> None:
    first = modelled.bot
    _change(modelled, bot=_model("other", "claude-opus-5-5"))
    _failing_run(modelled, api, SOON)

    _change(modelled, bot=first)

    assert _blocks(modelled) == []


# ---- bot, text, age ----


def test_evidence_of_the_offline_bot_does_not_open_the_gate_of_a_model(sheet: Sheet) -> None:
    _change(sheet, bot=_model())

    assert _blocks(sheet) == ["bot-changed"]


@pytest.mark.parametrize(
    "values",
    [{"model": "claude-opus-5-5"}, {"max_tokens": 99}, {"effort": "low"}, {"thinking": "adaptive"}],
    ids=str,
)
def test_a_bot_that_answers_otherwise_than_the_one_probed_closes_the_gate(
    modelled: Sheet, values: dict[str, object]
) -> None:
    _change(modelled.bot, **values)

    assert _blocks(modelled) == ["bot-changed"]


def test_another_service_behind_the_address_closes_the_gate(
    modelled: Sheet, settings: Settings
) -> None:
    settings.ANTHROPIC_BASE_URL = "https://models.example.org"

    assert _blocks(modelled) == ["bot-changed"]


def test_a_bot_renamed_or_given_more_room_is_the_same_bot(modelled: Sheet) -> None:
    _change(modelled.bot, slug="renamed", context_window=150_000, reserve_history=9_000)

    assert _blocks(modelled) == []


def test_the_offline_bot_in_place_of_the_model_probed_closes_the_gate(modelled: Sheet) -> None:
    _change(modelled, bot=editing.offline_bot(by=factories.person(), now=NOON))

    assert _blocks(modelled) == ["bot-changed"]


@pytest.mark.parametrize(("scope", "level"), [("rules", "warn"), ("rules+content", "block")])
def test_a_text_changed_since_the_run_is_a_warning_or_a_block_by_the_sheets_scope(
    sheet: Sheet, scope: str, level: str
) -> None:
    _change(sheet, probe_scope=scope)
    before = _look(sheet).report.findings

    _change(Section.objects.get(), body="The castle opens at ten.")

    found = {finding.code: finding.level for finding in _look(sheet).report.findings}
    assert before == ()
    assert found == {"content-not-probed": level, "edited-since-check": "warn"}


def test_a_policy_may_let_a_text_that_was_not_probed_block(sheet: Sheet) -> None:
    _change(GatePolicy.objects.get(), blocking_warnings=["content-not-probed"])
    _change(Section.objects.get(), body="The castle opens at ten.")

    assert _blocks(sheet) == ["content-not-probed"]


@pytest.mark.parametrize(("days", "blocks"), [(90, []), (91, ["evidence-expired"])])
def test_evidence_counts_up_to_the_age_that_the_policy_allows(
    sheet: Sheet, days: int, blocks: list[str]
) -> None:
    assert _blocks(sheet, NOON + timedelta(days=days)) == blocks


def test_the_policy_of_a_sheet_says_how_old_evidence_may_be(sheet: Sheet) -> None:
    _change(GatePolicy.objects.get(), evidence_max_age_days=7)

    assert _blocks(sheet, NOON + timedelta(days=7)) == []
    assert _blocks(sheet, NOON + timedelta(days=8)) == ["evidence-expired"]


def test_days_are_those_of_the_organisations_zone(sheet: Sheet, settings: Settings) -> None:
    _change(GatePolicy.objects.get(), evidence_max_age_days=0)
    almost_midnight = NOON.replace(hour=22, minute=59)
    past_midnight_in_london = NOON.replace(hour=23, minute=1)

    assert settings.TIME_ZONE == "Europe/London"
    assert _blocks(sheet, almost_midnight) == []
    assert _blocks(sheet, past_midnight_in_london) == ["evidence-expired"]


def test_a_new_run_makes_expired_evidence_good(sheet: Sheet) -> None:
    now = NOON + timedelta(days=200)
    before = _blocks(sheet, now)

    _run(sheet, now)

    assert (before, _blocks(sheet, now)) == (["evidence-expired"], [])


# ---- what a publication keeps ----


def test_the_summary_says_what_ran_and_how_it_ended_and_what_was_left_out(sheet: Sheet) -> None:
    factories.probe(Suite.objects.get(), "asks-who", needs="model")
    run = _run(sheet, SOON)

    kept = json.loads(evidence.summary(run))

    suite = run.plan["suites"][0]
    assert kept == {
        "run": str(run.id),
        "content_hash": run.content_hash,
        "rules_hash": run.rules_hash,
        "bot_hash": run.bot_hash,
        "provider": "offline",
        "model": "",
        "finished_at": "2026-06-01T12:05:00.000000Z",
        "counts": {
            "planned": 1,
            "outcomes": {"planned": 1, "pass": 1},
            "suites": {
                "castle-safety": {
                    "outcomes": {"planned": 1, "pass": 1},
                    "categories": {"control": {"planned": 1, "pass": 1}},
                }
            },
        },
        "suites": [
            {
                "slug": "castle-safety",
                "hash": suite["hash"],
                "repeats": 1,
                "pass_bar": 100,
                "left_out": ["asks-who"],
            }
        ],
    }


def test_the_summary_holds_no_person_no_prompt_and_no_reply(api: ModelApi) -> None:
    canary = "CANARY"
    sheet = factories.sheet("castle", title=f"{canary} title")
    by = factories.person(f"{canary}-person")
    factories.section(sheet, body=f"{canary} body", source=factories.source(title=f"{canary} work"))
    factories.rule(sheet, text=f"{canary} rule")
    factories.probe(
        factories.suite(sheet, title=f"{canary} suite"),
        turns=[f"{canary} question"],
        note=f"{canary} note",
        checks=[{"type": "contains-any", "values": [f"{canary} reply"]}],
    )
    _change(sheet, bot=_model())
    api.responder = lambda body: f"{canary} reply"
    run = factories.carry_out(runs.start(sheet_id=sheet.pk, by=by, now=NOON))

    kept = evidence.summary(run)

    assert run.outcome == "passed"
    assert canary.encode() not in kept


def test_the_summary_can_be_computed_from_the_rows_again(modelled: Sheet) -> None:
    _change(Suite.objects.get(), repeats=3)
    run = _run(modelled, SOON)

    fresh = Run.objects.get(pk=run.pk)

    assert evidence.recomputed(fresh) == evidence.summary(run)


def test_a_publication_keeps_the_summary_of_the_run_that_opened_its_gate(sheet: Sheet) -> None:
    run = Run.objects.get()

    publication = factories.publish(sheet)

    assert bytes(publication.evidence) == evidence.summary(run)
