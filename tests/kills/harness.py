"""Puts worlds and campaigns together: every moment in a world where it passes, then random kills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

from tests.kills.campaign import Campaign, Changes, Report
from tests.kills.commands import NEWER_TABLES, Commands
from tests.kills.moments import all_moments
from tests.kills.receivers import Receivers, receivers
from tests.kills.stores import PostgresStore, SqliteStore, Store
from tests.kills.world import CHANNELS, DIGESTS, MONITOR, NOTICES, STREAM, World
from tests.servers.postgres import Postgres

Kind: TypeAlias = Literal["sqlite", "postgresql"]

# Where a moment passes: in the first run on a database, in an upgrade, or by the channel that it belongs to.
TABLES, COPIED = "tables ", "tables copied"
_PASS_IN = {CHANNELS: ("gateway-", "maildir-"), NOTICES: ("apprise-",), DIGESTS: ("digest ",)}
_OF_DELIVERIES = ("message ", "smtp-")
_STREAMED = Changes(new=30, changed=0, gone=0)
_LOAD = Changes(new=20, changed=5, gone=2)


@dataclass
class Harness:
    """Makes worlds, each with a folder, a database and a seed of its own."""

    folder: Path
    commands: Commands
    receivers: Receivers
    postgres: Callable[[], Postgres]
    seed: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    tell: Callable[[str], None] = lambda line: None
    _worlds: int = 0

    def kill_at_all_moments(self, kind: Kind, *, passings: tuple[int, ...] = (1,), chained: bool) -> None:
        """Kill runs at every moment, each where it passes."""
        moments = list(all_moments())
        self._kill_while_tables_are_made(kind, [name for name in moments if name.startswith(TABLES)])
        elsewhere = (TABLES, *(prefix for prefixes in _PASS_IN.values() for prefix in prefixes))
        ordinary = [name for name in moments if not name.startswith(elsewhere)]
        with self.campaign(kind, chained=chained) as campaign:
            campaign.kill_at_moments(ordinary, passings)
        for plan, prefixes in _PASS_IN.items():
            with self.campaign(kind, plan, chained=chained) as campaign:
                campaign.kill_at_moments([name for name in moments if name.startswith(prefixes)], passings)

    def _kill_while_tables_are_made(self, kind: Kind, moments: list[str]) -> None:
        """The first run on a database, and the first of a newer aioflow; they are made when all were hit."""
        with self.campaign(kind, chained=True) as campaign:
            campaign.kill_at_moments([name for name in moments if name != COPIED])
        with self.campaign(kind, chained=True) as campaign:
            campaign.run_once()
            campaign.upgrade({NEWER_TABLES: "1"})
            campaign.kill_at_moments(moments)

    def kill_deliveries(self, kind: Kind) -> None:
        """Kill `outbox deliver` at every moment of a delivery."""
        with self.campaign(kind) as campaign:
            campaign.kill_deliveries_at_moments(
                name for name in all_moments() if name.startswith(_OF_DELIVERIES)
            )

    def kill_while_streaming(
        self, kind: Kind, moments: Iterable[str], passings: tuple[int, ...] = (1,)
    ) -> None:
        """A plan that commits as it streams."""
        with self.campaign(kind, STREAM, changes=_STREAMED) as campaign:
            campaign.kill_at_moments(moments, passings)

    def kill_at_random(self, kind: Kind, count: int, *, chained: bool = False) -> None:
        with self.campaign(kind, changes=None if chained else _LOAD, chained=chained) as campaign:
            campaign.kill_at_random(count)

    def check_all_were_hit(self) -> None:
        for name in all_moments():
            if not self.report.hits[name]:
                self.report.problems.append(f"the moment {name!r} was never hit")

    @contextmanager
    def campaign(
        self, kind: Kind, plan: str = MONITOR, *, changes: Changes | None = None, chained: bool = False
    ) -> Iterator[Campaign]:
        """A campaign in a new world, whose result is added to the report."""
        self._worlds += 1
        folder = self.folder / f"world-{self._worlds}"
        folder.mkdir()
        store: Store = SqliteStore(folder / "db") if kind == "sqlite" else PostgresStore(self.postgres())
        random = Random(f"{self.seed} {self._worlds}")
        world = World(folder, store, self.commands, self.receivers, random, plan, self.variables)
        campaign = Campaign(world, self.report, changes, chained=chained, tell=self.tell)
        known = len(self.report.problems)
        try:
            yield campaign
            campaign.finish()
        finally:
            store.close()
        self.tell(f"{kind}, {plan}: {self.report.kills} kills, {len(self.report.problems)} problems")
        for problem in self.report.problems[known:]:
            self.tell(f"  {problem}")


@contextmanager
def harness(
    folder: Path, commands: Commands, postgres: Callable[[], Postgres], seed: int, **variables: str
) -> Iterator[Harness]:
    """With the receivers running."""
    with receivers(folder) as running:
        yield Harness(folder, commands, running, postgres, seed, variables)
