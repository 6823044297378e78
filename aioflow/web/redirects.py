"""Redirects, hop by hop. Each hop passes all layers below, and takes no credentials to another origin."""

from __future__ import annotations

from dataclasses import replace
from string import printable
from urllib.parse import quote, urlsplit

from aioflow.config.masking import mask, shows_secret
from aioflow.web.errors import BadResponseError, RequestRefusedError, WebError
from aioflow.web.http import SAFE_METHODS, Fetcher, Request, Response, framing, harmless
from aioflow.web.settings import WebSettings
from aioflow.web.urls import host_key, origin, resolve, shown_host, without_userinfo

STATUSES = frozenset({301, 302, 303, 307, 308})


class RedirectFetcher:
    """Follows `Location`, at most `redirects` times and never in a circle."""

    def __init__(self, inner: Fetcher, settings: WebSettings) -> None:
        self._inner = inner
        self._settings = settings
        self._most = settings.http.redirects

    async def fetch(self, request: Request) -> Response:
        if request.headers and (name := framing(request.headers)) is not None:
            raise RequestRefusedError(
                f"{without_userinfo(request.url)}: the header {name} is for the client to set"
            )
        response = await self._inner.fetch(request)
        if response.status not in STATUSES:
            return response
        return await self._follow(request, response)

    async def close(self) -> None:
        await self._inner.close()

    async def _follow(self, request: Request, response: Response) -> Response:
        passed = [response]
        # The first response may have set cookies, so its own request may now get another response.
        seen = set() if response.set_cookies else {_state(request)}
        first = request.url
        hops: tuple[str, ...] = (first,)
        while response.status in STATUSES:
            await response.close()
            if len(passed) > self._most:
                raise BadResponseError(f"{_shown(hops)}: redirected more often than {self._most} times")
            request = self._next(request, response)
            if _state(request) in seen:
                raise BadResponseError(f"{_shown((*hops, request.url))}: redirected in a circle")
            seen.add(_state(request))
            try:
                response = await self._inner.fetch(request)
            except WebError as error:
                _say_where_from(error, first)
                raise
            if response.status in STATUSES:
                hops += (request.url,)
            passed.append(response)
        return _told(response, passed[:-1], hops)

    def _next(self, request: Request, response: Response) -> Request:
        """Return the request that a redirect asks for."""
        url = _target(request, response)
        method, body, headers = request.method, request.body, request.headers
        if response.status == 303 or (response.status in (301, 302) and method == "POST"):
            method, body = ("HEAD" if method == "HEAD" else "GET"), None
            headers = {name: value for name, value in headers.items() if not _is_about_body(name)}
        is_safe = request.is_safe or method != request.method
        following = replace(request, url=url, method=method, headers=headers, body=body, is_safe=is_safe)
        if origin(url) == origin(request.url):
            return following
        if body is not None or method not in SAFE_METHODS:
            self._check_leave(request, response, following)
        return replace(following, headers=harmless(headers))

    def _check_leave(self, request: Request, response: Response, following: Request) -> None:
        """Refuse to send effects, or a body for one origin, to another origin without permission."""
        shown = _shown((request.url, following.url))
        if following.body is not None and shows_secret(following.body):
            raise BadResponseError(f"{shown}: the redirect would send a secret in the body to another host")
        if following.body is not None and _is_encrypted(request) and not _is_encrypted(following):
            raise BadResponseError(f"{shown}: the redirect would send the request's body unencrypted")
        asked, other = host_key(request.url), host_key(following.url)
        leave = self._settings.host(*_name_and_port(asked)).resend_to
        if other not in leave and _name_and_port(other)[0] not in leave:
            raise BadResponseError(
                f"{shown}: status {response.status} asks to send this {following.method} again to another "
                f"origin, {_shown_origin(following.url)} instead of {_shown_origin(request.url)}, "
                f'which is not allowed; if that is meant, write resend_to = ["{shown_host(other)}"] '
                f'under [host."{shown_host(asked)}"], or ask the other address itself'
            )


def _target(request: Request, response: Response) -> str:
    location = response.headers.get("Location", "").strip()
    shown = without_userinfo(request.url)
    if not location:
        raise BadResponseError(f"{shown}: status {response.status} without a Location to go to")
    if not location.isprintable():
        # Bytes that are not UTF-8 are sent back as they are, as browsers do.
        location = quote(location.encode("utf-8", "surrogateescape"), safe=printable)
    url = resolve(request.url, location)
    if url is None:
        raise BadResponseError(
            f"{shown}: status {response.status} leads to {mask(without_userinfo(location))[:200]!r}, "
            "which is no http(s) URL"
        )
    return url


def _state(request: Request) -> tuple[str, str, str | None]:
    """Return the state that a response can depend on; the same state again is a circle."""
    cookies = None if request.cookies is None else request.cookies.header(request.url)
    return request.method, request.url, cookies


def _told(response: Response, passed: list[Response], hops: tuple[str, ...]) -> Response:
    """Return the last response, with the hops and attempts that led to it."""
    earlier_seconds = sum(each.timing.total_seconds for each in passed)
    response.hops = hops
    response.attempts += sum(each.attempts - 1 for each in passed)
    response.timing.waited_seconds += sum(each.timing.waited_seconds for each in passed)
    response.timing.first_byte_seconds += earlier_seconds
    response.timing.total_seconds += earlier_seconds
    return response


def _is_about_body(name: str) -> bool:
    return name.lower().startswith("content-")


def _is_encrypted(request: Request) -> bool:
    return origin(request.url).startswith("https:")


def _name_and_port(key: str) -> tuple[str, int]:
    name, _, port = key.rpartition(":")
    return name, int(port)


def _shown_origin(url: str) -> str:
    return f"{urlsplit(url).scheme}://{shown_host(host_key(url))}"


def _say_where_from(error: WebError, url: str) -> None:
    if error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]} (redirected from {without_userinfo(url)})", *error.args[1:])


def _shown(urls: tuple[str, ...]) -> str:
    shown = (urls[0], "…", urls[-1]) if len(urls) > 4 else urls
    return " -> ".join(without_userinfo(url) for url in shown)
