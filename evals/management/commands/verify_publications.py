"""Recompute every publication from its own bytes and its evidence from rows."""

from __future__ import annotations

from typing import Any

from evals import verification
from factsheets.commands import SheetCommand


class Command(SheetCommand):
    help = "Verify the bytes, hashes, numbers and evidence of every publication."
    example = "python manage.py verify_publications"

    def act(self, **options: Any) -> int:
        result = verification.verify_publications()
        for fault in result.faults:
            self.say(f"{fault.code}: {fault.sentence}")
        self.say(f"{result.checked} publications verified, {len(result.faults)} faults.")
        return 1 if result.faults else 0
