"""A small site on loopback, in a thread of its own, for commands that fetch."""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.clocks import PATIENCE_SECONDS

# Whatever a terminal would obey: a title, a colour, a bell, C1, directions of writing, other line ends.
HOSTILE = "a\x1b]0;owned\x07b\x1b[31mc\x9b2Jd\x7fe\x85f\u202eg\u2066h\u200fi\u061cj\u2028k\rl"
HOUSES = [("1 Oak Street", "$350,000"), ("2 Elm Street", "$410,000"), ("3 Ash Avenue", "on request")]


def houses_page(number: int) -> str:
    items = "".join(
        f'<li class="house"><a class="title" href="/house/{place}">{address}</a> '
        f'<span class="price">{price}</span></li>'
        for place, (address, price) in enumerate(HOUSES, 1)
    )
    following = f'<a class="next" href="?page={number + 1}">Next</a>' if number < 3 else ""
    return (
        f"<!doctype html><html><head><title>Houses {number}</title></head>"
        f'<body><h1 id="top">Houses</h1><ul>{items}</ul>{following}</body></html>'
    )


def packed() -> web.Response:
    body = gzip.compress(b"a" * 10_000)
    return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "text/plain"})


def house_data() -> web.Response:
    return web.json_response({"houses": [{"address": each, "price": text} for each, text in HOUSES]})


FIXED_ANSWERS: dict[str, Callable[[], web.Response]] = {
    "/bytes": lambda: web.Response(body=bytes(range(256)), content_type="application/octet-stream"),
    "/changing": lambda: web.Response(text="now", headers={"Cache-Control": "no-cache", "ETag": '"1"'}),
    "/data.json": house_data,
    "/evil": lambda: web.Response(
        text="<p>\x1b[31mred\x07</p>", content_type="text/html", headers={"X-Evil": "a\x9bb"}
    ),
    "/hostile": lambda: web.Response(text=f"<p>{HOSTILE}</p>\n<p>next</p>", content_type="text/html"),
    "/packed": packed,
    "/paper": lambda: web.Response(body=b"%PDF-1.7\n\xe2\xe3\xcf\xd3", content_type="text/html"),
    "/robots.txt": lambda: web.Response(text="User-agent: *\nDisallow: /private\n"),
}


@dataclass
class Site:
    """Where the site is, and what was asked of it."""

    port: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        if request.path == "/houses":
            page = houses_page(int(request.query.get("page", "1")))
            return web.Response(text=page, content_type="text/html", headers={"X-Test": "one"})
        if request.path == "/echo":
            told = {"key": request.headers.get("X-Key"), "type": request.headers.get("Content-Type")}
            text = json.dumps({"body": await request.text(), **told})
            return web.Response(text=text, content_type="application/json")
        if request.path == "/old":
            raise web.HTTPFound("/houses")
        if request.path == "/busy":
            raise web.HTTPTooManyRequests(headers={"Retry-After": "3600"})
        if request.path in FIXED_ANSWERS:
            return FIXED_ANSWERS[request.path]()
        raise web.HTTPNotFound


@contextmanager
def served() -> Iterator[Site]:
    """The site, served by a thread until the block is left."""
    site = Site()
    started, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        runner = web.AppRunner(site.app(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        listener = web.TCPSite(runner, "127.0.0.1", 0)
        await listener.start()
        site.port = runner.addresses[0][1]
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="site")
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    try:
        yield site
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_SECONDS)
        loop.close()
