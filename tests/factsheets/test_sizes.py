"""Sizes over time: counted by the service once, with rates and use, kept, and announced each quarter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import DatabaseError, transaction
from pytest_django import Settings

from factsheets import (
    checking,
    counting,
    editing,
    history,
    notices,
    publishing,
    sizes,
    sizing,
    usage,
    use_logs,
)
from factsheets.models import BotProfile, GatePolicy, Outbox, Section, Sheet, SizeReport, TokenCount
from factsheets.snapshot import BotSnapshot
from tests import factories
from tests.factories import NOON, TODAY
from tests.model_api import ModelApi, Step

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def server() -> Iterator[ModelApi]:
    with ModelApi() as server:
        yield server


@pytest.fixture
def api(server: ModelApi, settings: Settings) -> Iterator[ModelApi]:
    settings.ANTHROPIC_API_KEY = server.key
    settings.ANTHROPIC_BASE_URL = server.url
    yield server
    server.finish()


@pytest.fixture
def sheet() -> Sheet:
    return factories.ready_sheet()


def change(row: Any, *, after: int = 0, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=NOON + after * DAY, **values)


def with_model(sheet: Sheet, model: str = "claude-haiku-5-5") -> BotSnapshot:
    bot = BotProfile(slug="model", provider="anthropic", model=model)
    factories.save(bot)
    change(sheet, bot=bot)
    return history.bot_snapshot(bot)


# ---- counting ----


def test_the_service_counts_a_text_once_for_each_model(api: ModelApi, sheet: Sheet) -> None:
    bot = with_model(sheet)

    first = counting.ask("Be kind.", bot, now=NOON)
    again = counting.ask("Be kind.", bot, now=NOON)

    assert first == again == counting.known("Be kind.", bot)
    assert (first.method, len(api.calls), TokenCount.objects.count()) == ("exact", 1, 1)
    assert api.calls[0].path.startswith("/v1/messages/count_tokens")
    assert api.calls[0].body == {
        "model": "claude-haiku-5-5",
        "messages": [{"role": "user", "content": "Be kind."}],
    }


@pytest.mark.parametrize(
    "step",
    [
        Step(status=529, type="overloaded_error"),
        Step(status=401, type="authentication_error"),
        Step(raw=b"<html>"),
        Step(raw=b"{}"),
        Step(drop=True),
    ],
)
def test_where_the_service_does_not_count_the_offline_count_stands(
    api: ModelApi, sheet: Sheet, step: Step
) -> None:
    bot = with_model(sheet)
    api.script(step)

    count = counting.ask("Be kind.", bot, now=NOON)

    assert (count.method, TokenCount.objects.count()) == ("offline", 0)
    assert 3 <= count.tokens <= 6


def test_the_offline_bot_and_a_missing_key_ask_nobody(
    server: ModelApi, settings: Settings, sheet: Sheet
) -> None:
    settings.ANTHROPIC_API_KEY = ""
    settings.ANTHROPIC_BASE_URL = server.url

    of_model = counting.ask("Be kind.", with_model(sheet), now=NOON)
    offline = counting.ask(
        "Be kind.",
        history.bot_snapshot(editing.offline_bot(by=factories.person(), now=NOON)),
        now=NOON,
    )

    assert (of_model.method, offline.method, server.calls) == ("offline", "offline", [])


@pytest.mark.parametrize(
    ("model", "generation"),
    [
        ("claude-3-5-sonnet-20241022", "3.0"),
        ("claude-opus-4-20250514", "4.0"),
        ("claude-sonnet-4-5-20250929", "4.5"),
        ("claude-opus-4-7", "4.7"),
        ("claude-opus-4-8", "4.8"),
        ("claude-haiku-5-5", "4.8"),
        ("claude-haiku-4-10", "4.10"),
        ("", "4.8"),
        ("another", None),
    ],
)
def test_the_tokeniser_goes_by_the_name_of_the_model(model: str, generation: str | None) -> None:
    assert counting.generation(model) == generation


def test_a_model_that_nobody_knows_is_estimated_by_length_and_said_to_be(sheet: Sheet) -> None:
    count = counting.known("Be kind. " * 28, with_model(sheet, "another-model"))

    assert count == sizing.estimate("Be kind. " * 28)
    assert count.in_words == "estimate, ±15%"


# ---- a look ----


def test_a_look_counts_rules_and_sheet_and_measures_on_the_questions_of_the_sections(
    sheet: Sheet,
) -> None:
    change(Section.objects.get(), question="When does the castle open?")

    seen = sizes.look(sheet, today=TODAY)

    assert (seen.facts.sheet.method, seen.facts.sections) == ("offline", 1)
    assert seen.facts.sheet.tokens > 5
    assert seen.asked == "the questions that the sections name"
    assert [p.sections for p in seen.preview.payloads] == [("hours",)]
    assert seen.verdict.advice == "inline"


def test_bounds_and_readers_come_from_the_policy(sheet: Sheet) -> None:
    change(GatePolicy.objects.get(), readers_differ=True)

    assert sizes.look(sheet, today=TODAY).verdict.advice == "split"


def test_rates_are_of_texts_that_changed_and_of_checks_that_people_made(sheet: Sheet) -> None:
    row = Section.objects.get()
    for after in (7, 14, 21):
        change(row, after=after, body=f"Opens at {after}.")
    change(row, after=22, note="for editors")
    checking.record_imported(
        section=row,
        citations=row.citations.all(),
        checked_on=TODAY + 20 * DAY,
        by=factories.person(),
        now=NOON + 20 * DAY,
    )

    seen = sizes.look(sheet, today=TODAY + 42 * DAY)

    assert seen.facts.changes_a_week == pytest.approx(3 / 6)
    assert seen.facts.checks_a_week == 0


def test_changes_before_the_last_twelve_weeks_are_over(sheet: Sheet) -> None:
    row = Section.objects.get()
    change(row, after=10, body="Opens at ten.")
    change(row, after=60, body="Opens at eleven.")

    seen = sizes.look(sheet, today=TODAY + 100 * DAY)

    assert seen.facts.changes_a_week == pytest.approx(1 / 12)


def test_a_young_sheet_has_no_rate_yet(sheet: Sheet) -> None:
    change(Section.objects.get(), after=1, body="Opens at ten.")

    assert sizes.look(sheet, today=TODAY + 27 * DAY).facts.changes_a_week is None


# ---- kept, and announced ----


def test_a_report_is_kept_with_its_figures_and_never_changed(sheet: Sheet) -> None:
    report = sizes.record(sheet, now=NOON, by=factories.person())

    assert report.figures["sheet_tokens"] == sizes.look(sheet, today=TODAY).facts.sheet.tokens
    assert report.sentence.startswith("Keep it inline")
    with pytest.raises(DatabaseError), transaction.atomic():
        SizeReport.objects.filter(pk=report.pk).update(sentence="x")
    with pytest.raises(DatabaseError), transaction.atomic():
        report.delete()


def test_after_a_quarter_a_sheet_is_counted_again_once_and_its_people_are_told(
    sheet: Sheet,
) -> None:
    keeper = factories.person("mia", "maintainer")
    keeper.email = "mia@example.org"
    keeper.save()
    sizes.record(sheet, now=NOON)
    early, late = NOON + 90 * DAY, NOON + 91 * DAY

    assert sizes.due(now=early) == []
    assert sizes.due(now=late) == [sheet.pk]
    assert sizes.recount(sheet.pk, now=late) is not None
    assert sizes.recount(sheet.pk, now=late) is None

    assert Outbox.objects.filter(topic=sizes.COUNTED).count() == 1
    notices.send(now=late)
    (told,) = mail.outbox
    assert (told.to, "the size of the sheet" in told.subject) == (["mia@example.org"], True)
    assert "Keep it inline" in told.body


def test_the_first_count_is_told_only_if_it_advises_something(sheet: Sheet) -> None:
    other = factories.ready_sheet("outgrown")
    change(other.gate_policy, readers_differ=True)

    for each in (sheet, other):
        sizes.recount(each.pk, now=NOON)

    assert [row.sheet for row in Outbox.objects.filter(topic=sizes.COUNTED)] == [other]
    assert SizeReport.objects.count() == 2


def test_a_sheet_put_away_is_not_counted(sheet: Sheet) -> None:
    editing.archive_sheet(sheet, by=factories.person(), reason="done", now=NOON)

    assert sizes.due(now=NOON + 400 * DAY) == []


# ---- the gate ----


def findings(sheet: Sheet) -> dict[str, Any]:
    fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)
    return {f.code: f for f in publishing.look(fresh, now=NOON).report.findings}


def test_the_gate_warns_of_a_sheet_that_is_better_split_until_it_is(sheet: Sheet) -> None:
    assert "sizing-advises-split" not in findings(sheet)
    change(GatePolicy.objects.get(), readers_differ=True)
    sizes.record(sheet, now=NOON)

    warned = findings(sheet)["sizing-advises-split"]
    change(sheet, delivery="split")

    assert warned.level == "warn"
    assert "Counted on 1 June 2026" in warned.sentence
    assert "sizing-advises-split" not in findings(sheet)


def test_the_newest_report_counts(sheet: Sheet) -> None:
    change(GatePolicy.objects.get(), readers_differ=True)
    sizes.record(sheet, now=NOON)
    change(GatePolicy.objects.get(), readers_differ=False)
    sizes.record(sheet, now=NOON + DAY)

    assert "sizing-advises-split" not in findings(sheet)


def test_the_gate_warns_of_rules_that_have_grown_too_long(sheet: Sheet) -> None:
    assert "rules-too-long" not in findings(sheet)
    factories.rule(sheet, "prices", text="Adults pay £12, children £6. " * 160)

    warned = findings(sheet)["rules-too-long"]

    assert warned.level == "warn"
    assert "“prices” has 800 words" in warned.sentence


def test_a_switch_to_split_asks_for_new_probes_and_is_published_like_any_change(
    sheet: Sheet,
) -> None:
    factories.passing_run(sheet)
    first = factories.publish(sheet)
    change(sheet, delivery="split")
    closed = findings(sheet)
    factories.passing_run(sheet, now=NOON + DAY)

    second = factories.publish(sheet, now=NOON + DAY)
    change(Sheet.objects.get(pk=sheet.pk), delivery="inline")
    factories.passing_run(sheet, now=NOON + 2 * DAY)
    third = factories.publish(sheet, now=NOON + 2 * DAY)

    assert closed["bot-changed"].level == "block"
    assert b"- Opening hours" in bytes(second.prompt)
    assert bytes(first.prompt) == bytes(third.prompt) != bytes(second.prompt)
    assert first.content_hash == second.content_hash


# ---- the whole, from a log to the advice ----


def test_a_week_of_logs_that_touch_nine_of_32_sections_advises_the_split_and_what_it_saves(
    sheet: Sheet,
) -> None:
    """A sheet of 32 sections and about 4,800 tokens; questions to nine of them."""
    subjects = [
        "moat",
        "drawbridge",
        "portcullis",
        "dungeon",
        "chapel",
        "kitchen",
        "armoury",
        "stables",
        "granary",
        "orchard",
        "falconry",
        "brewery",
        "bakery",
        "forge",
        "library",
        "cloister",
        "infirmary",
        "gatehouse",
        "barbican",
        "rampart",
        "keep",
        "turret",
        "cellar",
        "garden",
        "fountain",
        "museum",
        "shop",
        "theatre",
        "school",
        "mill",
        "dovecote",
        "tannery",
    ]
    factories.save(_taken_out(Section.objects.get()))
    for subject in subjects:
        factories.section(sheet, subject, heading=subject.title(), body=_about(subject))
    text = "Say what the sheet says and no more; send whoever asks for more to the desk. "
    for number in range(12):
        factories.rule(sheet, f"rule-{number}", text=text * 3)
    asked = [f"Who looks after the {subject}?" for subject in subjects[:9] for _ in range(8)]
    lines = [
        {
            "question": q,
            "reply": f"The {q.split()[-1][:-1]} is looked after by one warden.",
            "at": f"2026-05-{25 + n % 7}T10:00:00Z",
        }
        for n, q in enumerate(asked)
    ]
    usage.take_log(
        sheet,
        use_logs.read("\n".join(map(json.dumps, lines)).encode(), zone=UTC, now=NOON),
        by=factories.person(),
        keeps_texts=True,
        now=NOON,
    )

    seen = sizes.look(sheet, today=TODAY)

    assert (seen.facts.sections, seen.facts.used, seen.facts.questions) == (32, 9, 72)
    assert 4_300 <= seen.facts.sheet.tokens <= 5_300
    assert seen.verdict.advice == "split"
    assert seen.asked == "questions that visitors asked"
    assert len(seen.preview.dormant) == 23
    assert seen.preview.saved is not None
    assert 0.65 <= seen.preview.saved <= 0.8


def _taken_out(row: Section) -> Section:
    row.removed_at = NOON
    return row


def _about(subject: str) -> str:
    return (
        f"The {subject} is looked after by one warden, who keeps its keys and its book. "
        f"To see the {subject} ask at the desk. "
        f"Families may draw in the {subject}; dogs wait outside, and bags are left in the "
        "lockers beside the entrance. The paths are gravel, with two steps and a ramp. In "
        "winter the lights are lit from four in the "
        "afternoon, and the last round begins half an hour before the gates are closed for the "
        f"night. What the {subject} cost nobody knows any more."
    )
