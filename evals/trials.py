"""Trials: a question set put to a sheet's bot inline and split, resumable and never paid twice.

Every answer is a row, written once. Whoever works on a trial holds a lease and
repeats its token; a worker that dies leaves its rows, and beat has the trial
taken up where it stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet

from evals import question_sets, trial_scoring
from evals.models import Question, QuestionSet, Trial, TrialAnswer
from evals.trial_scoring import DELIVERIES, Answered, Delivery
from factsheets import canonical, history, sizing, tagging
from factsheets.bot import answering, prompt
from factsheets.bot.answering import Answer
from factsheets.bot.providers.base import Message, ProviderError
from factsheets.errors import Refused
from factsheets.models.locking import hold_still
from factsheets.snapshot import BotSheet, BotSnapshot

log = logging.getLogger(__name__)

type Clock = Callable[[], datetime]

#: A worker that has said nothing for so long is taken for dead. Longer than any one call.
LEASE = timedelta(minutes=5)
#: After so many calls in a row that broke, a trial is stopped.
MOST_FAILURES = 5


class TrialOpen(Refused):
    """Twice pressed would be twice paid."""

    code = "trial-open"


def start(question_set: QuestionSet, *, by: User, now: datetime) -> Trial:
    """Freeze the set and the draft, and open a trial. Nothing is asked yet.

    Raises NoQuestions, SetAltered or TrialOpen.
    """
    with transaction.atomic():
        hold_still()
        question_set = question_sets.freeze(question_set, by=by, now=now)
        question_sets.frozen_questions(question_set)
        if question_set.trials.filter(state=Trial.State.OPEN).exists():
            raise TrialOpen("A trial of this question set is under way; wait for it.")
        candidate = history.candidate_now(question_set.sheet)
        return Trial.objects.create(
            question_set=question_set,
            sheet=question_set.sheet,
            frozen_hash=question_set.frozen_hash,
            content=candidate.content_bytes,
            content_hash=candidate.subject.content_hash,
            rules_text=candidate.rules_text,
            rules_hash=candidate.subject.rules_hash,
            bot=asdict(candidate.snapshot.bot),
            started_at=now,
            started_by=by,
        )


def waiting(*, now: datetime) -> list[int]:
    """Open trials, by key, that nobody works on."""
    free = Q(leased_until__isnull=True) | Q(leased_until__lt=now)
    return list(
        Trial.objects.filter(free, state=Trial.State.OPEN)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def work(trial_id: int, *, clock: Clock) -> None:
    """Answer what is missing, then close the trial. Returns at once where somebody else does."""
    token = uuid4()
    if not _claim(trial_id, token, clock()):
        return
    trial = Trial.objects.select_related("question_set", "sheet").get(pk=trial_id)
    sheet, bot = canonical.read_content(bytes(trial.content)), BotSnapshot(**trial.bot)
    try:
        questions = question_sets.frozen_questions(trial.question_set)
    except Refused as refused:
        _close(trial, Trial.State.STOPPED, token, clock(), sentence=refused.sentence)
        return
    for question, delivery in _missing(trial, questions):
        if not _held(trial, token).update(leased_until=clock() + LEASE):
            return
        try:
            answer = answering.answer(
                sheet=sheet,
                rules_text=trial.rules_text,
                bot=bot,
                messages=[Message("user", question.question)],
                delivery=delivery,
                deadline_seconds=settings.MODEL_CALL_SECONDS,
            )
        except ProviderError as error:
            if error.trouble == "fatal":
                _store(trial, token, _broken(trial, question, delivery, error, clock()))
                continue
            _put_off(trial, token, error, clock())
            return
        _store(trial, token, _row(trial, question, delivery, answer, sheet, clock()))
    _finish(trial, token, clock())


def _claim(trial_id: int, token: UUID, now: datetime) -> bool:
    free = Q(leased_until__isnull=True) | Q(leased_until__lt=now)
    rows = Trial.objects.filter(free, pk=trial_id, state=Trial.State.OPEN)
    return bool(rows.update(token=token, leased_until=now + LEASE))


def _held(trial: Trial, token: UUID) -> QuerySet[Trial]:
    """The trial, while it is open and nobody else has taken it over."""
    return Trial.objects.filter(pk=trial.pk, token=token, state=Trial.State.OPEN)


def _missing(trial: Trial, questions: list[Question]) -> Iterator[tuple[Question, Delivery]]:
    done = set(trial.answers.values_list("key", "delivery"))
    for question in questions:
        for delivery in DELIVERIES:
            if (question.key, delivery) not in done:
                yield question, delivery


def _store(trial: Trial, token: UUID, row: TrialAnswer) -> None:
    # A worker that was taken for dead may still be writing: the first answer stays.
    TrialAnswer.objects.bulk_create([row], ignore_conflicts=True)
    _held(trial, token).update(failures=0)


def _row(
    trial: Trial,
    question: Question,
    delivery: Delivery,
    answer: Answer,
    sheet: BotSheet,
    now: datetime,
) -> TrialAnswer:
    refused = trial_scoring.is_refusal(answer.text, answer.refused)
    in_scope = question.scope == Question.Scope.IN
    sent, cached = _input_tokens(trial, answer, delivery, sheet)
    return TrialAnswer(
        trial=trial,
        key=question.key,
        delivery=delivery,
        is_in_scope=in_scope,
        reply=canonical.normalise(answer.text),
        refused=refused,
        right=trial_scoring.is_right(
            answer.text, refused, is_in_scope=in_scope, facts=question.facts
        ),
        # Who turns a question away claims nothing.
        support=None if refused else tagging.supported(answer.text, sheet),
        sections=_sent_sections(answer),
        input_tokens=sent,
        cached_tokens=cached,
        usage=dict(answer.reply.usage) or None,
        at=now,
    )


def _broken(
    trial: Trial, question: Question, delivery: Delivery, error: ProviderError, now: datetime
) -> TrialAnswer:
    return TrialAnswer(
        trial=trial,
        key=question.key,
        delivery=delivery,
        is_in_scope=question.scope == Question.Scope.IN,
        refused=None,
        right=None,
        support=None,
        error=error.kind[:60],
        at=now,
    )


def _sent_sections(answer: Answer) -> list[str]:
    """In split delivery the sections that were sent; inline those the bot says it used."""
    if answer.retrieval is None:
        return list(answer.sections)
    hits = answering.passed(answer.retrieval)
    return list(dict.fromkeys(hit.chunk.section for hit in hits))


def _input_tokens(
    trial: Trial, answer: Answer, delivery: Delivery, sheet: BotSheet
) -> tuple[int, int]:
    """Tokens sent, and those of them read from the cache: as the service counted, else estimated."""
    usage = answer.reply.usage
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counted = [value if isinstance(value := usage.get(p), int) else 0 for p in parts]
    if any(counted):
        return sum(counted), counted[2]
    built = prompt.build(trial.rules_text, sheet, delivery=delivery)
    whole = f"{prompt.as_text(built)}\n\n{answer.sent}"
    return sizing.estimated_tokens(whole), 0


def _put_off(trial: Trial, token: UUID, error: ProviderError, now: datetime) -> None:
    """Leave the rest for later, or stop where no later call would fare better."""
    _held(trial, token).update(failures=F("failures") + 1)
    trial.refresh_from_db(fields=["failures"])
    if error.trouble == "account" or trial.failures >= MOST_FAILURES:
        _close(trial, Trial.State.STOPPED, token, now, sentence=error.sentence)
        return
    wait = timedelta(seconds=error.retry_after or 2**trial.failures)
    _held(trial, token).update(leased_until=now + wait)
    log.warning("trial %s: put off, %s", trial.pk, error.kind)


def _finish(trial: Trial, token: UUID, now: datetime) -> None:
    found = trial_scoring.figures([_answered(row) for row in trial.answers.all()])
    said = trial_scoring.verdict(found)
    _close(
        trial,
        Trial.State.DONE,
        token,
        now,
        sentence=said.sentence,
        figures=found,
        is_worth_it=said.is_worth_it,
    )


def _answered(row: TrialAnswer) -> Answered:
    delivery: Delivery = "split" if row.delivery == "split" else "inline"
    return Answered(
        row.key,
        delivery,
        row.is_in_scope,
        row.right,
        row.refused,
        row.support,
        row.input_tokens,
        row.cached_tokens,
        row.error,
    )


def _close(trial: Trial, state: Trial.State, token: UUID, now: datetime, **values: object) -> None:
    if _held(trial, token).update(state=state, closed_at=now, leased_until=None, **values):
        log.info("trial %s: %s", trial.pk, state)
