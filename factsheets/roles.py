"""Who may do what: five roles as groups, put in place after every `migrate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib.auth.models import Group, Permission

VIEWER = "viewer"
EDITOR = "editor"
RULE_KEEPER = "rule keeper"
PUBLISHER = "publisher"
MAINTAINER = "maintainer"

ROLES = (VIEWER, EDITOR, RULE_KEEPER, PUBLISHER, MAINTAINER)

_SEE = tuple(
    f"view_{name}"
    for name in (
        "apikey",
        "botprofile",
        "changeset",
        "check",
        "citation",
        "gatepolicy",
        "member",
        "outbox",
        "publication",
        "publicationevent",
        "reviewinterval",
        "reviewplan",
        "rule",
        "ruleset",
        "schedule",
        "section",
        "sheet",
        "sheetruleset",
        "sizereport",
        "source",
        "uselog",
        "userecord",
    )
)


def _keep(*models: str) -> tuple[str, ...]:
    return tuple(f"{verb}_{model}" for model in models for verb in ("add", "change"))


#: Permissions of this app, by role. Every role may see everything.
FACTSHEETS: Mapping[str, Sequence[str]] = {
    VIEWER: _SEE,
    EDITOR: (
        *_SEE,
        "change_sheet",
        "describe_sheet",
        "add_check",
        "add_uselog",
        "change_userecord",
        "add_sizereport",
        *_keep("section", "source", "citation"),
    ),
    RULE_KEEPER: (
        *_SEE,
        "change_sheet",
        "add_sizereport",
        "assign_bot",
        *_keep("rule", "ruleset", "sheetruleset", "botprofile"),
    ),
    PUBLISHER: (
        *_SEE,
        "change_sheet",
        "add_sizereport",
        "change_visibility",
        "publish_sheet",
        "withdraw_sheet",
        "rollback_sheet",
        *_keep("apikey"),
    ),
    MAINTAINER: (
        *_SEE,
        "add_check",
        "add_uselog",
        "keep_texts_uselog",
        "change_userecord",
        "add_sizereport",
        *_keep("sheet", "gatepolicy", "reviewinterval", "reviewplan", "apikey"),
        "describe_sheet",
        "rename_sheet",
        "archive_sheet",
    ),
}


def install(app_label: str, permissions: Mapping[str, Sequence[str]]) -> None:
    """Give each role its permissions in one app. What an administrator added stays."""
    known = {
        permission.codename: permission
        for permission in Permission.objects.filter(content_type__app_label=app_label)
    }
    for role, codenames in permissions.items():
        group, _ = Group.objects.get_or_create(name=role)
        group.permissions.add(*(known[name] for name in codenames))
