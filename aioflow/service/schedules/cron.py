"""Lines of crontab(5): `minute hour day month weekday [year]`, and `@daily` and the like.

This module knows dates and times of day. `local_time` turns them into moments. The parsers of apscheduler,
croniter and cronsim were considered: the first is not cron (weekday 0 is Monday, days and weekdays must both
match), and none has the year, the fifth field as a year, or the position of a mistake.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator, Mapping
from datetime import date

import msgspec

from aioflow.errors import SettingError, suggestion

SHORTHANDS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIRST_YEAR, LAST_YEAR = 1970, 2199


class CronField(msgspec.Struct, frozen=True):
    """One field of a line: the values it admits, ascending, and its form."""

    values: tuple[int, ...]
    begins_with_star: bool = False
    has_star: bool = False
    has_step: bool = False

    @property
    def is_any(self) -> bool:
        """True for `*`, which admits every value."""
        return self.begins_with_star and not self.has_step

    @property
    def follows_elapsed_time(self) -> bool:
        return self.has_star or self.has_step


class _FieldKind(msgspec.Struct, frozen=True):
    name: str
    first: int
    last: int
    words: tuple[str, ...] = ()  # names of the values, from `first` on


_MINUTE = _FieldKind("minute", 0, 59)
_HOUR = _FieldKind("hour", 0, 23)
_DAY = _FieldKind("day", 1, 31)
_MONTH = _FieldKind("month", 1, 12, MONTHS)
_WEEKDAY = _FieldKind("weekday", 0, 7, WEEKDAYS)
_YEAR = _FieldKind("year", FIRST_YEAR, LAST_YEAR)
_KINDS = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY, _YEAR)

ANY_WEEKDAY = CronField(tuple(range(7)), begins_with_star=True, has_star=True)
ANY_YEAR = CronField(tuple(range(FIRST_YEAR, LAST_YEAR + 1)), begins_with_star=True, has_star=True)

_FIELD = re.compile(r"\S+")
_PART = re.compile(r"(?P<first>\*|[^-/]+)(?:-(?P<last>[^-/]+))?(?:/(?P<step>[^-/]+))?")
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
# The fifth field of a line with five is the year, as in THESEUS, if it has a number of four digits.
_IS_YEAR = re.compile(r"[0-9]{4}(?![0-9])|.*[,-][0-9]{4}(?![0-9])", re.ASCII)
_QUARTZ = re.compile(r"\?|(?:[0-9]*[LW]|[0-9]+#[0-9]+|L-[0-9]+)", re.ASCII)


class CronLine(msgspec.Struct, frozen=True):
    """The days and the times of day at which a line is due."""

    minute: CronField
    hour: CronField
    day: CronField
    month: CronField
    weekday: CronField = ANY_WEEKDAY
    year: CronField = ANY_YEAR

    @property
    def follows_elapsed_time(self) -> bool:
        """True if a clock change moves no time: the hour is `*` or has a step."""
        return self.hour.follows_elapsed_time

    @property
    def either_day(self) -> bool:
        """True if a day of the month and a weekday are named: a date must match one of them, not both."""
        return not (self.day.begins_with_star or self.weekday.begins_with_star)

    def matches(self, day: date) -> bool:
        return day.year in self.year.values and day.month in self.month.values and self._matches_day(day)

    def _matches_day(self, day: date) -> bool:
        in_month = day.day in self.day.values
        in_week = day.isoweekday() % 7 in self.weekday.values
        return in_month or in_week if self.either_day else in_month and in_week

    def dates_from(self, start: date) -> Iterator[date]:
        """Yield the dates from a day on that match, until the last year of the line."""
        for year in self.year.values[bisect_left(self.year.values, start.year) :]:
            for month in self.month.values:
                if (year, month) < (start.year, start.month):
                    continue
                days = (date(year, month, day + 1) for day in range(monthrange(year, month)[1]))
                yield from (day for day in days if day >= start and self._matches_day(day))


def parse_cron(text: str) -> CronLine:
    """Return the line that a text is; a SettingError says where it is wrong."""
    shorthand = text.strip().lower()
    if shorthand.startswith("@"):
        return _parse_shorthand(shorthand)
    found = list(_FIELD.finditer(text))
    if not 5 <= len(found) <= 6:
        raise SettingError(
            f"a schedule has five fields (minute hour day month weekday) and perhaps a year, "
            f"not {len(found)}: {text.strip()!r}; or write @daily, or every 15m",
            setting="schedule",
        )
    kinds = [*_KINDS[:4], *((_YEAR,) if len(found) == 5 and _IS_YEAR.match(found[4][0]) else _KINDS[4:])]
    fields = {
        kind.name: _parse_field(each[0], each.start(), kind) for each, kind in zip(found, kinds, strict=False)
    }
    line = CronLine(**fields)
    if not _has_dates(line):
        in_other_years = _has_dates(msgspec.structs.replace(line, year=ANY_YEAR))
        reason = "none of its years has such a day" if in_other_years else "no month of it has such a day"
        raise SettingError(
            f"{text.strip()!r} never comes: {reason}",
            setting="schedule",
            offset=found[-1 if in_other_years else 2].start(),
        )
    return line


def _has_dates(line: CronLine) -> bool:
    return any(True for _ in line.dates_from(date(line.year.values[0], 1, 1)))


def remarks(text: str) -> list[str]:
    """Return remarks on a line without mistakes, where it may not mean what it says: `*/90 * * * *`."""
    found = []
    for field, kind in zip(text.split(), _KINDS[:4], strict=False):
        for part in field.split(","):
            _, slash, step = part.partition("/")
            if slash and _NUMBER.fullmatch(step) and int(step) > kind.last - kind.first:
                found.append(
                    f"{kind.name}: the step of {part} is longer than the range, which starts anew each time: "
                    "write every 90m or the like for a time between runs"
                )
    return found


def _parse_shorthand(text: str) -> CronLine:
    if text == "@reboot":
        raise SettingError("@reboot is no time: name one, as in @hourly or every 15m", setting="schedule")
    if text not in SHORTHANDS:
        known = ", ".join(SHORTHANDS)
        raise SettingError(
            f"unknown schedule {text}{suggestion(text, SHORTHANDS)} (there are: {known})", setting="schedule"
        )
    return parse_cron(SHORTHANDS[text])


def _parse_field(text: str, offset: int, kind: _FieldKind) -> CronField:
    values: set[int] = set()
    at = offset
    for part in text.split(","):
        values |= _parse_part(part, at, kind)
        at += len(part) + 1
    if kind is _WEEKDAY:
        values = {value % 7 for value in values}
    return CronField(tuple(sorted(values)), text.startswith("*"), "*" in text, "/" in text)


def _parse_part(text: str, offset: int, kind: _FieldKind) -> set[int]:
    if _QUARTZ.fullmatch(text):
        raise _mistake(f"{text!r} is of Quartz, and not of crontab(5)", offset, kind)
    found = _PART.fullmatch(text)
    if found is None:
        raise _mistake(f"{text!r} is no value, range or step", offset, kind)
    first, last = kind.first, kind.last
    if found["first"] != "*":
        first = _value(found["first"], offset, kind)
        last = (
            first
            if found["last"] is None
            else _end_of_range(found["last"], offset + found.start("last"), kind, first)
        )
    elif found["last"] is not None:
        raise _mistake(f"{text!r} is no range: write numbers, or * alone", offset, kind)
    if last < first:
        raise _mistake(
            f"the range {text} goes backwards; write {first}-{kind.last},{kind.first}-{last}", offset, kind
        )
    step = 1
    if found["step"] is not None:
        if found["first"] != "*" and found["last"] is None:
            raise _mistake(f"a step needs a range: write {first}-{kind.last}/{found['step']}", offset, kind)
        step = _step(found["step"], offset + found.start("step"), kind)
    return set(
        range(first, min(last, 6) + 1 if found["first"] == "*" and kind is _WEEKDAY else last + 1, step)
    )


def _value(text: str, offset: int, kind: _FieldKind) -> int:
    word = text.lower()
    if word in kind.words:
        return kind.words.index(word) + kind.first
    if not _NUMBER.fullmatch(text):
        hint = suggestion(word, kind.words) if kind.words else ""
        raise _mistake(f"{text!r} is no {kind.name}{hint}", offset, kind)
    value = int(text)
    if not kind.first <= value <= kind.last:
        raise _mistake(f"{text} is not between {kind.first} and {kind.last}", offset, kind)
    return value


def _end_of_range(text: str, offset: int, kind: _FieldKind, first: int) -> int:
    # In fri-sun the Sunday is the one at the end of the week; sun-sun is one day.
    if kind is _WEEKDAY and first > 0 and text.lower() == WEEKDAYS[0]:
        return 7
    return _value(text, offset, kind)


def _step(text: str, offset: int, kind: _FieldKind) -> int:
    step = int(text) if _NUMBER.fullmatch(text) else 0
    if step < 1:
        raise _mistake(f"a step is a number from 1 on, not {text!r}", offset, kind)
    return step


def _mistake(message: str, offset: int, kind: _FieldKind) -> SettingError:
    return SettingError(f"{kind.name}: {message}", setting="schedule", offset=offset)
