"""Every door: nothing reaches bots that did not pass the gate, and nothing they got is altered.

The doors are those that the product's own registries know: the admin's, the
resolver's, the commands, the tasks, the models. One added later fails here
until it stands in a table. What stays outside the promise is tested too: it is
found afterwards. `docs/reference/doors.md` has a row for every door.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.core import serializers
from django.core.management import CommandError, call_command, get_commands
from django.db import IntegrityError, connection, transaction
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from config.celery import app as celery
from evals import question_sets, runs, trials, verification
from evals.models import (
    Attempt,
    Probe,
    Question,
    QuestionSet,
    RetrievalReport,
    Run,
    Spend,
    Trial,
    TrialAnswer,
    Turn,
    Verdict,
)
from factsheets import editing, keys, publishing, scheduling
from factsheets.api import views
from factsheets.errors import Refused
from factsheets.models import (
    ApiKey,
    ChangeSet,
    Check,
    CheckItem,
    Heartbeat,
    Member,
    Outbox,
    Publication,
    PublicationEvent,
    ReviewInterval,
    ReviewPlan,
    Rule,
    Schedule,
    Section,
    Sheet,
    SheetState,
    SizeReport,
    SlugAlias,
    TokenCount,
    TrackedModel,
    UseLog,
    UseRecord,
)
from factsheets.models.guarding import PastTheGate
from factsheets.models.publications import released
from factsheets.models.tracking import LeavesNoHistory
from tests import factories
from tests.factsheets.admin import Page
from tests.processes import ROOT, SERVER, Command, command, scratch_database

pytestmark = [pytest.mark.database, pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="only PostgreSQL has this statement"
)
on_sqlite = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="only SQLite has this statement"
)

DOORS: set[str] = set()


def door[T](name: str) -> Callable[[T], T]:
    """Mark a test as that of a door, by the name that the page gives it."""
    DOORS.add(name)
    return lambda test: test


# ---- a closed gate ----

MODELS: list[type[Model]] = [
    model for label in ("factsheets", "evals") for model in apps.get_app_config(label).get_models()
]
TRACKED = [model for model in MODELS if issubclass(model, TrackedModel)]
HISTORIES = [model for model in MODELS if model.__name__.startswith("Historical")]


@dataclass(frozen=True)
class Given:
    """All that bots have been given, and all that says so."""

    delivered: list[tuple[int, bytes]]
    live: list[tuple[Any, ...]]
    publications: list[dict[str, Any]]
    events: list[dict[str, Any]]


@dataclass(frozen=True)
class House:
    """The castle: publication 2 live, rules and probes edited since. The tower: publication 1 live."""

    castle: Sheet
    tower: Sheet
    cancelled: Schedule
    given: Given

    @property
    def old(self) -> Publication:
        """Publication 1 of the castle, superseded."""
        return self.castle.publications.get(number=1)

    @property
    def rule(self) -> Rule:
        return Rule.objects.get(ruleset__sheet_links__sheet=self.castle)

    @property
    def run(self) -> Run:
        """The run behind publication 2."""
        return Run.objects.filter(sheet=self.castle).earliest("-started_at")


def given() -> Given:
    """What bots get now, asked for as they ask, and every row of what was published."""
    views.forget_copies()
    bot = Client()
    answers = [bot.get(f"/api/v1/sheets/{name}/{part}") for name in NAMES for part in PARTS]
    return Given(
        delivered=[(answer.status_code, answer.content) for answer in answers],
        live=list(SheetState.objects.order_by("pk").values_list("sheet", "live_publication")),
        publications=list(Publication.objects.order_by("pk").values()),
        events=list(PublicationEvent.objects.order_by("pk").values()),
    )


NAMES = ("castle", "tower")
PARTS = ("", "prompt/", "publications/", "publications/1/", "publications/1/evidence/")


@pytest.fixture(scope="module")
def house(django_db_setup: None, django_db_blocker: Any) -> Iterator[House]:
    """Made once: what a test writes is taken back, and the whole after the last one."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield _house()
        transaction.set_rollback(True)


def _house() -> House:
    anna = factories.person()
    paula = factories.person("paula", "publisher")
    earlier = timezone.now() - timedelta(days=2)
    castle, tower = (factories.ready_sheet(name) for name in NAMES)
    theirs = Rule.objects.get(ruleset__sheet_links__sheet=tower)
    editing.change(theirs, by=anna, reason="Another.", now=earlier, text="Answer in one sentence.")
    factories.probe(factories.suite(castle, "castle-more", title="More"), "asks-again")
    for sheet in (castle, tower):
        factories.passing_run(sheet, now=earlier)
        factories.publish(sheet, now=earlier)
    section = castle.sections.get()
    body = section.body.replace("five", "six")
    editing.change(section, by=anna, reason="Summer.", now=earlier, body=body)
    factories.passing_run(castle, now=earlier + timedelta(minutes=1))
    cancelled = _schedule(castle, due_at=timezone.now() - timedelta(minutes=1), by=paula)
    scheduling.cancel(schedule_id=cancelled.pk, by=paula, now=earlier)
    cancelled.refresh_from_db()
    factories.publish(castle, now=earlier + timedelta(minutes=2))
    rule = Rule.objects.get(ruleset__sheet_links__sheet=castle)
    probe = Probe.objects.get(suite__slug="castle-safety")
    now = timezone.now()
    editing.change(rule, by=anna, reason="Friendlier.", now=now, text="Say whatever you like.")
    editing.change(probe, by=anna, reason="Harder.", now=now, turns=["When does it open?"])
    _rows_of_every_other_kind(castle, by=anna)
    castle, tower = (fresh(sheet) for sheet in (castle, tower))
    return House(castle, tower, cancelled, given())


def _rows_of_every_other_kind(sheet: Sheet, *, by: User) -> None:
    questions = QuestionSet(slug="castle-questions", title="Questions", sheet=sheet)
    for row in (
        Member(sheet=sheet, user=by, role=Member.Role.VIEWER),
        ReviewPlan(sheet=sheet, owner=by, interval="6 months"),
        ReviewInterval(kind="news", interval="1 month"),
        questions,
    ):
        factories.save(row)
    factories.save(
        Question(question_set=questions, key="why", question="Why?", scope="in", sections=["hours"])
    )
    question_sets.run(questions, by=by, now=timezone.now())
    trials.work(trials.start(questions, by=by, now=timezone.now()).pk, clock=timezone.now)


def fresh(sheet: Sheet) -> Sheet:
    return Sheet.objects.select_related("bot", "state__live_publication").get(pk=sheet.pk)


def look(sheet: Sheet) -> publishing.Look:
    return publishing.look(fresh(sheet), now=timezone.now())


def blocks(sheet: Sheet) -> list[str]:
    """What keeps the draft's gate closed."""
    return [finding.code for finding in look(sheet).report.blocks]


