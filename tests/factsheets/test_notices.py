"""Who is told of what by mail, and what happens when the mail server is away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from factsheets import editing, notices, roles, scheduling
from factsheets.models import Member, Outbox, Sheet
from tests import factories
from tests.factories import LATER, NOON
from tests.mail_server import MailServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def post(settings: Settings) -> Iterator[MailServer]:
    """A mail server that the product sends to."""
    with MailServer() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.server_address[1]
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        yield server


def _with_address(name: str, *in_roles: str) -> User:
    user = factories.person(name, *in_roles)
    User.objects.filter(pk=user.pk).update(email=f"{name}@example.org")
    user.refresh_from_db()
    return user


@pytest.fixture
def missed() -> Sheet:
    """A sheet whose scheduled publication was missed."""
    sheet = factories.ready_sheet()
    factories.passing_run(sheet)
    row = factories.schedule(sheet)
    scheduling.fire(row.pk, now=LATER + timedelta(hours=1))
    return sheet


def test_those_who_can_act_are_told_each_by_a_mail_of_their_own(
    missed: Sheet, post: MailServer, settings: Settings
) -> None:
    settings.SITE_URL = "https://sheets.example.org"
    _with_address("paula", roles.PUBLISHER)
    _with_address("peter", roles.PUBLISHER)
    _with_address("eve", roles.EDITOR)

    assert notices.send(now=LATER) == 1

    assert [message["To"] for message in post.messages] == [
        "paula@example.org",
        "peter@example.org",
    ]
    text = post.messages[0].get_content()
    assert post.messages[0]["Subject"] == "The castle: the scheduled publication was missed"
    assert "not made up for" in text
    assert f"https://sheets.example.org/admin/factsheets/sheet/{missed.pk}/gate/" in text


def test_a_member_of_the_sheet_is_told_and_one_of_another_is_not(
    missed: Sheet, post: MailServer
) -> None:
    other = factories.sheet("abbey")
    mine, stranger = _with_address("mia"), _with_address("otto")
    factories.save(Member(sheet=missed, user=mine, role=Member.Role.PUBLISHER))
    factories.save(Member(sheet=other, user=stranger, role=Member.Role.PUBLISHER))

    notices.send(now=LATER)

    assert [message["To"] for message in post.messages] == ["mia@example.org"]


def test_an_announcement_is_mailed_once(missed: Sheet, post: MailServer) -> None:
    _with_address("paula", roles.PUBLISHER)

    assert (notices.send(now=LATER), notices.send(now=LATER)) == (1, 0)

    assert len(post.messages) == 1
    assert Outbox.objects.get(topic=scheduling.MISSED).mailed_at == LATER


@pytest.mark.usefixtures("quiet")
def test_what_the_mail_server_does_not_take_is_sent_once_it_is_back(
    missed: Sheet, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    _with_address("paula", roles.PUBLISHER)

    assert notices.send(now=LATER) == 0
    with MailServer() as server:
        settings.EMAIL_PORT = server.server_address[1]
        assert notices.send(now=LATER) == 1

    assert len(server.messages) == 1


def test_people_who_are_gone_or_have_no_address_are_not_told(
    missed: Sheet, post: MailServer
) -> None:
    gone = _with_address("gone", roles.PUBLISHER)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    factories.person("paula", roles.PUBLISHER)

    assert notices.send(now=LATER) == 1
    assert post.messages == []


def test_publications_and_withdrawals_are_not_mailed(post: MailServer) -> None:
    factories.published_sheet()
    _with_address("paula", roles.PUBLISHER)

    assert notices.send(now=LATER) == 0


def test_a_title_cannot_add_lines_to_the_head_of_a_mail(missed: Sheet, post: MailServer) -> None:
    _with_address("paula", roles.PUBLISHER)
    Sheet.objects.get(pk=missed.pk)
    editing.change(
        missed,
        by=factories.person(),
        reason="",
        now=NOON,
        title="Castle\r\nBcc: everybody@example.org",
    )

    notices.send(now=LATER)

    assert post.messages[0]["Bcc"] is None
