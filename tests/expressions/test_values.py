"""What operators mean: null, comparison, arithmetic, and what is counted."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.expressions import Condition
from aioflow.relation import Document, Relation, Schema, Value
from tests.expressions.tools import counted, holds, projection, value

NAN = float("nan")
INFINITY = float("inf")


# --- null ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), list(product([True, False, None], repeat=2)))
def test_and_or_and_not_have_three_values(a: bool | None, b: bool | None) -> None:
    both = False if a is False or b is False else None if a is None or b is None else True
    either = True if a is True or b is True else None if a is None or b is None else False
    assert value("a and b", a=a, b=b) is both
    assert value("a or b", a=a, b=b) is either
    assert value("not a", a=a) is (None if a is None else not a)
    assert holds("a and b", a=a, b=b) is (both is True)
    assert holds("not (a and b)", a=a, b=b) is (both is False)
    assert holds("a or b", a=a, b=b) is (either is True)
    assert holds("not (a or b)", a=a, b=b) is (either is False)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1", "x != 1", "x < 1", "1 > x", "x = null", "x + 1", "1 / x", "-x", "x || 'a'", "x like 'a'",
        "x matches 'a'", "x in (1, 2)", "x not in (1, 2)", "x between 1 and 2", "1 between x and 2",
        "lower(x)", "x = x", "not x = 1", "greatest(1, x)", "case x when null then 1 end",
    ],
)  # fmt: skip
def test_null_gives_null(text: str) -> None:
    assert value(text, x=None) is None
    assert counted(text, x=None) == {}


def test_in_with_a_null_is_true_or_null() -> None:
    assert value("1 in (1, null)") is True
    assert value("2 in (1, null)") is None
    assert value("2 not in (1, null)") is None
    assert value("x in (1, y)", x=2, y=None) is None


def test_between_may_be_false_beside_a_null() -> None:
    assert value("5 between x and 3", x=None) is False
    assert holds("5 not between x and 3", x=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x is null", {None: True, True: False, False: False}),
        ("x is not null", {None: False, True: True, False: True}),
        ("x is true", {None: False, True: True, False: False}),
        ("x is not true", {None: True, True: False, False: True}),
        ("x is false", {None: False, True: False, False: True}),
        ("x is not false", {None: True, True: True, False: False}),
        ("not x is null", {None: False, True: True, False: True}),
    ],
)
def test_is_is_never_null(text: str, expected: dict[bool | None, bool]) -> None:
    for x, result in expected.items():
        assert value(text, x=x) is result
        assert holds(text, x=x) is result


@pytest.mark.parametrize(
    "form",
    [
        "nullif({}, 2)",
        "({} between y and y)",
        "({} in (y, y, y))",
        "case {} when 2 then 1 when 3 then 2 else 1 end",
        "coalesce({}, 2)",
        "greatest({}, 0)",
        "if({} = 1, 1, 2)",
        "({} || '' like '%a%')",
    ],
)
def test_an_operand_is_evaluated_once_however_deep(form: str) -> None:
    text = "x"
    for _ in range(40):
        text = form.format(text)
    value(text, x=1, y=True)
    Condition.bind(f"({text}) is null or ({text}) is not null", [Schema(("x", "y"))]).filter([(1, True)])


# --- comparison ---------------------------------------------------------------------------------

SIGNS = ("=", "!=", "<", "<=", ">", ">=")


def signs_between(left: Value, right: Value) -> list[str]:
    """The signs that hold between two values, asked in every form that has a closure of its own."""
    found = [sign for sign in SIGNS if value(f"a {sign} b", a=left, b=right)]
    assert found == [sign for sign in SIGNS if holds(f"a {sign} b", a=left, b=right)]
    flipped = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
    assert found == [sign for sign in SIGNS if holds(f"b {flipped[sign]} a", a=left, b=right)]
    return found


LESS, EQUAL, GREATER = ["!=", "<", "<="], ["=", "<=", ">="], ["!=", ">", ">="]


@pytest.mark.parametrize(
    ("left", "right", "signs"),
    [
        (1, 2, LESS),
        (1, 1.0, EQUAL),
        (1, Decimal("1.00"), EQUAL),
        (0.1, Decimal("0.1"), EQUAL),
        (Decimal("0.1"), 0.2, LESS),
        (2**53 + 1, float(2**53), GREATER),
        ("a", "b", LESS),
        ("B", "a", LESS),
        ("10", "9", LESS),
        ("10", 9, GREATER),
        (" 1e1 ", 10, EQUAL),
        ("0.1", Decimal("0.1"), EQUAL),
        (False, True, LESS),
        (True, True, EQUAL),
        (NAN, NAN, EQUAL),
        (NAN, INFINITY, GREATER),
        (5, NAN, LESS),
        (Decimal("NaN"), NAN, EQUAL),
        (Decimal("sNaN"), Decimal(1), GREATER),
        (-INFINITY, Decimal("-1e999"), LESS),
        (date(2026, 1, 31), date(2026, 2, 1), LESS),
        (date(2026, 1, 31), datetime(2026, 1, 31), EQUAL),
        (datetime(2026, 1, 31, 0, 0, 1), date(2026, 1, 31), GREATER),
        (datetime(2026, 1, 31, 8), datetime(2026, 1, 31, 8, tzinfo=UTC), EQUAL),
        (
            datetime(2026, 1, 31, 8, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 1, 31, 7, tzinfo=UTC),
            LESS,
        ),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), datetime.min, LESS),
        ("2026-01-31", date(2026, 1, 31), EQUAL),
        ("2026-01-31T08:00Z", datetime(2026, 1, 31, 9, tzinfo=UTC), LESS),
        (Document("<p>"), Document("<p>"), ["="]),
        (Document("<p>"), "<p>", EQUAL),
        (Relation(Schema(("a",)), [(1,)]), Relation(Schema(("a",)), [(1,)]), ["="]),
        (True, 1, []),
        (True, "true", []),
        (1, date(2026, 1, 31), []),
        ("x", 1, []),
        ("x", date(2026, 1, 31), []),
        (Relation(Schema(("a",))), 1, []),
    ],
)
def test_comparison(left: Value, right: Value, signs: list[str]) -> None:
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    assert signs_between(left, right) == signs
    assert set(signs_between(right, left)) == {mirrored.get(sign, sign) for sign in signs}


@pytest.mark.parametrize("constant", ["0", "1", "2.5", "-3", "number 'nan'", "number 'inf'"])
@pytest.mark.parametrize("x", [None, 0, 1, True, False, 2.5, NAN, INFINITY, Decimal("2.5"), "1", "x", "-3"])
def test_a_column_beside_a_constant_is_compared_like_two_columns(x: Value, constant: str) -> None:
    literal = value(constant)
    for sign in SIGNS:
        general = value(f"x {sign} y", x=x, y=literal)
        assert value(f"x {sign} {constant}", x=x) is general
        assert holds(f"x {sign} {constant}", x=x) is (general is True)
        assert holds(f"not x {sign} {constant}", x=x) is (general is False)
        assert holds(f"{constant} {sign} x", x=x) is (value(f"y {sign} x", x=x, y=literal) is True)
    inside = value("x >= y and x <= y", x=x, y=literal)
    assert holds(f"x between {constant} and {constant}", x=x) is (inside is True)
    assert holds(f"x in ({constant})", x=x) is (value("x = y", x=x, y=literal) is True)
    assert holds(f"x not in ({constant})", x=x) is (value("x = y", x=x, y=literal) is False)


@pytest.mark.parametrize("x", [None, "a", "b", "5", 5, True, date(2026, 1, 31), Document("a")])
@pytest.mark.parametrize("constant", ["'a'", "'5'", "'2026-01-31'"])
def test_a_column_beside_a_text_is_compared_like_two_columns(x: Value, constant: str) -> None:
    literal = value(constant)
    for sign in SIGNS:
        general = value(f"x {sign} y", x=x, y=literal)
        assert holds(f"x {sign} {constant}", x=x) is (general is True)
        assert holds(f"not x {sign} {constant}", x=x) is (general is False)
    equal = value("x = y", x=x, y=literal)
    assert holds(f"x in ({constant}, {constant})", x=x) is (equal is True)
    assert holds(f"x not in ({constant}, {constant})", x=x) is (equal is False)


@pytest.mark.parametrize(
    ("text", "x", "what"),
    [
        ("x > 1", "many", "not a number"),
        ("x > date '2026-01-31'", "soon", "not a date"),
        ("x = 'soon'", date(2026, 1, 31), "not a date"),
        ("x = 'many'", 1, "not a number"),
        ("x = true", 1, "unlike kinds compared"),
        ("x < x", Document(""), "unlike kinds compared"),
        ("x + 1", "many", "not a number"),
        ("x + 1", True, "unlike kinds compared"),
        ("x / 0", 1, "division by zero"),
        ("x // 0.0", 1, "division by zero"),
        ("x % 0", Decimal(1), "division by zero"),
        ("x / 0", Decimal(0), "division by zero"),
        ("x * x", Decimal("1e999999"), "number out of range"),
        ("x / 1.5", 10**400, "number out of range"),
        ("x * 0.5", 10**400, "number out of range"),
        ("x || 'a'", Relation(Schema(("a",))), "not a text"),
        ("x and true", 1, "not a boolean"),
        ("x like 'a%'", 1, "not a text"),
        ("x + 1", date.max, "date out of range"),
        ("'a' matches x", "(", "bad pattern"),
        ("'a' like x escape '!'", "!a", "bad pattern"),
        ("lower(x)", 1, "not a text"),
        ("round(x)", "many", "not a number"),
        ("substr('abc', x)", 1.5, "not a whole number"),
        ("year(x)", "soon", "not a date"),
        ("if(x, 1, 2) is null", "yes", "not a boolean"),
    ],
)
def test_what_has_no_value_is_null_and_counted(text: str, x: Value, what: str) -> None:
    assert value(text, x=x) in (None, False)
    assert counted(text, x=x) == {what: 1}


def test_what_is_constant_and_has_no_value_is_counted_for_every_row() -> None:
    bound = projection("1 / 0", {})
    assert [bound.row(()), bound.row(())] == [(None,), (None,)]
    assert bound.counters.take() == {"division by zero": 2}
    assert bound.counters == {}


# --- arithmetic ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 / 2", 2.5),
        ("4 / 2", 2),
        ("-7 / 2", -3.5),
        ("4.0 / 2", 2.0),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("7.5 // 2", 3.0),
        ("-7 % 3", 2),
        ("7 % -3", -2),
        ("'5' + 3", 8),
        ("'5' + '3'", 8),
        ("'5' / '2'", 2.5),
        ("'4' / '2'", 2),
        ("'1.5' * 2", 3.0),
        ("1 + 2.5", 3.5),
        ("-'5'", -5),
    ],
)
def test_arithmetic(text: str, expected: Value) -> None:
    result = value(text)
    assert result == expected
    assert type(result) is type(expected)
    if " " in text:
        a, sign, b = text.split(" ")
        result = value(f"a {sign} b", a=value(a), b=value(b))
        assert result == expected
        assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + 1", "11.50"),
        ("x * 1.1", "11.550"),
        ("x - 0.5", "10.00"),
        ("x / 2", "5.25"),
        ("-x", "-10.50"),
        ("x // 4", "2"),
        ("-x // 4", "-3"),
        ("-x % 4", "1.50"),
        ("x % -4", "-1.50"),
    ],
)
def test_decimals_stay_decimals(text: str, expected: str) -> None:
    result = value(text, x=Decimal("10.50"))
    assert str(result) == expected
    assert isinstance(result, Decimal)


def test_integers_are_exact_however_large() -> None:
    assert value("x * 3 / 3", x=10**40) == 10**40
    assert value("x + 1", x=2**70) == 2**70 + 1


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (10**30, 10**29, 10),
        (2**53 + 1, 2, Decimal("4503599627370496.5")),
        (10**30 + 1, 2, Decimal("500000000000000000000000000000.5")),
        (-(10**40) - 1, 8, Decimal("-1250000000000000000000000000000000000000.125")),
        (1, 2**60, Context(prec=100).divide(Decimal(1), Decimal(2**60))),
        (3, 10**30, Decimal("3e-30")),
        (1, 2**80, Decimal("8.27180612553027674871408692069962853565812110900878906250E-25")),
        (10**30, 3, Decimal("333333333333333333333333333333." + "3" * 28)),
        (2 * 10**400, 3, Decimal("6" * 400 + "." + "6" * 27 + "7")),
        (2, 3 * 10**30, Decimal("6.666666666666666666666666667e-31")),
        (1, 3**2000 * 10, None),
    ],
)  # fmt: skip
def test_a_quotient_of_large_integers_is_exact_or_has_28_digits_after_the_point(
    x: int, y: int, expected: Value
) -> None:
    for found in (value("x / y", x=x, y=y), value(f"x / {y}", x=x), value("x / y", x=str(x), y=y)):
        if expected is None:
            assert len(found.as_tuple().digits) == 28
        else:
            assert (found, type(found)) == (expected, type(expected))


@given(st.integers(), st.integers().filter(bool), st.integers(0, 400), st.integers(0, 400))
def test_a_quotient_is_as_near_as_it_is_told(x: int, y: int, more: int, others: int) -> None:
    x, y = x * 2**more, y * 5**others
    found, exact = value("x / y", x=x, y=y), Fraction(x, y)
    assert found == x / y if isinstance(found, float) else abs(Fraction(found) - exact) <= abs(exact) / 10**27
    if not isinstance(found, float):
        assert Fraction(found) * y == x or exact.denominator % 2**1001 == 0 or _has_other_factors(exact)


def _has_other_factors(number: Fraction) -> bool:
    rest = number.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    return rest > 1


DAY = date(2026, 1, 31)
NOON = datetime(2026, 1, 31, 12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d + 1", date(2026, 2, 1)),
        ("1 + d", date(2026, 2, 1)),
        ("d - 1", date(2026, 1, 30)),
        ("d + '1'", date(2026, 2, 1)),
        ("d + 0.5", NOON),
        ("t + 1", datetime(2026, 2, 1, 12)),
        ("d - date '2026-01-01'", 30),
        ("t - d", 0.5),
        ("d - '2026-01-01'", 30),
        ("'2026-02-01' - d", 1),
        ("x - d", None),
        ("d - x", None),
        ("d - b", None),
        ("d + d", None),
    ],
)
def test_dates_move_by_days(text: str, expected: Value) -> None:
    result = value(text, d=DAY, t=NOON, x="x", b=True)
    assert result == expected
    assert type(result) is type(expected)


# --- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ("a", "a!"),
        (5, "5!"),
        (2.5, "2.5!"),
        (Decimal("1E+2"), "100!"),
        (True, "true!"),
        (DAY, "2026-01-31!"),
        (NOON, "2026-01-31T12:00:00!"),
        (Document("<p>"), "<p>!"),
    ],
)
def test_concatenation_writes_every_value_as_text(x: Value, expected: str) -> None:
    assert value("x || '!'", x=x) == expected


def test_texts_have_a_longest_length() -> None:
    long = "x" * (1 << 24)
    assert counted("x || x || x", x=long) == {"text too long": 1}
    assert len(value("x || x", x=long)) == 1 << 25