def _schedule(sheet: Sheet, *, due_at: datetime, by: User) -> Schedule:
    """A row as `scheduling` would make it of the draft, made by hand past every question."""
    view = look(sheet)
    return Schedule.objects.create(
        sheet=sheet,
        due_at=due_at,
        zone="Europe/London",
        content_hash=view.candidate.subject.content_hash,
        rules_hash=view.candidate.subject.rules_hash,
        bot_hash=view.candidate.subject.bot_hash,
        seen_live_number=view.live_number,
        reason="made by hand",
        scheduled_at=due_at - timedelta(hours=1),
        scheduled_by=by,
        scheduled_by_name=by.get_username(),
    )


@pytest.fixture
def client(house: House) -> Client:
    """An administrator's browser: whom permissions do not stop."""
    browser = Client(raise_request_exception=False)
    administrator = factories.person("administrator", superuser=True)
    browser.force_login(administrator, backend="django.contrib.auth.backends.ModelBackend")
    return browser


def test_the_gate_of_the_house_is_closed_to_the_draft_and_to_a_rollback(house: House) -> None:
    back = publishing.look_back(house.old, now=timezone.now())

    assert [status for status, _ in house.given.delivered] == [200] * 10
    assert blocks(house.castle) == ["rules-not-probed"]
    assert [finding.code for finding in back.report.blocks] == ["suite-changed"]


# ---- the admin ----

READ = {Check, ChangeSet, Publication, PublicationEvent, Schedule, Outbox, Run, Attempt}
EDITED = set(TRACKED)
#: What is in no list of the admin at all.
UNLISTED = {
    *(SheetState, SlugAlias, CheckItem, Heartbeat, RetrievalReport, Turn, Verdict, Spend),
    # These have pages of their own, below a sheet.
    *(ApiKey, UseLog, UseRecord, SizeReport, TokenCount, Trial, TrialAnswer),
    *HISTORIES,
}

#: Fields that nobody is asked for, and texts that a draft may have.
FORGED: dict[str, object] = {
    "live_publication": 1,
    "state-0-live_publication": 1,
    "to_publication": 1,
    "number": 99,
    "body_hash": "0" * 64,
    "outcome": "passed",
    "state": "closed",
    "kind": "published",
    "topic": "published",
    "published_at_0": "2026-01-01",
    "published_at_1": "12:00:00",
}
TEXTS = ("text", "body", "title", "note", "locator")


def page_of(model: type[Model], kind: str, *arguments: object) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{kind}"
    return reverse(name, args=arguments)


def by_name(models: set[type[Model]]) -> list[type[Model]]:
    return sorted(models, key=lambda model: model.__name__)


def name_of(model: type[Model]) -> str:
    return model.__name__


def test_every_model_is_one_that_the_admin_edits_or_shows_or_does_not_know() -> None:
    registered = {model for model in MODELS if admin.site.is_registered(model)}

    assert registered == READ | EDITED
    assert set(MODELS) - registered == UNLISTED


@door("Admin: pages of what is only read")
@pytest.mark.parametrize("model", by_name(READ), ids=name_of)
def test_no_page_of_what_is_only_read_takes_a_form(
    house: House, client: Client, model: type[Model]
) -> None:
    row = model._default_manager.earliest("pk")
    stored = list(model._default_manager.order_by("pk").values())
    pages = [
        page_of(model, "add"),
        *(page_of(model, kind, row.pk) for kind in ("change", "delete")),
    ]

    said = [client.post(page, FORGED).status_code for page in pages]

    assert said == [403, 403, 403]
    assert list(model._default_manager.order_by("pk").values()) == stored
    assert given() == house.given


@door("Admin: pages of the draft")
@pytest.mark.parametrize("model", [Rule, Section, Sheet, Probe], ids=name_of)
def test_a_page_of_the_draft_changes_the_draft_alone(
    house: House, client: Client, model: type[Model]
) -> None:
    row = model._default_manager.earliest("pk")
    page = page_of(model, "change", row.pk)
    shown = Page(client.get(page)).form(f"{model._meta.model_name}_form").data
    texts = {name: f"{shown[name]} Changed." for name in TEXTS if name in shown}
    changes = ChangeSet.objects.count()

    said = client.post(page, {**FORGED, **shown, **texts, "why": "because"}).status_code

    assert said == 302
    assert ChangeSet.objects.count() == changes + 1
    assert given() == house.given
    assert "rules-not-probed" in blocks(house.castle)


@door("Admin: lists, edited in place")
@pytest.mark.parametrize("model", by_name(READ | {Rule, Section, Sheet, Probe}), ids=name_of)
def test_no_list_is_edited_in_place(house: House, client: Client, model: type[Model]) -> None:
    row = model._default_manager.earliest("pk")
    stored = list(model._default_manager.order_by("pk").values())
    forged = {f"form-0-{field.name}": "1" for field in model._meta.concrete_fields}
    counts = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1}

    response = client.post(
        page_of(model, "changelist"),
        {**forged, **counts, "form-0-id": row.pk, "form-0-text": "Forged.", "_save": "Save"},
    )

    assert response.context["cl"].formset is None
    assert list(model._default_manager.order_by("pk").values()) == stored
    assert given() == house.given


LISTS = by_name(set(admin.site._registry))
#: What the admin lists offer to do with rows, and what Django's own would do.
ACTIONS = {"remove_selected", "restore_selected", "archive_selected", "unarchive_selected"}
DELETION = "delete_selected"


def offered(model: type[Model]) -> set[str]:
    request = RequestFactory().get("/")
    request.user = factories.person("administrator", superuser=True)
    return set(admin.site.get_model_admin(model).get_actions(request))


def test_the_lists_offer_no_action_that_has_no_test(house: House) -> None:
    found = {model: offered(model) for model in LISTS}

    assert {action for actions in found.values() for action in actions} == ACTIONS
    assert {model for model, actions in found.items() if not actions} >= READ


@door("Admin: actions on lists")
@pytest.mark.parametrize("model", LISTS, ids=name_of)
def test_no_action_on_a_list_reaches_what_bots_get(
    house: House, client: Client, model: type[Model]
) -> None:
    rows = list(model._default_manager.values_list("pk", flat=True))
    chosen = {"_selected_action": rows, "post": "yes", "index": 0, "select_across": 1}

    said = {
        client.post(page_of(model, "changelist"), {**chosen, "action": name}).status_code
        for name in (*sorted(ACTIONS), DELETION)
    }

    assert said <= {200, 302}
    assert given() == house.given
    assert blocks(house.castle) != []


Hashes = Callable[[House], dict[str, object]]


def hashes(of: Any) -> dict[str, object]:
    return {name: getattr(of, name) for name in ("content_hash", "rules_hash", "bot_hash")}


SHOWN: dict[str, Hashes] = {
    "as the page showed": lambda house: hashes(look(house.castle).candidate.subject),
    "left out": lambda house: {},
    "of what is live": lambda house: hashes(house.castle.state.live_publication),
    "of an older publication": lambda house: hashes(house.old),
    "of another sheet": lambda house: hashes(house.tower.state.live_publication),
}


