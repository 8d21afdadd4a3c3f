"""Every address of the admin, for every role, by every method: who may, and who is told no.

The addresses are those that the resolver knows, so that a page added later
cannot be left out. What each role may see and do stands here in tables of its
own, and not in the code's words. There are two sheets; people with a role on
one of them, the castle, must not reach the other, the café.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse

from evals import question_sets, trials
from evals.models import (
    Attempt,
    Probe,
    Question,
    QuestionSet,
    RetrievalReport,
    Run,
    Suite,
    SuiteRequirement,
    Trial,
)
from factsheets import checking, editing, roles
from factsheets.models import (
    BotProfile,
    ChangeSet,
    Check,
    Citation,
    GatePolicy,
    Member,
    Outbox,
    Publication,
    PublicationEvent,
    ReviewInterval,
    ReviewPlan,
    Rule,
    RuleSet,
    Schedule,
    Section,
    Sheet,
    SheetRuleSet,
    Source,
)
from tests import factories
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

V, E, K, P, M = roles.ROLES
EVERY_ROLE = frozenset(roles.ROLES)
NOBODY: frozenset[str] = frozenset()

# ---- what each role may do ----

#: Rows that are edited: who adds some on a page of their own, and who changes them.
EDITED: dict[type[Model], tuple[set[str], set[str]]] = {
    Sheet: ({M}, {E, K, P, M}),
    Section: ({E}, {E}),
    Citation: (set(), {E}),
    Source: ({E}, {E}),
    Rule: ({K}, {K}),
    RuleSet: ({K}, {K}),
    SheetRuleSet: (set(), {K}),
    BotProfile: ({K}, {K}),
    Suite: ({K}, {K}),
    Probe: ({K}, {K}),
    SuiteRequirement: ({K}, {K}),
    QuestionSet: ({K}, {K}),
    Question: ({K}, {K}),
    GatePolicy: ({M}, {M}),
    ReviewPlan: ({M}, {M}),
    ReviewInterval: ({M}, {M}),
    Member: (set(), set()),
}
#: Rows that are written once and read.
READ = (Check, ChangeSet, Publication, PublicationEvent, Schedule, Outbox, Run, Attempt)
ACCOUNTS = (User, Group)
#: What only a role on every sheet adds or changes, for it reaches every sheet.
OF_THE_HOUSE = ((Sheet, "add"), (ReviewInterval, "add"), (ReviewInterval, "change"))
#: Rows that belong to no sheet: common stock, which every role sees; and what only the house sees.
COMMON = (Source, BotProfile, ReviewInterval)
HOUSE_SEES = (ChangeSet,)

#: Our own pages of a sheet: who looks (GET) and who acts (POST); None: there is no such method.
PAGES: dict[str, tuple[Iterable[str] | None, Iterable[str] | None]] = {
    "admin:sheet_gate": (EVERY_ROLE, None),
    "admin:sheet_past": (EVERY_ROLE, None),
    "admin:sheet_timeline": (EVERY_ROLE, None),
    "admin:sheet_as_bot": (EVERY_ROLE, {E, K, P}),
    "admin:sheet_size": (EVERY_ROLE, {E, K, P, M}),
    "admin:sheet_split": (EVERY_ROLE, None),
    "admin:sheet_deliver": (None, {K}),
    "admin:sheet_compare": (EVERY_ROLE, None),
    "admin:sheet_use": (EVERY_ROLE, {E, M}),
    "admin:sheet_correct_use": (None, {E, M}),
    "admin:sheet_drop_texts": (None, {M}),
    "admin:sheet_keys": (EVERY_ROLE, {P, M}),
    "admin:sheet_revoke_key": (None, {P, M}),
    "admin:sheet_restore": ({E}, {E}),
    "admin:sheet_publish": (None, {P}),
    "admin:sheet_schedule": (None, {P}),
    "admin:sheet_unschedule": (None, {P}),
    "admin:sheet_withdraw": ({P}, {P}),
    "admin:sheet_rollback": ({P}, {P}),
    "admin:sheet_workbench": (EVERY_ROLE, None),
    "admin:sheet_workbench_rules": (EVERY_ROLE, None),
    "admin:sheet_workbench_gate": (EVERY_ROLE, None),
    "admin:sheet_workbench_contents": (EVERY_ROLE, None),
    "admin:sheet_workbench_add": (None, {E}),
    "admin:sheet_workbench_section": (EVERY_ROLE, {E}),
    "admin:sheet_workbench_act": (None, {E}),
    "admin:sheet_workbench_cite": ({E}, {E}),
    "admin:sheet_workbench_citation": ({E}, {E}),
    "admin:sheet_workbench_rule": (EVERY_ROLE, {K}),
    "admin:sheet_workbench_add_rule": (None, {K}),
    "admin:section_check": ({E, M}, {E, M}),
    "admin:section_next_due": (EVERY_ROLE, None),
    "admin:factsheets_section_record_check": ({E, M}, {E, M}),
    "admin:factsheets_sheet_open_publishing": (EVERY_ROLE, EVERY_ROLE),
    "admin:factsheets_sheet_open_sections": (EVERY_ROLE, EVERY_ROLE),
    "admin:factsheets_sheet_open_past": (EVERY_ROLE, EVERY_ROLE),
    "admin:factsheets_sheet_open_workbench": (EVERY_ROLE, EVERY_ROLE),
    "admin:factsheets_sheet_open_timeline": (EVERY_ROLE, EVERY_ROLE),
    "runs:start": (None, {E, K, P}),
    "runs:cancel": (None, {E, K, P}),
    "runs:progress": (EVERY_ROLE, None),
    "runs:detail": (EVERY_ROLE, None),
    "runs:question_set": (EVERY_ROLE, None),
    "runs:run_questions": (None, {E, K, P}),
    "runs:start_trial": (None, {E, K, P}),
    "runs:trial": (EVERY_ROLE, None),
    "runs:copy_questions": (None, {K}),
    "runs:compare_reports": (EVERY_ROLE, None),
    "runs:retrieval_report": (EVERY_ROLE, None),
    "runs:import_questions": ({K}, {K}),
}
SEEN, NO, HOME, LOG_IN, NO_SUCH_METHOD = "seen", "no", "led home", "log in", "no such method"

#: Addresses of no sheet, for whoever is of the staff: what GET and POST say.
OF_NO_SHEET: dict[str, tuple[str, str]] = {
    "admin:index": (SEEN, SEEN),
    "admin:login": (HOME, SEEN),
    "admin:logout": (NO_SUCH_METHOD, SEEN),
    "admin:password_change": (SEEN, SEEN),
    "admin:password_change_done": (SEEN, NO_SUCH_METHOD),
    "admin:jsi18n": (SEEN, NO_SUCH_METHOD),
    "admin:search": (SEEN, SEEN),
    "admin:view_on_site": (NO, NO),
    "admin:(?P<url>.*)$": (NO, NO),
}
#: Likewise for whoever has a role (or is an administrator).
FOR_ROLES: dict[str, tuple[str, str]] = {
    "admin:app_list": (SEEN, SEEN),
    "admin:autocomplete": (SEEN, NO_SUCH_METHOD),
    "admin:stale_report": (SEEN, NO_SUCH_METHOD),
    "admin:find": (SEEN, NO_SUCH_METHOD),
    "runs:gates": (SEEN, NO_SUCH_METHOD),
}
#: What acts on the sheets that the role is held on, all at once.
ACTS_ON_ALL = {"runs:run_all": {E, K, P}}
#: For who has a role on every sheet, not on one alone.
NEW_SHEET = {"new_sheet": {M}}
#: For administrators.
FOR_ADMINISTRATORS = {"admin:auth_user_password_change"}

KINDS = ("changelist", "add", "change", "history", "delete", "simple_history")


@dataclass(frozen=True)
class Who:
    """Somebody: a role (or none, or all of an administrator), in the house or on the castle alone."""

    role: str
    on_castle_alone: bool = False
    is_administrator: bool = False

    def __str__(self) -> str:
        where = "-of-the-castle" if self.on_castle_alone else ""
        return (self.role or "no-role").replace(" ", "-") + where

    @property
    def has_role(self) -> bool:
        return bool(self.role)

    def is_in(self, allowed: Iterable[str]) -> bool:
        return self.is_administrator or self.role in allowed


ADMINISTRATOR = Who("administrator", is_administrator=True)
IN_THE_HOUSE = [Who(role) for role in roles.ROLES]
OF_THE_CASTLE = [Who(role, on_castle_alone=True) for role in roles.ROLES]
WITHOUT = Who("")


def answers(who: Who, address: Address, *, reaches: bool, alone: bool) -> tuple[str, str]:
    """What GET and POST say, by the tables above.

    `reaches`: the row is of a sheet that the person has a role on. `alone`: of
    no other sheet beside.
    """
    name, model, kind = address.name, address.model, address.kind
    if name in OF_NO_SHEET:
        return OF_NO_SHEET[name]
    if name in FOR_ROLES:
        get, post = FOR_ROLES[name]
        return (get, post) if who.has_role else (NO, post if post == NO_SUCH_METHOD else NO)
    if name in ACTS_ON_ALL:
        return NO_SUCH_METHOD, _word(who.is_in(ACTS_ON_ALL[name]))
    if name in NEW_SHEET:
        word = _word(who.is_in(NEW_SHEET[name]) and not who.on_castle_alone)
        return word, word
    if name in FOR_ADMINISTRATORS:
        return (_word(who.is_administrator),) * 2
    if kind == "leads":
        return SEEN, SEEN
    if name in PAGES:
        looks, acts = PAGES[name]
        return (
            NO_SUCH_METHOD if looks is None else _word(who.is_in(looks) and reaches),
            NO_SUCH_METHOD if acts is None else _word(who.is_in(acts) and reaches),
        )
    assert model is not None, f"no table has {name}"
    return _of_rows(who, model, kind, reaches=reaches, alone=alone)


def _of_rows(
    who: Who, model: type[Model], kind: str, *, reaches: bool, alone: bool
) -> tuple[str, str]:
    adders, changers = EDITED.get(model, (NOBODY, NOBODY))
    is_account, is_edited = model in ACCOUNTS, model in EDITED or model in ACCOUNTS
    lists = who.is_administrator or (who.has_role and not is_account)
    of_the_house_alone = model in HOUSE_SEES and who.on_castle_alone
    sees = lists and not of_the_house_alone and (reaches or model in COMMON)
    adds = is_edited and who.is_in(adders) and model not in (Citation, SheetRuleSet)
    changes = sees and is_edited and who.is_in(changers) and (alone or not who.on_castle_alone)
    if who.on_castle_alone:
        adds = adds and (model, "add") not in OF_THE_HOUSE
        changes = changes and reaches and (model, "change") not in OF_THE_HOUSE
    # A row that is not there for somebody leads home; who sees none of its kind is told no.
    hidden = HOME if lists else NO
    if kind == "changelist":
        return (_word(lists),) * 2
    if kind == "add":
        return (_word(adds),) * 2
    if kind == "change":
        might = is_edited and who.is_in(changers)
        return (SEEN if sees else hidden), _changed(sees=sees, changes=changes, might=might)
    if kind == "delete":
        return NO, NO
    if kind == "simple_history":
        return _word(sees), NO
    assert kind == "history", kind
    return _history(model, sees=sees, hidden=hidden)


def _changed(*, sees: bool, changes: bool, might: bool) -> str:
    """Who might change rows of the kind elsewhere is led home from one that is not there."""
    if sees:
        return _word(changes)
    return HOME if might else NO


def _history(model: type[Model], *, sees: bool, hidden: str) -> tuple[str, str]:
    # Of tracked rows it is a page of another app than of the others, which leads nobody home.
    word = SEEN if sees else NO if model in EDITED else hidden
    return word, word


def _word(yes: bool) -> str:
    return SEEN if yes else NO


# ---- the addresses that there are ----


@dataclass(frozen=True)
class Address:
    """One pattern of the resolver: its name, and of which rows it is what kind of page."""

    name: str
    route: str
    model: type[Model] | None
    kind: str

    def of(self, rows: Mapping[type[Model], Any], sheet: Rows) -> str:
        """The address for these rows. A pattern with another argument has no sample, and fails."""
        row = rows.get(self.model) if self.model else None
        samples = {
            "object_id": row.pk if row is not None else 1,
            "id": row.pk if row is not None else 1,
            "sheet_id": sheet.sheet.pk,
            "section_id": sheet.section.pk,
            "citation_id": sheet.every[Citation].pk,
            "rule_id": sheet.every[Rule].pk,
            "run_id": sheet.run.pk,
            "set_id": sheet.every[QuestionSet].pk,
            "report_id": sheet.report.pk,
            "trial_id": sheet.trial.pk,
            "app_label": "factsheets",
            "content_type_id": 1,
            "url": "no-such-page",
        }
        path = self.route
        if self.kind == "simple_history":
            version = row.history.latest() if row is not None else None  # type: ignore[union-attr]
            path = path.replace("([^/]+)", str(row.pk), 1)  # type: ignore[union-attr]
            path = path.replace("([^/]+)", str(version.pk), 1)  # type: ignore[union-attr]
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(samples[found[1]]), path)
        return "/" + path.replace("^", "").replace("$", "") + QUERIES.get(self.name, "")


QUERIES = {
    "admin:find": "?q=e",
    "admin:autocomplete": "?app_label=factsheets&model_name=citation&field_name=source",
    "admin:search": "?s=sheet",
}


def _addresses(patterns: Any, route: str = "", space: str = "") -> Iterator[Address]:
    for each in patterns:
        here = route + re.sub(r"\(\?P(<\w+>)[^)]*\)", r"\1", str(each.pattern))
        if isinstance(each, URLResolver):
            inner = f"{space}{each.namespace}:" if each.namespace else space
            yield from _addresses(each.url_patterns, here, inner)
        elif here.startswith("admin/"):
            name = f"{space}{each.name or each.pattern}"
            model, kind = _of_model(here, name)
            yield Address(name, here, model, kind)


def _of_model(route: str, name: str) -> tuple[type[Model] | None, str]:
    found = re.match(r"admin/(auth|factsheets|evals)/(\w+)/", route)
    if found is None:
        return None, ""
    model = apps.get_model(found[1], found[2])
    prefix = f"admin:{found[1]}_{found[2]}_"
    kind = name.removeprefix(prefix) if name.startswith(prefix) else ""
    return model, "leads" if name.startswith("admin:<path:object_id>") else kind


ADDRESSES = sorted(
    _addresses(get_resolver().url_patterns),
    # Who has logged out asks for nothing more.
    key=lambda address: (address.name == "admin:logout", address.route),
)

# ---- two sheets, and what they share ----

CANARY = b"zqcafe"


@dataclass(frozen=True)
class Rows:
    """A sheet with a row of every kind."""

    sheet: Sheet
    section: Section
    run: Run
    report: RetrievalReport
    trial: Trial
    every: Mapping[type[Model], Any]


@dataclass(frozen=True)
class House:
    """The castle, the café, and rows that both use."""

    castle: Rows
    cafe: Rows
    shared: Mapping[type[Model], Any]


@pytest.fixture(scope="module")
def house(django_db_setup: None, django_db_blocker: Any) -> Iterator[House]:
    """Made once: what a test writes is taken back, and the whole after the last one."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield _house()
        transaction.set_rollback(True)


