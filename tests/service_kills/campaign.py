"""Kills or stops services at moments and at random, has others take over, and asks the oracle in the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.clocks import PATIENCE_SECONDS
from tests.kills.moments import service_moments
from tests.kills.receivers import Receivers
from tests.servers.postgres import Postgres
from tests.service_kills.oracle import Oracle
from tests.service_kills.world import Kind, Service, World, rows_now

KILLED = -9
TABLES = "tables "

# Passed in a service by the runs of its tasks, and by the deliveries of their messages.
OF_RUNS = ("transaction ", "writes ", "message ", "smtp-")
# A service that takes a run over passes these. Another one must have been killed while it ran something.
_AFTER_A_KILL = ("run taken over", "fence raised")
_UNDER_WAY = "writes applied"
_CHANGE_SECONDS = 0.4
_LIFE_SECONDS = (0.3, 6.0)
_LONGEST_LIFE_SECONDS = 90.0


@dataclass
class Report:
    """The kills and stops of campaigns, and everything that is wrong."""

    hits: Counter[str] = field(default_factory=Counter)
    random_kills: int = 0
    stops: Counter[str] = field(default_factory=Counter)
    told: int = 0
    copies: int = 0
    times: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Campaign:
    """Kills and stops in one world."""

    def __init__(self, world: World, report: Report, tell: Callable[[str], None]) -> None:
        self.world = world
        self._report = report
        self._tell = tell
        self._oracle = Oracle(world)

    # --- kills ----------------------------------------------------------------------------------

    def kill_while_tables_are_made(self, moments: Iterable[str]) -> None:
        """Kill services that find no database yet, before there is a task."""
        for moment in moments:
            self._kill_at(moment, 1)

    def begin(self) -> None:
        """Add the tasks."""
        self.world.add_tasks()

    def kill_at_moments(self, moments: Iterable[str], passings: Iterable[int] = (1,)) -> None:
        """Kill one service after the other, each at a moment; the next one takes over from it."""
        for moment in moments:
            for passing in passings:
                if moment in _AFTER_A_KILL:
                    self._kill_at(_UNDER_WAY, passing)
                self._kill_at(moment, 1 if moment in _AFTER_A_KILL else passing)

    def _kill_at(self, moment: str, passing: int) -> None:
        service = self.world.start(kill_at=f"{moment}:{passing}")
        deadline = time.monotonic() + _LONGEST_LIFE_SECONDS
        while service.ended() is None and time.monotonic() < deadline:
            self._let_time_pass(_CHANGE_SECONDS)
            if service.ended() is None:
                self.world.advance()
        if service.ended() != KILLED:
            self._report.problems.append(
                f"{moment}:{passing}: ended with {service.ended()}: {self.world.last_words()}"
            )
            service.kill()
        self._settle(f"{moment}:{passing}")
        self._report.hits[moment] += 1
        self._tell(f"killed at {moment}:{passing}")

    def kill_at_random(self, count: int, *, services: int = 1) -> None:
        """Kill services at any time of their lives. With several, the others are there to take over."""
        random = self.world.random
        alive = [self.world.start() for _ in range(services)]
        for number in range(count):
            self._change_for(random.uniform(*_LIFE_SECONDS))
            victim = random.randrange(services)
            if alive[victim].ended() is not None:
                self._report.problems.append(f"a service ended by itself: {self.world.last_words()}")
            alive[victim].kill()
            self._settle(f"random {number}", alone=services == 1)
            self._report.random_kills += 1
            alive[victim] = self.world.start()
            if number % 20 == 19:
                self._tell(f"{number + 1} random kills, {len(self.world.receipts())} messages")
        for service in alive:
            service.kill()
        self._settle("the last", alone=True)

    def serve_until(self, condition: Callable[[], bool]) -> None:
        """Have a service work, and stop it in order."""
        service = self.world.start()
        self.world.wait_until(condition, "a service works")
        self._expect(service)

    def has_ticked(self) -> bool:
        """Whether a run has committed."""
        return bool(rows_now(self.world.plans, "select run from ticks limit 1"))

    # --- stops ----------------------------------------------------------------------------------

    def stop_at_moments(self, moments: Iterable[str]) -> None:
        """Stop one of two services at a moment, as by SIGSTOP, and continue it when the other has gone on."""
        other = self.world.start()
        for moment in moments:
            held_up = self.world.start(stop_at=f"{moment}:2")
            self._change_until(lambda: held_up.is_suspended, f"a stop at {moment}")  # noqa: B023
            self._oracle.note(f"stop at {moment}")
            self._report.stops[moment] += 1
            self._let_the_other_go_on()
            held_up.resume()
            self._oracle.note(f"resumed after {moment}")
            self._change_for(3)
            self._expect(held_up)
            self._tell(f"stopped at {moment}, and continued")
        self._expect(other)

    def stop_at_random(self, count: int) -> None:
        """Stop one of two services again and again, at any time."""
        services = [self.world.start(), self.world.start()]
        random = self.world.random
        for number in range(count):
            self._change_for(random.uniform(1, 5))
            held_up = services[number % 2]
            held_up.suspend()
            self._oracle.note(f"stop {number}")
            self._report.stops["random"] += 1
            self._let_the_other_go_on()
            held_up.resume()
            self._oracle.note(f"resumed {number}")
        self._change_for(3)
        for service in services:
            self._expect(service)

    def _let_the_other_go_on(self) -> None:
        """Longer than the leases last."""
        self._change_for(4)

    def _expect(self, service: Service) -> None:
        code = service.stop()
        if code != 0:
            self._report.problems.append(f"a service ended with {code}: {self.world.last_words()}")

    # --- the end --------------------------------------------------------------------------------

    def finish(self) -> None:
        """Have a last service do all that is left, stop it in order, and look at everything."""
        world, report = self.world, self._report
        service = world.start()
        world.wait_until(world.is_all_told, "a service tells everything")
        world.pause_tasks()
        world.wait_until(world.is_idle, "runs end")
        world.wait_until(world.is_all_told, "messages leave")
        self._expect(service)
        world.plans.settle()
        self._oracle.look()
        report.problems += self._oracle.problems
        report.copies += self._oracle.copies
        report.told += len(world.source.told)
        report.times += self._oracle.summary()

    # --- time -----------------------------------------------------------------------------------

    def _settle(self, where: str, *, alone: bool = True) -> None:
        """Wait until nothing of a killed process is under way any more, and note the kill."""
        if alone:
            self.world.plans.settle()
            self.world.receivers.settle()
        self._oracle.note(where)

    def _change_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.world.advance()
            self._let_time_pass(min(_CHANGE_SECONDS, max(end - time.monotonic(), 0)))

    def _change_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"it takes too long: {what}\n{self.world.last_words()}"
            self.world.advance()
            self._let_time_pass(_CHANGE_SECONDS)

    def _let_time_pass(self, seconds: float) -> None:
        time.sleep(seconds)  # services live in real time


@dataclass
class Harness:
    """Makes worlds, each with a folder, databases and a seed of its own."""

    folder: Path
    receivers: Receivers
    postgres: Callable[[], Postgres]
    seed: int = 0
    report: Report = field(default_factory=Report)
    tell: Callable[[str], None] = lambda line: None
    _worlds: int = 0

    @contextmanager
    def campaign(self, kind: Kind) -> Iterator[Campaign]:
        """A campaign in a new world, whose result is added to the report."""
        self._worlds += 1
        folder = self.folder / f"world-{self._worlds}"
        folder.mkdir()
        random = Random(f"{self.seed} {self._worlds}")
        world = World(folder, kind, self.receivers, random, self.postgres)
        known = len(self.report.problems)
        try:
            campaign = Campaign(world, self.report, lambda line: self.tell(f"{kind}: {line}"))
            yield campaign
            campaign.finish()
        finally:
            world.close()
        for problem in self.report.problems[known:]:
            self.tell(f"  {problem}")

    def check_all_were_hit(self) -> None:
        for name in service_moments():
            if not self.report.hits[name]:
                self.report.problems.append(f"the moment {name!r} was never hit")
