"""The sheet as the bot sees it: the exact prompt with its size, and a question to try."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from factsheets import access, canonical, history, sizing
from factsheets.admin.pages import page, sheet_for
from factsheets.bot import answering, prompt
from factsheets.bot.providers.base import Message, ProviderError
from factsheets.canonical import Candidate
from factsheets.models import Sheet


class QuestionForm(forms.Form):
    """What a visitor would ask. It is kept nowhere."""

    question = forms.CharField(
        label="Question",
        max_length=1_000,
        error_messages={"required": "Write what a visitor would ask."},
    )


@require_http_methods(["GET", "HEAD", "POST"])
def as_bot(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The prompt of the draft or of what is live; posted, a question is put to the sheet's bot."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    asked = request.POST if request.method == "POST" else request.GET
    is_live = asked.get("of") == "live" and sheet.state.live_publication is not None
    candidate, blocks = _live(sheet) if is_live else _draft(sheet)
    form = QuestionForm(request.POST if request.method == "POST" else None)
    answer, trouble = None, ""
    if request.method == "POST":
        # A question to a model costs what a probe costs.
        access.require(request.user, "evals.start_run", sheet)
        if form.is_valid():
            try:
                answer = _ask(candidate, form.cleaned_data["question"])
            except ProviderError as error:
                trouble = error.sentence
    sizes = [sizing.estimated_tokens(block) for block in blocks]
    return page(
        request,
        "factsheets/as_bot.html",
        title=f"As the bot sees it: {sheet.title}",
        sheet=sheet,
        is_live=is_live,
        live=sheet.state.live_publication,
        blocks=list(zip(("Rules", "Sheet"), blocks, sizes, strict=False)),
        total=sum(sizes),
        window=sizing.usable_window(candidate.snapshot.bot),
        bot=candidate.snapshot.bot,
        form=form,
        answer=answer,
        trouble=trouble,
    )


PAGES: Mapping[str, Callable[..., HttpResponse]] = {"as_bot": as_bot}


def _draft(sheet: Sheet) -> tuple[Candidate, list[str]]:
    candidate = history.candidate_now(sheet)
    built = prompt.build(
        candidate.rules_text, candidate.content, delivery=candidate.snapshot.delivery
    )
    return candidate, [str(block["text"]) for block in prompt.as_system(built)]


def _live(sheet: Sheet) -> tuple[Candidate, list[str]]:
    """The prompt as it is stored, whatever would be built today."""
    live = sheet.state.live_publication
    assert live is not None  # noqa: S101  (asked by the caller)
    live.sheet = sheet
    system = json.loads(bytes(live.prompt))["system"]
    return history.candidate_of(live), [block["text"] for block in system]


def _ask(candidate: Candidate, question: str) -> answering.Answer:
    return answering.answer(
        sheet=candidate.content,
        rules_text=candidate.rules_text,
        bot=candidate.snapshot.bot,
        messages=[Message("user", canonical.normalise_line(question))],
        delivery=candidate.snapshot.delivery,
        deadline_seconds=settings.MODEL_CALL_SECONDS,
    )
