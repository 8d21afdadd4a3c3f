"""Publish, roll back, withdraw: what is checked is what is stored, in one transaction."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from factsheets import canonical, changes, evidence, gate, history, sealing, sizes, standings
from factsheets.errors import Refused
from factsheets.models import GatePolicy, Outbox, Publication, PublicationEvent, Sheet, SheetState
from factsheets.models.locking import hold_still
from factsheets.models.publications import released

log = logging.getLogger(__name__)


class PublishRefused(Refused):
    """The gate is closed; `report` says why, finding by finding."""

    code = "publish-refused"

    def __init__(self, report: gate.GateReport) -> None:
        self.report = report
        super().__init__(" ".join(finding.sentence for finding in report.blocks))


class ChangedMeanwhile(Refused):
    """What the person looked at is not what stands there now."""

    code = "changed-meanwhile"


class NothingLive(Refused):
    """There is nothing to withdraw."""

    code = "nothing-live"


class ReasonMissing(Refused):
    """Every act on what bots get says why."""

    code = "reason-missing"


class NoSuchPublication(Refused):
    """A number that the sheet has not published."""

    code = "no-such-publication"


@dataclass(frozen=True, slots=True)
class Look:
    """What a person sees before publishing: the candidate, the gate, and what is live."""

    candidate: canonical.Candidate
    report: gate.GateReport
    evidence: gate.Evidence
    live_number: int | None


def look(sheet: Sheet, *, now: datetime, by: User | None = None) -> Look:
    """The gate of the draft as it stands, for whoever would publish it (`by`)."""
    return _look(sheet, history.candidate_now(sheet), now=now, by=by)


def look_back(publication: Publication, *, now: datetime, by: User | None = None) -> Look:
    """The gate of a rollback to a publication."""
    candidate = history.candidate_of(publication)
    return _look(publication.sheet, candidate, now=now, by=by, back_to=publication)


def last_publication(sheet: Sheet) -> Publication | None:
    """The newest publication of a sheet, live or not, without its bytes."""
    rows = sheet.publications.defer(*Publication.BYTES)
    return rows.order_by("-number").first()


def policy_of(sheet: Sheet) -> gate.Policy:
    """How strict the sheet's gate is."""
    row = GatePolicy.objects.present().filter(sheet=sheet).first()
    if row is None:
        return gate.Policy()
    return gate.Policy(
        row.evidence_max_age_days,
        frozenset(row.blocking_warnings),
        row.renew_days_before,
        row.four_eyes,
    )


def publish(
    *,
    sheet_id: int,
    seen: canonical.Subject,
    seen_live_number: int | None,
    by: User,
    reason: str,
    now: datetime,
) -> Publication:
    """Release the draft that was seen. Raises ChangedMeanwhile or PublishRefused."""
    with transaction.atomic():
        sheet = locked(sheet_id)
        view = look(sheet, now=now, by=by)
        same_as_seen(view, seen, seen_live_number)
        return _release(
            sheet,
            view,
            record=canonical.record_bytes(view.candidate.snapshot),
            kind=PublicationEvent.Kind.PUBLISHED,
            by=by,
            reason=reason,
            now=now,
            changes_up_to=changes.newest(),
        )


def rollback(
    *,
    sheet_id: int,
    to_number: int,
    seen_live_number: int | None,
    by: User,
    reason: str,
    now: datetime,
) -> Publication:
    """Release the text and rules of publication N again, as a new number. The draft stays."""
    with transaction.atomic():
        sheet = locked(sheet_id)
        past = sheet.publications.filter(number=to_number).first()
        if past is None:
            raise NoSuchPublication(
                f"{sheet.slug} has no publication {to_number}; look at its list of publications."
            )
        past.sheet = sheet
        view = look_back(past, now=now, by=by)
        same_as_seen(view, view.candidate.subject, seen_live_number)
        return _release(
            sheet,
            view,
            record=bytes(past.record),
            kind=PublicationEvent.Kind.ROLLED_BACK,
            by=by,
            reason=reason,
            now=now,
            restores=to_number,
            changes_up_to=changes.base(past) or None,
        )


def withdraw(
    *, sheet_id: int, by: User, reason: str, now: datetime, seen_live_number: int | None = None
) -> PublicationEvent:
    """Take the live publication away from bots. Never gated; refused when nothing is live.

    With `seen_live_number` it is also refused when something else is live by now.
    """
    with transaction.atomic():
        sheet = locked(sheet_id)
        live = sheet.state.live_publication
        if live is None:
            raise NothingLive(f"Nothing of {sheet.slug} is live, so there is nothing to withdraw.")
        if seen_live_number is not None and live.number != seen_live_number:
            raise ChangedMeanwhile(
                f"Publication {live.number} went live while you looked at {seen_live_number}; "
                "look again."
            )
        return _move(
            sheet, kind=PublicationEvent.Kind.WITHDRAWN, to=None, by=by, reason=reason, now=now
        )


def reason_given(text: str) -> str:
    """A reason in its stored form. Raises ReasonMissing for an empty one."""
    reason = canonical.normalise(text)
    if not reason:
        raise ReasonMissing("Say why in a few words; the reason is kept with the event.")
    return reason


def locked(sheet_id: int) -> Sheet:
    """The sheet, with changes kept waiting to the end of the caller's transaction."""
    # One picture, used to the end: what is checked is what is stored, even if
    # an editor saves a section while this runs.
    hold_still()
    return Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet_id)


