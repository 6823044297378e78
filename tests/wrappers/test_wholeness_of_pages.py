"""What wrappers say of their results: pages that prove that they have no items, and what limits took away."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, Result, Schema, Stream, loads, operator
from aioflow.relation import Row
from aioflow.testing import Answer, ScriptedSite, run_plan
from aioflow.web import Client, Request
from aioflow.wrappers import resolve

SITE = "http://homes.example"


@operator(schema=lambda inputs, settings: Schema.of("rows", "proven", "whole"), firing="end")
async def page_marks(rel: Stream) -> AsyncGenerator[Row, None]:
    """Give the marks of a relation."""
    rows = [row async for row in rel]
    yield (len(rows), rel.marks.proven_empty, rel.marks.is_whole)


def plan(wrapper: str, options: str = "") -> str:
    return f"""
    WRAPPER w (page) {{ GET: "http://homes.example/{{page}}"; {wrapper} }}
    PLAN p
    {{
      INPUT: x OUTPUT: out
      BODY {{ wrapper ("w", x : found) {options} page_marks (found : out) }}
    }}"""


def looked(
    wrapper: str, *pages: Any, options: str = "", kind: str = "text/html", **tables: Any
) -> tuple[Any, Result]:
    """Rows, proof and wholeness of a wrapper's results for these pages, one for each tuple."""
    answers = {
        f"{SITE}/{number}": Answer(each, 200, {"Content-Type": kind}) if isinstance(each, str) else each
        for number, each in enumerate(pages)
    }
    x = [{"page": number} for number in range(len(pages))]
    site = ScriptedSite(answers)
    client = site.client({"http": {"retries": 0}})
    result = run_plan(plan(wrapper, options), services={Client: client}, configuration=tables, x=x)
    return tuple(result[0].values()), result


HTML = 'EACH: "li"; EMPTY: ".none"; title: "b"'
PROOFS = [
    (HTML, "<p class=none>", "<li><b>x</b></li><p class=none>", "<p>", "text/html"),
    (
        'READ: xml; EACH: "item"; EMPTY: "none"; a: "a"',
        "<r><none/></r>",
        "<r><item><a>1</a></item><none/></r>",
        "<r/>",
        "text/xml",
    ),
    (
        'READ: xml; EACH: "item"; EMPTY: "count(*) = 1"; a: "a"',
        "<r><x/></r>",
        "<r><item><a>1</a></item></r>",
        "<r/>",
        "text/xml",
    ),
    (
        'READ: xml; EACH: "item"; EMPTY: "//none"; a: "a"; b: page "b"',
        "<r><none/></r>",
        "<r><item><a>1</a></item></r>",
        "<r/>",
        "text/xml",
    ),
    (
        'READ: json; EACH: "items[*]"; EMPTY: "none"; a: char',
        '{"none": true, "items": []}',
        '{"items": [{"a": 1}], "none": true}',
        '{"none": false, "items": []}',
        "application/json",
    ),
    (
        'READ: json; EACH: "items[*]"; EMPTY: "items"; a: char',
        '{"items": []}',
        '{"items": [{"a": 1}]}',
        '{"itms": []}',
        "application/json",
    ),
    (
        'READ: json; EACH: "items[*]"; EMPTY: "$[?@ == 0]"; a: char',
        '{"items": [], "n": 0}',
        '{"items": [{"a": 1}], "n": 0}',
        '{"items": [], "n": 1}',
        "application/json",
    ),
    (
        'READ: text; EACH: "item (?P<n>.)"; EMPTY: "no (results|items)"; n: number',
        "no items",
        "item 1, no items",
        "an error",
        "text/plain",
    ),
    (
        'READ: text lines; EACH: "item (?P<n>.)"; EMPTY: "^no items$"; n: number',
        "sorry\nno items\n",
        "item 1\nno items\n",
        "an error",
        "text/plain",
    ),
]


@pytest.mark.parametrize(("wrapper", "empty", "full", "broken", "kind"), PROOFS)
def test_a_page_without_items_that_matches_is_proven_to_be_empty(
    wrapper: str, empty: str, full: str, broken: str, kind: str
) -> None:
    found, result = looked(wrapper, empty, kind=kind)
    assert found == (0, True, True)
    assert (result.statistics.nothing_found, result.warnings) == ((), ())
    found, result = looked(wrapper, full, kind=kind)
    assert found[1:] == (False, True)
    assert found[0] > 0
    found, result = looked(wrapper, broken, kind=kind)
    assert found == (0, False, False)
    assert len(result.statistics.nothing_found) == 1


