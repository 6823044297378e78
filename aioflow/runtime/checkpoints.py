"""The commit points of a run: its end, and the checkpoints of a plan that commits as it streams.

A checkpoint is a moment at which no row is under way. To reach it, sources are held back until all rows that
came in have been processed. The inputs of recursive calls are held back too: a recursion would otherwise be
at work until its end. Rows that rest until an input ends, as in a sort, are not under way. Services therefore
commit all consequences of a tuple in a call, or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from aioflow.runtime.events import MessagesDelivered, RunCommitted
from aioflow.runtime.session import Session

INTERVAL_SECONDS = 1.0
_SHORTEST_LOOK_SECONDS = 0.001
_LONGEST_LOOK_SECONDS = 0.05
# The turns of the loop after which a step that was woken is visibly at work.
_TURNS = 3


class CommitPoints:
    """Has the services of a run commit and deliver, and publishes both."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._number = 0

    async def commit_checkpoint(self) -> None:
        """Commit while the run goes on."""
        self._publish_commit(await self._session.services.checkpoint())

    async def commit_end(self) -> None:
        """Commit a run whose statements have all ended successfully."""
        await self._session.services.conclude()
        self._publish_commit(await self._session.services.commit())

    async def deliver(self) -> None:
        """Deliver messages after a commit."""
        delivered = await self._session.services.committed()
        if delivered is not None and self._session.events.listeners:
            figures = (delivered.sent, delivered.failed, delivered.waiting)
            self._session.events.publish(MessagesDelivered(*self._place, *figures))

    def _publish_commit(self, made_durable: bool) -> None:
        if not made_durable:
            return
        self._number += 1
        if self._session.events.listeners:
            self._session.events.publish(RunCommitted(*self._place, self._number))

    @property
    def _place(self) -> tuple[float, str, str]:
        return *self._session.events.stamp(), self._session.graph.program.name


class Checkpoints:
    """Holds the sources of a run back from time to time, and has its services commit."""

    def __init__(self, session: Session, commit_points: CommitPoints) -> None:
        self._session = session
        self._commit_points = commit_points
        self._open = asyncio.Event()
        self._open.set()
        self._waiting: list[Callable[[], None]] = []
        self._failure: Exception | None = None

    @property
    def is_open(self) -> bool:
        """True if no checkpoint is being made."""
        return self._open.is_set()

    def when_open(self, callback: Callable[[], None]) -> None:
        """Have a function called after the present checkpoint."""
        self._waiting.append(callback)

    async def gate(self) -> None:
        """Wait while a checkpoint is made; a source does so before it passes anything to the run."""
        await self._open.wait()

    async def gated(self, source: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        """Yield the items of a source, and hold them back during checkpoints."""
        async with aclosing(source):
            async for item in source:
                await self.gate()
                yield item

    async def keep(self) -> None:
        """Make checkpoints as long as the run lasts; an error in one fails the run."""
        try:
            while True:
                await asyncio.sleep(INTERVAL_SECONDS)
                if not self._session.services.want_checkpoint():
                    continue
                self._open.clear()
                try:
                    await self._quiet()
                    await self._commit_points.commit_checkpoint()
                finally:
                    self._reopen()
                await self._commit_points.deliver()
        except Exception as error:
            self._failure = error
            self._session.tasks.fail(error)

    async def finish(self) -> None:
        """Wait for the present checkpoint, and raise its error.

        A run may end successfully during a checkpoint. Cancelling that would leave it uncertain what is
        durable.
        """
        await self._open.wait()
        if self._failure is not None:
            raise self._failure

    def _reopen(self) -> None:
        self._open.set()
        waiting, self._waiting = self._waiting, []
        if not self._session.tasks.stopping:
            for callback in waiting:
                self._session.tasks.guard(callback)

    async def _quiet(self) -> None:
        """Wait until no row is under way."""
        pause = _SHORTEST_LOOK_SECONDS
        while not await self._stays_quiet():
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_SECONDS)

    async def _stays_quiet(self) -> bool:
        for _ in range(_TURNS):
            if not self._is_quiet:
                return False
            await asyncio.sleep(0)
        return self._is_quiet

    @property
    def _is_quiet(self) -> bool:
        """Return whether no row is under way, except in sources."""
        session = self._session
        return not session.tasks.has_deferred_work and all(step.is_idle for step in session.totals.active)
