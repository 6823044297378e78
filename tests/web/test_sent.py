"""Of which failures it is certain that nothing reached the host: only then is an effect tried again."""

from __future__ import annotations

import ssl
from typing import Any

import aiohttp
import pytest

from aioflow.web import Client, HttpSettings, WebSettings
from aioflow.web.aiohttp_errors import web_error
from aioflow.web.errors import ConnectionFailedError, ResponseTimeoutError, WebError
from aioflow.web.http import Request
from tests.web.misbehaving import (
    Names,
    Server,
    answer,
    opened,
    sends,
    sends_and_closes,
    sends_and_resets,
    silent,
)


async def _error(url: str, server: Server, **settings: Any) -> WebError:
    async with opened(server, **settings) as transport:
        with pytest.raises((ConnectionFailedError, ResponseTimeoutError)) as caught:
            await transport.fetch(Request(url, "POST", body=b"once", is_safe=False))
    return caught.value


async def test_nothing_is_sent_without_a_connection() -> None:
    async with Server(silent) as server:
        pass
    assert not (await _error(server.url(), server)).sent


async def test_nothing_is_sent_to_a_name_that_is_not_resolved() -> None:
    async with Server(silent) as server:
        assert not (await _error("http://missing.example/", server, names=Names())).sent


async def test_nothing_is_sent_where_no_connection_stands_in_time() -> None:
    async with Server(silent) as server:
        error = await _error(server.url().replace("http:", "https:"), server, connect_seconds=0.05)
        assert isinstance(error, ResponseTimeoutError)
        assert not error.sent


async def test_nothing_is_sent_where_encryption_fails() -> None:
    async with Server(sends_and_closes(b"this is no TLS, whatever you say\r\n")) as server:
        server.behave = lambda line: line.send(b"this is no TLS, whatever you say\r\n" * 10)
        assert not (await _error(server.url().replace("http:", "https:"), server)).sent


async def test_nothing_is_sent_past_a_proxy_that_is_not_there_or_refuses() -> None:
    names = Names(public_example=["93.184.215.14"])
    async with Server(sends(answer(status="403 Forbidden"))) as proxy:
        settings: dict[str, Any] = {"names": names, "proxy": proxy.url()}
        assert not (await _error("https://public.example/", proxy, **settings)).sent
    assert not (await _error("https://public.example/", proxy, **settings)).sent


def test_nothing_is_sent_to_who_shows_a_wrong_certificate() -> None:
    key: Any = type("Key", (), {"host": "example.org", "port": 443, "ssl": True})
    found = ssl.SSLCertVerificationError("self-signed")
    found.verify_message = "self-signed"
    error = aiohttp.ClientConnectorCertificateError(key, found)
    assert not web_error(error, "https://example.org/", HttpSettings()).sent


@pytest.mark.parametrize(
    "behave",
    [sends_and_resets(), sends_and_closes(), sends_and_closes(answer(b"cut", length=10)), silent],
    ids=["reset", "closed", "cut", "silent"],
)
async def test_what_a_connection_stood_for_may_have_been_sent(behave: Any) -> None:
    async with Server(behave) as server:
        assert (await _error(server.url(), server, first_byte_seconds=0.1)).sent


async def test_an_effect_is_tried_again_only_where_nothing_was_sent() -> None:
    async with Server(sends_and_resets()) as server:
        http = HttpSettings(allow=(server.host,), robots=False, retries=2, retry_base_seconds=0.001)
        async with Client.open(WebSettings(http)) as client:
            with pytest.raises(ConnectionFailedError) as broken:
                await client.fetch(Request(server.url(), "POST", body=b"once", is_safe=False))
    async with Client.open(WebSettings(http)) as client:
        with pytest.raises(ConnectionFailedError) as unreached:
            await client.fetch(Request(server.url(), "POST", body=b"once", is_safe=False))
    assert (broken.value.attempts, len(server.requests)) == (1, 1)
    assert (unreached.value.attempts, len(server.requests)) == (3, 1)
