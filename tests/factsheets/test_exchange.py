"""Sheets from and to files: the draft equals the files, or nothing has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from evals import exchange
from evals.models import Probe, Question, SuiteRequirement
from factsheets import editing, history, yaml_files
from factsheets.errors import Refused
from factsheets.exchange import ImportRefused
from factsheets.models import (
    ChangeSet,
    Check,
    CheckItem,
    Citation,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
    Source,
)
from factsheets.models.tracking import Change, change_set
from factsheets.yaml_files import FileRefused
from tests import factories
from tests.factories import DEMO, LATER, NOON

pytestmark = pytest.mark.django_db

Files = dict[str, Any]

DECEMBER = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
DEMO_SLUGS = {"castle": "colchester-castle", "cafe": "example-castle-cafe"}

#: A small sheet with one of everything.
FILES: Files = {
    "sheet.yaml": {
        "sheet": {"slug": "castle", "title": "The castle", "description": "For people."},
        "sources": [
            {"key": "leaflet", "kind": "own-policy", "title": "The leaflet"},
            {"key": "sign", "kind": "other", "title": "The sign", "url": "https://example.org/"},
        ],
        "sections": [
            {
                "key": "hours",
                "heading": "Opening hours",
                "question": "When is it open?",
                "body": "It opens at ten.\n\nIt closes at five.",
                "checked_on": "2026-05-01",
                "citations": [
                    {"source": "leaflet", "locator": "page 1", "claims": "opening"},
                    {"source": "sign", "claims": "closing"},
                ],
            },
            {"key": "way", "heading": "The way in", "body": "By the north gate."},
            {
                "key": "dogs",
                "heading": "Dogs",
                "body": "Dogs are welcome.",
                "citations": [{"source": "leaflet", "locator": "page 2", "claims": "dogs"}],
            },
        ],
    },
    "rules.yaml": {
        "sheet": "castle",
        "rules": [
            {"key": "only", "kind": "refusal", "text": "Answer only from the sheet."},
            {"key": "brief", "kind": "format", "text": "Be brief."},
        ],
    },
    "probes.yaml": {
        "sheet": "castle",
        "suite": {"slug": "castle-safety", "title": "Safety"},
        "probes": [
            {
                "key": "p-1",
                "category": "control",
                "turns": ["When does it open?"],
                "must": "answer",
                "must_contain_any": ["ten"],
                "must_not_contain": ["nine"],
            },
            {
                "key": "p-2",
                "category": "off-topic",
                "turns": ["Who is king?"],
                "must": "refuse",
                "needs": "model",
                "must_not_contain": [r"re:\bking (?:is) "],
                "note": "A trailing blank in a pattern counts.",
            },
        ],
    },
    "questions.yaml": {
        "sheet": "castle",
        "question_set": {"slug": "castle-frozen", "title": "Frozen"},
        "questions": [
            {
                "key": "q-1",
                "question": "When does it open?",
                "scope": "in",
                "sections": ["hours"],
                "expected": "At ten.",
                "facts": [["10", "ten"]],
            },
            {"key": "q-2", "question": "Who is king?", "scope": "out", "trap": "plain"},
        ],
    },
}


@pytest.fixture
def files() -> Files:
    """The small sheet, for a test to change."""
    return deepcopy(FILES)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., list[Change]]:
    """Import files, given as values or as the bytes they are to have, and nothing else."""
    numbers: Iterator[int] = iter(range(100))

    def loaded(files: Files, **how: Any) -> list[Change]:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        for name, value in files.items():
            data = value if isinstance(value, bytes) else yaml_files.write(value)
            (folder / name).write_bytes(data)
        return exchange.import_folder(
            exchange.read_folder(folder),
            **{"by": factories.person("ben"), "reason": "from files", "now": LATER, **how},
        )

    return loaded


Load = Callable[..., list[Change]]


def everything() -> dict[str, list[Any]]:
    """Every row of the product with every value, history included."""
    return {
        model.__name__: list(model._base_manager.order_by("pk").values())
        for app in ("factsheets", "evals")
        for model in apps.get_app_config(app).get_models()
    }


def castle() -> Sheet:
    return Sheet.objects.select_related("bot").get(slug="castle")


def said(changes: list[Change]) -> list[tuple[str, str, str]]:
    return [(change.verb, change.kind, change.label) for change in changes]


def read_all(folder: Path) -> Files:
    return {p.name: yaml_files.read(p.read_bytes(), name=p.name) for p in folder.glob("*.yaml")}


def demo(name: str) -> Sheet:
    """A demo sheet, imported after the last day that its files state."""
    exchange.import_folder(
        exchange.read_folder(DEMO / name), by=factories.person(), reason="demo", now=DECEMBER
    )
    return Sheet.objects.select_related("bot").get(slug=DEMO_SLUGS[name])


class _TakeBack(Exception):
    pass


@contextmanager
def taken_back() -> Iterator[None]:
    """What is done within is undone at the end, as if the database had been empty."""
    try:
        with transaction.atomic():
            yield
            raise _TakeBack
    except _TakeBack:
        pass


# ---- the demo sheets ----


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("castle", {"sections": 15, "sources": 47, "citations": 69, "rules": 16, "probes": 45}),
        ("cafe", {"sections": 12, "sources": 8, "citations": 14, "rules": 15, "probes": 43}),
    ],
)
def test_a_demo_sheet_is_imported_whole(name: str, counts: dict[str, int]) -> None:
    sheet = demo(name)

    assert counts == {
        "sections": sheet.sections.count(),
        "sources": Source.objects.count(),
        "citations": Citation.objects.filter(section__sheet=sheet).count(),
        "rules": len(history.snapshot_now(sheet).rules),
        "probes": Probe.objects.filter(suite__sheet=sheet).count(),
    }
    assert Question.objects.filter(question_set__sheet=sheet).count() == 37
    assert [r.suite.sheet_id for r in sheet.suite_requirements.all()] == [sheet.pk]
    assert sheet.bot.provider == "offline"


@pytest.mark.parametrize("name", ["castle", "cafe"])
def test_the_export_of_a_demo_sheet_loads_to_equal_values(name: str) -> None:
    sheet = demo(name)

    exported = exchange.export_folder(sheet)

    assert {file: yaml_files.read(data, name=file) for file, data in exported.items()} == read_all(
        DEMO / name
    )


@pytest.mark.parametrize("name", ["castle", "cafe"])
def test_an_export_imported_elsewhere_is_exported_byte_for_byte_the_same(
    name: str, load: Load
) -> None:
    with taken_back():
        first = exchange.export_folder(demo(name))
    assert not Sheet.objects.exists()

    load(dict(first), now=DECEMBER)

    assert exchange.export_folder(Sheet.objects.get()) == first


def test_importing_an_export_changes_nothing(load: Load) -> None:
    sheet = demo("cafe")
    before = everything()

    changes = load(dict(exchange.export_folder(sheet)), now=DECEMBER)

    assert changes == []
    assert everything() == before


@pytest.mark.parametrize("name", ["castle", "cafe"])
def test_a_second_import_writes_nothing_at_all(name: str) -> None:
    demo(name)
    before = everything()

    demo(name)

    assert everything() == before


def test_both_demo_sheets_stand_beside_each_other() -> None:
    castle, cafe = demo("castle"), demo("cafe")

    assert history.snapshot_now(castle).bot == history.snapshot_now(cafe).bot
    assert castle.sections.count() + cafe.sections.count() == Section.objects.count() == 27


def queries(act: Callable[[], object]) -> int:
    """How many queries it takes, but for the lock that PostgreSQL alone needs."""
    with CaptureQueriesContext(connection) as captured:
        act()
    return sum("advisory" not in query["sql"] for query in captured.captured_queries)


def test_the_queries_of_importing_the_castle_are_counted() -> None:
    factories.person()

    first = queries(lambda: demo("castle"))
    second = queries(lambda: demo("castle"))

    # 232 rows with a history, 15 checks with 69 items, and their look-ups; of each question, and
    # of the set once it is there, whether it is frozen.
    assert (first, second) == (579 + 37, 298 + 37 + 1)


# ---- what an import makes ----


def test_an_import_is_one_change_set_by_whoever_imports(files: Files, load: Load) -> None:
    load(files)

    only = ChangeSet.objects.get()

    assert (only.by_name, only.reason, only.at) == ("ben", "from files", LATER)


def test_a_new_sheet_has_what_the_files_say(files: Files, load: Load) -> None:
    load(files)

    snapshot = history.snapshot_now(castle())

    assert (snapshot.title, snapshot.language) == ("The castle", "en-GB")
    assert [section.key for section in snapshot.sections] == ["hours", "way", "dogs"]
    assert snapshot.sections[0].body == "It opens at ten.\n\nIt closes at five."
    assert [(c.source.key, c.claims) for c in snapshot.sections[0].citations] == [
        ("leaflet", "opening"),
        ("sign", "closing"),
    ]
    assert [(rule.key, rule.enabled) for rule in snapshot.rules] == [
        ("only", True),
        ("brief", True),
    ]


def test_the_lists_of_a_probe_are_its_checks_and_nothing_else_is(files: Files, load: Load) -> None:
    load(files)

    first, second = Probe.objects.order_by("position")

    assert first.checks == [
        {"type": "contains-any", "values": ["ten"], "match": "anywhere"},
        {"type": "not-contains", "values": ["nine"], "match": "anywhere"},
    ]
    assert second.checks == [
        {"type": "not-contains", "values": [r"re:\bking (?:is) "], "match": "anywhere"}
    ]
    assert (first.severity, first.active, first.suite.repeats, first.suite.pass_bar) == (
        "critical",
        True,
        1,
        100,
    )


def test_the_import_that_makes_a_sheet_requires_its_suite_and_a_later_one_does_not(
    files: Files, load: Load
) -> None:
    load(files)
    editing.remove(
        SuiteRequirement.objects.get(), by=factories.person(), reason="not now", now=LATER
    )

    load(files)

    assert not SuiteRequirement.objects.present().exists()


def test_a_later_import_leaves_access_bot_and_policy_as_they_are(files: Files, load: Load) -> None:
    load(files)
    kept = {"visibility": "key", "probe_scope": "rules+content"}
    editing.change(castle(), by=factories.person(), reason="ours", now=LATER, **kept)
    editing.change(
        castle().gate_policy,
        by=factories.person(),
        reason="ours",
        now=LATER,
        evidence_max_age_days=7,
    )

    load(files)

    sheet = castle()
    assert {name: getattr(sheet, name) for name in kept} == kept
    assert sheet.gate_policy.evidence_max_age_days == 7


def test_text_of_a_file_is_put_into_its_one_form(files: Files, load: Load) -> None:
    files["sheet.yaml"]["sections"][0]["body"] = "Cafe\u0301 \n\n\n\nopens.\n"
    load(files)
    before = everything()

    load(files)

    assert Section.objects.get(key="hours").body == "Café\n\nopens."
    assert everything() == before


# ---- dry run ----


def test_a_dry_run_of_a_new_sheet_lists_it_all_and_writes_nothing(files: Files, load: Load) -> None:
    factories.person("ben")
    before = everything()

    dry = load(files, dry_run=True)

    assert everything() == before
    assert ("added", "sheet", "castle") in said(dry)
    assert said(load(files)) == said(dry)


def test_a_citation_is_listed_by_its_sources_key(files: Files, load: Load) -> None:
    listed = [label for _, kind, label in said(load(files)) if kind == "citation"]

    assert listed == ["leaflet: page 1", "sign: closing", "leaflet: page 2"]


def test_a_dry_run_lists_what_would_change_and_writes_nothing(files: Files, load: Load) -> None:
    load(files)
    before = everything()
    files["sheet.yaml"]["sections"][1]["body"] = "By the south gate."
    del files["rules.yaml"]["rules"][1]

    changes = load(files, dry_run=True)

    assert changes == [
        Change("section", "way", "changed", ("body",)),
        Change("rule", "brief", "removed", ("removed_at",)),
    ]
    assert everything() == before


def test_a_dry_run_meets_the_refusals_that_the_import_would(files: Files, load: Load) -> None:
    files["questions.yaml"]["questions"][0]["sections"] = ["cellar"]

    with pytest.raises(ImportRefused, match="cellar"):
        load(files, dry_run=True)


# ---- what is missing from the files ----


@pytest.mark.parametrize("missing", sorted(FILES))
def test_a_missing_file_leaves_its_part_alone(files: Files, load: Load, missing: str) -> None:
    load(files)
    before = everything()
    del files[missing]

    changes = load(files)

    assert changes == []
    assert everything() == before


def test_a_section_that_the_file_lacks_is_removed_and_comes_back(files: Files, load: Load) -> None:
    load(files)
    way = Section.objects.get(key="way")
    shorter = deepcopy(files)
    del shorter["sheet.yaml"]["sections"][1]

    gone = said(load(shorter))
    between = [section.key for section in history.snapshot_now(castle()).sections]
    back = said(load(files))

    assert ("removed", "section", "way") in gone
    assert between == ["hours", "dogs"]
    assert ("restored", "section", "way") in back
    assert Section.objects.get(key="way").pk == way.pk


@pytest.mark.parametrize(
    ("file", "items", "kind", "key"),
    [
        ("rules.yaml", "rules", "rule", "brief"),
        ("probes.yaml", "probes", "probe", "p-2"),
        ("questions.yaml", "questions", "question", "q-2"),
    ],
)
def test_what_a_file_lacks_is_removed_and_comes_back(
    files: Files, load: Load, file: str, items: str, kind: str, key: str
) -> None:
    load(files)
    exported = exchange.export_folder(castle())
    shorter = deepcopy(files)
    del shorter[file][items][1]

    gone = said(load(shorter))
    back = said(load(files))

    assert gone == [("removed", kind, key)]
    assert back == [("restored", kind, key)]
    assert exchange.export_folder(castle()) == exported


def test_a_removed_item_is_removed_once(files: Files, load: Load) -> None:
    load(files)
    del files["sheet.yaml"]["sections"][1]
    load(files)

    assert load(files) == []


def test_an_empty_list_removes_all_of_its_kind(files: Files, load: Load) -> None:
    load(files)
    files["rules.yaml"]["rules"] = []

    load(files)

    assert history.snapshot_now(castle()).rules == ()
    assert Rule.objects.count() == 2


def test_sources_are_never_removed(files: Files, load: Load) -> None:
    load(files)
    files["sheet.yaml"]["sources"] = []
    for section in files["sheet.yaml"]["sections"]:
        section["citations"] = []

    load(files)

    assert Source.objects.present().count() == 2
    assert not Citation.objects.present().exists()


# ---- citations ----


def test_a_citation_keeps_its_row_when_another_is_put_before_it(files: Files, load: Load) -> None:
    load(files)
    rows = {c.claims: c.pk for c in Citation.objects.filter(section__key="hours")}
    files["sheet.yaml"]["sections"][0]["citations"].insert(
        0, {"source": "leaflet", "locator": "cover", "claims": "name"}
    )

    changes = said(load(files))

    now = Citation.objects.filter(section__key="hours").order_by("position")
    assert [c.claims for c in now] == ["name", "opening", "closing"]
    assert {c.claims: c.pk for c in now if c.claims in rows} == rows
    assert sorted(verb for verb, _, _ in changes) == ["added", "moved", "moved"]


def test_a_citation_whose_claims_are_reworded_keeps_its_row_by_position(
    files: Files, load: Load
) -> None:
    load(files)
    row = Citation.objects.get(claims="opening")
    files["sheet.yaml"]["sections"][0]["citations"][0]["claims"] = "when it opens"

    load(files)

    row.refresh_from_db()
    assert (row.claims, row.removed_at) == ("when it opens", None)
    assert Citation.objects.filter(section__key="hours").count() == 2


def test_citations_that_change_places_are_moved_and_not_rewritten(files: Files, load: Load) -> None:
    load(files)
    files["sheet.yaml"]["sections"][0]["citations"].reverse()

    assert [verb for verb, _, _ in said(load(files))] == ["moved", "moved"]


def test_citations_that_change_places_are_moved_whatever_form_their_text_has(
    files: Files, load: Load
) -> None:
    first, second = files["sheet.yaml"]["sections"][0]["citations"]
    first["claims"], second["claims"] = "opening, cafe\u0301", "closing,\nall days\n"
    load(files)
    files["sheet.yaml"]["sections"][0]["citations"].reverse()

    assert [verb for verb, _, _ in said(load(files))] == ["moved", "moved"]


def test_a_citation_that_was_removed_comes_back_as_the_same_row(files: Files, load: Load) -> None:
    load(files)
    row = Citation.objects.get(claims="closing")
    shorter = deepcopy(files)
    del shorter["sheet.yaml"]["sections"][0]["citations"][1]
    load(shorter)

    load(files)

    row.refresh_from_db()
    assert row.removed_at is None
    assert Citation.objects.count() == 3


def test_the_same_source_may_be_cited_twice_with_the_same_words(files: Files, load: Load) -> None:
    twice = files["sheet.yaml"]["sections"][0]["citations"]
    twice.append(dict(twice[0]))
    load(files)
    before = everything()

    load(files)

    assert [len(s.citations) for s in history.snapshot_now(castle()).sections] == [3, 0, 1]
    assert everything() == before


# ---- moves ----


def test_sections_that_change_places_get_rows_for_their_position_alone(
    files: Files, load: Load
) -> None:
    load(files)
    sections = files["sheet.yaml"]["sections"]
    sections[1], sections[2] = sections[2], sections[1]

    changes = load(files)

    assert changes == [
        Change("section", "dogs", "moved", ("position",)),
        Change("section", "way", "moved", ("position",)),
    ]
    assert [s.key for s in history.snapshot_now(castle()).sections] == ["hours", "dogs", "way"]
    assert {s.key: s.history.count() for s in Section.objects.all()} == {
        "hours": 1,
        "dogs": 2,
        "way": 2,
    }
    assert ChangeSet.objects.count() == 2


# ---- checks ----


def test_a_stated_date_makes_one_imported_check_with_an_item_for_each_citation(
    files: Files, load: Load
) -> None:
    load(files)

    check = Check.objects.get()
    items = CheckItem.objects.filter(of=check).order_by("id")

    assert (check.section.key, check.checked_on, check.method, check.outcome) == (
        "hours",
        date(2026, 5, 1),
        "imported",
        "confirmed",
    )
    assert (check.checked_by_name, check.recorded_at) == ("ben", LATER)
    assert [item.citation.claims for item in items] == ["opening", "closing"]


def test_another_date_makes_another_check(files: Files, load: Load) -> None:
    load(files)
    files["sheet.yaml"]["sections"][0]["checked_on"] = "2026-05-02"

    load(files)
    load(files)

    assert [c.checked_on.day for c in Check.objects.order_by("id")] == [1, 2]


@pytest.mark.parametrize(
    ("stated", "now"),
    [
        ("2026-06-02", datetime(2026, 6, 2, 12, 0, tzinfo=UTC)),
        # Half past midnight on the third where the organisation is.
        ("2026-06-03", datetime(2026, 6, 2, 23, 30, tzinfo=UTC)),
    ],
)
def test_a_check_may_be_of_the_day_of_the_import(
    files: Files, load: Load, stated: str, now: datetime
) -> None:
    files["sheet.yaml"]["sections"][0]["checked_on"] = stated

    load(files, now=now)

    assert Check.objects.get().checked_on.isoformat() == stated


def test_a_check_of_the_day_after_the_import_is_refused(files: Files, load: Load) -> None:
    files["sheet.yaml"]["sections"][0]["checked_on"] = "2026-06-03"

    with pytest.raises(Refused, match="2026-06-03 is still to come"):
        load(files, now=datetime(2026, 6, 2, 22, 30, tzinfo=UTC))

    assert not Sheet.objects.exists()


def test_an_edited_file_with_the_old_date_moves_no_check(files: Files, load: Load) -> None:
    load(files)
    before = list(Check.objects.values())
    files["sheet.yaml"]["sections"][0]["body"] = "It is closed."

    load(files)

    assert list(Check.objects.values()) == before


def exported_dates() -> list[str]:
    data = exchange.export_folder(castle())["sheet.yaml"]
    value: Any = yaml_files.read(data, name="sheet.yaml")
    return [section["checked_on"] for section in value["sections"]]


def test_the_export_writes_the_date_while_the_check_covers_the_text(
    files: Files, load: Load
) -> None:
    load(files)

    assert exported_dates() == ["2026-05-01", "", ""]


def test_the_export_writes_no_date_once_the_text_has_changed(files: Files, load: Load) -> None:
    load(files)
    section = Section.objects.get(key="hours")

    editing.change(section, by=factories.person(), reason="edit", now=LATER, body="Closed.")

    assert exported_dates() == ["", "", ""]


def test_a_change_of_white_space_alone_leaves_the_date(files: Files, load: Load) -> None:
    load(files)
    section = Section.objects.get(key="hours")

    editing.change(
        section,
        by=factories.person(),
        reason="edit",
        now=LATER,
        body="It opens at ten. It closes at five.",
    )

    assert exported_dates() == ["2026-05-01", "", ""]


def test_importing_a_file_without_a_date_ends_no_check(files: Files, load: Load) -> None:
    load(files)
    del files["sheet.yaml"]["sections"][0]["checked_on"]

    load(files)

    assert Check.objects.count() == 1
    assert exported_dates() == ["2026-05-01", "", ""]


# ---- sources, suites and names of others ----


def other(files: Files, **source: Any) -> Files:
    """Files of a second sheet that cites the leaflet too."""
    sheet = deepcopy(files["sheet.yaml"])
    sheet["sheet"]["slug"] = "tower"
    sheet["sources"][0] |= source
    return {"sheet.yaml": sheet}


def test_a_source_that_another_sheet_cites_is_shared_when_it_is_equal(
    files: Files, load: Load
) -> None:
    load(files)

    load(other(files))

    assert Source.objects.count() == 2
    assert Citation.objects.filter(source__key="leaflet").count() == 4


def test_a_source_that_another_sheet_cites_with_other_data_is_refused_with_both_named(
    files: Files, load: Load
) -> None:
    load(files)
    before = everything()

    with pytest.raises(ImportRefused) as refused:
        load(other(files, title="Another leaflet"))

    assert refused.value.sentence == (
        'sheet.yaml, source "leaflet": the sheet "castle" cites a source of that key with other '
        'data than "tower" brings; make them equal or use another key.'
    )
    assert everything() == before


def test_a_source_that_no_other_sheet_cites_any_more_may_change(files: Files, load: Load) -> None:
    load(files)
    uncited = deepcopy(files)
    for section in uncited["sheet.yaml"]["sections"]:
        section["citations"] = []
    load(uncited)

    load(other(files, title="Another leaflet"))

    assert Source.objects.get(key="leaflet").title == "Another leaflet"


def test_a_source_of_the_sheet_alone_changes_with_the_file(files: Files, load: Load) -> None:
    load(files)
    files["sheet.yaml"]["sources"][0]["title"] = "Another leaflet"

    assert load(files) == [Change("source", "leaflet", "changed", ("title",))]


def test_a_former_name_is_refused_with_both_named(files: Files, load: Load) -> None:
    load(files)
    editing.change(castle(), by=factories.person(), reason="renamed", now=LATER, slug="tower")
    before = everything()

    with pytest.raises(ImportRefused) as refused:
        load(files)

    assert refused.value.sentence == (
        '"castle" is a former name of the sheet "tower" and stays reserved; '
        "use the present name in the file, or another."
    )
    assert everything() == before


def test_files_about_different_sheets_are_refused(files: Files, load: Load) -> None:
    files["rules.yaml"]["sheet"] = "tower"

    with pytest.raises(ImportRefused) as refused:
        load(files)

    assert "sheet.yaml says 'castle'" in refused.value.sentence
    assert "rules.yaml says 'tower'" in refused.value.sentence
    assert not Sheet.objects.exists()


@pytest.mark.parametrize(
    ("file", "head", "what"),
    [
        ("probes.yaml", "suite", 'the suite "castle-safety"'),
        ("questions.yaml", "question_set", 'the question set "castle-frozen"'),
    ],
)
def test_what_belongs_to_another_sheet_is_refused_with_both_named(
    files: Files, load: Load, file: str, head: str, what: str
) -> None:
    load(files)
    before = everything()

    with pytest.raises(ImportRefused) as refused:
        load({**other(files), file: {**files[file], "sheet": "tower"}})

    assert f'{file}: {what} belongs to "castle" and not to "tower"' in refused.value.sentence
    assert everything() == before


def test_rules_for_a_sheet_that_does_not_exist_are_refused(files: Files, load: Load) -> None:
    with pytest.raises(
        ImportRefused, match=r'no sheet "castle", and the folder has no sheet\.yaml'
    ):
        load({"rules.yaml": files["rules.yaml"]})


def test_a_folder_without_any_of_the_files_is_refused(load: Load) -> None:
    with pytest.raises(ImportRefused, match=r"holds none of sheet\.yaml"):
        load({"notes.txt": b"nothing"})


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="is not a folder"):
        exchange.read_folder(tmp_path / "nowhere")


# ---- shared rule sets ----


@pytest.fixture
def house() -> RuleSet:
    """Rules that several sheets may use."""
    house = RuleSet(slug="house", title="House rules", shared=True)
    factories.save(house)
    factories.save(
        Rule(ruleset=house, key="polite", kind=Rule.Kind.PERSONA, text="Be polite.", position=0)
    )
    return house


def test_a_shared_rule_set_is_named_in_the_file_and_never_flattened(
    files: Files, load: Load, house: RuleSet
) -> None:
    files["rules.yaml"]["shared"] = ["house"]
    load(files)

    exported: Any = yaml_files.read(
        exchange.export_folder(castle())["rules.yaml"], name="rules.yaml"
    )

    assert exported["shared"] == ["house"]
    assert [rule["key"] for rule in exported["rules"]] == ["only", "brief"]
    assert [r.key for r in history.snapshot_now(castle()).rules] == ["polite", "only", "brief"]


def test_a_shared_rule_set_that_the_file_lacks_is_unlinked_and_comes_back(
    files: Files, load: Load, house: RuleSet
) -> None:
    with_house = deepcopy(files)
    with_house["rules.yaml"]["shared"] = ["house"]
    load(with_house)

    gone = [verb for verb, _, _ in said(load(files))]
    between = [rule.key for rule in history.snapshot_now(castle()).rules]
    back = [verb for verb, _, _ in said(load(with_house))]

    assert (gone, between, back) == (["removed"], ["only", "brief"], ["restored"])
    assert RuleSet.objects.present().filter(pk=house.pk).exists()


def test_a_shared_rule_set_that_does_not_exist_is_refused(files: Files, load: Load) -> None:
    files["rules.yaml"]["shared"] = ["house"]

    with pytest.raises(ImportRefused, match=r'rules\.yaml: there is no shared rule set "house"'):
        load(files)

    assert not Sheet.objects.exists()


def test_a_shared_rule_set_named_twice_is_refused_in_a_sentence(
    files: Files, load: Load, house: RuleSet
) -> None:
    files["rules.yaml"]["shared"] = ["house", "house"]

    with pytest.raises(Refused, match="house"):
        load(files)

    assert not Sheet.objects.exists()


def test_own_rules_that_were_unlinked_come_back(files: Files, load: Load) -> None:
    load(files)
    link = SheetRuleSet.objects.get()
    editing.remove(link, by=factories.person(), reason="not these", now=LATER)

    load(files)

    assert [rule.key for rule in history.snapshot_now(castle()).rules] == ["only", "brief"]


# ---- optional fields and further files ----


def test_what_is_not_the_default_survives_export_and_import(files: Files, load: Load) -> None:
    sheet = files["sheet.yaml"]
    sheet["sheet"]["language"] = "de"
    sheet["sources"][0] |= {"access": "On request.", "note": "Old.", "issued": "1999"}
    sheet["sections"][1] |= {"included": False, "note": "Later."}
    sheet["sections"][0]["citations"][0] |= {
        "quote": "Opens at ten",
        "role": "qualifies",
        "required": False,
    }
    files["rules.yaml"]["rules"][1]["enabled"] = False
    files["probes.yaml"]["suite"] |= {"repeats": 3, "pass_bar": 90}
    files["probes.yaml"]["probes"][0] |= {
        "severity": "scored",
        "active": False,
        "checks": [{"type": "refuses"}, {"type": "contains-any", "values": ["x"], "match": "word"}],
    }
    files["questions.yaml"]["questions"][1]["note"] = "Off topic."
    with taken_back():
        load(files)
        first = exchange.export_folder(castle())
        snapshot = history.snapshot_now(castle())

    load(dict(first))

    assert history.snapshot_now(castle()) == snapshot
    assert exchange.export_folder(castle()) == first
    assert snapshot.sections[1].included is False
    assert snapshot.sections[0].citations[0].role == "qualifies"
    assert snapshot.rules[1].enabled is False


@pytest.mark.parametrize(
    "checks",
    [
        [{"type": "contains-any", "values": ["ten"]}],
        [{"type": "contains-any", "values": ["ten"], "match": "word"}],
        [{"type": "not-contains", "values": ["x"], "match": "anywhere"}] * 2,
        [
            {"type": "not-contains", "values": ["x"], "match": "anywhere"},
            {"type": "contains-any", "values": ["ten"], "match": "anywhere"},
        ],
        [{"type": "answers"}, {"type": "not-contains", "values": ["x"], "match": "anywhere"}],
        [{"type": "contains-any", "values": ["re:ten "], "match": "anywhere"}],
    ],
)
def test_a_probe_made_by_hand_is_the_same_after_export_and_import(
    files: Files, load: Load, checks: list[dict[str, Any]]
) -> None:
    load(files)
    probe = Probe.objects.get(key="p-1")
    editing.change(probe, by=factories.person(), reason="by hand", now=LATER, checks=checks)

    changes = load(dict(exchange.export_folder(castle())))

    assert changes == []


def test_texts_that_are_hard_to_write_survive_export_and_import(files: Files, load: Load) -> None:
    body = (
        "yes\n\n- no: 12\n\n  indented\t\u2028 # not a comment\n\n'“\"\\ 🏰 שלום\n\n" + "long " * 60
    )
    files["sheet.yaml"]["sections"][0] |= {"body": body.strip(), "heading": "2026-01-01"}
    load(files)

    changes = load(dict(exchange.export_folder(castle())))

    assert changes == []
    assert Section.objects.get(key="hours").body == body.strip()


def test_further_suites_and_question_sets_have_files_of_their_own(files: Files, load: Load) -> None:
    more = deepcopy(files)
    more["probes.yaml"]["suite"]["slug"] = "more"
    more["questions.yaml"]["question_set"]["slug"] = "extra"
    files |= {
        "probes-more.yaml": more["probes.yaml"],
        "questions-extra.yaml": more["questions.yaml"],
    }
    load(files)

    exported = exchange.export_folder(castle())

    assert sorted(exported) == sorted(files)
    assert load(dict(exported)) == []
    assert [r.suite.slug for r in SuiteRequirement.objects.all()] == ["castle-safety"]


# ---- what is refused, and leaves everything as it was ----


def put(path: str, value: Any) -> Callable[[Files], None]:
    """Set a value deep in the files: names and places with dots between, the file first."""
    file, *steps = path.split("/")

    def change(files: Files) -> None:
        at = files[f"{file}.yaml"]
        *way, last = [int(step) if step.isdigit() else step for step in steps]
        for step in way:
            at = at[step]
        at[last] = value

    return change


def raw(file: str, data: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[f"{file}.yaml"] = data

    return change


def doubled(file: str, items: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[f"{file}.yaml"][items].append(deepcopy(files[f"{file}.yaml"][items][0]))

    return change


def many_large_sections(files: Files) -> None:
    files["sheet.yaml"]["sections"] += [
        {"key": f"s-{n}", "heading": "Large", "body": "x" * 20_000} for n in range(10)
    ]


HOURS = 'sheet.yaml, section "hours"'

BAD: dict[str, tuple[Callable[[Files], None], str]] = {
    "broken YAML": (raw("sheet", b"sheet: [\n"), "sheet.yaml, line 2: this is not YAML"),
    "not UTF-8": (raw("rules", b"sheet: caf\xe9\n"), "rules.yaml, line 1: this is not UTF-8"),
    "empty file": (raw("rules", b""), "rules.yaml: there is nothing in the file"),
    "no mapping": (raw("rules", b"- a\n"), "rules.yaml: there must be fields here"),
    "alias": (raw("rules", b"sheet: &a castle\nrules: *a\n"), "rules.yaml, line 1: anchors (&)"),
    "duplicate YAML key": (
        raw("rules", b"sheet: castle\nsheet: castle\n"),
        'rules.yaml, line 2: the key "sheet" stands here a second time',
    ),
    "file over 5 MB": (
        raw("sheet", b"# " + b"x" * 5 * 1024 * 1024),
        "sheet.yaml: the file is larger than 5 MB",
    ),
    "wrong type": (put("sheet/sections/0/body", 12), f'{HOURS}, field "body": must be text'),
    "flag in words": (
        put("sheet/sections/0/included", "yes"),
        f'{HOURS}, field "included": must be true or false',
    ),
    "list expected": (
        put("probes/probes/0/turns", "When?"),
        'probes.yaml, probe "p-1", field "turns": must be a list',
    ),
    "unknown key": (
        put("sheet/sections/0/headng", "x"),
        f'{HOURS}: "headng" is not known here; did you mean "heading"?',
    ),
    "unknown top key": (put("rules/rule", "x"), 'rules.yaml: "rule" is not known here'),
    "missing title": (
        put("sheet/sheet/title", ""),
        'sheet.yaml, sheet, field "title": is missing or empty',
    ),
    "unknown kind": (
        put("sheet/sources/0/kind", "rumour"),
        'sheet.yaml, source "leaflet", field "kind": "rumour" is not known here',
    ),
    "unknown must": (
        put("probes/probes/0/must", "obey"),
        'probes.yaml, probe "p-1", field "must": "obey" is not known here',
    ),
    "dangling citation": (
        put("sheet/sections/0/citations/0/source", "letter"),
        f'{HOURS}: cites the source "letter", which the file does not list',
    ),
    "oversize section": (
        put("sheet/sections/0/body", "x" * 20_001),
        f'{HOURS}, field "body": has 20001 characters; shorten it to 20000',
    ),
    "oversize sheet": (
        many_large_sections,
        "sheet.yaml: the sections have 200,071 characters together; shorten them to 200,000",
    ),
    "impossible date": (
        put("sheet/sections/0/checked_on", "2026-02-30"),
        f'{HOURS}, field "checked_on": must be a day of the calendar',
    ),
    "check to come": (
        put("sheet/sections/0/checked_on", "9999-12-31"),
        f'{HOURS}, field "checked_on": 9999-12-31 is still to come',
    ),
    "duplicate section": (
        doubled("sheet", "sections"),
        f'{HOURS}, field "key": stands twice in the file',
    ),
    "duplicate source": (
        doubled("sheet", "sources"),
        'sheet.yaml, source "leaflet", field "key": stands twice in the file',
    ),
    "duplicate rule": (
        doubled("rules", "rules"),
        'rules.yaml, rule "only", field "key": stands twice in the file',
    ),
    "duplicate probe": (
        doubled("probes", "probes"),
        'probes.yaml, probe "p-1", field "key": stands twice in the file',
    ),
    "duplicate question": (
        doubled("questions", "questions"),
        'questions.yaml, question "q-1", field "key": stands twice in the file',
    ),
    "unknown section": (
        put("questions/questions/0/sections", ["hours", "cellar"]),
        'questions.yaml, question "q-1": the sheet has no section "cellar"',
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_a_sentence_with_its_place_and_changes_nothing(
    files: Files, load: Load, case: str
) -> None:
    spoil, sentence = BAD[case]
    load(files)
    before = everything()
    spoil(files)

    with pytest.raises((FileRefused, ImportRefused)) as refused:
        load(files)

    assert refused.value.sentence.startswith(sentence)
    assert refused.value.sentence.endswith(".")
    assert everything() == before


#: What only the rows themselves can tell.
BAD_ROWS: dict[str, tuple[Callable[[Files], None], tuple[str, ...]]] = {
    "javascript address": (
        put("sheet/sources/1/url", "javascript:alert(1)"),
        ("sheet.yaml", "sign", "url", "Give an address that begins with http:// or https://."),
    ),
    "bad key": (put("sheet/sections/1/key", "the way"), ("sheet.yaml", "the way", "key")),
    "bad language": (
        put("sheet/sheet/language", "English"),
        ("sheet.yaml", "castle", "language", "Give a language tag"),
    ),
    "long rule": (put("rules/rules/0/text", "x" * 5_001), ("rules.yaml", "only", "text")),
    "probe without a check": (
        put("probes/probes/1/must_not_contain", []),
        ("probes.yaml", "p-2", "A probe without a check would always pass"),
    ),
    "broken pattern": (
        put("probes/probes/1/must_not_contain", ["re:(king"]),
        ("probes.yaml", "p-2", "cannot be read"),
    ),
    "question in scope without a section": (
        put("questions/questions/0/sections", []),
        ("questions.yaml", "q-1", "sections", "Name the sections that answer it"),
    ),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_value_that_breaks_the_rules_of_its_row_is_refused_and_changes_nothing(
    files: Files, load: Load, case: str
) -> None:
    spoil, (_file, *parts) = BAD_ROWS[case]
    load(files)
    before = everything()
    spoil(files)

    with pytest.raises(Refused) as refused:
        load(files)

    assert all(part in refused.value.sentence for part in parts)
    assert everything() == before


@pytest.mark.parametrize("case", BAD_ROWS)
def test_the_refusal_of_a_value_names_its_file(files: Files, load: Load, case: str) -> None:
    spoil, (file, *_parts) = BAD_ROWS[case]
    spoil(files)

    with pytest.raises(Refused) as refused:
        load(files)

    assert refused.value.sentence.startswith(file)


def test_the_largest_sections_and_sheet_are_taken(files: Files, load: Load) -> None:
    files["sheet.yaml"]["sections"] = [
        {"key": f"s-{n}", "heading": "Large", "body": "x" * 20_000} for n in range(10)
    ]
    del files["questions.yaml"]

    load(files)

    assert sum(len(s.body) for s in castle().sections.all()) == 200_000


@pytest.mark.parametrize("file", ["sheet", "rules", "probes", "questions"])
def test_a_key_with_blanks_around_it_is_the_key_without_them(
    files: Files, load: Load, file: str
) -> None:
    load(files)
    before = everything()
    items = {"sheet": "sections", "rules": "rules", "probes": "probes", "questions": "questions"}
    put(f"{file}/{items[file]}/1/key", f" {FILES[f'{file}.yaml'][items[file]][1]['key']} ")(files)

    changes = load(files)

    assert changes == []
    assert everything() == before


@pytest.mark.parametrize(
    "paths",
    [
        ("sheet/sheet/slug", "rules/sheet", "probes/sheet", "questions/sheet"),
        ("probes/suite/slug",),
        ("questions/question_set/slug",),
    ],
)
def test_a_slug_with_blanks_around_it_is_the_slug_without_them(
    files: Files, load: Load, paths: tuple[str, ...]
) -> None:
    load(files)
    before = everything()
    slugs = {"suite": "castle-safety", "question_set": "castle-frozen"}
    for path in paths:
        put(path, f" {slugs.get(path.split('/')[1], 'castle')} ")(files)

    changes = load(files)

    assert changes == []
    assert everything() == before


def test_an_import_inside_another_change_joins_it(files: Files, load: Load) -> None:
    with change_set(by=factories.person(), reason="outer", now=NOON):
        load(files)

    assert ChangeSet.objects.get().reason == "outer"