def _house() -> House:
    shared_source = factories.source("shared-source", title="The common book")
    shared_suite = Suite(slug="shared-suite", title="Common probes")
    factories.save(shared_suite)
    shared_probe = factories.probe(shared_suite, "common-probe")
    shared_rules = RuleSet(slug="shared-rules", title="Common rules", shared=True)
    factories.save(shared_rules)
    shared_rule = Rule(ruleset=shared_rules, key="common-rule", kind="format", text="Be brief.")
    factories.save(shared_rule)
    factories.save(ReviewInterval(kind=Source.Kind.NEWS, interval="1 month"))
    castle, cafe = (
        _rows(word, shared_source, shared_suite, shared_rules) for word in ("zqcastle", "zqcafe")
    )
    shared = {
        Source: shared_source,
        Suite: shared_suite,
        Probe: shared_probe,
        RuleSet: shared_rules,
        Rule: shared_rule,
        BotProfile: castle.sheet.bot,
    }
    return House(castle, cafe, shared)


def _rows(word: str, source: Source, suite: Suite, rules: RuleSet) -> Rows:
    """A published sheet of which every text bears the word, to be found where it should not be."""
    by = factories.person(f"keeper-{word.removeprefix('zq')}")
    sheet = factories.sheet(word, by=by, title=f"House {word}", description=f"About {word}.")
    own_source = factories.source(f"leaflet-{word.removeprefix('zq')}")
    section = factories.section(
        sheet,
        f"hours-{word}",
        heading=f"Hours {word}",
        question=f"When, {word}?",
        body=f"The castle opens at ten in the morning, says {word}.",
        note=f"A note on {word}.",
    )
    cited = {"section": section, "locator": f"page {word}", "claims": f"hours of {word}"}
    own_citation = Citation(source=own_source, **cited)
    factories.save(own_citation)
    factories.save(Citation(source=source, position=1, **cited))
    checking.record(
        section=section,
        seen=checking.seen_now(section),
        checked_on=factories.TODAY,
        outcome="confirmed",
        method="read-online",
        items={c.pk: "supports" for c in checking.present_citations(section)},
        by=by,
        now=factories.NOON,
        note=f"Checked {word}.",
    )
    rule = factories.rule(sheet, f"rule-{word}", text=f"Obey {word}.")
    factories.save(SheetRuleSet(sheet=sheet, ruleset=rules, position=9))
    own_suite = factories.suite(sheet, f"suite-{word}", title=f"Suite {word}")
    probe = factories.probe(own_suite, f"probe-{word}", category=f"of-{word}", note=word)
    factories.save(SuiteRequirement(sheet=sheet, suite=suite))
    questions = QuestionSet(slug=f"questions-{word}", title=f"Questions {word}", sheet=sheet)
    factories.save(questions)
    question = Question(question_set=questions, key=word, question=f"{word}?", scope="in")
    question.sections = [section.key]
    factories.save(question)
    frozen = QuestionSet(slug=f"frozen-{word}", title=f"Frozen {word}", sheet=sheet)
    factories.save(frozen)
    asked = {"key": word, "question": f"{word}?", "scope": "in", "sections": [section.key]}
    factories.save(Question(question_set=frozen, **asked))
    report = question_sets.run(frozen, by=by, now=factories.NOON)
    trial = trials.start(frozen, by=by, now=factories.NOON)
    trials.work(trial.pk, clock=lambda: factories.NOON)
    member = Member(sheet=sheet, user=by, role=Member.Role.VIEWER)
    factories.save(member)
    plan = ReviewPlan(sheet=sheet, owner=by, interval="6 months")
    factories.save(plan)
    run = factories.passing_run(sheet)
    waiting = factories.schedule(sheet, by=factories.person("paula", roles.PUBLISHER))
    publication = factories.publish(sheet)
    editing.change(section, by=by, reason=f"Because of {word}.", now=factories.LATER, note=word)
    sheet.refresh_from_db()
    return Rows(
        sheet,
        section,
        run,
        report,
        trial,
        {
            Sheet: sheet,
            Section: section,
            Citation: own_citation,
            Source: own_source,
            Rule: rule,
            RuleSet: rule.ruleset,
            SheetRuleSet: sheet.ruleset_links.get(ruleset=rule.ruleset),
            BotProfile: sheet.bot,
            Suite: own_suite,
            Probe: probe,
            SuiteRequirement: sheet.suite_requirements.get(suite=own_suite),
            QuestionSet: questions,
            Question: question,
            GatePolicy: sheet.gate_policy,
            ReviewPlan: plan,
            ReviewInterval: ReviewInterval.objects.get(),
            Member: member,
            Check: section.checks.get(),
            ChangeSet: ChangeSet.objects.get(reason=f"Because of {word}."),
            Publication: publication,
            PublicationEvent: sheet.events.get(),
            Schedule: waiting,
            Outbox: Outbox.objects.filter(sheet=sheet).earliest("pk"),
            Run: run,
            Attempt: run.attempts.earliest("pk"),
            User: by,
            Group: Group.objects.get(name=roles.VIEWER),
        },
    )


