"""Lists of aggregate calls."""

from typing import Any

import pytest

from aioflow.authoring.function import AggregateFunction, aggregate_functions
from aioflow.errors import SettingError
from aioflow.expressions import Aggregates
from aioflow.relation import Schema, Type

SCHEMA = Schema.of("any", price="number", city="char")
ROW = (1, 500, "Irvine")


@pytest.fixture(autouse=True)
def functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of these tests only."""
    known = {
        "count": AggregateFunction("count", len, Type.NUMBER),
        "sum": AggregateFunction("sum", sum, Type.NUMBER),
        "max": AggregateFunction("max", max, same_type=True),
        "spread": AggregateFunction("spread", len),
    }
    monkeypatch.setattr(aggregate_functions, "_functions", known)


def bind(text: str, schema: Schema | None = SCHEMA) -> Aggregates:
    return Aggregates.bind(text, [schema])


def test_calls_have_function_argument_and_name() -> None:
    aggregates = bind(
        "SUM(price * 2) as total, count() as n, max(city), count(distinct any) as kinds, spread(*)"
    )
    assert [
        (call.name, call.as_name, call.position, call.distinct, call.type) for call in aggregates.calls
    ] == [
        ("sum", "total", None, False, Type.NUMBER),
        ("count", "n", None, False, Type.NUMBER),
        ("max", "max-city", 2, False, Type.CHAR),
        ("count", "kinds", 0, True, Type.NUMBER),
        ("spread", "spread", None, False, None),
    ]
    total, count, *_ = aggregates.calls
    assert total.argument is not None
    assert total.argument(ROW) == 1000
    assert count.argument is None
    assert aggregates.schema.names == ("total", "n", "max-city", "kinds", "spread")
    assert aggregates.schema.types == (Type.NUMBER, Type.NUMBER, Type.CHAR, Type.NUMBER, None)
    assert aggregates.positions == (1, 2, 0)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("count()", "count"),
        ("count(*)", "count"),
        ("count(distinct city)", "count-distinct-city"),
        ("sum(price * 2)", "sum-price-2"),
        ("sum( price )", "sum-price"),
    ],
)
def test_a_call_without_name_is_named_after_its_text(text: str, name: str) -> None:
    assert bind(text).calls[0].as_name == name


def test_without_a_schema_names_are_known_and_types_partly() -> None:
    aggregates = bind("sum(nonsense) as total, max(nonsense) as most", None)
    assert aggregates.schema == Schema(("total", "most"), (Type.NUMBER, None))
    assert aggregates.positions is None
    argument: Any = aggregates.calls[0].argument
    with pytest.raises(TypeError, match="bound without a schema"):
        argument(ROW)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "the list of aggregate functions is empty", 0),
        ("price", "expected a function with its argument, as in 'sum(price)', found 'price'", 0),
        ("summ(price)", "unknown aggregate function 'summ'; did you mean 'sum'?", 0),
        ("sum(prise)", "unknown attribute 'prise'; did you mean 'price'? (there are: any, price, city)", 4),
        ("sum()", "sum needs an argument", 0),
        ("sum(price, 2)", "sum takes one argument, not 2", 0),
        ("sum(price > 1)", "sum takes numbers, not a boolean", 0),
        ("sum(price) as a, max(price) as a", "attribute 'a' appears twice", 17),
        ("sum(price) total", "expected 'as', ',' or the end, found 'total'", 11),
        ("max(price) - 1", "expected 'as', ',' or the end, found '-'", 11),
        ("sum(price", "expected an operator or the ')' that closes '(' of sum, found the end", 9),
        (
            "sum(max(price))",
            "'max' is an aggregate function, which only the operator aggregate can call",
            4,
        ),
    ],
)
def test_mistakes(text: str, message: str, offset: int) -> None:
    with pytest.raises(SettingError) as caught:
        bind(text)
    assert (caught.value.message, caught.value.offset) == (message, offset)
