"""The pages where a sheet's gate is read, its probes are run, and it is published or withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from kombu import pools

from config.celery import app
from evals import runs
from evals.models import Attempt, Run
from factsheets import canonical, editing, explaining, publishing, roles, scheduling
from factsheets.models import (
    BotProfile,
    GatePolicy,
    PublicationEvent,
    Rule,
    Schedule,
    Sheet,
)
from tests import factories
from tests.factories import LATER, NOON
from tests.factsheets.admin import Form, Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

OFFLINE = "The offline bot does not read the rules; this run does not test them."
SUPERUSER = "superuser"

#: Pages read the clock themselves, and evidence grows old.
NOW = timezone.now()


@pytest.fixture
def publisher() -> Client:
    return enter(roles.PUBLISHER)


@pytest.fixture
def open_gate() -> Sheet:
    """A sheet that may be published today."""
    sheet = factories.ready_sheet("castle")
    factories.passing_run(sheet, now=NOW)
    return sheet


@pytest.fixture
def live(open_gate: Sheet) -> Sheet:
    """A sheet with publication 1 live, whose evidence is of today."""
    factories.publish(open_gate, now=NOW)
    return open_gate


def enter(role: str) -> Client:
    user = factories.person(f"the-{role}".replace(" ", "-"), role, superuser=role == SUPERUSER)
    client = Client()
    client.force_login(user)
    return client


def address(name: str, sheet: Sheet) -> str:
    return reverse(f"admin:sheet_{name}", args=[sheet.pk])


def gate(client: Client, sheet: Sheet) -> Page:
    response = client.get(address("gate", sheet))
    assert response.status_code == 200
    return Page(response)


def publish_form(page: Page, sheet: Sheet) -> Form:
    return page.form_to(address("publish", sheet))


def press_publish(client: Client, sheet: Sheet, page: Page, reason: str = "new text") -> str:
    """Publish what the page showed, and read what is said then."""
    seen = publish_form(page, sheet).data
    response = client.post(address("publish", sheet), {**seen, "reason": reason}, follow=True)
    assert response.redirect_chain == [(address("gate", sheet), 302)]
    return Page(response).text


def edit(row: Any, **values: Any) -> None:
    editing.change(row, by=factories.person(), reason="for a test", now=NOON, **values)


def button(page: Page, label: str) -> dict[str, str]:
    """The last button: what pressing a form's own button would be refused by."""
    assert label in page.text
    return next(b for b in page.all("button") if "m-primary" in b.get("class", ""))


# ---- the gate ----


def test_the_gate_says_what_is_missing_and_leads_there(publisher: Client) -> None:
    sheet = factories.sheet("castle")
    section = factories.section(sheet, body="")

    page = gate(publisher, sheet)

    assert "Gate: closed" in page.text
    for code in ("no-rules", "no-suite", "rules-not-probed", "empty-section", "unsourced"):
        assert code in page.text, code
    links = page.links()
    assert reverse("admin:factsheets_section_change", args=[section.pk]) in links


def test_every_place_where_a_finding_is_mended_answers(publisher: Client) -> None:
    bare = factories.sheet("castle")
    emptied = factories.sheet("abbey")
    factories.section(emptied, body="")
    factories.rule(emptied)
    factories.suite(emptied)
    same = factories.published_sheet("moat")
    sheets = (bare, emptied, same)

    around = Page(publisher.get(reverse("admin:index")))
    pages = [gate(publisher, sheet) for sheet in sheets]

    mend = {link for page in pages for link in page.links()} - set(around.links())
    inside = [link for link in mend if link.startswith("/admin/")]
    assert len(inside) > 5
    assert {link: publisher.get(link).status_code for link in inside} == dict.fromkeys(inside, 200)
    assert "#probes" in pages[0].links()
    assert "probes" in [attributes.get("id") for _, attributes in pages[0].tags]


def test_the_link_from_a_rules_finding_shows_the_rules_of_this_sheet_alone(
    publisher: Client,
) -> None:
    sheet = factories.sheet("castle")
    disabled = factories.rule(sheet, enabled=False)
    factories.rule(factories.sheet("abbey"), "another")

    (link,) = {link for link in gate(publisher, sheet).links() if "/rule/?" in link}

    listed = publisher.get(link).context["cl"].result_list
    assert [row.pk for row in listed] == [disabled.pk]


def test_an_open_gate_says_so_and_shows_the_hashes(publisher: Client, open_gate: Sheet) -> None:
    view = publishing.look(open_gate, now=NOW)

    page = gate(publisher, open_gate)

    assert "Gate: open" in page.text
    for value in (
        view.candidate.subject.content_hash,
        view.candidate.subject.rules_hash,
        view.candidate.subject.bot_hash,
    ):
        assert value in page.text