# ---- asking ----


def browser(who: Who, house: House) -> Client:
    """A browser of that person, told of a fault as a visitor would be."""
    user = factories.person(f"the-{who}", superuser=who.is_administrator)
    if who.on_castle_alone:
        factories.save(Member(sheet=house.castle.sheet, user=user, role=who.role))
    elif who.role in EVERY_ROLE:
        user.groups.set([Group.objects.get(name=who.role)])
    client = Client(raise_request_exception=False)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def said(response: Any) -> str:
    """What an answer comes to. Anything else than these is a fault."""
    location = response.headers.get("Location", "")
    if response.status_code in {403, 404}:
        return NO
    if response.status_code == 405:
        return NO_SUCH_METHOD
    if location.startswith("/admin/login/"):
        return LOG_IN
    if location == "/admin/":
        return HOME
    return SEEN if response.status_code in {200, 302} else f"fault {response.status_code}"


#: What the framework writes beside rows of ours.
BESIDE = {"django_session"}


def stored(*, but: Iterable[str] = BESIDE) -> dict[str, str]:
    """A fingerprint of every table, and its number of rows, but of sessions."""
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names(cursor)):
            cursor.execute(f'SELECT * FROM "{table}" ORDER BY 1')
            rows = cursor.fetchall()
            found[table] = f"{len(rows)} {hashlib.sha256(repr(rows).encode()).hexdigest()}"
    return {table: print_ for table, print_ in found.items() if table not in but}


