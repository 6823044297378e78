"""The HTTP gateway of other tests does what it is told, as a real client sees it."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.servers.gateway import KEY_HEADER, Answer, Gateway, gateway_process, read_journal


async def post(url: str, key: str = "k1") -> Any:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=b"hello", headers={KEY_HEADER: key}) as answer,
    ):
        return answer.status, answer.headers.get("Retry-After")


async def test_requests_are_written_down() -> None:
    async with Gateway() as gateway:
        assert await post(gateway.url("/sms?to=1")) == (200, None)
    (request,) = gateway.taken
    assert (request.method, request.path, request.key, request.body) == ("POST", "/sms?to=1", "k1", b"hello")


async def test_a_gateway_refuses_as_often_as_it_is_told() -> None:
    async with Gateway() as gateway:
        gateway.refuse(503, times=1, Retry_After="7")
        gateway.refuse(429, times=1)
        assert [await post(gateway.url()) for _ in range(3)] == [(503, "7"), (429, None), (200, None)]
        assert len(gateway.requests) == 3
        assert len(gateway.taken) == 1


@pytest.mark.parametrize("takes", [True, False])
async def test_a_gateway_breaks_off_after_reading(takes: bool) -> None:
    async with Gateway(knows_keys=True) as gateway:
        gateway.answer(Answer(reset=True, takes=takes, times=1))
        with pytest.raises(aiohttp.ClientError):
            await post(gateway.url())
        assert await post(gateway.url()) == (409 if takes else 200, None)
        assert len(gateway.taken) == 1
        assert gateway.keys == ["k1", "k1"]


async def test_an_answer_can_wait_for_the_test() -> None:
    async with Gateway() as gateway:
        held = gateway.answer(Answer(until=asyncio.Event()))
        posting = asyncio.create_task(post(gateway.url()))
        await held.reached.wait()
        assert not gateway.taken
        assert held.until is not None
        held.until.set()
        assert await posting == (200, None)


async def test_a_gateway_that_is_left_ends_what_waits() -> None:
    async with Gateway() as gateway:
        held = gateway.answer(Answer(until=asyncio.Event()))
        posting = asyncio.create_task(post(gateway.url()))
        await held.reached.wait()
    with pytest.raises(aiohttp.ClientError):
        await posting


def test_a_gateway_process_writes_down_what_it_took(tmp_path: Path) -> None:
    with gateway_process(tmp_path / "journal", knows_keys=True) as port:
        url = f"http://127.0.0.1:{port}/"
        assert [asyncio.run(post(url, key))[0] for key in ("a", "b", "a")] == [200, 200, 409]
    assert [request.key for request in read_journal(tmp_path / "journal")] == ["a", "b"]
