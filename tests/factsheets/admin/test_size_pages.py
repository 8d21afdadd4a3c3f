"""The sizing page, the look at the split, and the switch between the two."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from factsheets import editing, roles, sizes
from factsheets.models import GatePolicy, Section, Sheet, SizeReport
from tests import factories
from tests.factsheets.admin import Page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

TRICKY = "<script>alert(1)</script> {{ 7 }} <b x-data='{}'>"


@pytest.fixture
def sheet() -> Sheet:
    of = factories.published_sheet()
    change(of.sections.get(), question="When does the castle open?")
    factories.section(
        of, "fees", heading="Fees", body="A ticket costs £2.", question="What does a ticket cost?"
    )
    return of


def change(row: Any, **values: object) -> None:
    editing.change(row, by=factories.person(), reason="edit", now=timezone.now(), **values)


def enter(*in_roles: str) -> Client:
    client = Client()
    client.force_login(
        factories.person("mine", *in_roles), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def at(name: str, sheet: Sheet) -> str:
    return reverse(f"admin:sheet_{name}", args=[sheet.pk])


def read(client: Client, name: str, sheet: Sheet, **query: str) -> str:
    response = client.get(at(name, sheet), query)
    assert response.status_code == 200
    return " ".join(Page(response).text.split())


# ---- size ----


def test_the_page_says_the_advice_both_ratios_and_how_it_was_counted(sheet: Sheet) -> None:
    text = read(enter(roles.VIEWER), "size", sheet)

    assert "Keep it inline: it takes" in text
    assert "counted offline by a rebuilt tokeniser" in text
    assert "not known: 0 questions" in text
    assert "nobody has said" in text


def test_the_bar_is_to_scale(sheet: Sheet) -> None:
    page = Page(enter(roles.VIEWER).get(at("size", sheet)))
    parts = [tag for tag in page.all("rect") if "m-part" in (tag.get("class") or "")]
    seen = sizes.look(sheet, today=timezone.localdate())

    widths = [float(part["width"] or 0) for part in parts]
    window = seen.candidate.snapshot.bot.context_window
    assert sum(widths) == pytest.approx(1000, abs=0.01)
    assert widths[1] == pytest.approx(seen.facts.sheet.tokens * 1000 / window, abs=0.001)
    starts = [float(part["x"] or 0) for part in parts]
    assert starts == sorted(starts)


def test_a_price_turns_tokens_into_money(sheet: Sheet) -> None:
    before = read(enter(roles.VIEWER), "size", sheet)
    change(sheet.bot, input_price=Decimal("3"), passes=2)

    after = read(enter(roles.VIEWER), "size", sheet)

    plain = sizes.look(
        Sheet.objects.select_related("bot").get(pk=sheet.pk), today=timezone.localdate()
    ).inline.plain
    assert "Give the bot a price of input" in before
    assert f"{3 * plain / 1000:.2f}" in after
    assert "2 passes for an answer" in after


def test_a_count_is_kept_and_listed(sheet: Sheet) -> None:
    client = enter(roles.EDITOR)

    answer = client.post(at("size", sheet), follow=True)

    report = SizeReport.objects.get()
    assert report.by is not None
    assert "Counted, and kept with today's date." in Page(answer).text
    assert f"{report.figures['sheet_tokens']} tokens (offline)" in Page(answer).text


def test_a_viewer_reads_and_does_not_count(sheet: Sheet) -> None:
    client = enter(roles.VIEWER)

    assert "Count and keep" not in read(client, "size", sheet)
    assert client.post(at("size", sheet)).status_code == 403
    assert SizeReport.objects.count() == 0


def test_rules_that_read_like_reference_are_named(sheet: Sheet) -> None:
    factories.rule(sheet, "prices", text="Adults £12, children £6, families £30, groups £5.")

    assert "“prices” holds 4 figures" in read(enter(roles.VIEWER), "size", sheet)


# ---- split ----


def test_the_look_at_the_split_shows_payload_chunks_and_a_whole_prompt(sheet: Sheet) -> None:
    text = read(enter(roles.VIEWER), "split", sheet, question="What does a ticket cost?")

    assert "measured on 2 of the questions that the sections name" in text
    assert "2 chunks" in text
    assert "- Opening hours - Fees" in text
    assert "[1] Fees A ticket costs £2. Question: What does a ticket cost?" in text


def test_what_would_hang_in_the_air_is_shown_with_a_link(sheet: Sheet) -> None:
    change(Section.objects.get(key="fees"), body="It is cheap.")

    page = Page(enter(roles.VIEWER).get(at("split", sheet)))

    assert "pronoun-start" in page.text
    assert any((tag.get("href") or "").endswith("#card-fees") for tag in page.all("a"))


def test_what_people_wrote_stands_there_as_text(sheet: Sheet) -> None:
    change(Section.objects.get(key="fees"), body=TRICKY, heading=TRICKY[:190], question=TRICKY)

    for name in ("size", "split"):
        page = Page(enter(roles.VIEWER).get(at(name, sheet), {"question": TRICKY}))
        assert ("b", {"x-data": "{}"}) not in page.tags
        assert "<script>alert(1)</script> {{ 7 }}" in page.text


def test_the_delivery_is_chosen_with_its_reason_and_nothing_is_published(sheet: Sheet) -> None:
    keeper = enter(roles.RULE_KEEPER)

    answer = keeper.post(
        at("deliver", sheet), {"delivery": "split", "why": "It has grown."}, follow=True
    )

    fresh = Sheet.objects.get(pk=sheet.pk)
    assert fresh.delivery == "split"
    assert fresh.history.latest().change_set.reason == "It has grown."
    assert sheet.publications.count() == 1
    assert "From the next publication on it is delivered split." in Page(answer).text
    assert "Deliver it inline again" in read(keeper, "split", sheet)


def test_who_keeps_no_rules_does_not_choose_it(sheet: Sheet) -> None:
    for role in (roles.VIEWER, roles.EDITOR, roles.PUBLISHER):
        client = enter(role)
        assert "Deliver it split" not in read(client, "split", sheet)
        assert client.post(at("deliver", sheet), {"delivery": "split"}).status_code == 403
    assert Sheet.objects.get(pk=sheet.pk).delivery == "inline"


@pytest.mark.parametrize("delivery", ["", "both", "INLINE", TRICKY])
def test_another_delivery_is_refused_with_a_sentence(sheet: Sheet, delivery: str) -> None:
    answer = enter(roles.RULE_KEEPER).post(
        at("deliver", sheet), {"delivery": delivery}, follow=True
    )

    assert "Choose inline or split." in Page(answer).text
    assert Sheet.objects.get(pk=sheet.pk).delivery == "inline"


def test_both_pages_cost_as_many_questions_however_long_the_sheet(
    sheet: Sheet, django_assert_max_num_queries: Any
) -> None:
    client = enter(roles.VIEWER)
    for name in ("size", "split"):
        read(client, name, sheet)
    for number in range(30):
        factories.section(sheet, f"more-{number}", heading=f"More {number}")
    for name in ("size", "split"):
        with django_assert_max_num_queries(33):
            read(client, name, sheet)


def test_a_policy_s_bounds_must_be_in_order(sheet: Sheet) -> None:
    maintainer = enter(roles.MAINTAINER)
    policy = GatePolicy.objects.get()
    address = reverse("admin:factsheets_gatepolicy_change", args=[policy.pk])
    form = next(f for f in Page(maintainer.get(address)).forms if "why" in f.data)

    answer = maintainer.post(
        address, {**form.data, "inline_below_percent": "20", "split_from_percent": "15"}
    )

    assert "the first not above this one" in Page(answer).text
    assert GatePolicy.objects.get().inline_below_percent == 10


def test_the_report_of_a_quarter_ago_is_still_listed(sheet: Sheet) -> None:
    sizes.record(sheet, now=timezone.now() - timedelta(days=91))
    sizes.record(sheet, now=timezone.now())

    assert read(enter(roles.VIEWER), "size", sheet).count("by itself") >= 2