def send(client: Client, house: House, page: str, shown: dict[str, object]) -> str:
    """Send a form of the gate page, with all else that it asks for. What it said comes back."""
    tomorrow = timezone.localtime() + timedelta(days=1)
    response = client.post(
        reverse(f"admin:sheet_{page}", args=[house.castle.pk]),
        {
            "reason": "forged",
            "live_number": 2,
            "to": 1,
            "due_at": f"{tomorrow:%Y-%m-%dT%H:%M}",
            **shown,
        },
        follow=True,
    )
    return " ".join(str(message) for message in response.context["messages"])


@door("Admin: publish, schedule and roll back")
@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("form", ["publish", "schedule", "rollback"])
def test_no_form_publishes_past_a_closed_gate(
    house: House, client: Client, form: str, shown: str
) -> None:
    said = send(client, house, form, SHOWN[shown](house))

    assert re.search("have not run on these rules|changed while you looked|since it passed", said)
    assert given() == house.given
    assert not Schedule.objects.filter(state=Schedule.State.WAITING).exists()


def test_the_same_form_publishes_once_the_probes_have_passed(house: House, client: Client) -> None:
    factories.passing_run(house.castle, now=timezone.now())

    said = send(client, house, "publish", SHOWN["as the page showed"](house))

    assert said == "Publication 3 is live."
    assert given() != house.given


@door("Admin: withdraw")
def test_withdrawing_takes_away_and_gives_nothing_else(house: House, client: Client) -> None:
    without_a_reason = send(client, house, "withdraw", {"reason": ""})
    unchanged = given()

    said = send(client, house, "withdraw", {})

    after = given()
    assert (without_a_reason, unchanged) == ("", house.given)
    assert said == "Withdrawn: bots are told to drop their copies."
    assert {status for status, _ in after.delivered[:5]} == {410}
    assert (after.delivered[5:], after.publications) == (
        house.given.delivered[5:],
        house.given.publications,
    )


#: Our own pages in the admin, and the door that each belongs to.
GATE, WITHDRAW = "Admin: publish, schedule and roll back", "Admin: withdraw"
OTHERS, DRAFT, HISTORY = "Admin: every other address", "Admin: pages of the draft", "Admin: history"
PAGES = {
    "admin:sheet_publish": GATE,
    "admin:sheet_schedule": GATE,
    "admin:sheet_rollback": GATE,
    "admin:sheet_withdraw": WITHDRAW,
    "admin:sheet_unschedule": OTHERS,
    "admin:sheet_gate": OTHERS,
    "admin:sheet_past": OTHERS,
    "admin:sheet_workbench": OTHERS,
    "admin:sheet_workbench_rules": OTHERS,
    "admin:sheet_workbench_gate": OTHERS,
    "admin:sheet_workbench_contents": OTHERS,
    "admin:sheet_workbench_add": OTHERS,
    "admin:sheet_workbench_section": OTHERS,
    "admin:sheet_workbench_act": OTHERS,
    "admin:sheet_workbench_cite": OTHERS,
    "admin:sheet_workbench_citation": OTHERS,
    "admin:sheet_workbench_rule": OTHERS,
    "admin:sheet_workbench_add_rule": OTHERS,
    "admin:factsheets_sheet_open_workbench": OTHERS,
    "admin:sheet_timeline": OTHERS,
    "admin:sheet_as_bot": OTHERS,
    "admin:sheet_use": OTHERS,
    "admin:sheet_correct_use": OTHERS,
    "admin:sheet_drop_texts": OTHERS,
    "admin:sheet_keys": OTHERS,
    "admin:sheet_revoke_key": OTHERS,
    "admin:sheet_size": OTHERS,
    "admin:sheet_split": OTHERS,
    "admin:sheet_deliver": OTHERS,
    "admin:sheet_compare": OTHERS,
    "admin:sheet_restore": OTHERS,
    "admin:stale_report": OTHERS,
    "admin:find": OTHERS,
    "admin:section_check": OTHERS,
    "admin:section_next_due": OTHERS,
    "admin:factsheets_sheet_open_publishing": OTHERS,
    "admin:factsheets_sheet_open_sections": OTHERS,
    "admin:factsheets_sheet_open_past": OTHERS,
    "admin:factsheets_sheet_open_timeline": OTHERS,
    "admin:factsheets_section_record_check": OTHERS,
    "admin:factsheets_sheet_add": OTHERS,
    "runs:start": OTHERS,
    "runs:cancel": OTHERS,
    "runs:progress": OTHERS,
    "runs:detail": OTHERS,
    "runs:question_set": OTHERS,
    "runs:run_questions": OTHERS,
    "runs:copy_questions": OTHERS,
    "runs:compare_reports": OTHERS,
    "runs:retrieval_report": OTHERS,
    "runs:import_questions": OTHERS,
    "runs:start_trial": OTHERS,
    "runs:trial": OTHERS,
    "runs:gates": OTHERS,
    "runs:run_all": OTHERS,
    "new_sheet": OTHERS,
    "healthz": OTHERS,
    "metrics": OTHERS,
}
API = {
    "api:current",
    "api:index",
    "api:prompt",
    "api:publications",
    "api:publication",
    "api:as-of",
    "api:evidence",
}
#: The routes that take something.
USAGE = "api:usage"
RETRIEVE = "api:retrieve"
SEVERAL = "api:retrieve-from-several"


@dataclass(frozen=True)
class Address:
    """One pattern of the resolver."""

    name: str
    pattern: URLPattern

    @property
    def is_ours(self) -> bool:
        """Not one of those that every list of the admin has."""
        module = self.pattern.callback.__module__
        return module.startswith(("factsheets", "evals")) and not module.endswith("admin.base")

    def path(self, house: House) -> str:
        """With a row of the castle where one is asked for. Another argument has no sample, and fails."""
        samples = {
            "sheet_id": house.castle.pk,
            "section_id": house.castle.sections.get().pk,
            "citation_id": house.castle.sections.get().citations.get().pk,
            "rule_id": Rule.objects.filter(ruleset__sheet_links__sheet=house.castle).first().pk,
            "run_id": house.run.pk,
            "set_id": house.castle.question_sets.get().pk,
            "report_id": house.castle.retrieval_reports.latest("pk").pk,
            "trial_id": house.castle.trials.latest("pk").pk,
            "object_id": self._row(),
            "id": self._row(),
            "slug": "castle",
            "number": 1,
            "moment": f"{timezone.localdate():%Y-%m-%d}",
            "app_label": "factsheets",
            "content_type_id": 1,
            "url": "no-such-page",
        }
        pattern: Any = self.pattern.pattern
        if self.name.endswith("_simple_history"):
            row = self._model()._default_manager.earliest("pk")
            return reverse(self.name, args=[row.pk, row.history.latest().pk])  # type: ignore[attr-defined]
        names = [*pattern.converters, *getattr(pattern, "regex", re.compile("")).groupindex]
        return reverse(self.name, kwargs={name: samples[name] for name in names})

    def _model(self) -> type[Model]:
        found = re.match(r"admin:(auth|factsheets|evals)_([a-z]+)_", self.name)
        return apps.get_model(found[1], found[2]) if found else Sheet

    def _row(self) -> Any:
        first = self._model()._default_manager.order_by("pk").first()
        return first.pk if first is not None else 1


