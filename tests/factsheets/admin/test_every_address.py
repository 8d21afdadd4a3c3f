"""Every address of the admin, for every role, by every method: who may, and who is told no.

The addresses are those that the product has, so that a page added later cannot
be left out; who may do what stands here in words of its own.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from evals.models import Attempt, Probe, Question, QuestionSet, Run, Suite, SuiteRequirement
from factsheets import editing, roles
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
    Section,
    Sheet,
    SheetRuleSet,
    Source,
)
from tests import factories

pytestmark = pytest.mark.django_db

E, K, P, M = roles.EDITOR, roles.RULE_KEEPER, roles.PUBLISHER, roles.MAINTAINER

#: Who may change rows of a kind on their page, and who may add some there. Nobody deletes.
CHANGES: dict[type[Any], tuple[str, ...]] = {
    Sheet: (E, K, P, M),
    Section: (E,),
    Citation: (E,),
    Source: (E,),
    Rule: (K,),
    RuleSet: (K,),
    SheetRuleSet: (K,),
    BotProfile: (K,),
    Suite: (K,),
    Probe: (K,),
    SuiteRequirement: (K,),
    QuestionSet: (K,),
    Question: (K,),
    GatePolicy: (M,),
    ReviewPlan: (M,),
    ReviewInterval: (M,),
}
ADDS = {
    **{m: r for m, r in CHANGES.items() if m not in (Citation, SheetRuleSet)},
    Sheet: (M,),
}
#: Rows that administrators alone may add or change, and rows that are only read.
ADMINISTRATORS = (Member, User, Group)
READ = (Check, ChangeSet, Publication, PublicationEvent, Outbox, Run, Attempt)
#: Common stock of the house, seen by whoever has any role.
COMMON = (Source, BotProfile, ReviewInterval)

#: Our own pages: who may look (GET) and who may act (POST); `None`: everyone with a role.
PAGES: dict[str, tuple[tuple[str, ...] | None, tuple[str, ...] | None]] = {
    "admin:sheet_gate": (None, ()),
    "admin:sheet_past": (None, ()),
    "admin:sheet_publish": ((), (P,)),
    "admin:sheet_withdraw": ((P,), (P,)),
    "admin:sheet_rollback": ((P,), (P,)),
    "admin:section_check": ((E, M), (E, M)),
    "admin:section_next_due": (None, ()),
    "runs:start": ((), (E, K, P)),
    "runs:cancel": ((), (E, K, P)),
    "runs:progress": (None, ()),
    "runs:detail": (None, ()),
    # These only lead on.
    "admin:factsheets_sheet_open_publishing": (None, None),
    "admin:factsheets_sheet_open_sections": (None, None),
    "admin:factsheets_sheet_open_past": (None, None),
    "admin:factsheets_section_record_check": ((E, M), (E, M)),
}
#: Addresses that are of no sheet: for staff, for anybody with a role, or for few.
OF_NO_SHEET = {
    "admin:index",
    "admin:login",
    "admin:logout",
    "admin:password_change",
    "admin:password_change_done",
    "admin:jsi18n",
    "admin:search",
    "admin:autocomplete",
    "admin:view_on_site",
    "admin:app_list",
    "admin:auth_user_password_change",
    "admin:stale_report",
    "new_sheet",
    None,
}
KINDS = ("changelist", "add", "history", "delete", "change")
TRACKED = (*CHANGES, Member)


@dataclass
class House:
    """Two sheets with a row of every kind each, and what they share."""

    castle: Sheet
    cafe: Sheet

    def row(self, model: type[Any], of: Sheet) -> Any:
        found = model._base_manager.all()
        if model is Sheet:
            return of
        for path in getattr(model, "SHEETS", ()):
            one = found.filter(**{path.lookup: of.pk}).order_by("pk").first()
            if one is not None:
                return one
        return found.order_by("pk").first()


@pytest.fixture
def house() -> House:
    return House(*(_filled(slug) for slug in ("castle", "cafe")))


def _filled(slug: str) -> Sheet:
    """A published sheet whose every text bears its own name, to be found where it should not be."""
    sheet = factories.published_sheet(slug)
    canary = f"canary-of-{slug}"
    by = factories.person("keeper")
    told: dict[str, Any] = {"by": by, "reason": canary, "now": factories.LATER}
    editing.change(sheet, **told, title=f"Title {canary}", description=canary)
    section = sheet.sections.get()
    editing.change(section, **told, note=canary, question=f"{canary}?", heading=f"H {canary}")
    editing.change(section.citations.get(), **told, claims=canary, locator=canary)
    rule = Rule.objects.get(ruleset__sheet_links__sheet=sheet)
    editing.change(rule, **told, text=f"Obey {canary}.")
    suite = Suite.objects.get(sheet=sheet)
    editing.change(suite, **told, title=f"Suite {canary}")
    editing.change(suite.probes.get(), **told, note=canary, category=canary)
    questions = QuestionSet(slug=f"{slug}-questions", title=canary, sheet=sheet)
    factories.save(questions)
    factories.save(
        Question(
            question_set=questions, key="q", question=canary, scope="in", sections=[section.key]
        )
    )
    factories.save(Member(sheet=sheet, user=by, role=Member.Role.VIEWER))
    factories.save(ReviewPlan(sheet=sheet, owner=by, interval="6 months"))
    if not ReviewInterval.objects.exists():
        factories.save(ReviewInterval(kind=Source.Kind.NEWS, interval="1 month"))
    sheet.refresh_from_db()
    return sheet


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


# ---- the addresses that there are ----


def _patterns(patterns: Any, route: str = "", space: str = "") -> Iterator[tuple[str, str | None]]:
    for each in patterns:
        if isinstance(each, URLResolver):
            inner = f"{space}{each.namespace}:" if each.namespace else space
            yield from _patterns(each.url_patterns, route + str(each.pattern), inner)
        elif isinstance(each, URLPattern):
            yield route + str(each.pattern), f"{space}{each.name}" if each.name else None


NAMES = {
    name for route, name in _patterns(get_resolver().url_patterns) if route.startswith("admin/")
}
MODELS = (*CHANGES, *ADMINISTRATORS, *READ)
OF_ROWS = {f"admin:{m._meta.app_label}_{m._meta.model_name}_{k}" for m in MODELS for k in KINDS}
PAST = {f"admin:{m._meta.app_label}_{m._meta.model_name}_simple_history" for m in TRACKED}


def test_every_address_of_the_admin_is_walked_here() -> None:
    assert NAMES - OF_ROWS - PAST - PAGES.keys() - OF_NO_SHEET == set()
    assert (OF_ROWS | PAST | PAGES.keys()) - NAMES == set()


def _address(model: type[Any], kind: str, row: Any) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{kind}"
    return reverse(name, args=[] if kind in {"changelist", "add"} else [row.pk])


def _moment(model: type[Any], row: Any) -> str:
    """A row's page of one moment of its history."""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_simple_history"
    return reverse(name, args=[row.pk, row.history.earliest().history_id])


