"""What a sheet's gate asks: each change of it closes the gate, says how, and by whom it was made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from evals import suites
from evals.models import Probe, Suite, SuiteRequirement
from factsheets import editing, explaining, publishing, roles
from factsheets.explaining import Explained
from factsheets.models import Sheet
from tests import factories
from tests.factories import LATER, NOON
from tests.factsheets.admin import Page

pytestmark = pytest.mark.django_db

CAROL = "carol"
SOON = NOON + timedelta(hours=1)


@pytest.fixture
def sheet() -> Sheet:
    """A sheet that is live, with an edit of its text that would be published."""
    of = factories.published_sheet()
    _change(of.sections.get(), body="The castle opens at ten.")
    return of


def _change(row: object, **values: object) -> None:
    editing.change(
        row,  # type: ignore[arg-type]
        by=factories.person(CAROL, roles.RULE_KEEPER),
        reason="because",
        now=LATER,
        **values,
    )


def _remove(row: object) -> None:
    editing.remove(row, by=factories.person(CAROL, roles.RULE_KEEPER), reason="because", now=LATER)  # type: ignore[arg-type]


def _new_suite(sheet: Sheet) -> Suite:
    by = factories.person(CAROL, roles.RULE_KEEPER)
    suite = factories.suite(sheet, "accuracy", title="Accuracy", required=False, by=by)
    factories.probe(suite, by=by)
    return suite


def _require(sheet: Sheet, suite: Suite) -> None:
    factories.save(
        SuiteRequirement(sheet=sheet, suite=suite), by=factories.person(CAROL), now=LATER
    )


def _adds(sheet: Sheet) -> None:
    _require(sheet, _new_suite(sheet))


def _drops(sheet: Sheet) -> None:
    other = _new_suite(sheet)
    _require(sheet, other)
    factories.passing_run(sheet, now=SOON)
    _remove(SuiteRequirement.objects.get(suite=other))


def _swaps(sheet: Sheet) -> None:
    _remove(SuiteRequirement.objects.get())
    _require(sheet, _new_suite(sheet))


def _suite(sheet: Sheet) -> Suite:
    return Suite.objects.get(slug="castle-safety")


def _probe(sheet: Sheet) -> Probe:
    return Probe.objects.get(suite=_suite(sheet), key="asks-hours")


def _asked_often(sheet: Sheet) -> None:
    editing.change(
        _suite(sheet), by=factories.person(), reason="", now=NOON, repeats=3, pass_bar=90
    )
    factories.passing_run(sheet, now=SOON)


def _lowers_repeats(sheet: Sheet) -> None:
    _asked_often(sheet)
    _change(_suite(sheet), repeats=1)


def _lowers_bar(sheet: Sheet) -> None:
    _asked_often(sheet)
    _change(_suite(sheet), pass_bar=50)


def _more_probes(sheet: Sheet) -> None:
    factories.probe(_suite(sheet), "asks-dogs", by=factories.person(CAROL))


def _fewer_probes(sheet: Sheet) -> None:
    factories.probe(_suite(sheet), "asks-dogs")
    factories.passing_run(sheet, now=SOON)
    _remove(Probe.objects.get(key="asks-dogs"))


#: Each change, with the code and the words of the one finding that it brings up.
CHANGES: dict[Callable[[Sheet], None], tuple[str, str]] = {
    _adds: ("requirements-changed", "the sheet now requires “Accuracy” too;"),
    _drops: ("requirements-changed", "the sheet no longer requires “Accuracy”;"),
    _swaps: (
        "requirements-changed",
        "the sheet now requires “Accuracy” too and no longer requires “Safety”;",
    ),
    _lowers_repeats: ("suite-changed", "“Safety” asks each probe once and not 3 times since"),
    _lowers_bar: ("suite-changed", "“Safety” has its bar at 50 % and not at 90 % since"),
    _more_probes: ("suite-changed", "“Safety” has new probes (asks-dogs) since"),
    _fewer_probes: ("suite-changed", "“Safety” lacks probes (asks-dogs) since"),
    lambda sheet: _change(_probe(sheet), turns=["When?"]): (
        "suite-changed",
        "“Safety” has edited probes (asks-hours) since",
    ),
    lambda sheet: _change(_probe(sheet), severity="scored"): (
        "suite-changed",
        "has edited probes (asks-hours)",
    ),
}


def _blocks(sheet: Sheet) -> list[Explained]:
    fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)
    view = publishing.look(fresh, now=LATER)
    last = publishing.last_publication(fresh)
    found = explaining.explain(fresh, view.report, view.evidence, last).findings
    return [each for each in found if each.finding.level == "block"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_<>"))
def test_each_change_of_what_is_asked_closes_the_gate_with_its_own_words(
    sheet: Sheet, change: Callable[[Sheet], None]
) -> None:
    assert _blocks(sheet) == []

    change(sheet)

    (block,) = _blocks(sheet)
    code, words = CHANGES[change]
    assert block.finding.code == code
    assert words in block.finding.sentence


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_<>"))
def test_the_gate_says_who_changed_what_is_asked_and_the_history_keeps_it(
    sheet: Sheet, change: Callable[[Sheet], None]
) -> None:
    change(sheet)

    (block,) = _blocks(sheet)
    assert block.by == (CAROL,)
    kinds = {what.kind for each in block.changes for what in each.changes}
    assert kinds <= {"required suite", "suite", "probe"}
    newest = max(
        (entry for model in (SuiteRequirement, Suite, Probe) for entry in model.history.all()),
        key=lambda entry: entry.change_set_id,
    )
    assert newest.history_user.username == CAROL


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_<>"))
def test_the_probes_run_again_open_the_gate(sheet: Sheet, change: Callable[[Sheet], None]) -> None:
    change(sheet)
    editing.change(
        _probe(sheet),
        by=factories.person(),
        reason="",
        now=LATER,
        turns=["When does the castle open in the morning?"],
    )

    factories.passing_run(sheet, now=LATER)

    assert _blocks(sheet) == []


def test_two_changes_of_one_suite_are_two_findings(sheet: Sheet) -> None:
    _change(_suite(sheet), repeats=2)
    _more_probes(sheet)

    assert [block.finding.code for block in _blocks(sheet)] == ["suite-changed"] * 2


def test_a_run_of_an_earlier_version_says_only_that_the_suite_is_another(sheet: Sheet) -> None:
    run = sheet.runs.get()
    before = {**run.plan["suites"][0], "hash": "0" * 64}
    del before["probe_hashes"]

    (frozen,) = suites.required(sheet.pk)

    assert suites.differences(before, frozen) == ["is not as it was"]


@pytest.mark.parametrize("role", [roles.VIEWER, roles.EDITOR, roles.PUBLISHER, roles.MAINTAINER])
def test_nobody_but_a_rule_keeper_changes_what_is_asked(sheet: Sheet, role: str) -> None:
    client = Client()
    client.force_login(
        factories.person("dora", role), backend="django.contrib.auth.backends.ModelBackend"
    )
    requirement, suite, probe = SuiteRequirement.objects.get(), _suite(sheet), _probe(sheet)
    for address, data in (
        (reverse("admin:evals_suiterequirement_add"), {"sheet": sheet.pk, "suite": suite.pk}),
        (
            reverse("admin:evals_suiterequirement_changelist"),
            {"action": "remove_selected", "_selected_action": requirement.pk},
        ),
        (reverse("admin:evals_suite_change", args=[suite.pk]), {"repeats": 1}),
        (reverse("admin:evals_probe_change", args=[probe.pk]), {"active": ""}),
    ):
        client.post(address, data)

    assert _blocks(sheet) == []
    assert SuiteRequirement.objects.present().count() == 1
    assert {m: m.history.count() for m in (SuiteRequirement, Suite, Probe)} == {
        SuiteRequirement: 1,
        Suite: 1,
        Probe: 1,
    }


def test_a_rule_keeper_lowers_the_repeats_in_the_admin_and_the_gate_closes(sheet: Sheet) -> None:
    _asked_often(sheet)
    client = Client()
    keeper = factories.person(CAROL, roles.RULE_KEEPER)
    client.force_login(keeper, backend="django.contrib.auth.backends.ModelBackend")
    address = reverse("admin:evals_suite_change", args=[_suite(sheet).pk])
    form = Page(client.get(address)).form("suite_form")

    client.post(address, {**form.data, "repeats": "1", "why": "cheaper"})

    (block,) = _blocks(sheet)
    assert "asks each probe once and not 3 times" in block.finding.sentence
    assert [(each.by, each.reason) for each in block.changes] == [(CAROL, "cheaper")]
