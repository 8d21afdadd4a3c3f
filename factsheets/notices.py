"""Mail to the people who can act, for announcements that ask for it.

An announcement is a row of the outbox, written with what it announces. Mail is
sent after that and until it went out: told twice is better than never.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage, get_connection
from django.urls import reverse

from factsheets import scheduling, sizes
from factsheets.models import Outbox, Sheet

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """What is written to whoever holds one of the permissions on the sheet. No text of a sheet
    and no reply of a bot: mail is read by others too."""

    subject: str
    text: str
    permissions: tuple[str, ...]


Wording = Callable[[Outbox], Notice]

PUBLISHERS = ("factsheets.publish_sheet", "factsheets.withdraw_sheet")


def _of_schedule(outcome: str) -> Wording:
    def wording(row: Outbox) -> Notice:
        return Notice(
            f"{row.sheet.title}: the scheduled publication was {outcome}",
            f"The publication of “{row.sheet.title}” scheduled for {row.payload['due_at']} was "
            f"{outcome}. {row.payload['because']}",
            PUBLISHERS,
        )

    return wording


def _of_sizes(row: Outbox) -> Notice:
    return Notice(
        f"{row.sheet.title}: the size of the sheet",
        f"“{row.sheet.title}” was counted, as every quarter. {row.payload['sentence']}",
        ("factsheets.change_gatepolicy",),
    )


#: What is mailed, by topic. The probes' app adds its own (`add`).
_wordings: dict[str, Wording] = {
    scheduling.SUSPENDED: _of_schedule("suspended"),
    scheduling.MISSED: _of_schedule("missed"),
    sizes.COUNTED: _of_sizes,
}


def add(topic: str, wording: Wording) -> None:
    """Mail announcements of this topic too."""
    _wordings[topic] = wording


def send(*, now: datetime) -> int:
    """Mail what has not been mailed yet; what the mail server does not take is tried again next
    time. Returns how many announcements went out."""
    sent = 0
    waiting = Outbox.objects.filter(topic__in=_wordings, mailed_at__isnull=True)
    for row in waiting.select_related("sheet").order_by("id"):
        notice = _wordings[row.topic](row)
        people = recipients(row.sheet, notice.permissions)
        if not people:
            log.warning("sheet %s: nobody with an address to tell of %s", row.sheet.slug, row.topic)
        try:
            get_connection().send_messages([_message(row, notice, to) for to in people])
        except (SMTPException, OSError) as error:
            log.warning("mail about %s is not taken: %s", row.topic, type(error).__name__)
            continue
        Outbox.objects.filter(pk=row.pk).update(mailed_at=now)
        sent += 1
    return sent


def recipients(sheet: Sheet, permissions: tuple[str, ...]) -> list[str]:
    """Addresses of the active people who hold one of the permissions on the sheet."""
    people = User.objects.filter(is_active=True).exclude(email="").order_by("id")
    return [
        person.email
        for person in people
        if any(person.has_perm(permission, sheet) for permission in permissions)
    ]


def _message(row: Outbox, notice: Notice, to: str) -> EmailMessage:
    address = settings.SITE_URL + reverse("admin:sheet_gate", args=[row.sheet_id])
    text = f"{notice.text}\n\nThe sheet's gate and what to do: {address}\n"
    # One each: nobody reads the others' addresses. A title may hold no line end in a subject.
    return EmailMessage(" ".join(notice.subject.split()), text, to=[to])
