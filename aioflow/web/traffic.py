"""The traffic of one run: its requests are counted for the account, logged, and published as events."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec

from aioflow.authoring.context import Context
from aioflow.authoring.services import AccountEntry, Scope, ServiceHost
from aioflow.config.masking import mask
from aioflow.runtime.events import StepEvent
from aioflow.values.quantities import count_text, size_text
from aioflow.web.errors import RequestRefusedError, WebError
from aioflow.web.http import Request, Response
from aioflow.web.urls import without_userinfo

if TYPE_CHECKING:
    from aioflow.web.http import Request


# A logger of its own, since one line per request is too much for most listeners of `aioflow.web`.
_LOG = logging.getLogger("aioflow.web.requests")


class HttpAttempt(msgspec.Struct, frozen=True):
    """One attempt at a request that has ended, or a response from the cache.

    `url` has no secrets. `seconds` are those from sending to the end of the body.
    """

    method: str
    url: str
    host: str
    attempt: int = 1
    status: int | None = None  # None if there was no response
    body_bytes: int | None = 0  # None if it is unknown
    seconds: float = 0.0
    waited_seconds: float = 0.0  # for its turn
    stored: str | None = None  # "cache", "revalidated" or "replay"
    error_kind: str | None = None  # the name of the WebError
    error: str = ""
    refused: bool = False  # aioflow does not send such a request

    def __str__(self) -> str:
        """Return `GET http://a.example/ 200, 1.2 kB, 34 ms, attempt 2`."""
        took = f"{self.seconds * 1000:.0f} ms"
        again = f", attempt {self.attempt}" if self.attempt > 1 else ""
        if self.error_kind is not None:
            became = "refused" if self.refused else f"failed after {took}"
            why = self.error.removeprefix(f"{self.url}: ")
            return f"{self.method} {self.url} {became}{again}: {self.error_kind}: {why}"
        source = {"cache": ", from the cache", "replay": ", from a recording"}.get(self.stored or "", "")
        size = "" if self.body_bytes is None else f", {size_text(self.body_bytes)}"
        return f"{self.method} {self.url} {self.status}{size}, {took}{source}{again}"


class ShownUrl:
    """A URL without secrets; its text is made when it is shown."""

    __slots__ = ("_url",)

    def __init__(self, url: str) -> None:
        self._url = url

    def __str__(self) -> str:
        return mask(without_userinfo(self._url))


class RequestWatch(Protocol):
    """An observer of the attempts at a request. Most observers only count, so no value is built for them.

    An error status that is no trouble is counted like any other response.
    """

    @property
    def wants_values(self) -> bool: ...
    def count(
        self,
        host: str,
        attempt: int,
        status: int | None,
        body_bytes: int | None,
        stored: str | None,
        error: WebError | None,
        *,
        is_trouble: bool = True,
    ) -> None: ...
    def count_given_up(self, host: str) -> None: ...
    def tell(self, attempt: HttpAttempt) -> None: ...


def note_attempt(
    request: Request,
    host: str,
    *,
    status: int | None = None,
    body_bytes: int | None = 0,
    seconds: float = 0.0,
    waited_seconds: float = 0.0,
    stored: str | None = None,
    error: WebError | None = None,
) -> None:
    """Log an attempt, and notify the watch of its request."""
    watch = request.watch
    if watch is not None:
        is_trouble = not (request.may_be_absent and status is not None and 400 <= status < 500)
        watch.count(host, request.attempt, status, body_bytes, stored, error, is_trouble=is_trouble)
    is_logged = _LOG.isEnabledFor(logging.DEBUG)
    is_wanted = watch is not None and watch.wants_values
    if not is_wanted and not is_logged:
        return
    attempt = HttpAttempt(
        request.method,
        str(ShownUrl(request.url)),
        host,
        request.attempt,
        status,
        body_bytes,
        seconds,
        waited_seconds,
        stored,
        None if error is None else type(error).__name__,
        "" if error is None else str(error),
        isinstance(error, RequestRefusedError),
    )
    if is_logged:
        _LOG.debug("%s", attempt)
    if watch is not None and is_wanted:
        watch.tell(attempt)


_PAGES_BELOW = 400


class RequestEnded(StepEvent, frozen=True):
    """A request of a statement was answered, by a host or from the cache, or failed."""

    request: HttpAttempt


class Traffic:
    """The requests of one run; a service of the run. `fetch` is the client's."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, fetch: Callable[[Request], Awaitable[Response]]) -> None:
        self._fetch = fetch
        self._pages = 0
        self._requests = 0
        self._repeated = 0
        self._given_up = 0
        self._body_bytes = 0
        self._hosts: set[str] = set()
        self._statuses: Counter[int] = Counter()  # by their first digit
        self._untroubled: Counter[int] = Counter()  # error statuses among them that are no trouble
        self._unanswered: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._stored: Counter[str] = Counter()

    @classmethod
    def open_service(cls, host: ServiceHost) -> Traffic:
        from aioflow.web.client import Client

        return cls(host.service(Client).fetch)

    async def close(self) -> None:
        """Nothing is open."""

    async def fetch(self, request: Request) -> Response:
        """Return the answer to a request, and count it as a page if it is one."""
        response = await self._fetch(request)
        if response.status < _PAGES_BELOW:
            self._pages += 1
            if response.stored is not None:
                self._stored[response.stored] += 1
        return response

    def watch(self, context: Context) -> StatementWatch:
        """Return a watch for the requests of a statement."""
        return StatementWatch(self, context)

    def count(
        self,
        host: str,
        attempt: int,
        status: int | None,
        body_bytes: int | None,
        stored: str | None,
        error: WebError | None,
        *,
        is_trouble: bool = True,
    ) -> None:
        """Count an attempt at a request."""
        if isinstance(error, RequestRefusedError):
            self._refused[type(error).__name__] += 1
            return
        if stored == "cache":
            return
        self._requests += 1
        self._repeated += attempt > 1
        self._body_bytes += body_bytes or 0
        self._hosts.add(host)
        if status is not None:
            self._statuses[status // 100] += 1
            self._untroubled[status // 100] += not is_trouble
        if error is not None:
            self._unanswered[type(error).__name__] += 1

    def count_given_up(self, host: str) -> None:
        """Count a request that was sent and given up for another one, because it was slow."""
        self._requests += 1
        self._given_up += 1
        self._hosts.add(host)

    # --- the account ----------------------------------------------------------------------------

    def account(self) -> AccountEntry | None:
        if not self._requests and not self._pages and not self._refused:
            return None
        figures = {
            "pages": self._pages,
            "requests": self._requests,
            "repeated": self._repeated,
            "given-up": self._given_up,
            "hosts": len(self._hosts),
            "body-bytes": self._body_bytes,
            "statuses": {f"{digit}xx": count for digit, count in sorted(self._statuses.items())},
            "unanswered": dict(self._unanswered),
            "refused": dict(self._refused),
            "cached": self._stored["cache"],
            "revalidated": self._stored["revalidated"],
        }
        return AccountEntry("web", figures, (self._line(),))

    def _line(self) -> str:
        """Return `40 pages, 1.2 MB from 2 hosts; 43 requests, 2 repeated, 2 answered 5xx`."""
        pages = count_text(self._pages, "page") if self._pages else "no pages"
        if not self._requests:
            refused = count_text(self._refused.total(), "request")
            return f"{pages} from the cache" if self._pages else f"{pages}; {refused} refused"
        hosts = count_text(len(self._hosts), "host")
        if not self._pages:
            return f"no pages; {self._requests_text()} to {hosts}{self._trouble()}"
        parts = [f"{pages}, {size_text(self._body_bytes)} from {hosts}"]
        parts += [f"{self._stored['cache']:,} from the cache"] if self._stored["cache"] else []
        parts += [f"{self._stored['revalidated']:,} unchanged"] if self._stored["revalidated"] else []
        trouble = self._trouble()
        is_telling = trouble or self._requests != self._pages - self._stored["cache"]
        return ", ".join(parts) + (f"; {self._requests_text()}{trouble}" if is_telling else "")

    def _requests_text(self) -> str:
        return count_text(self._requests, "request")

    def _trouble(self) -> str:
        """Return the reasons for more requests than pages, other than redirects and robots.txt."""
        told = [(self._repeated, "repeated"), (self._given_up, "given up as slow")]
        statuses = self._statuses - self._untroubled
        told += [(statuses[digit], f"answered {digit}xx") for digit in (4, 5)]
        told += [(sum(self._unanswered.values()), "without an answer")]
        return "".join(f", {number:,} {words}" for number, words in told if number)


class StatementWatch:
    """Watches the requests of one statement: counts them, and notifies listeners of the run."""

    __slots__ = ("_context", "count", "count_given_up")

    def __init__(self, traffic: Traffic, context: Context) -> None:
        self._context = context
        self.count = traffic.count
        self.count_given_up = traffic.count_given_up

    @property
    def wants_values(self) -> bool:
        return self._context.is_watched

    def tell(self, attempt: HttpAttempt) -> None:
        self._context.publish(RequestEnded, attempt)
