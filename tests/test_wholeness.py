"""Marks: a relation that has ended knows whether rows may be missing or wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from aioflow import AioflowError, Context, Row, loads, operator
from aioflow.authoring.function import function
from aioflow.authoring.operator import attributes
from aioflow.plan import Program
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import run_plan


class GoneError(AioflowError):
    """Says that there is nothing, which is knowledge."""

    means_absence = True


@function(pure=True, returns="page number")
async def marks_fetch(row: Mapping[str, Any]) -> dict[str, Any]:
    """Fails for 13, knows that there is nothing for 404, and takes its time."""
    await asyncio.sleep(row["n"] % 3)
    if row["n"] == 13:
        raise ValueError("it broke")
    if row["n"] == 404:
        raise GoneError("there is none")
    return {"page": row["n"] * 10}


@operator(schema=attributes(n="number"), firing="tuple")
async def marks_once(*, context: Context) -> AsyncGenerator[Row, None]:
    """Has one thing to do, and fails."""
    context.fail((), ValueError("it broke"))
    no_rows: tuple[Row, ...] = ()
    for row in no_rows:
        yield row


GOOD = [{"n": number} for number in (1, 2, 3)]
BAD = [{"n": number} for number in (1, 13, 3)]
FETCH = 'apply (rel, "marks_fetch" : fetched) {ERRORS: failed}\n'


def marks_of(statements: str, mode: Mode, rel: list[dict[str, Any]], output: str = "out") -> str:
    """Return `partial`, `doubtful`, both or `whole`."""
    text = f"PLAN test {{ INPUT: rel OUTPUT: {output} BODY {{ {statements} }} }}"
    return _word(text, mode, output, rel=rel)


def _word(text: str | Program, mode: Mode, output: str, **inputs: Any) -> str:
    marks = run_plan(text, mode=mode, capacity_rows=1, **inputs).statistics.marks.get(output)
    if marks is None:
        return "whole"
    return " ".join(name for name in ("partial", "doubtful") if getattr(marks, name))


CASES = {
    "nothing failed": ('project (fetched, "n" : out)', "partial"),
    "skipped failures": ('apply (rel, "marks_fetch" : out) {ERRORS: skip}', "partial"),
    "the failures themselves": ('project (failed, "n" : out)', "whole"),
    "steps without a task": ('select (fetched, "n > 0" : a) format (a, "{n}" : out)', "partial"),
    "steps with a task": ("distinct (fetched : out)", "partial"),
    "the first of each value": ('distinct (fetched, "n" : out)', "partial"),
    "union": ("union (fetched, fetched : out)", "partial"),
    "intersect": ("intersect (fetched, fetched : out)", "partial"),
    "minus on its left": ('project (fetched, "n" : a) minus (a, rel : out)', "partial"),
    "minus on its right": ('project (fetched, "n" : a) minus (rel, a : out)', "doubtful"),
    "inner join": ('join (rel, fetched, "left.n = right.n" : out)', "partial"),
    "semi join": ('join (rel, fetched, "left.n = right.n" : out) {TYPE: semi}', "partial"),
    "anti join": ('join (rel, fetched, "left.n = right.n" : out) {TYPE: anti}', "doubtful"),
    "left join": ('join (rel, fetched, "left.n = right.n" : out) {TYPE: left}', "doubtful"),
    "right join": ('join (rel, fetched, "left.n = right.n" : out) {TYPE: right}', "partial"),
    "full join": ('join (rel, fetched, "left.n = right.n" : out) {TYPE: full}', "doubtful"),
    "null of nothing": ('select (fetched, "n > 99" : d) null (d, rel, rel : out, _)', "doubtful"),
    "null of something": ("null (fetched, rel, rel : _, out)", "whole"),
    "null that does not take it": (
        'pack (fetched, "all" : a) select (rel, "n > 99" : d) null (d, rel, a : out, _)',
        "whole",
    ),
    "aggregate": ('aggregate (fetched, "count() as c" : out)', "doubtful"),
    "aggregate by": ('aggregate (fetched, "count() as c" : out) {BY: "n"}', "doubtful"),
    "pack": ('pack (fetched, "all" : out)', "doubtful"),
    "after a doubtful one": ('pack (fetched, "all" : a) unpack (a, "all" : out)', "doubtful"),
    "conditions": (
        'select (fetched, "n = 9" : a) format (a, "n > 1" : b) project (b, "text" : c) select (rel, c : out)',
        "doubtful",
    ),
    "sort": ('sort (fetched, "n" : out)', "partial"),
    "the first of what there is": ("limit (fetched, 9 : out)", "doubtful"),
    "some of what there is": ("sample (fetched, 9 : out)", "doubtful"),
    "each with a certain chance": ("sample (fetched : out) {FRACTION: 1}", "partial"),
    "the first of what was sorted": ('sort (fetched, "n" : a) limit (a, 1 : out)', "doubtful"),
    "the first of what was sorted and chosen": (
        'sort (fetched, "n" : a) project (a, "n" : b) distinct (b : c) limit (c, 1 : out)',
        "doubtful",
    ),
    "somebody vouches": ("union (fetched, fetched : out) {WHOLE}", "whole"),
    "somebody vouches without a task": ('select (fetched, "n > 0" : out) {WHOLE}', "whole"),
    "somebody vouches for a part": (
        'distinct (fetched : a) {WHOLE} apply (rel, "marks_fetch" : b) {ERRORS: skip} union (a, b : out)',
        "partial",
    ),
    "a signal that never comes": (
        'select (fetched, "n = 13" : a) distinct (rel : out) {WAIT: a}',
        "partial",
    ),
    "a dead branch": (
        'select (fetched, "n = 13" : a) null (a, rel, rel : _, b) distinct (b : c) union (rel, c : out)',
        "doubtful",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_marks_pass_through_statements(case: str, mode: Mode) -> None:
    statements, expected = CASES[case]
    assert marks_of(FETCH + statements, mode, BAD) == expected
    assert marks_of(FETCH + statements, mode, GOOD) == "whole"


def test_the_first_that_come_are_doubtful_if_something_failed_before() -> None:
    statements = FETCH + "limit (fetched, 1 : out)"
    assert marks_of(statements, "D+S-", BAD) == "doubtful"
    # Now 3 comes at once, and 13 fails later.
    assert marks_of(statements, "D+S+", BAD) == "whole"
    assert marks_of(statements, "D+S+", [{"n": 13}, {"n": 2}]) == "doubtful"


@pytest.mark.parametrize("mode", MODES)
def test_what_is_known_not_to_be_there_is_not_missing(mode: Mode) -> None:
    assert marks_of(FETCH + "distinct (fetched : out)", mode, [{"n": 1}, {"n": 404}]) == "whole"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("rel", "expected"), [(GOOD, "whole"), (BAD, "partial")])
def test_marks_pass_through_calls_and_errors_of_calls(
    mode: Mode, rel: list[dict[str, Any]], expected: str
) -> None:
    inner = 'PLAN inner { INPUT: rel OUTPUT: got BODY { apply (rel, "marks_fetch" : got) } }'
    for call, word in (
        ("inner (rel : out) {ERRORS: failed}", expected),
        ("inner (rel : out) {ERRORS: skip}", expected),
        ("inner (rel : out) {ERRORS: skip; WHOLE}", "whole"),
    ):
        text = f"{inner} PLAN test {{ INPUT: rel OUTPUT: out BODY {{ {call} }} }}"
        marks = run_plan(loads(text, plan="test"), mode=mode, rel=rel).statistics.marks.get("out")
        assert ("whole" if marks is None else "partial") == word


INNER = 'PLAN inner { INPUT: rel OUTPUT: got BODY { project (rel, "n" : a) apply (a, "marks_fetch" : got) } }'


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("rel", "expected"), [(GOOD, "whole"), (BAD, "partial")])
def test_failures_of_a_call_may_be_missing_where_its_input_lacks_rows(
    mode: Mode, rel: list[dict[str, Any]], expected: str
) -> None:
    call = "inner (fetched : got) {ERRORS: out; WHOLE}"
    text = f"{INNER} PLAN test {{ INPUT: rel OUTPUT: out BODY {{ {FETCH} {call} }} }}"
    assert _word(loads(text, plan="test"), mode, "out", rel=rel) == expected


@pytest.mark.parametrize("mode", MODES)
def test_failures_of_a_statement_that_did_not_fire_may_be_missing(mode: Mode) -> None:
    statements = 'apply (rel, "marks_fetch" : got) {ERRORS: out; WAIT: a; WHOLE}'
    assert marks_of(f'{FETCH} select (fetched, "n = 13" : a) {statements}', mode, BAD) == "partial"


@pytest.mark.parametrize("mode", MODES)
def test_vouching_for_a_call_is_vouching_for_its_signals(mode: Mode) -> None:
    call = "inner (fetched : got) {ERRORS: skip; ENABLE: e; WHOLE} distinct (rel : out) {WAIT: e}"
    text = f"{INNER} PLAN test {{ INPUT: rel OUTPUT: out BODY {{ {FETCH} {call} }} }}"
    assert _word(loads(text, plan="test"), mode, "out", rel=[{"n": 13}]) == "whole"
    vouched = text.replace("; WHOLE", "")
    assert _word(loads(vouched, plan="test"), mode, "out", rel=[{"n": 13}]) == "partial"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("body", ['select (x, "n > 0" : y)', "distinct (x : y)", "distinct (x : y) log (x)"])
def test_vouching_for_a_call_counts_in_the_call_that_reads_it(mode: Mode, body: str) -> None:
    other = f"PLAN other {{ INPUT: x OUTPUT: y BODY {{ {body} }} }}"
    calls = "inner (rel : got) {ERRORS: skip; WHOLE} other (got : out)"
    text = f"{INNER} {other} PLAN test {{ INPUT: rel OUTPUT: out BODY {{ {calls} }} }}"
    assert _word(loads(text, plan="test"), mode, "out", rel=BAD) == "whole"


COUNTDOWN = """
PLAN countdown
{
  INPUT: rel
  OUTPUT: out
  BODY
  {
    apply (rel, "marks_fetch" : here) {ERRORS: skip}
    select (rel, "n > 1" : more)
    project (more, "n - 1 as n" : less)
    countdown (less : rest)
    union (here, rest : out) {ALL}
  }
}
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("start", "expected"), [(12, "whole"), (15, "partial")])
def test_marks_pass_through_a_recursion(mode: Mode, start: int, expected: str) -> None:
    assert _word(COUNTDOWN, mode, "out", rel=[{"n": start}]) == expected


