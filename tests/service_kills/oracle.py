"""Knows the effects that changes and due times must have, and finds those that are lost, twice or half."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.service_kills.world import STEPS, TICK, World

_OUTCOMES = {"succeeded", "failed", "skipped", "missed"}
_LOST_TOO_OFTEN = "its service ended 3 times while it ran"
# A service has two couriers at most for an account: that of a run, and that for messages left by others.
_COPIES_OF_A_KILL = 2
_NEAR = 4


@dataclass
class Held:
    """A process that was killed or stopped: where, and how many messages had arrived by then."""

    where: str
    received: int


@dataclass
class Oracle:
    """Looks at a world that has come to rest."""

    world: World
    held: list[Held] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    copies: int = 0

    def note(self, where: str) -> None:
        """Note that a process was killed or stopped just now."""
        self.held.append(Held(where, len(self.world.receipts())))

    def look(self) -> None:
        """Compare everything; all services have ended in order."""
        self._look_at_tables()
        self._look_at_messages()
        for name, step in STEPS.items():
            self._look_at_times(name, timedelta(seconds=step))
        self._look_at_commits()
        self._look_for_leftovers()

    # --- the plans ------------------------------------------------------------------------------

    def _look_at_tables(self) -> None:
        plans, source = self.world.plans, self.world.source
        if dict(plans.rows("select url, price from houses")) != source.houses:
            self.problems.append("the table houses is not the source")
        history = plans.rows("select url, price from history")
        if sorted(history) != sorted(source.ever.items()):
            self.problems.append(f"the table history has {len(history)} rows, not {len(source.ever)}")
        names = {name for (name,) in self.world.tasks.rows("select name from aioflow_tasks")}
        if names != {*STEPS, *source.ever}:
            self.problems.append(f"tasks are missing or too many: {_some(names ^ {*STEPS, *source.ever})}")

    def _look_at_messages(self) -> None:
        ids, places = defaultdict[str, set[str]](set), defaultdict[str, list[int]](list)
        for place, receipt in enumerate(self.world.receipts()):
            ids[receipt.text].add(receipt.message_id)
            places[receipt.message_id].append(place)
        told = self.world.source.told
        if lost := told - ids.keys():
            self.problems.append(f"never told: {_some(lost)}")
        if invented := ids.keys() - told:
            self.problems.append(f"told although it did not happen: {_some(invented)}")
        if twice := {text for text, keys in ids.items() if len(keys) > 1}:
            self.problems.append(f"told twice, as different messages: {_some(twice)}")
        earlier = sorted(place for copies in places.values() for place in copies[:-1])
        self._explain(earlier)

    def _explain(self, earlier: list[int]) -> None:
        """Each copy but the last must have arrived just before a process was killed or stopped."""
        explained: Counter[int] = Counter()
        for place in earlier:
            near = [
                number
                for number, held in enumerate(self.held)
                if abs(held.received - 1 - place) < _NEAR and explained[number] < _COPIES_OF_A_KILL
            ]
            if near:
                explained[near[0]] += 1
            else:
                self.problems.append(f"a copy that no kill explains, of the message at place {place}")
        self.copies = explained.total()

    # --- due times ------------------------------------------------------------------------------

    def _look_at_times(self, name: str, step: timedelta) -> None:
        """Each due time has one occurrence, and it has an outcome."""
        rows = self.world.tasks.rows(
            "select due, first_due, number, state, reason from aioflow_occurrences "
            f"where task_id = {self._task(name)} order by due"
        )
        if not rows:
            self.problems.append(f"{name}: no time was due")
        expected: datetime | None = None
        for due, first_due, number, state, reason in rows:
            first, last = datetime.fromisoformat(first_due), datetime.fromisoformat(due)
            if expected is not None and first != expected:
                self.problems.append(f"{name}: {first_due} follows, not {expected.isoformat()}")
            if last - first != step * (number - 1):
                self.problems.append(f"{name}: {number} times from {first_due} to {due}")
            if state not in _OUTCOMES or (state == "failed" and reason != _LOST_TOO_OFTEN):
                self.problems.append(f"{name}: {due} is {state}: {reason}")
            expected = last + step

    def _look_at_commits(self) -> None:
        """Exactly the runs that are said to have succeeded have committed."""
        stored = [run for (run,) in self.world.plans.rows("select run from ticks")]
        succeeded = [
            run
            for (run,) in self.world.tasks.rows(
                "select run_id from aioflow_occurrences "
                f"where task_id = {self._task(TICK)} and state = 'succeeded'"
            )
        ]
        if sorted(stored) != sorted(succeeded):
            self.problems.append(f"{len(stored)} runs have committed, {len(succeeded)} have succeeded")

    def _task(self, name: str) -> str:
        return f"(select task_id from aioflow_tasks where name = '{name}')"

    def _look_for_leftovers(self) -> None:
        plans, tasks = self.world.plans, self.world.tasks
        leftovers: dict[str, list[tuple[Any, ...]]] = {
            "leases of runs": tasks.rows("select 1 from aioflow_occurrences where leased_by is not null"),
            "leases of messages": plans.rows("select 1 from aioflow_outbox where leased_by is not null"),
            "messages": plans.rows("select state from aioflow_outbox where state <> 'sent'"),
            "requests": plans.rows("select 1 from aioflow_task_requests"),
            "alerts": tasks.rows("select message from aioflow_alerts"),
        }
        for what, rows in leftovers.items():
            if rows:
                self.problems.append(f"{len(rows)} {what} are left: {rows[:3]}")
        self.problems += [*plans.problems(), *tasks.problems()]

    def summary(self) -> Counter[str]:
        """Return the numbers of due times, by outcome."""
        rows = self.world.tasks.rows("select state, sum(number) from aioflow_occurrences group by state")
        return Counter({str(state): int(number) for state, number in rows})


def _some(texts: set[str]) -> str:
    first = sorted(texts)[:3]
    return f"{len(texts)} ({', '.join(first)}{', …' if len(texts) > len(first) else ''})"
