"""Which hosts are reached, by which proxy, and who gets credentials."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aioflow.config.secrets import Secrets
from aioflow.web.errors import (
    AddressRefusedError,
    ConnectionFailedError,
    RequestRefusedError,
    ResponseTimeoutError,
)
from aioflow.web.http import Request
from aioflow.web.settings import HostSettings
from tests.web.misbehaving import Names, Server, answer, opened, sends, silent


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1/", "127.0.0.1 is a loopback address; allow"),
        ("http://2130706433/", "no plain IPv4 address"),
        ("http://0x7f.1/", "no plain IPv4 address"),
        ("http://[::ffff:127.0.0.1]/", "loopback address (127.0.0.1)"),
        ("http://user:password@10.0.0.1/", "http://10.0.0.1/: 10.0.0.1 is a private address"),
        ("file:///etc/passwd", "only http and https are fetched, not file"),
        ("ftp://example.org/", "only http and https"),
        ("ws://example.org/", "only http and https"),
        ("//example.org/", "only http and https"),
        ("/page", "only http and https"),
        ("http:///page", "no host"),
        ("http://example.org:99999/", "no http(s) URL"),
        ("http://user:password@[::1/", "no http(s) URL"),
        ("http://exa mple.org/", "no name of a host"),
    ],
)
async def test_an_address_that_may_not_be_reached_is_refused(url: str, message: str) -> None:
    async with Server(silent) as server, opened(server, names=Names()) as transport:
        with pytest.raises(AddressRefusedError) as caught:
            await transport.fetch(Request(url))
        assert message in str(caught.value)
        assert "password@" not in str(caught.value)
        assert server.connections == 0


async def test_a_name_that_leads_to_a_private_address_is_refused() -> None:
    names = Names(inside_example=["127.0.0.1"], both_example=["93.184.215.14", "127.0.0.1"])
    async with Server(silent) as server, opened(server, names=names) as transport:
        for name in ("inside.example", "both.example"):
            url = f"http://{name}:{server.port}/"
            with pytest.raises(AddressRefusedError) as caught:
                await transport.fetch(Request(url))
            assert str(caught.value).startswith(
                f"{url}: {name} leads to 127.0.0.1, a loopback address; allow"
            )
        assert server.connections == 0


async def test_several_requests_for_a_refused_name_are_all_refused() -> None:
    names = Names(inside_example=["10.0.0.1"])
    async with Server(silent) as server, opened(server, names=names) as transport:
        requests = [transport.fetch(Request("http://inside.example/")) for _ in range(5)]
        results = await asyncio.gather(*requests, return_exceptions=True)
        assert [type(result) for result in results] == [AddressRefusedError] * 5


async def test_an_allowed_name_opens_no_door_for_another() -> None:
    async with Server(sends(answer(b"ok"))) as server:
        names = Names(allowed_example=["127.0.0.1"], other_example=["127.0.0.1"])
        names.addresses["allowed.example."] = ["127.0.0.1"]
        allow = (f"Allowed.Example:{server.port}",)
        async with opened(server, names=names, allow=allow) as transport:
            response = await transport.fetch(Request(f"http://allowed.EXAMPLE:{server.port}/"))
            assert response.body == b"ok"
            for host in ("other.example", "allowed.example.", "127.0.0.1", "[::ffff:127.0.0.1]"):
                with pytest.raises(AddressRefusedError):
                    await transport.fetch(Request(f"http://{host}:{server.port}/"))
            assert server.connections == 1


async def test_a_name_that_does_not_exist_is_an_error_that_says_so() -> None:
    async with Server(silent) as server, opened(server, names=Names()) as transport:
        with pytest.raises(ConnectionFailedError, match=r"missing\.example cannot be resolved: no such name"):
            await transport.fetch(Request("http://missing.example/"))


# --- credentials, headers, proxies -----------------------------------------------------------------


def secrets(**values: str) -> Secrets:
    return Secrets({f"AIOFLOW_SECRET_{name}": value for name, value in values.items()}, Path("nowhere.toml"))


async def test_configured_headers_and_credentials_go_to_their_host_only() -> None:
    async with Server(sends(answer())) as one, Server(sends(answer())) as other:
        headers = {"X-Key": "secret:KEY", "Accept": "text/html"}
        hosts = {one.host: HostSettings(headers=headers, auth="bearer secret:TOKEN")}
        known = secrets(TOKEN="t0ken", KEY="k3y")
        async with opened(one, hosts=hosts, allow=(one.host, other.host), secrets=known) as transport:
            await transport.fetch(Request(one.url()))
            await transport.fetch(Request(other.url()))
            await transport.fetch(Request(one.url(), headers={"authorization": "mine", "accept": "*/*"}))
        (first, second), (foreign,) = one.requests, other.requests
    assert b"\r\nAuthorization: Bearer t0ken\r\n" in first
    assert b"\r\nX-Key: k3y\r\n" in first
    assert b"\r\nAccept: text/html\r\n" in first
    assert b"t0ken" not in foreign
    assert b"X-Key" not in foreign
    assert b"\r\nauthorization: mine\r\n" in second
    assert b"t0ken" not in second
    assert b"\r\naccept: */*\r\n" in second
    assert b"\r\nX-Key: k3y\r\n" in second


async def test_basic_credentials_are_encoded() -> None:
    async with Server(sends(answer())) as server:
        hosts = {"127.0.0.1": HostSettings(auth="basic me secret:PASSWORD")}
        async with opened(server, hosts=hosts, secrets=secrets(PASSWORD="päss")) as transport:
            await transport.fetch(Request(server.url()))
        assert b"\r\nAuthorization: Basic bWU6cMOkc3M=\r\n" in server.requests[0]


async def test_a_secret_that_does_not_exist_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secrets.toml"
    file.touch(0o600)
    async with Server(sends(answer())) as server:
        hosts = {server.host: HostSettings(auth="bearer secret:MISSING")}
        async with opened(server, hosts=hosts, secrets=Secrets({}, file)) as transport:
            with pytest.raises(RequestRefusedError, match="there is no secret 'MISSING'"):
                await transport.fetch(Request(server.url()))


async def test_the_user_of_a_url_becomes_a_header_and_is_shown_nowhere() -> None:
    async with Server(sends(answer())) as server, opened(server) as transport:
        url = f"http://me:pass%20word@{server.host}/"
        response = await transport.fetch(Request(url))
        await transport.fetch(Request(url, headers={"Authorization": "other"}))
        assert response.url == server.url()
        assert b"\r\nAuthorization: Basic bWU6cGFzcyB3b3Jk\r\n" in server.requests[0]
        assert b"\r\nAuthorization: other\r\n" in server.requests[1]
    async with Server(silent) as server, opened(server) as transport:
        with pytest.raises(ResponseTimeoutError) as caught:
            await transport.fetch(Request(f"http://me:word@{server.host}/", timeout_seconds=0.05))
        assert "word" not in str(caught.value)


async def test_credentials_are_not_sent_in_clear_to_a_host_that_is_not_named_with_its_port() -> None:
    names = Names(api_example=["127.0.0.1"])
    async with Server(sends(answer())) as server:
        settings: dict[str, Any] = {"names": names, "secrets": secrets(TOKEN="t0ken"), "allow": ()}
        hosts = {"api.example": HostSettings(auth="bearer secret:TOKEN")}
        url = f"http://api.example:{server.port}/"
        async with opened(server, hosts=hosts, **settings) as transport:
            with pytest.raises(
                RequestRefusedError, match=r"without encryption; use https, or write .*api\.example:"
            ):
                await transport.fetch(Request(url))
            with pytest.raises(AddressRefusedError, match="leads to"):
                await transport.fetch(Request(url.replace("http:", "https:")))
        hosts = {f"api.example:{server.port}": hosts["api.example"]}
        async with opened(server, hosts=hosts, **settings) as transport:
            with pytest.raises(AddressRefusedError, match="leads to"):
                await transport.fetch(Request(url))


async def test_a_proxy_is_asked_for_what_it_may_reach() -> None:
    names = Names(public_example=["93.184.215.14"], inside_example=["10.0.0.1"])
    async with Server(sends(answer(b"by proxy"))) as proxy:
        address = f"http://user:word@{proxy.host}"
        async with opened(proxy, names=names, allow=(), proxy=address) as transport:
            for host in ("public.example", "unknown.example", "93.184.215.14"):
                assert (await transport.fetch(Request(f"http://{host}/"))).body == b"by proxy"
            for host in ("inside.example", "10.0.0.1", proxy.host):
                with pytest.raises(AddressRefusedError):
                    await transport.fetch(Request(f"http://{host}/"))
        assert len(proxy.requests) == 3
        assert proxy.requests[0].startswith(b"GET http://public.example/ HTTP/1.1\r\n")
        assert b"\r\nProxy-Authorization: Basic dXNlcjp3b3Jk\r\n" in proxy.requests[0]


async def test_a_proxy_may_be_that_of_one_host_and_none_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names(public_example=["93.184.215.14"])
    async with Server(sends(answer(b"direct"))) as server, Server(sends(answer(b"proxy"))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url())
        hosts = {"public.example": HostSettings(proxy=proxy.url())}
        async with opened(server, names=names, hosts=hosts) as transport:
            assert (await transport.fetch(Request(server.url()))).body == b"direct"
            assert (await transport.fetch(Request("http://public.example/"))).body == b"proxy"


async def test_a_proxy_that_refuses_a_tunnel_is_an_error_that_says_so() -> None:
    names = Names(public_example=["93.184.215.14"])
    async with Server(sends(answer(status="403 Forbidden"))) as proxy:
        async with opened(proxy, names=names, proxy=proxy.url()) as transport:
            with pytest.raises(ConnectionFailedError, match="the proxy answered 403 Forbidden"):
                await transport.fetch(Request("https://public.example/"))
        assert proxy.requests[0].startswith(b"CONNECT public.example:443 HTTP/1.1\r\n")