def test_while_the_gate_is_closed_the_button_is_off_and_the_reason_stands_beside_it(
    publisher: Client,
) -> None:
    sheet = factories.ready_sheet("castle")

    page = gate(publisher, sheet)

    found = button(page, "Publish")
    assert "disabled" in found
    described = found["aria-describedby"]
    assert described in [attributes.get("id") for _, attributes in page.tags]
    assert "The gate is closed: The probes have not run on these rules; run them." in page.text


def test_while_the_gate_is_open_the_button_works(publisher: Client, open_gate: Sheet) -> None:
    page = gate(publisher, open_gate)

    assert "disabled" not in button(page, "Publish")
    assert "The gate is closed" not in page.text


def test_the_gate_says_what_bots_get_now(publisher: Client, live: Sheet) -> None:
    page = gate(publisher, live)

    assert "Publication 1" in page.text
    served = publisher.get("/api/v1/sheets/castle/")
    assert "/api/v1/sheets/castle/" in page.links()
    assert served.status_code == 200


def test_the_gate_of_a_sheet_never_published_says_nothing_is_served(
    publisher: Client, open_gate: Sheet
) -> None:
    page = gate(publisher, open_gate)

    assert "The sheet has never been published." in page.text


def test_the_gate_of_a_withdrawn_sheet_says_since_when_and_why(
    publisher: Client, live: Sheet
) -> None:
    publishing.withdraw(sheet_id=live.pk, by=factories.person(), reason="Wrong times.", now=LATER)

    page = gate(publisher, live)

    assert "Withdrawn" in page.text
    assert "2 June 2026" in page.text
    assert "Wrong times." in page.text


def test_the_offline_sentence_stands_at_the_gate_of_an_offline_bot_alone(
    publisher: Client, open_gate: Sheet
) -> None:
    offline = gate(publisher, open_gate)
    bot = BotProfile(slug="model", provider="anthropic", model="claude-haiku-5-5")
    factories.save(bot)
    edit(open_gate, bot=bot)

    model = gate(publisher, open_gate)

    assert OFFLINE in offline.text
    assert OFFLINE not in model.text


def test_the_page_loads_the_script_that_its_fragments_need(
    publisher: Client, open_gate: Sheet
) -> None:
    page = gate(publisher, open_gate)

    scripts = [tag["src"] for tag in page.all("script") if "htmx" in tag.get("src", "")]
    fragments = [tag for tag in page.all("div") if "hx-get" in tag]
    assert [finders.find(src.removeprefix("/static/")) is not None for src in scripts] == [True]
    assert publisher.get(fragments[0]["hx-get"]).status_code == 200


@pytest.mark.parametrize(
    ("role", "buttons"),
    [
        (roles.VIEWER, set()),
        (roles.EDITOR, {"start"}),
        (roles.RULE_KEEPER, {"start"}),
        (roles.PUBLISHER, {"start", "publish", "withdraw", "rollback"}),
        (roles.MAINTAINER, set()),
    ],
)
def test_each_role_is_offered_what_it_may_do(live: Sheet, role: str, buttons: set[str]) -> None:
    page = gate(enter(role), live)

    targets = {
        "start": reverse("runs:start", args=[live.pk]),
        "publish": address("publish", live),
        "withdraw": address("withdraw", live),
        "rollback": address("rollback", live),
    }
    forms = [form.attributes.get("action", "") for form in page.forms]
    offered = [*forms, *(link.split("?")[0] for link in page.links())]
    assert {name for name, target in targets.items() if target in offered} == buttons


def test_the_gate_of_a_sheet_that_is_not_there_is_not_found(publisher: Client) -> None:
    for name in ("gate", "publish", "withdraw", "rollback"):
        path = reverse(f"admin:sheet_{name}", args=[999_999])

        assert publisher.post(path).status_code in {404, 405}
    assert publisher.get(reverse("admin:sheet_gate", args=[999_999])).status_code == 404


# ---- publish ----


def test_publishing_through_the_page_makes_the_publication_live(
    publisher: Client, open_gate: Sheet
) -> None:
    said = press_publish(publisher, open_gate, gate(publisher, open_gate), "first text")

    publication = open_gate.publications.get()
    assert "Publication 1 is live." in said
    assert (publication.reason, publication.published_by_name) == ("first text", "the-publisher")
    assert Client().get("/api/v1/sheets/castle/").content == bytes(publication.body)


def _edit_text(sheet: Sheet) -> None:
    edit(sheet.sections.get(), body="Another text.")


def _edit_rule(sheet: Sheet) -> None:
    edit(Rule.objects.get(), text="Another rule.")


def _edit_bot(sheet: Sheet) -> None:
    edit(sheet.bot, max_tokens=99)


@pytest.mark.parametrize("change", [_edit_text, _edit_rule, _edit_bot])
def test_what_changed_since_the_page_was_read_is_not_published(
    publisher: Client, open_gate: Sheet, change: Any
) -> None:
    page = gate(publisher, open_gate)
    change(open_gate)

    said = press_publish(publisher, open_gate, page)

    assert "changed while you looked; look again before you publish." in said
    assert not open_gate.publications.exists()


