"""Operators that direct and choose tuples: null, limit, sample, sort, emit, log."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from math import exp, floor, inf, log1p
from math import log as logarithm
from random import Random
from typing import Literal

from aioflow import Context, Record, Schema, SettingError, Stream, To, operator, same_as_input
from aioflow.authoring.context import DEAD
from aioflow.authoring.operator import Settings
from aioflow.expressions import SortKeys
from aioflow.operators.settings import Count, Share
from aioflow.relation import Batch, Value
from aioflow.runtime.spill import SortedRows, walk

Level = Literal["debug", "info", "warning", "error"]

_logger = logging.getLogger("aioflow.log")
_LONGEST_SHOWN = 200
_NONE = Count(0)


def _null_lint(inputs: Sequence[str], outputs: Sequence[str | None], settings: Settings) -> Iterator[str]:
    if inputs[0] == inputs[1] and outputs[0] is not None:
        yield (
            f"{outputs[0]!r} never has a tuple: it gets {inputs[1]!r} only when {inputs[0]!r} is empty; "
            "null is used the wrong way round"
        )


@operator(
    outputs=("t", "f"),
    schema=lambda inputs, settings: (inputs[1], inputs[2]),
    opens_late=True,
    blocking_input=0,
    exclusive_outputs=True,
    needs_whole=(0,),
    lint=_null_lint,
)
async def null(d: Stream, dt: Stream, df: Stream, *, context: Context) -> AsyncGenerator[To, None]:
    """Pass one of two relations, depending on whether a third has tuples.

    If `d` ends without a tuple, `dt` flows to `t`. As soon as `d` has a tuple, `df` flows to `f`. The other
    output ends dead: statements that depend on it alone do not fire.

    Arguments:
        d: the relation that is tested.
        dt: the relation that flows if `d` is empty.
        df: the relation that flows if `d` is not empty.

    Example:
        null (new-houses, apology, new-houses : nothing-new, news)
    """
    empty = await d.receive() is None
    if not empty:
        context.mark(d.marks.of_rows_so_far)
    d.close()
    taken, passed, other, dead = ("t", dt, df, "f") if empty else ("f", df, dt, "t")
    other.close()  # first: its marks do not concern the results
    yield To(dead, DEAD)
    told = False
    async for batch in passed.batches():
        if not told and passed.schema is not None:
            told = True
            yield To(taken, passed.schema)
        yield To(taken, batch)
    if not told and passed.schema is not None:
        yield To(taken, passed.schema)


@operator(schema=same_as_input, depends_on_arrival=True, ends_early=True, needs_whole=(0,))
async def limit(rel: Stream, *, count: Count, offset: Count = _NONE) -> AsyncGenerator[Batch, None]:
    """Pass the first tuples, and stop statements upstream whose results are not needed elsewhere.

    Arguments:
        rel: the tuples.
        count: the number of tuples that pass at most.
        offset: the number of tuples to skip before.

    Examples:
        limit (houses, 10 : few)
        limit (ranked, 10 : second-page) {OFFSET: 10}
    """
    skip, left = int(offset), int(count)
    if not left:
        return
    async for batch in rel.batches():
        passed = batch[skip : skip + left]
        skip = max(0, skip - len(batch))
        left -= len(passed)
        if passed:
            yield passed
        if not left:
            return


def _sample_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    if (settings["size"] is None) == (settings["fraction"] is None):
        raise SettingError("sample needs either a size or a FRACTION", setting="size")
    return inputs[0]


@operator(
    schema=_sample_schema,
    depends_on_arrival=True,
    needs_whole=lambda settings: () if settings["size"] is None else (0,),
)
async def sample(
    rel: Stream, *, size: Count | None = None, fraction: Share | None = None, seed: int | None = None
) -> AsyncGenerator[Batch, None]:
    """Pass tuples chosen at random: a certain number at the end, or each at once with the same probability.

    Arguments:
        rel: the tuples.
        size: the number of tuples to choose, at the end of the input; all if there are fewer.
        fraction: the probability with which each tuple passes, as it arrives.
        seed: a number that makes the choice repeatable for the same order of tuples.

    Examples:
        sample (houses, 100 : some)
        sample (clicks : tenth) {FRACTION: 0.1; SEED: 7}
    """
    random = Random(seed)
    if fraction is not None:
        async for batch in rel.batches():
            chance = random.random
            passed = [row for row in batch if chance() < fraction]
            if passed:
                yield passed
        return
    reservoir = _Reservoir(int(size or 0), random)
    async for batch in rel.batches():
        reservoir.offer(batch)
    if reservoir.rows:
        yield reservoir.rows


class _Reservoir:
    """A uniform sample of a fixed size of all rows offered so far, by Li's algorithm L, which skips ahead."""

    def __init__(self, size: int, random: Random) -> None:
        self.rows: Batch = []
        self._size = size
        self._random = random
        self._skip = 0
        self._weight = 1.0

    def offer(self, batch: Batch) -> None:
        if not self._size:
            return
        place = min(self._size - len(self.rows), len(batch))
        if place:
            self.rows.extend(batch[:place])
            if len(self.rows) == self._size:
                self._leap()
        while place + self._skip < len(batch):
            place += self._skip
            self.rows[self._random.randrange(self._size)] = batch[place]
            place += 1
            self._leap()
        self._skip -= len(batch) - place

    def _leap(self) -> None:
        """Draw the number of rows to skip before the next one is taken."""
        self._weight *= exp(logarithm(1.0 - self._random.random()) / self._size)
        passed_over = log1p(-self._weight) if self._weight < 1.0 else -inf
        self._skip = floor(logarithm(1.0 - self._random.random()) / passed_over)