def _page(name: str, house: House, sheet: Sheet) -> str:
    one = {
        "section": house.row(Section, sheet).pk,
        "run": house.row(Run, sheet).pk,
        "sheet": sheet.pk,
    }
    by_run = name in {"runs:cancel", "runs:detail"}
    return reverse(
        name, args=[one["run" if by_run else "section" if "section_" in name else "sheet"]]
    )


# ---- who asks ----


def _client(name: str, *groups: str, castle: Sheet | None = None, role: str = "") -> Client:
    user = factories.person(name, *groups)
    if castle is not None:
        factories.save(Member(sheet=castle, user=user, role=role))
    client = Client(raise_request_exception=False)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def _written() -> str:
    """A fingerprint of every table but those that a look may write: sessions and log entries."""
    digest = hashlib.sha256()
    with connection.cursor() as cursor:
        for model in sorted(apps.get_models(), key=lambda m: m._meta.db_table):
            table = model._meta.db_table
            if table not in {"django_session", "django_admin_log", "auth_user"}:
                cursor.execute(f'SELECT * FROM "{table}" ORDER BY 1')
                digest.update(repr(cursor.fetchall()).encode())
    return digest.hexdigest()


SEEN, REFUSED = "seen", "refused"


def _said(response: Any) -> str:
    """In one word; a row that is not there for somebody is a way back to the first page."""
    location = response.headers.get("Location", "")
    if response.status_code in {403, 404} or location == "/admin/":
        return REFUSED
    if "/admin/login/" in location:
        return "log in"
    assert response.status_code in {200, 302, 405, 429}, response.status_code
    return "no such method" if response.status_code == 405 else SEEN


