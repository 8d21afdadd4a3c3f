"""Shares and places as people and SVG read them."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def percent(share: float) -> str:
    """A share from 0 to 1 in per cent, with a decimal where it is small."""
    value = float(share) * 100
    return f"{value:.0f}%" if value >= 20 or value == 0 else f"{value:.1f}%"


@register.filter
def plain(number: float) -> str:
    """A number with a decimal point in every language, as SVG wants it."""
    return f"{float(number):.3f}"
