"""Pauses between pages that are read on the loop: what came in and what was found gets through meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque

# After so much reading, be it at a stretch or not, everything else has some turns of the loop.
STRETCH_SECONDS = 0.001
TURNS = 8


class Pauses:
    """Has whoever reads pages on the loop wait a few of its turns after each stretch of work.

    Pages that arrive together, or one after the other, would else be read before the rows of the first have
    left, which takes some turns, or before an answer that leads to further pages is looked at.
    """

    def __init__(self) -> None:
        self._spent_seconds = 0.0
        self._turns = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_on(self) -> bool:
        """Whether it is somebody else's turn."""
        return self._turns > 0

    async def end(self) -> None:
        """Wait while it is somebody else's turn."""
        while self._turns:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(ended)
            await ended

    def worked(self, seconds: float) -> None:
        """Take note of work that was done since the last pause."""
        self._spent_seconds += seconds
        if self._turns or self._spent_seconds < STRETCH_SECONDS:
            return
        self._spent_seconds = 0.0
        self._turns = TURNS
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._turns -= 1
        if self._turns:
            asyncio.get_running_loop().call_soon(self._turn)
            return
        waiting, self._waiting = self._waiting, deque()
        for ended in waiting:
            if not ended.done():
                ended.set_result(None)
