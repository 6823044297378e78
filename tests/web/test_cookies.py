"""Cookies: kept for whom they are meant, in bounds, and never sent to anybody else."""

from __future__ import annotations

import sys

import pytest

from aioflow.web import cookies
from aioflow.web.cookies import CookieFetcher, CookieStore, site
from aioflow.web.http import Request
from aioflow.web.urls import host_key
from tests.web.scripted import Script, answer


def kept(url: str, *set_cookies: str) -> CookieStore:
    store = CookieStore()
    store.take(url, set_cookies)
    return store


async def test_a_cookie_comes_back_to_the_host_that_set_it_and_to_no_other() -> None:
    store = kept("https://www.example.org/a/b", "id=1; Path=/", "deep=2", "all=3; Domain=example.org; Path=/")
    assert store.header("https://www.example.org/") == "all=3; id=1"
    assert store.header("https://www.example.org/a/x") == "all=3; id=1; deep=2"
    assert store.header("https://sub.www.example.org/") == "all=3"
    assert store.header("https://example.org/") == "all=3"
    assert store.header("https://example.org.evil.test/") is None
    assert store.header("https://notexample.org/") is None


async def test_a_secure_cookie_is_not_sent_in_the_open() -> None:
    store = kept("https://example.org/", "id=1; Secure")
    assert store.header("http://example.org/") is None
    assert store.header("https://example.org/") == "id=1"


async def test_a_cookie_ends() -> None:
    store = kept(
        "https://example.org/", "a=1", "b=2; Max-Age=0", "c=3; Expires=Thu, 01 Jan 1970 00:00:00 GMT"
    )
    assert store.header("https://example.org/") == "a=1"
    store.take("https://example.org/", ("a=; Max-Age=-1",))
    assert store.header("https://example.org/") is None


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://example.com/", "id=1; Domain=com"),
        ("https://example.com/", "id=1; domain = .COM ; path=/"),
        ("https://example.com/", 'id=1; Domain="com"'),
        ("https://example.com/", "id=1; Domain=example.com; Domain=com"),
        ("https://shop.co.uk/", "id=1; Domain=co.uk"),
        ("https://shop.com.au/", "id=1; Domain=.com.au"),
        ("https://example.org/", "id=1; Domain=other.org"),
        ("https://example.org/", "id=1; Domain=sub.example.org"),
        ("http://127.0.0.1/", "id=1; Domain=0.0.1"),
        ("http://127.0.0.1/", "id=1; Domain=127.0.0.2"),
        ("http://example.org/", "__Secure-id=1; Secure"),
        ("https://example.org/", "__Secure-id=1"),
        ("https://example.org/", "__Host-id=1; Secure"),
        ("https://example.org/", "__Host-id=1; Secure; Path=/; Domain=example.org"),
        ("https://example.org/", "id=" + "x" * 5000),
        ("https://example.org/", ""),
    ],
)
async def test_a_cookie_that_nobody_may_set_is_not_kept(url: str, text: str) -> None:
    store = kept(url, text)
    assert len(store) == 0
    assert store.header(url) is None


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://127.0.0.1:8080/", "id=1"),
        ("http://127.0.0.1:8080/", "id=1; Domain=127.0.0.1"),
        ("http://[::1]:8080/", "id=1"),
        ("http://localhost:8080/", "id=1"),
        ("http://localhost:8080/", "id=1; Domain=localhost"),
        ("https://example.org/", "id=1; Path=/"),
        ("https://bücher.example/", "id=1"),
    ],
)
async def test_a_cookie_of_any_host_for_itself_is_kept(url: str, text: str) -> None:
    assert kept(url, text).header(url) == "id=1"


async def test_promises_in_a_name_are_kept_when_the_attributes_say_so() -> None:
    store = kept("https://example.org/", "__Secure-a=1; Secure", "__Host-b=2; Path=/; Secure")
    assert store.header("https://example.org/x") == "__Secure-a=1; __Host-b=2"


async def test_servers_on_one_address_do_not_see_each_others_cookies() -> None:
    store = kept("http://127.0.0.1:8080/", "id=1")
    assert store.header("http://127.0.0.1:8081/") is None


async def test_a_value_is_sent_as_it_was_set() -> None:
    assert kept("https://example.org/", 'id="a b,c=="').header("https://example.org/") == 'id="a b,c=="'


async def test_a_site_has_room_for_so_many_cookies() -> None:
    url = "https://example.org/"
    store = kept(url, *(f"c{number}=x" for number in range(cookies.SITE_COOKIES + 20)))
    assert len(store) == cookies.SITE_COOKIES
    store.take(url, ("c5=new",))
    assert "c5=new" in (store.header(url) or "")
    large = kept(url, *(f"c{number}={'x' * 4000}" for number in range(20)))
    assert len(large.header(url) or "") <= cookies.SITE_BYTES


async def test_the_sites_longest_unused_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cookies, "SITES", 2)
    store = kept("https://a.test/", "id=1")
    store.take("https://b.test/", ("id=2",))
    assert store.header("https://a.test/") == "id=1"
    store.take("https://c.test/", ("id=3",))
    assert [store.header(f"https://{name}.test/") for name in "abc"] == ["id=1", None, "id=3"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.b.example.org/", "example.org"),
        ("http://a.shop.co.uk/", "shop.co.uk"),
        ("http://example.org:8080/", "example.org"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
        ("http://[::1]/", "[::1]:80"),
        ("http://localhost/", "localhost:80"),
    ],
)
def test_hosts_under_one_name_share_a_jar(url: str, expected: str) -> None:
    assert site(host_key(url)) == expected


async def test_cookies_go_with_requests_and_come_with_answers() -> None:
    script = Script(
        {"http://a.test/": [answer(headers=[("Set-Cookie", "x=1"), ("Set-Cookie", "y=2")]), answer()]}
    )
    fetcher = CookieFetcher(script)
    store = CookieStore()
    for headers in ({}, {"Accept": "*/*"}, {"cookie": "own=1"}):
        await fetcher.fetch(Request("http://a.test/", headers=headers, cookies=store))
    await fetcher.fetch(Request("http://a.test/", cookies=CookieStore()))
    await fetcher.fetch(Request("http://a.test/"))
    assert [request.headers for request in script.requests] == [
        {},
        {"Accept": "*/*", "Cookie": "x=1; y=2"},
        {"cookie": "own=1"},
        {},
        {},
    ]
    await fetcher.close()
    assert script.is_closed


def test_an_empty_store_costs_no_import() -> None:
    import subprocess

    code = (
        "import sys; from aioflow.web.cookies import CookieStore; "
        "CookieStore().header('http://a.test/'); CookieStore().take('http://a.test/', ('x; domain=com',)); "
        "print([name for name in ('aiohttp', 'yarl') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
