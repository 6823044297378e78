"""Exchanges are written down without secrets, and answered again without a network."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from aioflow.config import secrets
from aioflow.errors import InputError
from aioflow.web.errors import NotRecordedError, WebError
from aioflow.web.http import Request, Response
from aioflow.web.recording import RecordFetcher, ReplayFetcher
from aioflow.web.settings import HostSettings, WebSettings
from tests.web.scripted import Answer, Chunks, Script, answer

URL = "http://a.test/page"
FULL = Path("/dev/full")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def recording(
    path: Path, answers: Mapping[str, Answer | Sequence[Answer]], settings: WebSettings | None = None
) -> RecordFetcher:
    return RecordFetcher(Script(answers), path, settings or WebSettings())


async def record(path: Path, answers: Mapping[str, Answer | Sequence[Answer]], *requests: Request) -> None:
    fetcher = recording(path, answers)
    for request in requests:
        await (await fetcher.fetch(request)).read()
    await fetcher.close()


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def text(path: Path) -> str:
    return path.read_text()


def write(path: Path, content: str) -> None:
    path.write_text(content)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "body",
    [b"", "grüße\n".encode(), b"\xff\x00\xfe", b"x" * 200_000],
    ids=["empty", "text", "binary", "large"],
)
async def test_what_was_recorded_is_answered_again(path: Path, body: bytes, streamed: bool) -> None:
    headers = [("Content-Type", "text/html"), ("X-Two", "1"), ("X-Two", "2"), ("Location", "/gr\udcfc")]
    given: Any = Chunks(body[:2], body[2:]) if streamed else body
    await record(path, {URL: answer(404, headers, given)}, Request(URL, streamed=streamed))
    replay = ReplayFetcher(path)
    found = await replay.fetch(Request(URL, streamed=streamed))
    assert (found.url, found.status, found.stored) == (URL, 404, "replay")
    assert list(found.headers.items()) == headers
    assert found.headers["x-two"] == "1"
    assert await found.read() == body
    await replay.close()


async def test_equal_requests_are_answered_in_their_order_and_the_last_one_again(path: Path) -> None:
    other = "http://a.test/other"
    answers: dict[str, Answer | Sequence[Answer]] = {
        URL: [answer(503), answer(body=b"1"), answer(body=b"2")],
        other: answer(body=b"other"),
    }
    await record(path, answers, *map(Request, (URL, URL, other, URL)))
    replay = ReplayFetcher(path)
    found = [await replay.fetch(Request(url)) for url in (URL, other, URL, URL, URL)]
    assert [(each.status, each.body) for each in found] == [
        (503, b""),
        (200, b"other"),
        (200, b"1"),
        (200, b"2"),
        (200, b"2"),
    ]


async def test_requests_differ_by_method_and_body(path: Path) -> None:
    def echo(request: Request) -> Response:
        return answer(body=f"{request.method} {request.body!r}".encode())

    requests = [
        Request(URL),
        Request(URL, "POST", body=b"a"),
        Request(URL, "POST", body=b"b"),
        Request(URL, "POST"),
    ]
    await record(path, {URL: echo}, *requests)
    replay = ReplayFetcher(path)
    bodies = [(await replay.fetch(request)).body for request in reversed(requests)]
    assert bodies == [b"POST None", b"POST b'b'", b"POST b'a'", b"GET None"]


@pytest.mark.parametrize(
    ("request_fields", "message"),
    [
        (
            {"url": "http://a.test/pages"},
            r"pages: .*recording\.jsonl has no answer to this GET; did you mean '",
        ),
        ({"method": "POST", "body": b"x"}, "has no answer to this POST with this body"),
        ({"url": "http://user:hush@b.test/x"}, "^http://b.test/x: "),
    ],
)
async def test_what_was_not_recorded_is_told(
    path: Path, request_fields: dict[str, Any], message: str
) -> None:
    await record(path, {URL: answer()}, Request(URL))
    with pytest.raises(NotRecordedError, match=message):
        await ReplayFetcher(path).fetch(Request(**{"url": URL, **request_fields}))


async def test_a_recording_can_be_written_by_hand(path: Path) -> None:
    write(path, '{"request": {"url": "http://a.test/"}, "response": {"status": 200, "text": "hello"}}\n\n')
    found = await ReplayFetcher(path).fetch(Request("http://a.test/#part"))
    assert (found.status, found.body, dict(found.headers)) == (200, b"hello", {})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"request": {"url": "x"}', "no JSON: Expecting ',' delimiter at column 25"),
        ("[]", "its parts are not those of one"),
        ('{"request": {}, "response": {"status": 200}}', "without 'url'"),
        ('{"request": {"url": "x"}}', "without 'response'"),
        (
            '{"request": {"url": "x"}, "response": {"status": 200, "base64": "?"}}',
            "its parts are not those of one",
        ),
        ('{"request": {"url": "x"}, "response": {"status": "ok"}}', "its parts are not those of one"),
    ],
)
async def test_a_line_that_makes_no_sense_is_named(path: Path, line: str, reason: str) -> None:
    await record(path, {URL: answer()}, Request(URL))
    write(path, text(path) + line + "\n")
    with pytest.raises(InputError) as caught:
        await ReplayFetcher(path).fetch(Request(URL))
    assert str(caught.value).endswith(f"recording.jsonl:2: this line is no recorded exchange: {reason}")


def test_a_recording_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no recording .*recording\.jsonl to replay"):
        ReplayFetcher(path)


async def test_a_recording_goes_on_behind_what_is_there(path: Path) -> None:
    await record(path, {URL: answer(body=b"1")}, Request(URL))
    write(path, text(path) + '{"broken off')
    await record(path, {URL: answer(body=b"2")}, Request(URL))
    found = text(path).splitlines()
    assert found[1] == '{"broken off'
    assert [json.loads(found[number])["response"]["text"] for number in (0, 2)] == ["1", "2"]


async def test_many_at_once_are_written_line_by_line(path: Path) -> None:
    urls = [f"{URL}/{number}" for number in range(50)]
    fetcher = recording(path, {url: answer(body=url.encode() * 1000) for url in urls})
    await asyncio.gather(*(fetcher.fetch(Request(url)) for url in urls))
    await fetcher.close()
    assert {line["request"]["url"] for line in lines(path)} == set(urls)


# --- streamed answers ---------------------------------------------------------------------------


async def test_a_body_that_its_reader_left_is_recorded_as_far_as_it_was_read(path: Path) -> None:
    body = Chunks(b"ab", b"cd", b"ef")
    fetcher = recording(path, {URL: answer(body=body)})
    response = await fetcher.fetch(Request(URL, streamed=True))
    chunks = response.chunks()
    assert [await anext(chunks), await anext(chunks)] == [b"ab", b"cd"]
    await response.close()
    await response.close()
    assert body.is_closed
    await fetcher.close()
    assert len(lines(path)) == 1
    found = await ReplayFetcher(path).fetch(Request(URL, streamed=True))
    replayed = found.chunks()
    assert await anext(replayed) == b"abcd"
    with pytest.raises(NotRecordedError, match="of this body only the first 4 bytes were recorded"):
        await anext(replayed)
    with pytest.raises(NotRecordedError, match="only the first 4 bytes"):
        await ReplayFetcher(path).fetch(Request(URL))


async def test_a_body_is_not_read_ahead_to_be_recorded(path: Path) -> None:
    body = Chunks(b"ab", b"cd")
    fetcher = recording(path, {URL: answer(body=body)})
    response = await fetcher.fetch(Request(URL, streamed=True))
    assert body.given == 0
    assert [chunk async for chunk in response.chunks()] == [b"ab", b"cd"]
    await fetcher.close()
    assert lines(path)[0]["response"]["text"] == "abcd"


# --- secrets ------------------------------------------------------------------------------------


async def test_no_credential_gets_into_a_recording(path: Path) -> None:
    secret = "hush-hush-0815"
    secrets.conceal(secret)
    settings = WebSettings(hosts={"a.test": HostSettings(headers={"X-Key": "secret:KEY"})})
    echoed = [
        ("Set-Cookie", "session=hush-1; Path=/; HttpOnly"),
        ("Authentication-Info", "hush-2"),
        ("x-key", "hush-3"),
        ("X-Echo", f"you are {secret}"),
    ]
    answers = {
        f"http://user:hush-4@a.test/?key={secret}": answer(headers=echoed, body=f"key {secret}".encode()),
        URL: answer(body=b"\xff" + secret.encode()),
    }
    fetcher = recording(path, answers, settings)
    headers = {
        "authorization": "Bearer hush-5",
        "Cookie": "hush-6",
        "Proxy-Authorization": "hush-7",
        "X-Anything": "hush-8",
        "Accept": "text/html",
    }
    for url in answers:
        await fetcher.fetch(Request(url, headers=headers, body=f"key={secret}".encode()))
    await fetcher.close()
    assert "hush" not in text(path)
    assert "hush" not in repr(
        [(await ReplayFetcher(path).fetch(Request(URL, body=secret_body(secret)))).body]
    )
    first = lines(path)[0]
    assert first["request"]["headers"]["Accept"] == "text/html"
    assert ["Set-Cookie", "session=********; Path=/; HttpOnly"] in first["response"]["headers"]
    # The same secret, or another in its place, finds the answer again.
    other = "hush-hush-0816"
    secrets.conceal(other)
    for each in (secret, other):
        found = await ReplayFetcher(path).fetch(Request(f"http://a.test/?key={each}", body=secret_body(each)))
        assert found.body == b"key ********"


def secret_body(secret: str) -> bytes:
    return f"key={secret}".encode()


async def test_a_recording_is_the_users_own(path: Path) -> None:
    await record(path, {URL: answer()}, Request(URL))
    assert mode(path) == 0o600


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_cannot_be_recorded_to_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cannot record to .*: is a directory$"):
        recording(tmp_path, {})
    with pytest.raises(InputError, match=r"^cannot record to .*x\.jsonl: there is no folder .*typo$"):
        recording(tmp_path / "typo" / "x.jsonl", {})
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("content", ["# Notes\n\nDo not lose.\n", "{}", '{"a": 1}\n', "\n\nx"])
def test_a_file_that_is_no_recording_is_left_alone(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(InputError, match=r"recording\.jsonl: it holds something else .* another file"):
        recording(path, {})
    assert text(path) == content


async def test_an_empty_file_can_be_recorded_to(path: Path) -> None:
    write(path, "")
    await record(path, {URL: answer()}, Request(URL))
    assert len(lines(path)) == 1


@pytest.mark.skipif(not FULL.exists(), reason="not on this system")
async def test_a_disk_that_is_full_is_told() -> None:
    fetcher = recording(FULL, {URL: answer()})
    with pytest.raises(WebError, match=r"/dev/full: cannot record: No space left on device"):
        await fetcher.fetch(Request(URL))
    await fetcher.close()


async def test_closing_closes_what_is_below(path: Path) -> None:
    script = Script({URL: answer()})
    await RecordFetcher(script, path, WebSettings()).close()
    assert script.is_closed
