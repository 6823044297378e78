"""Bodies on their way: streamed, closed, cancelled, and as large as they like."""

from __future__ import annotations

import asyncio
import gc
import gzip
import zlib
from pathlib import Path

import pytest
from multidict import CIMultiDict

from aioflow.testing import ScriptedSite, run
from aioflow.web.client import Client
from aioflow.web.errors import (
    BadResponseError,
    ConnectionFailedError,
    RequestRefusedError,
    ResponseTooLargeError,
)
from aioflow.web.http import BodyLimits, Request, Response
from aioflow.web.settings import HttpSettings, WebSettings
from tests.clocks import let_time_pass
from tests.web.misbehaving import Line, Names, Server, answer, bounds, opened, sends, sends_and_waits, silent

TEXT = b"".join(b"<li>house %d</li>" % number for number in range(3000))
MEBIBYTE = 1024 * 1024
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\n"
GZIP = ["Content-Encoding: gzip"]


async def endless(line: Line) -> None:
    await line.request()
    await line.send(CHUNKED)
    await line.send_forever(b"10000\r\n" + bytes(65536) + b"\r\n")


async def pieces_of(response: Response) -> list[bytes]:
    return [piece async for piece in response.chunks()]


# --- streamed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "whole",
    [
        answer(TEXT),
        answer(gzip.compress(TEXT), headers=GZIP),
        answer(gzip.compress(TEXT * 50), headers=GZIP),
        CHUNKED + b"5\r\nhello\r\n0\r\n\r\n",
        answer(b""),
    ],
)
async def test_a_streamed_body_is_what_the_whole_one_is(whole: bytes) -> None:
    async with Server(sends(whole)) as server, opened(server) as transport:
        expected = (await transport.fetch(Request(server.url()))).body
        for _ in range(2):
            response = await transport.fetch(Request(server.url(), streamed=True))
            assert not isinstance(response.body, bytes)
            assert b"".join(await pieces_of(response)) == expected
            assert response.timing.first_byte_seconds <= response.timing.total_seconds
        response = await transport.fetch(Request(server.url(), streamed=True))
        assert await response.read() == expected
        assert server.connections == 1


async def test_pieces_are_handed_over_while_the_rest_is_still_to_come() -> None:
    compressor = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    parts = [compressor.compress(b"first") + compressor.flush(zlib.Z_SYNC_FLUSH)]
    parts.append(compressor.compress(b"second") + compressor.flush())
    go_on = asyncio.Event()

    async def behave(line: Line) -> None:
        await line.request()
        await line.send(answer(parts[0], headers=GZIP, length=len(parts[0] + parts[1])))
        await go_on.wait()
        await line.send(parts[1])
        await line.lost()

    async with Server(behave) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), streamed=True))
        pieces = aiter(response.chunks())
        assert await anext(pieces) == b"first"
        go_on.set()
        assert await anext(pieces) == b"second"
        with pytest.raises(StopAsyncIteration):
            await anext(pieces)


async def test_a_body_that_is_closed_is_let_go_without_its_rest() -> None:
    async with Server(endless) as server, opened(server) as transport:
        async with await transport.fetch(Request(server.url(), streamed=True)) as response:
            assert await anext(aiter(response.chunks()))
        await server.all_lost()
        server.behave = sends(answer(b"ok"))
        assert (await transport.fetch(Request(server.url()))).body == b"ok"


async def test_a_body_that_was_closed_fails_rather_than_ends() -> None:
    async with Server(endless) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), streamed=True))
        await response.close()
        await response.close()
        with pytest.raises(ConnectionFailedError, match="closed before its end"):
            await pieces_of(response)


async def test_a_body_that_was_read_to_its_end_stays_ended() -> None:
    async with Server(sends(answer(b"hello"))) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), streamed=True))
        assert await pieces_of(response) == [b"hello"]
        await response.close()
        assert await pieces_of(response) == []


async def test_a_body_that_nobody_reads_is_let_go_when_the_client_is_closed() -> None:
    async with Server(endless) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), streamed=True))
        del response


async def test_the_time_of_a_busy_reader_is_not_that_of_the_server() -> None:
    async with Server(endless) as server, opened(server, total_seconds=60) as transport:
        response = await transport.fetch(Request(server.url(), streamed=True))
        pieces = aiter(response.chunks())
        for _ in range(3):
            await anext(pieces)
            let_time_pass(40)
        assert await anext(pieces)
        await response.close()


# --- cancelled, closed -----------------------------------------------------------------------------


PAGE = answer(gzip.compress(TEXT * 10), headers=GZIP)


async def in_parts(line: Line) -> None:
    """A compressed page in many small parts, and again."""
    while True:
        await line.request()
        for start in range(0, len(PAGE), 10_000):
            await line.send(PAGE[start : start + 10_000])
            await asyncio.sleep(0)


