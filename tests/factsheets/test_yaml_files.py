"""Files as YAML: the strict reader, the reader of fields and the canonical writer."""

from __future__ import annotations

import json
from datetime import date

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factsheets import yaml_files
from factsheets.errors import Refused
from factsheets.yaml_files import Fields, FileRefused, reading

#: The same examples every time: a failure is the change's, not the dice's.
quick = settings(max_examples=120, deadline=None, derandomize=True, database=None)
both_parsers = pytest.mark.parametrize("parser", [yaml.SafeLoader, yaml.CSafeLoader])


def read(text: str) -> object:
    return yaml_files.read(text.encode(), name="sheet.yaml")


def refusal(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(FileRefused) as refused:
        yaml_files.read(data, name="sheet.yaml")
    return refused.value.sentence


# ---- reading ----


def test_a_file_is_read_to_text_numbers_flags_lists_and_mappings():
    value = read("a: one two\nb: [1, -2, 0.5]\nc: true\nd: {e: false}\n")

    assert value == {"a": "one two", "b": [1, -2, 0.5], "c": True, "d": {"e": False}}


@pytest.mark.parametrize(
    "text",
    [
        *("2026-01-31", "2026-01-31 10:00:00", "12:30", "190:20:30", "10.30.15"),
        *("yes", "No", "on", "OFF", "y", "n", "True", "FALSE"),
        *("007", "0o17", "0x1F", "0b1", "1_000", "+5", "1e3", "1.5e3", ".5", "5.", ".inf", "nan"),
        *("1234567890123456789", "=", "1,5", "<5"),
    ],
)
def test_what_other_readers_guess_at_stays_text(text):
    assert read(f"a: {text}") == {"a": text}


def test_an_empty_field_is_empty_text():
    assert read("a:\nb:\n-\n- ''\n") == {"a": "", "b": ["", ""]}


def test_a_byte_order_mark_before_the_text_is_ignored():
    assert yaml_files.read(b"\xef\xbb\xbfa: 1", name="sheet.yaml") == {"a": 1}


def test_windows_line_ends_are_read_as_line_ends():
    assert read("a: |\r\n  one\r\n  two\r\nb: 1\r\n") == {"a": "one\ntwo\n", "b": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "sheet.yaml: there is nothing in the file"),
        ("# only a comment\n", "there is nothing in the file"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document"),
        ("a: &x 1\n", "line 1: anchors"),
        ("a: &x\n- 1\nb: *x\n", "line 1: anchors"),
        ("a: *x\n", "line 1: anchors"),
        ("a: 1\nb: !!str 2\n", "line 2: tags"),
        ("a: !python/object:os.system x\n", "line 1: tags"),
        ("a: ! x\n", "line 1: tags"),
        ("<<: {a: 1}\n", "line 1: merge keys"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 'line 4: the key "c" stands here a second time'),
        ("1: a\n", "line 1: the key 1 is not text"),
        ("true: a\n", "line 1: the key true is not text"),
        ("[a, b]: c\n", "line 1: a key must be a word"),
        ("'': c\n", "line 1: a key must have"),
        (f"{'k' * 101}: c\n", "line 1: a key must have"),
        ("a: null\n", "line 1: null is not taken"),
        ("a: ~\n", "line 1: ~ is not taken"),
        ("a: 1\nb: \x07\n", "line 2: the control character U+0007"),
        ("a: 1\nb: \x85\n", "line 2: the control character U+0085"),
        ('a: 1\nb: "\\x07"\n', "line 2: the control character U+0007 is written here as an escape"),
        ("a: [\n", "this is not YAML"),
        ("a: b: c\n", "line 1: this is not YAML"),
        ("a: \ufffe\n", "this is not YAML"),
        ("[" * 21, "nested more than 20 deep"),
        ("- " * 21 + "x", "nested more than 20 deep"),
        (b"a: 1\nb: \xff\n", "line 2: this is not UTF-8"),
        ("a: 1".encode("utf-16"), "this is not UTF-8"),
        (b"a: " + b"x" * 5 * 1024 * 1024, "larger than 5 MB"),
    ],
)
def test_what_could_mean_two_things_is_refused_with_file_line_and_remedy(text, said):
    sentence = refusal(text)

    assert sentence.startswith("sheet.yaml")
    assert said in sentence
    assert sentence.endswith(".")


