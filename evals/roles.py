"""Permissions of the probes' app, by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from factsheets import roles

_SEE = tuple(
    f"view_{name}"
    for name in (
        "attempt",
        "probe",
        "question",
        "questionset",
        "retrievalreport",
        "run",
        "spend",
        "suite",
        "suiterequirement",
        "trial",
        "trialanswer",
        "turn",
        "verdict",
    )
)

EVALS: Mapping[str, Sequence[str]] = {
    roles.VIEWER: _SEE,
    roles.EDITOR: (*_SEE, "start_run"),
    roles.RULE_KEEPER: (
        *_SEE,
        "start_run",
        *(
            f"{verb}_{name}"
            for verb in ("add", "change")
            for name in ("suite", "probe", "suiterequirement", "questionset", "question")
        ),
    ),
    roles.PUBLISHER: (*_SEE, "start_run"),
    roles.MAINTAINER: _SEE,
}
