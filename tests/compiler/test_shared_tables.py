"""Statements that write one table must agree on it: the checker finds it, else the run before it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioflow import Engine, loads
from aioflow.authoring.operator import load_operators
from aioflow.compiler.check import check
from aioflow.errors import AioflowError

HEADER = "INPUT: a (x number, y char), b (x number, z char), c (y char, x number), d"


def found(*statements: str, more: str = "") -> list[str]:
    body = "\n    ".join(statements)
    text = f"PLAN p\n{{\n  {HEADER}\n  BODY\n  {{\n    {body}\n  }}\n}}\n{more}"
    program = loads(text, plan="p")
    return [
        f"{each.span.line if each.span else 0}: {each.message}"
        for each in check(program, load_operators())
        if each.severity == "error"
    ]


def unlike(line: int, table: str, what: str, other: str, hint: str = "") -> str:
    return (
        f"{line}: unlike relations for the table {table!r}: this one {what}, compared with {other}; "
        f"give both the same attributes{hint}"
    )


EVOLVE = ", or say EVOLVE in both"


@pytest.mark.parametrize(
    ("statements", "messages"),
    [
        (
            ('dbexport (a, "t")', 'dbexport (b, "t")'),
            [unlike(7, "t", "lacks y and adds z", "dbexport (line 6)")],
        ),
        (
            ('dbappend (a, "t")', 'dbappend (b, "t")'),
            [unlike(7, "t", "lacks y and adds z", "dbappend (line 6)", EVOLVE)],
        ),
        (
            ('dbappend (a, "t")', 'dbexport (b, "t")'),
            [unlike(7, "t", "lacks y and adds z", "dbappend (line 6)")],
        ),
        (('dbappend (a, "t")', 'dbappend (c, "t")'), []),
        (('dbappend (a, "t")', 'dbappend (b, "u")'), []),
        (('dbappend (a, "t") {EVOLVE}', 'dbappend (b, "t") {EVOLVE}'), []),
        (
            ('dbappend (a, "t")', 'dbappend (b, "t") {EVOLVE}'),
            [unlike(7, "t", "lacks y and adds z", "dbappend (line 6)", EVOLVE)],
        ),
        (('dbappend (a, "t")', 'dbappend (d, "t")'), []),
        (("null (d, a, b : t, f)", 'dbexport (t, "t")', 'dbexport (f, "t")'), []),
        (("null (d, a, b : t, f)", 'select (t, "x > 1" : u)', 'dbexport (u, "t")', 'dbexport (f, "t")'), []),
        (
            ("null (d, a, b : t, f)", "union (t, c : u)", 'dbexport (u, "t")', 'dbexport (f, "t")'),
            [unlike(9, "t", "lacks y and adds z", "dbexport (line 8)")],
        ),
    ],
)
def test_unlike_relations_for_one_table_are_a_mistake(
    statements: tuple[str, ...], messages: list[str]
) -> None:
    assert found(*statements) == messages


TWICE = (
    "a run compares a relation with the table 't' once, and {} do so: what the one stores, the other has not "
    "seen; unite their inputs, or give each a table of its own"
)
KEEP = """
PLAN keep
{
  INPUT: rows
  OUTPUT: news
  PARAM: table
  BODY
  {
    diff (rows, $table : news)
  }
}
"""


def test_two_comparisons_with_one_table_are_a_mistake() -> None:
    assert found('diff (a, "t" : _)', 'diff (c, "t" : _)') == [
        "7: " + TWICE.format("diff (line 6) and this one")
    ]
    assert found('diff (a, "t" : _)', 'diff (c, "u" : _)') == []
    assert found("null (d, a, c : t, f)", 'diff (t, "t" : _)', 'diff (f, "t" : _)') == []


def test_a_comparison_that_waits_for_the_other_is_none() -> None:
    assert found('diff (a, "t" : _) {DONE: e}', 'diff (c, "t" : _) {WAIT: e}') == []
    assert found('diff (a, "t" : n)', 'diff (n, "t" : _)') == []


def test_a_comparison_in_a_plan_that_is_called_twice_is_a_mistake() -> None:
    calls = ('keep (a : _) {TABLE: "t"}', 'keep (c : _) {TABLE: "t"}')
    assert found(*calls, more=KEEP) == ["18: " + TWICE.format("two calls of keep")]
    assert found('keep (a : _) {TABLE: "t"}', 'keep (c : _) {TABLE: "u"}', more=KEEP) == []
    assert (
        found(
            "null (d, a, c : t, f)",
            *(call.replace("(a", "(t").replace("(c", "(f") for call in calls),
            more=KEEP,
        )
        == []
    )


def test_a_recursion_may_append_to_its_table() -> None:
    more = 'PLAN deep\n{\n  INPUT: rows\n  BODY\n  {\n    dbappend (rows, "t")\n    deep (rows)\n  }\n}\n'
    assert found("deep (a)", more=more) == []


async def test_a_run_finds_it_where_only_the_run_knows(tmp_path: Path) -> None:
    text = 'PLAN p { INPUT: d, e BODY { dbappend (d, "t") dbappend (e, "t") } }'
    async with Engine() as engine:
        with pytest.raises(AioflowError) as caught:
            await engine.run(loads(text, folder=tmp_path), d=[{"x": 1}], e=[{"y": 2}])
        message = str(caught.value)
        assert "unlike relations for the table 't'" in message
        assert message.count("dbappend") >= 2
        query = 'PLAN q { OUTPUT: r BODY { dbimport ("t" : r) {IF_MISSING: empty} } }'
        assert [dict(row) async for row in engine.stream(loads(query, folder=tmp_path))] == []


@pytest.mark.parametrize("operator", ["dbappend", "dbexport"])
async def test_names_that_sqlite_does_not_tell_apart_are_one_table(operator: str, tmp_path: Path) -> None:
    text = f'PLAN p {{ {HEADER} BODY {{ {operator} (a, "t") {operator} (b, "T") {operator} (c, "u") }} }}'
    async with Engine() as engine:
        with pytest.raises(AioflowError, match=r"unlike relations for the table '[tT]'.*capitals"):
            await engine.run(loads(text, folder=tmp_path), a=[{"x": 1}], b=[{"z": "2"}], c=[{"x": 3}], d=[])
        query = 'PLAN q { OUTPUT: r BODY { dbimport ("t" : r) {IF_MISSING: empty} } }'
        assert [dict(row) async for row in engine.stream(loads(query, folder=tmp_path))] == []


def test_a_share_that_is_too_large_is_told_with_its_range() -> None:
    assert found('diff (a, "t" : _) {GUARD: 2}') == [
        "6: diff: 'guard' must be a number from 0 to 1 or off, not 2"
    ]
