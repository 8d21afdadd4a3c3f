"""The record at any moment: what `snapshot_now` said then is what `snapshot_as_of` says today."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from factsheets import canonical, editing, history
from factsheets.models import (
    BotProfile,
    Check,
    Citation,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
    Source,
)
from factsheets.models.tracking import TrackedModel, change_set
from factsheets.snapshot import SheetSnapshot
from tests import factories
from tests.factories import LATER, NOON, TODAY

pytestmark = [pytest.mark.django_db, pytest.mark.database]

MINUTE = timedelta(minutes=1)
INSTANT = timedelta(microseconds=1)

#: Of a whole sheet: its row, bot, sections, citations, sources, checks, links, sets and rules.
QUERIES = 9


@pytest.fixture
def sheet() -> Sheet:
    return factories.sheet()


def fresh(sheet: Sheet) -> Sheet:
    return Sheet.objects.select_related("bot").get(pk=sheet.pk)


def now(sheet: Sheet) -> SheetSnapshot:
    return history.snapshot_now(fresh(sheet))


def then(sheet: Sheet, moment: datetime) -> SheetSnapshot:
    """The picture of a moment at which there was a sheet."""
    found = history.snapshot_as_of(fresh(sheet), moment)
    assert found is not None
    return found


def edit(row: TrackedModel, moment: datetime = LATER, **values: Any) -> None:
    editing.change(row, by=factories.person(), reason="for a test", now=moment, **values)


def remove(row: TrackedModel, moment: datetime = LATER) -> None:
    editing.remove(row, by=factories.person(), reason="gone", now=moment)


def check(section: Section, moment: datetime = NOON, **values: Any) -> Check:
    return Check.objects.create(
        **{
            "section": section,
            "text_hash": canonical.text_hash(section.heading, section.body),
            "checked_on": TODAY,
            "recorded_at": moment,
            "checked_by": factories.person("ben"),
            "checked_by_name": "ben",
            "outcome": "confirmed",
            "method": "read-paper",
            **values,
        }
    )


def shared_rules(sheet: Sheet, slug: str = "house", *, position: int = 0) -> SheetRuleSet:
    """A shared set of one rule, linked to the sheet."""
    ruleset = RuleSet(slug=slug, title=slug.title(), shared=True)
    factories.save(ruleset)
    factories.save(Rule(ruleset=ruleset, key=f"{slug}-1", kind="format", text=f"Rule of {slug}."))
    link = SheetRuleSet(sheet=sheet, ruleset=ruleset, position=position)
    factories.save(link)
    return link


# ---- a story of many saves ----


@dataclass
class Story:
    """A sheet whose people do one thing after another, chosen by chance that can be repeated."""

    sheet: Sheet
    chance: random.Random
    moment: datetime = NOON

    def one(self, rows: Any) -> list[Any]:
        """One of some rows, or none where there are none."""
        found = list(rows.order_by("pk"))
        return self.chance.sample(found, k=min(1, len(found)))

    def word(self) -> str:
        return f"word-{self.chance.randrange(1_000_000)}"

    def save(self, rows: Iterable[TrackedModel]) -> None:
        """All in one change set."""
        with change_set(by=factories.person(), reason="the story", now=self.moment):
            for row in rows:
                row.save()

    def edit(self, rows: Iterable[TrackedModel], **values: Any) -> None:
        for row in rows:
            edit(row, self.moment, **values)

    def take_out(self, rows: Any) -> None:
        for row in self.one(rows.filter(removed_at=None)):
            remove(row, self.moment)

    def take_back(self, rows: Any) -> None:
        self.edit(self.one(rows.exclude(removed_at=None)), removed_at=None)


def _sections(story: Story) -> Any:
    return Section.objects.filter(sheet=story.sheet)


def _citations(story: Story) -> Any:
    return Citation.objects.filter(section__sheet=story.sheet)


def _own_rules(story: Story) -> Any:
    return Rule.objects.filter(ruleset__shared=False, ruleset__sheet_links__sheet=story.sheet)


def _shared_links(story: Story) -> Any:
    return SheetRuleSet.objects.filter(sheet=story.sheet, ruleset__shared=True)


def edits_a_text(story: Story) -> None:
    story.edit(story.one(_sections(story)), body=story.word(), heading=story.word())


def leaves_a_section_out(story: Story) -> None:
    for section in story.one(_sections(story)):
        story.edit([section], included=not section.included, note=story.word())


def reorders_sections(story: Story) -> None:
    rows = list(_sections(story).order_by("pk"))
    for row in rows:
        # Places may repeat.
        row.position = story.chance.randrange(4)
    story.save(rows)


def adds_a_section(story: Story) -> None:
    place = story.chance.randrange(6)
    story.save([Section(sheet=story.sheet, key=story.word(), heading="New", position=place)])


def removes_a_section(story: Story) -> None:
    story.take_out(_sections(story))


def restores_a_section(story: Story) -> None:
    story.take_back(_sections(story))


def cites(story: Story) -> None:
    for section in story.one(_sections(story)):
        for source in story.one(Source.objects.all()):
            place = story.chance.randrange(3)
            story.save(
                [Citation(section=section, source=source, claims=story.word(), position=place)]
            )


def changes_a_citation(story: Story) -> None:
    for source in story.one(Source.objects.all()):
        story.edit(story.one(_citations(story)), source=source, locator=story.word())


def removes_a_citation(story: Story) -> None:
    story.take_out(_citations(story))


def restores_a_citation(story: Story) -> None:
    story.take_back(_citations(story))


def adds_a_source(story: Story) -> None:
    story.save([Source(key=story.word(), kind="news", title=story.word())])


def changes_a_source(story: Story) -> None:
    story.edit(story.one(Source.objects.all()), title=story.word(), note=story.word())


def removes_a_source(story: Story) -> None:
    story.take_out(Source.objects.all())


def restores_a_source(story: Story) -> None:
    story.take_back(Source.objects.all())


def adds_a_rule(story: Story) -> None:
    for ruleset in story.one(RuleSet.objects.all()):
        place = story.chance.randrange(3)
        rule = Rule(ruleset=ruleset, key=story.word(), kind="format", text="Be brief.")
        rule.position = place
        story.save([rule])


def changes_a_rule(story: Story) -> None:
    story.edit(story.one(_own_rules(story)), text=story.word(), position=story.chance.randrange(3))


def changes_a_shared_rule(story: Story) -> None:
    story.edit(story.one(Rule.objects.filter(ruleset__shared=True)), text=story.word())


def switches_a_rule(story: Story) -> None:
    for rule in story.one(Rule.objects.all()):
        story.edit([rule], enabled=not rule.enabled)


def removes_a_rule(story: Story) -> None:
    story.take_out(Rule.objects.all())


def restores_a_rule(story: Story) -> None:
    story.take_back(Rule.objects.all())


def links_a_shared_set(story: Story) -> None:
    ruleset = RuleSet(slug=story.word(), title="Another", shared=True)
    story.save([ruleset])
    rule = Rule(ruleset=ruleset, key="only", kind="format", text=story.word())
    link = SheetRuleSet(sheet=story.sheet, ruleset=ruleset, position=story.chance.randrange(2_000))
    story.save([rule, link])


def moves_a_shared_set(story: Story) -> None:
    story.edit(story.one(_shared_links(story)), position=story.chance.randrange(2_000))


def unlinks_a_shared_set(story: Story) -> None:
    story.take_out(_shared_links(story))


def links_a_shared_set_again(story: Story) -> None:
    story.take_back(_shared_links(story))


def removes_a_shared_set(story: Story) -> None:
    story.take_out(RuleSet.objects.filter(shared=True))


def restores_a_shared_set(story: Story) -> None:
    story.take_back(RuleSet.objects.filter(shared=True))


def changes_the_bot(story: Story) -> None:
    bot = fresh(story.sheet).bot
    story.edit([bot], max_tokens=story.chance.randrange(1, 9_000))


def takes_another_bot(story: Story) -> None:
    bot = BotProfile(slug=story.word(), provider="anthropic", model=story.word())
    story.save([bot])
    story.edit([fresh(story.sheet)], bot=bot)


def takes_the_bot_out_of_use(story: Story) -> None:
    remove(fresh(story.sheet).bot, story.moment)


def renames_the_sheet(story: Story) -> None:
    story.edit([fresh(story.sheet)], slug=story.word(), title=story.word())


def describes_the_sheet(story: Story) -> None:
    story.edit(
        [fresh(story.sheet)],
        description=story.word(),
        language=story.chance.choice(["de", "en-GB", "fr"]),
        visibility=story.chance.choice(["public", "key"]),
        probe_scope=story.chance.choice(["rules", "rules+content"]),
    )


def checks_a_section(story: Story) -> None:
    for section in story.one(_sections(story)):
        day = TODAY - timedelta(days=story.chance.randrange(5))
        check(section, story.moment, checked_on=day, note=story.word())


def supersedes_a_check(story: Story) -> None:
    for wrong in story.one(Check.objects.filter(superseded_by=None)):
        day = TODAY - timedelta(days=story.chance.randrange(5))
        check(wrong.section, story.moment, checked_on=day, note=story.word(), supersedes=wrong)


def changes_another_sheet(story: Story) -> None:
    story.edit(
        story.one(Section.objects.exclude(sheet=story.sheet)), body=story.word(), key=story.word()
    )


def changes_many_things_at_once(story: Story) -> None:
    with change_set(by=factories.person(), reason="all at once", now=story.moment):
        for step in story.chance.sample(STEPS[:-1], k=4):
            step(story)


STEPS: list[Callable[[Story], None]] = [
    edits_a_text,
    leaves_a_section_out,
    reorders_sections,
    adds_a_section,
    removes_a_section,
    restores_a_section,
    cites,
    changes_a_citation,
    removes_a_citation,
    restores_a_citation,
    adds_a_source,
    changes_a_source,
    removes_a_source,
    restores_a_source,
    adds_a_rule,
    changes_a_rule,
    changes_a_shared_rule,
    switches_a_rule,
    removes_a_rule,
    restores_a_rule,
    links_a_shared_set,
    moves_a_shared_set,
    unlinks_a_shared_set,
    links_a_shared_set_again,
    removes_a_shared_set,
    restores_a_shared_set,
    changes_the_bot,
    takes_another_bot,
    takes_the_bot_out_of_use,
    renames_the_sheet,
    describes_the_sheet,
    checks_a_section,
    supersedes_a_check,
    changes_another_sheet,
    changes_many_things_at_once,
]


def tell(story: Story, steps: int) -> list[tuple[datetime, str, SheetSnapshot]]:
    """Let every kind of step happen, in an order of chance; keep what stood there after each."""
    chosen = [*STEPS, *story.chance.choices(STEPS, k=steps - len(STEPS))]
    story.chance.shuffle(chosen)
    kept = []
    for step in chosen:
        story.moment += MINUTE
        step(story)
        kept.append((story.moment, step.__name__, now(story.sheet)))
    return kept


@pytest.mark.parametrize("seed", range(4))
def test_every_picture_kept_through_a_long_story_is_read_back_as_it_was(seed: int) -> None:
    sheet = factories.ready_sheet()
    factories.section(factories.ready_sheet("tower"), "stairs", source=factories.source("map"))
    shared_rules(sheet)
    first = now(sheet)

    kept = tell(Story(sheet, random.Random(seed)), 90)

    before = first
    for moment, step, picture in kept:
        assert then(sheet, moment) == picture, step
        assert then(sheet, moment + MINUTE - INSTANT) == picture, step
        assert then(sheet, moment - INSTANT) == before, step
        before = picture
    assert len({picture for _, _, picture in kept}) > len(kept) / 3


# ---- whole or not at all ----


def test_a_save_of_many_rows_is_seen_whole_from_its_moment_and_not_at_all_before(
    sheet: Sheet,
) -> None:
    leaflet, other = factories.source(), factories.section(sheet, "parking")
    section, rule = factories.section(sheet, source=leaflet), factories.rule(sheet)
    before = now(sheet)

    with change_set(by=factories.person(), reason="all at once", now=LATER):
        edit(sheet, title="The keep")
        edit(section, body="Closed.", position=9)
        remove(other)
        edit(leaflet, title="The second leaflet")
        edit(section.citations.get(), locator="page 2")
        edit(rule, text="Say nothing.")
        edit(sheet.bot, max_tokens=5)

    assert then(sheet, LATER - INSTANT) == before
    assert then(sheet, LATER) == now(sheet) != before


def test_a_section_and_its_first_citation_appear_together(sheet: Sheet) -> None:
    leaflet = factories.source()

    with change_set(by=factories.person(), reason="new", now=LATER):
        factories.section(sheet, source=leaflet)

    assert then(sheet, LATER - INSTANT).sections == ()
    (only,) = then(sheet, LATER).sections
    assert [citation.source.title for citation in only.citations] == ["The leaflet"]


def test_of_two_saves_at_the_very_same_moment_the_later_counts(sheet: Sheet) -> None:
    section = factories.section(sheet)

    edit(section, body="First.")
    edit(section, body="Second.")

    (only,) = then(sheet, LATER).sections
    assert only.body == "Second."


def test_what_was_removed_and_restored_at_the_very_same_moment_is_there(sheet: Sheet) -> None:
    section = factories.section(sheet)

    remove(section)
    edit(section, removed_at=None)

    assert [s.key for s in then(sheet, LATER).sections] == ["hours"]


def test_before_there_was_a_sheet_there_is_no_picture(sheet: Sheet) -> None:
    assert history.snapshot_as_of(sheet, NOON - INSTANT) is None
    assert history.snapshot_as_of(sheet, NOON) is not None


def test_a_new_sheet_had_neither_sections_nor_rules(sheet: Sheet) -> None:
    factories.section(sheet)

    with change_set(by=factories.person(), reason="later", now=LATER):
        factories.rule(sheet)
    remove(Section.objects.get())

    picture = then(sheet, NOON)
    assert [s.key for s in picture.sections] == ["hours"]
    assert picture.rules == ()


# ---- as it was, not as it is ----


def test_nothing_of_today_stands_in_a_picture_of_the_past() -> None:
    sheet = factories.ready_sheet()
    link = shared_rules(sheet)
    section, today = sheet.sections.get(), "cnry-today"
    citation = section.citations.get()

    edit(sheet, slug=today, title=today, description=today)
    edit(section, heading=today, question=today, body=today, note=today)
    edit(citation, locator=today, claims=today, quote=today)
    edit(citation.source, title=today, author=today, note=today, url=f"https://{today}.example/")
    edit(link.ruleset, slug=today)
    for rule in Rule.objects.all():
        edit(rule, text=today)
    edit(sheet.bot, model=today)
    check(section, LATER, note=today)

    past = canonical.record_bytes(then(sheet, LATER - INSTANT)).decode()
    assert today in canonical.record_bytes(now(sheet)).decode()
    assert today not in past


def test_a_source_is_shown_with_the_title_that_it_had(sheet: Sheet) -> None:
    leaflet = factories.source()
    factories.section(sheet, source=leaflet)

    edit(leaflet, title="Today's title")

    (only,) = then(sheet, NOON).sections
    assert only.citations[0].source.title == "The leaflet"


def test_a_citation_leads_to_the_source_that_it_had(sheet: Sheet) -> None:
    section = factories.section(sheet, source=factories.source())

    edit(section.citations.get(), source=factories.source("guide", title="The guide"))

    (only,) = then(sheet, NOON).sections
    assert only.citations[0].source.title == "The leaflet"


def test_a_citation_of_a_source_taken_out_of_use_stays_as_it_stays_today(sheet: Sheet) -> None:
    leaflet = factories.source()
    factories.section(sheet, source=leaflet)

    remove(leaflet)

    assert then(sheet, LATER) == now(sheet)
    assert len(then(sheet, LATER).sections[0].citations) == 1


def test_a_sheet_whose_bot_was_taken_out_of_use_still_has_a_past(sheet: Sheet) -> None:
    remove(sheet.bot)

    assert then(sheet, LATER) == now(sheet)


def test_a_rule_that_has_gone_is_there_and_one_that_came_is_not(sheet: Sheet) -> None:
    gone = factories.rule(sheet, "gone")

    remove(gone)
    with change_set(by=factories.person(), reason="new", now=LATER):
        factories.rule(sheet, "new")

    assert [rule.key for rule in then(sheet, LATER - INSTANT).rules] == ["gone"]
    assert [rule.key for rule in then(sheet, LATER).rules] == ["new"]


def test_rules_of_a_shared_set_count_while_it_was_linked_and_in_use(sheet: Sheet) -> None:
    link = shared_rules(sheet)

    remove(link, NOON + MINUTE)
    edit(link, NOON + 2 * MINUTE, removed_at=None)
    remove(link.ruleset, NOON + 3 * MINUTE)

    found = [len(then(sheet, NOON + n * MINUTE).rules) for n in range(4)]
    assert found == [1, 0, 1, 0]


def test_a_shared_set_given_to_another_sheet_was_of_the_first_until_then(sheet: Sheet) -> None:
    other = factories.sheet("tower")
    link = shared_rules(sheet)

    edit(link, sheet=other)

    assert [rule.key for rule in then(sheet, LATER - INSTANT).rules] == ["house-1"]
    assert then(other, LATER - INSTANT).rules == ()
    assert then(sheet, LATER).rules == ()
    assert [rule.key for rule in then(other, LATER).rules] == ["house-1"]


def test_a_set_that_became_shared_stood_with_the_sheets_own_before(sheet: Sheet) -> None:
    factories.rule(sheet, "own")
    link = shared_rules(sheet, position=5_000)
    own = RuleSet.objects.get(shared=False)

    edit(own, shared=True)

    assert [r.key for r in then(sheet, NOON).rules] == ["house-1", "own"]
    assert [r.key for r in then(sheet, LATER).rules] == ["own", "house-1"]
    assert link.position > 1_000


def test_the_bot_is_the_one_that_answered_then(sheet: Sheet) -> None:
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)

    edit(sheet, bot=bot)
    edit(bot, LATER + MINUTE, model="claude-next")

    models = [then(sheet, m).bot.model for m in (NOON, LATER, LATER + MINUTE)]
    assert models == ["", "claude-haiku-5-5", "claude-next"]


def test_the_checks_are_those_recorded_by_then_whatever_day_they_are_of(sheet: Sheet) -> None:
    section = factories.section(sheet)
    check(section, NOON, note="first")
    check(section, LATER, note="recorded later", checked_on=TODAY + timedelta(days=1))

    (only,) = then(sheet, LATER - INSTANT).sections

    assert only.check is not None
    assert only.check.note == "first"


def test_a_check_counts_until_the_moment_at_which_it_was_replaced(sheet: Sheet) -> None:
    section = factories.section(sheet)
    wrong = check(section, NOON, note="wrong", checked_on=TODAY + timedelta(days=1))
    check(section, LATER, note="right", supersedes=wrong)

    notes = [then(sheet, m).sections[0].check for m in (LATER - INSTANT, LATER)]

    assert [found and found.note for found in notes] == ["wrong", "right"]


# ---- order ----


def test_rows_stood_by_position_and_then_by_id(sheet: Sheet) -> None:
    leaflet = factories.source()
    for key, position in (("c", 2), ("b1", 1), ("a", 0), ("b2", 1)):
        factories.section(sheet, key, position=position)
        factories.rule(sheet, key, position=position)
    first = Section.objects.get(key="a")
    for claims, position in (("c", 2), ("b1", 1), ("a", 0), ("b2", 1)):
        factories.save(Citation(section=first, source=leaflet, claims=claims, position=position))

    for row in (*Section.objects.all(), *Rule.objects.all(), *Citation.objects.all()):
        edit(row, position=9 - row.position)

    past = then(sheet, LATER - INSTANT)
    assert [s.key for s in past.sections] == ["a", "b1", "b2", "c"]
    assert [r.key for r in past.rules] == ["a", "b1", "b2", "c"]
    assert [c.claims for c in past.sections[0].citations] == ["a", "b1", "b2", "c"]
    assert [s.key for s in then(sheet, LATER).sections] == ["c", "b1", "b2", "a"]


# ---- what it costs ----


@pytest.mark.parametrize(("sections", "saves"), [(3, 5), (3, 300), (40, 5), (40, 300)])
def test_a_picture_of_the_past_takes_nine_queries_however_much_there_is(
    sheet: Sheet, sections: int, saves: int, django_assert_num_queries: Callable[[int], Any]
) -> None:
    for number in range(sections):
        leaflet = factories.source(f"leaflet-{number}")
        check(factories.section(sheet, f"s-{number}", source=leaflet))
    rule = factories.rule(sheet)
    for number in range(saves):
        edit(Section.objects.get(key="s-1"), NOON + number * MINUTE, body=f"Text {number}.")
        edit(rule, NOON + number * MINUTE, text=f"Rule {number}.")

    with django_assert_num_queries(QUERIES):
        picture = history.snapshot_as_of(sheet, NOON + 3 * MINUTE)

    assert picture is not None
    assert len(picture.sections) == sections
    assert picture.sections[1].body == "Text 3."


def _history_tables() -> list[str]:
    return [
        model.history.model._meta.db_table
        for model in apps.get_models()
        if issubclass(model, TrackedModel)
    ]


def test_every_history_table_has_the_index_by_which_a_moment_is_read() -> None:
    tables = _history_tables()

    with connection.cursor() as cursor:
        indexes = {
            table: [
                tuple(found["columns"])
                for found in connection.introspection.get_constraints(cursor, table).values()
                if found["index"]
            ]
            for table in tables
        }

    missing = [t for t in tables if ("id", "history_date", "history_id") not in indexes[t]]
    assert len(tables) > 15
    assert missing == []
