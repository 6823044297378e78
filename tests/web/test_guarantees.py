"""What GUARANTEES.md says of HTTP and HTML, shown through a whole engine: a plan whose failures are data,
a server on loopback that misbehaves, and nothing left behind."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from aioflow import loads
from tests.web.hostile import (
    PAGE,
    WRAPPERS,
    asking,
    moved,
    open_files,
    site,
    within_bounds,
    works,
)
from tests.web.misbehaving import Line, Server, answer, sends, sends_and_closes, silent
from tests.web.test_transport import CHUNKED, FAULTS, in_chunks

MEBIBYTE = 1024 * 1024
JSON = ["Content-Type: application/json"]


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    before = open_files()
    yield
    assert open_files() <= before


# --- faults of servers ------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "small limit"])
async def test_a_fault_is_the_stated_error_tuple_and_the_next_request_is_fine(fault: str) -> None:
    behave, kind, message, limits = FAULTS[fault]
    settings = {"first_byte_seconds": 5.0, "idle_seconds": 5.0, **limits}
    async with Server(behave) as server, asking(server, **settings) as engine:
        url = server.url("/page")
        async with within_bounds(server, engine):
            await engine.ask(url)
        assert engine.failure["error-kind"] == kind.__name__
        assert engine.failure["error"].startswith(f"{url}: ")
        assert message in engine.failure["error"]
        assert (engine.failure["link"], engine.failure["attempts"]) == (url, 1)
        assert await works(server, engine)


@pytest.mark.parametrize("mode", ["D-", "D+S-", "D+S+"])
@pytest.mark.parametrize("words", ["", "; ORDERED"])
async def test_a_stream_that_breaks_off_fails_its_tuple_only_in_every_mode(mode: Any, words: str) -> None:
    whole = answer(b'{"items": [{"n": 1}, {"n": 2}]}', headers=JSON)
    cut = sends_and_closes(answer(b'{"items": [{"n": 1}, {"n"', headers=JSON, length=99))
    async with (
        Server(site({"/whole": whole})) as server,
        Server(cut) as broken,
        asking(server, broken, mode=mode) as engine,
    ):
        links = [server.url("/whole?1"), broken.url(), server.url("/whole?2")]
        await engine.ask(*links, wrapper="items", words=words)
        assert [failure["link"] for failure in engine.failed] == [broken.url()]
        assert engine.failed[0]["error-kind"] == "ConnectionFailedError"
        assert "the body broke off" in engine.failed[0]["error"]
        found = [(row["link"], row["n"]) for row in engine.rows if row["link"] != broken.url()]
        expected = [(link, number) for link in (links[0], links[2]) for number in (1, 2)]
        assert (found if words else sorted(found)) == expected


async def test_an_endless_stream_of_items_ends_at_its_limit() -> None:
    async def behave(line: Line) -> None:
        await line.request()
        await line.send(CHUNKED + in_chunks(b'{"items": ['))
        await line.send_forever(in_chunks(b'{"n": 1, "text": "%b"},' % (b"x" * 1000) * 50))

    async with Server(behave) as server, asking(server, body_bytes=2 * MEBIBYTE) as engine:
        async with within_bounds(server, engine):
            await engine.ask(server.url(), wrapper="items")
        assert engine.failed[0]["error-kind"] == "ResponseTooLargeError"
        assert len(engine.rows) > 1000
        assert await works(server, engine)


@cache
def bomb(times: int, size: int = 64 * MEBIBYTE) -> bytes:
    """Zeros that are compressed several times over."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [compressor.compress(bytes(MEBIBYTE)) for _ in range(size // MEBIBYTE)]
    body = b"".join(pieces) + compressor.flush()
    for _ in range(times - 1):
        body = gzip.compress(body, 9)
    return body


