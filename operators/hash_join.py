"""The symmetric hash join: both inputs stream, a pair leaves when its second half arrives.

Both sides are remembered in tables that spill. Once an input has ended, the other's rows need not be
remembered: a short input joined to an endless one takes no more memory than the short one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

from aioflow import Row, Stream, interleave
from aioflow.operators.keyed import Keyed, Keys, Rest, in_batches
from aioflow.relation import Batch
from aioflow.spill import KeyedRows, KeySet, Memory


class Side(Keyed):
    """One input of a join: its rows by key, and what becomes of those that find no partner.

    `pad` makes a result of a row without partner; None when such rows are dropped.
    """

    def __init__(
        self, stream: Stream, key: Sequence[int], memory: Memory, pad: Callable[[Row], Row] | None
    ) -> None:
        super().__init__(stream, key)
        self.pad = pad
        self.rows = KeyedRows(memory)
        self.settled = False  # the fate of the rows remembered here is known, and they are forgotten
        # The numbers, kept in an additional column, of rows that found a partner. Used only where a
        # condition stands beside the equality: otherwise the keys tell.
        self.matched = KeySet(memory)
        self._count = 0

    def numbered(self, row: Row) -> Row:
        self._count += 1
        return (*row, self._count)

    def close(self) -> None:
        self.rows.close()
        self.matched.close()


class HashJoin:
    """An inner or outer join. A result is a left row and the `tail` of a right row (None: all of it)."""

    def __init__(
        self,
        left: Side,
        right: Side,
        memory: Memory,
        tail: Callable[[Row], Row] | None = None,
        rest: Rest | None = None,
    ) -> None:
        self._left = left
        self._right = right
        self._tail = tail
        self._rest = rest
        self._is_outer = left.pad is not None or right.pad is not None
        self._matched_keys = KeySet(memory)

    async def results(self) -> AsyncGenerator[Batch, None]:
        left, right = self._left, self._right
        arrive = self._arrive if self._rest is None else self._arrive_filtered
        try:
            async for stream, batch in interleave(left.stream, right.stream):
                side, other = (left, right) if stream is left.stream else (right, left)
                keys, rows, nulls = side.split(batch)
                found = arrive(side, other, keys, rows)
                if nulls and side.pad is not None:
                    found.extend(map(side.pad, nulls))
                if found:
                    yield found
                if left.over or right.over:
                    for unmatched in self._settle():
                        yield unmatched
            for unmatched in self._settle():
                yield unmatched
        finally:
            left.close()
            right.close()
            self._matched_keys.close()

    def _arrive(self, side: Side, other: Side, keys: Keys, batch: Batch) -> Batch:
        partners = other.rows.get_all(keys)
        results = self._pairs(side, batch, partners)
        if self._is_outer:
            known = [key for key, found in zip(keys, partners, strict=True) if found]
            self._matched_keys.add_new(known, known)
        if not side.settled:
            side.rows.add_all(keys, batch)
        elif side.pad is not None:
            pad = side.pad
            results += [pad(row) for row, found in zip(batch, partners, strict=True) if not found]
        return results

    def _pairs(self, side: Side, batch: Batch, partners: Sequence[Sequence[Row]]) -> Batch:
        tail = self._tail
        if side is self._right:
            tails = batch if tail is None else map(tail, batch)
            return [each + row for row, found in zip(tails, partners, strict=True) for each in found]
        if tail is None:
            return [row + each for row, found in zip(batch, partners, strict=True) for each in found]
        return [row + tail(each) for row, found in zip(batch, partners, strict=True) for each in found]

    def _arrive_filtered(self, side: Side, other: Side, keys: Keys, batch: Batch) -> Batch:
        results: Batch = []
        remembered: Batch = []
        for row, partners in zip(batch, self._candidates(other, keys), strict=True):
            matches = self._matches(side, other, row, partners)
            results += matches
            if side.settled:
                if not matches and side.pad is not None:
                    results.append(side.pad(row))
                continue
            stored = side.numbered(row)
            remembered.append(stored)
            if matches and side.pad is not None:
                side.matched.add(stored[-1])
        if remembered:
            side.rows.add_all(keys, remembered)
        return results

    @staticmethod
    def _candidates(other: Side, keys: Keys) -> Sequence[Sequence[Row]]:
        if keys and not keys[0]:  # no equality at all: every row is a candidate, so look once
            return [other.rows.get(())] * len(keys)
        return other.rows.get_all(keys)

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
        """Where an input is over, emit what remained without partner on the other side and forget it."""
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
