"""Trials: every question twice, each answer once, whatever breaks on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from evals import tasks, trials
from evals.models import Question, QuestionSet, Trial, TrialAnswer
from factsheets import editing, roles
from factsheets.errors import Refused
from factsheets.models import BotProfile, Sheet
from tests import factories
from tests.factories import LATER, NOON
from tests.factsheets.admin import Page
from tests.model_api import ModelApi, Step

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

TRICKY = "<script>alert(1)</script> <b x-data='{}'>"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelApi]:
    with ModelApi() as server:
        yield server


@pytest.fixture
def api(server: ModelApi, settings: Settings) -> Iterator[ModelApi]:
    settings.ANTHROPIC_API_KEY = server.key
    settings.ANTHROPIC_BASE_URL = server.url
    yield server
    server.finish()


@pytest.fixture
def asked() -> QuestionSet:
    """Two questions about a sheet of two sections, and one about something else."""
    sheet = factories.ready_sheet()
    factories.section(sheet, "fees", heading="Fees", body="A ticket costs two pounds at the kiosk.")
    made = QuestionSet(slug="frozen", title="Frozen questions", sheet=sheet)
    factories.save(made)
    for key, question, sections, facts in (
        ("hours", "When does the castle open in the morning?", ["hours"], [["ten"]]),
        ("fees", "What does a ticket cost at the kiosk?", ["fees"], [["two pounds", "£2"]]),
        ("cup", "Who won the football cup last year?", [], []),
    ):
        factories.save(
            Question(
                question_set=made,
                key=key,
                question=question,
                scope="in" if sections else "out",
                sections=sections,
                facts=facts,
                trap="" if sections else "plain",
            )
        )
    return made


def with_model(asked: QuestionSet) -> None:
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)
    editing.change(asked.sheet, by=factories.person(), reason="edit", now=NOON, bot=bot)


def start(asked: QuestionSet) -> Trial:
    return trials.start(
        QuestionSet.objects.select_related("sheet__bot").get(pk=asked.pk),
        by=factories.person(),
        now=NOON,
    )


def work(trial: Trial, now: Any = NOON) -> Trial:
    trials.work(trial.pk, clock=lambda: now)
    trial.refresh_from_db()
    return trial


def enter(*in_roles: str) -> Client:
    client = Client()
    client.force_login(
        factories.person("mine", *in_roles), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


# ---- the whole ----


def test_every_question_is_answered_inline_and_split_and_the_two_are_compared(
    asked: QuestionSet,
) -> None:
    trial = work(start(asked))

    assert trial.state == Trial.State.DONE
    assert {(a.key, a.delivery): a.right for a in trial.answers.all()} == {
        (key, delivery): True
        for key in ("hours", "fees", "cup")
        for delivery in ("inline", "split")
    }
    assert trial.figures["split"]["right"]["value"] == 1.0
    assert trial.figures["compared"]["lost"] == []
    assert trial.sentence


def test_the_set_and_the_draft_are_frozen_with_the_trial(asked: QuestionSet) -> None:
    trial = start(asked)
    section = asked.sheet.sections.get(key="fees")
    editing.change(section, by=factories.person(), reason="x", now=LATER, body="Free.")

    work(trial)

    asked.refresh_from_db()
    assert asked.frozen_hash == trial.frozen_hash
    assert "two pounds" in trial.answers.get(key="fees", delivery="split").reply


def test_the_model_is_sent_all_of_it_inline_and_what_was_found_split(
    asked: QuestionSet, api: ModelApi
) -> None:
    with_model(asked)
    api.responder = lambda body: "At ten in the morning."

    trial = work(start(asked))

    assert len(api.calls) == 6
    inline, split = (api.calls[0].body, api.calls[1].body)
    assert "A ticket costs two pounds" in inline["system"][1]["text"]
    assert split["system"][1]["text"] == "# The castle\n\n- Opening hours\n- Fees"
    assert split["messages"][0]["content"].startswith("From the sheet:\n\n[1] Opening hours\n\n")
    answer = trial.answers.get(key="hours", delivery="split")
    usage = answer.usage
    assert answer.input_tokens == usage["input_tokens"]
    assert answer.sections[0] == "hours"


# ---- what breaks ----


def test_a_service_that_breaks_is_asked_again_later_for_what_is_missing_alone(
    asked: QuestionSet, api: ModelApi
) -> None:
    with_model(asked)
    api.responder = lambda body: "At ten."
    api.script(Step(text="At ten."), Step(status=529, type="overloaded_error"))
    trial = work(start(asked))

    put_off = (trial.state, trial.answers.count(), trials.waiting(now=NOON))
    work(trial)
    at_once = len(api.calls)
    later = NOON + timedelta(seconds=2, microseconds=1)
    still = trials.waiting(now=later)
    work(trial, later)

    assert put_off == (Trial.State.OPEN, 1, [])
    assert at_once == 2
    assert still == [trial.pk]
    assert (trial.state, trial.answers.count(), len(api.calls)) == (Trial.State.DONE, 6, 7)


def test_trouble_with_the_account_stops_it_with_the_sentence(
    asked: QuestionSet, api: ModelApi
) -> None:
    with_model(asked)
    api.script(Step(status=401, type="authentication_error"))

    trial = work(start(asked))

    assert trial.state == Trial.State.STOPPED
    assert "ANTHROPIC_API_KEY" in trial.sentence
    assert trial.figures is None


def test_a_question_that_the_service_refuses_is_counted_as_an_error_and_the_rest_goes_on(
    asked: QuestionSet, api: ModelApi
) -> None:
    with_model(asked)
    api.responder = lambda body: "At ten."
    api.script(Step(status=400, type="invalid_request_error"))

    trial = work(start(asked))

    assert trial.state == Trial.State.DONE
    assert trial.figures["inline"]["errors"] == 1
    assert trial.answers.get(error__gt="").error == "invalid_request_error"


def test_five_broken_calls_in_a_row_end_it(asked: QuestionSet, api: ModelApi) -> None:
    with_model(asked)
    api.script(*[Step(status=529, type="overloaded_error")] * 5)
    trial = start(asked)

    for hour in range(5):
        work(trial, NOON + timedelta(hours=hour))

    assert (trial.state, trial.answers.count()) == (Trial.State.STOPPED, 0)


def test_a_worker_taken_for_dead_writes_nothing_more(asked: QuestionSet) -> None:
    trial = start(asked)
    times = iter([NOON, NOON, NOON + timedelta(hours=1)])

    def clock() -> Any:
        # In the middle of the first answer another worker takes over and ends the trial.
        now = next(times, NOON + timedelta(hours=2))
        if now == NOON + timedelta(hours=1):
            trials.work(trial.pk, clock=lambda: NOON + timedelta(hours=1))
        return now

    trials.work(trial.pk, clock=clock)

    trial.refresh_from_db()
    assert (trial.state, trial.closed_at) == (Trial.State.DONE, NOON + timedelta(hours=1))
    assert trial.answers.count() == 6


def test_what_is_closed_is_never_changed(asked: QuestionSet) -> None:
    trial = work(start(asked))

    for act in (
        lambda: Trial.objects.filter(pk=trial.pk).update(sentence="x"),
        lambda: TrialAnswer.objects.filter(trial=trial).update(right=False),
        lambda: TrialAnswer.objects.filter(trial=trial).delete(),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            act()


# ---- refusals ----


def test_two_at_once_are_refused(asked: QuestionSet) -> None:
    start(asked)

    with pytest.raises(trials.TrialOpen):
        start(asked)


def test_a_set_without_questions_is_refused(asked: QuestionSet) -> None:
    empty = QuestionSet(slug="empty", title="Empty", sheet=asked.sheet)
    factories.save(empty)

    with pytest.raises(Refused, match="has no question"):
        start(empty)


# ---- doorways ----


def test_the_tick_has_open_trials_taken_up(asked: QuestionSet, monkeypatch: Any) -> None:
    sent: list[int] = []
    monkeypatch.setattr(tasks.work_on_trial, "delay", lambda *, trial_id: sent.append(trial_id))
    trial = start(asked)

    tasks.tick()

    assert sent == [trial.pk]


def test_the_command_prints_the_figures_and_the_sentence(asked: QuestionSet) -> None:
    out = StringIO()

    with pytest.raises(SystemExit) as ended:
        call_command("try_split", "castle", "--questions", "frozen", stdout=out)

    # Rules and sheet are too small for a split to save much.
    assert ended.value.code == 1
    assert "The split is not worth it" in out.getvalue()
    assert "right answers to what the sheet answers" in out.getvalue()


def test_the_command_has_json(asked: QuestionSet) -> None:
    out = StringIO()

    with pytest.raises(SystemExit):
        call_command("try_split", "castle", "--questions", "frozen", "--json", stdout=out)

    told = json.loads(out.getvalue())
    assert (told["sheet"], told["state"], told["is_worth_it"]) == ("castle", "done", False)


def test_the_command_names_the_sets_there_are(asked: QuestionSet) -> None:
    err = StringIO()

    with pytest.raises(SystemExit) as ended:
        call_command("try_split", "castle", "--questions", "none", stderr=err)

    assert ended.value.code == 2
    assert "there are: frozen" in err.getvalue()


# ---- pages ----


def test_the_page_shows_both_answers_and_what_changed_first(asked: QuestionSet) -> None:
    question = asked.questions.get(key="fees")
    editing.change(question, by=factories.person(), reason="x", now=NOON, question=TRICKY)
    trial = work(start(asked))

    page = Page(enter(roles.VIEWER).get(reverse("runs:trial", args=[trial.pk])))

    assert trial.sentence in page.text
    assert TRICKY in page.text
    assert ("b", {"x-data": "{}"}) not in page.tags
    assert "does not read the rules" in page.text


def test_who_may_run_probes_starts_one_from_the_set_s_page(
    asked: QuestionSet, monkeypatch: Any
) -> None:
    monkeypatch.setattr(tasks.work_on_trial, "delay", lambda *, trial_id: None)
    address = reverse("runs:start_trial", args=[asked.pk])

    refused = enter(roles.VIEWER).post(address).status_code
    answer = enter(roles.EDITOR).post(address, follow=True)

    assert refused == 403
    assert "Under way: 0 of 6 answers" in Page(answer).text


def test_a_second_press_is_told_that_one_is_under_way(asked: QuestionSet) -> None:
    start(asked)

    answer = enter(roles.EDITOR).post(reverse("runs:start_trial", args=[asked.pk]), follow=True)

    assert "A trial of this question set is under way" in Page(answer).text
    assert Trial.objects.count() == 1


def test_a_set_lists_its_trials(asked: QuestionSet) -> None:
    trial = work(start(asked))

    page = Page(enter(roles.VIEWER).get(reverse("runs:question_set", args=[asked.pk])))

    assert trial.sentence in page.text


def test_the_draft_of_a_demo_sheet_is_tried_whole() -> None:
    sheet: Sheet = factories.demo("castle")
    asked = QuestionSet.objects.get(sheet=sheet)

    trial = work(start(asked))

    compared = trial.figures["compared"]
    assert compared["questions"] == asked.questions.present().count()
    assert compared["saved"] > 0.5