def _expected(house: House, role: str, *, member: bool, of: Sheet) -> dict[tuple[str, str], str]:
    """What somebody in a role is told at each address, by method."""
    mine = not member or of == house.castle

    def word(yes: bool) -> str:
        return SEEN if yes else REFUSED

    found: dict[tuple[str, str], str] = {}
    for model in MODELS:
        row = house.row(model, of)
        lists = model not in (User, Group)
        # A change set belongs to no sheet: its reasons are of all of them.
        sees = lists and (mine or model in COMMON) and not (member and model is ChangeSet)
        changes = role in CHANGES.get(model, ()) and mine
        if member and model in (ReviewInterval, BotProfile):
            # Both sheets use these.
            changes = False
        adds = role in ADDS.get(model, ()) and not (member and model is Sheet)
        for kind, get, post in (
            ("changelist", lists, lists),
            ("add", adds, adds),
            ("history", sees, sees),
            ("change", sees, changes),
            ("delete", False, False),
        ):
            address = _address(model, kind, row)
            found[address, "GET"] = word(get)
            found[address, "POST"] = word(post)
        if model in TRACKED:
            found[_moment(model, row), "GET"] = word(sees)
            found[_moment(model, row), "POST"] = REFUSED
    for name, (looks, acts) in PAGES.items():
        address = _page(name, house, of)
        found[address, "GET"] = word((looks is None or role in looks) and mine)
        found[address, "POST"] = word((acts is None or role in acts) and mine)
    return found


def _addresses(house: House, of: Sheet) -> list[str]:
    rows = {model: house.row(model, of) for model in MODELS}
    return [
        *(_address(model, kind, row) for model, row in rows.items() for kind in KINDS),
        *(_moment(model, rows[model]) for model in TRACKED),
        *(_page(name, house, of) for name in PAGES),
    ]


def _ask(client: Client, house: House, of: Sheet) -> dict[tuple[str, str], str]:
    return {
        (address, method): _said(getattr(client, method.lower())(address))
        for address in _addresses(house, of)
        for method in ("GET", "POST")
    }


