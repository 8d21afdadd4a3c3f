"""Rows to a snapshot: whole, in order, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from factsheets import canonical, editing, history
from factsheets.models import (
    BotProfile,
    Check,
    Citation,
    Publication,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
)
from factsheets.models.tracking import TrackedModel
from tests import factories
from tests.factories import LATER, NOON, TODAY

pytestmark = pytest.mark.django_db


@pytest.fixture
def sheet() -> Sheet:
    return factories.sheet()


def fresh(sheet: Sheet) -> Sheet:
    return Sheet.objects.select_related("bot").get(pk=sheet.pk)


def check(section: Section, **values: Any) -> Check:
    return Check.objects.create(
        **{
            "section": section,
            "text_hash": canonical.text_hash(section.heading, section.body),
            "checked_on": TODAY,
            "recorded_at": NOON,
            "checked_by": factories.person("ben"),
            "checked_by_name": "ben",
            "outcome": "confirmed",
            "method": "read-paper",
            **values,
        }
    )


def remove(row: TrackedModel) -> None:
    editing.remove(row, by=factories.person(), reason="gone", now=LATER)


def shared_rules(sheet: Sheet, slug: str, *keys: str, position: int) -> SheetRuleSet:
    ruleset = RuleSet(slug=slug, title=slug.title(), shared=True)
    factories.save(ruleset)
    for place, key in enumerate(keys):
        factories.save(
            Rule(ruleset=ruleset, key=key, kind="format", text=f"Rule {key}.", position=place)
        )
    link = SheetRuleSet(sheet=sheet, ruleset=ruleset, position=position)
    factories.save(link)
    return link


# ---- queries ----


@pytest.mark.parametrize("sections", [1, 7])
def test_a_snapshot_takes_five_queries_whatever_the_number_of_sections(
    sheet: Sheet, sections: int, django_assert_num_queries: Callable[[int], Any]
) -> None:
    leaflet = factories.source()
    for number in range(sections):
        check(factories.section(sheet, f"s-{number}", source=leaflet))
        factories.rule(sheet, f"r-{number}")
    of = fresh(sheet)

    with django_assert_num_queries(5):
        snapshot = history.snapshot_now(of)

    assert len(snapshot.sections) == len(snapshot.rules) == sections


# ---- the whole record ----


def test_a_snapshot_holds_the_sheet_with_all_that_stands_beside_its_text(sheet: Sheet) -> None:
    leaflet = factories.source(title="The leaflet", url="https://example.org/", note="Old.")
    section = factories.section(sheet, note="For editors.")
    factories.save(
        Citation(
            section=section,
            source=leaflet,
            locator="page 1",
            claims="hours",
            quote="at ten",
            role="qualifies",
            required=False,
        )
    )
    check(section, note="Read twice.")

    snapshot = history.snapshot_now(fresh(sheet))

    (only,) = snapshot.sections
    (citation,) = only.citations
    assert (snapshot.slug, snapshot.title, snapshot.language) == ("castle", "The castle", "en-GB")
    assert (only.key, only.note, only.included) == ("hours", "For editors.", True)
    assert (citation.source.title, citation.source.url, citation.source.note) == (
        "The leaflet",
        "https://example.org/",
        "Old.",
    )
    assert (citation.locator, citation.claims, citation.quote) == ("page 1", "hours", "at ten")
    assert (citation.role, citation.required) == ("qualifies", False)
    assert only.check is not None
    assert (only.check.checked_on, only.check.checked_by, only.check.note) == (
        TODAY,
        "ben",
        "Read twice.",
    )


def test_a_snapshot_is_of_one_sheet_alone(sheet: Sheet) -> None:
    other = factories.sheet("tower")
    factories.section(other, "stairs", source=factories.source())
    factories.rule(other, "careful")
    factories.section(sheet, "hours")

    snapshot = history.snapshot_now(fresh(sheet))

    assert [section.key for section in snapshot.sections] == ["hours"]
    assert snapshot.sections[0].citations == ()
    assert snapshot.rules == ()


def test_the_record_of_a_snapshot_reads_back_to_it() -> None:
    snapshot = history.snapshot_now(fresh(factories.ready_sheet()))

    assert canonical.read_record(canonical.record_bytes(snapshot)) == snapshot


# ---- order, and what is left out ----


def test_sections_stand_by_position_and_then_by_id(sheet: Sheet) -> None:
    for key, position in (("c", 2), ("b1", 1), ("a", 0), ("b2", 1)):
        factories.section(sheet, key, position=position)

    snapshot = history.snapshot_now(fresh(sheet))

    assert [section.key for section in snapshot.sections] == ["a", "b1", "b2", "c"]


def test_citations_stand_by_position_and_then_by_id(sheet: Sheet) -> None:
    section, leaflet = factories.section(sheet), factories.source()
    for claims, position in (("c", 2), ("b1", 1), ("a", 0), ("b2", 1)):
        factories.save(Citation(section=section, source=leaflet, claims=claims, position=position))

    (only,) = history.snapshot_now(fresh(sheet)).sections

    assert [citation.claims for citation in only.citations] == ["a", "b1", "b2", "c"]


def test_rules_stand_by_position_and_then_by_id(sheet: Sheet) -> None:
    for key, position in (("c", 2), ("b1", 1), ("a", 0), ("b2", 1)):
        factories.rule(sheet, key, position=position)

    snapshot = history.snapshot_now(fresh(sheet))

    assert [rule.key for rule in snapshot.rules] == ["a", "b1", "b2", "c"]


def test_shared_rules_come_first_in_the_order_of_their_sets_and_then_the_sheets_own(
    sheet: Sheet,
) -> None:
    factories.rule(sheet, "own")
    shared_rules(sheet, "later", "l-1", position=5_000)
    shared_rules(sheet, "sooner", "s-1", "s-2", position=2_000)

    snapshot = history.snapshot_now(fresh(sheet))

    assert [(rule.ruleset, rule.key) for rule in snapshot.rules] == [
        ("sooner", "s-1"),
        ("sooner", "s-2"),
        ("later", "l-1"),
        ("castle-rules", "own"),
    ]


def test_removed_rows_are_left_out(sheet: Sheet) -> None:
    section, leaflet = factories.section(sheet), factories.source()
    kept = Citation(section=section, source=leaflet, claims="kept")
    gone = Citation(section=section, source=leaflet, claims="gone")
    factories.save(kept)
    factories.save(gone)
    factories.rule(sheet, "kept")
    removed = [gone, factories.section(sheet, "gone"), factories.rule(sheet, "gone")]

    for row in removed:
        remove(row)

    snapshot = history.snapshot_now(fresh(sheet))
    assert [s.key for s in snapshot.sections] == ["hours"]
    assert [c.claims for c in snapshot.sections[0].citations] == ["kept"]
    assert [r.key for r in snapshot.rules] == ["kept"]


def test_a_rule_set_that_was_unlinked_or_removed_gives_no_rules(sheet: Sheet) -> None:
    unlinked = shared_rules(sheet, "unlinked", "u-1", position=0)
    removed = shared_rules(sheet, "removed", "r-1", position=1)
    shared_rules(sheet, "kept", "k-1", position=2)

    remove(unlinked)
    remove(removed.ruleset)

    assert [rule.key for rule in history.snapshot_now(fresh(sheet)).rules] == ["k-1"]


def test_sections_that_are_not_included_and_rules_switched_off_stay_in_the_record(
    sheet: Sheet,
) -> None:
    factories.section(sheet, included=False)
    factories.rule(sheet, enabled=False)

    snapshot = history.snapshot_now(fresh(sheet))
    candidate = history.candidate_now(fresh(sheet))

    assert [section.included for section in snapshot.sections] == [False]
    assert [rule.enabled for rule in snapshot.rules] == [False]
    assert candidate.content.sections == ()
    assert candidate.rules_text == ""


# ---- checks ----


def latest(sheet: Sheet) -> str | None:
    (only,) = history.snapshot_now(fresh(sheet)).sections
    return only.check and only.check.note


def test_a_section_without_a_check_has_none(sheet: Sheet) -> None:
    factories.section(sheet)

    assert latest(sheet) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"checked_on": TODAY}, {"checked_on": TODAY + timedelta(days=1)}),
        # An old date recorded later is no newer check.
        (
            {"checked_on": date(2025, 1, 1), "recorded_at": LATER},
            {"checked_on": TODAY, "recorded_at": NOON},
        ),
        ({"recorded_at": NOON}, {"recorded_at": LATER}),
    ],
)
def test_the_latest_check_is_that_of_the_latest_day_and_then_the_latest_record(
    sheet: Sheet, older: dict[str, Any], newer: dict[str, Any]
) -> None:
    section = factories.section(sheet)
    check(section, note="newer", **newer)
    check(section, note="older", **older)

    assert latest(sheet) == "newer"


def test_of_two_checks_recorded_together_the_one_written_last_counts(sheet: Sheet) -> None:
    section = factories.section(sheet)
    check(section, note="first")
    check(section, note="second")

    assert latest(sheet) == "second"


def test_a_check_that_another_supersedes_does_not_count(sheet: Sheet) -> None:
    section = factories.section(sheet)
    wrong = check(section, note="wrong", checked_on=date(2026, 12, 31))
    check(section, note="right", checked_on=TODAY, supersedes=wrong)

    assert latest(sheet) == "right"


# ---- the bot ----


def test_a_bot_at_the_model_service_has_the_installations_address(
    sheet: Sheet, settings: Any
) -> None:
    settings.ANTHROPIC_BASE_URL = "https://gateway.example.org/v1?key=secret#part"
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)
    editing.change(sheet, by=factories.person(), reason="a model", now=NOON, bot=bot)

    snapshot = history.snapshot_now(fresh(sheet))

    assert (snapshot.bot.provider, snapshot.bot.model) == ("anthropic", "claude-haiku-5-5")
    assert snapshot.bot.endpoint == "https://gateway.example.org/v1"


def test_the_address_that_is_kept_holds_no_password(sheet: Sheet, settings: Any) -> None:
    settings.ANTHROPIC_BASE_URL = "https://user:secret@gateway.example.org:8443/v1"
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)

    assert history.bot_snapshot(bot).endpoint == "https://gateway.example.org:8443/v1"


def test_the_offline_bot_has_no_address(sheet: Sheet) -> None:
    assert history.snapshot_now(fresh(sheet)).bot.endpoint == ""


# ---- a past publication, judged now ----


def test_a_past_publication_is_judged_by_present_checks_and_with_the_present_bot() -> None:
    sheet = factories.published_sheet()
    section = sheet.sections.get()
    check(section, outcome="disputed", note="No.", recorded_at=LATER)
    editing.change(
        sheet.bot,
        by=factories.person(),
        reason="more",
        now=LATER,
        max_tokens=sheet.bot.max_tokens + 1,
    )
    editing.change(section, by=factories.person(), reason="edit", now=LATER, body="Closed.")

    candidate = history.candidate_of(Publication.objects.select_related("sheet__bot").get())

    past = canonical.read_record(bytes(Publication.objects.get().record))
    (only,) = candidate.snapshot.sections
    assert only.check is not None
    assert only.check.outcome == "disputed"
    assert candidate.snapshot.bot.max_tokens == past.bot.max_tokens + 1
    assert replace(only, check=None) == replace(past.sections[0], check=None)
    assert candidate.content_bytes == canonical.candidate(1, past).content_bytes
