"""The demo sheets with their probes and questions, as the bot sees them."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib import resources
from typing import Any

import yaml

from factsheets.bot.prompt import Prompt
from factsheets.bot.providers.base import Message, Provider, Reply, Request
from factsheets.snapshot import BotSection, BotSheet, BotSnapshot

NAMES = ("castle", "cafe")

BOT = BotSnapshot(
    slug="quoting",
    provider="offline",
    model="",
    effort="",
    thinking="",
    max_tokens=0,
    endpoint="",
    context_window=0,
    reserve_history=0,
    reserve_question=0,
    reserve_retrieval=0,
    reserve_output=0,
)

_FOLDS = str.maketrans(
    {**dict.fromkeys("’‘", "'"), **dict.fromkeys("“”", '"'), **dict.fromkeys("‐‑‒–—", "-")}
)


@cache
def load(name: str, file: str) -> dict[str, Any]:
    folder = resources.files("factsheets") / "data" / "demo" / name
    loaded: dict[str, Any] = yaml.safe_load((folder / f"{file}.yaml").read_text(encoding="utf-8"))
    return loaded


@cache
def sheet(name: str) -> BotSheet:
    file = load(name, "sheet")
    return BotSheet(
        language=file["sheet"]["language"],
        title=file["sheet"]["title"],
        sections=tuple(
            BotSection(s["key"], s["heading"], s["question"], s["body"]) for s in file["sections"]
        ),
    )


def questions(name: str) -> list[dict[str, Any]]:
    return list(load(name, "questions")["questions"])


def offline_probes(name: str) -> list[dict[str, Any]]:
    """The probes that quoting the sheet can meet."""
    return [probe for probe in load(name, "probes")["probes"] if "needs" not in probe]


def converse(provider: Provider, sheet: BotSheet, *turns: str) -> list[Reply]:
    messages: list[Message] = []
    replies: list[Reply] = []
    for turn in turns:
        messages.append(Message("user", turn))
        replies.append(
            provider.reply(Request(BOT, Prompt("", ""), sheet, tuple(messages), question=turn))
        )
        messages.append(Message("assistant", replies[-1].text))
    return replies


def passes(probe: dict[str, Any], replies: list[Reply]) -> bool:
    """The last reply has one of what it must contain, and no reply anything it must not."""
    return any(_has(replies[-1].text, needle) for needle in probe["must_contain_any"]) and not any(
        _has(reply.text, needle) for reply in replies for needle in probe["must_not_contain"]
    )


def _has(text: str, needle: str) -> bool:
    if needle.startswith("re:"):
        return re.search(needle[3:], text, re.IGNORECASE | re.MULTILINE) is not None
    return _fold(needle) in _fold(text)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().translate(_FOLDS)
