"""Figures for people."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def per_cent(share: float) -> str:
    """A share from 0 to 1 in whole per cent."""
    return f"{round(share * 100)} %"
