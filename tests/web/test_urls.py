"""Links resolve as urllib and browsers resolve them, only cheaper; hosts and origins have one spelling."""

from __future__ import annotations

import tracemalloc
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aioflow.web.urls import Base, has_host, host_key, origin, resolve, without_userinfo

PAGE = "http://example.org:8080/shop/list.html?page=2"


def oracle(base: str, link: str) -> str:
    return urlsplit(urljoin(base, link))._replace(fragment="").geturl()


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("/houses/1", "http://example.org:8080/houses/1"),
        ("/", "http://example.org:8080/"),
        ("2.html", "http://example.org:8080/shop/2.html"),
        ("more/2.html", "http://example.org:8080/shop/more/2.html"),
        ("../other/", "http://example.org:8080/other/"),
        ("../../../up", "http://example.org:8080/up"),
        ("../..", "http://example.org:8080/"),
        ("./2.html", "http://example.org:8080/shop/2.html"),
        ("?page=3", "http://example.org:8080/shop/list.html?page=3"),
        ("#top", PAGE),
        ("", PAGE),
        ("2.html#top", "http://example.org:8080/shop/2.html"),
        ("//cdn.example.org/x", "http://cdn.example.org/x"),
        ("https://other.example/a?b=c#d", "https://other.example/a?b=c"),
        ("HTTP://Other.example/a", "http://Other.example/a"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("http://bücher.example/x", "http://bücher.example/x"),
        ("/straße?q=ä", "http://example.org:8080/straße?q=ä"),
    ],
)
def test_a_link_is_resolved(link: str, expected: str) -> None:
    assert resolve(PAGE, link) == expected


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("  /houses/1\n", "http://example.org:8080/houses/1"),
        ("/hou\n  ses", "http://example.org:8080/hou  ses"),
        ("\t/ho\tuses/1\r\n", "http://example.org:8080/houses/1"),
        (" 2.html ", "http://example.org:8080/shop/2.html"),
        ("\x00https://other.example/x\x1f", "https://other.example/x"),
        ("ht\ntps://other.example/x", "https://other.example/x"),
        ("java\nscript:alert(1)", None),
    ],
)
def test_blanks_are_taken_out_as_browsers_do(link: str, expected: str | None) -> None:
    assert resolve(PAGE, link) == expected


@pytest.mark.parametrize(
    "link",
    [
        "javascript:void(0)",
        "mailto:a@example.org",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://example.org/x",
        "tel:+4912",
        "http://:80/x",
        "http://user@/x",
        "http://[::1/x",
        "http://example.org:port/",
        "http://example.org:99999/",
        "http://example.org:0/",
        "http://exa℀mple.org/",
        "/\ud800",
    ],
)
def test_what_leads_to_no_web_page_is_none(link: str) -> None:
    assert resolve(PAGE, link) is None


SEGMENTS = st.sampled_from(["a", "b.html", ".", "..", "", "x;p=1", "ä", ".h", "c d", "p:q", "100%25", "..."])
PATHS = st.lists(SEGMENTS, max_size=5).map("/".join)
QUERIES = st.sampled_from(["", "?", "?q", "?q=1&r=/../x", "?u=http://e.org//", "?a;b"])
FRAGMENTS = st.sampled_from(["", "#", "#top", "#a/b?c"])
HEADS = st.sampled_from(
    [
        "",
        "/",
        "//",
        "//h.example/",
        "http://h.example",
        "http://h.example/",
        "https://k.example:81/",
        "HTTP://h/",
    ]
)
LINKS = st.tuples(HEADS, PATHS, QUERIES, FRAGMENTS).map("".join)
BASES = st.tuples(
    st.sampled_from(
        ["http://example.org", "https://u:p@example.org:8443", "http://[::1]:80", "http://B.example"]
    ),
    st.lists(st.sampled_from(["a", "b.html", ".", "..", "", "x;p=1", "ä"]), max_size=4).map(
        lambda parts: "/".join(["", *parts])
    ),
    st.sampled_from(["", "?q", "?u=http://e.org//"]),
    FRAGMENTS,
).map("".join)


@settings(max_examples=500, deadline=None)
@given(BASES, LINKS)
@example("http://example.org", "?q")
@example("http://example.org/a//b/c", "x")
@example("http://example.org/a/../b/c", "../x")
def test_every_link_resolves_as_urllib_resolves_it(base: str, link: str) -> None:
    try:
        expected = oracle(base, link)
        is_web_page = bool(urlsplit(expected).hostname) and urlsplit(expected).port != 0
    except ValueError:
        is_web_page = False
    assert Base(base).resolve(link) == (expected if is_web_page else None)


