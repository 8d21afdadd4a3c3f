"""Verifying publications: whatever was altered past the product is found and named."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Model

from evals import evidence, verification
from evals.models import Attempt, Run, Verdict
from evals.triggers import EVALS
from factsheets import canonical, editing, publishing, triggers
from factsheets.models import Publication, PublicationEvent, SheetState
from tests import factories
from tests.factories import NOON

pytestmark = pytest.mark.django_db

PARTS = ("body", "prompt", "record", "evidence")


@pytest.fixture
def publication() -> Publication:
    """Publication 1 of a sheet, live."""
    return factories.published_sheet().publications.get()


def _codes() -> list[str]:
    return [fault.code for fault in verification.verify_publications().faults]


def _damage(publication: Publication, **values: object) -> None:
    with triggers.lifted(connection, triggers.FACTSHEETS):
        Publication.objects.filter(pk=publication.pk).update(**values)


def _forge_run(run_id: object, **values: object) -> None:
    with triggers.lifted(connection, EVALS):
        Run.objects.filter(pk=run_id).update(**values)


def _with_hash(part: str, data: bytes) -> dict[str, object]:
    return {part: data, f"{part}_hash": canonical.sha256(data)}


def _second(publication: Publication) -> Publication:
    section = publication.sheet.sections.get()
    editing.change(section, by=factories.person(), reason="edit", now=NOON, body="It opens at ten.")
    return factories.publish(publication.sheet)


# ---- what is as it was ----


def test_publications_as_they_were_published_have_no_fault(publication: Publication) -> None:
    _second(publication)
    factories.published_sheet("abbey")

    result = verification.verify_publications()

    assert (result.checked, result.faults) == (3, ())


def test_what_happened_to_a_sheet_since_is_no_fault(publication: Publication) -> None:
    by = factories.person()
    sheet = publication.sheet
    _second(publication)
    publishing.rollback(
        sheet_id=sheet.pk, to_number=1, seen_live_number=2, by=by, reason="back", now=NOON
    )
    publishing.withdraw(sheet_id=sheet.pk, by=by, reason="wrong", now=NOON)
    editing.change(sheet, by=by, reason="renamed", now=NOON, slug="keep", title="The keep")
    editing.change(sheet.suites.get(), by=by, reason="x", now=NOON, repeats=2)
    factories.passing_run(sheet, now=NOON + timedelta(days=1))

    result = verification.verify_publications()

    assert (result.checked, result.faults) == (3, ())


def test_nothing_published_is_nothing_to_find_fault_with() -> None:
    factories.sheet()

    assert verification.verify_publications() == verification.Result(0, ())


# ---- bytes ----


@pytest.mark.parametrize("place", [0, -2], ids=["first byte", "last but one"])
@pytest.mark.parametrize("part", PARTS)
def test_one_altered_byte_of_any_part_is_found(
    publication: Publication, part: str, place: int
) -> None:
    data = bytearray(getattr(publication, part))
    data[place] ^= 1

    _damage(publication, **{part: bytes(data)})

    faults = verification.verify_publications().faults
    assert f"{part}-altered" in [fault.code for fault in faults]
    assert all("Publication 1 of castle: " in fault.sentence for fault in faults)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_cut_short_or_emptied_is_found(publication: Publication, part: str) -> None:
    data = bytes(getattr(publication, part))

    _damage(publication, **{part: data[:-1]})
    cut = _codes()
    _damage(publication, **{part: b""})

    assert f"{part}-altered" in cut
    assert f"{part}-altered" in _codes()


@pytest.mark.parametrize("part", [*PARTS, "content", "rules", "bot"])
def test_an_altered_hash_is_found(publication: Publication, part: str) -> None:
    _damage(publication, **{f"{part}_hash": "0" * 64})

    assert _codes()


# ---- parts altered together with their hashes ----


def test_a_body_with_another_text_under_a_hash_of_its_own_is_found(
    publication: Publication,
) -> None:
    body = json.loads(bytes(publication.body))
    body["content"]["sections"][0]["text"] = "Free entry for all."

    _damage(publication, **_with_hash("body", canonical.canonical_json(body)))

    assert "content-altered" in _codes()


def test_a_body_with_other_rules_under_a_hash_of_its_own_is_found(
    publication: Publication,
) -> None:
    body = json.loads(bytes(publication.body))
    body["rules"] = "Say what you like."

    _damage(publication, **_with_hash("body", canonical.canonical_json(body)))

    assert "rules-altered" in _codes()


@pytest.mark.parametrize(
    "values",
    [
        {"publication": 2},
        {"slug": "abbey"},
        {"content_hash": "0" * 64},
        {"rules_hash": "0" * 64},
        {"published_at": "2020-01-01T00:00:00.000000Z"},
    ],
    ids=str,
)
def test_a_body_that_says_otherwise_than_its_row_is_found(
    publication: Publication, values: dict[str, object]
) -> None:
    body = {**json.loads(bytes(publication.body)), **values}

    _damage(publication, **_with_hash("body", canonical.canonical_json(body)))

    assert "body-disagrees" in _codes()


def test_a_prompt_that_is_not_made_of_the_bodys_rules_and_text_is_found(
    publication: Publication,
) -> None:
    prompt = bytes(publication.prompt).replace(b"only from the sheet", b"from what you know")

    _damage(publication, **_with_hash("prompt", prompt))

    assert prompt != bytes(publication.prompt)
    assert _codes()


def test_a_record_of_another_text_is_found(publication: Publication) -> None:
    record = bytes(publication.record).replace(b"opens at ten", b"opens at six")

    _damage(publication, **_with_hash("record", record))

    assert record != bytes(publication.record)
    assert _codes()


@pytest.mark.parametrize("data", [b"[]", b"{}", b"\xff", b"null", b"7", b'{"content": []}'])
def test_a_body_that_cannot_be_read_is_found_and_stops_nothing(
    publication: Publication, data: bytes
) -> None:
    factories.published_sheet("abbey")

    _damage(publication, **_with_hash("body", data))

    assert "body-unreadable" in _codes()
    assert verification.verify_publications().checked == 2


# ---- evidence ----


def test_forged_counts_are_found_whatever_their_hash_says(publication: Publication) -> None:
    summary = json.loads(bytes(publication.evidence))
    summary["counts"]["outcomes"] = {"planned": 99, "pass": 99}

    _damage(publication, **_with_hash("evidence", canonical.canonical_json(summary)))

    assert _codes() == ["evidence-forged", "seal-broken"]


def test_a_summary_with_a_word_added_is_forged(publication: Publication) -> None:
    summary = {**json.loads(bytes(publication.evidence)), "approved": True}

    _damage(publication, **_with_hash("evidence", canonical.canonical_json(summary)))

    assert _codes() == ["evidence-forged", "seal-broken"]


def test_evidence_of_a_run_that_never_was_is_found(publication: Publication) -> None:
    summary = {**json.loads(bytes(publication.evidence)), "run": str(uuid4())}

    _damage(publication, **_with_hash("evidence", canonical.canonical_json(summary)))

    assert _codes() == ["evidence-missing", "seal-broken"]


@pytest.mark.parametrize("data", [b"[]", b"{}", b"\xff", b'{"run": "one"}', b'{"run": 1}', b"null"])
def test_evidence_that_cannot_be_read_is_found_and_stops_nothing(
    publication: Publication, data: bytes
) -> None:
    _damage(publication, **_with_hash("evidence", data))

    assert _codes() == ["evidence-unreadable", "seal-broken"]


def test_evidence_of_a_run_of_another_sheet_is_found(publication: Publication) -> None:
    other = factories.published_sheet("abbey").runs.get()

    _damage(publication, **_with_hash("evidence", evidence.summary(other)))

    assert _codes() == ["evidence-does-not-count", "seal-broken"]


def test_evidence_of_a_run_that_failed_is_found(publication: Publication) -> None:
    probe = publication.sheet.suites.get().probes.get()
    checks = [{"type": "contains-any", "values": ["noon"]}]
    editing.change(probe, by=factories.person(), reason="x", now=NOON, checks=checks)
    failed = factories.passing_run(publication.sheet)

    _damage(publication, **_with_hash("evidence", evidence.summary(failed)))

    assert failed.outcome == "failed"
    assert _codes() == ["evidence-does-not-count", "seal-broken"]


def test_a_run_whose_counts_were_forged_before_the_publication_is_found() -> None:
    sheet = factories.ready_sheet()
    run = factories.passing_run(sheet)
    _forge_run(run.pk, counts={**run.counts, "planned": 400})

    factories.publish(sheet)

    assert _codes() == ["evidence-forged"]


def test_a_run_that_was_called_passed_against_its_own_attempts_opens_no_gate() -> None:
    sheet = factories.ready_sheet()
    probe = sheet.suites.get().probes.get()
    checks = [{"type": "contains-any", "values": ["noon"]}]
    editing.change(probe, by=factories.person(), reason="x", now=NOON, checks=checks)
    run = factories.passing_run(sheet)
    _forge_run(run.pk, outcome="passed")

    with pytest.raises(publishing.PublishRefused, match="what its attempts say is not so"):
        factories.publish(sheet)


def test_an_attempt_altered_after_the_publication_is_found(publication: Publication) -> None:
    with triggers.lifted(connection, EVALS):
        Attempt.objects.update(outcome="fail")

    assert "evidence-forged" in _codes()


# ---- numbers, and what is live ----


def test_a_missing_number_is_named(publication: Publication) -> None:
    second = _second(publication)
    with triggers.lifted(connection, triggers.FACTSHEETS):
        PublicationEvent.objects.filter(to_publication=publication).delete()
        PublicationEvent.objects.filter(to_publication=second).update(from_publication=None)
        Publication.objects.filter(pk=publication.pk).delete()

    missing, seal = verification.verify_publications().faults

    assert (missing.code, missing.sentence) == (
        "number-missing",
        "castle: publications 1 are not there.",
    )
    assert seal.code == "seal-broken"


def test_a_renumbered_publication_leaves_a_gap_and_disagrees_with_its_body(
    publication: Publication,
) -> None:
    _damage(publication, number=3)

    assert _codes() == ["body-disagrees", "number-missing", "seal-broken"]


@pytest.mark.parametrize("number", [None, 1])
def test_a_live_pointer_that_disagrees_with_the_newest_event_is_found(
    publication: Publication, number: int | None
) -> None:
    _second(publication)
    to = Publication.objects.filter(number=number).first()
    with triggers.lifted(connection, triggers.FACTSHEETS):
        SheetState.objects.update(live_publication=to)

    assert _codes() == ["live-disagrees"]


def test_a_live_pointer_after_a_withdrawal_is_found(publication: Publication) -> None:
    publishing.withdraw(
        sheet_id=publication.sheet_id, by=factories.person(), reason="wrong", now=NOON
    )
    well = _codes()
    with triggers.lifted(connection, triggers.FACTSHEETS):
        SheetState.objects.update(live_publication=publication)

    assert (well, _codes()) == ([], ["live-disagrees"])


def test_every_faulty_publication_is_named(publication: Publication) -> None:
    second = _second(publication)
    other = factories.published_sheet("abbey").publications.get()
    for row in (publication, second, other):
        _damage(row, record=b"{}")

    result = verification.verify_publications()

    assert result.checked == 3
    named = dict.fromkeys(fault.sentence.split(":")[0] for fault in result.faults)
    assert list(named) == [
        "Publication 1 of abbey",
        "Publication 1 of castle",
        "Publication 2 of castle",
    ]


def test_the_triggers_stand_again_after_they_were_lifted(publication: Publication) -> None:
    _damage(publication, record=b"{}")

    wanted = (*triggers.FACTSHEETS, *EVALS)
    assert triggers.missing(connection, wanted) == []


# ---- seals ----

#: Another value for every column of a publication that is not its key.
OTHER_VALUES: dict[str, Any] = {
    "number": 7,
    "format": "body/9",
    "slug": "abbey",
    "body_hash": "0" * 64,
    "prompt_hash": "0" * 64,
    "content_hash": "0" * 64,
    "rules_hash": "0" * 64,
    "bot_hash": "0" * 64,
    "record_hash": "0" * 64,
    "evidence_hash": "0" * 64,
    "published_at": NOON + timedelta(seconds=1),
    "published_by": lambda: factories.person("mallory"),
    "published_by_name": "mallory",
    "reason": "another reason",
    "restores": 1,
    "changes_up_to": None,
    **dict.fromkeys(PARTS, b"other bytes"),
}
EVENT_VALUES: dict[str, Any] = {
    "kind": "rolled-back",
    "at": NOON + timedelta(seconds=1),
    "by": lambda: factories.person("mallory"),
    "by_name": "mallory",
    "reason": "another reason",
    "from_publication": None,
    "to_publication": None,
    "seal": "0" * 64,
}


def _given(value: Any) -> Any:
    return value() if callable(value) else value


def test_every_column_of_a_publication_and_of_an_event_is_tried() -> None:
    def columns(model: type[Model]) -> set[str]:
        return {column.name for column in model._meta.concrete_fields} - {"id", "sheet"}

    assert columns(Publication) == OTHER_VALUES.keys()
    assert columns(PublicationEvent) == EVENT_VALUES.keys()


@pytest.mark.parametrize("column", OTHER_VALUES)
def test_another_value_in_any_column_of_a_publication_is_found(
    publication: Publication, column: str
) -> None:
    _damage(publication, **{column: _given(OTHER_VALUES[column])})

    assert _codes()


@pytest.mark.parametrize("column", EVENT_VALUES)
def test_another_value_in_any_column_of_an_event_is_found(
    publication: Publication, column: str
) -> None:
    second = _second(publication)
    with triggers.lifted(connection, triggers.FACTSHEETS):
        rows = PublicationEvent.objects.filter(to_publication=second)
        rows.update(**{column: _given(EVENT_VALUES[column])})

    assert "seal-broken" in _codes()


def test_the_reason_of_a_withdrawal_is_sealed_too(publication: Publication) -> None:
    publishing.withdraw(
        sheet_id=publication.sheet_id, by=factories.person(), reason="wrong price", now=NOON
    )
    with triggers.lifted(connection, triggers.FACTSHEETS):
        PublicationEvent.objects.filter(kind="withdrawn").update(reason="no reason")

    (fault,) = verification.verify_publications().faults

    assert fault.code == "seal-broken"
    assert fault.sentence.startswith("castle: the event of 2026-06-01 12:00 UTC (withdrawn)")


def test_a_withdrawal_taken_out_of_the_middle_breaks_the_seal_after_it(
    publication: Publication,
) -> None:
    sheet = publication.sheet
    publishing.withdraw(sheet_id=sheet.pk, by=factories.person(), reason="wrong", now=NOON)
    factories.publish(sheet)
    with triggers.lifted(connection, triggers.FACTSHEETS):
        PublicationEvent.objects.filter(kind="withdrawn").delete()

    assert _codes() == ["seal-broken"]


def test_the_newest_publication_taken_away_with_its_event_was_announced(
    publication: Publication,
) -> None:
    second = _second(publication)
    with triggers.lifted(connection, triggers.FACTSHEETS):
        PublicationEvent.objects.filter(to_publication=second).delete()
        SheetState.objects.update(live_publication=publication)
        Publication.objects.filter(pk=second.pk).delete()

    (fault,) = verification.verify_publications().faults

    assert fault.sentence == "castle: publications 2 are not there."


def test_a_publication_that_no_event_let_out_is_found(publication: Publication) -> None:
    second = _second(publication)
    with triggers.lifted(connection, triggers.FACTSHEETS):
        PublicationEvent.objects.filter(to_publication=second).delete()
        SheetState.objects.update(live_publication=publication)

    assert _codes() == ["event-missing"]


@pytest.fixture
def of_an_earlier_version(publication: Publication) -> Publication:
    """Publication 1 as it was stored before there were seals and marks."""
    _damage(publication, changes_up_to=None)
    with triggers.lifted(connection, triggers.FACTSHEETS):
        PublicationEvent.objects.update(seal="")
    return publication


def test_publications_of_earlier_versions_have_no_fault_before_and_after_the_first_seal(
    of_an_earlier_version: Publication,
) -> None:
    before = _codes()

    _second(of_an_earlier_version)

    assert (before, _codes()) == ([], [])


def test_the_first_seal_covers_what_was_published_before_it(
    of_an_earlier_version: Publication,
) -> None:
    _second(of_an_earlier_version)

    _damage(of_an_earlier_version, published_by_name="mallory")

    assert _codes() == ["seal-broken"]


def test_a_seal_that_was_emptied_after_others_is_found(publication: Publication) -> None:
    second = _second(publication)
    with triggers.lifted(connection, triggers.FACTSHEETS):
        PublicationEvent.objects.filter(to_publication=second).update(seal="")

    assert _codes() == ["seal-broken"]


def test_verdicts_that_do_not_bear_out_their_attempt_are_found(publication: Publication) -> None:
    with triggers.lifted(connection, EVALS):
        Verdict.objects.update(outcome="fail")

    assert _codes() == ["evidence-forged"]
