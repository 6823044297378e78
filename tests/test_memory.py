"""Memory stays bounded: what must be remembered goes to disk, and a slow consumer holds its source back.

The full form, a million tuples, is `aioflow bench memory`.
"""

import asyncio
from collections.abc import AsyncGenerator

import aioflow
from aioflow import Engine
from aioflow.benchmarks.harness.processes import run_process
from aioflow.benchmarks.memory import SLOW, Passage, visits
from aioflow.testing import assert_nothing_left, run

MEBIBYTE = 1024 * 1024
CAPACITY_ROWS = 64


def test_operators_that_remember_a_hundred_thousand_tuples_spill() -> None:
    passage = Passage(**run_process("aioflow.benchmarks.memory", 100_000, 2 * MEBIBYTE))
    assert passage.count == 100_000
    assert passage.spilled_rows > 300_000  # distinct, union and at least one side of the join
    assert passage.growth_megabytes < 20  # in memory they would take 57


async def lead_over_a_slow_consumer(taken: int) -> tuple[int, float]:
    """How many rows a source is ahead, at most, of a consumer that is 100 times slower; and the time."""
    given = consumed = lead = 0

    async def source() -> AsyncGenerator[dict[str, object], None]:
        nonlocal given
        for row in visits(100_000):
            await asyncio.sleep(0.01)
            given += 1
            yield row

    async with Engine(capacity_rows=CAPACITY_ROWS) as engine:
        async with engine.stream(aioflow.loads(SLOW), visits=source()) as rows:
            async for _ in rows:
                await asyncio.sleep(1)
                consumed += 1
                lead = max(lead, given - consumed)
                if consumed == taken:
                    break
        assert_nothing_left(engine)
    return lead, asyncio.get_running_loop().time()


def test_a_consumer_a_hundred_times_slower_holds_its_source_back() -> None:
    lead, seconds = run(lead_over_a_slow_consumer(2_000))
    assert seconds >= 2_000
    # Each of the four operators, the input and the output may have a full queue and a batch at work.
    assert lead <= 6 * 2 * CAPACITY_ROWS
