"""The workbench: a sheet read, edited, checked and published on one page, one card at a time.

The page is read far more often than it is written, so its cards carry no
fields. Each is edited in its place: fragments come and go by HTMX, and what
changes the order or the number of cards sends all of them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from factsheets import access, editing, explaining, history, publishing, rulesets, sizing, standings
from factsheets.admin.base import person
from factsheets.admin.cards import (
    Card,
    CitationCard,
    NewRuleCard,
    NewSectionCard,
    RuleCard,
    SectionCard,
)
from factsheets.admin.pages import CHANGED, number, page, sheet_for
from factsheets.admin.publishing_pages import Mending
from factsheets.errors import Refused
from factsheets.models import Citation, Rule, Section, Sheet, Source, TrackedModel
from factsheets.models.tracking import TAKEN, change_set
from factsheets.staleness import Standing


@dataclass(frozen=True, slots=True)
class SectionView:
    """One section as a card shows it. `tokens` is an estimate."""

    row: Section
    standing: Standing
    tokens: int
    citations: tuple[Citation, ...]
    is_first: bool
    is_last: bool


@require_safe
def workbench(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The whole page."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    return page(
        request,
        "factsheets/workbench/page.html",
        title=sheet.title,
        sheet=sheet,
        live=sheet.state.live_publication,
        new_section=NewSectionCard(prefix="new"),
        **_cards(sheet),
    )


@require_safe
def rules(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The rules in the same manner, with their hash."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    return page(
        request,
        "factsheets/workbench/rules.html",
        title=f"Rules: {sheet.title}",
        sheet=sheet,
        new_rule=NewRuleCard(prefix="new"),
        may_add=_may_add_rule(request, sheet),
        **_rules(sheet),
    )


@require_POST
def add_rule(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """A new rule at the end of the sheet's own set."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    if not _may_add_rule(request, sheet):
        raise PermissionDenied
    form = NewRuleCard(request.POST, prefix="new")
    if form.is_valid():
        by, now, reason = person(request), timezone.now(), "A new rule."
        made: Rule = form.save(commit=False)
        try:
            with change_set(by=by, reason=reason, now=now):
                made.ruleset = editing.own_ruleset(sheet, by=by, reason=reason, now=now)
                made.position = editing.next_position(made.ruleset.rules.all())
                if made.ruleset.rules.filter(key=made.key).exists():
                    form.add_error("key", TAKEN)
                else:
                    made.save()
        except Refused as refused:
            form.add_error(None, refused.sentence)
    if not form.is_valid():
        return _fragment(request, "new_rule", sheet=sheet, new_rule=form)
    return _in_place_of_cards(_fragment(request, "rule_cards", sheet=sheet, **_rules(sheet)))


