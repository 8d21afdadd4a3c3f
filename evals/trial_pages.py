"""Pages of trials: start one, and read inline and split side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from evals import tasks, trials
from evals.models import Question, QuestionSet, Trial, TrialAnswer
from evals.trial_scoring import DELIVERIES
from factsheets import access
from factsheets.admin.base import person
from factsheets.admin.pages import page
from factsheets.errors import Refused


@dataclass(frozen=True, slots=True)
class Pair:
    """One question with both of its answers, where they are there yet."""

    key: str
    question: str
    is_in_scope: bool
    inline: TrialAnswer | None
    split: TrialAnswer | None

    @property
    def change(self) -> str:
        """What the split did to it: lost, gained, or nothing."""
        if self.inline is None or self.split is None:
            return ""
        match self.inline.right, self.split.right:
            case True, False:
                return "lost"
            case False, True:
                return "gained"
        return ""


#: Figure, its name for people, and whether it is a share.
FIGURES = (
    ("right", "right answers to what the sheet answers", True),
    ("turned_away", "of those, turned away", True),
    ("refused_outside", "turned away of what it does not answer", True),
    ("grounded", "replies with support in the sheet for every claim", True),
    ("payload", "tokens sent for a question", False),
    ("cost", "the same as billed, with the cache", False),
    ("unclear", "unclear whether answered", False),
    ("errors", "without a usable reply", False),
)


@admin.site.admin_view
@require_POST
def start_trial(request: HttpRequest, set_id: int) -> HttpResponse:
    """Put a question set to the sheet's bot inline and split; it asks each question twice."""
    found = get_object_or_404(QuestionSet.objects.present().select_related("sheet"), pk=set_id)
    access.require(request.user, "evals.start_run", found)
    try:
        trial = trials.start(found, by=person(request), now=timezone.now())
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("runs:question_set", found.pk)
    if not tasks.dispatch_trial(trial.pk):
        messages.warning(request, "The broker is out of reach; the trial begins when it is back.")
    return redirect("runs:trial", trial.pk)


@admin.site.admin_view
@require_safe
def trial(request: HttpRequest, trial_id: int) -> HttpResponse:
    """One trial: the sentence, the figures of both, and every question with both answers."""
    found = get_object_or_404(
        Trial.objects.select_related("question_set", "sheet", "started_by"), pk=trial_id
    )
    access.require(request.user, "evals.view_trial", found)
    pairs = _pairs(found)
    return page(
        request,
        "evals/trial.html",
        title=f"Inline and split: {found.question_set.title}",
        trial=found,
        lines=_lines(found.figures) if found.figures else [],
        pairs=pairs,
        done=sum(answer is not None for pair in pairs for answer in (pair.inline, pair.split)),
        planned=len(pairs) * len(DELIVERIES),
    )


def _lines(figures: dict[str, Any]) -> list[tuple[str, Any, Any, bool]]:
    return [
        (name, figures["inline"][key], figures["split"][key], is_share)
        for key, name, is_share in FIGURES
    ]


def _pairs(found: Trial) -> list[Pair]:
    answers = {(row.key, row.delivery): row for row in found.answers.all()}
    questions = found.question_set.questions.present().order_by("position", "id")
    pairs = [
        Pair(
            q.key,
            q.question,
            q.scope == Question.Scope.IN,
            answers.get((q.key, "inline")),
            answers.get((q.key, "split")),
        )
        for q in questions
    ]
    # What the split changed stands first.
    return sorted(pairs, key=lambda pair: ["lost", "gained", ""].index(pair.change))