@pytest.mark.parametrize("mode", MODES)
def test_a_recursion_that_lacks_the_tuple_to_go_on_with_is_partial(mode: Mode) -> None:
    text = COUNTDOWN.replace("select (rel,", "select (here,").replace("ERRORS: skip", "ERRORS: f")
    assert _word(text, mode, "out", rel=[{"n": 15}]) == "partial"
    assert _word(text, mode, "out", rel=[{"n": 12}]) == "whole"


def test_the_account_says_why() -> None:
    text = f'PLAN test {{ INPUT: rel OUTPUT: out BODY {{ {FETCH} minus (rel, fetched : out) {{ON: "n"}} }} }}'
    warnings = run_plan(text, rel=BAD).statistics.warnings
    assert any("minus: its results may be wrong" in each and "it broke" in each for each in warnings)
    assert any("output out may be wrong" in each and "a tuple failed" in each for each in warnings)


@pytest.mark.parametrize("errors", ["skip", "failed"])
def test_a_statement_of_which_every_tuple_failed_unasked_has_found_nothing(errors: str) -> None:
    statement = f'apply (rel, "marks_fetch" : out) {{ERRORS: {errors}}}'
    text = f"PLAN test {{ INPUT: rel OUTPUT: out BODY {{ {statement} }} }}"
    found = run_plan(text, rel=[{"n": 13}, {"n": 13}]).statistics.nothing_found
    assert len(found) == 1
    assert "all 2 tuples failed, the first: ValueError: it broke" in found[0]
    assert run_plan(text, rel=BAD).statistics.nothing_found == ()
    assert run_plan(text, rel=[]).statistics.nothing_found == ()


def test_failures_that_somebody_asked_for_are_found() -> None:
    statement = 'apply (rel, "marks_fetch" : out) {ERRORS: failed}'
    text = f"PLAN test {{ INPUT: rel OUTPUT: out, failed BODY {{ {statement} }} }}"
    assert run_plan(text, rel=[{"n": 13}]).statistics.nothing_found == ()


def test_a_statement_without_input_that_failed_unasked_has_found_nothing() -> None:
    text = "PLAN test { OUTPUT: out BODY { marks_once (: out) {ERRORS: skip} } }"
    (found,) = run_plan(text).statistics.nothing_found
    assert "all there was to do failed" in found


def test_failures_that_a_call_skips_are_counted() -> None:
    inner = 'PLAN inner { INPUT: rel OUTPUT: got BODY { apply (rel, "marks_fetch" : got) } }'
    text = f"{inner} PLAN test {{ INPUT: rel OUTPUT: out BODY {{ inner (rel : out) {{ERRORS: skip}} }} }}"
    warnings = run_plan(loads(text, plan="test"), rel=BAD).statistics.warnings
    assert any("inner: 1 failure was skipped, the first: ValueError: it broke" in each for each in warnings)
