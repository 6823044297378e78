"""Pauses between stretches of work on the loop."""

from __future__ import annotations

import asyncio

from aioflow.testing import run
from aioflow.wrappers.loop_fairness import STRETCH_SECONDS, TURNS, LoopPauses


def test_a_stretch_of_work_is_followed_by_turns_for_others() -> None:
    async def main() -> int:
        pauses, turns = LoopPauses(), 0
        pauses.worked(STRETCH_SECONDS)
        assert pauses.is_on
        while pauses.is_on:
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert run(main()) == TURNS


def test_little_work_adds_up_over_the_turns() -> None:
    async def main() -> list[bool]:
        pauses, seen = LoopPauses(), []
        for _ in range(4):
            pauses.worked(STRETCH_SECONDS / 2)
            seen.append(pauses.is_on)
            for _ in range(TURNS + 1):
                await asyncio.sleep(0)
        return seen

    assert run(main()) == [False, True, False, True]


def test_who_waits_goes_on_one_stretch_after_the_other_and_a_cancelled_one_holds_nobody_up() -> None:
    done: list[int] = []

    async def work(pauses: LoopPauses, number: int) -> None:
        await pauses.end()
        done.append(number)
        pauses.worked(STRETCH_SECONDS)

    async def main() -> None:
        pauses = LoopPauses()
        pauses.worked(STRETCH_SECONDS)
        tasks = [asyncio.ensure_future(work(pauses, number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())
    assert done == [0, 2, 3, 4]