@pytest.mark.parametrize("turns", [*range(30), 40, 60])
async def test_a_fetch_can_be_cancelled_at_any_moment(turns: int) -> None:
    async with Server(in_parts) as server, opened(server) as transport:
        fetch = asyncio.create_task(transport.fetch(Request(server.url())))
        for _ in range(turns):
            await asyncio.sleep(0)
        fetch.cancel()
        result = (await asyncio.gather(fetch, return_exceptions=True))[0]
        assert isinstance(result, asyncio.CancelledError | Response)
        assert (await transport.fetch(Request(server.url()))).body == TEXT * 10


async def test_a_cancelled_fetch_lets_go_of_its_connection() -> None:
    asked = asyncio.Event()

    async def behave(line: Line) -> None:
        await line.request()
        asked.set()
        await line.lost()

    async with Server(behave) as server, opened(server) as transport:
        fetch = asyncio.create_task(transport.fetch(Request(server.url())))
        await asked.wait()
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
        await server.all_lost()


async def test_a_cancelled_reader_lets_go_of_the_connection() -> None:
    async with Server(sends_and_waits(answer(b"he", length=5))) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), streamed=True))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await pieces_of(response)
        await server.all_lost()
        with pytest.raises(ConnectionFailedError, match="broken off"):
            await pieces_of(response)


@pytest.mark.parametrize("beginning", [b"", UNTIL_CLOSED + b"hello", CHUNKED + b"5\r\nhello\r\n"])
async def test_who_waits_when_the_client_is_closed_fails(beginning: bytes) -> None:
    begun = asyncio.Event()

    async def behave(line: Line) -> None:
        await line.request()
        await line.send(beginning)
        begun.set()
        await line.lost()

    async with Server(behave) as server, opened(server) as transport:
        whole = asyncio.create_task(transport.fetch(Request(server.url())))
        await begun.wait()
        if beginning:
            response = await transport.fetch(Request(server.url(), streamed=True))
            reading = asyncio.create_task(pieces_of(response))
            await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(ConnectionFailedError, match="closed"):
            await whole
        if beginning:
            with pytest.raises(ConnectionFailedError, match="the client was closed"):
                await reading


async def test_who_waits_for_a_name_when_the_client_is_closed_fails() -> None:
    asked = asyncio.Event()

    class Stuck(Names):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list:  # type: ignore[type-arg]
            asked.set()
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async with Server(silent) as server, opened(server, names=Stuck()) as transport:
        fetches = [asyncio.create_task(transport.fetch(Request("http://example.org/"))) for _ in range(2)]
        await asked.wait()
        await transport.close()
        for fetch in fetches:
            with pytest.raises(ConnectionFailedError, match="closed"):
                await fetch


async def resets_later(line: Line) -> None:
    await line.request()
    await line.send(answer(b"ok"))
    await line.request()
    line.reset()


async def test_nothing_complains_afterwards() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    for turns in range(0, 40, 5):
        async with Server(in_parts) as server, opened(server) as transport:
            await transport.fetch(Request(server.url()))
            await transport.fetch(Request(server.url(), streamed=True))
            fetch = asyncio.create_task(transport.fetch(Request(server.url())))
            for _ in range(turns):
                await asyncio.sleep(0)
            fetch.cancel()
            await asyncio.wait([fetch])
    async with Server(resets_later) as server, opened(server) as transport:
        await transport.fetch(Request(server.url()))
        with pytest.raises(ConnectionFailedError, match="reset"):
            await transport.fetch(Request(server.url()))
    del transport, fetch
    gc.collect()
    assert complaints == []


async def test_a_closed_client_refuses_requests() -> None:
    async with Server(sends(answer(b"ok"))) as server, opened(server) as transport:
        await transport.fetch(Request(server.url()))
        await transport.close()
        with pytest.raises(RequestRefusedError, match="the client is closed"):
            await transport.fetch(Request(server.url()))


# --- large -----------------------------------------------------------------------------------------


