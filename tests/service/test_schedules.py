"""Schedules, against an oracle that looks at every minute."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest

from aioflow.errors import SettingError
from aioflow.service.schedules.schedule import Schedule, parse_schedule
from aioflow.service.schedules.words import describe

MINUTE = timedelta(minutes=1)
# Zones with their days of clock changes: by an hour, by half an hour, at midnight, a whole day, and never.
CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "America/Sao_Paulo": ("2018-02-18", "2018-11-04"),
    "Pacific/Apia": ("2011-12-30",),
    "UTC": ("2026-01-01",),
}


def _expanded(field: str, first: int, last: int) -> set[int]:
    values: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, _, high = (f"{first}-{last}" if span == "*" else span).partition("-")
        values |= set(range(int(low), int(high or low) + 1, int(step or 1)))
    return values


def _matcher(line: str) -> Callable[[datetime], bool]:
    minute, hour, day, month, weekday = line.split()
    minutes, hours, days = _expanded(minute, 0, 59), _expanded(hour, 0, 23), _expanded(day, 1, 31)
    months, weekdays = _expanded(month, 1, 12), {each % 7 for each in _expanded(weekday, 0, 6)}
    either = not (day.startswith("*") or weekday.startswith("*"))

    def matches(local: datetime) -> bool:
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        of_month, of_week = local.day in days, local.isoweekday() % 7 in weekdays
        return of_month or of_week if either else of_month and of_week

    return matches


def _oracle(line: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    matches = _matcher(line)
    hour = line.split()[1]
    elapsed = "*" in hour or "/" in hour
    found = []
    before = start.astimezone(zone).replace(tzinfo=None)
    moment = start + MINUTE
    while moment < end:
        shown = moment.astimezone(zone)
        local = shown.replace(tzinfo=None)
        if elapsed:
            due = matches(local)
        else:
            skipped = (before + MINUTE * number for number in range(1, (local - before) // MINUTE))
            due = (matches(local) and not shown.fold) or any(map(matches, skipped))
        if due:
            found.append(moment)
        before, moment = local, moment + MINUTE
    return found


def _times(schedule: Schedule, start: datetime, end: datetime) -> list[datetime]:
    """Return times in UTC: within a zone, Python takes the two moments of a repeated time for equal."""
    moments = (each.astimezone(UTC) for each in schedule.times_after(start))
    return list(takewhile(lambda each: each < end, moments))


def _field(chance: random.Random, first: int, last: int) -> str:
    low = chance.randint(first, last)
    high = chance.randint(low, last)
    step = chance.randint(1, 1 + (last - first) // 3)
    other = chance.randint(first, last)
    return chance.choice(
        ["*", "*", f"*/{step}", f"{low}", f"{low}-{high}", f"{low}-{high}/{step}", f"{low},{other}"]
    )


def _line(chance: random.Random) -> str:
    hour = chance.choice([_field(chance, 0, 23), _field(chance, 0, 4), "2", "0"])
    day, weekday = _field(chance, 1, 28), chance.choice(["*", "*", _field(chance, 0, 7)])
    day, month = chance.choice(["*", "*", day]), chance.choice(["*", "*", _field(chance, 1, 12)])
    return f"{_field(chance, 0, 59)} {hour} {day} {month} {weekday}"


@pytest.mark.parametrize("name", CHANGES)
def test_times_over_clock_changes_are_those_of_the_minute_by_minute_oracle(name: str) -> None:
    chance, zone = random.Random(name), ZoneInfo(name)
    for day in CHANGES[name]:
        start = datetime.fromisoformat(day).replace(tzinfo=zone).astimezone(UTC) - timedelta(days=1)
        end = start + timedelta(days=3)
        for _ in range(40):
            line = _line(chance)
            schedule = parse_schedule(line, name)
            assert _times(schedule, start, end) == _oracle(line, zone, start, end), (line, day)


def test_a_skipped_fixed_time_runs_once_after_the_gap_and_a_repeated_one_once() -> None:
    schedule = parse_schedule("0,30 2 * * *", "Europe/Berlin")
    spring = schedule.times_after(datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert [each.isoformat() for each in islice(spring, 2)] == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:00:00+02:00",
    ]
    autumn = schedule.times_after(datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert [each.isoformat() for each in islice(autumn, 3)] == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:00:00+01:00",
    ]


def test_times_of_a_day_that_is_skipped_and_of_the_day_after_it_run_once() -> None:
    """Samoa had no 30 December 2011: its times come at the first moment of the 31st, which is due as well."""
    times = parse_schedule("@daily", "Pacific/Apia").times_after(datetime(2011, 12, 29, 0, tzinfo=UTC))
    assert [each.isoformat() for each in islice(times, 3)] == [
        "2011-12-29T00:00:00-10:00",
        "2011-12-31T00:00:00+14:00",
        "2012-01-01T00:00:00+14:00",
    ]


@pytest.mark.parametrize("hour", ["*", "5,*", "*/1", "0-23/1"])
def test_an_hour_with_a_star_or_a_step_follows_elapsed_time(hour: str) -> None:
    times = parse_schedule(f"30 {hour} * * *", "Europe/Berlin").times_after(
        datetime(2026, 10, 25, tzinfo=UTC)
    )
    assert [each.isoformat()[11:] for each in islice(times, 3)] == [
        "02:30:00+02:00",
        "02:30:00+01:00",
        "03:30:00+01:00",
    ]


def test_a_week_may_end_with_sunday_and_sunday_to_sunday_is_one_day() -> None:
    assert describe(parse_schedule("0 6 * * fri-sun", "UTC")) == "at 6:00 on Fridays to Sundays"
    assert describe(parse_schedule("0 6 * * sun-sun", "UTC")) == "at 6:00 on Sundays"


def test_an_interval_counts_from_its_start_whatever_clocks_show() -> None:
    schedule = parse_schedule("every 90m", "Europe/Berlin")
    start = datetime(2026, 3, 28, 22, tzinfo=UTC)
    found = schedule.times_after(datetime(2026, 3, 29, 0, tzinfo=UTC), start=start)
    assert [each.astimezone(UTC).strftime("%H:%M") for each in islice(found, 3)] == [
        "01:00",
        "02:30",
        "04:00",
    ]


def test_a_fifth_field_of_four_digits_is_the_year_and_times_end_with_it() -> None:
    schedule = parse_schedule("0 12 31 12 2026", "UTC")
    assert list(schedule.times_after(datetime(2026, 1, 1, tzinfo=UTC))) == [
        datetime(2026, 12, 31, 12, tzinfo=UTC)
    ]
    assert schedule.next_after(datetime(2027, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("05 08-17 1,3,5 * *", "at 8:05, 9:05 … 17:05 on days 1, 3 and 5"),
        ("*/15 * * * mon-fri", "every 15 minutes on Mondays to Fridays"),
        ("0 7 1 jan 1", "at 7:00 on day 1 or on Mondays in January"),
        ("@hourly", "every hour"),
        ("every 1h30m", "every 90 minutes"),
        ("30 6 * * fri-sun 2027", "at 6:30 on Fridays to Sundays in 2027"),
    ],
)
def test_a_schedule_is_described_in_words(line: str, words: str) -> None:
    assert describe(parse_schedule(line, "UTC")) == words


@pytest.mark.parametrize(
    ("line", "message", "offset"),
    [
        ("61 * * * *", "minute: 61 is not between 0 and 59", 0),
        ("0 22-2 * * *", "hour: the range 22-2 goes backwards; write 22-23,0-2", 2),
        ("5/15 * * * *", "minute: a step needs a range: write 5-59/15", 0),
        ("0 0 L * *", "day: 'L' is of Quartz, and not of crontab(5)", 4),
        ("0 0 31 2 *", "'0 0 31 2 *' never comes: no month of it has such a day", 4),
        ("0 0 * * mo", "weekday: 'mo' is no weekday; did you mean 'mon'?", 8),
        ("@dialy", "unknown schedule @dialy; did you mean '@daily'?", None),
        ("every", "every: not a duration", 6),
    ],
)
def test_a_mistake_is_named_with_its_field_and_place(line: str, message: str, offset: int | None) -> None:
    with pytest.raises(SettingError) as caught:
        parse_schedule(line, "UTC")
    assert message in str(caught.value)
    assert caught.value.offset == offset
