"""Pages of question sets: what was measured, what missed and why, and a new set from a file."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from evals import question_sets
from evals.models import Question, QuestionSet, RetrievalReport
from factsheets import editing, roles
from factsheets.models import Sheet
from tests import factories
from tests.factories import LATER, NOON
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.fixture
def live() -> Sheet:
    return factories.published_sheet()


@pytest.fixture
def visitors(live: Sheet) -> QuestionSet:
    return factories.question_set(live)


def enter(role: str) -> Client:
    client = Client()
    user = factories.person(f"the-{role}".replace(" ", "-"), role)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def address(name: str, *arguments: int) -> str:
    return reverse(f"runs:{name}", args=arguments)


def run(of: QuestionSet) -> RetrievalReport:
    fresh = QuestionSet.objects.select_related("sheet__bot").get(pk=of.pk)
    return question_sets.run(fresh, by=factories.person(), now=NOON)


def worsen(live: Sheet) -> None:
    editing.change(
        live.sections.get(key="hours"),
        by=factories.person(),
        reason="edit",
        now=LATER,
        heading="Times",
        question="",
        body="From ten.",
    )


def test_a_set_is_frozen_and_run_by_one_press(visitors: QuestionSet) -> None:
    editor = enter(roles.EDITOR)
    page = Page(editor.get(address("question_set", visitors.pk)))
    form = page.form_to(address("run_questions", visitors.pk))

    answer = editor.post(form.attributes["action"], form.data, follow=True)

    report = RetrievalReport.objects.get()
    assert "Freeze and run" in page.text
    assert answer.redirect_chain == [(address("retrieval_report", report.pk), 302)]
    assert report.ran_by_name == "the-editor"
    assert "Section@3" in Page(answer).text


def test_a_publication_and_a_rule_can_be_chosen(visitors: QuestionSet) -> None:
    enter(roles.EDITOR).post(
        address("run_questions", visitors.pk), {"publication": "1", "rule": "published"}
    )

    report = RetrievalReport.objects.get()
    assert (report.subject, report.configuration["rule"]) == ("publication 1", "published")


@pytest.mark.parametrize(
    "sent", [{"publication": "9"}, {"publication": "x"}, {"rule": "none"}, {"publication": "²"}]
)
def test_what_is_not_on_the_list_is_refused(visitors: QuestionSet, sent: dict[str, str]) -> None:
    answer = enter(roles.EDITOR).post(address("run_questions", visitors.pk), sent, follow=True)

    assert "Choose the draft or a publication" in Page(answer).text
    assert not RetrievalReport.objects.exists()


def test_a_viewer_reads_and_has_no_button(visitors: QuestionSet) -> None:
    run(visitors)

    page = Page(enter(roles.VIEWER).get(address("question_set", visitors.pk)))

    assert "the draft" in page.text
    assert not [
        f for f in page.forms if f.attributes.get("method") == "post" and f.data.get("rule")
    ]


def test_a_row_a_run_stands_in_the_table_newest_first(visitors: QuestionSet, live: Sheet) -> None:
    first = run(visitors)
    question_sets.measure_due(now=LATER)

    page = Page(enter(roles.VIEWER).get(address("question_set", visitors.pk)))

    links = [link for link in page.links() if "/retrieval/" in link]
    assert links == [
        address("retrieval_report", RetrievalReport.objects.get(trigger="publication").pk),
        address("retrieval_report", first.pk),
    ]
    assert "by itself" in page.text


def test_a_report_names_its_misses_with_what_ranked_above(
    visitors: QuestionSet, live: Sheet
) -> None:
    factories.section(live, "moat", heading="Five moats", question="", body="They never close.")
    worsen(live)
    report = run(visitors)

    page = Page(enter(roles.VIEWER).get(address("retrieval_report", report.pk)))

    assert "Does it close at five?" in page.text
    assert "the right section is not among the first ten" in page.text
    assert "moat" in page.text
    assert page.all("polyline")
    assert len(page.all("circle")) == 1


def test_what_people_wrote_stays_text(visitors: QuestionSet, live: Sheet) -> None:
    factories.question(visitors, "evil", question="<script>alert(1)</script> moat?")
    report = run(visitors)

    response = enter(roles.VIEWER).get(address("retrieval_report", report.pk))

    assert b"&lt;script&gt;alert(1)" in response.content
    assert b"<script>alert(1)" not in response.content


def test_two_reports_are_held_against_each_other(visitors: QuestionSet, live: Sheet) -> None:
    before = run(visitors)
    worsen(live)
    after = run(visitors)

    page = Page(
        enter(roles.VIEWER).get(
            address("compare_reports", visitors.pk), {"before": before.pk, "after": after.pk}
        )
    )

    assert "Lost (1): closing. Won (0): none." in page.text
    assert "worse" in page.text


@pytest.mark.parametrize("query", [{}, {"before": "x", "after": "1"}, {"before": "999999"}])
def test_without_two_reports_there_is_nothing_to_compare(
    visitors: QuestionSet, query: dict[str, str]
) -> None:
    answer = enter(roles.VIEWER).get(address("compare_reports", visitors.pk), query, follow=True)

    assert "Choose two reports" in Page(answer).text


def test_a_report_of_another_set_is_not_compared(visitors: QuestionSet, live: Sheet) -> None:
    own, other = run(visitors), run(factories.question_set(live, "other"))

    answer = enter(roles.VIEWER).get(
        address("compare_reports", visitors.pk), {"before": own.pk, "after": other.pk}, follow=True
    )

    assert "Choose two reports" in Page(answer).text


def test_a_section_that_quotes_a_question_is_shown(visitors: QuestionSet, live: Sheet) -> None:
    section = live.sections.get()
    editing.change(
        section, by=factories.person(), reason="q", now=LATER, question="Does it close at five?"
    )

    page = Page(enter(roles.VIEWER).get(address("question_set", visitors.pk)))

    assert "section hours: question closing" in page.text


# ---- copying ----


def test_a_rule_keeper_copies_a_frozen_set_to_change_it(visitors: QuestionSet) -> None:
    run(visitors)
    keeper = enter(roles.RULE_KEEPER)
    form = Page(keeper.get(address("question_set", visitors.pk))).form_to(
        address("copy_questions", visitors.pk)
    )

    answer = keeper.post(
        form.attributes["action"], {**form.data, "slug": "guests", "title": "Guests"}, follow=True
    )

    made = QuestionSet.objects.get(slug="guests")
    assert answer.redirect_chain == [(address("question_set", made.pk), 302)]
    assert (made.frozen_at, made.questions.count()) == (None, 2)


@pytest.mark.parametrize("slug", ["visitors", "", "two words", "x" * 81])
def test_a_name_that_cannot_be_is_refused(visitors: QuestionSet, slug: str) -> None:
    answer = enter(roles.RULE_KEEPER).post(
        address("copy_questions", visitors.pk), {"slug": slug, "title": "Guests"}, follow=True
    )

    assert [m.level_tag for m in answer.context["messages"]] == ["error"]
    assert QuestionSet.objects.count() == 1


# ---- importing ----


def send(client: Client, live: Sheet, name: str, data: bytes, **fields: str) -> Any:
    file = SimpleUploadedFile(name, data)
    return client.post(
        address("import_questions", live.pk),
        {"slug": "new", "title": "New", **fields, "file": file},
        follow=True,
    )


def test_a_rule_keeper_imports_a_file(live: Sheet) -> None:
    answer = send(
        enter(roles.RULE_KEEPER),
        live,
        "q.csv",
        b"question,scope,sections\nDoes it close?,in,hours\n",
    )

    made = QuestionSet.objects.get(slug="new")
    assert answer.redirect_chain == [(address("question_set", made.pk), 302)]
    assert "1 questions are there." in Page(answer).text


def test_a_file_that_is_refused_says_why_and_changes_nothing(live: Sheet) -> None:
    answer = send(enter(roles.RULE_KEEPER), live, "q.csv", b"colour\n")

    assert "the first row must name the columns" in Page(answer).text
    assert not QuestionSet.objects.exists()


def test_a_form_without_a_file_says_so(live: Sheet) -> None:
    answer = enter(roles.RULE_KEEPER).post(address("import_questions", live.pk), {})

    assert "Nothing was imported" in Page(answer).text


def test_questions_that_fit_no_section_are_named(live: Sheet) -> None:
    data = (
        b'{"data": [{"title": "x", "paragraphs": [{"context": "Other.", "qas": ['
        b'{"id": "one", "question": "When?", "answers": [{"text": "five"}]},'
        b'{"id": "two", "question": "Who?", "answers": [{"text": "nobody"}]}]}]}]}'
    )

    answer = send(enter(roles.RULE_KEEPER), live, "squad.json", data)

    assert "stand in no section: two" in Page(answer).text


# ---- the admin's own pages ----


def test_a_set_leads_to_its_reports(visitors: QuestionSet) -> None:
    keeper = enter(roles.RULE_KEEPER)

    changed = Page(keeper.get(reverse("admin:evals_questionset_change", args=[visitors.pk])))
    listed = Page(keeper.get(reverse("admin:evals_questionset_changelist")))

    assert address("question_set", visitors.pk) in changed.links()
    assert address("question_set", visitors.pk) in listed.links()


def test_a_form_of_a_frozen_question_is_refused_in_a_sentence(visitors: QuestionSet) -> None:
    run(visitors)
    keeper = enter(roles.RULE_KEEPER)
    question = visitors.questions.get(key="closing")
    page = reverse("admin:evals_question_change", args=[question.pk])
    form = Page(keeper.get(page)).form("question_form")

    answer = keeper.post(page, {**form.data, "question": "When?", "why": "easier"})

    assert "copy it under a new name" in Page(answer).text
    assert Question.objects.get(pk=question.pk).question == "Does it close at five?"


def test_an_action_on_a_frozen_question_is_refused_in_a_sentence(visitors: QuestionSet) -> None:
    run(visitors)
    question = visitors.questions.get(key="closing")

    answer = enter(roles.RULE_KEEPER).post(
        reverse("admin:evals_question_changelist"),
        {"action": "remove_selected", "_selected_action": [question.pk]},
        follow=True,
    )

    question.refresh_from_db()
    assert "copy it under a new name" in Page(answer).text
    assert question.removed_at is None


def test_the_page_of_a_set_asks_the_database_a_fixed_number_of_times(
    visitors: QuestionSet, django_assert_num_queries: Any
) -> None:
    viewer = enter(roles.VIEWER)
    viewer.get(address("question_set", visitors.pk))
    for number in range(3):
        factories.question(visitors, f"more-{number}")
    for _ in range(4):
        run(visitors)

    with django_assert_num_queries(PAGE_QUERIES):
        viewer.get(address("question_set", visitors.pk))


PAGE_QUERIES = 16
