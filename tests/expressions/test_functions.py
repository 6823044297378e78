"""The functions: each documented and shown by an example that is true, and the edges of some."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from aioflow.expressions.calls import all_functions
from aioflow.expressions.functions.table import ExpressionFunction
from aioflow.relation import Document, Relation, Schema, Value
from tests.expressions.tools import counted, holds, value

FUNCTIONS = all_functions()
EXAMPLES = [example for function in FUNCTIONS.values() for example in function.examples]
_WITHOUT_EXAMPLE = {"cardinality"}  # there is no literal for a relation


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_true(example: str) -> None:
    assert holds(example)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_is_documented(function: ExpressionFunction) -> None:
    assert function.doc.endswith(".")
    assert function.examples or function.name in _WITHOUT_EXAMPLE
    assert function.name == function.name.lower()


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_null_argument_gives_null(function: ExpressionFunction) -> None:
    if function.takes_null or function.name in ("coalesce", "if", "nullif"):
        return
    count = function.fewest
    for index in range(count):
        arguments = ", ".join("null" if place == index else "x" for place in range(count))
        assert value(f"{function.name}({arguments})", x=1) is None
        named = ", ".join("x" if place == index else "y" for place in range(count))
        assert value(f"{function.name}({named})", x=None, y="2026-01-31") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("substr('house', 0, 2)", "h"),
        ("substr('house', -2, 1)", "s"),
        ("substr('house', -9, 6)", "ho"),
        ("substr('house', 9)", ""),
        ("left('house', -2)", "hou"),
        ("left('house', 9)", "house"),
        ("right('house', 0)", ""),
        ("right('house', -2)", "use"),
        ("split_part('a,b', ',', 3)", ""),
        ("split_part('a,b', ',', 0)", ""),
        ("split_part('a,b', '', 1)", "a,b"),
        ("lpad('house', 2)", "ho"),
        ("lpad('a', 4, 'xy')", "xyxa"),
        ("rpad('a', 4, '')", "a"),
        ("repeat('a', -1)", ""),
        ("replace('abc', '', 'x')", "abc"),
        ("initcap('o''neil mc-donald')", "O'Neil Mc-Donald"),
        ("concat(1, null, true, 'x')", "1truex"),
        ("position('aaa', 'b')", 0),
        ("regexp_extract('abc', 'x')", None),
        ("regexp_extract('abc', 'a(b)(c)', 2)", "c"),
        ("regexp_extract('abc', 'a(b)(c)', 3)", None),
        ("regexp_extract('abc', 'a(x)?')", None),
        (r"regexp_replace('abc', 'b', '[\0]\\')", "a[b]\\c"),
        (r"regexp_replace('äbc', '(ä)(x)?', '\1\2é\9')", "äébc"),
        ("regexp_replace('abc', '', '-')", "-a-b-c-"),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(1250, -2)", 1300),
        ("round(0.285, 2)", 0.29),
        ("round(7)", 7),
        ("floor(2.9)", 2),
        ("ceil(-2.9)", -2),
        ("abs(-2.5)", 2.5),
        ("sqrt(2.25)", 1.5),
        ("power(2, -1)", 0.5),
        ("power(2, 0.5) > 1.41", True),
        ("number('1,000')", None),
        ("number('0x10')", None),
        ("number('1_000')", None),
        ("number('nan')", None),
        ("number('')", None),
        ("number('٣')", None),
        ("greatest('10', 9)", "10"),
        ("greatest('a', 'b')", "b"),
        ("least(2, 1.5)", 1.5),
        ("weekday('2026-02-01')", 7),
        ("date_add('2024-02-29', 1, 'year')", date(2025, 2, 28)),
        ("date_add('2026-01-31', -2, 'Weeks')", date(2026, 1, 17)),
        ("date_add('2026-01-31T10:00', 1, 'day')", datetime(2026, 2, 1, 10)),
        ("date_diff('2026-01-01', '2026-01-31', 'days')", -30),
        ("date_diff('2026-02-28', '2026-01-31', 'months')", 0),
        ("date_diff('2027-01-30', '2026-01-31', 'years')", 0),
        ("date_diff('2026-01-31T10:59', '2026-01-31T10:00', 'hours')", 0),
        ("date_diff('2026-01-31T10:00Z', '2026-01-31T10:00+02:00', 'hours')", 2),
        ("format_date('2026-01-31T15:04:05', '%I:%M %p %a %b %y %%')", "03:04 PM Sat Jan 26 %"),
        ("format_date('2026-01-31T15:04:05.5+02:00', '%f %z %j')", "500000 +02:00 031"),
        ("parse_date('Jan 31, 2026', '%b %d, %Y')", date(2026, 1, 31)),
        ("parse_date('31/01/26 08:30', '%d/%m/%y %H:%M')", datetime(2026, 1, 31, 8, 30)),
        ("parse_date('soon', '%Y')", None),
        ("date('2026-01-31T10:00Z')", date(2026, 1, 31)),
        ("timestamp('2026-01-31T10:00Z')", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        ("boolean(' NO ')", False),
        ("boolean('maybe')", None),
        ("char(date '2026-01-31')", "2026-01-31"),
        ("char(1e20)", "1e+20"),
        ("type(true)", "boolean"),
        ("coalesce(null, null)", None),
        ("nullif('a', 'a')", None),
        ("nullif(null, 1)", None),
        ("if(null, 1, 2)", 2),
    ],
)
def test_edges(text: str, expected: Value) -> None:
    assert value(text) == expected
    assert type(value(text)) is type(expected)


def test_rounding_a_decimal_gives_a_decimal() -> None:
    assert str(value("round(x, 2)", x=Decimal("2.675"))) == "2.68"
    assert value("round(x)", x=Decimal("2.5")) == 3


def test_functions_read_documents_and_relations() -> None:
    assert value("length(x)", x=Document("<p>")) == 3
    assert value("cardinality(x)", x=Relation(Schema(("a",)), [(1,), (2,)])) == 2
    assert value("type(x)", x=Document("")) == "document"


def test_function_names_are_case_insensitive() -> None:
    assert value("LOWER('A') || Upper('b')") == "aB"


def test_arguments_that_are_not_needed_are_not_evaluated() -> None:
    assert counted("coalesce(x, 1 / 0)", x=1) == {}
    assert counted("if(x = 1, 1, 1 / 0)", x=1) == {}
    assert counted("case when x = 1 then 1 else 1 / 0 end", x=1) == {}


@pytest.mark.parametrize(
    ("text", "x", "what"),
    [
        ("repeat('ab', x)", 10**12, "text too long"),
        ("lpad('ab', x)", 10**12, "text too long"),
        ("replace(y, 'a', y)", 0, "text too long"),
        ("power(2, x)", 10**9, "number out of range"),
        ("power(x, 0.5)", -1, "number out of range"),
        ("power(0, x)", -1, "division by zero"),
        ("mod(1, x)", 0, "division by zero"),
        ("sqrt(x)", -1, "number out of range"),
        ("round(1.5, x)", 10**9, "number out of range"),
        ("floor(x)", float("inf"), "number out of range"),
        ("floor(x)", Decimal("1e999999"), "number out of range"),
        ("date_add('2026-01-31', x, 'years')", 10**9, "date out of range"),
        ("date_add('2026-01-31', 1, x)", "fortnight", "unknown unit of time"),
        ("format_date('2026-01-31', x)", "%Q", "bad layout of a date"),
        ("parse_date('2026', x)", "%Y%Y", "bad layout of a date"),
        ("regexp_extract('a', x)", "(", "bad pattern"),
        pytest.param("char(x)", 10**5000, "not a text", id="5000 digits"),
        ("cardinality(x)", 1, "not a relation"),
    ],
)
def test_what_is_out_of_bounds_is_null_counted_and_quick(text: str, x: Value, what: str) -> None:
    assert counted(text, x=x, y="a" * 10_000) == {what: 1}
