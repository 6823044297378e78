"""One form of URLs: equal addresses are equal texts, and nothing else changes."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from yarl import URL

from aioflow.crawl import DroppedParameters, UrlNormalizer
from aioflow.crawl.normal_form import DROPPED, LONGEST_URL, Slash
from aioflow.errors import SettingError
from aioflow.web.canonical_urls import canonical


def normal(url: str, drop: str = "default", *, sort: bool = False, slash: Slash = "keep") -> str | None:
    (found,) = UrlNormalizer(DroppedParameters.bind(drop, ()), sort=sort, slash=slash).normal([url])
    return found


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://example.com", "http://example.com/"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:080/", "http://example.com/"),
        ("http://example.com:/", "http://example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:80/a", "https://example.com:80/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("HTTP://EXAMPLE.COM/Path", "http://example.com/Path"),
        ("http://example.com./x", "http://example.com/x"),
        ("http://müller.example/x", "http://xn--mller-kva.example/x"),
        ("http://xn--mller-kva.example/x", "http://xn--mller-kva.example/x"),
        ("http://m%C3%BCller.example/", "http://xn--mller-kva.example/"),
        ("http://[2001:DB8::0:1]:80/", "http://[2001:db8::1]/"),
        ("http://example.com?q", "http://example.com/?q"),
        ("http://example.com/?", "http://example.com/"),
        ("http://example.com/#top", "http://example.com/"),
        ("http://example.com/a#b?c", "http://example.com/a"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/a/b/..", "http://example.com/a/"),
        ("http://example.com/../../a", "http://example.com/a"),
        ("http://example.com/%2e%2E/a", "http://example.com/a"),
        ("http://example.com/a//b", "http://example.com/a//b"),
        ("http://example.com/.hidden/..x", "http://example.com/.hidden/..x"),
        ("http://example.com/%7euser/%e4%bd%a0/%2f", "http://example.com/~user/%E4%BD%A0/%2F"),
        ("http://example.com/ä b", "http://example.com/%C3%A4%20b"),
        ("http://example.com/100%", "http://example.com/100%25"),
        ("http://example.com/a?x=%7e&y=[1]", "http://example.com/a?x=~&y=%5B1%5D"),
        ("http://example.com/a?x=a+b", "http://example.com/a?x=a+b"),
        ("http://example.com/a?b=2&&a=1&", "http://example.com/a?b=2&a=1"),
        ("http://example.com/a?u=http://b.example/?c", "http://example.com/a?u=http://b.example/?c"),
        (" \nhttp://example.com/a\tb\n", "http://example.com/ab"),
        ("http:\\\\example.com\\a?b\\c", "http://example.com/a?b%5Cc"),
        ("http://example.com\\@evil.example/", "http://example.com/@evil.example/"),
        ("http://user:p@ss@example.com/", "http://user:p%40ss@example.com/"),
    ],
)
def test_the_form_of_a_url(url: str, form: str) -> None:
    assert normal(url) == form


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "/path", "a.example", "//a.example/", "mailto:a@b.example", "javascript:void(0)"),
        *("ftp://a.example/", "http:/a.example", "http:a.example", "http:///a", "http://", "http://:80/"),
        *(
            "http://a..example/",
            "http://a..",
            "http://a.%2E",
            "http://a b.example/",
            "http://a:0/",
            "http://a:65536/",
            "http://a:x/",
        ),
        *("http://[::1/", "http://[a]/", "http://a]/", "http://a/\ud800", f"http://{'a' * 300}.example/"),
        *(f"http://a.example/{'x' * LONGEST_URL}", f"http://a.example/{'ä' * 4000}", "data:text/html,x"),
    ],
)
def test_what_is_no_url_is_counted(text: str) -> None:
    normalizer = UrlNormalizer()
    assert normalizer.normal([text, "http://a.example/", None, 7]) == [None, "http://a.example/", None, None]
    assert normalizer.counters == {"not a URL": 3}


# --- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://a.example/?utm_source=x&id=1&UTM_Medium=y", "http://a.example/?id=1"),
        ("http://a.example/?gclid=1", "http://a.example/"),
        ("http://a.example/?fbclid", "http://a.example/"),
        ("http://a.example/?utm%5Fsource=x", "http://a.example/"),
        ("http://a.example/x;jsessionid=0A1B.node1?p=1", "http://a.example/x?p=1"),
        ("http://a.example/x;JSESSIONID=0A/y;v=1.2", "http://a.example/x/y;v=1.2"),
        ("http://a.example/?PHPSESSID=0123456789abcdef", "http://a.example/"),
        ("http://a.example/?ASPSESSIONIDQQABC=x", "http://a.example/"),
        ("http://a.example/?sid=03/21/1234", "http://a.example/?sid=03/21/1234"),
        ("http://a.example/?sid=0123456789abcdef0123456789abcdef&t=1", "http://a.example/?t=1"),
        ("http://a.example/?s=search&page=2", "http://a.example/?s=search&page=2"),
        ("http://a.example/?gclidx=1", "http://a.example/?gclidx=1"),
    ],
)
def test_parameters_of_tracking_and_sessions_are_left_out(url: str, form: str) -> None:
    assert normal(url) == form


def test_a_list_of_ones_own_replaces_the_default_or_adds_to_it() -> None:
    url = "http://a.example/?ref=1&utm_x=2&xid=3&y=ab"
    assert normal(url, "ref") == "http://a.example/?utm_x=2&xid=3&y=ab"
    assert normal(url, "default, ref") == "http://a.example/?xid=3&y=ab"
    assert normal(url, "*id, y=a?") == "http://a.example/?ref=1&utm_x=2"
    assert normal(url, "y=b*") == url
    assert normal(url, "none") == url
    assert DroppedParameters.bind(("ref", "utm_*"), ()).drops("UTM_x", "")


@pytest.mark.parametrize(
    ("value", "message"),
    [(7, "must be a list"), ("*", "every parameter"), ("a, ?*", "every parameter"), ("*a*", "more than one")],
)
def test_a_bad_list_is_a_mistake(value: object, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        DroppedParameters.bind(value, ())


def test_sorting_keeps_the_order_of_equal_names() -> None:
    assert normal("http://a.example/?b=2&a=2&b=1&a=1", sort=True) == "http://a.example/?a=2&a=1&b=2&b=1"


def test_the_slash_at_the_end_goes_if_asked() -> None:
    assert normal("http://a.example/x/?q=1", slash="drop") == "http://a.example/x?q=1"
    assert normal("http://a.example/x/", slash="drop") == "http://a.example/x"
    assert normal("http://a.example", slash="drop") == "http://a.example/"
    assert normal("http://a.example/x/") == "http://a.example/x/"


# --- oracles ------------------------------------------------------------------------------------

_TEXT = st.text(st.sampled_from("abcXYZ019-._~/%&=+;:@?#!$'()*,[]| \\é你٣") | st.characters(), max_size=30)
_HOSTS = st.sampled_from(["a.example", "A.Example", "müller.example", "127.0.0.1", "[::1]", "a_b.example"])
_URLS = st.builds(
    lambda scheme, host, port, rest: f"{scheme}://{host}{port}{rest}",
    st.sampled_from(["http", "https", "HTTP"]),
    _HOSTS,
    st.sampled_from(["", ":80", ":443", ":8080", ":"]),
    _TEXT,
)


@settings(max_examples=500, deadline=None)
@given(_URLS, st.booleans(), st.sampled_from(["keep", "drop"]), st.sampled_from(["none", DROPPED]))
@example("http://a.example/%%32%65/", False, "keep", "none")
@example("http://a.example/;sid=0;jsessionid=1;", False, "drop", DROPPED)
@example("http://a.example//", False, "drop", "none")
def test_the_form_has_itself_as_its_form(url: str, sort: bool, slash: Slash, drop: str) -> None:
    form = normal(url, drop, sort=sort, slash=slash)
    if form is not None:
        assert normal(form, drop, sort=sort, slash=slash) == form


@settings(max_examples=500, deadline=None)
@given(_URLS)
def test_the_form_leads_to_the_same_page_as_the_function_of_expressions_says(url: str) -> None:
    """Its own oracle: the canonical form is made by other code, from both."""
    form = normal(url, "none")
    # Only browsers take \\ for a slash; and an @ in a password stays as it is there.
    if form is not None and "\\" not in url and "@" not in url:
        assert canonical(form) == canonical(url)


@settings(max_examples=500, deadline=None)
@given(_URLS)
def test_nothing_is_lost_of_path_and_query(url: str) -> None:
    form = normal(url, "none")
    if form is None or "\\" in url or "/." in url or "%2" in url or any(each in url for each in "\t\n\r"):
        return
    parts = urlsplit(url.strip("".join(map(chr, range(33)))))
    assert unquote(urlsplit(form).path) == unquote(parts.path or "/")


@pytest.mark.parametrize(
    "url",
    [
        *("http://EXAMPLE.com:80/a/../b", "http://example.com/%7euser", "https://example.com:443/x?y=%7e"),
        *(
            "http://example.com/ä",
            "http://müller.example/a b?c",
            "http://example.com/a%2Fb%2fc",
            "http://a.b/",
        ),
        *("http://example.com/?q=%C3%A4+b&r=1%2B1", "http://example.com/a;b=1/c,d", "http://[::1]:8080/"),
    ],
)
def test_it_equals_what_yarl_says(url: str) -> None:
    assert normal(url, "none") == str(URL(url).with_fragment(None))


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/" + "../" * 4000,
        "http://a.example/" + "%" * 12_000,
        "http://a.example/?" + "&" * 12_000,
        "http://a.example/" + ";a=" * 4000,
        "http://" + "a." * 6000,
        "http://" + "@" * 12_000,
        "http://a.example/" + "/." * 6000,
    ],
)
def test_hostile_urls_take_no_longer_than_their_length(url: str) -> None:
    UrlNormalizer(sort=True, slash="drop").normal([url] * 20)
