"""The symmetric hash join: both inputs stream, and a pair leaves when its second half arrives.

Both sides are stored in tables that spill. Once an input has ended, rows of the other need not be stored: a
short input joined to an endless one takes no more memory than the short one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeAlias

from aioflow import Row, Stream
from aioflow.operators.keyed import Favouring, Keyed, Keys, Rest, in_batches
from aioflow.relation import Batch
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import KeyedRows, KeySet, walk

_KEY_BYTES = 80  # a key and its slot in a dict

# One row, many, or none.
Found: TypeAlias = Row | list[Row] | None


class JoinTable:
    """The rows of one side by key; those that do not fit in memory are on disk.

    Most keys have one row, which is stored without a list around it.
    """

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._reserved = 0
        self._rows: dict[Hashable, Row | list[Row]] = {}
        self._others: KeyedRows | None = None

    @property
    def is_on_disk(self) -> bool:
        return self._others is not None and self._others.is_on_disk

    def add_all(self, keys: Sequence[Hashable], rows: Sequence[Row]) -> None:
        """Add rows, one for each key."""
        size = self._memory.size_of(rows) + _KEY_BYTES * len(rows)
        if self._others is not None or not self._memory.reserve(size):
            if self._others is None:
                self._others = KeyedRows(self._memory)
            self._others.add_all(keys, rows)
            return
        self._reserved += size
        table = self._rows
        get = table.get
        for key, row in zip(keys, rows, strict=True):
            known = get(key)
            if known is None:
                table[key] = row
            elif known.__class__ is list:
                known.append(row)
            else:
                table[key] = [known, row]  # type: ignore[list-item]  # it is a row

    def get_all(self, keys: Sequence[Hashable]) -> Iterable[Found]:
        """Yield the rows of each key."""
        if self._others is None:
            return map(self._rows.get, keys)
        return [
            self._get(key, list(stored)) for key, stored in zip(keys, self._others.get_all(keys), strict=True)
        ]

    def _get(self, key: Hashable, stored: Batch) -> Found:
        known = self._rows.get(key)
        if not stored:
            return known
        return [*as_rows(known), *stored]

    def items(self) -> Iterator[tuple[Hashable, Batch]]:
        """Yield each key with its rows; a key with rows in memory and on disk comes twice."""
        for key, known in self._rows.items():
            yield key, as_rows(known)
        if self._others is not None:
            yield from self._others.items()

    def close(self) -> None:
        self._rows = {}
        self._memory.release(self._reserved)
        self._reserved = 0
        if self._others is not None:
            self._others.close()
            self._others = None


def as_rows(found: Found) -> Batch:
    """Return the rows that were found, always as a list."""
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


Tail: TypeAlias = Callable[[Row], Row]

_PIECE_ROWS = 4096


class Side(Keyed):
    """One input of a join: its rows by key, and the treatment of rows without partner.

    `pad` makes a result of a row without partner. It is None if such rows are dropped.
    """

    def __init__(
        self, stream: Stream, key: Sequence[int], memory: MemoryBudget, pad: Callable[[Row], Row] | None
    ) -> None:
        super().__init__(stream, key)
        self.pad = pad
        self.rows = JoinTable(memory)
        self.settled = False  # all results of the rows stored here have left, and the rows are dropped
        # The numbers, from an additional column, of rows that found a partner. They are used only if there is
        # a condition beside the equality: otherwise the keys suffice.
        self.matched = KeySet(memory)
        self._count = 0

    def numbered(self, row: Row) -> Row:
        self._count += 1
        return (*row, self._count)

    @property
    def is_on_disk(self) -> bool:
        return self.rows.is_on_disk or self.matched.is_on_disk

    def close(self) -> None:
        self.rows.close()
        self.matched.close()


class HashJoin:
    """An inner or outer join. A result is a left row and the `tail` of a right row; by default all of it."""

    def __init__(
        self,
        left: Side,
        right: Side,
        memory: MemoryBudget,
        tail: Tail | None = None,
        rest: Rest | None = None,
    ) -> None:
        self._left = left
        self._right = right
        self._tail = tail
        self._rest = rest
        self._is_outer = left.pad is not None or right.pad is not None
        # If right rows are not needed whole again, only their tails are stored.
        self._keeps_tails = tail is not None and rest is None and right.pad is None
        self._matched_keys = KeySet(memory)
        self.disk = memory.disk

    @property
    def is_on_disk(self) -> bool:
        return self._left.is_on_disk or self._right.is_on_disk or self._matched_keys.is_on_disk

    async def results(self) -> AsyncGenerator[Batch, None]:
        left, right = self._left, self._right
        try:
            async for stream, batch in Favouring(left.stream, right.stream):
                side, other = (left, right) if stream is left.stream else (right, left)
                async for found in walk(self, self._receive(side, other, batch)):
                    yield found
            async for unmatched in walk(self, self._settle()):
                yield unmatched
        finally:
            left.close()
            right.close()
            self._matched_keys.close()

    def _receive(self, side: Side, other: Side, batch: Batch) -> Iterator[Batch]:
        keys, rows, nulls = side.split(batch)
        arrive = self._arrive if self._rest is None else self._arrive_filtered
        yield from arrive(side, other, keys, rows)
        if nulls and side.pad is not None:
            yield list(map(side.pad, nulls))
        if side.over or other.over:
            yield from self._settle()

    def _arrive(self, side: Side, other: Side, keys: Keys, batch: Batch) -> Iterator[Batch]:
        partners = list(other.rows.get_all(keys))
        tails = batch if self._tail is None or side is self._left else list(map(self._tail, batch))
        yield from self._left_pairs(batch, partners) if side is self._left else _right_pairs(tails, partners)
        if self._is_outer:
            known = [key for key, found in zip(keys, partners, strict=True) if found is not None]
            self._matched_keys.add_new(known, known)
        if not side.settled:
            side.rows.add_all(keys, tails if self._keeps_tails else batch)
        elif side.pad is not None:
            pad = side.pad
            yield [pad(row) for row, found in zip(batch, partners, strict=True) if found is None]

    def _left_pairs(self, batch: Batch, partners: Sequence[Found]) -> Iterator[Batch]:
        tail = None if self._keeps_tails else self._tail
        results: Batch = []
        for row, found in zip(batch, partners, strict=True):
            if found is None:
                continue
            if tail is None and found.__class__ is tuple:
                results.append(row + found)
                continue
            for piece in _pieces(found):
                results += [row + each for each in (piece if tail is None else map(tail, piece))]
                if len(results) >= _PIECE_ROWS:
                    yield results
                    results = []
        yield results

    def _arrive_filtered(self, side: Side, other: Side, keys: Keys, batch: Batch) -> Iterator[Batch]:
        remembered: Batch = []
        for row, candidates in zip(batch, self._candidates(other, keys), strict=True):
            has_match = False
            for piece in _pieces(candidates):
                if matches := self._matches(side, other, row, piece):
                    has_match = True
                    yield matches
            if side.settled:
                if not has_match and side.pad is not None:
                    yield [side.pad(row)]
                continue
            stored = side.numbered(row)
            remembered.append(stored)
            if has_match and side.pad is not None:
                side.matched.add(stored[-1])
        if remembered:
            side.rows.add_all(keys, remembered)

    @staticmethod
    def _candidates(other: Side, keys: Keys) -> Sequence[Found]:
        if not other.has_key:  # every row is a candidate: look once
            return list(other.rows.get_all(keys[:1])) * len(keys)
        return list(other.rows.get_all(keys))

    def _matches(self, side: Side, other: Side, row: Row, candidates: Sequence[Row]) -> Batch:
        assert self._rest is not None
        results: Batch = []
        for stored in candidates:
            partner = stored[:-1]
            left, right = (row, partner) if side is self._left else (partner, row)
            if self._rest(left, right):
                results.append(left + (right if self._tail is None else self._tail(right)))
                if other.pad is not None:
                    other.matched.add(stored[-1])
        return results

    def _settle(self) -> Iterator[Batch]:
        """When an input has ended, emit rows of the other side without partner, and drop its rows."""
        for side, other in ((self._left, self._right), (self._right, self._left)):
            if other.over and not side.settled:
                side.settled = True
                if side.pad is not None:
                    yield from in_batches(map(side.pad, self._unmatched(side)))
                side.close()

    def _unmatched(self, side: Side) -> Iterator[Row]:
        for key, rows in side.rows.items():
            if self._rest is not None:
                yield from (row[:-1] for row in rows if row[-1] not in side.matched)
            elif key not in self._matched_keys:
                yield from rows


def _right_pairs(tails: Batch, partners: Sequence[Found]) -> Iterator[Batch]:
    results: Batch = []
    for row, found in zip(tails, partners, strict=True):
        if found is None:
            continue
        if found.__class__ is tuple:
            results.append(found + row)
            continue
        for piece in _pieces(found):
            results += [each + row for each in piece]
            if len(results) >= _PIECE_ROWS:
                yield results
                results = []
    yield results


def _pieces(found: Found) -> Iterator[Batch]:
    """Yield partners in lists of bounded length, since one row may have very many."""
    rows = as_rows(found)
    if len(rows) <= _PIECE_ROWS:
        yield rows
        return
    for start in range(0, len(rows), _PIECE_ROWS):
        yield rows[start : start + _PIECE_ROWS]
