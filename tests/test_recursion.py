"""Recursion: ONCE, levels, MAX_DEPTH, inputs that are handed down, deadness through calls, early ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import pytest

from aioflow import Engine, InputError, PlanError, Row, Stream, loads, operator
from aioflow.authoring.function import function
from aioflow.authoring.operator import attributes, load_operators, same_as_input
from aioflow.errors import DepthError
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import run, run_plan

LINKS = {"A": "BC", "B": "D", "C": "E", "E": "D", "D": "F"}
STREAMING: Mode = "D+S+"


@function(name="recursion_links", pure=True, returns="to char")
async def links(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The links of a page; B answers late."""
    await asyncio.sleep(10 if row["url"] == "B" else 1)
    return [{"to": to} for to in LINKS.get(row["url"], "")]


def crawl(
    header: str, call: str = "crawl (next : rest)", union: str = "union (pages, rest : seen) {ALL}"
) -> str:
    return f"""
    PLAN crawl
    {{
      INPUT: pages (url char)
      OUTPUT: seen
      {header}
      BODY
      {{
        apply (pages, "recursion_links" : found)
        project (found, "to as url" : next)
        {call}
        {union}
      }}
    }}
    """


def urls(plan: str, *, start: Any = None, mode: Mode = STREAMING, seed: int | None = None) -> str:
    program = loads(plan, plan="crawl")
    found = run_plan(program, mode=mode, seed=seed, pages=start or [{"url": "A"}])
    return "".join(sorted(record["url"] for record in found))


async def late(*arrivals: tuple[float, Mapping[str, Any]]) -> AsyncIterator[Mapping[str, Any]]:
    for seconds, row in arrivals:
        await asyncio.sleep(seconds)
        yield row


# --- ONCE with MAX_DEPTH: the shortest way ------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("call", "union"),
    [
        ("crawl (next : rest)", "union (pages, rest : seen) {ALL}"),
        ('crawl (next : below) select (below, "url is not null" : rest)', "union (pages, rest : seen) {ALL}"),
        ("crawl (next : rest) {DONE: done} log (rest) {WAIT: done}", "union (pages, rest : seen) {ALL}"),
    ],
    ids=["tail call", "no tail call", "signal"],
)
def test_what_lies_within_max_depth_by_the_shortest_way_is_worked_on(
    mode: Mode, call: str, union: str
) -> None:
    plan = crawl('MAX_DEPTH: 4 stop\nONCE: "url"', call, union)
    assert urls(plan, mode=mode) == "ABCDEF"
    assert urls(plan.replace("MAX_DEPTH: 4 stop", "MAX_DEPTH: 4"), mode=mode) == "ABCDEF"
    assert urls(plan.replace("4 stop", "3 stop"), mode=mode) == "ABCDE"


@pytest.mark.parametrize("seed", range(10))
def test_two_recursive_calls_belong_to_the_same_levels(seed: int) -> None:
    plan = crawl(
        'MAX_DEPTH: 4 stop\nONCE: "url"',
        "select (next, \"url in ('B', 'D')\" : some) select (next, \"url not in ('B', 'D')\" : others)\n"
        "crawl (some : first) crawl (others : second)",
        "union (pages, first, second : seen) {ALL}",
    )
    assert urls(plan, seed=seed) == "ABCDEF"


@pytest.mark.parametrize("mode", MODES)
def test_levels_of_a_recursion_through_another_plan(mode: Mode) -> None:
    """Each page is two calls deep: one of crawl, one of follow."""
    plan = crawl('MAX_DEPTH: 4 stop\nONCE: "url"', "follow (found : rest)").replace("project", "# project")
    plan += """
    PLAN follow { INPUT: found OUTPUT: seen BODY {
        project (found, "to as url" : next)
        crawl (next : seen)
    } }
    """
    assert urls(plan, mode=mode) == "ABCDEF"


COUNTING = """
    PLAN count_up { INPUT: pages (n number) OUTPUT: seen MAX_DEPTH: 3 stop ONCE: "n" BODY {
        project (pages, "n + 1 as n" : next)
        count_up (next : rest)
        union (pages, rest : seen) {ALL}
    } }
"""


