"""A log-in that fails too often is closed for a while, and what is kept of it is forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from factsheets import log_ins
from factsheets.tasks import forget_failed_log_ins

pytestmark = pytest.mark.django_db

PASSWORD = "correct-horse-battery-staple"


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("anna", password=PASSWORD, is_staff=True)


def log_in(password: str, *, name: str = "anna", **client: str) -> HttpResponse:
    address = reverse("admin:login")
    return Client(**client).post(address, {"username": name, "password": password})  # type: ignore[return-value]


def fail(times: int, **how: str) -> list[int]:
    return [log_in("wrong", **how).status_code for _ in range(times)]


def test_the_fifth_failure_closes_the_log_in_and_says_when_to_try_again(anna: User) -> None:
    assert fail(4) == [200] * 4

    closed = log_in("wrong")

    assert closed.status_code == 429
    assert closed["Retry-After"] == "900"
    assert "Try again in 15 minutes" in closed.content.decode()


def test_the_right_password_does_not_open_a_closed_log_in(anna: User) -> None:
    fail(5)

    assert log_in(PASSWORD).status_code == 429


def test_the_page_says_how_long_it_still_is(anna: User) -> None:
    fail(5)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=14, seconds=30))

    closed = log_in(PASSWORD)

    assert "Try again in 1 minute, or" in closed.content.decode()
    assert 0 < int(closed["Retry-After"]) <= 30


def test_with_failures_from_two_browsers_it_opens_when_enough_are_old_enough(anna: User) -> None:
    now = timezone.now()
    fail(4, HTTP_USER_AGENT="one")
    fail(1, HTTP_USER_AGENT="two")
    AccessAttempt.objects.filter(user_agent="one").update(attempt_time=now - timedelta(minutes=10))

    opens_at = log_ins.opens_at(name="anna", address="127.0.0.1", now=now)

    assert opens_at == now + timedelta(minutes=5)


def test_it_opens_by_itself_after_a_quarter_of_an_hour(anna: User) -> None:
    fail(5)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))

    assert log_in(PASSWORD).status_code == 302


def test_a_log_in_in_between_begins_the_count_anew(anna: User) -> None:
    fail(4)
    log_in(PASSWORD)

    assert fail(4) == [200] * 4


def test_failures_from_elsewhere_close_nobody_out_here(anna: User) -> None:
    fail(5, REMOTE_ADDR="192.0.2.1")

    assert log_in(PASSWORD, REMOTE_ADDR="192.0.2.2").status_code == 302


def test_failures_of_one_name_close_no_other(anna: User) -> None:
    fail(5, name="ben")

    assert log_in(PASSWORD).status_code == 302


def test_a_client_cannot_choose_its_own_address(anna: User) -> None:
    forged = [log_in("wrong", HTTP_X_FORWARDED_FOR=f"192.0.2.{n}").status_code for n in range(5)]

    assert forged == [200, 200, 200, 200, 429]


@override_settings(BEHIND_PROXY=True)
def test_behind_a_proxy_the_address_is_the_one_that_the_proxy_appended(anna: User) -> None:
    said = [f"192.0.2.{n}, 198.51.100.7" for n in range(5)]

    forged = [log_in("wrong", HTTP_X_FORWARDED_FOR=chain).status_code for chain in said]

    assert forged == [200, 200, 200, 200, 429]
    assert log_in(PASSWORD, HTTP_X_FORWARDED_FOR="198.51.100.8").status_code == 302


@override_settings(BEHIND_PROXY=True)
@pytest.mark.parametrize("said", ["", "unknown", "anna's machine", "192.0.2.1:5000"])
def test_an_address_that_is_none_counts_as_the_proxys_own(anna: User, said: str) -> None:
    assert [log_in("wrong", HTTP_X_FORWARDED_FOR=said).status_code for _ in range(5)][-1] == 429

    assert {a.ip_address for a in AccessAttempt.objects.all()} == {"127.0.0.1"}


def test_a_log_in_without_any_address_is_counted_all_the_same(anna: User) -> None:
    assert fail(5, REMOTE_ADDR="")[-1] == 429


def test_failures_are_forgotten_after_a_day(anna: User) -> None:
    fail(2)
    fail(1, name="ben")
    now = timezone.now()
    AccessAttempt.objects.filter(username="ben").update(attempt_time=now - timedelta(hours=25))

    assert log_ins.forget(now=now) == 1
    assert [a.username for a in AccessAttempt.objects.all()] == ["anna"]


def test_the_task_forgets_too(anna: User) -> None:
    fail(1)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(days=2))

    forget_failed_log_ins()

    assert not AccessAttempt.objects.exists()
