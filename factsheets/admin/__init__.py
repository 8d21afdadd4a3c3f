"""The editors' pages. They translate; they decide nothing."""

from factsheets.admin import accounts, publications, rules, sheets

__all__ = ["accounts", "publications", "rules", "sheets"]
