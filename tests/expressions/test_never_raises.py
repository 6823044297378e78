"""Whatever a row holds and whatever is written: a value or a message, never a traceback."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from aioflow.errors import SettingError
from aioflow.expressions import (
    Aggregates,
    Attributes,
    Condition,
    JoinCondition,
    Projection,
    SortKeys,
    Template,
)
from aioflow.expressions.calls import all_functions
from aioflow.relation import Document, Relation, Schema, Value, type_of_value
from tests.expressions.tools import examples

SCHEMA = Schema(("a", "b", "c"))


def check_message(error: SettingError, text: str) -> None:
    assert error.message
    assert error.offset is None or 0 <= error.offset <= len(text)


values: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -1, 2, 10**400, -(10**400), 2**63]),
    st.floats(),
    st.decimals(),
    st.sampled_from([Decimal("sNaN"), Decimal("1e999999"), Decimal("-1e-999999"), Decimal(0), Decimal("-0")]),
    st.text(max_size=5),
    st.sampled_from(
        ["5", " 1e3 ", "-.5", "1e999", "2026-01-31", "2026-01-31T10:00Z", "days", "%Y", "(", "%", "true"]
    ),
    st.just("a\ud800"),
    st.dates(),
    st.datetimes(),
    st.datetimes(
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))])
    ),
    st.just(Document("<p>5</p>")),
    st.just(Relation(Schema(("x",)), [(1,)])),
)
rows = st.lists(st.tuples(values, values, values), min_size=1, max_size=4)

_leaves = st.sampled_from(
    [
        *("a", "b", "c", "null", "true", "1", "0", "2.5", "1e400", "123456789012345678901234567890.5"),
        *("number 'nan'", "number '-inf'", "'x'", "'5'", "'2026-01-31'", "date '2026-01-31'"),
        "timestamp '2026-01-31T10:00+02:00'",
    ]
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(
        ["+", "-", "*", "/", "//", "%", "||", "=", "!=", "<", "<=", ">", ">=", "and", "or"]
    )
    tests = st.sampled_from(["like", "ilike", "matches", "not like", "not matches"])
    function = st.sampled_from(sorted(all_functions()))
    return st.one_of(
        st.builds(lambda x, sign, y: f"({x} {sign} {y})", inner, signs, inner),
        st.builds(lambda x, test, y: f"({x} {test} {y})", inner, tests, inner),
        st.builds(lambda x, y, z: f"({x} between {y} and {z})", inner, inner, inner),
        st.builds(lambda x, y, z: f"({x} not in ({y}, {z}))", inner, inner, inner),
        st.builds(lambda x: f"(not {x})", inner),
        st.builds(lambda x: f"(- {x})", inner),
        st.builds(lambda x, what: f"({x} is {what})", inner, st.sampled_from(["null", "not true", "false"])),
        st.builds(lambda x, y, z: f"case when {x} then {y} else {z} end", inner, inner, inner),
        st.builds(lambda name, given: f"{name}({', '.join(given)})", function, st.lists(inner, max_size=3)),
    )


expressions = st.recursive(_leaves, _grown, max_leaves=6)


@examples(300)
@given(expressions, rows)
def test_evaluating_never_raises(text: str, rows: list[tuple[Value, ...]]) -> None:
    try:
        projection = Projection.bind(f"{text} as result", [SCHEMA])
    except SettingError as error:
        check_message(error, text)
        return
    results = projection.rows(rows)
    assert projection.schema is not None
    assert len(results) == len(rows)
    for (result,) in results:
        kind = type_of_value(result)
        declared = projection.schema.types[0]
        assert declared is None or kind is None or kind is declared


@examples(200)
@given(expressions, rows)
def test_a_condition_never_raises_and_agrees_with_the_value(text: str, rows: list[tuple[Value, ...]]) -> None:
    try:
        condition = Condition.bind(text, [SCHEMA])
        negated = Condition.bind(f"not ({text})", [SCHEMA])
    except SettingError:
        return
    results = [row[0] for row in Projection.bind(f"({text}) as result", [SCHEMA]).rows(rows)]
    assert condition.filter(rows) == [
        row for row, result in zip(rows, results, strict=True) if result is True
    ]
    assert negated.filter(rows) == [row for row, result in zip(rows, results, strict=True) if result is False]
    assert [bool(condition(row)) for row in rows] == [result is True for result in results]


@examples(100)
@given(expressions, rows)
def test_sorting_never_raises(text: str, rows: list[tuple[Value, ...]]) -> None:
    try:
        keys = SortKeys.bind(f"{text} desc, a, b desc nulls first", [SCHEMA])
    except SettingError:
        return
    assert len(sorted(rows, key=keys.key)) == len(rows)


_words = st.sampled_from(
    [
        *("a", "b", "zz", "left.a", "1", "1e9", "'x'", "(", ")", ",", "*", "+", "-", "=", "<", "||", "."),
        *("and", "or", "not", "in", "between", "like", "is", "null", "case", "when", "then", "end", "as"),
        *("except", "desc", "nulls", "first", "count", "lower", "distinct", "date", "escape"),
        *("`", "'", '"', "{", "}", "%s", "%", "~", "\\", "é", "\x00", "\ud800"),
    ]
)


@examples(200)
@given(st.lists(_words, max_size=10).map(" ".join) | st.text(max_size=20))
def test_any_text_gives_a_setting_or_a_message(text: str) -> None:
    for kind in (Condition, Projection, Attributes, SortKeys, Aggregates, JoinCondition):
        for inputs in ([SCHEMA, SCHEMA], [None, None], []):
            try:
                kind.bind(text, inputs)
            except SettingError as error:
                check_message(error, text)
    for attributes in (None, Attributes.bind("a", [SCHEMA])):
        try:
            Template.bind(text, [SCHEMA]).formatter(attributes)
        except SettingError as error:
            check_message(error, text)


def test_dates_at_the_edges_do_not_overflow() -> None:
    for text in (
        "a < b",
        "a - b",
        "date_diff(a, b, 'months')",
        "date_add(a, 99999999, 'years')",
        "a + 1e300",
    ):
        bound = Projection.bind(f"{text} as result", [SCHEMA])
        bound.row((date.max, datetime.min.replace(tzinfo=UTC), None))
