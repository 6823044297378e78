"""wrapper: requests for tuples, pages made into tuples, on a virtual clock over a scripted network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeAlias

import pytest

from aioflow import AioflowError, Engine, PlanError, Result, RunError, loads
from aioflow.testing import Answer, ScriptedSite, run, run_plan
from aioflow.testing.scripted import AnyAnswer
from aioflow.web import Client, Request
from aioflow.web.errors import ConnectionFailedError
from aioflow.wrappers import Web, wrapper
from tests.web.scripted import Chunks

Pages: TypeAlias = Mapping[str, AnyAnswer] | Callable[[Request], AnyAnswer]

SITE = "http://homes.example"
QUIET = {"http": {"health": False}}

WRAPPERS = """
WRAPPER list (page)
{
  GET: "http://homes.example/list{?page}"
  EACH: "li"
  title: "b"
  price: "i" number
  link: "a @href" url
  next-page: page "a.next @href" url
}

WRAPPER detail (link)
{
  GET: "{+link}"
  address: "h1" required
  beds: ".beds" number
}

WRAPPER api (page char optional)
{
  GET: "http://homes.example/api{?page}"
  READ: json
  EACH: "items[*]"
  id: number
  name: char
}

WRAPPER order (id)
{
  POST: "http://homes.example/order"
  FORM: id
  answer: "p"
}

