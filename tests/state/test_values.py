"""Values as JSON text, and what columns must hold to take them."""

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.errors import SettingError
from aioflow.relation import Document, Relation, RowStore, Schema, Type, identity
from aioflow.state.driver import ColumnNeed
from aioflow.state.staged import observe
from aioflow.values.json import decode_date, decode_json, decode_row, encode_date, encode_json, encode_rows
from tests.state.driver_cases import values

ANY_CHARACTER = st.characters(exclude_categories=())
ANYTHING = st.one_of(st.none(), *(values(kind, characters=ANY_CHARACTER) for kind in Type))


@given(ANYTHING)
def test_every_value_comes_back_equal_and_of_the_same_class(value: Any) -> None:
    text = encode_json(value)
    text.encode()  # any database can carry it
    found = decode_json(text)
    assert type(found) is type(value)
    assert identity((found,)) == identity((value,))


@given(st.lists(st.tuples(ANYTHING, ANYTHING), max_size=4))
def test_a_relation_of_anything_comes_back_equal(rows: list[tuple[Any, Any]]) -> None:
    relation = Relation(Schema.of("a", b="number"), rows)
    found = decode_json(encode_json(relation))
    assert found == relation
    assert found.schema == relation.schema
    assert [identity(row) for row in found.rows] == [identity(row) for row in rows]


