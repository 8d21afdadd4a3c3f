"""The pinned form of the prompt: the rules, then the sheet, as two system blocks.

In split delivery the second block lists the titles alone, and what was found
for a question stands before it in the visitor's turn, as numbered sources.

The same builder serves probes, the ask page and the API, so what the probes
tested is what a bot runs. Keys and questions of sections never reach the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from factsheets.bot.chunking import Chunk
from factsheets.snapshot import BotSection, BotSheet

FORMAT = "prompt/1"

#: Between the two blocks where they stand in one text.
SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Both system blocks. The cache breakpoint of the model API stands on the second."""

    rules: str
    sheet: str


def build(rules_text: str, sheet: BotSheet, *, delivery: str = "inline") -> Prompt:
    """The prompt for a sheet. In split delivery the second block lists the section titles alone."""
    if delivery == "split":
        block = "\n".join([f"# {sheet.title}", "", *(f"- {s.heading}" for s in sheet.sections)])
    else:
        block = "\n\n".join(
            [f"# {sheet.title}", *(f"## {s.heading}\n\n{s.text}" for s in sheet.sections)]
        )
    return Prompt(rules=rules_text, sheet=block)


def user_turn(question: str, found: Sequence[Chunk]) -> str:
    """What the model reads for a question in split delivery: the sources found, then the question."""
    sources = [
        f"[{number}] {_headed(chunk)}\n\n{chunk.text}" for number, chunk in enumerate(found, 1)
    ]
    said = "From the sheet:" if sources else "Nothing in the sheet was found for this question."
    return "\n\n".join([said, *sources, f"Question: {question}"])


def _headed(chunk: Chunk) -> str:
    """The heading; where several sheets are searched, after the title of its own."""
    if not chunk.sheet:
        return chunk.heading
    return f"{chunk.title}: {chunk.heading}" if chunk.heading else chunk.title


def as_text(prompt: Prompt) -> str:
    """Both blocks as one text, a blank line between them; an absent block leaves no blank line."""
    return SEPARATOR.join(block for block in (prompt.rules, prompt.sheet) if block)


def as_system(prompt: Prompt) -> list[dict[str, object]]:
    """The blocks as the model API takes them; the API refuses an empty text block."""
    blocks: list[dict[str, object]] = [
        {"type": "text", "text": block} for block in (prompt.rules, prompt.sheet) if block
    ]
    if blocks:
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
    return blocks


def form_digest() -> str:
    """A digest of the form itself, so that a change of the builder changes every bot hash.

    Computed from what the builder makes of a fixed sheet: nobody has to
    remember to raise a version number.
    """
    sample = BotSheet(
        language="en",
        title="Title",
        sections=(
            BotSection("first", "First heading", "A question?", "One.\n\nTwo."),
            BotSection("second", "Second heading", "", "Three."),
        ),
    )
    made = [as_system(build("A rule.", sample, delivery=d)) for d in ("inline", "split")]
    return hashlib.sha256(json.dumps([FORMAT, made], sort_keys=True).encode()).hexdigest()


def turn_digest() -> str:
    """The same for the visitor's turn in split delivery."""
    chunk = Chunk("first", 0, "First heading", "A question?", "Title", "One.\n\nTwo.")
    made = [user_turn("What?", found) for found in ((), (chunk,), (chunk, chunk))]
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()
