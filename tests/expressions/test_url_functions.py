"""Functions on URLs: their edges, and that others who know URLs agree."""

from __future__ import annotations

from urllib.parse import parse_qsl, urldefrag, urljoin, urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from yarl import URL

from aioflow.web.urls import host_key
from tests.expressions.tools import counted, examples, value

NOT_URLS = [
    "",
    " ",
    "price on request",
    "http://",
    "http:///path",
    "https://:80/",
    "http://host:0/",
    "http://host:99999/",
    "http://host:port/",
    "http://[::1",
    "http://[::zz]/",
    "http://a b.example/",
    "http://a..example/",
    "http://.example/",
    "http://exa<mple/",
    "http://\udc80.example/",
    f"http://{'a' * 300}.example/",
    "mailto:me@example.org",
    "javascript:alert(1)",
    "data:text/plain,x",
    "house",
    "/houses",
    "?page=2",
    "//",
]
RELATIVE = {"house", "/houses", "?page=2", ""}


@pytest.mark.parametrize("url", NOT_URLS)
@pytest.mark.parametrize("function", ["host", "domain", "canonical_url"])
def test_what_is_no_url_with_a_host_gives_null_and_is_counted(function: str, url: str) -> None:
    assert value(f"{function}(u)", u=url) is None
    assert counted(f"{function}(u)", u=url) == {"not a URL": 1}


@pytest.mark.parametrize("url", [url for url in NOT_URLS if url.strip() not in RELATIVE])
@pytest.mark.parametrize("function", ["path(u)", "without_fragment(u)", "query_value(u, 'a')"])
def test_what_is_neither_a_url_nor_a_reference_gives_null_and_is_counted(function: str, url: str) -> None:
    assert value(function, u=url) is None
    assert counted(function, u=url) == {"not a URL": 1}


