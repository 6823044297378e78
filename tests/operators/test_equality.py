"""Values that are equal: the same everywhere, in joins, conditions, set operators, keys and fingerprints."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal
from itertools import pairwise, product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.expressions import SortKeys
from aioflow.relation import (
    Document,
    Relation,
    Schema,
    Type,
    decimal_of,
    identities,
    identities_of,
    identity,
    value_identities,
)
from aioflow.state.diff.suspects import fingerprint
from aioflow.testing import rows, run_plan
from tests.expressions.tools import value
from tests.operators import database_plans
from tests.operators.running import bag, out

EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
BERLIN = ZoneInfo("Europe/Berlin")
DAY, MIDNIGHT = date(2026, 1, 31), datetime(2026, 1, 31)
SLIGHTLY_MORE = Decimal.from_float(0.1)  # what the float is in binary: 0.1000000000000000055…
INNER = Schema(("a", "b"))
# Each list holds values that are equal to each other, and to none of the other lists.
CLASSES: list[list[Any]] = [
    [None],
    [True],
    [False],
    [0, 0.0, -0.0, Decimal(0), Decimal("-0.00")],
    [1, 1.0, Decimal(1), Decimal("1.00")],
    [0.1, Decimal("0.1"), Decimal("0.10")],
    [SLIGHTLY_MORE],
    [0.1 + 0.2, Decimal("0.30000000000000004")],
    [0.3, Decimal("0.3")],
    [2.5, Decimal("2.5")],
    [5e-324, Decimal("5e-324")],
    [Decimal("1e-400")],
    [Decimal("1.00000000000000000001")],
    [2**53, float(2**53), Decimal(2**53)],
    [2**53 + 1, Decimal(2**53 + 1)],
    [2**70, float(2**70), Decimal(2**70)],
    [10**23, Decimal("1e23")],
    [1e23, int(1e23), Decimal.from_float(1e23)],
    [Decimal("1E+999999")],
    [math.inf, Decimal("Infinity")],
    [-math.inf, Decimal("-Infinity")],
    [math.nan, Decimal("NaN"), Decimal("sNaN"), Decimal("-NaN123")],
    [DAY, MIDNIGHT, MIDNIGHT.replace(tzinfo=UTC), datetime(2026, 1, 31, 14, tzinfo=EAST)],
    [datetime(2026, 1, 31, 8), datetime(2026, 1, 31, 8, fold=1), datetime(2026, 1, 31, 9, tzinfo=BERLIN)],
    # The hour that comes twice: the same clock, another moment.
    [datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)],
    [datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)],
    # In UTC they lie before the first year, and after the last one.
    [datetime.min.replace(tzinfo=EAST), datetime(1, 1, 1, 1, tzinfo=timezone(timedelta(hours=15)))],
    [datetime.max.replace(tzinfo=WEST)],
    [date.min, datetime.min],
    [""],
    ["1"],
    ["0.1"],
    ["2026-01-31"],
    ["true"],
    [Document("1")],
    [Document("1", "xml")],
    [Relation(INNER, [(1, 0.1)]), Relation(Schema(("b", "a")), [(Decimal("0.1"), 1.0)])],
    [Relation(INNER, [(DAY, None)]), Relation(INNER, [(MIDNIGHT, None)])],
    [Relation(INNER)],
]
PAIRS = [
    (one, other, left is right)
    for (left, one), (right, other) in product([(each, one) for each in CLASSES for one in each], repeat=2)
]


def test_equal_values_have_equal_identities_and_others_do_not() -> None:
    for one, other, equal in PAIRS:
        assert (identity((one,)) == identity((other,))) is equal, (one, other)
        if equal:
            assert hash(identity((one,))) == hash(identity((other,))), (one, other)
            assert fingerprint((one,)) == fingerprint((other,)), (one, other)
        else:
            assert fingerprint((one,)) != fingerprint((other,)), (one, other)


def test_conditions_agree_with_joins() -> None:
    """But for a char beside another kind, which a condition reads as that kind."""
    pairs = [
        (number, one, other, equal)
        for number, (one, other, equal) in enumerate(PAIRS)
        if isinstance(one, str) == isinstance(other, str)
    ]
    expected = [number for number, one, _, equal in pairs if equal and one is not None]
    both = rows(*((number, one, other) for number, one, other, _ in pairs), schema="n a b")
    lefts = rows(*((number, one) for number, one, _, _ in pairs), schema="n a")
    rights = rows(*((number, other) for number, _, other, _ in pairs), schema="n b")
    assert [row[0] for row in out('select (rel, "a = b" : out)', rel=both)] == expected
    for condition in ("left.n = right.n and a = b", "a = b and left.n = right.n", "right.b = left.a"):
        joined = out(f'join (l, r, "{condition}" : out)', l=lefts, r=rights, memory_bytes=1 << 24)
        same = [row[0] for row in joined if "left.n" in condition or row[0] == row[2]]
        assert sorted(same) == expected, condition


@pytest.mark.parametrize(
    "statements",
    [
        "distinct (rel : out)",
        'distinct (rel, "v" : out)',
        "union (rel, rel : out)",
        "intersect (rel, rel : out)",
        'aggregate (rel, "count() as n" : counted) {BY: "v"} project (counted, "v" : out)',
        'pack (rel, "all" : packed) {BY: "v"} project (packed, "v" : out)',
    ],
)
@pytest.mark.parametrize("memory_bytes", [1, 1 << 20])
def test_equal_values_are_one_wherever_tuples_are_compared(statements: str, memory_bytes: int) -> None:
    found = out(
        statements, rel=rows(*((value,) for each in CLASSES for value in each), schema="v"),
        memory_bytes=memory_bytes,
    )  # fmt: skip
    assert bag(found) == bag((each[0],) for each in CLASSES)
    assert len(found) == len(CLASSES)


def test_equal_values_are_counted_once() -> None:
    given = rows(*((value,) for each in CLASSES for value in each), schema="v")
    counted = out('aggregate (rel, "count(distinct v) as n" : a) project (a, "n" : out)', rel=given)
    assert counted == [(len(CLASSES) - 1,)]  # without null


def test_a_recursion_works_on_equal_values_once() -> None:
    text = """
      PLAN main { INPUT: start OUTPUT: all BODY { steps (start : all) } }
      PLAN steps { INPUT: v OUTPUT: all ONCE: "v" BODY {
        project (v, "FOLLOWING as v" : next)
        steps (next : rest)
        union (v, rest : all) {ALL} } }
    """
    for start, following in ((0.1, "number '0.1000'"), (DAY, "timestamp '2026-01-31T00:00Z'")):
        result = run_plan(text.replace("FOLLOWING", following), start=[{"v": start}])
        assert len(result.outputs["all"]) == 1


NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.floats().map(lambda number: Decimal(repr(number))),
    st.floats(allow_nan=False, allow_infinity=False).map(Decimal),
)

# Decimals around a float: its neighbours, and what lies between the float in binary and as it is written.
NEAR = st.tuples(
    st.sampled_from([0.1, 0.3, -0.7, 1e-300, 2.0**53 - 0.5, 1e22, 1e23, float(2**60)]),
    st.sampled_from(["0", "1e-20", "-1e-20", "1e-17", "-1e-17", "1e-330", "1", "-0.5"]),
    st.booleans(),
).map(
    lambda near: Context(prec=400).add(Decimal(near[0]) if near[2] else decimal_of(near[0]), Decimal(near[1]))
)


@settings(max_examples=500, deadline=None)
@given(st.lists(NUMBERS, min_size=2, max_size=6))
def test_conditions_and_identities_agree_on_any_numbers(numbers: list[Any]) -> None:
    for one, other in product(numbers, repeat=2):
        signs = {sign for sign in ("<", "=", ">") if value(f"a {sign} b", a=one, b=other)}
        assert len(signs) == 1
        assert (identity((one,)) == identity((other,))) is (signs == {"="})


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(NUMBERS, NEAR), min_size=1, max_size=8), st.booleans())
def test_the_order_of_sort_is_that_of_conditions(numbers: list[Any], descending: bool) -> None:
    key = SortKeys.bind("v desc" if descending else "v", [Schema(("v",))]).key
    found = sorted(numbers, key=lambda number: key((number,)))
    for one, other in pairwise(found):
        assert value("a >= b" if descending else "a <= b", a=one, b=other)
        assert (key((one,)) == key((other,))) is value("a = b", a=one, b=other)


@settings(deadline=None)
@given(st.lists(st.sampled_from([value for each in CLASSES for value in each]), max_size=8))
def test_a_batch_has_the_identities_of_its_tuples(values: list[Any]) -> None:
    expected = [identity((value, 1)) for value in values]
    batch = [(value, 1) for value in values]
    assert list(identities(batch)) == expected
    assert list(identities_of(Schema(("a", "b")))(batch)) == expected
    assert list(identities_of(Schema(("a", "b"), (None, Type.NUMBER)))(batch)) == expected
    assert [(each, 1) for each in value_identities(values)] == expected
    days = [value for value in values if isinstance(value, date)]
    typed = identities_of(Schema(("a", "b"), (Type.DATE, Type.CHAR)))
    assert list(typed([(day, "x") for day in days])) == [identity((day, "x")) for day in days]


def test_stored_keys_are_equal_as_values_are(database_url: str) -> None:
    # In PostgreSQL a column holds dates of one form only.
    kinds = (int, float, Decimal) if database_url.startswith("postgresql") else (int, float, Decimal, date)
    classes = [
        [value for value in each if not isinstance(value, bool) and isinstance(value, kinds)]
        for each in CLASSES
    ]
    given = [each for each in classes if each and each != [Decimal("1E+999999")]]
    statement = 'dbappend (rel, "t") {KEY: "v"; ON_CONFLICT: update}'
    # One after the other, and at once.
    for place in range(max(map(len, given))):
        some = rows(*((each[place], place) for each in given if len(each) > place), schema="v n")
        database_plans.run(database_url, statement, rel=some)
    expected = bag((each[0], len(each) - 1) for each in given)
    assert bag(database_plans.table(database_url)) == expected
    backwards = rows(*((value, 9) for each in given for value in reversed(each)), schema="v n")
    database_plans.run(database_url, statement, rel=backwards)
    assert bag(database_plans.table(database_url)) == bag((each[0], 9) for each in given)
    found = database_plans.run(
        database_url, 'diff (rel, "t" : added, changed, removed) {KEY: "v"}', rel=backwards,
        outputs="added, changed, removed",
    )  # fmt: skip
    assert [len(each) for each in found.outputs.values()] == [0, 0, 0]
