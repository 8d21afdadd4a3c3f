"""Which sections want checking, why, and who sees to them: rows, files and the command."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.core.management import call_command

from evals import exchange
from factsheets import checking, editing, stale_report, stale_report_files
from factsheets.models import Citation, ReviewInterval, ReviewPlan, Section, Sheet, Source
from factsheets.stale_report import Filter, Row
from tests import factories

pytestmark = pytest.mark.django_db

TODAY = date(2026, 11, 30)
IN_HALF_A_YEAR = date(2027, 6, 1)

CASTLE, CAFE = "colchester-castle", "example-castle-cafe"


@pytest.fixture
def demo() -> None:
    """Both demo sheets, imported on 30 November 2026; neither is live."""
    for name in ("castle", "cafe"):
        folder = exchange.read_folder(factories.DEMO / name)
        exchange.import_folder(
            folder,
            by=factories.person(),
            reason="demo",
            now=datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
        )


def report(today: date = TODAY, **wanted: str) -> list[Row]:
    takes = Filter(**wanted).takes
    return [row for row in stale_report.rows(Sheet.objects.present(), today=today) if takes(row)]


def in_short(rows: list[Row]) -> list[tuple[str, str, str, str]]:
    """State, section, checked on, due by."""
    return [(r.state, r.section, str(r.checked_on), str(r.due_on)) for r in rows]


# ---- the demo sheets ----
#
# Worked out by hand from sheet.yaml of castle and cafe: the section's `checked_on`
# plus the shortest interval among the kinds of the sources that it cites.
#
# Café: every source is of our own policy, which holds 12 months.
#   shop-returns cites nothing and has no date; allergens cites one source and has no date.
#   hot-food-times was checked on 30 September 2025: due by 30 September 2026,
#   61 days before 30 November 2026 (31 + 30) and 244 days before 1 June 2027.
#   All others were checked on 15 November 2026: due by 15 November 2027, soon from 16 October.
# Castle: every section was checked on 29 November 2026.
#   claudius-invasion cites narratives (36 months) and articles (24): due by 29 November 2028.
#   Each other section cites a page of a museum, a site or a government (3 months): due by
#   28 February 2027, for there is no 29th; soon from 13 February (91 // 6 = 15 days before),
#   and 93 days late on 1 June 2027 (31 + 30 + 31 + 1).

OF_THE_CASTLE_BY_FEBRUARY = [
    "what-and-where",
    "temple-of-claudius",
    "boudica-revolt",
    "norman-builders",
    "size-and-plan",
    "building-materials",
    "entrance-stair-well",
    "bailey-chapel",
    "king-john-sieges",
    "county-gaol",
    "witch-hunt-1645",
    "civil-war-1648",
    "demolition-and-gray",
    "museum-and-collections",
]
OF_THE_CAFE_AT_REST = [
    "about-the-cafe",
    "opening-hours",
    "cakes-and-scones",
    "prices",
    "group-discount",
    "table-bookings",
    "gift-vouchers",
    "access-children-dogs",
    "feedback-lost-property",
]
WANTING = [
    ("unsourced", "shop-returns", "None", "None"),
    ("never-checked", "allergens", "None", "None"),
    ("overdue", "hot-food-times", "2025-09-30", "2026-09-30"),
]
LATE_BY_JUNE = [
    ("overdue", section, "2026-11-29", "2027-02-28") for section in OF_THE_CASTLE_BY_FEBRUARY
]
INVASION = ("fresh", "claudius-invasion", "2026-11-29", "2028-11-29")
CAFE_AT_REST = [("fresh", section, "2026-11-15", "2027-11-15") for section in OF_THE_CAFE_AT_REST]


def test_today_three_sections_of_the_cafe_want_checking(demo: None) -> None:
    rows = report(TODAY)

    assert in_short(rows) == WANTING
    assert {row.sheet for row in rows} == {CAFE}
    assert [row.days_overdue for row in rows] == [0, 0, 61]


def test_today_all_others_are_fresh_and_each_section_stands_once(demo: None) -> None:
    rows = report(TODAY, state="all")

    of_the_castle = [
        ("fresh", section, "2026-11-29", "2027-02-28") for section in OF_THE_CASTLE_BY_FEBRUARY
    ]
    assert in_short(rows) == [*WANTING, *of_the_castle, *CAFE_AT_REST, INVASION]


def test_in_half_a_year_the_castle_is_late_too(demo: None) -> None:
    rows = report(IN_HALF_A_YEAR)

    assert in_short(rows) == [*WANTING, *LATE_BY_JUNE]
    assert [row.days_overdue for row in rows] == [0, 0, 244, *[93] * 14]
    assert in_short(report(IN_HALF_A_YEAR, state="fresh")) == [*CAFE_AT_REST, INVASION]


@pytest.mark.parametrize(
    ("day", "state"),
    [
        (date(2027, 2, 12), "fresh"),
        (date(2027, 2, 13), "due-soon"),
        (date(2027, 2, 28), "due-soon"),
        (date(2027, 3, 1), "overdue"),
    ],
)
def test_the_last_good_day_is_good_and_a_sixth_before_it_is_soon(
    demo: None, day: date, state: str
) -> None:
    found = {row.state for row in report(day, state="all") if row.due_on == date(2027, 2, 28)}

    assert found == {state}


def test_every_row_says_why_and_the_first_reason_is_its_state(demo: None) -> None:
    reasons = {
        row.section: [(r.code, r.sentence) for r in row.reasons] for row in report(IN_HALF_A_YEAR)
    }

    assert reasons["shop-returns"] == [
        ("unsourced", "No source is cited that supports it."),
        ("never-checked", "Nobody has confirmed it with a source that it cites."),
    ]
    assert reasons["allergens"] == [
        ("never-checked", "Nobody has confirmed it with a source that it cites.")
    ]
    assert reasons["hot-food-times"] == [
        ("overdue", "The check was due by 30 September 2026, 244 days ago.")
    ]
    assert reasons["witch-hunt-1645"] == [
        ("overdue", "The check was due by 28 February 2027, 93 days ago.")
    ]


def test_a_row_names_the_kinds_of_its_sources_once(demo: None) -> None:
    kinds = {row.section: row.kinds for row in report(TODAY, state="all")}

    assert kinds["norman-builders"] == (
        "reference-history",
        "scholarly-book-or-article",
        "official-list-entry",
        "government-page",
        "museum-or-site-page",
    )
    assert kinds["shop-returns"] == ()


# ---- what is judged ----


@pytest.fixture
def live() -> Sheet:
    """A live sheet: its section was checked on 1 June 2026 with a policy of our own."""
    return factories.published_sheet()


def test_of_a_live_sheet_the_live_text_is_judged_and_its_edited_draft_is_not(live: Sheet) -> None:
    section = live.sections.get()
    editing.change(
        section,
        by=factories.person(),
        reason="new",
        now=factories.LATER,
        heading="New hours",
        body="The castle opens at eleven.",
    )

    (row,) = report(date(2026, 6, 3), state="all")

    assert (row.text, row.state, row.heading) == ("live", "fresh", "Opening hours")


def test_of_a_sheet_with_nothing_live_the_edited_draft_is_judged() -> None:
    section = factories.ready_sheet().sections.get()
    editing.change(
        section, by=factories.person(), reason="new", now=factories.LATER, body="At eleven."
    )

    (row,) = report(date(2026, 6, 3))

    assert (row.text, row.state) == ("draft", "edited-since-check")


def test_a_section_added_to_a_live_sheet_is_not_judged_before_it_is_live(live: Sheet) -> None:
    factories.section(live, "tower", heading="Tower")

    assert [row.section for row in report(date(2026, 6, 3), state="all")] == ["hours"]


def test_a_section_taken_out_of_the_draft_is_judged_as_long_as_it_is_live(live: Sheet) -> None:
    editing.remove(live.sections.get(), by=factories.person(), reason="out", now=factories.LATER)

    assert in_short(report(date(2027, 6, 2))) == [("overdue", "hours", "2026-06-01", "2027-06-01")]


def test_what_is_kept_from_bots_is_at_rest_and_found_as_retired() -> None:
    factories.section(factories.sheet(), included=False)

    assert report(TODAY) == []
    assert [row.state for row in report(TODAY, state="retired")] == ["retired"]


def test_a_section_taken_out_of_a_draft_is_left_out() -> None:
    section = factories.section(factories.sheet())
    editing.remove(section, by=factories.person(), reason="out", now=factories.LATER)

    assert report(TODAY, state="all") == []


def test_archived_sheets_are_left_out(demo: None) -> None:
    editing.archive_sheet(
        Sheet.objects.get(slug=CAFE),
        by=factories.person(),
        reason="shut",
        now=datetime(2026, 12, 1, 12, 0, tzinfo=UTC),
    )

    assert {row.sheet for row in report(TODAY, state="all")} == {CASTLE}


def test_only_the_sheets_asked_for_are_in_the_report(demo: None) -> None:
    rows = stale_report.rows(Sheet.objects.filter(slug=CASTLE), today=IN_HALF_A_YEAR)

    assert {row.sheet for row in rows} == {CASTLE}


def test_an_interval_of_the_house_counts_instead_of_the_default(demo: None) -> None:
    factories.save(ReviewInterval(kind=Source.Kind.OWN_POLICY, interval="14 days"))

    due = {row.section: row.due_on for row in report(TODAY, state="all") if row.sheet == CAFE}

    assert due["prices"] == date(2026, 11, 29)


def test_an_interval_that_leads_beyond_the_calendar_breaks_nothing(live: Sheet) -> None:
    factories.save(ReviewInterval(kind=Source.Kind.OWN_POLICY, interval="9999 years"))

    (row,) = report(TODAY, state="all")

    assert (row.state, row.due_on) == ("fresh", date.max)


# ---- who sees to it ----


def plan(of: Sheet, **values: Any) -> None:
    factories.save(ReviewPlan(sheet=of, **values))


def gone(name: str) -> Any:
    person = factories.person(name)
    person.is_active = False
    person.save()
    return person


@pytest.fixture
def castle() -> Sheet:
    """Two sections that nobody has checked."""
    of = factories.sheet()
    factories.section(of, "hours", source=factories.source())
    factories.section(of, "tower", heading="Tower")
    return of


def owners() -> dict[str, tuple[str, str]]:
    return {row.section: (row.owner, row.stands_in_for) for row in report(TODAY)}


def test_without_a_plan_nobody_sees_to_it(castle: Sheet) -> None:
    assert owners() == {"hours": ("", ""), "tower": ("", "")}


def test_the_plan_of_a_section_goes_before_that_of_its_sheet(castle: Sheet) -> None:
    plan(castle, owner=factories.person("olga"))
    plan(castle, section=castle.sections.get(key="tower"), owner=factories.person("tom"))

    assert owners() == {"hours": ("olga", ""), "tower": ("tom", "")}


def test_a_plan_of_a_section_without_anybody_leaves_it_to_the_sheets(castle: Sheet) -> None:
    plan(castle, owner=factories.person("olga"))
    plan(castle, section=castle.sections.get(key="tower"), interval="1 month")

    assert owners()["tower"] == ("olga", "")


def test_the_fallback_stands_in_for_an_owner_who_has_left(castle: Sheet) -> None:
    plan(castle, owner=gone("olga"), fallback=factories.person("fred"))

    assert owners()["hours"] == ("fred", "olga")


def test_the_sheets_owner_stands_in_where_everybody_of_the_section_has_left(castle: Sheet) -> None:
    plan(castle, owner=factories.person("olga"))
    plan(
        castle,
        section=castle.sections.get(key="tower"),
        owner=gone("tom"),
        fallback=gone("fred"),
    )

    assert owners()["tower"] == ("olga", "tom")


def test_where_everybody_has_left_nobody_sees_to_it_and_the_row_says_who_did(
    castle: Sheet,
) -> None:
    plan(castle, owner=gone("olga"), fallback=gone("fred"))

    assert owners()["hours"] == ("", "olga")


def test_a_plan_out_of_use_names_nobody(castle: Sheet) -> None:
    plan(castle, owner=factories.person("olga"))
    editing.remove(
        ReviewPlan.objects.get(), by=factories.person(), reason="out", now=factories.LATER
    )

    assert owners()["hours"] == ("", "")


def test_a_new_owner_moves_no_date(live: Sheet) -> None:
    before = in_short(report(TODAY, state="all"))

    plan(live, owner=factories.person("olga"))

    assert in_short(report(TODAY, state="all")) == before


# ---- filters ----


@pytest.fixture
def owned(demo: None) -> None:
    """Olga sees to the castle, but for one section; nobody to the café."""
    sheet = Sheet.objects.get(slug=CASTLE)
    plan(sheet, owner=factories.person("olga"))
    plan(sheet, section=sheet.sections.get(key="county-gaol"), owner=factories.person("tom"))


@pytest.mark.parametrize(
    ("wanted", "sections"),
    [
        ({"state": "unsourced"}, ["shop-returns"]),
        ({"state": "never-checked"}, ["allergens"]),
        ({"state": "disputed"}, []),
        ({"sheet": CAFE}, ["shop-returns", "allergens", "hot-food-times"]),
        ({"owner": "-"}, ["shop-returns", "allergens", "hot-food-times"]),
        ({"owner": "tom"}, ["county-gaol"]),
        ({"owner": "tom", "sheet": CAFE}, []),
        ({"kind": "own-policy"}, ["allergens", "hot-food-times"]),
        ({"kind": "primary-narrative"}, ["boudica-revolt", "museum-and-collections"]),
        ({"kind": "primary-narrative", "state": "fresh"}, ["claudius-invasion"]),
        ({"kind": "law-or-regulation"}, []),
    ],
)
def test_a_filter_leaves_in_what_it_says(
    owned: None, wanted: dict[str, str], sections: list[str]
) -> None:
    assert [row.section for row in report(IN_HALF_A_YEAR, **wanted)] == sections


# ---- order ----


def test_rows_are_ordered_by_state_then_day_then_sheet_then_reading_order() -> None:
    """Two sheets, A and B; of each a section due early, one due late, and one never checked."""
    for title in ("B", "A"):
        sheet = factories.sheet(f"sheet-{title.lower()}", title=title)
        cited = factories.source(f"of-{title.lower()}")
        for key, checked_on in (
            ("late", date(2026, 3, 1)),
            ("never", None),
            ("early", date(2025, 3, 1)),
            ("early-too", date(2025, 3, 1)),
        ):
            section = factories.section(sheet, key, body=f"{title} {key}.", source=cited)
            checked(section, checked_on)

    rows = [(row.sheet_title, row.section) for row in report(IN_HALF_A_YEAR)]

    assert rows == [
        ("A", "never"),
        ("B", "never"),
        ("A", "early"),
        ("A", "early-too"),
        ("B", "early"),
        ("B", "early-too"),
        ("A", "late"),
        ("B", "late"),
    ]


def checked(section: Section, *days: date | None) -> None:
    """A check as an import states it, on each day given."""
    for day in filter(None, days):
        checking.record_imported(
            section=section,
            citations=section.citations.all(),
            checked_on=day,
            by=factories.person(),
            now=factories.NOON,
        )


# ---- cost ----


def add_sections(of: Sheet, number: int) -> None:
    cited = Source.objects.filter(key="leaflet").first() or factories.source()
    for n in range(number):
        section = factories.section(of, f"s{n}", heading=f"Section {n}", source=cited)
        checked(section, date(2026, 5, 1))


@pytest.mark.parametrize(("sheets", "sections"), [(1, 2), (1, 40), (6, 2)])
def test_the_report_asks_the_database_as_often_for_many_as_for_few(
    sheets: int, sections: int, django_assert_num_queries: Any
) -> None:
    for number in range(sheets):
        of = factories.sheet(f"sheet-{number}")
        add_sections(of, sections)
        plan(of, owner=factories.person("olga"))

    # Sheets, sections, plans; citations, checks, their items, plans again, intervals.
    with django_assert_num_queries(7):
        rows = report(TODAY, state="all")

    assert len(rows) == sheets * sections


# ---- files and the command ----


def run(*arguments: str) -> tuple[int, str, str]:
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command("stale_report", *arguments, stdout=out, stderr=err)
    except SystemExit as end:
        code = int(str(end.code))
    return code, out.getvalue(), err.getvalue()


def from_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def test_json_and_csv_have_the_same_rows_under_the_same_names(owned: None) -> None:
    rows = report(IN_HALF_A_YEAR)

    document = json.loads(stale_report_files.as_json(rows, today=IN_HALF_A_YEAR))
    lines = from_csv(stale_report_files.as_csv(rows))

    assert document["on"] == "2027-06-01"
    assert len(document["rows"]) == len(lines) == 17
    for plain, line in zip(document["rows"], lines, strict=True):
        words = {
            **plain,
            "reasons": " ".join(reason["sentence"] for reason in plain["reasons"]),
            "kinds": "; ".join(plain["kinds"]),
            "days_overdue": str(plain["days_overdue"]),
        }
        assert {name: value or "" for name, value in words.items()} == line


def test_csv_begins_with_the_mark_of_its_encoding_and_has_iso_dates(demo: None) -> None:
    text = stale_report_files.as_csv(report(TODAY))

    assert text.startswith("\ufeffsheet,section,heading,text,state,reasons,checked_on,due_on,")
    assert "2025-09-30,2026-09-30,61" in text


@pytest.mark.parametrize("begins", ["=", "+", "-", "@"])
def test_no_cell_of_the_csv_is_a_formula_and_json_stays_as_it_is(begins: str) -> None:
    heading = f"{begins}HYPERLINK(1)"
    sheet = factories.sheet()
    factories.section(sheet, heading=heading)
    plan(sheet, owner=factories.person(f"{begins}olga"))

    rows = report(TODAY)
    (line,) = from_csv(stale_report_files.as_csv(rows))
    (plain,) = json.loads(stale_report_files.as_json(rows, today=TODAY))["rows"]

    assert (line["heading"], line["owner"]) == (f"'{heading}", f"'{begins}olga")
    assert (plain["heading"], plain["owner"]) == (heading, f"{begins}olga")


def test_the_command_prints_the_same_rows_in_every_form(owned: None) -> None:
    rows = report(IN_HALF_A_YEAR)
    on = ("--on", "2027-06-01")

    table, as_csv, as_json = (run("--format", form, *on) for form in ("table", "csv", "json"))

    assert (table[0], as_csv[0], as_json[0]) == (0, 0, 0)
    assert as_csv[1] == stale_report_files.as_csv(rows)
    assert as_json[1] == stale_report_files.as_json(rows, today=IN_HALF_A_YEAR) + "\n"
    named = [line.split()[1] for line in table[1].splitlines() if line[:1] not in {" ", "2"}]
    assert named == [f"{row.sheet}/{row.section}" for row in rows]
    assert table[1].endswith("2027-06-01: 17 of 27 sections.\n")


def test_the_table_says_who_sees_to_it_and_every_reason(owned: None) -> None:
    _, out, _ = run("--on", "2027-06-01")

    assert "unsourced           example-castle-cafe/shop-returns  (nobody)\n" in out
    assert "overdue             colchester-castle/county-gaol  (tom)\n" in out
    assert "No source is cited that supports it.\n" in out


def test_the_command_takes_one_sheet_or_one_state(demo: None) -> None:
    _, of_the_castle, _ = run("--on", "2027-06-01", "--sheet", CASTLE)
    _, fresh, _ = run("--on", "2027-06-01", "--state", "fresh", "--sheet", CASTLE)

    assert "14 of 27 sections" in of_the_castle
    assert CAFE not in of_the_castle
    assert "1 of 27 sections" in fresh
    assert "claudius-invasion" in fresh


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--on", "yesterday"), "'yesterday' is no day; write it as 2027-06-01."),
        (("--on", "2027-02-30"), "'2027-02-30' is no day; write it as 2027-06-01."),
        (("--sheet", "nowhere"), "There is no sheet 'nowhere'; there are: castle."),
        (("--state", "stale"), "There is no state 'stale'; there are: all, retired, disputed,"),
    ],
)
def test_the_command_refuses_what_it_cannot_work_with(
    castle: Sheet, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert err.startswith(f"error: {words}")


def test_a_report_with_nothing_in_it_is_a_success() -> None:
    assert run("--on", "2026-11-30") == (0, "2026-11-30: 0 of 0 sections.\n", "")


def test_citations_out_of_use_lend_no_kind_and_no_interval(live: Sheet) -> None:
    section = live.sections.get()
    page = factories.source("page", kind=Source.Kind.MUSEUM_OR_SITE_PAGE)
    citation = Citation(section=section, source=page, locator="home")
    factories.save(citation)
    editing.remove(citation, by=factories.person(), reason="out", now=factories.LATER)

    (row,) = report(TODAY, state="all")

    assert (row.kinds, row.due_on) == (("own-policy",), date(2027, 6, 1))
