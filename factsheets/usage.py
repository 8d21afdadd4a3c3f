"""Which sections answers to real questions needed: said by bots, or found in logs.

What a bot says it needed is believed. What is found in a log is a guess by
where the sentences of the reply find support (`tagging`); its texts are read
for that and then dropped, unless somebody chose to keep them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import batched

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from factsheets import canonical, history, tagging
from factsheets.errors import Refused
from factsheets.models import ApiKey, Publication, Section, Sheet, UseLog, UseRecord
from factsheets.snapshot import BotSheet, bot_view
from factsheets.use_logs import REFERENCE, Lines, LogRefused

#: A bot's clock may be ahead of ours by so much.
AHEAD = timedelta(minutes=5)

#: Rows asked for or written at once.
_AT_ONCE = 500


class EntryRefused(Refused):
    """An answer that cannot be counted: which of the batch, by its place from 0, and which field."""

    code = "usage-refused"

    def __init__(self, sentence: str, *, item: int, field: str) -> None:
        self.item, self.field = item, field
        super().__init__(f"answers[{item}].{field}: {sentence} Nothing was recorded.")


class ReferenceTaken(EntryRefused):
    """An answer that was sent before, and is said to have needed other sections now."""

    code = "reference-taken"


class NotCorrected(Refused):
    """A correction that names a section which the sheet has not."""

    code = "not-corrected"


@dataclass(frozen=True, slots=True)
class Entry:
    """One answer as a bot tells of it."""

    reference: str
    answered_at: datetime
    sections: tuple[str, ...]
    publication: int | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of a batch."""

    recorded: int
    repeated: int


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a sheet real questions touched in a period. Days inclusive, organisation's zone."""

    since: date
    until: date
    questions: int
    #: Section key -> questions, in the order of the sheet; only sections in use.
    touched: Mapping[str, int]
    #: Keys of included sections that no question touched.
    never: tuple[str, ...]

    @property
    def share(self) -> float | None:
        """Touched sections / included sections; None without a question, or a section."""
        included = len(self.touched) + len(self.never)
        return len(self.touched) / included if self.questions and included else None


def of_sheet(sheet: Sheet, *, since: date, until: date) -> Use:
    """The use of a sheet in a period, by the sections that it includes now."""
    included = list(
        Section.objects.present()
        .filter(sheet=sheet, included=True)
        .order_by("position", "id")
        .values_list("key", flat=True)
    )
    questions, counts = 0, Counter[str]()
    rows = records(sheet, since=since, until=until).order_by().values_list("sections", flat=True)
    for sections in rows.iterator():
        questions += 1
        counts.update(sections)
    return Use(
        since=since,
        until=until,
        questions=questions,
        touched={key: counts[key] for key in included if counts[key]},
        never=tuple(key for key in included if not counts[key]),
    )


def records(sheet: Sheet, *, since: date, until: date) -> QuerySet[UseRecord]:
    """The answers of a period, newest first."""
    zone = timezone.get_default_timezone()
    begin = datetime.combine(since, time(), tzinfo=zone)
    end = datetime.combine(until + timedelta(days=1), time(), tzinfo=zone)
    return UseRecord.objects.filter(
        sheet=sheet, answered_at__gte=begin, answered_at__lt=end
    ).order_by("-answered_at", "-id")


def questions(sheet: Sheet, *, since: date, until: date, most: int) -> list[str]:
    """Questions of a period whose texts were kept, the newest first, each once."""
    kept = records(sheet, since=since, until=until).exclude(question="")
    return list(dict.fromkeys(kept.values_list("question", flat=True)[:most]))


def record(
    sheet: Sheet, entries: Sequence[Entry], now: datetime, *, key: ApiKey | None = None
) -> Recorded:
    """Count answers that a bot tells of: the whole batch, or nothing of it.

    One that was counted before, with the same sections, is a repeat and counts
    nothing. Raises EntryRefused, and ReferenceTaken where the sections are others.
    """
    known = _keys(sheet)
    numbers = set(sheet.publications.values_list("number", flat=True))
    for item, entry in enumerate(entries):
        _refuse_unknown(item, entry, known, numbers, now)
    with transaction.atomic():
        _one_at_a_time(sheet)
        before = _said_before(sheet, [entry.reference for entry in entries])
        said, new = dict(before), list[UseRecord]()
        for item, entry in enumerate(entries):
            sections = sorted(set(entry.sections))
            if entry.reference not in said:
                new.append(_row(sheet, entry, sections, key))
            elif said[entry.reference] != sections:
                raise ReferenceTaken(
                    f"{entry.reference} was sent before, with "
                    f"{', '.join(said[entry.reference]) or 'no section'}; "
                    "send it with the same sections, or under another reference.",
                    item=item,
                    field="reference",
                )
            said[entry.reference] = sections
        UseRecord.objects.bulk_create(new, batch_size=_AT_ONCE)
    return Recorded(recorded=len(new), repeated=len(entries) - len(new))


def take_log(sheet: Sheet, lines: Lines, *, by: User, keeps_texts: bool, now: datetime) -> UseLog:
    """Tag the replies of a log and count them. Raises LogRefused for a file that was taken before.

    Each reply is held against what bots got when it was given, or the draft
    where nothing was live. A line with a known reference is skipped: what the
    bot said of it goes first.
    """
    _refuse_same_file(sheet, lines)
    # Before the transaction: it takes seconds for a large file, and keeps nobody waiting.
    rows = list(_tagged(sheet, lines, keeps_texts=keeps_texts, now=now))
    with transaction.atomic():
        _one_at_a_time(sheet)
        _refuse_same_file(sheet, lines)
        known = _said_before(sheet, [row.reference for row in rows])
        new = [row for row in rows if row.reference not in known]
        log = UseLog.objects.create(
            sheet=sheet,
            sha256=lines.sha256,
            uploaded_at=now,
            uploaded_by=by,
            rows=len(new),
            skipped=len(rows) - len(new),
            keeps_texts=keeps_texts,
        )
        for row in new:
            row.log = log
        UseRecord.objects.bulk_create(new, batch_size=_AT_ONCE)
    return log