def _columns(kinds: list[Type | None]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows with columns of these types; None stands for values of all types."""
    columns = (
        ANYTHING if kind is None else st.none() | values(kind, characters=ANY_CHARACTER) for kind in kinds
    )
    return st.lists(st.tuples(*columns), max_size=4)


@given(st.lists(st.sampled_from([*Type, None]), min_size=1, max_size=3).flatmap(_columns))
def test_rows_come_back_equal_and_of_the_same_classes(rows: list[tuple[Any, ...]]) -> None:
    texts = encode_rows(rows)
    found = [decode_row(text) for text in texts]
    assert all(text.encode() for text in texts)
    assert [identity(row) for row in found] == [identity(row) for row in rows]
    assert [list(map(type, row)) for row in found] == [list(map(type, row)) for row in rows]


@pytest.mark.parametrize(
    "text", ["", "1", "null", '{"$date":"2026-01-31"}', '[{"a":1}]', '[{"$x":1}]', "[[1]]"]
)
def test_another_text_is_no_row(text: str) -> None:
    with pytest.raises(ValueError, match="is no value that aioflow stored"):
        decode_row(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ü\n", '"ü\\n"'),
        (2**80, str(2**80)),
        (True, "true"),
        (None, "null"),
        (Decimal("1.10"), '{"$decimal":"1.10"}'),
        (float("nan"), '{"$number":"NaN"}'),
        (float("-inf"), '{"$number":"-Infinity"}'),
        (date(2026, 1, 31), '{"$date":"2026-01-31"}'),
        (
            datetime(2026, 1, 31, 10, tzinfo=timezone(timedelta(hours=1))),
            '{"$datetime":"2026-01-31T10:00:00+01:00"}',
        ),
        (Document("<p>"), '{"$document":{"kind":"html","text":"<p>"}}'),
        (
            Relation(Schema.of("a", b="number"), [("x", None)]),
            '{"$relation":{"names":["a","b"],"types":[null,"number"],"rows":[["x",null]]}}',
        ),
    ],
    ids=str,
)
def test_the_text_is_what_the_documentation_says(value: Any, text: str) -> None:
    assert encode_json(value) == text


@pytest.mark.parametrize(
    "value",
    [
        10**6000,
        -(10**6000),
        "\ud83d\ude00",  # two halves that JSON would join
        "a\ud800\0b",
        Document("\udfff", "json"),
        Relation(Schema(("\ud800",)), [(float("inf"),)]),
        Relation(Schema(()), [(), ()]),
        Decimal("sNaN123"),
        Decimal("1E+999999"),
        date.min,
        datetime.max,
    ],
    ids=lambda value: type(value).__name__,
)
def test_odd_values_come_back_equal(value: Any) -> None:
    text = encode_json(value)
    text.encode()
    assert identity((decode_json(text),)) == identity((value,))


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize("day", [datetime(2026, 10, 25, 2, 30), datetime(2026, 3, 29, 2, 30)])
def test_the_hours_that_a_change_of_clocks_repeats_or_skips_come_back_equal(day: datetime, fold: int) -> None:
    value = day.replace(tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
    found = decode_json(encode_json(value))
    assert found == value
    assert found.utcoffset() == value.utcoffset()


def test_a_zone_that_is_unknown_here_leaves_the_instant() -> None:
    found = decode_date("2026-10-25T02:30:00+02:00[Nowhere/Atlantis]")
    assert found == datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=2)))


def test_a_zone_is_left_out_where_the_offset_says_everything() -> None:
    assert encode_date(datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))) == "2026-01-01T00:00:00+01:00"


def test_rows_that_were_spilled_are_written_as_any() -> None:
    class Stored(RowStore):
        def __len__(self) -> int:
            return 1

        def __iter__(self) -> Iterator[tuple[Any, ...]]:
            return iter([(1,)])

    relation = Relation(Schema.of("a"), Stored())
    assert decode_json(encode_json(relation)) == relation


class Color(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


def test_subclasses_are_written_as_what_they_are() -> None:
    assert decode_json(encode_json(Color.RED)) == "red"
    assert decode_json(encode_json(Size.SMALL)) == 1
    relation = Relation(Schema.of("a"), [(Color.RED,)])
    assert decode_json(encode_json(relation)) == relation


@pytest.mark.parametrize(
    "value", [b"x", {"$date": "2026-01-31"}, [1], object()], ids=lambda value: type(value).__name__
)
def test_what_is_no_value_is_refused_also_within_a_relation(value: Any) -> None:
    for given_value in (value, Relation(Schema.of("a"), [(value,)])):
        with pytest.raises(SettingError, match=type(value).__name__):
            encode_json(given_value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "{}",
        '{"a": 1}',
        '{"$new": 1}',
        '{"$date": 1}',
        '{"$decimal": "x"}',
        '{"$relation": {}}',
    ],
)
def test_text_that_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no value that aioflow stored"):
        decode_json(text)


def test_json_readers_of_others_can_read_it() -> None:
    relation = Relation(Schema.of("a"), [(float("nan"),)])
    assert json.loads(encode_json(relation))["$relation"]["rows"] == [[{"$number": "NaN"}]]


# --- what columns must hold ---------------------------------------------------------------------


def test_classes_are_gathered_over_batches_without_null() -> None:
    schema = Schema.of("a", b="number", c="char")
    needs: list[ColumnNeed] = []
    observe(needs, schema, [])
    assert [(need.name, need.kind, need.classes) for need in needs] == [
        ("a", None, set()),
        ("b", Type.NUMBER, set()),
        ("c", Type.CHAR, set()),
    ]
    observe(needs, schema, [(1, None, "x"), ("y", 0.5, None)])
    observe(needs, schema, [(True, Decimal(1), "z")])
    assert [need.classes for need in needs] == [{int, str, bool}, {float, Decimal}, {str}]
    assert not any(need.is_wide for need in needs)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**50])
@pytest.mark.parametrize(
    "others", [[], [None], [1, 2], [float("nan")], ["x", True, Decimal("sNaN")]], ids=repr
)
def test_integers_of_more_than_64_bits_are_noticed_among_anything(value: int, others: list[Any]) -> None:
    needs: list[ColumnNeed] = []
    observe(needs, Schema.of("a"), [(each,) for each in [*others, value, *others]])
    observe(needs, Schema.of("a"), [(1,)])
    assert needs[0].is_wide


@pytest.mark.parametrize(
    "column", [[2**63 - 1, -(2**63)], [float("inf"), 1], [1e300, 1], [Decimal("1E50"), 1]]
)
def test_nothing_else_is_wide(column: list[Any]) -> None:
    needs: list[ColumnNeed] = []
    observe(needs, Schema.of("a"), [(each,) for each in column])
    assert not needs[0].is_wide


def test_subclasses_are_observed_as_what_they_are() -> None:
    needs: list[ColumnNeed] = []
    observe(needs, Schema.of("a", "b"), [(Color.RED, Size.SMALL)])
    assert [need.classes for need in needs] == [{str}, {int}]


def test_a_value_that_nothing_can_store_is_refused() -> None:
    with pytest.raises(SettingError, match="bytes"):
        observe([], Schema.of("a"), [(b"x",)])
