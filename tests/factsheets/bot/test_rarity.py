from __future__ import annotations

from importlib import resources

import pytest

from factsheets.bot import rarity
from scripts import make_rarity


def table_lines() -> list[str]:
    text = (resources.files("factsheets") / rarity.TABLE).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(
    ("common", "rare"), [("time", "castl"), ("open", "ticket"), ("day", "scone"), ("peopl", "moat")]
)
def test_a_word_of_every_day_is_less_rare_than_one_of_a_subject(common, rare):
    assert rarity.of(common, "en-GB") < rarity.of(rare, "en-GB")


def test_a_stem_that_the_table_lacks_is_rarer_than_any_it_has():
    rarest = max(float(line.split()[1]) for line in table_lines())

    assert rarity.of("camulodunum", "en") == rarity.highest() > rarest


def test_in_other_languages_every_word_weighs_alike():
    assert rarity.of("time", "de-AT") == rarity.of("castl", "de-AT") == rarity.highest()


def test_a_share_weighs_each_stem_by_its_rarity():
    time, castle = rarity.of("time", "en"), rarity.of("castl", "en")

    share = rarity.share({"castl", "other"}, {"castl", "time"}, "en")

    assert share == pytest.approx(castle / (castle + time))


def test_a_share_of_nothing_is_none():
    assert rarity.share({"castl"}, set(), "en") == 0.0


def test_the_table_is_small_sorted_and_without_doubles():
    stems = [line.split()[0] for line in table_lines()]

    assert 5_000 <= len(stems) <= 10_000
    assert stems == sorted(set(stems))


def test_the_table_is_made_alike_from_the_same_texts(tmp_path):
    kind = tmp_path / "kind"
    kind.mkdir()
    (kind / "b.txt").write_text("castle gate " * 3_000, encoding="utf-8")
    (kind / "a.txt").write_text("castle " * 600, encoding="utf-8")

    first, second = make_rarity.table([kind]), make_rarity.table([kind])

    assert first == second
    assert first["castl"] == 0.0
    assert first["gate"] == pytest.approx(0.0414, abs=0.001)


def test_no_kind_of_text_drowns_the_others(tmp_path):
    long, short = tmp_path / "long.txt", tmp_path / "short.txt"
    long.write_text("tower " * make_rarity.BLOCK * (2 * make_rarity.MOST_BLOCKS), encoding="utf-8")
    short.write_text("letter " * make_rarity.BLOCK * 100, encoding="utf-8")

    made = make_rarity.table([long, short])

    lent = make_rarity.MOST_BLOCKS
    assert 10 ** made["letter"] == pytest.approx((lent + 100) / 100)


def test_a_stem_in_a_handful_of_blocks_is_left_to_chance(tmp_path):
    kind = tmp_path / "kind.txt"
    kind.write_text("tower " * make_rarity.BLOCK * 50 + "moat", encoding="utf-8")

    assert list(make_rarity.table([kind])) == ["tower"]