def correct(record: UseRecord, sections: Collection[str], *, by: User, now: datetime) -> bool:
    """Put right which sections an answer needed; False where that stands there already.

    What was said first stays beside it. Raises NotCorrected.
    """
    with transaction.atomic():
        row = UseRecord.objects.select_for_update(of=("self",)).get(pk=record.pk)
        meant = sorted(set(sections))
        unknown = set(meant) - _keys(row.sheet)
        if unknown:
            raise NotCorrected(
                f"The sheet has no section {', '.join(sorted(unknown))}; choose from its own."
            )
        if meant == row.sections:
            return False
        row.tagged, row.sections = row.first_said, meant
        row.corrected_at, row.corrected_by = now, by
        row.save(update_fields=["tagged", "sections", "corrected_at", "corrected_by"])
    return True


def drop_texts(log: UseLog) -> None:
    """Forget the questions and replies of a log for good. What was counted stays."""
    with transaction.atomic():
        log.records.update(question="", reply="")
        UseLog.objects.filter(pk=log.pk).update(keeps_texts=False)


def _one_at_a_time(sheet: Sheet) -> None:
    """Whoever counts for a sheet waits for who does so already: a reference counts once."""
    Sheet.objects.select_for_update(no_key=True, of=("self",)).get(pk=sheet.pk)


def _keys(sheet: Sheet) -> set[str]:
    """Of every section that the sheet ever had: an older publication has those taken out since."""
    return set(Section.objects.filter(sheet=sheet).values_list("key", flat=True))


def _refuse_unknown(
    item: int, entry: Entry, known: Collection[str], numbers: Collection[int], now: datetime
) -> None:
    def refused(field: str, why: str) -> EntryRefused:
        return EntryRefused(why, item=item, field=field)

    if not REFERENCE.fullmatch(entry.reference):
        raise refused("reference", "It must be up to 100 letters, digits and signs without blanks.")
    if entry.answered_at > now + AHEAD:
        raise refused("answered_at", "It is still to come; send when the answer was given.")
    unknown = [key for key in entry.sections if key not in known]
    if unknown:
        raise refused("sections", f"The sheet has no section {unknown[0]!r:.100}.")
    if entry.publication is not None and entry.publication not in numbers:
        raise refused("publication", f"The sheet has no publication {entry.publication!r:.20}.")


def _row(sheet: Sheet, entry: Entry, sections: list[str], key: ApiKey | None) -> UseRecord:
    return UseRecord(
        sheet=sheet,
        reference=entry.reference,
        answered_at=entry.answered_at,
        sections=sections,
        publication=entry.publication,
        origin=UseRecord.Origin.POSTED,
        key=key,
    )


def _said_before(sheet: Sheet, references: Iterable[str]) -> dict[str, list[str]]:
    """Of the references that are known, the sections as they were first said."""
    return {
        row.reference: row.first_said
        for some in batched(references, _AT_ONCE)
        for row in UseRecord.objects.filter(sheet=sheet, reference__in=some).only(
            "reference", "sections", "corrected_at", "tagged"
        )
    }


def _refuse_same_file(sheet: Sheet, lines: Lines) -> None:
    log = sheet.use_logs.filter(sha256=lines.sha256).first()
    if log is not None:
        day = timezone.localdate(log.uploaded_at)
        raise LogRefused(f"This very file was taken on {day:%-d %B %Y} already; nothing was done.")


def _tagged(sheet: Sheet, lines: Lines, *, keeps_texts: bool, now: datetime) -> Iterator[UseRecord]:
    served = _Served(sheet)
    for line in lines.rows:
        at = line.at or now
        number, content = served.at(at)
        support = tagging.tag(line.reply, content)
        yield UseRecord(
            sheet=sheet,
            reference=line.reference or f"log-{lines.sha256[:16]}-{line.number}",
            answered_at=at,
            sections=sorted(support),
            publication=number,
            origin=UseRecord.Origin.LOG,
            question=line.question if keeps_texts else "",
            reply=line.reply if keeps_texts else "",
            support={key: round(share, 3) for key, share in support.items()},
        )


class _Served:
    """What bots got at any moment: number and text; the draft where they got nothing."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        events = list(
            sheet.events.order_by("at", "id").values_list(
                "at", "to_publication", "to_publication__number"
            )
        )
        self.moments = [at for at, _, _ in events]
        self.publications = [(key, number) for _, key, number in events]
        self.texts: dict[int | None, BotSheet] = {}

    def at(self, moment: datetime) -> tuple[int | None, BotSheet]:
        place = bisect_right(self.moments, moment)
        key, number = self.publications[place - 1] if place else (None, None)
        if key not in self.texts:
            self.texts[key] = self._text(key)
        return number, self.texts[key]

    def _text(self, key: int | None) -> BotSheet:
        if key is None:
            return history.candidate_now(self.sheet).content
        record = Publication.objects.values_list("record", flat=True).get(pk=key)
        return bot_view(canonical.read_record(bytes(record)))
