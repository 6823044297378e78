"""Structures that remember: the same answers in memory, on disk, and half in each."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from decimal import Decimal
from typing import Any, BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.errors import ClosedError
from aioflow.relation import Document, Relation, Row, Schema, identity
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import KeyedRows, KeySet, RowBuffer, RowQueue, SortedRows

LIMITS = [1, 2_000, 1 << 20]
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(-2, 2, width=16),
    st.just(float("nan")),
    st.sampled_from([Decimal(1), Decimal("0.5")]),
    st.text("ab", max_size=2),
)
rows = st.lists(st.tuples(values, values), max_size=60)


@pytest.fixture(params=LIMITS)
def memory(request: pytest.FixtureRequest) -> MemoryBudget:
    return MemoryBudget(request.param)


def chunks(given_rows: list[Row], size: int = 7) -> list[list[Row]]:
    return [given_rows[start : start + size] for start in range(0, len(given_rows), size)]


def many(count: int) -> list[Row]:
    return [(number, f"row {number}") for number in range(count)]


def test_a_buffer_gives_its_rows_in_order_again_and_again(memory: MemoryBudget) -> None:
    with RowBuffer(memory) as buffer:
        for chunk in chunks(many(3000)):
            buffer.append(chunk)
        for _ in range(2):
            assert [row for batch in buffer.batches() for row in batch] == many(3000)
        assert len(buffer) == 3000
    assert (memory.used_bytes, memory.open_files) == (0, 0)


def test_a_buffer_becomes_a_relation_that_keeps_its_rows(memory: MemoryBudget) -> None:
    buffer = RowBuffer(memory)
    buffer.append(many(3000))
    relation = buffer.relation(Schema.of("n", "t"))
    assert len(relation) == 3000
    assert relation == Relation(Schema.of("n", "t"), many(3000))
    assert next(iter(relation))["t"] == "row 0"
    del buffer, relation
    assert (memory.used_bytes, memory.open_files) == (0, 0)


def test_a_queue_gives_each_row_once_in_order_while_more_come(memory: MemoryBudget) -> None:
    taken: list[Row] = []
    with RowQueue(memory) as queue:
        for number, chunk in enumerate(chunks(many(2000), 64)):
            queue.append(chunk)
            if number % 3 == 2:
                taken += queue.popleft()
                taken += queue.popleft()
        while queue.length:
            taken += queue.popleft()
    assert taken == many(2000)
    assert (memory.used_bytes, memory.open_files) == (0, 0)


@pytest.mark.parametrize("limit", LIMITS)
@given(given_rows=rows)
def test_a_key_set_knows_what_it_has_seen(limit: int, given_rows: list[Row]) -> None:
    memory = MemoryBudget(limit)
    keys = [identity(row) for row in given_rows]
    expected = list(dict.fromkeys(keys))
    with KeySet(memory) as seen:
        fresh = [key for chunk in chunks(keys) for key in seen.add_new(chunk, chunk)]
        assert fresh == expected
        assert len(seen) == len(expected)
        assert all(key in seen for key in keys)
        assert ("never",) not in seen
    assert (memory.used_bytes, memory.open_files) == (0, 0)


def test_keys_with_one_hash_are_told_apart_on_disk() -> None:
    assert hash(-1) == hash(-2)
    with KeySet(MemoryBudget(1)) as seen:
        assert seen.add((0,))  # the first one overflows the account
        assert [seen.add(key) for key in (-1, -2, -1, -2)] == [True, True, False, False]


@pytest.mark.parametrize("limit", LIMITS)
@given(given_rows=rows)
def test_keyed_rows_find_all_rows_of_a_key(limit: int, given_rows: list[Row]) -> None:
    expected: dict[Any, list[Row]] = {}
    memory = MemoryBudget(limit)
    with KeyedRows(memory) as table:
        for chunk in chunks(given_rows):
            keys = [identity(row[:1]) for row in chunk]
            for key, row in zip(keys, chunk, strict=True):
                expected.setdefault(key, []).append(row)
            table.add_all(keys, chunk)
        for key, of_key in expected.items():
            assert _bag(table.get(key)) == _bag(of_key)
        assert {key: _bag(found) for key, found in table.items()} == {
            key: _bag(of_key) for key, of_key in expected.items()
        }
        assert list(table.get("nothing")) == []
    assert (memory.used_bytes, memory.open_files) == (0, 0)


def _bag(found: Any) -> Counter[Any]:
    return Counter(identity(row) for row in found)


@pytest.mark.parametrize("limit", LIMITS)
@given(numbers=st.lists(st.integers(0, 50), max_size=200))
def test_sorting_is_right_and_stable(limit: int, numbers: list[int]) -> None:
    given_rows = [(number, place) for place, number in enumerate(numbers)]
    with SortedRows(MemoryBudget(limit), key=lambda row: row[0]) as ordered:
        for chunk in chunks(given_rows):
            ordered.append(chunk)
        assert [row for batch in ordered.batches() for row in batch] == sorted(
            given_rows, key=lambda row: row[0]
        )


def test_a_long_sort_goes_to_disk_and_comes_back_in_order() -> None:
    memory = MemoryBudget(10_000)
    given_rows = [((number * 7919) % 20_011, number) for number in range(20_000)]
    with SortedRows(memory, key=lambda row: row[0]) as ordered:
        for chunk in chunks(given_rows, 256):
            ordered.append(chunk)
        assert memory.spilled_rows > 10_000
        assert [row for batch in ordered.batches() for row in batch] == sorted(given_rows)
    assert (memory.used_bytes, memory.open_files) == (0, 0)


def test_a_run_closes_what_its_operators_left_open() -> None:
    engine = MemoryBudget(1_000)
    run = engine.for_run()
    buffer, seen = RowBuffer(run), KeySet(run)
    buffer.append(many(100))
    seen.add_new(many(100), many(100))
    assert engine.open_files == 2
    run.close()
    assert (engine.used_bytes, engine.open_files, run.used_bytes) == (0, 0, 0)


def spilled(memory: MemoryBudget, *first: Row) -> Relation:
    """A relation whose first rows are in memory, and the others on disk."""
    buffer = RowBuffer(memory)
    if first:
        buffer.append(first)
    buffer.append(many(1000))
    return buffer.relation(Schema.of("n", "t"))


def test_what_is_handed_out_is_not_closed_with_the_run_nor_what_is_embedded_in_it() -> None:
    run = MemoryBudget(10_000).for_run()
    outer = spilled(run, (spilled(run), "embedded"))
    given, not_given = Relation(Schema.of("r"), [(outer,)]), spilled(run)
    assert run.open_files == 3
    run.hand_out([(given, 1)])
    run.close()
    assert run.open_files == 2
    assert len(list(outer)) == 1001
    assert list(next(iter(outer))["n"].rows) == many(1000)
    with pytest.raises(ClosedError):
        list(not_given)
    run.take_back()
    assert (run.open_files, run.used_bytes) == (0, 0)


def shared_rows(count: int, text: str) -> list[Row]:
    document = Document(text, "xml")
    return [(number, document) for number in range(count)]


def test_a_large_document_that_rows_share_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The elements of a document carry it along: a thousand of them are no thousand documents on disk."""
    files: list[BinaryIO] = []
    temporary = tempfile.TemporaryFile

    def opened(**how: Any) -> BinaryIO:
        files.append(cast(BinaryIO, temporary(**how)))
        return files[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", opened)
    text = "x" * 1_000_000
    rows = shared_rows(5000, text)
    memory = MemoryBudget(1)
    with RowBuffer(memory) as buffer:
        for start in range(0, len(rows), 100):
            buffer.append(rows[start : start + 100])
        found = [row for batch in buffer.batches() for row in batch]
        assert found == rows
        assert len({id(row[1]) for row in found}) <= 2  # those on disk have one, those in memory another
        (file,) = files
        assert os.fstat(file.fileno()).st_size < 2 * len(text)


def test_a_large_document_of_many_rows_with_keys_is_written_once() -> None:
    text = "x" * 200_000
    rows = shared_rows(300, text)
    memory = MemoryBudget(1)
    with KeyedRows(memory) as keyed:
        keyed.add_all([row[0] for row in rows], rows)
        keyed.add_all([row[0] for row in rows], rows)
        assert keyed.is_on_disk
        assert [len(found) for found in keyed.get_all([row[0] for row in rows])] == [2] * 300
        assert all(row[1].text == text for row in keyed.get(7))


def test_documents_count_once_for_rows_that_share_them_and_each_for_rows_that_do_not() -> None:
    memory = MemoryBudget(1 << 30)
    shared = memory.size_of(shared_rows(1000, "x" * 100_000))
    assert 100_000 < shared < 300_000
    different = memory.size_of(
        [(number, Document("y" * 100_000 + str(number), "xml")) for number in range(100)]
    )
    assert different > 100 * 100_000
    document = Document("z" * 100_000, "xml")
    assert memory.size_of([(1, document)]) > 100_000
    assert memory.size_of([(2, document)]) < 1000
