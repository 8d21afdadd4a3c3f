"""Question sets: imported, copied, frozen, and measured on drafts and publications."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from evals import measuring, question_files
from evals.exchange import apply_questions
from evals.measuring import Asked
from evals.models import Question, QuestionSet, RetrievalReport
from factsheets import canonical, history
from factsheets.bot import baselines, retrieval
from factsheets.bot.baselines import GroundingRule
from factsheets.errors import Refused
from factsheets.exchange import naming
from factsheets.models import Publication, Sheet
from factsheets.models.locking import hold_still
from factsheets.models.tracking import change_set
from factsheets.snapshot import BotSheet

log = logging.getLogger(__name__)


class NoQuestions(Refused):
    """There is nothing to measure with."""

    code = "no-questions"


class SetAltered(Refused):
    """A frozen set is not what it was frozen as."""

    code = "question-set-altered"


class NameInUse(Refused):
    """Another question set has this name, or had it."""

    code = "question-set-name"


# ---- the set ----


def hash_of(questions: Iterable[Question]) -> str:
    """SHA-256 (hex) over the canonical JSON of questions, by key; notes and order do not count."""
    return canonical.sha256(
        canonical.canonical_json(
            [
                {
                    "key": q.key,
                    "question": q.question,
                    "scope": q.scope,
                    "sections": q.sections,
                    "expected": q.expected,
                    "facts": q.facts,
                    "trap": q.trap,
                    "part": q.part,
                }
                for q in sorted(questions, key=lambda q: q.key)
            ]
        )
    )


def freeze(question_set: QuestionSet, *, by: User, now: datetime) -> QuestionSet:
    """Keep the questions as they are from now on. A set that is frozen stays as it is."""
    with transaction.atomic():
        # No question may be saved between the hash and its being written down.
        hold_still()
        row = QuestionSet.objects.get(pk=question_set.pk)
        if row.frozen_at is not None:
            return row
        questions = _questions(row)
        with change_set(by=by, reason="Frozen, to be measured with.", now=now):
            row.frozen_at, row.frozen_hash = now, hash_of(questions)
            row.save()
    return row


def copy(
    question_set: QuestionSet, *, slug: str, title: str, by: User, now: datetime
) -> QuestionSet:
    """The same questions under a new name, to be changed. Raises NameInUse."""
    with change_set(by=by, reason=f"Copied from {question_set.slug}.", now=now):
        if QuestionSet.objects.filter(slug=slug).exists():
            raise NameInUse(f'"{slug}" is the name of another question set; choose another.')
        made = QuestionSet(slug=slug, title=title, sheet=question_set.sheet)
        made.save()
        for question in question_set.questions.present().order_by("position", "id"):
            question.pk, question._state.adding = None, True
            question.question_set = made
            question.save()
    return made


@dataclass(frozen=True, slots=True)
class Imported:
    """The set that a file was made into, how many questions it has, and those left out, by key."""

    question_set: QuestionSet
    questions: int
    left_out: tuple[str, ...]


def import_file(
    sheet: Sheet, data: bytes, *, name: str, slug: str, title: str, by: User, now: datetime
) -> Imported:
    """Make a question set of a sheet equal to a file (YAML, CSV or the JSON of SQuAD).

    Raises FileRefused or ImportRefused, also for a frozen set that would change.
    """
    content = history.candidate_now(sheet).content
    with naming(name):
        read = question_files.read(
            data, name=name, sheet=content, of=sheet.slug, slug=slug, title=title
        )
        with change_set(by=by, reason=f"Imported from {name}.", now=now):
            row = apply_questions(sheet, read.file, now)
    return Imported(row, len(read.file.questions), read.left_out)


# ---- measuring ----


def configuration(rule: GroundingRule) -> dict[str, Any]:
    """Everything beside text and questions that figures depend on."""
    return {
        "k1": retrieval.K1,
        "b": retrieval.B,
        "most_hits": retrieval.MOST_HITS,
        "least_share": retrieval.LEAST_SHARE,
        "rule": rule.name,
        "threshold": rule.threshold,
        "retrieval": retrieval.form_digest(),
    }


def run(
    question_set: QuestionSet,
    publication: Publication | None = None,
    *,
    rule: GroundingRule = baselines.OURS,
    by: User | None,
    now: datetime,
    trigger: RetrievalReport.Trigger = RetrievalReport.Trigger.HAND,
) -> RetrievalReport:
    """Measure the draft, or a publication, with a set, and keep what came out.

    The first run freezes the set, in the name of `by`. Raises NoQuestions, or
    SetAltered where a frozen set is not what it was.
    """
    if question_set.frozen_at is None and by is not None:
        question_set = freeze(question_set, by=by, now=now)
    questions = frozen_questions(question_set)
    content = _content(question_set.sheet, publication)
    outcomes = outcomes_of(questions, content)
    report = RetrievalReport.objects.create(
        question_set=question_set,
        frozen_hash=question_set.frozen_hash,
        sheet=question_set.sheet,
        publication=publication,
        content_hash=canonical.sha256(canonical.content_bytes(content)),
        configuration=configuration(rule),
        figures=measuring.by_part(outcomes, rule),
        misses=measuring.misses(outcomes, rule),
        ran_at=now,
        ran_by=by,
        ran_by_name=by.get_username() if by else "",
        trigger=trigger,
    )
    log.info("question set %s: report %s", question_set.pk, report.pk)
    return report


def frozen_questions(question_set: QuestionSet) -> list[Question]:
    """The questions of a frozen set. Raises NoQuestions, or SetAltered where they are others."""
    questions = _questions(question_set)
    if hash_of(questions) != question_set.frozen_hash:
        raise SetAltered(
            f"The questions of {question_set.slug} are not those that were frozen; find out who "
            "altered them in the database, and copy the set under a new name."
        )
    return questions


def outcomes_of(questions: Iterable[Question], content: BotSheet) -> list[measuring.Outcome]:
    """Every question put to a text."""
    index = retrieval.index_of(content)
    return [measuring.ask(index, asked(question)) for question in questions]


def asked(question: Question) -> Asked:
    """A question as it is measured."""
    return Asked(
        key=question.key,
        question=question.question,
        sections=tuple(question.sections),
        is_off_topic=question.trap == Question.Trap.PLAIN,
        part=question.part,
    )


def _content(sheet: Sheet, publication: Publication | None) -> BotSheet:
    if publication is not None:
        return history.candidate_of(publication).content
    with transaction.atomic():
        hold_still()
        return history.candidate_now(sheet).content


def _questions(question_set: QuestionSet) -> list[Question]:
    found = list(question_set.questions.present().order_by("position", "id"))
    if not found:
        raise NoQuestions(f"The question set {question_set.slug} has no question; write some.")
    return found


# ---- the answer key in the index ----


@dataclass(frozen=True, slots=True)
class Quoted:
    """A section that quotes a question nearly word for word."""

    section: str
    question: str


def quoted(question_set: QuestionSet, content: BotSheet) -> list[Quoted]:
    """The sections whose heading, question or text quotes a question of the set.

    Such a question measures nothing: it finds itself.
    """
    questions = list(question_set.questions.present().order_by("position", "id"))
    return [
        Quoted(section.key, question.key)
        for section in content.sections
        for question in questions
        if any(
            measuring.quotes(question.question, text)
            for text in (section.heading, section.question, section.text)
        )
    ]


# ---- what is live ----


def due() -> list[tuple[QuestionSet, Publication]]:
    """Frozen sets whose live publication has no report under the present configuration."""
    sets = (
        QuestionSet.objects.present()
        .filter(
            frozen_at__isnull=False,
            sheet__archived_at__isnull=True,
            sheet__removed_at__isnull=True,
            sheet__state__live_publication__isnull=False,
        )
        .select_related("sheet__bot", "sheet__state__live_publication")
        .order_by("id")
    )
    present = configuration(baselines.OURS)
    measured = {
        (set_id, publication_id)
        for set_id, publication_id, how in RetrievalReport.objects.filter(
            question_set__in=sets, publication=F("sheet__state__live_publication")
        ).values_list("question_set_id", "publication_id", "configuration")
        if how == present
    }
    found = ((row, row.sheet.state.live_publication) for row in sets)
    return [(row, live) for row, live in found if live and (row.pk, live.pk) not in measured]


def measure_due(*, now: datetime) -> list[RetrievalReport]:
    """Measure what was published since, or under another retriever. What cannot be is logged."""
    made = []
    for question_set, live in due():
        try:
            made.append(
                run(
                    question_set,
                    live,
                    by=None,
                    now=now,
                    trigger=RetrievalReport.Trigger.PUBLICATION,
                )
            )
        except Refused as refused:
            log.warning("question set %s is not measured: %s", question_set.pk, refused.code)
    return made
