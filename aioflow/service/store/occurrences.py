"""Occurrences in the task database: the times at which tasks are due, and the runs that came of them.

An occurrence is `waiting`, then `running` under a lease, then it has an outcome. Every change of a running
one names the fence of its attempt, so a service that was stopped and goes on changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import msgspec

from aioflow.relation import Row
from aioflow.service.planning import PendingOccurrences, PlannedOccurrence
from aioflow.service.store.database import Statements
from aioflow.service.store.tasks import note_change
from aioflow.service.task import Task
from aioflow.state.system_tables import from_stamp, stamp

OccurrenceState: TypeAlias = Literal[
    "waiting", "running", "succeeded", "failed", "cancelled", "skipped", "missed"
]
Cause: TypeAlias = Literal["schedule", "manual"]

# The causes for which a run is cancelled, as `cancel_requested` has them, and the reasons in the history.
CANCELLED_BY_HAND, CANCELLED_BY_LATER_TIME = 1, 2
CANCEL_REASONS: Mapping[int, str] = {
    CANCELLED_BY_HAND: "it was cancelled",
    CANCELLED_BY_LATER_TIME: "a later time came, and overlap is 'cancel-other'",
}
OUTCOMES = ("succeeded", "failed", "cancelled", "skipped", "missed")
_COLUMNS = (
    "occurrence, task_id, cause, due, first_due, number, start_after, priority, state, reason, attempts, "
    "lost, fence, run_id, version, leased_by, leased_until, cancel_requested, started, ended, account"
)
_NO_LEASE = "leased_by = NULL, leased_until = NULL"
_MINE = "occurrence = {} AND fence = {} AND leased_by = {} AND state = 'running'"


class Occurrence(msgspec.Struct, frozen=True):
    """One time at which a task was due, and its run. `number` is more than 1 for times that were missed.

    `attempts` counts the runs that were begun, `lost` those whose service ended meanwhile.
    """

    occurrence: str
    task_id: str
    cause: Cause
    due: datetime
    first_due: datetime
    number: int
    start_after: datetime
    priority: int
    state: OccurrenceState
    reason: str
    attempts: int
    lost: int
    fence: int
    run_id: str | None
    version: str | None
    leased_by: str | None
    leased_until: datetime | None
    cancel_requested: bool
    started: datetime | None
    ended: datetime | None
    account: dict[str, Any] | None


class RunOutcome(msgspec.Struct, frozen=True):
    """How a run ended: its account as JSON, the lines of its log, its first rows, and a trace of its work."""

    state: Literal["succeeded", "failed", "cancelled"]
    reason: str = ""
    account: Mapping[str, Any] | None = None
    log: str = ""
    sample: str = ""
    trace: str = ""


# --- adding -------------------------------------------------------------------------------------


async def pending_of(statements: Statements, task_id: str) -> PendingOccurrences:
    """Return the numbers of occurrences of a task that run and wait."""
    rows = await statements.fetch(
        "SELECT state, count(*), sum(CASE WHEN attempts > lost THEN 1 ELSE 0 END) FROM aioflow_occurrences "
        "WHERE task_id = {} AND state IN ('waiting', 'running') GROUP BY state",
        task_id,
    )
    found = {str(state): (int(number), int(failed)) for state, number, failed in rows}
    (running, _), (waiting, retrying) = found.get("running", (0, 0)), found.get("waiting", (0, 0))
    return PendingOccurrences(running, waiting, retrying)


async def pending_names(statements: Statements) -> set[str]:
    """Return the names of all occurrences that run or wait."""
    rows = await statements.fetch(
        "SELECT occurrence FROM aioflow_occurrences WHERE state IN ('waiting', 'running')"
    )
    return {str(name) for (name,) in rows}


async def add_planned(statements: Statements, task: Task, planned: Iterable[PlannedOccurrence]) -> None:
    """Add the occurrences that the schedule of a task asks for."""
    for each in planned:
        ended = None if each.state == "waiting" else stamp(statements.now)
        await _insert(
            statements,
            (
                *(f"{task.task_id}@{stamp(each.due)}", task.task_id, "schedule", stamp(each.due)),
                *(stamp(each.first_due), each.number, stamp(each.start_after)),
                *(task.definition.priority, _exclusive(task), each.state, each.reason, ended),
            ),
        )


async def add_manual(statements: Statements, task: Task) -> str:
    """Add a run that a person asks for; return its occurrence."""
    name = f"{task.task_id}@{stamp(statements.now)}#{uuid4().hex[:6]}"
    now = stamp(statements.now)
    priority = task.definition.priority
    values = (name, task.task_id, "manual", now, now, 1, now, priority, _exclusive(task), "waiting", "", None)
    await _insert(statements, values)
    await note_change(statements)
    return name


def _exclusive(task: Task) -> int:
    return 0 if task.definition.overlap == "allow-all" else 1


async def _insert(statements: Statements, values: Sequence[Any]) -> None:
    await statements.run(
        "INSERT INTO aioflow_occurrences (occurrence, task_id, cause, due, first_due, number, start_after, "
        "priority, exclusive, state, reason, ended, attempts, lost, fence, cancel_requested) "
        f"VALUES ({', '.join('{}' for _ in values)}, 0, 0, 0, 0) ON CONFLICT (occurrence) DO NOTHING",
        *values,
    )


# --- claiming -----------------------------------------------------------------------------------


async def claimable(statements: Statements, limit: int) -> list[Occurrence]:
    """Return waiting occurrences whose time has come: by priority, then the oldest first.

    Of a task that does not run beside itself there is one at most, and none while it runs.
    """
    others = (
        "SELECT 1 FROM aioflow_occurrences other WHERE other.task_id = this.task_id "
        "AND (other.state = 'running' OR other.state = 'waiting' AND (other.start_after < this.start_after "
        "OR other.start_after = this.start_after AND other.occurrence < this.occurrence))"
    )
    rows = await statements.fetch(
        f"SELECT {_COLUMNS} FROM aioflow_occurrences this WHERE state = 'waiting' AND start_after <= {{}} "
        f"AND (exclusive = 0 OR NOT EXISTS ({others})) "
        f"ORDER BY priority DESC, start_after, occurrence LIMIT {limit}",
        stamp(statements.now),
    )
    return [_occurrence_of(row) for row in rows]


class Outlook(msgspec.Struct, frozen=True):
    """Whether there is anything to do: the number of changes to tasks, and the times of the next events."""

    revision: int
    next_start: datetime | None  # of a waiting occurrence
    next_expiry: datetime | None  # of the lease of a running one
    has_cancelled: bool  # a running one is to be cancelled


async def read_outlook(statements: Statements) -> Outlook:
    """Return the outlook in one query, since a service asks for it all the time."""
    ((revision, start, expiry, cancelled),) = await statements.fetch(
        "SELECT revision, "
        "(SELECT min(start_after) FROM aioflow_occurrences WHERE state = 'waiting'), "
        "(SELECT min(leased_until) FROM aioflow_occurrences WHERE state = 'running'), "
        "(SELECT max(cancel_requested) FROM aioflow_occurrences WHERE state = 'running') "
        "FROM aioflow_revision WHERE id = 1"
    )
    return Outlook(
        int(revision),
        None if start is None else from_stamp(start),
        None if expiry is None else from_stamp(expiry),
        bool(cancelled),
    )


async def skip_waiting(statements: Statements, task_id: str, reason: str, *, scheduled_only: bool) -> int:
    """Skip the runs of a task that wait; return their number."""
    cause = " AND cause = 'schedule'" if scheduled_only else ""
    return await statements.run(
        "UPDATE aioflow_occurrences SET state = 'skipped', reason = {}, ended = {} "
        f"WHERE task_id = {{}} AND state = 'waiting'{cause}",
        *(reason, stamp(statements.now), task_id),
    )


async def claim(
    statements: Statements, occurrence: Occurrence, service_id: str, until: datetime, version: str
) -> Occurrence:
    """Take a waiting occurrence for a service, with the next fence and a new run; return it."""
    run_id = uuid4().hex
    fence = occurrence.fence + 1
    await statements.run(
        "UPDATE aioflow_occurrences SET state = 'running', reason = '', attempts = attempts + 1, fence = {}, "
        "run_id = {}, version = {}, leased_by = {}, leased_until = {}, started = {}, ended = NULL "
        "WHERE occurrence = {} AND state = 'waiting'",
        *(fence, run_id, version, service_id, stamp(until), stamp(statements.now), occurrence.occurrence),
    )
    return msgspec.structs.replace(
        occurrence,
        state="running",
        attempts=occurrence.attempts + 1,
        fence=fence,
        run_id=run_id,
        version=version,
        leased_by=service_id,
        leased_until=until,
        started=statements.now,
    )


async def claim_expired(
    statements: Statements, service_id: str, until: datetime, *, but: Collection[str] = ()
) -> list[Occurrence]:
    """Take over the runs of services whose leases have ended. Their fences are higher from now on.

    `but` are occurrences that the service itself is busy with: it renews their leases.
    """
    rows = await statements.fetch(
        f"SELECT {_COLUMNS} FROM aioflow_occurrences WHERE state = 'running' AND leased_until < {{}}",
        stamp(statements.now),
    )
    found = [each for each in map(_occurrence_of, rows) if each.occurrence not in but]
    for each in found:
        await statements.run(
            "UPDATE aioflow_occurrences SET fence = fence + 1, leased_by = {}, leased_until = {} "
            "WHERE occurrence = {}",
            *(service_id, stamp(until), each.occurrence),
        )
    return [
        msgspec.structs.replace(each, fence=each.fence + 1, leased_by=service_id, leased_until=until)
        for each in found
    ]


async def renew(
    statements: Statements, service_id: str, until: datetime, fences: Mapping[str, int]
) -> dict[str, int]:
    """Extend the leases of a service on occurrences, which are given with their fences.

    Return those that are still its own, and the cause for which each is to be cancelled, or 0. A lease that
    has ended is extended as well, if no other service has taken it over.
    """
    rows = await statements.fetch(
        "SELECT occurrence, fence, cancel_requested FROM aioflow_occurrences "
        "WHERE leased_by = {} AND state = 'running'",
        service_id,
    )
    mine = {str(name): int(cancel) for name, fence, cancel in rows if fences.get(name) == fence}
    if mine:
        places = ", ".join("{}" for _ in mine)
        await statements.run(
            "UPDATE aioflow_occurrences SET leased_until = {} "
            f"WHERE leased_by = {{}} AND state = 'running' AND occurrence IN ({places})",
            *(stamp(until), service_id, *mine),
        )
    return mine


# --- ending -------------------------------------------------------------------------------------


async def finish(statements: Statements, occurrence: Occurrence, outcome: RunOutcome) -> bool:
    """Note the outcome of a run; return whether it was still that of its service."""
    changed = await statements.run(
        f"UPDATE aioflow_occurrences SET state = {{}}, reason = {{}}, ended = {{}}, account = {{}}, "
        f"log = {{}}, sample = {{}}, trace = {{}}, {_NO_LEASE} WHERE {_MINE}",
        *(outcome.state, outcome.reason, stamp(statements.now), _json(outcome.account), outcome.log),
        *(outcome.sample, outcome.trace, occurrence.occurrence, occurrence.fence, occurrence.leased_by),
    )
    return changed == 1


async def put_back(
    statements: Statements,
    occurrence: Occurrence,
    start_after: datetime,
    reason: str,
    *,
    lost: int = 0,
    outcome: RunOutcome | None = None,
) -> bool:
    """Have an occurrence run once more, not before a time; return whether it was still that of its service.

    `outcome` is that of the attempt that failed, `lost` 1 if its service ended instead.
    """
    log = "" if outcome is None else outcome.log
    account = None if outcome is None else outcome.account
    changed = await statements.run(
        f"UPDATE aioflow_occurrences SET state = 'waiting', start_after = {{}}, reason = {{}}, log = {{}}, "
        f"account = {{}}, lost = lost + {{}}, {_NO_LEASE} WHERE {_MINE}",
        *(stamp(start_after), reason, log, _json(account), lost, occurrence.occurrence, occurrence.fence),
        occurrence.leased_by,
    )
    return changed == 1


async def give_back(statements: Statements, occurrence: Occurrence, reason: str) -> bool:
    """Have an occurrence wait again as if it had not been begun, because its service ends."""
    changed = await statements.run(
        f"UPDATE aioflow_occurrences SET state = 'waiting', reason = {{}}, attempts = attempts - 1, "
        f"{_NO_LEASE} WHERE {_MINE}",
        *(reason, occurrence.occurrence, occurrence.fence, occurrence.leased_by),
    )
    return changed == 1


async def request_cancel(statements: Statements, task_id: str, cause: int) -> int:
    """Ask for the end of the runs of a task that are under way; return their number."""
    return await statements.run(
        "UPDATE aioflow_occurrences SET cancel_requested = {} WHERE task_id = {} AND state = 'running'",
        *(cause, task_id),
    )


async def cancel_waiting(statements: Statements, task_id: str) -> int:
    """Cancel the runs of a task that wait, also for a retry; return their number.

    One that a service gave back counts as not begun.
    """
    return await statements.run(
        "UPDATE aioflow_occurrences SET state = 'cancelled', ended = {}, "
        "reason = CASE WHEN attempts > lost THEN 'it was cancelled while it waited for its retry' "
        "ELSE 'it was cancelled before it began' END, "
        "started = CASE WHEN attempts > lost THEN started ELSE NULL END "
        "WHERE task_id = {} AND state = 'waiting'",
        *(stamp(statements.now), task_id),
    )


# --- reading ------------------------------------------------------------------------------------


async def read_occurrence(statements: Statements, name: str) -> Occurrence | None:
    """Return an occurrence by its name, or by the id of its run."""
    rows = await statements.fetch(
        f"SELECT {_COLUMNS} FROM aioflow_occurrences WHERE occurrence = {{}} OR run_id = {{}}", name, name
    )
    return _occurrence_of(rows[0]) if rows else None


class RunDetails(msgspec.Struct, frozen=True):
    """The large parts of a run, which are kept for fewer runs: log, first rows of outputs, and trace."""

    log: str = ""
    sample: str = ""
    trace: str = ""


async def read_details(statements: Statements, name: str) -> RunDetails:
    """Return the details of a run, by its occurrence or the id of its run."""
    rows = await statements.fetch(
        "SELECT log, sample, trace FROM aioflow_occurrences WHERE occurrence = {} OR run_id = {}", name, name
    )
    return RunDetails(*(text or "" for text in rows[0])) if rows else RunDetails()


async def read_history(
    statements: Statements,
    task_id: str | None = None,
    *,
    states: Sequence[str] = (),
    before: datetime | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> list[Occurrence]:
    """Return occurrences, the latest first; with a `cursor`, those after the occurrence that it names."""
    conditions, values = ["1 = 1"], []
    if cursor is not None:
        due = cursor.partition("@")[2].partition("#")[0]
        conditions.append("(due < {} OR due = {} AND occurrence < {})")
        values += [due, due, cursor]
    if task_id is not None:
        conditions.append("task_id = {}")
        values.append(task_id)
    if states:
        conditions.append(f"state IN ({', '.join('{}' for _ in states)})")
        values += states
    if before is not None:
        conditions.append("due < {}")
        values.append(stamp(before))
    rows = await statements.fetch(
        f"SELECT {_COLUMNS} FROM aioflow_occurrences WHERE {' AND '.join(conditions)} "
        f"ORDER BY due DESC, occurrence DESC LIMIT {int(limit)}",
        *values,
    )
    return [_occurrence_of(row) for row in rows]


async def latest_of_tasks(statements: Statements) -> dict[str, Occurrence]:
    """Return for each task the latest occurrence that ran or runs."""
    rows = await statements.fetch(
        f"SELECT {_COLUMNS} FROM aioflow_occurrences o WHERE started IS NOT NULL AND started = "
        "(SELECT max(i.started) FROM aioflow_occurrences i WHERE i.task_id = o.task_id)"
    )
    return {each.task_id: each for each in map(_occurrence_of, rows)}


async def prune(statements: Statements, keep_days: float, keep_each: int) -> int:
    """Delete the oldest occurrences with an outcome: by age, and by number for each task."""
    old = stamp(statements.now - timedelta(days=keep_days))
    ended = f"state IN ({', '.join(repr(each) for each in OUTCOMES)})"
    removed = await statements.run(f"DELETE FROM aioflow_occurrences WHERE {ended} AND due < {{}}", old)
    for task_id, number in await statements.fetch(
        f"SELECT task_id, count(*) FROM aioflow_occurrences WHERE {ended} GROUP BY task_id "
        f"HAVING count(*) > {int(keep_each)}"
    ):
        removed += await statements.run(
            "DELETE FROM aioflow_occurrences WHERE occurrence IN (SELECT occurrence FROM aioflow_occurrences "
            f"WHERE task_id = {{}} AND {ended} ORDER BY due LIMIT {int(number) - keep_each})",
            task_id,
        )
    return removed


async def prune_details(statements: Statements, keep_each: int, keep_bytes: int) -> None:
    """Delete the logs, samples and traces of older runs: by number for each task, and by size for all."""
    await statements.run(
        "UPDATE aioflow_occurrences SET log = NULL, sample = NULL, trace = NULL "
        "WHERE log IS NOT NULL AND occurrence IN (SELECT occurrence FROM "
        "(SELECT occurrence, row_number() OVER (PARTITION BY task_id ORDER BY due DESC) AS place "
        f"FROM aioflow_occurrences WHERE log IS NOT NULL) counted WHERE place > {int(keep_each)})"
    )
    sizes = "length(coalesce(log, '')) + length(coalesce(sample, '')) + length(coalesce(trace, ''))"
    await statements.run(
        "UPDATE aioflow_occurrences SET log = NULL, sample = NULL, trace = NULL "
        "WHERE log IS NOT NULL AND occurrence IN (SELECT occurrence FROM "
        f"(SELECT occurrence, sum({sizes}) OVER (ORDER BY due DESC, occurrence) AS size "
        f"FROM aioflow_occurrences WHERE log IS NOT NULL) counted WHERE size > {int(keep_bytes)})"
    )


def _occurrence_of(row: Row) -> Occurrence:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    for name in ("due", "first_due", "start_after", "leased_until", "started", "ended"):
        values[name] = None if values[name] is None else from_stamp(values[name])
    values["cancel_requested"] = bool(values["cancel_requested"])
    values["account"] = None if values["account"] is None else msgspec.json.decode(values["account"])
    return Occurrence(**values)


def _json(content: Mapping[str, Any] | None) -> str | None:
    return None if content is None else msgspec.json.encode(content, enc_hook=str).decode()