def _differences(
    found: dict[tuple[str, str], str], expected: dict[tuple[str, str], str]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Where the answer is another. A method that a page does not have is a no like any other."""
    return {
        asked: (said, expected[asked])
        for asked, said in found.items()
        if said != expected[asked]
        and not (
            said == "no such method" and asked[1] in {"GET", "POST"} and expected[asked] == REFUSED
        )
    }


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_role_on_every_sheet_sees_everything_and_changes_what_it_keeps(
    house: House, role: str
) -> None:
    client = _client("of-the-house", role)

    expected = _expected(house, role, member=False, of=house.castle)

    assert _differences(_ask(client, house, house.castle), expected) == {}


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_role_on_one_sheet_holds_there(house: House, role: str) -> None:
    client = _client("of-the-castle", castle=house.castle, role=role)

    expected = _expected(house, role, member=True, of=house.castle)

    assert _differences(_ask(client, house, house.castle), expected) == {}


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_role_on_one_sheet_reaches_no_other(house: House, role: str) -> None:
    client = _client("of-the-castle", castle=house.castle, role=role)
    expected = _expected(house, role, member=True, of=house.cafe)
    before = _written()

    assert _differences(_ask(client, house, house.cafe), expected) == {}
    assert _written() == before


def test_nothing_of_another_sheet_stands_on_any_page_of_a_member(house: House) -> None:
    client = _client("of-the-castle", castle=house.castle, role=roles.VIEWER)
    user = User.objects.get(username="of-the-castle")
    for role in (E, K, P, M):
        factories.save(Member(sheet=house.castle, user=user, role=role))
    addresses = _addresses(house, house.castle)
    addresses += [reverse("admin:index"), reverse("admin:stale_report"), reverse("new_sheet")]
    addresses += [f"{reverse('admin:stale_report')}?state=all&format={f}" for f in ("csv", "json")]
    addresses += [f"{reverse('admin:search')}?s=canary"]
    addresses += [
        f"{a}?{urlencode({'q': 'canary'})}" for a in addresses if a.count("/") == 4 and "?" not in a
    ]

    telling = [a for a in addresses if b"canary-of-cafe" in client.get(a).content]

    assert telling == []


def test_somebody_without_a_role_is_refused_everywhere(house: House) -> None:
    found = _ask(_client("nobody"), house, house.castle)

    assert set(found.values()) <= {REFUSED, "no such method"}


@pytest.mark.parametrize("who", ["stranger", "not staff"])
def test_a_stranger_is_led_to_the_log_in_everywhere(house: House, who: str) -> None:
    client = Client(raise_request_exception=False)
    if who == "not staff":
        user = User.objects.create_user("visitor")
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")

    found = _ask(client, house, house.castle)

    assert set(found.values()) == {"log in"}


def test_an_administrator_sees_everything_and_deletes_nothing(house: House) -> None:
    client = Client(raise_request_exception=False)
    admin = factories.person("root", superuser=True)
    client.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")

    read = {_address(m, "change", house.row(m, house.castle)) for m in READ}
    found = _ask(client, house, house.castle)

    refused = {address for (address, method), said in found.items() if said == REFUSED}
    deletes = {a for a in refused if a.endswith("/delete/")}
    adds = {a for a in refused if a.endswith("/add/")}
    changes = {a for a in refused if a.endswith("/change/")}
    assert len(deletes) == len(MODELS)
    assert adds == {_address(m, "add", None) for m in (*READ, Citation, SheetRuleSet)}
    assert changes == read
    moments = {_moment(m, house.row(m, house.castle)) for m in TRACKED}
    assert refused == deletes | adds | changes | moments


@pytest.mark.parametrize("method", ["head", "options", "put", "patch", "delete"])
def test_no_other_method_writes_or_breaks_anything(house: House, method: str) -> None:
    client = Client(raise_request_exception=False)
    admin = factories.person("root", superuser=True)
    client.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    addresses = _addresses(house, house.castle)
    before = _written()

    broken = [a for a in addresses if getattr(client, method)(a).status_code >= 500]

    assert broken == []
    assert _written() == before


def test_no_look_writes_anything(house: House) -> None:
    client = _client("of-the-house", *roles.ROLES)
    before = _written()

    for address in _addresses(house, house.castle):
        client.get(address)

    assert _written() == before


# ---- forged forms ----


def _sent(client: Client, address: str, **fields: object) -> str:
    return _said(client.post(address, {"why": "forged", **fields}))


def test_a_member_cannot_take_rows_of_another_sheet_out_of_use(house: House) -> None:
    client = _client("of-the-castle", castle=house.castle, role=E)
    before = _written()

    for model in (Section, Citation):
        row = house.row(model, house.cafe)
        _sent(
            client,
            _address(model, "changelist", row),
            action="remove_selected",
            _selected_action=row.pk,
        )

    assert _written() == before


def test_a_member_cannot_archive_another_sheet(house: House) -> None:
    client = _client("of-the-castle", castle=house.castle, role=M)
    before = _written()

    _sent(
        client,
        _address(Sheet, "changelist", None),
        action="archive_selected",
        _selected_action=house.cafe.pk,
    )

    assert _written() == before


@pytest.mark.parametrize(
    ("model", "role", "fields"),
    [
        (Section, E, {"heading": "Mine", "key": "mine", "body": "x", "position": 1}),
        (ReviewPlan, M, {"interval": "1 day"}),
        (QuestionSet, K, {"slug": "mine", "title": "Mine"}),
        (Suite, K, {"slug": "mine", "title": "Mine", "repeats": 1, "pass_bar": 100}),
    ],
)
def test_a_member_cannot_add_a_row_to_another_sheet(
    house: House, model: type[Any], role: str, fields: dict[str, object]
) -> None:
    client = _client("of-the-castle", castle=house.castle, role=role)
    before = _written()
    empty = {
        f"{prefix}-{name}": 0
        for prefix in ("citations", "requirements")
        for name in ("TOTAL_FORMS", "INITIAL_FORMS")
    }

    _sent(client, _address(model, "add", None), **fields, **empty, sheet=house.cafe.pk)

    assert _written() == before


def test_a_member_cannot_move_a_row_to_another_sheet(house: House) -> None:
    client = _client("of-the-castle", castle=house.castle, role=K)
    questions = QuestionSet.objects.get(sheet=house.castle)
    before = _written()

    _sent(
        client,
        _address(QuestionSet, "change", questions),
        slug=questions.slug,
        title=questions.title,
        sheet=house.cafe.pk,
    )

    assert _written() == before


def test_a_member_cannot_require_a_suite_of_another_sheet(house: House) -> None:
    client = _client("of-the-castle", castle=house.castle, role=K)
    before = _written()

    _sent(
        client,
        _address(SuiteRequirement, "add", None),
        sheet=house.cafe.pk,
        suite=house.row(Suite, house.castle).pk,
    )

    assert _written() == before


def test_a_field_that_needs_more_than_the_role_is_not_taken_from_a_forged_form(
    house: House,
) -> None:
    client = _client("of-the-castle", castle=house.castle, role=E)
    castle = house.castle

    _sent(
        client,
        _address(Sheet, "change", castle),
        title="A new title",
        description="",
        language="en-GB",
        slug="stolen",
        visibility="key",
        probe_scope="rules+content",
    )

    castle.refresh_from_db()
    assert castle.title == "A new title"
    assert (castle.slug, castle.visibility, castle.probe_scope) == ("castle", "public", "rules")


def test_who_keeps_the_same_role_on_both_sheets_may_change_what_they_share(house: House) -> None:
    shared = factories.source("shared")
    for sheet in (house.castle, house.cafe):
        factories.save(Citation(section=sheet.sections.get(), source=shared, position=9))
    one = _client("of-the-castle", castle=house.castle, role=E)
    both = _client("of-both", castle=house.castle, role=E)
    factories.save(Member(sheet=house.cafe, user=User.objects.get(username="of-both"), role=E))
    address = _address(Source, "change", shared)
    fields = {"title": "A better title", "kind": shared.kind}

    refused = _sent(one, address, **fields)
    allowed = _sent(both, address, **fields)

    shared.refresh_from_db()
    assert (refused, allowed) == (REFUSED, SEEN)
    assert shared.title == "A better title"


def test_a_role_that_was_taken_away_opens_nothing(house: House) -> None:
    client = _client("of-the-castle", castle=house.castle, role=M)
    row = Member.objects.get(user__username="of-the-castle")
    editing.remove(row, by=factories.person(), reason="left", now=factories.LATER)

    found = _ask(client, house, house.castle)

    assert set(found.values()) <= {REFUSED, "no such method"}
