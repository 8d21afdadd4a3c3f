"""How large a sheet is beside what it may be: looked at now, and kept over time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import fmean

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Min, Q, Window
from django.db.models.functions import Lag
from django.utils import timezone

from factsheets import counting, history, sizing, splitting, usage
from factsheets.bot import prompt
from factsheets.canonical import Candidate
from factsheets.models import Check, GatePolicy, Outbox, Section, Sheet, SizeReport
from factsheets.sizing import Cost, Facts, RuleRemark, Thresholds, Verdict
from factsheets.splitting import Preview
from factsheets.usage import Use

log = logging.getLogger(__name__)

#: Announced when a sheet was counted again.
COUNTED = "size-counted"

#: Days of use, and of changes, that a look takes in; both end today.
USE_DAYS = 30
CHANGE_DAYS = 84
#: A sheet younger than this has no rate of change yet.
YOUNG_DAYS = 28
#: A quarter: how old the newest report may be before the sheet is counted again.
RECOUNT_DAYS = 91
#: No more questions than this are tried on the split.
MOST_QUESTIONS = 500


@dataclass(frozen=True, slots=True)
class Look:
    """A sheet's sizes as the draft stands, with all that the advice rests on.

    `asked`: where the questions of the preview come from. `inline`, `split`:
    what one answer costs; `split` is None without a question to try.
    """

    candidate: Candidate
    facts: Facts
    bounds: Thresholds
    verdict: Verdict
    use: Use
    preview: Preview
    asked: str
    inline: Cost
    split: Cost | None
    passes: int
    remarks: tuple[RuleRemark, ...]


def look(sheet: Sheet, *, today: date) -> Look:
    """The sizes of the draft. Asks no service; what it once counted is known."""
    candidate = history.candidate_now(sheet)
    bot = candidate.snapshot.bot
    built = prompt.build(candidate.rules_text, candidate.content)
    policy = GatePolicy.objects.present().filter(sheet=sheet).first() or GatePolicy()
    use = usage.of_sheet(sheet, since=today - timedelta(days=USE_DAYS - 1), until=today)
    changes, checks = _rates(sheet, today)
    facts = Facts(
        rules=counting.known(built.rules, bot),
        sheet=counting.known(built.sheet, bot),
        window=sizing.usable_window(bot),
        sections=len(candidate.content.sections),
        used=len(use.touched),
        questions=use.questions,
        changes_a_week=changes,
        checks_a_week=checks,
        readers_differ=policy.readers_differ,
    )
    bounds = _bounds(policy)
    asked, questions = _questions(sheet, candidate, use)
    preview = splitting.preview(candidate.content, candidate.rules_text, questions)
    passes = sheet.bot.passes
    inline, split = _costs(facts, preview, passes)
    return Look(
        candidate=candidate,
        facts=facts,
        bounds=bounds,
        verdict=sizing.verdict(facts, bounds),
        use=use,
        preview=preview,
        asked=asked,
        inline=inline,
        split=split,
        passes=passes,
        remarks=sizing.rule_remarks(candidate.snapshot.rules),
    )


def have_counted(sheet: Sheet, *, now: datetime) -> bool:
    """Have the model service count rules and sheet, where there is one; whether it did."""
    candidate = history.candidate_now(sheet)
    built = prompt.build(candidate.rules_text, candidate.content)
    bot = candidate.snapshot.bot
    counts = [counting.ask(text, bot, now=now) for text in (built.rules, built.sheet)]
    return all(count.method == "exact" for count in counts)


def record(sheet: Sheet, *, now: datetime, by: User | None = None) -> SizeReport:
    """Keep today's look, so that it can be compared with later ones."""
    seen = look(sheet, today=timezone.localdate(now))
    subject = seen.candidate.subject
    return SizeReport.objects.create(
        sheet=sheet,
        at=now,
        by=by,
        content_hash=subject.content_hash,
        rules_hash=subject.rules_hash,
        figures=figures(seen),
        advice=seen.verdict.advice,
        sentence=seen.verdict.sentence,
        reasons=list(seen.verdict.reasons),
    )


def due(*, now: datetime) -> list[int]:
    """Sheets, by key, that were not counted for a quarter; those put away are left alone."""
    fresh = SizeReport.objects.filter(at__gt=now - timedelta(days=RECOUNT_DAYS))
    rows = Sheet.objects.present().filter(archived_at__isnull=True)
    return list(
        rows.exclude(pk__in=fresh.values("sheet")).order_by("pk").values_list("pk", flat=True)
    )