def bomb() -> bytes:
    """The beginning of a gzip stream of 1 GiB, made of one block again and again."""
    compressor = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    first = compressor.compress(bytes(MEBIBYTE)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return first + 1023 * (compressor.compress(bytes(MEBIBYTE)) + compressor.flush(zlib.Z_FULL_FLUSH))


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_bomb_takes_neither_memory_nor_the_loop(streamed: bool) -> None:
    page = answer(bomb(), headers=GZIP)
    async with Server(sends_and_waits(page)) as server, opened(server) as transport, bounds():
        with pytest.raises(ResponseTooLargeError, match="over 100 times as many"):
            await (await transport.fetch(Request(server.url(), streamed=streamed))).read()


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
async def test_endless_empty_members_take_neither_memory_nor_the_loop(encoding: str) -> None:
    members = gzip.compress(b"") * 10_000
    data = gzip.compress(members * 10) if "," in encoding else members

    async def behave(line: Line) -> None:
        await line.request()
        await line.send(f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\r\n".encode())
        await line.send_forever(data)

    async with Server(behave) as server, opened(server) as transport, bounds():
        with pytest.raises(BadResponseError, match="more than 10000 members"):
            await transport.fetch(Request(server.url()))


async def test_an_endless_body_takes_neither_memory_nor_the_loop() -> None:
    async with Server(endless) as server, opened(server) as transport, bounds():
        with pytest.raises(ResponseTooLargeError, match="more than 33554432 bytes"):
            await transport.fetch(Request(server.url()))


async def test_a_slow_reader_keeps_no_endless_body_in_memory() -> None:
    async with Server(endless) as server, opened(server) as transport, bounds(10 * MEBIBYTE):
        response = await transport.fetch(Request(server.url(), streamed=True))
        with pytest.raises(ResponseTooLargeError):
            await pieces_counted(response)


async def pieces_counted(response: Response) -> int:
    count = 0
    async for _ in response.chunks():
        count += 1
        await asyncio.sleep(0)
    return count


async def test_a_large_page_is_decoded_without_blocking_the_loop() -> None:
    page = TEXT * 500
    data = answer(gzip.compress(page, 1), headers=GZIP)
    async with Server(sends(data)) as server, opened(server) as transport, bounds(3 * len(page)):
        assert len(await (await transport.fetch(Request(server.url()))).read()) == len(page)


# --- bodies within limits of their request ---------------------------------------------------------


def only_html(content_type: str, start: bytes) -> bool:
    return content_type.startswith("text/html") and not start.startswith(b"%PDF")


async def test_a_body_of_a_refused_type_is_not_read() -> None:
    async def behave(line: Line) -> None:
        await line.request()
        await line.send(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 1000000\r\n\r\n1234")
        await line.lost()

    async with Server(behave) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), limits=BodyLimits(accepts=only_html)))
        assert (response.status, response.unread, response.body) == (200, True, b"")


@pytest.mark.parametrize("size", [2000, 3 * MEBIBYTE])
async def test_a_body_is_given_up_when_its_first_bytes_are_refused(size: int) -> None:
    async def behave(line: Line) -> None:
        await line.request()
        await line.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % size)
        await line.send(b"%PDF-1.7" + bytes(1500))
        await line.lost()

    async with Server(behave) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), limits=BodyLimits(accepts=only_html)))
        assert (response.unread, response.body) == (True, b"")


@pytest.mark.parametrize(
    "whole",
    [
        answer(TEXT, headers=["Content-Type: text/html"]),
        answer(gzip.compress(TEXT), headers=["Content-Type: text/html", *GZIP]),
        answer(b"", headers=["Content-Type: text/html"]),
    ],
)
async def test_an_accepted_body_is_whole_and_its_connection_is_used_again(whole: bytes) -> None:
    limits = BodyLimits(MEBIBYTE, only_html)
    async with Server(sends(whole)) as server, opened(server) as transport:
        for _ in range(2):
            expected = (await transport.fetch(Request(server.url()))).body
            response = await transport.fetch(Request(server.url(), limits=limits))
            assert (response.unread, response.body) == (False, expected)
        assert server.connections == 1


@pytest.mark.parametrize("whole", [answer(TEXT), answer(gzip.compress(TEXT), headers=GZIP)])
async def test_a_body_over_the_limit_of_its_request_fails(whole: bytes) -> None:
    async with Server(sends(whole)) as server, opened(server) as transport:
        with pytest.raises(ResponseTooLargeError, match="1000 bytes"):
            await transport.fetch(Request(server.url(), limits=BodyLimits(1000)))
        assert (await transport.fetch(Request(server.url()))).body == TEXT


async def test_the_body_of_an_error_is_read_whatever_its_type() -> None:
    async with Server(sends(answer(b"no", status="404 Not Found"))) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), limits=BodyLimits(accepts=only_html)))
        assert (response.status, response.unread, response.body) == (404, False, b"no")


def test_requests_with_other_limits_are_requests_of_their_own() -> None:
    site = ScriptedSite(lambda request: "page", seconds=1.0)
    client = site.client({"http": {"concurrency": 9}})

    async def both() -> None:
        requests = (Request("http://a.example/", limits=limits) for limits in (None, BodyLimits(9)))
        await asyncio.gather(*map(client.fetch, requests))
        await client.close()

    run(both())
    assert len(site.urls) == 2


async def test_a_body_that_was_not_read_is_not_kept_in_the_cache(tmp_path: Path) -> None:
    class Network:
        async def fetch(self, request: Request) -> Response:
            unread = request.limits is not None
            headers = CIMultiDict({"Cache-Control": "max-age=1000", "Content-Type": "text/html"})
            return Response(request.url, 200, headers, b"" if unread else b"page", unread=unread)

        async def close(self) -> None:
            """Nothing is open."""

    settings = WebSettings(http=HttpSettings(cache=tmp_path / "cache.db", robots=False))
    async with Client.open(settings, network=Network()) as client:
        first = await client.fetch(Request("http://a.example/", limits=BodyLimits(accepts=only_html)))
        second = await client.fetch(Request("http://a.example/"))
        third = await client.fetch(Request("http://a.example/"))
    assert (first.unread, second.body, third.body, third.stored) == (True, b"page", b"page", "cache")
