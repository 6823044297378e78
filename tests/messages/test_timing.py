"""The texts of DIGEST, DEBOUNCE and QUIET, and the times that they mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aioflow.errors import InputError, SettingError
from aioflow.messages.timing import Debounce, DigestTimes, MessageTiming, QuietHours, quiet_setting

SATURDAY_NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("hourly", "2026-01-31T13:00"),
        ("daily 08:00 UTC", "2026-02-01T08:00"),
        ("Daily 8:00 Europe/Berlin", "2026-02-01T07:00"),
        ("weekly mon 08:00 UTC", "2026-02-02T08:00"),
        ("weekly Saturday 11:30 UTC", "2026-02-07T11:30"),
        ("0 8,18 * * * UTC", "2026-01-31T18:00"),
        ("@daily Europe/Berlin", "2026-01-31T23:00"),
        ("every 15m", "2026-01-31T12:15"),
    ],
)
def test_a_digest_is_due_at_the_next_of_its_times(text: str, due: str) -> None:
    assert DigestTimes.bind(text, ()).next_after(SATURDAY_NOON) == utc(due)


@pytest.mark.parametrize(
    ("text", "words", "offset"),
    [
        ("daily", "the time is missing, as in 'daily 08:00'", None),
        ("daily 25:00", "'25:00' is no time of day", 6),
        ("daily 08:00 Europe/Berlim", "unknown time zone 'Europe/Berlim'; did you mean", 12),
        ("daily 08:00 UTC now", "'now' stands after the time zone", 16),
        ("weekly", "the day and the time are missing", None),
        ("weekly man 08:00", "unknown day 'man'; did you mean 'mon'?", 7),
        ("dayly 08:00", "not 'dayly'; did you mean 'daily'?", 0),
        ("0 99 * * *", "hour: 99 is not between 0 and 23", 2),
        ("  0 8 1 1 * 2001", "'0 8 1 1 * 2001' never comes", None),
        ("", "must be the times of a digest", None),
    ],
)
def test_a_wrong_text_of_a_digest_is_a_mistake_at_its_place(
    text: str, words: str, offset: int | None
) -> None:
    with pytest.raises(SettingError) as caught:
        DigestTimes.bind(text, ())
    assert words in caught.value.message
    assert caught.value.offset == offset


def test_equal_times_are_equal_texts_however_they_are_written() -> None:
    assert DigestTimes.bind("daily  8:00   UTC", ()) == DigestTimes.bind("0  8 * * * UTC", ())


def test_a_debounce_holds_rows_up_to_ten_times_its_span() -> None:
    timing = MessageTiming(debounce=Debounce.bind("30m", ()))
    due, latest = timing.due(SATURDAY_NOON)
    assert (due - SATURDAY_NOON, latest - SATURDAY_NOON) == (timedelta(minutes=30), timedelta(hours=5))


@pytest.mark.parametrize("value", ["soon", "-5m", True, None])
def test_a_debounce_is_a_time_span(value: object) -> None:
    with pytest.raises(SettingError, match="must be a time span such as 90s"):
        Debounce.bind(value, ())


@pytest.mark.parametrize(
    ("hours", "moment", "end"),
    [
        ("22:00-07:00 UTC", "2026-01-31T21:59", "2026-01-31T21:59"),
        ("22:00-07:00 UTC", "2026-01-31T22:00", "2026-02-01T07:00"),
        ("22:00-07:00 UTC", "2026-02-01T06:59", "2026-02-01T07:00"),
        ("22:00-07:00 UTC", "2026-02-01T07:00", "2026-02-01T07:00"),
        ("12:00-14:00 UTC", "2026-01-31T13:00", "2026-01-31T14:00"),
        ("22:00 - 7:00 Europe/Berlin", "2026-01-31T21:30", "2026-02-01T06:00"),
        # Clocks are set forward in the night, and back in another.
        ("22:00-07:00 Europe/Berlin", "2026-03-28T22:00", "2026-03-29T05:00"),
        ("22:00-02:30 Europe/Berlin", "2026-03-28T22:00", "2026-03-29T01:00"),
        ("22:00-07:00 Europe/Berlin", "2026-10-24T22:00", "2026-10-25T06:00"),
        ("22:00-02:30 Europe/Berlin", "2026-10-24T22:00", "2026-10-25T00:30"),
        ("off", "2026-01-31T00:00", "2026-01-31T00:00"),
    ],
)
def test_quiet_hours_end_by_the_clocks_of_their_zone(hours: str, moment: str, end: str) -> None:
    assert QuietHours.bind(hours, ()).end_after(utc(moment)) == utc(end)


@pytest.mark.parametrize(
    ("text", "words", "offset"),
    [
        ("at night", "must be hours such as", None),
        ("22:00-24:00", "'24:00' is no time of day like 08:00", 6),
        ("22:00-22:00", "quiet hours end at another time than they begin", 6),
        ("22:00-07:00 Berlin", "unknown time zone 'Berlin'", 12),
    ],
)
def test_wrong_quiet_hours_are_a_mistake_at_their_place(text: str, words: str, offset: int | None) -> None:
    with pytest.raises(SettingError) as caught:
        QuietHours.bind(text, ())
    assert words in caught.value.message
    assert caught.value.offset == offset
    with pytest.raises(InputError, match=r"^hours such as"):
        quiet_setting(text)


def test_times_in_quiet_hours_move_to_their_end() -> None:
    quiet = QuietHours.bind("12:10-13:00 UTC", ())
    due, latest = MessageTiming(debounce=Debounce(900.0), quiet=quiet).due(SATURDAY_NOON)
    assert (due, latest) == (utc("2026-01-31T13:00"), utc("2026-01-31T14:30"))
    assert MessageTiming.of(None, None, None, "12:10-13:00 UTC").quiet == quiet
    assert MessageTiming.of(None, None, QuietHours.bind("off", ()), "12:10-13:00 UTC").quiet is None
