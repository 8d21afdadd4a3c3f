"""The stale-check report as CSV and JSON: the same rows, under the same names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from datetime import date

from factsheets.stale_report import Row, as_plain

#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_json(rows: Iterable[Row], *, today: date) -> str:
    """The rows with the day that they were judged on."""
    return json.dumps(
        {"on": today.isoformat(), "rows": [as_plain(row) for row in rows]},
        ensure_ascii=False,
        indent=2,
    )


def as_csv(rows: Iterable[Row]) -> str:
    """One line a section. Lists stand in one cell, with semicolons; no cell is a formula."""
    out = io.StringIO()
    # The mark by which spreadsheets know UTF-8.
    out.write("\ufeff")
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in rows:
        plain = as_plain(row)
        plain["reasons"] = " ".join(reason.sentence for reason in row.reasons)
        plain["kinds"] = "; ".join(row.kinds)
        writer.writerow([_cell(plain[column]) for column in COLUMNS])
    return out.getvalue()


COLUMNS = (
    "sheet",
    "section",
    "heading",
    "text",
    "state",
    "reasons",
    "checked_on",
    "due_on",
    "days_overdue",
    "kinds",
    "owner",
    "stands_in_for",
)


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