def test_who_missed_another_publication_is_told_which_is_live(
    publisher: Client, open_gate: Sheet
) -> None:
    page = gate(publisher, open_gate)
    factories.publish(open_gate, now=NOW)

    said = press_publish(publisher, open_gate, page)

    assert "publication 1 is live; look again." in said
    assert open_gate.publications.count() == 1


@pytest.mark.parametrize("reason", ["", "   "])
def test_publishing_without_a_reason_is_refused_with_a_sentence(
    publisher: Client, open_gate: Sheet, reason: str
) -> None:
    said = press_publish(publisher, open_gate, gate(publisher, open_gate), reason)

    assert "Say in a few words why; the reason is kept with the event." in said
    assert not open_gate.publications.exists()


def test_publishing_through_a_closed_gate_is_refused_with_its_reason(publisher: Client) -> None:
    sheet = factories.ready_sheet("castle")
    page = gate(publisher, sheet)

    said = press_publish(publisher, sheet, page)

    assert "The probes have not run on these rules; run them." in said
    assert not sheet.publications.exists()


def test_a_superuser_does_not_pass_a_closed_gate_either() -> None:
    client = enter(SUPERUSER)
    sheet = factories.ready_sheet("castle")

    press_publish(client, sheet, gate(client, sheet))

    assert not sheet.publications.exists()


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"reason": "go"},
        {"reason": "go", "live_number": "9" * 40},
        {"reason": "go", "live_number": "²", "content_hash": "\x00", "rules_hash": "é"},
        {"reason": "x" * 501},
    ],
)
def test_a_form_made_by_hand_is_refused_and_breaks_nothing(
    publisher: Client, open_gate: Sheet, sent: dict[str, str]
) -> None:
    response = publisher.post(address("publish", open_gate), sent)

    assert response.status_code == 302
    assert not open_gate.publications.exists()


@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
def test_publishing_takes_a_post_and_nothing_else(
    publisher: Client, open_gate: Sheet, method: str
) -> None:
    response = getattr(publisher, method)(address("publish", open_gate))

    assert response.status_code == 405
    assert response["Allow"] == "POST"
    assert not open_gate.publications.exists()


def test_a_form_without_its_token_is_refused(open_gate: Sheet) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.person("paul", roles.PUBLISHER))

    found = {
        name: client.post(address(name, open_gate), {"reason": "go"}).status_code
        for name in ("publish", "withdraw", "rollback")
    }
    found["start"] = client.post(reverse("runs:start", args=[open_gate.pk])).status_code

    assert set(found.values()) == {403}, found


# ---- withdraw ----


def test_withdrawing_asks_first_and_changes_nothing_yet(publisher: Client, live: Sheet) -> None:
    response = publisher.get(address("withdraw", live))

    page = Page(response)
    assert response.status_code == 200
    assert "Publication 1 will answer 410 (gone)" in page.text
    assert not PublicationEvent.objects.filter(kind="withdrawn").exists()


def confirm(client: Client, path: str, reason: str) -> HttpResponse:
    """Fill in why on a page that asks, and send it."""
    form = next(
        form
        for form in Page(client.get(path)).forms
        if "reason" in form.data and "action" not in form.attributes
    )
    return client.post(path, {**form.data, "reason": reason}, follow=True)


def test_withdrawing_takes_the_sheet_away_from_bots(publisher: Client, live: Sheet) -> None:
    response = confirm(publisher, address("withdraw", live), "Wrong times.")

    event = PublicationEvent.objects.get(kind="withdrawn")
    assert "Withdrawn: bots are told to drop their copies." in Page(response).text
    assert (event.reason, event.by_name) == ("Wrong times.", "the-publisher")
    assert Client().get("/api/v1/sheets/castle/").status_code == 410


@pytest.mark.parametrize("reason", ["", "  "])
def test_withdrawing_without_a_reason_is_refused_with_a_sentence(
    publisher: Client, live: Sheet, reason: str
) -> None:
    response = confirm(publisher, address("withdraw", live), reason)

    page = Page(response)
    assert response.status_code == 200
    assert "Say in a few words why; the reason is kept with the event." in page.text
    assert [tag["aria-describedby"] for tag in page.all("input") if "aria-invalid" in tag] == [
        "reason-error"
    ]
    assert not PublicationEvent.objects.filter(kind="withdrawn").exists()


def test_an_empty_post_is_a_withdrawal_without_a_reason(publisher: Client, live: Sheet) -> None:
    response = publisher.post(address("withdraw", live), {})

    assert "Say in a few words why" in Page(response).text
    assert not PublicationEvent.objects.filter(kind="withdrawn").exists()


def test_what_went_live_since_the_page_was_read_is_not_withdrawn(
    publisher: Client, live: Sheet
) -> None:
    edit(live.sections.get(), body="The castle opens at ten and closes at six.")
    factories.publish(live, now=NOW)

    response = publisher.post(
        address("withdraw", live), {"live_number": "1", "reason": "wrong"}, follow=True
    )

    assert "Publication 2 went live while you looked at 1" in Page(response).text
    assert not PublicationEvent.objects.filter(kind="withdrawn").exists()


