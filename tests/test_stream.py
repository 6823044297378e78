"""Streams and outlets: batching, waiting, fan-out, holding, closing."""

from __future__ import annotations

import asyncio

import pytest

from aioflow.relation import Row, Schema
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.outlet import Outlet, SchemaMismatchError
from aioflow.runtime.stream import Stream, interleave
from aioflow.testing import run

N = Schema.of("n")


def stream(capacity: int = 4, memory: MemoryBudget | None = None) -> Stream:
    made = Stream(capacity, memory or MemoryBudget(1 << 20))
    made.holding = False
    return made


async def write(outlet: Outlet, *rows: Row) -> None:
    for row in rows:
        if outlet.push((row,)):
            await outlet.drain()
    outlet.end()


async def read(reader: Stream) -> list[Row]:
    return [row async for row in reader]


def numbers(count: int) -> list[Row]:
    return [(number,) for number in range(count)]


def test_rows_arrive_in_order() -> None:
    async def main() -> None:
        reader = stream()
        outlet = Outlet([reader])
        outlet.open(N)
        writing = asyncio.create_task(write(outlet, *numbers(100)))
        assert await read(reader) == numbers(100)
        await writing

    run(main())


def test_the_first_row_is_not_held_back_and_batches_grow_while_the_reader_is_busy() -> None:
    async def main() -> list[int]:
        reader = stream(capacity=64)
        outlet = Outlet([reader])
        outlet.open(N)
        writing = asyncio.create_task(write(outlet, *numbers(200)))
        sizes = [len(batch) async for batch in reader.batches()]
        await writing
        return sizes

    sizes = run(main())
    assert sizes[0] == 1
    assert sizes == sorted(sizes[:-1]) + sizes[-1:]
    assert max(sizes) == 64


def test_a_slow_reader_keeps_the_writer_back() -> None:
    async def main() -> None:
        reader = stream(capacity=4)
        outlet = Outlet([reader])
        outlet.open(N)
        writing = asyncio.create_task(write(outlet, *numbers(1000)))
        lead = 0
        async for batch in reader.batches():
            await asyncio.sleep(1)
            lead = max(lead, reader.waiting_rows)
            del batch
        await writing
        assert lead <= 4

    run(main())


def test_one_full_reader_does_not_keep_rows_from_another() -> None:
    async def main() -> None:
        slow, quick = stream(1), stream(1)
        outlet = Outlet([slow, quick])
        outlet.open(N)
        writing = asyncio.create_task(write(outlet, *numbers(3)))
        assert await quick.receive() == [(0,)]
        assert slow.waiting_rows == 1
        reading = asyncio.create_task(read(quick))
        assert await read(slow) == numbers(3)
        assert await reading == numbers(3)[1:]
        await writing

    run(main())


@pytest.mark.parametrize("seed", range(20))
def test_two_blocked_writers_are_both_woken(seed: int) -> None:
    async def main() -> None:
        reader = stream(1)
        outlets = [Outlet([reader]), Outlet([reader])]
        for outlet in outlets:
            outlet.open(N)
        writing = [asyncio.create_task(write(outlet, *numbers(50))) for outlet in outlets]
        assert sorted(await read(reader)) == sorted(numbers(50) * 2)
        await asyncio.gather(*writing)

    run(main(), seed=seed)


def test_while_one_input_is_awaited_the_other_accepts_everything_on_disk_if_need_be() -> None:
    async def main() -> None:
        memory = MemoryBudget(500)
        first, second = stream(2, memory), stream(2, memory)
        first.siblings = second.siblings = (first, second)
        outlets = [Outlet([first]), Outlet([second])]
        for outlet in outlets:
            outlet.open(N)

        async def write_second_then_first() -> None:
            await write(outlets[1], *numbers(2000))
            await write(outlets[0], *numbers(3))

        writing = asyncio.create_task(write_second_then_first())
        assert await read(first) == numbers(3)
        assert memory.spilled_rows > 0
        assert await read(second) == numbers(2000)
        await writing
        second.release()
        assert (memory.used_bytes, memory.open_files) == (0, 0)

    run(main())


def test_interleave_gives_batches_of_any_input_and_starves_none() -> None:
    async def main() -> None:
        left, right = stream(), stream()
        outlets = [Outlet([left]), Outlet([right])]
        for outlet in outlets:
            outlet.open(N)
        writing = [asyncio.create_task(write(outlet, *numbers(20))) for outlet in outlets]
        seen: list[tuple[str, Row]] = []
        async for source, batch in interleave(left, right):
            seen += [("left" if source is left else "right", row) for row in batch]
        assert sorted(seen) == sorted((side, row) for side in ("left", "right") for row in numbers(20))
        assert {side for side, _ in seen[:6]} == {"left", "right"}
        await asyncio.gather(*writing)

    run(main())


def test_closing_the_last_reader_tells_the_writer() -> None:
    async def main() -> None:
        told: list[bool] = []
        readers = [stream(), stream()]
        outlet = Outlet(readers, lambda: told.append(True))
        readers[0].close()
        assert (told, outlet.unread) == ([], False)
        readers[1].close()
        assert (told, outlet.unread) == ([True], True)
        assert not outlet.push([(1,)])

    run(main())


def test_closing_frees_a_writer_that_waits() -> None:
    async def main() -> None:
        reader = stream(1)
        outlet = Outlet([reader])
        outlet.open(N)
        writing = asyncio.create_task(write(outlet, *numbers(1000)))
        assert await reader.receive() == [(0,)]
        reader.close()
        await writing

    run(main())


def test_an_end_is_dead_only_if_all_writers_ended_dead() -> None:
    reader = stream()
    outlets = [Outlet([reader]), Outlet([reader])]
    outlets[0].end(dead=True)
    assert (reader.ended, reader.dead) == (False, True)
    outlets[1].end(dead=False)
    assert (reader.ended, reader.dead) == (True, False)


def test_a_second_writer_with_other_column_order_is_reordered() -> None:
    reader = stream(100)
    first, second = Outlet([reader]), Outlet([reader])
    first.open(Schema.of("a", "b"))
    second.open(Schema.of("b", "a"))
    first.push([(1, 2)])
    second.push([(20, 10)])
    assert reader.take() == [(1, 2), (10, 20)]
    with pytest.raises(SchemaMismatchError, match="the inputs differ in their attributes: a, b and a, c"):
        Outlet([reader]).open(Schema.of("a", "c"))


def test_a_stream_left_early_loses_no_row_and_leaves_no_task() -> None:
    async def main() -> None:
        reader = stream(100)
        outlet = Outlet([reader])
        outlet.open(N)
        outlet.push(numbers(5))
        async for row in reader:
            assert row == (0,)
            break
        assert await reader.receive() == numbers(5)[1:]
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    run(main())
