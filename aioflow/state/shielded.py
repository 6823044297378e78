"""Work that must not be left half-done, whatever happens to whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T], interrupted: Callable[[], None] = lambda: None) -> T:
    """Await something to its end however often this is cancelled, and pass the cancellation on only then.

    `interrupted` is called with each cancellation: it may have the work end sooner.
    """
    task = asyncio.get_running_loop().create_task(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = error
            interrupted()
    result = task.result()
    if cancellation is not None:
        raise cancellation
    return result
