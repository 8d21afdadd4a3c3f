"""Pages of question sets: their reports, what missed and why, two reports side by side, import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evals import measuring, question_sets
from evals.forms import QuestionsForm
from evals.models import QuestionSet, RetrievalReport
from factsheets import access, history
from factsheets.admin.base import person
from factsheets.admin.pages import number, page, sheet_for
from factsheets.bot import baselines
from factsheets.errors import Refused
from factsheets.models import Publication

#: Reports a page: those before stand in the database and in JSON by command.
NEWEST = 50

#: The drawing of a curve, in its own units.
WIDTH, HEIGHT = 320, 220


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of one report, or of two."""

    name: str
    figure: dict[str, Any]
    other: dict[str, Any] | None = None

    @property
    def is_worse(self) -> bool:
        """Whether the second is worse than the first."""
        if self.other is None or self.figure["value"] == self.other["value"]:
            return False
        return bool((self.other["value"] > self.figure["value"]) == (self.name in _LESS_IS_BETTER))


_LESS_IS_BETTER = {measuring.NAMES[name] for name in measuring.LESS_IS_BETTER}


@admin.site.admin_view
@require_safe
def question_set(request: HttpRequest, set_id: int) -> HttpResponse:
    """A set with its reports, one row a run as published."""
    found = _set_for(request, set_id, "evals.view_questionset")
    reports = list(
        found.reports.select_related("publication")
        .defer("misses")
        .order_by("-ran_at", "-id")[:NEWEST]
    )
    content = history.candidate_now(found.sheet).content
    return page(
        request,
        "evals/question_set.html",
        title=found.title,
        set=found,
        count=found.questions.present().count(),
        held_back=found.questions.present().filter(part="held-back").count(),
        rows=[(report, list(_cells(report))) for report in reports],
        names=[measuring.NAMES[name] for name in _SHOWN],
        quoted=question_sets.quoted(found, content),
        publications=found.sheet.publications.order_by("-number").values_list("number", flat=True),
        rules=list(baselines.RULES),
        trials=found.trials.defer("content", "rules_text").order_by("-started_at", "-id")[:NEWEST],
        may_run=request.user.has_perm("evals.start_run", found),
        may_import=request.user.has_perm("evals.change_questionset", found),
    )


#: The columns of the table of runs.
_SHOWN = (
    "section_at_1",
    "section_at_3",
    "mrr_at_10",
    "false_rejects",
    "leaks_off_topic",
    "leaks_near",
)


def _cells(report: RetrievalReport) -> Any:
    for part, told in report.figures.items():
        yield part, [told["figures"].get(name) for name in _SHOWN]


@admin.site.admin_view
@require_POST
def run_questions(request: HttpRequest, set_id: int) -> HttpResponse:
    """Measure the draft or a publication, freezing the set if it is the first time."""
    found = _set_for(request, set_id, "evals.start_run")
    back = redirect("runs:question_set", found.pk)
    wanted = request.POST.get("publication", "")
    publication = _publication(found, wanted)
    rule = baselines.RULES.get(request.POST.get("rule", "ours"))
    if rule is None or (wanted and publication is None):
        messages.error(request, "Choose the draft or a publication, and a rule of the list.")
        return back
    try:
        report = question_sets.run(
            found, publication, rule=rule, by=person(request), now=timezone.now()
        )
    except Refused as refused:
        messages.error(request, refused.sentence)
        return back
    return redirect("runs:retrieval_report", report.pk)


@admin.site.admin_view
@require_POST
def copy_questions(request: HttpRequest, set_id: int) -> HttpResponse:
    """The same questions under a new name, to be changed."""
    found = _set_for(request, set_id, "evals.change_questionset")
    try:
        made = question_sets.copy(
            found,
            slug=request.POST.get("slug", "").strip(),
            title=request.POST.get("title", ""),
            by=person(request),
            now=timezone.now(),
        )
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("runs:question_set", found.pk)
    messages.success(request, f"“{made}” has the same questions, and they may change.")
    return redirect("runs:question_set", made.pk)


@admin.site.admin_view
@require_safe
def report(request: HttpRequest, report_id: int) -> HttpResponse:
    """One report: figures with intervals, the curve, and every miss with what ranked above."""
    found = _report_for(request, report_id)
    return page(
        request,
        "evals/retrieval_report.html",
        title=f"{found.question_set} on {found.subject}",
        report=found,
        parts=[
            (part, _lines(told), told["curve"], _drawn(told["curve"]))
            for part, told in found.figures.items()
        ],
        misses=[
            (miss, [measuring.KINDS.get(kind, kind) for kind in miss["kinds"]])
            for miss in found.misses
        ],
        width=WIDTH,
        height=HEIGHT,
    )


