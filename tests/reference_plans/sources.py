"""What the reference plans call: functions in the place of slow sources, and the operators of the paper."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import aioflow
from aioflow import Stream, To, interleave
from aioflow.authoring.operator import Operator, attributes, describe
from aioflow.relation import Batch
from tests.naive.bag import Bag
from tests.naive.operators import Known, Work

Tuple = Mapping[str, Any]
PAGES, HOUSES_ON_A_PAGE = 5, 3
PAGE = "house-url char, next-page-link number"


def _page(number: int) -> list[Tuple]:
    following = number + 1 if number + 1 < PAGES else None
    return [
        {"house-url": f"house-{number}-{house}", "next-page-link": following}
        for house in range(HOUSES_ON_A_PAGE)
    ]


@aioflow.function(name="reference_search", returns=PAGE, pure=True)
async def search(row: Tuple) -> list[Tuple]:
    """The first page of results."""
    await asyncio.sleep(0.1)
    return _page(0)


@aioflow.function(name="reference_result_page", returns=PAGE, pure=True)
async def result_page(row: Tuple) -> list[Tuple]:
    """The page behind a link; none behind no link."""
    if row["next-page-link"] is None:
        return []
    await asyncio.sleep(0.1)
    return _page(row["next-page-link"])


@aioflow.function(name="reference_detail", returns="address char, beds number", pure=True)
async def detail(row: Tuple) -> Tuple:
    """What a house's own page says."""
    number = sum(map(ord, row["house-url"]))
    await asyncio.sleep(0.2 + number % 3 / 10)
    return {"address": f"{number} Main St", "beds": number % 5}


@aioflow.function(name="reference_store", returns="stored boolean")
async def store(row: Tuple) -> Tuple:
    """An effect: never stopped early."""
    await asyncio.sleep(0.05)
    return {"stored": True}


@aioflow.function(name="reference_slow", returns="late number", pure=True)
async def slow(row: Tuple) -> Tuple:
    """The larger, the sooner."""
    await asyncio.sleep(1.0 / (1 + row["n"]))
    return {"late": 10 * row["n"]}


@aioflow.function(name="reference_links", returns="n number", pure=True)
async def links(row: Tuple) -> list[Tuple]:
    """The pages behind a page: fewer and fewer."""
    await asyncio.sleep(0.01)
    return [{"n": number} for number in range(row["n"])]


@aioflow.function(name="reference_fails_sometimes", returns="half number", pure=True)
async def fails_sometimes(row: Tuple) -> Tuple:
    """Fails for every third number."""
    await asyncio.sleep(row["n"] % 2 / 10)
    if row["n"] % 3 == 0:
        raise ValueError("a third")
    return {"half": row["n"] / 2}


# --- the operators of figures 5 and 8 -----------------------------------------------------------


async def op1(a: Stream, b: Stream) -> AsyncGenerator[Batch, None]:
    """Everything from both."""
    async for _, batch in interleave(a, b):
        yield list(batch)


async def op2(c: Stream) -> AsyncGenerator[Batch, None]:
    """Each number plus one."""
    async for batch in c.batches():
        yield [(number + 1,) for (number,) in batch]


async def sink(rows: Stream) -> AsyncGenerator[Batch, None]:
    """Reads, gives nothing."""
    async for _ in rows.batches():
        await asyncio.sleep(0)
    if False:
        yield []


async def op4(d: Stream) -> AsyncGenerator[To, None]:
    """Even numbers to f, odd ones to g."""
    async for (number,) in d:
        yield To("g" if number % 2 else "f", (number,))


async def op6(w: Stream) -> AsyncGenerator[Batch, None]:
    """Each number doubled."""
    async for batch in w.batches():
        yield [(2 * number,) for (number,) in batch]


_NUMBERS = attributes(n="number")
OPERATORS: tuple[Operator, ...] = (
    describe(op1, name="op1", schema=_NUMBERS),
    describe(op2, name="op2", schema=_NUMBERS),
    describe(sink, name="op3", outputs=()),
    describe(op4, name="op4", outputs=("f", "g"), schema=_NUMBERS),
    describe(sink, name="op5", outputs=()),
    describe(op6, name="op6", schema=_NUMBERS),
)


def _numbers(*numbers: int) -> Bag:
    return Bag(("n",), tuple((number,) for number in numbers))


def _only(bag: Bag) -> list[int]:
    return [number for (number,) in bag.rows]


def _naive_op1(work: Work) -> list[Bag]:
    return [_numbers(*_only(work.inputs[0]), *_only(work.inputs[1]))]


def _naive_op2(work: Work) -> list[Bag]:
    return [_numbers(*(number + 1 for number in _only(work.inputs[0])))]


def _naive_op4(work: Work) -> list[Bag]:
    numbers = _only(work.inputs[0])
    return [_numbers(*(n for n in numbers if n % 2 == 0)), _numbers(*(n for n in numbers if n % 2))]


def _naive_op6(work: Work) -> list[Bag]:
    return [_numbers(*(2 * number for number in _only(work.inputs[0])))]


NAIVE_OPERATORS: Mapping[str, Known] = {
    "op1": Known(_naive_op1),
    "op2": Known(_naive_op2),
    "op3": Known(lambda work: []),
    "op4": Known(_naive_op4),
    "op5": Known(lambda work: []),
    "op6": Known(_naive_op6),
}
