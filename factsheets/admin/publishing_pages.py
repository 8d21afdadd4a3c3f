"""The pages of a sheet where its gate is read and it is published, withdrawn or rolled back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from factsheets import canonical, evidence, explaining, gate, moments, publishing, scheduling
from factsheets.admin.base import person
from factsheets.admin.pages import number, page, sheet_for
from factsheets.errors import Refused
from factsheets.models import Publication, Schedule, Sheet

#: Where each place that a finding names is mended.
_PLACES: Mapping[gate.Place, Callable[[Sheet], str]] = {
    "rules": lambda sheet: (
        reverse("admin:factsheets_rule_changelist")
        + f"?ruleset__sheet_links__sheet__id__exact={sheet.pk}"
    ),
    "sections": lambda sheet: (
        reverse("admin:factsheets_section_changelist") + f"?sheet__id__exact={sheet.pk}"
    ),
    "checks": lambda sheet: f"{reverse('admin:stale_report')}?sheet={sheet.slug}",
    "sheet": lambda sheet: reverse("admin:factsheets_sheet_change", args=[sheet.pk]),
    "sizes": lambda sheet: reverse("admin:sheet_size", args=[sheet.pk]),
    "bot": lambda sheet: reverse("admin:factsheets_botprofile_change", args=[sheet.bot_id]),
    # Pages of the probes' app, by the names of their addresses.
    "suites": lambda sheet: (
        reverse("admin:evals_suiterequirement_changelist") + f"?sheet__id__exact={sheet.pk}"
    ),
    "probe-list": lambda sheet: (
        reverse("admin:evals_probe_changelist")
        + f"?suite__requirements__sheet__id__exact={sheet.pk}"
    ),
    "probes": lambda sheet: "#probes",
}


class ReasonForm(forms.Form):
    """Why, in a few words."""

    reason = forms.CharField(
        label="Why",
        max_length=500,
        error_messages={"required": "Say in a few words why; the reason is kept with the event."},
    )


#: So many change sets are listed; more are counted.
CHANGES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Reliance:
    """What the live publication's evidence is worth: the last days it counts, and is left alone."""

    passed_on: date
    expires_after: date
    renews_on: date | None


