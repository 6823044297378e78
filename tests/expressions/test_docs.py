"""docs/expressions.md says what the code does."""

import re
from pathlib import Path

import pytest

from aioflow.expressions import Condition, Projection
from aioflow.expressions.functions.dates import _DIRECTIVES, UNITS
from aioflow.expressions.parser import DEEPEST_NESTING
from aioflow.expressions.syntax import KEYWORDS, LONGEST_EXPRESSION
from aioflow.relation import Schema
from aioflow.values import counters
from aioflow.values.patterns import LONGEST_PATTERN, MOST_STEPS
from aioflow.values.text import LONGEST_TEXT
from tests.expressions.reference import with_reference
from tests.expressions.tools import value

PAGE = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())


def test_the_function_reference_is_generated_from_the_table() -> None:
    # After a change: python -m tests.expressions.reference docs/expressions.md
    assert with_reference(PAGE) == PAGE


def test_the_keywords_are_listed() -> None:
    listed = re.search(r"The keywords are `([a-z ]+)`", WORDS)
    assert listed is not None
    assert set(listed[1].split()) == KEYWORDS


def test_the_limits_are_those_of_the_code() -> None:
    for limit in (LONGEST_EXPRESSION, DEEPEST_NESTING, LONGEST_PATTERN, LONGEST_TEXT):
        assert f"{limit:,}" in WORDS
    assert f"{MOST_STEPS // 1_000_000} million" in WORDS


def test_units_and_directives_are_listed() -> None:
    assert " ".join(UNITS) in WORDS
    listed = re.search(r"has the directives `([^`]+)`", WORDS)
    assert listed is not None
    assert set(listed[1].split()) == {f"%{directive}" for directive in _DIRECTIVES}


def test_the_names_of_the_counters_are_listed() -> None:
    names = {text for name, text in vars(counters).items() if name.isupper()}
    assert {name for name in names if f"*{name}*" not in WORDS} == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 / 2", 2.5),
        ("4 / 2", 2),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("'5' < 10", True),
        ("round(2.675, 2)", 2.68),
        ("false and null", False),
        ("true or null", True),
    ],
)
def test_what_the_page_claims(text: str, expected: object) -> None:
    assert f"`{text}`" in WORDS
    assert value(text) == expected


def test_the_first_examples_are_right() -> None:
    schema = Schema(("beds", "price", "city", "address", "sold", "agent"))
    first, second, third = PAGE.split("```")[1].strip().splitlines()
    Condition.bind(first, [schema])
    Condition.bind(second, [schema])
    projection = Projection.bind(third, [schema])
    assert projection.schema is not None
    assert projection.schema.names == ("price-per-bed", "agent", "beds", "price", "city", "address", "sold")
