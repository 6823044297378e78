"""The minutes of a time zone as its clocks show them, and those at which a line is due."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
from numpy.typing import NDArray

from tests.schedules.lines import RandomLine

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

_MINUTES_OF_DAY = 1440
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVERY_DAY = np.arange("1970-01-01", "2200-01-01", dtype="datetime64[D]")


class SkippedTimes(msgspec.Struct, frozen=True):
    """The local minutes that clocks jump over, and the position of the first minute after them."""

    position: int
    minutes: Numbers


class ZoneMinutes(msgspec.Struct, frozen=True):
    """Every minute of some years: `first` counts from 1970 in UTC, the arrays have the local times."""

    zone: str
    first: int
    days: NDArray[np.int32]
    minutes_of_day: NDArray[np.int16]
    repeated: Flags
    gaps: tuple[SkippedTimes, ...]

    @property
    def changes(self) -> list[int]:
        """Return the minutes, counted from 1970, after which clocks jump forward or are set back."""
        backward = np.flatnonzero(np.diff(self.repeated.astype(np.int8)) == 1) + 1
        return sorted(
            [*(each.position + self.first for each in self.gaps), *(backward + self.first).tolist()]
        )


@lru_cache(maxsize=1)
def zone_minutes(zone: str, first_year: int, years: int) -> ZoneMinutes:
    """Return the minutes from the second minute of a year in UTC on."""
    start = datetime(first_year, 1, 1, tzinfo=UTC)
    count = (datetime(first_year + years, 1, 1, tzinfo=UTC) - start) // timedelta(minutes=1)
    first = (start - _EPOCH) // timedelta(minutes=1)
    local = np.arange(first, first + count) + _offsets(start, count, ZoneInfo(zone))
    jumps = np.flatnonzero(np.diff(local) > 1)
    # A time that is not later than all times before it was shown already.
    repeated = np.concatenate([[False], local[1:] <= np.maximum.accumulate(local)[:-1]])
    return ZoneMinutes(
        zone,
        first + 1,
        (local[1:] // _MINUTES_OF_DAY).astype(np.int32),
        (local[1:] % _MINUTES_OF_DAY).astype(np.int16),
        repeated[1:],
        tuple(SkippedTimes(int(each), np.arange(local[each] + 1, local[each + 1])) for each in jumps),
    )


def _offsets(start: datetime, count: int, zone: ZoneInfo) -> Numbers:
    """Return the offset from UTC at each minute, asked for minute by minute."""
    minute = timedelta(minutes=1)

    def found() -> Iterable[int]:
        moment = start.astimezone(UTC)
        for _ in range(count):
            offset = moment.astimezone(zone).utcoffset()
            assert offset is not None
            assert not offset % minute
            yield offset // minute
            moment += minute

    return np.fromiter(found(), dtype=np.int64, count=count)


def due_minutes(line: RandomLine, table: ZoneMinutes) -> Numbers:
    """Return the minutes, counted from 1970 in UTC, at which a line is due."""
    if line.interval_minutes is not None:
        positions = np.arange(line.interval_minutes, len(table.days) + 1, line.interval_minutes)
        return positions + (table.first - 1)
    on_days, at_minutes = matching_days(line), _matching_minutes(line)
    due = on_days[table.days] & at_minutes[table.minutes_of_day]
    if line.fixed_hour:
        due &= ~table.repeated
        for gap in table.gaps:
            skipped = on_days[gap.minutes // _MINUTES_OF_DAY] & at_minutes[gap.minutes % _MINUTES_OF_DAY]
            due[gap.position] |= skipped.any()
    return np.flatnonzero(due) + table.first


def matching_days(line: RandomLine) -> Flags:
    """Return for each day from 1970 to 2199 if it is one of the line."""
    months = _EVERY_DAY.astype("datetime64[M]")
    month_numbers = months.astype(np.int64) % 12 + 1
    year_numbers = _EVERY_DAY.astype("datetime64[Y]").astype(np.int64) + 1970
    of_month = np.isin((_EVERY_DAY - months).astype(np.int64) + 1, list(line.days))
    # The first of January 1970 was a Thursday.
    of_week = np.isin((_EVERY_DAY.astype(np.int64) + 4) % 7, list(line.weekdays))
    days: Flags = of_month | of_week if line.either_day else of_month & of_week
    return days & np.isin(month_numbers, list(line.months)) & np.isin(year_numbers, list(line.years))


def _matching_minutes(line: RandomLine) -> Flags:
    minutes = np.arange(_MINUTES_OF_DAY)
    return np.isin(minutes // 60, list(line.hours)) & np.isin(minutes % 60, list(line.minutes))
