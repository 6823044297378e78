"""The client as a whole, against real servers on loopback: what its layers do together."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import aioflow.web
from aioflow.authoring.services import Services
from aioflow.config.secrets import Secrets
from aioflow.errors import InputError
from aioflow.testing import run
from aioflow.web import (
    AddressRefusedError,
    BadResponseError,
    Client,
    ConnectionFailedError,
    CookieStore,
    HostSettings,
    HttpSettings,
    NotRecordedError,
    Request,
    RequestRefusedError,
    ResponseTimeoutError,
    RobotsRefusedError,
    WebError,
    WebSettings,
)
from aioflow.web.cache import CacheStatistics
from tests.clocks import PATIENCE_SECONDS
from tests.web.scripted import Answer, Script, answer

A = "http://a.example"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """A server on a port of its own; `visits` lists what was asked of it."""

    def __init__(self, pages: dict[str, Handler]) -> None:
        self.visits: list[web.Request] = []
        self._pages = pages
        self.address = ""

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def paths(self) -> list[str]:
        return [visit.path for visit in self.visits]

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert isinstance(request, web.BaseRequest)
        self.visits.append(request)  # type: ignore[arg-type]
        page = self._pages.get(request.path)
        if page is None:
            return web.Response(status=404, text="nothing here")
        return await page(request)  # type: ignore[arg-type]


@asynccontextmanager
async def serving(**pages: Handler) -> AsyncIterator[Site]:
    """A site with a page for each name."""
    site = Site({f"/{name.replace('__', '.')}": page for name, page in pages.items()})
    runner = web.ServerRunner(web.Server(site.answer), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        site.address = "{}:{}".format(*runner.addresses[0][:2])
        yield site
    finally:
        await runner.cleanup()


def page(text: str = "here", status: int = 200, **headers: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text, headers=named)

    return handler


def moved(target: Callable[[], str], status: int = 302) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": target()})

    return handler


def settings_for(*sites: Site, **http: Any) -> WebSettings:
    http = {"robots": False, "retry_base_seconds": 0.001, **http}
    return WebSettings(HttpSettings(allow=tuple(site.address for site in sites), **http))


# --- redirects ----------------------------------------------------------------------------------


async def test_a_redirect_to_another_origin_takes_no_credentials_along() -> None:
    async with serving(there=page()) as other, serving(here=moved(lambda: f"{other.url}/there")) as site:
        settings = replace(
            settings_for(site, other),
            hosts={site.address: HostSettings(auth="bearer secret:TOKEN", headers={"X-Configured": "1"})},
        )
        secrets = Secrets({"AIOFLOW_SECRET_TOKEN": "hush-token"})
        own = {"X-Api-Key": "hush", "Cookie": "id=hush", "Accept": "text/html"}
        async with Client.open(settings, secrets=secrets) as client:
            response = await client.fetch(Request(f"{site.url}/here", headers=own, cookies=CookieStore()))
    assert (response.url, response.hops) == (f"{other.url}/there", (f"{site.url}/here",))
    first, second = site.visits[0].headers, other.visits[0].headers
    assert (first["Authorization"], first["X-Api-Key"], first["Cookie"]) == (
        "Bearer hush-token",
        "hush",
        "id=hush",
    )
    assert second["Accept"] == "text/html"
    assert not {"Authorization", "X-Api-Key", "Cookie", "X-Configured"} & set(second)


@pytest.mark.parametrize(
    "target", ["the other server", "http://10.0.0.1/", "http://[::1]:1/", "//0.0.0.0:1/"]
)
async def test_a_redirect_to_a_private_address_is_refused_at_the_hop(target: str) -> None:
    async with serving(there=page()) as other:
        location = f"{other.url}/there" if target == "the other server" else target
        async with serving(here=moved(lambda: location)) as site, Client.open(settings_for(site)) as client:
            with pytest.raises(AddressRefusedError, match=rf"redirected from {site.url}/here"):
                await client.fetch(Request(f"{site.url}/here"))
    assert site.paths == ["/here"]
    assert other.visits == []


@pytest.mark.parametrize("cache", [False, True])
async def test_a_port_that_is_none_is_named(tmp_path: Path, cache: bool) -> None:
    http = HttpSettings(cache=tmp_path / "cache" if cache else False)
    async with Client.open(WebSettings(http), network=Script({})) as client:
        with pytest.raises(AddressRefusedError) as caught:
            await client.fetch(Request("http://127.0.0.1:99999/x"))
    assert str(caught.value) == "http://127.0.0.1:99999/x: '99999' is no port; they go from 1 to 65535"


async def test_a_circle_of_redirects_is_noticed() -> None:
    async with (
        serving(a=moved(lambda: "/b"), b=moved(lambda: "/a")) as site,
        Client.open(settings_for(site)) as client,
    ):
        with pytest.raises(BadResponseError, match="redirected in a circle"):
            await client.fetch(Request(f"{site.url}/a", streamed=True))
    assert site.paths == ["/a", "/b"]


async def test_a_form_is_followed_to_its_result() -> None:
    async with (
        serving(form=moved(lambda: "/result", 303), result=page("found")) as site,
        Client.open(settings_for(site)) as client,
    ):
        response = await client.fetch(Request(f"{site.url}/form", "POST", body=b"q=1", is_safe=False))
    assert response.body == b"found"
    assert [visit.method for visit in site.visits] == ["POST", "GET"]


# --- cookies ------------------------------------------------------------------------------------


async def test_a_session_has_its_own_cookies() -> None:
    async def login(request: web.Request) -> web.Response:
        response = web.Response(status=302, headers={"Location": "/home"})
        response.set_cookie("session", "4711", httponly=True)
        return response

    async with serving(home=page()) as other, serving(login=login, home=page()) as site:
        mine, yours = CookieStore(), CookieStore()
        async with Client.open(settings_for(site, other)) as client:
            await client.fetch(Request(f"{site.url}/login", cookies=mine))
            await client.fetch(Request(f"{site.url}/home", cookies=yours))
            await client.fetch(Request(f"{other.url}/home", cookies=mine))
            await client.fetch(Request(f"{site.url}/home"))
        sent = [visit.headers.get("Cookie") for visit in site.visits]
        assert sent == [None, "session=4711", None, None]
        assert [visit.headers.get("Cookie") for visit in other.visits] == [None]


async def test_without_cookies_none_are_kept() -> None:
    async with serving(home=page(Set_Cookie="id=1")) as site:
        store = CookieStore()
        async with Client.open(settings_for(site, cookies=False)) as client:
            await client.fetch(Request(f"{site.url}/home", cookies=store))
        assert len(store) == 0


# --- manners ------------------------------------------------------------------------------------


async def test_robots_txt_is_asked_for_once_and_heeded() -> None:
    rules = page("User-agent: *\nDisallow: /private", Content_Type="text/plain")
    async with (
        serving(robots__txt=rules, private=page(), open=page()) as site,
        Client.open(settings_for(site, robots=True)) as client,
    ):
        for _ in range(2):
            assert (await client.fetch(Request(f"{site.url}/open"))).status == 200
            with pytest.raises(RobotsRefusedError):
                await client.fetch(Request(f"{site.url}/private"))
        assert (await client.fetch(Request(f"{site.url}/private", robots=False))).status == 200
        (source,) = client.statistics().sources
    assert site.paths == ["/robots.txt", "/open", "/open", "/private"]
    assert (source.requests, source.refused) == (4, {"RobotsRefusedError": 2})


@pytest.mark.parametrize("trouble", [answer(503), ConnectionFailedError("cut"), ResponseTimeoutError("slow")])
def test_robots_txt_is_asked_for_again_like_any_page(trouble: Answer) -> None:
    async def main() -> None:
        rules = answer(body=b"User-agent: *\nDisallow: /x")
        script = Script({f"{A}/robots.txt": [trouble, rules], f"{A}/page": answer()})
        async with Client.open(WebSettings(HttpSettings(breaker_failures=1)), network=script) as client:
            assert (await client.fetch(Request(f"{A}/page"))).status == 200
            with pytest.raises(RobotsRefusedError, match="forbids it"):
                await client.fetch(Request(f"{A}/x"))
        assert script.asked == [f"GET {A}/robots.txt"] * 2 + [f"GET {A}/page"]

    run(main())


def test_a_host_that_cannot_be_reached_is_tried_as_often_as_for_any_page_and_counts_once() -> None:
    async def main() -> None:
        error = ConnectionFailedError(f"{A}/robots.txt: no connection")
        error.sent = False
        script = Script({f"{A}/robots.txt": error})
        async with Client.open(WebSettings(HttpSettings(breaker_failures=2)), network=script) as client:
            with pytest.raises(ConnectionFailedError, match=f"^{A}/page: no connection$") as caught:
                await client.fetch(Request(f"{A}/page"))
            assert (caught.value.attempts, len(script.requests)) == (4, 4)
            assert client.statistics().sources[0].breaker == "closed"

    run(main())


async def test_what_one_host_alone_wants_of_robots_is_done() -> None:
    async with serving(robots__txt=page("User-agent: *\nDisallow: /"), open=page()) as site:
        settings = replace(settings_for(site), hosts={site.address: HostSettings(robots=True)})
        async with Client.open(settings) as client:
            with pytest.raises(RobotsRefusedError):
                await client.fetch(Request(f"{site.url}/open"))


async def test_a_server_that_asks_to_come_back_is_asked_again() -> None:
    answers = [web.Response(status=503, headers={"Retry-After": "0"}), web.Response(text="now")]

    async def busy(request: web.Request) -> web.Response:
        return answers.pop(0)

    async with serving(busy=busy) as site, Client.open(settings_for(site)) as client:
        response = await client.fetch(Request(f"{site.url}/busy"))
        (source,) = client.statistics().sources
    assert (response.body, response.attempts) == (b"now", 2)
    assert (source.retries, dict(source.answers)) == (1, {"2xx": 1, "5xx": 1})


async def test_an_effect_is_not_repeated() -> None:
    async with (
        serving(busy=page(status=503, Retry_After="0")) as site,
        Client.open(settings_for(site)) as client,
    ):
        response = await client.fetch(Request(f"{site.url}/busy", "POST", is_safe=False))
    assert (response.status, len(site.visits)) == (503, 1)


async def test_equal_gets_are_made_once() -> None:
    async with serving(home=page("x" * 30_000)) as site, Client.open(settings_for(site)) as client:
        request = Request(f"{site.url}/home")
        responses = await asyncio.gather(
            *(client.fetch(replace(request, streamed=number % 2 == 0)) for number in range(10))
        )
        assert {await response.read() for response in responses} == {b"x" * 30_000}
        assert client.statistics().shared == 8
    assert len(site.visits) == 2


@pytest.mark.parametrize(
    "name", ["Host", "content-length", "Transfer-Encoding", "CONNECTION", "Upgrade", "TE"]
)
async def test_headers_that_frame_the_request_are_the_clients_own(name: str) -> None:
    script = Script({})
    async with Client.open(WebSettings(), network=script) as client:
        with pytest.raises(RequestRefusedError) as caught:
            await client.fetch(Request("http://me:hush@a.example/", headers={"Accept": "*/*", name: "5"}))
    assert str(caught.value) == f"{A}/: the header {name} is for the client to set"
    assert script.requests == []


async def test_an_error_status_is_an_answer() -> None:
    async with serving() as site, Client.open(settings_for(site)) as client:
        assert (await client.fetch(Request(f"{site.url}/nowhere"))).status == 404


# --- doing without the network ------------------------------------------------------------------


async def tagged(request: web.Request) -> web.Response:
    if request.headers.get("If-None-Match") == '"1"':
        return web.Response(status=304, headers={"ETag": '"1"'})
    return web.Response(text="page", headers={"ETag": '"1"', "Cache-Control": "no-cache"})


async def test_a_cached_page_is_confirmed_by_its_server_and_given_without_it(tmp_path: Path) -> None:
    async with serving(page=tagged, fresh=page("fresh", Cache_Control="max-age=1000")) as site:
        settings = settings_for(site, cache=tmp_path / "cache.sqlite")
        for expected in ((None, None), ("revalidated", "cache")):
            async with Client.open(settings) as client:
                found = [await client.fetch(Request(f"{site.url}/{name}")) for name in ("page", "fresh")]
                statistics = client.statistics()
            assert tuple(each.stored for each in found) == expected
            assert [each.body for each in found] == [b"page", b"fresh"]
        assert statistics.cache == CacheStatistics(hits=1, revalidated=1)
    offline = replace(settings, http=replace(settings.http, offline=True))
    async with Client.open(offline) as client:
        assert (await client.fetch(Request(f"{site.url}/page"))).body == b"page"
        with pytest.raises(NotRecordedError):
            await client.fetch(Request(f"{site.url}/other"))
    assert site.paths == ["/page", "/fresh", "/page"]


async def test_offline_means_the_users_cache_if_no_other_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = Script({"http://a.test/": answer(body=b"page")})
    online = WebSettings(HttpSettings(cache=True, robots=False))
    async with Client.open(online, network=script) as client:
        await client.fetch(Request("http://a.test/"))
    async with Client.open(WebSettings(HttpSettings(offline=True))) as client:
        assert (await client.fetch(Request("http://a.test/"))).body == b"page"


async def test_a_recorded_run_is_replayed_without_the_network(tmp_path: Path) -> None:
    answers = [web.Response(status=503), web.Response(text="one"), web.Response(text="two")]

    async def next_page(request: web.Request) -> web.Response:
        return answers.pop(0)

    async def run(settings: WebSettings) -> list[Any]:
        async with Client.open(settings) as client:
            found = []
            for path in ("next", "next", "moved"):
                response = await client.fetch(
                    Request(f"{site.url}/{path}", streamed=True, cookies=CookieStore())
                )
                found.append((response.url, response.status, response.attempts, await response.read()))
            return found

    path = tmp_path / "recording.jsonl"
    async with serving(next=next_page, moved=moved(lambda: "/home"), home=page()) as site:
        recorded = await run(settings_for(site, record=path))
    assert [each[1:] for each in recorded] == [(200, 2, b"one"), (200, 1, b"two"), (200, 1, b"here")]
    # Neither a rate nor robots.txt nor an allowed address is needed: nothing is sent.
    http = HttpSettings(replay=path, rate=0.001, retry_base_seconds=3600.0)
    slow = {site.address: HostSettings(rate=0.001, robots=True)}
    for replaying in (WebSettings(http), WebSettings(http, slow)):
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await run(replaying) == recorded
    async with Client.open(replaying) as client:
        with pytest.raises(NotRecordedError):
            await client.fetch(Request(f"{site.url}/other"))


def test_a_replay_waits_for_no_host_however_often_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    path.write_text('{"request": {"url": "http://a.test/"}, "response": {"status": 503}}\n')

    async def main() -> float:
        async with Client.open(WebSettings(HttpSettings(replay=path))) as client:
            for _ in range(20):
                assert (await client.fetch(Request("http://a.test/"))).status == 503
        return asyncio.get_running_loop().time()

    assert run(main()) == 0


async def test_recording_leaves_the_cache_out_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script({"http://a.test/": answer(headers={"Cache-Control": "max-age=1000"})})
    http = HttpSettings(cache=tmp_path / "cache", record=tmp_path / "recording", robots=False)
    async with Client.open(WebSettings(http), network=script) as client:
        for _ in range(2):
            await client.fetch(Request("http://a.test/"))
    assert len(script.requests) == 2
    (warning,) = caplog.messages
    assert warning.startswith("the HTTP cache is neither used nor filled while answers are recorded to ")


def test_a_run_does_not_record_and_replay_at_once(tmp_path: Path) -> None:
    http = HttpSettings(record=tmp_path / "a", replay=tmp_path / "b")
    with pytest.raises(InputError, match=r"cannot record to .*a and replay .*b at once"):
        Client.open(WebSettings(http))


def test_a_run_does_not_record_without_a_network(tmp_path: Path) -> None:
    http = HttpSettings(record=tmp_path / "a", offline=True)
    with pytest.raises(InputError, match=r"cannot record to .*a without using the network"):
        Client.open(WebSettings(http), network=Script({}))
    assert not (tmp_path / "a").exists()


# --- its lifetime -------------------------------------------------------------------------------


async def test_who_still_waits_when_the_client_closes_fails_and_nothing_is_left() -> None:
    asked = asyncio.Event()
    over = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if request.path == "/half":
            await response.prepare(request)
            await response.write(b"half")
        else:
            asked.set()
        await over.wait()
        return response

    async with serving(half=slow, never=slow) as site:
        client = Client.open(settings_for(site))
        half = await client.fetch(Request(f"{site.url}/half", streamed=True))
        chunks = half.chunks()
        assert await anext(chunks) == b"half"
        waiting = asyncio.create_task(client.fetch(Request(f"{site.url}/never")))
        await asked.wait()
        await client.close()
        for outcome in (anext(chunks), waiting):
            with pytest.raises(WebError, match=r"the client (is|was) closed"):
                await outcome
        await client.close()
        over.set()


async def test_it_is_a_service_of_an_engine() -> None:
    async with serving(home=page()) as site:
        services = Services({"http": {"allow": [site.address], "robots": False}}, {})
        client = services.service(Client)
        assert services.service(Client) is client
        assert (await client.fetch(Request(f"{site.url}/home"))).body == b"here"
        await services.close()


async def test_closing_closes_every_layer(tmp_path: Path) -> None:
    script = Script({})
    http = HttpSettings(cache=tmp_path / "cache")
    await Client.open(WebSettings(http), network=script).close()
    assert script.is_closed


def test_public_names_are_there() -> None:
    assert all(getattr(aioflow.web, name) is not None for name in aioflow.web.__all__)
    assert dir(aioflow.web) == sorted(aioflow.web.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = aioflow.web.nonsense


def test_what_takes_long_to_load_is_loaded_late() -> None:
    code = (
        "import sys, aioflow.web; before = set(sys.modules); from aioflow.web import Client, WebSettings; "
        "print([name for name in ('aiohttp', 'yarl', 'protego') if name in sys.modules], "
        "'aioflow.web.client' in before)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("[] False\n", "")
