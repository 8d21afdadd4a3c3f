from __future__ import annotations

import pytest

from factsheets.bot import chunking, corpus
from factsheets.bot.corpus import Excluded, Member, MixedLanguages
from factsheets.snapshot import BotSection, BotSheet


def member(slug: str, *texts: str, language: str = "en-GB", content_hash: str = "") -> Member:
    sections = tuple(BotSection(f"s{n}", "", "", text) for n, text in enumerate(texts))
    sheet = BotSheet(language, f"The {slug}", sections)
    return Member(slug, content_hash or f"hash of {slug} {texts}", sheet)


CASTLE = member("castle", "Norman stone.\n\nIt has towers.", "The moat is dry.")
CAFE = member("cafe", "Scones and tea.", "The moat menu is short.")


def test_every_sheet_has_a_summary_of_its_title_and_first_paragraph() -> None:
    index = corpus.index_of([CASTLE, CAFE])

    summaries = {c.sheet: (c.title, c.text) for c in index.chunks if not c.section}

    assert summaries == {
        "castle": ("The castle", "Norman stone."),
        "cafe": ("The cafe", "Scones and tea."),
    }


def test_a_sheet_without_text_has_no_summary() -> None:
    assert chunking.summary(BotSheet("en", "Empty", (BotSection("a", "", "", ""),))) is None


def test_a_hit_says_of_which_sheet_it_is() -> None:
    hits = corpus.index_of([CASTLE, CAFE]).search("Is the castle moat dry?").hits

    assert (hits[0].chunk.sheet, hits[0].chunk.section) == ("castle", "s1")


def test_a_sheet_and_a_section_can_be_left_out() -> None:
    without_cafe = corpus.index_of([CASTLE, CAFE], Excluded.of(sheets={"cafe"}))
    without_moat = corpus.index_of([CASTLE, CAFE], Excluded.of(sections=[("castle", "s1")]))

    assert {c.sheet for c in without_cafe.chunks} == {"castle"}
    assert [hit.chunk.sheet for hit in without_moat.search("moat").hits] == ["cafe"]


def test_a_section_left_out_does_not_sum_up_its_sheet() -> None:
    index = corpus.index_of([CASTLE], Excluded.of(sections=[("castle", "s0")]))

    assert "norman" not in index.postings


def test_the_index_is_made_once_for_the_texts_it_is_made_of() -> None:
    again = Member("castle", CASTLE.content_hash, BotSheet("en", "Never read again", ()))

    assert corpus.index_of([CAFE, CASTLE]) is corpus.index_of([again, CAFE])


def test_another_text_is_another_index() -> None:
    later = member("castle", "The moat is wet.")

    assert corpus.index_of([later]).search("wet").hits
    assert not corpus.index_of([CASTLE]).search("wet").hits


def test_sheets_of_several_languages_are_not_searched_together() -> None:
    with pytest.raises(MixedLanguages, match="de, en"):
        corpus.index_of([CASTLE, member("burg", "Der Turm.", language="de")])


def test_variants_of_one_language_are_searched_together() -> None:
    american = member("fort", "The moat.", language="en-US")

    assert len(corpus.index_of([CASTLE, american]).chunks) == 5


def test_an_empty_corpus_finds_nothing() -> None:
    assert corpus.index_of([]).search("moat").hits == ()
