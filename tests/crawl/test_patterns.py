"""Lists of domains and patterns."""

from __future__ import annotations

import pytest

from aioflow.crawl import DomainList, UrlPatterns, UrlRules
from aioflow.errors import SettingError


@pytest.mark.parametrize(
    ("names", "host", "port", "is_in"),
    [
        ("example.com", "example.com", "", True),
        ("example.com", "www.example.com", "", True),
        ("example.com", "a.b.example.com", "8080", True),
        ("example.com", "badexample.com", "", False),
        ("example.com", "example.com.evil.example", "", False),
        ("*.example.com", "example.com", "", False),
        ("*.example.com", "www.example.com", "", True),
        (".example.com", "www.example.com", "", True),
        ("a.example, b.example", "b.example", "", True),
        ("EXAMPLE.com", "example.com", "", True),
        ("müller.example", "xn--mller-kva.example", "", True),
        ("localhost:8080", "localhost", "8080", True),
        ("localhost:8080", "localhost", "", False),
        ("localhost:8080", "localhost", "80", False),
        ("127.0.0.1", "127.0.0.1", "", True),
        ("com", "example.com", "", True),
    ],
)
def test_domains(names: str, host: str, port: str, is_in: bool) -> None:
    assert DomainList.bind(names, ()).has(host, port) is is_in


@pytest.mark.parametrize(
    ("patterns", "url", "fits"),
    [
        ("/docs/*", "http://a.example/docs/x?y=1", True),
        ("/docs/*", "http://a.example/en/docs/x", False),
        ("/docs", "http://a.example/docs/x", False),
        ("*.pdf", "http://a.example/x.pdf", True),
        ("*.pdf", "http://a.example/x.pdf?page=1", False),
        ("a.example/x?y", "https://a.example/x?y", True),
        ("a.example/x?y", "https://a.example/xzy", False),
        ("https://*", "http://a.example/", False),
        ("https://*", "https://a.example/", True),
        ("/page=[0-9]+/", "http://a.example/?page=12", True),
        ("/page=[0-9]+/", "http://a.example/?page=x", False),
        ("/^http:\\/\\/a/", "http://a.example/", True),
        ("/x/*, /y/*", "http://a.example/y/", True),
        (("/a,b/", "/c/*"), "http://x.example/a,b", True),
        ("*", "http://a.example", True),
        ("/*", "http://a.example", True),
        ("/a*b*c", "http://x.example/a-b-c", True),
    ],
)
def test_patterns(patterns: str, url: str, fits: bool) -> None:
    assert UrlPatterns.bind(patterns, ()).match(url) is fits


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (DomainList, "https://a.example/", "without https:// and path"),
        (DomainList, "", "there is none"),
        (DomainList, 7, "must be a list of domains"),
        (DomainList, "a..b", "is no domain"),
        (UrlPatterns, "/(/", "bad pattern"),
        (UrlPatterns, " ", "there is none"),
        (UrlPatterns, (True,), "must be a list of patterns"),
        (UrlPatterns, "/" + "x" * 20_000 + "/", "too long"),
    ],
)
def test_bad_lists_are_mistakes(
    kind: type[DomainList] | type[UrlPatterns], value: object, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        kind.bind(value, ())


def test_a_pattern_takes_linear_time() -> None:
    patterns = UrlPatterns.bind("/(a*)*b/, *a*a*a*a*a*a*a*a*b", ())
    assert not patterns.match("http://x.example/" + "a" * 16_000)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://a.example/x", None),
        ("HTTP://www.A.example:80/x", None),
        ("http://b.example/x", "domain"),
        ("http://u:p@b.example/x", "domain"),
        ("http://a.example@b.example/x", "domain"),
        ("ftp://a.example/x", "scheme"),
        ("mailto:x@a.example", "scheme"),
        ("http://a.example/" + "y" * 100, "length"),
        ("http://a.example/x/skipped", "skip"),
        ("http://a.example/y", "follow"),
        ("/x", "no URL"),
        ("http:///x", "no URL"),
        ("http://[/x", "no URL"),
        ("http://a.example?x/x", "follow"),
        (None, "no URL"),
        (5, "no URL"),
    ],
)
def test_the_reason_why_a_url_is_left_out(url: object, reason: str | None) -> None:
    rules = UrlRules(
        domains=DomainList.bind("a.example", ()),
        follow=UrlPatterns.bind("/x*", ()),
        skip=UrlPatterns.bind("*skipped", ()),
        length=60,
    )
    assert rules.reasons([url, url]) == [reason, reason]


def test_depth_is_that_of_its_column() -> None:
    rules = UrlRules(depth=2)
    assert rules.reasons(["http://a.example/"] * 4, [1, 2, 3, None]) == [None, None, "depth", None]


def test_hosts_without_end_do_not_fill_the_memory() -> None:
    rules = UrlRules(domains=DomainList.bind("a.example", ()))
    urls = [f"http://h{number}.a.example/" for number in range(50_000)]
    assert set(rules.reasons(urls)) == {None}
    assert len(rules._sites) <= 20_000
