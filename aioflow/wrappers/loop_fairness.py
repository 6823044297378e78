"""The time that a page may take on the event loop, and the pauses between pages that are read there.

Readers call `check` in their loops, and `weigh` or `limit_text` before work that cannot be interrupted. A
page that takes too long raises HeavyPageError, and is read again in another process. In that process, as
wherever no limit was set, these functions do nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import local
from time import thread_time
from typing import TypeVar

T = TypeVar("T")

# Of processor time: a busy machine does not make pages heavy.
LOOP_SECONDS = 0.05
# Steps of a pattern that take about as long, in the slowest engine that re2 falls back to.
_MOST_STEPS = 8_000_000
# Text that is kept until an item in it is complete.
_MOST_CHARACTERS = 1 << 20
# Text that lxml puts together of the texts of elements, at some 300 MB a second.
_MOST_COPIED = 16 << 20
_CHECKS_A_LOOK = 16


class HeavyPageError(Exception):
    """A page is too much for the event loop."""


class _State(local):
    until: float | None = None
    checks = 0


_state = _State()


@contextmanager
def on_the_loop() -> Iterator[None]:
    """Limit what is read in this thread until the end of the block."""
    _state.until = thread_time() + LOOP_SECONDS
    try:
        yield
    finally:
        _state.until = None


def is_limited() -> bool:
    """Return whether a page is being read on the event loop."""
    return _state.until is not None


def check() -> None:
    """Look whether the time is over."""
    if _state.until is None:
        return
    _state.checks += 1
    if _state.checks % _CHECKS_A_LOOK == 0 and thread_time() > _state.until:
        raise HeavyPageError


def checked(values: Iterable[T]) -> Iterator[T]:
    """Yield the same values, with a look at the time before each."""
    for value in values:
        check()
        yield value


def weigh(steps: int) -> None:
    """Look whether so many steps of a pattern are too much."""
    if steps > _MOST_STEPS and _state.until is not None:
        raise HeavyPageError
    check()


def weigh_texts(characters: int) -> None:
    """Look whether so much text is too much to be put together of its pieces."""
    if characters > _MOST_COPIED and _state.until is not None:
        raise HeavyPageError


def limit_text(characters: int) -> None:
    """Look whether an item that is not complete is too long already."""
    if characters > _MOST_CHARACTERS and _state.until is not None:
        raise HeavyPageError


# After so much reading, be it at a stretch or not, everything else has some turns of the loop.
STRETCH_SECONDS = 0.001
TURNS = 8


class LoopPauses:
    """Pauses of a few turns of the loop after each stretch of reading on it.

    Pages that arrive together, or one after the other, would else be read before the rows of the first have
    left, which takes some turns, or before an answer that leads to further pages is looked at.
    """

    def __init__(self) -> None:
        self._spent_seconds = 0.0
        self._turns = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_on(self) -> bool:
        """True if another task has its turn."""
        return self._turns > 0

    async def end(self) -> None:
        """Wait while another task has its turn."""
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
