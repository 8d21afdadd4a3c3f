from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import bm25s
import pytest

from factsheets.bot import analysis, chunking, rarity, retrieval
from factsheets.bot.analysis import Analyser
from factsheets.bot.retrieval import Index
from factsheets.snapshot import BotSection, BotSheet
from tests.factsheets.bot import demo


def sheet_of(*texts: str, language: str = "en-GB", title: str = "") -> BotSheet:
    return BotSheet(
        language, title, tuple(BotSection(f"s{n}", "", "", text) for n, text in enumerate(texts))
    )


def index_of(*texts: str, language: str = "en-GB") -> Index:
    return Index.build(chunking.chunks(sheet_of(*texts)), language)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The visitors’ cafés", "a VISITOR'S cafe"),
        ("won't open", "will not open"),
        ("im lost, cant find it", "I'm lost, I can't find it"),
        ("Who's the king?", "whos the king"),
        ("It opens at 4:30", "opens 4.30"),
        ("ﬁve towers", "five tower"),
        ("They've been selling tickets", "we sell a ticket"),
    ],
)
def test_two_ways_of_writing_the_same_are_the_same(one, other):
    analyser = Analyser("en-GB")

    assert analyser.words(one) == analyser.words(other) != ()


def test_stop_words_say_nothing():
    assert Analyser("en").words("What would you do with all of these, and why?") == ()


def test_pairs_are_made_after_stop_words_are_dropped():
    assert Analyser("en").terms("the Temple of Claudius") == ("templ", "claudius", "templ claudius")


@pytest.mark.parametrize(
    ("language", "plural", "singular"),
    [
        ("de-AT", "die Türme", "der Turm"),
        ("fr", "les châteaux", "le château"),
        ("es", "castillos", "castillo"),
    ],
)
def test_the_stemmer_speaks_the_language_of_the_sheet(language, plural, singular):
    assert Analyser(language).words(plural) == Analyser(language).words(singular)


def test_a_language_without_a_stemmer_keeps_its_words_whole():
    assert Analyser("mul").words("Castles opening") == ("castles", "opening")


def test_marks_that_make_another_letter_outside_latin_stay():
    assert Analyser("uk").words("замкній") == ("замкній",)


def test_stems_are_the_same_from_many_threads():
    words = [
        f"{stem}{end}" for stem in ("visit", "open", "tower") for end in ("ing", "s", "ed")
    ] * 200
    expected = [Analyser("en").words(word) for word in words]
    analysis._stem.cache_clear()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(Analyser("en").words, words))

    assert found == expected


@pytest.mark.parametrize("name", demo.NAMES)
def test_the_best_hit_is_the_one_that_bm25s_finds(name):
    index = retrieval.index_of(demo.sheet(name))
    terms_of = index.analyser.terms
    oracle = bm25s.BM25(method="lucene", k1=retrieval.K1, b=retrieval.B)
    oracle.index(
        [list(index.analyser.terms(chunk.indexed)) for chunk in index.chunks], show_progress=False
    )
    asked = [
        (hits[0], [t for t in dict.fromkeys(terms_of(text)) if t in index.postings])
        for question in demo.questions(name)
        if (hits := index.search(text := question["question"]).hits)
    ]

    theirs = [oracle.get_scores(terms) for _, terms in asked]

    assert len(asked) > 25
    assert [index.chunks.index(hit.chunk) for hit, _ in asked] == [int(s.argmax()) for s in theirs]
    assert [h.score for h, _ in asked] == pytest.approx([s.max() for s in theirs], rel=1e-4)


@pytest.mark.parametrize("name", demo.NAMES)
def test_no_better_chunk_is_passed_over(name):
    index = retrieval.index_of(demo.sheet(name))

    for question in demo.questions(name):
        terms = dict.fromkeys(index.analyser.terms(question["question"]))
        scores = [
            math.fsum(index.postings.get(term, {}).get(place, 0.0) for term in terms)
            for place in range(len(index.chunks))
        ]
        by_hand = sorted((-score, place) for place, score in enumerate(scores) if score)

        ranked = index.ranked(question["question"], 10)
        hits = index.search(question["question"]).hits

        assert [(-hit.score, index.chunks.index(hit.chunk)) for hit in ranked] == by_hand[:10]
        assert [-hit.score for hit in hits] == [
            score for score, _ in by_hand[:5] if score <= retrieval.LEAST_SHARE * by_hand[0][0]
        ]


def test_every_short_form_that_may_stand_bare_is_looked_for():
    words = [*rarity._table(), *analysis._BARE_SHORT_FORMS, "lets", "its", "ill", "id", "were"]

    written_out = {
        word
        for word in words
        if any(p.sub(full, word) != word for p, full in analysis._SHORT_FORMS)
    }

    assert written_out == analysis._BARE_SHORT_FORMS


def test_a_score_is_the_sum_of_what_its_terms_add():
    hit = index_of("A tower and a clock.", "A moat.").search("tower clock").hits[0]

    assert [trace.term for trace in hit.terms] == ["tower", "clock", "tower clock"]
    assert hit.score == pytest.approx(sum(trace.score for trace in hit.terms))


def test_equal_hits_come_in_reading_order():
    hits = index_of("The tower.", "The moat.", "The tower.").search("tower").hits

    assert [hit.chunk.section for hit in hits] == ["s0", "s2"]


def test_at_most_five_chunks_are_hits():
    hits = index_of(*["The tower."] * 9).search("tower").hits

    assert len(hits) == retrieval.MOST_HITS == 5


def test_a_chunk_under_two_fifths_of_the_best_is_no_hit():
    index = index_of("Tower clock moat gate.", "Tower roof.", "Roof.", "Wall.")

    hits = index.search("tower clock moat gate").hits

    assert [hit.chunk.section for hit in hits] == ["s0"]


def test_an_empty_index_finds_nothing():
    found = index_of().search("Where is the tower?")

    assert found.hits == ()
    assert not found.grounded


def test_coverage_is_the_share_of_the_question_in_the_top_chunk_weighed_by_rarity():
    found = index_of("The castle has a moat.").search("How old is the castle?")

    old, castle = rarity.of("old", "en"), rarity.of("castl", "en")
    assert [(word.stem, word.found) for word in found.words] == [("old", False), ("castl", True)]
    assert found.coverage == pytest.approx(castle / (castle + old))


def test_a_question_is_grounded_from_two_fifths_on():
    index = index_of("Eudo sold wine.", language="mul")

    assert index.search("eudo wine one two three").grounded
    assert not index.search("eudo one two three").grounded


def test_a_question_without_a_content_word_is_not_grounded():
    assert not index_of("The castle.").search("What about it?").grounded


def test_the_index_of_a_sheet_is_made_once():
    sheet = sheet_of("The castle.", title="Once")

    assert retrieval.index_of(sheet) is retrieval.index_of(sheet_of("The castle.", title="Once"))


def test_the_digest_stays_while_nothing_changes():
    assert retrieval.form_digest() == retrieval.form_digest()
    assert len(retrieval.form_digest()) == 64


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (retrieval, "K1", 1.3),
        (retrieval, "GROUNDED_FROM", 0.41),
        (chunking, "MAX_WORDS", 200),
        (analysis, "STOP_WORDS", {"en": frozenset({"the"})}),
        (rarity, "of", lambda stem, language: 1.0),
        (analysis, "_fold", lambda text: text),
    ],
)
def test_a_change_in_any_step_changes_the_digest(monkeypatch, module, name, value):
    before = retrieval.form_digest()

    monkeypatch.setattr(module, name, value)

    assert retrieval.form_digest() != before
