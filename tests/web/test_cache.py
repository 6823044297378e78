"""The HTTP cache: stored answers given when they may be, confirmed when they must be, and never leaked."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aioflow.config import secrets
from aioflow.web import cache_store
from aioflow.web.cache import CacheFetcher, CacheStatistics, cache_path
from aioflow.web.cache_store import PIECE_BYTES, CacheError, CacheStore
from aioflow.web.errors import ConnectionFailedError, NotRecordedError
from aioflow.web.http import Request, Response
from aioflow.web.settings import MEBIBYTE, HostSettings, HttpSettings, WebSettings
from tests.web.scripted import Answer, Chunks, Script, answer

URL = "http://a.test/page"
FRESH = {"Cache-Control": "max-age=60"}
LARGE = os.urandom(3 * PIECE_BYTES + 100)


class Cached:
    """A cache over a scripted network, with a clock that a test turns."""

    def __init__(
        self,
        path: Path,
        answers: Mapping[str, Answer | Sequence[Answer]],
        *,
        most: int = 64 * MEBIBYTE,
        **http: Any,
    ) -> None:
        self.now = 1_000_000.0
        self.script = Script(answers)
        self.hosts: dict[str, HostSettings] = {}
        self.settings = WebSettings(HttpSettings(**http), self.hosts)
        self.store = CacheStore(path, most, clock=self.clock)
        self.fetcher = CacheFetcher(self.script, self.store, self.settings, clock=self.clock)

    def clock(self) -> float:
        return self.now

    async def get(self, url: str = URL, **more: Any) -> Response:
        return await self.fetcher.fetch(Request(url, **more))

    async def again(self, **http: Any) -> Cached:
        """The same file, opened by a later process."""
        await self.fetcher.close()
        other = Cached(self.store.path, {}, **http)
        other.now = self.now
        other.script = self.script
        other.fetcher = CacheFetcher(self.script, other.store, other.settings, clock=other.clock)
        return other

    async def __aenter__(self) -> Cached:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.fetcher.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.sqlite"


async def test_a_fresh_answer_is_given_without_asking(path: Path) -> None:
    headers = [("Cache-Control", "max-age=60"), ("X-Two", "1"), ("X-Two", "2"), ("Set-Cookie", "id=1")]
    async with Cached(path, {URL: answer(404, headers, "grüße".encode())}) as cached:
        first = await cached.get()
        cached.now += 30
        second = await cached.get(URL + "#part")
        assert (first.stored, second.stored) == (None, "cache")
        assert (second.url, second.status, await second.read()) == (URL + "#part", 404, "grüße".encode())
        assert (second.headers["x-two"], second.headers["AGE"]) == ("1", "30")
        assert second.set_cookies == ()
        assert "Set-Cookie" not in second.headers
        cached.now += 30
        assert (await cached.get()).stored is None
        assert len(cached.script.requests) == 2
        assert cached.fetcher.statistics == CacheStatistics(hits=1, misses=2)


async def test_a_later_process_finds_what_an_earlier_one_stored(path: Path) -> None:
    cached = Cached(path, {URL: answer(headers=FRESH, body=b"page")})
    await cached.get()
    async with await cached.again() as later:
        assert await (await later.get()).read() == b"page"
    assert len(cached.script.requests) == 1


async def test_the_file_is_the_users_own(path: Path) -> None:
    async with Cached(path, {URL: answer(headers=FRESH)}) as cached:
        await cached.get()
        assert [mode(each) for each in (path, path.parent)] == [0o600, 0o700]


async def test_nothing_is_opened_before_it_is_needed(path: Path) -> None:
    async with Cached(path, {}):
        pass
    assert content_of(path) is None


def test_the_file_lies_where_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_path(HttpSettings(cache=True)) == tmp_path / "aioflow" / "http-cache.sqlite"
    assert cache_path(HttpSettings(cache=tmp_path)) == tmp_path / "http-cache.sqlite"
    new = tmp_path / "new"
    assert cache_path(HttpSettings(cache=new)) == new / "http-cache.sqlite"
    assert cache_path(HttpSettings(cache=tmp_path / "pages.sqlite")) == tmp_path / "pages.sqlite"
    new.touch()  # as it was made before
    assert cache_path(HttpSettings(cache=new)) == new


def ask(path: Path, statement: str) -> Any:
    """Have another connection do something to the file."""
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        return file.execute(statement).fetchone()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def content_of(path: Path) -> bytes | None:
    """The file and what lies beside it."""
    if not path.parent.exists():
        return None
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


# --- having answers confirmed -------------------------------------------------------------------

VALIDATED = {"ETag": '"1"', "Last-Modified": "Tue, 15 Nov 1994 00:08:31 GMT", "X-Old": "1", "Expires": "0"}


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_stale_answer_is_confirmed_by_its_server(path: Path, streamed: bool) -> None:
    confirmation = answer(304, {"Cache-Control": "max-age=60", "X-New": "1", "Set-Cookie": "id=1"}, Chunks())
    async with Cached(path, {URL: [answer(headers=VALIDATED, body=b"page"), confirmation]}) as cached:
        await cached.get(headers={"Accept": "*/*"})
        cached.now += 1000
        second = await cached.get(headers={"Accept": "*/*"}, streamed=streamed)
        assert cached.script.requests[1].headers == {
            "Accept": "*/*",
            "If-None-Match": '"1"',
            "If-Modified-Since": VALIDATED["Last-Modified"],
        }
        assert (second.status, second.stored, await second.read()) == (200, "revalidated", b"page")
        assert (second.headers["X-Old"], second.headers["X-New"]) == ("1", "1")
        assert second.set_cookies == ("id=1",)
        assert isinstance(confirmation.body, Chunks)
        assert confirmation.body.is_closed
        third = await cached.get(headers={"Accept": "*/*"})
        assert (third.stored, third.headers["X-New"], third.set_cookies) == ("cache", "1", ())
        assert cached.fetcher.statistics == CacheStatistics(hits=1, revalidated=1, misses=1)


async def test_a_stale_answer_is_replaced_by_a_new_one(path: Path) -> None:
    answers = [answer(headers={"ETag": '"1"'}, body=b"old"), answer(headers=FRESH, body=b"new")]
    async with Cached(path, {URL: answers}) as cached:
        assert [await (await cached.get()).read() for _ in range(3)] == [b"old", b"new", b"new"]
        assert len(cached.script.requests) == 2


async def test_a_304_about_something_else_is_not_believed(path: Path) -> None:
    answers = [
        answer(headers={"ETag": '"1"'}, body=b"old"),
        answer(304, {"ETag": '"2"'}),
        answer(body=b"new"),
    ]
    async with Cached(path, {URL: answers}) as cached:
        await cached.get()
        assert await (await cached.get()).read() == b"new"
        assert "If-None-Match" not in cached.script.requests[2].headers


async def test_an_error_leaves_what_is_stored(path: Path) -> None:
    answers: list[Answer] = [
        answer(headers={"ETag": '"1"'}, body=b"page"),
        answer(503),
        ConnectionFailedError("x"),
        answer(304),
    ]
    async with Cached(path, {URL: answers}) as cached:
        await cached.get()
        assert (await cached.get()).status == 503
        with pytest.raises(ConnectionFailedError):
            await cached.get()
        assert await (await cached.get()).read() == b"page"


async def test_without_a_validator_it_is_asked_for_as_a_whole(path: Path) -> None:
    async with Cached(path, {URL: answer(body=b"page")}) as cached:
        await cached.get()
        await cached.get()
        assert cached.script.requests[1].headers == {}


# --- what is not stored, and not given ----------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "request_fields"),
    [
        (200, {"Cache-Control": "no-store, max-age=60"}, {}),
        (200, {**FRESH, "Vary": "*"}, {}),
        (206, FRESH, {}),
        (500, FRESH, {}),
        (302, FRESH, {}),
        (200, FRESH, {"headers": {"cache-control": "no-store"}}),
        (200, FRESH, {"headers": {"authorization": "Bearer hush"}}),
        (200, FRESH, {"headers": {"Range": "bytes=0-1"}}),
        (200, FRESH, {"headers": {"If-None-Match": '"x"'}}),
        (200, FRESH, {"method": "POST"}),
        (200, FRESH, {"method": "HEAD"}),
        (200, FRESH, {"body": b"x"}),
        (200, FRESH, {"url": "http://user:hush@a.test/page"}),
    ],
)
async def test_what_must_not_be_stored_is_not(
    path: Path, status: int, headers: dict[str, str], request_fields: dict[str, Any]
) -> None:
    url = request_fields.get("url", URL)
    async with Cached(path, {url: answer(status, headers)}) as cached:
        request = replace(Request(url), **request_fields)
        await cached.fetcher.fetch(request)
        assert (await cached.fetcher.fetch(request)).stored is None
        assert len(cached.script.requests) == 2


async def test_an_answer_to_a_user_is_stored_if_it_says_so(path: Path) -> None:
    async with Cached(path, {URL: answer(headers={"Cache-Control": "public, max-age=60"})}) as cached:
        mine, yours = {"Authorization": "Bearer mine"}, {"Authorization": "Bearer yours"}
        assert [(await cached.get(headers=mine)).stored for _ in range(2)] == [None, "cache"]
        # It says that anyone may have it; who asks with other credentials is asked about all the same.
        assert (await cached.get(headers=yours)).stored is None
        assert (await cached.get()).stored is None


@pytest.mark.parametrize("name", ["Cookie", "X-Api-Key"])
async def test_what_one_visitor_was_shown_is_not_given_to_another(path: Path, name: str) -> None:
    def greeting(request: Request) -> Response:
        return answer(headers=FRESH, body=request.headers.get(name, "nobody").encode())

    async with Cached(path, {URL: greeting}) as cached:
        asked: list[dict[str, str]] = [{name: "mine"}, {name: "yours"}, {}]
        for stored in (None, "cache"):
            found = [await cached.get(headers=headers) for headers in asked]
            assert [each.stored for each in found] == [stored] * 3
            assert [each.body for each in found] == [b"mine", b"yours", b"nobody"]


async def test_credentials_of_the_configuration_count(path: Path) -> None:
    async with Cached(path, {URL: answer(headers=FRESH)}) as cached:
        cached.hosts["a.test"] = HostSettings(auth="bearer secret:TOKEN")
        assert [(await cached.get()).stored for _ in range(2)] == [None, None]
        cached.hosts["a.test"] = HostSettings(headers={"X-Key": "secret:KEY"})
        assert [(await cached.get()).stored for _ in range(2)] == [None, "cache"]
        cached.hosts.clear()
        assert (await cached.get()).stored is None


async def test_an_answer_is_given_to_requests_that_are_alike_where_it_says_so(path: Path) -> None:
    def in_language(request: Request) -> Response:
        language = request.headers.get("accept-language", "none")
        return answer(headers={**FRESH, "Vary": "Accept-Language"}, body=language.encode())

    async with Cached(path, {URL: in_language}) as cached:
        asked: list[dict[str, str]] = [
            {"accept-language": "de"},
            {"accept-language": "fr", "accept": "x"},
            {},
        ]
        for _ in range(2):
            bodies = [await (await cached.get(headers=headers)).read() for headers in asked]
            assert bodies == [b"de", b"fr", b"none"]
        assert (await cached.get(headers={"Accept-Language": " de "})).stored == "cache"
        assert len(cached.script.requests) == 3


async def test_there_are_not_endlessly_many_variants(path: Path) -> None:
    async with Cached(path, {URL: answer(headers={**FRESH, "Vary": "Accept"})}) as cached:
        for number in range(cache_store.MOST_VARIANTS + 5):
            cached.now += 1
            await cached.get(headers={"Accept": str(number)})
        assert ask(path, "SELECT count(*) FROM entry") == (cache_store.MOST_VARIANTS,)


@pytest.mark.parametrize("wish", ["no-cache", "max-age=0"])
async def test_a_request_may_insist_on_an_answer_from_the_server(path: Path, wish: str) -> None:
    async with Cached(path, {URL: answer(headers=FRESH)}) as cached:
        await cached.get()
        cached.now += 1
        assert (await cached.get(headers={"Cache-Control": wish})).stored is None


async def test_a_request_may_insist_on_a_stored_answer(path: Path) -> None:
    async with Cached(path, {URL: answer(headers=FRESH)}) as cached:
        with pytest.raises(
            NotRecordedError, match=r"http://a\.test/page: there is no stored answer to this GET"
        ):
            await cached.get(headers={"Cache-Control": "only-if-cached"})
        assert cached.script.requests == []


@pytest.mark.parametrize(
    ("method", "status", "is_forgotten"),
    [
        ("POST", 200, True),
        ("DELETE", 204, True),
        ("POST", 302, True),
        ("POST", 500, False),
        ("HEAD", 200, False),
    ],
)
async def test_an_unsafe_request_has_answers_forgotten(
    path: Path, method: str, status: int, is_forgotten: bool
) -> None:
    other, foreign = "http://a.test/other", "http://b.test/"

    def page(request: Request) -> Response:
        if request.method == "GET":
            return answer(headers=FRESH)
        return answer(status, {"Location": "/other", "Content-Location": foreign})

    async with Cached(path, {URL: page, other: page, foreign: page}) as cached:
        for url in (URL, other, foreign):
            await cached.get(url)
        await cached.get(method=method)
        stored = [(await cached.get(url)).stored for url in (URL, other, foreign)]
        assert stored == ([None, None, "cache"] if is_forgotten else ["cache"] * 3)


# --- streamed bodies ----------------------------------------------------------------------------


def pieces(data: bytes, size: int = 100_000) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("body", [b"", b"small", LARGE], ids=["empty", "small", "large"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_streamed_body_is_stored_as_it_passes(path: Path, body: bytes, streamed: bool) -> None:
    async with Cached(path, {URL: answer(headers=FRESH, body=Chunks(*pieces(body)))}) as cached:
        first = await cached.get(streamed=True)
        assert b"".join([chunk async for chunk in first.chunks()]) == body
        second = await cached.get(streamed=streamed)
        assert second.stored == "cache"
        assert isinstance(second.body, bytes) is (not streamed or body is not LARGE)
        assert await second.read() == body


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_large_body_comes_back(path: Path, streamed: bool) -> None:
    async with Cached(path, {URL: answer(headers=FRESH, body=LARGE)}) as cached:
        await cached.get()
        assert await (await cached.get(streamed=streamed)).read() == LARGE


async def broken_off(response: Response) -> None:
    chunks = response.chunks()
    await anext(chunks)
    await chunks.aclose()
    await response.close()


async def cut(response: Response) -> None:
    with pytest.raises(ConnectionFailedError):
        await response.read()


@pytest.mark.parametrize("size", [10, 2 * PIECE_BYTES])
async def test_a_body_that_was_not_read_to_its_end_is_not_stored(path: Path, size: int) -> None:
    large = b"x" * size
    bodies = [Chunks(large, large), Chunks(large, ConnectionFailedError("cut"))]
    async with Cached(path, {URL: [answer(headers=FRESH, body=body) for body in bodies]}) as cached:
        await broken_off(await cached.get(streamed=True))
        assert bodies[0].is_closed
        await cut(await cached.get(streamed=True))
        assert ask(path, "SELECT (SELECT count(*) FROM entry), (SELECT count(*) FROM piece)") == (0, 0)


async def test_a_reader_that_is_cancelled_stores_nothing(path: Path) -> None:
    body = Chunks(*pieces(LARGE), seconds=0.001)
    async with Cached(path, {URL: answer(headers=FRESH, body=body)}) as cached:
        response = await cached.get(streamed=True)
        reading = asyncio.create_task(response.read())
        await body.reached(4)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        with pytest.raises(NotRecordedError):
            await cached.get(headers={"Cache-Control": "only-if-cached"})
        assert body.is_closed


async def test_a_stored_body_that_is_replaced_while_it_is_read_fails(path: Path) -> None:
    async with Cached(path, {URL: answer(headers=FRESH, body=LARGE)}) as cached:
        await cached.get()
        response = await cached.get(streamed=True)
        chunks = response.chunks()
        await anext(chunks)
        await cached.store.forget(URL)
        with pytest.raises(ConnectionFailedError, match="replaced while it was read"):
            await anext(chunks)


async def test_what_a_process_left_unfinished_is_cleared_away(path: Path) -> None:
    cached = Cached(path, {URL: answer(headers=FRESH, body=Chunks(LARGE, LARGE))})
    response = await cached.get(streamed=True)
    await anext(response.chunks())
    for days, left in ((0.5, 1), (1, 0)):
        cached.now += days * 24 * 3600
        cached = await cached.again()
        await cached.store.find(URL, {}, {})
        assert ask(path, "SELECT count(*) FROM entry") == (left,)
    await cached.fetcher.close()


# --- bounds and secrets -------------------------------------------------------------------------


async def test_the_longest_unused_answers_make_room(path: Path) -> None:
    urls = [f"{URL}/{number}" for number in range(12)]
    answers = {url: answer(headers={"Cache-Control": "max-age=9999"}, body=os.urandom(9_000)) for url in urls}
    async with Cached(path, answers, most=100_000) as cached:
        for url in urls[:10]:
            cached.now += 1
            await cached.get(url)
        cached.now += 1
        await cached.get(urls[0])
        for url in urls[10:]:
            cached.now += 1
            await cached.get(url)
        total, sizes = ask(path, "SELECT bytes, (SELECT sum(size) FROM entry) FROM about")
        orphans = ask(path, "SELECT count(*) FROM piece WHERE entry NOT IN (SELECT id FROM entry)")
        assert total == sizes
        assert total <= 100_000
        assert orphans == (0,)
        assert [(await cached.get(urls[number])).stored for number in (0, 11, 1)] == ["cache", "cache", None]


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_that_is_too_large_is_not_stored(path: Path, streamed: bool) -> None:
    data = os.urandom(400_000)

    def page(request: Request) -> Response:
        return answer(headers=FRESH, body=Chunks(*pieces(data)) if streamed else data)

    async with Cached(path, {URL: page}, most=MEBIBYTE) as cached:
        for _ in range(2):
            response = await cached.get(streamed=streamed)
            assert (response.stored, await response.read()) == (None, data)


async def test_no_secret_gets_into_the_file(path: Path) -> None:
    secret = "hush-hush-4711"
    secrets.conceal(secret)
    shown = secret.encode()
    across = [b"x" * (PIECE_BYTES - 5) + shown[:5], shown[5:] + b"x" * PIECE_BYTES]
    answers: dict[str, Answer | Sequence[Answer]] = {
        f"{URL}?key={secret}": answer(headers=FRESH),
        f"{URL}/body": answer(headers=FRESH, body=b"you said " + shown),
        f"{URL}/header": answer(headers={**FRESH, "X-Echo": secret}),
        f"{URL}/across": answer(headers=FRESH, body=Chunks(*across)),
        f"{URL}/renewed": [answer(headers={"ETag": "1"}), answer(304, {"X-Echo": secret})],
    }
    cached = Cached(path, answers)
    for url in answers:
        await (await cached.get(url, headers={"X-Key": secret}, streamed=True)).read()
    await cached.get(f"{URL}/renewed", headers={"X-Key": secret})
    stored = [(await cached.get(url, headers={"X-Key": secret})).stored for url in answers]
    assert stored == ["cache", None, None, None, "revalidated"]
    await cached.fetcher.close()
    content = content_of(path) or b""
    assert shown not in content
    assert b"a.test" not in content


# --- the file -----------------------------------------------------------------------------------


DAMAGED = b"not a database, but long enough to be looked at" * 100


@pytest.fixture
def damaged(path: Path) -> Path:
    path.parent.mkdir()
    path.write_bytes(DAMAGED)
    return path


async def test_a_damaged_file_is_named(damaged: Path) -> None:
    path = damaged
    async with Cached(path, {URL: answer()}) as cached:
        with pytest.raises(
            CacheError, match=r"cache\.sqlite: the HTTP cache is damaged .*; delete the file"
        ) as raised:
            await cached.get()
        assert raised.value.is_damaged
    assert content_of(path) == DAMAGED


async def test_a_damaged_body_is_told(path: Path) -> None:
    async with Cached(path, {URL: answer(headers=FRESH, body=b"page")}) as cached:
        await cached.get()
        ask(path, "UPDATE piece SET data = x'00'")
        with pytest.raises(CacheError, match="damaged"):
            await cached.get()


@pytest.mark.parametrize(
    ("statements", "whose"),
    [
        (["CREATE TABLE mine (x)"], "something else"),
        (["PRAGMA application_id = 1"], "something else"),
        (
            [f"PRAGMA application_id = {cache_store._APPLICATION}", "PRAGMA user_version = 99"],
            "another version",
        ),
    ],
)
async def test_a_file_of_something_else_is_left_alone(path: Path, statements: list[str], whose: str) -> None:
    for each in statements:
        ask(path, each)
    before = content_of(path)
    async with Cached(path, {URL: answer()}) as cached:
        with pytest.raises(CacheError, match=f"this file is of {whose}"):
            await cached.get()
    assert content_of(path) == before


async def test_an_answer_that_cannot_be_stored_is_still_given(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_store, "_BUSY_SECONDS", 0.0)
    async with Cached(
        path, {URL: [answer(headers=FRESH, body=b"page"), answer(headers=FRESH, body=Chunks(LARGE))]}
    ) as cached:
        await cached.store.find(URL, {}, {})
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert await (await cached.get()).read() == b"page"
        assert await (await cached.get(streamed=True)).read() == LARGE
        other.execute("ROLLBACK")
        other.close()
        assert cached.fetcher.statistics == CacheStatistics(misses=2, failures=2)


async def test_a_file_that_cannot_be_made_is_told_once_and_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "file", b"")
    async with Cached(tmp_path / "file" / "cache", {URL: answer(headers=FRESH, body=b"page")}) as cached:
        for _ in range(2):
            assert (await cached.get()).body == b"page"
        assert (await cached.get(method="POST")).body == b"page"
        assert cached.fetcher.statistics == CacheStatistics(misses=2, failures=3)
    (warning,) = caplog.messages
    assert "file/cache: the HTTP cache cannot be used: " in warning
    assert warning.endswith("; going on without the cache")


async def test_offline_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "file", b"")
    async with Cached(tmp_path / "file" / "cache", {}, offline=True) as cached:
        with pytest.raises(CacheError, match="file/cache: the HTTP cache cannot be used"):
            await cached.get()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


WRITER = """
import asyncio, sys, time
from pathlib import Path
from aioflow.web.cache_store import CacheStore, Chosen
from aioflow.web.freshness import StoredHead
async def main():
    store = CacheStore(Path(sys.argv[1]), 10_000_000, clock=time.time)
    for number in range(60):
        url = f"http://a.test/{number % 20}"
        await store.put(Chosen(url, {}), StoredHead(200, (), 0, number), url.encode() * 500)
        found = await store.find(url, {}, {})
        assert found is not None and found.body == url.encode() * 500
    await store.close()
