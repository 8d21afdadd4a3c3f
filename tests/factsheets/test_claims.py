"""Where a phrase stands in a sheet, and how far a passage bears out a claim."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from factsheets import claims, folding
from factsheets.bot import chunking
from factsheets.snapshot import BotSection, BotSheet
from tests.factsheets.bot import demo

HOURS = "The castle opens at ten in the morning. It closes at five. Last entry is at four."


def sheet(*texts: str, language: str = "en-GB", heading: str = "Visiting") -> BotSheet:
    """A sheet with a section `s-0`, `s-1`, … for each text."""
    return BotSheet(
        language,
        "The castle",
        tuple(
            BotSection(f"s-{number}", f"{heading} {number}", "", text)
            for number, text in enumerate(texts)
        ),
    )


def found(phrase: str, *texts: str) -> list[str]:
    """What stands in the original at every mention."""
    by_key = {f"s-{number}": text for number, text in enumerate(texts)}
    return [
        by_key[mention.section][mention.start : mention.end]
        for mention in claims.mentions(phrase, sheet(*texts))
    ]


def only(claim: str, of: BotSheet) -> claims.Support:
    (support,) = claims.support(claim, of)
    return support


# ---- mentions ----


@pytest.mark.parametrize(
    ("phrase", "text", "stands"),
    [
        ("opens AT ten", "The castle Opens at ten.", "Opens at ten"),
        ("the castle's gate", "See the castle’s gate.", "the castle’s gate"),
        ("the castle’s gate", "See the castle's gate.", "the castle's gate"),
        ('"keep"', "They call it “keep” here.", "“keep”"),
        ("10-17", "Open 10–17 daily.", "10–17"),
        ("10—17", "Open 10-17 daily.", "10-17"),
        ("at five", "It closes at\u00a0five.", "at\u00a0five"),
        ("at five", "It closes at \n\n five.", "at \n\n five"),
        ("at\u202ffive", "It closes at five.", "at five"),
        ("coffee", "Fresh co\u00adffee.", "co\u00adffee"),
        ("office", "The oﬃce is open.", "oﬃce"),
        ("STRASSE", "In der Straße.", "Straße"),
        ("café", "The cafe\u0301 is open.", "cafe\u0301"),
        ("½ hour", "About 1⁄2 hour.", "1⁄2 hour"),
        ("５ pounds", "It is 5 pounds.", "5 pounds"),
        ("한국", "여기는 한국 입니다", "한국"),
        ("城堡", "這座城堡十點開門。", "城堡"),
    ],
)
def test_a_phrase_is_found_whatever_no_reader_sees_and_shown_as_it_stands(
    phrase: str, text: str, stands: str
) -> None:
    assert found(phrase, text) == [stands]


def test_every_place_in_every_section_is_found_in_reading_order() -> None:
    mentions = claims.mentions("five", sheet("At five. At FIVE.", "Never.", "Five"))

    assert [(m.section, m.start, m.end) for m in mentions] == [
        ("s-0", 3, 7),
        ("s-0", 12, 16),
        ("s-2", 0, 4),
    ]


def test_places_after_letters_that_fold_to_several_are_still_right() -> None:
    text = "ﬁne ﬂags, Straße, İzmir, cafe\u0301\u00ad: at five"

    assert found("at five", text) == ["at five"]


@pytest.mark.parametrize("phrase", ["", " ", "\u200b", "\u00ad", "six"])
def test_what_is_nothing_or_does_not_stand_there_is_not_found(phrase: str) -> None:
    assert found(phrase.strip(), "It closes at five.") == []


def test_a_phrase_is_not_found_across_two_sections() -> None:
    assert found("five. Last", "It closes at five.", "Last entry is at four.") == []


@pytest.mark.parametrize("phrase", [".*", "five.", "(", "\\", "a" * 2_000])
def test_a_phrase_is_no_pattern(phrase: str) -> None:
    assert found(phrase, f"It closes at {phrase}") == [phrase]


def test_phrases_that_people_type_do_not_fill_the_memory() -> None:
    assert folding.needle.cache_info().maxsize is not None


# ---- support: found, and what is missing ----


def test_a_claim_that_stands_there_is_found_whole() -> None:
    support = only("It closes at five.", sheet(HOURS))

    assert (support.share, support.missing) == (1.0, ())
    assert (support.section, support.heading) == ("s-0", "Visiting 0")
    assert support.passage == "It closes at five."
    assert support.is_found


def test_the_same_words_in_other_forms_and_another_order_are_found() -> None:
    support = only("At five the castle was closing.", sheet("Castles close at five."))

    assert support.share == 1.0


def test_a_claim_that_does_not_stand_there_is_not_found_and_names_its_words() -> None:
    support = only("Dragons guard the treasury!", sheet(HOURS))

    assert (support.section, support.passage, support.share) == ("", "", 0.0)
    assert support.missing == ("Dragons", "guard", "treasury")
    assert not support.is_found


@pytest.mark.parametrize(
    ("claim", "text", "missing"),
    [
        ("It was built in 1267.", "It was built in 1268.", ("1267",)),
        ("Tickets cost £12.50.", "Tickets cost £12.", ("£12.50",)),
        ("It seats 1,200 guests.", "It seats 1,300 guests.", ("1,200",)),
        ("It closes at 16:30.", "It closes at 16:00.", ("16:30",)),
        ("It is open 10–17.", "It is open 10–18.", ("10–17",)),
        ("It is open 10-17.", "It is open 10-18.", ("10-17",)),
        ("Call 01222/55501.", "Call 01222/55502.", ("01222/55501",)),
        ("It has 3 towers and 40 rooms.", "It has towers and rooms.", ("3", "40")),
    ],
)
def test_numbers_that_the_passage_lacks_are_named(
    claim: str, text: str, missing: tuple[str, ...]
) -> None:
    support = only(claim, sheet(text))

    assert support.missing == missing
    assert support.share < 1.0


def test_a_word_of_two_parts_is_named_if_one_part_is_missing() -> None:
    assert only("The half-timbered hall.", sheet("The half hall.")).missing == ("half-timbered",)


def test_what_is_missing_is_named_once_as_written_without_its_marks() -> None:
    support = only("“Dragons”, (dragons) and Dragons: castle.", sheet("The castle."))

    assert support.missing == ("Dragons", "dragons")


def test_each_sentence_of_a_claim_is_looked_for_by_itself() -> None:
    supports = claims.support("It closes at five. Dragons fly.", sheet(HOURS))

    assert [(s.claim, s.is_found) for s in supports] == [
        ("It closes at five.", True),
        ("Dragons fly.", False),
    ]


@pytest.mark.parametrize("claim", ["", "   ", "\n\n", "?!", "—", "Is it not? That it is.", "🏰"])
def test_a_claim_that_says_nothing_has_no_answer(claim: str) -> None:
    assert claims.support(claim, sheet(HOURS)) == ()


def test_a_sentence_that_says_nothing_is_left_out_among_others() -> None:
    supports = claims.support("It is so. It closes at five.", sheet(HOURS))

    assert [support.claim for support in supports] == ["It closes at five."]


# ---- support: how near ----

FOUR = "Apples are red. Bananas are yellow. Cherries are dark. Dates are sweet."


def test_three_neighbouring_sentences_bear_a_claim_out_together() -> None:
    support = only("Apples, bananas and cherries.", sheet(FOUR))

    assert support.share == 1.0
    assert support.passage == "Apples are red. Bananas are yellow. Cherries are dark."


def test_a_fourth_sentence_is_too_far() -> None:
    support = only("Apples, bananas, cherries and dates.", sheet(FOUR))

    assert support.missing == ("dates",)
    assert support.passage == "Apples are red. Bananas are yellow. Cherries are dark."


def test_words_from_all_over_a_sheet_do_not_add_up() -> None:
    support = only(
        "Apples, bananas and cherries.",
        sheet("Apples are red.", "Bananas are yellow.", "Cherries are dark."),
    )

    assert support.share < 0.5
    assert not support.is_found


def test_sentences_on_both_sides_of_a_paragraph_are_neighbours() -> None:
    support = only("Apples and bananas.", sheet("Apples are red.\n\nBananas are yellow."))

    assert support.passage == "Apples are red.\n\nBananas are yellow."


def test_the_heading_of_a_section_counts_with_its_text() -> None:
    of = sheet("It closes at five.", heading="Treasury")

    assert only("The treasury closes at five.", of).missing == ()


def test_of_passages_as_near_the_shortest_is_shown() -> None:
    support = only("Cherries.", sheet(FOUR))

    assert support.passage == "Cherries are dark."


def test_of_passages_alike_the_first_is_shown_always() -> None:
    of = sheet("It closes at five.", "It closes at five.", "It closes at five.")

    assert {only("It closes at five.", of).section for _ in range(20)} == {"s-0"}


def test_the_nearest_passage_is_shown_wherever_it_stands() -> None:
    of = sheet("The moat closes.", "The keep closes at five.", "Five.")

    assert only("The keep closes at five.", of).section == "s-1"


def test_rare_words_weigh_more_than_common_ones() -> None:
    of = sheet("The people came one day to the castle.", "The portcullis.")

    assert only("The portcullis castle people day.", of).share != 0.5
    assert only("People and portcullis.", of).section == "s-1"


@pytest.mark.parametrize(
    ("share", "is_found"), [(0.0, False), (0.49, False), (0.5, True), (1.0, True)]
)
def test_half_of_what_a_claim_says_is_enough(share: float, is_found: bool) -> None:
    support = claims.Support("A claim.", "s-0", "Visiting", "A passage.", share, ())

    assert support.is_found is is_found


# ---- support: sheets and languages ----


@pytest.mark.parametrize("of", [sheet(), sheet(""), sheet("", ""), sheet(" \n ")])
def test_in_a_sheet_without_text_nothing_is_found_and_all_is_missing(of: BotSheet) -> None:
    support = only("It closes at five.", of)

    assert (support.section, support.share, support.missing) == ("", 0.0, ("closes", "five"))


@pytest.mark.parametrize(
    ("language", "text", "claim", "missing"),
    [
        ("de", "Das Schloss öffnet um zehn Uhr.", "Die Schlösser öffnen um elf.", ("elf",)),
        ("fr", "Le château ouvre à dix heures.", "Les chateaux ouvre à onze.", ("onze",)),
        ("cy", "Mae'r castell ar agor am ddeg.", "castell agor unarddeg", ("unarddeg",)),
        ("ru", "Замок открывается в десять.", "замок открывается в полдень", ("полдень",)),
        ("xx", "Kastelo malfermiĝas je 10.", "Kastelo je 11", ("11",)),
    ],
)
def test_other_languages_are_compared_by_their_own_words(
    language: str, text: str, claim: str, missing: tuple[str, ...]
) -> None:
    support = only(claim, sheet(text, language=language, heading="-"))

    assert support.missing == missing
    assert support.is_found


def test_a_text_without_blanks_is_found_where_it_stands_alike() -> None:
    support = only("城堡十點開門。", sheet("城堡十點開門。五點關門。", language="zh"))

    assert (support.share, support.passage) == (1.0, "城堡十點開門。")


# ---- every sentence of the demo sheets ----


@cache
def sentences(name: str) -> tuple[str, ...]:
    return tuple(
        span.of(section.text)
        for section in demo.sheet(name).sections
        for span in chunking.sentences(section.text)
    )


@pytest.mark.parametrize("name", ["cafe", "castle"])
def test_every_sentence_of_a_sheet_is_found_in_it_whole(name: str) -> None:
    of = demo.sheet(name)

    for sentence in sentences(name):
        supports = claims.support(sentence, of)

        assert [(s.claim, s.share, s.missing) for s in supports] == [(sentence, 1.0, ())]
        assert sentence in supports[0].passage or len(supports[0].passage) <= len(sentence)
    assert len(sentences(name)) > 20


@pytest.mark.parametrize("name", ["cafe", "castle"])
def test_every_sentence_of_a_sheet_stands_in_it_word_for_word(name: str) -> None:
    of = demo.sheet(name)
    texts = {section.key: section.text for section in of.sections}

    for sentence in sentences(name):
        mentions = claims.mentions(sentence.upper(), of)

        assert mentions
        assert {texts[m.section][m.start : m.end].casefold() for m in mentions} == {
            sentence.casefold()
        }


@pytest.mark.parametrize(("of", "other"), [("cafe", "castle"), ("castle", "cafe")])
def test_something_is_missing_just_where_the_share_is_not_whole(of: str, other: str) -> None:
    supports: list[Any] = [
        support
        for sentence in sentences(other)
        for support in claims.support(sentence, demo.sheet(of))
    ]

    assert [s.claim for s in supports if (s.share == 1.0) is not (s.missing == ())] == []
    assert [s.claim for s in supports if s.is_found and s.share < claims.ENOUGH] == []
