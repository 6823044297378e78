"""Work that is finished although the task that awaits it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_shielded(work: Coroutine[Any, Any, T], on_cancel: Callable[[], None] = lambda: None) -> T:
    """Return the result of `work`; a cancellation is raised only after the work has ended.

    `asyncio.shield` lets the caller go on at once and leaves the work to itself. Each cancellation calls
    `on_cancel`, which may have the work end sooner. An error of the work comes before the cancellation.
    """
    task = asyncio.get_running_loop().create_task(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = error
            on_cancel()
    result = task.result()
    if cancellation is not None:
        raise cancellation
    return result
