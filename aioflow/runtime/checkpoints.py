"""Checkpoints of a plan that commits as it streams: moments at which no row is under way.

For a checkpoint the sources are held back until everything that came in has been worked on. The inputs of
recursive calls are held back too: a recursion would otherwise be at work until its end. Rows that rest until
an input ends, as in a sort, are not under way. The services of the run then hold what belongs together: of no
tuple in a call one consequence is there and another missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from aioflow.runtime.session import Session

INTERVAL_SECONDS = 1.0
_SHORTEST_LOOK_SECONDS = 0.001
_LONGEST_LOOK_SECONDS = 0.05
# Turns of the loop in which a step that was woken shows itself.
_TURNS = 3


class Checkpoints:
    """Holds the sources of a run back from time to time, and has its services commit."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open = asyncio.Event()
        self._open.set()
        self._waiting: list[Callable[[], None]] = []

    @property
    def is_open(self) -> bool:
        """Whether no checkpoint is being made."""
        return self._open.is_set()

    def when_open(self, callback: Callable[[], None]) -> None:
        """Call back after the checkpoint that is being made."""
        self._waiting.append(callback)

    async def gate(self) -> None:
        """Passed by a source with whatever it brings into the run."""
        await self._open.wait()

    async def gated(self, source: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        """What a source brings, held back during checkpoints."""
        async with aclosing(source):
            async for item in source:
                await self.gate()
                yield item

    async def keep(self) -> None:
        """Make checkpoints as long as the run lasts; what fails there fails the run."""
        services = self._session.services
        try:
            while True:
                await asyncio.sleep(INTERVAL_SECONDS)
                if not services.want_checkpoint():
                    continue
                self._open.clear()
                try:
                    await self._quiet()
                    await services.checkpoint()
                finally:
                    self._reopen()
                await services.after_checkpoint()
        except Exception as error:
            self._session.fail(error)

    def _reopen(self) -> None:
        self._open.set()
        waiting, self._waiting = self._waiting, []
        if not self._session.stopping:
            for callback in waiting:
                self._session.guard(callback)

    async def _quiet(self) -> None:
        """Wait until no row is under way."""
        pause = _SHORTEST_LOOK_SECONDS
        while not await self._stays_quiet():
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_SECONDS)

    async def _stays_quiet(self) -> bool:
        for _ in range(_TURNS):
            if not self._session.is_quiet:
                return False
            await asyncio.sleep(0)
        return self._session.is_quiet
