"""The sheet as the bot sees it: the very prompt, its size, and a question put to the bot."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from evals.models import Run
from factsheets import editing, history, roles
from factsheets.bot import prompt
from factsheets.models import BotProfile, Rule, Sheet
from tests import factories
from tests.factories import NOON
from tests.factsheets.admin import Page
from tests.model_api import ModelApi

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.fixture
def sheet() -> Sheet:
    return factories.published_sheet()


@pytest.fixture(scope="module")
def server() -> Iterator[ModelApi]:
    with ModelApi() as server:
        yield server


@pytest.fixture
def api(server: ModelApi, settings: Settings) -> Iterator[ModelApi]:
    settings.ANTHROPIC_API_KEY = server.key
    settings.ANTHROPIC_BASE_URL = server.url
    server.responder = lambda body: "At ten, <b>they say</b>."
    yield server
    server.finish()


def enter(*in_roles: str) -> Client:
    client = Client()
    client.force_login(
        factories.person("mine", *in_roles), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def at(sheet: Sheet) -> str:
    return reverse("admin:sheet_as_bot", args=[sheet.pk])


def change(row: object, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=NOON, **values)  # type: ignore[arg-type]


def test_the_draft_stands_there_word_for_word_as_it_would_be_sent(sheet: Sheet) -> None:
    change(sheet.sections.get(), body="The castle opens at nine.", note="a note for editors")
    candidate = history.candidate_now(Sheet.objects.select_related("bot").get(pk=sheet.pk))
    built = prompt.build(candidate.rules_text, candidate.content)

    page = Page(enter(roles.VIEWER).get(at(sheet)))

    assert built.rules in page.text
    assert built.sheet in page.text
    assert "a note for editors" not in page.text
    assert "The leaflet" not in page.text


def test_what_is_live_stands_there_as_it_is_served(sheet: Sheet) -> None:
    change(sheet.sections.get(), body="The castle opens at nine.")
    change(Rule.objects.get(), text="Be kind.")
    live = sheet.publications.get()

    page = Page(enter(roles.VIEWER).get(at(sheet), {"of": "live"}))

    for block in json.loads(bytes(live.prompt))["system"]:
        assert block["text"] in page.text
    assert "Publication 1, which bots get now" in page.text
    assert "at nine" not in page.text


def test_where_nothing_is_live_the_draft_is_shown() -> None:
    sheet = factories.ready_sheet()

    page = Page(enter(roles.VIEWER).get(at(sheet), {"of": "live"}))

    assert "Nothing is live yet." in page.text


def test_a_question_is_answered_by_the_sheet_s_bot_and_kept_nowhere(sheet: Sheet) -> None:
    runs = Run.objects.count()

    page = Page(
        enter(roles.EDITOR).post(
            at(sheet), {"of": "draft", "question": "When does the castle open in the morning?"}
        )
    )

    assert "The castle opens at ten in the morning" in page.text
    assert Run.objects.count() == runs


def test_a_model_is_asked_with_the_prompt_shown_and_its_words_are_never_obeyed(
    sheet: Sheet, api: ModelApi
) -> None:
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)
    change(sheet, bot=bot)

    page = Page(enter(roles.EDITOR).post(at(sheet), {"of": "live", "question": "When?"}))

    assert "At ten, <b>they say</b>." in page.text
    assert ("b", {}) not in page.tags
    assert [block["text"] for block in api.calls[-1].body["system"]] == [
        block["text"] for block in json.loads(bytes(sheet.publications.get().prompt))["system"]
    ]


def test_a_service_without_its_key_is_said_in_a_sentence(sheet: Sheet, settings: Settings) -> None:
    settings.ANTHROPIC_API_KEY = ""
    bot = BotProfile(slug="guide", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)
    change(sheet, bot=bot)

    page = Page(enter(roles.EDITOR).post(at(sheet), {"of": "draft", "question": "When?"}))

    assert "ANTHROPIC_API_KEY" in page.text


@pytest.mark.parametrize("question", ["", "   ", "x" * 1001])
def test_no_question_or_one_too_long_is_refused_with_a_sentence(
    sheet: Sheet, question: str
) -> None:
    page = Page(enter(roles.EDITOR).post(at(sheet), {"of": "draft", "question": question}))

    assert [tag for tag in page.all("p") if tag.get("id") == "question-error"]


@pytest.mark.parametrize("role", [roles.VIEWER, roles.MAINTAINER])
def test_whoever_may_not_run_probes_may_not_ask_either(sheet: Sheet, role: str) -> None:
    client = enter(role)

    assert client.post(at(sheet), {"of": "draft", "question": "When?"}).status_code == 403
    assert "Ask it" not in Page(client.get(at(sheet))).text
