"""Rows by key, for joins and set operators: the keys of a batch, and the rows that share one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, compress
from operator import itemgetter
from typing import Any, TypeAlias

from aioflow import Row, Stream, interleave
from aioflow.relation import Batch, identities, value_identities
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import KeyedRows, KeySet, off_loop

Keys: TypeAlias = Sequence[Any]  # each a value, or a tuple of several, in the form in which they compare
Rest: TypeAlias = Callable[[Row, Row], bool]  # a condition on a left and a right row beside the equality

_OUTPUT_ROWS = 1024
_MOST_IN_A_ROW = 32


def keys_of(positions: Sequence[int]) -> Callable[[Batch], Keys]:
    """Return a function that gives the keys of a batch: those columns of its rows."""
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
        """Return whether every row has been read."""
        return self.stream.ended and not self.stream.has_rows

    def split(self, batch: Batch) -> tuple[Keys, Batch, Batch]:
        """Return keys and rows that can match, and the rows that cannot."""
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
            await asyncio.sleep(0)  # lets its writer go on
            batch = first.take()
            if batch is not None:
                return first, batch
        self._in_a_row = 0
        return await anext(self._fair)


def in_batches(rows: Iterable[Row]) -> Iterator[Batch]:
    """Give rows in lists of a bounded length."""
    batch: Batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == _OUTPUT_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


async def matching(left: Keyed, right: Keyed, memory: MemoryBudget) -> AsyncGenerator[Batch, None]:
    """Give the left rows whose key appears on the right, each as soon as both have come."""
    with KeySet(memory) as seen, KeyedRows(memory) as waiting:
        async for stream, batch in Favouring(right.stream, left.stream):
            if stream is right.stream:
                keys, _, _ = right.split(batch)
                fresh = await off_loop(seen, seen.add_new, keys, keys)
                found = list(chain.from_iterable(await off_loop(waiting, waiting.get_all, fresh)))
            else:
                keys, batch, _ = left.split(batch)
                known = await off_loop(seen, seen.known, keys)
                found = list(compress(batch, known))
                if len(found) < len(batch) and not right.over:
                    missed = [not is_known for is_known in known]
                    pairs = list(compress(keys, missed)), list(compress(batch, missed))
                    await off_loop(waiting, waiting.add_all, *pairs)
            if found:
                yield found


async def differing(left: Keyed, right: Keyed, memory: MemoryBudget) -> AsyncGenerator[Batch, None]:
    """Give the left rows whose key does not appear on the right, which is read to its end first."""
    with KeySet(memory) as seen:
        async for batch in right.stream.batches():
            keys, _, _ = right.split(batch)
            await off_loop(seen, seen.add_new, keys, keys)
        async for batch in left.stream.batches():
            keys, possible, found = left.split(batch)
            known = await off_loop(seen, seen.known, keys)
            found += [row for row, is_known in zip(possible, known, strict=True) if not is_known]
            if found:
                yield found


class _Matching:
    """The left rows for which a right row of the same key meets the rest of the condition."""

    def __init__(self, left: Keyed, right: Keyed, rest: Rest, memory: MemoryBudget) -> None:
        self._left = left
        self._right = right
        self._rest = rest
        self._arrived = KeyedRows(memory)
        # Left rows that wait have a number in an additional column, by which those that left are known.
        self._waiting = KeyedRows(memory)
        self._gone = KeySet(memory)
        self._number = 0
        self.disk = memory.disk

    @property
    def is_on_disk(self) -> bool:
        return self._arrived.is_on_disk or self._waiting.is_on_disk or self._gone.is_on_disk

    def receive_right(self, batch: Batch) -> Batch:
        """Return the left rows that waited for these right ones."""
        keys, rows, _ = self._right.split(batch)
        found: Batch = []
        for row, candidates in zip(rows, self._waiting.get_all(keys), strict=True):
            for each in candidates:
                if each[-1] not in self._gone and self._rest(each[:-1], row):
                    self._gone.add(each[-1])
                    found.append(each[:-1])
        if not self._left.over:
            self._arrived.add_all(keys, rows)
        return found

    def receive_left(self, batch: Batch) -> Batch:
        """Return the rows that match one of those on the right; the others wait."""
        keys, rows, _ = self._left.split(batch)
        found: Batch = []
        for key, row, partners in zip(keys, rows, self._arrived.get_all(keys), strict=True):
            if any(self._rest(row, partner) for partner in partners):
                found.append(row)
            elif not self._right.over:
                self._waiting.add(key, (*row, self._number))
                self._number += 1
        return found

    def close(self) -> None:
        for structure in (self._arrived, self._waiting, self._gone):
            structure.close()


async def matching_where(
    left: Keyed, right: Keyed, rest: Rest, memory: MemoryBudget
) -> AsyncGenerator[Batch, None]:
    """Give the left rows for which a right row of the same key meets the rest of the condition."""
    with closing(_Matching(left, right, rest, memory)) as rows:
        async for stream, batch in Favouring(right.stream, left.stream):
            receive = rows.receive_right if stream is right.stream else rows.receive_left
            if found := await off_loop(rows, receive, batch):
                yield found


async def differing_where(
    left: Keyed, right: Keyed, rest: Rest, memory: MemoryBudget
) -> AsyncGenerator[Batch, None]:
    """Give the left rows for which no right row of the same key meets the rest of the condition."""
    with KeyedRows(memory) as arrived:
        async for batch in right.stream.batches():
            keys, rows, _ = right.split(batch)
            await off_loop(arrived, arrived.add_all, keys, rows)
        async for batch in left.stream.batches():
            keys, rows, found = left.split(batch)
            found += [
                row
                for row, partners in zip(rows, await off_loop(arrived, arrived.get_all, keys), strict=True)
                if not any(rest(row, partner) for partner in partners)
            ]
            if found:
                yield found
