"""Deadlines: they end what takes too long, and only that."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from aioflow.testing import VirtualLoop
from aioflow.web.connections import Deadline


def on_virtual_clock(main: Coroutine[Any, Any, float]) -> float:
    """Run it; the time at which it ended."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_deadline_ends_what_takes_longer() -> None:
    async def main() -> float:
        deadline = Deadline()
        deadline.set(now() + 1)
        deadline.set(now() + 2)
        with pytest.raises(TimeoutError), deadline:
            await asyncio.sleep(10)
        assert deadline.has_expired
        await asyncio.sleep(0)  # it has taken its cancellation back
        return now()

    assert on_virtual_clock(main()) == 2


def test_a_deadline_that_was_kept_does_nothing_afterwards() -> None:
    async def main() -> float:
        deadline = Deadline()
        with deadline:
            deadline.set(now() + 2)
            await asyncio.sleep(1)
        await asyncio.sleep(10)
        assert not deadline.has_expired
        return now()

    assert on_virtual_clock(main()) == 11


def test_an_error_at_the_deadline_stays_what_it_is() -> None:
    async def waiting(deadline: Deadline) -> None:
        with deadline:
            deadline.set(now() + 1)
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                raise LookupError from None

    async def main() -> float:
        with pytest.raises(LookupError):
            await waiting(Deadline())
        await asyncio.sleep(0)
        return now()

    assert on_virtual_clock(main()) == 1


def test_who_is_cancelled_at_the_deadline_stays_cancelled() -> None:
    async def waiting(deadline: Deadline) -> None:
        with deadline:
            deadline.set(now() + 1)
            await asyncio.sleep(10)

    async def main() -> float:
        deadline = Deadline()
        task = asyncio.create_task(waiting(deadline))
        asyncio.get_running_loop().call_at(1, task.cancel)
        await asyncio.wait([task])
        assert task.cancelled()
        return now()

    assert on_virtual_clock(main()) == 1
