"""What all commands share: one sentence on stderr and an exit code, never a traceback."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandParser, DjangoHelpFormatter
from django.db import DatabaseError, IntegrityError

from factsheets import editing
from factsheets.errors import Refused
from factsheets.models import Sheet

ERROR = 2


class UsageRefused(Refused):
    """The command was called with something that it cannot work with."""

    code = "usage"


class _HelpFormatter(argparse.RawDescriptionHelpFormatter, DjangoHelpFormatter):
    """Leaves the example in one line, so that it can be copied."""


class SheetCommand(BaseCommand):
    """A command that answers with an exit code. Subclasses write `act`."""

    #: One call that works, shown by --help.
    example: ClassVar[str] = ""

    #: Exit code for a refusal by the product itself; errors of the call are always 2.
    refused_exit: ClassVar[int] = ERROR

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(
            prog_name,
            subcommand,
            formatter_class=_HelpFormatter,
            epilog=f"Example:\n  {self.example}",
            **kwargs,
        )

    def act(self, **options: Any) -> int:
        """Do the work and return the exit code."""
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        if "LOG_LEVEL" not in os.environ:
            # A person reads the command's own words; what they need not, the log would repeat.
            logging.getLogger().setLevel(logging.WARNING)
        try:
            code = self.act(**options)
        except UsageRefused as refused:
            code = self.complain(refused.sentence, ERROR)
        except Refused as refused:
            code = self.complain(refused.sentence, self.refused_exit)
        except IntegrityError:
            code = self.complain(
                "Somebody else changed the same rows meanwhile; run the command again.", ERROR
            )
        except DatabaseError as error:
            code = self.complain(
                f"The database cannot be used ({str(error).splitlines()[0]}); "
                "check DATABASE_URL and run `python manage.py migrate`.",
                ERROR,
            )
        if code:
            sys.exit(code)

    def complain(self, sentence: str, code: int) -> int:
        self.stderr.write(f"error: {sentence}")
        return code

    def say(self, sentence: str) -> None:
        self.stdout.write(sentence)


def sheet_named(slug: str) -> Sheet:
    """The sheet of that name. Raises UsageRefused with the names there are."""
    sheet = (
        Sheet.objects.present()
        .select_related("bot", "state__live_publication")
        .filter(slug=slug)
        .first()
    )
    if sheet is None:
        names = ", ".join(Sheet.objects.present().order_by("slug").values_list("slug", flat=True))
        raise UsageRefused(f"There is no sheet {slug!r}; there are: {names or 'none yet'}.")
    return sheet


def person_named(username: str, *permissions: str, on: Sheet | None = None) -> User:
    """An active user with every permission that the admin would ask for, on a sheet or on all."""
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise UsageRefused(f"There is no active user {username!r}; name one with --by.")
    missing = [name for name in permissions if not user.has_perm(name, on)]
    if missing:
        raise UsageRefused(
            f"{username} may not do this: the permission {missing[0]} is missing; "
            "ask an administrator for the role, or name somebody else with --by."
        )
    return user


def import_account() -> User:
    """The inactive account that stands for changes made by files and commands."""
    return editing.service_account(editing.IMPORT_ACCOUNT)
