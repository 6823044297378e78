"""Rows by key, the ground of joins and set operators: the keys of a batch, and which rows share one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

from aioflow import Row, Stream, interleave
from aioflow.relation import Batch, identities, value_identities
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import KeyedRows, KeySet

Keys: TypeAlias = Sequence[Any]  # each a value, or a tuple of several, in the form in which they compare
Rest: TypeAlias = Callable[[Row, Row], bool]  # what must hold of a left and a right row beside the equality

_OUTPUT_ROWS = 1024
_MOST_IN_A_ROW = 32


def keys_of(positions: Sequence[int]) -> Callable[[Batch], Keys]:
    """A function that gives the keys of a batch: those columns of its rows."""
    if len(positions) == 1:
        return partial(_single_keys, positions[0])
    if not positions:
        return lambda batch: [()] * len(batch)
    pick = itemgetter(*positions)
    return lambda batch: identities(list(map(pick, batch)))


def _single_keys(position: int, batch: Batch) -> Keys:
    return value_identities([row[position] for row in batch])


class Keyed:
    """A stream whose rows have keys. Unless `nulls_match`, a key that holds a null equals no other."""

    def __init__(self, stream: Stream, positions: Sequence[int], *, nulls_match: bool = False) -> None:
        self.stream = stream
        self.nulls_match = nulls_match
        self.has_key = bool(positions)
        self._is_single = len(positions) == 1
        self._keys_of = keys_of(positions)

    @property
    def over(self) -> bool:
        """Whether every row has been read."""
        return self.stream.ended and not self.stream.has_rows

    def split(self, batch: Batch) -> tuple[Keys, Batch, Batch]:
        """Keys and rows that can match, and the rows that cannot."""
        keys = self._keys_of(batch)
        if self.nulls_match or None not in (keys if self._is_single else chain.from_iterable(keys)):
            return keys, batch, []
        pairs = list(zip(keys, batch, strict=True))
        has_null = self._has_null
        possible = [pair for pair in pairs if not has_null(pair[0])]
        nulls = [row for key, row in pairs if has_null(key)]
        return [key for key, _ in possible], [row for _, row in possible], nulls

    def _has_null(self, key: Any) -> bool:
        return key is None if self._is_single else None in key


class Favouring:
    """Batches of two streams as they come, those of the first one first while it has any ready.

    Once a stream is over, rows of the other need not be remembered for it: with two fast inputs this
    saves half of the work. The second is not starved: its turn comes after some batches.
    """

    def __init__(self, first: Stream, second: Stream) -> None:
        self._first = first
        self._fair = interleave(first, second)
        self._in_a_row = 0

    def __aiter__(self) -> Favouring:
        return self

    async def __anext__(self) -> tuple[Stream, Batch]:
        first = self._first
        if self._in_a_row < _MOST_IN_A_ROW and not (first.ended and not first.has_rows):
            self._in_a_row += 1
            await asyncio.sleep(0)  # lets who writes to it go on
            batch = first.take()
            if batch is not None:
                return first, batch
        self._in_a_row = 0
        return await anext(self._fair)


def in_batches(rows: Iterable[Row]) -> Iterator[Batch]:
    """Rows in lists of a bearable length."""
    batch: Batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == _OUTPUT_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


async def matching(left: Keyed, right: Keyed, memory: MemoryBudget) -> AsyncGenerator[Batch, None]:
    """The left rows whose key appears on the right, each as soon as both have come."""
    with KeySet(memory) as seen, KeyedRows(memory) as waiting:
        async for stream, batch in Favouring(right.stream, left.stream):
            if stream is right.stream:
                keys, _, _ = right.split(batch)
                fresh = seen.add_new(keys, keys)
                found = list(chain.from_iterable(waiting.get_all(fresh)))
            else:
                keys, batch, _ = left.split(batch)
                found = [row for key, row in zip(keys, batch, strict=True) if key in seen]
                if len(found) < len(batch) and not right.over:
                    missed = [(key, row) for key, row in zip(keys, batch, strict=True) if key not in seen]
                    waiting.add_all([key for key, _ in missed], [row for _, row in missed])
            if found:
                yield found


async def differing(left: Keyed, right: Keyed, memory: MemoryBudget) -> AsyncGenerator[Batch, None]:
    """The left rows whose key does not appear on the right, which is read to its end first."""
    with KeySet(memory) as seen:
        async for batch in right.stream.batches():
            keys, _, _ = right.split(batch)
            seen.add_new(keys, keys)
        async for batch in left.stream.batches():
            keys, possible, found = left.split(batch)
            found += [row for key, row in zip(keys, possible, strict=True) if key not in seen]
            if found:
                yield found


async def matching_where(  # noqa: C901  # both arms share what has arrived and what waits
    left: Keyed, right: Keyed, rest: Rest, memory: MemoryBudget
) -> AsyncGenerator[Batch, None]:
    """The left rows for which a right row of the same key meets the rest of the condition."""
    number = 0
    # Left rows that wait have a number in an additional column, by which those that left are known.
    with KeyedRows(memory) as arrived, KeyedRows(memory) as waiting, KeySet(memory) as gone:
        async for stream, batch in Favouring(right.stream, left.stream):
            found: Batch = []
            if stream is right.stream:
                keys, rows, _ = right.split(batch)
                for row, candidates in zip(rows, waiting.get_all(keys), strict=True):
                    for each in candidates:
                        if each[-1] not in gone and rest(each[:-1], row):
                            gone.add(each[-1])
                            found.append(each[:-1])
                if not left.over:
                    arrived.add_all(keys, rows)
            else:
                keys, rows, _ = left.split(batch)
                for key, row, partners in zip(keys, rows, arrived.get_all(keys), strict=True):
                    if any(rest(row, partner) for partner in partners):
                        found.append(row)
                    elif not right.over:
                        waiting.add(key, (*row, number))
                        number += 1
            if found:
                yield found


async def differing_where(
    left: Keyed, right: Keyed, rest: Rest, memory: MemoryBudget
) -> AsyncGenerator[Batch, None]:
    """The left rows for which no right row of the same key meets the rest of the condition."""
    with KeyedRows(memory) as arrived:
        async for batch in right.stream.batches():
            keys, rows, _ = right.split(batch)
            arrived.add_all(keys, rows)
        async for batch in left.stream.batches():
            keys, rows, found = left.split(batch)
            found += [
                row
                for row, partners in zip(rows, arrived.get_all(keys), strict=True)
                if not any(rest(row, partner) for partner in partners)
            ]
            if found:
                yield found
