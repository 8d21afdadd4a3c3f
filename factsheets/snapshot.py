"""Frozen pictures of a sheet: the whole record, and the part a bot may see.

`BotSheet` is an allow-list. No field of its type can hold a source, a note, a
check, a person, a date or a slug, so none of them can leak through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class BotSection:
    """One section as the bot may see it."""

    key: str
    heading: str
    question: str
    text: str


@dataclass(frozen=True, slots=True)
class BotSheet:
    """What leaves the house: language, title and included sections, in order."""

    language: str
    title: str
    sections: tuple[BotSection, ...]


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """One work relied on."""

    key: str
    kind: str
    title: str
    author: str
    publisher: str
    issued: str
    url: str
    identifier: str
    licence: str
    access: str
    note: str


@dataclass(frozen=True, slots=True)
class CitationSnapshot:
    """One section's use of a source: where in it, and what it carries."""

    source: SourceSnapshot
    locator: str
    claims: str
    quote: str
    role: str
    required: bool


@dataclass(frozen=True, slots=True)
class CheckSnapshot:
    """The newest check of a section that no later one supersedes."""

    text_hash: str
    checked_on: date
    checked_by: str
    outcome: str
    method: str
    note: str


@dataclass(frozen=True, slots=True)
class SectionSnapshot:
    """One section with everything that stands beside its text."""

    key: str
    heading: str
    question: str
    body: str
    included: bool
    note: str
    citations: tuple[CitationSnapshot, ...]
    check: CheckSnapshot | None


@dataclass(frozen=True, slots=True)
class RuleSnapshot:
    """One rule, and the set it comes from."""

    ruleset: str
    key: str
    kind: str
    text: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class BotSnapshot:
    """The bot that answers from the sheet. Reserves and window are in tokens."""

    slug: str
    provider: str
    model: str
    effort: str
    thinking: str
    max_tokens: int
    endpoint: str
    context_window: int
    reserve_history: int
    reserve_question: int
    reserve_retrieval: int
    reserve_output: int


@dataclass(frozen=True, slots=True)
class SheetSnapshot:
    """The whole record of a sheet at one moment, in reading order."""

    slug: str
    title: str
    description: str
    language: str
    visibility: str
    delivery: str
    probe_scope: str
    bot: BotSnapshot
    sections: tuple[SectionSnapshot, ...]
    rules: tuple[RuleSnapshot, ...]


def bot_view(sheet: SheetSnapshot) -> BotSheet:
    """The part of the record that bots may see; sections left out stay out."""
    return BotSheet(
        language=sheet.language,
        title=sheet.title,
        sections=tuple(
            BotSection(section.key, section.heading, section.question, section.body)
            for section in sheet.sections
            if section.included
        ),
    )
