"""Pictures to bytes: what is hashed, stored, served or sent is what stands here.

Canonical JSON is UTF-8 with sorted keys, no insignificant white space and no
ASCII escapes. A change of any form is a new number; old publications still
verify under theirs (vectors with their hashes: `tests/golden/`).
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from factsheets import rulesets
from factsheets.bot import prompt, retrieval
from factsheets.bot.providers import offline
from factsheets.errors import Refused
from factsheets.snapshot import (
    BotSection,
    BotSheet,
    BotSnapshot,
    CheckSnapshot,
    CitationSnapshot,
    RuleSnapshot,
    SectionSnapshot,
    SheetSnapshot,
    SourceSnapshot,
    bot_view,
)

CONTENT_FORMAT = "content/1"
BODY_FORMAT = "body/1"
RECORD_FORMAT = "record/1"

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLANK_LINES = re.compile(r"\n{3,}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class TextRefused(Refused):
    """A text that has no UTF-8 form."""

    code = "text-refused"


def normalise(text: str) -> str:
    """The one form of a text that is stored, on every way in.

    NFC; CRLF and CR become LF; no trailing blanks; at most one blank line in a
    row and none at either end; no control characters but LF and TAB. Raises
    TextRefused for a lone surrogate, which no UTF-8 can carry.
    """
    if _SURROGATE.search(text):
        raise TextRefused(
            "The text holds half of a character (a lone surrogate); paste it again from its source."
        )
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = unicodedata.normalize("NFC", text).split("\n")
    return _BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in lines)).strip("\n")


def normalise_line(text: str) -> str:
    """The same for a text of one line: white space of any kind becomes single blanks."""
    return " ".join(normalise(text).split())


def canonical_json(value: object) -> bytes:
    """One byte form for a JSON value. Numbers that JSON cannot carry are an error."""
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    ).encode()


def sha256(data: bytes) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def instant(moment: datetime) -> str:
    """An aware moment as RFC 3339 in UTC, to the microsecond."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# ---- content: what a bot may see ----


def _content(sheet: BotSheet) -> dict[str, object]:
    return {
        "language": sheet.language,
        "title": sheet.title,
        "sections": [
            {"key": s.key, "heading": s.heading, "question": s.question, "text": s.text}
            for s in sheet.sections
        ],
    }


def content_bytes(sheet: BotSheet) -> bytes:
    """`content/1`."""
    return canonical_json(_content(sheet))


def read_content(data: bytes) -> BotSheet:
    """The picture that `content_bytes` was made from."""
    content = json.loads(data)
    return BotSheet(
        language=content["language"],
        title=content["title"],
        sections=tuple(BotSection(**section) for section in content["sections"]),
    )


def text_hash(heading: str, body: str) -> str:
    """What a check confirms: heading and body, NFKC, white space collapsed."""
    text = unicodedata.normalize("NFKC", f"{heading}\n{body}")
    return sha256(" ".join(text.split()).encode())


# ---- the bot, and the subject a run or a publication is about ----


@cache
def _prompt_form() -> str:
    return prompt.form_digest()


@cache
def _turn_form() -> str:
    return prompt.turn_digest()


@cache
def _retrieval_form(provider: str) -> str:
    """The offline bot's choice of sentences rests on the retriever and more."""
    return offline.form_digest() if provider == "offline" else retrieval.form_digest()


def bot_hash(bot: BotSnapshot, delivery: str) -> str:
    """What makes this bot answer as it does, the form of its prompt included.

    Name, window and reserves are left out: they change no reply.
    """
    return sha256(
        canonical_json(
            {
                "provider": bot.provider,
                "endpoint_host": urlsplit(bot.endpoint).hostname or "",
                "model": bot.model,
                "effort": bot.effort,
                "thinking": bot.thinking,
                "max_tokens": bot.max_tokens,
                "delivery": delivery,
                "retrieval": _retrieval_form(bot.provider),
                "prompt": _prompt_form(),
                # In split delivery alone: elsewhere it makes no reply.
                **({"turn": _turn_form()} if delivery == "split" else {}),
            }
        )
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """What runs speak for and publications freeze: a sheet's content, rules and bot, by hash."""

    sheet_id: int
    content_hash: str
    rules_hash: str
    bot_hash: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subject with the pictures and bytes behind its hashes."""

    subject: Subject
    snapshot: SheetSnapshot
    content: BotSheet
    content_bytes: bytes
    rules_text: str


def candidate(sheet_id: int, snapshot: SheetSnapshot) -> Candidate:
    """What would be published of a snapshot."""
    content = bot_view(snapshot)
    data = content_bytes(content)
    text = rulesets.rules_text(snapshot.rules)
    return Candidate(
        subject=Subject(
            sheet_id=sheet_id,
            content_hash=sha256(data),
            rules_hash=rulesets.rules_hash(text),
            bot_hash=bot_hash(snapshot.bot, snapshot.delivery),
        ),
        snapshot=snapshot,
        content=content,
        content_bytes=data,
        rules_text=text,
    )


# ---- what consumers receive ----


def body_bytes(subject: Candidate, *, number: int, published_at: datetime) -> bytes:
    """The envelope served for a publication; its `content` is exactly the hashed content."""
    return canonical_json(
        {
            "format": BODY_FORMAT,
            "slug": subject.snapshot.slug,
            "publication": number,
            "published_at": instant(published_at),
            "content_hash": subject.subject.content_hash,
            "rules_hash": subject.subject.rules_hash,
            "rules": subject.rules_text,
            "content": _content(subject.content),
        }
    )


def prompt_bytes(subject: Candidate) -> bytes:
    """Both prompt blocks as the model API takes them."""
    built = prompt.build(subject.rules_text, subject.content, delivery=subject.snapshot.delivery)
    return canonical_json({"format": prompt.FORMAT, "system": prompt.as_system(built)})


# ---- the record: everything, for people ----


def record_bytes(snapshot: SheetSnapshot) -> bytes:
    """`record/1`: the whole snapshot with sources and checks."""

    def plain(value: object) -> object:
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return value

    return canonical_json({"format": RECORD_FORMAT, "sheet": plain(asdict(snapshot))})


def read_record(data: bytes) -> SheetSnapshot:
    """The snapshot that `record_bytes` was made from."""
    sheet = json.loads(data)["sheet"]

    def section(raw: dict[str, Any]) -> SectionSnapshot:
        check = raw["check"]
        return SectionSnapshot(
            **{
                **raw,
                "citations": tuple(
                    CitationSnapshot(**{**citation, "source": SourceSnapshot(**citation["source"])})
                    for citation in raw["citations"]
                ),
                "check": check
                and CheckSnapshot(
                    **{**check, "checked_on": date.fromisoformat(check["checked_on"])}
                ),
            }
        )

    return SheetSnapshot(
        **{
            **sheet,
            "bot": BotSnapshot(**sheet["bot"]),
            "sections": tuple(section(raw) for raw in sheet["sections"]),
            "rules": tuple(RuleSnapshot(**rule) for rule in sheet["rules"]),
        }
    )


def with_checks(
    snapshot: SheetSnapshot, checks: Mapping[str, CheckSnapshot | None], bot: BotSnapshot
) -> SheetSnapshot:
    """A past snapshot as it would be judged now: with the present checks and the present bot."""
    return replace(
        snapshot,
        bot=bot,
        sections=tuple(replace(s, check=checks.get(s.key)) for s in snapshot.sections),
    )
