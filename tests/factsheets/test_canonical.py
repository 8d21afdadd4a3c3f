"""Pictures to bytes. The vectors in `tests/golden/` are a promise: a change of form fails here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factsheets import canonical
from factsheets.canonical import TextRefused, normalise, normalise_line
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

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
HASHES: dict[str, str] = json.loads((GOLDEN / "hashes.json").read_text(encoding="utf-8"))

#: The same examples every time: a failure is the change's, not the dice's.
quick = settings(max_examples=80, deadline=None, derandomize=True, database=None)

AWKWARD = st.sampled_from(
    [
        *("\n", "\n\n\n", "\r\n", "\r", "\n\r", "\t", " ", "  ", "\x00", "\x07", "\x1b", "\x85"),
        *(
            "\u00a0",
            "\u2028",
            "\u3000",
            "\ufeff",
            "\u202e",
            "\u200d",
            "🏰",
            "👩‍👧",
            "مرحبا",
            "שלום",
        ),
        *(
            "é",
            "e\u0301",
            "\u0323",
            "\u0301",
            "ﬁ",
            "Å",
            "\u212b",
            "가",
            "\u1100\u1161",
            "“",
            '"',
            "\\",
        ),
    ]
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.lists(AWKWARD, max_size=12).map("".join),
)

BOT = BotSnapshot(
    slug="guide",
    provider="anthropic",
    model="claude-haiku-5-5",
    effort="low",
    thinking="disabled",
    max_tokens=1024,
    endpoint="https://models.example.org/v1",
    context_window=200_000,
    reserve_history=8_000,
    reserve_question=1_000,
    reserve_retrieval=0,
    reserve_output=1_024,
)

#: As a person might paste it: decomposed, with Windows line ends, trailing blanks and a bell.
PASTED = {
    "title": "The cafe\u0301 “Dún Aonghasa” ☕",
    "heading": "Hours 👩\u200d👧",
    "body": 'Open "daily" 10\u201317 h.  \r\n\r\n\r\n\r\nC:\\menu\x07 \u2014 it\u2019s 5\u00a0€.\r\n',
    "arabic": "\u0645\u0631\u062d\u0628\u0627 \u202b\u05e9\u05dc\u05d5\u05dd\u202c 3/4",
}


def source(**values: Any) -> SourceSnapshot:
    return SourceSnapshot(
        **{
            "key": "leaflet",
            "kind": "own-policy",
            "title": "Leaflet of the house",
            "author": "Máire Ní Bhriain",
            "publisher": "",
            "issued": "undated",
            "url": "https://example.org/leaflet?a=1&b=2",
            "identifier": "L-1",
            "licence": "In copyright",
            "access": "",
            "note": "Seen in a copy.",
            **values,
        }
    )


def snapshot(**values: Any) -> SheetSnapshot:
    """The sheet of the golden vectors: three sections of which one is left out, three rules."""
    hours = SectionSnapshot(
        key="hours",
        heading=normalise_line(PASTED["heading"]),
        question="When is it open?",
        body=normalise(PASTED["body"]),
        included=True,
        note="Ask the cook in spring.",
        citations=(
            CitationSnapshot(source(), "page 1", "hours", "Open daily", "supports", True),
            CitationSnapshot(source(key="sign", note=""), "", "", "", "background", False),
        ),
        check=CheckSnapshot(
            text_hash="0" * 64,
            checked_on=date(2026, 3, 31),
            checked_by="anna",
            outcome="confirmed",
            method="imported",
            note="",
        ),
    )
    greeting = SectionSnapshot(
        "greeting", "Grüße", "", normalise(PASTED["arabic"]), True, "", (), None
    )
    hidden = SectionSnapshot("hidden", "Not yet", "", "Not to be seen.", False, "", (), None)
    return SheetSnapshot(
        **{
            "slug": "cafe",
            "title": normalise_line(PASTED["title"]),
            "description": "For people.",
            "language": "en-IE",
            "visibility": "public",
            "delivery": "inline",
            "probe_scope": "rules",
            "bot": BOT,
            "sections": (hours, greeting, hidden),
            "rules": (
                RuleSnapshot("house", "only", "refusal", "Answer only from the sheet.", True),
                RuleSnapshot("house", "off", "format", "A rule that is switched off.", False),
                RuleSnapshot("cafe-rules", "tone", "persona", "Sei freundlich – “bitte”.", True),
            ),
            **values,
        }
    )


def forms() -> dict[str, bytes]:
    """Every byte form of the golden sheet, by the name of its file."""
    candidate = canonical.candidate(7, snapshot())
    return {
        "content-1.json": candidate.content_bytes,
        "rules-1.txt": candidate.rules_text.encode(),
        "prompt-1.json": canonical.prompt_bytes(candidate),
        "body-1.json": canonical.body_bytes(
            candidate,
            number=3,
            published_at=datetime(2026, 6, 1, 14, 5, 6, 7, tzinfo=timezone(timedelta(hours=2))),
        ),
        "record-1.json": canonical.record_bytes(candidate.snapshot),
    }


# ---- golden vectors ----


@pytest.mark.parametrize(
    "name", ["content-1.json", "rules-1.txt", "prompt-1.json", "body-1.json", "record-1.json"]
)
def test_the_bytes_are_those_of_the_golden_file(name: str) -> None:
    made = forms()[name]

    assert made == (GOLDEN / name).read_bytes()


@pytest.mark.parametrize(
    "name", ["content-1.json", "prompt-1.json", "body-1.json", "record-1.json"]
)
def test_the_hash_of_the_golden_bytes_is_the_one_written_out(name: str) -> None:
    data = (GOLDEN / name).read_bytes()

    assert hashlib.sha256(data).hexdigest() == HASHES[name]
    assert canonical.sha256(data) == HASHES[name]


def test_the_hashes_of_the_golden_subject_are_those_written_out() -> None:
    subject = canonical.candidate(7, snapshot()).subject

    assert subject.sheet_id == 7
    assert subject.content_hash == HASHES["content-1.json"]
    assert subject.rules_hash == HASHES["rules_hash"]


def test_the_text_hash_of_the_golden_section_is_the_one_written_out() -> None:
    section = snapshot().sections[0]

    assert canonical.text_hash(section.heading, section.body) == HASHES["text_hash of hours"]


def test_a_client_can_hash_the_content_it_got() -> None:
    body = json.loads((GOLDEN / "body-1.json").read_bytes())

    content = json.dumps(
        body["content"], ensure_ascii=False, sort_keys=True, separators=(",", ":")
    ).encode()

    assert hashlib.sha256(content).hexdigest() == body["content_hash"] == HASHES["content-1.json"]


def test_a_client_can_hash_the_rules_it_got() -> None:
    body = json.loads((GOLDEN / "body-1.json").read_bytes())

    data = b"rules/1\n" + body["rules"].encode()

    assert hashlib.sha256(data).hexdigest() == body["rules_hash"] == HASHES["rules_hash"]


def test_the_body_has_these_fields_and_no_other() -> None:
    body = json.loads(forms()["body-1.json"])

    assert {name: value for name, value in body.items() if name not in {"rules", "content"}} == {
        "format": "body/1",
        "slug": "cafe",
        "publication": 3,
        "published_at": "2026-06-01T12:05:06.000007Z",
        "content_hash": HASHES["content-1.json"],
        "rules_hash": HASHES["rules_hash"],
    }
    assert {"rules", "content"} <= body.keys()


@pytest.mark.parametrize("name", ["content-1.json", "prompt-1.json", "body-1.json"])
@pytest.mark.parametrize(
    "canary",
    [
        *("leaflet", "Leaflet", "Bhriain", "example.org", "page 1", "Seen in a copy", "Open daily"),
        *("Ask the cook", "anna", "2026-03-31", "For people", "Not yet", "Not to be seen", "guide"),
        *("switched off",),
    ],
)
def test_what_is_for_people_only_stands_in_the_record_and_in_no_form_that_leaves(
    name: str, canary: str
) -> None:
    made = forms()

    assert canary.encode() in made["record-1.json"]
    assert canary.encode() not in made[name]


# ---- text ----


@quick
@given(TEXTS)
@example("a \n \n \n b")
@example("\n\n e\x00\u0301 \n")
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)

    assert normalise(once) == once
    assert normalise_line(normalise_line(text)) == normalise_line(text)


@quick
@given(TEXTS, st.sampled_from(["\r\n", "\r"]))
def test_all_line_ends_are_one(text: str, end: str) -> None:
    text = text.replace("\r", "")

    assert normalise(text.replace("\n", end)) == normalise(text)


@quick
@given(TEXTS)
@example("e\x07\u0301\u0323")
def test_composed_and_decomposed_text_are_one(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))

    assert normalise(composed) == normalise(decomposed)
    assert unicodedata.is_normalized("NFC", normalise(decomposed))


@quick
@given(TEXTS)
def test_no_line_ends_in_a_blank_and_blank_lines_stand_alone_within_the_text(text: str) -> None:
    made = normalise(text)

    assert all(line == line.rstrip() for line in made.split("\n"))
    assert "\n\n\n" not in made
    assert made == made.strip("\n")


@quick
@given(TEXTS)
@example("a\x0bb\x0cc\x1fd\x7fe\x80f\x9fg")
def test_no_control_character_is_left_but_line_feed_and_tab(text: str) -> None:
    controls = {c for c in normalise(text) if unicodedata.category(c) == "Cc"}

    assert controls <= {"\n", "\t"}


@quick
@given(TEXTS)
def test_only_controls_and_white_space_are_ever_lost(text: str) -> None:
    visible = "".join(c for c in text if unicodedata.category(c) != "Cc")
    before, after = ("".join(t.split()) for t in (visible, normalise(text)))

    assert unicodedata.normalize("NFC", after) == unicodedata.normalize("NFC", before)


def test_a_text_is_put_into_its_one_form() -> None:
    text = "\r\n\r\nOne.  \r\n\r\n \r\n\t\r\n  Two\x07\ttabs \rthree cafe\u0301\n\n"

    assert normalise(text) == "One.\n\n  Two\ttabs\nthree café"


def test_a_line_has_single_blanks_and_no_line_break() -> None:
    assert normalise_line(" One\t two\u00a0\u3000three\r\n\r\nfour ") == "One two three four"


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_half_of_a_character_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(TextRefused) as refused:
        normalise(text)

    assert refused.value.code == "text-refused"
    assert "lone surrogate" in refused.value.sentence


def test_marks_that_are_no_controls_are_kept() -> None:
    text = "👩\u200d👧 \u202bשלום\u202c a\u00adb"

    assert normalise(text) == text


def test_two_hundred_thousand_characters_are_one_text_like_any_other() -> None:
    text = ("cafe\u0301 \r\n" * 3 + " \r\n" * 4) * 8_000

    assert len(text) > 200_000
    assert normalise(text) == "\n\n".join(["café\ncafé\ncafé"] * 8_000)


# ---- canonical JSON ----


def test_keys_are_sorted_at_every_depth() -> None:
    one = {"b": [{"z": 1, "a": 2}], "a": {"é": 1, "z": 2, "A": 3}}
    other = {"a": {"A": 3, "z": 2, "é": 1}, "b": [{"a": 2, "z": 1}]}

    assert canonical.canonical_json(one) == canonical.canonical_json(other)
    assert canonical.canonical_json(one).decode() == '{"a":{"A":3,"z":2,"é":1},"b":[{"a":2,"z":1}]}'


def test_nothing_is_escaped_that_utf_8_can_say() -> None:
    text = "🏰 שלום é \u2028 “ ” / < & '"

    assert canonical.canonical_json(text) == f'"{text}"'.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_carry_are_an_error(number: float) -> None:
    with pytest.raises(ValueError):
        canonical.canonical_json({"a": number})


def test_an_instant_is_written_in_utc_to_the_microsecond() -> None:
    summer = datetime(2026, 7, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))

    assert canonical.instant(summer) == "2026-06-30T23:30:00.000000Z"


# ---- content and record ----

SECTIONS = st.builds(BotSection, key=TEXTS, heading=TEXTS, question=TEXTS, text=TEXTS)
SHEETS = st.builds(
    BotSheet, language=TEXTS, title=TEXTS, sections=st.lists(SECTIONS, max_size=3).map(tuple)
)


@quick
@given(SHEETS)
def test_content_is_read_back_as_it_was(sheet: BotSheet) -> None:
    data = canonical.content_bytes(sheet)

    assert canonical.read_content(data) == sheet


@quick
@given(SHEETS)
def test_the_content_hash_is_that_of_the_content_in_the_body(sheet: BotSheet) -> None:
    base = canonical.candidate(1, snapshot())
    candidate = dataclasses.replace(
        base,
        content=sheet,
        content_bytes=canonical.content_bytes(sheet),
    )

    body = json.loads(
        canonical.body_bytes(candidate, number=1, published_at=datetime(2026, 6, 1, tzinfo=UTC))
    )

    assert canonical.canonical_json(body["content"]) == candidate.content_bytes


def test_the_record_is_read_back_as_it_was() -> None:
    whole = snapshot()

    assert canonical.read_record(canonical.record_bytes(whole)) == whole


def test_the_golden_record_is_read_back_to_the_golden_sheet() -> None:
    assert canonical.read_record((GOLDEN / "record-1.json").read_bytes()) == snapshot()


@pytest.mark.parametrize(
    "change", [{"visibility": "key"}, {"description": "Other."}, {"slug": "b"}]
)
def test_the_record_changes_with_what_the_content_does_not_hold(change: dict[str, str]) -> None:
    one, other = canonical.candidate(1, snapshot()), canonical.candidate(1, snapshot(**change))

    assert one.content_bytes == other.content_bytes
    assert canonical.record_bytes(one.snapshot) != canonical.record_bytes(other.snapshot)


def test_a_past_snapshot_is_judged_by_present_checks_and_with_the_present_bot() -> None:
    check = CheckSnapshot("1" * 64, date(2026, 5, 5), "ben", "disputed", "read-paper", "No.")
    bot = dataclasses.replace(BOT, model="another")

    made = canonical.with_checks(snapshot(), {"hours": None, "greeting": check}, bot)

    assert [section.check for section in made.sections] == [None, check, None]
    assert made.bot == bot
    assert bot_view(made) == bot_view(snapshot())


def test_the_order_of_sections_changes_the_content_hash() -> None:
    there = snapshot()
    back = snapshot(sections=there.sections[::-1])

    assert (
        canonical.candidate(1, there).subject.content_hash
        != canonical.candidate(1, back).subject.content_hash
    )


# ---- what a bot may see: an allow-list ----


def test_no_field_of_what_a_bot_sees_could_carry_a_source() -> None:
    sheet, section = get_type_hints(BotSheet), get_type_hints(BotSection)

    assert {name: sheet[name] for name in ("language", "title")} == {"language": str, "title": str}
    assert set(sheet) == {"language", "title", "sections"}
    assert get_args(sheet["sections"]) == (BotSection, ...)
    assert section == {"key": str, "heading": str, "question": str, "text": str}
    assert not hasattr(BotSection("a", "b", "c", "d"), "__dict__")


def test_the_content_holds_these_fields_and_no_other() -> None:
    content = json.loads(canonical.candidate(1, snapshot()).content_bytes)

    assert set(content) == {"language", "title", "sections"}
    assert [set(s) for s in content["sections"]] == [{"key", "heading", "question", "text"}] * 2


# ---- the bot ----


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "offline"},
        {"endpoint": "https://elsewhere.example.org/v1"},
        {"model": "claude-haiku-5-6"},
        {"effort": "high"},
        {"thinking": "adaptive"},
        {"max_tokens": 2048},
    ],
)
def test_a_bot_that_may_answer_otherwise_has_another_hash(change: dict[str, Any]) -> None:
    other = dataclasses.replace(BOT, **change)

    assert canonical.bot_hash(other, "inline") != canonical.bot_hash(BOT, "inline")


def test_another_delivery_is_another_bot() -> None:
    assert canonical.bot_hash(BOT, "split") != canonical.bot_hash(BOT, "inline")


@pytest.mark.parametrize("provider", ["anthropic", "offline"])
@pytest.mark.parametrize("form", ["_prompt_form", "_retrieval_form"])
def test_another_form_of_prompt_or_retrieval_is_another_bot(
    form: str, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = dataclasses.replace(BOT, provider=provider)
    before = canonical.bot_hash(bot, "inline")
    monkeypatch.setattr(canonical, form, lambda *_: "another form")

    assert canonical.bot_hash(bot, "inline") != before


@pytest.mark.parametrize(
    "change",
    [
        {"slug": "renamed"},
        {"context_window": 100_000},
        {"reserve_history": 1},
        {"reserve_question": 1},
        {"reserve_retrieval": 1},
        {"reserve_output": 1},
        {"endpoint": "https://models.example.org/v2"},
    ],
)
def test_what_changes_no_reply_leaves_the_bot_hash(change: dict[str, Any]) -> None:
    other = dataclasses.replace(BOT, **change)

    assert canonical.bot_hash(other, "inline") == canonical.bot_hash(BOT, "inline")


# ---- the text that a check confirms ----


@quick
@given(st.lists(st.sampled_from(["Opens", "at", "ten.", "Café"]), min_size=1, max_size=6))
def test_white_space_does_not_change_the_text_hash(words: list[str]) -> None:
    tight, loose = " ".join(words), "\n\n ".join(words) + "\u00a0\t"

    assert canonical.text_hash("Hours", tight) == canonical.text_hash(" Hours ", loose)


@pytest.mark.parametrize(
    ("one", "other"),
    [("ﬁve", "five"), ("½ mile", "1⁄2 mile"), ("５ pounds", "5 pounds"), ("café", "cafe\u0301")],
)
def test_compatibility_forms_do_not_change_the_text_hash(one: str, other: str) -> None:
    assert canonical.text_hash("Hours", one) == canonical.text_hash("Hours", other)
    assert canonical.text_hash(one, "Body") == canonical.text_hash(other, "Body")


@pytest.mark.parametrize(
    ("heading", "body"), [("Hour", "Opens at ten."), ("Hours", "Opens at Ten."), ("Hours", "Opens")]
)
def test_another_word_changes_the_text_hash(heading: str, body: str) -> None:
    assert canonical.text_hash(heading, body) != canonical.text_hash("Hours", "Opens at ten.")
