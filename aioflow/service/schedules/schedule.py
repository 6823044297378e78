"""A schedule: a text, its time zone, and the moments at which it is due."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import msgspec

from aioflow.errors import InputError, SettingError, suggestion
from aioflow.service.schedules.cron import CronLine, parse_cron
from aioflow.service.schedules.local_time import end_of_gap, fixed_offset, moments_of
from aioflow.values.quantities import seconds

_EVERY = "every"
_LEAST_SECONDS = 1.0
_MOST_SECONDS = 3660 * 86_400.0
# A local day lies within this of the day in UTC, also where clocks skip or repeat a day.
_LONGEST_SHIFT = timedelta(days=2)
_HOUR = timedelta(hours=1)
_MINUTES = tuple(timedelta(minutes=minute) for minute in range(60))


class Interval(msgspec.Struct, frozen=True):
    """`every 15m`: due again and again after this time, whatever clocks show."""

    seconds: float


Rule: TypeAlias = CronLine | Interval


class Schedule(msgspec.Struct, frozen=True):
    """When a task is due. Cron lines are in the time zone, intervals count from a start."""

    text: str
    rule: Rule
    zone: tzinfo
    zone_name: str

    def times_after(self, moment: datetime, *, start: datetime | None = None) -> Iterator[datetime]:
        """Yield the times after a moment, in the zone.

        An interval counts from `start`, or from the moment.
        """
        moment = moment.astimezone(UTC)
        found = (
            _interval_times(self.rule, moment, moment if start is None else start.astimezone(UTC))
            if isinstance(self.rule, Interval)
            else _cron_times(self.rule, moment, self.zone)
        )
        for each in found:
            yield each.astimezone(self.zone)

    def next_after(self, moment: datetime, *, start: datetime | None = None) -> datetime | None:
        """Return the first time after a moment, or None if none comes any more."""
        return next(self.times_after(moment, start=start), None)


def parse_schedule(text: str, zone: str | None = None) -> Schedule:
    """Return the schedule of a text: a cron line, `@daily`, or `every 15m`.

    The default zone is that of the machine.
    """
    found, name = find_zone(zone)
    words = text.split()
    if words and words[0].lower() in (_EVERY, f"@{_EVERY}"):
        return Schedule(" ".join(words), _interval("".join(words[1:])), found, name)
    return Schedule(" ".join(words), parse_cron(text), found, name)


def _interval(text: str) -> Interval:
    if text.isdecimal():
        raise SettingError(
            f"every {text}: the unit is missing: write every {text}m, or s, h or d",
            setting="schedule",
            offset=len(_EVERY) + 1,
        )
    try:
        length = seconds(text)
    except InputError as error:
        raise SettingError(f"every: {error}", setting="schedule", offset=len(_EVERY) + 1) from None
    if length < _LEAST_SECONDS:
        raise SettingError(
            f"every {text}: an interval is at least one second", setting="schedule", offset=len(_EVERY) + 1
        )
    if length > _MOST_SECONDS:
        raise SettingError(
            f"every {text}: an interval is at most ten years", setting="schedule", offset=len(_EVERY) + 1
        )
    return Interval(length)


def find_zone(name: str | None) -> tuple[tzinfo, str]:
    """Return a time zone by its name, and the name; None stands for the zone of the machine."""
    if name is None:
        return _machine_zone()
    try:
        return ZoneInfo(name), name
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = suggestion(name, available_timezones())
        raise InputError(f"unknown time zone {name!r}{hint}; name one like Europe/Berlin or UTC") from None


def _machine_zone() -> tuple[tzinfo, str]:
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name:
        link = os.path.realpath("/etc/localtime")
        name = link.partition("zoneinfo/")[2] if Path(link).exists() else "UTC"
    try:
        return ZoneInfo(name), name
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"the time zone of this machine is unknown ({name or 'no name'}): give one, as in Europe/Berlin"
        ) from None


def _interval_times(rule: Interval, moment: datetime, start: datetime) -> Iterator[datetime]:
    step = timedelta(seconds=rule.seconds)
    count = max(0, (moment - start) // step) + 1
    while True:
        try:
            yield start + count * step
        except OverflowError:
            return
        count += 1


def _cron_times(line: CronLine, moment: datetime, zone: tzinfo) -> Iterator[datetime]:
    """Yield the times of a line after a moment, each once and in order."""
    latest = moment
    for each in _ordered_times(line, moment, zone):
        if each > latest:
            yield each
            latest = each


def _ordered_times(line: CronLine, moment: datetime, zone: tzinfo) -> Iterator[datetime]:
    """Yield the times of a line in order; those before the moment are not all left out."""
    pending: list[datetime] = []
    for day in line.dates_from((moment - _LONGEST_SHIFT).date()):
        offset = fixed_offset(day, zone)
        if offset is not None:
            # All times of the days before have come when such a day begins.
            yield from pending
            pending = []
            yield from _times_of_fixed_day(line, day, offset, moment)
            continue
        # The first times of a day can come before the last ones of the day before it, if clocks are set back
        # over midnight; no time of a later day comes before these.
        settled = datetime.combine(day, time(), UTC) - timedelta(days=1)
        ready = [each for each in pending if each < settled]
        yield from ready
        pending = sorted({*pending[len(ready) :], *_times_of_changing_day(line, day, zone)})
    yield from pending


def _times_of_fixed_day(line: CronLine, day: date, offset: timedelta, moment: datetime) -> Iterator[datetime]:
    for hour in line.hour.values:
        start = datetime.combine(day, time(hour), UTC) - offset
        if start + _HOUR > moment:
            for minute in line.minute.values:
                yield start + _MINUTES[minute]


def _times_of_changing_day(line: CronLine, day: date, zone: tzinfo) -> Iterator[datetime]:
    for hour in line.hour.values:
        for minute in line.minute.values:
            yield from _moments(line, datetime.combine(day, time(hour, minute)), zone)


def _moments(line: CronLine, local: datetime, zone: tzinfo) -> list[datetime]:
    moments = moments_of(local, zone)
    if line.follows_elapsed_time:
        return moments
    return moments[:1] or [end_of_gap(local, zone)]
