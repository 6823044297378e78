"""Paging that stays inside a wrapper: from a page to the request for the one behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

from aioflow.relation import Value
from aioflow.web.headers import harmless
from aioflow.web.messages import Request
from aioflow.web.urls import origin, resolve
from aioflow.wrappers.definition import Paging, Wrapper
from aioflow.wrappers.values import value_text


class Pages:
    """The way through the pages of one tuple.

    `was_cut` tells that a limit ended it, not the source, and `is_bounded` that the wrapper states the limit.
    """

    def __init__(self, wrapper: Wrapper) -> None:
        self.pages = 1
        self.was_cut = False
        self._paging = wrapper.paging
        self.is_bounded = wrapper.paging is not None and wrapper.paging.is_bounded
        self._seen: set[str] = set()
        self._first: Request | None = None

    def following(self, request: Request, url: str, next_page: Value, items: int) -> Request | None:
        """The request for the page behind this one, or None behind the last.

        `url` is where the page came from in the end, `next_page` what the extraction found for it, and
        `items` how many items the page had.
        """
        paging = self._paging
        if paging is None:
            return None
        self._first = self._first or request
        found = self._following(paging, request, url, next_page, items)
        if found is not None and self.pages >= paging.most_pages:
            self.was_cut = True
            return None
        self.pages += found is not None
        return found

    def _following(
        self, paging: Paging, request: Request, url: str, next_page: Value, items: int
    ) -> Request | None:
        if paging.kind in ("number", "offset"):
            if items == 0:
                return None
            number = paging.start + self.pages * paging.step
            return self._with_parameter(paging, request, str(number))
        link = "" if next_page is None else value_text(next_page, "next page").strip()
        if not link:
            return None
        if paging.kind == "cursor":
            return None if self._is_seen(link) else self._with_parameter(paging, request, link)
        return self._linked(request, url, link)

    def _with_parameter(self, paging: Paging, request: Request, value: str) -> Request:
        return replace(request, url=with_parameter(request.url, paging.parameter or "", value))

    def _linked(self, request: Request, url: str, link: str) -> Request | None:
        self._seen.update((request.url, url))
        target = resolve(url, link)
        if target is None or self._is_seen(target):
            return None
        changes: dict[str, Any] = {"url": target}
        if request.body is not None or request.method != "GET":
            # A link is followed by GET, whatever brought the page that it stands on.
            headers = {name: value for name, value in request.headers.items() if name != "Content-Type"}
            changes |= {"method": "GET", "body": None, "is_safe": True, "headers": headers}
        given = changes.get("headers", request.headers)
        if given and origin(target) != origin((self._first or request).url):
            # As with a redirect: a page decides where the link leads, and any header may be a credential.
            changes["headers"] = harmless(given)
        return replace(request, **changes)

    def _is_seen(self, key: str) -> bool:
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def with_parameter(url: str, name: str, value: str) -> str:
    """The URL with a parameter of its query set, in place of all that had that name."""
    url, mark, fragment = url.partition("#")
    path, _, query = url.partition("?")
    added = f"{quote_plus(name)}={quote(value, safe='', errors='replace')}"
    kept = [part for part in query.split("&") if part and unquote_plus(part.partition("=")[0]) != name]
    return f"{path}?{'&'.join([*kept, added])}{mark}{fragment}"
