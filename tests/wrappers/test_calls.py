"""Wrappers called for tuples: what they send and give, over a scripted network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioflow import Engine, PlanError, Result, RunError, loads
from aioflow.errors import SettingError
from aioflow.testing import Answer, ScriptedSite, run_plan
from aioflow.web import Client
from aioflow.wrappers import Web, wrapper

SITE = "http://homes.example"
QUIET = {"http": {"health": False, "retries": 0}}


def called(text: str, site: ScriptedSite, *rows: Any, clauses: str = "", inputs: str = "x") -> Result:
    """What a wrapper, the first of a text, gives for tuples."""
    name = text.split()[1]
    plan = f'PLAN p {{ INPUT: {inputs} OUTPUT: out BODY {{ wrapper ("{name}", x : out) {{{clauses}}} }} }}'
    return run_plan(f"{text}\n{plan}", network=site, configuration=QUIET, x=rows)


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


# --- types of inputs ----------------------------------------------------------------------------

TYPED = """
WRAPPER typed (n number, day date optional)
{
  GET: "http://homes.example/{n}{?day}"
  title: "h1"
}
"""


def test_an_input_of_another_type_is_an_error_of_its_tuple() -> None:
    site = ScriptedSite({f"{SITE}/7": "<h1>Seven</h1>"})
    result = called(
        TYPED, site, {"n": "abc"}, {"n": "7"}, {"n": 7, "day": "2024-02-30"}, clauses="ERRORS: skip"
    )
    assert [dict(row) for row in result] == [{"n": "7", "day": None, "title": "Seven"}]
    assert site.urls == [f"{SITE}/7"]
    with pytest.raises(RunError, match="the input 'n' must be a number, not 'abc'"):
        called(TYPED, site, {"n": "abc"})


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("n relation", "wrapper 'typed' needs the attribute 'n' as a number, and it is a relation"),
        ("n boolean", "wrapper 'typed' needs the attribute 'n' as a number, and it is a boolean"),
        ("n number, day number", "wrapper 'typed' needs the attribute 'day' as a date, and it is a number"),
    ],
)
def test_a_type_that_cannot_fit_is_a_mistake_of_the_plan(declared: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        called(TYPED, ScriptedSite({}), inputs=f"x ({declared})")
    assert message in str(caught.value)


@pytest.mark.parametrize("declared", ["n char, day char", "n number, day date", "n, day"])
def test_texts_and_unknown_types_are_no_mistakes(declared: str) -> None:
    assert list(called(TYPED, ScriptedSite({}), inputs=f"x ({declared})")) == []


# --- wrappers in Python -------------------------------------------------------------------------


def answering(answer: Any, **settings: Any) -> Any:
    """A wrapper function that gives this."""

    @wrapper(**{"inputs": "n number", "returns": "h number, t char", "name": "python_answering", **settings})
    async def function(web: Web, n: object) -> Any:
        return answer

    return function


def python_rows(*rows: Any) -> list[dict[str, Any]]:
    plan = 'PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("python_answering", x : out) } }'
    return [dict(row) for row in run_plan(plan, configuration=QUIET, x=rows)]


def test_what_a_function_gives_is_read_as_declared() -> None:
    answering([{"h": " 5 ", "t": 7}, {"h": None}])
    assert python_rows({"n": 1}) == [{"n": 1, "h": 5, "t": "7"}, {"n": 1, "h": None, "t": None}]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"h": "text"}, "wrapper 'python_answering': the attribute 'h' must be a number, not 'text'"),
        ({"h": {"a": 1}}, "wrapper 'python_answering': the attribute 'h' must be a number, not a document"),
        ({"x": 1}, "wrapper 'python_answering': unknown attribute 'x' (there are: h, t)"),
        ({"t": {1}}, "wrapper 'python_answering': a value of type 'set' cannot be carried"),
        (5, "wrapper 'python_answering' must give a mapping, None, or a list of mappings, not 5"),
        ("ab", "wrapper 'python_answering' must give a mapping, None, or a list of mappings, not 'ab'"),
        ([5], "wrapper 'python_answering' must give mappings, not 5"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_names_the_wrapper(answer: object, message: str) -> None:
    answering(answer)
    with pytest.raises(RunError) as caught:
        python_rows({"n": 1})
    assert message in str(caught.value)


def test_a_generator_that_gives_no_mappings_is_named() -> None:
    @wrapper(returns="h number", name="python_yielding")
    async def function(web: Web) -> AsyncIterator[Any]:
        yield {"h": 1}
        yield 5

    plan = 'PLAN p { OUTPUT: out BODY { wrapper ("python_yielding" : out) } }'
    with pytest.raises(RunError, match="wrapper 'python_yielding' must give mappings, not 5"):
        run_plan(plan, configuration=QUIET)


def test_inputs_of_a_function_are_read_as_declared() -> None:
    @wrapper(inputs="n number, d date", optional="d", returns="kind char", name="python_typed_inputs")
    async def function(web: Web, n: Any, d: Any) -> Any:
        return {"kind": f"{type(n).__name__} {d}"}

    plan = 'PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("python_typed_inputs", x : out) } }'
    (row,) = run_plan(plan, configuration=QUIET, x=[{"n": "5"}])
    assert row["kind"] == "int None"
    with pytest.raises(RunError, match="the input 'd' must be a date, not 'soon'"):
        run_plan(plan, configuration=QUIET, x=[{"n": 5, "d": "soon"}])


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        (
            {"inputs": "n numbr"},
            SettingError,
            "wrapper 'python_answering': unknown type 'numbr' in inputs 'n numbr'; did you mean 'number'?",
        ),
        (
            {"returns": "h number number"},
            SettingError,
            "wrapper 'python_answering', returns: cannot read attributes 'h number number'",
        ),
        ({"returns": ""}, SettingError, "wrapper 'python_answering', returns: cannot read attributes ''"),
        ({"returns": 5}, TypeError, "wrapper 'python_answering': returns must be a text"),
        (
            {"inputs": "n number, m char"},
            TypeError,
            "wrapper 'python_answering' is called as (web, n, m) and takes (web: ",
        ),
        ({"inputs": ""}, TypeError, "wrapper 'python_answering' is called as (web) and takes (web: "),
    ],
)
def test_a_registration_that_makes_no_sense_is_refused(
    settings: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        answering(None, **settings)
    assert str(caught.value).startswith(message)


# --- pages that take too long -------------------------------------------------------------------


def deep_page_read(selector: str, **http: Any) -> list[Any]:
    text = f'WRAPPER deep {{ GET: "http://homes.example/"; title: "{selector}" }}'
    plan = loads(f'{text}\nPLAN p {{ OUTPUT: out BODY {{ wrapper ("deep" : out) }} }}')
    site = ScriptedSite({f"{SITE}/": "<div>" * 450 + "<p>x</p>"})
    settings = {"http": {**QUIET["http"], **http}}

    async def main() -> list[Any]:
        async with Engine(services={Client: site.client(settings)}, configuration=settings) as engine:
            return [row["title"] async for row in engine.stream(plan)]

    return asyncio.run(main())


def test_a_page_that_makes_selectors_slow_is_given_up() -> None:
    with pytest.raises(RunError, match=r"homes\.example/: the page was not read within 0\.5 seconds; try"):
        deep_page_read("b div div div div div p", read_seconds=0.5)


def test_a_deep_page_is_read_in_a_process() -> None:
    assert deep_page_read("div div div div p") == ["x"]


# --- notes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", ['EACH: "//entry"', 'EACH: "//entry[1]"', ""])
def test_elements_in_a_namespace_that_nobody_names_are_noted(each: str) -> None:
    text = f'WRAPPER feed {{ GET: "http://homes.example/"; READ: xml; {each}; title: "title" }}'
    page = '<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>x</title></entry></feed>'
    site = ScriptedSite({f"{SITE}/": Answer(page, headers={"Content-Type": "application/atom+xml"})})
    note = (
        "nothing was found: its elements are in the namespace 'http://www.w3.org/2005/Atom'; "
        "say READ: xml strip-namespaces"
    )
    assert counters(called(text, site, {"n": 1}))[note] == 1
    named = text.replace("READ: xml", 'READ: xml namespace "a" "http://www.w3.org/2005/Atom"')
    assert counters(called(named, site, {"n": 1})) == {}
    stripped = called(text.replace("READ: xml", "READ: xml strip-namespaces"), site, {"n": 1})
    assert counters(stripped) == {}


def test_the_namespace_of_what_is_inside_is_noted() -> None:
    text = 'WRAPPER feed { GET: "http://homes.example/"; READ: xml; EACH: "//item"; title: "title" }'
    page = '<r:RDF xmlns:r="urn:rdf" xmlns="urn:rss"><item><title>x</title></item></r:RDF>'
    counted = counters(called(text, ScriptedSite({f"{SITE}/": page}), {"n": 1}))
    assert (
        "nothing was found: its elements are in the namespace 'urn:rss'; say READ: xml strip-namespaces"
        in counted
    )
    plain = ScriptedSite({f"{SITE}/": '<rss xmlns:a="urn:a"><channel/></rss>'})
    assert not any("namespace" in note for note in counters(called(text, plain, {"n": 1})))


@pytest.mark.parametrize(
    ("reading", "page", "kind", "note"),
    [
        (
            'EACH: "li"; t: "b"',
            '{"a": 1}',
            "application/json",
            "the page is application/json, and was read as html",
        ),
        (
            't: "b"; s: response status',
            '{"a": 1}',
            "application/json; charset=utf-8",
            "the page is application/json",
        ),
        ('t: "b"; u: page "li" all', "no such image", "image/png", "the page is image/png"),
        (
            'READ: json; EACH: "items"; t: "b"',
            "{}",
            "text/html",
            "the page is text/html, and was read as json",
        ),
        (
            'READ: xml; EACH: "//li"; t: "b"',
            "<p/>",
            "text/html",
            "the page is text/html, and was read as xml",
        ),
    ],
)
def test_a_page_of_another_kind_in_which_nothing_is_found_is_noted(
    reading: str, page: str, kind: str, note: str
) -> None:
    text = f'WRAPPER w {{ GET: "http://homes.example/"; {reading} }}'
    site = ScriptedSite({f"{SITE}/": Answer(page, headers={"Content-Type": kind})})
    (found,) = (each for each in counters(called(text, site, {"n": 1})) if each.startswith("nothing"))
    assert f"nothing was found: {note}" in found


@pytest.mark.parametrize(
    ("reading", "page", "kind"),
    [
        ('EACH: "li"; t: "b"', "<p>", "text/html"),
        ('EACH: "li"; t: "b"', "<p>", "application/octet-stream"),
        ('EACH: "li"; t: "b"', "<p>", ""),
        ('EACH: "li"; t: "b"', "<li><b>x</b>", "application/json"),
        ('t: "b"', "<b>x</b>", "application/json"),
        ('READ: json; EACH: "items"; t: "b"', "{}", "application/vnd.api+json"),
        ('READ: text; EACH: "x"; t: "b"', "{}", "text/html"),
    ],
)
def test_pages_of_the_right_kind_and_those_in_which_something_is_found_are_not_noted(
    reading: str, page: str, kind: str
) -> None:
    text = f'WRAPPER w {{ GET: "http://homes.example/"; {reading} }}'
    site = ScriptedSite({f"{SITE}/": Answer(page, headers={"Content-Type": kind})})
    assert counters(called(text, site, {"n": 1})) == {}
