"""Back to how it stood: the very text of that moment, as one new change, and nothing published."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from factsheets import canonical, editing, history, restoring
from factsheets.models import (
    ChangeSet,
    Check,
    Citation,
    Publication,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
)
from factsheets.models.tracking import change_set
from tests import factories
from tests.factories import LATER, NOON

pytestmark = pytest.mark.django_db

THEN = NOON + timedelta(minutes=1)


def _change(row: Any, now: datetime = LATER, **values: object) -> None:
    editing.change(row, by=factories.person("ben"), reason="edit", now=now, **values)


def _remove(row: Any, now: datetime = LATER) -> None:
    editing.remove(row, by=factories.person("ben"), reason="edit", now=now)


def _candidate(sheet: Sheet) -> canonical.Candidate:
    return history.candidate_now(Sheet.objects.select_related("bot").get(pk=sheet.pk))


def _restore(sheet: Sheet, moment: datetime = THEN, *, with_rules: bool = True) -> int:
    changed = restoring.sheet_to(
        Sheet.objects.get(pk=sheet.pk),
        moment,
        with_rules=with_rules,
        by=factories.person("carol"),
        reason="back",
        now=LATER + timedelta(days=1),
    )
    return len(changed.changes)


@pytest.fixture
def sheet() -> Sheet:
    """Three sections with a source each, and two rules, published, at noon."""
    of = factories.ready_sheet()
    for key in ("dogs", "fees"):
        factories.section(of, key, heading=key.title(), source=factories.source(key))
    factories.rule(of, "brief", text="Be brief.")
    factories.passing_run(of)
    factories.publish(of)
    return of


def test_the_whole_draft_comes_back_to_the_same_hashes(sheet: Sheet) -> None:
    before = _candidate(sheet)
    sections = {row.key: row for row in sheet.sections.all()}
    _change(sections["hours"], body="Closed.", heading="Hours", position=9)
    _change(sections["dogs"], included=False, note="no dogs")
    _remove(sections["fees"])
    with change_set(by=factories.person("ben"), reason="new", now=LATER):
        factories.section(sheet, "parking", heading="Parking")
    _remove(Citation.objects.get(section=sections["dogs"]))
    _change(Rule.objects.get(key="brief"), text="Be long.")
    _change(sheet, title="The old castle", language="de")

    _restore(sheet)

    assert _candidate(sheet).subject == before.subject
    assert _candidate(sheet).snapshot == before.snapshot


def test_it_is_one_new_change_with_who_and_why_and_publishes_nothing(sheet: Sheet) -> None:
    _change(sheet.sections.get(key="hours"), body="Closed.")
    _remove(sheet.sections.get(key="fees"))
    before = ChangeSet.objects.count()

    count = _restore(sheet)

    newest = ChangeSet.objects.latest("id")
    assert (ChangeSet.objects.count(), newest.by_name, newest.reason) == (
        before + 1,
        "carol",
        "back",
    )
    assert count == 2
    assert Publication.objects.count() == 1


def test_what_stands_so_already_is_no_change(sheet: Sheet) -> None:
    before = ChangeSet.objects.count()

    assert _restore(sheet) == 0
    assert ChangeSet.objects.count() == before


def test_without_rules_they_stay_as_they_are(sheet: Sheet) -> None:
    _change(Rule.objects.get(key="brief"), text="Be long.")

    _restore(sheet, with_rules=False)

    assert Rule.objects.get(key="brief").text == "Be long."


def test_shared_rules_are_left_to_the_other_sheets_that_use_them(sheet: Sheet) -> None:
    shared = RuleSet(slug="house", title="House", shared=True)
    factories.save(shared)
    rule = Rule(ruleset=shared, key="polite", kind="format", text="Be polite.")
    factories.save(rule)
    factories.save(SheetRuleSet(sheet=sheet, ruleset=shared))
    _change(rule, text="Be kind.")

    _restore(sheet)

    assert Rule.objects.get(key="polite").text == "Be kind."


def test_name_visibility_and_bot_stay(sheet: Sheet) -> None:
    _change(sheet, slug="tower", visibility="key", probe_scope="rules+content")

    _restore(sheet)

    sheet.refresh_from_db()
    assert (sheet.slug, sheet.visibility, sheet.probe_scope) == ("tower", "key", "rules+content")


def test_checks_stay_with_the_texts_that_they_confirmed(sheet: Sheet) -> None:
    checks = list(Check.objects.values())
    _change(sheet.sections.get(key="hours"), body="Closed.")

    _restore(sheet)

    assert list(Check.objects.values()) == checks


def test_one_section_comes_back_with_its_citations_and_alone(sheet: Sheet) -> None:
    hours, fees = sheet.sections.get(key="hours"), sheet.sections.get(key="fees")
    cited = hours.citations.get()
    _change(hours, body="Closed.", position=9)
    _remove(cited)
    _change(fees, body="Free.")

    restoring.section_to(
        hours, THEN, by=factories.person("carol"), reason="back", now=LATER + timedelta(days=1)
    )

    hours.refresh_from_db()
    fees.refresh_from_db()
    assert hours.body == "The castle opens at ten in the morning and closes at five."
    assert (hours.position, fees.body) == (9, "Free.")
    assert Citation.objects.get(pk=cited.pk).removed_at is None


def test_a_section_taken_out_of_use_comes_back(sheet: Sheet) -> None:
    fees = sheet.sections.get(key="fees")
    _remove(fees)

    restoring.section_to(fees, THEN, by=factories.person(), reason="back", now=LATER)

    assert Section.objects.get(pk=fees.pk).removed_at is None


def test_before_there_was_a_sheet_or_section_nothing_comes_back(sheet: Sheet) -> None:
    late = factories.section(sheet, "parking", heading="Parking")
    with change_set(by=factories.person(), reason="late", now=LATER):
        new = Section(sheet=sheet, key="new", heading="New", position=9)
        new.save()
    early = NOON - timedelta(days=1)

    with pytest.raises(restoring.NothingThen, match="castle was not there"):
        _restore(sheet, early)
    with pytest.raises(restoring.NothingThen, match="“New” was not there"):
        restoring.section_to(new, THEN, by=factories.person(), reason="x", now=LATER)
    assert Section.objects.get(pk=late.pk).removed_at is None


@pytest.mark.parametrize("seed", range(6))
def test_after_any_walk_the_sheet_comes_back_to_any_moment_of_it(seed: int) -> None:
    chance = random.Random(seed)
    sheet = factories.ready_sheet()
    moments: dict[datetime, canonical.Candidate] = {}
    for step in range(25):
        now = NOON + timedelta(hours=step + 1)
        rows = list(sheet.sections.all())
        row = chance.choice(rows)
        act = chance.choice(("add", "edit", "move", "remove", "restore", "cite", "rule", "title"))
        with change_set(by=factories.person(), reason=act, now=now):
            if act == "add":
                factories.section(sheet, f"s{step}", heading=f"S{step}", body=f"Text {step}.")
            elif act == "edit":
                _change(row, now, body=f"Edited at {step}.", included=chance.random() > 0.2)
            elif act == "move":
                _change(row, now, position=chance.randrange(9))
            elif act == "remove":
                _remove(row, now)
            elif act == "restore":
                editing.restore(row, by=factories.person(), reason="", now=now)
            elif act == "cite":
                source = factories.source(f"x{seed}-{step}")
                factories.save(Citation(section=row, source=source, locator=f"page {step}"))
            elif act == "rule":
                factories.rule(sheet, f"r{step}", text=f"Rule {step}.")
            else:
                _change(sheet, now, title=f"Title {step}")
        moments[now] = _candidate(sheet)
    for now, then in chance.sample(sorted(moments.items(), key=lambda item: item[0]), 4):
        _restore(sheet, now)

        found = _candidate(sheet)
        assert found.subject == then.subject
        assert found.snapshot == then.snapshot