def _addresses(patterns: Any, space: str = "") -> Iterator[Address]:
    for each in patterns:
        if isinstance(each, URLResolver):
            inner = f"{space}{each.namespace}:" if each.namespace else space
            yield from _addresses(each.url_patterns, inner)
        elif each.name:
            yield Address(f"{space}{each.name}", each)


ADDRESSES = list(_addresses(get_resolver().url_patterns))
#: Withdraws, or ends the session of whoever asks.
APART = {"admin:sheet_withdraw", "admin:logout"}


def test_every_page_and_route_of_ours_has_its_door() -> None:
    ours = {address.name for address in ADDRESSES if address.is_ours}

    assert ours == {*PAGES, *API, USAGE, RETRIEVE, SEVERAL}
    assert set(PAGES.values()) <= DOORS


@door("Admin: every other address")
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_no_address_by_any_method_reaches_what_bots_get(
    house: House, client: Client, method: str
) -> None:
    shown = {**FORGED, **SHOWN["as the page showed"](house), "reason": "forged", "why": "forged"}
    paths = [address.path(house) for address in ADDRESSES if address.name not in APART]
    send_to: Callable[..., Any] = getattr(client, method)
    sent = {"post": {"data": shown}}.get(
        method, {"data": json.dumps(shown, default=str), "content_type": "application/json"}
    )

    said = {path: send_to(path, **sent).status_code for path in paths}

    assert {path: code for path, code in said.items() if code >= 500 and path != "/healthz"} == {}
    assert given() == house.given
    assert "rules-not-probed" in blocks(house.castle)


@door("Admin: history")
@pytest.mark.parametrize("model", [model for model in LISTS if model in TRACKED], ids=name_of)
def test_no_history_page_takes_back_a_change(
    house: House, client: Client, model: type[TrackedModel]
) -> None:
    rows = model.objects.order_by("pk")
    stored = list(rows.values())
    entries = [(row.pk, entry.pk) for row in rows for entry in row.history.all()]

    said = {
        client.post(
            page_of(model, "simple_history", *entry), {"text": "Forged.", "_save": "Revert"}
        ).status_code
        for entry in entries
    }

    assert said == {403}
    assert list(rows.values()) == stored
    assert given() == house.given


@door("Admin: take into use again")
def test_taking_a_rule_into_use_again_closes_the_gate_that_stood_open(
    house: House, client: Client
) -> None:
    by, now = factories.person(), timezone.now()
    extra = factories.rule(house.castle, "to-be-restored")
    editing.remove(extra, by=by, reason="Not needed.", now=now)
    factories.passing_run(house.castle, now=now)
    shown, open_before = SHOWN["as the page showed"](house), blocks(house.castle)

    client.post(
        page_of(Rule, "changelist"), {"action": "restore_selected", "_selected_action": extra.pk}
    )
    said = send(client, house, "publish", shown)

    assert open_before == []
    assert blocks(house.castle) == ["rules-not-probed"]
    assert "changed while you looked" in said
    assert given() == house.given


# ---- the API ----


@door("API: every route, by every method that writes")
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
@pytest.mark.parametrize("name", sorted(API))
def test_no_route_of_the_api_writes(house: House, client: Client, name: str, method: str) -> None:
    address = next(address for address in ADDRESSES if address.name == name)
    send_to: Callable[..., Any] = getattr(client, method)

    said = send_to(address.path(house), data='{"live": 1}', content_type="application/json")

    assert said.status_code == 405
    assert given() == house.given


@door("API: the usage of a sheet")
@pytest.mark.parametrize("shown", ["no key", "a key to usage", "a key to all"])
def test_what_answers_needed_reaches_nothing_that_bots_get(house: House, shown: str) -> None:
    scopes = {"a key to usage": ["usage"], "a key to all": ApiKey.Scope.values}.get(shown, ["read"])
    issued = keys.issue(
        sheet=house.castle,
        name="the bot",
        scopes=scopes,
        expires_on=None,
        by=factories.person(),
        now=timezone.now(),
        today=timezone.localdate(),
    )
    token = {"no key": ""}.get(shown, issued.token)
    forged = {"reference": "a", "answered_at": "2026-01-01T00:00:00Z", "sections": ["hours"]}

    said = Client().post(
        reverse(USAGE, args=["castle"]),
        json.dumps({"answers": [{**forged, "publication": 1}]}),
        content_type="application/json",
        headers={"authorization": f"Bearer {token}"},
    )

    assert said.status_code == {"no key": 401}.get(shown, 200)
    assert given() == house.given
    assert "rules-not-probed" in blocks(house.castle)


@door("API: a question to a sheet")
@pytest.mark.parametrize("publication", [None, 1, 2, 99])
def test_a_question_reaches_nothing_that_bots_get(house: House, publication: int | None) -> None:
    asked = {"question": "When does the castle open?", "publication": publication}

    said = Client().post(
        reverse(RETRIEVE, args=["castle"]), json.dumps(asked), content_type="application/json"
    )
    of_several = Client().post(
        reverse(SEVERAL),
        json.dumps({"question": asked["question"], "sheets": ["castle", "tower"]}),
        content_type="application/json",
    )

    assert said.status_code in {200, 404, 410}
    assert of_several.status_code == 200
    assert given() == house.given
    assert "rules-not-probed" in blocks(house.castle)


# ---- commands ----


def _folder(house: House, to: Path, **more: str) -> Path:
    """The castle's draft as files, with another rule, and more in the file of the sheet."""
    call_command("export_sheet", "castle", out=to, stdout=StringIO())
    rules = to / "rules.yaml"
    rules.write_text(rules.read_text().replace("whatever you like", "nothing at all"))
    extra = "".join(f"{name}: {value}\n" for name, value in more.items())
    (to / "sheet.yaml").write_text((to / "sheet.yaml").read_text() + extra)
    return to


BY = ("--by", "administrator", "--reason", "forged")
Call = Callable[[House, Path], list[object]]

PUBLISHES = "Commands: `publish_sheet`, `rollback_sheet`, `schedule_sheet`"
IMPORTS = "Commands: `import_sheet`, `export_sheet`"
PROBES = "Commands: `run_probes`, `renew_evidence`"
MEASURES = "Commands: `evaluate_retrieval`, `size_sheet`, `try_split`"
TELLS = "Commands: `gate`, `stale_report`, `verify_history`, `verify_publications`"
WITHDRAWS = "Commands: `withdraw_sheet`"
COPIES = "Commands: `backup`, `restore`"