@pytest.mark.parametrize("method", ["get", "post"])
def test_there_is_nothing_to_withdraw_when_nothing_is_live(
    publisher: Client, open_gate: Sheet, method: str
) -> None:
    response = getattr(publisher, method)(
        address("withdraw", open_gate), {"reason": "x"}, follow=True
    )

    assert "Nothing is live, so there is nothing to withdraw." in Page(response).text


def test_withdrawing_is_possible_while_the_gate_is_closed(publisher: Client, live: Sheet) -> None:
    edit(Rule.objects.get(), text="Another rule.")

    confirm(publisher, address("withdraw", live), "Wrong times.")

    assert PublicationEvent.objects.filter(kind="withdrawn").count() == 1


# ---- roll back ----


@pytest.fixture
def twice(live: Sheet) -> Sheet:
    edit(live.sections.get(), body="The castle opens at ten and closes at six.")
    factories.publish(live, now=NOW)
    return live


def test_going_back_is_offered_for_each_publication(publisher: Client, twice: Sheet) -> None:
    links = gate(publisher, twice).links()

    for number in (1, 2):
        assert f"{address('rollback', twice)}?to={number}" in links


def test_going_back_publishes_the_old_text_as_a_new_number(publisher: Client, twice: Sheet) -> None:
    path = f"{address('rollback', twice)}?to=1"

    asked = Page(publisher.get(path))
    response = confirm(publisher, path, "a typo")

    publication = twice.publications.get(number=3)
    assert "The text and rules of publication 1 will be published again" in asked.text
    assert "Publication 3 is live, with the text of 1." in Page(response).text
    assert publication.restores == 1
    assert publication.content_hash == twice.publications.get(number=1).content_hash


def test_going_back_to_what_is_live_is_shown_closed(publisher: Client, twice: Sheet) -> None:
    page = Page(publisher.get(f"{address('rollback', twice)}?to=2"))

    assert "nothing-changed" in page.text
    pressed = [tag for tag in page.all("button") if "m-danger" in tag.get("class", "")]
    assert ["disabled" in tag for tag in pressed] == [True]


def test_going_back_through_a_closed_gate_is_refused(publisher: Client, twice: Sheet) -> None:
    edit(twice.suites.get(), repeats=2)

    response = confirm(publisher, f"{address('rollback', twice)}?to=1", "a typo")

    assert "asks each probe 2 times and not once since it passed" in Page(response).text
    assert twice.publications.count() == 2


def test_going_back_without_a_reason_is_refused_with_a_sentence(
    publisher: Client, twice: Sheet
) -> None:
    response = confirm(publisher, f"{address('rollback', twice)}?to=1", "")

    assert "Say in a few words why; the reason is kept with the event." in Page(response).text
    assert twice.publications.count() == 2


@pytest.mark.parametrize("to", ["", "0", "7", "-1", "abc", "²", "9" * 40])
def test_going_back_to_what_was_never_published_is_refused(
    publisher: Client, twice: Sheet, to: str
) -> None:
    response = publisher.get(address("rollback", twice), {"to": to}, follow=True)

    assert "Choose a publication from the list to go back to." in Page(response).text


# ---- who may not ----

MAY_NOT = (roles.VIEWER, roles.EDITOR, roles.RULE_KEEPER, roles.MAINTAINER)


@pytest.mark.parametrize("role", MAY_NOT)
def test_other_roles_may_not_publish_withdraw_or_go_back(twice: Sheet, role: str) -> None:
    client = enter(role)
    sent = {"reason": "go", "to": "1", "live_number": "2"}

    found = {
        name: client.post(address(name, twice), sent).status_code
        for name in ("publish", "withdraw", "rollback")
    }

    assert set(found.values()) == {403}, found
    assert twice.events.count() == 2


@pytest.mark.parametrize("role", MAY_NOT)
def test_other_roles_are_not_shown_the_pages_that_ask(twice: Sheet, role: str) -> None:
    client = enter(role)

    found = {
        name: client.get(address(name, twice)).status_code for name in ("withdraw", "rollback")
    }

    assert set(found.values()) == {403}, found


@pytest.mark.parametrize("role", [roles.VIEWER, roles.MAINTAINER])
def test_who_may_only_look_may_not_start_or_cancel_a_run(open_gate: Sheet, role: str) -> None:
    client = enter(role)
    run = runs.start(sheet_id=open_gate.pk, by=factories.person(), now=NOON)

    started = client.post(reverse("runs:start", args=[open_gate.pk]))
    cancelled = client.post(reverse("runs:cancel", args=[run.pk]))

    run.refresh_from_db()
    assert (started.status_code, cancelled.status_code) == (403, 403)
    assert not run.cancel_requested
    assert Run.objects.count() == 2


