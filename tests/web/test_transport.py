"""One exchange against servers that misbehave: the stated error each time, and the next request works."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Any

import pytest
from aiohttp.abc import ResolveResult

from aioflow.web.errors import (
    BadResponseError,
    ConnectionFailedError,
    RequestRefusedError,
    ResponseTimeoutError,
    ResponseTooLargeError,
    WebError,
)
from aioflow.web.http import Request, Response
from aioflow.web.transport import Transport
from tests.clocks import let_time_pass
from tests.web.misbehaving import (
    Behaviour,
    Line,
    Names,
    Server,
    answer,
    bounds,
    opened,
    sends,
    sends_and_closes,
    sends_and_resets,
    sends_and_waits,
    silent,
)

TEXT = b"".join(b"<li>house %d</li>" % number for number in range(3000))
MEBIBYTE = 1024 * 1024
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\n"
GZIP = ["Content-Encoding: gzip"]


async def fetch(behave: Behaviour, /, *, request: dict[str, Any] | None = None, **settings: Any) -> Response:
    """The answer of a server that behaves like this; for bodies that are whole."""
    async with Server(behave) as server, opened(server, **settings) as transport:
        return await transport.fetch(Request(server.url(), **(request or {})))


# --- what an answer has ----------------------------------------------------------------------------


async def test_an_answer_has_its_url_status_headers_cookies_and_timing() -> None:
    cookies = ["Set-Cookie: a=1; Path=/", "Set-Cookie: b=2"]
    async with (
        Server(sends(answer(b"hello", "404 Not Found", cookies))) as server,
        opened(server) as transport,
    ):
        response = await transport.fetch(Request(f"{server.url('/a?b=c')}#part"))
        assert response.url == server.url("/a?b=c")
    assert response.status == 404
    assert response.body == b"hello"
    assert response.headers["content-LENGTH"] == "5"
    assert response.set_cookies == ("a=1; Path=/", "b=2")
    assert 0 < response.timing.first_byte_seconds <= response.timing.total_seconds


@pytest.mark.parametrize(
    "parts",
    [
        (answer(TEXT),),
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n",),
        (answer(gzip.compress(TEXT), headers=GZIP),),
        (answer(zlib.compress(TEXT), headers=["Content-Encoding: deflate"]),),
        (answer(gzip.compress(gzip.compress(TEXT)), headers=[*GZIP, *GZIP]),),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + answer(TEXT),),
        (answer(TEXT, "999 Odd"),),
    ],
)
async def test_a_body_is_decoded_and_its_connection_used_again(parts: tuple[bytes, ...]) -> None:
    async with Server(sends(*parts)) as server, opened(server) as transport:
        bodies = [(await transport.fetch(Request(server.url()))).body for _ in range(3)]
        assert bodies == [b"hello" if b"hello" in parts[0] else TEXT] * 3
        assert server.connections == 1


@pytest.mark.parametrize("given", [" {}a b\n", "{}a b#part", "\t{}a\n b"])
async def test_the_url_of_an_answer_has_no_blanks_and_no_fragment(given: str) -> None:
    async with Server(sends(answer())) as server, opened(server) as transport:
        response = await transport.fetch(Request(given.format(server.url())))
        assert response.url == server.url("/a%20b")


@pytest.mark.parametrize("parts", [(UNTIL_CLOSED, b"hello"), (b"HTTP/1.0 200 OK\r\n\r\nhel", b"lo")])
async def test_a_body_may_end_with_its_connection(parts: tuple[bytes, ...]) -> None:
    assert (await fetch(sends_and_closes(*parts))).body == b"hello"


async def test_a_large_body_that_is_compressed_well_is_read_whole() -> None:
    page = TEXT * 100
    assert (await fetch(sends(answer(gzip.compress(page, 1), headers=GZIP)))).body == page


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
async def test_an_answer_without_body_may_say_what_it_would_be(status: str) -> None:
    behave = sends(f"HTTP/1.1 {status}\r\nContent-Encoding: rot13\r\nETag: x\r\n\r\n".encode())
    async with Server(behave) as server, opened(server) as transport:
        for _ in range(2):
            assert (await transport.fetch(Request(server.url()))).body == b""
        assert server.connections == 1


async def test_the_answer_to_head_has_no_body() -> None:
    behave = sends(answer(length=10**12, headers=GZIP))
    async with Server(behave) as server, opened(server) as transport:
        for _ in range(2):
            response = await transport.fetch(Request(server.url(), "HEAD"))
            assert (response.status, response.body) == (200, b"")
        assert server.connections == 1


async def test_a_redirect_is_an_answer() -> None:
    response = await fetch(sends(answer(status="302 Found", headers=["Location: http://10.0.0.1/"])))
    assert (response.status, response.headers["Location"]) == (302, "http://10.0.0.1/")


async def test_a_request_is_sent_with_its_method_body_and_headers() -> None:
    async with Server(sends(answer(b"ok"))) as server, opened(server, contact="me@example.org") as transport:
        headers = {"content-type": "text/plain", "X-A": "1"}
        await transport.fetch(Request(server.url("/a%20b?q=%C3%A4"), "POST", headers, b"hello"))
        await transport.fetch(Request(server.url(), "POST", {"user-agent": "mine"}, bytes(2 * MEBIBYTE)))
        first, second = server.requests
    assert first.startswith(b"POST /a%20b?q=%C3%A4 HTTP/1.1\r\n")
    assert first.endswith(b"\r\n\r\nhello")
    assert b"\r\ncontent-type: text/plain\r\n" in first
    assert b"\r\nX-A: 1\r\n" in first
    assert b"\r\nUser-Agent: aioflow/" in first
    assert b" (+me@example.org)\r\n" in first
    assert b"\r\nAccept-Encoding: gzip, deflate" in first
    assert b"cookie" not in first.lower()
    assert b"\r\nuser-agent: mine\r\n" in second.lower()
    assert second.endswith(bytes(2 * MEBIBYTE))


async def test_cookies_are_left_to_others() -> None:
    async with Server(sends(answer(headers=["Set-Cookie: a=1; Path=/"]))) as server:
        host = f"shop.example:{server.port}"
        async with opened(server, names=Names(shop_example=["127.0.0.1"]), allow=(host,)) as transport:
            for _ in range(2):
                await transport.fetch(Request(f"http://{host}/"))
            await transport.fetch(Request(f"http://{host}/", headers={"Cookie": "b=2"}))
        assert [b"Cookie: b=2" in request for request in server.requests] == [False, False, True]
        assert b"a=1" not in b"".join(server.requests)


async def test_a_body_waits_for_100_continue() -> None:
    async def behave(line: Line) -> None:
        head = await line.head()
        assert b"Expect: 100-continue" in head
        await line.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await line._reader.readexactly(5) == b"hello"
        await line.send(answer(b"thanks"))
        await line.lost()

    request = {"method": "POST", "headers": {"Expect": "100-continue"}, "body": b"hello"}
    assert (await fetch(behave, request=request)).body == b"thanks"


async def test_an_answer_may_come_before_the_body_was_asked_for() -> None:
    async def behave(line: Line) -> None:
        await line.head()
        await line.send(answer(b"no", "417 Expectation Failed"))
        await line.lost()

    request = {"method": "POST", "headers": {"Expect": "100-continue"}, "body": b"hello"}
    assert (await fetch(behave, request=request)).status == 417


# --- faults ----------------------------------------------------------------------------------------


async def endless_body(line: Line) -> None:
    await line.request()
    await line.send(CHUNKED)
    await line.send_forever(b"10000\r\n" + bytes(65536) + b"\r\n")


async def endless_headers(line: Line) -> None:
    await line.request()
    await line.send(b"HTTP/1.1 200 OK\r\n")
    await line.send_forever(b"X-Header: and another one\r\n" * 100)


async def endless_header(line: Line) -> None:
    await line.request()
    await line.send(b"HTTP/1.1 200 OK\r\nX-Header: ")
    await line.send_forever(b"and on and on " * 100)


async def endless_status(line: Line) -> None:
    await line.request()
    await line.send(b"HTTP/1.1 200 ")
    await line.send_forever(b"OK OK OK OK OK " * 100)


async def endless_hints(line: Line) -> None:
    await line.request()
    let_time_pass(60)
    await line.send_forever(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)


async def endless_chunk_header(line: Line) -> None:
    await line.request()
    await line.send(CHUNKED)
    await line.send_forever(b"0" * 1000)


async def endless_members(line: Line) -> None:
    await line.request()
    await line.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
    await line.send_forever(gzip.compress(b"") * 1000)


async def silent_after_the_request(line: Line) -> None:
    await line.request()
    let_time_pass(60)
    await line.lost()


async def slow_headers(line: Line) -> None:
    await line.request()
    for byte in b"HTTP/1":
        await line.send(bytes([byte]))
        let_time_pass(10)
    await line.lost()


async def slow_body(line: Line) -> None:
    await line.request()
    await line.send(answer(length=20 * MEBIBYTE))
    # More than fits into all buffers on the way: the client has read the headers, and waits for the rest.
    for _ in range(200):
        await line.send(bytes(65536))
    for _ in range(1000):
        await line.send(b"x")
        let_time_pass(1)


def sends_first(data: bytes) -> Behaviour:
    """For what is wrong inside of a decent frame: the connection goes on."""

    async def behave(line: Line) -> None:
        await line.request()
        await line.send(data)
        await sends(answer(b"ok"))(line)

    return behave


def in_chunks(text: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(text), text)


FAULTS: dict[str, tuple[Behaviour, type[WebError], str, dict[str, Any]]] = {
    "reset at once": (sends_and_resets(), ConnectionFailedError, "reset by peer", {}),
    "reset in the headers": (sends_and_resets(b"HTTP/1.1 200 OK\r\nX"), ConnectionFailedError, "reset", {}),
    "reset in the body": (sends_and_resets(answer(b"he", length=5)), ConnectionFailedError, "broke off", {}),
    "reset in chunks": (sends_and_resets(CHUNKED + in_chunks(b"he")), ConnectionFailedError, "broke off", {}),
    "reset at an unknown end": (sends_and_resets(UNTIL_CLOSED + b"he"), ConnectionFailedError, "reset", {}),
    "closed at once": (sends_and_closes(), ConnectionFailedError, "closed before", {}),
    "closed in the headers": (sends_and_closes(b"HTTP/1.1 200 OK\r\nX"), ConnectionFailedError, "closed", {}),
    "closed in the body": (sends_and_closes(answer(b"he", length=5)), ConnectionFailedError, "2 of 5", {}),
    "closed in chunks": (sends_and_closes(CHUNKED + b"5\r\nhe"), ConnectionFailedError, "broke off", {}),
    "body too long": (sends_and_waits(answer(b"hello", length=2)), BadResponseError, "not HTTP", {}),
    "length no number": (
        sends_and_waits(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"),
        BadResponseError,
        "Content-Length",
        {},
    ),
    "two lengths": (
        sends_and_waits(answer(b"hello", headers=["Content-Length: 6"])),
        BadResponseError,
        "Content-Length",
        {},
    ),
    "length and chunks": (
        sends_and_waits(answer(b"5\r\nhello\r\n0\r\n\r\n", headers=["Transfer-Encoding: chunked"])),
        BadResponseError,
        "Transfer-Encoding",
        {},
    ),
    "bad chunk": (sends_and_waits(CHUNKED + b"zz\r\nhello"), BadResponseError, "chunk size", {}),
    "chunk of 2**68": (sends_and_waits(CHUNKED + b"F" * 17 + b"\r\n"), BadResponseError, "overflow", {}),
    "compressed on the way": (
        sends_and_closes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" + gzip.compress(TEXT)),
        BadResponseError,
        "'gzip', which was not asked for",
        {},
    ),
    "no HTTP": (sends_and_closes(b"220 mail ready\r\n"), BadResponseError, "not HTTP", {}),
    "HTTP/0.9": (sends_and_closes(b"<html>hello</html>"), BadResponseError, "not HTTP", {}),
    "zero in a header": (sends_and_waits(answer(headers=["X: a\0b"])), BadResponseError, "header", {}),
    "upgrade": (
        sends_and_waits(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc"),
        BadResponseError,
        "another protocol",
        {},
    ),
    "cut gzip": (
        sends_first(answer(gzip.compress(TEXT)[:-20], headers=GZIP)),
        BadResponseError,
        "gzip body is cut off",
        {},
    ),
    "no gzip": (sends_first(answer(TEXT, headers=GZIP)), BadResponseError, "not gzip", {}),
    "unknown encoding": (
        sends_first(answer(TEXT, headers=["Content-Encoding: rot13"])),
        BadResponseError,
        "'rot13'",
        {},
    ),
    "claims too much": (
        sends_and_waits(answer(length=10**15)),
        ResponseTooLargeError,
        "1000000000000000 bytes, which is more than 33554432",
        {},
    ),
    "endless body": (
        endless_body,
        ResponseTooLargeError,
        "more than 3000000 bytes",
        {"body_bytes": 3_000_000},
    ),
    "endless gzip of nothing": (endless_members, BadResponseError, "more than 10000 members", {}),
    "small limit": (
        sends_first(answer(b"hello")),
        ResponseTooLargeError,
        "more than 4 bytes",
        {"body_bytes": 4},
    ),
    "endless headers": (endless_headers, ResponseTooLargeError, "headers", {}),
    "endless header": (endless_header, ResponseTooLargeError, "65536 bytes of headers", {}),
    "endless status": (endless_status, ResponseTooLargeError, "headers", {}),
    "many long headers": (
        sends_first(answer(headers=[f"X-{number}: {'a' * 40_000}" for number in range(2)])),
        ResponseTooLargeError,
        "65536 bytes of headers",
        {},
    ),
    "silence": (silent_after_the_request, ResponseTimeoutError, "no answer within 60 s after", {}),
    "silence in all": (
        silent_after_the_request,
        ResponseTimeoutError,
        "no answer within 50 s in all",
        {"total_seconds": 50.0},
    ),
    "slow headers": (slow_headers, ResponseTimeoutError, "no answer within 60 s after", {}),
    "endless hints": (endless_hints, ResponseTimeoutError, "no answer within 60 s after", {}),
    "silence in the body": (
        sends_and_waits(answer(b"he", length=5)),
        ResponseTimeoutError,
        "0.05 s passed without a byte",
        {"idle_seconds": 0.05},
    ),
    "slow body": (slow_body, ResponseTimeoutError, "not whole within 100 s", {"total_seconds": 100.0}),
    "endless chunk header": (
        endless_chunk_header,
        ResponseTimeoutError,
        "without a byte",
        {"idle_seconds": 0.1},
    ),
}


async def works(server: Server, transport: Transport) -> bool:
    """Whether an ordinary request is answered."""
    server.behave = sends(answer(b"ok"))
    return (await transport.fetch(Request(server.url()))).body == b"ok"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_gives_the_stated_error_and_the_next_request_works(fault: str) -> None:
    behave, kind, message, settings = FAULTS[fault]
    async with Server(behave) as server, opened(server, **settings) as transport:
        async with bounds():
            with pytest.raises(WebError) as caught:
                await transport.fetch(Request(server.url("/page")))
        assert type(caught.value) is kind
        assert str(caught.value).startswith(server.url("/page: "))
        assert message in str(caught.value)
        assert len(server.requests) <= 1
        assert await works(server, transport)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_streamed_answer_fails_likewise(fault: str) -> None:
    behave, kind, message, settings = FAULTS[fault]
    async with Server(behave) as server, opened(server, **settings) as transport:
        with pytest.raises(kind, match=message):
            await (await transport.fetch(Request(server.url("/page"), streamed=True))).read()
        assert await works(server, transport)


async def test_bad_framing_after_a_good_beginning_is_noticed_at_once() -> None:
    go_on = asyncio.Event()

    async def behave(line: Line) -> None:
        await line.request()
        await line.send(CHUNKED + in_chunks(b"hello"))
        await go_on.wait()
        await line.send(b"no length\r\n")
        await line.lost()

    async with Server(behave) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), streamed=True))
        pieces = aiter(response.chunks())
        assert await anext(pieces) == b"hello"
        go_on.set()
        with pytest.raises(BadResponseError, match="chunk size"):
            await anext(pieces)


async def test_trailers_without_end_are_too_large() -> None:
    go_on = asyncio.Event()

    async def behave(line: Line) -> None:
        await line.request()
        await line.send(CHUNKED + in_chunks(b"hello"))
        await go_on.wait()
        await line.send(b"0\r\n")
        await line.send_forever(b"X-Trailer: and another one\r\n" * 100)

    async with Server(behave) as server, opened(server) as transport:
        response = await transport.fetch(Request(server.url(), streamed=True))
        pieces = aiter(response.chunks())
        assert await anext(pieces) == b"hello"
        go_on.set()
        with pytest.raises(ResponseTooLargeError, match="headers"):
            await anext(pieces)


async def test_a_connection_that_was_closed_while_idle_is_not_used_again() -> None:
    async with Server(sends_and_closes(answer(b"ok"))) as server, opened(server) as transport:
        await transport.fetch(Request(server.url()))
        await server.all_lost()
        assert (await transport.fetch(Request(server.url()))).body == b"ok"
        assert server.connections == 2


async def test_a_connection_that_is_closed_when_it_is_used_again_fails_and_nothing_is_sent_twice() -> None:
    async def behave(line: Line) -> None:
        await line.request()
        await line.send(answer(b"ok"))
        await line.request()

    async with Server(behave) as server, opened(server) as transport:
        await transport.fetch(Request(server.url()))
        with pytest.raises(ConnectionFailedError, match="closed before the answer"):
            await transport.fetch(Request(server.url()))
        assert len(server.requests) == 2
        assert (await transport.fetch(Request(server.url()))).body == b"ok"


async def test_what_comes_while_nobody_has_asked_answers_nothing() -> None:
    intrude, intruded = asyncio.Event(), asyncio.Event()

    async def behave(line: Line) -> None:
        await line.request()
        await line.send(answer(b"first"))
        await intrude.wait()
        await line.send(answer(b"not asked for"))
        intruded.set()
        await sends(answer(b"second"))(line)

    async with Server(behave) as server, opened(server) as transport:
        assert (await transport.fetch(Request(server.url()))).body == b"first"
        intrude.set()
        await intruded.wait()
        await asyncio.to_thread(lambda: None)  # a turn of the loop, in which it arrives
        with pytest.raises(ConnectionFailedError):
            assert (await transport.fetch(Request(server.url()))).body == b"second"
        assert len(server.requests) == 1


async def test_no_connection_is_an_error_that_says_so() -> None:
    async with Server(silent) as server:
        pass
    async with opened(server) as transport:
        with pytest.raises(ConnectionFailedError, match=f"no connection to 127.0.0.1:{server.port}: "):
            await transport.fetch(Request(server.url()))


async def test_https_to_what_speaks_no_tls_fails() -> None:
    async with Server(sends_and_closes(answer(b"ok"))) as server, opened(server) as transport:
        server.behave = lambda line: line.send(b"this is no TLS, whatever you say\r\n" * 10)
        with pytest.raises(ConnectionFailedError, match="no connection to"):
            await transport.fetch(Request(server.url().replace("http:", "https:")))


async def test_a_name_that_is_never_resolved_fails_within_the_limit_for_connections() -> None:
    class Stuck(Names):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            await asyncio.Event().wait()
            return []

    async with Server(silent) as server, opened(server, names=Stuck(), connect_seconds=0.05) as transport:
        with pytest.raises(ResponseTimeoutError, match=r"no connection within 0\.05 s"):
            await transport.fetch(Request("http://example.org/"))
        with pytest.raises(ResponseTimeoutError, match=r"no answer within 0\.02 s in all"):
            await transport.fetch(Request("http://example.org/", timeout_seconds=0.02))


async def test_a_request_may_have_a_limit_of_its_own() -> None:
    async with Server(silent) as server, opened(server) as transport:
        with pytest.raises(ResponseTimeoutError, match=r"no answer within 0\.05 s in all"):
            await transport.fetch(Request(server.url(), timeout_seconds=0.05))


@pytest.mark.parametrize(
    "headers", [{"X-A": "1\r\nX-B: 2"}, {"X-A: 1\r\nX-B": "2"}, {"X-A": "a\0b"}, {"Content-Length": "x"}]
)
async def test_headers_that_would_break_the_request_are_not_sent(headers: dict[str, str]) -> None:
    async with Server(sends(answer())) as server, opened(server) as transport:
        with pytest.raises(RequestRefusedError, match="cannot be sent"):
            await transport.fetch(Request(server.url(), "POST", headers, b"body"))
        assert server.requests == []
