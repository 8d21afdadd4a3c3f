"""Change the editorial record: every function is one change set, or joins the one it is called in."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import count
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, Max, Model

from factsheets.errors import Refused
from factsheets.models import (
    BotProfile,
    Citation,
    GatePolicy,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
)
from factsheets.models.tracking import TrackedModel, TrackedQuerySet, change_set

#: The account that stands for changes made by a file and not by a person.
IMPORT_ACCOUNT = "import"

#: The account that stands for runs which beat starts by itself.
RENEWAL_ACCOUNT = "renewal"

OFFLINE_BOT = "offline"


def service_account(name: str) -> User:
    """An account that stands for the product itself. Nobody can log in with it."""
    user, is_new = User.objects.get_or_create(username=name, defaults={"is_active": False})
    if is_new:
        user.set_unusable_password()
        user.save()
    return user


def create_sheet(
    *,
    slug: str,
    title: str,
    by: User,
    reason: str,
    now: datetime,
    language: str = "en-GB",
    description: str = "",
    bot: BotProfile | None = None,
) -> Sheet:
    """A sheet with a rule set of its own, a default gate policy and, unless told, the offline bot."""
    with change_set(by=by, reason=reason, now=now):
        sheet = Sheet(
            slug=slug,
            title=title,
            language=language,
            description=description,
            bot=bot or offline_bot(by=by, now=now),
        )
        sheet.save()
        complete_sheet(sheet, by=by, reason=reason, now=now)
        return sheet


def complete_sheet(sheet: Sheet, *, by: User, reason: str, now: datetime) -> None:
    """What every sheet has beside its own row: a gate policy and rules of its own."""
    with change_set(by=by, reason=reason, now=now):
        if not GatePolicy.objects.filter(sheet=sheet).exists():
            GatePolicy(sheet=sheet).save()
        own_ruleset(sheet, by=by, reason=reason, now=now)


def next_position(rows: TrackedQuerySet[Any]) -> int:
    """The place after the last of some ordered rows."""
    last = rows.aggregate(last=Max("position"))["last"]
    return 0 if last is None else last + 1


def offline_bot(*, by: User, now: datetime) -> BotProfile:
    """The profile that needs no key and no network, made on first use."""
    bot = BotProfile.objects.filter(slug=OFFLINE_BOT).first()
    if bot is None:
        bot = BotProfile(slug=OFFLINE_BOT, provider=BotProfile.Provider.OFFLINE)
        with change_set(by=by, reason="The bot that quotes the sheet.", now=now):
            bot.save()
    return bot


def own_ruleset(sheet: Sheet, *, by: User, reason: str, now: datetime) -> RuleSet:
    """The rules that belong to this sheet alone, made on first use."""
    link = (
        SheetRuleSet.objects.filter(sheet=sheet, ruleset__shared=False)
        .select_related("ruleset")
        # Of several the one in use; else the one that was unlinked comes back.
        .order_by(F("removed_at").asc(nulls_first=True), "position", "id")
        .first()
    )
    if link is not None and link.removed_at is None:
        return link.ruleset
    with change_set(by=by, reason=reason, now=now):
        if link is not None:
            restore(link.ruleset, by=by, reason=reason, now=now)
            restore(link, by=by, reason=reason, now=now)
            return link.ruleset
        ruleset = RuleSet(
            slug=free_slug(RuleSet.objects.all(), f"{sheet.slug}-rules"),
            title=f"Rules of {sheet.title}"[:200],
        )
        ruleset.save()
        SheetRuleSet(sheet=sheet, ruleset=ruleset, position=1_000).save()
    return ruleset


def free_slug(rows: TrackedQuerySet[Any], wanted: str) -> str:
    """The wanted name, with a number where one of these rows has taken it, removed or not."""
    return free_name(
        wanted, rows.filter(slug__startswith=wanted[:70]).values_list("slug", flat=True)
    )


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """The wanted name, of at most 80 letters, with a number where it is taken."""
    known = set(taken)
    names = (f"{wanted[:70]}-{number}" for number in count(2))
    return wanted[:80] if wanted[:80] not in known else next(n for n in names if n not in known)


def move(
    row: Section | Rule | Citation, by_places: int, *, by: User, reason: str, now: datetime
) -> None:
    """Put a section, a rule or a citation before or behind its neighbours in use.

    Rows whose position stays are not written; those moved stand in one change.
    """
    with change_set(by=by, reason=reason, now=now):
        match row:
            case Section():
                neighbours: TrackedQuerySet[Any] = row.sheet.sections.all()
            case Rule():
                neighbours = row.ruleset.rules.all()
            case Citation():
                neighbours = row.section.citations.all()
        rows = list(neighbours.present().order_by("position", "id"))
        at = next((place for place, each in enumerate(rows) if each.pk == row.pk), None)
        if at is None:
            return
        moved = rows.pop(at)
        rows.insert(max(0, at + by_places), moved)
        for position, each in enumerate(rows):
            change(each, by=by, reason=reason, now=now, position=position)


def version(row: TrackedModel) -> int:
    """The newest entry of a row's history, by key: another after every change of it."""
    entries = type(row).history.filter(id=row.pk)
    newest: int | None = entries.aggregate(newest=Max("history_id"))["newest"]
    return newest or 0


