"""Do the publications still say what was published, on evidence that the rows bear out?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from evals import evidence
from evals.models import Run
from factsheets import canonical, rulesets
from factsheets.models import Publication, PublicationEvent, Sheet


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as it was published."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Result:
    """How many publications were looked at, and what was found."""

    checked: int
    faults: tuple[Fault, ...]


def verify_publications() -> Result:
    """Look at every publication of every sheet."""
    faults: list[Fault] = []
    checked = 0
    for sheet in Sheet.objects.select_related("state").order_by("slug"):
        numbers: list[int] = []
        for publication in sheet.publications.order_by("number"):
            checked += 1
            numbers.append(publication.number)
            faults += [
                Fault(code, f"Publication {publication.number} of {sheet.slug}: {sentence}")
                for code, sentence in _of(publication)
            ]
        faults += _gaps(sheet, numbers)
        faults += _live(sheet)
    return Result(checked, tuple(faults))


def _of(publication: Publication) -> Iterator[tuple[str, str]]:
    for part in ("body", "prompt", "record", "evidence"):
        if canonical.sha256(bytes(getattr(publication, part))) != getattr(
            publication, f"{part}_hash"
        ):
            yield f"{part}-altered", f"the {part} is not what was stored with its hash."
    try:
        body = json.loads(bytes(publication.body))
        content = canonical.sha256(canonical.canonical_json(body["content"]))
        rules = rulesets.rules_hash(body["rules"])
        said = (body["publication"], body["content_hash"], body["rules_hash"], body["slug"])
    except (ValueError, KeyError, TypeError):
        yield "body-unreadable", "the body cannot be read."
        return
    if content != publication.content_hash:
        yield "content-altered", "the content does not have its hash."
    if rules != publication.rules_hash:
        yield "rules-altered", "the rules do not have their hash."
    if said != (
        publication.number,
        publication.content_hash,
        publication.rules_hash,
        publication.slug,
    ):
        yield "body-disagrees", "the body names other hashes, another number or another sheet."
    yield from _evidence(publication)


def _evidence(publication: Publication) -> Iterator[tuple[str, str]]:
    try:
        run_id = UUID(json.loads(bytes(publication.evidence))["run"])
    except (ValueError, KeyError, TypeError):
        yield "evidence-unreadable", "the evidence cannot be read."
        return
    run = Run.objects.filter(pk=run_id).first()
    if run is None or run.finished_at is None:
        yield "evidence-missing", "the run that it names is not there."
        return
    if (run.sheet_id, run.rules_hash, run.outcome) != (
        publication.sheet_id,
        publication.rules_hash,
        Run.Outcome.PASSED,
    ):
        yield "evidence-does-not-count", "its run did not pass on these rules of this sheet."
    if evidence.recomputed(run) != bytes(publication.evidence):
        yield "evidence-forged", "the summary is not what the run's rows say."


def _gaps(sheet: Sheet, numbers: list[int]) -> Iterator[Fault]:
    missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    if missing:
        listed = ", ".join(map(str, missing))
        yield Fault("number-missing", f"{sheet.slug}: publications {listed} are not there.")


def _live(sheet: Sheet) -> Iterator[Fault]:
    newest = PublicationEvent.objects.filter(sheet=sheet).order_by("-id").first()
    if sheet.state.live_publication_id != (newest.to_publication_id if newest else None):
        yield Fault(
            "live-disagrees", f"{sheet.slug}: what is live is not what the newest event says."
        )
