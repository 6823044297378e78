"""Templates: %-formats with listed attributes, and {name} placeholders."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.errors import SettingError
from aioflow.expressions import Condition, Formatter, RepeatableAttributes, Template
from aioflow.relation import Document, Relation, Schema, Value
from tests.expressions.tools import examples

SCHEMA = Schema.of("any", price="number", city="char", open="boolean", houses="relation")


def formatter(text: str, attributes: str | None = None, schema: Schema | None = SCHEMA) -> Formatter:
    listed = None if attributes is None else RepeatableAttributes.bind(attributes, [schema])
    return Template.bind(text, [schema]).formatter(listed)


def written(text: str, value: Value) -> str | None:
    """A format of one attribute, for that value."""
    return formatter(text, "x", Schema(("x",))).row((value,))


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("beds = %s", 3, "beds = 3"),
        ("%s", 2.5, "2.5"),
        ("%s", None, ""),
        ("%s", True, "true"),
        ("%s", date(2026, 1, 31), "2026-01-31"),
        ("%s", Decimal("1E+3"), "1000"),
        ("%5s|", "ab", "   ab|"),
        ("%-5s|", "ab", "ab   |"),
        ("%.1s", "ab", "a"),
        ("%d", 3.9, "3"),
        ("%d", "7", "7"),
        ("%5d", 42, "   42"),
        ("%05d", 42, "00042"),
        ("%-5d|", 42, "42   |"),
        ("%+d", 42, "+42"),
        ("%d", None, ""),
        ("%d", 10**30, "1" + "0" * 30),
        ("%f", 1, "1.000000"),
        ("%.2f", 2, "2.00"),
        ("%.2f", Decimal("2.675"), "2.68"),
        ("%8.2f|", 3.14159, "    3.14|"),
        ("%.2e", 12345, "1.23e+04"),
        ("%g", 0.5, "0.5"),
        ("%f", Decimal(1), "1.000000"),
        ("%f", 10**30, "1" + "0" * 30 + ".000000"),
        ("100%% of %s", "it", "100% of it"),
        ("{%s}", "x", "{x}"),
        ("%q", 3, "3"),
        ("%q", "it's", "'it''s'"),
        ("%q", None, "null"),
        ("%q", date(2026, 1, 31), "date '2026-01-31'"),
    ],
)
def test_percent_formats(text: str, value: Value, expected: str) -> None:
    assert written(text, value) == expected


def test_listed_attributes_fill_the_conversions_in_order() -> None:
    assert (
        formatter("%s in %s: %s", "price, city, price").row((0, 5, "Irvine", None, None)) == "5 in Irvine: 5"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{city} has {any}", "Irvine has 1"),
        ("{city}", "Irvine"),
        ("{ city }", "Irvine"),
        ("{{city}} 100%", "{city} 100%"),
        ("{price:.2f}", "1234.50"),
        ("{price:,.1f}", "1,234.5"),
        ("{price:d}", "1234"),
        ("{price:08d}", "00001234"),
        ("{open}{houses-count}", "true2"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_placeholders(text: str, expected: str) -> None:
    schema = Schema(("any", "city", "price", "open", "houses-count"))
    assert formatter(text, schema=schema).row((1, "Irvine", 1234.5, True, 2)) == expected


def test_a_formatter_knows_what_it_reads() -> None:
    bound = formatter("{city}: {price}")
    assert (bound.names, bound.positions) == (("city", "price"), (2, 1))
    assert formatter("{nonsense}", schema=None).positions is None


@pytest.mark.parametrize(
    ("text", "value", "what"),
    [
        ("%d", "many", "not a number"),
        ("%d", True, "not a number"),
        ("%d", float("nan"), "number out of range"),
        ("%d", float("inf"), "number out of range"),
        ("%d", Decimal("1e9999"), "number out of range"),
        ("%s", Relation(Schema(("a",))), "not a text"),
        ("%q", Relation(Schema(("a",))), "no literal for a relation"),
    ],
)
def test_a_value_that_cannot_be_written_so_gives_null_and_is_counted(
    text: str, value: Value, what: str
) -> None:
    bound = formatter(text, "x", Schema(("x",)))
    assert bound.row((value,)) is None
    assert bound.counters == {what: 1}


@pytest.mark.parametrize(
    ("text", "attributes", "message", "offset"),
    [
        ("%s %s", "city", "the format has 2 conversions, but 1 attribute is listed: city", 3),
        ("%s", "city, price", "the format has 1 conversion, but 2 attributes are listed: city, price", None),
        ("no", "city", "the format has 0 conversions, but 1 attribute is listed: city", None),
        ("%y", "city", "unknown conversion '%y' (there are %s %d %f %e %g %q and %%)", 0),
        ("a %", "city", "'%' stands alone; write '%%' for a percent sign", 2),
        ("%(city)s", "city", "unknown conversion '%(' (there are %s %d %f %e %g %q and %%); "
         "a named value is written {name}, without listed attributes", 0),
        ("%5q", "city", "'%5q': %q takes no width", 0),
        ("%99999d", "price", "'%99999d': the width is 1000 at most, with 100 decimals", 0),
        ("%d", "open", "'%d' writes a number, not a boolean", 0),
        ("%s", "houses", "'%s' writes a value, not a relation", 0),
        ("%s", "citty", "unknown attribute 'citty'; did you mean 'city'? "
         "(there are: any, price, city, open, houses)", 0),
        ("{citty}", None, "unknown attribute 'citty'; did you mean 'city'? "
         "(there are: any, price, city, open, houses)", 1),
        ("{}", None, "a placeholder names an attribute: {name}", 0),
        ("a { b", None, "'{' stands alone; write '{{' for a brace", 2),
        ("a } b", None, "'}' stands alone; write '}}' for a brace", 2),
        ("{city!r}", None, "unknown attribute 'city!r'; did you mean 'city'? "
         "(there are: any, price, city, open, houses)", 1),
        ("{price:>5}", None, "'>5' is not a format of numbers; write one like {price:.2f} or {price:,d}", 7),
        ("{price:99999d}", None, "'{price:99999d}': the width is 1000 at most, with 100 decimals", 0),
        ("{open:d}", None, "'{open:d}' writes a number, not a boolean", 1),
    ],
)  # fmt: skip
def test_mistakes(text: str, attributes: str | None, message: str, offset: int | None) -> None:
    with pytest.raises(SettingError) as caught:
        formatter(text, attributes)
    assert (caught.value.message, caught.value.offset) == (message, offset)


# --- %q -----------------------------------------------------------------------------------------

_zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_values: st.SearchStrategy[Value] = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**5000), max_value=10**5000),
    st.floats(),
    st.decimals(),
    st.fractions().map(lambda fraction: fraction.numerator / Fraction(fraction.denominator)).map(float),
    st.text(),
    st.dates(),
    st.datetimes(timezones=st.none() | _zones),
    st.text().map(Document),
)


@examples(300)
@given(_values)
def test_a_value_equals_the_literal_that_q_writes(value: Value) -> None:
    literal = written("%q", value)
    condition = Condition.bind(f"x = {literal}", [Schema(("x",))])
    assert condition((value,))
    assert condition.counters == {}


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("-inf"),
        -0.0,
        Decimal("sNaN"),
        Decimal("-Infinity"),
        Decimal("-0.1234567890123456789012345678901234567890"),
        Decimal("1e400"),
        1e23,
        pytest.param(10**4999, id="5000 digits"),
        datetime(2026, 1, 31, 8, 30, 0, 5),
        'it\'s "quoted" \\ `x` \n\x00 ${x} %s {y}',
    ],
)
def test_odd_values_equal_their_literals(value: Value) -> None:
    assert Condition.bind(f"x = {written('%q', value)}", [Schema(("x",))])((value,))
