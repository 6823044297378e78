"""union, intersect, minus."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow import PlanError, Row, RunError
from aioflow.relation import identity
from aioflow.testing import Script, rows, run_plan
from tests.operators.running import NO_MEMORY, bag, out, run, tables

MEMORY = st.sampled_from([NO_MEMORY, 1500, 1 << 20])


# --- union --------------------------------------------------------------------------------------


def test_union_gives_each_tuple_once() -> None:
    a, b = rows((1,), (1,), (2,)), rows((2.0,), (True,), (3,))
    assert bag(out("union (a, b : out)", a=a, b=b)) == bag([(1,), (2,), (True,), (3,)])


def test_union_all_keeps_duplicates() -> None:
    a, b = rows((1,), (1,)), rows((1,))
    assert out("union (a, b : out) {ALL}", a=a, b=b) == [(1,), (1,), (1,)]


def test_union_pairs_attributes_by_name_in_the_first_inputs_order() -> None:
    a, b = rows((1, 2), schema="x y"), rows((3, 4), schema="y x")
    assert bag(out("union (a, b : out)", a=a, b=b)) == bag([(1, 2), (4, 3)])


def test_union_takes_any_number_of_inputs() -> None:
    assert len(out("union (a, b, c : out)", a=rows((1,)), b=rows((2,)), c=rows((3,)))) == 3
    assert out("union (a : out)", a=rows((1,), (1,))) == [(1,)]


def test_union_refuses_inputs_whose_names_differ() -> None:
    text = "PLAN p { INPUT: a (x number), b (y number) OUTPUT: out BODY { union (a, b : out) } }"
    with pytest.raises(PlanError, match="the first has no 'y', another has no 'x'"):
        run_plan(text, a=[], b=[])


def test_union_refuses_names_that_differ_only_at_run_time() -> None:
    with pytest.raises(RunError, match="differ in their attributes"):
        run("union (a, b : out)", a=rows((1,), schema="x"), b=rows((1,), schema="y"))


def test_union_passes_tuples_of_one_input_while_the_other_is_silent() -> None:
    a, b = Script().row(n=0).hang(), Script().wait(1).row(n=1).hang()
    assert out("union (a, b : all) limit (all, 2 : out)", a=a, b=b) == [(0,), (1,)]


def test_union_ordered_concatenates_its_inputs() -> None:
    a, b = Script().wait(1).row(n=1), rows((2,), schema="n")
    assert out("union (a, b : out) {ORDERED}", a=a, b=b) == [(1,), (2,)]


def test_union_with_an_empty_first_input_of_which_nothing_is_known_gives_the_others() -> None:
    assert out("union (a, b : out)", a=[], b=rows((1, 2), schema="x y")) == [(1, 2)]


@settings(max_examples=60, deadline=None)
@given(tables(2), tables(2), MEMORY)
def test_union_is_the_set_of_all_tuples(one: list[Row], other: list[Row], memory_bytes: int) -> None:
    a, b = rows(*one, schema="x y"), rows(*other, schema="x y")
    found = out("union (a, b : out)", a=a, b=b, memory_bytes=memory_bytes)
    assert bag(found) == bag({identity(row): row for row in one + other}.values())


# --- intersect and minus ------------------------------------------------------------------------


def test_intersect_gives_what_both_have_once() -> None:
    a, b = rows((1,), (2,), (2,), (None,)), rows((2.0,), (5,), (None,))
    assert bag(out("intersect (a, b : out)", a=a, b=b)) == bag([(2,), (None,)])


def test_intersect_on_keeps_tuples_singly() -> None:
    a, b = rows((1, "x"), (1, "x"), (2, "y"), schema="k v"), rows((1,), (1,), schema="k")
    assert out('intersect (a, b : out) {ON: "k"}', a=a, b=b) == [(1, "x"), (1, "x")]


def test_intersect_passes_a_tuple_as_soon_as_both_have_it() -> None:
    a, b = Script().row(n=1).hang(), Script().wait(1).row(n=1).hang()
    assert out("intersect (a, b : all) limit (all, 1 : out)", a=a, b=b) == [(1,)]


def test_minus_leaves_out_what_the_second_has() -> None:
    a, b = rows((1,), (1,), (2,), (None,), (True,)), rows((2.0,), (None,))
    assert bag(out("minus (a, b : out)", a=a, b=b)) == bag([(1,), (True,)])


def test_minus_on_drops_tuples_singly() -> None:
    a, b = rows((1, "x"), (1, "x"), (2, "y"), schema="k v"), rows((2, 0), schema="k other")
    assert out('minus (a, b : out) {ON: "k"}', a=a, b=b) == [(1, "x"), (1, "x")]


def test_minus_emits_as_soon_as_the_second_has_ended() -> None:
    a, b = Script().row(n=1).hang(), Script().row(n=2).wait(1)
    assert out("minus (a, b : all) limit (all, 1 : out)", a=a, b=b) == [(1,)]


def test_minus_of_one_variable_from_a_part_of_it_does_not_deadlock() -> None:
    rel = rows(*((number,) for number in range(500)))
    kept = out('select (rel, "a > 5" : big) minus (rel, big : out)', rel=rel, capacity_rows=1)
    assert bag(kept) == bag((number,) for number in range(6))


def test_minus_pairs_attributes_by_name() -> None:
    a, b = rows((1, 2), (3, 4), schema="x y"), rows((2, 1), schema="y x")
    assert out("minus (a, b : out)", a=a, b=b) == [(3, 4)]


@pytest.mark.parametrize("operator", ["minus", "intersect"])
def test_on_must_name_attributes_of_both_inputs(operator: str) -> None:
    text = f"""PLAN p {{ INPUT: a (x number, z char), b (y number, z char) OUTPUT: out
        BODY {{ {operator} (a, b : out) {{ON: "x"}} }} }}"""
    with pytest.raises(PlanError, match="unknown attribute 'x'"):
        run_plan(text, a=[], b=[])


@pytest.mark.parametrize(("operator", "count"), [("minus", 1), ("intersect", 0)])
def test_a_second_input_of_which_nothing_is_known_is_empty(operator: str, count: int) -> None:
    assert len(out(f"{operator} (a, b : out)", a=rows((1,)), b=[])) == count


@settings(max_examples=80, deadline=None)
@given(tables(2), tables(2), st.sampled_from(["minus", "intersect"]), st.booleans(), MEMORY)
def test_minus_and_intersect_equal_a_search_through_the_second_input(
    one: list[Row], other: list[Row], operator: str, on: bool, memory_bytes: int
) -> None:
    a, b = rows(*one, schema="x y"), rows(*other, schema="x y")
    option = '{ON: "x"}' if on else ""
    found = out(f"{operator} (a, b : out) {option}", a=a, b=b, memory_bytes=memory_bytes)
    width = 1 if on else 2
    keys = {identity(row[:width]) for row in other}
    kept = [row for row in one if (identity(row[:width]) in keys) == (operator == "intersect")]
    assert bag(found) == bag(kept if on else {identity(row): row for row in kept}.values())
