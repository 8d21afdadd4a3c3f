"""Files of questions and replies, read strictly."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from factsheets import use_logs
from factsheets.use_logs import Lines, LogRefused

NOW = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)


def read(data: bytes | str) -> Lines:
    data = data.encode() if isinstance(data, str) else data
    return use_logs.read(data, zone=ZoneInfo("Europe/London"), now=NOW)


def refused(data: bytes | str) -> str:
    with pytest.raises(LogRefused) as said:
        read(data)
    return said.value.sentence


def line(**members: object) -> str:
    return json.dumps({"question": "When?", "reply": "At ten.", **members})


def test_json_lines_are_read_with_their_numbers() -> None:
    found = read(f"{line(at='2026-06-01T10:00:00Z', reference='a-1')}\n\n{line(reply='No.')}\n")

    assert [(row.number, row.question, row.reply, row.reference) for row in found.rows] == [
        (1, "When?", "At ten.", "a-1"),
        (3, "When?", "No.", ""),
    ]
    assert [row.at for row in found.rows] == [datetime(2026, 6, 1, 10, tzinfo=UTC), None]


def test_csv_is_read_by_its_header_in_any_order_with_line_breaks_in_cells() -> None:
    found = read('reply,question\r\n"At ten,\nas a rule.",When?\r\nNo.,Dogs?\r\n')

    assert [(row.number, row.question, row.reply) for row in found.rows] == [
        (3, "When?", "At ten,\nas a rule."),
        (4, "Dogs?", "No."),
    ]


def test_a_mark_of_byte_order_is_no_part_of_the_first_name() -> None:
    assert len(read(b"\xef\xbb\xbfquestion,reply\nWhen?,At ten.\n").rows) == 1
    assert len(read(b"\xef\xbb\xbf" + line().encode()).rows) == 1


def test_a_time_without_its_offset_is_one_of_the_organisation() -> None:
    (row,) = read(line(at="2026-06-01T10:00")).rows

    assert row.at == datetime(2026, 6, 1, 9, tzinfo=UTC)


def test_the_same_bytes_have_the_same_hash() -> None:
    assert read(line()).sha256 == read(line()).sha256 != read(line(reply="No.")).sha256


GOOD = line()


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ("[]", "it is no JSON object"),
        ("{", "it is no JSON object"),
        ("[" * 100_000, "it is no JSON object"),
        (line(replay="x"), "'replay' is not known here"),
        ('{"question": "When?"}', "reply is missing"),
        (line(reply="  "), "reply is empty"),
        (line(reply=None), "reply is empty"),
        (line(question=7), "question is no text"),
        (line(question="x" * 20_001), "question has more than 20,000 characters"),
        (line(reply="half \ud800"), "reply holds half of a character"),
        (line(reference="with blank"), "the reference must be"),
        (line(reference="x" * 101), "the reference must be"),
        (line(at="yesterday"), "at: Give a day"),
        (line(at="2026-06-11T00:00:00Z"), "still to come"),
    ],
)
def test_each_fault_of_a_line_of_json_is_told_with_its_number(second: str, says: str) -> None:
    sentence = refused(f"{GOOD}\n{second}\n")

    assert sentence.startswith("Line 2: ")
    assert says in sentence
    assert "Nothing was taken" in sentence


@pytest.mark.parametrize(
    ("data", "number", "says"),
    [
        ("frage,reply\n", 1, "'frage' is not known here"),
        ("question\nWhen?\n", 1, "reply is missing"),
        ("question,reply,reply\na,b,c\n", 1, "a column stands there twice"),
        ("question,reply\nWhen?,At ten.,x\n", 2, "it has 3 cells, and the header 2"),
        ("question,reply\nWhen?,At ten.\nWhen?\n", 3, "it has 1 cells"),
        ('question,reply\nWhen?,"At ten\n', 2, "its quotes do not close"),
        ("question,reply\nWhen?,\n", 2, "reply is empty"),
    ],
)
def test_each_fault_of_a_line_of_csv_is_told_with_its_number(
    data: str, number: int, says: str
) -> None:
    sentence = refused(data)

    assert sentence.startswith(f"Line {number}: ")
    assert says in sentence


def test_a_reference_stands_once_in_a_file() -> None:
    sentence = refused("\n".join([line(reference="a"), line(reference="b"), line(reference="a")]))

    assert sentence.startswith("Line 3: the reference a stands on line 1 too")


def test_a_file_that_is_no_text_is_refused() -> None:
    assert "is not UTF-8" in refused(b"question,reply\n\xff\xfe,x\n")


@pytest.mark.parametrize("data", ["", "\n \n", "question,reply\n"])
def test_a_file_without_an_answer_is_refused(data: str) -> None:
    assert refused(data)


def test_a_file_over_five_megabytes_is_refused() -> None:
    assert "larger than 5 MB" in refused(b"x" * 5_000_001)


def test_a_file_of_more_than_twenty_thousand_answers_is_refused() -> None:
    rows = "a,b\n" * 20_000

    assert len(read(f"question,reply\n{rows}").rows) == 20_000
    assert "more than 20,000 answers" in refused(f"question,reply\n{rows}a,b\n")