def test_what_pages_hold_is_not_kept() -> None:
    base = Base(PAGE)
    tracemalloc.start()
    for number in range(1500):
        link = f"http://{'x' * 10_000}{number}.test/"
        assert base.resolve(link) is None
        assert not has_host(link)
        assert resolve(f"{PAGE}?{'x' * 10_000}{number}", "/there") == "http://example.org:8080/there"
        assert host_key(f"http://a.test?{'x' * 10_000}{number}") == "a.test:80"
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes < 8_000_000  # urllib keeps the last 128


def test_a_link_longer_than_any_address_leads_nowhere() -> None:
    assert Base(PAGE).resolve("/" + "x" * 100_000) is None
    assert Base(PAGE).resolve("data:image/png;base64," + "x" * 100_000) is None


def test_a_base_element_changes_what_links_are_relative_to() -> None:
    assert Base(PAGE).rebased("/root/").resolve("x") == "http://example.org:8080/root/x"
    assert Base(PAGE).rebased("javascript:x").resolve("x") == "http://example.org:8080/shop/x"


@pytest.mark.parametrize("url", ["file:///x", "example.org/x", "", "http:///x"])
def test_only_a_web_page_has_links(url: str) -> None:
    with pytest.raises(ValueError, match="no http"):
        Base(url)


@pytest.mark.parametrize(
    ("url", "key", "whole"),
    [
        ("http://Example.ORG/x", "example.org:80", "http://example.org:80"),
        ("https://example.org", "example.org:443", "https://example.org:443"),
        ("https://example.org?q=/", "example.org:443", "https://example.org:443"),
        ("http://u:p@example.org:8080/@x", "example.org:8080", "http://example.org:8080"),
        ("http://[::1]:8080/", "[::1]:8080", "http://[::1]:8080"),
        ("http://bücher.example/", "xn--bcher-kva.example:80", "http://xn--bcher-kva.example:80"),
        ("http://example.org./", "example.org:80", "http://example.org.:80"),
        ("http://a/", "a:80", "http://a:80"),
        ("http://a?q=1", "a:80", "http://a:80"),
        ("http://a#b/c", "a:80", "http://a:80"),
        (f"http://{'u' * 400}@a/", "a:80", "http://a:80"),
    ],
)
def test_a_host_and_an_origin_have_one_spelling(url: str, key: str, whole: str) -> None:
    assert (host_key(url), origin(url)) == (key, whole)


@pytest.mark.parametrize("url", ["ftp://example.org/", "example.org", "http:///x", "http://h:port/", ""])
def test_what_has_no_host_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"no http|port|Port"):
        host_key(url)


@pytest.mark.parametrize("port", ["0", "65536", "99999", "port", "8o"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    for host in ("me:hush@example.org", "[::1]"):
        url = f"http://{host}:{port}/x"
        with pytest.raises(ValueError, match=rf"^'{port}' is no port; they go from 1 to 65535$"):
            host_key(url)
        assert not has_host(url)


def test_a_refused_url_is_named_without_its_password() -> None:
    with pytest.raises(ValueError, match=r"ftp://example\.org"):
        origin("ftp://user:hush@example.org/")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:hush@example.org/a@b", "http://example.org/a@b"),
        ("http://us@er:hush@example.org", "http://example.org"),
        ("http://example.org/a@b?c@d", "http://example.org/a@b?c@d"),
        ("//user@example.org/", "//example.org/"),
        ("mailto:a@example.org", "mailto:a@example.org"),
    ],
)
def test_a_shown_url_has_no_user_and_password(url: str, shown: str) -> None:
    assert without_userinfo(url) == shown


@example(["/a\n/b", "/c"])
@given(st.lists(st.text(alphabet="/ab.?#;&=% :@-\n\t~", max_size=12), max_size=6))
def test_links_resolved_together_are_those_resolved_one_by_one(links: list[str]) -> None:
    base = Base("http://a.example/b/c?d")
    assert base.resolve_all(links) == [base.resolve(link) for link in links]


@given(st.lists(st.from_regex(r"/[a-z0-9/.?=&-]{0,12}", fullmatch=True), min_size=1, max_size=6))
def test_rooted_links_resolved_together_are_those_resolved_one_by_one(links: list[str]) -> None:
    base = Base("http://a.example/b/c?d")
    assert base.resolve_all(links) == [base.resolve(link) for link in links]
