"""Who may do what on which sheet: roles on single sheets beside those of groups."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from evals.models import Probe, Run, Suite, SuiteRequirement
from factsheets import access, checking, editing, roles
from factsheets.models import (
    BotProfile,
    ChangeSet,
    Check,
    Citation,
    GatePolicy,
    Member,
    Publication,
    ReviewInterval,
    ReviewPlan,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
    Source,
    TrackedModel,
)
from factsheets.models.tracking import SheetPath
from tests import factories
from tests.factories import LATER

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 6, 3, 12, 0, tzinfo=UTC)


@pytest.fixture
def castle() -> Sheet:
    return factories.sheet("castle")


@pytest.fixture
def tower() -> Sheet:
    return factories.sheet("tower")


@pytest.fixture
def other() -> Sheet:
    return factories.sheet("other")


def member(role: str, *sheets: Sheet, name: str = "ben") -> User:
    """Somebody with a role on these sheets and in no group."""
    user = factories.person(name)
    for sheet in sheets:
        factories.save(Member(sheet=sheet, user=user, role=role))
    return again(user)


def again(user: User) -> User:
    """The same person at the next request."""
    return User.objects.get(pk=user.pk)


def remove(row: TrackedModel) -> None:
    editing.remove(row, by=factories.person(), reason="gone", now=LATER)


def change(row: TrackedModel, **values: Any) -> None:
    editing.change(row, by=factories.person(), reason="for a test", now=LATER, **values)


# ---- rows of one sheet ----


def its_section(sheet: Sheet) -> Section:
    return factories.section(sheet, f"{sheet.slug}-hours")


def its_citation(sheet: Sheet) -> Citation:
    source = factories.source(f"{sheet.slug}-leaflet")
    return factories.section(sheet, f"{sheet.slug}-hours", source=source).citations.get()


def its_check(sheet: Sheet) -> Check:
    section = its_section(sheet)
    return checking.record(
        section=section,
        seen=checking.seen_now(section),
        checked_on=NOW.date(),
        outcome="confirmed",
        method="read-paper",
        items={},
        by=factories.person(),
        now=NOW,
    )


def its_rules(sheet: Sheet) -> RuleSet:
    return its_link(sheet).ruleset


def its_link(sheet: Sheet) -> SheetRuleSet:
    return sheet.ruleset_links.get()


def its_requirement(sheet: Sheet) -> SuiteRequirement:
    return its_suite(sheet).requirements.get()


def its_suite(sheet: Sheet) -> Suite:
    return factories.suite(sheet, f"{sheet.slug}-safety")


def its_probe(sheet: Sheet) -> Probe:
    return factories.probe(its_suite(sheet))


def its_plan(sheet: Sheet) -> ReviewPlan:
    plan = ReviewPlan(sheet=sheet, interval="6 months")
    factories.save(plan)
    return plan


def its_policy(sheet: Sheet) -> GatePolicy:
    return GatePolicy.objects.get(sheet=sheet)


def itself(sheet: Sheet) -> Sheet:
    return sheet


#: What a role is for: a permission, and a row of one sheet on which it is asked.
OWN: list[tuple[str, str, Callable[[Sheet], Model]]] = [
    ("viewer", "factsheets.view_sheet", itself),
    ("viewer", "factsheets.view_section", its_section),
    ("viewer", "factsheets.view_check", its_check),
    ("viewer", "factsheets.view_ruleset", its_rules),
    ("viewer", "evals.view_probe", its_probe),
    ("editor", "factsheets.change_sheet", itself),
    ("editor", "factsheets.describe_sheet", itself),
    ("editor", "factsheets.add_check", its_section),
    ("editor", "factsheets.change_section", its_section),
    ("editor", "factsheets.change_citation", its_citation),
    ("editor", "evals.start_run", itself),
    ("rule keeper", "factsheets.change_rule", factories.rule),
    ("rule keeper", "factsheets.change_ruleset", its_rules),
    ("rule keeper", "factsheets.change_sheetruleset", its_link),
    ("rule keeper", "factsheets.assign_bot", itself),
    ("rule keeper", "evals.change_suite", its_suite),
    ("rule keeper", "evals.change_probe", its_probe),
    ("rule keeper", "evals.change_suiterequirement", its_requirement),
    ("publisher", "factsheets.publish_sheet", itself),
    ("publisher", "factsheets.withdraw_sheet", itself),
    ("publisher", "factsheets.rollback_sheet", itself),
    ("publisher", "factsheets.change_visibility", itself),
    ("maintainer", "factsheets.change_reviewplan", its_plan),
    ("maintainer", "factsheets.change_gatepolicy", its_policy),
    ("maintainer", "factsheets.rename_sheet", itself),
    ("maintainer", "factsheets.archive_sheet", itself),
]


@pytest.mark.parametrize(("role", "permission", "row_of"), OWN)
def test_a_member_has_the_role_on_that_sheet_alone(
    castle: Sheet, tower: Sheet, role: str, permission: str, row_of: Callable[[Sheet], Model]
) -> None:
    ben = member(role, castle)

    assert ben.has_perm(permission, row_of(castle))
    assert not ben.has_perm(permission, row_of(tower))


@pytest.mark.parametrize(("role", "permission", "row_of"), OWN)
def test_who_has_the_role_as_a_group_has_it_on_every_sheet(
    castle: Sheet, tower: Sheet, role: str, permission: str, row_of: Callable[[Sheet], Model]
) -> None:
    ben = factories.person("ben", role)

    assert ben.has_perm(permission)
    assert ben.has_perm(permission, row_of(castle))
    assert ben.has_perm(permission, row_of(tower))


@pytest.mark.parametrize(("role", "permission", "row_of"), OWN)
def test_asked_without_a_row_a_mere_member_has_it_not(
    castle: Sheet, role: str, permission: str, row_of: Callable[[Sheet], Model]
) -> None:
    assert not member(role, castle).has_perm(permission)


def test_a_role_on_every_sheet_there_is_is_not_the_role_on_every_sheet(
    castle: Sheet, tower: Sheet
) -> None:
    ben = member("editor", castle, tower)

    assert not ben.has_perm("factsheets.change_section")
    assert access.somewhere(ben, "factsheets.change_section")


@pytest.mark.parametrize(
    ("role", "permission"),
    [
        ("viewer", "factsheets.change_sheet"),
        ("editor", "factsheets.publish_sheet"),
        ("editor", "factsheets.rename_sheet"),
        ("rule keeper", "factsheets.publish_sheet"),
        ("publisher", "factsheets.assign_bot"),
        ("maintainer", "factsheets.publish_sheet"),
    ],
)
def test_a_member_has_nothing_that_the_role_is_not_for(
    castle: Sheet, role: str, permission: str
) -> None:
    ben = member(role, castle)

    assert not ben.has_perm(permission, castle)
    assert not access.somewhere(ben, permission)


@pytest.mark.parametrize("role", roles.ROLES)
def test_no_member_gives_roles(castle: Sheet, role: str) -> None:
    ben = member(role, castle)
    own = Member.objects.get(user=ben)

    assert ben.has_perm("factsheets.view_member", own)
    assert not ben.has_perm("factsheets.change_member", own)
    assert not ben.has_perm("factsheets.add_member", Member(sheet=castle, user=ben))


def test_roles_on_different_sheets_do_not_mix(castle: Sheet, tower: Sheet) -> None:
    member("editor", castle)
    ben = member("publisher", tower)

    assert ben.has_perm("factsheets.describe_sheet", castle)
    assert not ben.has_perm("factsheets.publish_sheet", castle)
    assert ben.has_perm("factsheets.publish_sheet", tower)
    assert not ben.has_perm("factsheets.describe_sheet", tower)


def test_roles_on_one_sheet_add_up(castle: Sheet) -> None:
    member("editor", castle)
    ben = member("publisher", castle)

    assert ben.has_perm("factsheets.describe_sheet", castle)
    assert ben.has_perm("factsheets.publish_sheet", castle)


def test_the_role_is_the_persons_own(castle: Sheet) -> None:
    member("editor", castle)
    cara = member("viewer", castle, name="cara")

    assert not cara.has_perm("factsheets.describe_sheet", castle)


# ---- superusers, inactive accounts, strangers ----


def test_a_superuser_may_everything_everywhere(castle: Sheet) -> None:
    root = factories.person("root", superuser=True)

    assert root.has_perm("factsheets.publish_sheet", castle)
    assert access.somewhere(root, "factsheets.publish_sheet")
    assert list(access.sheets(root, "factsheets.publish_sheet")) == [castle]
    assert list(access.visible(root, ChangeSet.objects.all())) == list(ChangeSet.objects.all())
    access.require(root, "factsheets.publish_sheet", castle)


def as_member(castle: Sheet) -> User:
    return member("publisher", castle)


def as_group(castle: Sheet) -> User:
    return factories.person("ben", "publisher")


def as_superuser(castle: Sheet) -> User:
    return factories.person("ben", superuser=True)


@pytest.mark.parametrize("make", [as_member, as_group, as_superuser])
def test_an_account_that_is_not_active_may_nothing(
    castle: Sheet, make: Callable[[Sheet], User]
) -> None:
    ben = make(castle)
    assert ben.has_perm("factsheets.publish_sheet", castle)
    ben.is_active = False
    ben.save()

    may_nothing(again(ben), castle)


def test_who_has_not_logged_in_may_nothing(castle: Sheet) -> None:
    may_nothing(AnonymousUser(), castle)


def test_who_has_no_role_may_nothing(castle: Sheet) -> None:
    may_nothing(factories.person("ben"), castle)


def may_nothing(user: Any, sheet: Sheet) -> None:
    source = factories.source()
    assert not user.has_perm("factsheets.publish_sheet", sheet)
    assert not user.has_perm("factsheets.view_sheet", sheet)
    assert not user.has_perm("factsheets.view_source", source)
    assert not access.somewhere(user, "factsheets.view_sheet")
    assert not access.sheets(user, "factsheets.view_sheet").exists()
    for rows in (Sheet.objects.all(), Source.objects.all(), BotProfile.objects.all()):
        assert rows.exists()
        assert not access.visible(user, rows).exists()
    with pytest.raises(PermissionDenied):
        access.require(user, "factsheets.view_sheet", sheet)


# ---- the list of members changes ----


def test_a_removed_member_may_nothing_and_one_that_comes_back_may_again(castle: Sheet) -> None:
    ben = member("editor", castle)
    row = Member.objects.get(user=ben)

    remove(row)
    may_nothing(again(ben), castle)

    editing.restore(row, by=factories.person(), reason="back", now=LATER)
    assert again(ben).has_perm("factsheets.describe_sheet", castle)


def test_one_removed_role_leaves_the_others(castle: Sheet, tower: Sheet) -> None:
    ben = member("editor", castle, tower)

    remove(Member.objects.get(user=ben, sheet=castle))

    assert not again(ben).has_perm("factsheets.describe_sheet", castle)
    assert again(ben).has_perm("factsheets.describe_sheet", tower)


def test_a_permission_added_to_a_roles_group_holds_for_members_on_their_sheet(
    castle: Sheet, tower: Sheet
) -> None:
    Group.objects.get(name="editor").permissions.add(
        Permission.objects.get(codename="publish_sheet")
    )
    ben = member("editor", castle)

    assert ben.has_perm("factsheets.publish_sheet", castle)
    assert not ben.has_perm("factsheets.publish_sheet", tower)
    assert not ben.has_perm("factsheets.publish_sheet")


def test_a_permission_taken_from_a_roles_group_is_taken_from_members(castle: Sheet) -> None:
    Group.objects.get(name="publisher").permissions.remove(
        Permission.objects.get(codename="publish_sheet")
    )

    assert not member("publisher", castle).has_perm("factsheets.publish_sheet", castle)


def test_a_permission_on_accounts_added_to_a_roles_group_gives_members_none(castle: Sheet) -> None:
    Group.objects.get(name="editor").permissions.add(Permission.objects.get(codename="change_user"))
    ben = member("editor", castle)

    assert not ben.has_perm("auth.change_user", ben)
    assert not access.visible(ben, User.objects.all()).exists()


# ---- sheets put away ----


def test_a_member_of_an_archived_sheet_still_may(castle: Sheet, tower: Sheet) -> None:
    section = its_section(castle)
    ben = member("editor", castle)
    editing.archive_sheet(castle, by=factories.person(), reason="over", now=LATER)
    castle.refresh_from_db()

    assert ben.has_perm("factsheets.describe_sheet", castle)
    assert ben.has_perm("factsheets.change_section", section)
    assert list(access.sheets(ben, "factsheets.view_sheet")) == [castle]
    assert list(access.visible(ben, Section.objects.all())) == [section]


def test_an_archived_sheet_still_has_a_say_in_what_it_shares(castle: Sheet, tower: Sheet) -> None:
    source = shared_source(castle, tower)
    ben = member("editor", castle)

    editing.archive_sheet(tower, by=factories.person(), reason="over", now=LATER)

    assert not ben.has_perm("factsheets.change_source", source)


def test_a_sheet_taken_out_of_use_is_not_listed(castle: Sheet, tower: Sheet) -> None:
    ben = member("editor", castle, tower)

    remove(tower)

    assert list(access.sheets(ben, "factsheets.view_sheet")) == [castle]
    assert list(access.sheets(factories.person("cara", "editor"), "factsheets.view_sheet")) == [
        castle
    ]


# ---- rows that several sheets use ----


def shared_source(*sheets: Sheet) -> Source:
    source = factories.source("statute")
    for sheet in sheets:
        factories.section(sheet, "law", source=source)
    return source


def shared_rules(*sheets: Sheet) -> RuleSet:
    ruleset = RuleSet(slug="house-rules", title="House rules", shared=True)
    factories.save(ruleset)
    for sheet in sheets:
        factories.save(SheetRuleSet(sheet=sheet, ruleset=ruleset))
    return ruleset


def shared_rule(*sheets: Sheet) -> Rule:
    rule = Rule(ruleset=shared_rules(*sheets), key="polite", kind="format", text="Be polite.")
    factories.save(rule)
    return rule


def shared_suite(*sheets: Sheet) -> Suite:
    """A suite of the first sheet that the others require."""
    suite = factories.suite(sheets[0], "house-safety")
    for sheet in sheets[1:]:
        factories.save(SuiteRequirement(sheet=sheet, suite=suite))
    return suite


def nobodys_suite(*sheets: Sheet) -> Suite:
    """A suite written for no sheet that all of these require."""
    suite = Suite(slug="house-safety", title="Safety")
    factories.save(suite)
    for sheet in sheets:
        factories.save(SuiteRequirement(sheet=sheet, suite=suite))
    return suite


def shared_probe(*sheets: Sheet) -> Probe:
    return factories.probe(shared_suite(*sheets))


def shared_bot(*sheets: Sheet) -> BotProfile:
    bot = BotProfile(slug="house-bot")
    factories.save(bot)
    for sheet in sheets:
        change(sheet, bot=bot)
    return bot


SHARED: list[tuple[str, str, Callable[..., Any]]] = [
    ("editor", "factsheets.{}_source", shared_source),
    ("rule keeper", "factsheets.{}_ruleset", shared_rules),
    ("rule keeper", "factsheets.{}_rule", shared_rule),
    ("rule keeper", "factsheets.{}_botprofile", shared_bot),
    ("rule keeper", "evals.{}_suite", shared_suite),
    ("rule keeper", "evals.{}_suite", nobodys_suite),
    ("rule keeper", "evals.{}_probe", shared_probe),
]


@pytest.mark.parametrize(("role", "permission", "share"), SHARED)
def test_what_two_sheets_use_is_changed_by_who_may_on_both(
    castle: Sheet, tower: Sheet, role: str, permission: str, share: Callable[..., Any]
) -> None:
    row = share(castle, tower)
    name = permission.format("change")

    assert member(role, castle, tower).has_perm(name, row)
    assert not member(role, castle, name="cara").has_perm(name, row)
    assert not member(role, tower, name="dan").has_perm(name, row)
    assert factories.person("eve", role).has_perm(name, row)


@pytest.mark.parametrize(("role", "permission", "share"), SHARED)
def test_what_two_sheets_use_is_seen_by_who_may_on_one(
    castle: Sheet, tower: Sheet, role: str, permission: str, share: Callable[..., Any]
) -> None:
    row = share(castle, tower)
    name = permission.format("view")

    for number, sheet in enumerate((castle, tower)):
        person = member("viewer", sheet, name=f"viewer-{number}")
        assert person.has_perm(name, row)
        assert row in access.visible(person, type(row).objects.all())


@pytest.mark.parametrize(("role", "permission", "share"), SHARED)
def test_another_role_on_the_second_sheet_is_not_enough(
    castle: Sheet, tower: Sheet, role: str, permission: str, share: Callable[..., Any]
) -> None:
    row = share(castle, tower)
    member(role, castle)
    ben = member("viewer", tower)

    assert not ben.has_perm(permission.format("change"), row)


@pytest.mark.parametrize(("role", "permission", "share"), SHARED)
def test_what_one_sheet_uses_is_changed_by_its_members(
    castle: Sheet, tower: Sheet, role: str, permission: str, share: Callable[..., Any]
) -> None:
    row = share(castle)
    name = permission.format("change")

    assert member(role, castle).has_perm(name, row)
    assert not member(role, tower, name="cara").has_perm(name, row)


def end_the_citation(tower: Sheet) -> None:
    remove(Citation.objects.get(section__sheet=tower))


def remove_the_section(tower: Sheet) -> None:
    remove(tower.sections.get())


def end_the_link(tower: Sheet) -> None:
    remove(tower.ruleset_links.get(ruleset__shared=True))


def end_the_requirement(tower: Sheet) -> None:
    remove(tower.suite_requirements.get())


def take_another_bot(tower: Sheet) -> None:
    change(tower, bot=editing.offline_bot(by=factories.person(), now=LATER))


@pytest.mark.parametrize(
    ("role", "permission", "share", "end"),
    [
        ("editor", "factsheets.{}_source", shared_source, end_the_citation),
        ("editor", "factsheets.{}_source", shared_source, remove_the_section),
        ("rule keeper", "factsheets.{}_ruleset", shared_rules, end_the_link),
        ("rule keeper", "factsheets.{}_rule", shared_rule, end_the_link),
        ("rule keeper", "factsheets.{}_botprofile", shared_bot, take_another_bot),
        ("rule keeper", "factsheets.{}_botprofile", shared_bot, remove),
        ("rule keeper", "evals.{}_suite", shared_suite, end_the_requirement),
        ("rule keeper", "evals.{}_suite", nobodys_suite, end_the_requirement),
        ("rule keeper", "evals.{}_probe", shared_probe, end_the_requirement),
    ],
)
def test_a_use_that_ended_no_longer_counts(
    castle: Sheet,
    tower: Sheet,
    role: str,
    permission: str,
    share: Callable[..., Any],
    end: Callable[[Sheet], None],
) -> None:
    row = share(castle, tower)
    ben = member(role, castle)
    assert not ben.has_perm(permission.format("change"), row)

    end(tower)

    assert again(ben).has_perm(permission.format("change"), row)


@pytest.mark.parametrize(
    ("permission", "share", "end"),
    [
        ("factsheets.view_ruleset", shared_rules, end_the_link),
        ("factsheets.view_rule", shared_rule, end_the_link),
        ("evals.view_suite", shared_suite, end_the_requirement),
        ("evals.view_probe", shared_probe, end_the_requirement),
    ],
)
def test_what_a_sheet_no_longer_uses_its_members_no_longer_see(
    castle: Sheet,
    tower: Sheet,
    permission: str,
    share: Callable[..., Any],
    end: Callable[[Sheet], None],
) -> None:
    row = share(castle, tower)
    ben = member("viewer", tower)
    assert ben.has_perm(permission, row)

    end(tower)

    assert not again(ben).has_perm(permission, row)
    assert row not in access.visible(again(ben), type(row).objects.all())


def test_a_sheet_that_uses_a_row_twice_counts_once(castle: Sheet, tower: Sheet) -> None:
    source = shared_source(castle)
    factories.section(castle, "again", source=source)
    twice = factories.section(tower, "law", source=source)
    remove(twice.citations.get())

    assert member("editor", castle).has_perm("factsheets.change_source", source)


# ---- common stock ----


@pytest.mark.parametrize(
    ("permission", "share"),
    [("factsheets.view_source", shared_source), ("factsheets.view_botprofile", shared_bot)],
)
def test_common_stock_is_seen_by_members_of_any_sheet(
    castle: Sheet, tower: Sheet, permission: str, share: Callable[..., Any]
) -> None:
    row = share(castle)
    ben = member("viewer", tower)

    assert ben.has_perm(permission, row)
    assert row in access.visible(ben, type(row).objects.all())


@pytest.mark.parametrize(
    ("permission", "share"),
    [
        ("factsheets.view_ruleset", shared_rules),
        ("factsheets.view_rule", shared_rule),
        ("evals.view_suite", shared_suite),
        ("evals.view_probe", shared_probe),
    ],
)
def test_what_other_sheets_share_is_not_seen(
    castle: Sheet, tower: Sheet, other: Sheet, permission: str, share: Callable[..., Any]
) -> None:
    row = share(castle, tower)
    ben = member("viewer", other)

    assert not ben.has_perm(permission, row)
    assert row not in access.visible(ben, type(row).objects.all())


@pytest.mark.parametrize(
    ("role", "permission", "share", "may"),
    [
        ("editor", "factsheets.change_source", shared_source, True),
        ("rule keeper", "factsheets.change_botprofile", shared_bot, True),
        ("rule keeper", "factsheets.change_ruleset", shared_rules, False),
        ("rule keeper", "evals.change_suite", nobodys_suite, False),
    ],
)
def test_what_no_sheet_uses_is_changed_by_members_only_if_it_is_common(
    castle: Sheet, role: str, permission: str, share: Callable[..., Any], may: bool
) -> None:
    row = share()

    assert member(role, castle).has_perm(permission, row) is may
    assert factories.person("cara", role).has_perm(permission, row)


def test_how_long_checks_hold_for_all_sheets_is_changed_by_who_may_on_all(castle: Sheet) -> None:
    row = ReviewInterval(kind="news", interval="1 month")
    new = ReviewInterval(kind="interview", interval="1 month")
    factories.save(row)
    ben, cara = member("maintainer", castle), factories.person("cara", "maintainer")

    assert ben.has_perm("factsheets.view_reviewinterval", row)
    assert not ben.has_perm("factsheets.change_reviewinterval", row)
    assert not ben.has_perm("factsheets.add_reviewinterval", new)
    assert cara.has_perm("factsheets.change_reviewinterval", row)
    assert cara.has_perm("factsheets.add_reviewinterval", new)


def test_the_page_that_adds_an_interval_is_not_for_members(castle: Sheet, client: Client) -> None:
    page = reverse("admin:factsheets_reviewinterval_add")

    client.force_login(member("maintainer", castle))
    assert client.get(page).status_code == 403
    client.force_login(factories.person("cara", "maintainer"))
    assert client.get(page).status_code == 200


# ---- new rows ----


def new_section(sheet: Sheet) -> Section:
    return Section(sheet=sheet, key="new", heading="New")


def new_citation(sheet: Sheet) -> Citation:
    return Citation(section=its_section(sheet), source=factories.source(f"{sheet.slug}-map"))


def new_check(sheet: Sheet) -> Check:
    return Check(section=its_section(sheet), checked_on=NOW.date())


def new_plan(sheet: Sheet) -> ReviewPlan:
    return ReviewPlan(sheet=sheet)


def new_rule(sheet: Sheet) -> Rule:
    return Rule(ruleset=its_rules(sheet), key="new")


def new_link(sheet: Sheet) -> SheetRuleSet:
    return SheetRuleSet(sheet=sheet, ruleset=its_rules(sheet))


def new_suite(sheet: Sheet) -> Suite:
    return Suite(sheet=sheet, slug="new", title="New")


def new_probe(sheet: Sheet) -> Probe:
    return Probe(suite=its_suite(sheet), key="new")


def new_requirement(sheet: Sheet) -> SuiteRequirement:
    return SuiteRequirement(sheet=sheet, suite=its_suite(sheet))


@pytest.mark.parametrize(
    ("role", "permission", "new"),
    [
        ("editor", "factsheets.add_section", new_section),
        ("editor", "factsheets.add_citation", new_citation),
        ("editor", "factsheets.add_check", new_check),
        ("maintainer", "factsheets.add_reviewplan", new_plan),
        ("rule keeper", "factsheets.add_rule", new_rule),
        ("rule keeper", "factsheets.add_sheetruleset", new_link),
        ("rule keeper", "evals.add_suite", new_suite),
        ("rule keeper", "evals.add_probe", new_probe),
        ("rule keeper", "evals.add_suiterequirement", new_requirement),
    ],
)
def test_a_new_row_belongs_to_the_sheet_that_it_names(
    castle: Sheet, tower: Sheet, role: str, permission: str, new: Callable[[Sheet], Model]
) -> None:
    ben = member(role, castle)

    assert ben.has_perm(permission, new(castle))
    assert not ben.has_perm(permission, new(tower))


@pytest.mark.parametrize(
    ("role", "permission", "row"),
    [
        ("editor", "factsheets.add_section", Section()),
        ("editor", "factsheets.add_citation", Citation()),
        ("rule keeper", "factsheets.add_rule", Rule()),
        ("rule keeper", "factsheets.add_ruleset", RuleSet()),
        ("rule keeper", "evals.add_suite", Suite()),
        ("maintainer", "factsheets.add_sheet", Sheet()),
    ],
)
def test_a_new_row_that_names_no_sheet_is_not_for_members(
    castle: Sheet, role: str, permission: str, row: Model
) -> None:
    assert not member(role, castle).has_perm(permission, row)
    assert factories.person("cara", role).has_perm(permission, row)


@pytest.mark.parametrize(
    ("role", "permission", "row"),
    [
        ("editor", "factsheets.add_source", Source(key="new")),
        ("rule keeper", "factsheets.add_botprofile", BotProfile(slug="new")),
    ],
)
def test_new_common_stock_may_be_added_by_members(
    castle: Sheet, role: str, permission: str, row: Model
) -> None:
    assert member(role, castle).has_perm(permission, row)
    assert not member("viewer", castle, name="cara").has_perm(permission, row)


def test_a_new_sheet_cannot_be_made_by_a_member_whatever_key_it_claims(castle: Sheet) -> None:
    ben = member("maintainer", castle)

    assert not ben.has_perm("factsheets.add_sheet", Sheet(pk=castle.pk, slug="new"))


def test_a_new_rule_or_probe_of_what_two_sheets_use_asks_for_both(
    castle: Sheet, tower: Sheet
) -> None:
    rule, probe = (
        Rule(ruleset=shared_rules(castle, tower)),
        Probe(suite=shared_suite(castle, tower)),
    )
    ben, cara = member("rule keeper", castle), member("rule keeper", castle, tower, name="cara")

    assert not ben.has_perm("factsheets.add_rule", rule)
    assert not ben.has_perm("evals.add_probe", probe)
    assert cara.has_perm("factsheets.add_rule", rule)
    assert cara.has_perm("evals.add_probe", probe)


def test_a_use_that_ended_does_not_count_for_new_rows_either(castle: Sheet, tower: Sheet) -> None:
    rule, probe = (
        Rule(ruleset=shared_rules(castle, tower)),
        Probe(suite=shared_suite(castle, tower)),
    )
    ben = member("rule keeper", castle)

    end_the_link(tower)
    end_the_requirement(tower)

    assert ben.has_perm("factsheets.add_rule", rule)
    assert ben.has_perm("evals.add_probe", probe)


# ---- somewhere, sheets, visible, require ----


def test_somewhere_is_on_any_one_sheet_or_on_every(castle: Sheet, tower: Sheet) -> None:
    name = "factsheets.publish_sheet"

    assert access.somewhere(member("publisher", castle), name)
    assert access.somewhere(factories.person("cara", "publisher"), name)
    assert not access.somewhere(member("editor", castle, tower, name="dan"), name)


def test_the_sheets_of_a_member_are_those_on_which_the_role_holds(
    castle: Sheet, tower: Sheet, other: Sheet
) -> None:
    member("editor", castle, tower)
    ben = member("publisher", tower, other)

    assert set(access.sheets(ben, "factsheets.describe_sheet")) == {castle, tower}
    assert set(access.sheets(ben, "factsheets.publish_sheet")) == {tower, other}
    assert set(access.sheets(ben, "factsheets.view_sheet")) == {castle, tower, other}
    assert not access.sheets(ben, "factsheets.archive_sheet").exists()


def test_the_sheets_of_a_group_are_all(castle: Sheet, tower: Sheet) -> None:
    ben = factories.person("ben", "publisher")

    assert set(access.sheets(ben, "factsheets.publish_sheet")) == {castle, tower}


@pytest.mark.parametrize(
    "row_of",
    [
        itself,
        its_section,
        its_citation,
        its_check,
        its_rules,
        its_link,
        factories.rule,
        its_suite,
        its_probe,
        its_requirement,
        its_plan,
        its_policy,
    ],
)
def test_a_member_sees_the_rows_of_that_sheet_and_no_others(
    castle: Sheet, tower: Sheet, row_of: Callable[[Sheet], Any]
) -> None:
    seen, unseen = row_of(castle), row_of(tower)
    rows = type(seen)._default_manager.order_by("pk")

    assert list(access.visible(member("viewer", castle), rows)) == [seen]
    assert list(access.visible(factories.person("cara", "viewer"), rows)) == [seen, unseen]


def test_a_member_sees_the_publications_events_and_runs_of_that_sheet_and_no_others() -> None:
    castle, tower = factories.published_sheet("castle"), factories.published_sheet("tower")
    ben = member("viewer", castle)

    assert [p.sheet for p in access.visible(ben, Publication.objects.all())] == [castle]
    assert [run.sheet for run in access.visible(ben, Run.objects.all())] == [castle]
    assert ben.has_perm("factsheets.view_publication", castle.state.live_publication)
    assert not ben.has_perm("factsheets.view_publication", tower.state.live_publication)


def test_a_row_is_seen_once_in_the_order_asked_for(castle: Sheet, tower: Sheet) -> None:
    # Written for one sheet and required by both: three ways to the person's sheets.
    first, second = shared_suite(castle, tower), factories.suite(castle, "another")
    ben = member("viewer", castle, tower)

    rows = access.visible(ben, Suite.objects.order_by("-pk"))

    assert list(rows) == [second, first]
    assert rows.count() == 2


def test_what_was_narrowed_stays_narrow(castle: Sheet) -> None:
    factories.section(castle, "hours")
    way = factories.section(castle, "way")
    ben = member("viewer", castle)

    assert list(access.visible(ben, Section.objects.filter(key="way"))) == [way]
    assert not access.visible(ben, Section.objects.none()).exists()


def test_removed_rows_of_the_persons_sheets_are_seen_as_before(castle: Sheet) -> None:
    section = its_section(castle)
    ben = member("viewer", castle)

    remove(section)

    assert list(access.visible(ben, Section.objects.all())) == [section]


def test_rows_that_belong_to_no_sheet_are_for_those_of_every_sheet(castle: Sheet) -> None:
    assert ChangeSet.objects.exists()

    assert not access.visible(member("viewer", castle), ChangeSet.objects.all()).exists()
    assert access.visible(factories.person("cara", "viewer"), ChangeSet.objects.all()).exists()


def test_requiring_says_no_with_an_exception_and_yes_with_silence(
    castle: Sheet, tower: Sheet
) -> None:
    ben = member("editor", castle)

    access.require(ben, "factsheets.describe_sheet", castle)
    with pytest.raises(PermissionDenied):
        access.require(ben, "factsheets.describe_sheet", tower)
    with pytest.raises(PermissionDenied):
        access.require(ben, "factsheets.publish_sheet", castle)


# ---- every row leads somewhere ----


def tracked() -> list[type[Model]]:
    return [model for model in TrackedModel.__subclasses__() if not model._meta.abstract]


def test_every_tracked_row_leads_to_sheets_or_is_common_stock() -> None:
    assert [m for m in tracked() if not (m.SHEETS or m.COMMON)] == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", tracked())
def test_every_way_to_a_sheet_can_be_followed(model: type[Model]) -> None:
    paths: tuple[SheetPath, ...] = model.SHEETS  # type: ignore[attr-defined]
    ends = [path.lookup or "pk" for path in paths]

    for path, end in zip(paths, ends, strict=True):
        present = {f"{link}__removed_at__isnull": True for link in path.present}
        assert model._base_manager.filter(**{end: 0}, **present).count() == 0


# ---- queries ----


@pytest.mark.parametrize("number", [1, 12])
def test_the_queries_of_a_question_do_not_grow_with_the_sheets(
    number: int, django_assert_num_queries: Callable[[int], Any]
) -> None:
    sheets = [factories.sheet(f"sheet-{place}") for place in range(number)]
    source = shared_source(*sheets)
    ben = member("editor", *sheets)

    # Two for his groups' permissions, one for his roles, one for what the role may,
    # and one for the sheets that use the row.
    with django_assert_num_queries(5):
        assert ben.has_perm("factsheets.change_source", source)
    with django_assert_num_queries(1):
        assert ben.has_perm("factsheets.change_source", source)
    with django_assert_num_queries(0):
        assert all(ben.has_perm("factsheets.describe_sheet", sheet) for sheet in sheets)
        assert access.somewhere(ben, "factsheets.change_section")
    with django_assert_num_queries(1):
        assert len(access.sheets(ben, "factsheets.describe_sheet")) == number
    with django_assert_num_queries(1):
        assert len(access.visible(ben, Section.objects.all())) == number


def test_a_person_with_the_group_is_asked_nothing_of_single_sheets(
    castle: Sheet, django_assert_num_queries: Callable[[int], Any]
) -> None:
    source = shared_source(castle)
    ben = factories.person("ben", "editor")

    with django_assert_num_queries(2):
        assert ben.has_perm("factsheets.change_source", source)
