from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factsheets.bot import chunking
from factsheets.snapshot import BotSection, BotSheet
from tests.factsheets.bot import demo


def sheet_of(text: str) -> BotSheet:
    return BotSheet("en", "The tower", (BotSection("clock", "The clock", "Who made it?", text),))


def texts(text: str) -> list[str]:
    return [span.of(text) for span in chunking.sentences(text)]


def sentence(number: int, words: int = 10) -> str:
    return " ".join([f"Sentence{number}", *(["word"] * (words - 2)), "end."])


@pytest.mark.parametrize("name", demo.NAMES)
def test_a_section_of_ordinary_length_is_one_chunk(name):
    sheet = demo.sheet(name)

    chunks = chunking.chunks(sheet)

    assert [chunk.section for chunk in chunks] == [section.key for section in sheet.sections]
    assert [chunk.text for chunk in chunks] == [section.text for section in sheet.sections]


def test_a_chunk_is_indexed_with_title_heading_and_question_once_each():
    (chunk,) = chunking.chunks(sheet_of("A clockmaker made it."))

    assert chunk.indexed == "The tower\nThe clock\nWho made it?\nA clockmaker made it."


def test_a_section_without_text_has_no_chunk():
    assert chunking.chunks(sheet_of(" \n")) == ()


def test_a_long_section_is_cut_at_a_paragraph_break():
    first = " ".join(sentence(n) for n in range(12))
    second = " ".join(sentence(n) for n in range(12, 24))

    chunks = chunking.chunks(sheet_of(f"{first}\n\n{second}"))

    assert [chunk.ordinal for chunk in chunks] == [0, 1]
    assert chunks[0].text == first


def test_chunks_of_a_section_share_one_sentence():
    first = " ".join(sentence(n) for n in range(12))
    second = " ".join(sentence(n) for n in range(12, 24))

    chunks = chunking.chunks(sheet_of(f"{first}\n\n{second}"))

    assert chunks[1].text == f"{sentence(11)}\n\n{second}"


def test_a_long_paragraph_is_cut_between_sentences():
    paragraph = " ".join(sentence(n) for n in range(50))

    chunks = chunking.chunks(sheet_of(paragraph))

    assert len(chunks) == 3
    assert all(chunking.word_count(chunk.text) <= chunking.MAX_WORDS for chunk in chunks)
    assert all(chunk.text.endswith("end.") for chunk in chunks)


def test_a_sentence_longer_than_a_chunk_stays_whole():
    endless = sentence(1, words=300)

    chunks = chunking.chunks(sheet_of(f"{sentence(0)} {endless}"))

    assert any(endless in chunk.text for chunk in chunks)


@given(
    st.lists(st.tuples(st.integers(3, 60), st.sampled_from([" ", "\n\n"])), min_size=1, max_size=40)
)
def test_every_chunk_is_a_slice_and_no_sentence_is_lost(shape):
    text = "".join(sentence(n, words) + gap for n, (words, gap) in enumerate(shape)).strip()

    chunks = chunking.chunks(sheet_of(text))

    assert all(chunk.text in text for chunk in chunks)
    assert {s for chunk in chunks for s in texts(chunk.text)} == set(texts(text))


@pytest.mark.parametrize(
    "text",
    [
        "The shop opens at 4.30 pm on Sundays.",
        "Mr. Gray and Dr. Öz met St. Helena.",
        "It was built c. 1076 and sold later.",
        "See No. 3 and pp. 4-9 of vol. 2.",
        "G. T. Clark counted 47 steps.",
        "I. K. Brunel came.",
        "It costs £2.60, e.g. for tea.",
        "3. Take the stairs",
    ],
)
def test_a_full_stop_inside_a_sentence_does_not_end_it(text):
    assert texts(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is Roman. It is not Norman.", ["It is Roman.", "It is not Norman."]),
        ("It was Henry I. In 1101 he gave it.", ["It was Henry I.", "In 1101 he gave it."]),
        ("Is it? No! £5 is due.", ["Is it?", "No!", "£5 is due."]),
        ("He said “Go.” They went.", ["He said “Go.”", "They went."]),
        ("It began in AD 43. Émile wrote.", ["It began in AD 43.", "Émile wrote."]),
        ("Open at 9 a.m. Closed at 5 p.m.", ["Open at 9 a.m.", "Closed at 5 p.m."]),
        ("A heading\n\nA sentence.", ["A heading", "A sentence."]),
        ("We sell:\n- tea\n- cake", ["We sell:", "- tea", "- cake"]),
        ("城です。門です。", ["城です。", "門です。"]),
        ("There is no. 3 was the answer.", ["There is no. 3 was the answer."]),
        ("It said no. Then it shut.", ["It said no.", "Then it shut."]),
    ],
)
def test_sentences_end_where_a_reader_would_say(text, expected):
    assert texts(text) == expected


@given(st.text(alphabet='aB. \n?!1"’-', max_size=60))
def test_sentences_are_slices_in_order_that_leave_out_only_white_space(text):
    spans = chunking.sentences(text)

    rest = "".join(
        text[a.end : b.start]
        for a, b in zip(
            [chunking.Span(0, 0), *spans],
            [*spans, chunking.Span(len(text), len(text))],
            strict=True,
        )
    )

    assert rest.strip() == ""
    assert all(span.of(text) == span.of(text).strip() != "" for span in spans)