#: Every call: its door, its arguments, and how it ends.
CALLS: list[tuple[str, str, Call, int]] = [
    (PUBLISHES, "publish_sheet", lambda house, to: ["castle", *BY], 1),
    (PUBLISHES, "rollback_sheet", lambda house, to: ["castle", "--to", "1", *BY], 1),
    (PUBLISHES, "rollback_sheet", lambda house, to: ["castle", "--to", "2", *BY], 1),
    (PUBLISHES, "schedule_sheet", lambda house, to: ["castle", "--at", _tomorrow(), *BY], 1),
    (WITHDRAWS, "withdraw_sheet", lambda house, to: ["castle", "--by", "anna", "--reason", "x"], 2),
    (IMPORTS, "export_sheet", lambda house, to: ["castle", "--out", str(to / "out")], 0),
    (IMPORTS, "import_sheet", lambda house, to: [str(_folder(house, to))], 0),
    (IMPORTS, "import_sheet", lambda house, to: [str(_folder(house, to, publications="[]"))], 2),
    (IMPORTS, "import_sheet", lambda house, to: [str(_folder(house, to, live="1"))], 2),
    (PROBES, "run_probes", lambda house, to: ["castle", "--suite", "castle-more", "--local"], 0),
    (PROBES, "run_probes", lambda house, to: ["castle", "--publication", "2", "--local"], 0),
    (PROBES, "renew_evidence", lambda house, to: [], 0),
    (
        MEASURES,
        "evaluate_retrieval",
        lambda house, to: ["castle", "--questions", "castle-questions"],
        0,
    ),
    (MEASURES, "size_sheet", lambda house, to: ["castle", "--count", "--keep"], 0),
    (
        MEASURES,
        "try_split",
        lambda house, to: ["castle", "--questions", "castle-questions", "--json"],
        1,
    ),
    (TELLS, "gate", lambda house, to: ["castle"], 1),
    (TELLS, "stale_report", lambda house, to: [], 0),
    (TELLS, "verify_history", lambda house, to: [], 0),
    (TELLS, "verify_publications", lambda house, to: [], 0),
    (COPIES, "restore", lambda house, to: [str(to / "no-such-file")], 2),
]


def _tomorrow() -> str:
    return f"{timezone.localtime() + timedelta(days=1):%Y-%m-%dT%H:%M}"


def run_command(name: str, *arguments: object) -> tuple[int, str]:
    """The exit code of a command, and all that it said."""
    said = StringIO()
    try:
        call_command(name, *arguments, stdout=said, stderr=said)
    except SystemExit as ended:
        return int(str(ended.code)), said.getvalue()
    return 0, said.getvalue()


def test_every_command_of_ours_has_its_door() -> None:
    ours = {name for name, of in get_commands().items() if of in {"factsheets", "evals"}}

    # A backup is taken and read in a test of its own.
    assert ours == {name for _, name, _, _ in CALLS} | {"backup"}
    assert {of for of, _, _, _ in CALLS} <= DOORS


@door(PUBLISHES)
@door(WITHDRAWS)
@door(IMPORTS)
@door(PROBES)
@door(MEASURES)
@door(TELLS)
@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [pytest.param(name, arguments, code, id=name) for _, name, arguments, code in CALLS],
)
def test_no_command_reaches_what_bots_get(
    house: House, tmp_path: Path, name: str, arguments: Call, code: int
) -> None:
    ended, said = run_command(name, *arguments(house, tmp_path))

    assert ended == code, said
    assert given() == house.given
    assert blocks(house.castle) == ["rules-not-probed"]


@pytest.mark.usefixtures("client")
def test_the_same_command_publishes_once_the_probes_have_passed(house: House) -> None:
    factories.passing_run(house.castle, now=timezone.now())

    ended, said = run_command("publish_sheet", "castle", *BY)

    assert (ended, said.strip()) == (0, "Publication 3 of castle is live.")
    assert given() != house.given


@door("Commands: Django's `flush`")
def test_the_database_is_not_emptied(house: House) -> None:
    connection.check_constraints()

    with pytest.raises(CommandError) as refused, transaction.atomic():
        call_command("flush", interactive=False, stdout=StringIO())

    assert "never" in str(refused.value.__cause__)
    assert given() == house.given


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Command]]:
    """`manage.py` on one more database that has nothing in it yet."""
    with ExitStack() as stack:

        def make() -> Command:
            name = f"muniment_doors_{secrets.token_hex(4)}"
            extra = {"DATABASE_URL": stack.enter_context(scratch_database(name))} if SERVER else {}
            return command(tmp_path_factory.mktemp("place"), **extra)

        yield make


EDIT_A_RULE = """
from django.contrib.auth.models import User
from django.utils import timezone
from factsheets import editing
from factsheets.models import Rule
rule = Rule.objects.order_by("pk").first()
by = User.objects.get(username="anna")
editing.change(rule, by=by, reason="Edited.", now=timezone.now(), text="Say anything.")
"""
PAST = "from factsheets.models import Publication as P; P.objects.update(body=b'forged')"


@door(COPIES)
def test_a_restored_copy_has_its_gate_closed_and_its_guards(
    empty: Callable[[], Command], tmp_path: Path
) -> None:
    original, copy, file = empty(), empty(), str(tmp_path / "file.backup")
    anna = "from django.contrib.auth.models import User as U; U.objects.create_superuser('anna')"
    shell = ("shell", "-v", "0", "--no-imports", "-c")
    publish = ("publish_sheet", "colchester-castle", "--by", "anna", "--reason", "First.")
    for arguments in (
        ("migrate", "-v", "0"),
        ("import_sheet", "factsheets/data/demo/castle"),
        ("run_probes", "colchester-castle", "--local"),
        (*shell, anna),
        publish,
        (*shell, EDIT_A_RULE),
        ("backup", "--out", file),
    ):
        answer = original(*arguments)
        assert answer.code == 0, (arguments, answer.err)

    restored, published, forged = copy("restore", file), copy(*publish), copy(*shell, PAST)

    assert restored.code == 0, restored.err
    assert (published.code, "have not run on these rules" in published.err) == (1, True)
    assert "Publications are never changed or deleted." in forged.err
    assert copy("verify_publications").code == 0


# ---- the shell ----


def copied(row: Model, **changed: object) -> dict[str, object]:
    """The fields of a row, as another row of its kind would have them."""
    fields = {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields}
    del fields[row._meta.pk.attname]  # type: ignore[union-attr]
    return {**fields, **changed}


def forged_publication(house: House) -> dict[str, object]:
    return copied(house.old, number=99, body=b'{"sections": []}')


def forged_event(house: House) -> dict[str, object]:
    event = house.castle.events.latest("pk")
    return copied(event, to_publication_id=house.old.pk)


