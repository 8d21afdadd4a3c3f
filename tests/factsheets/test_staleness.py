"""What stands between a section's text and a check that covers it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from factsheets import canonical, staleness
from factsheets.snapshot import CheckSnapshot, CitationSnapshot, SectionSnapshot, SourceSnapshot

BODY = "The castle opens at ten and closes at five."


def cite(role: str) -> CitationSnapshot:
    source = SourceSnapshot("leaflet", "own-policy", "Leaflet", *[""] * 8)
    return CitationSnapshot(source, "page 1", "hours", "", role, required=True)


def checked(
    outcome: str = "confirmed", *, heading: str = "Hours", body: str = BODY
) -> CheckSnapshot:
    return CheckSnapshot(
        text_hash=canonical.text_hash(heading, body),
        checked_on=date(2026, 3, 31),
        checked_by="anna",
        outcome=outcome,
        method="read-paper",
        note="",
    )


SECTION = SectionSnapshot(
    key="hours",
    heading="Hours",
    question="",
    body=BODY,
    included=True,
    note="",
    citations=(cite("supports"),),
    check=checked(),
)


def test_a_section_with_a_source_and_a_check_of_its_text_has_nothing_against_it() -> None:
    assert not staleness.is_unsourced(SECTION)
    assert not staleness.is_never_checked(SECTION)
    assert not staleness.is_edited_since_check(SECTION)
    assert not staleness.is_disputed(SECTION)
    assert staleness.covers_text(SECTION)


@pytest.mark.parametrize("roles", [[], ["background"], ["qualifies", "contradicts", "background"]])
def test_without_a_citation_that_supports_it_a_section_is_unsourced(roles: list[str]) -> None:
    assert staleness.is_unsourced(replace(SECTION, citations=tuple(map(cite, roles))))


def test_one_citation_that_supports_is_enough() -> None:
    section = replace(SECTION, citations=(cite("background"), cite("supports")))

    assert not staleness.is_unsourced(section)


def test_without_a_check_a_section_is_never_checked_and_neither_edited_nor_disputed() -> None:
    section = replace(SECTION, check=None)

    assert staleness.is_never_checked(section)
    assert not staleness.covers_text(section)
    assert not staleness.is_edited_since_check(section)
    assert not staleness.is_disputed(section)


@pytest.mark.parametrize("change", [{"body": "Closed."}, {"heading": "Opening hours"}])
def test_an_edit_after_the_check_is_seen(change: dict[str, str]) -> None:
    section = replace(SECTION, **change)

    assert staleness.is_edited_since_check(section)
    assert not staleness.covers_text(section)


@pytest.mark.parametrize(
    "change",
    [
        {"body": "The castle  opens at ten\n\nand closes at five. "},
        {"body": BODY.replace("five", "\ufb01ve")},
        {"note": "Another note."},
        {"question": "Another question?"},
        {"included": False},
        {"citations": ()},
    ],
)
def test_a_check_covers_the_words_whatever_else_changes(change: dict[str, object]) -> None:
    section = replace(SECTION, **change)

    assert staleness.covers_text(section)
    assert not staleness.is_edited_since_check(section)


def test_a_text_that_came_back_is_covered_again() -> None:
    edited = replace(SECTION, body="Closed.")

    assert staleness.covers_text(replace(edited, body=BODY))


def test_a_check_disputes_the_text_that_it_saw() -> None:
    assert staleness.is_disputed(replace(SECTION, check=checked("disputed")))


def test_a_dispute_ends_when_the_text_is_corrected_which_then_waits_for_a_check() -> None:
    section = replace(SECTION, check=checked("disputed"), body="Closed on Mondays.")

    assert not staleness.is_disputed(section)
    assert staleness.is_edited_since_check(section)


@pytest.mark.parametrize("outcome", ["confirmed", "corrected", "source-unreachable"])
def test_another_outcome_is_no_dispute(outcome: str) -> None:
    assert not staleness.is_disputed(replace(SECTION, check=checked(outcome)))


def test_only_confirmed_and_corrected_confirm() -> None:
    assert frozenset({"confirmed", "corrected"}) == staleness.CONFIRMING