WRAPPER paged
{
  GET: "http://homes.example/paged"
  EACH: "li"
  n: "b" number
  PAGING: next "a.next @href"
}
"""


def client(respond: Pages, seconds: float = 0.0, **http: Any) -> tuple[Client, ScriptedSite]:
    """A client over a scripted network; polite to nobody unless asked to be."""
    site = ScriptedSite(respond, seconds=seconds)
    return site.client({"http": {"retries": 0, "concurrency": 100, **http}}), site


def pages(**texts: AnyAnswer) -> Mapping[str, AnyAnswer]:
    """Answers by the last part of the path and the query; `__` stands for the question mark."""
    return {f"{SITE}/{name.replace('__', '?').replace('_eq_', '=')}": page for name, page in texts.items()}


def wrapped(
    statements: str, respond: Pages, *, inputs: str = "x", **keywords: Any
) -> tuple[Result, ScriptedSite]:
    plan = f"{WRAPPERS} PLAN p {{ INPUT: {inputs} OUTPUT: out BODY {{ {statements} }} }}"
    http = keywords.pop("http", {})
    seconds = keywords.pop("seconds", 0.0)

    http_client, site = client(respond, seconds, **http)
    result = run_plan(plan, services={Client: http_client}, configuration=QUIET, **keywords)
    return result, site


HOUSES = "<ul><li><b>One</b><i>$ 1,000</i><a href=/h/1>x</a></li><li><b>Two</b><a href=/h/2>x</a></li></ul>"


def test_each_tuple_gets_what_its_page_has() -> None:
    result, site = wrapped('wrapper ("list", x : out)', pages(list__page_eq_1=HOUSES), x=[{"page": 1}])
    assert [dict(row) for row in result] == [
        {"page": 1, "title": "One", "price": 1000, "link": f"{SITE}/h/1", "next-page": None},
        {"page": 1, "title": "Two", "price": None, "link": f"{SITE}/h/2", "next-page": None},
    ]
    assert site.urls == [f"{SITE}/list?page=1"]


def test_an_empty_input_makes_no_request() -> None:
    result, site = wrapped('wrapper ("list", x : out)', pages(), x=[])
    assert list(result) == []
    assert site.urls == []


def test_a_null_input_makes_no_request_and_is_counted() -> None:
    result, site = wrapped(
        'wrapper ("list", x : out)', pages(list__page_eq_1=HOUSES), x=[{"page": None}, {"page": 1}]
    )
    assert len(result) == 2
    assert len(site.urls) == 1
    (step,) = result.statistics.steps
    assert step.counters["null inputs"] == 1


def test_tuples_without_result_are_dropped_unless_outer() -> None:
    respond = pages(list__page_eq_1="<p>nothing</p>")
    rows = [{"page": 1}, {"page": None}]
    assert list(wrapped('wrapper ("list", x : out)', respond, x=rows)[0]) == []
    outer, _ = wrapped('wrapper ("list", x : out) {OUTER}', respond, x=rows)
    assert sorted(str(row["page"]) for row in outer) == ["1", "None"]
    assert all(row["title"] is None for row in outer)


def test_equal_requests_that_are_under_way_are_made_once() -> None:
    rows = [{"page": 1, "n": number} for number in range(5)]
    result, site = wrapped('wrapper ("list", x : out)', pages(list__page_eq_1=HOUSES), x=rows, seconds=1.0)
    assert len(result) == 10
    assert len(site.urls) == 1


# --- errors -------------------------------------------------------------------------------------


def test_an_error_status_ends_the_run_with_place_url_and_tuple() -> None:
    with pytest.raises(RunError) as caught:
        wrapped('wrapper ("list", x : out)', pages(), x=[{"page": 7}])
    message = str(caught.value)
    assert "wrapper: HttpStatusError: http://homes.example/list?page=7: 404 Not Found" in message
    assert "page=7" in message


def test_errors_are_data_with_attempts_and_the_rest_goes_on() -> None:
    def respond(request: Request) -> AnyAnswer:
        if request.url.endswith("page=2"):
            return ConnectionFailedError("reset")
        return HOUSES

    plan = f"""{WRAPPERS} PLAN p {{ INPUT: x OUTPUT: out, failed
        BODY {{ wrapper ("list", x : out) {{ERRORS: failed}} }} }}"""
    http_client, _ = client(respond, retries=2, retry_base_seconds=0.1)
    rows = [{"page": number} for number in (1, 2, 3)]
    result = run_plan(plan, services={Client: http_client}, configuration=QUIET, x=rows)
    assert len(result.outputs["out"]) == 4
    (failed,) = result.outputs["failed"]
    assert dict(failed) == {"page": 2, "error": "reset", "error-kind": "ConnectionFailedError", "attempts": 3}


def test_a_missing_required_field_fails_its_tuple_only() -> None:
    statements = 'wrapper ("detail", x : out) {ERRORS: skip}'
    respond = pages(a="<h1>Here</h1><p class=beds>3</p>", b="<p class=beds>4</p>")
    result, _ = wrapped(statements, respond, x=[{"link": f"{SITE}/a"}, {"link": f"{SITE}/b"}])
    assert [dict(row) for row in result] == [{"link": f"{SITE}/a", "address": "Here", "beds": 3}]
    (step,) = result.statistics.steps
    assert step.errors == 1


def test_a_status_that_means_nothing_found_gives_no_tuple() -> None:
    text = 'WRAPPER maybe (id) { GET: "http://homes.example/m{?id}"; EMPTY: 404; t: "p" }'
    http_client, _ = client(pages())
    result = run_plan(
        f'{text} PLAN p {{ INPUT: x OUTPUT: out BODY {{ wrapper ("maybe", x : out) }} }}',
        services={Client: http_client},
        configuration=QUIET,
        x=[{"id": 1}],
    )
    assert list(result) == []


# --- before anything runs -----------------------------------------------------------------------


def _mistake(statement: str, inputs: str = "x (page)") -> str:
    plan = f"{WRAPPERS} PLAN p {{ INPUT: {inputs} OUTPUT: out BODY {{ {statement} }} }}"
    with pytest.raises(PlanError) as caught:
        Engine().stream(loads(plan), x=[])
    return caught.value.diagnostics[0].message


def test_an_unknown_wrapper_is_found_before_anything_runs() -> None:
    assert _mistake('wrapper ("lst", x : out)') == "unknown wrapper 'lst'; did you mean 'list'?"


def test_an_input_that_the_tuples_lack_is_found() -> None:
    assert _mistake('wrapper ("list", x : out)', "x (pag)") == (
        "wrapper 'list' needs the attribute 'page'; did you mean 'pag'? (the tuples have: pag)"
    )


def test_attributes_behind_a_wrapper_are_known() -> None:
    message = _mistake('wrapper ("list", x : y) project (y, "titel" : out)')
    assert message.startswith("unknown attribute 'titel'; did you mean 'title'?")


def test_a_wrapper_without_tuples_is_asked_once() -> None:
    items = {"items": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}
    respond = pages(api=json.dumps(items))
    http_client, site = client(respond)
    plan = f'{WRAPPERS} PLAN p {{ OUTPUT: out BODY {{ wrapper ("api" : out) }} }}'
    result = run_plan(plan, services={Client: http_client}, configuration=QUIET)
    assert [dict(row) for row in result] == items["items"]
    assert len(site.urls) == 1


def test_a_request_that_changes_the_world_is_an_effect_and_never_stopped_early() -> None:
    respond = pages(order="<p>done</p>")
    statements = 'wrapper ("order", x : done) limit (done, 1 : out)'
    result, site = wrapped(statements, respond, x=[{"id": number} for number in range(9)], workers=1)
    assert len(result) == 1
    assert len(site.urls) == 9


def test_a_limit_stops_the_fetches_upstream() -> None:
    respond = pages(**{f"list__page_eq_{number}": HOUSES for number in range(500)})
    statements = 'wrapper ("list", x : found) limit (found, 1 : out)'
    rows = [{"page": number} for number in range(500)]
    result, site = wrapped(statements, respond, x=rows, workers=2, seconds=1.0)
    assert len(result) == 1
    assert len(site.urls) <= 6


# --- streams and pages --------------------------------------------------------------------------


def test_rows_of_an_answer_that_is_too_long_to_hold_leave_while_the_rest_is_under_way() -> None:
    body = Chunks(b'{"items": [{"id": 1, "name": "a"},', b'{"id": 2, "name": "b"}', b"]}", seconds=5.0)
    respond = pages(api=Answer(body))
    plan = loads(f'{WRAPPERS} PLAN p {{ OUTPUT: out BODY {{ wrapper ("api" : out) }} }}')

    async def main() -> list[tuple[int, float]]:
        http_client, _ = client(respond)
        tables = {"http": {"health": False, "hold_bytes": 1}}
        async with Engine(services={Client: http_client}, configuration=tables) as engine:
            clock = asyncio.get_running_loop().time
            return [(row["id"], clock()) async for row in engine.stream(plan)]

    assert run(main()) == [(1, 5.0), (2, 10.0)]


def test_a_stream_that_feeds_requests_cannot_starve_them_of_the_only_worker() -> None:
    items = json.dumps({"items": [{"id": number, "name": "n"} for number in range(200)]}).encode()

    def respond(request: Request) -> AnyAnswer:
        if "/api" in request.url:
            return Answer(Chunks(*(items[at : at + 100] for at in range(0, len(items), 100))))
        return HOUSES

    statements = 'wrapper ("api", x : found) project (found, "id as page" : p) wrapper ("list", p : out)'
    result, _ = wrapped(
        statements, respond, x=[{"page": "1"}], workers=1, capacity_rows=1, http={"concurrency": 1}
    )
    assert len(result) == 400


def test_pages_that_a_wrapper_follows_by_itself_come_one_after_the_other() -> None:
    def respond(request: Request) -> AnyAnswer:
        number = int(request.url.partition("=")[2] or 1)
        following = f'<a class=next href="?page={number + 1}">n</a>' if number < 4 else ""
        return f"<li><b>{number}</b></li>{following}"

    http_client, site = client(respond)
    plan = f'{WRAPPERS} PLAN p {{ OUTPUT: out BODY {{ wrapper ("paged" : out) }} }}'
    result = run_plan(plan, services={Client: http_client}, configuration=QUIET)
    assert [row["n"] for row in result] == [1, 2, 3, 4]
    assert len(site.urls) == 4


FOLLOW = """
PLAN get_urls
{
  INPUT: page
  OUTPUT: urls
  BODY
  {
    project (page, "link" : here)
    distinct (page, "next-page" : links)
    project (links, "next-page as link" : following)
    wrapper ("follow", following : next-page)
    get_urls (next-page : rest)
    union (here, rest : urls)
  }
}
PLAN p { INPUT: x OUTPUT: out BODY {
  wrapper ("list", x : first) get_urls (first : urls) wrapper ("detail", urls : out)
} }
WRAPPER follow (link) LIKE list { GET: "{+link}" }
"""


def _chain(request: Request) -> AnyAnswer:
    """Three result pages of two houses."""
    if "/h/" in request.url:
        return f"<h1>{request.url[-3:]}</h1><p class=beds>{request.url[-1]}</p>"
    number = int(request.url.partition("=")[2])
    following = f'<a class=next href="?page={number + 1}">n</a>' if number < 3 else ""
    houses = "".join(f"<li><b>t</b><a href=/h/{number}-{house}>x</a></li>" for house in (1, 2))
    return f"<ul>{houses}</ul>{following}"


@pytest.mark.parametrize("mode", ["D-", "D+S-", "D+S+"])
@pytest.mark.parametrize("capacity_rows", [1, 256])
def test_next_links_are_followed_to_the_details_in_every_mode(mode: Any, capacity_rows: int) -> None:
    http_client, site = client(_chain, 0.1)
    result = run_plan(
        WRAPPERS + FOLLOW,
        services={Client: http_client},
        configuration=QUIET,
        mode=mode,
        capacity_rows=capacity_rows,
        x=[{"page": 1}],
    )
    assert sorted(row["address"] for row in result) == [
        f"{page}-{house}" for page in (1, 2, 3) for house in (1, 2)
    ]
    assert len(site.urls) == 9


@pytest.mark.parametrize("seed", range(25))
def test_whatever_the_order_of_events_no_house_is_lost(seed: int) -> None:
    http_client, _ = client(_chain, 0.1, concurrency=2)
    result = run_plan(
        WRAPPERS + FOLLOW,
        services={Client: http_client},
        configuration=QUIET,
        seed=seed,
        workers=3,
        capacity_rows=1,
        x=[{"page": 1}],
    )
    assert len(result) == 6


def test_a_throttled_host_holds_no_worker_that_another_could_use() -> None:
    def respond(request: Request) -> AnyAnswer:
        return "<h1>here</h1>"

    http_client, site = client(respond, rate=1.0)
    rows = [{"link": f"http://slow.example/{n}"} for n in range(50)]
    rows += [{"link": f"http://h{n}.example/"} for n in range(50)]

    async def main() -> dict[str, float]:
        plan = loads(f'{WRAPPERS} PLAN p {{ INPUT: x OUTPUT: out BODY {{ wrapper ("detail", x : out) }} }}')
        async with Engine(2, services={Client: http_client}, configuration=QUIET) as engine:
            clock = asyncio.get_running_loop().time
            return {row["link"]: clock() async for row in engine.stream(plan, x=rows)}

    arrivals = run(main())
    assert max(arrivals[f"http://h{n}.example/"] for n in range(50)) == 0.0
    assert max(arrivals.values()) == 49.0
    assert len(site.urls) == 100


# --- wrappers in Python -------------------------------------------------------------------------


@wrapper(inputs="page number", returns="title char, size number", name="w_titles")
async def titles(web: Web, page: int) -> Mapping[str, Any]:
    response = await web.get(f"{SITE}/list?page={page}")
    body = await response.read()
    return {"title": body.decode()[:3], "size": len(body)}


@wrapper(inputs="n number, m number", optional="m", returns="i number", name="w_count")
async def count(web: Web, n: int, m: int | None) -> AsyncIterator[Mapping[str, Any]]:
    for number in range(n + (m or 0)):
        yield {"i": number}


def test_a_wrapper_can_be_an_async_function() -> None:
    result, _ = wrapped('wrapper ("W_Titles", x : out)', pages(list__page_eq_1="<p>"), x=[{"page": 1}])
    assert [dict(row) for row in result] == [{"page": 1, "title": "<p>", "size": 3}]


def test_a_wrapper_can_be_an_async_generator_with_inputs_that_may_be_missing() -> None:
    result, _ = wrapped('wrapper ("w_count", x : out)', pages(), x=[{"n": 2}, {"n": None}])
    assert [row["i"] for row in result] == [0, 1]


def test_an_error_status_fails_in_a_python_wrapper_as_well() -> None:
    with pytest.raises(RunError, match="404 Not Found"):
        wrapped('wrapper ("w_titles", x : out)', pages(), x=[{"page": 3}])


# --- pages --------------------------------------------------------------------------------------


def test_an_error_status_lets_go_of_a_body_that_nobody_reads() -> None:
    body = Chunks(b"no")
    result, _ = wrapped(
        'wrapper ("api", x : out) {ERRORS: skip}',
        pages(api__page_eq_1=Answer(body, 500)),
        x=[{"page": "1"}],
    )
    assert list(result) == []
    assert body.is_closed


@pytest.mark.parametrize("size", [300_000, 6_000_000])
def test_a_large_page_is_read_off_the_loop_to_the_same_rows(size: int) -> None:
    filling = "<p>" + "x" * 1000 + "</p>"
    text = HOUSES + filling * (size // len(filling))
    plan = loads(f'{WRAPPERS} PLAN p {{ INPUT: x OUTPUT: out BODY {{ wrapper ("list", x : out) }} }}')

    async def main() -> list[str]:
        http_client, _ = client(pages(list__page_eq_1=text))
        async with Engine(services={Client: http_client}, configuration=QUIET) as engine:
            return [row["title"] async for row in engine.stream(plan, x=[{"page": 1}])]

    assert asyncio.run(main()) == ["One", "Two"]


def test_what_cannot_be_read_is_counted() -> None:
    text = HOUSES.replace("$ 1,000", "on request")
    result, _ = wrapped('wrapper ("list", x : out)', pages(list__page_eq_1=text), x=[{"page": 1}])
    assert [row["price"] for row in result] == [None, None]
    (step,) = result.statistics.steps
    assert step.counters["unreadable price"] == 1


def test_the_request_for_the_next_page_leaves_before_those_for_details() -> None:
    http_client, site = client(_chain, 0.1)
    run_plan(WRAPPERS + FOLLOW, services={Client: http_client}, configuration=QUIET, x=[{"page": 1}])
    order = [url.removeprefix(SITE) for url in site.urls]
    assert order.index("/list?page=2") < order.index("/h/1-1")
    assert order.index("/list?page=3") < order.index("/h/2-1")


def test_two_statements_that_get_the_same_tuples_make_their_requests_in_turn() -> None:
    plan = f"""{WRAPPERS}
    PLAN p {{ INPUT: x OUTPUT: a, b BODY {{ wrapper ("list", x : a) wrapper ("api", x : b) }} }}"""
    items = json.dumps({"items": [{"id": 1, "name": "n"}]}).encode()
    http_client, site = client(lambda request: HOUSES if "list" in request.url else items, 1.0)
    rows = [{"page": str(number)} for number in range(40)]
    run_plan(plan, services={Client: http_client}, configuration=QUIET, workers=4, x=rows)
    first = [url.removeprefix(SITE)[1:4] for url in site.urls[:16]]
    assert first.count("api") >= 4


def test_failures_that_are_skipped_are_told_at_the_end() -> None:
    result, _ = wrapped(
        'wrapper ("list", x : out) {ERRORS: skip}', pages(), x=[{"page": 1}, {"page": 2}], workers=1
    )
    skipped, silent = result.warnings
    assert (
        "wrapper: 2 failures were skipped, the first: HttpStatusError: http://homes.example/list" in skipped
    )
    assert "all 2 tuples failed" in silent


def test_a_part_of_a_page_that_nobody_asked_for_is_no_page() -> None:
    with pytest.raises(RunError, match="206 Partial Content"):
        wrapped(
            'wrapper ("list", x : out)',
            pages(list__page_eq_1=Answer(body=HOUSES.encode(), status=206)),
            x=[{"page": 1}],
        )


# --- failures that say something of the site ----------------------------------------------------


@pytest.mark.parametrize(("status", "is_absent"), [(404, True), (410, True), (403, False), (500, False)])
def test_a_page_that_is_not_there_fails_with_knowledge(status: int, is_absent: bool) -> None:
    with pytest.raises(RunError) as caught:
        wrapped('wrapper ("list", x : out)', pages(list__page_eq_1=status), x=[{"page": 1}])
    cause = caught.value.__cause__
    assert isinstance(cause, AioflowError)
    assert cause.means_absence is is_absent
    assert not caught.value.means_absence


def test_a_site_that_answers_503_to_everything_is_told_to_be_down() -> None:
    plan = f"""{WRAPPERS} PLAN p {{ INPUT: x OUTPUT: out, failed
        BODY {{ wrapper ("list", x : out) {{ERRORS: failed}} }} }}"""
    site = ScriptedSite(lambda request: 503)
    tables = {"http": {"health": False, "robots": True}}
    result = run_plan(plan, network=site, configuration=tables, x=[{"page": 1}])
    (failed,) = result.outputs["failed"]
    assert failed["error-kind"] == "SiteDownError"
    assert failed["error"].startswith(f"{SITE}/list?page=1: the site answers 503 Service Unavailable: ")
    assert set(site.urls) == {f"{SITE}/robots.txt"}