def _look(
    sheet: Sheet,
    candidate: canonical.Candidate,
    *,
    now: datetime,
    by: User | None,
    back_to: Publication | None = None,
) -> Look:
    found = evidence.for_subject(candidate.subject)
    live = sheet.state.live_publication
    today = timezone.localdate(now)
    policy = policy_of(sheet)
    report = gate.evaluate(
        candidate,
        found,
        policy=policy,
        live=gate.Live(
            live.number,
            live.slug,
            live.content_hash,
            live.rules_hash,
            live.bot_hash,
            live.published_at,
        )
        if live
        else None,
        standings=standings.of_snapshot(sheet, candidate.snapshot, today=today),
        today=today,
        is_rollback=back_to is not None,
        is_archived=sheet.archived_at is not None,
        own_changes=_changed_by(by, sheet, back_to) if by is not None and policy.four_eyes else (),
        advised=_advised(sheet) if back_to is None else None,
    )
    return Look(candidate, report, found, live.number if live else None)


def _advised(sheet: Sheet) -> gate.Advised | None:
    """What the newest look at the sheet's sizes advised."""
    report = sizes.newest(sheet)
    if report is None:
        return None
    advice: Any = report.advice
    return gate.Advised(advice, report.sentence, timezone.localdate(report.at))


def _changed_by(by: User, sheet: Sheet, back_to: Publication | None) -> tuple[str, ...]:
    """What a person changed of what would be published, or of what its gate asks, in words."""
    kinds = changes.KINDS if back_to is None else changes.KINDS_OF_ROLLBACK
    after = changes.base(back_to or last_publication(sheet))
    found = changes.of_sheet(sheet, after=after, kinds=kinds, by=by)
    return tuple(dict.fromkeys(f"{c.kind} {c.label}" for each in found for c in each.changes))


def same_as_seen(view: Look, seen: canonical.Subject, seen_live_number: int | None) -> None:
    """Raise ChangedMeanwhile unless what was looked at is what stands there now."""
    if view.candidate.subject != seen:
        raise ChangedMeanwhile(
            "The sheet, its rules or its bot changed while you looked; look again before you publish."
        )
    if view.live_number != seen_live_number:
        now_live = f"publication {view.live_number}" if view.live_number else "nothing"
        raise ChangedMeanwhile(
            f"Somebody else published or withdrew while you looked: {now_live} is live; look again."
        )


def _release(
    sheet: Sheet,
    view: Look,
    *,
    record: bytes,
    kind: PublicationEvent.Kind,
    by: User,
    reason: str,
    now: datetime,
    changes_up_to: int | None,
    restores: int | None = None,
) -> Publication:
    run = view.evidence.run
    if not view.report.is_open or run is None:
        raise PublishRefused(view.report)
    candidate = view.candidate
    number = (
        sheet.publications.order_by("-number").values_list("number", flat=True).first() or 0
    ) + 1
    body = canonical.body_bytes(candidate, number=number, published_at=now)
    prompt = canonical.prompt_bytes(candidate)
    publication = Publication(
        sheet=sheet,
        number=number,
        format=canonical.BODY_FORMAT,
        slug=candidate.snapshot.slug,
        body=body,
        body_hash=canonical.sha256(body),
        prompt=prompt,
        prompt_hash=canonical.sha256(prompt),
        content_hash=candidate.subject.content_hash,
        rules_hash=candidate.subject.rules_hash,
        bot_hash=candidate.subject.bot_hash,
        record=record,
        record_hash=canonical.sha256(record),
        evidence=run.summary,
        evidence_hash=canonical.sha256(run.summary),
        published_at=now,
        published_by=by,
        published_by_name=by.get_username(),
        reason=canonical.normalise(reason),
        restores=restores,
        changes_up_to_id=changes_up_to,
    )
    with released():
        publication.save()
    _move(sheet, kind=kind, to=publication, by=by, reason=reason, now=now)
    return publication


def _move(
    sheet: Sheet,
    *,
    kind: PublicationEvent.Kind,
    to: Publication | None,
    by: User,
    reason: str,
    now: datetime,
) -> PublicationEvent:
    """One event, one announcement, and the live publication moved to what the event says."""
    reason = reason_given(reason)
    event = PublicationEvent(
        sheet=sheet,
        kind=kind,
        at=now,
        by=by,
        by_name=by.get_username(),
        reason=reason,
        from_publication=sheet.state.live_publication,
        to_publication=to,
    )
    event.seal = sealing.seal(_last_seal(sheet), event)
    with released():
        event.save()
    Outbox.objects.create(
        topic=kind,
        sheet=sheet,
        payload={
            "slug": sheet.slug,
            "publication": to.number if to else None,
            "content_hash": to.content_hash if to else None,
            "at": canonical.instant(now),
        },
        created_at=now,
    )
    SheetState.objects.filter(sheet=sheet).update(live_publication=to)
    log.info("sheet %s: %s, live now: %s", sheet.slug, kind, to.number if to else "nothing")
    return event


def _last_seal(sheet: Sheet) -> str:
    events = sheet.events.order_by("-id")
    newest = events.values_list("seal", flat=True).first()
    return newest or sealing.last(
        events.reverse().select_related("from_publication", "to_publication")
    )
