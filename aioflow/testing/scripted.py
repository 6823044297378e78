"""Scripted sources: rows, pauses, failures and silence in the virtual time of the loop, and networks.

A network answers with made-up responses of web sites; the real client is in front of it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from aioflow.relation import Relation, Row, Schema
from aioflow.web.http import BodyStream, Fetcher, Request, Response

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

    from aioflow.web.client import Client


def rows(*tuples: Row, schema: Schema | str | None = None) -> Relation:
    """Return a relation of these tuples; `schema` as names in one text ("city price"), by default a, b, c, …

    Without tuples and schema the relation has one attribute, `a`.
    """
    if isinstance(schema, str):
        schema = Schema(tuple(schema.replace(",", " ").split()))
    if schema is None:
        schema = Schema(tuple(ascii_lowercase[: len(tuples[0]) if tuples else 1]))
    return Relation(schema, list(tuples))


@dataclass(frozen=True)
class _Wait:
    seconds: float


@dataclass(frozen=True)
class _Until:
    time: float


@dataclass(frozen=True)
class _Fail:
    error: Exception


@dataclass(frozen=True)
class _Hang:
    pass


_Act: TypeAlias = Mapping[str, Any] | _Wait | _Until | _Fail | _Hang


class Script:
    """An input of a plan that plays a script: `Script().row(n=1).wait(2.5).row(n=2).fail(OSError("gone"))`.

    `given` counts the rows that were taken from it. `closed` is true once its reader has left or seen its
    end. A script can be played many times; `given` then counts the rows of all.
    """

    def __init__(self, *given_at_once: Mapping[str, Any]) -> None:
        self._acts: list[_Act] = list(given_at_once)
        self.given = 0
        self.closed = False

    def row(self, values: Mapping[str, Any] | None = None, /, **attributes: Any) -> Script:
        """Give a row."""
        return self._then({**(values or {}), **attributes})

    def rows(self, *values: Mapping[str, Any]) -> Script:
        """Give rows, one after the other without a pause."""
        self._acts.extend(values)
        return self

    def wait(self, seconds: float) -> Script:
        """Give no rows for some seconds."""
        return self._then(_Wait(seconds))

    def at(self, time: float, /, **attributes: Any) -> Script:
        """Give a row when the loop's clock shows this time, or at once if it has passed."""
        return self._then(_Until(time))._then(attributes)

    def fail(self, error: Exception) -> Script:
        """Raise an exception; nothing comes after it."""
        return self._then(_Fail(error))

    def hang(self) -> Script:
        """Give no more rows, and never end."""
        return self._then(_Hang())

    def _then(self, act: _Act) -> Script:
        self._acts.append(act)
        return self

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        self.closed = False
        try:
            for act in tuple(self._acts):
                if isinstance(act, Mapping):
                    self.given += 1
                    yield act
                else:
                    await _pause(act)
        finally:
            self.closed = True


async def _pause(act: _Wait | _Until | _Fail | _Hang) -> None:
    loop = asyncio.get_running_loop()
    match act:
        case _Wait(seconds):
            await asyncio.sleep(seconds)
        case _Until(time):
            await asyncio.sleep(max(0.0, time - loop.time()))
        case _Fail(error):
            raise error
        case _Hang():
            await loop.create_future()


_HTML = (("Content-Type", "text/html; charset=utf-8"),)


@dataclass(frozen=True)
class Answer:
    """A response with all its parts; `seconds` replace those of the site."""

    body: str | bytes | BodyStream = b""
    status: int = 200
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = field(default=_HTML)
    seconds: float | None = None


# A text or bytes are a page, a number is a status, an exception is raised.
AnyAnswer: TypeAlias = str | bytes | int | Exception | Answer | Response
Answering: TypeAlias = Callable[[Request], AnyAnswer | Awaitable[AnyAnswer]]
_Given: TypeAlias = AnyAnswer | Answering


