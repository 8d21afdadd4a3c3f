"""Publishing: what was seen is what goes out, once, and only through an open gate."""

from __future__ import annotations

import pytest

from factsheets import canonical, editing, publishing
from factsheets.models import (
    Outbox,
    PublicationEvent,
    Rule,
    RuleSet,
    Sheet,
    SheetRuleSet,
)
from factsheets.models.tracking import NotValid
from factsheets.publishing import ChangedMeanwhile, NothingLive, PublishRefused, ReasonMissing
from tests import factories
from tests.factories import LATER, NOON

pytestmark = pytest.mark.django_db


def _look(sheet: Sheet) -> publishing.Look:
    fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)
    return publishing.look(fresh, now=NOON)


def _codes(refused: pytest.ExceptionInfo[PublishRefused]) -> list[str]:
    return [finding.code for finding in refused.value.report.blocks]


def test_a_sheet_whose_probes_passed_is_published() -> None:
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)

    publication = factories.publish(sheet)

    assert publication.number == 1
    assert _look(sheet).live_number == 1
    assert canonical.sha256(bytes(publication.body)) == publication.body_hash


def test_a_run_on_older_rules_does_not_open_the_gate() -> None:
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)
    rule = Rule.objects.get(ruleset__sheet_links__sheet=sheet)
    editing.change(rule, by=factories.person(), reason="stricter", now=NOON, text="Once a day.")

    with pytest.raises(PublishRefused) as refused:
        factories.publish(sheet)

    assert _codes(refused) == ["rules-not-probed"]


def test_publishing_writes_one_event_and_one_announcement() -> None:
    sheet = factories.published_sheet()

    events = PublicationEvent.objects.filter(sheet=sheet)
    announcements = Outbox.objects.filter(sheet=sheet)

    assert [(e.kind, e.to_publication.number) for e in events if e.to_publication] == [
        ("published", 1)
    ]
    assert [(o.topic, o.payload["publication"]) for o in announcements] == [("published", 1)]


def test_a_second_publication_of_the_same_text_is_refused() -> None:
    sheet = factories.published_sheet()

    with pytest.raises(PublishRefused) as refused:
        factories.publish(sheet)

    assert _codes(refused) == ["nothing-changed"]


def test_what_changed_after_the_look_is_not_published() -> None:
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)
    seen = _look(sheet).candidate.subject
    section = sheet.sections.get()
    editing.change(section, by=factories.person(), reason="edit", now=NOON, body="Closed all week.")

    with pytest.raises(ChangedMeanwhile):
        publishing.publish(
            sheet_id=sheet.pk,
            seen=seen,
            seen_live_number=None,
            by=factories.person(),
            reason="go",
            now=NOON,
        )

    assert not sheet.publications.exists()


def test_a_publisher_who_missed_another_publication_is_told() -> None:
    sheet = factories.published_sheet()
    section = sheet.sections.get()
    editing.change(section, by=factories.person(), reason="edit", now=NOON, body="Open at ten.")
    seen = _look(sheet).candidate.subject

    with pytest.raises(ChangedMeanwhile):
        publishing.publish(
            sheet_id=sheet.pk,
            seen=seen,
            seen_live_number=None,
            by=factories.person(),
            reason="go",
            now=NOON,
        )


def test_publishing_without_a_reason_is_refused_and_leaves_nothing() -> None:
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)
    view = _look(sheet)

    with pytest.raises(ReasonMissing):
        publishing.publish(
            sheet_id=sheet.pk,
            seen=view.candidate.subject,
            seen_live_number=None,
            by=factories.person(),
            reason="   ",
            now=NOON,
        )

    assert not sheet.publications.exists()


def test_withdrawing_leaves_nothing_live_and_keeps_the_publication() -> None:
    sheet = factories.published_sheet()

    event = publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="wrong", now=LATER)

    assert event.kind == "withdrawn"
    assert _look(sheet).live_number is None
    assert sheet.publications.count() == 1


def test_withdrawing_is_not_gated() -> None:
    sheet = factories.published_sheet()
    rule = Rule.objects.get(ruleset__sheet_links__sheet=sheet)
    editing.change(rule, by=factories.person(), reason="stricter", now=NOON, text="Once a day.")

    publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="wrong", now=LATER)

    assert _look(sheet).live_number is None


