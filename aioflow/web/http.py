"""Requests, responses and the protocol `Fetcher`: the values that all layers of the client exchange.

Headers are found in any case. Headers that any host may see are distinguished from the rest.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

if TYPE_CHECKING:
    from aioflow.restart.policies import RestartPolicy
    from aioflow.runtime.memory import MemoryBudget
    from aioflow.web.cookies import CookieStore
    from aioflow.web.traffic import RequestWatch


# A host's name and the label of the firing -> the permit to hold while the network is used, and only then.
Permit: TypeAlias = Callable[[str, str], AbstractAsyncContextManager[None]]
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def no_permit(source: str, label: str) -> AbstractAsyncContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Hold:
    """The bytes of a streamed body that are read before it is passed on, and their memory budget."""

    most_bytes: int
    memory: MemoryBudget = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Limits on the body of one page: its size, and the kinds of bodies that are read at all.

    `accepts` is called with the Content-Type, first without a byte of the body, then with its first bytes. A
    body that it refuses is left where it is.
    """

    most_bytes: int | None = None
    accepts: Callable[[str, bytes], bool] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its method, URL, headers and body, and its treatment by the client.

    `is_safe` says that it may be sent again. The caller reads a `streamed` response chunk by chunk; any other
    response comes with its whole body, within `limits` if there are any. With a `hold`, a streamed response
    also comes when its body is whole, so that a response that breaks off is requested again, unless the body
    is larger than the hold. `robots` is False if the author says that robots.txt does not apply. `watch` is
    notified when an attempt has ended, and `sent` is called when one is sent. Pages of one `kind` have
    latencies of their own; `restart` is the policy for slow requests, in place of the host's.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_safe: bool = True
    streamed: bool = False
    hold: Hold | None = None
    limits: BodyLimits | None = None
    robots: bool = True
    urgent: bool = False
    # Of the requests that wait for a host, lower ranks go first.
    rank: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    cookies: CookieStore | None = None
    timeout_seconds: float | None = None  # in place of the configured total
    permit: Permit = field(default=no_permit, repr=False, compare=False)
    # For its `watch`: a missing page, such as a robots.txt, is no trouble.
    may_be_absent: bool = field(default=False, compare=False)
    watch: RequestWatch | None = field(default=None, repr=False, compare=False)
    attempt: int = field(default=1, compare=False)
    kind: str = field(default="", compare=False)
    restart: RestartPolicy | None = field(default=None, compare=False)
    sent: Callable[[], None] | None = field(default=None, repr=False, compare=False)


class BodyStream(Protocol):
    """A decoded body on its way; it fails with a WebError when it is cut, too slow or too large."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def close(self) -> None: ...


class Timing(msgspec.Struct):
    """The moments of a request, in seconds after the client received it."""

    waited_seconds: float = 0.0  # for politeness and permits
    first_byte_seconds: float = 0.0
    total_seconds: float = 0.0


class Response(msgspec.Struct):
    """A response. Its body is whole, or a stream that has to be read to its end or closed.

    `url` is its address after redirects, `hops` the addresses that led there. `headers` are case-insensitive.
    `stored` is set if no body crossed the network: "cache" (fresh, or offline at any age), "revalidated" or
    "replay". A body that `overflows` is larger than the hold of its request, and may still break off. A body
    that is `unread` was refused by the limits of its request; it is empty here.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes | BodyStream
    set_cookies: tuple[str, ...] = ()
    hops: tuple[str, ...] = ()
    attempts: int = 1
    stored: str | None = None
    overflows: bool = False
    unread: bool = False
    timing: Timing = msgspec.field(default_factory=Timing)

    async def read(self) -> bytes:
        """Return the whole body."""
        if isinstance(self.body, bytes):
            return self.body
        async with self:
            self.body = b"".join([chunk async for chunk in self.body])
        return self.body

    def held(self) -> bytes | None:
        """Return the whole body, even if it was read piece by piece; None if it was not held."""
        if isinstance(self.body, bytes):
            return self.body
        whole = getattr(self.body, "whole", None)
        return None if whole is None or self.overflows else whole()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body piece by piece; a body that is whole is one piece."""
        if isinstance(self.body, bytes):
            yield self.body
            return
        async for chunk in self.body:
            yield chunk

    async def close(self) -> None:
        """Release a body that is not read to its end."""
        if not isinstance(self.body, bytes):
            await self.body.close()

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Fetcher(Protocol):
    """Anything that answers requests: the network, or a layer around another fetcher.

    An error status is a response, not an exception. Failures are WebErrors.
    """

    async def fetch(self, request: Request) -> Response: ...
    async def close(self) -> None: ...


# Headers that say nothing about the user. Any other header may carry a credential, whatever its name.
HARMLESS = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-encoding",
        "content-language",
        "content-type",
        "dnt",
        "if-modified-since",
        "if-none-match",
        "pragma",
        "range",
        "user-agent",
    }
)
# Headers for the end and the receiver of a request. A wrong value here would smuggle a second request.
FRAMING = frozenset({"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"})


def find_header(headers: Mapping[str, str], name: str) -> str | None:
    """Return the value of a header by its name in lower case."""
    for key, value in headers.items():
        if key.lower() == name:
            return value
    return None


def framing(headers: Mapping[str, str]) -> str | None:
    """Return the name of a header that only the client itself may set, if there is one."""
    if FRAMING.isdisjoint(map(str.lower, headers)):
        return None
    return next(name for name in headers if name.lower() in FRAMING)


def harmless(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that may be shown to anyone, and sent to anyone."""
    return {name: value for name, value in headers.items() if name.lower() in HARMLESS}


def personal(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that may be meant for one host and one user only, with names in lower case."""
    return {name.lower(): value for name, value in headers.items() if name.lower() not in HARMLESS}
