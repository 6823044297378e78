"""Random expressions over random rows give what SQLite gives, wherever the two mean the same.

They do not where SQLite divides integers without a rest, orders texts after numbers, or writes floats its own
way: expressions are made by kind, and divide by floats only.
"""

import sqlite3
from collections.abc import Iterator
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.expressions import Condition, Projection, SortKeys
from aioflow.relation import Row, Schema, Value
from tests.expressions.tools import examples

SCHEMA = Schema(("i", "j", "f", "g", "s", "t"))

_integers = st.one_of(st.none(), st.integers(-20, 20))
_floats = st.one_of(st.none(), st.integers(-40, 40).map(lambda number: number / 4))
_texts = st.one_of(st.none(), st.text("abAB%_é", max_size=4))
_rows = st.lists(
    st.tuples(_integers, _integers, _floats, _floats, _texts, _texts), min_size=1, max_size=6
)  # fmt: skip

# An expression as a pair: the text for aioflow, the text for SQLite.
Pair = tuple[str, str]


def same(text: str) -> Pair:
    return text, text


def join(form: str, *pairs: Pair, sql: str | None = None) -> Pair:
    """The form filled with the texts of each language."""
    return form.format(*(ours for ours, _ in pairs)), (sql or form).format(*(theirs for _, theirs in pairs))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_signs = st.sampled_from(["=", "!=", "<>", "==", "<", "<=", ">", ">="])


def integers(depth: int) -> st.SearchStrategy[Pair]:
    leaves = st.one_of(
        st.sampled_from(["i", "j", "null"]).map(same),
        st.integers(-9, 9).map(lambda number: same(f"({number})")),
    )
    if not depth:
        return leaves
    inner = integers(depth - 1)
    return st.one_of(
        leaves,
        st.builds(lambda a, sign, b: join(f"({{}} {sign} {{}})", a, b), inner, st.sampled_from("+-*"), inner),
        st.builds(lambda a: join("(- {})", a), inner),
        st.builds(lambda a: join("abs({})", a), inner),
        st.builds(lambda a, n: join(f"(abs({{}}) % {n})", a), inner, st.integers(0, 7)),
        st.builds(lambda a: join("length({})", a), texts(depth - 1)),
        st.builds(
            lambda a, b: join("position({}, {})", a, b, sql="instr({}, {})"),
            texts(depth - 1),
            texts(depth - 1),
        ),
        chosen(inner, depth),
    )


def numbers(depth: int) -> st.SearchStrategy[Pair]:
    leaves = st.one_of(
        st.sampled_from(["f", "g", "i"]).map(same), st.sampled_from(["0.5", "2.25", "1e2", "0.0"]).map(same)
    )
    if not depth:
        return leaves
    inner = numbers(depth - 1)
    return st.one_of(
        leaves,
        integers(depth - 1),
        st.builds(lambda a, sign, b: join(f"({{}} {sign} {{}})", a, b), inner, st.sampled_from("+-*"), inner),
        st.builds(lambda a, b: join("({} / ({} * 1.0))", a, b), inner, inner),
        st.builds(lambda a: join("abs({})", a), inner),
        chosen(inner, depth),
    )


def texts(depth: int) -> st.SearchStrategy[Pair]:
    leaves = st.one_of(
        st.sampled_from(["s", "t"]).map(same), st.text("abAB%_'", max_size=3).map(quoted).map(same)
    )
    if not depth:
        return leaves
    inner = texts(depth - 1)
    return st.one_of(
        leaves,
        st.builds(lambda a, b: join("({} || {})", a, b), inner, inner),
        st.builds(lambda a, b: join("({} || {})", a, b), inner, integers(0)),
        st.builds(lambda a: join("trim({}, 'a')", a), inner),
        # SQLite replaces '' by null without giving null.
        st.builds(lambda a, b, c: join("replace({}, {} || 'a', {})", a, b, c), inner, inner, inner),
        st.builds(lambda a, n: join(f"substr({{}}, {n})", a), inner, st.integers(-4, 4)),
        st.builds(
            lambda a, n, m: join(f"substr({{}}, {n}, {m})", a), inner, st.integers(-4, 4), st.integers(0, 4)
        ),
        chosen(inner, depth),
    )


def chosen(inner: st.SearchStrategy[Pair], depth: int) -> st.SearchStrategy[Pair]:
    """Forms that give one of their operands."""
    conditional = conditions(depth - 1)
    return st.one_of(
        st.builds(
            lambda c, a, b: join("case when {} then {} else {} end", c, a, b), conditional, inner, inner
        ),
        st.builds(lambda x, y, a: join("case {} when {} then {} end", x, y, a), inner, inner, inner),
        st.builds(
            lambda c, a, b: join("if({}, {}, {})", c, a, b, sql="iif({}, {}, {})"), conditional, inner, inner
        ),
        st.builds(lambda a, b: join("coalesce({}, {})", a, b), inner, inner),
        st.builds(lambda a, b: join("nullif({}, {})", a, b), inner, inner),
        st.builds(lambda a, b: join("greatest({}, {})", a, b, sql="max({}, {})"), inner, inner),
        st.builds(lambda a, b: join("least({}, {})", a, b, sql="min({}, {})"), inner, inner),
    )


