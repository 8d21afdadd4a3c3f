"""What bots get, and what the gate rests on, is written by its writers alone."""

from __future__ import annotations

from collections.abc import Callable

from django.db import models
from django.db.models.signals import pre_save

from factsheets.errors import Refused


class PastTheGate(Refused):
    """A write of what bots get, or of what the gate rests on, by something that is not its writer."""

    code = "past-the-gate"


def refuse_fixtures(refuse: Callable[[str], object], *guarded: type[models.Model]) -> None:
    """Have rows of these models refuse to be loaded: fixtures are saved past a row's own `save`."""

    def refuse_raw(sender: type[models.Model], raw: bool, **_: object) -> None:
        if raw and issubclass(sender, guarded):
            refuse("Loading a fixture")

    pre_save.connect(refuse_raw, weak=False)
