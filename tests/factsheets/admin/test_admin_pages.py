"""Every admin page for every role: it answers, or says no, and never breaks."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from simple_history.admin import SimpleHistoryAdmin

from evals.models import Attempt, Probe, Question, QuestionSet, Run, Suite, SuiteRequirement
from factsheets import editing, roles
from factsheets.admin.base import AppendOnlyAdmin
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
    TrackedModel,
)
from tests import factories
from tests.factories import NOON
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

SUPERUSER = "superuser"
EVERYONE = (*roles.ROLES, SUPERUSER)
ACCOUNTS = (User, Group)
#: Tracked rows that are archived or stay for ever; all others may be taken out of use.
NEVER_REMOVED = (Sheet, GatePolicy)

#: What each role may add on a page of its own.
MAY_ADD: dict[str, set[type[Model]]] = {
    roles.VIEWER: set(),
    roles.EDITOR: {Section, Source},
    roles.RULE_KEEPER: {
        Rule,
        RuleSet,
        BotProfile,
        Suite,
        Probe,
        SuiteRequirement,
        QuestionSet,
        Question,
    },
    roles.PUBLISHER: set(),
    roles.MAINTAINER: {Sheet, GatePolicy, ReviewInterval, ReviewPlan},
}
#: A word that a search of each list finds in what the fixture made.
FOUND_BY: dict[type[Model], str] = {
    User: "keeper",
    Group: "rule keep",
    Publication: "for a test",
    PublicationEvent: "for a test",
    Schedule: "for a test",
    Check: "opening",
    ChangeSet: "made for a test",
    RuleSet: "only from the sheet",
    Rule: "only from",
    BotProfile: "offline",
    Sheet: "closes at five",
    GatePolicy: "castle",
    Section: "closes at five",
    Source: "leaflet",
    Citation: "leaflet",
    Member: "keeper",
    ReviewPlan: "castle",
    SheetRuleSet: "castle",
    Suite: "castle open in the morning",
    Probe: "castle open in the morning",
    SuiteRequirement: "safety",
    QuestionSet: "when may I come",
    Question: "when may I come",
    Run: "castle",
    Attempt: "castle opens at ten",
}


@pytest.fixture
def castle() -> Sheet:
    """A row of every kind that has a page."""
    sheet = factories.ready_sheet("castle")
    factories.passing_run(sheet)
    factories.schedule(sheet)
    factories.publish(sheet)
    sheet.refresh_from_db()
    keeper = factories.person("keeper", roles.RULE_KEEPER)
    factories.save(Member(sheet=sheet, user=keeper, role=Member.Role.EDITOR))
    factories.save(ReviewInterval(kind=Source.Kind.NEWS, interval="1 month"))
    factories.save(ReviewPlan(sheet=sheet, owner=keeper, interval="6 months"))
    questions = QuestionSet(slug="castle-questions", title="Castle questions", sheet=sheet)
    factories.save(questions)
    factories.save(
        Question(
            question_set=questions,
            key="come",
            question="When may I come?",
            scope="in",
            sections=["hours"],
        )
    )
    return sheet


def enter(role: str) -> Client:
    """A browser of somebody in that role, which is told of a fault as a visitor would be."""
    user = factories.person(f"the-{role}".replace(" ", "-"), role, superuser=role == SUPERUSER)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def address(model: type[Model], page: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def registered(kind: type = object) -> list[type[Model]]:
    """The models with pages of their own, by the kind of their admin."""
    return [model for model, page in admin.site._registry.items() if isinstance(page, kind)]


def newest(model: type[Model]) -> Model:
    row = model._default_manager.order_by("pk").last()
    assert row is not None, f"the fixture makes no {model.__name__}"
    return row


def ours() -> list[type[Model]]:
    return [model for model in registered() if model not in ACCOUNTS]


def statuses(client: Client, models: list[type[Model]], kind: str) -> dict[str, int]:
    """What the page of one row, or of the list, answers, by model."""
    found = {}
    for model in models:
        args = [newest(model).pk] * (kind in {"change", "history", "delete"})
        found[model.__name__] = client.get(address(model, kind, *args)).status_code
    return found


def offered(found: dict[str, int]) -> set[str]:
    """The models whose add page opens; that of a sheet leads on to one of its own."""
    return {name for name, status in found.items() if status == 200 or (name, status) == LEADS_ON}


#: What the add page of a sheet answers.
LEADS_ON = ("Sheet", 302)


def alike(models: list[type[Model]], status: int) -> dict[str, int]:
    return {model.__name__: status for model in models}


# ---- who sees what ----


@pytest.mark.parametrize("role", EVERYONE)
def test_every_role_may_read_every_row_of_ours(castle: Sheet, role: str) -> None:
    client = enter(role)

    found = statuses(client, ours(), "change")

    assert found == alike(ours(), 200)


@pytest.mark.parametrize("role", [roles.VIEWER, SUPERUSER])
def test_every_list_and_every_history_of_ours_may_be_read(castle: Sheet, role: str) -> None:
    client = enter(role)

    for kind in ("changelist", "history"):
        assert statuses(client, ours(), kind) == alike(ours(), 200)


@pytest.mark.parametrize("role", [roles.VIEWER, SUPERUSER])
def test_the_first_page_and_those_of_each_app_answer(castle: Sheet, role: str) -> None:
    client = enter(role)

    for path in (
        reverse("admin:index"),
        reverse("admin:app_list", args=["factsheets"]),
        reverse("admin:app_list", args=["evals"]),
        reverse("admin:password_change"),
        reverse("admin:jsi18n"),
        reverse("admin:search") + "?s=section",
    ):
        assert client.get(path).status_code == 200, path


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_role_may_add_what_it_keeps_and_nothing_else(castle: Sheet, role: str) -> None:
    client = enter(role)

    found = statuses(client, registered(), "add")

    assert offered(found) == {model.__name__ for model in MAY_ADD[role]}
    assert {status for name, status in found.items() if name not in offered(found)} == {403}


def test_a_superuser_may_add_whatever_is_not_append_only(castle: Sheet) -> None:
    client = enter(SUPERUSER)

    found = statuses(client, registered(), "add")

    # Links are added beside the row that they belong to.
    closed = [*registered(AppendOnlyAdmin), Citation, SheetRuleSet]
    assert found == {**alike(registered(), 200), **alike(closed, 403), **dict([LEADS_ON])}


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_role_may_not_see_accounts(castle: Sheet, role: str) -> None:
    client = enter(role)

    for kind in ("changelist", "change", "history"):
        assert statuses(client, list(ACCOUNTS), kind) == alike(list(ACCOUNTS), 403)


def test_a_superuser_sees_accounts(castle: Sheet) -> None:
    client = enter(SUPERUSER)

    for kind in ("changelist", "change", "history"):
        assert statuses(client, list(ACCOUNTS), kind) == alike(list(ACCOUNTS), 200)


#: What a role may save beside what it may add. Each field has its own permission on top.
MAY_SAVE_TOO: dict[str, set[type[Model]]] = {
    roles.VIEWER: set(),
    roles.EDITOR: {Sheet, Citation},
    roles.RULE_KEEPER: {Sheet, SheetRuleSet},
    roles.PUBLISHER: {Sheet},
    roles.MAINTAINER: set(),
}


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_role_may_save_what_it_keeps_and_is_refused_elsewhere(castle: Sheet, role: str) -> None:
    client = enter(role)

    found = {
        model: client.post(address(model, "change", newest(model).pk), {}).status_code
        for model in registered()
    }

    refused = {model for model, status in found.items() if status == 403}
    assert refused == set(registered()) - MAY_ADD[role] - MAY_SAVE_TOO[role]


def everywhere(sheet: Sheet) -> list[str]:
    """An address of every kind below the admin."""
    lists = [address(model, page) for model in registered() for page in ("changelist", "add")]
    rows = [
        address(model, page, newest(model).pk)
        for model in registered()
        for page in ("change", "history", "delete")
    ]
    of_history = [
        address(model, "simple_history", newest(model).pk, newest(model.history.model).pk)
        for model in registered(SimpleHistoryAdmin)
    ]
    gate = [
        reverse(f"admin:sheet_{page}", args=[sheet.pk])
        for page in ("gate", "publish", "withdraw", "rollback")
    ]
    run = newest(Run)
    runs = [
        reverse("runs:start", args=[sheet.pk]),
        reverse("runs:progress", args=[sheet.pk]),
        reverse("runs:detail", args=[run.pk]),
        reverse("runs:cancel", args=[run.pk]),
    ]
    others = [
        reverse("admin:index"),
        reverse("admin:app_list", args=["factsheets"]),
        reverse("admin:autocomplete"),
        reverse("admin:password_change"),
        reverse("admin:search"),
    ]
    return [*lists, *rows, *of_history, *gate, *runs, *others]


def test_a_stranger_is_led_to_the_log_in_from_everywhere(client: Client, castle: Sheet) -> None:
    for path in everywhere(castle):
        for response in (client.get(path), client.post(path, {})):
            assert response.status_code == 302, path
            assert response["Location"].startswith("/admin/login/?next="), path


def test_an_account_that_is_not_of_the_staff_is_led_to_the_log_in_too(
    client: Client, castle: Sheet
) -> None:
    visitor = factories.person("visitor", *roles.ROLES)
    visitor.is_staff = False
    visitor.save()
    client.force_login(visitor)

    for path in everywhere(castle):
        response = client.get(path)

        assert response.status_code == 302, path
        assert response["Location"].startswith("/admin/login/?next="), path


def test_somebody_without_a_role_is_told_no_everywhere_but_at_home(
    client: Client, castle: Sheet
) -> None:
    client.force_login(factories.person("newcomer"))

    found = {
        (model.__name__, page): client.get(address(model, page, newest(model).pk)).status_code
        for model in registered()
        for page in ("change", "history", "delete")
    }

    assert set(found.values()) == {403}, found
    assert client.get(reverse("admin:index")).status_code == 200


@pytest.mark.parametrize("identifier", ["abc", "999999", "9" * 30])
def test_rows_that_are_not_there_are_a_plain_no(castle: Sheet, identifier: str) -> None:
    client = enter(SUPERUSER)

    found = {
        (model.__name__, page): client.get(
            f"{address(model, 'changelist')}{identifier}/{page}/"
        ).status_code
        for model in registered()
        for page in ("change", "history", "delete")
    }

    assert {key: status for key, status in found.items() if status not in {302, 404, 403}} == {}


@pytest.mark.parametrize("identifier", ["abc", "999999", "9" * 30])
def test_moments_that_are_not_in_the_history_are_a_plain_no(castle: Sheet, identifier: str) -> None:
    client = enter(SUPERUSER)

    found = {
        model.__name__: client.get(
            f"{address(model, 'history', newest(model).pk)}{identifier}/"
        ).status_code
        for model in registered(SimpleHistoryAdmin)
    }

    assert set(found.values()) == {404}, found


# ---- lists ----


def queries_of_filters(model: type[Model], client: Client) -> list[str]:
    """For every filter of a list, the query of its last choice."""
    request = RequestFactory().get(address(model, "changelist"))
    request.user = User.objects.get(username=f"the-{SUPERUSER}")
    changelist = admin.site._registry[model].get_changelist_instance(request)
    return [list(spec.choices(changelist))[-1]["query_string"] for spec in changelist.filter_specs]


def test_every_filter_of_every_list_works(castle: Sheet) -> None:
    client = enter(SUPERUSER)

    found = {
        (model.__name__, query): client.get(address(model, "changelist") + query).status_code
        for model in registered()
        for query in queries_of_filters(model, client)
    }

    assert len(found) > 30
    assert {key: status for key, status in found.items() if status != 200} == {}


def rows_on(response: HttpResponse) -> int:
    assert response.status_code == 200
    return int(response.context["cl"].result_count)


def test_every_list_that_can_be_searched_finds_what_is_there(castle: Sheet) -> None:
    client = enter(SUPERUSER)

    for model, word in FOUND_BY.items():
        found = client.get(address(model, "changelist"), {"q": word})
        nothing = client.get(address(model, "changelist"), {"q": "no such word"})

        assert rows_on(found) > 0, model
        assert rows_on(nothing) == 0, model


def test_every_list_that_can_be_searched_is_searched_here() -> None:
    searched = {model for model, page in admin.site._registry.items() if page.search_fields}

    assert searched == set(FOUND_BY)


def test_a_probe_is_found_by_words_of_any_language(castle: Sheet) -> None:
    suite = castle.suites.get()
    factories.probe(suite, "asks-in-welsh", turns=["Ydy’r tŷ ar agor?"])
    client = enter(roles.VIEWER)

    response = client.get(address(Probe, "changelist"), {"q": "tŷ"})

    assert [row.key for row in response.context["cl"].result_list] == ["asks-in-welsh"]


def test_a_search_through_sections_shows_a_sheet_once_with_all_its_sections(
    castle: Sheet,
) -> None:
    factories.section(castle, key="tower", heading="Tower", body="The castle has a tower.")
    client = enter(roles.VIEWER)

    response = client.get(address(Sheet, "changelist"), {"q": "castle"})

    assert [(row.slug, row.section_count) for row in response.context["cl"].result_list] == [
        ("castle", 2)
    ]


def more_rows(sheet: Sheet) -> None:
    """A few more of everything that a list shows."""
    for number in range(4):
        source = factories.source(f"more-{number}")
        factories.section(sheet, key=f"more-{number}", source=source)
        factories.rule(sheet, key=f"more-{number}")
        factories.probe(factories.suite(sheet, f"more-{number}"), f"more-{number}")
    factories.passing_run(sheet)
    factories.publish(sheet)
    factories.published_sheet("abbey")


def cost_of_lists(client: Client) -> dict[str, int]:
    found = {}
    for model in ours():
        with CaptureQueriesContext(connection) as asked:
            client.get(address(model, "changelist"))
        found[model.__name__] = len(asked)
    return found


def test_a_list_asks_the_database_as_often_for_many_rows_as_for_one(castle: Sheet) -> None:
    client = enter(roles.VIEWER)
    client.get(reverse("admin:index"))
    few = cost_of_lists(client)
    more_rows(castle)

    many = cost_of_lists(client)

    assert {name: (few[name], many[name]) for name in few if many[name] > few[name]} == {}


def removable() -> list[type[TrackedModel]]:
    return [model for model in TrackedModel.__subclasses__() if model not in NEVER_REMOVED]


def test_rows_taken_out_of_use_are_found_on_their_list(castle: Sheet) -> None:
    client = enter(roles.VIEWER)
    listed = [model for model in removable() if model in registered()]
    rows = {model: newest(model) for model in listed}
    for row in rows.values():
        editing.remove(row, by=factories.person(), reason="for a test", now=NOON)

    found = {
        model.__name__: client.get(address(model, "changelist"), {"removed_at__isempty": "0"})
        for model in listed
    }

    assert {
        name: [row.pk for row in response.context["cl"].result_list]
        for name, response in found.items()
    } == {model.__name__: [row.pk] for model, row in rows.items()}


def test_every_kind_of_row_that_may_be_taken_out_of_use_can_be_found_again() -> None:
    hidden = [model.__name__ for model in removable() if model not in registered()]

    assert hidden == []


# ---- nothing is deleted, and what is written once stays as it is ----


def counted() -> dict[str, int]:
    models = [*registered(), Citation, SheetRuleSet]
    return {model.__name__: model._default_manager.count() for model in models}


@pytest.mark.parametrize("role", [roles.RULE_KEEPER, roles.MAINTAINER, SUPERUSER])
def test_nobody_may_delete_a_row(castle: Sheet, role: str) -> None:
    client = enter(role)
    before = counted()

    found = {
        (model.__name__, method): getattr(client, method)(
            address(model, "delete", newest(model).pk), {"post": "yes"}
        ).status_code
        for model in registered()
        for method in ("get", "post")
    }

    assert set(found.values()) == {403}, found
    assert counted() == before


def test_nobody_may_delete_by_an_action_on_a_list(castle: Sheet) -> None:
    client = enter(SUPERUSER)
    before = counted()

    for model in registered():
        client.post(
            address(model, "changelist"),
            {
                "action": "delete_selected",
                "_selected_action": [newest(model).pk],
                "post": "yes",
            },
        )
        page = client.get(address(model, "changelist"))
        assert b"delete_selected" not in page.content, model

    assert counted() == before


@pytest.mark.parametrize("role", [roles.PUBLISHER, SUPERUSER])
def test_append_only_rows_are_neither_added_nor_changed(castle: Sheet, role: str) -> None:
    client = enter(role)
    closed = registered(AppendOnlyAdmin)
    values = {model: type(newest(model))._default_manager.values() for model in closed}
    before = {model: list(rows) for model, rows in values.items()}

    found = {
        (model.__name__, *call): client.post(address(model, *call), {}).status_code
        for model in closed
        for call in (("add",), ("change", newest(model).pk))
    }

    assert set(found.values()) == {403}, found
    assert {model: list(rows.all()) for model, rows in values.items()} == before


def test_all_that_was_served_run_or_announced_is_append_only() -> None:
    assert set(registered(AppendOnlyAdmin)) == {
        Publication,
        PublicationEvent,
        Schedule,
        Check,
        ChangeSet,
        Outbox,
        Run,
        Attempt,
    }


def test_the_page_of_an_append_only_row_has_nothing_to_fill_in(castle: Sheet) -> None:
    client = enter(SUPERUSER)

    for model in registered(AppendOnlyAdmin):
        page = Page(client.get(address(model, "change", newest(model).pk)))

        names = set(page.form(f"{model._meta.model_name}_form").data)
        assert names <= {"csrfmiddlewaretoken"}, model


# ---- history ----


def history_pages() -> dict[str, str]:
    return {
        model.__name__: address(
            model, "simple_history", newest(model).pk, newest(model.history.model).pk
        )
        for model in registered(SimpleHistoryAdmin)
    }


def test_every_tracked_row_with_a_page_has_a_readable_history() -> None:
    tracked = {model for model in TrackedModel.__subclasses__() if model in registered()}

    assert set(registered(SimpleHistoryAdmin)) == tracked


@pytest.mark.parametrize("role", [roles.VIEWER, roles.RULE_KEEPER, SUPERUSER])
def test_a_moment_of_the_history_can_be_read(castle: Sheet, role: str) -> None:
    client = enter(role)

    found = {name: client.get(path).status_code for name, path in history_pages().items()}

    assert set(found.values()) == {200}, found


def test_the_button_history_of_a_moment_leads_to_the_history_of_its_row(castle: Sheet) -> None:
    client = enter(roles.VIEWER)

    # The trail above the page is one link there, the button is the other.
    links = {
        name: client.get(path).content.decode().count(f'href="{path.rsplit("/", 2)[0]}/"')
        for name, path in history_pages().items()
    }

    assert set(links.values()) == {2}, links


@pytest.mark.parametrize("role", [roles.VIEWER, roles.EDITOR, SUPERUSER])
def test_nothing_is_written_through_the_history(castle: Sheet, role: str) -> None:
    client = enter(role)
    models = registered(SimpleHistoryAdmin)
    before = [list(model._default_manager.values()) for model in models]
    versions = [model.history.count() for model in models]

    found = {
        (name, method): client.generic(
            method,
            path,
            "title=Forged&heading=Forged&text=Forged&why=forged&_save=1",
            content_type="application/x-www-form-urlencoded",
        ).status_code
        for name, path in history_pages().items()
        for method in ("POST", "PUT", "PATCH", "DELETE")
    }

    assert set(found.values()) == {403}, found
    assert [list(model._default_manager.values()) for model in models] == before
    assert [model.history.count() for model in models] == versions
    assert not LogEntry.objects.exists()


def test_a_moment_of_the_history_has_no_button_to_save(castle: Sheet) -> None:
    client = enter(SUPERUSER)

    for name, path in history_pages().items():
        page = Page(client.get(path))

        buttons = [tag.get("name", "") for tag in (*page.all("button"), *page.all("input"))]
        assert not {"_save", "_continue", "_addanother", "_change_history"} & set(buttons), name


@pytest.fixture
def often_edited(castle: Sheet) -> Section:
    section = castle.sections.get()
    for number in range(45):
        editing.change(
            section,
            by=factories.person(),
            reason=f"edit {number}",
            now=NOON,
            body=f"The castle has {number} rooms.",
        )
    return section


def test_a_long_history_is_shown_page_by_page(often_edited: Section) -> None:
    client = enter(roles.VIEWER)

    pages = [
        client.get(address(Section, "history", often_edited.pk), {"p": number})
        for number in (1, 2, 3)
    ]

    shown = [[row.history_change_reason for row in page.context["page_obj"]] for page in pages]
    assert [len(rows) for rows in shown] == [20, 20, 6]
    assert shown[0][0] == "edit 44"
    assert shown[2][-2:] == ["edit 0", "for a test"]
    assert b"edit 30" in pages[0].content


def test_every_moment_of_a_long_history_can_be_read(often_edited: Section) -> None:
    client = enter(roles.VIEWER)
    versions = list(often_edited.history.order_by("history_id"))

    for version in (versions[0], versions[20], versions[-1]):
        page = client.get(address(Section, "simple_history", often_edited.pk, version.history_id))

        assert page.status_code == 200
        assert version.body in Page(page).text


def test_a_page_of_a_long_history_asks_the_database_no_more_than_a_short_one(
    often_edited: Section, django_assert_max_num_queries: Any
) -> None:
    client = enter(roles.VIEWER)
    client.get(reverse("admin:index"))

    with django_assert_max_num_queries(10):
        response = client.get(address(Section, "history", often_edited.pk))

    assert response.status_code == 200


# ---- what pages fetch for themselves ----


@pytest.mark.parametrize("role", [roles.EDITOR, roles.VIEWER])
def test_a_source_is_found_while_it_is_typed(castle: Sheet, role: str) -> None:
    client = enter(role)

    response = client.get(
        reverse("admin:autocomplete"),
        {
            "app_label": "factsheets",
            "model_name": "citation",
            "field_name": "source",
            "term": "leaf",
        },
    )

    assert [found["text"] for found in response.json()["results"]] == ["The leaflet"]


@pytest.mark.parametrize("name", ["open_publishing", "open_sections"])
def test_the_buttons_on_a_sheet_lead_to_pages_that_answer(castle: Sheet, name: str) -> None:
    client = enter(roles.EDITOR)

    response = client.get(reverse(f"admin:factsheets_sheet_{name}", args=[castle.pk]), follow=True)

    assert response.redirect_chain
    assert response.status_code == 200


def test_every_link_on_a_page_for_reading_leads_somewhere(castle: Sheet) -> None:
    client = enter(roles.VIEWER)
    around = set(Page(client.get(reverse("admin:index"))).links())
    models = [Sheet, Source, Suite, *registered(AppendOnlyAdmin)]
    pages = [address(model, "changelist") for model in (Sheet, Suite, Run)]
    pages += [address(model, "change", newest(model).pk) for model in models]

    links = {link for path in pages for link in Page(client.get(path)).links()} - around
    found = {link: client.get(link).status_code for link in links if link.startswith("/admin/")}

    assert len(found) > 15
    assert {link: status for link, status in found.items() if status not in {200, 302}} == {}