def test_withdrawing_when_nothing_is_live_is_refused() -> None:
    sheet = factories.ready_sheet()

    with pytest.raises(NothingLive):
        publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="wrong", now=NOON)


def test_a_withdrawn_text_may_be_published_again_as_a_new_number() -> None:
    sheet = factories.published_sheet()
    publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="wrong", now=NOON)

    publication = factories.publish(sheet)

    assert publication.number == 2


def test_a_rollback_publishes_the_old_text_again_and_leaves_the_draft() -> None:
    sheet = factories.published_sheet()
    section = sheet.sections.get()
    editing.change(section, by=factories.person(), reason="edit", now=NOON, body="Opens at ten.")
    second = factories.publish(sheet)
    first = sheet.publications.get(number=1)

    third = publishing.rollback(
        sheet_id=sheet.pk,
        to_number=1,
        seen_live_number=second.number,
        by=factories.person(),
        reason="typo",
        now=NOON,
    )

    section.refresh_from_db()
    assert (third.number, third.restores) == (3, 1)
    assert third.content_hash == first.content_hash
    assert bytes(third.record) == bytes(first.record)
    assert section.body == "Opens at ten."


def test_a_rollback_to_rules_without_evidence_that_counts_is_refused() -> None:
    sheet = factories.published_sheet()
    rule = Rule.objects.get(ruleset__sheet_links__sheet=sheet)
    editing.change(rule, by=factories.person(), reason="other", now=NOON, text="Another rule.")
    factories.passing_run(sheet)
    second = factories.publish(sheet)
    suite = sheet.suites.get()
    editing.change(suite, by=factories.person(), reason="twice", now=NOON, repeats=2)

    with pytest.raises(PublishRefused) as refused:
        publishing.rollback(
            sheet_id=sheet.pk,
            to_number=1,
            seen_live_number=second.number,
            by=factories.person(),
            reason="back",
            now=NOON,
        )

    assert _codes(refused) == ["suite-changed"]


def test_an_archived_sheet_is_not_published() -> None:
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)
    editing.archive_sheet(sheet, by=factories.person(), reason="done", now=NOON)

    with pytest.raises(PublishRefused) as refused:
        factories.publish(sheet)

    assert _codes(refused) == ["archived"]


def test_a_live_sheet_is_not_archived() -> None:
    sheet = factories.published_sheet()

    with pytest.raises(editing.StillLive):
        editing.archive_sheet(sheet, by=factories.person(), reason="done", now=NOON)


def test_a_rollback_after_a_rename_is_served_under_the_present_name() -> None:
    sheet = factories.published_sheet()
    by = factories.person()
    editing.change(sheet, by=by, reason="renamed", now=NOON, slug="castle-new")
    second = factories.publish(sheet)
    section = sheet.sections.get()
    editing.change(section, by=by, reason="edit", now=NOON, body="Opens at ten.")
    third = factories.publish(sheet)

    fourth = publishing.rollback(
        sheet_id=sheet.pk,
        to_number=1,
        seen_live_number=third.number,
        by=by,
        reason="back",
        now=NOON,
    )

    assert (second.slug, fourth.slug) == ("castle-new", "castle-new")
    assert b'"slug":"castle-new"' in bytes(fourth.body)


def test_a_set_of_rules_that_is_not_shared_belongs_to_one_sheet() -> None:
    castle, cafe = factories.sheet("castle"), factories.sheet("cafe")
    house = RuleSet(slug="house", title="House rules")
    factories.save(house)

    with pytest.raises(NotValid, match="has rules of its own already; tick “shared”"):
        factories.save(SheetRuleSet(sheet=castle, ruleset=house))
    editing.change(house, by=factories.person(), reason="for all", now=NOON, shared=True)
    factories.save(SheetRuleSet(sheet=castle, ruleset=house))
    factories.save(SheetRuleSet(sheet=cafe, ruleset=house))

    with pytest.raises(NotValid, match="Sheets share this set"):
        editing.change(house, by=factories.person(), reason="no more", now=NOON, shared=False)
