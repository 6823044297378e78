"""Cookies: one store for each run. aiohttp's cookie jars decide which cookie goes to which request."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aioflow.web.http import Fetcher, Request, Response, find_header
from aioflow.web.urls import has_host, host_key

if TYPE_CHECKING:
    from aiohttp import CookieJar

COOKIE_BYTES = 4096  # with its attributes, as browsers have it
SITE_COOKIES = 100
SITE_BYTES = 16 * 1024
SITES = 1000

_DOMAIN = re.compile(r";\s*domain\s*=\s*\"?\s*\.*([^;\"\s]*)", re.IGNORECASE)
_PATH = re.compile(r";\s*path\s*=\s*([^;]*)", re.IGNORECASE)
_SECURE = re.compile(r";\s*secure\s*(?:;|$)", re.IGNORECASE)
# The way to delete a cookie; aiohttp takes second 0 of the epoch for no date at all.
_EPOCH = re.compile(r";\s*expires\s*=[^;]*\b1970\b[^;]*", re.IGNORECASE)
# Second levels under which registries sell names. There is no list of public suffixes here, so this is a
# caution: a cookie for all of `co.uk` is refused.
_REGISTRY_LABELS = frozenset(
    {
        "ac",
        "co",
        "com",
        "edu",
        "go",
        "gob",
        "gouv",
        "gov",
        "gv",
        "ltd",
        "mil",
        "ne",
        "net",
        "nom",
        "or",
        "org",
    }
    | {"plc", "sch"}
)


class CookieStore:
    """The cookies of one run.

    Each site has a jar of its own, so that none can crowd out another; jars that are long unused are dropped.
    """

    def __init__(self) -> None:
        self._jars: OrderedDict[str, CookieJar] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._jars.values()))

    def header(self, url: str) -> str | None:
        """Return the Cookie header of a request, if there is one."""
        if not self._jars:
            return None
        key = site(host_key(url))
        jar = self._jars.get(key)
        if jar is None:
            return None
        from yarl import URL

        self._jars.move_to_end(key)
        cookies = jar.filter_cookies(URL(url)).values()
        return "; ".join(f"{each.key}={each.coded_value}" for each in cookies) or None

    def take(self, url: str, set_cookies: tuple[str, ...]) -> None:
        """Keep the cookies that the Set-Cookie headers of a response from `url` may set."""
        host = host_key(url)
        accepted = [text for each in set_cookies if (text := _admitted(each, url)) is not None]
        if not accepted:
            return
        from yarl import URL

        jar = self._jar(site(host), unsafe=_is_address(host))
        for text in accepted:
            if _has_room(jar, text):
                jar.update_cookies_from_headers([text], URL(url))

    def _jar(self, key: str, *, unsafe: bool) -> CookieJar:
        jar = self._jars.get(key)
        if jar is None:
            from aiohttp import CookieJar

            jar = self._jars[key] = CookieJar(unsafe=unsafe)
            if len(self._jars) > SITES:
                self._jars.popitem(last=False)
        self._jars.move_to_end(key)
        return jar


class CookieFetcher:
    """Sends the cookies of `request.cookies` and keeps those that the answer sets."""

    def __init__(self, inner: Fetcher) -> None:
        self._inner = inner

    async def fetch(self, request: Request) -> Response:
        store = request.cookies
        if store is None or not has_host(request.url):  # lower layers report the mistake
            return await self._inner.fetch(request)
        header = store.header(request.url)
        if header is not None and find_header(request.headers, "cookie") is None:
            request = replace(request, headers={**request.headers, "Cookie": header})
        response = await self._inner.fetch(request)
        if response.set_cookies:
            store.take(request.url, response.set_cookies)
        return response

    async def close(self) -> None:
        await self._inner.close()


@lru_cache(maxsize=4096)
def site(host: str) -> str:
    """Return the site that shares cookies: all hosts under one name, or an address or bare name with its
    port.
    """
    name, _, _ = host.rpartition(":")
    if _is_address(host) or "." not in name:
        return host
    labels = name.split(".")
    return ".".join(labels[-3:] if is_public_suffix(".".join(labels[-2:])) else labels[-2:])


def is_public_suffix(domain: str) -> bool:
    """Return whether names under a domain belong to different owners, as far as is known without a list."""
    labels = domain.split(".")
    if len(labels) == 1:
        return True
    return len(labels) == 2 and len(labels[1]) == 2 and labels[0] in _REGISTRY_LABELS


@lru_cache(maxsize=4096)
def _is_address(host: str) -> bool:
    try:
        ip_address(host.rpartition(":")[0].strip("[]"))
    except ValueError:
        return False
    return True


def _admitted(text: str, url: str) -> str | None:
    """Return a Set-Cookie header that may be kept, for the host alone if its domain is too wide."""
    if len(text) > COOKIE_BYTES:
        return None
    wide = [domain for domain in _DOMAIN.findall(text.lower()) if _is_too_wide(domain)]
    if wide:
        if set(wide) != {urlsplit(url).hostname}:
            return None
        text = _DOMAIN.sub("", text)
    if "max-age" not in text.lower():
        text = _EPOCH.sub("; Max-Age=0", text)
    return text if _keeps_its_prefix(text, url) else None


def _is_too_wide(domain: str) -> bool:
    return bool(domain) and (is_public_suffix(domain) or _is_address(f"{domain}:0"))


def _keeps_its_prefix(text: str, url: str) -> bool:
    """Return whether the attributes keep the promise of `__Secure-` or `__Host-` (RFC 6265bis)."""
    name = text.lstrip()[:9].lower()
    if not name.startswith(("__secure-", "__host-")):
        return True
    is_secure = url.startswith("https:") and _SECURE.search(text) is not None
    if name.startswith("__secure-"):
        return is_secure
    path = _PATH.search(text)
    return is_secure and _DOMAIN.search(text) is None and path is not None and path[1].strip() == "/"


def _has_room(jar: CookieJar, text: str) -> bool:
    name = text.partition("=")[0].strip()
    kept = [each for each in jar if each.key != name]
    if len(kept) == len(jar) and len(kept) >= SITE_COOKIES:
        return False
    return sum(len(each.key) + len(each.value) for each in kept) + len(text) <= SITE_BYTES