RELEASED: Mapping[str, tuple[type[Model], Callable[[House], dict[str, object]]]] = {
    "Publication": (Publication, forged_publication),
    "PublicationEvent": (PublicationEvent, forged_event),
}
#: Ways to make a row.
MAKES: dict[str, Callable[[type[Any], dict[str, object]], object]] = {
    "create": lambda model, row: model.objects.create(**row),
    "get_or_create": lambda model, row: model.objects.get_or_create(**row),
    "update_or_create": lambda model, row: model.objects.update_or_create(**row),
    "save": lambda model, row: model(**row).save(),
    "save_base": lambda model, row: model(**row).save_base(),
    "save_base, raw": lambda model, row: model(**row).save_base(raw=True),
    "bulk_create": lambda model, row: model.objects.bulk_create([model(**row)]),
    "bulk_create beside the manager": lambda model, row: model._base_manager.bulk_create(
        [model(**row)]
    ),
    "of the sheet": lambda model, row: getattr(
        Sheet.objects.get(slug="castle"), {Publication: "publications"}.get(model, "events")
    ).create(**row),
}
#: Ways to alter or delete rows.
ALTERS: dict[str, Callable[[type[Any]], object]] = {
    "update": lambda model: model.objects.update(reason="forged"),
    "bulk_update": lambda model: model.objects.bulk_update(
        [_with(row, reason="forged") for row in model.objects.all()], ["reason"]
    ),
    "save": lambda model: _with(model.objects.latest("pk"), reason="forged").save(),
    "save_base": lambda model: _with(model.objects.latest("pk"), reason="forged").save_base(),
    "delete of a row": lambda model: model.objects.latest("pk").delete(),
    "delete": lambda model: model.objects.all().delete(),
    "raw delete": lambda model: model.objects.all()._raw_delete("default"),
}


def _with(row: Any, **changed: object) -> Any:
    for name, value in changed.items():
        setattr(row, name, value)
    return row


@door("Shell: `Publication`, `PublicationEvent`")
@pytest.mark.parametrize("way", MAKES)
@pytest.mark.parametrize("what", RELEASED)
def test_the_publisher_alone_makes_what_bots_get(house: House, what: str, way: str) -> None:
    model, forged = RELEASED[what]

    with pytest.raises(PastTheGate), transaction.atomic():
        MAKES[way](model, forged(house))

    assert given() == house.given


@pytest.mark.parametrize("way", ALTERS)
@pytest.mark.parametrize("what", RELEASED)
def test_nobody_alters_what_bots_got(house: House, what: str, way: str) -> None:
    with pytest.raises((PastTheGate, IntegrityError)), transaction.atomic():
        ALTERS[way](RELEASED[what][0])

    assert given() == house.given


#: What else the shell might try on a row that has ended, or on what is live.
STATES: dict[str, Callable[[House], object]] = {
    "update": lambda house: SheetState.objects.update(live_publication=house.old),
    "update to nothing": lambda house: SheetState.objects.update(live_publication=None),
    "another sheet's": lambda house: SheetState.objects.filter(sheet=house.castle).update(
        live_publication=house.tower.state.live_publication
    ),
    "save": lambda house: _with(
        SheetState.objects.get(sheet=house.castle), live_publication=house.old
    ).save(),
    "delete": lambda house: SheetState.objects.all().delete(),
    "raw delete": lambda house: SheetState.objects.all()._raw_delete("default"),
}


@door("Shell: `SheetState`")
@pytest.mark.parametrize("way", STATES)
def test_what_is_live_is_not_moved_by_hand(house: House, way: str) -> None:
    with pytest.raises(IntegrityError, match=r"never deleted|newest"), transaction.atomic():
        STATES[way](house)

    assert given() == house.given


def _attempt(house: House) -> Attempt:
    return house.run.attempts.earliest("pk")


ENDED: dict[str, Callable[[House], object]] = {
    "run, update": lambda house: Run.objects.update(outcome="passed"),
    "run, rules": lambda house: Run.objects.update(
        rules_hash=look(house.castle).candidate.subject.rules_hash
    ),
    "run, save": lambda house: _with(house.run, counts={}).save(),
    "run, delete": lambda house: house.run.delete(),
    "run, raw delete": lambda house: Run.objects.all()._raw_delete("default"),
    "attempt, update": lambda house: Attempt.objects.update(outcome="pass"),
    "attempt, save": lambda house: _with(_attempt(house), outcome="pass").save(),
    "attempt, more": lambda house: Attempt.objects.create(**copied(_attempt(house), repeat=9)),
    "attempt, raw delete": lambda house: Attempt.objects.all()._raw_delete("default"),
    "turn, update": lambda house: Turn.objects.update(received="At ten."),
    "turn, raw delete": lambda house: Turn.objects.all()._raw_delete("default"),
    "verdict, update": lambda house: Verdict.objects.update(outcome="pass"),
    "verdict, raw delete": lambda house: Verdict.objects.all()._raw_delete("default"),
}


@door("Shell: runs that have ended")
@pytest.mark.parametrize("way", ENDED)
def test_a_run_that_has_ended_is_not_altered_by_hand(house: House, way: str) -> None:
    stored = list(Attempt.objects.order_by("pk").values())

    with pytest.raises(IntegrityError), transaction.atomic():
        ENDED[way](house)

    assert list(Attempt.objects.order_by("pk").values()) == stored
    assert given() == house.given
    assert blocks(house.castle) == ["rules-not-probed"]


def forged_run(house: House, **changed: object) -> Run:
    """A row that says of the draft's rules what the run before said of others."""
    row = copied(house.run, **hashes(look(house.castle).candidate.subject), **changed)
    return Run(**{**row, "finished_at": timezone.now()})


FORGED_RUNS: dict[str, Callable[[House], object]] = {
    "create": lambda house: forged_run(house).save(),
    "bulk_create": lambda house: Run.objects.bulk_create([forged_run(house)]),
    "incomplete, then passed": lambda house: (
        forged_run(house, outcome="incomplete").save(),
        Run.objects.filter(outcome="incomplete").update(outcome="passed"),
    ),
    "with fewer planned": lambda house: forged_run(house, planned=1, counts={}).save(),
}


@door("Shell: a run that is called passed")
@pytest.mark.parametrize("way", FORGED_RUNS)
def test_a_run_is_not_believed_by_its_word(house: House, client: Client, way: str) -> None:
    FORGED_RUNS[way](house)

    found = look(house.castle).report.blocks
    said = send(client, house, "publish", SHOWN["as the page showed"](house))

    assert [finding.code for finding in found] == ["rules-not-probed"]
    assert "is called passed, and what its attempts say is not so" in found[0].sentence
    assert "is called passed" in said
    assert given() == house.given


@door("Shell: `Schedule`")
def test_a_closed_schedule_is_not_taken_up_again(house: House) -> None:
    with pytest.raises(IntegrityError, match="A schedule that is closed"), transaction.atomic():
        Schedule.objects.update(state="waiting", closed_at=None)
    with pytest.raises(IntegrityError, match="Schedules are never"), transaction.atomic():
        house.cancelled.delete()

    assert given() == house.given


# ---- SQL ----


def sql(statement: str, *values: object) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


