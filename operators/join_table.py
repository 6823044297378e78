"""The rows of one side of a join by key, made for speed: most keys have one row, which needs no list."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeAlias

from aioflow import Row
from aioflow.relation import Batch
from aioflow.spill import KeyedRows, Memory, batch_size

_KEY_BYTES = 80  # a key and its slot in a dict

# One row, many, or none.
Found: TypeAlias = Row | list[Row] | None


class JoinTable:
    """Rows by key; those that memory has no place for are on disk."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._reserved = 0
        self._rows: dict[Hashable, Row | list[Row]] = {}
        self._others: KeyedRows | None = None

    def add_all(self, keys: Sequence[Hashable], rows: Sequence[Row]) -> None:
        """Add rows, one for each key."""
        size = batch_size(rows) + _KEY_BYTES * len(rows)
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
        """What there is for each key."""
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
        """Each key with its rows; a key that has some in memory and some on disk comes twice."""
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
    """What was found, always as a list."""
    if found is None:
        return []
    return found if isinstance(found, list) else [found]