def numbers_of(
    plan: str, rows: Any, mode: Mode = STREAMING, seed: int | None = None, **settings: Any
) -> list[int]:
    return sorted(record["n"] for record in run_plan(plan, pages=rows, mode=mode, seed=seed, **settings))


@pytest.mark.parametrize("mode", MODES)
def test_a_work_list_begins_a_level_when_the_one_above_has_ended(mode: Mode) -> None:
    arrivals = late((0, {"n": 1}), (60, {"n": 3}))
    assert numbers_of(COUNTING, arrivals, mode) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("mode", MODES)
def test_work_lists_of_two_calls_share_their_levels(mode: Mode) -> None:
    """From 1 over + 2 and * 3; both calls leave all further levels to a work list of their own."""
    plan = """
    PLAN walk { INPUT: pages (n number) OUTPUT: seen MAX_DEPTH: 4 stop ONCE: "n" BODY {
        project (pages, "n + 2 as n" : plus)
        project (pages, "n * 3 as n" : times)
        walk (plus : first)
        walk (times : second)
        union (pages, first, second : seen) {ALL}
    } }
    """
    wanted, level = {1}, {1}
    for _ in range(3):
        level = {number for n in level for number in (n + 2, n * 3)}
        wanted |= level
    for seed in range(5):
        assert numbers_of(plan, [{"n": 1}], mode, seed) == sorted(wanted)


def test_a_deep_recursion_with_both_goes_level_by_level_in_linear_time() -> None:
    assert len(numbers_of(COUNTING.replace("3 stop", "20000 stop"), [{"n": 0}])) == 20_000


def test_limit_ends_a_recursion_whose_levels_wait() -> None:
    plan = (
        crawl('MAX_DEPTH: 50 stop\nONCE: "url"')
        + """
    PLAN first { INPUT: pages OUTPUT: some BODY { crawl (pages : found) limit (found, 2 : some) } }
    """
    )
    for seed in range(10):
        found = run_plan(loads(plan, plan="first"), seed=seed, pages=[{"url": "A"}])
        assert len(found) == 2


# --- ONCE ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_outermost_call_works_on_a_value_once(mode: Mode) -> None:
    plan = crawl('ONCE: "url"')
    start = [{"url": "D"}, {"url": "A"}, {"url": "D"}]
    assert urls(plan, start=start, mode=mode) == "ABCDEF"
    arrivals = late((0, {"url": "A"}), (100, {"url": "F"}), (1, {"url": "G"}))
    assert urls(plan, start=arrivals, mode=mode) == "ABCDEFG"


@pytest.mark.parametrize("mode", MODES)
def test_a_call_from_outside_works_on_a_value_once(mode: Mode) -> None:
    plan = crawl('ONCE: "url"') + "PLAN main { INPUT: pages OUTPUT: out BODY { crawl (pages : out) } }"
    start = late((0, {"url": "A"}), (0, {"url": "A"}), (100, {"url": "F"}))
    found = run_plan(loads(plan, plan="main"), mode=mode, pages=start)
    assert "".join(sorted(record["url"] for record in found)) == "ABCDEF"


def test_each_call_from_outside_is_a_recursion_of_its_own() -> None:
    plan = (
        crawl('ONCE: "url"')
        + """
    PLAN main { INPUT: pages OUTPUT: out BODY {
        crawl (pages : one) crawl (pages : two) union (one, two : out) {ALL}
    } }"""
    )
    found = run_plan(loads(plan, plan="main"), pages=[{"url": "D"}])
    assert Counter(record["url"] for record in found) == {"D": 2, "F": 2}


