"""The rules of a crawl: which URLs it follows, and the reason why it leaves one out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from aioflow.crawl.patterns import DomainList, UrlPatterns
from aioflow.crawl.traps import CrawlTraps
from aioflow.web.canonical_urls import ascii_host

_KEPT_SITES = 20_000
_LONGEST_KEPT = 300
NOT_A_URL = "no URL"


class UrlRules:
    """Decides about URLs, column by column. It has the memory of a crawl about its traps."""

    def __init__(
        self,
        *,
        domains: DomainList | None = None,
        follow: UrlPatterns | None = None,
        skip: UrlPatterns | None = None,
        depth: float | None = None,
        schemes: Sequence[str] = ("http", "https"),
        length: int | None = None,
        traps: CrawlTraps | None = None,
    ) -> None:
        self._domains = domains
        self._follow = follow
        self._skip = skip
        self._depth = depth
        self._schemes = frozenset(schemes)
        self._length = length
        self._traps = traps
        self._sites: dict[str, str | None] = {}  # by the text before the path: the reason to refuse it

    def reasons(self, urls: Sequence[Any], depths: Sequence[Any] | None = None) -> list[str | None]:
        """Return the reason why each URL is left out; None for one that is followed."""
        reason = self._reason
        if self._depth is None or depths is None:
            return [reason(url) for url in urls]
        deepest = self._depth
        return [
            "depth" if depth is not None and depth > deepest else reason(url)
            for url, depth in zip(urls, depths, strict=True)
        ]

    def _reason(self, url: Any) -> str | None:
        if not isinstance(url, str):
            return NOT_A_URL
        end = url.find("/", url.find("://") + 3)
        question = url.find("?", 0, end) if end >= 0 else url.find("?")
        if question >= 0:
            end = question
        elif end < 0:
            end = len(url)
        site = url[:end]
        try:
            refused = self._sites[site]
        except KeyError:
            refused = self._site_reason(site)
        if refused is not None:
            return refused
        if self._length is not None and len(url) > self._length:
            return "length"
        if self._follow is not None and not self._follow.match(url):
            return "follow"
        if self._skip is not None and self._skip.match(url):
            return "skip"
        return None if self._traps is None else self._traps.reason(url, end)

    def _site_reason(self, site: str) -> str | None:
        found = self._find_site_reason(site)
        if len(site) <= _LONGEST_KEPT:
            if len(self._sites) >= _KEPT_SITES:
                self._sites.clear()
            self._sites[site] = found
        return found

    def _find_site_reason(self, site: str) -> str | None:
        try:
            parts = urlsplit(site)
            host = ascii_host(parts.hostname or "") if parts.netloc else ""
            port = parts.port
        except ValueError:
            return NOT_A_URL
        if not parts.scheme:
            return NOT_A_URL
        if parts.scheme not in self._schemes:
            return "scheme"
        if not host:
            return NOT_A_URL
        if self._domains is None or self._domains.has(host, "" if port is None else str(port)):
            return None
        return "domain"
