"""What people are told by mail of runs."""

from __future__ import annotations

from factsheets.models import Outbox
from factsheets.notices import PUBLISHERS, Notice


def of_failed_live(row: Outbox) -> Notice:
    """What is live failed its probes: for those who can withdraw it, and those who can mend it."""
    return Notice(
        f"{row.sheet.title}: the probes failed on what is live",
        f"Publication {row.payload['publication']} of “{row.sheet.title}”, which bots get now, "
        f"failed its probes at {row.payload['at']}. Nothing was withdrawn. Read what failed, then "
        "withdraw the publication, or mend the rules or the text and publish again.",
        (*PUBLISHERS, "factsheets.add_rule"),
    )