def rows_stored() -> dict[str, str]:
    """Likewise, also without the admin's log of saves, which knows saves that changed nothing."""
    return stored(but={*BESIDE, "django_admin_log"})


def wrong(asked: Mapping[tuple[str, str], tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Where an answer was another than the tables say."""
    return {
        request: f"{got}, not {expected}"
        for request, (got, expected) in asked.items()
        if got != expected
    }


def of_sheets(addresses: Iterable[Address]) -> list[Address]:
    """Those that concern one sheet or row."""
    one_row = {"change", "history", "delete", "simple_history"}
    return [a for a in addresses if a.name in PAGES or a.kind in one_row]


Answers = dict[tuple[str, str], tuple[str, str]]


def ask(
    client: Client,
    who: Who,
    rows: Rows,
    method: str,
    *,
    reaches: bool,
    addresses: Iterable[Address] = ADDRESSES,
    shared: Mapping[type[Model], Any] | None = None,
) -> tuple[Answers, set[str]]:
    """What each address says by the method beside what it should, and those that tell of the café."""
    found, telling = {}, set()
    every = {**rows.every, **(shared or {})}
    for address in addresses:
        path = address.of(every, rows)
        response = getattr(client, method.lower())(path)
        alone = shared is None and address.model is not BotProfile
        expected = answers(who, address, reaches=reaches, alone=alone)
        found[method, path] = said(response), expected[method == "POST"]
        if CANARY in response.content or CANARY.decode() in response.headers.get("Location", ""):
            telling.add(path)
    return found, telling


# ---- the walk ----


def test_every_address_has_a_sample_and_an_answer(house: House) -> None:
    found = {
        address.of(house.castle.every, house.castle): answers(
            ADMINISTRATOR, address, reaches=True, alone=True
        )
        for address in ADDRESSES
    }

    assert len(found) == len(ADDRESSES)
    assert {a.name for a in ADDRESSES} >= {
        *PAGES,
        *OF_NO_SHEET,
        *FOR_ROLES,
        *ACTS_ON_ALL,
        *NEW_SHEET,
    }


@pytest.mark.parametrize("who", [*IN_THE_HOUSE, ADMINISTRATOR], ids=str)
def test_a_role_in_the_house_sees_every_sheet_and_acts_as_its_role_may(
    house: House, who: Who
) -> None:
    client = browser(who, house)
    before = stored()

    seen, _ = ask(client, who, house.cafe, "GET", reaches=True)

    assert wrong(seen) == {}
    assert stored() == before
    assert wrong(ask(client, who, house.cafe, "POST", reaches=True)[0]) == {}


@pytest.mark.parametrize("who", OF_THE_CASTLE, ids=str)
def test_a_role_on_the_castle_holds_there_and_is_told_nothing_of_the_cafe(
    house: House, who: Who
) -> None:
    client = browser(who, house)
    before = stored()

    seen, telling = ask(client, who, house.castle, "GET", reaches=True)

    assert wrong(seen) == {}
    assert telling == set()
    assert stored() == before
    acted, telling = ask(client, who, house.castle, "POST", reaches=True)
    assert wrong(acted) == {}
    assert telling == set()


@pytest.mark.parametrize("who", OF_THE_CASTLE, ids=str)
def test_a_role_on_the_castle_neither_sees_nor_changes_anything_of_the_cafe(
    house: House, who: Who
) -> None:
    client = browser(who, house)
    addresses = of_sheets(ADDRESSES)
    before = stored()

    seen, telling = ask(client, who, house.cafe, "GET", reaches=False, addresses=addresses)
    acted, more = ask(client, who, house.cafe, "POST", reaches=False, addresses=addresses)

    assert wrong({**seen, **acted}) == {}
    assert telling | more == set()
    assert stored() == before


@pytest.mark.parametrize("who", OF_THE_CASTLE, ids=str)
def test_what_both_sheets_use_is_seen_from_one_and_changed_from_neither(
    house: House, who: Who
) -> None:
    client = browser(who, house)
    addresses = [a for a in of_sheets(ADDRESSES) if a.model in house.shared]
    before = stored()

    how = {"reaches": True, "addresses": addresses, "shared": house.shared}
    seen, telling = ask(client, who, house.castle, "GET", **how)
    acted, more = ask(client, who, house.castle, "POST", **how)

    assert wrong({**seen, **acted}) == {}
    assert telling | more == set()
    assert stored() == before


def test_somebody_of_the_staff_without_a_role_is_told_no(house: House) -> None:
    client = browser(WITHOUT, house)
    before = stored()

    seen, telling = ask(client, WITHOUT, house.castle, "GET", reaches=False)
    acted, more = ask(client, WITHOUT, house.castle, "POST", reaches=False)

    assert wrong({**seen, **acted}) == {}
    assert telling | more == set()
    assert stored() == before


#: What a visitor sees without logging in.
OPEN = {"admin:login", "admin:logout", "admin:jsi18n"}


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("visitor", ["stranger", "not of the staff"])
def test_a_visitor_is_led_to_the_log_in_by_every_method(
    house: House, visitor: str, method: str
) -> None:
    client = Client(raise_request_exception=False)
    account = User.objects.create_user("visitor")
    account.groups.set(Group.objects.all())
    sessions = {"stranger": client.logout, "not of the staff": lambda: client.force_login(account)}
    sessions[visitor]()
    before = stored()

    found = {
        address.name: said(
            getattr(client, method.lower())(address.of(house.castle.every, house.castle))
        )
        for address in ADDRESSES
        if address.name not in OPEN
    }

    assert set(found.values()) == {LOG_IN}, found
    assert stored() == before


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("who", [ADMINISTRATOR, Who(E, on_castle_alone=True)], ids=str)
def test_no_method_but_post_writes_and_none_breaks(house: House, who: Who, method: str) -> None:
    client = browser(who, house)
    rows = {True: house.castle, False: house.cafe}[who.is_administrator]
    addresses = ADDRESSES if who.is_administrator else of_sheets(ADDRESSES)
    before = stored()

    found = {
        path: said(getattr(client, method.lower())(path))
        for path in (address.of(rows.every, rows) for address in addresses)
    }

    assert {path: word for path, word in found.items() if word.startswith("fault")} == {}
    assert stored() == before


# ---- forged forms ----


def member(house: House, role: str) -> Client:
    return browser(Who(role, on_castle_alone=True), house)


def page_of(model: type[Model], kind: str, row: Any = None) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{kind}"
    return reverse(name, args=[] if row is None else [row.pk])


def send(client: Client, path: str, model: type[Model], **changed: object) -> str:
    """Open a page and send its form with other values, or with more than it has."""
    form = Page(client.get(path)).form(f"{model._meta.model_name}_form")
    return said(client.post(path, {**form.data, "why": "forged", **changed}))


#: Values for a new row of each kind, with the field that says where it belongs: of which rows.
NEW = [
    (E, Section, {"heading": "New", "key": "new", "body": "New."}, {"sheet": Sheet}),
    (M, ReviewPlan, {"interval": "1 month"}, {"sheet": Sheet, "section": Section}),
    (K, Rule, {"key": "new", "kind": "format", "text": "New."}, {"ruleset": RuleSet}),
    (K, Suite, {"slug": "new", "title": "New", "repeats": 1, "pass_bar": 100}, {"sheet": Sheet}),
    (
        K,
        Probe,
        {
            "key": "new",
            "category": "x",
            "turns": "New?",
            "must": "answer",
            "severity": "critical",
            "contains_any": "ten",
        },
        {"suite": Suite},
    ),
    (K, QuestionSet, {"slug": "new", "title": "New"}, {"sheet": Sheet}),
    (
        K,
        Question,
        {"key": "new", "question": "New?", "scope": "out", "sections": "[]"},
        {"question_set": QuestionSet},
    ),
]


@pytest.mark.parametrize(("role", "model", "values", "of"), NEW)
def test_a_member_adds_rows_to_their_own_sheet(
    house: House, role: str, model: type[Model], values: dict[str, object], of: dict[str, type]
) -> None:
    client = member(house, role)
    places = {field: house.castle.every[kind].pk for field, kind in of.items()}
    before = model._default_manager.count()

    send(client, page_of(model, "add"), model, **values, **places)

    assert model._default_manager.count() == before + 1


@pytest.mark.parametrize(("role", "model", "values", "of"), NEW)
def test_a_member_adds_no_row_to_another_sheet(
    house: House, role: str, model: type[Model], values: dict[str, object], of: dict[str, type]
) -> None:
    client = member(house, role)
    places = {field: house.cafe.every[kind].pk for field, kind in of.items()}
    before = stored()

    send(client, page_of(model, "add"), model, **values, **places)

    assert stored() == before


def test_a_plan_of_ones_own_sheet_takes_no_section_of_another(house: House) -> None:
    client = member(house, M)
    before = stored()

    send(
        client,
        page_of(ReviewPlan, "add"),
        ReviewPlan,
        sheet=house.castle.sheet.pk,
        section=house.cafe.section.pk,
        interval="1 month",
    )

    assert stored() == before


@pytest.mark.parametrize(("sheet", "suite"), [("castle", "cafe"), ("cafe", "castle")])
def test_neither_sheet_is_made_to_require_the_others_suite(
    house: House, sheet: str, suite: str
) -> None:
    client = member(house, K)
    sides = {"castle": house.castle, "cafe": house.cafe}
    before = stored()

    send(
        client,
        page_of(SuiteRequirement, "add"),
        SuiteRequirement,
        sheet=sides[sheet].sheet.pk,
        suite=sides[suite].every[Suite].pk,
    )

    assert stored() == before


@pytest.mark.parametrize(
    ("role", "model", "of"),
    [
        (E, Section, {"sheet": Sheet}),
        (E, Citation, {"section": Section, "source": Source}),
        (K, Rule, {"ruleset": RuleSet}),
        (K, SheetRuleSet, {"sheet": Sheet, "ruleset": RuleSet}),
        (K, Suite, {"sheet": Sheet}),
        (K, Probe, {"suite": Suite}),
        (K, SuiteRequirement, {"sheet": Sheet}),
        (K, SuiteRequirement, {"suite": Suite}),
        (K, QuestionSet, {"sheet": Sheet}),
        (K, Question, {"question_set": QuestionSet}),
        (M, ReviewPlan, {"sheet": Sheet, "section": Section}),
        (M, GatePolicy, {"sheet": Sheet}),
    ],
)
def test_a_member_moves_no_row_to_another_sheet(
    house: House, role: str, model: type[Model], of: dict[str, type]
) -> None:
    client = member(house, role)
    row = house.castle.every[model]
    before = rows_stored()

    places = {field: house.cafe.every[kind].pk for field, kind in of.items()}
    send(client, page_of(model, "change", row), model, **places)

    assert rows_stored() == before


@pytest.mark.parametrize(
    ("model", "prefix"), [(RuleSet, "sheet_links"), (Suite, "requirements")], ids=["rules", "suite"]
)
def test_rows_beside_a_form_link_no_other_sheet(
    house: House, model: type[Model], prefix: str
) -> None:
    client = member(house, K)
    row = house.castle.every[model]
    cafe = house.cafe.sheet.pk
    before = rows_stored()

    send(client, page_of(model, "change", row), model, **{f"{prefix}-0-sheet": cafe})
    send(
        client,
        page_of(model, "change", row),
        model,
        **{
            f"{prefix}-TOTAL_FORMS": 2,
            f"{prefix}-1-id": "",
            f"{prefix}-1-{model._meta.model_name}": row.pk,
            f"{prefix}-1-sheet": cafe,
            f"{prefix}-1-position": 5,
        },
    )

    assert rows_stored() == before


def test_citations_beside_a_section_are_its_own(house: House) -> None:
    client = member(house, E)
    section = house.castle.section
    before = rows_stored()

    send(
        client,
        page_of(Section, "change", section),
        Section,
        **{"citations-0-id": house.cafe.every[Citation].pk, "citations-0-locator": "stolen"},
    )

    assert rows_stored() == before


ACTIONS = ("remove_selected", "restore_selected", "archive_selected", "unarchive_selected")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("role", roles.ROLES)
def test_no_action_on_a_list_reaches_rows_of_another_sheet_or_shared_ones(
    house: House, role: str, action: str
) -> None:
    client = member(house, role)
    before = stored()

    for model, row in [*house.cafe.every.items(), *house.shared.items()]:
        client.post(
            page_of(model, "changelist"),
            {"action": action, "_selected_action": row.pk, "select_across": "0"},
        )

    assert stored() == before


#: What each role may change of a sheet.
FIELDS = {
    V: set(),
    E: {"title", "description", "language"},
    K: {"bot", "probe_scope", "delivery"},
    P: {"visibility"},
    M: {"title", "description", "language", "slug"},
}


@pytest.fixture
def other_bot(house: House) -> BotProfile:
    bot = BotProfile(slug="other", provider="offline", model="offline")
    factories.save(bot)
    return bot


def forged_sheet(bot: BotProfile) -> dict[str, object]:
    return {
        "title": "Forged",
        "description": "Forged.",
        "language": "cy",
        "slug": "forged",
        "visibility": "key",
        "bot": bot.pk,
        "probe_scope": "rules+content",
        "delivery": "split",
    }


def changed_fields(sheet: Sheet, values: dict[str, object]) -> set[str]:
    now = Sheet.objects.values(*values).get(pk=sheet.pk)
    return {name for name, value in values.items() if now[name] == value}


@pytest.mark.parametrize("role", [E, K, P, M])
def test_a_forged_form_changes_no_field_of_a_sheet_but_those_of_the_role(
    house: House, other_bot: BotProfile, role: str
) -> None:
    client = member(house, role)
    sheet, values = house.castle.sheet, forged_sheet(other_bot)

    send(client, page_of(Sheet, "change", sheet), Sheet, **values)

    assert changed_fields(sheet, values) == FIELDS[role]


def test_a_role_on_one_sheet_opens_no_field_of_another_where_one_has_another_role(
    house: House, other_bot: BotProfile
) -> None:
    client = member(house, P)
    user = User.objects.get(username="the-publisher-of-the-castle")
    cafe, values = house.cafe.sheet, forged_sheet(other_bot)
    factories.save(Member(sheet=cafe, user=user, role=E))

    send(client, page_of(Sheet, "change", cafe), Sheet, **values)

    assert changed_fields(cafe, values) == FIELDS[E]


def test_a_publisher_of_the_castle_does_not_publish_the_cafe_with_all_its_hashes(
    house: House,
) -> None:
    client = member(house, P)
    cafe = house.cafe
    live = cafe.every[Publication]
    data = {
        "reason": "forged",
        "content_hash": live.content_hash,
        "rules_hash": live.rules_hash,
        "bot_hash": live.bot_hash,
        "live_number": live.number,
        "to": live.number,
    }
    before = stored()

    found = {
        page: client.post(reverse(f"admin:sheet_{page}", args=[cafe.sheet.pk]), data).status_code
        for page in ("publish", "withdraw", "rollback")
    }

    assert found == {"publish": 403, "withdraw": 403, "rollback": 403}
    assert stored() == before


def test_a_complete_check_of_the_cafe_is_not_taken_from_an_editor_of_the_castle(
    house: House,
) -> None:
    client = member(house, E)
    section = house.cafe.section
    seen = checking.seen_now(section)
    before = stored()

    response = client.post(
        reverse("admin:section_check", args=[section.pk]),
        {
            "text_hash": seen.text_hash,
            **{f"seen_{pk}": use for pk, use in seen.uses.items()},
            **{f"citation_{pk}": "supports" for pk in seen.uses},
            "outcome": "confirmed",
            "method": "read-online",
            "checked_on": "2026-06-02",
        },
    )

    assert response.status_code == 403
    assert stored() == before


def test_a_check_of_the_cafe_is_not_replaced_from_the_castle(house: House) -> None:
    client = member(house, E)
    other = house.cafe.every[Check].pk
    path = reverse("admin:section_check", args=[house.castle.section.pk])

    assert client.get(path, {"supersedes": other}).status_code == 404
    assert client.post(path, {"supersedes": other}).status_code == 404


# ---- finding ----


#: Found by its beginning, for a page says again what was looked for.
WORD = CANARY.decode()[:-1]


@pytest.mark.parametrize("role", roles.ROLES)
def test_no_search_of_a_member_finds_anything_of_another_sheet(house: House, role: str) -> None:
    client = member(house, role)
    lists = [f"{a.of({}, house.castle)}?q={WORD}" for a in ADDRESSES if a.kind == "changelist"]

    found = {path: client.get(path).content for path in [*lists, f"/admin/search/?s={WORD}"]}

    assert {path for path, content in found.items() if CANARY in content} == set()


def test_nothing_of_another_sheet_is_found_while_one_types(house: House) -> None:
    client = member(house, K)
    fields = [
        (model._meta, column.name)
        for model in [*EDITED, *READ]
        for column in model._meta.concrete_fields
        if column.is_relation
    ]

    found = {
        (str(meta), name): client.get(
            "/admin/autocomplete/",
            {"app_label": meta.app_label, "model_name": meta.model_name, "field_name": name},
        ).content
        for meta, name in fields
    }

    assert len(found) > 30
    assert {field for field, content in found.items() if CANARY in content} == set()


@pytest.mark.parametrize(
    ("model", "lookup"),
    [
        (Section, "sheet"),
        (Citation, "section__sheet"),
        (Check, "section__sheet"),
        (Suite, "sheet"),
        (SuiteRequirement, "sheet"),
        (QuestionSet, "sheet"),
        (Run, "sheet"),
        (Attempt, "run__sheet"),
        (Publication, "sheet"),
        (PublicationEvent, "sheet"),
        (Schedule, "sheet"),
        (Outbox, "sheet"),
        (Member, "sheet"),
        (ReviewPlan, "sheet"),
        (SheetRuleSet, "sheet"),
    ],
)
def test_a_filter_by_another_sheet_lists_none_of_its_rows(
    house: House, model: type[Model], lookup: str
) -> None:
    client = member(house, V)

    query = {f"{lookup}__id__exact": house.cafe.sheet.pk}
    response = client.get(page_of(model, "changelist"), query)
    listed = {row.pk for row in response.context["cl"].result_list}

    assert house.cafe.every[model].pk not in listed
    assert CANARY not in response.content


@pytest.mark.parametrize("form", ["", "csv", "json"])
def test_the_report_of_a_member_has_their_sheet_alone(house: House, form: str) -> None:
    client = member(house, V)

    response = client.get(reverse("admin:stale_report"), {"state": "all", "format": form})

    assert b"zqcastle" in response.content
    assert CANARY not in response.content


def test_a_shared_source_says_that_other_sheets_cite_it_and_not_which(house: House) -> None:
    shared = house.shared[Source]
    address = page_of(Source, "change", shared)

    of_one = Page(member(house, E).get(address)).text
    of_both = Page(browser(Who(V), house).get(address)).text

    assert "and on sheets that you do not see: 1" in of_one
    assert "zqcafe" not in of_one
    assert "House zqcafe" in of_both
    assert "that you do not see" not in of_both


# ---- roles that come and go ----


def test_who_has_the_same_role_on_both_sheets_changes_what_they_share(house: House) -> None:
    client = member(house, E)
    user = User.objects.get(username="the-editor-of-the-castle")
    shared = house.shared[Source]
    factories.save(Member(sheet=house.cafe.sheet, user=user, role=E))

    send(client, page_of(Source, "change", shared), Source, title="The better book")

    assert Source.objects.get(pk=shared.pk).title == "The better book"


def test_a_role_that_was_taken_away_opens_nothing(house: House) -> None:
    who = Who(M, on_castle_alone=True)
    client = browser(who, house)
    row = Member.objects.get(user__username=f"the-{who}")
    editing.remove(row, by=factories.person(), reason="left", now=factories.LATER)

    seen, telling = ask(client, WITHOUT, house.castle, "GET", reaches=False)

    assert wrong(seen) == {}
    assert telling == set()


def test_the_intervals_of_the_house_are_changed_by_a_role_in_the_house_alone(
    house: House,
) -> None:
    row = house.castle.every[ReviewInterval]
    address = page_of(ReviewInterval, "change", row)

    of_one = said(member(house, M).post(address, {"interval": "9 years", "why": "forged"}))
    unchanged = ReviewInterval.objects.get(pk=row.pk).interval
    send(browser(Who(M), house), address, ReviewInterval, interval="2 months")

    assert (of_one, unchanged) == (NO, "1 month")
    assert ReviewInterval.objects.get(pk=row.pk).interval == "2 months"
