"""Who may do what on which sheet.

A role given as a group holds on every sheet; a role given as a `Member` row on
that sheet alone. A row belongs to the sheets that use it (`SHEETS` of its
model). Whoever wants to change it needs the permission on *all* of them, for
the change reaches them all; whoever wants to see it needs it on *one*.

`user.has_perm(permission, row)` asks this; `user.has_perm(permission)` still
means: on every sheet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet

from factsheets.models import Member, Sheet
from factsheets.models.tracking import SheetPath


class SheetRoles(BaseBackend):
    """Answers `has_perm(permission, row)`; without a row it leaves the answer to Django's own."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        if obj is None or not user_obj.is_active or user_obj.is_anonymous:
            return False
        return _allows(user_obj, perm, obj)


def somewhere(user: Any, permission: str) -> bool:
    """Whether a person has a permission on every sheet or on any one."""
    return bool(user.has_perm(permission)) or bool(_roles_with(user, permission))


def sheets(user: Any, permission: str) -> QuerySet[Sheet]:
    """The sheets on which a person has a permission."""
    every = Sheet.objects.present()
    return every if user.has_perm(permission) else every.filter(pk__in=_sheet_ids(user, permission))


def visible[M: Model](user: Any, rows: QuerySet[M]) -> QuerySet[M]:
    """The rows that a person may see."""
    model = rows.model
    permission = f"{model._meta.app_label}.view_{model._meta.model_name}"
    if user.has_perm(permission):
        return rows
    if not somewhere(user, permission):
        return rows.none()
    if getattr(model, "COMMON", False):
        return rows
    seen = _sheet_ids(user, permission)
    found = Q(pk__in=[])
    for path in _paths(model):
        found |= Q(**{f"{path.lookup or 'pk'}__in": seen}, **_present(path))
    # By key: a join would show a row once for each of its sheets.
    return rows.filter(pk__in=model._base_manager.filter(found).values("pk"))


def require(user: Any, permission: str, row: Model) -> None:
    """Raise PermissionDenied unless the person has the permission on the row."""
    if not user.has_perm(permission, row):
        raise PermissionDenied


def _allows(user: User, permission: str, row: Model) -> bool:
    if user.has_perm(permission):
        return True
    granted = _sheet_ids(user, permission)
    # A new sheet is on nobody's list yet, whatever it says of itself.
    if not granted or permission == "factsheets.add_sheet":
        return False
    is_common = bool(getattr(row, "COMMON", False))
    used_by = sheets_using(row)
    if ".view_" in permission:
        return is_common or bool(used_by & granted)
    if not used_by:
        # Nobody's yet: common stock that sheets may come to use is for any of them. The rest,
        # and what holds for all sheets at once, is for those of every sheet.
        return is_common and bool(_paths(type(row)))
    return used_by <= granted


def _sheet_ids(user: Any, permission: str) -> set[int]:
    roles = _roles_with(user, permission)
    return {sheet for sheet, role in _memberships(user) if role in roles}


def _roles_with(user: Any, permission: str) -> set[str]:
    """The person's roles on single sheets that hold a permission."""
    mine = {role for _, role in _memberships(user)}
    return {role for role in mine if permission in _permissions_of(user, role)}


def _memberships(user: Any) -> list[tuple[int, str]]:
    """Asked for once a request: a user object lives no longer."""
    if not user.is_active:  # Nor is who has not logged in.
        return []
    if not hasattr(user, "_sheet_roles_cache"):
        user._sheet_roles_cache = list(
            Member.objects.present().filter(user=user).values_list("sheet_id", "role")
        )
    found: list[tuple[int, str]] = user._sheet_roles_cache
    return found


def _permissions_of(user: Any, role: str) -> set[str]:
    """What the role's group may do, with what an administrator added to it."""
    cache: dict[str, set[str]] = user.__dict__.setdefault("_role_permissions_cache", {})
    if role not in cache:
        cache[role] = {
            f"{app}.{codename}"
            for app, codename in Permission.objects.filter(group__name=role).values_list(
                "content_type__app_label", "codename"
            )
        }
    return cache[role]


def _paths(model: type[Model]) -> Iterable[SheetPath]:
    found: Iterable[SheetPath] = getattr(model, "SHEETS", ())
    return found


def _present(path: SheetPath) -> dict[str, bool]:
    return {f"{link}__removed_at__isnull": True for link in path.present}


def sheets_using(row: Model) -> set[int]:
    """The sheets that use a row, by key; for a new row those that it names."""
    found: set[int] = set()
    for path in _paths(type(row)):
        if not path.lookup:
            found |= set() if row.pk is None else {row.pk}
        # A row read from the history is not stored either, but it has its key.
        elif row.pk is not None:
            rows = type(row)._base_manager.filter(pk=row.pk, **_present(path))
            found |= set(rows.values_list(path.lookup, flat=True))
        else:
            found |= _named(row, path)
    return found - {None}


def _named(row: Model, path: SheetPath) -> set[int]:
    """Follow a path from a row that is not stored yet: its own keys are all it has."""
    first, _, rest = path.lookup.partition("__")
    field = row._meta.get_field(first)
    key = getattr(row, field.attname) if field.concrete else None
    if key is None:
        return set()
    related: type[Model] = field.related_model  # type: ignore[assignment]
    onward = SheetPath(rest or "pk", tuple(p.removeprefix(f"{first}__") for p in path.present))
    rows = related._base_manager.filter(pk=key, **_present(onward))
    return set(rows.values_list(onward.lookup, flat=True))