def test_one_permission_is_not_another(twice: Sheet) -> None:
    user = factories.person("half")
    user.user_permissions.add(*_permissions("view_sheet", "withdraw_sheet"))
    client = Client()
    client.force_login(User.objects.get(pk=user.pk))

    found = {
        name: client.post(address(name, twice), {"to": "1"}).status_code
        for name in ("publish", "withdraw", "rollback")
    }

    assert found == {"publish": 403, "withdraw": 200, "rollback": 403}


def _permissions(*names: str) -> Any:
    from django.contrib.auth.models import Permission

    return Permission.objects.filter(codename__in=names)


@pytest.mark.parametrize("name", ["start", "cancel"])
def test_runs_are_started_and_cancelled_by_post_alone(
    publisher: Client, open_gate: Sheet, name: str
) -> None:
    subject = {"start": open_gate.pk, "cancel": Run.objects.get().pk}[name]

    response = publisher.get(reverse(f"runs:{name}", args=[subject]))

    assert response.status_code == 405
    assert Run.objects.count() == 1


# ---- runs ----


def run_page(client: Client, run: Run) -> Page:
    response = client.get(reverse("runs:detail", args=[run.pk]))
    assert response.status_code == 200
    return Page(response)


def marks(client: Client, run: Run) -> list[str]:
    """The words that a run's page marks, with how."""
    content = client.get(reverse("runs:detail", args=[run.pk])).content.decode()
    return [piece.split("</mark>")[0] for piece in content.split("<mark ")[1:]]


def test_a_run_page_marks_the_words_that_decided(publisher: Client, open_gate: Sheet) -> None:
    run = Run.objects.get()

    found = marks(publisher, run)

    assert found == ['class="m-mark-pass">ten']
    assert "The castle opens at ten in the morning" in run_page(publisher, run).text


def test_a_run_page_marks_forbidden_words_as_failed(publisher: Client) -> None:
    sheet = factories.ready_sheet("castle")
    probe = sheet.suites.get().probes.get()
    edit(probe, checks=[{"type": "not-contains", "values": ["ten"], "match": "word"}])
    run = factories.passing_run(sheet)

    found = marks(publisher, run)

    assert found == ['class="m-mark-fail">ten']
    assert "A reply says “ten”." in run_page(publisher, run).text


def test_failed_attempts_stand_before_those_that_passed(publisher: Client) -> None:
    sheet = factories.ready_sheet("castle")
    factories.probe(
        sheet.suites.get(),
        "z-fails",
        checks=[{"type": "contains-any", "values": ["never said"], "match": "word"}],
    )
    run = factories.passing_run(sheet)

    text = run_page(publisher, run).text

    assert run.outcome == Run.Outcome.FAILED
    assert text.index("z-fails") < text.index("asks-hours")


def test_the_page_of_an_offline_run_says_what_it_does_not_test(
    publisher: Client, open_gate: Sheet
) -> None:
    page = run_page(publisher, Run.objects.get())

    assert OFFLINE in page.text


def test_a_run_page_names_the_probes_that_were_left_out(publisher: Client) -> None:
    sheet = factories.ready_sheet("castle")
    factories.probe(sheet.suites.get(), "asks-a-model", needs="model")
    run = factories.passing_run(sheet)

    page = run_page(publisher, run)

    assert "Left out, for they need a model (1): asks-a-model." in page.text


def test_the_page_of_a_run_that_is_not_there_is_not_found(publisher: Client) -> None:
    unknown = "00000000-0000-0000-0000-000000000000"

    assert publisher.get(reverse("runs:detail", args=[unknown])).status_code == 404
    assert publisher.post(reverse("runs:cancel", args=[unknown])).status_code == 404
    assert publisher.post(reverse("runs:start", args=[999_999])).status_code == 404


# ---- progress ----


def progress(client: Client, sheet: Sheet, query: str = "") -> HttpResponse:
    response = client.get(reverse("runs:progress", args=[sheet.pk]) + query)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    return response


def fragment(response: HttpResponse) -> dict[str, str]:
    return next(tag for tag in Page(response).all("div") if tag.get("id") == "runs")


def test_progress_asks_again_while_a_run_is_open(publisher: Client, open_gate: Sheet) -> None:
    runs.start(sheet_id=open_gate.pk, by=factories.person(), now=NOW)

    response = progress(publisher, open_gate)

    found = fragment(response)
    assert found["hx-get"] == reverse("runs:progress", args=[open_gate.pk]) + "?was=open"
    assert found["hx-trigger"] == "every 1s"
    assert "0 of 1 done" in Page(response).text
    assert "HX-Redirect" not in response


def test_progress_does_not_refresh_the_page_while_a_run_stays_open(
    publisher: Client, open_gate: Sheet
) -> None:
    runs.start(sheet_id=open_gate.pk, by=factories.person(), now=NOW)

    response = progress(publisher, open_gate, "?was=open")

    assert "HX-Redirect" not in response