def compared(operands: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    negation = st.sampled_from(["", "not "])
    return st.one_of(
        st.builds(lambda a, sign, b: join(f"({{}} {sign} {{}})", a, b), operands, _signs, operands),
        st.builds(
            lambda a, no, b, c: join(f"({{}} {no}between {{}} and {{}})", a, b, c),
            operands, negation, operands, operands,
        ),
        st.builds(
            lambda a, no, choices: join(f"({{}} {no}in ({', '.join(['{}'] * len(choices))}))", a, *choices),
            operands, negation, st.lists(operands, min_size=1, max_size=3),
        ),
        st.builds(lambda a, no: join(f"({{}} is {no}null)", a), operands, negation),
    )  # fmt: skip


def conditions(depth: int) -> st.SearchStrategy[Pair]:
    leaves = st.one_of(
        compared(numbers(max(depth - 1, 0))),
        compared(texts(max(depth - 1, 0))),
        st.builds(lambda a, b: join("({} like {})", a, b), texts(0), texts(0)),
        st.builds(lambda a, b: join("({} not like {} escape '!')", a, b), texts(0), texts(0)),
        st.sampled_from(["true", "false", "null"]).map(same),
    )
    if depth <= 0:
        return leaves
    inner = conditions(depth - 1)
    return st.one_of(
        leaves,
        st.builds(lambda a, b: join("({} and {})", a, b), inner, inner),
        st.builds(lambda a, b, c: join("({} or {} and {})", a, b, c), inner, inner, inner),
        st.builds(lambda a: join("(not {})", a), inner),
        st.builds(
            lambda a, no, what: join(f"({{}} is {no}{what})", a),
            inner, st.sampled_from(["", "not "]), st.sampled_from(["true", "false", "null"]),
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("pragma case_sensitive_like = on")
    # Columns without a type keep their values as they are.
    connection.execute("create table r (i, j, f, g, s, t)")
    yield connection
    connection.close()


def ask(database: sqlite3.Connection, rows: list[Row], query: str) -> list[Row]:
    database.execute("delete from r")
    database.executemany("insert into r values (?, ?, ?, ?, ?, ?)", rows)
    return database.execute(query).fetchall()


def as_sqlite(result: Value) -> Value:
    return int(result) if isinstance(result, bool) else result


@examples(150)
@given(rows=_rows, pair=st.one_of(integers(2), numbers(2), texts(2), conditions(2)))
def test_values_are_those_of_sqlite(database: sqlite3.Connection, rows: list[Row], pair: Pair) -> None:
    ours, theirs = pair
    bound = Projection.bind(f"{ours} as result", [SCHEMA])
    expected = ask(database, rows, f"select {theirs} from r order by rowid")
    results = [tuple(map(as_sqlite, row)) for row in bound.rows(rows)]
    assert results == expected
    assert [tuple(map(as_sqlite, bound.row(row))) for row in rows] == expected
    types = [list(map(type, row)) for row in results]
    assert types == [list(map(type, row)) for row in expected]


@examples(150)
@given(rows=_rows, pair=conditions(3))
def test_selections_are_those_of_sqlite(database: sqlite3.Connection, rows: list[Row], pair: Pair) -> None:
    ours, theirs = pair
    condition = Condition.bind(ours, [SCHEMA])
    expected = ask(database, rows, f"select * from r where {theirs} order by rowid")
    assert condition.filter(rows) == expected
    assert [row for row in rows if condition(row)] == expected


@examples(50)
@given(
    rows=_rows,
    keys=st.lists(
        st.tuples(
            st.sampled_from(SCHEMA.names),
            st.sampled_from(["", " asc", " desc"]),
            st.sampled_from([" nulls first", " nulls last"]),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_orders_are_those_of_sqlite(
    database: sqlite3.Connection, rows: list[Row], keys: list[tuple[str, str, str]]
) -> None:
    text = ", ".join(map("".join, keys))
    expected = ask(database, rows, f"select * from r order by {text}, rowid")
    assert sorted(rows, key=SortKeys.bind(text, [SCHEMA]).key) == expected


def test_the_generators_make_what_they_should() -> None:
    # Guards against a generator that quietly makes nothing but leaves.
    seen: set[str] = set()

    @examples(250, database=None, derandomize=True)
    @given(st.one_of(integers(2), numbers(2), texts(2), conditions(2)))
    def look(pair: Pair) -> None:
        seen.update(word for word in WORDS if word in pair[0])

    look()
    assert seen == set(WORDS)


WORDS = tuple(
    chain(
        (
            " and ",
            " or ",
            "not ",
            "between",
            "in (",
            "like",
            "escape",
            "is ",
            "case when",
            "coalesce",
            "nullif",
        ),
        (
            "greatest",
            "least",
            "if(",
            "||",
            "trim",
            "replace",
            "substr",
            "position",
            "length",
            "abs",
            " / ",
            "%",
        ),
    )
)
