"""Suites: what their hash depends on, and what a frozen suite asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_django import DjangoAssertNumQueries

from evals import suites
from evals.graders.contains import ContainsAny
from evals.graders.leaks import NoLeak
from evals.models import Probe, Suite, SuiteRequirement
from factsheets import editing
from factsheets.models import Sheet
from factsheets.models.tracking import NotValid
from tests import factories
from tests.factories import NOON

pytestmark = pytest.mark.django_db

CHECKS = [{"type": "contains-any", "values": ["ten"], "match": "word"}]


@pytest.fixture
def suite() -> Suite:
    """Two probes, the second inactive."""
    row = factories.suite(factories.sheet())
    factories.probe(row, "asks-hours", checks=CHECKS)
    factories.probe(row, "asks-price", checks=CHECKS, active=False)
    return row


def _frozen(suite: Suite) -> suites.FrozenSuite:
    return suites.frozen([Suite.objects.get(pk=suite.pk)])[0]


def _change(row: Suite | Probe, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=NOON, **values)


def _remove(row: Probe | Suite | SuiteRequirement) -> None:
    editing.remove(row, by=factories.person(), reason="edit", now=NOON)


def _probe(suite: Suite, key: str) -> Probe:
    return suite.probes.get(key=key)


@pytest.mark.parametrize("key", ["asks-hours", "asks-price"])
@pytest.mark.parametrize(
    "values",
    [
        {"turns": ["When?"]},
        {"turns": ["When does the castle open in the morning?", "Sure?"]},
        {"must": "refuse"},
        {"checks": [{"type": "contains-any", "values": ["nine"], "match": "word"}]},
        {"checks": [{"type": "contains-any", "values": ["ten"], "match": "anywhere"}]},
        {"checks": [{"type": "not-contains", "values": ["ten"], "match": "word"}]},
        {"checks": [*CHECKS, {"type": "no-leak"}]},
        {"severity": "scored"},
        {"needs": "model"},
    ],
    ids=str,
)
def test_the_hash_changes_with_what_a_probe_asks_and_expects_active_or_not(
    suite: Suite, key: str, values: dict[str, object]
) -> None:
    before = _frozen(suite).hash

    _change(_probe(suite, key), **values)

    assert _frozen(suite).hash != before


@pytest.mark.parametrize(("key", "active"), [("asks-hours", False), ("asks-price", True)])
def test_the_hash_changes_when_a_probe_is_switched_on_or_off(
    suite: Suite, key: str, active: bool
) -> None:
    before = _frozen(suite).hash

    _change(_probe(suite, key), active=active)

    assert _frozen(suite).hash != before


@pytest.mark.parametrize("values", [{"repeats": 2}, {"pass_bar": 99}], ids=str)
def test_the_hash_changes_with_repeats_and_pass_bar(
    suite: Suite, values: dict[str, object]
) -> None:
    before = _frozen(suite).hash

    _change(suite, **values)

    assert _frozen(suite).hash != before


@pytest.mark.parametrize("key", ["asks-hours", "asks-price"])
def test_the_hash_changes_when_a_probe_is_taken_out_and_is_back_when_it_is(
    suite: Suite, key: str
) -> None:
    before = _frozen(suite).hash

    _remove(_probe(suite, key))
    without = _frozen(suite).hash
    editing.restore(_probe(suite, key), by=factories.person(), reason="back", now=NOON)

    assert without != before
    assert _frozen(suite).hash == before


def test_the_hash_changes_when_a_probe_is_added(suite: Suite) -> None:
    before = _frozen(suite).hash

    factories.probe(suite, "asks-more")

    assert _frozen(suite).hash != before


def test_the_hash_changes_when_a_grader_that_it_uses_judges_otherwise(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _frozen(suite).hash

    monkeypatch.setattr(NoLeak, "version", NoLeak.version + 1)
    unused = _frozen(suite).hash
    monkeypatch.setattr(ContainsAny, "version", ContainsAny.version + 1)
    used = _frozen(suite).hash

    assert unused == before
    assert used != before


@pytest.mark.parametrize("part", ["prompt", "model"])
def test_the_hash_changes_with_the_judge(
    suite: Suite, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _frozen(suite).hash

    monkeypatch.setattr(suites, "_JUDGE", {**suites._JUDGE, part: "another"})

    assert _frozen(suite).hash != before


@pytest.mark.parametrize(
    "edit",
    [
        lambda suite: _change(suite, title="Another title"),
        lambda suite: _change(suite, slug="another-name"),
        lambda suite: _change(_probe(suite, "asks-hours"), note="Only for people."),
        lambda suite: _change(_probe(suite, "asks-price"), note="Only for people."),
        lambda suite: _change(_probe(suite, "asks-price"), position=40),
    ],
    ids=["title", "slug", "note", "note of an inactive probe", "position in the same order"],
)
def test_the_hash_stays_when_nothing_changes_that_is_asked_or_judged(
    suite: Suite, edit: Callable[[Suite], None]
) -> None:
    before = _frozen(suite)

    edit(suite)

    after = _frozen(suite)
    assert after.hash == before.hash
    assert after.probes == before.probes


def test_a_match_left_out_is_the_same_as_the_one_it_stands_for(suite: Suite) -> None:
    before = _frozen(suite).hash

    _change(_probe(suite, "asks-hours"), checks=[{"type": "contains-any", "values": ["ten"]}])

    assert _frozen(suite).hash == before


def test_the_order_of_probes_matters(suite: Suite) -> None:
    factories.probe(suite, "asks-last", checks=CHECKS)
    before = _frozen(suite)

    _change(_probe(suite, "asks-hours"), position=50)

    after = _frozen(suite)
    assert [p["key"] for p in before.probes] == ["asks-hours", "asks-last"]
    assert [p["key"] for p in after.probes] == ["asks-last", "asks-hours"]
    assert after.hash != before.hash


def test_the_order_of_checks_and_of_turns_matters(suite: Suite) -> None:
    probe = _probe(suite, "asks-hours")
    _change(probe, turns=["One?", "Two?"], checks=[*CHECKS, {"type": "no-leak"}])
    before = _frozen(suite).hash

    _change(probe, turns=["Two?", "One?"])
    turned = _frozen(suite).hash
    _change(probe, turns=["One?", "Two?"], checks=[{"type": "no-leak"}, *CHECKS])
    checked = _frozen(suite).hash

    assert len({before, turned, checked}) == 3


def test_two_suites_that_ask_the_same_have_the_same_hash(suite: Suite) -> None:
    twin = factories.suite(factories.sheet("twin", title="Twin"), "twin-safety")
    factories.probe(twin, "asks-hours", checks=CHECKS)
    factories.probe(twin, "asks-price", checks=CHECKS, active=False)

    assert _frozen(twin).hash == _frozen(suite).hash


def test_an_inactive_probe_is_not_asked(suite: Suite) -> None:
    assert [probe["key"] for probe in _frozen(suite).probes] == ["asks-hours"]


def test_a_suite_whose_probes_are_all_inactive_is_empty(suite: Suite) -> None:
    asked = _frozen(suite).is_empty

    _change(_probe(suite, "asks-hours"), active=False)

    assert (asked, _frozen(suite).is_empty) == (False, True)


def test_a_probe_without_a_check_cannot_be_active(suite: Suite) -> None:
    with pytest.raises(NotValid, match="would always pass"):
        factories.probe(suite, "checks-nothing", checks=[])


def test_a_sheet_requires_its_suites_by_name_and_none_that_was_dropped(suite: Suite) -> None:
    sheet = Sheet.objects.get()
    other = factories.suite(sheet, "accuracy")
    factories.suite(sheet, "unused", required=False)
    both = [frozen.slug for frozen in suites.required(sheet.pk)]

    _remove(SuiteRequirement.objects.get(suite=other))

    assert both == ["accuracy", "safety"]
    assert [frozen.slug for frozen in suites.required(sheet.pk)] == ["safety"]


def test_a_suite_taken_out_of_use_is_not_required(suite: Suite) -> None:
    sheet = Sheet.objects.get()

    _remove(suite)

    assert suites.required(sheet.pk) == ()


def test_freezing_takes_two_queries_however_many_suites_there_are(
    suite: Suite, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    sheet = Sheet.objects.get()
    for name in ("accuracy", "tone", "language"):
        factories.probe(factories.suite(sheet, name), f"asks-{name}")

    with django_assert_num_queries(2):
        required = suites.required(sheet.pk)

    assert len(required) == 4
