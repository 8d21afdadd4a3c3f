"""Answer and grade one attempt. A second delivery of the same task finds it claimed and does nothing.

The reply is stored before it is graded. Every write after the claim repeats the
claim's token, so a slow first worker cannot overwrite the second.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from evals import graders, runs, scoring
from evals.models import Attempt, Run, Spend, Turn, Verdict
from factsheets import canonical
from factsheets.bot import answering
from factsheets.bot.providers.base import TRUNCATED, Message, ProviderError
from factsheets.snapshot import BotSheet, BotSnapshot

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]

#: Added to the longest a call may take, before a claim counts as lost.
LEASE_MARGIN = timedelta(seconds=10)

#: Seconds before the first further try; doubled with each.
BACK_OFF = 5.0
MAX_BACK_OFF = 300.0


#: What no database text can hold: NUL, and half of a character.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class LostClaim(Exception):
    """Another worker has the attempt by now; what this one still holds is dropped."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a run froze, read once a process: nothing of it ever changes."""

    sheet: BotSheet
    rules_text: str
    bot: BotSnapshot
    delivery: str
    probes: Mapping[tuple[str, str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Claim:
    """One worker's hold on an attempt."""

    attempt: Attempt
    token: UUID


def perform(attempt_id: UUID, *, clock: Clock) -> UUID | None:
    """Claim, answer, grade. Returns the run to advance, or None when there was nothing to do."""
    claim = _claim(attempt_id, now=clock())
    if claim is None:
        return None
    frozen = _frozen(claim.attempt.run_id)
    try:
        turns = (
            list(claim.attempt.turns.order_by("index"))
            if claim.attempt.replied_at is not None
            else _answer(claim, frozen, clock)
        )
        if turns:
            _grade(claim, frozen, turns, clock)
    except LostClaim:
        log.info("attempt %s was taken over by another worker", attempt_id)
    return claim.attempt.run_id


def _claim(attempt_id: UUID, *, now: datetime) -> Claim | None:
    """Take an attempt that waits, or whose worker was lost. One UPDATE decides who has it."""
    token = uuid.uuid4()
    taken = (
        Attempt.objects.filter(pk=attempt_id, tries__lt=runs.MAX_TRIES)
        .filter(
            Q(state=Attempt.State.QUEUED, not_before__lte=now)
            | Q(state__in=[Attempt.State.RUNNING, Attempt.State.REPLIED], lease_until__lt=now)
        )
        .filter(
            run__in=Run.objects.filter(
                state=Run.State.RUNNING, cancel_requested=False, stop_reason=""
            )
        )
        .update(
            state=Attempt.State.RUNNING,
            claim_token=token,
            lease_until=now + _lease(),
            tries=F("tries") + 1,
        )
    )
    return Claim(Attempt.objects.get(pk=attempt_id), token) if taken else None


def _lease() -> timedelta:
    return timedelta(seconds=settings.MODEL_CALL_SECONDS) + LEASE_MARGIN


@lru_cache(maxsize=8)
def _frozen(run_id: UUID) -> Frozen:
    run = Run.objects.get(pk=run_id)
    return Frozen(
        sheet=canonical.read_content(bytes(run.content)),
        rules_text=run.rules_text,
        bot=BotSnapshot(**run.plan["bot"]),
        delivery=run.plan["delivery"],
        probes={
            (suite["slug"], probe["key"]): probe
            for suite in run.plan["suites"]
            for probe in suite["probes"]
        },
    )


def _answer(claim: Claim, frozen: Frozen, clock: Clock) -> list[Turn]:
    """Hold the whole conversation, then store it in one write. Empty when a turn broke."""
    probe = frozen.probes[claim.attempt.suite, claim.attempt.probe]
    messages: list[Message] = []
    turns: list[Turn] = []
    for index, question in enumerate(probe["turns"]):
        messages.append(Message("user", question))
        spend = _before_call(claim, frozen.bot, index, clock())
        began = time.monotonic()
        try:
            answer = answering.answer(
                sheet=frozen.sheet,
                rules_text=frozen.rules_text,
                bot=frozen.bot,
                messages=messages,
                delivery=frozen.delivery,
                deadline_seconds=settings.MODEL_CALL_SECONDS,
            )
        except ProviderError as error:
            _after_call(spend, clock(), error_type=error.kind)
            _broke(claim, error, clock())
            return []
        reply = answer.reply
        _after_call(spend, clock(), usage=reply.usage)
        turns.append(
            Turn(
                attempt=claim.attempt,
                index=index,
                sent=question,
                received=_storable(answer.text),
                refused=answer.refused,
                sections=list(answer.sections),
                stop_reason=reply.stop_reason,
                model=reply.model,
                usage=dict(reply.usage),
                latency_ms=round((time.monotonic() - began) * 1000),
                request_id=reply.request_id,
            )
        )
        if reply.is_truncated or not answer.text.strip():
            # Silence cannot be answered; the graders judge what there is.
            break
        messages.append(Message("assistant", _storable(answer.text)))
        if len(turns) < len(probe["turns"]):
            if _is_called_off(claim):
                _write(claim, state=Attempt.State.CANCELLED)
                return []
            _write(claim, lease_until=clock() + _lease())
    now = clock()
    with transaction.atomic():
        _write(claim, state=Attempt.State.REPLIED, replied_at=now, lease_until=now + _lease())
        Turn.objects.bulk_create(turns)
    return turns


def _grade(claim: Claim, frozen: Frozen, turns: list[Turn], clock: Clock) -> None:
    probe = frozen.probes[claim.attempt.suite, claim.attempt.probe]
    if turns[-1].stop_reason in TRUNCATED:
        _write(
            claim,
            state=Attempt.State.DONE,
            outcome=Attempt.Outcome.TRUNCATED,
            error_type="truncated",
            error="The reply was cut off; allow the bot more tokens.",
            finished_at=clock(),
        )
        return
    checks = graders.parse(probe["checks"])
    verdicts = graders.grade(
        checks,
        graders.Transcript(
            replies=tuple(graders.GradedReply(t.received, t.refused) for t in turns),
            rules_text=frozen.rules_text,
        ),
    )
    with transaction.atomic():
        _write(
            claim,
            state=Attempt.State.DONE,
            outcome=scoring.attempt_outcome(verdicts),
            finished_at=clock(),
        )
        Verdict.objects.bulk_create(
            Verdict(
                attempt=claim.attempt,
                position=position,
                grader=check.name,
                grader_version=check.version,
                outcome=verdict.outcome,
                code=verdict.code,
                reason=verdict.reason,
                turn_index=verdict.span.turn if verdict.span else None,
                span_start=verdict.span.start if verdict.span else None,
                span_end=verdict.span.end if verdict.span else None,
            )
            for position, (check, verdict) in enumerate(zip(checks, verdicts, strict=True))
        )


def _broke(claim: Claim, error: ProviderError, now: datetime) -> None:
    """Try again later, or give the attempt up; trouble with the account stops the whole run."""
    log.warning("attempt %s: %s", claim.attempt.pk, error.kind)
    if error.trouble == "retry" and claim.attempt.tries < runs.MAX_TRIES:
        wait = min(BACK_OFF * 2 ** (claim.attempt.tries - 1), MAX_BACK_OFF)
        wait = max(wait, min(error.retry_after or 0, MAX_BACK_OFF))
        _write(
            claim,
            state=Attempt.State.QUEUED,
            not_before=now + timedelta(seconds=wait),
            sent_at=None,
            error_type=error.kind,
            error=_storable(error.sentence),
        )
        return
    _write(
        claim,
        state=Attempt.State.DONE,
        outcome=Attempt.Outcome.ERROR,
        error_type=error.kind,
        error=_storable(error.sentence),
        finished_at=now,
    )
    if error.trouble == "account":
        Run.objects.filter(pk=claim.attempt.run_id, state=Run.State.RUNNING).update(
            stop_reason=_storable(error.sentence)
        )


def _storable(text: str) -> str:
    """A service's text as it came, but for signs that cannot be stored: they are shown as �."""
    return _UNSTORABLE.sub("\ufffd", text)


def _is_called_off(claim: Claim) -> bool:
    """The run was cancelled or stopped: what is left of a conversation is not held."""
    return not Run.objects.filter(
        pk=claim.attempt.run_id, cancel_requested=False, stop_reason=""
    ).exists()


def _write(claim: Claim, **values: Any) -> None:
    """An update that only the holder of the claim can make."""
    if not Attempt.objects.filter(pk=claim.attempt.pk, claim_token=claim.token).update(**values):
        raise LostClaim


def _before_call(claim: Claim, bot: BotSnapshot, turn_index: int, now: datetime) -> Spend | None:
    """Booked before the call, so that a call whose worker dies is seen. Quoting costs nothing."""
    if bot.provider == "offline":
        return None
    return Spend.objects.create(
        run_id=claim.attempt.run_id,
        attempt=claim.attempt,
        try_number=claim.attempt.tries,
        turn_index=turn_index,
        provider=bot.provider,
        model=bot.model,
        started_at=now,
    )


def _after_call(
    spend: Spend | None,
    now: datetime,
    *,
    usage: Mapping[str, object] | None = None,
    error_type: str = "",
) -> None:
    if spend is not None:
        Spend.objects.filter(pk=spend.pk).update(
            usage=None if usage is None else dict(usage), error_type=error_type, finished_at=now
        )
