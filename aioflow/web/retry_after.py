"""The header `Retry-After`: seconds, a date, or one of the malformed values that hosts send."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = "(?P<month>" + "|".join(_MONTHS) + ")"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
# The three forms of RFC 9110, section 5.6.7: the one to be sent, and two that old servers send.
_DATES = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        rf"[a-z]{{3}}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} (?:GMT|UTC)",
        rf"[a-z]{{6,9}}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} (?:GMT|UTC)",
        rf"[a-z]{{3}} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})",
    )
)
_SECONDS = re.compile(r"(?P<seconds>-?\d+(?:\.\d*)?)", re.ASCII)
_NEXT = re.compile(r"\s*(?:,\s*|$)", re.ASCII)
_CHARACTERS_AT_MOST = 200


def retry_after_seconds(headers: Mapping[str, str], wall_seconds: float | None = None) -> float | None:
    """Return how long the host wants to be left alone: 0 if the time is over, None without a valid value.

    A date is compared with the `Date` of the response, so that the clocks need not agree; without that, with
    our clock or `wall_seconds`. Of several values the longest counts.
    """
    value = _value(headers)
    if value is None:
        return None
    now = parse_date(headers.get("Date", ""))
    if now is None:
        now = time.time() if wall_seconds is None else wall_seconds
    return _longest(value.strip(), now)


def _value(headers: Mapping[str, str]) -> str | None:
    """Return the header; several of them are a list (RFC 9110, section 5.3)."""
    getall = getattr(headers, "getall", None)
    if getall is None:
        return headers.get("Retry-After")
    values: list[str] = getall("Retry-After", [])
    return ", ".join(values) if values else None


def parse_date(text: str, wall_seconds: float | None = None) -> float | None:
    """Return an HTTP date as seconds since 1970; None if it is not a date."""
    for pattern in _DATES:
        if (found := pattern.fullmatch(text.strip())) is not None:
            return _timestamp(found, time.time() if wall_seconds is None else wall_seconds)
    return None


def _longest(value: str, now: float) -> float | None:
    """Return the longest time of a list; None if any of them is malformed."""
    if len(value) > _CHARACTERS_AT_MOST:
        return None
    longest: float | None = None
    position = 0
    while position < len(value):
        found = next(filter(None, (each.match(value, position) for each in (_SECONDS, *_DATES))), None)
        end = found and _NEXT.match(value, found.end())
        if found is None or not end:
            return None
        seconds = _seconds(found, now)
        if seconds is None:
            return None
        longest = max(longest or 0.0, seconds)
        position = end.end()
    return longest


def _seconds(found: re.Match[str], now: float) -> float | None:
    if found.re is _SECONDS:
        return float(found["seconds"])
    date = _timestamp(found, now)
    return None if date is None else date - now


def _timestamp(found: re.Match[str], now: float) -> float | None:
    year = int(found["year"])
    if len(found["year"]) == 2:
        # More than 50 years ahead means the century before (RFC 9110).
        this_year = datetime.fromtimestamp(now, UTC).year
        year += this_year - this_year % 100
        if year > this_year + 50:
            year -= 100
    month = _MONTHS.index(found["month"].capitalize()) + 1
    # A leap second counts as the last second of its minute.
    clock = (int(found["hour"]), int(found["minute"]), min(int(found["second"]), 59))
    try:
        return datetime(year, month, int(found["day"]), *clock, tzinfo=UTC).timestamp()
    except ValueError:
        return None
