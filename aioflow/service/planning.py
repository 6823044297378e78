"""Decides which times of a task become runs, and which are skipped or missed. Nothing is dropped silently.

The rules are those of Temporal's schedules. This module knows no database: it turns a task, the present time
and the occurrences that are pending into a list of new occurrences.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import takewhile
from typing import Literal, TypeAlias

import msgspec

from aioflow.service.schedules.schedule import Interval
from aioflow.service.task import Task
from aioflow.values.quantities import count_text, duration_text

# A run that begins within this time of its due time is not late. Clocks and busy machines make it so long.
ON_TIME_SECONDS = 60.0
# Of more missed times than this, the oldest share one row.
MISSED_ROWS_AT_MOST = 1_000

PlannedState: TypeAlias = Literal["waiting", "skipped", "missed"]


class PlannedOccurrence(msgspec.Struct, frozen=True):
    """One time at which a task is due, or `number` times from `first_due` to `due` that were missed."""

    due: datetime
    first_due: datetime
    number: int
    start_after: datetime
    state: PlannedState
    reason: str = ""


class PendingOccurrences(msgspec.Struct, frozen=True):
    """The numbers of occurrences of a task that run and that wait, and of those that wait for a retry."""

    running: int = 0
    waiting: int = 0
    retrying: int = 0


class TaskPlan(msgspec.Struct, frozen=True):
    """The new occurrences of a task.

    `cancels_others` asks for the end of its run under way. `is_over` says that no further time will come.
    """

    occurrences: tuple[PlannedOccurrence, ...] = ()
    cancels_others: bool = False
    is_over: bool = False


def times_due(task: Task, now: datetime) -> Iterator[datetime]:
    """Yield the times up to now that have no occurrence yet, the oldest first."""
    schedule = task.definition.read_schedule()
    if schedule is None or task.state != "active":
        return iter(())
    ends = task.definition.ends
    times = schedule.times_after(task.scheduled_until, start=task.anchor)
    return takewhile(lambda time: time <= now and (ends is None or time <= ends), times)


def next_due(task: Task) -> datetime | None:
    """Return the next time of a task, or None if there is none."""
    schedule = task.definition.read_schedule()
    if schedule is None or task.state != "active":
        return None
    found = schedule.next_after(task.scheduled_until, start=task.anchor)
    ends = task.definition.ends
    return None if found is None or (ends is not None and found > ends) else found


def plan_occurrences(
    task: Task, now: datetime, pending: PendingOccurrences, *, late_spread_seconds: float = 0.0
) -> TaskPlan:
    """Return the occurrences for all times of a task that have come.

    Late runs are spread over some seconds, so that a service that begins does not run all at once.
    """
    latest, missed = _due_and_missed(task, now)
    planned = list(missed)
    cancels = False
    for due in latest:
        late = (now - due).total_seconds() > ON_TIME_SECONDS
        occurrence = _planned(task, due, now, late_spread_seconds if late else 0.0)
        skip = _overlap_reason(task, pending)
        if skip:
            occurrence = msgspec.structs.replace(occurrence, state="skipped", reason=skip)
        else:
            cancels |= task.definition.overlap == "cancel-other" and bool(pending.running)
            pending = msgspec.structs.replace(pending, waiting=pending.waiting + 1)
        planned.append(occurrence)
    advanced = msgspec.structs.replace(task, scheduled_until=now)
    is_over = task.definition.schedule != "" and task.state == "active" and next_due(advanced) is None
    return TaskPlan(tuple(planned), cancels, is_over)


def _due_and_missed(task: Task, now: datetime) -> tuple[list[datetime], list[PlannedOccurrence]]:
    """Divide the times that have come into those that still run and those that are missed."""
    definition = task.definition
    window = timedelta(seconds=definition.catch_up_window_seconds)
    kept, older = _recent_times(task, now)
    on_time = timedelta(seconds=ON_TIME_SECONDS)
    runs = [time for time in kept if now - time <= max(window, on_time)]
    if definition.catch_up == "none":
        runs = [time for time in runs if now - time <= on_time]
    if definition.catch_up != "all":
        runs = runs[-1:]
    missed = []
    if older is not None:
        missed.append(_missed(task, older.first, older.last, older.number, now, bool(runs)))
    missed += [_missed(task, time, time, 1, now, bool(runs)) for time in kept if time not in runs]
    return runs, missed


class _OlderTimes(msgspec.Struct, frozen=True):
    first: datetime
    last: datetime
    number: int


def _recent_times(task: Task, now: datetime) -> tuple[list[datetime], _OlderTimes | None]:
    """Return the latest times that have come, and the older ones as a range."""
    task, skipped = _without_long_ago(task, now)
    kept: deque[datetime] = deque(maxlen=MISSED_ROWS_AT_MOST)
    older = skipped
    for time in times_due(task, now):
        if len(kept) == MISSED_ROWS_AT_MOST:
            dropped = kept[0]
            older = _OlderTimes(older.first if older else dropped, dropped, older.number + 1 if older else 1)
        kept.append(time)
    return list(kept), older


def _without_long_ago(task: Task, now: datetime) -> tuple[Task, _OlderTimes | None]:
    """Count the times of an interval without listing them: those of a second make 31 million in a year."""
    schedule = task.definition.read_schedule()
    end = now if task.definition.ends is None else min(now, task.definition.ends)
    if schedule is None or not isinstance(schedule.rule, Interval) or task.state != "active":
        return task, None
    step = timedelta(seconds=schedule.rule.seconds)
    before, last = (max(0, (moment - task.anchor) // step) for moment in (task.scheduled_until, end))
    dropped = last - before - MISSED_ROWS_AT_MOST
    if dropped <= 0:
        return task, None
    older = _OlderTimes(task.anchor + (before + 1) * step, task.anchor + (before + dropped) * step, dropped)
    return msgspec.structs.replace(task, scheduled_until=older.last), older


def _missed(
    task: Task, first: datetime, due: datetime, number: int, now: datetime, is_made_up: bool
) -> PlannedOccurrence:
    late = duration_text((now - due).total_seconds())
    what = "this time was" if number == 1 else f"these {number:,} times were"
    then = "a later run stands for it" if number == 1 else "a later run stands for them"
    rest = then if is_made_up else f"no late run, as catch_up is {task.definition.catch_up!r}"
    return PlannedOccurrence(
        due, first, number, due, "missed", f"no service ran when {what} due ({late} ago); {rest}"
    )


def _planned(task: Task, due: datetime, now: datetime, spread_seconds: float) -> PlannedOccurrence:
    chance = _chance(f"{task.task_id} {due.isoformat()}")
    start_after = due + timedelta(seconds=chance * task.definition.jitter_seconds)
    if spread_seconds:
        start_after = max(start_after, now + timedelta(seconds=chance * spread_seconds))
    return PlannedOccurrence(due, due, 1, start_after, "waiting")


def _overlap_reason(task: Task, pending: PendingOccurrences) -> str:
    """Return why another run under way or waiting makes this one be skipped; "" if it does not."""
    overlap = task.definition.overlap
    waited = "waited for its retry" if pending.retrying else "was still waiting to begin"
    if overlap == "skip" and (pending.running or pending.waiting):
        other = "was still under way" if pending.running else waited
        return f"the run before {other}, and overlap is 'skip'"
    if overlap == "buffer-one" and pending.retrying:
        return f"the run before {waited}, and overlap is 'buffer-one'"
    if overlap == "buffer-one" and pending.waiting:
        return f"{count_text(pending.waiting, 'run')} waited already, and overlap is 'buffer-one'"
    if overlap == "cancel-other" and pending.waiting:
        return f"the run before {waited}" if pending.retrying else "another run waited already"
    return ""


def _chance(text: str) -> float:
    """Return a number from 0 to 1, always the same for a text: services agree on it without asking."""
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest()) / 2**48
