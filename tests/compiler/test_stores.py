"""Stores: one is written a plan; reads behind the run's own writes are known before it runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable

import pytest

from aioflow import Context, Engine, PlanError, Row, Stream, loads, operator
from aioflow.authoring.operator import Registry, Settings, StoreUse, load_operators, registry, same_as_input
from aioflow.authoring.services import ServiceHost
from aioflow.compiler.check import analyse
from aioflow.compiler.graph import Graph
from aioflow.plan import Plan


@operator(
    name="st_keep",
    schema=same_as_input,
    effects=True,
    store=lambda settings: StoreUse(settings["db"], "write"),
)
async def keep(rows: Stream, *, db: str | None = None) -> AsyncGenerator[Row, None]:
    """Write tuples to a store."""
    async for row in rows:
        yield row


@operator(name="st_tell", effects=True, store=lambda settings: StoreUse(settings["db"], "post"))
async def tell(rows: Stream, *, db: str | None = None) -> AsyncGenerator[Row, None]:
    """Post tuples."""
    async for row in rows:
        yield row


@operator(name="st_amend", effects=True, store=lambda settings: StoreUse(settings["db"], "update"))
async def amend(rows: Stream, *, db: str | None = None) -> AsyncGenerator[Row, None]:
    """Update a store at once."""
    async for row in rows:
        yield row


@operator(
    name="st_look",
    schema=same_as_input,
    store=lambda settings: StoreUse(settings["db"], "read"),
)
async def look(rows: Stream, *, db: str | None = None, context: Context) -> AsyncGenerator[Row, None]:
    """Pass tuples on, marked if the statement sees what the run wrote."""
    async for _ in rows:
        yield (context.sees_own_writes,)


def _is_key_missing(settings: Settings, host: ServiceHost) -> Iterable[str]:
    if "key" not in host.configuration:
        yield f"there is no key for {settings['door']}: write key = …"


@operator(name="st_enter", schema=same_as_input, requires=_is_key_missing)
async def enter(rows: Stream, *, door: str = "front") -> AsyncGenerator[Row, None]:
    """Pass tuples on through a door."""
    async for row in rows:
        yield row


def operators() -> Registry:
    load_operators()
    return registry


def late_reads(text: str) -> set[int]:
    """The lines of the statements that see what the run wrote."""
    graph = Graph(analyse(loads(text, plan="main"), operators()))
    return lines(graph, graph.sees_own_writes)


def read_back(text: str) -> set[int]:
    """The lines of the statements that write what the run reads."""
    graph = Graph(analyse(loads(text, plan="main"), operators()))
    return lines(graph, graph.is_read_back)


def lines(graph: Graph, holds: Callable[[Plan, int], bool]) -> set[int]:
    found = set()
    for plan in graph.program:
        for index, statement in enumerate(plan.statements):
            if holds(plan, index):
                assert statement.span is not None
                found.add(statement.span.line)
    return found


def test_a_read_that_waits_for_a_write_sees_it() -> None:
    assert late_reads(
        """PLAN main { INPUT: x OUTPUT: a, b BODY {
        st_keep (x) {DONE: kept}
        st_look (x : a) {WAIT: kept}
        st_look (x : b)
        } }"""
    ) == {3}


def test_a_read_of_what_was_stored_sees_it_also_through_other_statements() -> None:
    assert late_reads(
        """PLAN main { INPUT: x OUTPUT: b BODY {
        st_keep (x : stored)
        distinct (stored : some)
        st_look (some : b)
        } }"""
    ) == {4}


def test_a_read_before_a_write_and_one_beside_it_do_not() -> None:
    assert not late_reads(
        """PLAN main { INPUT: x OUTPUT: b BODY {
        st_look (x : known)
        minus (x, known : new)
        st_keep (new)
        st_look (x : b)
        } }"""
    )


def test_messages_are_nothing_that_a_read_could_see() -> None:
    assert not late_reads(
        """PLAN main { INPUT: x OUTPUT: b BODY {
        st_tell (x) {DONE: told}
        st_look (x : b) {WAIT: told}
        } }"""
    )


def test_writes_and_reads_in_called_plans_are_seen() -> None:
    assert late_reads(
        """PLAN writes { INPUT: x OUTPUT: y BODY {
        st_keep (x : y)
        } }
        PLAN reads { INPUT: x OUTPUT: y BODY {
        st_look (x : y)
        } }
        PLAN main { INPUT: x OUTPUT: b, c BODY {
        writes (x : y)
        reads (y : b)
        st_look (x : c) {WAIT: y}
        } }"""
    ) == {5, 10}


def test_the_next_level_of_a_recursion_comes_after_the_writes_of_this_one() -> None:
    assert late_reads(
        """PLAN main { INPUT: x OUTPUT: all BODY {
        st_look (x : here)
        st_keep (here : stored)
        main (stored : rest)
        union (here, rest : all)
        } }"""
    ) == {2}


def test_a_write_is_read_back_by_what_reads_or_updates_after_it() -> None:
    assert read_back(
        """PLAN writes { INPUT: x OUTPUT: y BODY {
        st_keep (x : y)
        } }
        PLAN reads { INPUT: x OUTPUT: y BODY {
        st_look (x : y)
        st_keep (y)
        } }
        PLAN main { INPUT: x OUTPUT: b BODY {
        st_keep (x) {DONE: kept}
        st_amend (x) {WAIT: kept}
        st_keep (x) {DONE: told}
        st_tell (x) {WAIT: told}
        writes (x : y)
        reads (y : b)
        } }"""
    ) == {2, 9}


def test_the_operator_is_told() -> None:
    import asyncio

    async def run() -> list[object]:
        async with Engine() as engine:
            text = "PLAN p { INPUT: x OUTPUT: a BODY { st_keep (x) {DONE: d} st_look (x : a) {WAIT: d} } }"
            return [dict(record) for record in await engine.run(loads(text), x=[{"n": 1}])]

    assert asyncio.run(run()) == [{"n": True}]


# --- one store ----------------------------------------------------------------------------------


def mistakes(text: str) -> list[str]:
    return [str(found).splitlines()[0] for found in Engine().check(loads(text)) if found.severity == "error"]


def test_a_plan_writes_to_one_store_and_may_read_others() -> None:
    text = """PLAN p { INPUT: x OUTPUT: a BODY {
      st_keep (x) {DB: one}
      st_look (x : a) {DB: two}
      st_tell (x) {DB: two}
      st_amend (x)
    } }"""
    first, second = mistakes(text)
    assert first == (
        "<plan>:4:7: a plan writes to one database, so that all of it takes hold or nothing: "
        "this goes to 'two', st_keep on line 2 to 'one' (reading others is free)"
    )
    assert second.startswith("<plan>:5:7: ")
    assert "this goes to 'default'" in second


def test_stores_of_called_plans_count_with_their_parameters() -> None:
    text = """
    PLAN keep { INPUT: x OUTPUT: y PARAM: db = "one" BODY { st_keep (x : y) {DB: $db} } }
    PLAN main { INPUT: x OUTPUT: a, b BODY { keep (x : a) keep (x : b) {DB: "two"} } }
    """
    program = loads(text, plan="main")
    found = [found for found in Engine().check(program) if found.severity == "error"]
    assert [found.message.split(":")[0] for found in found] == [
        "a plan writes to one database, so that all of it takes hold or nothing"
    ]


def test_acts_at_the_end_of_a_plan_that_commits_as_it_streams_are_warned_of() -> None:
    text = """PLAN p { INPUT: x COMMIT: batch BODY {
      dbappend (x, "seen")
      email (x, to="a@example.org", subject="new")
      email (x, to="a@example.org", subject="new") {EACH}
      dbexport (x, "all")
    } }"""
    warnings = [str(found).splitlines()[0] for found in Engine().check(loads(text))]
    assert warnings == [
        "<plan>:3:7: warning: email acts when its input has ended: after a crash it misses what "
        "COMMIT: batch has made durable before; with EACH a message takes hold with its tuple",
        "<plan>:5:7: warning: dbexport acts when its input has ended: after a crash it misses what "
        "COMMIT: batch has made durable before",
    ]
    assert Engine().check(loads(text.replace("COMMIT: batch", ""))) == []


# --- requirements -------------------------------------------------------------------------------


def test_what_statements_require_is_told_all_at_once_and_before_anything_runs() -> None:
    text = """PLAN p { INPUT: x OUTPUT: b BODY {
      st_enter (x : a)
      st_enter (a, "back" : b)
    } }"""
    started: list[int] = []

    def rows() -> Iterable[dict[str, int]]:
        started.append(1)
        yield {"n": 1}

    with pytest.raises(PlanError) as caught:
        Engine().stream(loads(text), x=rows())
    assert [found.message for found in caught.value.diagnostics] == [
        "st_enter: there is no key for front: write key = …",
        "st_enter: there is no key for back: write key = …",
    ]
    assert [found.span.line for found in caught.value.diagnostics if found.span] == [2, 3]
    assert not started


def test_the_same_lack_is_told_once() -> None:
    text = "PLAN p { INPUT: x OUTPUT: b BODY { st_enter (x : a) st_enter (a : b) } }"
    with pytest.raises(PlanError) as caught:
        Engine().stream(loads(text), x=[])
    assert len(caught.value.diagnostics) == 1


def test_checking_a_plan_asks_for_nothing_that_only_a_run_needs() -> None:
    text = "PLAN p { INPUT: x OUTPUT: b BODY { st_enter (x : b) } }"
    assert Engine().check(loads(text)) == []