CIRCLE = """
    PLAN circle { INPUT: places (n number, a char) OUTPUT: all ONCE: "KEYS" BODY {
        project (places, "(n + 1) % 3 as n, a" : next)
        circle (next : rest)
        union (places, rest : all) {ALL}
    } }
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(
    ("keys", "count"),
    [("n, a", 9), ("n", 3), ("n, lower(a)", 6), ("lower(a)", 2), ("n % 2, a", 6), ("`n`, upper(a)", 6)],
)
def test_once_takes_several_attributes_and_expressions(
    mode: Mode, inline: bool, keys: str, count: int
) -> None:
    plan = CIRCLE.replace("KEYS", keys)
    if not inline:
        plan = plan.replace("circle (next", "distinct (next : more) circle (more")
    places = [{"n": 0, "a": "x"}, {"n": 0, "a": "X"}, {"n": 1, "a": "y"}]
    assert len(run_plan(plan, mode=mode, places=places)) == count


def test_null_is_a_value_of_once_like_any_other() -> None:
    plan = CIRCLE.replace("KEYS", "a")
    assert len(run_plan(plan, places=[{"n": 0, "a": None}, {"n": 1, "a": None}])) == 1


# --- inputs that are handed down ----------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_an_input_that_is_only_handed_down_does_not_unfold_a_call(mode: Mode) -> None:
    plan = """
    PLAN reach { INPUT: pages (n number), edges (a number, b number) OUTPUT: seen BODY {
        join (pages, edges, "left.n = right.a" : found)
        project (found, "b as n" : next)
        reach (next, edges : rest)
        union (pages, rest : seen) {ALL}
    } }
    """
    edges = [{"a": n, "b": n + 1} for n in range(5)]
    found = run_plan(plan, mode=mode, pages=[{"n": 0}], edges=edges)
    assert sorted(record["n"] for record in found) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("mode", MODES)
def test_an_input_is_handed_down_through_another_plan_as_well(mode: Mode) -> None:
    """The first input is handed to the other plan unchanged too, but it comes back changed."""
    plan = """
    PLAN reach { INPUT: pages (n number), edges (a number, b number) OUTPUT: seen ONCE: "n" BODY {
        follow (pages, edges : rest)
        union (pages, rest : seen) {ALL}
    } }
    PLAN follow { INPUT: pages (n number), edges (a number, b number) OUTPUT: seen BODY {
        join (pages, edges, "left.n = right.a" : found)
        project (found, "b as n" : next)
        reach (next, edges : seen)
    } }
    """
    edges = [{"a": n, "b": (n + 1) % 4} for n in range(4)]
    found = run_plan(loads(plan, plan="reach"), mode=mode, pages=[{"n": 0}], edges=edges)
    assert sorted(record["n"] for record in found) == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", MODES)
def test_once_does_not_look_at_what_is_handed_down(mode: Mode) -> None:
    plan = """
    PLAN reach { INPUT: pages (n number), known (n number) OUTPUT: seen ONCE: "n" BODY {
        join (pages, known, "left.n = right.n" : found)
        project (found, "n + 1 as n" : next)
        reach (next, known : rest)
        union (pages, rest : seen) {ALL}
    } }
    """
    known = [{"n": n} for n in range(4)]
    found = run_plan(plan, mode=mode, pages=[{"n": 0}], known=known)
    assert sorted(record["n"] for record in found) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_gets_nothing_else_never_unfolds(mode: Mode) -> None:
    plan = "PLAN p { INPUT: a OUTPUT: out BODY { p (a : rest) union (a, rest : out) {ALL} } }"
    assert len(run_plan(plan, mode=mode, a=[{"n": 1}])) == 1


# --- deadness through calls ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "body",
    [
        'aggregate (dead, "count() as n" : out) {RELATION: false} log (alive)',
        "inner (alive, dead : out)",
    ],
)
def test_a_call_passes_deadness_on_input_by_input(mode: Mode, body: str) -> None:
    plan = f"""
    PLAN main {{ INPUT: alive OUTPUT: out BODY {{
        null (alive, alive, alive : dead, _)
        {body}
    }} }}
    PLAN inner {{ INPUT: alive, dead OUTPUT: out BODY {{
        aggregate (dead, "count() as n" : out) {{RELATION: false}} log (alive)
    }} }}
    """
    assert len(run_plan(loads(plan, plan="main"), mode=mode, alive=[{"n": 1}])) == 0


# --- depth --------------------------------------------------------------------------------------


@operator(name="recursion_ask", schema=same_as_input, outside=True)
async def ask(rows: Stream) -> AsyncGenerator[Row, None]:
    """Stand in for an operator that waits on the outside world for each tuple."""
    async for row in rows:
        await asyncio.sleep(0)
        yield row


ENDLESS = """
    PLAN pages { INPUT: x OUTPUT: out HEADER BODY {
        STATEMENT
        project (asked, "n + 1 as n" : next)
        pages (next : rest)
        union (x, rest : out) {ALL}
    } }
