"""Moments of local times, over clock changes.

A local time can come twice, when clocks are set back, and not at all, when they are set forward.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo

_SECOND = timedelta(seconds=1)


def moments_of(local: datetime, zone: tzinfo) -> list[datetime]:
    """Return the moments in UTC at which clocks show a time: two if it is repeated, none if it is skipped."""
    both = [local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
    shown = [moment for moment in both if moment.astimezone(zone).replace(tzinfo=None) == local]
    return sorted(set(shown))


def end_of_gap(local: datetime, zone: tzinfo) -> datetime:
    """Return the moment at which clocks jump over a time that they never show."""
    # By definition, fold 1 takes the offset after the change, and so a moment before it; fold 0 the reverse.
    before, after = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (1, 0))
    offset = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + ((after - before) / 2 // _SECOND) * _SECOND
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


def fixed_offset(day: date, zone: tzinfo) -> timedelta | None:
    """Return the offset from UTC on a day, or None if clocks change on it."""
    midnights = (datetime.combine(each, time(), zone) for each in (day, day + timedelta(days=1)))
    offsets = {each.replace(fold=fold).utcoffset() for each in midnights for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None