def hold(model: type[Model], pk: int) -> None:
    """Keep other saves of a row waiting to the end of the transaction, so that they see this one."""
    # By key alone: the rows' own order may join tables that must not be locked.
    model._base_manager.order_by("pk").select_for_update().filter(pk=pk).values_list("pk").first()


def change(row: TrackedModel, *, by: User, reason: str, now: datetime, **values: Any) -> None:
    """Set fields of one row and save it. Nothing is written when nothing changes."""
    with change_set(by=by, reason=reason, now=now):
        for name, value in values.items():
            setattr(row, name, value)
        row.save()


def remove(row: TrackedModel, *, by: User, reason: str, now: datetime) -> None:
    """Take a row out of use. It stays in the history, and its key stays reserved."""
    change(row, by=by, reason=reason, now=now, removed_at=row.removed_at or now)


def restore(row: TrackedModel, *, by: User, reason: str, now: datetime) -> None:
    """Take a removed row into use again."""
    change(row, by=by, reason=reason, now=now, removed_at=None)


class NothingToUndo(Refused):
    """Somebody saved since, or there was nothing before."""

    code = "nothing-to-undo"


def undo(row: TrackedModel, seen: int, *, by: User, now: datetime) -> None:
    """Take back the newest save of a row, if that is the one that was seen (`version`) and one's own.

    A new change like any other. Raises NothingToUndo.
    """
    with change_set(by=by, reason="Undone.", now=now):
        entries = type(row).history.filter(id=row.pk).order_by("-history_id")[:2]
        if len(entries) < 2 or entries[0].history_id != seen or entries[0].history_user_id != by.pk:
            raise NothingToUndo(
                "This is not the newest save any more, or not your own; look at the history."
            )
        before = {c.attname: getattr(entries[1], c.attname) for c in row._meta.concrete_fields}
        change(row, by=by, reason="Undone.", now=now, **before)


class StillLive(Refused):
    """Bots still pull what should be put away."""

    code = "still-live"


def archive_sheet(sheet: Sheet, *, by: User, reason: str, now: datetime) -> None:
    """Put a sheet away: it cannot be published until it is taken out again.

    Raises StillLive while bots still get something of it.
    """
    with change_set(by=by, reason=reason, now=now):
        # Read after the lock, or a publisher could come in between.
        fresh = Sheet.objects.select_related("state").get(pk=sheet.pk)
        if fresh.state.live_publication_id is not None:
            raise StillLive(f"{sheet.slug} is live; withdraw it before you archive it.")
        change(fresh, by=by, reason=reason, now=now, archived_at=fresh.archived_at or now)


def unarchive_sheet(sheet: Sheet, *, by: User, reason: str, now: datetime) -> None:
    """Take a sheet out of the archive."""
    change(sheet, by=by, reason=reason, now=now, archived_at=None)
