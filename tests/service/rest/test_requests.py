"""Hostile and mistaken requests: each is refused with the JSON of errors, and none is a mistake of ours."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from aioflow.service.rest.validation import BODY_BYTES
from tests.service.rest.served import served, task

TASK = json.dumps({"task": task()})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b'{"task": {"name": "a"}} x', "no JSON"),
        (b"\xff\xfe", "not in UTF-8"),
        (b'{"task": {"name": NaN}}', "NaN is no number"),
        (b'{"task": {}, "task": {}}', "'task' stands twice"),
        (b'{"task": {"name": "a", "plan": "b", "name": "c"}}', "'name' stands twice"),
        (b'{"task": {}, "pasued": true}', "unknown field `pasued`"),
        (b'{"task": {"nmae": "x"}}', "unknown field `nmae`"),
        (b'{"task": {"name": 5}}', "got `int` - at `$.task.name`"),
        (b'{"task": {}, "paused": "true"}', "Expected `bool`"),
        (b'{"task": {"retries": 1.5}}', "Expected"),
        (b'{"task": {"retries": 1e99}}', "Expected"),
        (b'{"task": {"parameters": {"a": -1e999}}}', "the number -1e999 is too large"),
        (b'{"task": []}', "Expected `object`"),
        (b"[]", "Expected `object`"),
        (b"null", "Expected `object`"),
        (b'{"task": {"name": "a\\u0000b"}}', "NUL"),
        (b'{"task": {"name": "\\ud800"}}', "surrogate"),
        (b'{"task": {"parameters": {"\\udfff": 1}}}', "surrogate"),
        (b'{"task": {"overlap": "sometimes"}}', "Invalid enum value"),
        (b'{"task": {"ends": "2026-01-01T00:00:00"}}', "timezone"),
        (b'{"task": {"parameters": {"a": ' + b"[" * 150 + b"]" * 150 + b"}}}", "nested deeper"),
        (b"[" * 100_000, "nested"),
        (b'{"task": {"retries": ' + b"9" * 10_000 + b"}}", "no JSON"),
    ],
)
async def test_a_body_that_does_not_fit_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    async with served(tmp_path) as service:
        status, answer = await service.ask("POST", "/api/tasks", data=data)
        assert (status, answer["error"]["kind"]) == (400, "bad-request")
        assert message in answer["error"]["message"]
        assert len(answer["error"]["message"]) < 500
        assert (await service.get("/api/tasks"))["tasks"] == []


async def test_a_body_of_another_type_or_charset_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"):
            status, answer = await service.ask(
                "POST", "/api/tasks", data=TASK.encode(), headers={"Content-Type": kind}
            )
            assert (status, answer["error"]["kind"]) == (415, "unsupported-media-type")


async def test_a_huge_body_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        data = b'{"text": "' + b"a" * BODY_BYTES + b'"}'
        status, answer = await service.ask("POST", "/api/plans/check", data=data)
        assert (status, answer["error"]["kind"]) == (413, "too-large")
        status, answer = await service.ask("POST", "/api/plans/check", {"text": "a" * 300_000})
        assert (status, answer["error"]["kind"]) == (400, "bad-request")


async def test_a_huge_body_of_a_stranger_is_not_read(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        host = service.address.removeprefix("http://")
        name, _, port = host.partition(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        head = f"POST /api/tasks HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5000000\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(10):
            assert b" 401 " in await reader.readline()
        writer.close()
        await writer.wait_closed()


async def test_a_body_where_none_is_taken_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        status, answer = await service.ask("POST", "/api/tasks/hello/run", {"x": 1})
        assert (status, answer["error"]["message"]) == (400, "this request takes no body")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/runs?limit=0", ">= 1"),
        ("/api/runs?limit=501", "<= 500"),
        ("/api/runs?limit=99999999999999999999", "limit"),
        ("/api/runs?limit=-1", ">= 1"),
        ("/api/runs?limit=ten", "`int`"),
        ("/api/runs?limit=5&limit=6", "given 2 times"),
        ("/api/runs?size=5", "unknown parameter 'size'"),
        ("/api/tasks?limit=5", "parameters: none"),
        ("/api/runs?state=happy", "Invalid enum value"),
        ("/api/runs?before=yesterday", "before"),
        ("/api/runs?before=2026-01-01T00:00:00", "timezone"),
        ("/api/runs?before=0001-01-01T00:00:00%2B14:00", "too early"),
        ("/api/runs?before=9999-12-31T23:59:59-14:00", "too late"),
        ("/api/runs?cursor=%00", "NUL"),
        ("/api/runs?cursor=" + "a" * 401, "400"),
        ("/api/schedules/preview", "missing required field"),
        ("/api/schedules/preview?text=@daily&count=1000000", "<= 100"),
        ("/api/outbox?database=default&everything=perhaps", "bool"),
    ],
)
async def test_a_query_that_does_not_fit_is_refused(tmp_path: Path, path: str, message: str) -> None:
    async with served(tmp_path) as service:
        status, answer = await service.ask("GET", path)
        assert (status, answer["error"]["kind"]) == (400, "bad-request")
        assert message in answer["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/plans/..%2Fsecret",
        "/api/plans/%2e%2e%2fsecret",
        "/api/plans/%2Fetc%2Fpasswd",
        "/api/plans/..%5Csecret",
        "/api/plans/a%2F..%2F..%2Fsecret",
        "/api/plans/link",
        "/api/plans/folder%2Fsecret",
        "/api/plans/hello%00",
        "/api/plans/.hidden",
        "/api/plans/" + "a" * 401,
        "/api/plans/%ff",
        "/api/code/..%2F..%2Fsecret",
        "/api/code/__init__.py",
        "/api/../secret",
        "//api/tasks",
        "/api/tasks/",
        "/api/tasks//runs",
    ],
)
async def test_paths_lead_nowhere_else(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as service:
        secret = tmp_path / "secret.plan"
        secret.write_text("PLAN treasure {}")
        (service.plans / "link.plan").symlink_to(secret)
        (service.plans / "folder").symlink_to(tmp_path)
        (service.plans / ".hidden.plan").write_text("PLAN treasure {}")
        for method in ("GET", "PUT", "DELETE"):
            body = {"text": "PLAN x { BODY { } }"} if method == "PUT" else None
            status, answer = await service.ask(method, path, body)
            assert status in (400, 404, 405, 422), answer
            assert "treasure" not in str(answer)
        assert secret.read_text() == "PLAN treasure {}"


async def test_unknown_addresses_and_methods_have_the_json_of_errors(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        status, answer = await service.ask("GET", "/api/nothing")
        assert (status, answer["error"]["kind"]) == (404, "not-found")
        for method in ("PUT", "TRACE", "OPTIONS", "PROPFIND"):
            status, answer = await service.ask(method, "/api/tasks")
            assert (status, answer["error"]["kind"]) == (405, "method-not-allowed")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: \x00\r\n\r\n",
        b"GET /api/tasks HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5 + b"Content-Length: -5\r\n\r\n",
        b"POST /api/login HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_without_a_trace(
    tmp_path: Path, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as service:
        name, _, port = service.address.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        writer.write(sent)
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert b" 400 " in answer.split(b"\n")[0]
        assert b"Traceback" not in answer
        assert await service.get("/healthz") == {"status": "ok"}
    assert "Traceback" not in caplog.text


async def test_a_mistake_of_ours_is_told_without_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*arguments: Any) -> None:
        raise KeyError("inner secret")

    async with served(tmp_path) as service:
        monkeypatch.setattr("aioflow.service.actions.read_tasks", broken)
        status, answer = await service.ask("GET", "/api/tasks")
        assert (status, answer["error"]["kind"]) == (500, "internal")
        assert "inner secret" not in str(answer)
    assert "inner secret" in caplog.text
