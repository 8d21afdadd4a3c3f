"""The use of a sheet: which sections real questions touched, and logs to tell it from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST

from factsheets import access, usage, use_logs
from factsheets.admin.base import person
from factsheets.admin.pages import number, page, sheet_for
from factsheets.errors import Refused
from factsheets.models import Section, Sheet, UseRecord

#: Answers a page, and days that are shown unless others are asked for.
PER_PAGE = 20
DAYS = 30


class LogForm(forms.Form):
    """A file of questions and replies."""

    log = forms.FileField(
        label="File",
        error_messages={
            "required": "Choose a file of questions and replies.",
            "empty": "The file has no answer; send lines with a question and a reply.",
        },
    )
    keep = forms.BooleanField(label="Keep the questions and replies", required=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as the list shows it: its tags in words, and what else it might be tagged with.

    `gone` are the keys of tags whose sections are out of use.
    """

    row: UseRecord
    tags: tuple[str, ...]
    choices: tuple[tuple[Section, bool], ...]
    gone: tuple[str, ...]


@require_http_methods(["GET", "HEAD", "POST"])
def use(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The use of a period; posted, a log is tagged and counted."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_userecord")
    form = LogForm(None)
    if request.method == "POST":
        access.require(request.user, "factsheets.add_uselog", sheet)
        form = LogForm(request.POST, request.FILES)
        if form.is_valid() and (taken := _take(request, sheet, form)):
            return taken
    since, until = _period(request)
    found = usage.of_sheet(sheet, since=since, until=until)
    page_number = number(request.GET.get("page", "")) or 1
    rows = usage.records(sheet, since=since, until=until).select_related("log", "corrected_by")
    begin = (page_number - 1) * PER_PAGE
    shown = list(rows[begin : begin + PER_PAGE + 1])
    sections = list(
        Section.objects.present()
        .filter(sheet=sheet)
        .order_by("position", "id")
        .only("key", "heading", "included")
    )
    headings = {section.key: section.heading for section in sections}
    return page(
        request,
        "factsheets/use.html",
        title=f"Use: {sheet.title}",
        sheet=sheet,
        use=found,
        share=None if found.share is None else round(found.share * 100),
        touched=sorted(
            ((headings[key], key, count) for key, count in found.touched.items()),
            key=lambda row: -row[2],
        ),
        never=[(headings[key], key) for key in found.never],
        included=len(found.touched) + len(found.never),
        answers=[_answer(row, sections) for row in shown[:PER_PAGE]],
        page_number=page_number,
        more=len(shown) > PER_PAGE,
        logs=sheet.use_logs.select_related("uploaded_by").order_by("-id")[:PER_PAGE],
        form=form,
        largest=use_logs.LARGEST // 1_000_000,
        most=f"{use_logs.MOST_LINES:,}",
        zone=timezone.get_default_timezone_name(),
    )


@require_POST
def correct(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Put right which sections an answer needed."""
    sheet = sheet_for(request, sheet_id, "factsheets.change_userecord")
    row = sheet.use.filter(pk=number(request.POST.get("record", "")) or 0).first()
    if row is None:
        messages.error(request, "There is no such answer; choose one from the list.")
    else:
        try:
            if usage.correct(
                row, request.POST.getlist("sections"), by=person(request), now=timezone.now()
            ):
                messages.success(request, f"Corrected: {row}.")
            else:
                messages.info(request, "It stands so already; nothing was changed.")
        except Refused as refused:
            messages.error(request, refused.sentence)
    return _back(request, sheet)


@require_POST
def drop_texts(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Forget the questions and replies of a log."""
    sheet = sheet_for(request, sheet_id, "factsheets.keep_texts_uselog")
    log = sheet.use_logs.filter(pk=number(request.POST.get("log", "")) or 0).first()
    if log is None:
        messages.error(request, "There is no such log; choose one from the list.")
    else:
        usage.drop_texts(log)
        messages.success(request, "Its questions and replies are gone; what was counted stays.")
    return _back(request, sheet)


PAGES: Mapping[str, Callable[..., HttpResponse]] = {
    "use": use,
    "correct_use": correct,
    "drop_texts": drop_texts,
}


def _take(request: HttpRequest, sheet: Sheet, form: LogForm) -> HttpResponse | None:
    file: Any = form.cleaned_data["log"]
    keeps = form.cleaned_data["keep"]
    if keeps:
        access.require(request.user, "factsheets.keep_texts_uselog", sheet)
    now = timezone.now()
    try:
        # One byte more than may be read: what is larger is refused, and not read whole.
        data = file.read(use_logs.LARGEST + 1)
        lines = use_logs.read(data, zone=timezone.get_default_timezone(), now=now)
        log = usage.take_log(sheet, lines, by=person(request), keeps_texts=keeps, now=now)
    except Refused as refused:
        form.add_error("log", refused.sentence)
        return None
    skipped = f" {log.skipped} were known already and are skipped." if log.skipped else ""
    kept = "are kept" if keeps else "were read for that and dropped"
    messages.success(
        request, f"{log.rows} answers tagged and counted.{skipped} Their texts {kept}."
    )
    return redirect("admin:sheet_use", sheet.pk)


def _period(request: HttpRequest) -> tuple[date, date]:
    """The days asked for; the last thirty for none and for nonsense, which is said."""
    today = timezone.localdate()
    usual = today - timedelta(days=DAYS - 1), today
    try:
        since, until = (
            date.fromisoformat(text) if (text := request.GET.get(name, "")) else day
            for name, day in zip(("since", "until"), usual, strict=True)
        )
        if not date(2000, 1, 1) <= since <= until <= date(2999, 12, 31):
            raise ValueError(since, until)
    except ValueError:
        messages.error(
            request, "Choose a first and a last day such as 2027-06-01; these are the last 30 days."
        )
        return usual
    return since, until


def _answer(row: UseRecord, sections: list[Section]) -> Answer:
    gone = tuple(sorted(set(row.sections) - {section.key for section in sections}))
    headings = {section.key: section.heading for section in sections}
    tags = (
        f"{headings.get(key, f'{key} (out of use)')}{_share(row.support.get(key))}"
        for key in (*(key for key in headings if key in row.sections), *gone)
    )
    choices = tuple((section, section.key in row.sections) for section in sections)
    return Answer(row, tuple(tags), choices, gone)


def _share(share: float | None) -> str:
    """How much of a sentence stands there, where a machine found that."""
    return "" if share is None else f" ({share:.0%} of a sentence)"


def _back(request: HttpRequest, sheet: Sheet) -> HttpResponseRedirect:
    """The page as it was looked at."""
    asked = {
        name: value for name in ("since", "until", "page") if (value := request.POST.get(name, ""))
    }
    address = reverse("admin:sheet_use", args=[sheet.pk])
    return HttpResponseRedirect(f"{address}?{urlencode(asked)}" if asked else address)
