"""The editors' pages. They translate; they decide nothing."""

from factsheets.admin import accounts, members, publications, reviewing, rules, sheets

__all__ = ["accounts", "members", "publications", "reviewing", "rules", "sheets"]
