"""Wrappers called for tuples: what they send and give, over a scripted network."""

from __future__ import annotations

from typing import Any

import pytest

from aioflow import Result
from aioflow.testing import Answer, ScriptedSite, run_plan

SITE = "http://homes.example"
QUIET = {"http": {"health": False, "retries": 0}}


def called(wrapper: str, site: ScriptedSite, *rows: Any, clauses: str = "", inputs: str = "x") -> Result:
    """What a wrapper, the first of a text, gives for tuples."""
    name = wrapper.split()[1]
    plan = f'PLAN p {{ INPUT: {inputs} OUTPUT: out BODY {{ wrapper ("{name}", x : out) {{{clauses}}} }} }}'
    return run_plan(f"{wrapper}\n{plan}", network=site, configuration=QUIET, x=rows)


def counters(result: Result) -> dict[str, int]:
    (step,) = result.statistics.steps
    return dict(step.counters)


# --- answers without items ----------------------------------------------------------------------


OUTER = """
WRAPPER gone (page)
{{
  GET: "http://homes.example/list{{?page}}"
  EMPTY: 404
  OUTER
  {reading}
  status: response status
  size: response header "X-Size" number
  source: = "homes"
}}
"""


@pytest.mark.parametrize(
    "reading",
    [
        'EACH: "li"; title: "b" required; total: page "h1"',
        'title: "b"; total: page "h1"',
        'READ: json; EACH: "items[*]"; title: "b"; total: "c"',
        'EACH: "li"; title: "b"; total: page "h1"; PAGING: next "a.next @href"',
        'READ: csv; title: "1"; total: "2"',
    ],
)
def test_an_empty_answer_gives_one_tuple_with_outer(reading: str) -> None:
    site = ScriptedSite({f"{SITE}/list?page=7": Answer("no <b>such</b> page", 404, {"X-Size": "many"})})
    result = called(OUTER.format(reading=reading), site, {"page": 7})
    nulls = {"title": None, "total": None, "size": None}
    assert [dict(row) for row in result] == [{"page": 7, **nulls, "status": 404, "source": "homes"}]
    assert counters(result)["unreadable size"] == 1


def test_an_empty_answer_behind_other_pages_adds_nothing() -> None:
    page = "<li><b>One</b></li><a class=next href=/gone>next</a>"
    reading = 'EACH: "li"; title: "b"; PAGING: next "a.next @href"'
    result = called(OUTER.format(reading=reading), ScriptedSite({f"{SITE}/list?page=1": page}), {"page": 1})
    assert [row["title"] for row in result] == ["One"]


def test_an_empty_answer_gives_no_tuple_without_outer() -> None:
    text = OUTER.format(reading='EACH: "li"; title: "b"').replace("OUTER\n", "\n")
    assert list(called(text, ScriptedSite({}), {"page": 1})) == []