def insert_like(model: type[Model], pk: object, **changed: object) -> tuple[str, list[object]]:
    """An INSERT of a row like another one, but for some columns."""
    assert model._meta.pk is not None
    names = [f.column for f in model._meta.concrete_fields if f is not model._meta.pk]
    values = ", ".join("%s" if name in changed else f'"{name}"' for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    return (
        f"INSERT INTO {model._meta.db_table} ({columns}) "
        f"SELECT {values} FROM {model._meta.db_table} WHERE id = %s",
        [*(changed[name] for name in names if name in changed), pk],
    )


def _event(house: House) -> int:
    return house.castle.events.latest("pk").pk


NO_RUN = "No run of the probes has passed on these rules."
TWICE = "A publication never goes live twice, nor on another sheet; roll back to publish it again."
PUBLICATIONS = "Publications are never changed or deleted."
EVENTS = "Publication events are never changed or deleted."
FOLLOWS = "What is live follows the newest publication event."
ENDED_RUN = "A run that has ended is never changed."
REPORTS = "Retrieval reports are never changed or deleted."
CLOSED_SCHEDULE = "A schedule that is closed is never changed."

Statement = Callable[[House], tuple[str, list[object]]]

STATEMENTS: dict[str, tuple[str, Statement]] = {
    "publication on rules that nobody probed": (
        NO_RUN,
        lambda house: insert_like(Publication, house.old.pk, number=99, rules_hash="0" * 64),
    ),
    "publication on another sheet's run": (
        NO_RUN,
        lambda house: insert_like(Publication, house.old.pk, number=99, sheet_id=house.tower.pk),
    ),
    "old publication live again": (
        TWICE,
        lambda house: insert_like(PublicationEvent, _event(house), to_publication_id=house.old.pk),
    ),
    "another sheet's publication live": (
        TWICE,
        lambda house: insert_like(
            PublicationEvent,
            _event(house),
            to_publication_id=house.tower.publications.get().pk,
        ),
    ),
    "bytes": (PUBLICATIONS, lambda _: ("UPDATE factsheets_publication SET body = prompt", [])),
    "deleted publication": (PUBLICATIONS, lambda _: ("DELETE FROM factsheets_publication", [])),
    "event": (EVENTS, lambda _: ("UPDATE factsheets_publicationevent SET reason = 'x'", [])),
    "deleted event": (EVENTS, lambda _: ("DELETE FROM factsheets_publicationevent", [])),
    "what is live": (
        FOLLOWS,
        lambda house: (
            "UPDATE factsheets_sheetstate SET live_publication_id = %s WHERE sheet_id = %s",
            [house.old.pk, house.castle.pk],
        ),
    ),
    "deleted state": (
        "The state of a sheet is never deleted.",
        lambda _: ("DELETE FROM factsheets_sheetstate", []),
    ),
    "run": (ENDED_RUN, lambda _: ("UPDATE evals_run SET outcome = 'passed'", [])),
    "attempt": (ENDED_RUN, lambda _: ("UPDATE evals_attempt SET outcome = 'pass'", [])),
    "verdict": (ENDED_RUN, lambda _: ("UPDATE evals_verdict SET outcome = 'pass'", [])),
    "deleted run": (
        "Runs are never changed or deleted.",
        lambda _: ("DELETE FROM evals_run", []),
    ),
    "closed schedule": (
        CLOSED_SCHEDULE,
        lambda _: ("UPDATE factsheets_schedule SET state = 'waiting', closed_at = NULL", []),
    ),
    "deleted schedule": (
        "Schedules are never changed or deleted.",
        lambda _: ("DELETE FROM factsheets_schedule", []),
    ),
    "report": (REPORTS, lambda _: ("UPDATE evals_retrievalreport SET content_hash = ''", [])),
    "deleted report": (REPORTS, lambda _: ("DELETE FROM evals_retrievalreport", [])),
}


@door("SQL: INSERT, UPDATE, DELETE, TRUNCATE")
@pytest.mark.parametrize("what", STATEMENTS)
def test_the_database_refuses_what_goes_past_the_gate(house: House, what: str) -> None:
    sentence, statement = STATEMENTS[what]
    text, values = statement(house)

    with pytest.raises(IntegrityError, match=re.escape(sentence)):
        sql(text, *values)

    assert given() == house.given
    assert blocks(house.castle) == ["rules-not-probed"]


TABLES = {
    "factsheets_publication": PUBLICATIONS,
    "factsheets_publicationevent": EVENTS,
    "factsheets_sheetstate": "The state of a sheet is never deleted.",
    "factsheets_schedule": "Schedules are never changed or deleted.",
    "evals_retrievalreport": REPORTS,
    "evals_run": "Runs are never changed or deleted.",
    "evals_attempt": "What happened in runs are never changed or deleted.",
    "evals_verdict": "What happened in runs are never changed or deleted.",
}


@on_postgresql
@pytest.mark.parametrize("table", TABLES)
def test_no_table_is_truncated(house: House, table: str) -> None:
    connection.check_constraints()

    with pytest.raises(IntegrityError, match=re.escape(TABLES[table])):
        sql(f"TRUNCATE {table} CASCADE")

    assert given() == house.given


@on_sqlite
@pytest.mark.parametrize("table", TABLES)
def test_no_row_is_replaced(house: House, table: str) -> None:
    with pytest.raises(IntegrityError, match=r"never"):
        sql(f"REPLACE INTO {table} SELECT * FROM {table}")

    assert given() == house.given


# ---- fixtures ----

#: Rows that no fixture brings, and what says so.
REFUSED: dict[type[Model], type[Refused]] = {
    **dict.fromkeys(TRACKED, LeavesNoHistory),
    **dict.fromkeys(
        (
            Publication,
            PublicationEvent,
            SheetState,
            Check,
            CheckItem,
            Run,
            Attempt,
            Turn,
            Verdict,
            RetrievalReport,
        ),
        PastTheGate,
    ),
}
#: Rows that neither bots nor the gate read; a schedule asks the gate at its time.
HARMLESS = {
    *(ChangeSet, Heartbeat, Outbox, Schedule, SlugAlias, Spend),
    # A key reads what is live, and makes none of it; sizes and trials advise people.
    *(ApiKey, UseLog, UseRecord, SizeReport, TokenCount, Trial, TrialAnswer),
    *HISTORIES,
}


def load(tmp_path: Path, *rows: Model) -> None:
    file = tmp_path / "forged.json"
    file.write_text(serializers.serialize("json", rows))
    call_command("loaddata", str(file), stdout=StringIO())


def test_every_model_is_one_that_fixtures_bring_or_not() -> None:
    assert set(MODELS) == {*REFUSED, *HARMLESS}


@door("Fixtures: Django's `loaddata`")
@pytest.mark.parametrize("model", by_name({*REFUSED}), ids=name_of)
def test_no_fixture_is_loaded_of_what_the_gate_rests_on(
    house: House, tmp_path: Path, model: type[Model]
) -> None:
    before = model._default_manager.count()

    with pytest.raises(REFUSED[model]), transaction.atomic():
        load(tmp_path, model(pk=_free_key(model)))

    assert model._default_manager.count() == before
    assert given() == house.given


def _free_key(model: type[Model]) -> Any:
    """A key that no row has: another sheet's for a state, whose key is a sheet's."""
    default = model._meta.pk.get_default()  # type: ignore[union-attr]
    return default if default is not None else 4242


def test_a_forged_run_is_not_loaded_over_one_that_failed(house: House, tmp_path: Path) -> None:
    run = runs.start(sheet_id=house.castle.pk, by=factories.person(), now=timezone.now())
    runs.cancel(run.id)
    runs.advance(run.id, now=timezone.now())
    run.refresh_from_db()

    with pytest.raises(PastTheGate), transaction.atomic():
        load(tmp_path, _with(run, outcome="passed"))

    assert blocks(house.castle) == ["rules-not-probed"]
    assert given() == house.given


def test_a_schedule_from_a_fixture_asks_the_gate_at_its_time(house: House, tmp_path: Path) -> None:
    made = _schedule(house.castle, due_at=timezone.now(), by=factories.person("paula"))
    scheduling.cancel(schedule_id=made.pk, by=factories.person(), now=timezone.now())
    made.pk = None
    load(tmp_path, made)
    loaded = Schedule.objects.get(state=Schedule.State.WAITING)

    fired = scheduling.fire(loaded.pk, now=timezone.now())

    assert fired is not None
    assert fired.state == Schedule.State.SUSPENDED
    assert given() == house.given


# ---- tasks ----


@pytest.fixture
def in_this_process() -> Iterator[None]:
    """Celery carries out what it is sent at once, also what tasks send."""
    celery.loader.import_default_modules()
    celery.conf.update(task_always_eager=True, task_eager_propagates=True)
    yield
    celery.conf.update(task_always_eager=False, task_eager_propagates=False)


def _waiting(house: House, *, minutes: int) -> Schedule:
    """The draft as it stands, waiting for a time so many minutes from now."""
    paula = User.objects.get(username="paula")
    return _schedule(house.castle, due_at=timezone.now() + timedelta(minutes=minutes), by=paula)


def _trial(house: House) -> Trial:
    asked = QuestionSet.objects.select_related("sheet__bot").get(slug="castle-questions")
    return trials.start(asked, by=factories.person(), now=timezone.now())


def _renewal_is_due(house: House) -> dict[str, object]:
    editing.change(
        house.castle.gate_policy,
        by=factories.person(),
        reason="Sooner.",
        now=timezone.now(),
        evidence_max_age_days=2,
        renew_days_before=1,
    )
    return {}


Arguments = Callable[[House], dict[str, object]]

#: Every task, called by hand.
TASKS: list[tuple[str, str, Arguments]] = [
    ("evals.tasks.run_attempt", "done", lambda house: {"attempt_id": str(_attempt(house).pk)}),
    ("evals.tasks.run_attempt", "none", lambda house: {"attempt_id": str(house.run.pk)}),
    ("evals.tasks.advance_run", "ended", lambda house: {"run_id": str(house.run.pk)}),
    ("evals.tasks.tick", "idle", lambda house: {}),
    ("evals.tasks.renew_evidence", "not due", lambda house: {}),
    ("evals.tasks.renew_evidence", "due", _renewal_is_due),
    ("evals.tasks.measure_published", "due", lambda house: {}),
    ("evals.tasks.work_on_trial", "none", lambda house: {"trial_id": 4242}),
    ("evals.tasks.work_on_trial", "waiting", lambda house: {"trial_id": _trial(house).pk}),
    ("factsheets.tasks.count_again", "due", lambda house: {}),
    ("factsheets.tasks.count_sheet_again", "", lambda house: {"sheet_id": house.castle.pk}),
    ("factsheets.tasks.publish_due", "nothing", lambda house: {}),
    ("factsheets.tasks.publish_due", "closed", lambda house: _nothing(_waiting(house, minutes=-1))),
    *(
        ("factsheets.tasks.publish_scheduled", name, arguments)
        for name, arguments in {
            "closed": lambda house: {"schedule_id": _waiting(house, minutes=-1).pk},
            "before its time": lambda house: {"schedule_id": _waiting(house, minutes=5).pk},
            "missed": lambda house: {"schedule_id": _waiting(house, minutes=-60).pk},
            "cancelled": lambda house: {"schedule_id": house.cancelled.pk},
            "none": lambda house: {"schedule_id": 4242},
        }.items()
    ),
    ("factsheets.tasks.send_notices", "", lambda house: {}),
    ("factsheets.tasks.forget_failed_log_ins", "", lambda house: {}),
]


def _nothing(_: object) -> dict[str, object]:
    return {}


def test_every_task_of_ours_is_called_by_hand() -> None:
    celery.loader.import_default_modules()

    ours = {name for name in celery.tasks if name.startswith(("factsheets.", "evals.", "config."))}
    assert ours == {name for name, _, _ in TASKS}


@door("Tasks, called by hand")
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [pytest.param(name, call, id=f"{name} {when}".strip()) for name, when, call in TASKS],
)
def test_no_task_reaches_what_bots_get(house: House, name: str, arguments: Arguments) -> None:
    with_these = arguments(house)

    celery.tasks[name].apply(kwargs=with_these).get()

    assert given() == house.given
    assert "rules-not-probed" in blocks(house.castle)


