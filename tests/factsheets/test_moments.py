"""A day or an instant as people write it: which instant is meant, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from factsheets import moments
from factsheets.moments import MomentRefused

LONDON = ZoneInfo("Europe/London")
NOW = datetime(2026, 11, 30, 15, 30, tzinfo=UTC)


def read(text: str, zone: str = "Europe/London", now: datetime = NOW) -> str:
    """The instant that is meant, in UTC, written out."""
    found = moments.read(text, zone=ZoneInfo(zone), now=now)
    assert found.tzinfo is UTC
    return f"{found:%Y-%m-%d %H:%M:%S.%f}"


def refusal(text: str, zone: str = "Europe/London", now: datetime = NOW) -> str:
    with pytest.raises(MomentRefused) as refused:
        moments.read(text, zone=ZoneInfo(zone), now=now)
    return refused.value.sentence


# ---- days ----


def test_a_day_means_its_last_instant_in_winter() -> None:
    assert read("2026-01-15") == "2026-01-15 23:59:59.999999"


def test_a_day_means_its_last_instant_in_the_zone_and_not_in_utc() -> None:
    assert read("2026-07-15") == "2026-07-15 22:59:59.999999"


@pytest.mark.parametrize(
    ("day", "end"),
    [
        ("2026-03-28", "2026-03-28 23:59:59.999999"),
        # Of twenty-three hours.
        ("2026-03-29", "2026-03-29 22:59:59.999999"),
        ("2026-10-24", "2026-10-24 22:59:59.999999"),
        # Of twenty-five.
        ("2026-10-25", "2026-10-25 23:59:59.999999"),
    ],
)
def test_a_day_on_which_the_clocks_change_ends_by_its_new_time(day: str, end: str) -> None:
    assert read(day) == end


@pytest.mark.parametrize(
    ("zone", "day", "end"),
    [
        # Midnight does not come: the next day begins at one.
        ("America/Asuncion", "2023-09-30", "2023-10-01 03:59:59.999999"),
        ("Asia/Beirut", "2024-03-30", "2024-03-30 21:59:59.999999"),
        # The last hour comes twice, and the day has both.
        ("America/Asuncion", "2024-03-23", "2024-03-24 03:59:59.999999"),
        ("Asia/Beirut", "2024-10-26", "2024-10-26 21:59:59.999999"),
        # The first hour of the next day comes twice; it begins with the first of them.
        ("America/Havana", "2024-11-02", "2024-11-03 03:59:59.999999"),
    ],
)
def test_a_day_ends_where_the_next_begins_though_clocks_change_at_midnight(
    zone: str, day: str, end: str
) -> None:
    assert read(day, zone) == end


def test_days_far_east_end_before_the_day_of_utc_does() -> None:
    assert read("2026-05-03", "Pacific/Kiritimati") == "2026-05-03 09:59:59.999999"


def test_a_day_that_a_zone_left_out_ends_with_the_day_before() -> None:
    assert read("2011-12-30", "Pacific/Apia") == read("2011-12-29", "Pacific/Apia")
    assert read("2011-12-29", "Pacific/Apia") == "2011-12-30 09:59:59.999999"


@pytest.mark.parametrize(
    "zone",
    [
        "Europe/London",
        "America/Asuncion",
        "Asia/Beirut",
        "America/Havana",
        "Pacific/Kiritimati",
        "Pacific/Chatham",
    ],
)
def test_days_lie_one_after_another_without_a_gap(zone: str) -> None:
    for back in range(1, 800):
        day = NOW.astimezone(ZoneInfo(zone)).date() - timedelta(days=back)

        end = moments.read(day.isoformat(), zone=ZoneInfo(zone), now=NOW)

        after = end + timedelta(microseconds=1)
        assert end.astimezone(ZoneInfo(zone)).date() == day
        assert after.astimezone(ZoneInfo(zone)).date() == day + timedelta(days=1)


def test_today_means_up_to_now() -> None:
    assert read("2026-11-30") == "2026-11-30 15:30:00.000000"


def test_today_is_today_in_the_zone() -> None:
    evening = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)

    assert read("2026-12-01", "Europe/Berlin", evening) == "2026-11-30 23:30:00.000000"
    assert "still to come" in refusal("2026-12-01", "Europe/London", evening)


def test_today_is_over_at_midnight_exactly() -> None:
    midnight = datetime(2026, 12, 1, tzinfo=UTC)

    assert read("2026-11-30", now=midnight) == "2026-11-30 23:59:59.999999"
    assert read("2026-12-01", now=midnight) == "2026-12-01 00:00:00.000000"


def test_a_leap_day_is_a_day() -> None:
    assert read("2024-02-29") == "2024-02-29 23:59:59.999999"


def test_a_leap_day_of_another_year_is_none() -> None:
    assert refusal("2026-02-29") == moments_sentence()


# ---- instants ----


def moments_sentence() -> str:
    return "Give a day such as 2026-05-03, or an instant such as 2026-05-03T14:30:00Z."


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-05-03T14:30:00Z", "2026-05-03 14:30:00.000000"),
        ("2026-05-03T14:30Z", "2026-05-03 14:30:00.000000"),
        ("2026-05-03 14:30:00Z", "2026-05-03 14:30:00.000000"),
        ("2026-05-03T14:30:00.123456Z", "2026-05-03 14:30:00.123456"),
        ("2026-05-03T14:30:00+00:00", "2026-05-03 14:30:00.000000"),
        ("2026-05-03T14:30:00+02:00", "2026-05-03 12:30:00.000000"),
        ("2026-05-03T14:30:00-05:30", "2026-05-03 20:00:00.000000"),
        ("2026-05-03T00:30:00+14:00", "2026-05-02 10:30:00.000000"),
    ],
)
def test_an_instant_says_its_offset(text: str, instant: str) -> None:
    assert read(text) == instant


def test_an_instant_as_we_write_it_ourselves_reads_back() -> None:
    assert read("2026-05-03T22:59:59.999999Z") == read("2026-05-03")


def test_an_instant_without_an_offset_is_taken_in_the_zone() -> None:
    assert read("2026-07-01T12:00") == "2026-07-01 11:00:00.000000"
    assert read("2026-07-01T12:00", "Pacific/Kiritimati") == "2026-06-30 22:00:00.000000"


def test_of_an_hour_that_comes_twice_the_first_is_meant() -> None:
    assert read("2026-10-25T01:30") == "2026-10-25 00:30:00.000000"


def test_an_hour_that_does_not_come_is_read_by_the_time_before_the_change() -> None:
    assert read("2026-03-29T01:30") == "2026-03-29 01:30:00.000000"


def test_now_is_not_still_to_come() -> None:
    assert read("2026-11-30T15:30:00Z") == "2026-11-30 15:30:00.000000"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30T15:30:00.000001Z",
        "2026-11-30T16:30:00+00:30",
        "2026-12-01",
        "2027-01-01",
        "9999-12-31",
        "9999-12-31T00:00:00Z",
    ],
)
def test_what_is_still_to_come_is_refused_by_its_name(text: str) -> None:
    assert refusal(text) == f"{text} is still to come; give a day or an instant up to now."


# ---- what is neither ----


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "now",
        "today",
        "yesterday",
        "1",
        "0",
        "-1",
        "2026",
        "2026-05",
        "2026-5-3",
        "03/05/2026",
        "3 May 2026",
        "2026-00-01",
        "2026-13-01",
        "2026-04-31",
        "0000-01-01",
        "10000-01-01",
        "-2026-05-03",
        " 2026-05-03",
        "2026-05-03 ",
        "2026-05-03\n",
        "２０２６-０５-０３",
        "٢٠٢٦-٠٥-٠٣",
        "2026‐05‐03",
        "2026-05-03T",
        "2026-05-03T14",
        "2026-05-03T25:00",
        "2026-05-03T14:60",
        "2026-05-03x14:30",
        "2026-05-03T14:30 01:00",
        "2026-05-03T14:30:00Q",
        "2026-05-03T14:30:00+99:00",
        "2026-05-03T14:30:00Z; DROP TABLE",
        "2026-05-03\x00",
        "2026-05-03T14:30:00\ud800",
        "9" * 5_000,
    ],
)
def test_nonsense_is_refused_with_an_example_of_what_to_write(text: str) -> None:
    assert refusal(text) == moments_sentence()


@pytest.mark.parametrize(
    "text", ["20260503", "2026-W01-1", "2026W011", "2026-W01", "2026-123", "2026123"]
)
def test_a_day_in_any_other_form_is_refused_rather_than_taken_for_its_first_instant(
    text: str,
) -> None:
    assert refusal(text) == moments_sentence()


@pytest.mark.parametrize(
    "text", ["20260503T143000Z", "20260503T1430", "2026-W01-1T14:30:00Z", "2026W011T1430"]
)
def test_an_instant_has_one_form_of_its_day(text: str) -> None:
    assert refusal(text) == moments_sentence()


@pytest.mark.parametrize("zone", ["Europe/London", "Pacific/Kiritimati", "America/Asuncion"])
def test_the_first_day_of_the_calendar_is_read_or_refused_with_a_sentence(zone: str) -> None:
    found = moments.read("0001-01-01", zone=ZoneInfo(zone), now=NOW)

    assert found.astimezone(ZoneInfo(zone)).isoformat().startswith("0001-01-01T23:59:59")


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("0001-01-01T00:00:00+14:00", "Europe/London"),
        # Before the calendar begins on the clocks of the zone, so nobody could be shown it.
        ("0001-01-01T00:00:00Z", "Europe/London"),
        ("9999-12-31T23:59:59Z", "Pacific/Kiritimati"),
        ("9999-12-31T23:59:59-14:00", "Europe/London"),
    ],
)
def test_an_instant_outside_the_calendar_is_refused(text: str, zone: str) -> None:
    assert refusal(text, zone) == moments_sentence()


def test_a_refusal_has_a_code_for_programs() -> None:
    with pytest.raises(MomentRefused) as refused:
        moments.read("nonsense", zone=LONDON, now=NOW)

    assert refused.value.code == "moment-refused"