"""


def endless(header: str = "", statement: str = "recursion_ask (x : asked)") -> str:
    return ENDLESS.replace("HEADER", header).replace("STATEMENT", statement)


def reach_bottom(plan: str, max_depth: int | None = None) -> int:
    async def main() -> int:
        async with Engine() if max_depth is None else Engine(max_depth=max_depth) as engine:
            return len(await engine.run(loads(plan, plan="pages"), x=[{"n": 0}]))

    return run(main())


def test_a_recursion_over_the_outside_world_without_a_bound_ends_with_an_error() -> None:
    with pytest.raises(DepthError, match=r"the recursion of pages went past 10,000 levels") as caught:
        reach_bottom(endless())
    assert "MAX_DEPTH" in str(caught.value)
    assert "ONCE" in str(caught.value)


def test_the_bound_of_such_recursions_can_be_set() -> None:
    with pytest.raises(DepthError, match="the recursion of pages went past 7 levels"):
        reach_bottom(endless(), 7)
    with pytest.raises(InputError, match="max_depth must be at least 1, not 0"):
        Engine(max_depth=0)


@pytest.mark.parametrize("name", ["wrapper", "dbquery"])
def test_operators_of_the_library_that_ask_the_outside_world(name: str) -> None:
    found = load_operators().get(name)
    assert found is not None
    assert found.has("outside", {})


def test_a_function_that_waits_asks_the_outside_world() -> None:
    with pytest.raises(DepthError, match="the recursion of pages went past 7 levels"):
        reach_bottom(endless(statement='apply (x, "recursion_page" : found) project (found, "n" : asked)'), 7)


def test_a_statement_of_a_called_plan_counts_as_well() -> None:
    plan = endless(statement="helper (x : asked)")
    plan += "PLAN helper { INPUT: a OUTPUT: b BODY { recursion_ask (a : b) } }"
    with pytest.raises(DepthError, match="the recursion of pages went past 7 levels"):
        reach_bottom(plan, 7)


@pytest.mark.parametrize("header", ["MAX_DEPTH: 20 stop", 'ONCE: "n"'])
def test_a_recursion_with_a_bound_of_its_own_has_no_other(header: str) -> None:
    plan = endless(header, 'recursion_ask (x : all) select (all, "n < 19" : asked)')
    assert reach_bottom(plan, 7) == 20


def test_a_plain_recursion_has_no_bound() -> None:
    plan = endless(statement='distinct (x : all) select (all, "n < 19" : asked)')
    assert reach_bottom(plan, 7) == 20


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inline", [True, False])
def test_a_recursion_that_is_cut_off_says_so(mode: Mode, inline: bool) -> None:
    plan = COUNTING if inline else COUNTING.replace("count_up (next", "distinct (next : more) count_up (more")
    result = run_plan(plan, mode=mode, pages=[{"n": 1}, {"n": 10}, {"n": 11}])
    (warning,) = result.warnings
    assert warning.startswith("<plan>:4:")
    assert "MAX_DEPTH: 3 cut the recursion of count_up off: 2 tuples were not followed" in warning
    assert run_plan(COUNTING, mode=mode, pages=[]).warnings == ()


# --- early ends ---------------------------------------------------------------------------------


class Requests:
    """How many tuples recursion_page saw."""

    count = 0


@function(name="recursion_page", pure=True, returns="to number")
async def page(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A page with three links."""
    Requests.count += 1
    await asyncio.sleep(1)
    return [{"to": 3 * row["n"] + place} for place in range(3)]


