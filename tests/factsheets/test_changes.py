"""Who changed what since the live publication, and what the gate makes of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from evals.models import Probe
from factsheets import changes, editing, explaining, publishing, triggers
from factsheets.models import (
    ChangeSet,
    Citation,
    GatePolicy,
    Publication,
    Rule,
    RuleSet,
    Sheet,
    SheetRuleSet,
)
from factsheets.models.tracking import change_set
from tests import factories
from tests.factories import LATER, NOON

pytestmark = pytest.mark.django_db


def _change(row: Any, by: str = "ben", reason: str = "because", **values: object) -> None:
    editing.change(row, by=factories.person(by), reason=reason, now=LATER, **values)


def _since(sheet: Sheet) -> list[tuple[str, list[str]]]:
    after = changes.base(publishing.last_publication(sheet))
    return [
        (each.by, [str(change) for change in each.changes])
        for each in changes.of_sheet(sheet, after=after)
    ]


def _explained(sheet: Sheet, now: datetime = LATER) -> explaining.Explanation:
    fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)
    view = publishing.look(fresh, now=now)
    last = publishing.last_publication(fresh)
    return explaining.explain(fresh, view.report, view.evidence, last)


@pytest.fixture
def live() -> Sheet:
    return factories.published_sheet()


# ---- what changed ----


def test_nothing_changed_right_after_a_publication(live: Sheet) -> None:
    assert _since(live) == []


def test_every_kind_of_change_is_named_with_who_made_it(live: Sheet) -> None:
    section = live.sections.get()
    _change(section, body="The castle opens at nine.")
    _change(section.citations.get(), "carol", quote="Opens at nine.")
    _change(section.citations.get().source, "carol", title="The new leaflet")
    _change(Rule.objects.get(), "dora", text="Answer from the sheet alone.")
    _change(live.bot, "dora", max_tokens=2048)
    _change(live, "erik", title="The old castle")
    _change(GatePolicy.objects.get(), "erik", evidence_max_age_days=30)
    _change(live.suites.get(), "dora", repeats=2)
    _change(Probe.objects.get(), "dora", active=False)
    editing.remove(live.suite_requirements.get(), by=factories.person("dora"), reason="", now=LATER)

    assert _since(live) == [
        ("ben", ["section hours changed (body)"]),
        ("carol", ["citation castle-leaflet: page 1 changed (quote)"]),
        ("carol", ["source castle-leaflet changed (title)"]),
        ("dora", ["rule sheet-only changed (text)"]),
        ("dora", ["bot offline changed (max_tokens)"]),
        ("erik", ["sheet castle changed (title)"]),
        ("erik", ["gate policy gate policy of The old castle changed (evidence_max_age_days)"]),
        ("dora", ["suite castle-safety changed (repeats)"]),
        ("dora", ["probe asks-hours changed (active)"]),
        ("dora", ["required suite Safety for The old castle removed"]),
    ]


def test_one_save_that_touched_several_rows_is_one_change(live: Sheet) -> None:
    section = live.sections.get()
    with change_set(by=factories.person("ben"), reason="tidied", now=LATER):
        section.body = "The castle opens at nine."
        section.save()
        source = section.citations.get().source
        Citation(section=section, source=source, locator="page 9").save()

    (changed,) = changes.of_sheet(live, after=changes.base(publishing.last_publication(live)))

    assert (changed.by, changed.reason, len(changed.changes)) == ("ben", "tidied", 2)


def test_added_moved_removed_and_restored_are_told_apart(live: Sheet) -> None:
    section = factories.section(live, "dogs", by=factories.person("ben"))
    _change(section, position=9)
    editing.remove(section, by=factories.person("ben"), reason="", now=LATER)
    editing.restore(section, by=factories.person("ben"), reason="", now=LATER)

    assert [what for _, (what,) in _since(live)] == [
        "section dogs added",
        "section dogs moved",
        "section dogs removed",
        "section dogs restored",
    ]


def test_changes_of_other_sheets_are_not_told(live: Sheet) -> None:
    other = factories.published_sheet("abbey")
    _change(other.sections.get(), body="The abbey opens at nine.")
    _change(Rule.objects.get(ruleset__sheet_links__sheet=other), text="Be brief.")

    assert _since(live) == []


def test_a_shared_set_counts_while_it_is_used_and_when_it_is_dropped(live: Sheet) -> None:
    shared = RuleSet(slug="house", title="House rules", shared=True)
    factories.save(shared)
    link = SheetRuleSet(sheet=live, ruleset=shared)
    factories.save(link)
    _change(live.sections.get(), body="The castle opens at nine.")
    factories.publish(live)
    editing.remove(link, by=factories.person("ben"), reason="", now=LATER)
    dropped = _since(live)
    _change(live.sections.get(), body="The castle opens at ten.")
    factories.publish(live, now=LATER)
    _change(shared, title="House rules, new")

    assert dropped == [("ben", ["rule set of a sheet House rules in The castle removed"])]
    assert _since(live) == []


def test_after_a_rollback_all_that_is_not_live_again_counts(live: Sheet) -> None:
    _change(live.sections.get(), body="The castle opens at nine.")
    factories.publish(live, now=LATER)
    publishing.rollback(
        sheet_id=live.pk,
        to_number=1,
        seen_live_number=2,
        by=factories.person(),
        reason="back",
        now=LATER,
    )

    assert _since(live) == [("ben", ["section hours changed (body)"])]


def test_publications_of_earlier_versions_count_from_their_time(live: Sheet) -> None:
    with triggers.lifted(connection, triggers.FACTSHEETS):
        Publication.objects.update(changes_up_to=None)
    _change(live.sections.get(), body="The castle opens at nine.")

    assert _since(live) == [("ben", ["section hours changed (body)"])]


def test_the_number_of_queries_does_not_grow_with_the_changes(
    live: Sheet, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        _change(live.sections.get(key="hours"), body=f"The castle opens at {number}.")
        factories.section(live, f"more-{number}", source=factories.source(f"more-{number}"))
        factories.rule(live, f"more-{number}")

    with django_assert_max_num_queries(23):
        assert len(_since(live)) == 25


# ---- the gate in one read ----


def test_rules_closed_the_gate_since_the_first_change_after_the_probes_passed(live: Sheet) -> None:
    rule = Rule.objects.get()
    _change(rule, "anna", "stricter", text="Answer from the sheet alone.")
    factories.passing_run(live, now=LATER)
    _change(rule, "ben", "kinder", text="Be kind.")
    editing.change(
        rule,
        by=factories.person("carol"),
        reason="briefer",
        now=LATER + timedelta(days=1),
        text="Be brief.",
    )

    explanation = _explained(live)

    (finding,) = (each for each in explanation.findings if each.finding.level == "block")
    assert (finding.finding.code, finding.since, finding.by) == (
        "rules-not-probed",
        LATER,
        ("ben", "carol"),
    )
    assert finding.opens == "Run the probes; the gate opens when they pass."
    assert finding.page == "docs/findings/rules-not-probed.md"
    assert explanation.closed_since == "2 June 2026, 13:00"
    assert explanation.closed_by == ("ben", "carol")


def test_rules_that_never_passed_are_nobodys_change() -> None:
    sheet = factories.ready_sheet()

    (finding,) = _explained(sheet).findings

    assert (finding.since, finding.changes) == (None, ())


def test_a_finding_of_one_section_names_that_sections_change_alone(live: Sheet) -> None:
    factories.section(live, "dogs", heading="Dogs", by=factories.person("ben"))
    _change(live.sections.get(key="hours"), "carol", body="")

    found = {each.finding.code: each for each in _explained(live).findings}

    assert found["empty-section"].by == ("carol",)
    assert found["empty-section"].since == LATER
    assert found["unsourced"].by == ("ben",)


def test_evidence_is_too_old_since_the_day_after_its_last(live: Sheet) -> None:
    _change(live.sections.get(), body="The castle opens at nine.")

    explanation = _explained(live, NOON + timedelta(days=91))

    expired = next(e for e in explanation.findings if e.finding.code == "evidence-expired")
    assert expired.since_words == "31 August 2026"
    assert explanation.closed_since == "31 August 2026"


def test_another_bot_closed_the_gate_by_whoever_chose_it(live: Sheet) -> None:
    _change(live.bot, "dora", "longer answers", max_tokens=2048)

    changed = next(e for e in _explained(live).findings if e.finding.code == "bot-changed")

    assert (changed.by, changed.since) == (("dora",), LATER)


def test_a_gate_that_is_open_is_closed_by_nobody(live: Sheet) -> None:
    _change(live.sections.get(), body="The castle opens at nine.")

    explanation = _explained(live)

    assert (explanation.closed_since, explanation.closed_by) == ("", ())
    assert [each.by for each in explanation.changed] == ["ben"]


# ---- four eyes ----


@pytest.fixture
def watched(live: Sheet) -> Sheet:
    """A live sheet that asks for four eyes."""
    _change(GatePolicy.objects.get(sheet=live), "erik", four_eyes=True)
    _change(live.sections.get(), "anna", body="The castle opens at ten.")
    return live


def test_whoever_wrote_a_change_may_not_publish_it(watched: Sheet) -> None:
    with pytest.raises(publishing.PublishRefused, match="you changed section hours yourself"):
        factories.publish(watched, by=factories.person("anna"), now=LATER)

    assert watched.publications.count() == 1


def test_somebody_else_may_publish_it(watched: Sheet) -> None:
    assert factories.publish(watched, by=factories.person("carol"), now=LATER).number == 2


def test_whoever_changed_what_the_gate_asks_may_not_publish_either(watched: Sheet) -> None:
    with pytest.raises(publishing.PublishRefused, match="you changed gate policy"):
        factories.publish(watched, by=factories.person("erik"), now=LATER)


def test_what_was_published_before_counts_no_longer(watched: Sheet) -> None:
    factories.publish(watched, by=factories.person("carol"), now=LATER)
    _change(watched.sections.get(), "ben", body="The castle opens at ten o'clock.")

    assert factories.publish(watched, by=factories.person("anna"), now=LATER).number == 3


def test_of_a_first_publication_every_change_counts() -> None:
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)
    _change(GatePolicy.objects.get(), "erik", four_eyes=True)

    with pytest.raises(publishing.PublishRefused, match="and 11 more yourself"):
        factories.publish(sheet, by=factories.person("anna"), now=LATER)

    assert factories.publish(sheet, by=factories.person("carol"), now=LATER).number == 1


def test_an_author_may_bring_back_what_others_published(watched: Sheet) -> None:
    factories.publish(watched, by=factories.person("carol"), now=LATER)
    publication = publishing.rollback(
        sheet_id=watched.pk,
        to_number=1,
        seen_live_number=2,
        by=factories.person("anna"),
        reason="back",
        now=LATER,
    )

    assert publication.number == 3


def test_whoever_eased_the_gate_may_not_bring_back_a_publication(watched: Sheet) -> None:
    factories.publish(watched, by=factories.person("carol"), now=LATER)
    with pytest.raises(publishing.PublishRefused, match="ask somebody to publish"):
        publishing.rollback(
            sheet_id=watched.pk,
            to_number=1,
            seen_live_number=2,
            by=factories.person("erik"),
            reason="back",
            now=LATER,
        )


def test_withdrawing_asks_for_no_second_pair_of_eyes(watched: Sheet) -> None:
    publishing.withdraw(sheet_id=watched.pk, by=factories.person("anna"), reason="wrong", now=LATER)

    assert not Sheet.objects.get(pk=watched.pk).state.live_publication


def test_the_change_sets_themselves_stay_as_they_are(live: Sheet) -> None:
    _change(live.sections.get(), body="The castle opens at nine.")
    before = list(ChangeSet.objects.values())

    _explained(live)

    assert list(ChangeSet.objects.values()) == before
