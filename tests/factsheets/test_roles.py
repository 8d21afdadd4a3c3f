"""Who may do what: five roles, put in place after every `migrate`."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from evals import roles as evals_roles
from factsheets import roles
from tests import factories

pytestmark = pytest.mark.django_db

#: What a role may do, and what it must not, as the roles are meant.
MAY: dict[str, tuple[str, ...]] = {
    "viewer": (
        "factsheets.view_sheet",
        "factsheets.view_source",
        "factsheets.view_apikey",
        "factsheets.view_userecord",
        "evals.view_run",
    ),
    "editor": (
        "factsheets.add_uselog",
        "factsheets.change_userecord",
        "factsheets.add_section",
        "factsheets.change_section",
        "factsheets.add_source",
        "factsheets.change_source",
        "factsheets.add_citation",
        "factsheets.change_citation",
        "factsheets.change_sheet",
        "evals.start_run",
    ),
    "rule keeper": (
        "factsheets.add_rule",
        "factsheets.change_rule",
        "factsheets.add_ruleset",
        "factsheets.change_sheetruleset",
        "factsheets.add_botprofile",
        "factsheets.change_botprofile",
        "factsheets.assign_bot",
        "evals.add_probe",
        "evals.change_suite",
        "evals.add_suiterequirement",
        "evals.change_suiterequirement",
        "evals.start_run",
    ),
    "publisher": (
        "factsheets.publish_sheet",
        "factsheets.withdraw_sheet",
        "factsheets.rollback_sheet",
        "factsheets.change_visibility",
        "factsheets.add_apikey",
        "factsheets.change_apikey",
        "evals.start_run",
    ),
    "maintainer": (
        "factsheets.add_apikey",
        "factsheets.change_apikey",
        "factsheets.add_uselog",
        "factsheets.keep_texts_uselog",
        "factsheets.add_sheet",
        "factsheets.change_sheet",
        "factsheets.rename_sheet",
        "factsheets.archive_sheet",
        "factsheets.change_gatepolicy",
    ),
}

MAY_NOT: dict[str, tuple[str, ...]] = {
    "viewer": (
        "factsheets.change_sheet",
        "factsheets.publish_sheet",
        "factsheets.add_uselog",
        "factsheets.change_userecord",
        "evals.start_run",
    ),
    "editor": (
        "factsheets.add_apikey",
        "factsheets.change_apikey",
        "factsheets.keep_texts_uselog",
        "factsheets.publish_sheet",
        "factsheets.withdraw_sheet",
        "factsheets.rollback_sheet",
        "factsheets.change_rule",
        "factsheets.change_ruleset",
        "factsheets.change_sheetruleset",
        "factsheets.change_botprofile",
        "factsheets.assign_bot",
        "factsheets.change_gatepolicy",
        "factsheets.change_visibility",
        "factsheets.rename_sheet",
        "factsheets.add_sheet",
        "evals.change_probe",
        "evals.change_suite",
        "evals.change_suiterequirement",
    ),
    "rule keeper": (
        "factsheets.publish_sheet",
        "factsheets.change_section",
        "factsheets.change_source",
        "factsheets.change_gatepolicy",
        "factsheets.change_visibility",
        "factsheets.rename_sheet",
    ),
    "publisher": (
        "factsheets.change_section",
        "factsheets.change_rule",
        "factsheets.change_gatepolicy",
        "factsheets.assign_bot",
        "factsheets.rename_sheet",
        "evals.change_probe",
        "evals.change_suiterequirement",
    ),
    "maintainer": (
        "factsheets.publish_sheet",
        "factsheets.change_section",
        "factsheets.change_rule",
        "factsheets.assign_bot",
        "factsheets.change_visibility",
        "evals.change_probe",
        "evals.start_run",
    ),
}


def every_permission() -> dict[str, set[str]]:
    return {
        group.name: {
            f"{label}.{name}"
            for label, name in group.permissions.values_list("content_type__app_label", "codename")
        }
        for group in Group.objects.all()
    }


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_person_may_do_what_their_role_is_for_and_no_more(role: str) -> None:
    person = factories.person("ben", role)

    assert [name for name in MAY[role] if not person.has_perm(name)] == []
    assert [name for name in MAY_NOT[role] if person.has_perm(name)] == []


@pytest.mark.parametrize("role", roles.ROLES)
def test_every_role_sees_what_a_viewer_sees(role: str) -> None:
    held = every_permission()

    assert held["viewer"] <= held[role]


def test_a_viewer_changes_nothing() -> None:
    verbs = {name.split(".")[1].split("_")[0] for name in every_permission()["viewer"]}

    assert verbs == {"view"}


def test_no_role_deletes_anything_or_touches_accounts() -> None:
    held = set().union(*every_permission().values())

    assert {name for name in held if ".delete_" in name} == set()
    assert {name.split(".")[0] for name in held} == {"factsheets", "evals"}


@pytest.mark.parametrize(
    "table",
    ["publication", "publicationevent", "check", "changeset", "outbox", "slugalias", "sheetstate"],
)
@pytest.mark.parametrize("role", roles.ROLES)
def test_no_role_changes_what_is_written_once(role: str, table: str) -> None:
    held = every_permission()[role]

    assert f"factsheets.change_{table}" not in held


@pytest.mark.parametrize("table", ["run", "attempt", "turn", "verdict", "spend"])
@pytest.mark.parametrize("role", roles.ROLES)
def test_no_role_writes_what_happened_in_runs(role: str, table: str) -> None:
    held = every_permission()[role]

    assert {f"evals.add_{table}", f"evals.change_{table}"}.isdisjoint(held)


@pytest.mark.parametrize(
    ("permission", "only"),
    [
        ("factsheets.publish_sheet", {"publisher"}),
        ("factsheets.withdraw_sheet", {"publisher"}),
        ("factsheets.rollback_sheet", {"publisher"}),
        ("factsheets.change_visibility", {"publisher"}),
        ("factsheets.change_gatepolicy", {"maintainer"}),
        ("factsheets.rename_sheet", {"maintainer"}),
        ("factsheets.archive_sheet", {"maintainer"}),
        ("factsheets.add_sheet", {"maintainer"}),
        ("factsheets.assign_bot", {"rule keeper"}),
        ("factsheets.change_rule", {"rule keeper"}),
        ("evals.change_suiterequirement", {"rule keeper"}),
        ("factsheets.change_section", {"editor"}),
        ("evals.start_run", {"editor", "rule keeper", "publisher"}),
    ],
)
def test_a_power_belongs_to_the_roles_that_it_is_meant_for(permission: str, only: set[str]) -> None:
    assert {role for role, held in every_permission().items() if permission in held} == only


def test_a_migrated_database_has_the_five_roles() -> None:
    assert (
        set(every_permission())
        == set(roles.ROLES)
        == {
            "viewer",
            "editor",
            "rule keeper",
            "publisher",
            "maintainer",
        }
    )


def test_putting_the_roles_in_place_again_changes_nothing() -> None:
    before = every_permission()

    roles.install("factsheets", roles.FACTSHEETS)
    roles.install("evals", evals_roles.EVALS)

    assert every_permission() == before
    assert Group.objects.count() == 5


def test_migrating_gives_a_role_back_what_it_lost() -> None:
    before = every_permission()
    Group.objects.get(name="editor").permissions.clear()
    Group.objects.get(name="publisher").delete()

    call_command("migrate", verbosity=0, interactive=False)

    assert every_permission() == before


def test_what_an_administrator_added_stays() -> None:
    extra = Permission.objects.get(codename="publish_sheet")
    Group.objects.get(name="editor").permissions.add(extra)
    keepers = Group.objects.create(name="gatekeepers")
    keepers.permissions.add(extra)
    member = factories.person("ben", "editor")

    call_command("migrate", verbosity=0, interactive=False)

    held = every_permission()
    assert "factsheets.publish_sheet" in held["editor"]
    assert held["gatekeepers"] == {"factsheets.publish_sheet"}
    assert list(member.groups.values_list("name", flat=True)) == ["editor"]
