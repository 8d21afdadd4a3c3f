"""The gates of many sheets on one page, and the probes of all of them run by one press."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evals.models import Run, SuiteRequirement
from factsheets import editing, roles
from factsheets.models import BotProfile, Member, Rule, RuleSet, Sheet, SheetRuleSet
from tests import factories
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

GATES = "/admin/runs/gates/"
NOW = timezone.now()


@pytest.fixture
def house() -> dict[str, Sheet]:
    """Two live sheets with one shared rule set, and one without it."""
    sheets = {slug: factories.ready_sheet(slug) for slug in ("castle", "abbey", "moat")}
    shared = RuleSet(slug="house", title="House rules", shared=True)
    factories.save(shared)
    factories.save(Rule(ruleset=shared, key="polite", kind="format", text="Be polite."))
    for slug, sheet in sheets.items():
        editing.change(sheet, by=factories.person(), reason="", now=NOW, title=f"The {slug}")
        if slug != "moat":
            factories.save(SheetRuleSet(sheet=sheet, ruleset=shared))
        factories.passing_run(sheet, now=NOW)
        factories.publish(sheet, now=NOW)
    return sheets


def enter(role: str, *, on: Sheet | None = None) -> Client:
    user = factories.person(f"the-{role}".replace(" ", "-"), *([] if on else [role]))
    if on is not None:
        factories.save(Member(sheet=on, user=user, role=role))
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def shared_rule() -> Rule:
    return Rule.objects.get(key="polite")


def edit_shared_rule(by: str = "kim") -> None:
    editing.change(
        shared_rule(), by=factories.person(by), reason="kinder", now=timezone.now(), text="Be kind."
    )


def test_one_change_of_a_shared_set_closes_every_sheet_that_uses_it(
    house: dict[str, Sheet],
) -> None:
    edit_shared_rule()

    page = Page(enter(roles.VIEWER).get(GATES))

    assert page.text.count("rules-not-probed") == 2
    assert page.text.count(", kim") == 2


def test_the_page_of_a_rule_set_lists_the_sheets_that_use_it_alone(
    house: dict[str, Sheet],
) -> None:
    ruleset = RuleSet.objects.get(slug="house")

    page = Page(enter(roles.VIEWER).get(GATES, {"ruleset": ruleset.pk}))

    assert "Gates of the sheets that use “House rules”" in page.text
    assert "2 sheets use this rule set: a change of it reaches the gate of each." in page.text
    gates = {reverse("admin:sheet_gate", args=[sheet.pk]) for sheet in house.values()}
    listed = gates & set(page.links())
    assert listed == gates - {reverse("admin:sheet_gate", args=[house["moat"].pk])}


def test_a_set_that_a_sheet_has_dropped_lists_it_no_longer(house: dict[str, Sheet]) -> None:
    link = SheetRuleSet.objects.get(sheet=house["abbey"], ruleset__slug="house")
    editing.remove(link, by=factories.person(), reason="", now=NOW)

    page = Page(enter(roles.VIEWER).get(GATES, {"ruleset": RuleSet.objects.get(slug="house").pk}))

    assert "The castle" in page.text
    assert "The abbey" not in page.text


def test_suites_and_bots_in_common_have_their_page_too(house: dict[str, Sheet]) -> None:
    suite = house["castle"].suites.get()
    factories.save(SuiteRequirement(sheet=house["abbey"], suite=suite))
    viewer = enter(roles.VIEWER)

    of_suite = Page(viewer.get(GATES, {"suite": suite.pk}))
    of_bot = Page(viewer.get(GATES, {"bot": BotProfile.objects.get().pk}))

    assert "2 sheets use this suite" in of_suite.text
    assert "3 sheets use this bot" in of_bot.text


@pytest.mark.parametrize("query", [{"ruleset": "999"}, {"suite": "x"}, {"bot": ""}, {"page": "x"}])
def test_an_address_that_means_nothing_is_answered_with_a_page(
    house: dict[str, Sheet], query: dict[str, str]
) -> None:
    assert enter(roles.VIEWER).get(GATES, query).status_code == 200


# ---- running ----


def test_one_press_runs_the_probes_of_all_that_wait_for_them(
    house: dict[str, Sheet],
) -> None:
    edit_shared_rule()
    before = set(Run.objects.values_list("pk", flat=True))
    keeper = enter(roles.RULE_KEEPER)
    ruleset = RuleSet.objects.get(slug="house")
    page = Page(keeper.get(GATES, {"ruleset": ruleset.pk}))
    form = page.form_to(reverse("runs:run_all"))

    answer = keeper.post(reverse("runs:run_all"), form.data, follow=True)

    assert answer.redirect_chain == [(f"{GATES}?ruleset={ruleset.pk}", 302)]
    assert "The probes of 2 sheets are running." in Page(answer).text
    runs = Run.objects.exclude(pk__in=before)
    assert {run.sheet.slug for run in runs} == {"castle", "abbey"}
    assert {run.started_by_name for run in runs} == {"the-rule-keeper"}


def test_a_second_press_starts_nothing_twice(house: dict[str, Sheet]) -> None:
    edit_shared_rule()
    keeper = enter(roles.RULE_KEEPER)
    keeper.post(reverse("runs:run_all"), {})
    count = Run.objects.count()

    answer = keeper.post(reverse("runs:run_all"), {}, follow=True)

    assert "are under way" in Page(answer).text
    assert Run.objects.count() == count


def test_where_no_gate_waits_nothing_runs(house: dict[str, Sheet]) -> None:
    count = Run.objects.count()

    answer = enter(roles.RULE_KEEPER).post(reverse("runs:run_all"), {}, follow=True)

    assert "No gate of these waits for its probes." in Page(answer).text
    assert Run.objects.count() == count


def test_a_member_sees_and_runs_the_own_sheets_alone(house: dict[str, Sheet]) -> None:
    edit_shared_rule()
    member = enter(Member.Role.EDITOR, on=house["castle"])
    before = set(Run.objects.values_list("pk", flat=True))

    page = Page(member.get(GATES))
    member.post(reverse("runs:run_all"), {})

    assert "The castle" in page.text
    assert "The abbey" not in page.text
    assert {run.sheet.slug for run in Run.objects.exclude(pk__in=before)} == {"castle"}


def test_a_viewer_has_no_button(house: dict[str, Sheet]) -> None:
    edit_shared_rule()

    page = Page(enter(roles.VIEWER).get(GATES))

    assert not [form for form in page.forms if "gates/run" in form.attributes.get("action", "")]


# ---- being told ----


def test_saving_a_shared_rule_says_how_many_sheets_it_reaches(house: dict[str, Sheet]) -> None:
    keeper = enter(roles.RULE_KEEPER)
    address = reverse("admin:factsheets_rule_change", args=[shared_rule().pk])
    form = Page(keeper.get(address)).form("rule_form")

    answer = keeper.post(address, {**form.data, "text": "Be kind.", "why": "kinder"}, follow=True)

    page = Page(answer)
    assert "2 sheets use this:" in page.text
    assert f"{GATES}?ruleset={shared_rule().ruleset_id}" in page.links()


def test_saving_a_rule_of_one_sheet_says_nothing_of_others(house: dict[str, Sheet]) -> None:
    keeper = enter(roles.RULE_KEEPER)
    rule = Rule.objects.get(ruleset__sheet_links__sheet=house["moat"])
    address = reverse("admin:factsheets_rule_change", args=[rule.pk])
    form = Page(keeper.get(address)).form("rule_form")

    answer = keeper.post(address, {**form.data, "text": "Be kind.", "why": "kinder"}, follow=True)

    assert "sheets use this" not in Page(answer).text


def test_the_page_asks_the_database_as_often_for_each_sheet(
    house: dict[str, Sheet], django_assert_max_num_queries: Any
) -> None:
    edit_shared_rule()
    viewer = enter(roles.VIEWER)

    with django_assert_max_num_queries(20 + 40 * len(house)):
        viewer.get(GATES)
