"""Find rows that were changed without leaving a history."""

from __future__ import annotations

from typing import Any

from factsheets import history_check
from factsheets.commands import SheetCommand


class Command(SheetCommand):
    help = "Compare every tracked row with the newest entry of its history."
    example = "python manage.py verify_history"

    def act(self, **options: Any) -> int:
        result = history_check.verify()
        for fault in result.faults:
            self.say(fault)
        self.say(f"{result.checked} rows verified, {len(result.faults)} faults.")
        return 1 if result.faults else 0
