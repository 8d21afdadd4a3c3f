"""Has the retriever lost questions on a text? Read from the reports of frozen question sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import F, Q

from evals import measuring
from evals.models import RetrievalReport
from factsheets.canonical import Subject
from factsheets.gate import Finding

#: So many questions are named; the report names them all.
NAMED = 3


def findings(subject: Subject) -> list[Finding]:
    """One finding for each frozen set by which the subject's text loses questions.

    It is held against what is live, or, if it is what is live, against the
    publication before; by the newest reports of both, under one configuration.
    A text that was never measured has none.
    """
    reports: list[Any] = list(
        RetrievalReport.objects.filter(
            Q(content_hash=subject.content_hash) | Q(publication__isnull=False),
            sheet_id=subject.sheet_id,
            question_set__removed_at__isnull=True,
        )
        .annotate(
            number=F("publication__number"),
            live_number=F("sheet__state__live_publication__number"),
            live_hash=F("sheet__state__live_publication__content_hash"),
        )
        .values(
            "pk",
            "question_set_id",
            "question_set__title",
            "frozen_hash",
            "content_hash",
            "configuration",
            "number",
            "live_number",
            "live_hash",
        )
        .order_by("-ran_at", "-pk")
    )
    pairs = list(_pairs(reports, subject.content_hash))
    if not pairs:
        return []
    wanted = {row["pk"] for pair in pairs for row in pair}
    misses = dict(
        RetrievalReport.objects.filter(pk__in=wanted).order_by("pk").values_list("pk", "misses")
    )
    return [
        _finding(after, before, lost)
        for after, before in pairs
        if (lost := measuring.lost(misses[before["pk"]], misses[after["pk"]]))
    ]


def _pairs(
    reports: Sequence[dict[str, Any]], content_hash: str
) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    """Of each set the newest report on the text, and the one that it is held against."""
    seen: set[int] = set()
    for after in reports:
        if after["content_hash"] != content_hash or after["question_set_id"] in seen:
            continue
        seen.add(after["question_set_id"])
        alike = [
            row
            for row in reports
            if row["question_set_id"] == after["question_set_id"]
            and row["frozen_hash"] == after["frozen_hash"]
            and row["configuration"] == after["configuration"]
            and row["content_hash"] != content_hash
            and row["number"] is not None
            and row["live_number"] is not None
        ]
        if after["live_hash"] == content_hash:
            earlier = [row for row in alike if row["number"] < row["live_number"]]
            earlier.sort(key=lambda row: -row["number"])  # Newest reports first among equals.
        else:
            earlier = [row for row in alike if row["content_hash"] == row["live_hash"]]
        if earlier:
            yield after, earlier[0]


def _finding(after: dict[str, Any], before: dict[str, Any], lost: Sequence[str]) -> Finding:
    many = "1 question" if len(lost) == 1 else f"{len(lost)} questions"
    more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
    return Finding(
        "retrieval-regressed",
        "warn",
        f"By “{after['question_set__title']}” the search loses {many} that it answers on "
        f"publication {before['number']}: {', '.join(lost[:NAMED])}{more}; read the report, and "
        "mend heading, question or text of the sections.",
        "sections",
    )