def test_progress_is_still_once_no_run_is_open(publisher: Client, open_gate: Sheet) -> None:
    response = progress(publisher, open_gate)

    found = fragment(response)
    assert not {"hx-get", "hx-trigger"} & set(found)
    assert "HX-Redirect" not in response
    assert "passed" in Page(response).text


def test_progress_refreshes_the_page_when_the_run_has_just_closed(
    publisher: Client, open_gate: Sheet
) -> None:
    response = progress(publisher, open_gate, "?was=open")

    assert response["HX-Redirect"] == address("gate", open_gate)
    assert "hx-get" not in fragment(response)


def test_a_run_that_is_over_before_the_page_asks_for_it_renews_the_page_too(
    publisher: Client, open_gate: Sheet
) -> None:
    started = publisher.post(reverse("runs:start", args=[open_gate.pk]))
    factories.carry_out(Run.objects.get(state="running"), now=timezone.now())
    page = Page(publisher.get(started["Location"]))

    asked = next(tag["hx-get"] for tag in page.all("div") if "hx-get" in tag)

    response = publisher.get(asked)
    # Without the query that said so: the renewed page asks once and is still.
    assert response["HX-Redirect"] == address("gate", open_gate)


def test_progress_says_when_nothing_has_run_yet(publisher: Client) -> None:
    sheet = factories.ready_sheet("castle")

    response = progress(publisher, sheet)

    assert "The probes have not run on this sheet yet." in Page(response).text


def test_progress_counts_what_failed_and_what_broke(publisher: Client) -> None:
    sheet = factories.ready_sheet("castle")
    edit(
        sheet.suites.get().probes.get(),
        checks=[{"type": "contains-any", "values": ["never said"], "match": "word"}],
    )
    factories.passing_run(sheet)

    text = " ".join(Page(progress(publisher, sheet)).text.split())

    assert "failed, 1 of 1 asked, 1 failed, 0 without a verdict" in text


def test_progress_is_for_who_may_see_runs(open_gate: Sheet) -> None:
    client = Client()
    client.force_login(factories.person("newcomer"))

    response = client.get(reverse("runs:progress", args=[open_gate.pk]))

    assert response.status_code == 403


# ---- starting and cancelling ----


