"""How large a sheet is, what it would be split, and the switch between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from factsheets import access, canonical, counting, editing, history, sizes
from factsheets.admin.base import person
from factsheets.admin.pages import page, sheet_for
from factsheets.bot import answering, prompt
from factsheets.bot.providers.base import Message
from factsheets.models import Sheet
from factsheets.sizes import Look

#: Units along the bar that stands for the whole context window.
BAR = 1000.0
#: So many looks of the past are listed.
REPORTS = 20


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the window: its tokens, and where it lies on the bar."""

    name: str
    kind: str
    tokens: int
    start: float
    width: float
    share: float


@require_http_methods(["GET", "HEAD", "POST"])
def size(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The window, both ratios, the cost and the advice; posted, it is counted anew and kept."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    if request.method == "POST":
        access.require(request.user, "factsheets.add_sizereport", sheet)
        now = timezone.now()
        asked = counting.can_ask(history.bot_snapshot(sheet.bot))
        if asked and not sizes.have_counted(sheet, now=now):
            messages.warning(
                request, "The model service did not count; the offline count is kept instead."
            )
        sizes.record(sheet, now=now, by=person(request))
        messages.success(request, "Counted, and kept with today's date.")
        return redirect("admin:sheet_size", sheet.pk)
    seen = sizes.look(sheet, today=timezone.localdate())
    return page(
        request,
        "factsheets/size.html",
        title=f"Size: {sheet.title}",
        sheet=sheet,
        seen=seen,
        parts=_parts(seen),
        touched=_touched(seen),
        prices=_prices(sheet, seen),
        can_ask=counting.can_ask(seen.candidate.snapshot.bot),
        reports=sheet.size_reports.select_related("by").order_by("-at", "-id")[:REPORTS],
    )


class TryForm(forms.Form):
    """A question to see the whole prompt of. It is kept nowhere."""

    question = forms.CharField(label="A question", max_length=1_000, required=False)


@require_safe
def split(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """What the sheet would be in split delivery, before anybody decides."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    seen = sizes.look(sheet, today=timezone.localdate())
    form = TryForm(request.GET)
    question = canonical.normalise_line(form.cleaned_data["question"]) if form.is_valid() else ""
    if not question and seen.preview.payloads:
        question = seen.preview.payloads[0].question
    headings = {section.key: section.heading for section in seen.candidate.content.sections}
    return page(
        request,
        "factsheets/split.html",
        title=f"Split delivery: {sheet.title}",
        sheet=sheet,
        seen=seen,
        preview=seen.preview,
        payloads=[
            (payload, [headings[key] for key in payload.sections])
            for payload in seen.preview.payloads
        ],
        dormant=[headings[key] for key in seen.preview.dormant],
        remarks=[(each, headings[each.section]) for each in seen.preview.remarks],
        question=question,
        shown=_whole_prompt(seen, question),
        is_split=sheet.delivery == Sheet.Delivery.SPLIT,
    )


@require_POST
def deliver(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Choose the delivery from the next publication on. What is live stays as it is."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    access.require(request.user, "factsheets.assign_bot", sheet)
    wanted = request.POST.get("delivery", "")
    if wanted not in Sheet.Delivery.values:
        messages.error(request, "Choose inline or split.")
        return redirect("admin:sheet_split", sheet.pk)
    reason = canonical.normalise_line(request.POST.get("why", ""))[:500]
    editing.change(
        sheet,
        by=person(request),
        reason=reason or f"Delivered {wanted}.",
        now=timezone.now(),
        delivery=wanted,
    )
    messages.success(
        request,
        f"From the next publication on it is delivered {wanted}. Run the probes first: the bot "
        "reads another prompt then.",
    )
    return redirect("admin:sheet_gate", sheet.pk)


PAGES: Mapping[str, Callable[..., HttpResponse]] = {
    "size": size,
    "split": split,
    "deliver": deliver,
}


def _parts(seen: Look) -> Sequence[Part]:
    """The window from its start to its end: rules, sheet, what is free, then the reserves."""
    bot, facts = seen.candidate.snapshot.bot, seen.facts
    free = facts.window - facts.rules.tokens - facts.sheet.tokens
    sizes_of = [
        ("Rules", "rules", facts.rules.tokens),
        ("Sheet", "sheet", facts.sheet.tokens),
        ("Free", "free", max(0, free)),
        ("Kept for the conversation", "reserve", bot.reserve_history),
        ("Kept for the question", "reserve", bot.reserve_question),
        ("Kept for what is retrieved", "reserve", bot.reserve_retrieval),
        ("Kept for the answer", "reserve", bot.reserve_output),
    ]
    whole = max(1, bot.context_window, sum(tokens for _, _, tokens in sizes_of))
    parts, start = [], 0.0
    for name, kind, tokens in sizes_of:
        width = tokens * BAR / whole
        parts.append(Part(name, kind, tokens, start, width, tokens / whole))
        start += width
    return parts


def _touched(seen: Look) -> Sequence[tuple[str, int]]:
    """Every section with the number of questions that needed it."""
    return [
        (section.heading, seen.use.touched.get(section.key, 0))
        for section in seen.candidate.content.sections
    ]


def _prices(sheet: Sheet, seen: Look) -> Sequence[tuple[str, int, int, Any, Any]]:
    """Delivery, plain and cached input tokens of one answer, and both in money where a price is set."""
    costs = [("inline", seen.inline), *([("split", seen.split)] if seen.split else [])]
    price = sheet.bot.input_price

    def money(tokens: float) -> Any:
        return None if price is None else float(price) * tokens / 1_000_000 * 1_000

    return [
        (name, round(cost.plain), round(cost.cached), money(cost.plain), money(cost.cached))
        for name, cost in costs
    ]


def _whole_prompt(seen: Look, question: str) -> Sequence[tuple[str, str]]:
    """Everything that the model would read for a question in split delivery."""
    candidate = seen.candidate
    built = prompt.build(candidate.rules_text, candidate.content, delivery="split")
    if not question:
        return [("Rules", built.rules), ("Titles", built.sheet)]
    found = answering.look_up(candidate.content, [Message("user", question)])
    turn = prompt.user_turn(question, [hit.chunk for hit in answering.passed(found)])
    return [("Rules", built.rules), ("Titles", built.sheet), ("The visitor's turn", turn)]
