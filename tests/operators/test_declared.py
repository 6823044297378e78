"""SCHEMA: a plan says which attributes come out of what only the run could tell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aioflow import AioflowError, PlanError, Relation, Schema, function
from aioflow.testing import rows, run_plan
from tests.operators.running import Mode, plan

SCHEMA = 'SCHEMA: "k char, price number"'
MODES = pytest.mark.parametrize("mode", ["D-", "D+S-", "D+S+"])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("full.jsonl").write_text('{"k": "a", "price": "3"}\n{"k": "b"}\n')
    Path("full.csv").write_text("price,k\n3,a\n,b\n")
    Path("empty.jsonl").write_text("")
    Path("empty.csv").write_text("")
    table = rows(("a", 3), ("b", None), schema="k price")
    run_plan(plan('dbexport (rel, "full")', ("rel",), "").replace("OUTPUT: ", ""), rel=table)
    function(name="d_mapping", takes="n", pure=True)(lambda n: {"k": "a" if n else "b", "price": n or None})
    function(name="d_nothing", takes="n", pure=True)(lambda n: None)
    function(name="d_more", takes="n", pure=True)(lambda n: {"k": "a", "colour": "red"})
    function(name="d_wrong", takes="n", pure=True)(lambda n: {"k": "a", "price": "much"})
    function(name="d_told", takes="n", returns="k char", pure=True)(lambda n: "a")


def found(statement: str, mode: Mode = "D+S+", **inputs: Any) -> list[Mapping[str, Any]]:
    statements = f'{statement} project (out, "k, price" : asked)'
    return sorted(map(dict, run_plan(plan(statements, inputs, "asked"), mode=mode, **inputs)), key=repr)


PARTS = Relation(Schema(("price", "k")), [(3, "a"), (None, "b")])
FULL = [
    ("read ('full.jsonl' : out)", {}),
    ("read ('full.csv' : out)", {}),
    ("dbimport ('full' : out)", {}),
    ("dbquery ('select k, price from full' : out)", {}),
    ("dbquery ('select k, price from full where :n', rel : out)", {"rel": [{"n": 1}]}),
    ("apply (rel, 'd_mapping' : out)", {"rel": [{"n": 3}, {"n": 0}]}),
    ("unpack (rel, 'parts' : out)", {"rel": [{"parts": PARTS}]}),
]
EMPTY = [
    ("read ('empty.jsonl' : out)", {}),
    ("read ('empty.csv' : out)", {}),
    ("dbimport ('none' : out) IF_MISSING: empty", {}),
    ("dbquery ('select k, price from full where false' : out)", {}),
    ("dbquery ('select k, price from full where :n', rel : out)", {"rel": rows(schema="n")}),
    ("apply (rel, 'd_nothing' : out)", {"rel": [{"n": 3}]}),
    ("unpack (rel, 'parts' : out)", {"rel": [{"parts": None}]}),
]


def with_schema(statement: str, schema: str = SCHEMA) -> str:
    call, _, options = statement.partition(" : out)")
    return f"{call} : out) {{{options.strip()}; {schema}}}"


@MODES
@pytest.mark.parametrize(("statement", "inputs"), FULL)
def test_rows_are_read_as_declared(statement: str, inputs: dict[str, Any], mode: Mode) -> None:
    expected = [{"k": "a", "price": 3}, {"k": "b", "price": None}]
    assert found(with_schema(statement), mode, **inputs) == expected


@MODES
@pytest.mark.parametrize(("statement", "inputs"), EMPTY)
def test_nothing_has_the_attributes_that_are_declared(
    statement: str, inputs: dict[str, Any], mode: Mode
) -> None:
    assert found(with_schema(statement), mode, **inputs) == []
    statements = f'{with_schema(statement)} write (out, "written.csv" : end)'
    run_plan(plan(statements, inputs, "end"), mode=mode, **inputs)
    assert Path("written.csv").read_text().strip().endswith("k,price")


@pytest.mark.parametrize(("statement", "inputs"), FULL)
def test_the_checker_knows_what_is_declared(statement: str, inputs: dict[str, Any]) -> None:
    declared = [f"{name} ({', '.join(given[0])})" for name, given in inputs.items()]
    text = plan(f'{with_schema(statement)} project (out, "pirce" : end)', declared, "end")
    with pytest.raises(PlanError, match="unknown attribute 'pirce'; did you mean 'price'"):
        run_plan(text, **inputs)


@pytest.mark.parametrize(("statement", "inputs"), FULL)
@pytest.mark.parametrize(
    ("schema", "message"),
    [('SCHEMA: "k char"', "price"), ('SCHEMA: "k number, price number"', r"'k'.* number")],
)
def test_rows_that_are_not_as_declared_fail(
    statement: str, inputs: dict[str, Any], schema: str, message: str
) -> None:
    with pytest.raises(AioflowError, match=message):
        run_plan(plan(with_schema(statement, schema), inputs), **inputs)


@pytest.mark.parametrize("statement", ["dbimport ('full' : out)", "dbquery ('select * from full' : out)"])
def test_a_table_without_a_declared_attribute_is_refused(statement: str) -> None:
    with pytest.raises(AioflowError, match="has no attribute 'seen', which SCHEMA declares"):
        run_plan(plan(with_schema(statement, 'SCHEMA: "k char, price number, seen date"'), ()))


def test_outer_keeps_tuples_beside_nulls_for_what_is_declared() -> None:
    statement = f"apply (rel, 'd_nothing' : out) {{OUTER; {SCHEMA}}}"
    assert run_plan(plan(statement, ("rel",)), rel=[{"n": 1}])[0] == {"n": 1, "k": None, "price": None}


@pytest.mark.parametrize(("name", "message"), [("d_more", "colour"), ("d_wrong", "'price' must be number")])
def test_a_result_that_is_not_as_declared_fails_its_tuple(name: str, message: str) -> None:
    statement = f"apply (rel, '{name}' : out) {{ERRORS: bad; {SCHEMA}}}"
    [failed] = run_plan(plan(statement, ("rel",), "bad"), rel=[{"n": 1}])
    assert message in failed["error"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("read ('full.jsonl' : out) {SCHEMA: 'k text'}", "expected 'name' or 'name type'"),
        ("read ('full.jsonl' : out) {SCHEMA: 'k char, k char'}", "attribute 'k' appears twice"),
        ("read ('full.jsonl' : out) {SCHEMA: 5}", "must be a list of attributes"),
        ("read ('full.jsonl' : out) {SCHEMA: 'k'; TYPES: 'k char'}", "SCHEMA says the types as well"),
        ("apply (rel, 'd_told' : out) {SCHEMA: 'k char'}", "is registered with what it returns"),
    ],
)
def test_what_cannot_be_declared_is_a_mistake(statement: str, message: str) -> None:
    inputs: dict[str, Any] = {"rel": [{"n": 1}]} if "rel" in statement else {}
    with pytest.raises(PlanError, match=message):
        run_plan(plan(statement, inputs), **inputs)
