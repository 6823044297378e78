"""Schedules in words: `at 8:05, 9:05 … 17:05 on days 1, 3 and 5`."""

from __future__ import annotations

from collections.abc import Sequence

from aioflow.service.schedules.cron import CronField, CronLine
from aioflow.service.schedules.schedule import Interval, Schedule
from aioflow.values.quantities import count_text

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LISTED_TIMES = 4
_LISTED_NUMBERS = 8
_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def describe(schedule: Schedule) -> str:
    """Return a schedule in words, without its time zone."""
    if isinstance(schedule.rule, Interval):
        return f"every {_duration(schedule.rule.seconds)}"
    line = schedule.rule
    parts = (_times(line), _days(line), _months(line.month), _years(line.year))
    return " ".join(part for part in parts if part)


def _duration(length: float) -> str:
    for unit, noun in _UNITS:
        if length == unit:
            return noun
        if length > unit and length % unit == 0:
            return count_text(int(length // unit), noun)
    return f"{length:g} seconds"


def _times(line: CronLine) -> str:
    minute, hour = line.minute, line.hour
    if hour.is_any:
        return _minutes(minute) or f"{_at_minutes(minute)} of every hour"
    if minute.is_any:
        return f"every minute of {_numbers('hour', hour.values)}"
    times = [f"{at}:{past:02}" for at in hour.values for past in minute.values]
    if len(times) > _LISTED_TIMES:
        return f"at {times[0]}, {times[1]} … {times[-1]}"
    return f"at {_listed(times)}"


def _minutes(minute: CronField) -> str | None:
    """Return the words for minutes at one distance over the whole hour."""
    if minute.is_any:
        return "every minute"
    distance = minute.values[1] - minute.values[0] if len(minute.values) > 1 else 60
    if minute.values == tuple(range(0, 60, distance)) and 60 % distance == 0:
        return "every hour" if distance == 60 else f"every {distance} minutes"
    return None


def _at_minutes(minute: CronField) -> str:
    return f"at {_numbers('minute', minute.values)}"


def _days(line: CronLine) -> str:
    day = "" if line.day.is_any else f"on {_numbers('day', line.day.values)}"
    weekday = "" if line.weekday.is_any else _weekdays(line.weekday.values)
    if not (day and weekday):
        return day or (weekday and f"on {weekday}")
    return f"{day} or on {weekday}" if line.either_day else f"{day}, only on {weekday}"


def _weekdays(values: Sequence[int]) -> str:
    week = [value or 7 for value in values]
    names = [f"{_WEEKDAYS[value % 7]}s" for value in sorted(week)]
    if len(names) > 2 and sorted(week) == list(range(min(week), max(week) + 1)):
        return f"{names[0]} to {names[-1]}"
    return _listed(names)


def _months(month: CronField) -> str:
    return "" if month.is_any else f"in {_listed([_MONTHS[value - 1] for value in month.values])}"


def _years(year: CronField) -> str:
    return "" if year.is_any else f"in {_shortened(year.values)}"


def _numbers(noun: str, values: Sequence[int]) -> str:
    return f"{noun if len(values) == 1 else noun + 's'} {_shortened(values)}"


def _shortened(values: Sequence[int]) -> str:
    if len(values) > 2 and list(values) == list(range(values[0], values[-1] + 1)):
        return f"{values[0]} to {values[-1]}"
    texts = [str(value) for value in values]
    return f"{texts[0]}, {texts[1]} … {texts[-1]}" if len(texts) > _LISTED_NUMBERS else _listed(texts)


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
