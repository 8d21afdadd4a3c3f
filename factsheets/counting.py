"""Tokens of a text: counted by the model service once, else offline, else by length.

What the service counted is kept by text and model. Asking costs nothing but a
place in its queue; no page waits for it, so it is asked where somebody presses
a button or a task runs.
"""

from __future__ import annotations

import logging
import re
from datetime import datetime
from functools import lru_cache

import ctok
from django.conf import settings

from factsheets import canonical, sizing
from factsheets.bot.providers import anthropic
from factsheets.bot.providers.base import ProviderError
from factsheets.models import TokenCount
from factsheets.sizing import Count
from factsheets.snapshot import BotSnapshot

log = logging.getLogger(__name__)

#: The newest generation, which makes most tokens of a text: what a bot without a model is held to.
NEWEST = "4.8"
_MODEL = re.compile(
    r"claude-(?:(?P<old>\d)|[a-z]+-(?P<major>\d{1,2})(?:-(?P<minor>\d{1,2}))?)(?!\d)"
)


def known(text: str, bot: BotSnapshot) -> Count:
    """The count that there is: the service's own if it was ever asked, else an offline one; an
    estimate for a model whose name says nothing of its tokeniser."""
    row = TokenCount.objects.filter(text_hash=_hash(text), model=bot.model).first()
    if row is not None:
        return Count(row.tokens, "exact")
    version = generation(bot.model)
    return Count(_offline(text, version), "offline") if version else sizing.estimate(text)


def ask(text: str, bot: BotSnapshot, *, now: datetime) -> Count:
    """The service's count, asked for now if it never was; offline where it does not answer."""
    found = known(text, bot)
    if found.method == "exact" or not can_ask(bot) or not text:
        return found
    try:
        tokens = anthropic.count(bot.model, text)
    except ProviderError as error:
        log.warning("the model service did not count: %s", error.kind)
        return found
    TokenCount.objects.get_or_create(
        text_hash=_hash(text),
        model=bot.model,
        defaults={"tokens": tokens, "counted_at": now},
    )
    return Count(tokens, "exact")


def can_ask(bot: BotSnapshot) -> bool:
    """Whether there is a service to ask about this bot's model."""
    return bot.provider == "anthropic" and bool(settings.ANTHROPIC_API_KEY.strip())


def generation(model: str) -> str | None:
    """The generation of a model's tokeniser, by its name; None for a name that nobody knows."""
    if not model:
        return NEWEST
    match = _MODEL.match(model)
    if match is None:
        return None
    if match["old"]:
        return "3.0"
    # A longer number after the major one is a date.
    major, minor = int(match["major"]), int(match["minor"] or 0)
    return f"{major}.{minor}" if major < 5 else NEWEST


@lru_cache(maxsize=256)
def _offline(text: str, version: str) -> int:
    # Without the frame of the message around it.
    tokens: int = ctok.token_count(text, version) - ctok.token_count("", version)
    return tokens


def _hash(text: str) -> str:
    return canonical.sha256(text.encode())