@pytest.fixture
def broker_out_of_reach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The real client of the broker, with an address at which nobody listens."""

    def reset() -> None:
        app.pool.force_close_all()
        app._pool = None
        app.amqp._producer_pool = None
        pools.reset()

    reset()
    nobody = f"redis+socket://{tmp_path / 'nobody.sock'}"
    monkeypatch.setattr(app.conf, "broker_url", nobody)
    yield
    reset()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("broker_out_of_reach")
def test_a_run_is_made_and_a_warning_shown_while_the_broker_is_out_of_reach() -> None:
    sheet = factories.ready_sheet("castle")
    client = enter(roles.EDITOR)

    response = client.post(reverse("runs:start", args=[sheet.pk]), follow=True)

    run = Run.objects.get()
    assert response.redirect_chain == [(address("gate", sheet) + "?run=started", 302)]
    assert (run.state, run.planned, run.started_by_name) == ("running", 1, "the-editor")
    assert (
        "The broker is out of reach; the run goes on by itself once it is back."
        in Page(response).text
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("broker_out_of_reach")
def test_cancelling_ends_a_run_that_no_worker_has_begun() -> None:
    sheet = factories.ready_sheet("castle")
    run = runs.start(sheet_id=sheet.pk, by=factories.person(), now=NOON)
    client = enter(roles.EDITOR)

    client.post(reverse("runs:cancel", args=[run.pk]))

    run.refresh_from_db()
    assert (run.state, run.outcome) == ("closed", "cancelled")
    assert Attempt.objects.get().state == Attempt.State.CANCELLED


def test_a_run_that_has_ended_is_not_cancelled(publisher: Client, open_gate: Sheet) -> None:
    run = Run.objects.get()

    response = publisher.post(reverse("runs:cancel", args=[run.pk]), follow=True)

    run.refresh_from_db()
    assert "The run has ended already" in Page(response).text
    assert run.outcome == Run.Outcome.PASSED


def test_a_sheet_without_a_probe_says_why_nothing_runs(publisher: Client) -> None:
    sheet = factories.sheet("castle")

    response = publisher.post(reverse("runs:start", args=[sheet.pk]), follow=True)

    assert "castle requires no suite of probes; require one first." in Page(response).text
    assert not Run.objects.exists()


def test_a_run_on_a_publication_freezes_its_text_and_not_the_draft(
    publisher: Client, twice: Sheet
) -> None:
    publisher.post(reverse("runs:start", args=[twice.pk]), {"publication": "1"})

    run = Run.objects.get(publication_number=1)
    assert run.content_hash == twice.publications.get(number=1).content_hash


@pytest.mark.parametrize("number", ["7", "0"])
def test_a_run_on_a_publication_that_is_not_there_is_refused(
    publisher: Client, twice: Sheet, number: str
) -> None:
    response = publisher.post(
        reverse("runs:start", args=[twice.pk]), {"publication": number}, follow=True
    )

    assert f"castle has no publication {number};" in Page(response).text
    assert Run.objects.count() == 1


# ---- the gate in one read ----


def test_a_closed_gate_says_why_since_when_by_whom_and_what_opens_it(
    publisher: Client, live: Sheet
) -> None:
    rule = Rule.objects.get()
    by = factories.person("kim")
    editing.change(rule, by=by, reason="be <b>kind</b>", now=timezone.now(), text="Be kind.")

    page = gate(publisher, live)

    said = " ".join(page.text.split())
    assert "1 reason keeps the draft from being published, since" in said
    assert "by changes of kim." in said
    assert "What opens the gate: Run the probes; the gate opens when they pass." in said
    assert "kim (“be <b>kind</b>”): rule sheet-only changed (text)" in said
    assert ("b", {}) not in page.tags


def test_what_changed_since_the_publication_is_listed_newest_first(
    publisher: Client, live: Sheet
) -> None:
    section = live.sections.get()
    for who in ("ben", "carol"):
        editing.change(
            section, by=factories.person(who), reason=f"for {who}", now=NOW, body=f"By {who}."
        )

    said = " ".join(gate(publisher, live).text.split())

    changed = said.partition("Changed since publication 1")[2]
    assert 0 < changed.index("carol: for carol") < changed.index("ben: for ben")
    assert "section hours changed (body)" in changed


def test_the_page_says_how_long_the_evidence_of_what_is_live_counts(
    publisher: Client, live: Sheet
) -> None:
    said = " ".join(gate(publisher, live).text.split())

    assert "Its probes passed on" in said
    assert "they run again by themselves" in said


def test_a_failure_of_what_is_live_is_an_alarm_on_top_of_the_page(
    publisher: Client, live: Sheet
) -> None:
    edit(live.suites.get().probes.get(), checks=[{"type": "contains-any", "values": ["noon"]}])
    factories.passing_run(live, now=timezone.now(), publication_number=1)

    page = gate(publisher, live)

    said = " ".join(page.text.split())
    assert "Alarm: The probes failed on what bots get now;" in said
    assert "Nothing is withdrawn by itself." in said
    assert said.index("Alarm:") < said.index("Gate: closed")


# ---- later ----


def schedule(client: Client, sheet: Sheet, page: Page, due_at: str) -> Page:
    form = publish_form(page, sheet).data
    sent = {**form, "reason": "spring", "due_at": due_at}
    response = client.post(address("schedule", sheet), sent, follow=True)
    assert response.redirect_chain == [(address("gate", sheet), 302)]
    return Page(response)


def soon() -> str:
    return f"{timezone.localtime() + timedelta(days=2):%Y-%m-%dT%H:%M}"


def test_a_draft_is_scheduled_on_the_page_and_waits_there(
    publisher: Client, open_gate: Sheet
) -> None:
    page = schedule(publisher, open_gate, gate(publisher, open_gate), soon())

    row = Schedule.objects.get()
    assert f"Scheduled for {explaining.when(row.due_at)}." in page.text
    assert "by the-publisher: spring" in page.text
    assert (row.state, row.zone) == ("waiting", "Europe/London")
    assert not open_gate.publications.exists()


def test_a_schedule_is_cancelled_on_the_page(publisher: Client, open_gate: Sheet) -> None:
    page = schedule(publisher, open_gate, gate(publisher, open_gate), soon())
    form = page.form_to(address("unschedule", open_gate))

    publisher.post(address("unschedule", open_gate), form.data)

    assert Schedule.objects.get().state == "cancelled"


@pytest.mark.parametrize(
    ("due_at", "said"),
    [
        ("", "Give a time such as"),
        ("soon", "Give a time such as"),
        ("2020-01-01T09:00", "has passed; choose a time to come"),
        ("2999-01-01T09:00", "By that time the gate will be closed"),
    ],
)
def test_a_time_that_will_not_do_is_refused_with_a_sentence(
    publisher: Client, open_gate: Sheet, due_at: str, said: str
) -> None:
    page = schedule(publisher, open_gate, gate(publisher, open_gate), due_at)

    assert said in page.text
    assert not Schedule.objects.exists()


@pytest.mark.parametrize("sent", [{}, {"schedule": "x"}, {"schedule": "999"}])
def test_cancelling_what_is_not_scheduled_is_answered_with_a_sentence(
    publisher: Client, open_gate: Sheet, sent: dict[str, str]
) -> None:
    response = publisher.post(address("unschedule", open_gate), sent, follow=True)

    assert "Nothing of that kind is scheduled; look again." in Page(response).text


def test_a_schedule_of_another_sheet_is_not_cancelled_from_here(
    publisher: Client, open_gate: Sheet
) -> None:
    other = factories.ready_sheet("abbey")
    factories.passing_run(other, now=NOW)
    row = factories.schedule(other, due_at=NOW + timedelta(days=2))

    publisher.post(address("unschedule", open_gate), {"schedule": row.pk})

    row.refresh_from_db()
    assert row.state == "waiting"


def test_a_draft_that_changed_since_is_told_before_the_time_comes(
    publisher: Client, open_gate: Sheet
) -> None:
    schedule(publisher, open_gate, gate(publisher, open_gate), soon())
    edit(open_gate.sections.get(), body="The castle opens at nine.")

    said = " ".join(gate(publisher, open_gate).text.split())

    assert "As things stand it will be suspended" in said


def test_what_was_suspended_or_missed_is_shown_until_the_next_publication(
    publisher: Client, open_gate: Sheet
) -> None:
    row = factories.schedule(open_gate, due_at=NOW + timedelta(days=1))
    late = row.due_at + timedelta(hours=1)
    waiting_late = Schedule.objects.filter(pk=row.pk)
    scheduling.fire(row.pk, now=late)
    missed = " ".join(gate(publisher, open_gate).text.split())
    factories.publish(open_gate, now=late + timedelta(hours=1))

    assert waiting_late.get().state == "missed"
    assert "Missed: No worker carried it out in time" in missed
    assert "Missed:" not in gate(publisher, open_gate).text


def test_a_time_that_passes_while_no_worker_is_there_is_shown_as_late(
    publisher: Client, open_gate: Sheet
) -> None:
    row = factories.schedule(open_gate, due_at=LATER)

    said = " ".join(gate(publisher, open_gate).text.split())

    assert row.state == "waiting"
    assert "The time has passed and nothing was published" in said


def test_four_eyes_keep_the_author_from_pressing_publish(open_gate: Sheet) -> None:
    author = factories.person("the-publisher", roles.PUBLISHER)
    edit(GatePolicy.objects.get(), four_eyes=True)
    section = open_gate.sections.get()
    editing.change(section, by=author, reason="mine", now=NOW, note="mine")

    own = gate(enter(roles.PUBLISHER), open_gate)
    others = gate(enter(SUPERUSER), open_gate)

    assert "you changed section hours yourself; ask somebody to publish" in own.text
    assert "disabled" in button(own, "Publish")
    assert "same-person" not in others.text


# ---- what it costs ----

#: Session and account are two of each page's.
GATE_QUERIES = 45
RUN_QUERIES = 10
PUBLISH_QUERIES = 30
#: PostgreSQL is asked once more, for the lock under which a picture is taken.
LOCK_QUERIES = {"sqlite": 0, "postgresql": 1}


def test_the_gate_page_asks_the_database_a_fixed_number_of_times(
    publisher: Client, live: Sheet, django_assert_num_queries: Any
) -> None:
    for number in range(3):
        factories.section(live, key=f"more-{number}", source=factories.source(f"more-{number}"))
        factories.rule(live, key=f"more-{number}")
    factories.passing_run(live, now=NOW)
    factories.publish(live, now=NOW)
    gate(publisher, live)

    with django_assert_num_queries(GATE_QUERIES):
        publisher.get(address("gate", live))


def test_publishing_asks_the_database_a_fixed_number_of_times(
    open_gate: Sheet, django_assert_num_queries: Any
) -> None:
    for number in range(3):
        source = factories.source(f"more-{number}")
        factories.section(open_gate, key=f"more-{number}", source=source)
    subject = publishing.look(open_gate, now=NOW).candidate.subject
    by = factories.person()

    with django_assert_num_queries(PUBLISH_QUERIES + LOCK_QUERIES[connection.vendor]):
        publication = publishing.publish(
            sheet_id=open_gate.pk,
            seen=subject,
            seen_live_number=None,
            by=by,
            reason="go",
            now=NOW,
        )

    assert canonical.sha256(bytes(publication.body)) == publication.body_hash


def test_a_run_page_asks_the_database_as_often_for_many_attempts_as_for_one(
    publisher: Client, open_gate: Sheet, django_assert_num_queries: Any
) -> None:
    suite = open_gate.suites.get()
    for number in range(4):
        factories.probe(suite, f"more-{number}")
    run = factories.passing_run(open_gate, now=NOW)
    run_page(publisher, run)

    with django_assert_num_queries(RUN_QUERIES):
        run_page(publisher, run)


def test_a_second_press_starts_no_second_run(publisher: Client, open_gate: Sheet) -> None:
    before = Run.objects.count()
    address = reverse("runs:start", args=[open_gate.pk])

    publisher.post(address)
    second = publisher.post(address, follow=True)

    assert Run.objects.count() == before + 1
    assert "A run of this sheet is under way" in Page(second).text


def test_a_number_that_is_none_starts_no_run(publisher: Client, open_gate: Sheet) -> None:
    before = Run.objects.count()

    response = publisher.post(
        reverse("runs:start", args=[open_gate.pk]), {"publication": "abc"}, follow=True
    )

    assert Run.objects.count() == before
    assert "Choose a publication by its number." in Page(response).text
