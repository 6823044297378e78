"""null, limit, sample, sort, emit, log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow import Engine, PlanError, Row, RunError, function, loads
from aioflow.authoring.operator import load_operators
from aioflow.compiler.check import check
from aioflow.testing import Script, rows, run_plan
from tests.operators.running import NO_MEMORY, bag, out, plan, run


@function(pure=True)
def same(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row


# --- null ---------------------------------------------------------------------------------------

ROUTED = 'null (d, dt, df : t, f) pack (t, "t" : pt) pack (f, "f" : pf)'


def routed(**inputs: Any) -> dict[str, int]:
    """How many tuples each live output had; dead ones are missing, since pack does not fire for them."""
    result = run(ROUTED, outputs="pt, pf", **inputs)
    return {name: len(record[name]) for name in ("t", "f") for record in result.outputs[f"p{name}"]}


def test_null_lets_dt_pass_when_d_is_empty() -> None:
    assert routed(d=rows(), dt=rows((1,), (2,)), df=rows((3,))) == {"t": 2}


def test_null_lets_df_pass_when_d_has_a_tuple() -> None:
    assert routed(d=rows((0,)), dt=rows((1,), (2,)), df=rows((3,))) == {"f": 1}


def test_the_output_not_taken_is_dead_even_if_the_other_is_empty() -> None:
    assert routed(d=rows(), dt=rows(), df=rows((3,))) == {"t": 0}


def test_null_decides_as_soon_as_d_has_a_tuple() -> None:
    d, dt = Script().row(n=1).hang(), Script().hang()
    statements = "null (d, dt, df : t, f) limit (f, 1 : out)"
    assert out(statements, d=d, dt=dt, df=rows((3,))) == [(3,)]
    assert d.closed


def test_null_waits_for_the_end_of_d_before_dt_passes() -> None:
    d = Script().wait(5).row(n=1)
    assert routed(d=d, dt=rows((1,)), df=rows((2,))) == {"f": 1}


def test_null_on_one_variable_does_not_deadlock() -> None:
    rel = rows(*((number,) for number in range(500)))
    assert len(out("null (rel, rel, rel : t, out)", rel=rel, capacity_rows=1)) == 500


def test_null_used_the_wrong_way_round_is_a_warning() -> None:
    program = loads(plan('null (a, a, a : t, f) apply (t, "same" : x) pack (f, "f" : y)', ["a"], "x, y"))
    messages = [found.message for found in check(program, load_operators()) if found.severity == "warning"]
    assert messages == [
        "'t' never has a tuple: it gets 'a' only when 'a' is empty; null is used the wrong way round"
    ]


# --- limit --------------------------------------------------------------------------------------

NUMBERS = rows(*((number,) for number in range(10)))


def test_limit_passes_the_first_tuples() -> None:
    assert out("limit (rel, 3 : out)", rel=NUMBERS) == [(0,), (1,), (2,)]


def test_limit_leaves_out_those_before_its_offset() -> None:
    assert out("limit (rel, 2 : out) {OFFSET: 8}", rel=NUMBERS) == [(8,), (9,)]
    assert out("limit (rel, 2 : out) {OFFSET: 9}", rel=NUMBERS) == [(9,)]
    assert out("limit (rel, 2 : out) {OFFSET: 90}", rel=NUMBERS) == []


def test_limit_zero_passes_nothing() -> None:
    assert out("limit (rel, 0 : out)", rel=NUMBERS) == []


def test_limit_stops_everything_upstream_at_once() -> None:
    source = Script().row(n=1).row(n=2).hang()
    statements = 'select (rel, "n > 0" : a) project (a, "n + 1 as n" : b) limit (b, 2 : out)'
    assert out(statements, rel=source) == [(2,), (3,)]
    assert source.closed


def test_limit_takes_no_negative_number() -> None:
    with pytest.raises(PlanError, match="must be a whole number, 0 or more, not -1"):
        run("limit (rel, -1 : out)", rel=NUMBERS)


# --- sample -------------------------------------------------------------------------------------


def test_sample_takes_so_many_of_the_tuples() -> None:
    chosen = out("sample (rel, 4 : out)", rel=NUMBERS)
    assert len(chosen) == 4
    assert len(set(chosen)) == 4


def test_sample_of_more_than_there_are_takes_all() -> None:
    assert out("sample (rel, 100 : out)", rel=NUMBERS) == [(number,) for number in range(10)]


def test_sample_with_a_seed_is_repeatable() -> None:
    statement = "sample (rel, 3 : out) {SEED: 5}"
    assert out(statement, rel=NUMBERS) == out(statement, rel=NUMBERS, capacity_rows=256)


def test_every_tuple_is_sampled_about_equally_often() -> None:
    counts = dict.fromkeys(range(20), 0)
    rel = rows(*((number,) for number in range(20)))
    for seed in range(300):
        for (number,) in out(f"sample (rel, 5 : out) {{SEED: {seed}}}", rel=rel, capacity_rows=256):
            counts[number] += 1
    assert sum(counts.values()) == 1500
    assert min(counts.values()) > 40  # 75 on the average, 4.7 deviations below
    assert max(counts.values()) < 115


def test_sample_by_fraction_passes_tuples_as_they_come() -> None:
    source = Script(*({"n": number} for number in range(100))).hang()
    chosen = out("sample (rel : all) {FRACTION: 0.5; SEED: 1} limit (all, 10 : out)", rel=source)
    assert len(chosen) == 10
    assert chosen != [(number,) for number in range(10)]


def test_sample_by_fraction_of_one_and_of_zero() -> None:
    assert len(out("sample (rel : out) {FRACTION: 1}", rel=NUMBERS)) == 10
    assert out("sample (rel : out) {FRACTION: 0}", rel=NUMBERS) == []


@pytest.mark.parametrize("statement", ["sample (rel : out)", "sample (rel, 3 : out) {FRACTION: 0.1}"])
def test_sample_needs_either_a_size_or_a_fraction(statement: str) -> None:
    with pytest.raises(PlanError, match="sample needs either a size or a FRACTION"):
        run(statement, rel=NUMBERS)


def test_a_fraction_is_from_zero_to_one() -> None:
    with pytest.raises(PlanError, match=r"must be a number from 0 to 1, not 1\.5"):
        run("sample (rel : out) {FRACTION: 1.5}", rel=NUMBERS)


# --- sort ---------------------------------------------------------------------------------------


def test_sort_puts_tuples_in_order() -> None:
    rel = rows((1, "b"), (2, "a"), (2, "b"), (1, "a"), schema="n s")
    assert out('sort (rel, "n desc, s" : out)', rel=rel) == [(2, "a"), (2, "b"), (1, "a"), (1, "b")]


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_sort_puts_nulls_last_in_both_directions(direction: str) -> None:
    assert out(f'sort (rel, "a {direction}" : out)', rel=rows((None,), (1,)))[-1] == (None,)


def test_sort_is_stable_in_both_directions() -> None:
    rel = rows((1, "first"), (0, "x"), (1, "second"), schema="n s")
    assert out('sort (rel, "n desc" : out)', rel=rel) == [(1, "first"), (1, "second"), (0, "x")]


NUMBERS_AND_NULLS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, 1.5, Decimal("0.5"), float("nan"), float("-inf")]), st.integers(0, 9)
    ),
    max_size=30,
)


def sort_place(value: object) -> tuple[int, object]:
    """Numbers, then NaN, then null."""
    if value is None:
        return (2, 0)
    return (1, 0) if value != value else (0, value)


@settings(max_examples=60, deadline=None)
@given(NUMBERS_AND_NULLS, st.sampled_from([NO_MEMORY, 1 << 20]))
def test_sort_equals_a_stable_sort_in_memory(table: list[Row], memory_bytes: int) -> None:
    found = out('sort (rel, "a" : out)', rel=rows(*table, schema="a n"), memory_bytes=memory_bytes)
    expected = sorted(table, key=lambda row: sort_place(row[0]))
    assert [row[1] for row in found] == [row[1] for row in expected]


def test_sort_merges_what_it_has_written_to_disk() -> None:
    table = [(number * 7919 % 10_007, number) for number in range(10_000)]
    rel = rows(*table, schema="a n")
    found = out('sort (rel, "a" : out)', rel=rel, memory_bytes=NO_MEMORY, capacity_rows=256)
    assert found == sorted(table)


# --- emit and log -------------------------------------------------------------------------------


def test_emit_sends_tuples_to_a_named_output_and_passes_them_on() -> None:
    result = run('emit (rel, "seen" : out)', rel=rows((1,), (2,)))
    assert [record.row for record in result.outputs["seen"]] == [(1,), (2,)]
    assert [record.row for record in result.outputs["out"]] == [(1,), (2,)]


def test_emit_needs_nobody_who_reads_on() -> None:
    result = run('emit (rel, "seen") project (rel, "a" : out)', rel=rows((1,)))
    assert len(result.outputs["seen"]) == 1


def test_unlike_relations_cannot_be_emitted_to_one_output() -> None:
    body = 'project (rel, "a as b, a" : both) emit (rel, "seen") emit (both, "seen" : out)'
    with pytest.raises(RunError, match=r"the output 'seen' has the attributes .* of another statement"):
        run(body, rel=rows((1,), schema="a"))


def test_emit_of_nothing_gives_an_empty_output() -> None:
    assert run('emit (rel, "seen" : out)', rel=rows(schema="a")).outputs["seen"] == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('PLAN p { INPUT: x OUTPUT: out BODY { emit (x, "out") limit (x, 1 : out) } }', "1:47"),
        (
            """PLAN p { INPUT: x OUTPUT: out BODY { inner (x : out) } }
            PLAN inner { INPUT: x OUTPUT: y BODY { emit (x : y) {NAME: "out"} } }""",
            "2:72",
        ),
        (
            """PLAN p { INPUT: x OUTPUT: out BODY { inner (x : out) {TO: "out"} } }
            PLAN inner { INPUT: x OUTPUT: y PARAM: to BODY { emit (x, $to : y) } }""",
            "2:71",
        ),
    ],
)
def test_emit_to_a_declared_output_is_a_mistake(text: str, place: str) -> None:
    (found,) = Engine().check(loads(text, name="p.plan"))
    assert str(found).startswith(f"p.plan:{place}: 'out' is an output of the plan p: emit to another name")
    assert found.severity == "error"
    with pytest.raises(PlanError, match="'out' is an output of the plan p"):
        run_plan(text, x=[{"n": 1}])


def test_emit_to_an_output_of_a_called_plan_is_none() -> None:
    text = """PLAN p { INPUT: x OUTPUT: out BODY { inner (x : out) } }
      PLAN inner { INPUT: x OUTPUT: y BODY { emit (x, "y" : y) } }"""
    assert len(run_plan(text, x=[{"n": 1}]).outputs["y"]) == 1


def test_emit_to_a_declared_output_that_a_parameter_names_is_an_error() -> None:
    text = 'PLAN p { INPUT: x OUTPUT: out PARAM: to = "seen" BODY { emit (x, $to) limit (x, 1 : out) } }'
    assert len(run_plan(text, x=[{"n": 1}]).outputs["seen"]) == 1
    with pytest.raises(PlanError, match="'out' is an output of the plan p"):
        run_plan(text, x=[{"n": 1}], parameters={"to": "out"})


def test_a_limit_does_not_stop_emit() -> None:
    rel = rows(*((number,) for number in range(300)))
    result = run('emit (rel, "seen" : same) limit (same, 1 : out)', rel=rel)
    assert len(result.outputs["seen"]) == 300


def test_log_writes_tuples_and_their_number(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "aioflow.log"):
        assert out('log (rel, "found" : out)', rel=rows((1, "x"), (2, None))) == [(1, "x"), (2, None)]
    assert caplog.messages == ["found: a=1, b='x'", "found: a=2, b=null", "found: 2 tuples"]


def test_log_needs_nobody_who_reads_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "aioflow.log"):
        run('log (rel, "seen") {LEVEL: debug} project (rel, "a" : out)', rel=rows((1,)))
    assert caplog.messages == ["seen: a=1", "seen: 1 tuple"]
    assert {record.levelname for record in caplog.records} == {"DEBUG"}


def test_log_cuts_long_values(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "aioflow.log"):
        run("log (rel : out)", rel=rows(("x" * 1000,)))
    assert len(caplog.messages[0]) < 250


def test_bags_stay_the_same_through_all_that_only_route() -> None:
    statements = 'sort (rel, "a" : b) log (b : c) emit (c, "e" : out)'
    assert bag(out(statements, rel=NUMBERS)) == bag((number,) for number in range(10))