@both_parsers
@pytest.mark.parametrize("escape", ["\\ud800", "\\U00110000", "\\UFFFFFFFF", "\\0", "\\q"])
def test_an_escape_for_no_character_is_refused(monkeypatch, parser, escape):
    monkeypatch.setattr(reading, "_Loader", parser)

    assert refusal(f'a: "{escape}"').startswith("sheet.yaml")


def test_twenty_levels_are_read():
    assert read("[" * 20 + "]" * 20)


def test_a_refused_file_is_a_refusal_like_any_other():
    assert issubclass(FileRefused, Refused)
    assert FileRefused.code == "file-refused"


def read_or_refuse(data: bytes) -> bool:
    try:
        yaml_files.read(data, name="sheet.yaml")
    except FileRefused as refused:
        return refused.sentence.startswith("sheet.yaml")
    return True


YAML_PIECES = st.lists(
    st.sampled_from([*"-:?[]{}&*!|>'\"%@`#, \n\t\\a10~<=.", "  ", "\n- ", ": ", "---", "\\u", "é"]),
    max_size=40,
).map("".join)


@both_parsers
@quick
@given(
    st.one_of(
        st.binary(max_size=80), st.text(max_size=80).map(str.encode), YAML_PIECES.map(str.encode)
    )
)
@example(b"%YAML 99999.9\n--- a")
@example(b"%YAML " + b"1" * 5000 + b".1\n--- a")
@example(b"a: " + b"9" * 5000)
@example(b"\xef\xbb\xbf\xef\xbb\xbfa: 1")
def test_any_bytes_are_read_or_refused_in_a_sentence(parser, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_Loader", parser)

        assert read_or_refuse(data)


# ---- fields ----


def fields(text: str, item: str = "") -> Fields:
    return Fields(read(text), file="sheet.yaml", item=item)


def said(refused: pytest.ExceptionInfo[FileRefused]) -> str:
    return refused.value.sentence


def test_fields_give_their_values_or_defaults():
    f = fields(
        "a: x\nb: true\nc: 5\nd: blue\ne: [p, q]\nf: {g: h}\nday: 2026-01-31\nn: [[i], [j, k]]\n"
    )

    assert (f.text("a"), f.text("z"), f.text("z", default="y")) == ("x", "", "y")
    assert (f.flag("b"), f.flag("z"), f.flag("z", default=True)) == (True, False, True)
    assert (f.number("c", minimum=5, maximum=5), f.number("z", default=7)) == (5, 7)
    assert (f.choice("d", ["blue"]), f.choice("z", ["red", "blue"], default="red")) == (
        "blue",
        "red",
    )
    assert (f.texts("e"), f.texts("z")) == (["p", "q"], [])
    assert f.text_lists("n") == [["i"], ["j", "k"]]
    assert (f.mapping("f").text("g"), f.mapping("z").text("g")) == ("h", "")
    assert (f.date("day"), f.date("z")) == (date(2026, 1, 31), None)
    assert ("a" in f, "z" in f) == (True, False)


def test_a_field_left_empty_counts_as_missing():
    f = fields("a:\n")

    assert (f.text("a", default="x"), f.flag("a", default=True), f.number("a", default=3)) == (
        "x",
        True,
        3,
    )
    assert (f.texts("a"), f.items("a", label="item"), f.date("a")) == ([], [], None)


@pytest.mark.parametrize(
    ("text", "take", "what"),
    [
        ("a: 1950", lambda f: f.text("a"), "must be text; put it in quotes"),
        ("a: ' '", lambda f: f.text("a", required=True), "is missing or empty"),
        ("b: 1", lambda f: f.text("a", required=True), "is missing or empty"),
        ("a: abcd", lambda f: f.text("a", max_length=3), "has 4 characters; shorten it to 3"),
        ("a: yes", lambda f: f.flag("a"), "must be true or false"),
        ("a: 1.5", lambda f: f.number("a"), "must be a whole number"),
        ("a: true", lambda f: f.number("a"), "must be a whole number"),
        ("a: 1", lambda f: f.number("a", minimum=2), "is 1; the smallest that is taken is 2"),
        ("a: 3", lambda f: f.number("a", maximum=2), "is 3; the largest that is taken is 2"),
        (
            "a: x",
            lambda f: f.choice("a", ["red", "blue"]),
            '"x" is not known here; choose one of: red, blue',
        ),
        ("b: x", lambda f: f.choice("a", ["red"]), "is missing or empty"),
        ("a: 2026-02-30", lambda f: f.date("a"), "written YYYY-MM-DD"),
        ("a: 20260201", lambda f: f.date("a"), "written YYYY-MM-DD"),
        ("a: 2026-W05-1", lambda f: f.date("a"), "written YYYY-MM-DD"),
        ("a: x", lambda f: f.texts("a"), "must be a list"),
        ("a: [1]", lambda f: f.texts("a"), "must hold texts alone"),
        ("a: [x, '']", lambda f: f.texts("a"), "has an empty entry"),
        ("a: []", lambda f: f.texts("a", required=True), "is missing or empty"),
        ("a: [x]", lambda f: f.text_lists("a"), "must be a list of lists"),
        ("a: {b: 1}", lambda f: f.items("a", label="item"), "must be a list"),
    ],
)
def test_a_wrong_value_is_refused_with_file_item_and_field_in_one_sentence(text, take, what):
    with pytest.raises(FileRefused) as refused:
        take(fields(text, item='section "hours"'))

    assert said(refused).startswith('sheet.yaml, section "hours", field "a": ')
    assert what in said(refused)


def test_items_are_called_by_their_key_or_else_by_their_place():
    f = fields("sections:\n- key: hours\n  citations:\n  - source: 5\n- heading: 5\n")
    first, second = f.items("sections", label="section")
    (citation,) = first.items("citations", label="citation")

    with pytest.raises(FileRefused) as in_citation:
        citation.text("source")
    with pytest.raises(FileRefused) as in_second:
        second.text("heading")

    assert 'sheet.yaml, section "hours", citation 1, field "source"' in said(in_citation)
    assert 'sheet.yaml, section 2, field "heading"' in said(in_second)


@pytest.mark.parametrize(
    ("text", "take", "place"),
    [
        ("a: [x]", lambda f: f.items("a", label="section"), "sheet.yaml, section 1"),
        ("a: x", lambda f: f.mapping("a"), "sheet.yaml, a"),
    ],
)
def test_an_entry_that_is_no_mapping_is_refused(text, take, place):
    with pytest.raises(FileRefused) as refused:
        take(fields(text))

    assert said(refused) == f"{place}: there must be fields here, each as `name: value`."


def test_a_file_that_is_no_mapping_is_refused():
    with pytest.raises(FileRefused, match=r"sheet\.yaml: there must be fields here"):
        fields("- x\n")


def test_unknown_fields_are_refused_with_the_known_ones_and_the_nearest():
    f = fields("key: a\nheadng: b\n", item="section 1")
    f.text("key")
    f.text("heading")

    with pytest.raises(FileRefused) as refused:
        f.done()

    assert said(refused) == (
        'sheet.yaml, section 1: "headng" is not known here; did you mean "heading"? '
        "The known fields are: key, heading."
    )


def test_when_every_field_was_asked_for_all_is_well():
    f = fields("key: a\n")
    f.text("key")
    f.text("heading")

    f.done()


# ---- writing ----


def test_values_are_written_in_block_style_in_the_order_given():
    value = {
        "title": "Castle: a guide",
        "count": 3,
        "share": 0.5,
        "included": True,
        "none": [],
        "keys": ["b", "a"],
        "sections": [{"key": "hours", "body": "One.\n\nTwo."}, {"key": "way"}],
        "facts": [["11", "eleven"], [{"a": "b"}]],
    }

    assert yaml_files.write(value, comment="Made by hand.\n\nKeep.").decode() == (
        "# Made by hand.\n"
        "#\n"
        "# Keep.\n"
        "title: 'Castle: a guide'\n"
        "count: 3\n"
        "share: 0.5\n"
        "included: true\n"
        "none: []\n"
        "keys:\n"
        "- b\n"
        "- a\n"
        "sections:\n"
        "- key: hours\n"
        "  body: |-\n"
        "    One.\n"
        "\n"
        "    Two.\n"
        "- key: way\n"
        "facts:\n"
        "- - '11'\n"
        "  - eleven\n"
        "- - a: b\n"
    )


def test_long_paragraphs_are_folded_at_blanks():
    text = "The keep stands on the temple. " * 8 + "\n\nSecond paragraph.\n"

    lines = yaml_files.write({"body": text.replace(" \n", "\n")}).decode().splitlines()

    assert lines[0] == "body: >"
    assert max(map(len, lines)) <= 100
    assert lines[-1] == "  Second paragraph."


@pytest.mark.parametrize(
    ("text", "written"),
    [
        *((word, f"'{word}'") for word in ("2026-01-31", "12", "1.5", "1e3", "0x1F", "", "~", "=")),
        *((word, f"'{word}'") for word in ("true", "No", "ON", "y", "null", "---", "- a", "#a")),
        *((word, f"'{word}'") for word in ("a: b", "a #b", "a:", " a", "a ", "[a]", "*a", "&a")),
        ("it's", "it's"),
        ("'twas", "'''twas'"),
        ("https://example.org/#part", "https://example.org/#part"),
        ("Été à 10:30", "Été à 10:30"),
        ("a\tb", '"a\\tb"'),
        ("a\u2028b", '"a\\u2028b"'),
        (" a\nb", '" a\\nb"'),
    ],
)
def test_text_is_quoted_where_another_reader_could_mistake_it(text, written):
    assert yaml_files.write(text).decode() == f"{written}\n"


@pytest.mark.parametrize(
    "value",
    [
        None,
        {1: "a"},
        {"": "a"},
        {"k" * 101: "a"},
        10**18,
        float("nan"),
        float("inf"),
        b"a",
        {"a": {1}},
    ],
)
def test_a_value_that_no_file_could_give_back_is_not_written(value):
    with pytest.raises(TypeError):
        yaml_files.write(value)


@pytest.mark.parametrize(
    "value", ["\x07", "\ud800", {"a\x00": "b"}, json.loads("[" * 21 + "]" * 21)]
)
def test_characters_and_depths_that_reading_refuses_are_not_written(value):
    with pytest.raises(ValueError):
        yaml_files.write(value)


CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])
AWKWARD = st.sampled_from(
    [
        *("\n", "\n\n", "\n\n\n", "\r\n", "\r", "\t", " ", "  ", "\u2028", "\ufeff", "\ufffe"),
        *("---", "...", "#", " #", ": ", ":", "- ", "? ", "|", ">", "'", '"', "\\", "%", "@", "`"),
        *(
            "2026-01-31",
            "12:30",
            "007",
            "1e3",
            "yes",
            "no",
            "null",
            "~",
            "true",
            "<<",
            "=",
            "[",
            "{",
        ),
        *("🏰", "👩‍👧", "مرحبا", "שלום", "\u202e", "é", "a word", "word " * 30, "x" * 120),
    ]
)
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=30),
    st.lists(AWKWARD, max_size=8).map("".join),
    st.lists(st.text("ab \n#:-", max_size=60), max_size=6).map("\n".join),
)
KEYS = st.one_of(st.text(CHARACTERS, min_size=1, max_size=20), AWKWARD.map(lambda t: t[:100]))
SCALARS = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(10**18) + 1, 10**18 - 1),
    st.floats(-1e15, 1e15, allow_nan=False).map(lambda x: round(x, 6)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@quick
@given(VALUES)
@example("word " * 40 + "\n\n\n" + "word " * 40 + "end")
@example("a " * 80 + " b" * 80)
@example({"a": [["x\ny\n"], [{"b": "p\n  q\nr"}]]})
@example([[[]], [{}], {"a": []}])
@example(("x " * 60).strip() + "\n")
@example([1, True, 1.0, "1", "true", "1.0", 0, False, -0.0, ""])
def test_what_was_written_is_read_back_the_same_here_and_elsewhere(value):
    data = yaml_files.write(value)

    # By repr: 1, 1.0 and True are equal, and are not the same.
    assert repr(yaml_files.read(data, name="x")) == repr(value)
    assert repr(yaml.safe_load(data)) == repr(value)
    assert repr(yaml.load(data, Loader=yaml.CSafeLoader)) == repr(value)


@quick
@given(VALUES)
def test_writing_what_was_read_gives_the_same_bytes(value):
    data = yaml_files.write(value)

    assert yaml_files.write(yaml_files.read(data, name="x")) == data


@quick
@given(st.text(CHARACTERS | st.sampled_from("\n\r\t"), max_size=40))
def test_a_comment_never_changes_the_value(comment):
    data = yaml_files.write({"a": "b"}, comment=comment)

    assert yaml_files.read(data, name="x") == {"a": "b"}


def test_very_long_text_is_written_and_read_back_quickly():
    text = ("The walls are thick. " * 40).strip() + "\n\n"
    value = {"body": (text * 200).strip()}

    assert yaml_files.read(yaml_files.write(value), name="x") == value