@pytest.mark.parametrize(
    ("times", "kind", "message"),
    [
        (1, "ResponseTooLargeError", "over 100 times as many"),
        (2, "ResponseTooLargeError", "over 100 times as many"),
        (4, "ResponseTooLargeError", "over 100 times as many"),
        (5, "BadResponseError", "encoded 5 times over, at most 4"),
    ],
)
@pytest.mark.parametrize("wrapper", ["page", "items"])
async def test_a_bomb_is_refused_however_often_it_is_wrapped(
    times: int, kind: str, message: str, wrapper: str
) -> None:
    headers = [f"Content-Encoding: {', '.join(['gzip'] * times)}"]
    behave = sends_and_closes(answer(bomb(times), headers=headers))
    async with Server(behave) as server, asking(server) as engine:
        async with within_bounds(server, engine):
            await engine.ask(server.url(), wrapper=wrapper)
        assert engine.failure["error-kind"] == kind
        assert message in engine.failure["error"]
        assert await works(server, engine)


@pytest.mark.parametrize(
    ("content_type", "body", "title"),
    [
        ("text/html; charset=utf-8", "<h1>Grüße</h1>".encode("latin-1"), "Gr\ufffd\ufffde"),
        ("text/html; charset=latin-1", "<h1>Grüße</h1>".encode("latin-1"), "Grüße"),
        ("text/html; charset=x-nobody-knows", "<h1>Grüße</h1>".encode(), "Grüße"),
        ("text/html; charset=utf-7", b"<h1>+ADw-script+AD4-</h1>", "+ADw-script+AD4-"),
        ("text/html; charset=idna", b"<h1>xn--" + b"a" * 100_000 + b"</h1>", "xn--" + "a" * 100_000),
        ("text/html; charset=zip", b"<h1>plain</h1>", "plain"),
        ("text/html; charset=unicode_escape", rb"<h1>\u0041</h1>", r"\u0041"),
        ("text/html; charset=utf-16", "<h1>Grüße</h1>".encode("utf-16-le"), "Grüße"),
        ("text/html", b"<meta charset=koi8-r><h1>" + "Дом".encode("koi8-r") + b"</h1>", "Дом"),
        ("text/html; charset=\xff", b"<h1>plain</h1>", "plain"),
    ],
)
async def test_a_wrong_charset_never_fails_a_page(content_type: str, body: bytes, title: str) -> None:
    behave = sends(answer(body, headers=[f"Content-Type: {content_type}"]))
    async with Server(behave) as server, asking(server) as engine:
        async with within_bounds(server, engine):
            await engine.ask(server.url())
        assert engine.failed == []
        assert [row["title"] for row in engine.rows] == [title]


# --- where requests may lead ------------------------------------------------------------------------