class ScriptedSite:
    """Answers requests by their URLs, whatever the host, and records the requests.

    Each URL has a text, bytes, a status, an exception, an `Answer`, a function of the request that returns
    one of these, or a list of them for one request after the other, whose last item is repeated. Any other
    URL is 404. One function may take the place of all URLs. `seconds` of the loop's clock pass before each
    answer.

        site = ScriptedSite({"http://a.example/": [503, "<h1>Here</h1>"]})
        result = run_plan(plan, network=site)
        assert site.urls == ["http://a.example/"] * 2
    """

    def __init__(
        self,
        answers: Mapping[str, Any] | Answering,
        *,
        seconds: float = 0.0,
    ) -> None:
        self._function = answers if callable(answers) else None
        self._answers = {} if callable(answers) else {url: _in_order(each) for url, each in answers.items()}
        self._seconds = seconds
        self._in_flight = 0
        self.requests: list[Request] = []
        self.times: list[float] = []  # at which each was sent, by the loop's clock
        self.most_at_once = 0

    @property
    def urls(self) -> list[str]:
        """The URLs of the requests, in order."""
        return [request.url for request in self.requests]

    def client(self, configuration: Mapping[str, Any] | None = None) -> Client:
        """Return a client over this site, to be closed, for an engine's `services`.

        The configuration has the form that an engine takes. robots.txt is not fetched unless it says so.
        """
        return client_over(self, configuration)

    async def fetch(self, request: Request) -> Response:
        """Return the answer to a request."""
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        self._in_flight += 1
        self.most_at_once = max(self.most_at_once, self._in_flight)
        try:
            return await self._respond(request)
        finally:
            self._in_flight -= 1

    async def close(self) -> None:
        """Do nothing: nothing is open, and a site can be used again."""

    def _next(self, url: str) -> _Given:
        if self._function is not None:
            return self._function
        answers = self._answers.get(url, [404])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def _respond(self, request: Request) -> Response:
        found = self._next(request.url)
        if callable(found):
            given = found(request)
            found = await given if inspect.isawaitable(given) else given
        own_seconds = found.seconds if isinstance(found, Answer) else None
        await asyncio.sleep(self._seconds if own_seconds is None else own_seconds)
        if isinstance(found, Exception):
            raise found
        return _response(request, found)


def client_over(network: Fetcher, configuration: Mapping[str, Any] | None = None) -> Client:
    """Return the real client over this network."""
    from aioflow.web.client import Client
    from aioflow.web.settings import web_settings

    tables = configuration or {}
    settings = web_settings(tables)
    if "robots" not in tables.get("http", {}):
        settings = replace(settings, http=replace(settings.http, robots=False))
    # Pauses before retries are random; here they are the same each time.
    return Client.open(settings, network=network, random=Random(0))


def _in_order(answers: Any) -> list[_Given]:
    if not isinstance(answers, list):
        return [answers]
    if not answers:
        raise ValueError("an empty list has no answer; a URL that is left out is 404")
    return list(answers)


def _response(request: Request, found: Any) -> Response:
    if isinstance(found, Response):
        # A copy, since the layers of the client write into it, and it may be returned again.
        return msgspec.structs.replace(found, url=found.url or request.url, headers=_headers(found.headers))
    if isinstance(found, str | bytes):
        found = Answer(found)
    elif isinstance(found, int):
        found = Answer(status=found)
    if not isinstance(found, Answer):
        raise TypeError(f"{request.url}: the answer must be a text, bytes, a status, …, not {found!r}")
    headers = _headers(found.headers)
    body = found.body.encode() if isinstance(found.body, str) else found.body
    return Response(request.url, found.status, headers, body, tuple(headers.getall("Set-Cookie", ())))


def _headers(given: Mapping[str, str] | Iterable[tuple[str, str]]) -> CIMultiDictProxy[str]:
    from multidict import CIMultiDict, CIMultiDictProxy  # it comes with aiohttp, and is loaded as late

    return CIMultiDictProxy(CIMultiDict(given))
