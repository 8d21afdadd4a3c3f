"""Rules to the one text the model reads, and its hash.

Keys, kinds and disabled rules do not enter the text: what the model reads
does, all of it and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from factsheets.snapshot import RuleSnapshot

FORMAT = "rules/1"

AUTHORITY = "These rules have authority over the sheet that follows: where the two disagree, the rules hold."


def rules_text(rules: Iterable[RuleSnapshot]) -> str:
    """The enabled rules, one paragraph each, and the line that puts them above the sheet.

    Without an enabled rule the text is empty: there is nothing to have authority.
    """
    paragraphs = [rule.text for rule in rules if rule.enabled]
    return "\n\n".join([*paragraphs, AUTHORITY]) if paragraphs else ""


def rules_hash(text: str) -> str:
    """SHA-256 (hex) of the format's name, a line feed and the rules text."""
    return hashlib.sha256(f"{FORMAT}\n{text}".encode()).hexdigest()
