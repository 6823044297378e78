"""`aioflow task next`: describes a schedule, and lists the times at which it is due."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from aioflow.cli.exit import guarded, print_message
from aioflow.cli.output.colour import print_json
from aioflow.errors import InputError, SettingError

_YEARS = range(1900, 9000)

if TYPE_CHECKING:
    from aioflow.service.schedules.schedule import Schedule


@guarded
def task_next(
    schedule: Annotated[
        str,
        typer.Argument(
            metavar="SCHEDULE",
            help="A line as in crontab(5), perhaps with a year: '05 08-17 1,3,5 * *'; or @daily, "
            "or 'every 15m'.",
        ),
    ],
    zone: Annotated[
        str | None,
        typer.Option(
            "--zone", metavar="ZONE", help="The time zone, like Europe/Berlin; by default the machine's."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="List times after this one: 2026-03-28T00:00; default now."
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, max=100_000, metavar="N", help="The number of times.")
    ] = 5,
    json: Annotated[bool, typer.Option("--json", help="A JSON list of ISO 8601 times with offset.")] = False,
) -> None:
    """Describe a schedule in words, and list its next times."""
    found = _read_schedule(schedule, zone)
    warn_of(schedule)
    times = list(islice(found.times_after(_read_time(start, found)), count))
    if json:
        print_json([each.isoformat() for each in times])
        return
    from aioflow.service.schedules.words import describe

    print(f"{describe(found)} ({found.zone_name})")
    for each in times:
        print(f"  {each:%a} {each.isoformat(sep=' ')}")
    if len(times) < count:
        print_message(
            "note", "after these there are no further times" if times else "there are no times any more"
        )


def warn_of(schedule: str) -> None:
    """Print remarks on a schedule that may not mean what it says."""
    from aioflow.service.schedules.cron import remarks

    for remark in remarks(schedule):
        print_message("warning", remark)


def _read_schedule(text: str, zone: str | None) -> Schedule:
    from aioflow.service.schedules.schedule import parse_schedule

    try:
        return parse_schedule(text, zone)
    except SettingError as error:
        if error.offset is None or not text.isprintable():
            raise
        raise InputError(f"{error}\n  {text}\n  {' ' * error.offset}^") from None


def _read_time(text: str | None, schedule: Schedule) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"--from {text}: a time is like 2026-03-28T00:00 or 2026-03-28T00:00+01:00"
        ) from None
    if found.year not in _YEARS:
        raise InputError(f"--from {text}: the year is from {_YEARS[0]} to {_YEARS[-1]}")
    return found if found.tzinfo is not None else found.replace(tzinfo=schedule.zone)
