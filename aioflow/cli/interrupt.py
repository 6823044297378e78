"""Runs a coroutine so that Ctrl-C ends it in a moment: once with everything released, twice at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

# What must be undone even when the user does not wait for the run to end: a temporary file, a hidden cursor.
exit_callbacks: list[Callable[[], None]] = []
# Signals since a coroutine was last begun, for code that writes a last message.
signals_received: list[int] = []


def run_interruptibly(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; a first signal cancels it, a second one ends the process."""
    received = signals_received
    received.clear()

    async def supervised() -> T:
        task = asyncio.current_task()
        assert task is not None
        with _signals(task, received):
            return await main

    # Not a `with`: that would wait for threads that still work for the run; an interrupted user would not.
    runner = asyncio.Runner()
    try:
        result = runner.run(supervised())
    except BaseException:
        if received:
            exit_by_signal(received[0])
        runner.close()
        raise
    runner.close()
    return result


@contextmanager
def _signals(task: asyncio.Task[Any], received: list[int]) -> Iterator[None]:
    loop = task.get_loop()

    def on_signal(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            exit_by_signal(number)
        loop.call_soon_threadsafe(task.cancel)

    # A handler of the interpreter, unlike the loop's, also runs while an operator keeps the loop busy.
    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def exit_by_signal(number: int) -> NoReturn:
    """End the process because of a signal, without waiting for threads."""
    for words in tuple(exit_callbacks):
        with suppress(OSError):
            words()
    with suppress(OSError, ValueError):
        sys.stderr.write("interrupted\n")
        sys.stderr.flush()
    os._exit(128 + number)
