"""`{% may "factsheets.publish_sheet" sheet as may_publish %}`: what the person may do on a row."""

from __future__ import annotations

from typing import Any

from django import template
from django.db.models import Model

register = template.Library()


@register.simple_tag(takes_context=True)
def may(context: dict[str, Any], permission: str, row: Model) -> bool:
    """Whether who asks has the permission on the row."""
    return bool(context["request"].user.has_perm(permission, row))
