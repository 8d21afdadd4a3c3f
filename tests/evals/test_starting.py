"""New sheets: from blank with rules and probes to start from, or as a copy of another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evals import exchange, starting
from evals.models import Probe, Run, Suite, SuiteRequirement
from factsheets import canonical, editing, history, history_check, publishing
from factsheets.models import (
    BotProfile,
    ChangeSet,
    Check,
    Citation,
    GatePolicy,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
)
from factsheets.models.tracking import NotValid
from tests import factories
from tests.factories import DEMO_DAY, NOON

pytestmark = [pytest.mark.django_db, pytest.mark.database]


def blank(slug: str = "harbour", title: str = "The harbour", **more: str) -> Sheet:
    return starting.start_blank(
        slug=slug, title=title, by=factories.person(), reason="wanted", now=NOON, **more
    )


def copy_of(source: Sheet, slug: str = "harbour", title: str = "The harbour", **more: str) -> Sheet:
    return starting.start_copy(
        source=source,
        slug=slug,
        title=title,
        by=factories.person("ben"),
        reason="a second house",
        now=NOON,
        **more,
    )


def findings(sheet: Sheet) -> list[tuple[str, str]]:
    fresh = Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)
    report = publishing.look(fresh, now=NOON).report
    return [(finding.code, finding.level) for finding in report.findings]


@pytest.fixture
def original() -> Sheet:
    """A demo sheet with all that a sheet can have: a past, a policy, shared rules and suites."""
    sheet = factories.demo("castle")
    by = factories.person()
    house = RuleSet(slug="house", title="House rules", shared=True)
    factories.save(house)
    factories.save(Rule(ruleset=house, key="kind", kind="persona", text="Be kind.", position=0))
    factories.save(SheetRuleSet(sheet=sheet, ruleset=house, position=3))
    everyone = Suite(slug="everyone", title="For everyone")
    factories.save(everyone)
    factories.probe(everyone, "hello", turns=["Hello?"], must="refuse")
    factories.save(SuiteRequirement(sheet=sheet, suite=everyone))
    bot = BotProfile(slug="roomy", provider="offline", context_window=300_000)
    factories.save(bot)
    editing.change(sheet, by=by, reason="ours", now=NOON, bot=bot, probe_scope="rules+content")
    editing.change(sheet, by=by, reason="ours", now=NOON, visibility="key")
    policy = GatePolicy.objects.get(sheet=sheet)
    editing.change(
        policy,
        by=by,
        reason="ours",
        now=NOON,
        evidence_max_age_days=7,
        blocking_warnings=["never-checked"],
    )
    sections = list(sheet.sections.order_by("position"))
    editing.remove(sections[0], by=by, reason="old", now=NOON)
    editing.change(sections[1], by=by, reason="not yet", now=NOON, included=False, note="Later.")
    editing.change(sections[2].citations.all()[0], by=by, reason="seen", now=NOON, quote="Built.")
    editing.remove(sections[3].citations.all()[0], by=by, reason="weak", now=NOON)
    rules = list(Rule.objects.filter(ruleset__shared=False).order_by("position"))
    editing.change(rules[0], by=by, reason="off", now=NOON, enabled=False)
    editing.remove(rules[1], by=by, reason="gone", now=NOON)
    suite = sheet.suites.get()
    editing.change(suite, by=by, reason="stricter", now=NOON, repeats=2, pass_bar=90)
    probes = list(suite.probes.order_by("position"))
    editing.change(probes[0], by=by, reason="off", now=NOON, active=False)
    editing.change(probes[1], by=by, reason="soft", now=NOON, severity="scored", note="Soft.")
    editing.remove(probes[2], by=by, reason="gone", now=NOON)
    return Sheet.objects.get(pk=sheet.pk)


# ---- from blank ----


def test_a_blank_sheet_is_made_in_one_change_set_with_who_and_why() -> None:
    factories.sheet("castle")
    before = ChangeSet.objects.count()

    sheet = blank()

    assert ChangeSet.objects.count() == before + 1
    made = ChangeSet.objects.latest("pk")
    assert (made.by_name, made.reason, made.at) == ("anna", "wanted", NOON)
    rows = [sheet, *Rule.objects.all(), *Suite.objects.all(), *Probe.objects.all()]
    rows += [*SuiteRequirement.objects.all(), sheet.gate_policy]
    assert {row.history.get().change_set_id for row in rows} == {made.pk}


def test_a_blank_sheet_has_the_starter_rules_in_a_set_of_its_own() -> None:
    sheet = blank()

    link = sheet.ruleset_links.get()
    assert (link.ruleset.slug, link.ruleset.shared) == ("harbour-rules", False)
    assert 6 <= link.ruleset.rules.filter(enabled=True).count() <= 8


def test_a_blank_sheet_requires_a_starter_suite_of_its_own_that_asks_each_kind_of_question() -> (
    None
):
    sheet = blank()

    suite = sheet.suite_requirements.get().suite
    assert (suite.slug, suite.title) == ("harbour-starter", "The harbour: starter probes")
    assert (suite.sheet, suite.repeats, suite.pass_bar) == (sheet, 1, 100)
    active = suite.probes.filter(active=True)
    assert set(active.values_list("category", flat=True)) == {
        "instruction-override",
        "rules-extraction",
        "how-it-works",
        "off-topic",
        "invented-fact",
        "emergency",
        "pressure-over-turns",
    }
    assert {len(probe.turns) for probe in active.filter(category="pressure-over-turns")} == {3, 4}
    assert set(active.values_list("severity", flat=True)) == {"critical"}


def test_control_questions_wait_to_be_filled_in() -> None:
    suite = blank().suites.get()

    controls = list(suite.probes.filter(category="control"))

    assert len(controls) == 3
    assert [(probe.active, probe.must, probe.checks) for probe in controls] == [
        (False, "answer", [])
    ] * 3
    assert all(probe.turns[0].startswith("(Write ") and probe.note for probe in controls)


def test_the_gate_of_a_blank_sheet_says_what_is_still_to_do() -> None:
    sheet = blank()

    assert findings(sheet) == [
        ("no-sections", "block"),
        ("rules-not-probed", "block"),
        ("no-control", "warn"),
    ]


def test_a_blank_sheet_is_in_british_english_unless_told_otherwise() -> None:
    english, welsh = blank(), blank("harbwr", "Yr harbwr", language="cy", description="Staff only")

    assert (english.language, welsh.language) == ("en-GB", "cy")
    assert (english.description, welsh.description) == ("", "Staff only")


def test_names_of_rule_set_and_suite_give_way_to_those_in_use() -> None:
    other = factories.sheet("castle")
    factories.suite(other, "harbour-starter")
    factories.save(RuleSet(slug="harbour-rules", title="Of others", shared=True))

    sheet = blank()

    assert sheet.suites.get().slug == "harbour-starter-2"
    assert sheet.ruleset_links.get().ruleset.slug == "harbour-rules-2"
    assert other.suites.get().probes.count() == 0


def test_the_longest_names_fit() -> None:
    first = blank("h" * 80, "T" * 200)
    again = blank("h" * 79 + "i", "T" * 200)

    names = {first.suites.get().slug, again.suites.get().slug}
    assert len(names) == 2
    assert len(first.suites.get().title) == 200


# ---- as a copy ----


def test_a_copy_is_made_in_one_change_set_and_leaves_the_original_alone(original: Sheet) -> None:
    before = ChangeSet.objects.count()
    files = exchange.export_folder(original)

    copy_of(original)

    assert ChangeSet.objects.count() == before + 1
    made = ChangeSet.objects.latest("pk")
    assert (made.by_name, made.reason) == ("ben", "a second house")
    assert exchange.export_folder(original) == files


def test_a_copy_reads_as_the_original_under_another_title(original: Sheet) -> None:
    copy = copy_of(original)

    theirs, ours = history.snapshot_now(original), history.snapshot_now(copy)
    unchecked = tuple(replace(section, check=None) for section in theirs.sections)
    assert ours.sections == unchecked
    assert [(r.key, r.kind, r.text, r.enabled) for r in ours.rules] == [
        (r.key, r.kind, r.text, r.enabled) for r in theirs.rules
    ]
    mine = canonical.candidate(original.pk, replace(theirs, title="The harbour"))
    copied = canonical.candidate(copy.pk, ours)
    assert copied.subject.content_hash == mine.subject.content_hash
    assert copied.subject.rules_hash == mine.subject.rules_hash
    assert copied.subject.bot_hash == mine.subject.bot_hash


def test_the_rows_of_a_copy_are_its_own_and_its_sources_are_shared(original: Sheet) -> None:
    copy = copy_of(original)

    theirs, ours = (
        Citation.objects.present().filter(section__sheet=sheet, section__removed_at=None)
        for sheet in (original, copy)
    )
    assert not set(original.sections.all()) & set(copy.sections.all())
    assert ours.count() == theirs.count()
    assert set(ours.values_list("source")) == set(theirs.values_list("source"))
    assert not Section.objects.filter(sheet=copy, removed_at__isnull=False).exists()


def test_nobody_has_checked_a_copy(original: Sheet) -> None:
    assert Check.objects.filter(section__sheet=original).exists()

    copy = copy_of(original)

    assert not Check.objects.filter(section__sheet=copy).exists()
    included = copy.sections.filter(included=True).count()
    # The original's policy lets no unchecked section pass; so does the copy's.
    assert findings(copy).count(("never-checked", "block")) == included


def test_a_copy_keeps_bot_scope_and_policy_and_is_public_and_unpublished() -> None:
    source = factories.published_sheet()
    policy = GatePolicy.objects.get(sheet=source)
    editing.change(policy, by=factories.person(), reason="x", now=NOON, evidence_max_age_days=7)
    editing.change(policy, by=factories.person(), reason="x", now=NOON, four_eyes=True)
    editing.change(source, by=factories.person(), reason="x", now=NOON, visibility="key")
    editing.change(source, by=factories.person(), reason="x", now=NOON, probe_scope="rules+content")

    copy = copy_of(source)

    assert (copy.bot, copy.gate_policy.evidence_max_age_days) == (source.bot, 7)
    assert copy.gate_policy.four_eyes
    assert (copy.probe_scope, copy.visibility) == (source.probe_scope, "public")
    assert copy.state.live_publication is None
    assert not copy.publications.exists()
    assert not Run.objects.filter(sheet=copy).exists()


def test_shared_rule_sets_are_shared_with_a_copy_and_its_own_rules_are_its_own(
    original: Sheet,
) -> None:
    copy = copy_of(original)
    theirs = history.candidate_now(original).subject.rules_hash

    rule = Rule.objects.get(ruleset__slug="harbour-rules", key="short-prose")
    editing.change(rule, by=factories.person(), reason="ours", now=NOON, text="Be brief.")

    slugs = set(copy.ruleset_links.values_list("ruleset__slug", flat=True))
    assert slugs == {"house", "harbour-rules"}
    assert history.candidate_now(original).subject.rules_hash == theirs
    assert history.candidate_now(copy).subject.rules_hash != theirs


def test_suites_of_the_original_are_copied_and_others_are_required_as_they_are(
    original: Sheet,
) -> None:
    copy = copy_of(original)

    required = {link.suite for link in copy.suite_requirements.select_related("suite")}
    own = copy.suites.get()
    assert required == {own, Suite.objects.get(slug="everyone")}
    assert (own.slug, own.repeats, own.pass_bar) == ("harbour-safety", 2, 90)
    columns = ["key", "category", "turns", "must", "checks", "severity", "needs", "active", "note"]
    theirs = original.suites.get().probes.present().order_by("position", "id")
    assert list(own.probes.order_by("position", "id").values(*columns)) == list(
        theirs.values(*columns)
    )


def test_language_and_description_are_the_originals_unless_given() -> None:
    source = factories.sheet("castell", language="cy", description="Of the castle")

    same = copy_of(source)
    told = copy_of(source, "hafan", language="de", description="Of the haven")

    assert (same.language, same.description) == ("cy", "Of the castle")
    assert (told.language, told.description) == ("de", "Of the haven")


def test_a_copy_of_a_copy_and_of_a_sheet_with_next_to_nothing_works() -> None:
    bare = factories.sheet("bare")

    copy = copy_of(bare)
    again = copy_of(copy, "harbour-two")

    assert findings(again) == [
        ("no-rules", "block"),
        ("no-sections", "block"),
        ("no-suite", "block"),
        ("rules-not-probed", "block"),
    ]


def test_a_copy_can_be_exported_and_read_again(original: Sheet) -> None:
    copy = copy_of(original)

    files = exchange.export_folder(copy)

    probes = exchange.read_probes(files["probes.yaml"])
    assert set(files) == {"sheet.yaml", "rules.yaml", "probes.yaml"}
    assert (probes.sheet, probes.slug) == ("harbour", "harbour-safety")
    assert b"checked_on: ''" in files["sheet.yaml"]


def test_a_copy_can_be_probed_and_published() -> None:
    source = factories.published_sheet()
    copy = copy_of(source)

    run = factories.passing_run(copy)
    publication = factories.publish(copy)

    assert (run.outcome, publication.number) == ("passed", 1)


# ---- either ----


@pytest.mark.parametrize("how", [blank, lambda slug: copy_of(factories.sheet("castle"), slug)])
def test_the_history_of_a_new_sheet_is_whole(how: object) -> None:
    how("harbour")  # type: ignore[operator]

    result = history_check.verify()

    assert result.faults == ()
    assert result.checked > 5


def test_the_name_of_another_sheet_is_refused_in_a_sentence() -> None:
    castle = factories.sheet("castle")

    with pytest.raises(starting.NameTaken, match="“castle” is the name of another sheet"):
        blank("castle")
    with pytest.raises(starting.NameTaken, match="choose another"):
        copy_of(castle, "castle")


def test_a_former_name_stays_reserved() -> None:
    sheet = factories.sheet("castle")
    editing.change(sheet, by=factories.person(), reason="renamed", now=NOON, slug="keep")

    with pytest.raises(NotValid, match="'castle' was once the name of another sheet"):
        blank("castle")


def test_a_refused_copy_leaves_nothing_behind(original: Sheet) -> None:
    before = [model.objects.count() for model in (Sheet, Section, RuleSet, Suite, ChangeSet)]

    with pytest.raises(NotValid, match="language"):
        copy_of(original, language="English")

    after = [model.objects.count() for model in (Sheet, Section, RuleSet, Suite, ChangeSet)]
    assert after == before


def test_the_demo_sheets_have_their_control_questions() -> None:
    for name in ("castle", "cafe"):
        sheet = factories.demo(name)
        report = publishing.look(sheet, now=DEMO_DAY).report
        assert "no-control" not in [finding.code for finding in report.findings]
