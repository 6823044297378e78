"""`Retry-After` as hosts send it: right, late, early, wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from aioflow.web.retry_after import parse_date, retry_after_seconds

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()


def after(value: str | None, date: str | None = None, wall: float = NOON) -> float | None:
    headers: CIMultiDict[str] = CIMultiDict()
    if value is not None:
        headers["retry-after"] = value
    if date is not None:
        headers["date"] = date
    return retry_after_seconds(headers, wall)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("  7\t", 7),
        ("1.5", 1.5),
        ("2.", 2),
        ("007", 7),
        ("-5", 0),  # over long ago
        ("-0.5", 0),
        ("99999999999999999999", 1e20),
    ],
)
def test_seconds(value: str, seconds: float) -> None:
    assert after(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 01 Mar 2026 12:02:00 GMT",
        "Sunday, 01-Mar-26 12:02:00 GMT",
        "Sun Mar  1 12:02:00 2026",
        "sun, 01 mar 2026 12:02:00 utc",
        "Fri, 01 Mar 2026 12:02:00 GMT",  # not a Friday, but the date is clear
    ],
)
def test_dates_of_all_three_forms(value: str) -> None:
    assert after(value) == 120


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("Sun, 01 Mar 2026 11:59:59 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Tuesday, 01-Mar-77 12:00:00 GMT", 0),  # 1977: more than 50 years ahead is the past
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799 - NOON),
        ("Sun, 01 Mar 2026 12:00:60 GMT", 59),  # a leap second
    ],
)
def test_dates_that_are_past_or_far_ahead(value: str, seconds: float) -> None:
    assert after(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        "soon",
        "1e3",
        "1_000",
        "+5",
        "0x10",
        "nan",
        "inf",
        "-inf",
        "--5",
        "1.2.3",
        ".5",
        "5 seconds",
        "5;q=1",
        "٣",
        "１２",
        "12é",
        "½",
        "Sun, 30 Feb 2026 12:00:00 GMT",
        "Sun, 01 Mar 2026 25:00:00 GMT",
        "Sun, 01 Mrz 2026 12:00:00 GMT",
        "Sun, 01 Mar 2026 12:00:00 CET",
        "Sun, 01 Mar 0000 12:00:00 GMT",
        "2026-03-01T12:02:00Z",
        "9" * 5000,
        "5," * 5000,
    ],
)
def test_what_makes_no_sense_says_nothing(value: str | None) -> None:
    assert after(value) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5, 10", 10),
        ("10,5", 10),
        ("-5, -10", 0),
        ("5,", 5),
        ("5, Sun, 01 Mar 2026 12:02:00 GMT", 120),
        ("Sun, 01 Mar 2026 12:02:00 GMT, Sun, 01 Mar 2026 12:01:00 GMT", 120),
        ("Sunday, 01-Mar-26 12:02:00 GMT , 7", 120),
        ("5, soon", None),
        ("5 10", None),
        (",5", None),
    ],
)
def test_of_several_values_the_longest_counts(value: str, seconds: float | None) -> None:
    assert after(value) == seconds


def test_a_date_is_measured_by_the_clock_of_the_host_itself() -> None:
    wrong_by_a_year = NOON - 365 * 86400
    value, date = "Sun, 01 Mar 2026 12:02:00 GMT", "Sun, 01 Mar 2026 12:01:30 GMT"
    assert after(value, date, wrong_by_a_year) == 30
    assert after(value, "no date", NOON) == 120
    assert after("5", date, wrong_by_a_year) == 5


@settings(deadline=None)
@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1)))
def test_every_date_is_read_as_it_was_written(when: datetime) -> None:
    when = when.replace(microsecond=0, tzinfo=UTC)
    assert parse_date(format_datetime(when, usegmt=True)) == when.timestamp()
    assert parse_date(when.strftime("%a %b ") + f"{when.day:2d}" + when.strftime(" %H:%M:%S %Y")) == (
        when.timestamp()
    )


@settings(deadline=None)
@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    found = after(text, text)
    assert found is None or found >= 0
