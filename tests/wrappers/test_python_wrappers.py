"""Wrappers written in Python: what they fetch with, and whose they are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from aioflow import Engine, loads
from aioflow.testing import run, run_plan
from aioflow.web import Client, CookieStore, HttpSettings, HttpStatusError, Request, Response, WebSettings
from aioflow.wrappers import Web, wrapper
from tests.web.scripted import Site, answer

URL = "http://homes.example/"


def permit(source: str, label: str) -> AbstractAsyncContextManager[None]:
    return nullcontext()


class Sent:
    """Keeps the requests that it is given."""

    def __init__(self, status: int = 200) -> None:
        self.requests: list[Request] = []
        self._status = status

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(request.url, self._status, {}, b"")


def sent_by(asked: Request) -> tuple[Request, CookieStore]:
    """A request as a wrapper's `fetch` sends it, and the cookies of the run."""
    sent, cookies = Sent(), CookieStore()
    web = Web(sent, {"permit": permit, "cookies": cookies, "urgent": True})
    asyncio.run(_fetch(web, asked))
    return sent.requests[0], cookies


async def _fetch(web: Web, request: Request) -> None:
    await web.fetch(request)


def test_what_a_request_leaves_open_is_the_runs() -> None:
    sent, cookies = sent_by(Request(URL, "PUT", {"Accept": "text/plain"}, b"x", robots=False))
    assert (sent.permit, sent.cookies, sent.urgent) == (permit, cookies, True)
    assert (sent.method, sent.headers, sent.body, sent.robots) == (
        "PUT",
        {"Accept": "text/plain"},
        b"x",
        False,
    )


def test_what_a_request_says_itself_is_left_as_it_is() -> None:
    own, asked = CookieStore(), Request(URL, permit=lambda source, label: nullcontext())
    sent, _ = sent_by(replace(asked, cookies=own))
    assert sent.cookies is own
    assert sent.permit is asked.permit


def test_an_explicit_none_keeps_a_get_without_cookies() -> None:
    sent = Sent()
    web = Web(sent, {"permit": permit, "cookies": CookieStore(), "urgent": False})
    run(_get(web, cookies=None))
    assert sent.requests[0].cookies is None


async def _get(web: Web, **request: Any) -> None:
    await web.get(URL, **request)


def test_a_web_of_ones_own_needs_nothing_but_answers() -> None:
    run(_get(Web(Sent())))
    with pytest.raises(HttpStatusError, match="503"):
        run(_get(Web(Sent(503))))


@wrapper(inputs="n number", returns="size number", name="python_plain")
async def plain(web: Web, n: int) -> Mapping[str, Any]:
    return {"size": len(await (await web.fetch(Request(f"{URL}{n}"))).read())}


def test_a_request_that_a_wrapper_makes_holds_a_permit_of_the_engine() -> None:
    site = Site(lambda request: answer(200, {}, b"page"), seconds=1.0)
    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("python_plain", x : out) } }')

    async def main() -> list[int]:
        settings = WebSettings(HttpSettings(robots=False, concurrency=100))
        async with (
            Client.open(settings, network=site) as client,
            Engine(2, services={Client: client}) as engine,
        ):
            return [row["size"] async for row in engine.stream(plan, x=[{"n": n} for n in range(10)])]

    assert run(main()) == [4] * 10
    assert site.most_in_flight == 2


@wrapper(inputs="n number", returns="size number", name="python_twice")
async def twice(web: Web, n: int) -> Mapping[str, Any]:
    await web.fetch(Request(f"{URL}login"))
    return await plain(web, n)


def test_cookies_of_a_run_go_with_a_request_that_has_none() -> None:
    requests: list[Request] = []

    def respond(request: Request) -> Response:
        requests.append(request)
        return answer(200, {"Set-Cookie": "seen=1"}, b"page")

    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("python_twice", x : out) } }')

    async def main() -> None:
        settings = WebSettings(HttpSettings(robots=False))
        async with (
            Client.open(settings, network=Site(respond)) as client,
            Engine(services={Client: client}) as engine,
        ):
            await engine.run(plan, x=[{"n": 1}])

    run(main())
    assert [dict(request.headers).get("Cookie") for request in requests] == [None, "seen=1"]


class Lazy(dict[str, Any]):
    """A mapping that computes its values, and fails at it as a `next` too many does."""

    def get(self, name: str, default: Any = None) -> Any:
        return next(iter((self[name],) if self[name] != 2 else ()))


async def _listed(web: Web, number: int) -> Any:
    return [Lazy(size=size) for size in range(4)]


async def _raised(web: Web, number: int) -> Any:
    raise StopAsyncIteration


async def _yielded(web: Web, number: int) -> Any:
    raise StopAsyncIteration
    yield {"size": 1}


@pytest.mark.parametrize("call", [_listed, _raised, _yielded])
def test_a_wrapper_that_raises_stop_iteration_fails_for_its_tuple(call: Any) -> None:
    wrapper(inputs="n number", returns="size number", name="python_stops")(call)
    text = """PLAN p { INPUT: x OUTPUT: out, bad
        BODY { wrapper ("python_stops", x : out) {ERRORS: bad} } }"""
    result = run_plan(text, x=[{"n": 1}])
    assert list(result.outputs["out"]) == []
    assert [record["n"] for record in result.outputs["bad"]] == [1]
