"""Pauses between pages that are read on the loop: what came in and what was found gets through meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque

# Reading may keep the loop this long at a stretch; then everything else has some turns.
STRETCH_SECONDS = 0.002
TURNS = 8


class Pauses:
    """Has whoever reads pages on the loop wait a few of its turns after each stretch of work.

    Pages that arrive together would else all be read before the rows of the first have left, or before an
    answer that leads to further pages is looked at.
    """

    def __init__(self) -> None:
        self._spent_seconds = 0.0
        self._turns = 0
        self._is_counting = False
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
        """Take note of work that was done since the loop had its last turn."""
        self._spent_seconds += seconds
        if self._turns:
            return
        if self._spent_seconds >= STRETCH_SECONDS:
            self._turns = TURNS
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._spent_seconds = 0.0
        if self._turns:
            self._turns -= 1
        if self._turns:
            asyncio.get_running_loop().call_soon(self._turn)
            return
        self._is_counting = False
        waiting, self._waiting = self._waiting, deque()
        for ended in waiting:
            if not ended.done():
                ended.set_result(None)
