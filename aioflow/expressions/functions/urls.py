"""Functions on URLs. The modules of the web are imported when one is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from aioflow.expressions.functions.table import expression_function
from aioflow.values.counters import NOT_A_URL, UncomputableError

P = ParamSpec("P")
T = TypeVar("T")


def _of_urls(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which has no result where something is no URL."""

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except ValueError:
            raise UncomputableError(NOT_A_URL) from None

    return call


@expression_function(
    "url",
    "host(url char) char",
    "host('https://www.Example.org:8080/a') = 'www.example.org'",
    "host('http://bücher.example/') = 'xn--bcher-kva.example'",
)
@_of_urls
def host(url: str) -> str:
    """The host, in lower case and ASCII, without port; null, and counted, for what is no URL with a host."""
    from aioflow.web.canonical_urls import url_parts

    return url_parts(url).host


@expression_function(
    "url",
    "domain(url char) char",
    "domain('https://www.shop.example.co.uk/a') = 'example.co.uk'",
    "domain('https://me.github.io/') = 'me.github.io'",
    "domain('http://127.0.0.1/') is null",
)
@_of_urls
def domain(url: str) -> str | None:
    """The domain that somebody registered, by the Public Suffix List; null for addresses, names without dots
    and public suffixes themselves."""
    from aioflow.web.canonical_urls import registrable_domain, url_parts

    return registrable_domain(url_parts(url).host)


@expression_function(
    "url", "path(url char) char", "path('https://example.org/a/b?c=1') = '/a/b'", "path('/a?b') = '/a'"
)
@_of_urls
def path(url: str) -> str:
    """The path as it is written, `/` where a whole URL has none; also of a relative reference."""
    from aioflow.web.canonical_urls import reference_parts

    return reference_parts(url).path


@expression_function(
    "url",
    "query_value(url char, name char) char",
    "query_value('https://example.org/?q=a+b%21&p=2', 'q') = 'a b!'",
    "query_value('/?p=2', 'q') is null",
)
@_of_urls
def query_value(url: str, name: str) -> str | None:
    """The first value of a parameter of the query, without escapes; null if there is none."""
    from aioflow.web.canonical_urls import query_value, reference_parts

    return query_value(reference_parts(url).query, name)


@expression_function(
    "url",
    "without_fragment(url char) char",
    "without_fragment('https://example.org/a?b#c') = 'https://example.org/a?b'",
)
@_of_urls
def without_fragment(url: str) -> str:
    """The URL without `#` and what follows it; also a relative reference."""
    from aioflow.web.canonical_urls import reference_parts

    reference_parts(url)
    return url.partition("#")[0]


@expression_function(
    "url",
    "canonical_url(url char) char",
    "canonical_url('HTTP://Example.org:80/a/../b%7e?z=1&a=2#top') = 'http://example.org/b~?a=2&z=1'",
    "canonical_url('https://example.org') = 'https://example.org/'",
)
@_of_urls
def canonical_url(url: str) -> str:
    """One form for all ways to write a URL: scheme and host in lower case, no default port, dot segments and
    fragment, escapes in one way, the query sorted."""
    from aioflow.web.canonical_urls import canonical

    return canonical(url)


@expression_function(
    "url",
    "resolve_url(base char, url char) char",
    "resolve_url('https://example.org/a/b', '../c?d') = 'https://example.org/c?d'",
    "resolve_url('https://example.org/', 'mailto:me@example.org') is null",
)
@_of_urls
def resolve_url(base: str, url: str) -> str:
    """The address that a link on the page `base` leads to, without fragment, as wrappers give it; null, and
    counted, where it leads to no http(s) address."""
    from aioflow.web.urls import resolve

    found = resolve(base, url)
    if found is None:
        raise ValueError("it leads elsewhere")
    return found