@operator(schema=same_as_input, orders=True)
async def sort(rel: Stream, *, by: SortKeys, context: Context) -> AsyncGenerator[Batch, None]:
    """Pass all tuples in order, at the end of the input.

    Tuples that are equal in all keys keep their order. Tuples that do not fit in memory are sorted on disk.

    Arguments:
        rel: the tuples.
        by: the attributes or expressions to sort by, each with `asc` (the default) or `desc`.

    Example:
        sort (houses, "price desc, city" : ranked)
    """
    with SortedRows(context.memory, by.key) as rows:
        async for batch in rel.batches():
            rows.append(batch)
            if rows.is_full:
                await rows.disk.call(rows.write_run)
        async for batch in walk(rows, rows.batches()):
            yield batch


@operator(schema=same_as_input, effects=True, emits_to="name")
async def emit(rel: Stream, *, name: str, context: Context) -> AsyncGenerator[Batch, None]:
    """Send tuples to a named output of the run while it is running, and pass them on.

    Arguments:
        rel: the tuples.
        name: the output under which readers of the run find the tuples. The plan must not declare it.

    Example:
        emit (houses, "found")
    """
    if rel.schema is not None and not rel.is_untold:
        await context.emit(name, rel.schema, [])  # so that the output exists even if empty
    async for batch in rel.batches():
        assert rel.schema is not None
        await context.emit(name, rel.schema, batch)
        yield batch


@operator(schema=same_as_input, effects=True)
async def log(rel: Stream, *, label: str = "", level: Level = "info") -> AsyncGenerator[Batch, None]:
    """Log tuples, and their number at the end, to Python's logger `aioflow.log`, and pass them on.

    Arguments:
        rel: the tuples.
        label: a text before each tuple.
        level: the level of the log: debug, info, warning or error.

    Examples:
        log (failed, "no details")
        log (houses, "found" : same-houses) {LEVEL: debug}
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    prefix = f"{label}: " if label else ""
    count = 0
    async for batch in rel.batches():
        count += len(batch)
        if _logger.isEnabledFor(number):
            assert rel.schema is not None
            for row in batch:
                _logger.log(number, "%s%s", prefix, _shown(Record(rel.schema, row)))
        yield batch
    _logger.log(number, "%s%d %s", prefix, count, "tuple" if count == 1 else "tuples")


def _shown(record: Record) -> str:
    return ", ".join(f"{name}={_shortened(value)}" for name, value in record.items())


def _shortened(value: Value) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