def requests_for_twenty(taken: str, more: str = "") -> int:
    """How many pages are asked for until a limit has 20 rows of a recursion."""
    plan = f"""
    PLAN main {{ INPUT: start (n number) OUTPUT: some BODY {{
        crawl (start : {taken})
        limit (found, 20 : some)
        {more}
    }} }}
    PLAN crawl {{ INPUT: pages (n number) OUTPUT: seen, failed, pairs MAX_DEPTH: 7 stop BODY {{
        apply (pages, "recursion_page" : found) {{ERRORS: wrong; WORKERS: 4}}
        project (found, "to as n" : next)
        crawl (next : rest, worse, others)
        union (pages, rest : seen) {{ALL}}
        union (wrong, worse : failed) {{ALL}}
        pass_on (found : passed)
        union (passed, others : pairs) {{ALL}}
    }} }}
    PLAN pass_on {{ INPUT: a OUTPUT: b BODY {{ distinct (a : b) }} }}
    """
    Requests.count = 0
    assert len(run_plan(loads(plan, plan="main"), start=[{"n": 1}])) == 20
    return Requests.count


@pytest.mark.parametrize("taken", ["found", "found, _", "found, _, _"])
def test_limit_stops_a_recursion_some_of_whose_outputs_nobody_takes(taken: str) -> None:
    assert requests_for_twenty(taken) < 40


def test_limit_does_not_stop_what_feeds_an_effect() -> None:
    assert requests_for_twenty("found, bad", "log (bad)") > 1000


# --- mistakes -----------------------------------------------------------------------------------


@operator(name="recursion_ticks", schema=attributes(n="number"), endless=True)
async def ticks() -> AsyncGenerator[Row, None]:
    """Number seconds for ever."""
    number = 0
    while True:
        await asyncio.sleep(1)
        yield (number,)
        number += 1


def mistakes(text: str, plan: str | None = None) -> list[str]:
    with pytest.raises(PlanError) as caught:
        run_plan(loads(text, name="p.plan", plan=plan))
    return [str(diagnostic).partition("\n")[0] for diagnostic in caught.value.diagnostics]


def test_once_and_max_depth_on_an_endless_input_are_a_mistake() -> None:
    text = """PLAN main { OUTPUT: out BODY {
        recursion_ticks (: n)
        passed_on (n : all)
        count_up (all : out)
    } }
    PLAN passed_on { INPUT: a OUTPUT: b BODY { select (a, "n > 0" : b) } }
    """
    (mistake,) = mistakes(text + COUNTING, "main")
    assert mistake.startswith("p.plan:4:19: 'all' never ends")
    assert "count_up" in mistake
    assert run_plan(text.replace("count_up (all", "limit (all, 2 : few) count_up (few") + COUNTING)


def test_a_recursive_call_that_reads_another_ones_results_has_no_level() -> None:
    text = COUNTING.replace(
        "count_up (next : rest)", "count_up (next : first)\n        count_up (first : rest)"
    )
    (mistake,) = mistakes(text)
    assert mistake.startswith("p.plan:5:9: ")
    assert "ONCE" in mistake
    assert "MAX_DEPTH" in mistake


def test_commit_on_a_called_plan_is_a_mistake() -> None:
    text = """PLAN main { INPUT: a BODY { keep (a) } }
    PLAN keep {
        INPUT: a
        COMMIT: batch
        BODY { log (a) }
    }"""
    (mistake,) = mistakes(text, "main")
    assert mistake.startswith("p.plan:4:9: ")
    assert "main" in mistake
    alone = loads(text, plan="keep")
    assert not run_plan(alone, a=[{"n": 1}]).outputs


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("statement", ['project (more, "n - 1 as n" : next)', "distinct (less : next)"])
def test_a_recursion_whose_levels_give_nothing_of_their_own_ends_dead(mode: Mode, statement: str) -> None:
    text = f"""
    PLAN down {{ INPUT: top (n number) OUTPUT: rest BODY {{
      select (top, "n > 0" : more) project (more, "n - 1 as n" : less) {statement} down (next : rest)
    }} }}
    PLAN main {{ INPUT: x (n number) OUTPUT: out BODY {{
      down (x : nothing) aggregate (nothing, "count() as k" : out)
    }} }}
    """
    assert len(run_plan(loads(text, plan="main"), mode=mode, x=[{"n": 3}])) == 0
