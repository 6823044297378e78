"""Rows by key, in memory and on disk."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.relation import Batch, Row, identities
from aioflow.runtime.memory import MemoryBudget
from aioflow.state.diff.snapshot import SameKeyError, TableSnapshot
from aioflow.state.errors import DiskFullError
from tests.operators.running import VALUES, bag


def remembered(memory: MemoryBudget) -> TableSnapshot:
    return TableSnapshot(memory, lambda batch: identities([row[:1] for row in batch]))


def filled(rows: Batch, memory: MemoryBudget, batch: int = 3) -> TableSnapshot:
    found = remembered(memory)
    for start in range(0, len(rows), batch):
        found.append(rows[start : start + batch])
    found.seal()
    return found


def key_of(row: Row) -> object:
    return identities([row[:1]])[0]


ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=20, unique_by=key_of)
LIMITS = st.sampled_from([0, 1500, 1 << 20])  # nothing, something and everything is kept in memory


@settings(deadline=None)
@given(ROWS, ROWS, LIMITS)
def test_rows_are_found_by_key_and_those_not_seen_are_told(rows: Batch, wanted: Batch, limit: int) -> None:
    memory = MemoryBudget(limit)
    with filled(rows, memory) as found:
        assert len(found) == len(rows)
        expected = {key_of(row): row for row in rows}
        for row, hit in zip(wanted, found.find(identities([row[:1] for row in wanted])), strict=True):
            if hit is None:
                assert key_of(row) not in expected
            else:
                assert bag([hit[1]]) == bag([expected.pop(key_of(row))])
                found.seen[hit[0]] = 1
        assert bag([row for batch in found.unseen() for row in batch]) == bag(expected.values())
    assert (memory.used_bytes, memory.open_files) == (0, 0)


@settings(deadline=None)
@given(ROWS.filter(bool), LIMITS, st.data())
def test_a_key_that_is_there_twice_is_noticed(rows: Batch, limit: int, data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(rows))
    place = data.draw(st.integers(0, len(rows)))
    memory = MemoryBudget(limit)
    with pytest.raises(SameKeyError) as told:
        filled([*rows[:place], (again[0], "again"), *rows[place:]], memory)
    assert key_of(told.value.row) == key_of(again)
    memory.close()
    assert (memory.used_bytes, memory.open_files) == (0, 0)


def test_a_full_disk_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def connect_small(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **settings)
        connection.execute("PRAGMA max_page_count = 3")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_small)
    with remembered(MemoryBudget(0)) as found, pytest.raises(DiskFullError, match="TMPDIR"):
        found.append([(number, "x" * 4000) for number in range(100)])
