"""What a run asked of the web: in its account, as events, and in the log."""

import logging
from typing import Any

import pytest

from aioflow import Engine, loads
from aioflow.config.secrets import Secret
from aioflow.runtime.events import Event
from aioflow.testing import Answer, ScriptedSite, run, run_plan
from aioflow.web import AddressRefusedError, Client, ConnectionFailedError, RequestEnded

TITLES = """
WRAPPER title (url char) { GET: "{+url}"; title: "h1" }
PLAN titles { INPUT: pages (url char) OUTPUT: found BODY { wrapper ("title", pages : found) {ERRORS: skip} } }
"""
PAGE = "<h1>Here</h1>"


def pages(*urls: str) -> list[dict[str, str]]:
    return [{"url": url} for url in urls]


def web_of(result: Any) -> Any:
    (entry,) = result.account.entries
    assert entry.name == "web"
    return entry


def test_the_account_tells_what_was_asked_and_what_came() -> None:
    site = ScriptedSite(
        {
            "http://a.example/": [503, PAGE],
            "http://b.example/": PAGE,
            "http://b.example/old": Answer("", 302, {"Location": "/"}),
            "http://c.example/": ConnectionFailedError("http://c.example/: reset"),
        }
    )
    urls = ("http://a.example/", "http://b.example/", "http://b.example/old", "http://c.example/")
    result = run_plan(TITLES, network=site, pages=pages(*urls))
    entry = web_of(result)
    assert entry.figures == {
        "pages": 3,
        "requests": len(site.requests),
        "repeated": len(site.requests) - 5,
        "given-up": 0,
        "hosts": 3,
        "body-bytes": 3 * len(PAGE),
        "statuses": {"2xx": 3, "3xx": 1, "5xx": 1},
        "unanswered": {"ConnectionFailedError": len(site.requests) - 5},
        "refused": {},
        "cached": 0,
        "revalidated": 0,
    }
    requests, failed = len(site.requests), len(site.requests) - 5
    assert entry.lines == (
        f"3 pages, 39 bytes from 3 hosts; {requests} requests, {failed} repeated, 1 answered 5xx, "
        f"{failed} without an answer",
    )
    assert dict(result.account.errors) == {"ConnectionFailedError": 1}


def test_one_page_is_told_in_the_singular() -> None:
    result = run_plan(
        TITLES, network=ScriptedSite({"http://a.example/": PAGE}), pages=pages("http://a.example/")
    )
    assert web_of(result).lines == ("1 page, 13 bytes from 1 host",)


def test_a_run_that_asks_for_nothing_says_nothing_of_the_web() -> None:
    assert run_plan(TITLES, network=ScriptedSite({}), pages=[]).account.entries == ()


def test_answers_of_the_cache_are_told_apart(tmp_path: Any) -> None:
    fresh = Answer(PAGE, headers={"Content-Type": "text/html", "Cache-Control": "max-age=60"})
    site = ScriptedSite({"http://a.example/": fresh})
    settings = {"http": {"cache": tmp_path / "cache.sqlite", "robots": False}}

    async def main() -> list[Any]:
        async with site.client(settings) as client, Engine(services={Client: client}) as engine:
            plan = loads(TITLES)
            return [await engine.run(plan, pages=pages("http://a.example/")) for _ in range(2)]

    first, second = run(main())
    assert web_of(first).figures["requests"] == 1
    figures = web_of(second).figures
    assert (figures["pages"], figures["requests"], figures["cached"]) == (1, 0, 1)
    assert web_of(second).lines == ("1 page from the cache",)


def test_a_host_without_a_robots_txt_is_in_no_trouble() -> None:
    site = ScriptedSite({"http://a.example/": PAGE})
    entry = web_of(
        run_plan(
            TITLES, network=site, configuration={"http": {"robots": True}}, pages=pages("http://a.example/")
        )
    )
    assert (entry.figures["requests"], entry.figures["statuses"]) == (2, {"2xx": 1, "4xx": 1})
    assert entry.lines == ("1 page, 13 bytes from 1 host; 2 requests",)


def test_a_run_whose_only_request_is_refused_tells_so() -> None:
    site = ScriptedSite({"http://a.example/": AddressRefusedError("http://a.example/: not allowed")})
    entry = web_of(run_plan(TITLES, network=site, pages=pages("http://a.example/")))
    assert (entry.figures["requests"], entry.figures["refused"]) == (0, {"AddressRefusedError": 1})
    assert entry.lines == ("no pages; 1 request refused",)