asyncio.run(main())
"""


def test_several_processes_use_one_file(path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    sums = "SELECT bytes, (SELECT sum(size) FROM entry), (SELECT count(*) FROM entry) FROM about"
    total, sizes, count = ask(path, sums)
    assert (total, count) == (sizes, 20)


# --- offline ------------------------------------------------------------------------------------


async def test_offline_any_stored_answer_is_given_and_nobody_asked(path: Path) -> None:
    other = "http://a.test/other"
    cached = Cached(path, {URL: answer(headers={"Cache-Control": "no-cache"}, body=b"page"), other: answer()})
    await cached.get()
    cached.now += 1e9
    async with await cached.again(offline=True) as later:
        found = await later.get()
        assert (found.stored, await found.read()) == ("cache", b"page")
        for request in (Request(other), Request(URL, "POST"), Request(URL, headers={"Range": "bytes=0-"})):
            with pytest.raises(NotRecordedError, match="no stored answer to this"):
                await later.fetcher.fetch(request)
    assert cached.script.asked == [f"GET {URL}"]
    assert cached.script.is_closed


async def test_offline_cookies_do_not_matter_but_other_credentials_do(path: Path) -> None:
    other = "http://a.test/other"
    headers = {"Vary": "Cookie"}
    cached = Cached(path, {URL: answer(headers=headers, body=b"page"), other: answer(body=b"other")})
    await cached.get(headers={"Cookie": "session=1"})
    await cached.get(other, headers={"X-Api-Key": "1"})
    async with await cached.again(offline=True) as later:
        for cookies in ({}, {"Cookie": "session=2"}):
            assert (await later.get(headers=cookies)).body == b"page"
        with pytest.raises(NotRecordedError):
            await later.get(other)
        assert (await later.get(other, headers={"X-Api-Key": "1", "Cookie": "x"})).body == b"other"