@pytest.mark.parametrize(
    ("url", "host", "domain"),
    [
        ("https://www.example.org/", "www.example.org", "example.org"),
        ("HTTPS://WWW.EXAMPLE.ORG", "www.example.org", "example.org"),
        ("http://example.org.:80/", "example.org", "example.org"),
        ("http://user:p@ss@www.example.co.uk:8080/x", "www.example.co.uk", "example.co.uk"),
        ("http://user@example.org?a@b", "example.org", "example.org"),
        ("//cdn.example.org/x", None, None),
        (" \thttp://exam\nple.org/ ", "example.org", "example.org"),
        ("http://bücher.example/", "xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("http://XN--BCHER-KVA.example/", "xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("http://b%C3%BCcher.example/", "xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("http://www.食狮.公司.cn/", "www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("http://[::1]:8080/", "::1", None),
        ("http://[2001:DB8:0:0::1]/", "2001:db8::1", None),
        ("http://127.0.0.1:80/", "127.0.0.1", None),
        ("http://localhost/", "localhost", None),
        ("http://co.uk/", "co.uk", None),
        ("http://my_host.example.com/", "my_host.example.com", "example.com"),
        ("ftp://ftp.example.com/file", "ftp.example.com", "example.com"),
        ("http://a.b.c.unknownending/", "a.b.c.unknownending", "c.unknownending"),
        # rules with a star, and exceptions from them
        ("http://www.city.kawasaki.jp/", "www.city.kawasaki.jp", "city.kawasaki.jp"),
        ("http://a.b.c.kawasaki.jp/", "a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("http://c.kawasaki.jp/", "c.kawasaki.jp", None),
        ("http://www.ck/", "www.ck", "www.ck"),
        ("http://a.www.ck/", "a.www.ck", "www.ck"),
        ("http://x.y.ck/", "x.y.ck", "x.y.ck"),
        # suffixes of companies
        ("https://me.github.io/", "me.github.io", "me.github.io"),
        ("https://a.me.github.io/", "a.me.github.io", "me.github.io"),
        ("https://github.io/", "github.io", None),
        ("https://shop.blogspot.com/", "shop.blogspot.com", "shop.blogspot.com"),
    ],
)
def test_host_and_domain(url: str, host: str | None, domain: str | None) -> None:
    assert value("host(u)", u=url) == host
    assert value("domain(u)", u=url) == domain


def test_no_domain_is_no_failure() -> None:
    assert counted("domain(u)", u="http://localhost/") == {}
    assert counted("query_value(u, 'a')", u="http://localhost/") == {}


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://example.org", "/"),
        ("http://example.org?a", "/"),
        ("http://example.org/a%20b/../c;d?e#f", "/a%20b/../c;d"),
        ("http://example.org/a b", "/a b"),
        ("//example.org/x", "/x"),
        ("/a/b?c", "/a/b"),
        ("a/b", "a/b"),
        ("?a", ""),
        ("", ""),
    ],
)
def test_path(url: str, path: str) -> None:
    assert value("path(u)", u=url) == path


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://example.org/?q=a+b", "a b"),
        ("http://example.org/?x=1&q=a%20b&q=c", "a b"),
        ("http://example.org/?q", ""),
        ("http://example.org/?q=", ""),
        ("http://example.org/?%71=%C3%A9", "é"),
        ("http://example.org/?q=%E9", "\ufffd"),
        ("http://example.org/?q=a=b", "a=b"),
        ("http://example.org/?Q=a", None),
        ("http://example.org/?p=1#q=2", None),
        ("http://example.org/", None),
        ("?q=1", "1"),
        ("http://[::1]:80/?q=1", "1"),
    ],
)
def test_query_value(url: str, found: str | None) -> None:
    assert value("query_value(u, 'q')", u=url) == found


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://example.org/#", "http://example.org/"),
        ("http://example.org#a#b", "http://example.org"),
        ("http://EXAMPLE.org/a b", "http://EXAMPLE.org/a b"),
        ("/a#b", "/a"),
        ("#b", ""),
    ],
)
def test_without_fragment(url: str, shown: str) -> None:
    assert value("without_fragment(u)", u=url) == shown


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        # as w3lib has them
        ("http://www.example.com", "http://www.example.com/"),
        ("http://www.example.com/do?c=3&b=5&b=2&a=50", "http://www.example.com/do?a=50&b=2&b=5&c=3"),
        ("http://www.example.com/do?&a=1", "http://www.example.com/do?a=1"),
        ("http://www.example.com/do?b=&a=2", "http://www.example.com/do?a=2&b="),
        ("http://www.example.com/do?b&a=2", "http://www.example.com/do?a=2&b="),
        ("http://www.example.com/do?q=a space&a=1", "http://www.example.com/do?a=1&q=a+space"),
        ("http://www.example.com/do?q=a%20space&a=1", "http://www.example.com/do?a=1&q=a+space"),
        ("http://www.example.com/a%a3do", "http://www.example.com/a%A3do"),
        ("http://www.example.com/a do?a=1", "http://www.example.com/a%20do?a=1"),
        ("http://foo.com/AC%2FDC/", "http://foo.com/AC%2FDC/"),
        (
            "http://foo.com/AC%2FDC+rocks%3f/?yeah=1",
            "http://foo.com/AC%2FDC+rocks%3F/?yeah=1",
        ),
        (
            "http://www.example.com/résumé?q=résumé",
            "http://www.example.com/r%C3%A9sum%C3%A9?q=r%C3%A9sum%C3%A9",
        ),
        ("http://foo.com/?u=http://bar.com/?x=1", "http://foo.com/?u=http%3A%2F%2Fbar.com%2F%3Fx%3D1"),
        ("HTTP://EXAMPLE.com/A?B=C#D", "http://example.com/A?B=C"),
        ("http://user:Pass@Example.com/", "http://user:Pass@example.com/"),
        # and beyond
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com:/", "http://example.com/"),
        ("http://example.com./", "http://example.com/"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/a/%2E%2e/c/..", "http://example.com/"),
        ("http://example.com/../../x/.", "http://example.com/x/"),
        ("http://example.com//a", "http://example.com//a"),
        ("http://example.com/%7euser/%41", "http://example.com/~user/A"),
        ("http://example.com/100%", "http://example.com/100%25"),
        ("http://example.com/?", "http://example.com/"),
        ("http://example.com/?a=b=c", "http://example.com/?a=b%3Dc"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/"),
        ("  http://example.com/a\n ", "http://example.com/a"),
    ],
)
def test_canonical_url(url: str, canonical: str) -> None:
    assert value("canonical_url(u)", u=url) == canonical


