"""Nothing that stands beside the text leaves the house: words planted there are found nowhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import models
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from django.utils.http import http_date

from evals.models import Attempt, Probe, Question, QuestionSet, Run, Suite, SuiteRequirement
from factsheets import canonical, editing, publishing
from factsheets.api import views
from factsheets.models import (
    BotProfile,
    Check,
    Citation,
    Publication,
    Rule,
    RuleSet,
    Section,
    Sheet,
    SheetRuleSet,
    Source,
)
from factsheets.models.tracking import TrackedModel, change_set
from tests import factories
from tests.factories import LATER, NOON, TODAY
from tests.model_api import ModelApi

pytestmark = pytest.mark.django_db

#: Stands in every planted word, and in nothing that may leave the house.
STEM = "cnry"

#: Fields whose text leaves the house by design; all others are planted in.
PUBLIC_FIELDS: dict[type[models.Model], set[str]] = {
    Sheet: {"slug", "title", "language"},
    Section: {"key", "heading", "question", "body"},
    Rule: {"text"},
    BotProfile: {"model"},
    Suite: {"slug"},
    Probe: {"category"},
}
#: Words of a few fields that would not be valid otherwise.
SHAPED = {"url": f"https://{STEM}-url.example/{STEM}"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Refusals are asked for here; their log lines only hide a failure."""
    logger = logging.getLogger("django.request")
    logger.disabled = True
    yield
    logger.disabled = False


@pytest.fixture
def api(settings: Any) -> Iterator[ModelApi]:
    with ModelApi(lambda _: f"The castle opens at ten. {STEM}-reply") as server:
        settings.ANTHROPIC_API_KEY = server.key
        settings.ANTHROPIC_BASE_URL = server.url
        yield server


def free_text(model: type[models.Model]) -> list[str]:
    """Names of the fields that take any text and stay in the house."""
    return [
        field.name
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField | models.TextField)
        and not field.choices
        and field.name not in PUBLIC_FIELDS.get(model, set())
    ]


def words(model: type[models.Model], tag: str = "") -> dict[str, str]:
    """A planted word for each of those fields."""
    name = model._meta.model_name
    return {
        field: SHAPED.get(field, f"{STEM}-{name}{tag}-{field.replace('_', '-')}")
        for field in free_text(model)
    }


@dataclass(frozen=True)
class Planted:
    """A published sheet with a planted word in every field that stays in the house."""

    sheet: Sheet
    run: Run
    calls: list[Any]
    log: str


def _person() -> User:
    person = factories.person(f"{STEM}-username", "editor", "publisher")
    person.first_name = f"{STEM}-first"
    person.last_name = f"{STEM}-last"
    person.email = f"{STEM}@{STEM}.example"
    person.save()
    return person


def _save(by: User, *rows: TrackedModel) -> None:
    with change_set(by=by, reason=f"{STEM}-change-reason", now=NOON):
        for row in rows:
            row.save()


def _sheet(by: User) -> Sheet:
    bot = BotProfile(provider="anthropic", model="claude-haiku-5-5", slug=f"{STEM}-bot")
    _save(by, bot)
    sheet = Sheet(slug="castle", title="The castle", bot=bot, description=f"{STEM}-description")
    own = RuleSet(**words(RuleSet))
    _save(by, sheet, own)
    text = "Answer only from the sheet."
    _save(
        by,
        SheetRuleSet(sheet=sheet, ruleset=own),
        Rule(ruleset=own, kind="refusal", text=text, **words(Rule)),
        Rule(ruleset=own, kind="refusal", key="off", text=f"{STEM}-off", enabled=False),
        Rule(ruleset=own, kind="refusal", key="gone", text=f"{STEM}-gone", removed_at=NOON),
    )
    return sheet


def _sections(sheet: Sheet, by: User) -> None:
    source = Source(kind="own-policy", **words(Source))
    body = "The castle opens at ten in the morning and closes at five."
    shown = Section(
        sheet=sheet,
        key="hours-key",
        heading="Opening hours",
        question="When may I come?",
        body=body,
        note=f"{STEM}-section-note",
    )
    hidden = Section(
        sheet=sheet,
        included=False,
        **dict.fromkeys(("key", "heading", "question", "body", "note"), f"{STEM}-hidden"),
    )
    gone = Section(
        sheet=sheet,
        removed_at=NOON,
        **dict.fromkeys(("key", "heading", "question", "body", "note"), f"{STEM}-gone"),
    )
    _save(by, source, shown, hidden, gone)
    citation = Citation(section=shown, source=source, **words(Citation))
    _save(by, citation)
    check = Check.objects.create(
        section=shown,
        text_hash=canonical.text_hash(shown.heading, shown.body),
        checked_on=TODAY,
        recorded_at=NOON,
        checked_by=by,
        checked_by_name=by.get_username(),
        outcome=Check.Outcome.CONFIRMED,
        method=Check.Method.READ_PAPER,
        note=f"{STEM}-check-note",
    )
    check.items.create(citation=citation, outcome="supports", accessed_on=TODAY)


