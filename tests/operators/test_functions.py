"""apply and aggregate."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aioflow
from aioflow import Document, PlanError, Relation, Row, RunError, aggregate_function, function, loads
from aioflow.relation import identity
from aioflow.testing import Script, rows, run_plan
from tests.operators.running import NO_MEMORY, bag, out, run

Tuple = Mapping[str, Any]
NUMBERS = rows((1,), (2,), (3,), schema="n")


@function(name="o_double", returns="d number", pure=True)
def double(row: Tuple) -> Tuple:
    return {"d": 2 * row["n"]}


@function(name="o_square", pure=True)
def square(row: Tuple) -> int:
    return int(row["n"]) ** 2


@function(name="o_replace", pure=True)
def replace(row: Tuple) -> Tuple:
    return {"n": -row["n"]}


@function(name="o_even_only", pure=True)
def even_only(row: Tuple) -> Tuple | None:
    return {"even": True} if row["n"] % 2 == 0 else None


@function(name="o_count_up", pure=True)
def count_up(row: Tuple) -> Iterator[Tuple]:
    for number in range(row["n"]):
        yield {"i": number}


@function(name="o_listed", pure=True)
def listed(row: Tuple) -> list[Any]:
    return [{"x": 1}, {"y": 2}]


@function(name="o_slow", returns="s number", pure=True)
async def slow(row: Tuple) -> Tuple:
    await asyncio.sleep(10.0 - row["n"])
    return {"s": row["n"]}


@function(name="o_ticks", pure=True)
async def ticks(row: Tuple) -> AsyncIterator[Tuple]:
    for number in range(row["n"]):
        await asyncio.sleep(1)
        yield {"tick": number}


@function(name="o_odd_fails", returns="ok boolean", pure=True)
def odd_fails(row: Tuple) -> Tuple:
    if row["n"] % 2:
        raise ValueError("odd")
    return {"ok": True}


@function(name="o_fails_late", returns="i number", pure=True)
def fails_late(row: Tuple) -> Iterator[Tuple]:
    yield {"i": 1}
    raise ValueError("late")


@function(name="o_thread", returns="thread char", pure=True, blocking=True)
def thread_name(row: Tuple) -> Tuple:
    return {"thread": threading.current_thread().name}


@function(name="o_block", returns="b number", pure=True, blocking=True)
def block(row: Tuple) -> Iterator[Tuple]:
    time.sleep(0.02)
    yield {"b": row["n"]}


@function(name="o_strange", returns="x", pure=True)
def strange(row: Tuple) -> Tuple:
    return {"x": object()}


@function(name="o_nested", pure=True)
def nested(row: Tuple) -> Tuple:
    return {"rows": [{"a": 1}], "document": {"deep": [1, 2]}}


@function(name="o_naughty", returns="a number", pure=True)
def naughty(row: Tuple) -> Tuple:
    return {"a": 1, "b": 2}


# --- apply --------------------------------------------------------------------------------------


def test_apply_adds_results_to_the_tuple() -> None:
    assert out('apply (rel, "o_double" : out)', rel=NUMBERS) == [(1, 2), (2, 4), (3, 6)]


def test_a_single_value_is_named_like_the_function() -> None:
    assert run('apply (rel, "o_square" : out)', rel=NUMBERS)[2] == {"n": 3, "o_square": 9}


def test_a_result_replaces_an_attribute_of_its_name() -> None:
    assert out('apply (rel, "o_replace" : out)', rel=NUMBERS) == [(-1,), (-2,), (-3,)]


def test_no_result_gives_no_tuple() -> None:
    assert out('apply (rel, "o_even_only" : out)', rel=NUMBERS) == [(2, True)]


def test_apply_outer_keeps_tuples_without_result() -> None:
    found = out('apply (rel, "o_even_only" : out) {OUTER}', rel=NUMBERS)
    assert found == [(1, None), (2, True), (3, None)]


def test_apply_outer_without_any_result_keeps_the_tuples() -> None:
    assert out('apply (rel, "o_even_only" : out) {OUTER}', rel=rows((1,), schema="n")) == [(1,)]


def test_a_generator_gives_many_results() -> None:
    assert out('apply (rel, "o_count_up" : out)', rel=rows((0,), (2,), schema="n")) == [(2, 0), (2, 1)]


def test_a_generator_of_very_many_results_is_not_waited_for() -> None:
    rel = rows((10**12,), schema="n")
    assert out('apply (rel, "o_count_up" : all) limit (all, 2 : out)', rel=rel) == [(10**12, 0), (10**12, 1)]


def test_the_results_of_the_first_call_tell_the_attributes() -> None:
    assert run('apply (rel, "o_listed" : out)', rel=NUMBERS)[0] == {"n": 1, "x": 1, "y": None}


def test_async_functions_are_called_for_several_tuples_at_once() -> None:
    async_calls = run('apply (rel, "o_slow" : out)', rel=NUMBERS)
    assert [record["s"] for record in async_calls] == [3, 2, 1]
    assert async_calls.statistics.elapsed_seconds < 10


def test_apply_ordered_gives_results_in_the_order_of_their_tuples() -> None:
    assert out('apply (rel, "o_slow" : out) {ORDERED}', rel=NUMBERS) == [(1, 1), (2, 2), (3, 3)]


def test_async_generators_give_many_results() -> None:
    assert bag(out('apply (rel, "o_ticks" : out)', rel=NUMBERS)) == bag(
        (number, tick) for number in (1, 2, 3) for tick in range(number)
    )


def test_blocking_functions_run_on_worker_threads() -> None:
    [(_, name)] = out('apply (rel, "o_thread" : out)', rel=rows((1,), schema="n"))
    assert name != threading.current_thread().name


def test_blocking_functions_that_generate_do_so_on_the_thread() -> None:
    assert bag(out('apply (rel, "o_block" : out)', rel=NUMBERS)) == bag([(1, 1), (2, 2), (3, 3)])


def test_a_call_that_fails_ends_the_run_and_names_the_tuple() -> None:
    with pytest.raises(RunError, match=r"(?s)apply: ValueError: odd.*input tuple: n=1"):
        run('apply (rel, "o_odd_fails" : out)', rel=NUMBERS)


def test_failed_tuples_go_to_errors() -> None:
    result = run('apply (rel, "o_odd_fails" : out) {ERRORS: bad}', outputs="out, bad", rel=NUMBERS)
    assert [record.row for record in result.outputs["out"]] == [(2, True)]
    assert [record["n"] for record in result.outputs["bad"]] == [1, 3]
    assert result.outputs["bad"][0]["error-kind"] == "ValueError"


def test_a_generator_that_fails_is_a_failed_call() -> None:
    result = run('apply (rel, "o_fails_late" : out) {ERRORS: bad}', outputs="out, bad", rel=NUMBERS)
    assert len(result.outputs["bad"]) == 3


def test_a_value_that_no_relation_can_carry_is_a_failed_call() -> None:
    with pytest.raises(RunError, match="type 'object' cannot be carried"):
        run('apply (rel, "o_strange" : out)', rel=NUMBERS)


def test_a_result_that_was_not_declared_is_a_failed_call() -> None:
    with pytest.raises(RunError, match="unknown attribute 'b'"):
        run('apply (rel, "o_naughty" : out)', rel=NUMBERS)


def test_lists_of_mappings_become_relations_and_other_structures_documents() -> None:
    record = run('apply (rel, "o_nested" : out)', rel=NUMBERS)[0]
    assert record["rows"] == rows((1,), schema="a")
    assert record["document"] == Document('{"deep": [1, 2]}', "json")


def test_an_unknown_function_is_a_mistake_with_a_suggestion() -> None:
    with pytest.raises(PlanError, match="unknown function 'o_dubble'; did you mean 'o_double'"):
        run('apply (rel, "o_dubble" : out)', rel=NUMBERS)


def test_declared_results_are_known_to_the_checker() -> None:
    text = """PLAN p { INPUT: rel (n number) OUTPUT: out
        BODY { apply (rel, "o_double" : a) project (a, "dd" : out) } }"""
    with pytest.raises(PlanError, match="unknown attribute 'dd'; did you mean 'd'"):
        run_plan(text, rel=[])


def test_a_limit_stops_a_pure_function_but_not_one_with_effects() -> None:
    done = []

    @function(name="o_effect", returns="e number")
    def effect(row: Tuple) -> Tuple:
        done.append(row["n"])
        return {"e": 1}

    rel = rows(*((number,) for number in range(300)), schema="n")
    assert len(out('apply (rel, "o_effect" : all) limit (all, 1 : out)', rel=rel)) == 1
    assert len(done) == 300


# --- aggregate ----------------------------------------------------------------------------------

SALES = rows(
    ("a", 1, "x"), ("b", 2.5, None), ("a", None, "y"), ("b", Decimal("0.5"), "z"), schema="shop price note"
)


@aggregate_function(name="o_spread", type="number")
def spread(values: Sequence[Any]) -> Any:
    return max(values) - min(values) if values else None


@aggregate_function(name="o_names", type="char")
def names(records: Sequence[Tuple]) -> str:
    return " ".join(sorted(record["shop"] for record in records))


@aggregate_function(name="o_nulls", type="number", skip_nulls=False)
def nulls(values: Sequence[Any]) -> int:
    return sum(value is None for value in values)


def test_aggregate_joins_results_to_the_packed_input() -> None:
    [record] = run('aggregate (rel, "count() as n" : out)', rel=SALES)
    assert list(record) == ["relation", "n"]
    assert record["relation"] == SALES
    assert record["n"] == 4


def test_aggregate_leaves_out_the_packed_input_where_it_is_told_to() -> None:
    assert list(run('aggregate (rel, "count() as n" : out) {RELATION: false}', rel=SALES)[0]) == ["n"]


def test_nulls_are_skipped() -> None:
    statement = 'aggregate (rel, "count() as a, count(price) as b, count(note) as c" : out) {RELATION: false}'
    assert out(statement, rel=SALES) == [(4, 3, 3)]


def test_aggregates_of_an_empty_relation() -> None:
    calls = (
        "count() as n, sum(price) as s, avg(price) as a, min(price) as x, max(price) as y, first(price) as f"
    )
    statement = f'aggregate (rel, "{calls}" : out) {{RELATION: false}}'
    assert out(statement, rel=rows(schema="price")) == [(0, None, None, None, None, None)]


def test_aggregate_by_gives_a_tuple_for_each_group() -> None:
    statement = 'aggregate (rel, "count() as n, o_spread(price) as s" : out) {BY: "shop"; RELATION: false}'
    rel = rows(("a", 1), ("b", 2), ("a", 4), schema="shop price")
    assert bag(out(statement, rel=rel)) == bag([("a", 2, 3), ("b", 1, 0)])


def test_aggregate_by_of_an_empty_relation_gives_nothing() -> None:
    assert out('aggregate (rel, "count() as n" : out) {BY: "price"}', rel=rows(schema="price")) == []


def test_aggregate_by_packs_its_groups() -> None:
    found = run('aggregate (rel, "count() as n" : out) {BY: "shop"}', rel=SALES)
    assert {record["shop"]: len(record["relation"]) for record in found} == {"a": 2, "b": 2}


def test_registered_functions_get_lists_of_values_or_of_tuples() -> None:
    statement = 'aggregate (rel, "o_names() as names, o_nulls(price) as nulls" : out) {RELATION: false}'
    assert out(statement, rel=SALES) == [("a a b b", 1)]


def test_a_registered_function_that_fails_ends_the_run() -> None:
    @aggregate_function(name="o_bad")
    def bad(values: Sequence[Any]) -> Any:
        raise ValueError("bad")

    with pytest.raises(RunError, match="aggregate: ValueError: bad"):
        run('aggregate (rel, "o_bad(price) as x" : out)', rel=SALES)


def test_distinct_values_count_once() -> None:
    rel = rows((1,), (1.0,), (True,), (None,), (None,), schema="v")
    assert out('aggregate (rel, "count(distinct v) as n" : out) {RELATION: false}', rel=rel) == [(2,)]


def test_list_embeds_the_values() -> None:
    [(prices,)] = out('aggregate (rel, "list(price) as prices" : out) {RELATION: false}', rel=SALES)
    assert prices == Relation.of_values([1, 2.5, Decimal("0.5")])
    assert prices.is_list


def test_first_takes_the_value_that_came_first() -> None:
    rel = Script().row(v=None).row(v=3).wait(1).row(v=1)
    assert out('aggregate (rel, "first(v) as f" : out) {RELATION: false}', rel=rel) == [(3,)]


def test_min_and_max_order_values_as_sort_does() -> None:
    rel = rows((2,), (float("nan"),), (1,), ("x",), schema="v")
    assert out('aggregate (rel, "min(v) as a, max(v) as b" : out) {RELATION: false}', rel=rel) == [(1, "x")]


def test_sums_read_texts_as_numbers_and_count_what_is_none() -> None:
    result = run(
        'aggregate (rel, "sum(v) as s" : out) {RELATION: false}', rel=rows(("1",), ("x",), (2,), schema="v")
    )
    assert result[0]["s"] == 3
    step = next(step for step in result.statistics.steps if step.operator == "aggregate")
    assert step.counters == {"not a number": 1}


def test_a_sum_of_integers_is_an_integer_of_any_size() -> None:
    rel = rows((10**30,), (1,), schema="v")
    assert out('aggregate (rel, "sum(v) as s" : out) {RELATION: false}', rel=rel) == [(10**30 + 1,)]


@pytest.mark.parametrize(
    ("values", "total", "mean"),
    [
        ([1, 2], 3, 1.5),
        ([2, 4], 6, 3),
        ([0.1] * 10, 1.0, 0.1),
        ([1e308, 1e308, -1e308], 1e308, 1e308 / 3),
        ([Decimal("0.1"), Decimal("0.2")], Decimal("0.3"), Decimal("0.15")),
        ([Decimal("0.1"), 0.2, 1], Decimal("1.3"), None),
        ([float("inf"), 1], float("inf"), float("inf")),
        ([10**400, -(10**400), 1.5], 1.5, 0.5),
        ([2**60 + 1, 2**60 + 2], 2**61 + 3, Decimal("1152921504606846977.5")),
        ([10**30, 10**30 + 1, 10**30 + 1], 3 * 10**30 + 2, Decimal("1" + "0" * 30 + "." + "6" * 27 + "7")),
        ([2**60, 2**60 + 2], 2**61 + 2, 2**60 + 1),
        ([Decimal(10**40), Decimal("0.5")], Decimal("1" + "0" * 40 + ".5"), Decimal("5" + "0" * 39 + ".25")),
    ],
)
def test_sums_and_averages_are_exact(values: list[Any], total: Any, mean: Any) -> None:
    rel = rows(*((value,) for value in values), schema="v")
    [(found_total, found_mean)] = out(
        'aggregate (rel, "sum(v) as s, avg(v) as a" : out) {RELATION: false}', rel=rel
    )
    assert (found_total, type(found_total)) == (total, type(total))
    assert mean is None or found_mean == mean


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=200), st.randoms())
def test_the_sum_of_floats_is_the_nearest_to_the_exact_one_in_any_order(
    values: list[float], random: Any
) -> None:
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        expected = float(exact)
    except OverflowError:
        expected = float("inf") if exact > 0 else float("-inf")
    random.shuffle(values)
    rel = rows(*((value,) for value in values), schema="v")
    [(total,)] = out('aggregate (rel, "sum(v) as s" : out) {RELATION: false}', rel=rel, capacity_rows=16)
    assert total == (expected if values else None)


VALUES = st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([0.5, Decimal("0.25")]))
TABLES = st.lists(st.tuples(st.sampled_from([None, 1, 1.0, True, "a"]), VALUES), max_size=20)


@settings(max_examples=80, deadline=None)
@given(TABLES, st.sampled_from([NO_MEMORY, 3000, 1 << 20]), st.booleans())
def test_aggregates_by_groups_equal_those_of_lists(table: list[Row], memory_bytes: int, packs: bool) -> None:
    calls = "count() as n, count(v) as c, sum(v) as s, min(v) as a, max(v) as z, count(distinct v) as d"
    calls = calls if packs else calls.rpartition(",")[0]
    options = f'{{BY: "k"; RELATION: {str(packs).lower()}}}'
    rel = rows(*table, schema="k v")
    found = out(f'aggregate (rel, "{calls}" : out) {options}', rel=rel, memory_bytes=memory_bytes)
    groups: dict[object, list[Row]] = {}
    for row in table:
        groups.setdefault(identity(row[:1]), []).append(row)
    expected = [naive_aggregates(group, packs) for group in groups.values()]
    assert bag(found) == bag(expected)


def naive_aggregates(group: list[Row], packs: bool) -> Row:
    values = [value for _, value in group if value is not None]
    exact = sum(map(Fraction, values), Fraction(0)) if values else None
    numbers = (
        len(group),
        len(values),
        None if exact is None else float(exact),
        min(values, default=None),
        max(values, default=None),
    )
    if not packs:
        return (group[0][0], *numbers)
    packed = Relation(rows(schema="k v").schema, group)
    return (group[0][0], packed, *numbers, len({identity((value,)) for value in values}))


def test_a_function_can_take_attributes_as_arguments() -> None:
    function(name="t_area", takes="width, height", returns="area number", pure=True)(lambda w, h: w * h)
    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "t_area" : out) } }')
    given_rows = [{"height": 2, "name": "a", "width": 3}, {"height": 1, "name": "b", "width": 1}]
    result = aioflow.run(plan, x=given_rows)
    assert [row["area"] for row in result] == [6, 1]


def test_an_attribute_that_a_function_takes_must_exist() -> None:
    function(name="t_missing", takes="nmae", returns="n number")(len)
    plan = loads('PLAN p { INPUT: x (name char) OUTPUT: out BODY { apply (x, "t_missing" : out) } }')
    with pytest.raises(PlanError, match="unknown attribute 'nmae'; did you mean 'name'"):
        aioflow.run(plan, x=[])


def test_a_pure_function_that_fails_for_one_tuple_of_a_batch_gives_the_others() -> None:
    function(name="t_inverse", takes="n", returns="i number", pure=True)(lambda n: 1 / n)
    plan = loads('PLAN p { INPUT: x OUTPUT: out, bad BODY { apply (x, "t_inverse" : out) {ERRORS: bad} } }')
    outputs = aioflow.run(plan, x=[{"n": 2}, {"n": 0}, {"n": 4}]).outputs
    assert [row["i"] for row in outputs["out"]] == [0.5, 0.25]
    assert [(row["n"], row["error-kind"]) for row in outputs["bad"]] == [(0, "ZeroDivisionError")]


def test_aggregate_keeps_no_tuples_for_a_relation_that_nobody_reads() -> None:
    plan = """PLAN p { INPUT: x OUTPUT: out BODY {
        aggregate (x, "sum(n) as total" : all) project (all, "%s" : out)
    } }"""
    rows_given = [{"n": number} for number in range(2000)]
    small = run_plan(plan % "total", x=rows_given, memory_bytes=2_000)
    assert [row["total"] for row in small] == [1999000]
    assert small.statistics.spilled_rows == 0
    kept = run_plan(plan % "total, relation", x=rows_given, memory_bytes=2_000)
    assert len(kept[0]["relation"]) == 2000
    assert kept.statistics.spilled_rows > 0


# --- StopIteration ------------------------------------------------------------------------------

THOUSAND = rows(*((number,) for number in range(1000)), schema="n")


def _stops(number: int) -> int:
    """A next() too many, on an iterator that has come to its end."""
    return next(iter((number,) if number != 747 else ()))


async def _stops_asynchronously(number: int) -> int:
    if number == 747:
        raise StopAsyncIteration
    return number


def _stops_in_a_generator(number: int) -> Iterator[int]:
    yield _stops(number)


async def _stops_in_an_async_generator(number: int) -> AsyncIterator[int]:
    if number == 747:
        raise StopAsyncIteration
    yield number


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("returns", ["r number", None])
@pytest.mark.parametrize(
    ("call", "blocking", "kind"),
    [
        (_stops, False, "StopIteration"),
        (_stops, True, "RuntimeError"),  # what Python makes of it on the way out of a thread
        (_stops_asynchronously, False, "StopAsyncIteration"),
        (_stops_in_a_generator, False, "RuntimeError"),
        (_stops_in_an_async_generator, False, "RuntimeError"),
    ],
)
def test_a_function_that_raises_stop_iteration_fails_for_that_tuple_alone(
    call: Any, blocking: bool, kind: str, returns: str | None, pure: bool
) -> None:
    traits: dict[str, Any] = {"takes": "n", "returns": returns, "pure": pure, "blocking": blocking}
    function(name="o_stops", **traits)(call)
    result = run('apply (rel, "o_stops" : out) {ERRORS: bad}', outputs="out, bad", rel=THOUSAND)
    assert sorted(record["n"] for record in result.outputs["out"]) == [n for n in range(1000) if n != 747]
    assert [(record["n"], record["error-kind"]) for record in result.outputs["bad"]] == [(747, kind)]


def test_a_function_that_raises_stop_iteration_ends_the_run() -> None:
    function(name="o_stops", takes="n", returns="r number", pure=True)(_stops)
    with pytest.raises(RunError, match=r"(?s)apply: StopIteration.*input tuple: n=747"):
        run('apply (rel, "o_stops" : out)', rel=THOUSAND)


def test_an_aggregate_function_that_raises_stop_iteration_ends_the_run() -> None:
    @aggregate_function(name="o_stops")
    def stops(values: Sequence[Any]) -> Any:
        raise StopIteration

    for options in ("", '{BY: "shop"}', '{BY: "shop"; RELATION: false}'):
        with pytest.raises(RunError, match=r"aggregate: .*StopIteration"):
            run(f'aggregate (rel, "o_stops(price) as x" : out) {options}', rel=SALES)


# --- how often a function is called -------------------------------------------------------------


def _sometimes_none(number: int) -> int | None:
    return None if number % 3 else number


def _sometimes_fails(number: int) -> int:
    if number % 3:
        raise ValueError("not a multiple of three")
    return number


def _sometimes_many(number: int) -> Any:
    return [number, number] if number % 3 else {"r": number}


def _sometimes_nested(number: int) -> Any:
    return {"r": [{"a": 1}] if number % 3 else number}


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("outer", ["OUTER; ", ""])
@pytest.mark.parametrize("returns", ["r", None])
@pytest.mark.parametrize("call", [_sometimes_none, _sometimes_fails, _sometimes_many, _sometimes_nested])
def test_a_function_is_called_once_for_each_tuple(
    call: Any, returns: str | None, outer: str, pure: bool
) -> None:
    called: Counter[int] = Counter()

    def counting(number: int) -> Any:
        called[number] += 1
        return call(number)

    function(name="counted_calls_of_a_tuple", takes="n", returns=returns, pure=pure)(counting)
    run(
        f'apply (rel, "counted_calls_of_a_tuple" : out) {{{outer}ERRORS: bad}}',
        outputs="out, bad",
        rel=THOUSAND,
    )
    assert called == Counter(range(1000))


def test_results_after_a_null_among_many_are_not_lost() -> None:
    @function(name="o_gaps", takes="n", returns="i number", pure=True)
    def gaps(number: int) -> Iterator[int | None]:
        yield None
        yield from range(number)

    assert len(out('apply (rel, "o_gaps" : out)', rel=rows((1000,), schema="n"))) == 1000
