"""The times of checks as schedules: an interval, or a cron line if there are hours of the week."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

_UNITS = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
_DEFAULT_SECONDS = 3 * 3600
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_WHOLE_DAY = 24 * 60
_LONGEST_SECONDS = 10 * 366 * 86_400


class CheckTimes(msgspec.Struct, frozen=True):
    """A schedule, its time zone if it depends on one, and notes on the times that it does not keep."""

    schedule: str
    zone: str | None = None
    notes: tuple[str, ...] = ()


class _Window(msgspec.Struct, frozen=True):
    days: tuple[int, ...]
    start: int  # minutes of the day
    length: int


def interval_seconds(*candidates: object) -> int:
    """Return the first interval that is one, in seconds; the default of changedetection.io otherwise."""
    for each in candidates:
        if isinstance(each, dict):
            parts = [_whole(each.get(unit)) * seconds for unit, seconds in _UNITS.items()]
            if 0 < sum(parts) <= _LONGEST_SECONDS:
                return sum(parts)
        elif _whole(each) > 0:  # minutes, in old backups
            return min(_whole(each) * 60, _LONGEST_SECONDS)
    return _DEFAULT_SECONDS


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        return max(0, int(float(value)))
    except (ValueError, OverflowError):
        return 0


def check_times(seconds: int, limit: Mapping[str, Any], default_zone: str | None) -> CheckTimes:
    """Return the schedule for an interval and the hours of the week that checks are limited to."""
    plain = f"every {duration(seconds)}"
    if limit.get("enabled") is not True:
        return CheckTimes(plain)
    windows = _windows(limit)
    if (
        all(window.length >= _WHOLE_DAY for window in windows)
        and sum(len(each.days) for each in windows) == 7
    ):
        return CheckTimes(plain)
    zone = limit.get("timezone") or default_zone
    line = _cron_line(seconds, windows[0]) if len(windows) == 1 else None
    if line is None:
        note = (
            "Checks were limited to hours of the week, which one cron line cannot say; it runs all the time."
        )
        return CheckTimes(plain, notes=(note,))
    return CheckTimes(line, zone if isinstance(zone, str) and zone.strip() else None)


def duration(seconds: int) -> str:
    """Return a number of seconds as schedules write it: `1h30m`."""
    text = ""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        text += f"{count}{unit}" if count else ""
    return text


def _windows(limit: Mapping[str, Any]) -> list[_Window]:
    """Return the hours of the week; days with the same hours are together."""
    days: dict[tuple[int, int], list[int]] = {}
    for number, name in enumerate(_DAYS):
        day = limit.get(name)
        if isinstance(day, dict) and day.get("enabled", True) is not False:
            length = day.get("duration")
            length = length if isinstance(length, dict) else {"hours": 24}
            minutes = _whole(length.get("hours")) * 60 + _whole(length.get("minutes"))
            clock = _CLOCK.fullmatch(str(day.get("start_time", "00:00")))
            start = int(clock[1]) * 60 + int(clock[2]) if clock else 0
            days.setdefault((start, minutes), []).append(number)
    return [_Window(tuple(numbers), start, length) for (start, length), numbers in days.items()]


def _cron_line(seconds: int, window: _Window) -> str | None:
    """Return a line for whole hours of a day and an interval that fits them, if there is one."""
    first, minute = divmod(window.start, 60)
    last = first + window.length // 60 - 1
    if minute or window.length % 60 or not window.days or not first <= last <= 23:
        return None
    days = "*" if len(window.days) == 7 else ",".join(map(str, window.days))
    hours = "*" if (first, last) == (0, 23) else f"{first}-{last}" if last > first else f"{first}"
    minutes, rest = divmod(seconds, 60)
    if rest or not minutes:
        return None
    if minutes <= 60 and 60 % minutes == 0:
        step = "*" if minutes == 1 else "0" if minutes == 60 else f"*/{minutes}"
        return f"{step} {hours} * * {days}"
    if minutes % 60 == 0 and minutes < _WHOLE_DAY:
        return f"0 {first}-{last}/{minutes // 60} * * {days}" if last > first else f"0 {first} * * {days}"
    return f"0 {first} * * {days}" if minutes == _WHOLE_DAY else None
