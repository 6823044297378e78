"""What random plans call: functions that give one, no or many results, wait, or fail on some tuples.

Each depends on integers and texts only, so that it cannot tell 1 from 1.0 in an attribute where both occur.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aioflow
from aioflow.authoring.function import AggregateFunction, Function, aggregate_functions, functions
from aioflow.authoring.operator import Operator, attributes, describe
from aioflow.testing import run

Tuple = Mapping[str, Any]


def _number(row: Tuple) -> int:
    return row["n"] if row["n"] is not None else 0


@aioflow.function(name="t_double", returns="k number", pure=True)
def double(row: Tuple) -> Tuple:
    """One result for each tuple."""
    return {"k": 2 * _number(row)}


@aioflow.function(name="t_replace", returns="n number", pure=True)
def replace(row: Tuple) -> Tuple:
    """A result that replaces an attribute of the tuple."""
    return {"n": min(_number(row), 1)}


@aioflow.function(name="t_scalar", returns="s char", pure=True)
def scalar(row: Tuple) -> Any:
    """None, so no result, for small numbers."""
    return {"s": "large"} if _number(row) > 1 else None


@aioflow.function(name="t_several", returns="i number", pure=True)
def several(row: Tuple) -> Iterator[Tuple]:
    """As many results as the number says."""
    for count in range(min(_number(row), 3)):
        yield {"i": count}


@aioflow.function(name="t_slow", returns="k number", pure=True)
async def slow(row: Tuple) -> Tuple:
    """Waits, the longer the smaller the number: results overtake each other."""
    await asyncio.sleep(1.0 / (2 + _number(row)))
    return {"k": _number(row) + 1}


@aioflow.function(name="t_slow_several", returns="i number, s char", pure=True)
async def slow_several(row: Tuple) -> AsyncIterator[Tuple]:
    """Many results with a pause before each."""
    for count in range(2):
        await asyncio.sleep(0.01)
        yield {"i": count, "s": "late" if count else "early"}


@aioflow.function(name="t_effect", returns="s char")
async def effect(row: Tuple) -> Tuple:
    """Not pure: it is never stopped early."""
    await asyncio.sleep(0)
    return {"s": "done"}


@aioflow.function(name="t_odd_fails", returns="s char", pure=True)
def odd_fails(row: Tuple) -> Tuple:
    """Fails for odd numbers."""
    if _number(row) % 2:
        raise ValueError("odd")
    return {"s": "even"}


@aioflow.function(name="t_slow_fails", returns="k number", pure=True)
async def slow_fails(row: Tuple) -> list[Tuple]:
    """Fails after a while for numbers above one, else gives two results."""
    await asyncio.sleep(0.1)
    if _number(row) > 1:
        raise LookupError("large")
    return [{"k": 0}, {"k": 1}]


@aioflow.function(name="t_always_fails", returns="s char", pure=True)
def always_fails(row: Tuple) -> Tuple:
    """Fails for every tuple."""
    raise RuntimeError("never works")


@aioflow.function(name="t_few_fail", returns="s char", pure=True)
async def few_fail(row: Tuple) -> Tuple:
    """Fails for one number of ten."""
    await asyncio.sleep(0.1)
    if _number(row) % 10 == 7:
        raise LookupError("seven")
    return {"s": "well"}


class GoneError(aioflow.AioflowError):
    """Says that there is nothing, which is knowledge."""

    means_absence = True


@aioflow.function(name="t_small_gone", returns="s char", pure=True)
async def small_gone(row: Tuple) -> Tuple:
    """Knows that there is nothing for small numbers."""
    await asyncio.sleep(0.05)
    if _number(row) < 2:
        raise GoneError("there is none")
    return {"s": "there"}


@aioflow.function(name="t_gone_or_broken", returns="k number", pure=True)
async def gone_or_broken(row: Tuple) -> Tuple:
    """Fails for one number, and knows that there is nothing for another."""
    await asyncio.sleep(0.2 * (_number(row) % 2))
    if _number(row) == 2:
        raise LookupError("broken")
    if _number(row) == 1:
        raise GoneError("there is none")
    return {"k": 7}


@aioflow.aggregate_function(name="t_spread", type="number")
def spread(values: Sequence[Any]) -> Any:
    """Difference of the largest and the smallest value."""
    return max(values) - min(values) if values else None


@aioflow.aggregate_function(name="t_large_fails", type="number")
def large_fails(values: Sequence[Any]) -> Any:
    """Fails if a value is above one."""
    if any(value > 1 for value in values):
        raise ValueError("large")
    return len(values)


@aioflow.aggregate_function(name="t_large_gone", type="number")
def large_gone(values: Sequence[Any]) -> Any:
    """Knows that there is nothing if a value is above one."""
    if any(value > 1 for value in values):
        raise GoneError("there is none")
    return len(values)


async def series(*, count: int) -> AsyncGenerator[tuple[int], None]:
    """An operator without inputs: the numbers below `count`."""
    for number in range(count):
        await asyncio.sleep(0)
        yield (number,)


SERIES: Operator = describe(series, name="series", schema=attributes(n="number"))


@dataclass(frozen=True)
class Applicable:
    """A function for apply as the naive evaluator sees it: all results of a tuple at once."""

    name: str
    returns: tuple[str, ...]
    results: Callable[[Tuple], list[Tuple]]


async def _collect(results: AsyncIterator[Tuple]) -> list[Tuple]:
    return [each async for each in results]


def _finished(answer: Any) -> Any:
    if hasattr(answer, "__anext__"):
        answer = _collect(answer)
    return run(answer) if inspect.iscoroutine(answer) else answer


def _as_list(answer: Any) -> list[Tuple]:
    if answer is None:
        return []
    return [answer] if isinstance(answer, Mapping) else list(answer)


def applicable(name: str) -> Applicable:
    """The function of that name."""
    found: Function | None = functions.get(name)
    assert found is not None, name
    assert found.returns is not None, name
    call = found.call
    return Applicable(name, found.returns.names, lambda row: _as_list(_finished(call(row))))


def aggregate(name: str) -> AggregateFunction:
    found = aggregate_functions.get(name)
    assert found is not None, name
    return found
