"""What became of each attempt at a request: logged, and told to whoever watches the request."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from aioflow.dataclass import dataclass
from aioflow.quantities import size_text
from aioflow.secrets import mask
from aioflow.web.errors import RequestRefusedError, WebError
from aioflow.web.urls import without_userinfo

if TYPE_CHECKING:
    from aioflow.web.messages import Request

# A logger of its own: one line a request is more than most who listen to `aioflow.web` want.
_LOG = logging.getLogger("aioflow.web.requests")


@dataclass(frozen=True)
class HttpAttempt:
    """One attempt at a request, as it ended; of an answer that the cache gave, that.

    `url` is as it may be shown. `seconds` are those from sending to the end of the body.
    """

    method: str
    url: str
    host: str
    attempt: int = 1
    status: int | None = None  # None where there was no answer
    body_bytes: int | None = 0  # None where it is not known
    seconds: float = 0.0
    waited_seconds: float = 0.0  # for its turn
    stored: str | None = None  # "cache", "revalidated" or "replay"
    error_kind: str | None = None  # the name of the WebError
    error: str = ""
    refused: bool = False  # nobody was asked: aioflow does not send such a request

    def __str__(self) -> str:
        """`GET http://a.example/ 200, 1.2 kB, 34 ms, attempt 2`."""
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
    """A URL as it may be shown, written when somebody shows it."""

    __slots__ = ("_url",)

    def __init__(self, url: str) -> None:
        self._url = url

    def __str__(self) -> str:
        return mask(without_userinfo(self._url))


class RequestWatch(Protocol):
    """Whoever wants to know what becomes of a request. Most only count, for which no value is built.

    An error status that is no trouble, but an answer like another, is counted as such.
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
    """Log an attempt, and tell whoever watches its request."""
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
