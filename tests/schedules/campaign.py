"""Random lines in several zones, compared with the oracle and with cronsim."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from aioflow.errors import SettingError
from aioflow.service.schedules.schedule import Schedule, parse_schedule
from tests.schedules import peer
from tests.schedules.lines import RandomLine, random_lines
from tests.schedules.oracle import Numbers, ZoneMinutes, due_minutes, matching_days, zone_minutes

# Clocks change by an hour, by half an hour, at midnight, by a whole day (in 2011), and four times a year.
ZONES = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe"),
    *("America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca"),
)
FIRST_YEAR = 2010
_MOMENTS_ASKED = 6  # of each line in each zone, beside those at clock changes
_CHANGES_ASKED = 6


class ZoneReport(msgspec.Struct):
    """The comparison of all lines in one zone."""

    zone: str
    lines: int = 0
    minutes: int = 0
    times: int = 0
    questions: int = 0
    peer_times: int = 0
    disagreements: list[str] = msgspec.field(default_factory=list)
    forms: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.zone}: {self.lines:,} lines over {self.minutes:,} minutes, {self.times:,} times, "
            f"{self.questions:,} questions for the next time, {self.peer_times:,} times of cronsim, "
            f"{len(self.disagreements)} disagreements, {self.seconds:.0f} s"
        )


def compare_zone(zone: str, lines: int, years: int, seed: int, first_year: int = FIRST_YEAR) -> ZoneReport:
    """Compare random lines in one zone; every zone gets the same lines."""
    begun = time.perf_counter()
    table = zone_minutes(zone, first_year, years)
    report = ZoneReport(zone, minutes=len(table.days))
    drawn = random_lines(seed, first_year - 1, first_year + years)
    for number, line in enumerate(drawn):
        if report.lines == lines:
            break
        report.forms.update(line.forms)
        if _never_comes(line):
            report.forms["never"] += 1
            report.disagreements += _accepted(line)
            continue
        report.lines += 1
        report.disagreements += _compare_line(line, table, random.Random(f"{seed} {number}"), report)
    report.seconds = time.perf_counter() - begun
    return report


def _never_comes(line: RandomLine) -> bool:
    return line.interval_minutes is None and not matching_days(line).any()


def _accepted(line: RandomLine) -> Iterator[str]:
    try:
        parse_schedule(line.text, "UTC")
    except SettingError:
        return
    yield f"{line.text!r} never comes, and was accepted"


def _compare_line(
    line: RandomLine, table: ZoneMinutes, chance: random.Random, report: ZoneReport
) -> Iterator[str]:
    try:
        schedule = parse_schedule(line.text, table.zone)
    except SettingError as error:
        yield f"{line.text!r} was refused: {error}"
        return
    due = due_minutes(line, table)
    found = _times(schedule, table)
    report.times += len(due)
    if not np.array_equal(found, due):
        differing = np.setxor1d(found, due)
        yield f"{line.text!r} in {table.zone}: {len(differing)} differ, the first at {_at(int(differing[0]))}"
        return
    yield from _ask_next(line, schedule, due, table, chance, report)
    for moment in _starts(table, chance):
        count, differing_times = peer.compare(line, schedule, moment)
        report.peer_times += count
        yield from differing_times


def _times(schedule: Schedule, table: ZoneMinutes) -> Numbers:
    """Return the times of a schedule in the years of a table, as minutes from 1970."""
    end = (table.first + len(table.days)) * 60

    def seconds() -> Iterator[int]:
        for each in schedule.times_after(_at(table.first - 1)):
            second = int(each.timestamp())
            if second >= end:
                return
            yield second

    found = np.fromiter(seconds(), dtype=np.int64)
    assert not (found % 60).any()
    return found // 60


def _ask_next(
    line: RandomLine,
    schedule: Schedule,
    due: Numbers,
    table: ZoneMinutes,
    chance: random.Random,
    report: ZoneReport,
) -> Iterator[str]:
    """Ask for the next time after moments of any kind, also between and on the times of a clock change."""
    start = _at(table.first - 1)
    for moment in _moments(table, chance):
        position = int(np.searchsorted(due, int(moment.timestamp()) // 60, side="right"))
        if position == len(due):  # the next time lies after the table
            continue
        report.questions += 1
        found, expected = schedule.next_after(moment, start=start), _at(int(due[position]))
        if found is None or found.astimezone(UTC) != expected:
            yield f"{line.text!r} in {table.zone}: next after {moment} is {found}, not {expected}"


def _moments(table: ZoneMinutes, chance: random.Random) -> Iterator[datetime]:
    last = table.first + len(table.days) - 1
    for _ in range(_MOMENTS_ASKED):
        yield _at(chance.randint(table.first, last)) + timedelta(seconds=chance.choice([0, 0, 1, 59]))
    changes = table.changes
    for change in chance.sample(changes, min(_CHANGES_ASKED, len(changes))):
        near = min(max(change + chance.randint(-150, 150), table.first), last)
        yield _at(near) + timedelta(seconds=chance.choice([0, 0, 30]))


def _starts(table: ZoneMinutes, chance: random.Random) -> Iterator[datetime]:
    """Yield two moments to compare with cronsim from: one anywhere, one before a clock change."""
    yield _at(table.first + chance.randrange(len(table.days)))
    if table.changes:
        yield _at(max(chance.choice(table.changes) - chance.randint(60, 1500), table.first))


def _at(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)