@require_safe
def gate(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The gate as a panel beside the cards."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    may_publish = request.user.has_perm("factsheets.publish_sheet", sheet)
    view = publishing.look(sheet, now=timezone.now(), by=person(request) if may_publish else None)
    last = publishing.last_publication(sheet)
    explanation = explaining.explain(sheet, view.report, view.evidence, last)
    mend = Mending(request, sheet)
    return _fragment(
        request,
        "gate",
        sheet=sheet,
        view=view,
        report=view.report,
        explanation=explanation,
        last=last,
        findings=[(each, mend.address(each.finding)) for each in explanation.findings],
        touched=sorted(
            {c.section for each in explanation.changed for c in each.changes if c.section}
        ),
    )


@require_safe
def contents(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """The list at the left."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    return _fragment(request, "contents", sheet=sheet, **_cards(sheet))


@require_http_methods(["GET", "HEAD", "POST"])
def section(request: HttpRequest, sheet_id: int, section_id: int) -> HttpResponse:
    """A card to read, or with `?edit` to edit; posted, it is saved."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    row = get_object_or_404(Section, sheet=sheet, pk=section_id)
    if request.method != "POST" and "edit" not in request.GET:
        return _section_card(request, sheet, row)
    access.require(request.user, "factsheets.change_section", row)
    if request.method != "POST":
        return _edit(request, sheet, "section_edit", SectionCard(instance=row))
    if "undo" in request.POST:
        seen = number(request.POST["undo"]) or 0
        try:
            editing.undo(row, seen, by=person(request), now=timezone.now())
        except Refused as refused:
            return _section_card(request, sheet, row, said=refused.sentence)
        return _changed(_section_card(request, sheet, row))
    before = editing.version(row)
    saved = _save(request, SectionCard, row)
    if saved is not None:
        return _edit(request, sheet, "section_edit", saved)
    now = editing.version(row)
    return _changed(_section_card(request, sheet, row, undo=now if now != before else None))


@require_POST
def act(request: HttpRequest, sheet_id: int, section_id: int) -> HttpResponse:
    """Move a section, leave it out or take it in, take it out of use or into use again."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    row = get_object_or_404(Section, sheet=sheet, pk=section_id)
    access.require(request.user, "factsheets.change_section", row)
    wanted = request.POST.get("act", "")
    if wanted in {"include", "leave-out"}:
        reason = "Included." if wanted == "include" else "Left out."
        by, now = person(request), timezone.now()
        editing.change(row, by=by, reason=reason, now=now, included=wanted == "include")
    else:
        _placed(request, row, wanted)
    return _changed(_fragment(request, "cards", sheet=sheet, **_cards(sheet)))


@require_POST
def add(request: HttpRequest, sheet_id: int) -> HttpResponse:
    """A new section at the end."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    if not request.user.has_perm("factsheets.add_section", sheet):
        raise PermissionDenied
    form = NewSectionCard(request.POST, prefix="new")
    if not form.is_valid():
        return _fragment(request, "new_section", sheet=sheet, new_section=form)
    row: Section = form.save(commit=False)
    row.sheet = sheet
    taken = sheet.sections.all()
    row.key = editing.free_name(
        slugify(row.heading) or "section", taken.values_list("key", flat=True)
    )
    row.position = editing.next_position(taken)
    with change_set(by=person(request), reason="A new section.", now=timezone.now()):
        row.save()
    return _in_place_of_cards(_fragment(request, "cards", sheet=sheet, **_cards(sheet)))


@require_http_methods(["GET", "HEAD", "POST"])
def cite(request: HttpRequest, sheet_id: int, section_id: int) -> HttpResponse:
    """A new citation of a section, of a source that there is or a new one."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    row = get_object_or_404(Section, sheet=sheet, pk=section_id)
    access.require(request.user, "factsheets.add_citation", Citation(section=row))
    new = Citation(section=row)
    if request.method != "POST":
        form = CitationCard(instance=new, user=request.user)
        return _edit(request, sheet, "citation_edit", form, section=row)
    form = CitationCard(request.POST, instance=new, user=request.user)
    refused = _add_citation(request, row, form) if form.is_valid() else ""
    if refused:
        form.add_error(None, refused)
    if not form.is_valid():
        return _edit(request, sheet, "citation_edit", form, section=row)
    return _changed(_section_card(request, sheet, row))


@require_http_methods(["GET", "HEAD", "POST"])
def citation(request: HttpRequest, sheet_id: int, citation_id: int) -> HttpResponse:
    """A citation to edit; posted, it is saved, or moved, or taken out of use."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    row = get_object_or_404(Citation, section__sheet=sheet, pk=citation_id)
    access.require(request.user, "factsheets.change_citation", row)
    if request.method != "POST":
        form = CitationCard(instance=row, user=request.user)
        return _edit(request, sheet, "citation_edit", form, section=row.section)
    if _placed(request, row, request.POST.get("act", "")):
        return _changed(_section_card(request, sheet, row.section))
    saved = _save(request, CitationCard, row)
    if saved is not None:
        return _edit(request, sheet, "citation_edit", saved, section=row.section)
    return _changed(_section_card(request, sheet, row.section))


@require_http_methods(["GET", "HEAD", "POST"])
def rule(request: HttpRequest, sheet_id: int, rule_id: int) -> HttpResponse:
    """A rule to read, to edit, and saved; or moved, or taken out of use."""
    sheet = sheet_for(request, sheet_id, "factsheets.view_sheet")
    row = get_object_or_404(
        Rule, pk=rule_id, ruleset__sheet_links__sheet=sheet, ruleset__sheet_links__removed_at=None
    )
    if request.method != "POST" and "edit" not in request.GET:
        return _fragment(request, "rule", sheet=sheet, rule=row)
    access.require(request.user, "factsheets.change_rule", row)
    if request.method != "POST":
        return _edit(request, sheet, "rule_edit", RuleCard(instance=row))
    if _placed(request, row, request.POST.get("act", "")):
        return _changed(_fragment(request, "rule_cards", sheet=sheet, **_rules(sheet)))
    saved = _save(request, RuleCard, row)
    if saved is not None:
        return _edit(request, sheet, "rule_edit", saved)
    return _changed(_fragment(request, "rule", sheet=sheet, rule=row))


#: Below a sheet's address: route and view.
PAGES: Mapping[str, tuple[str, Callable[..., HttpResponse]]] = {
    "workbench": ("workbench/", workbench),
    "workbench_rules": ("workbench/rules/", rules),
    "workbench_gate": ("workbench/gate/", gate),
    "workbench_contents": ("workbench/contents/", contents),
    "workbench_add": ("workbench/add/", add),
    "workbench_section": ("workbench/section/<int:section_id>/", section),
    "workbench_act": ("workbench/section/<int:section_id>/act/", act),
    "workbench_cite": ("workbench/section/<int:section_id>/cite/", cite),
    "workbench_citation": ("workbench/citation/<int:citation_id>/", citation),
    "workbench_add_rule": ("workbench/rules/add/", add_rule),
    "workbench_rule": ("workbench/rule/<int:rule_id>/", rule),
}


def _placed(request: HttpRequest, row: Section | Rule | Citation, wanted: str) -> bool:
    """Move a row, or take it out of use or into use again; whether that is what was wanted."""
    by, now = person(request), timezone.now()
    if wanted in {"up", "down"}:
        editing.move(row, -1 if wanted == "up" else 1, by=by, reason="Moved.", now=now)
    elif wanted == "remove":
        editing.remove(row, by=by, reason="Taken out of use.", now=now)
    elif wanted == "restore":
        editing.restore(row, by=by, reason="Taken into use again.", now=now)
    else:
        return False
    return True


def _save(request: HttpRequest, form_class: type[Card], row: TrackedModel) -> Card | None:
    """Save a card over the version that it was made from. The form to show again, or None."""
    with change_set(
        by=person(request),
        reason=request.POST.get(f"{form_class.letter}{row.pk}-why", ""),
        now=timezone.now(),
    ):
        # Two saves come one after the other, so that the second sees the first.
        editing.hold(type(row), row.pk)
        row.refresh_from_db()
        form = form_class(request.POST, instance=row)
        if not form.is_valid():
            return form
        try:
            form.save()
        except Refused as refused:
            form.add_error(None, refused.sentence)
            return form
    return None


def _add_citation(request: HttpRequest, row: Section, form: CitationCard) -> str:
    """The new citation with its source; the sentence of a refusal, or nothing."""
    data, by = form.cleaned_data, person(request)
    made: Citation = form.save(commit=False)
    try:
        with change_set(by=by, reason=data["why"] or "A new citation.", now=timezone.now()):
            if not data.get("source"):
                made.source = _new_source(data, by)
            made.position = editing.next_position(row.citations.all())
            made.save()
    except Refused as refused:
        return refused.sentence
    return ""


def _new_source(data: dict[str, Any], by: User) -> Source:
    """Inside the caller's change set."""
    taken = Source.objects.values_list("key", flat=True)
    source = Source(
        key=editing.free_name(slugify(data["new_title"])[:70] or "source", taken),
        title=data["new_title"],
        kind=data["new_kind"] or Source.Kind.OTHER,
        url=data["new_url"],
    )
    source.save()
    return source


def _cards(sheet: Sheet) -> dict[str, Any]:
    """The sections in use as cards, and those taken out of use, in a fixed number of queries."""
    rows = list(sheet.sections.order_by("position", "id"))
    shown = [row for row in rows if row.removed_at is None]
    views = _views(shown)
    return {
        "sections": views,
        "removed": [row for row in rows if row.removed_at is not None],
        "total": sum(view.tokens for view in views if view.row.included),
        "window": sizing.usable_window(history.bot_snapshot(sheet.bot)),
    }


def _views(shown: list[Section]) -> list[SectionView]:
    found = standings.of_sections(shown, today=timezone.localdate())
    cited: dict[int, list[Citation]] = {row.pk: [] for row in shown}
    citations = Citation.objects.present().filter(section__in=shown).select_related("source")
    for each in citations.order_by("position", "id"):
        cited[each.section_id].append(each)
    return [
        SectionView(
            row,
            found[row.pk],
            sizing.estimated_tokens(f"{row.heading}\n{row.body}"),
            tuple(cited[row.pk]),
            is_first=number == 0,
            is_last=number == len(shown) - 1,
        )
        for number, row in enumerate(shown)
    ]


def _section_card(
    request: HttpRequest, sheet: Sheet, row: Section, *, undo: int | None = None, said: str = ""
) -> HttpResponse:
    """A card to read; with `undo`, the version of a save that may be taken back."""
    views = _views(list(sheet.sections.present().order_by("position", "id")))
    mine = next((view for view in views if view.row.pk == row.pk), None)
    if mine is None:
        # Taken out of use meanwhile: a card that says so.
        return _fragment(request, "gone", sheet=sheet, row=row)
    return _fragment(request, "section", sheet=sheet, section=mine, undo=undo, said=said)


def _may_add_rule(request: HttpRequest, sheet: Sheet) -> bool:
    return request.user.has_perm("factsheets.add_rule", sheet)


def _rules(sheet: Sheet) -> dict[str, Any]:
    """The rules in the order in which the model reads them; the sheet's own may be moved."""
    links = (
        sheet.ruleset_links.present()
        .filter(ruleset__removed_at__isnull=True)
        .select_related("ruleset")
    )
    order = sorted(links, key=lambda link: (not link.ruleset.shared, link.position, link.pk))
    rows = list(
        Rule.objects.filter(ruleset__in=[link.ruleset_id for link in order])
        .select_related("ruleset")
        .order_by("position", "id")
    )
    sets = [
        (
            link.ruleset,
            [row for row in rows if row.ruleset_id == link.ruleset_id and not row.removed_at],
        )
        for link in order
    ]
    text = rulesets.rules_text(history.snapshot_now(sheet).rules)
    return {
        "sets": sets,
        "removed": [row for row in rows if row.removed_at],
        "rules_hash": rulesets.rules_hash(text),
        "rules_tokens": sizing.estimated_tokens(text),
    }


def _edit(
    request: HttpRequest, sheet: Sheet, template: str, form: forms.BaseForm, **context: Any
) -> HttpResponse:
    return _fragment(request, template, sheet=sheet, form=form, **context)


def _in_place_of_cards(response: HttpResponse) -> HttpResponse:
    """For a form that stands apart from the cards which it adds to."""
    response["HX-Retarget"], response["HX-Reswap"] = "#cards", "outerHTML"
    return _changed(response)


def _changed(response: HttpResponse) -> HttpResponse:
    response["HX-Trigger"] = CHANGED
    return response


def _fragment(
    request: HttpRequest, name: str, *, status: int = 200, **context: Any
) -> HttpResponse:
    response = render(request, f"factsheets/workbench/{name}.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
