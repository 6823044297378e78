"""The text form: precedence, names, literals, limits."""

import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from aioflow.errors import SettingError
from aioflow.expressions import Condition
from aioflow.expressions.parser import parse_expression
from aioflow.expressions.syntax import Name, names_in
from tests.expressions.tools import holds, mistake, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 2 - 3", 5),
        ("2 * -3", -6),
        ("- 2 + 5", 3),
        ("- - 2", 2),
        ("7 // 2 * 2", 6),
        ("'a' || 1 + 2", "a3"),
        ("true or false and false", True),
        ("not false and false", False),
        ("not 1 = 2", True),
        ("not not true", True),
        ("1 < 2 and 2 < 3 or 1 = 0", True),
        ("1 + 1 = 2", True),
        ("'a' || 'b' = 'ab'", True),
        ("1 between 0 and 2 and true", True),
        ("not 1 between 0 and 2", False),
        ("1 + 1 between 2 and 1 + 1", True),
        ("3 not between 0 and 2", True),
        ("1 in (1, 2) = true", None),
    ],
)
def test_operators_bind_as_in_sql(text: str, expected: object) -> None:
    if expected is None:
        assert mistake(text)[0].endswith("put one in parentheses")
    else:
        assert value(text) == expected


def test_keywords_are_case_insensitive_and_attributes_are_not() -> None:
    assert holds("A = 1 AND NOT a = 1 Or FALSE", a=2, A=1)


def test_a_name_may_contain_a_hyphen() -> None:
    assert value("price-info - 1", **{"price-info": 3}) == 2


def test_other_names_stand_in_backticks() -> None:
    assert value("`end` + `a b` + `c``d`", **{"end": 1, "a b": 2, "c`d": 3}) == 6


def test_a_dotted_name_is_what_a_join_named_so() -> None:
    assert value("left.a + right.a", **{"left.a": 1, "right.a": 2}) == 3


@pytest.mark.parametrize("text", ["'it''s'", '"it\'s"'])
def test_both_quotes_make_strings_and_are_doubled_inside(text: str) -> None:
    assert value(text) == "it's"


def test_a_backslash_in_a_string_is_itself() -> None:
    assert value(r"'a\n\'") == r"a\n" + "\\"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1.5E-2", 0.015),
        ("-7", -7),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("0.1234567890123456789", Decimal("0.1234567890123456789")),
        ("1e400", Decimal("1e400")),
    ],
)
def test_numbers(text: str, expected: object) -> None:
    assert value(text) == expected
    assert type(value(text)) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("date '2026-01-31'", date(2026, 1, 31)),
        ("timestamp '2026-01-31'", datetime(2026, 1, 31)),
        ("timestamp '2026-01-31 08:30'", datetime(2026, 1, 31, 8, 30)),
        ("timestamp '2026-01-31T08:30:05.25Z'", datetime(2026, 1, 31, 8, 30, 5, 250_000, UTC)),
        ("number '12'", 12),
        ("number '-inf'", float("-inf")),
    ],
)
def test_other_literals(text: str, expected: object) -> None:
    assert value(text) == expected


def test_date_and_number_are_also_names() -> None:
    assert value("date || number", date="a", number="b") == "ab"


def test_spellings_of_equality() -> None:
    assert value("1 == 1 and 1 = 1 and 1 <> 2 and 1 != 2") is True


def test_both_forms_of_case() -> None:
    assert value("case when a > 1 then 'x' when a > 0 then 'y' else 'z' end", a=1) == "y"
    assert value("case a when 1 then 'x' when 2 then 'y' end", a=2) == "y"
    assert value("case a when 1 then 'x' end", a=2) is None


def test_names_are_found_in_order() -> None:
    node = parse_expression("b in (a, c) and left.x like d")
    assert [name.text for name in names_in(node)] == ["b", "a", "c", "left.x", "d"]
    assert isinstance(names_in(node)[0], Name)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "(" * 10_000 + "1" + ")" * 10_000,
        "not " * 10_000 + "true",
        "- " * 10_000 + "1",
        "1 + " * 10_000 + "1",
        "case when " * 5_000,
        "lower(" * 10_000,
        "a in (" * 5_000,
    ],
)
def test_deep_nesting_is_a_clear_error(text: str) -> None:
    message, offset = mistake(text, None)
    assert message == "the expression is nested too deeply: more than 100 levels"
    assert offset is not None


def test_long_chains_of_and_or_and_concatenation_are_not_deep() -> None:
    assert holds(" and ".join(["a = 1"] * 3000), a=1)
    assert holds(" or ".join(["a = 2"] * 3000 + ["a = 1"]), a=1)
    assert value(" || ".join(["a"] * 3000), a="x") == "x" * 3000


def test_nesting_up_to_the_limit_works() -> None:
    assert holds("(" * 90 + "a = 1" + ")" * 90, a=1)
    assert value(" + ".join(["a"] * 90), a=1) == 90


def test_an_expression_has_a_limit_of_length() -> None:
    message, _ = mistake("a = '" + "x" * 100_000 + "'", None)
    assert message == "the expression is too long: 100,006 characters, 100,000 at most"


def test_a_nearly_exhausted_stack_gives_a_message() -> None:
    def bind_below(frames: int) -> None:
        if frames:
            bind_below(frames - 1)
        else:
            Condition.bind("(" * 90 + "a = 2" + ")" * 90, [None])

    with pytest.raises(SettingError, match=r"nested too deeply$"):
        bind_below(sys.getrecursionlimit() - 200)
