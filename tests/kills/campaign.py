"""Kills commands of aioflow at moments or at random times, has them run again, and asks the oracle."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tests.kills.commands import Victim
from tests.kills.oracle import Kill, Oracle
from tests.kills.world import World

KILLED = -9

_DELIVERIES = 5
_MOST_PROBLEMS = 50
# Starting a process takes half of its life; there is more to be hit in the other half.
_EARLY_SHARE, _LATE_FROM = 0.2, 0.4
_DELIVERY_SHARE = 0.25
_COMMITTED = "transaction committed"
_SHORTER = 0.9
_TELL_EACH = 20


@dataclass
class Report:
    """What campaigns did, and what is wrong."""

    hits: Counter[str] = field(default_factory=Counter)  # kills by moment
    random_kills: int = 0
    missed: int = 0  # commands that had ended before they were killed
    copies: int = 0
    told: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.hits.total() + self.random_kills


@dataclass(frozen=True)
class Changes:
    """What the source does before each kill."""

    new: int = 6
    changed: int = 2
    gone: int = 1


# What was killed may be left as it is: whoever runs next has to tell the same.
ONLY_NEW = Changes(3, 0, 0)


class Campaign:
    """Kills in one world. Unless it is `chained`, each is followed by a recovery and a look at everything."""

    def __init__(
        self,
        world: World,
        report: Report,
        changes: Changes | None = None,
        *,
        chained: bool = False,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._world = world
        self._report = report
        self._changes = changes or (ONLY_NEW if chained else Changes())
        self._chained = chained
        self._tell = tell
        self._oracle = Oracle(world)

    def upgrade(self, variables: Mapping[str, str]) -> None:
        """From now on commands get these variables as well."""
        self._world.variables = {**self._world.variables, **variables}

    # --- kills ----------------------------------------------------------------------------------

    def run_once(self) -> None:
        """A run that nobody kills."""
        self._change()
        self._recover()

    def kill_at_moments(self, moments: Iterable[str], passings: Iterable[int] = (1,)) -> None:
        """Kill a run at every moment, at each of the times that it passes."""
        for moment in moments:
            for passing in passings:
                self._change()
                if not self._kill(moment, lambda: self._world.start_run(f"{moment}:{passing}").wait()):  # noqa: B023
                    self._recover()
                    break  # it does not pass so often
                self._follow_up()

    def kill_deliveries_at_moments(self, moments: Iterable[str]) -> None:
        """Kill `outbox deliver` at every moment, after a run that was killed before it delivered anything."""
        for moment in moments:
            self._leave_undelivered()
            self._kill(moment, lambda: self._world.start_delivery(moment).wait())  # noqa: B023
            self._follow_up()

    def kill_at_random(self, count: int) -> None:
        """Kill runs, and deliveries now and then, at any time of their lives."""
        until = self._report.random_kills + count
        random, seconds = self._world.random, self._measure()
        while self._report.random_kills < until and len(self._oracle.problems) < _MOST_PROBLEMS:
            is_delivery = random.random() < _DELIVERY_SHARE
            early = random.random() < _EARLY_SHARE
            after = seconds * random.uniform(0 if early else _LATE_FROM, 1.0)
            if is_delivery:
                self._leave_undelivered()
                start = self._world.start_delivery
            else:
                self._change()
                start = self._world.start_run
            if not self._kill(None, lambda: _kill_after(start(), after), f"{after:.3f} s"):  # noqa: B023
                seconds = max(after, _SHORTER * seconds)  # a busy machine has become less so
            elif self._report.random_kills % _TELL_EACH == 0:
                self._tell(f"{self._report.random_kills} random kills, {self._report.missed} missed")
            self._follow_up()

    def finish(self) -> None:
        """Add up."""
        if self._chained:
            self._recover()
            self._oracle.look_after_recovery()
        self._report.copies += sum(kill.copies for kill in self._oracle.kills)
        self._report.told += len(self._world.expected())
        self._report.problems += self._oracle.problems

    # --- steps ----------------------------------------------------------------------------------

    def _change(self) -> None:
        if self._chained:
            self._world.store.release_leases()
        changes = self._changes
        self._world.source.advance(changes.new, changes.changed, changes.gone)

    def _leave_undelivered(self) -> None:
        """Have messages that are committed, and whose run was killed right then."""
        self._change()
        self._kill(_COMMITTED, lambda: self._world.start_run(_COMMITTED).wait())

    def _kill(self, moment: str | None, victim: Callable[[], int | None], where: str = "") -> bool:
        """Have a command killed, and look; False when it had ended before."""
        before, stored = self._counts(), self._oracle.stored()
        code = victim()
        self._world.settle()
        if code == 0:
            self._report.missed += 1
            return False
        if code != KILLED:
            self._oracle.problems.append(f"{moment or where}: ended with {code}: {self._world.last_words()}")
        self._oracle.kills.append(Kill(moment or where, moment, before, self._counts()))
        self._report.hits[moment or ""] += moment is not None
        self._report.random_kills += moment is None
        self._oracle.look_after_kill(stored)
        return True

    def _follow_up(self) -> None:
        if not self._chained:
            self._recover()
            self._oracle.look_after_recovery()

    def _recover(self) -> None:
        """Run again what was killed, then deliver what is left, until nothing is."""
        world = self._world
        world.store.expire_leases()
        self._expect(world.start_run())
        for _ in range(_DELIVERIES):
            if not world.undelivered():
                return
            world.store.expire_leases()
            self._expect(world.start_delivery())

    def _expect(self, victim: Victim) -> None:
        code = victim.wait()
        if code != 0:
            self._oracle.problems.append(f"recovery ended with {code}: {self._world.last_words()}")

    def _measure(self) -> float:
        """How long a run takes when nobody kills it."""
        self._change()
        begun = time.monotonic()
        self._expect(self._world.start_run())
        seconds = time.monotonic() - begun
        self._recover()
        return seconds

    def _counts(self) -> dict[str, int]:
        return {channel: len(receipts) for channel, receipts in self._world.receipts().items()}


def _kill_after(victim: Victim, seconds: float) -> int | None:
    code = victim.wait(seconds)
    if code is None:
        victim.kill()
        code = victim.wait()
    return code