def recount(sheet_id: int, *, now: datetime) -> SizeReport | None:
    """Count a sheet that is due and have its people told. None if another did it meanwhile.

    The first count of all is told only if it advises something.
    """
    sheet = Sheet.objects.select_related("bot").get(pk=sheet_id)
    have_counted(sheet, now=now)
    with transaction.atomic():
        # One at a time: two beats must not tell twice.
        Sheet.objects.order_by("pk").select_for_update(of=("self",)).filter(pk=sheet_id).first()
        if sheet_id not in due(now=now):
            return None
        is_first = newest(sheet) is None
        report = record(sheet, now=now)
        if not is_first or report.advice != SizeReport.Advice.INLINE:
            Outbox.objects.create(
                topic=COUNTED,
                sheet=sheet,
                payload={"sentence": report.sentence, "advice": report.advice},
                created_at=now,
            )
    log.info("sheet %s: counted again, advice %s", sheet.slug, report.advice)
    return report


def newest(sheet: Sheet) -> SizeReport | None:
    """The newest report that was kept."""
    return sheet.size_reports.order_by("-at", "-id").first()


def figures(seen: Look) -> dict[str, object]:
    """All figures of a look as plain JSON: tokens, shares from 0 to 1, rates a week."""
    facts, bot = seen.facts, seen.candidate.snapshot.bot
    return {
        "model": bot.model or bot.provider,
        "method": facts.sheet.method,
        "rules_tokens": facts.rules.tokens,
        "sheet_tokens": facts.sheet.tokens,
        "context_window": bot.context_window,
        "usable_window": facts.window,
        "sheet_share": round(facts.sheet_share, 6),
        "sections": facts.sections,
        "used": facts.used,
        "used_share": None if facts.used_share is None else round(facts.used_share, 6),
        "questions": facts.questions,
        "since": seen.use.since.isoformat(),
        "until": seen.use.until.isoformat(),
        "changes_a_week": facts.changes_a_week,
        "checks_a_week": facts.checks_a_week,
        "readers_differ": facts.readers_differ,
        "passes": seen.passes,
        "payload_inline": round(seen.preview.mean_inline),
        "payload_split": None
        if seen.preview.mean_split is None
        else round(seen.preview.mean_split),
        "payload_saved": None if seen.preview.saved is None else round(seen.preview.saved, 4),
        "payload_questions": len(seen.preview.payloads),
    }


def _bounds(policy: GatePolicy) -> Thresholds:
    return Thresholds(
        policy.inline_below_percent / 100,
        policy.split_from_percent / 100,
        policy.least_used_percent / 100,
    )


def _questions(sheet: Sheet, candidate: Candidate, use: Use) -> tuple[str, Sequence[str]]:
    """Real questions where their texts were kept, else those that the sections name."""
    kept = usage.questions(sheet, since=use.since, until=use.until, most=MOST_QUESTIONS)
    if kept:
        return "questions that visitors asked", kept
    named = [section.question for section in candidate.content.sections if section.question]
    return "the questions that the sections name", named


def _costs(facts: Facts, preview: Preview, passes: int) -> tuple[Cost, Cost | None]:
    """With the counts of the service for rules and sheet; the rest are estimates."""
    asked = [sizing.estimated_tokens(payload.question) for payload in preview.payloads]
    question = round(fmean(asked)) if asked else 0
    inline = sizing.cost_inline(
        rules=facts.rules.tokens, sheet=facts.sheet.tokens, question=question, passes=passes
    )
    if preview.mean_split is None:
        return inline, None
    retrieved = preview.mean_split - preview.fixed - question
    return inline, sizing.cost_split(
        rules=facts.rules.tokens,
        titles=preview.titles,
        retrieved=retrieved,
        question=question,
        passes=passes,
    )


def _rates(sheet: Sheet, today: date) -> tuple[float | None, float | None]:
    """Section texts changed and checked a week, over the last twelve or the sheet's age."""
    entries = Section.history.filter(sheet=sheet)
    first = entries.aggregate(first=Min("history_date"))["first"]
    if first is None or (today - timezone.localdate(first)).days < YOUNG_DAYS:
        return None, None
    days = min(CHANGE_DAYS, (today - timezone.localdate(first)).days)
    since = today - timedelta(days=days)
    order = [F("history_date").asc(), F("history_id").asc()]
    changed = (
        entries.annotate(
            heading_before=Window(Lag("heading"), partition_by=[F("id")], order_by=order),
            body_before=Window(Lag("body"), partition_by=[F("id")], order_by=order),
        )
        .filter(Q(body_before__isnull=False))
        .exclude(heading_before=F("heading"), body_before=F("body"))
    )
    # Counted here: a bound on the date beside the windows would hide the texts before it.
    moments = changed.values_list("history_date", flat=True)
    count = sum(timezone.localdate(at) > since for at in moments)
    checks = Check.objects.filter(section__sheet=sheet, checked_on__gt=since).exclude(
        method=Check.Method.IMPORTED
    )
    return count * 7 / days, checks.count() * 7 / days