@pytest.mark.parametrize(
    ("base", "link", "url"),
    [
        ("http://a.example/b/c?d", "e", "http://a.example/b/e"),
        ("http://a.example/b/c?d", "", "http://a.example/b/c?d"),
        ("http://a.example/b/c?d", "?e", "http://a.example/b/c?e"),
        ("http://a.example/b/c", "//b.example/x#y", "http://b.example/x"),
        ("http://a.example/b/c", "https://b.example/", "https://b.example/"),
        ("http://a.example/b/c", "../../d", "http://a.example/d"),
        ("http://[::1]:80/b", "c", "http://[::1]:80/c"),
    ],
)
def test_resolve_url(base: str, link: str, url: str) -> None:
    assert value("resolve_url(b, u)", b=base, u=link) == url


@pytest.mark.parametrize(
    ("base", "link"),
    [("house", "x"), ("", "x"), ("http://a.example/", "mailto:x"), ("http://a.example/", "http://[")],
)
def test_what_leads_nowhere_gives_null_and_is_counted(base: str, link: str) -> None:
    assert value("resolve_url(b, u)", b=base, u=link) is None
    assert counted("resolve_url(b, u)", b=base, u=link) == {"not a URL": 1}


# --- what others say ----------------------------------------------------------------------------

_labels = st.text(alphabet="abcXYZ019-_üß食", min_size=1, max_size=8)
_hosts = st.lists(_labels, min_size=1, max_size=4).map(".".join)
_paths = st.text(alphabet="ab/.%20é ;~+:@", max_size=12).map("/".__add__)
_queries = st.text(alphabet="ab=&+%41é;?", max_size=12)
_urls = st.builds(
    "{}://{}{}{}{}{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    _hosts,
    st.sampled_from(["", ":80", ":8080", ":443"]),
    _paths,
    st.one_of(st.just(""), _queries.map("?".__add__)),
    st.sampled_from(["", "#x"]),
)


@examples(300)
@given(_urls)
def test_hosts_are_those_that_requests_go_to(url: str) -> None:
    found = value("host(u)", u=url)
    assume(found is not None)
    assert host_key(url).rpartition(":")[0] == found
    assert URL(url).raw_host == found


@examples(300)
@given(_urls)
def test_parts_are_those_of_urllib(url: str) -> None:
    url = url.replace(" ", "")
    assume(value("host(u)", u=url) is not None)
    split = urlsplit(url)
    assert value("path(u)", u=url) == split.path
    assert value("without_fragment(u)", u=url) == url.removesuffix("#x")
    for name in ("a", "b", "A", ""):
        first = next(
            (found for key, found in parse_qsl(split.query, keep_blank_values=True) if key == name), None
        )
        assert value("query_value(u, n)", u=url, n=name) == first


@examples(300)
@given(_urls)
def test_a_canonical_url_stays_and_leads_to_the_same_page(url: str) -> None:
    found = value("canonical_url(u)", u=url)
    assume(found is not None)
    assert isinstance(found, str)
    assert value("canonical_url(u)", u=found) == found
    assert found.isascii()
    assert host_key(found) == host_key(url)
    before = sorted(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    assert sorted(parse_qsl(urlsplit(found).query, keep_blank_values=True)) == before


@examples(300)
@given(_urls, st.text(alphabet="ab/?=.", max_size=8))
def test_links_are_resolved_as_by_urllib(base: str, link: str) -> None:
    # Blanks and `;` at the end of a path, and a query that is there but empty, are lost in urllib.
    base = base.replace("HTTP", "http")
    assume(value("host(u)", u=base) is not None and not {" ", ";"} & set(base))
    assume("?" not in (base.partition("#")[0][-1:], link[-1:]))
    found = value("resolve_url(b, u)", b=base, u=link)
    assert found == urldefrag(urljoin(base, link)).url


@examples(300)
@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    for function in ("host", "domain", "path", "without_fragment", "canonical_url"):
        value(f"{function}(u)", u=text)
        value(f"{function}(u)", u=f"http://{text}")
        value(f"{function}(u)", u=f"http://a.example/{text}")
    value("query_value(u, n)", u=text, n=text)
    value("resolve_url(u, n)", u=text, n=text)
    value("resolve_url(u, n)", u="http://a.example/", n=text)
