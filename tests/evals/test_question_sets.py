"""Question sets: frozen at the first run, every run kept, and a text that loses questions is named."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from evals import exchange, question_sets, tasks
from evals.models import Question, QuestionSet, RetrievalReport
from factsheets import canonical, editing, history, publishing, yaml_files
from factsheets.bot import baselines, retrieval
from factsheets.errors import Refused
from factsheets.exchange import ImportRefused
from factsheets.gate import Finding
from factsheets.models import Publication, Section, Sheet
from factsheets.models.guarding import PastTheGate
from factsheets.models.tracking import NotValid
from tests import factories
from tests.factories import LATER, NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.fixture
def live() -> Sheet:
    """A sheet with publication 1 live, and a section beside the opening hours."""
    of = factories.ready_sheet()
    factories.section(
        of, "moat", heading="The moat", question="", body="The moat is dry and full of grass."
    )
    factories.passing_run(of)
    factories.publish(of)
    return _fresh(of)


@pytest.fixture
def visitors(live: Sheet) -> QuestionSet:
    return factories.question_set(live)


def _fresh(sheet: Sheet) -> Sheet:
    return Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)


def run(of: QuestionSet, publication: Publication | None = None, **how: Any) -> RetrievalReport:
    fresh = QuestionSet.objects.select_related("sheet__bot").get(pk=of.pk)
    return question_sets.run(fresh, publication, **{"by": factories.person(), "now": LATER, **how})


def change(row: Any, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=LATER, **values)


def publish(sheet: Sheet) -> Publication:
    factories.passing_run(sheet, now=LATER)
    return factories.publish(sheet, now=LATER)


def closing(of: QuestionSet) -> Question:
    return of.questions.get(key="closing")


# ---- freezing ----


def test_the_first_run_freezes_the_set(visitors: QuestionSet) -> None:
    report = run(visitors)

    visitors.refresh_from_db()
    assert visitors.frozen_at == LATER
    assert (
        visitors.frozen_hash
        == report.frozen_hash
        == question_sets.hash_of(visitors.questions.all())
    )


def test_the_hash_is_of_the_canonical_form_of_the_questions(visitors: QuestionSet) -> None:
    common = {"expected": "", "facts": [], "part": "dev"}
    closing, opera = (
        {
            "key": "closing",
            "question": "Does it close at five?",
            "scope": "in",
            "sections": ["hours"],
            "trap": "",
            **common,
        },
        {
            "key": "opera",
            "question": "Who wrote this opera?",
            "scope": "out",
            "sections": [],
            "trap": "plain",
            **common,
        },
    )

    assert question_sets.freeze(
        visitors, by=factories.person(), now=NOON
    ).frozen_hash == canonical.sha256(canonical.canonical_json([closing, opera]))


def test_a_frozen_set_is_not_frozen_again(visitors: QuestionSet) -> None:
    first = question_sets.freeze(visitors, by=factories.person(), now=NOON)

    again = question_sets.freeze(visitors, by=factories.person(), now=LATER)

    assert again.frozen_at == first.frozen_at == NOON


CHANGES: list[dict[str, object]] = [
    {"question": "When does it close?"},
    {"sections": ["moat"]},
    {"expected": "At five."},
    {"facts": [["five"]]},
    {"part": "held-back"},
    {"key": "closes"},
    {"removed_at": LATER},
]


@pytest.mark.parametrize("values", CHANGES, ids=lambda values: next(iter(values)))
def test_a_question_of_a_frozen_set_does_not_change(
    visitors: QuestionSet, values: dict[str, object]
) -> None:
    run(visitors)

    with pytest.raises(NotValid, match="copy it under a new name"):
        change(closing(visitors), **values)


@pytest.mark.parametrize("values", CHANGES, ids=lambda values: next(iter(values)))
def test_the_same_question_changes_before(visitors: QuestionSet, values: dict[str, object]) -> None:
    change(closing(visitors), **values)

    changed = visitors.questions.get(pk=visitors.questions.earliest("pk").pk)
    assert {name: getattr(changed, name) for name in values} == values


def test_notes_and_order_may_change_later(visitors: QuestionSet) -> None:
    run(visitors)

    change(closing(visitors), note="Asked at the gate.", position=7)

    assert run(visitors).pk


def test_no_question_joins_a_frozen_set_nor_leaves_it(visitors: QuestionSet, live: Sheet) -> None:
    other = QuestionSet(slug="other", title="Other", sheet=live)
    factories.save(other)
    elsewhere = factories.question(other, "why")
    run(visitors)

    with pytest.raises(NotValid, match="frozen"):
        factories.question(visitors, "new")
    with pytest.raises(NotValid, match="frozen"):
        change(elsewhere, question_set=visitors)
    with pytest.raises(NotValid, match="frozen"):
        change(closing(visitors), question_set=other)


@pytest.mark.parametrize("values", [{"frozen_at": None}, {"frozen_hash": "0" * 64}])
def test_a_frozen_set_stays_frozen(visitors: QuestionSet, values: dict[str, object]) -> None:
    run(visitors)
    visitors.refresh_from_db()

    with pytest.raises(NotValid, match="frozen"):
        change(visitors, **values)


def test_a_frozen_set_may_be_called_otherwise(visitors: QuestionSet) -> None:
    run(visitors)
    visitors.refresh_from_db()

    change(visitors, title="What guests ask")

    assert run(visitors).pk


def test_a_copy_is_free_to_be_changed(visitors: QuestionSet) -> None:
    run(visitors)

    made = question_sets.copy(visitors, slug="more", title="More", by=factories.person(), now=LATER)
    change(closing(made), question="When does it close?")

    assert made.frozen_at is None
    assert made.questions.count() == visitors.questions.count() == 2
    assert closing(visitors).question == "Does it close at five?"


def test_a_copy_takes_no_name_that_is_in_use(visitors: QuestionSet) -> None:
    with pytest.raises(question_sets.NameInUse):
        question_sets.copy(
            visitors, slug="visitors", title="Again", by=factories.person(), now=LATER
        )


def test_a_set_without_questions_measures_nothing(live: Sheet) -> None:
    empty = QuestionSet(slug="empty", title="Empty", sheet=live)
    factories.save(empty)

    with pytest.raises(question_sets.NoQuestions):
        run(empty)


def test_a_set_that_was_altered_past_the_product_is_found(visitors: QuestionSet) -> None:
    run(visitors)
    QuerySet(Question).filter(key="closing").update(question="Easy?")

    with pytest.raises(question_sets.SetAltered):
        run(visitors)


@pytest.mark.parametrize(
    "values", [{"sections": "hours"}, {"sections": [1]}, {"facts": ["five"]}, {"facts": [[]]}]
)
def test_sections_and_facts_are_lists(visitors: QuestionSet, values: dict[str, object]) -> None:
    with pytest.raises(NotValid, match="Write a list"):
        change(closing(visitors), **values)


# ---- measuring ----


def test_a_run_keeps_what_came_out_and_everything_it_depends_on(
    visitors: QuestionSet, live: Sheet
) -> None:
    report = run(visitors)

    assert report.content_hash == history.candidate_now(live).subject.content_hash
    assert report.publication is None
    assert report.ran_by_name == "anna"
    assert report.configuration == {
        "k1": 1.2,
        "b": 0.75,
        "most_hits": 5,
        "least_share": 0.4,
        "rule": "ours",
        "threshold": 0.4,
        "retrieval": retrieval.form_digest(),
    }
    told = report.figures["dev"]["figures"]
    assert told["section_at_1"] == {"value": 1.0, "low": 0.2065, "high": 1.0, "of": 1}
    assert told["leaks_off_topic"] == {"value": 0.0, "low": 0.0, "high": 0.7935, "of": 1}
    assert report.misses == []


def test_a_run_on_a_publication_measures_what_was_published(
    visitors: QuestionSet, live: Sheet
) -> None:
    first = live.publications.get()
    change(live.sections.get(key="hours"), body="Ask at the gate.", heading="Ask", question="")

    draft, published = run(visitors), run(visitors, first)

    assert published.content_hash == first.content_hash != draft.content_hash
    assert [miss["key"] for miss in draft.misses] == ["closing"]
    assert published.misses == []


def test_the_rules_are_compared_on_the_same_questions(visitors: QuestionSet) -> None:
    published = run(visitors, rule=baselines.PUBLISHED)

    assert published.configuration["rule"] == "published"
    assert published.configuration["threshold"] == 6


@pytest.mark.database
def test_a_report_is_never_changed_or_deleted(visitors: QuestionSet) -> None:
    report = run(visitors)

    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        RetrievalReport.objects.update(misses=[])
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        report.delete()


def test_no_fixture_brings_a_report(visitors: QuestionSet) -> None:
    report = run(visitors)
    report.pk = None

    with pytest.raises(PastTheGate):
        report.save_base(raw=True)


def test_a_section_that_quotes_a_question_is_named(visitors: QuestionSet, live: Sheet) -> None:
    change(live.sections.get(key="moat"), question="Does it close at five?")

    found = question_sets.quoted(visitors, history.candidate_now(live).content)

    assert found == [question_sets.Quoted("moat", "closing")]


# ---- what is live ----


def test_what_is_live_is_measured_by_itself_once_its_set_is_frozen(
    visitors: QuestionSet, live: Sheet
) -> None:
    assert question_sets.measure_due(now=LATER) == []
    run(visitors)

    tasks.measure_published()

    report = RetrievalReport.objects.get(trigger="publication")
    assert (report.publication, report.ran_by) == (live.publications.get(), None)
    assert question_sets.measure_due(now=LATER) == []


def test_a_publication_is_measured_again_under_another_retriever(
    visitors: QuestionSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(visitors)
    question_sets.measure_due(now=LATER)
    monkeypatch.setattr(retrieval, "K1", 1.3)

    assert len(question_sets.measure_due(now=LATER)) == 1


def test_every_publication_is_measured(visitors: QuestionSet, live: Sheet) -> None:
    run(visitors)
    question_sets.measure_due(now=LATER)
    change(live.sections.get(key="moat"), body="The moat is wet.")
    second = publish(live)

    assert [r.publication for r in question_sets.measure_due(now=LATER)] == [second]


def test_a_set_that_cannot_be_measured_keeps_no_other_waiting(
    visitors: QuestionSet, live: Sheet
) -> None:
    other = factories.question_set(live, "other")
    run(visitors), run(other)
    QuerySet(Question).filter(question_set=visitors, key="closing").update(question="Easy?")

    assert [r.question_set for r in question_sets.measure_due(now=LATER)] == [other]


def test_sets_out_of_use_and_sheets_that_are_not_live_are_not_measured(
    visitors: QuestionSet, live: Sheet
) -> None:
    run(visitors)
    publishing.withdraw(sheet_id=live.pk, by=factories.person(), reason="no", now=LATER)

    assert question_sets.due() == []


# ---- regressions ----


def regressions(sheet: Sheet) -> list[Finding]:
    report = publishing.look(_fresh(sheet), now=LATER).report
    return [finding for finding in report.findings if finding.code == "retrieval-regressed"]


def worsen(live: Sheet) -> Section:
    section = live.sections.get(key="hours")
    change(section, heading="Times", question="", body="From ten.")
    return section


@pytest.fixture
def measured(visitors: QuestionSet) -> QuestionSet:
    """What is live has its report."""
    run(visitors)
    question_sets.measure_due(now=LATER)
    return visitors


def test_a_draft_that_loses_a_question_is_warned_of(measured: QuestionSet, live: Sheet) -> None:
    worsen(live)
    run(measured)

    (finding,) = regressions(live)

    assert finding.level == "warn"
    assert "loses 1 question that it answers on publication 1: closing;" in finding.sentence


def test_a_draft_that_keeps_its_questions_is_not(measured: QuestionSet, live: Sheet) -> None:
    change(live.sections.get(key="moat"), body="The moat is wet.")
    run(measured)

    assert regressions(live) == []


def test_a_draft_that_nobody_measured_raises_nothing(measured: QuestionSet, live: Sheet) -> None:
    worsen(live)

    assert regressions(live) == []


def test_a_draft_mended_and_measured_again_is_clear(measured: QuestionSet, live: Sheet) -> None:
    section = worsen(live)
    run(measured)
    change(section, question="Does it close at five?")
    run(measured, now=LATER + timedelta(hours=1))

    assert regressions(live) == []


def test_other_rules_are_not_compared_with_each_other(measured: QuestionSet, live: Sheet) -> None:
    worsen(live)
    run(measured, rule=baselines.PUBLISHED)

    assert regressions(live) == []


def test_what_went_live_worse_is_held_against_the_publication_before(
    measured: QuestionSet, live: Sheet
) -> None:
    worsen(live)
    publish(live)
    before = regressions(live)

    question_sets.measure_due(now=LATER)

    assert before == []
    assert ["on publication 1: closing" in f.sentence for f in regressions(live)] == [True]


def test_a_set_out_of_use_warns_no_more(measured: QuestionSet, live: Sheet) -> None:
    worsen(live)
    run(measured)
    measured.refresh_from_db()
    change(measured, removed_at=LATER)

    assert regressions(live) == []


# ---- files ----


def load(live: Sheet, name: str, data: bytes, **named: str) -> question_sets.Imported:
    return question_sets.import_file(
        live,
        data,
        name=name,
        by=factories.person(),
        now=LATER,
        **{"slug": "new", "title": "New", **named},
    )


def test_a_csv_file_becomes_a_set(live: Sheet) -> None:
    text = (
        "question,scope,sections,expected,facts,part,trap\r\n"
        '"When does it close, please?",in,hours moat,At five,five|17:00;castle,held-back,\r\n'
        "\r\n"
        "Who wrote it?,out,,,,,plain\r\n"
    )

    made = load(live, "questions.csv", text.encode("utf-8-sig"))

    first, second = made.question_set.questions.order_by("position")
    assert (made.questions, made.left_out) == (2, ())
    assert (first.key, first.question) == ("row-2", "When does it close, please?")
    assert first.sections == ["hours", "moat"]
    assert first.facts == [["five", "17:00"], ["castle"]]
    assert (first.part, second.part) == ("held-back", "dev")
    assert (second.scope, second.trap) == ("out", "plain")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "first row"),
        (b"question\nWhy?\n", "first row"),
        (b"question,scope,colour\n", "first row"),
        (b"question,scope,scope\n", "first row"),
        (b"question,scope\nWhy?\n", "row 2: there are 1 cells"),
        (b"question,scope\nWhy?,perhaps\n", "row 2"),
        (b"question,scope,sections\nWhy?,in,cellar\n", 'no section "cellar"'),
        (b"question,scope,sections\nWhy?,in,\n", "Name the sections"),
        (b"key,question,scope\na,Why?,out\na,How?,out\n", "twice"),
        (b"question,scope\n", "no question"),
        (b"question,scope\n\xff,out\n", "UTF-8"),
        (b'question,scope\n"Why?,out\n', "no CSV"),
    ],
)
def test_a_csv_file_that_makes_no_sense_is_refused(live: Sheet, data: bytes, said: str) -> None:
    with pytest.raises(Refused, match=said):
        load(live, "questions.csv", data)

    assert not QuestionSet.objects.filter(slug="new").exists()


def squad(*asked: dict[str, Any], title: str = "The castle", context: str = "") -> bytes:
    paragraph = {"context": context or "It closes at five.", "qas": list(asked)}
    return json.dumps(
        {"version": "v2.0", "data": [{"title": title, "paragraphs": [paragraph]}]}
    ).encode()


def test_squad_answers_are_found_in_the_sections(live: Sheet) -> None:
    made = load(
        live,
        "squad.json",
        squad(
            {"id": "A1", "question": "When does it close?", "answers": [{"text": "at five"}]},
            {"id": "B2", "question": "Is it wet?", "answers": [{"text": "no"}]},
            {"id": "C3", "question": "Who swam in it?", "answers": [], "is_impossible": True},
        ),
    )

    first, second = made.question_set.questions.order_by("position")
    assert made.left_out == ("b2",)
    assert (first.key, first.sections, first.facts) == ("a1", ["hours"], [["at five"]])
    assert (second.key, second.scope, second.trap) == ("c3", "out", "lexical")


def test_the_section_with_the_whole_paragraph_is_the_right_one(live: Sheet) -> None:
    asked = {"id": "a", "question": "What is dry?", "answers": [{"text": "The"}]}

    made = load(live, "s.json", squad(asked, context="The moat is dry and full of grass."))

    assert made.question_set.questions.get().sections == ["moat"]


def test_of_several_articles_the_one_of_the_sheet_is_read(live: Sheet) -> None:
    ours = json.loads(squad({"id": "a", "question": "When?", "answers": [{"text": "five"}]}))
    ours["data"][0]["title"] = "The_castle"
    other = json.loads(
        squad({"id": "b", "question": "When?", "answers": [{"text": "five"}]}, title="Opera")
    )
    both = json.dumps({"data": [*ours["data"], *other["data"]]}).encode()

    made = load(live, "squad.json", both)

    assert [q.key for q in made.question_set.questions.all()] == ["a"]


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"[]",
        b"not json",
        b'{"data": [{"title": "x"}]}',
        b'{"data": 5}',
        b'{"data": [{"title": "x", "paragraphs": [{"context": 1, "qas": [{}]}]}]}',
        squad({"id": "a", "question": "", "answers": []}),
        squad({"id": "a", "question": "When?", "answers": ["five"]}),
        squad({"id": "a", "question": "When?", "answers": 5}),
        b"[" * 100_000,
    ],
)
def test_json_that_is_not_of_squad_is_refused(live: Sheet, data: bytes) -> None:
    with pytest.raises(ImportRefused, match="not the JSON of SQuAD"):
        load(live, "squad.json", data)


def test_half_of_a_character_in_a_file_is_refused(live: Sheet) -> None:
    asked = {"id": "a", "question": "When \ud800?", "answers": [{"text": "five"}]}

    with pytest.raises(ImportRefused, match="lone surrogate"):
        load(live, "squad.json", squad(asked))


def test_a_yaml_file_has_a_name_of_its_own(live: Sheet, visitors: QuestionSet) -> None:
    data = exchange.write_questions(live, visitors)

    again = load(live, "questions.yaml", data, slug="", title="")
    renamed = load(live, "questions.yaml", data, slug="more", title="More")

    assert again.question_set == visitors
    assert (renamed.question_set.slug, renamed.questions) == ("more", 2)


def test_a_file_about_another_sheet_is_refused(live: Sheet, visitors: QuestionSet) -> None:
    other = factories.sheet("abbey")

    with pytest.raises(ImportRefused, match='about the sheet "castle"'):
        load(other, "questions.yaml", exchange.write_questions(live, visitors))


def test_a_file_of_another_kind_is_refused(live: Sheet) -> None:
    with pytest.raises(ImportRefused, match=r"\.yaml, \.csv and \.json"):
        load(live, "questions.xlsx", b"")


def test_a_file_does_not_change_a_frozen_set(live: Sheet, visitors: QuestionSet) -> None:
    run(visitors)
    same = exchange.write_questions(live, visitors)
    file: Any = yaml_files.read(same, name="q")
    file["questions"][0]["question"] = "When?"

    load(live, "questions.yaml", same, slug="")
    with pytest.raises(ImportRefused, match="frozen"):
        load(live, "questions.yaml", yaml_files.write(file), slug="")


def test_the_part_travels_in_files(live: Sheet, visitors: QuestionSet) -> None:
    change(closing(visitors), part="held-back")
    data = exchange.write_questions(live, visitors)

    load(live, "questions.yaml", data, slug="more")

    assert b"part: held-back" in data
    assert data.count(b"part:") == 1
    assert closing(QuestionSet.objects.get(slug="more")).part == "held-back"


# ---- the command ----


def command(*arguments: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("evaluate_retrieval", *arguments, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_the_command_tells_people_figures_and_misses(visitors: QuestionSet, live: Sheet) -> None:
    worsen(live)

    code, said, _ = command("castle", "--questions", "visitors")

    assert code == 0
    assert "Section@3                  0.000  0.000 to 0.793    1" in said
    assert "closing: the right section is not among the first ten" in said


def test_the_command_tells_programs_everything(visitors: QuestionSet) -> None:
    factories.question(visitors, "later", part="held-back")

    code, said, _ = command(
        "castle", "--questions", "visitors", "--publication", "1", "--part", "held-back", "--json"
    )

    told = json.loads(said)
    assert code == 0
    assert (told["publication"], list(told["parts"])) == (1, ["held-back"])
    assert told["parts"]["held-back"]["figures"]["section_at_1"]["of"] == 1
    assert len(told["parts"]["held-back"]["curve"]) == 21
    assert RetrievalReport.objects.get().pk == told["report"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["abbey", "--questions", "visitors"], "There is no sheet 'abbey'"),
        (["castle", "--questions", "guests"], "castle has no question set 'guests'; there are: v"),
        (["castle", "--questions", "visitors", "--publication", "9"], "has no publication 9"),
        (["castle", "--questions", "visitors", "--part", "held-back"], "no question in the part"),
        (["castle", "--questions", "visitors", "--by", "nobody"], "no active user"),
    ],
)
def test_the_command_says_no_in_one_sentence(
    visitors: QuestionSet, arguments: list[str], sentence: str
) -> None:
    code, said, complaint = command(*arguments)

    assert (code, said) == (2, "")
    assert sentence in complaint
    assert complaint.count("\n") == 1