def _probes(sheet: Sheet, by: User) -> None:
    suite = Suite(slug="safety", sheet=sheet, **words(Suite))
    questions = QuestionSet(sheet=sheet, **words(QuestionSet))
    _save(by, suite, questions)
    _save(
        by,
        SuiteRequirement(sheet=sheet, suite=suite),
        Probe(
            suite=suite,
            category="control",
            turns=["When does it open?", "Are you sure?"],
            must="answer",
            checks=[
                {"type": "contains-any", "values": ["ten", f"{STEM}-needle"], "match": "word"},
                {"type": "not-contains", "values": [f"{STEM}-forbidden"], "match": "word"},
            ],
            **words(Probe),
        ),
        Question(
            question_set=questions,
            scope="in",
            sections=["hours-key"],
            facts=[[f"{STEM}-fact"]],
            **words(Question),
        ),
    )


@pytest.fixture
def planted(api: ModelApi, caplog: pytest.LogCaptureFixture) -> Planted:
    by = _person()
    sheet = _sheet(by)
    _sections(sheet, by)
    _probes(sheet, by)
    with caplog.at_level(logging.INFO):
        run = factories.passing_run(sheet)
        view = publishing.look(Sheet.objects.get(pk=sheet.pk), now=NOON)
        publishing.publish(
            sheet_id=sheet.pk,
            seen=view.candidate.subject,
            seen_live_number=None,
            by=by,
            reason=f"{STEM}-publication-reason",
            now=NOON,
        )
    return Planted(Sheet.objects.get(pk=sheet.pk), run, list(api.calls), caplog.text)


PATHS = (
    "/api/v1/sheets/",
    "/api/v1/sheets/castle/",
    "/api/v1/sheets/castle/prompt/",
    "/api/v1/sheets/castle/publications/",
    "/api/v1/sheets/castle/publications/1/",
    "/api/v1/sheets/castle/publications/1/evidence/",
    "/api/v1/sheets/castle/as-of/2026-06-01/",
    "/api/v1/sheets/castle/as-of/2026-05-31/",
    "/api/v1/sheets/castle/as-of/nonsense/",
)