def test_the_robots_txt_of_a_host_is_a_request_and_no_page() -> None:
    site = ScriptedSite({"http://a.example/": PAGE, "http://a.example/robots.txt": "User-agent: *\n"})
    settings = {"http": {"robots": True}}
    result = run_plan(TITLES, network=site, configuration=settings, pages=pages("http://a.example/"))
    figures = web_of(result).figures
    assert (figures["pages"], figures["requests"]) == (1, 2)
    assert web_of(result).lines == (f"1 page, {len(PAGE) + 14} bytes from 1 host; 2 requests",)


def test_redirects_are_told_as_requests_beside_the_pages() -> None:
    moved = Answer("", 302, {"Location": "/new"})
    site = ScriptedSite({"http://a.example/old": moved, "http://a.example/new": PAGE})
    result = run_plan(TITLES, network=site, pages=pages("http://a.example/old"))
    assert web_of(result).lines == ("1 page, 13 bytes from 1 host; 2 requests",)


def test_runs_of_one_engine_have_each_their_own_traffic() -> None:
    site = ScriptedSite({"http://a.example/": PAGE, "http://b.example/": PAGE})

    async def main() -> list[Any]:
        async with site.client() as client, Engine(services={Client: client}) as engine:
            plan = loads(TITLES)
            one = await engine.run(plan, pages=pages("http://a.example/", "http://b.example/"))
            return [one, await engine.run(plan, pages=pages("http://a.example/"))]

    assert [web_of(each).figures["requests"] for each in run(main())] == [2, 1]


def test_requests_are_events_of_their_statement() -> None:
    site = ScriptedSite({"http://a.example/": [503, PAGE]}, seconds=0.5)
    events: list[Event] = []

    async def main() -> None:
        async with site.client() as client, Engine(services={Client: client}) as engine:
            engine.subscribe(events.append)
            await engine.run(loads(TITLES), pages=pages("http://a.example/"))

    run(main())
    first, second = [event for event in events if isinstance(event, RequestEnded)]
    assert (first.plan, first.operator, first.line) == ("titles", "wrapper", 3)
    assert (first.request.status, first.request.attempt) == (503, 1)
    assert (second.request.status, second.request.attempt) == (200, 2)
    assert (second.request.method, second.request.url) == ("GET", "http://a.example/")
    assert second.request.body_bytes == len(PAGE)
    assert second.request.seconds == pytest.approx(0.5)


def test_every_request_is_logged_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    token = Secret("token", "hunter2-hunter2").reveal()
    site = ScriptedSite(
        {
            f"http://ann:{token}@a.example/?token={token}": [503, PAGE],
            "http://c.example/": ConnectionFailedError("http://c.example/: reset"),
        },
        seconds=0.25,
    )
    with caplog.at_level(logging.DEBUG, logger="aioflow.web.requests"):
        settings = {"http": {"retries": 1}}
        urls = (f"http://ann:{token}@a.example/?token={token}", "http://c.example/")
        run_plan(TITLES, network=site, configuration=settings, pages=pages(*urls))
    lines = [record.getMessage() for record in caplog.records if record.name == "aioflow.web.requests"]
    assert "GET http://a.example/?token=******** 503, 0 bytes, 250 ms" in lines
    assert "GET http://a.example/?token=******** 200, 13 bytes, 250 ms, attempt 2" in lines
    assert "GET http://c.example/ failed after 250 ms: ConnectionFailedError: reset" in lines
    assert token not in caplog.text


def test_waits_and_repetitions_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    site = ScriptedSite({"http://a.example/": [503, PAGE]})
    with caplog.at_level(logging.DEBUG, logger="aioflow.web"):
        settings = {"http": {"rate": 1.0, "burst": 1}}
        run_plan(TITLES, network=site, configuration=settings, pages=pages("http://a.example/"))
    text = caplog.text
    assert "http://a.example/ is asked for again in " in text
    assert ": status 503" in text
    assert "waits for its turn at a.example" in text


def test_nothing_is_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run_plan(TITLES, network=ScriptedSite({"http://a.example/": PAGE}), pages=pages("http://a.example/"))
    assert caplog.records == []


def test_a_request_that_is_not_sent_is_refused_and_no_request() -> None:
    network = ScriptedSite({"http://a.example/": AddressRefusedError("http://a.example/: a private address")})
    result = run_plan(TITLES, network=network, pages=pages("http://a.example/", "http://b.example/"))
    figures = web_of(result).figures
    assert (figures["requests"], figures["refused"]) == (1, {"AddressRefusedError": 1})
    assert web_of(result).lines == ("no pages; 1 request to 1 host, 1 answered 4xx",)
