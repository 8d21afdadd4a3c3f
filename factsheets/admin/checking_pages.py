"""Record a check of a section: an act of its own, apart from saving its text."""

from __future__ import annotations

from datetime import date
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_safe

from factsheets import access, checking, staleness, standings
from factsheets.admin.base import person
from factsheets.admin.pages import number, page
from factsheets.errors import Refused
from factsheets.models import Check, CheckItem, Citation, Section

NOT_LOOKED_AT = "not-looked-at"


class CheckForm(forms.Form):
    """What a check came to. Nothing is chosen beforehand; the day is offered, not assumed."""

    checked_on = forms.DateField(
        label="Checked on",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={"required": "Say on which day you checked."},
    )
    method = forms.ChoiceField(
        label="How",
        widget=forms.RadioSelect,
        choices=[c for c in Check.Method.choices if c[0] != Check.Method.IMPORTED],
        error_messages={"required": "Say how you checked."},
    )
    outcome = forms.ChoiceField(
        label="What it came to",
        widget=forms.RadioSelect,
        choices=Check.Outcome.choices,
        error_messages={"required": "Say what the check came to."},
    )
    note = forms.CharField(
        label="Note",
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="For editors. It never reaches the model.",
    )

    def __init__(self, citations: list[Citation], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.citations = citations
        for citation in citations:
            self.fields[f"citation_{citation.pk}"] = forms.ChoiceField(
                label=f"What {citation.source.title} says",
                widget=forms.RadioSelect,
                choices=[
                    *CheckItem.Outcome.choices,
                    (NOT_LOOKED_AT, "not looked at this time"),
                ],
                error_messages={"required": "Say what you found, or that you did not look."},
            )

    def found(self) -> dict[int, str]:
        """The outcome for each citation that was looked at."""
        outcomes = {c.pk: self.cleaned_data[f"citation_{c.pk}"] for c in self.citations}
        return {pk: outcome for pk, outcome in outcomes.items() if outcome != NOT_LOOKED_AT}

    def rows(self) -> list[tuple[Citation, Any]]:
        """Each citation with its field, for the page."""
        return [(c, self[f"citation_{c.pk}"]) for c in self.citations]


@require_http_methods(["GET", "HEAD", "POST"])
def record(request: HttpRequest, section_id: int) -> HttpResponse:
    """The section beside its sources, and what the person found."""
    section = _section(request, section_id, "factsheets.add_check")
    today = timezone.localdate()
    citations = checking.present_citations(section)
    replaced = _replaced(request, section)
    sent = request.POST if request.method == "POST" else None
    form = CheckForm(citations, sent, initial={"checked_on": today})
    if request.method == "POST" and form.is_valid():
        try:
            checking.record(
                section=section,
                seen=_seen(request),
                checked_on=form.cleaned_data["checked_on"],
                outcome=form.cleaned_data["outcome"],
                method=form.cleaned_data["method"],
                items=form.found(),
                by=person(request),
                now=timezone.now(),
                note=form.cleaned_data["note"],
                supersedes=replaced,
            )
        except Refused as refused:
            form.add_error(None, refused.sentence)
        else:
            messages.success(request, f"Recorded. {_next(section, today)}")
            return redirect(_back(request, section))
    known = standings.facts_of(section)
    return page(
        request,
        "factsheets/record_check.html",
        title=f"Record a check: {section.heading}",
        section=section,
        form=form,
        seen=checking.seen_now(section),
        standing=standings.drafted(section, known, today=today),
        due_on=staleness.next_due_on(known, checked_on=today),
        checks=section.checks.select_related("superseded_by").order_by(
            "-checked_on", "-recorded_at", "-id"
        )[:20],
        replaced=replaced,
        back=_back(request, section),
        zone=timezone.get_default_timezone_name(),
    )


@require_safe
def next_due(request: HttpRequest, section_id: int) -> HttpResponse:
    """When the next check would be due after one on a day: a fragment."""
    section = _section(request, section_id, "factsheets.view_section")
    try:
        day = date.fromisoformat(request.GET.get("checked_on", ""))
        due_on = staleness.next_due_on(standings.facts_of(section), checked_on=day)
    except (ValueError, OverflowError):
        due_on = None
    return render(request, "factsheets/next_due.html", {"due_on": due_on})


def _section(request: HttpRequest, section_id: int, permission: str) -> Section:
    section = get_object_or_404(Section.objects.select_related("sheet"), pk=section_id)
    access.require(request.user, permission, section)
    return section


def _replaced(request: HttpRequest, section: Section) -> Check | None:
    """The check that this one sets right, if the person came from one."""
    wanted = number(request.POST.get("supersedes", request.GET.get("supersedes", "")))
    if wanted is None:
        return None
    return get_object_or_404(section.checks, pk=wanted)


def _seen(request: HttpRequest) -> checking.Seen:
    """What the page showed, as it sends it back."""
    uses = {
        int(name.removeprefix("seen_")): str(value)
        for name, value in request.POST.items()
        if name.startswith("seen_") and name.removeprefix("seen_").isdecimal()
    }
    return checking.Seen(str(request.POST.get("text_hash", "")), uses)


def _next(section: Section, today: date) -> str:
    standing = standings.of_section(section, today=today)
    if standing.state in {"fresh", "due-soon", "overdue"} and standing.due_on:
        return f"The next check is due by {staleness.words(standing.due_on)}."
    return " ".join(reason.sentence for reason in standing.reasons)


def _back(request: HttpRequest, section: Section) -> str:
    """Where the person came from, if that is a page of ours; else the section."""
    wanted = request.POST.get("next", request.GET.get("next", ""))
    if wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None):
        return wanted
    return reverse("admin:factsheets_section_change", args=[section.pk])
