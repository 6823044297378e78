"""Back-pressure: the room that a reader has for rows, and the writers that wait for it."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Sequence


class Room:
    """The room of one reader, which is full or free. Writers that have filled it wait until it is free again.

    Its owner decides both. Each reader has one, so that a writer can wait for the slowest of several.
    """

    __slots__ = ("_waiting", "is_full")

    def __init__(self) -> None:
        self.is_full = False
        # A list, not one slot: with two writers on one stream a single slot loses a wake-up.
        self._waiting: list[Future[None]] = []

    @property
    def is_awaited(self) -> bool:
        """True if a writer waits for room."""
        return bool(self._waiting)

    def free(self) -> None:
        """Let the writers go on."""
        self.is_full = False
        for freed in self._waiting:
            if not freed.done():
                freed.set_result(None)
        self._waiting.clear()

    def freed(self) -> Future[None]:
        """Return a future that is done when there is room; a writer that came first may fill it again."""
        freed: Future[None] = asyncio.get_running_loop().create_future()
        if self.is_full:
            self._waiting.append(freed)
        else:
            freed.set_result(None)
        return freed

    async def wait(self) -> None:
        """Wait until there is room."""
        while self.is_full:
            freed = self.freed()
            try:
                await freed
            finally:
                if freed in self._waiting:
                    self._waiting.remove(freed)


def when_freed(rooms: Sequence[Room], callback: Callable[[], None]) -> None:
    """Call back when all of these rooms, not just the first, have become free."""
    asyncio.gather(*[room.freed() for room in rooms]).add_done_callback(lambda _: callback())
