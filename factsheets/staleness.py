"""What stands between a section's text and a check that covers it."""

from __future__ import annotations

from factsheets import canonical
from factsheets.snapshot import SectionSnapshot

CONFIRMING = frozenset({"confirmed", "corrected"})


def is_unsourced(section: SectionSnapshot) -> bool:
    """No citation supports the section; background and qualifications do not."""
    return not any(citation.role == "supports" for citation in section.citations)


def is_never_checked(section: SectionSnapshot) -> bool:
    """Nobody has confirmed any text of the section."""
    return section.check is None


def covers_text(section: SectionSnapshot) -> bool:
    """The newest check is about the text as it stands."""
    return section.check is not None and section.check.text_hash == canonical.text_hash(
        section.heading, section.body
    )


def is_edited_since_check(section: SectionSnapshot) -> bool:
    """The newest check is about another text. Formatting and white space do not count."""
    return section.check is not None and not covers_text(section)


def is_disputed(section: SectionSnapshot) -> bool:
    """The newest check disputes this very text."""
    return (
        section.check is not None and section.check.outcome == "disputed" and covers_text(section)
    )