async def test_a_circle_of_redirects_is_noticed_and_an_endless_chain_is_cut() -> None:
    async def chain(line: Line) -> None:
        for number in range(5):
            await line.send(moved(f"/chain/{number}"))
            await line.request()
        await line.send(answer(PAGE))

    pages = {"/a": moved("/b"), "/b": moved("/a"), "/chain": chain, "/page": answer(PAGE)}
    async with Server(site(pages)) as server, asking(server, redirects=4) as engine:
        kind, message = (await engine.ask(server.url("/a"))).kind_and_message
        assert (kind, len(server.requests)) == ("BadResponseError", 2)
        a, b = server.url("/a"), server.url("/b")
        assert message == f"{a} -> {b} -> {a}: redirected in a circle"
        kind, message = (await engine.ask(server.url("/chain"))).kind_and_message
        assert (kind, len(server.requests)) == ("BadResponseError", 7)
        assert "redirected more often than 4 times" in message
        assert await works(server, engine)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("http://10.0.0.1/", "AddressRefusedError"),
        ("http://169.254.169.254/latest/meta-data/", "AddressRefusedError"),
        ("http://[::1]:{port}/", "AddressRefusedError"),
        ("http://[::ffff:127.0.0.1]:{port}/", "AddressRefusedError"),
        ("http://[64:ff9b::7f00:1]:{port}/", "AddressRefusedError"),
        ("http://[2002:7f00:1::]:{port}/", "AddressRefusedError"),
        ("http://2130706433:{port}/", "AddressRefusedError"),
        ("http://0x7f.1:{port}/", "AddressRefusedError"),
        ("http://127.1:{port}/", "AddressRefusedError"),
        ("http://0:{port}/", "AddressRefusedError"),
        ("http://127.0.0.1.:{port}/", "AddressRefusedError"),
        ("http://localhost:{port}/", "AddressRefusedError"),
        ("//127.0.0.1:{other}/", "AddressRefusedError"),
        ("http://{allowed}@127.0.0.1:{other}/", "AddressRefusedError"),
        ("http://127.0.0.1:{other}\\@{allowed}/", "AddressRefusedError"),
        ("file:///etc/passwd", "BadResponseError"),
        ("gopher://127.0.0.1:{port}/", "BadResponseError"),
        ("javascript:alert(1)", "BadResponseError"),
        ("http://" + "\u00fc" * 80 + ".example/", "BadResponseError"),
        ("http://[::1/", "BadResponseError"),
        ("http://h:99999/", "BadResponseError"),
    ],
)
async def test_a_redirect_leads_nowhere_that_a_page_may_not_lead(target: str, kind: str) -> None:
    async with Server(sends(answer(PAGE))) as other, Server(silent) as server, asking(server) as engine:
        location = target.format(port=server.port, other=other.port, allowed=server.host)
        server.behave = site({"/here": moved(location)})
        await engine.ask(server.url("/here"))
        assert engine.failure["error-kind"] == kind
        assert server.url("/here") in engine.failure["error"]
        assert (len(server.requests), other.connections) == (1, 0)
        advice = "under [http] allow in aioflow.toml if it is meant"
        assert "is no" in engine.failure["error"] or advice in engine.failure["error"]
        assert await works(server, engine)


async def test_a_name_that_resolves_to_a_private_address_is_refused() -> None:
    async with Server(sends(answer(PAGE))) as server, asking(server) as engine:
        url = f"http://localhost:{server.port}/"
        kind, message = (await engine.ask(url)).kind_and_message
        assert kind == "AddressRefusedError"
        assert message.startswith(f"{url}: localhost leads to ")
        assert message.endswith(
            f'allow "localhost:{server.port}" under [http] allow in aioflow.toml if it is meant'
        )
        assert server.connections == 0
        assert await works(server, engine)


@pytest.mark.parametrize("extra", ["nothing", "cookies", "cache"])
async def test_an_address_that_is_none_is_refused_whatever_layers_there_are(
    extra: str, tmp_path: Path
) -> None:
    cache = tmp_path / "cache.sqlite" if extra == "cache" else False
    wrong = ["http://[::1/", "http://h:99999/", "http://h:x/", "http://\u2100.example/", "http:///x"]
    wrong.append("http://" + "\u00fc" * 80 + ".example/")
    plan = loads(f"""{WRAPPERS}
        WRAPPER second (wrong) {{ GET: "{{+wrong}}"; text: "h1" }}
        PLAN p {{ INPUT: x OUTPUT: out, failed BODY {{
            wrapper ("page", x : first) wrapper ("second", first : out) {{ERRORS: failed}} }} }}""")
    async with (
        Server(sends(answer(PAGE, headers=["Set-Cookie: a=b"]))) as server,
        asking(server, cookies=extra == "cookies", cache=cache) as engine,
    ):
        await engine.run(plan, [{"link": server.url(), "wrong": link} for link in wrong])
        assert {row["wrong"]: row["error-kind"] for row in engine.failed} == dict.fromkeys(
            wrong, "AddressRefusedError"
        )
        assert all(row["error"].startswith(row["wrong"]) for row in engine.failed)
