"""Parquet files: their types, round trips, and what does not fit."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioflow import Document, Relation, Row, RunError, Schema
from aioflow.operators import parquet
from aioflow.testing import rows, run_plan
from tests.operators.running import bag, out, plan, run

BERLIN = ZoneInfo("Europe/Berlin")
WRITE, READ = 'write (rel, "a.parquet" : out)', 'read ("a.parquet" : out)'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def types() -> list[str]:
    return [str(field.type) for field in pyarrow.parquet.read_schema("a.parquet")]


def written_and_read(values: list[Any], declared: str = "") -> list[Any]:
    """One column through a file."""
    text = plan(WRITE, [f"rel (v {declared})" if declared else "rel (v)"])
    run_plan(text, rel=rows(*((value,) for value in values), schema="v"))
    return [value for (value,) in out(READ)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, "é", "=1"], "string"),
        ([None, True, False], "bool"),
        ([None, 1, -(2**63) + 1], "int64"),
        ([1, 0.5, float("inf"), None], "double"),
        ([Decimal("1.10"), 5, 0.25], "decimal128(38, 2)"),
        ([2**64, 1], "decimal128(38, 0)"),
        ([10**50, Decimal("0.5")], "decimal256(76, 1)"),
        ([date(2026, 1, 2), None], "date32[day]"),
        ([datetime(2026, 1, 2, 3, 4, 5, 6), date(2026, 1, 2)], "timestamp[us]"),
        ([datetime(2026, 7, 2, 3, tzinfo=BERLIN)], "timestamp[us, tz=Europe/Berlin]"),
        ([datetime(2026, 7, 2, 3, tzinfo=timezone(timedelta(hours=-3)))], "timestamp[us, tz=-03:00]"),
        ([datetime(2026, 7, 2, 3, tzinfo=BERLIN), datetime(2026, 7, 2, tzinfo=UTC)], "timestamp[us, tz=UTC]"),
        ([Relation(Schema.of("a"), [(1,), (None,)]), None], "string"),
        ([Relation.of_values(["x", 1])], "string"),
        ([Document("<p>é</p>"), Document('{"a": [1]}', "json")], "string"),
    ],
)
def test_values_come_back_equal_in_columns_of_their_type(values: list[Any], kind: str) -> None:
    found = written_and_read(values)
    assert bag((value,) for value in found) == bag((value,) for value in values)
    assert types() == [kind]


def test_zones_and_lists_are_the_same_again() -> None:
    [moment] = written_and_read([datetime(2026, 7, 2, 3, tzinfo=BERLIN)])
    assert moment.tzinfo == BERLIN
    [tags] = written_and_read([Relation.of_values(["x"])])
    assert tags.is_list


def test_values_of_several_types_are_texts() -> None:
    assert written_and_read(["a", 1, date(2026, 1, 2), None]) == ["a", "1", "2026-01-02", None]


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("char", "string"),
        ("number", "double"),
        ("boolean", "bool"),
        ("date", "timestamp[us]"),
        ("", "string"),
    ],
)
def test_columns_without_values_have_their_declared_type(declared: str, kind: str) -> None:
    assert written_and_read([None, None], declared) == [None, None]
    assert types() == [kind]


def test_no_tuples_make_a_file_with_columns_and_nothing_told_one_without() -> None:
    run(WRITE, rel=rows(schema="a b"))
    assert (pyarrow.parquet.read_schema("a.parquet").names, out(READ)) == (["a", "b"], [])
    run(WRITE, rel=[])
    assert out(READ) == []


def test_tuples_go_to_the_file_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 10)
    table = [(number, None if number < 5 else "x") for number in range(35)]
    run(WRITE, rel=rows(*table, schema="n s"))
    file = pyarrow.parquet.ParquetFile("a.parquet")
    assert [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)] == [
        10,
        10,
        10,
        5,
    ]
    assert out(READ) == table


def test_long_texts_make_shorter_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_CHARACTERS", 1000)
    run(WRITE, rel=rows(*[(Document("x" * 400),)] * 9, schema="d"))
    assert pyarrow.parquet.ParquetFile("a.parquet").num_row_groups == 3


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        (1, 0.5, r"row 3, column 'v': '0\.5' does not fit into a column of int64"),
        (None, 5, "row 3, column 'v': '5' does not fit into a column of string"),
        (True, "x", "row 3, column 'v': 'x' does not fit into a column of bool"),
        (0.5, 2**60 + 1, "does not fit into a column of double"),
        (Decimal("0.1"), Decimal("0.12"), r"does not fit into a column of decimal128\(38, 1\)"),
        (date(2026, 1, 2), datetime(2026, 1, 2, 3), r"does not fit into a column of date32"),
        (datetime(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), r"does not fit into a column of timestamp"),
        (Relation.of_values([]), "[]", "does not fit into a column of string"),
    ],
)
def test_a_later_value_that_does_not_fit_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, first: Any, later: Any, message: str
) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 2)
    with pytest.raises(RunError, match=message):
        run(WRITE, rel=rows((first,), (first,), (later,), schema="v"), capacity_rows=1)
    assert list(folder.iterdir()) == []


VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(max_size=5),
    st.booleans(),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, UTC, BERLIN])),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(VALUES, max_size=4))
def test_anything_can_be_written_and_what_has_one_type_comes_back_equal(values: list[Any]) -> None:
    found = written_and_read(values)
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and kinds != {int} and kinds != {Decimal}:
        table: list[Row] = [(value,) for value in values]
        if not any(str in kinds and "\\u" in ascii(value) for value in values):
            assert bag((value,) for value in found) == bag(table)


def test_files_of_others_are_read(folder: Path) -> None:
    table = pyarrow.table(
        {
            "word": pyarrow.array(["a", "b"]).dictionary_encode(),
            "seen": pyarrow.array([1, None], pyarrow.timestamp("ns", "UTC")),
            "tags": [["x", "y"], None],
            "rooms": [[{"n": 1}], []],
            "small": pyarrow.array([1, None], pyarrow.int8()),
        }
    )
    pyarrow.parquet.write_table(table, folder / "a.parquet")
    found = out(READ)
    assert found[0] == (
        *("a", datetime(1970, 1, 1, tzinfo=UTC), Document('["x", "y"]', "json")),
        *(rows((1,), schema="n"), 1),
    )
    unpacked = f'{READ.replace(": out", ": all")} unpack (all, "tags" : out)'
    assert [row[-1] for row in out(unpacked)] == ["x", "y"]


def test_types_read_texts_and_name_what_they_cannot_read(folder: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"v": ["1", "x"]}), folder / "a.parquet")
    with pytest.raises(RunError, match=r"a\.parquet, row 2: attribute 'v': 'x' is not a number"):
        run(f'{READ} {{TYPES: "v number"}}')
    with pytest.raises(RunError, match="unknown attribute 'w'"):
        run(f'{READ} {{TYPES: "w number"}}')


def test_what_cannot_be_read_is_said_in_words(folder: Path) -> None:
    (folder / "a.parquet").write_bytes(b"PAR1 or not")
    with pytest.raises(RunError, match=r"a\.parquet: not a Parquet file that can be read"):
        run(READ)
    pyarrow.parquet.write_table(pyarrow.table({"v": [b"x"]}), folder / "a.parquet")
    with pytest.raises(RunError, match="the column 'v' is of the type binary, which no value has"):
        run(READ)


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        RunError, match=r"a Parquet file needs an optional package: pip install 'aioflow\[parquet\]'"
    ):
        run(WRITE, rel=rows((1,)))