def raw(response: HttpResponse) -> str:
    """All that goes over the wire, in one text."""
    headers = "".join(f"{name}: {value}\n" for name, value in response.headers.items())
    return f"{response.status_code}\n{headers}\n{response.content.decode()}".lower()


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Days of the story are past by the clock that the routes read."""
    monkeypatch.setattr(timezone, "now", lambda: LATER + timedelta(days=1))


def of_route(client: Client, path: str) -> list[HttpResponse]:
    """The answers of one address to all that may be asked of it."""
    return [
        client.get(path),
        client.get(path, headers={"accept": "application/json"}),
        client.get(path, headers={"if-none-match": "*"}),
        client.get(path, headers={"if-modified-since": http_date(LATER.timestamp())}),
        client.get(path, headers={"if-match": '"other"'}),
        client.get(path, headers={"accept": "text/html"}),
        client.get(f"{path}?x=1"),
        client.get(f"{path}nothing/"),
        client.head(path),
        client.options(path, headers={"accept": "application/json"}),
        client.post(path, b"{}", content_type="application/json"),
        client.delete(path),
    ]


def answers(client: Client) -> list[HttpResponse]:
    return [response for path in PATHS for response in of_route(client, path)]


def leaks(responses: list[HttpResponse]) -> list[str]:
    return [raw(response) for response in responses if STEM in raw(response)]


def statuses(responses: list[HttpResponse]) -> set[int]:
    return {response.status_code for response in responses}


def test_every_field_that_stays_in_the_house_was_planted_in(planted: Planted) -> None:
    record = bytes(Publication.objects.get().record).decode()

    for model in (Source, Citation):
        for word in words(model).values():
            assert word in record, word
    for word in ("description", "section-note", "check-note", "username", "hidden", "bot"):
        assert f"{STEM}-{word}" in record, word
    assert set(words(Source)) == {
        "key",
        "title",
        "author",
        "publisher",
        "issued",
        "url",
        "identifier",
        "licence",
        "access",
        "note",
    }
    assert set(words(Citation)) == {"locator", "claims", "quote"}


def test_no_answer_of_a_live_sheet_has_a_planted_word(client: Client, planted: Planted) -> None:
    responses = answers(client)

    assert statuses(responses) >= {200, 304, 400, 404, 405, 406}
    assert leaks(responses) == []


def test_no_answer_to_its_own_people_has_one_either(client: Client, planted: Planted) -> None:
    client.force_login(User.objects.get(username=f"{STEM}-username"))

    responses = answers(client)

    assert leaks(responses) == []


def test_no_answer_of_a_withdrawn_sheet_has_a_planted_word(
    client: Client, planted: Planted
) -> None:
    publishing.withdraw(
        sheet_id=planted.sheet.pk,
        by=User.objects.get(username=f"{STEM}-username"),
        reason=f"{STEM}-withdrawal-reason",
        now=LATER,
    )
    views.forget_copies()

    responses = answers(client)

    assert 410 in statuses(responses)
    assert leaks(responses) == []


def test_no_answer_of_a_renamed_sheet_has_a_planted_word(client: Client, planted: Planted) -> None:
    editing.change(
        planted.sheet, by=factories.person(), reason=f"{STEM}-rename", now=LATER, slug="keep"
    )
    views.forget_copies()

    responses = answers(client)

    assert 308 in statuses(responses)
    assert leaks(responses) == []


def test_no_answer_about_a_sheet_for_key_holders_has_a_planted_word(
    client: Client, planted: Planted
) -> None:
    editing.change(
        planted.sheet, by=factories.person(), reason=f"{STEM}-key", now=LATER, visibility="key"
    )
    views.forget_copies()

    responses = answers(client)

    assert leaks(responses) == []


def test_what_is_stored_to_be_served_has_no_planted_word(planted: Planted) -> None:
    publication = Publication.objects.get()

    served = bytes(publication.body) + bytes(publication.prompt) + bytes(publication.evidence)

    assert STEM not in served.decode().lower()


def test_a_health_answer_has_no_planted_word(
    client: Client, planted: Planted, settings: Any
) -> None:
    settings.CELERY_BROKER_URL = f"redis://{STEM}:{STEM}@127.0.0.1:9/0"

    response = client.get("/healthz")

    assert response.status_code == 503
    assert leaks([response]) == []


def test_the_description_of_the_api_has_no_planted_word(planted: Planted, tmp_path: Path) -> None:
    generated = tmp_path / "openapi.yaml"

    call_command("spectacular", file=str(generated))

    assert "/api/v1/sheets/{slug}/" in generated.read_text()
    assert STEM not in generated.read_text().lower()


def test_no_prompt_sent_to_a_model_has_a_planted_word(planted: Planted) -> None:
    first, second = planted.calls

    sent = json.dumps(
        [(call.path, dict(call.headers), without_replies(call.body)) for call in planted.calls]
    )

    assert planted.run.outcome == Run.Outcome.PASSED
    assert first.body["messages"] == [{"role": "user", "content": "When does it open?"}]
    assert len(second.body["messages"]) == 3
    assert STEM not in sent.lower()


def without_replies(body: dict[str, Any]) -> dict[str, Any]:
    """A request without what the model itself said before."""
    asked = [message for message in body["messages"] if message["role"] == "user"]
    return {**body, "messages": asked}


def test_a_model_is_sent_rules_and_text_and_neither_keys_nor_questions(planted: Planted) -> None:
    for call in planted.calls:
        system = [block["text"] for block in call.body["system"]]

        assert system[0].startswith("Answer only from the sheet.\n\n")
        assert system[1] == (
            "# The castle\n\n## Opening hours\n\n"
            "The castle opens at ten in the morning and closes at five."
        )
        assert "hours-key" not in json.dumps(call.body)
        assert "When may I come?" not in json.dumps(call.body)


def test_replies_stay_in_the_house(client: Client, planted: Planted) -> None:
    received = Attempt.objects.get().turns.get(index=0).received

    assert f"{STEM}-reply" in received
    assert leaks(answers(client)) == []


def test_the_log_of_a_run_and_a_publication_has_no_planted_word(planted: Planted) -> None:
    assert "castle" in planted.log
    assert STEM not in planted.log.lower()
    assert "Answer only from the sheet" not in planted.log
