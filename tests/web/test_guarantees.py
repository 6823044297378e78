"""What GUARANTEES.md says of HTTP and HTML, shown through a whole engine: a plan whose failures are data,
a server on loopback that misbehaves, and nothing left behind."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote_plus

import pytest

from aioflow import Engine, loads
from aioflow.testing import assert_nothing_left
from aioflow.web import (
    AddressRefusedError,
    Client,
    CookieStore,
    HttpSettings,
    Request,
    Response,
    WebSettings,
)
from tests.clocks import let_time_pass
from tests.web.hostile import (
    PAGE,
    WRAPPERS,
    Asking,
    asking,
    header,
    load_everything,
    moved,
    open_files,
    plan_of,
    site,
    works,
)
from tests.web.misbehaving import (
    LONG_LIMITS,
    Behaviour,
    Line,
    Server,
    answer,
    bounds,
    sends,
    sends_and_closes,
    sends_and_resets,
    silent,
)
from tests.web.scripted import Site as ScriptedSite
from tests.web.scripted import answer as scripted
from tests.web.test_transport import CHUNKED, FAULTS, in_chunks

MEBIBYTE = 1024 * 1024
JSON = ["Content-Type: application/json"]


@pytest.fixture(scope="module", autouse=True)
def everything_is_loaded() -> None:
    asyncio.run(load_everything())


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    before = open_files()
    yield
    assert open_files() <= before


# --- faults of servers ------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "small limit"])
async def test_a_fault_is_the_stated_error_tuple_and_the_next_request_is_fine(fault: str) -> None:
    behave, kind, message, limits = FAULTS[fault]
    async with Server(behave) as server, asking(server, **{**LONG_LIMITS, **limits}) as engine:
        url = server.url("/page")
        async with bounds():
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
        found = [(row["link"], row["n"]) for row in engine.rows]
        expected = [(link, number) for link in (links[0], links[2]) for number in (1, 2)]
        assert (found if words else sorted(found)) == expected


async def test_an_endless_stream_of_items_ends_at_its_limit() -> None:
    async def behave(line: Line) -> None:
        await line.request()
        await line.send(CHUNKED + in_chunks(b'{"items": ['))
        await line.send_forever(in_chunks(b'{"n": 1, "text": "%b"},' % (b"x" * 1000) * 50))

    async with Server(behave) as server, asking(server, body_bytes=2 * MEBIBYTE) as engine:
        async with bounds():
            await engine.ask(server.url(), wrapper="items")
        assert engine.failure["error-kind"] == "ResponseTooLargeError"
        assert await works(server, engine)


@cache
def bomb(times: int) -> bytes:
    """Zeros that are compressed several times over."""
    if times > 1:
        return gzip.compress(bomb(times - 1), 9)
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(compressor.compress(bytes(MEBIBYTE)) for _ in range(64)) + compressor.flush()


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
        async with bounds():
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
        async with bounds():
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

    pages: dict[str, bytes | Behaviour] = {
        "/a": moved("/b"),
        "/b": moved("/a"),
        "/chain": chain,
        "/page": answer(PAGE),
    }
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


# --- credentials and secrets ------------------------------------------------------------------------

SECRETS = {"TOKEN": "hush-t0ken/1?2", "PASSWORD": "hush p4ssword"}
# As they are, as URLs and forms have them, and what basic credentials are made of.
SHOWN = ("hush", "t0ken", "p4ssword", "dXNlcjpodXNo")


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(f"AIOFLOW_SECRET_{name}", value)


def secret_wrappers(server: Server) -> str:
    return f"""
    WRAPPER header (link) {{ GET: "http://{server.host}/{{link}}"; HEADERS: X-Key = "secret:TOKEN"; t: "h1" }}
    WRAPPER bearer (link) {{ GET: "http://{server.host}/{{link}}"; AUTH: bearer "secret:TOKEN"; t: "h1" }}
    WRAPPER basic (link) {{
      GET: "http://{server.host}/{{link}}"; AUTH: basic "user" "secret:PASSWORD"; t: "h1" }}
    WRAPPER form (link) {{
      POST: "http://{server.host}/{{link}}"; SAFE; FORM: p = "secret:PASSWORD"; t: "h1" }}
    WRAPPER json (link) {{
      POST: "http://{server.host}/{{link}}"; SAFE; JSON: p = "secret:TOKEN"; t: "h1" }}
    """


def given_away(request: bytes) -> str:
    """The secret in a request, or the credentials that were made of it."""
    own = header(request, "X-Key") or (header(request, "Authorization") or "").partition(" ")[2]
    body = request.partition(b"\r\n\r\n")[2].decode()
    if own:
        return own
    return str(json.loads(body)["p"] if body.startswith("{") else parse_qs(body)["p"][0])


def contents(folder: Path) -> str:
    return b"".join(file.read_bytes() for file in folder.iterdir()).decode("latin-1")


@pytest.mark.usefixtures("secrets")
async def test_credentials_and_cookies_stay_with_their_origin() -> None:
    async with Server(silent) as other, Server(silent) as server, asking(server, other) as engine:
        there = moved(other.url("/there"), "302 Found", "Set-Cookie: id=mine")
        server.behave = site({"/away": there, "/home": answer(PAGE)})
        other.behave = site({"/there": moved(server.url("/home"), "302 Found", "Set-Cookie: id=other")})
        plan = plan_of("bearer", secret_wrappers(server))
        assert (await engine.run(plan, [{"link": "away"}])).rows
        away, home = server.requests
        (there,) = other.requests
        assert header(away, "Authorization") == f"Bearer {SECRETS['TOKEN']}"
        assert (header(there, "Authorization"), header(there, "Cookie")) == (None, None)
        assert (header(home, "Authorization"), header(home, "Cookie")) == (None, "id=mine")


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("wrapper", ["header", "bearer", "basic", "form", "json"])
@pytest.mark.parametrize("keep", ["cache", "record"])
async def test_a_secret_that_a_host_sends_back_is_shown_and_kept_nowhere(
    wrapper: str, keep: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    events: list[Any] = []
    settings: dict[str, Any] = {keep: tmp_path / ("kept.sqlite" if keep == "cache" else "kept")}

    async def echo(line: Line) -> None:
        while True:
            request = await line.request()
            path, secret = request.split(b" ")[1], given_away(request)
            assert "hush" in secret or "dXNlcjpodXNo" in secret
            if path == b"/moved":
                await line.send(moved(f"http://10.0.0.1/?k={quote_plus(secret)}"))
            elif path == b"/status":
                await line.send(f"HTTP/1.1 {secret} no\r\n\r\n".encode())
                return
            elif path == b"/reason":
                await line.send(answer(status=f"500 {secret}"))
            else:
                kept = ["Cache-Control: public, max-age=99", f"X-Echo: {secret}", f"Set-Cookie: k={secret}"]
                await line.send(answer(f"<h1>{secret}</h1>".encode(), headers=kept))

    async with Server(echo) as server, asking(server, **settings) as engine:
        engine.engine.subscribe(events.append)
        plan = plan_of(wrapper, secret_wrappers(server))
        await engine.run(plan, [{"link": link} for link in ("moved", "status", "reason", "fine")])
        assert len(engine.rows) == 1
        kinds = {"moved": "AddressRefusedError", "status": "BadResponseError", "reason": "HttpStatusError"}
        assert {row["link"]: row["error-kind"] for row in engine.failed} == kinds
        shown = f"{engine.failed}{events}{caplog.text}{engine.engine.services.service(Client).statistics()}"
    kept = contents(tmp_path)
    assert kept
    assert not [secret for secret in SHOWN if secret in shown]
    assert not [secret for secret in SHOWN if secret in kept]


@pytest.mark.usefixtures("secrets")
async def test_a_redirect_from_https_to_http_takes_neither_credentials_nor_a_body() -> None:
    sent: list[Request] = []

    def respond(request: Request) -> Response:
        sent.append(request)
        is_first = request.url.startswith("https:")
        return scripted(307, {"Location": "http://api.example/x"}) if is_first else scripted(200, {}, PAGE)

    wrappers = """
    WRAPPER get (link) { GET: "https://api.example/{link}"; AUTH: bearer "secret:TOKEN"; t: "h1" }
    WRAPPER post (link) { POST: "https://api.example/{link}"; SAFE; FORM: link; t: "h1" }
    """
    settings = WebSettings(HttpSettings(robots=False, retries=0))
    client = Client.open(settings, network=ScriptedSite(respond))
    async with Engine(services={Client: client}, configuration={"http": {"health": False}}) as engine:
        asked = Asking(engine)
        assert (await asked.run(plan_of("get", wrappers), [{"link": "x"}])).rows
        first, second = sent
        assert "hush" in str(first.headers)
        assert "hush" not in str(second.headers)
        await asked.run(plan_of("post", wrappers), [{"link": "x"}])
        assert asked.failure["error-kind"] == "BadResponseError"
        assert "would send the request's body unencrypted" in asked.failure["error"]
        assert len(sent) == 3


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("wrapper", ["form", "json"])
@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
async def test_a_redirect_takes_no_secret_in_a_body_to_another_host(wrapper: str, status: str) -> None:
    async with (
        Server(sends(answer(PAGE))) as other,
        Server(silent) as server,
        asking(server, other) as engine,
    ):
        server.behave = site({"/x": moved(other.url(), status)})
        await engine.run(plan_of(wrapper, secret_wrappers(server)), [{"link": "x"}])
        assert engine.failure["error-kind"] == "BadResponseError"
        assert "would send a secret in the body to another host" in engine.failure["error"]
        assert other.connections == 0


async def test_a_next_link_to_another_host_takes_no_header_that_may_be_a_credential() -> None:
    async with Server(silent) as other, Server(silent) as server, asking(server, other) as engine:
        wrappers = f"""WRAPPER pages (key) {{ GET: "http://{server.host}/"; EACH: "li"; n: "b"
            HEADERS: X-Api-Key = "{{key}}", Accept = "text/html"; PAGING: next "a @href" }}"""
        server.behave = sends(answer(f"<li><b>1</b></li><a href='{other.url()}'>next</a>".encode()))
        other.behave = sends(answer(b"<li><b>2</b></li>"))
        await engine.run(plan_of("pages", wrappers), [{"key": "hush"}])
        assert [row["n"] for row in engine.rows] == ["1", "2"]
        assert header(server.requests[0], "X-Api-Key") == "hush"
        assert header(other.requests[0], "X-Api-Key") is None
        assert header(other.requests[0], "Accept") == "text/html"


@pytest.mark.parametrize("status", ["300 Multiple Choices", "304 Not Modified", "305 Use Proxy"])
async def test_a_status_that_brings_no_page_is_no_page(status: str) -> None:
    async with Server(sends_first(answer(status=status))) as server, asking(server) as engine:
        kind, message = (await engine.ask(server.url())).kind_and_message
        assert (kind, message) == ("HttpStatusError", f"{server.url()}: {status}")
        assert await works(server, engine)


async def test_values_forge_neither_headers_nor_hosts() -> None:
    wrappers = """
    WRAPPER named (v, w) { GET: "http://HOST/x{?w}"; HEADERS: X-Value = "{v}"; t: "h1" }
    WRAPPER hosted (v, w) { GET: "http://{v}.example:PORT/"; t: "h1" }
    """
    async with Server(sends(answer(PAGE))) as server, asking(server) as engine:
        text = wrappers.replace("HOST", server.host).replace("PORT", str(server.port))
        row = {"v": "a\r\nX-Forged: 1\r\n\r\nGET /forged HTTP/1.1", "w": "x"}
        kind, message = (await engine.run(plan_of("named", text), [row])).kind_and_message
        assert kind == "RequestRefusedError"
        assert "could forge other headers" in message
        await engine.run(plan_of("named", text), [{"v": "a", "w": row["v"]}])
        assert len(server.requests) == 1
        assert server.requests[0].count(b"\r\nX-") == 1
        await engine.run(plan_of("hosted", text), [{"v": f"{server.host}/?", "w": "x"}])
        assert engine.failure["error-kind"] == "RequestRefusedError"
        assert await works(server, engine)


def sends_first(data: bytes) -> Behaviour:
    """One answer, then ordinary pages on the same connection."""

    async def behave(line: Line) -> None:
        await line.request()
        await line.send(data)
        await sends(answer(PAGE))(line)

    return behave


# --- hosts that ask for patience --------------------------------------------------------------------

AFTER = [
    ("0", 2),
    ("-5", 2),
    ("0.001", 2),
    ("", 2),
    ("soon", 2),
    ("nan", 2),
    ("1e9", 2),
    ("0x10", 2),
    ("\u0661", 2),
    ("Thu, 01 Jan 1970 00:00:00 GMT", 2),
    ("Sunday, 06-Nov-94 08:49:37 GMT", 2),
    ("Sun Nov  6 08:49:37 1994", 2),
    ("Thu, 99 Foo 2026 99:99:99 GMT", 2),
    ("0, 0", 2),
    ("9" * 10_000, 2),
    ("99999999999999999999", 1),
    ("Fri, 31 Dec 9999 23:59:59 GMT", 1),
    ("0, 86400", 1),
]


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
@pytest.mark.parametrize(("value", "attempts"), AFTER)
async def test_every_retry_after_is_heeded_or_left_and_never_waited_for_too_long(
    status: str, value: str, attempts: int
) -> None:
    """Retries there are unless the host asks for longer than is waited for; then the answer is the error."""
    async with (
        Server(sends(answer(PAGE))) as server,
        asking(server, retries=1, retry_base_seconds=0.001, retry_after_seconds=0.02) as engine,
    ):
        server.behave = sends_first(answer(status=status, headers=[f"Retry-After: {value}"]))
        await engine.ask(server.url())
        if attempts == 1:
            assert engine.failure["error-kind"] == "HttpStatusError"
            assert engine.failure["error"] == f"{server.url()}: {status}"
            assert engine.failure["attempts"] == 1
        else:
            assert len(engine.rows) == 1
        assert len(server.requests) == attempts
        if attempts == 2:
            assert await works(server, engine)


async def test_a_host_that_is_paused_or_slow_holds_nothing_that_another_could_use() -> None:
    """One worker: were the permit kept during a pause, or by a stream that waits, nobody else would run."""
    pause = answer(status="503 Service Unavailable", headers=["Retry-After: 3600"])
    async with (
        Server(sends(pause)) as paused,
        Server(sends(answer(PAGE))) as server,
        asking(paused, server, retries=3, retry_base_seconds=0.001) as engine,
    ):
        links = [paused.url("/1"), paused.url("/2"), *(server.url(f"/{number}") for number in range(20))]
        found = 0
        plan = plan_of("page", words="; WORKERS: 1")
        async with engine.engine.stream(plan, output="out", x=[{"link": link} for link in links]) as stream:
            async for _ in stream:
                found += 1
                if found == 20:
                    break
        assert len(paused.requests) <= 2


async def test_a_host_that_fails_often_is_left_alone_and_the_error_says_since_when_and_why() -> None:
    async with (
        Server(sends(answer(status="500 Internal Server Error"))) as server,
        asking(server, breaker_failures=2, breaker_seconds=600.0) as engine,
    ):
        for _ in range(2):
            assert (await engine.ask(server.url())).failure["error-kind"] == "HttpStatusError"
        # The third is the probe, and fails: from then on the host is left alone for longer.
        let_time_pass(600)
        assert (await engine.ask(server.url())).failure["error-kind"] == "HttpStatusError"
        kind, message = (await engine.ask(server.url())).kind_and_message
        assert kind == "CircuitOpenError"
        assert f"{server.host} is left alone since " in message
        assert "failures in a row, the last: status 500; until " in message
        assert (engine.failure["attempts"], len(server.requests)) == (0, 3)


async def test_an_effect_is_sent_once_unless_nothing_was_sent() -> None:
    async with Server(sends_and_resets()) as server:
        wrappers = f'WRAPPER order (link) {{ POST: "http://{server.host}/"; FORM: link; t: "h1" }}'
        limits: dict[str, Any] = {"retries": 2, "retry_base_seconds": 0.001}
        async with asking(server, **limits) as engine:
            plan = plan_of("order", wrappers)
            await engine.run(plan, [{"link": "x"}])
            assert engine.failure["error-kind"] == "ConnectionFailedError"
            assert (engine.failure["attempts"], len(server.requests)) == (1, 1)
    async with asking(server, **limits) as engine:
        await engine.run(plan, [{"link": "x"}])
        assert engine.failure["attempts"] == 3
        assert "no connection to" in engine.failure["error"]


# --- pages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"<h1>fine</h1>" + b"<div>" * 30_000,
        b"<h1>fine</h1>" + b"<b><p>" * 20_000,
        b"<h1>fine</h1>" + b"<table><tr><td>" * 7_000,
        b"<h1>fine</h1><p " + b" ".join(b"a%d=1" % number for number in range(5_000)) + b">",
        b"<h1>fine</h1>" + b"<!--" * 60_000,
        b"<h1>fine</h1>" + b"<a href=x>" * 25_000,
        b"<h1>fine</h1>" + b"&lt" * 80_000,
        b"<h1>fine</h1>" + b"</p>" * 60_000,
        b"<h1>fine</h1>" + b"<li>" * 40_000,
    ],
    ids=["deep", "formatting", "tables", "attributes", "comments", "links", "entities", "ends", "items"],
)
async def test_a_page_that_is_hard_to_parse_blocks_nobody(body: bytes) -> None:
    async with Server(sends_and_closes(answer(body))) as server, asking(server) as engine:
        async with bounds():
            await engine.ask(server.url())
        assert [row["title"] for row in engine.rows] == ["fine"]
        assert await works(server, engine)


async def test_600_000_nodes_are_read_while_the_loop_goes_on() -> None:
    wrappers = 'WRAPPER nodes (link) { GET: "{+link}"; n: "p" count; last: "p" last }'
    body = b"<p>x" * 299_999 + b"<p>end"
    async with Server(sends_and_closes(answer(body))) as server, asking(server) as engine:
        async with bounds():
            await engine.run(plan_of("nodes", wrappers), [{"link": server.url()}])
        assert [(row["n"], row["last"]) for row in engine.rows] == [(300_000, "end")]


DOCTYPE = b'<!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa">%b]><feed><entry><t>%b</t></entry></feed>'
LAUGHS = b"".join(b'<!ENTITY %b "%b">' % (bytes([98 + n]), b"&%b;" % bytes([97 + n]) * 10) for n in range(9))


@pytest.mark.parametrize(
    ("wrapper", "body", "message"),
    [
        ("items", b'{"items": ' + b"[" * 100_000, "nested more than 256 levels deep"),
        ("whole", b'{"items": ' + b'{"a": ' * 100_000, "nested more than 256 levels deep"),
        (
            "items",
            b'{"items": [{"n": ' + b"[" * 300 + b"]" * 300 + b"}]}",
            "nested more than 256 levels deep",
        ),
        ("whole", b'{"items": [{"n": ' + b"9" * 100_000 + b"}]}", ""),
        ("entries", b"<feed>" + b"<entry>" * 100_000, "256"),
        ("entries", DOCTYPE % (LAUGHS, b"&j;"), "DOCTYPE"),
        ("entries", DOCTYPE % (b'<!ENTITY f SYSTEM "file:///etc/passwd">', b"&f;"), "DOCTYPE"),
        ("entries", DOCTYPE % (b'<!ENTITY f SYSTEM "http://HOST/x">', b"&f;"), "DOCTYPE"),
        ("entries", b"<feed>&undefined;</feed>", "the XML cannot be read"),
        ("entries", b"<feed>" + b"<!--" + b"-" * 100_000, "the XML cannot be read"),
    ],
)
async def test_a_bomb_in_json_or_xml_fails_its_tuple_with_the_reason(
    wrapper: str, body: bytes, message: str
) -> None:
    async with Server(silent) as server, asking(server) as engine:
        server.behave = sends_and_closes(answer(body.replace(b"HOST", server.host.encode())))
        async with bounds():
            await engine.ask(server.url(), wrapper=wrapper)
        assert len(server.requests) == 1
        if message:
            assert engine.failure["error-kind"] == "ExtractionError"
            assert engine.failure["error"].startswith(server.url())
            assert message in engine.failure["error"]
        assert "root:" not in str(engine.rows)
        assert await works(server, engine)


async def test_an_xinclude_stays_what_it_is() -> None:
    body = b"""<feed xmlns:xi="http://www.w3.org/2001/XInclude"><entry><t>
        <xi:include href="file:///etc/passwd" parse="text"/></t></entry></feed>"""
    async with Server(sends(answer(body))) as server, asking(server) as engine:
        await engine.ask(server.url(), wrapper="entries")
        assert [(row["t"] or "").strip() for row in engine.rows] == [""]


# --- robots.txt -------------------------------------------------------------------------------------


async def test_a_robots_txt_is_read_to_its_limit_and_no_further() -> None:
    async def endless(line: Line) -> None:
        await line.send(CHUNKED + in_chunks(b"User-agent: *\nDisallow: /first\n"))
        await line.send_forever(in_chunks(b"# whatever comes to mind\n" * 1000))

    async with Server(site({"/robots.txt": endless})) as server, asking(server, robots=True) as engine:
        async with bounds():
            await engine.ask(server.url("/first/page"), server.url("/page"))
        assert [row["link"] for row in engine.rows] == [server.url("/page")]
        (failed,) = engine.failed
        assert failed["error-kind"] == "RobotsRefusedError"
        switch = f'set robots = false under [host."{server.host}"] in aioflow.toml'
        assert failed["error"] == (
            f"{server.url('/first/page')}: {server.url('/robots.txt')} forbids it to the user agent aioflow; "
            f"if the host is yours, {switch}"
        )


async def test_rules_and_addresses_that_are_slow_to_compare_block_nobody() -> None:
    rules = b"User-agent: *\n" + b"Disallow: /*a*b$\n" * 10_000
    async with (
        Server(site({"/robots.txt": answer(rules)})) as server,
        asking(server, robots=True, header_bytes=100_000) as engine,
    ):
        async with bounds():
            await engine.ask(server.url("/" + "a" * 40_000))
        assert (len(engine.rows), engine.failed) == (1, [])


# --- what is left behind ----------------------------------------------------------------------------


@pytest.mark.parametrize("wrapper", ["page", "items"])
@pytest.mark.parametrize("begun", [0, 1, 2])
async def test_a_run_that_is_given_up_in_the_middle_leaves_nothing(wrapper: str, begun: int) -> None:
    arrived = asyncio.Event()
    parts = [b"", answer(length=1000), answer(b'{"items": [{"n": 1},', length=1000)]

    async def behave(line: Line) -> None:
        await line.request()
        if parts[begun]:
            await line.send(parts[begun])
        if len(server.requests) == 2:
            arrived.set()
        await line.lost()

    async with Server(behave) as server, asking(server, concurrency=2) as engine:
        task = asyncio.create_task(engine.ask(*(server.url(f"/{n}") for n in range(9)), wrapper=wrapper))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.all_lost()
        assert_nothing_left(engine.engine)
        (source,) = engine.engine.services.service(Client).statistics().sources
        assert (source.in_flight, source.waiting) == (0, 0)
        assert await works(server, engine)


async def test_hosts_as_long_as_a_page_can_write_them_leave_no_memory_behind() -> None:
    store = CookieStore()
    store.take("http://a.example/", ("a=b",))
    async with Client.open(WebSettings(HttpSettings())) as client, bounds(20 * MEBIBYTE):
        for number in range(1000):
            url = f"http://{'x' * 20_000}{number}.example/"
            with pytest.raises(AddressRefusedError):
                await client.fetch(Request(url, cookies=store))
        assert client.statistics().sources == ()
