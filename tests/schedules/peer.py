"""cronsim, the cron parser of Healthchecks, compared on the lines that both understand.

It has no years, shorthands, intervals, and weeks that end with `sun`. On lines that both understand there are
these differences:

- `5-5/10` is a step from 5 to the end of the field for cronsim, as `5/10`. In crontab(5) it is 5 alone.
- Over a clock change cronsim follows elapsed time if the minute or the hour begins with `*`. Here the hour
  decides, and `*` anywhere in it or a step counts: `*/20 2 * * *` has a fixed hour, `0 0-23/2 * * *` none.
- A line that follows elapsed time has wrong times in cronsim where clocks change by half an hour, because it
  goes on in whole hours from a clock time that the change has moved. Where clocks jump over midnight, it is
  due at times that clocks never show: `0 */6 * * *` at 0:00 in Brazil on the first day of summer time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from cronsim import CronSim, CronSimError

from aioflow.service.schedules.schedule import Schedule, parse_schedule
from tests.schedules.lines import RandomLine

_TIMES = 40
_SPAN = timedelta(days=730)
_STEP_IN_ONE_VALUE = re.compile(r"\b(\w+)-\1/", re.IGNORECASE)
_NOT_UNDERSTOOD = {"year", "year as fifth", "shorthand", "interval"}
# Zones where clocks change by half an hour or over midnight.
_UNUSUAL_CHANGES = {"Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"}


def compare(line: RandomLine, schedule: Schedule, moment: datetime) -> tuple[int, list[str]]:
    """Return the number of times compared after a moment, and the disagreements."""
    if line.forms & _NOT_UNDERSTOOD or _STEP_IN_ONE_VALUE.search(line.text):
        return 0, []
    if not _has_same_meaning(line, schedule.zone_name):
        schedule = parse_schedule(line.text, "UTC")
    try:
        theirs = _first(CronSim(line.text, moment.astimezone(schedule.zone)), moment)
    except CronSimError:
        return 0, []
    ours = _first(schedule.times_after(moment), moment)
    if ours == theirs:
        return len(ours), []
    differing = min(set(ours) ^ set(theirs))
    return len(ours), [
        f"{line.text!r} in {schedule.zone_name} after {moment}: unlike cronsim from {differing} on"
    ]


def _has_same_meaning(line: RandomLine, zone: str) -> bool:
    """Return if a line means the same to both over the clock changes of a zone."""
    minute, hour, *_ = line.text.split()
    if line.fixed_hour:
        return not minute.startswith("*")
    return (minute.startswith("*") or hour.startswith("*")) and zone not in _UNUSUAL_CHANGES


def _first(times: Iterable[datetime], moment: datetime) -> list[datetime]:
    """Return the first times in UTC: within a zone, Python takes a repeated time for the first of both."""
    found: Iterator[datetime] = (each.astimezone(UTC) for each in times)
    return list(islice(takewhile(lambda each: each < moment + _SPAN, found), _TIMES))
