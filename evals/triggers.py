"""What the database refuses of runs, and of publications that no run stands behind."""

from __future__ import annotations

from factsheets.triggers import Event, Trigger, append_only

_FROZEN = "A run that has ended is never changed."

#: An incomplete run may be taken up again; every other ending is final.
_ENDED = "outcome NOT IN ('', 'incomplete')"


#: What a run freezes at its start.
_STARTED_FOR = (
    "sheet_id",
    "publication_number",
    "content_hash",
    "rules_hash",
    "bot_hash",
    "content",
    "rules_text",
    "plan",
    "is_partial",
    "planned",
    "changes_up_to_id",
)


def _of_ended_run(row: str, run: str) -> str:
    return f"EXISTS (SELECT 1 FROM evals_run WHERE id = {run.format(row)} AND {_ENDED})"  # noqa: S608


_RUN_OF = {
    "evals_attempt": "{0}.run_id",
    "evals_turn": "(SELECT run_id FROM evals_attempt WHERE id = {0}.attempt_id)",
    "evals_verdict": "(SELECT run_id FROM evals_attempt WHERE id = {0}.attempt_id)",
}

#: The rows that an event is about: an update could also move one into a run that has ended.
_ROWS: tuple[tuple[Event, tuple[str, ...]], ...] = (
    ("INSERT", ("NEW",)),
    ("UPDATE", ("OLD", "NEW")),
    ("DELETE", ("OLD",)),
)

EVALS: tuple[Trigger, ...] = (
    Trigger("evals_run", "UPDATE", _FROZEN, f"OLD.{_ENDED}"),
    Trigger(
        "evals_run",
        "UPDATE",
        "What a run was started for is never changed.",
        " OR ".join(
            f"COALESCE(CAST(NEW.{column} AS TEXT), '') <> COALESCE(CAST(OLD.{column} AS TEXT), '')"
            for column in _STARTED_FOR
        ),
        label="subject",
    ),
    *(t for t in append_only("evals_run", "Runs") if t.event != "UPDATE"),
    *(
        Trigger(
            table,
            event,
            _FROZEN,
            " OR ".join(_of_ended_run(row, run) for row in rows),
        )
        for table, run in _RUN_OF.items()
        for event, rows in _ROWS
    ),
    *(
        t
        for table in _RUN_OF
        for t in append_only(table, "What happened in runs")
        if t.event == "TRUNCATE"
    ),
    *append_only("evals_retrievalreport", "Retrieval reports"),
    *append_only("evals_trialanswer", "Answers of a trial"),
    Trigger(
        "evals_trial", "UPDATE", "A trial that is closed is never changed.", "OLD.state <> 'open'"
    ),
    *(t for t in append_only("evals_trial", "Trials") if t.event != "UPDATE"),
    Trigger(
        "factsheets_publication",
        "INSERT",
        "No run of the probes has passed on these rules.",
        "NOT EXISTS (SELECT 1 FROM evals_run WHERE sheet_id = NEW.sheet_id "
        "AND rules_hash = NEW.rules_hash AND state = 'closed' AND outcome = 'passed')",
    ),
)