@admin.site.admin_view
@require_safe
def compare_reports(request: HttpRequest, set_id: int) -> HttpResponse:
    """Two reports of one set side by side: publications, or configurations."""
    found = _set_for(request, set_id, "evals.view_retrievalreport")
    keys = [number(request.GET.get(name, "")) or 0 for name in ("before", "after")]
    pair = [found.reports.filter(pk=key).select_related("publication").first() for key in keys]
    before, after = pair
    if before is None or after is None:
        messages.error(request, "Choose two reports of the set to compare.")
        return redirect("runs:question_set", found.pk)
    return page(
        request,
        "evals/compare_reports.html",
        title=f"{found}: two reports",
        set=found,
        before=before,
        after=after,
        same_questions=before.frozen_hash == after.frozen_hash,
        settings=[
            (name, before.configuration.get(name), after.configuration.get(name))
            for name in after.configuration
            if before.configuration.get(name) != after.configuration.get(name)
        ],
        parts=[
            (part, _lines(before.figures[part], told))
            for part, told in after.figures.items()
            if part in before.figures
        ],
        lost=measuring.lost(before.misses, after.misses),
        won=measuring.lost(after.misses, before.misses),
    )


@admin.site.admin_view
@require_http_methods(["GET", "HEAD", "POST"])
def import_questions(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """Make a question set from a file: YAML, CSV or the JSON of SQuAD."""
    sheet = sheet_for(request, sheet_id, "evals.add_questionset")
    form = QuestionsForm(
        request.POST if request.method == "POST" else None,
        request.FILES if request.method == "POST" else None,
    )
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            made = question_sets.import_file(
                sheet,
                file.read(),
                name=file.name,
                slug=form.cleaned_data["slug"],
                title=form.cleaned_data["title"],
                by=person(request),
                now=timezone.now(),
            )
        except Refused as refused:
            form.add_error(None, refused.sentence)
        else:
            messages.success(request, f"{made.questions} questions are there.")
            if made.left_out:
                messages.warning(
                    request,
                    f"{len(made.left_out)} questions were left out, for their answers stand in no "
                    f"section: {', '.join(made.left_out[:10])}"
                    f"{' …' if len(made.left_out) > 10 else ''}",
                )
            return redirect("runs:question_set", made.question_set.pk)
    return page(
        request,
        "evals/import_questions.html",
        title=f"Import questions about {sheet}",
        form=form,
        sheet=sheet,
    )


def _set_for(request: HttpRequest, set_id: int, permission: str) -> QuestionSet:
    found = get_object_or_404(
        QuestionSet.objects.present().select_related("sheet__bot", "sheet__state"), pk=set_id
    )
    access.require(request.user, permission, found)
    return found


def _report_for(request: HttpRequest, report_id: int) -> RetrievalReport:
    found = get_object_or_404(
        RetrievalReport.objects.select_related("question_set", "sheet", "publication"), pk=report_id
    )
    access.require(request.user, "evals.view_retrievalreport", found)
    return found


def _publication(found: QuestionSet, wanted: str) -> Publication | None:
    key = number(wanted)
    if key is None:
        return None
    return found.sheet.publications.select_related("sheet__bot").filter(number=key).first()


def _lines(told: dict[str, Any], other: dict[str, Any] | None = None) -> list[Line]:
    return [
        Line(measuring.NAMES.get(name, name), figure, other and other["figures"].get(name))
        for name, figure in told["figures"].items()
        if figure is not None
    ]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One line of the drawing, and where its chosen point stands."""

    name: str
    points: str
    x: float
    y: float


def _drawn(curve: list[dict[str, Any]]) -> list[Drawn]:
    """False rejects to the right, leaks upward; one line for each kind of leak that was asked."""
    lines = []
    for name, key in (("off-topic", "leaks_off_topic"), ("near", "leaks_near")):
        known = [p for p in curve if p[key] is not None and p["false_rejects"] is not None]
        if not known:
            continue
        places = [
            (round(p["false_rejects"] * WIDTH, 1), round((1 - p[key]) * HEIGHT, 1)) for p in known
        ]
        at = next(i for i, p in enumerate(known) if p["chosen"])
        lines.append(Drawn(name, " ".join(f"{x},{y}" for x, y in places), *places[at]))
    return lines