@require_safe
def gate_page(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The gate, the probes and what is live, on one page."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    now = timezone.now()
    # Only of those who may publish is it asked whether they may publish this.
    may_publish = request.user.has_perm("factsheets.publish_sheet", sheet)
    view = publishing.look(sheet, now=now, by=person(request) if may_publish else None)
    explanation = explaining.explain(
        sheet, view.report, view.evidence, publishing.last_publication(sheet)
    )
    last = sheet.events.order_by("-id").first()
    mend = Mending(request, sheet)
    return page(
        request,
        "factsheets/gate_page.html",
        sheet=sheet,
        title=f"Gate and publishing: {sheet.title}",
        report=view.report,
        findings=[(each, mend.address(each.finding)) for each in explanation.findings],
        closed_since=explanation.closed_since,
        closed_by=explanation.closed_by,
        changed=explanation.changed[::-1][:CHANGES_SHOWN],
        changed_count=len(explanation.changed),
        reliance=_reliance(sheet, view),
        schedules=_schedules(sheet, now),
        zone=settings.ORG_TIME_ZONE,
        view=view,
        last_event=last,
        live=sheet.state.live_publication,
        publications=sheet.publications.defer(*Publication.BYTES).order_by("-number")[:20],
        is_offline=view.candidate.snapshot.bot.provider == "offline",
    )


@require_POST
def publish(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Publish what the page showed, or say why not."""
    sheet = sheet_for(request, sheet_id, "factsheets.publish_sheet")
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _refusal(request, sheet, str(form.errors["reason"][0]))
    try:
        publication = publishing.publish(
            sheet_id=sheet.pk,
            seen=_seen(request, sheet),
            seen_live_number=number(request.POST.get("live_number", "")),
            by=person(request),
            reason=form.cleaned_data["reason"],
            now=timezone.now(),
        )
    except Refused as refused:
        return _refusal(request, sheet, refused.sentence)
    messages.success(request, f"Publication {publication.number} is live.")
    return to_gate(sheet.pk)


@require_POST
def schedule(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Approve what the page showed for a time to come, or say why not."""
    sheet = sheet_for(request, sheet_id, "factsheets.publish_sheet")
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _refusal(request, sheet, str(form.errors["reason"][0]))
    now = timezone.now()
    try:
        waiting = scheduling.schedule(
            sheet_id=sheet.pk,
            seen=_seen(request, sheet),
            seen_live_number=number(request.POST.get("live_number", "")),
            due_at=moments.coming(
                request.POST.get("due_at", "").strip(),
                zone=ZoneInfo(settings.ORG_TIME_ZONE),
                now=now,
            ),
            zone=settings.ORG_TIME_ZONE,
            by=person(request),
            reason=form.cleaned_data["reason"],
            now=now,
        )
    except Refused as refused:
        return _refusal(request, sheet, refused.sentence)
    messages.success(request, f"Scheduled for {explaining.when(waiting.due_at)}.")
    return to_gate(sheet.pk)


@require_POST
def unschedule(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Take the waiting schedule back."""
    sheet = sheet_for(request, sheet_id, "factsheets.publish_sheet")
    wanted = number(request.POST.get("schedule", ""))
    mine = sheet.schedules.filter(pk=wanted).first() if wanted else None
    try:
        if mine is None:
            raise scheduling.NothingScheduled("Nothing of that kind is scheduled; look again.")
        scheduling.cancel(schedule_id=mine.pk, by=person(request), now=timezone.now())
    except Refused as refused:
        return _refusal(request, sheet, refused.sentence)
    messages.success(request, "The schedule is cancelled; what is live stays as it is.")
    return to_gate(sheet.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def withdraw(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Ask why, then take the live publication away from bots."""
    sheet = sheet_for(request, sheet_id, "factsheets.withdraw_sheet")
    live = sheet.state.live_publication
    if live is None:
        return _refusal(request, sheet, "Nothing is live, so there is nothing to withdraw.")
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            publishing.withdraw(
                sheet_id=sheet.pk,
                seen_live_number=number(request.POST.get("live_number", "")),
                by=person(request),
                reason=form.cleaned_data["reason"],
                now=timezone.now(),
            )
        except Refused as refused:
            return _refusal(request, sheet, refused.sentence)
        messages.success(request, "Withdrawn: bots are told to drop their copies.")
        return to_gate(sheet.pk)
    return _confirm(
        request,
        sheet,
        form,
        title=f"Withdraw {sheet.title}",
        consequence=f"Publication {live.number} will answer 410 (gone) on every public address of "
        "the sheet, and bots should stop answering from it.",
        button="Withdraw",
        live=live,
    )


@require_http_methods(["GET", "HEAD", "POST"])
def rollback(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Ask why, then publish an earlier publication's text and rules again."""
    sheet = sheet_for(request, sheet_id, "factsheets.rollback_sheet")
    wanted = number(request.POST.get("to", request.GET.get("to", "")))
    past = sheet.publications.filter(number=wanted).first() if wanted else None
    if past is None:
        return _refusal(request, sheet, "Choose a publication from the list to go back to.")
    live = sheet.state.live_publication
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            publication = publishing.rollback(
                sheet_id=sheet.pk,
                to_number=past.number,
                seen_live_number=number(request.POST.get("live_number", "")),
                by=person(request),
                reason=form.cleaned_data["reason"],
                now=timezone.now(),
            )
        except Refused as refused:
            return _refusal(request, sheet, refused.sentence)
        messages.success(
            request, f"Publication {publication.number} is live, with the text of {past.number}."
        )
        return to_gate(sheet.pk)
    past.sheet = sheet
    return _confirm(
        request,
        sheet,
        form,
        title=f"Roll back {sheet.title} to publication {past.number}",
        consequence=f"The text and rules of publication {past.number} will be published again under "
        "a new number. The draft stays as it is.",
        button=f"Publish {past.number} again",
        live=live,
        to=past.number,
        report=publishing.look_back(past, now=timezone.now(), by=person(request)).report,
    )


PAGES: Mapping[str, Callable[..., HttpResponse]] = {
    "gate": gate_page,
    "publish": publish,
    "schedule": schedule,
    "unschedule": unschedule,
    "withdraw": withdraw,
    "rollback": rollback,
}


def to_gate(sheet_id: int) -> HttpResponseRedirect:
    """Back to the sheet's gate."""
    return redirect("admin:sheet_gate", sheet_id)


def _seen(request: HttpRequest, sheet: Sheet) -> canonical.Subject:
    """What the page showed, by the hashes that it sends back."""
    return canonical.Subject(
        sheet_id=sheet.pk,
        content_hash=request.POST.get("content_hash", ""),
        rules_hash=request.POST.get("rules_hash", ""),
        bot_hash=request.POST.get("bot_hash", ""),
    )


def _reliance(sheet: Sheet, view: publishing.Look) -> Reliance | None:
    live, subject = sheet.state.live_publication, view.candidate.subject
    if live is None:
        return None
    of_live = replace(subject, content_hash=live.content_hash, rules_hash=live.rules_hash)
    same_rules = of_live.rules_hash == subject.rules_hash
    run = (view.evidence if same_rules else evidence.for_subject(of_live)).run
    if run is None:
        return None
    policy = publishing.policy_of(sheet)
    return Reliance(
        run.finished_on, policy.expires_after(run.finished_on), policy.renews_on(run.finished_on)
    )


def _schedules(sheet: Sheet, now: datetime) -> list[tuple[Schedule, str, bool]]:
    """What waits, and what did not come about since the last publication: each with its time in
    words, and whether it is late."""
    rows = sheet.schedules.exclude(
        state__in=[Schedule.State.DONE, Schedule.State.CANCELLED]
    ).order_by("-id")
    last = sheet.events.order_by("-id").values_list("at", flat=True).first()
    return [
        (row, explaining.when(row.due_at), now - row.due_at > scheduling.LATE_AFTER)
        for row in rows[:3]
        if row.closed_at is None or last is None or row.closed_at > last
    ]


def _confirm(
    request: HttpRequest,
    sheet: Sheet,
    form: ReasonForm,
    *,
    title: str,
    live: Publication | None,
    **context: Any,
) -> HttpResponse:
    return page(
        request,
        "factsheets/confirm.html",
        sheet=sheet,
        title=title,
        form=form,
        live=live,
        **context,
    )


def _refusal(request: HttpRequest, sheet: Sheet, sentence: str) -> HttpResponse:
    messages.error(request, sentence)
    return to_gate(sheet.pk)


class Mending:
    """Where the findings on a sheet are mended, for one person."""

    def __init__(self, request: HttpRequest, sheet: Sheet) -> None:
        self._sheet = sheet
        self._sections = dict(sheet.sections.values_list("key", "pk"))
        self._may_add = request.user.has_perm("factsheets.add_section", sheet)
        self._may_check = request.user.has_perm("factsheets.add_check", sheet)

    def address(self, finding: gate.Finding) -> str:
        """The address where a finding is mended, or nothing."""
        if finding.code == "no-sections" and not self._sections and self._may_add:
            return reverse("admin:factsheets_section_add") + f"?sheet={self._sheet.pk}"
        if finding.key in self._sections:
            # Who may not record a check reads the section instead.
            is_check = finding.place == "checks" and self._may_check
            name = "admin:section_check" if is_check else "admin:factsheets_section_change"
            return reverse(name, args=[self._sections[finding.key]])
        return _PLACES[finding.place](self._sheet) if finding.place else ""