def test_a_status_proves_it_as_well() -> None:
    found, result = looked('EACH: "li"; EMPTY: 404, ".none"; title: "b"', 404, "<p class=none>")
    assert (found, result.warnings) == ((0, True, True), ())


def test_a_proof_is_one_for_all_pages_or_none() -> None:
    assert looked(HTML, "<p class=none>", "<p>")[0] == (0, False, False)
    assert looked(HTML, "<p class=none>", "<li><b>x</b></li>")[0] == (1, False, True)


def test_a_page_that_is_proven_to_be_empty_is_no_page_without_rows(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "database": {"default": {"url": f"sqlite:{tmp_path / 'own.db'}"}},
        "http": {"health": True},
    }
    full = "<li><b>x</b></li>" * 6
    assert looked(HTML, full, full, **tables)[0] == (12, False, True)
    found, result = looked(HTML, "<p class=none>", "<p class=none>", **tables)
    assert (found, result.warnings) == ((0, True, True), ())
    found, result = looked(HTML, "<p>", "<p class=none>", **tables)
    assert found == (0, False, False)


def test_rows_that_outer_makes_of_a_proven_page_are_right() -> None:
    found, result = looked(HTML, "<p class=none>", options="{OUTER}")
    assert (found, result.warnings) == ((1, True, True), ())
    found, result = looked(f'OUTER; {HTML}; total: page "h1"', "<h1>0</h1><p class=none>")
    assert (found, result.warnings) == ((1, True, True), ())


def test_like_brings_empty_and_none_takes_it_back() -> None:
    text = f"""
    WRAPPER base {{ GET: "http://homes.example/"; {HTML} }}
    WRAPPER same LIKE base {{ }}
    WRAPPER other LIKE base {{ EMPTY: 410 }}
    WRAPPER bare LIKE base {{ EMPTY: none }}
    PLAN p {{ BODY {{ }} }}"""
    program = loads(text)
    found = {name: resolve(name, program) for name in ("same", "other", "bare")}
    assert [found[name].extraction.empty for name in found] == [(".none",), (), ()]
    assert [found[name].request.empty for name in found] == [(), (410,), ()]


async def test_an_extraction_with_empty_is_read_in_a_process_as_well() -> None:
    client = ScriptedSite(lambda _: "<p class=none>" + "<i>x</i>" * 200_000).client()
    async with client, Engine(services={Client: client}) as engine:
        result = await engine.run(loads(plan(HTML)), x=[{"page": 0}])
    assert tuple(result[0].values()) == (0, True, True)


# --- limits ---------------------------------------------------------------------------------------


def endless(request: Request) -> str:
    number = int(request.url.rpartition("=")[2] if "=" in request.url else 1)
    return f"<li><b>{number}</b></li><a class=next href=/0?n={number + 1}>"


PAGED = 'EACH: "li"; n: "b" number; PAGING: next "a.next @href"'


def walked(wrapper: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Result]:
    monkeypatch.setattr("aioflow.wrappers.inheritance.MOST_PAGES", 5)
    client = ScriptedSite(endless).client()
    result = run_plan(plan(wrapper), services={Client: client}, x=[{"page": 0}])
    return tuple(result[0].values()), result


def test_a_bound_that_nobody_stated_makes_the_results_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    found, result = walked(PAGED, monkeypatch)
    assert found == (5, False, False)
    assert any("w stopped after 5 pages; MAX_PAGES says" in warning for warning in result.warnings)
    assert result.statistics.steps[0].counters["pages cut"] == 1


def test_a_bound_that_the_wrapper_states_defines_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found, result = walked(f"{PAGED}; MAX_PAGES: 3", monkeypatch)
    assert found == (3, False, True)
    assert result.statistics.steps[0].counters["pages cut"] == 1


def test_elements_that_are_left_out_of_a_page_that_is_too_deep_make_it_partial() -> None:
    wrapper = 'EACH: "li"; title: "b"'
    deep = "<div>" * 2000 + "<li><b>x</b></li>" + "</div>" * 2000
    assert looked(wrapper, deep)[0][2] is False
    assert looked(wrapper, "<li><b>x</b></li>")[0] == (1, False, True)


def test_a_line_that_is_too_long_to_be_searched_makes_the_results_partial() -> None:
    wrapper = 'READ: text lines; EACH: "(a|b|c){1,200}x+(d|e){1,200}y (?P<n>.)"; n: number'
    long = "ab " * 3_000_000
    found, result = looked(wrapper, f"abxdy 1\n{long}\n", kind="text/plain")
    assert result.statistics.steps[0].counters["unreadable EACH"] == 1
    assert found == (1, False, False)
