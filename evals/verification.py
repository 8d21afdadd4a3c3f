"""Do the publications still say what was published, on evidence that the rows bear out?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from evals import evidence, runs, scoring
from evals.models import Run
from factsheets import canonical, rulesets, sealing
from factsheets.bot import prompt
from factsheets.models import Outbox, Publication, PublicationEvent, Sheet


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
        events = list(
            sheet.events.select_related("from_publication", "to_publication")
            .defer(*(f"{way}__{part}" for way in _WAYS for part in Publication.BYTES))
            .order_by("id")
        )
        for publication in sheet.publications.order_by("number"):
            checked += 1
            numbers.append(publication.number)
            faults += [
                Fault(code, f"Publication {publication.number} of {sheet.slug}: {sentence}")
                for code, sentence in _of(publication)
            ]
        faults += _gaps(sheet, numbers)
        faults += _events(sheet, numbers, events)
        faults += _live(sheet, events)
    return Result(checked, tuple(faults))


_WAYS = ("from_publication", "to_publication")


def _of(publication: Publication) -> Iterator[tuple[str, str]]:
    for part in Publication.BYTES:
        if canonical.sha256(bytes(getattr(publication, part))) != getattr(
            publication, f"{part}_hash"
        ):
            yield f"{part}-altered", f"the {part} is not what was stored with its hash."
    try:
        body = json.loads(bytes(publication.body))
        content = canonical.sha256(canonical.canonical_json(body["content"]))
        rules = rulesets.rules_hash(body["rules"])
        said = (
            *(body["publication"], body["content_hash"], body["rules_hash"], body["slug"]),
            body["published_at"],
        )
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
        canonical.instant(publication.published_at),
    ):
        yield "body-disagrees", "the body names other hashes, another number or another sheet."
    yield from _record_and_prompt(publication)
    yield from _evidence(publication)


def _record_and_prompt(publication: Publication) -> Iterator[tuple[str, str]]:
    """The record must make the content, the rules and the prompt that were published."""
    try:
        snapshot = canonical.read_record(bytes(publication.record))
        form = json.loads(bytes(publication.prompt))["format"]
    except (ValueError, KeyError, TypeError):
        yield "record-unreadable", "the record or the prompt cannot be read."
        return
    made = canonical.candidate(publication.sheet_id, snapshot)
    if (made.subject.content_hash, made.subject.rules_hash) != (
        publication.content_hash,
        publication.rules_hash,
    ):
        yield "record-disagrees", "the record is of another text or of other rules."
    elif form == prompt.FORMAT and canonical.prompt_bytes(made) != bytes(publication.prompt):
        yield "prompt-disagrees", "the prompt is not made of this text and these rules."


def _evidence(publication: Publication) -> Iterator[tuple[str, str]]:
    try:
        run_id = UUID(str(json.loads(bytes(publication.evidence))["run"]))
    except (ValueError, KeyError, TypeError):
        yield "evidence-unreadable", "the evidence cannot be read."
        return
    run = Run.objects.filter(pk=run_id).first()
    if run is None or run.finished_at is None:
        yield "evidence-missing", "the run that it names is not there."
        return
    passed = {run.outcome, runs.result(run).outcome} == {"passed"}
    if not passed or (run.sheet_id, run.rules_hash, run.bot_hash) != (
        publication.sheet_id,
        publication.rules_hash,
        publication.bot_hash,
    ):
        yield (
            "evidence-does-not-count",
            "its run did not pass on these rules of this sheet with this bot.",
        )
    if evidence.recomputed(run) != bytes(publication.evidence):
        yield "evidence-forged", "the summary is not what the run's rows say."
    elif not _verdicts_bear_out(run):
        yield "evidence-forged", "attempts of its run are not what their verdicts say."


def _verdicts_bear_out(run: Run) -> bool:
    """Whether each attempt that was graded ended as its verdicts have it."""
    return all(
        attempt.outcome == scoring.attempt_outcome(list(attempt.verdicts.all()))
        for attempt in run.attempts.filter(outcome__in=["pass", "fail"]).prefetch_related(
            "verdicts"
        )
    )


def _gaps(sheet: Sheet, numbers: list[int]) -> Iterator[Fault]:
    announced = Outbox.objects.filter(
        sheet=sheet,
        topic__in=[PublicationEvent.Kind.PUBLISHED, PublicationEvent.Kind.ROLLED_BACK],
    ).values_list("payload", flat=True)
    known = {*numbers, *(payload["publication"] for payload in announced)}
    missing = sorted(set(range(1, max(known, default=0) + 1)) - set(numbers))
    if missing:
        listed = ", ".join(map(str, missing))
        yield Fault("number-missing", f"{sheet.slug}: publications {listed} are not there.")


def _events(sheet: Sheet, numbers: list[int], events: list[PublicationEvent]) -> Iterator[Fault]:
    """Each publication went live by one event, and each seal is over all before it."""
    let_out = [event.to_publication.number for event in events if event.to_publication]
    for number in sorted(set(numbers) - set(let_out)):
        yield Fault("event-missing", f"{sheet.slug}: no event says how {number} went live.")
    link, is_sealed = "", False
    for event in events:
        made = sealing.seal(link, event)
        if (event.seal and event.seal != made) or (is_sealed and not event.seal):
            about = f"publication {event.to_publication.number}" if event.to_publication else "it"
            yield Fault(
                "seal-broken",
                f"{sheet.slug}: the event of {event.at:%Y-%m-%d %H:%M} UTC ({event.kind}), {about} "
                "or what came before is not as it was sealed.",
            )
        link, is_sealed = event.seal or made, is_sealed or bool(event.seal)


def _live(sheet: Sheet, events: list[PublicationEvent]) -> Iterator[Fault]:
    newest = events[-1] if events else None
    if sheet.state.live_publication_id != (newest.to_publication_id if newest else None):
        yield Fault(
            "live-disagrees", f"{sheet.slug}: what is live is not what the newest event says."
        )
