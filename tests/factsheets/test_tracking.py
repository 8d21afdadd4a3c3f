"""Tracked rows: every change is kept with who, when and why, or refused and not made."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.core.management import call_command
from django.db import connection
from django.db.models import F

from evals.models import Suite
from factsheets import canonical, editing, history_check
from factsheets.models import ChangeSet, Citation, Rule, Section, Sheet, SlugAlias, Source
from factsheets.models.tracking import LeavesNoHistory, NotValid, change_set
from tests import factories
from tests.factories import LATER, NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def sheet() -> Sheet:
    return factories.sheet()


@pytest.fixture
def section(sheet: Sheet) -> Section:
    return factories.section(sheet)


def change(row: Any, *, reason: str = "a reason", now: datetime = LATER, **values: Any) -> None:
    editing.change(row, by=factories.person("ben"), reason=reason, now=now, **values)


def stored(section: Section) -> dict[str, Any]:
    return Section.objects.values().get(pk=section.pk)


# ---- who, when and why ----


def test_a_save_writes_one_history_row_with_who_when_and_why(section: Section) -> None:
    change(section, reason="They open later now.", body="Opens at eleven.")

    newest = section.history.first()

    assert section.history.count() == 2
    assert (newest.body, newest.history_type) == ("Opens at eleven.", "~")
    assert newest.history_user.username == "ben"
    assert newest.history_date == LATER
    assert newest.history_change_reason == "They open later now."
    assert newest.change_set.by_name == "ben"
    assert newest.change_set.at == LATER
    assert newest.change_set.reason == "They open later now."


def test_the_text_as_it_stood_stays_readable(section: Section) -> None:
    before = section.body
    change(section, body="Opens at eleven.")

    assert [row.body for row in section.history.all()] == ["Opens at eleven.", before]


def test_all_that_one_save_touches_bears_one_change_set_and_one_moment(sheet: Sheet) -> None:
    one, other = factories.section(sheet, "hours"), factories.section(sheet, "way")
    change_sets = ChangeSet.objects.count()

    with change_set(by=factories.person("ben"), reason="both", now=LATER) as opened:
        change(one, body="One.")
        change(other, body="Other.")
        change(sheet, title="Another title")

    rows = [row.history.first() for row in (one, other, sheet)]
    assert ChangeSet.objects.count() == change_sets + 1
    assert {row.change_set_id for row in rows} == {opened.row.pk}
    assert {row.history_date for row in rows} == {LATER}


def test_a_nested_change_set_joins_the_one_it_is_in(section: Section) -> None:
    with change_set(by=factories.person("outer"), reason="outer", now=LATER):
        change(section, reason="inner", now=NOON, body="One.")

    newest = section.history.first()
    assert (newest.history_user.username, newest.history_change_reason) == ("outer", "outer")
    assert newest.history_date == LATER


def test_a_change_set_says_what_it_did_in_words(sheet: Sheet, section: Section) -> None:
    other = factories.section(sheet, "way", heading="The way")

    with change_set(by=factories.person(), reason="several", now=LATER) as opened:
        change(section, position=5)
        change(other, heading="The way in", position=6)
        change(other, removed_at=LATER)
        change(other, removed_at=None)
        Source(key="sign", kind=Source.Kind.OTHER, title="A sign").save()

    assert [(c.kind, c.label, c.verb, c.fields) for c in opened.changes] == [
        ("section", "hours", "moved", ("position",)),
        ("section", "way", "changed", ("position", "heading")),
        ("section", "way", "removed", ("removed_at",)),
        ("section", "way", "restored", ("removed_at",)),
        ("source", "sign", "added", ()),
    ]


def test_a_long_reason_is_kept_whole(section: Section) -> None:
    reason = ("Because of what the keeper said. " * 20).strip()
    assert len(reason) > 600

    change(section, reason=reason, body="Closed.")

    newest = section.history.first()
    assert newest.history_change_reason == reason
    assert newest.change_set.reason == reason


def test_a_reason_does_not_stick_to_the_row(section: Section) -> None:
    change(section, reason="first", body="One.")
    change(section, reason="second", body="Two.")

    assert [row.history_change_reason for row in section.history.all()][:2] == ["second", "first"]


def test_of_two_changes_at_one_moment_the_later_is_the_newest(section: Section) -> None:
    change(section, body="One.")
    change(section, body="Two.")

    assert section.history.first().body == "Two."
    assert history_check.verify().faults == ()


# ---- nothing changed ----


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"body": "The castle opens at ten in the morning and closes at five."},
        {"body": "The castle opens at ten in the morning and closes at five.  \r\n\r\n"},
        {"heading": " Opening\thours "},
        {"position": "0"},
    ],
)
def test_a_save_that_changes_nothing_writes_nothing(
    section: Section, values: dict[str, Any]
) -> None:
    before = (section.history.count(), ChangeSet.objects.count(), stored(section))

    change(section, **values)

    assert (section.history.count(), ChangeSet.objects.count(), stored(section)) == before


def test_a_sheet_saved_without_a_change_writes_nothing(sheet: Sheet) -> None:
    before = (sheet.history.count(), ChangeSet.objects.count(), SlugAlias.objects.count())

    change(sheet)

    assert (sheet.history.count(), ChangeSet.objects.count(), SlugAlias.objects.count()) == before


def test_an_empty_change_set_leaves_no_row() -> None:
    with change_set(by=factories.person(), reason="nothing", now=NOON) as opened:
        pass

    assert opened.changes == []
    assert not ChangeSet.objects.exists()


# ---- what would leave no history is refused ----


#: Writes that would not pass through the row's own `save`, by name.
PAST_THE_HISTORY: dict[str, Callable[[Section], object]] = {
    "update": lambda s: Section.objects.update(body="Past it."),
    "filtered update": lambda s: Section.objects.filter(pk=s.pk).update(body="Past it."),
    "related update": lambda s: s.sheet.sections.update(body="Past it."),
    "present update": lambda s: s.sheet.sections.present().update(body="Past it."),
    "bulk_update": lambda s: Section.objects.bulk_update([s], ["body"]),
    "bulk_create": lambda s: Section.objects.bulk_create(
        [Section(sheet=s.sheet, key="new", heading="New")]
    ),
    "delete": lambda s: Section.objects.all().delete(),
    "related delete": lambda s: s.sheet.sections.all().delete(),
    "row delete": lambda s: s.delete(),
    "update_fields": lambda s: s.save(update_fields=["body"]),
    "no update_fields": lambda s: s.save(update_fields=[]),
    "update_or_create": lambda s: Section.objects.update_or_create(
        pk=s.pk, defaults={"body": "Past it."}
    ),
    "without history": lambda s: s.save_without_historical_record(),
}


@pytest.mark.parametrize("way", PAST_THE_HISTORY)
def test_what_would_leave_no_history_is_refused_and_nothing_is_written(
    section: Section, way: str
) -> None:
    before = (Section.objects.count(), section.history.count(), stored(section))
    section.body = "Past it."

    with (
        pytest.raises(LeavesNoHistory) as refused,
        change_set(by=factories.person(), reason="past it", now=LATER),
    ):
        PAST_THE_HISTORY[way](section)

    assert refused.value.code == "leaves-no-history"
    assert (Section.objects.count(), section.history.count(), stored(section)) == before


@pytest.mark.parametrize("way", PAST_THE_HISTORY)
def test_outside_a_change_set_it_is_refused_just_the_same(section: Section, way: str) -> None:
    before = (Section.objects.count(), section.history.count(), stored(section))
    section.body = "Past it."

    with pytest.raises(LeavesNoHistory):
        PAST_THE_HISTORY[way](section)

    assert (Section.objects.count(), section.history.count(), stored(section)) == before


def test_saving_outside_a_change_set_is_refused_and_nothing_is_written(section: Section) -> None:
    before = stored(section)
    section.body = "Past it."

    with pytest.raises(LeavesNoHistory, match="outside a change set"):
        section.save()

    assert stored(section) == before


def test_creating_outside_a_change_set_is_refused_and_nothing_is_written(sheet: Sheet) -> None:
    with pytest.raises(LeavesNoHistory):
        Section.objects.create(sheet=sheet, key="new", heading="New")

    assert not Section.objects.exists()


def test_a_row_cannot_be_moved_to_another_sheet_past_the_history(section: Section) -> None:
    other = factories.sheet("tower")
    before = (section.history.count(), stored(section))

    with pytest.raises(LeavesNoHistory):
        other.sections.add(section)

    assert (section.history.count(), stored(section)) == before


def test_a_suite_cannot_be_taken_from_its_sheet_past_the_history(sheet: Sheet) -> None:
    suite = factories.suite(sheet)

    with pytest.raises(LeavesNoHistory):
        sheet.suites.clear()

    assert Suite.objects.get(pk=suite.pk).sheet_id == sheet.pk


def test_a_fixture_is_refused_and_nothing_is_written(section: Section, tmp_path: Path) -> None:
    before = (section.history.count(), stored(section))
    rows = json.loads(serializers.serialize("json", [section]))
    rows[0]["fields"]["body"] = "Past it."
    fixture = tmp_path / "rows.json"
    fixture.write_text(json.dumps(rows))

    with pytest.raises(Exception, match="would leave no history"):
        call_command("loaddata", str(fixture), verbosity=0)

    assert (section.history.count(), stored(section)) == before


def test_a_deserialised_row_is_refused_and_nothing_is_written(section: Section) -> None:
    before = (section.history.count(), stored(section))
    section.body = "Past it."
    (read,) = serializers.deserialize("json", serializers.serialize("json", [section]))

    with pytest.raises(LeavesNoHistory):
        read.save()

    assert (section.history.count(), stored(section)) == before


def test_an_expression_for_the_database_is_refused_and_nothing_is_written(section: Section) -> None:
    before = (section.history.count(), stored(section))

    with pytest.raises(NotValid):
        change(section, position=F("position") + 1)

    assert (section.history.count(), stored(section)) == before


# ---- one form of text ----


def test_text_is_put_into_its_one_form_when_it_is_saved(section: Section) -> None:
    change(
        section,
        heading="  Cafe\u0301\n hours ",
        body="\r\nOne \r\n\r\n\r\n\r\ncafe\u0301\x07.\r\n",
        note="a\rb",
    )

    kept = stored(section)
    assert kept["heading"] == section.heading == "Café hours"
    assert kept["body"] == section.body == "One\n\ncafé."
    assert kept["note"] == "a\nb"


def test_half_of_a_character_is_refused_and_nothing_is_written(section: Section) -> None:
    before = (section.history.count(), stored(section))

    with pytest.raises(canonical.TextRefused):
        change(section, body="\ud83c")

    assert (section.history.count(), stored(section)) == before


def test_the_reason_is_put_into_its_one_form_too(section: Section) -> None:
    change(section, reason="cafe\u0301 \r\n", body="Closed.")

    assert section.history.first().history_change_reason == "café"


# ---- what breaks its own rules ----


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"heading": ""}, "section 'hours': heading: This field cannot be blank."),
        ({"heading": " \n "}, "section 'hours': heading: This field cannot be blank."),
        ({"key": "not a slug"}, "section 'not a slug': key: "),
        ({"body": "x" * 20_001}, "section 'hours': body: "),
        ({"heading": "x" * 201}, "section 'hours': heading: "),
        ({"position": -1}, "section 'hours': position: "),
        ({"position": "first"}, "section 'hours': position: "),
    ],
)
def test_a_field_that_breaks_its_rules_is_refused_by_name_and_nothing_is_written(
    section: Section, values: dict[str, Any], sentence: str
) -> None:
    before = (section.history.count(), ChangeSet.objects.count(), stored(section))

    with pytest.raises(NotValid) as refused:
        change(section, **values)

    assert sentence in refused.value.sentence
    assert refused.value.code == "not-valid"
    assert (section.history.count(), ChangeSet.objects.count(), stored(section)) == before


def test_a_section_as_long_as_the_limit_is_taken(section: Section) -> None:
    change(section, body="x" * 20_000)

    assert len(stored(section)["body"]) == 20_000


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)//http://example.org",
        " java\tscript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "ftp://example.org/",
        "//example.org/",
        "example.org",
        "http://",
        "http://example.org/\x0ajavascript:alert(1)",
    ],
)
def test_an_address_that_is_not_http_is_refused(address: str) -> None:
    with pytest.raises(NotValid, match="begins with http:// or https://"):
        factories.source(url=address)

    assert not Source.objects.exists()


@pytest.mark.parametrize("address", ["", "http://example.org", "https://example.org/a?b=c#d"])
def test_an_http_address_or_none_is_taken(address: str) -> None:
    assert factories.source(url=address).url == address


@pytest.mark.parametrize("language", ["English", "en_GB", "e", "en-", "x" * 36])
def test_a_language_that_is_no_tag_is_refused(sheet: Sheet, language: str) -> None:
    with pytest.raises(NotValid, match="language:"):
        change(sheet, language=language)


def test_a_warning_that_does_not_exist_cannot_block(sheet: Sheet) -> None:
    with pytest.raises(NotValid, match="No such warning: unsource"):
        change(sheet.gate_policy, blocking_warnings=["unsource"])


# ---- all or nothing ----


def test_a_change_set_that_fails_takes_everything_back(sheet: Sheet, section: Section) -> None:
    before = (stored(section), section.history.count(), ChangeSet.objects.count())

    def fail_half_way() -> None:
        with change_set(by=factories.person(), reason="fails", now=LATER):
            change(section, body="One.")
            change(sheet, slug="tower")
            factories.section(sheet, "way")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way()

    sheet.refresh_from_db()
    assert (stored(section), section.history.count(), ChangeSet.objects.count()) == before
    assert sheet.slug == "castle"
    assert not SlugAlias.objects.exists()
    assert sheet.sections.count() == 1


def test_after_a_change_set_that_failed_saving_is_refused_again(section: Section) -> None:
    with (
        pytest.raises(NotValid),
        change_set(by=factories.person(), reason="fails", now=LATER),
    ):
        change(section, heading="")

    section.refresh_from_db()
    section.body = "Past it."
    with pytest.raises(LeavesNoHistory):
        section.save()


# ---- names stay reserved ----


def test_a_renamed_sheet_keeps_its_old_name_reserved(sheet: Sheet) -> None:
    change(sheet, slug="tower")

    with pytest.raises(NotValid, match="'castle' was once the name of another sheet"):
        factories.sheet("castle")

    assert SlugAlias.objects.get().sheet_id == sheet.pk
    assert [s.slug for s in Sheet.objects.all()] == ["tower"]


def test_another_sheet_cannot_be_renamed_to_a_name_given_up(sheet: Sheet) -> None:
    change(sheet, slug="tower")
    other = factories.sheet("keep")

    with pytest.raises(NotValid, match="stays reserved"):
        change(other, slug="castle")

    other.refresh_from_db()
    assert other.slug == "keep"


def test_a_sheet_may_take_its_old_name_back_and_both_stay_its_own(sheet: Sheet) -> None:
    change(sheet, slug="tower")
    change(sheet, slug="castle")
    change(sheet, slug="tower")

    assert set(SlugAlias.objects.values_list("slug", "sheet")) == {
        ("castle", sheet.pk),
        ("tower", sheet.pk),
    }
    assert Sheet.objects.get().slug == "tower"


def test_a_new_sheet_has_a_state_with_nothing_live(sheet: Sheet) -> None:
    assert sheet.state.live_publication is None


def test_a_removed_row_is_kept_and_comes_back_with_its_history(section: Section) -> None:
    editing.remove(section, by=factories.person(), reason="gone", now=LATER)
    gone = list(section.sheet.sections.present())
    editing.restore(section, by=factories.person(), reason="back", now=LATER)

    assert gone == []
    assert list(section.sheet.sections.present()) == [section]
    assert section.history.count() == 3


# ---- is the history whole? ----


def sql(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


@pytest.fixture
def ready() -> Sheet:
    return factories.ready_sheet()


def test_what_was_written_through_change_sets_is_whole(ready: Sheet) -> None:
    change(ready.sections.get(), body="Closed.")
    change(Citation.objects.get(), removed_at=LATER)
    change(ready, slug="tower")

    result = history_check.verify()

    assert result.faults == ()
    # Sheet, policy, bot, rule set with link and rule, section, citation, source, suite,
    # requirement, probe.
    assert result.checked == 12


def test_a_row_changed_by_raw_sql_is_found_by_field(ready: Sheet) -> None:
    section = ready.sections.get()

    sql("UPDATE factsheets_section SET body = %s, note = %s WHERE id = %s", "X", "Y", section.pk)

    assert history_check.verify().faults == (
        f"section {section.pk}: differs from its newest history entry in body, note.",
    )


def test_a_row_without_a_history_is_found(ready: Sheet) -> None:
    sql(
        "INSERT INTO factsheets_rule (ruleset_id, key, kind, text, position, enabled) "
        "SELECT ruleset_id, 'smuggled', kind, text, position, enabled FROM factsheets_rule"
    )

    rule = Rule.objects.get(key="smuggled")
    assert history_check.verify().faults == (
        f"rule {rule.pk}: has no history; it was written past it.",
    )


def test_a_deleted_row_is_found(ready: Sheet) -> None:
    rule = Rule.objects.get()

    sql("DELETE FROM factsheets_rule WHERE id = %s", rule.pk)

    assert history_check.verify().faults == (
        f"rule {rule.pk}: was deleted; tracked rows are only removed.",
    )


def test_a_history_entry_that_was_rewritten_is_found(ready: Sheet) -> None:
    section = ready.sections.get()

    sql("UPDATE factsheets_historicalsection SET body = 'X' WHERE id = %s", section.pk)

    assert history_check.verify().faults == (
        f"section {section.pk}: differs from its newest history entry in body.",
    )


def test_rows_of_the_probes_app_are_compared_too(ready: Sheet) -> None:
    suite = ready.suites.get()

    sql("UPDATE evals_suite SET pass_bar = 1 WHERE id = %s", suite.pk)

    assert history_check.verify().faults == (
        f"suite {suite.pk}: differs from its newest history entry in pass_bar.",
    )


def test_a_user_who_wrote_history_cannot_be_deleted(section: Section) -> None:
    change(section, body="Closed.")

    with pytest.raises(Exception, match="protected"):
        User.objects.get(username="ben").delete()

    assert User.objects.filter(username="ben").exists()