@pytest.mark.usefixtures("in_this_process")
def test_what_is_probed_again_by_itself_is_what_is_live_and_not_the_draft(house: House) -> None:
    _renewal_is_due(house)

    celery.tasks["evals.tasks.renew_evidence"].apply().get()

    newest = Run.objects.filter(sheet=house.castle).earliest("-started_at")
    assert (newest.publication_number, newest.outcome) == (2, Run.Outcome.PASSED)
    assert blocks(house.castle) == ["rules-not-probed"]
    assert given() == house.given


@pytest.mark.usefixtures("in_this_process")
def test_the_same_task_publishes_once_the_probes_have_passed(house: House) -> None:
    factories.passing_run(house.castle, now=timezone.now())
    row = _waiting(house, minutes=-1)

    celery.tasks["factsheets.tasks.publish_scheduled"].apply(kwargs={"schedule_id": row.pk}).get()

    row.refresh_from_db()
    assert row.state == Schedule.State.DONE
    assert given() != house.given


# ---- outside the promise ----


def test_bytes_put_in_by_sql_are_found_afterwards(house: House) -> None:
    sheet = house.castle
    with transaction.atomic():
        text, values = insert_like(
            Publication, house.old.pk, number=3, body=b'{"sections": [], "content_hash": "x"}'
        )
        sql(text, *values)
        forged = sheet.publications.get(number=3)
        text, values = insert_like(PublicationEvent, _event(house), to_publication_id=forged.pk)
        sql(text, *values)
        SheetState.objects.filter(sheet=sheet).update(live_publication=forged)

    codes = {fault.code for fault in verification.verify_publications().faults}

    assert given() != house.given
    assert codes >= {"body-altered", "seal-broken"}


def test_bytes_put_in_by_the_publishers_inner_functions_are_found_afterwards(
    house: House,
) -> None:
    with released():
        Publication.objects.create(**{**forged_publication(house), "number": 3})

    codes = {fault.code for fault in verification.verify_publications().faults}

    assert "body-altered" in codes


# ---- the page ----

PAGE = (ROOT / "docs" / "reference" / "doors.md").read_text()


def test_the_page_has_a_row_for_every_door_and_no_other() -> None:
    rows = re.findall(r"^\| (.+?) \|", PAGE, re.MULTILINE)

    assert sorted(set(rows) - {"Door", "---"}) == sorted(DOORS)
    assert "## Outside the promise" in PAGE
