"""The errors between a request and its response; each is an `error-kind` of error tuples.

WebError
├── RequestRefusedError      aioflow does not send this request
│   ├── AddressRefusedError  the address is private, or the scheme is not http(s)
│   ├── RobotsRefusedError   robots.txt forbids it
│   ├── SiteDownError        robots.txt met a server error or no connection: the site is in trouble
│   ├── CircuitOpenError     the host failed too often, or asked for it: it is left alone for a while
│   └── NotRecordedError     offline or replaying, and no stored answer
├── ConnectionFailedError    no connection, reset, or the other side broke off
├── ResponseTimeoutError     connect, first byte, idle or total limit
├── BadResponseError         framing, headers, encoding or redirects that make no sense
├── ResponseTooLargeError    body, headers or decoding ratio over the limit
├── HttpStatusError          an answer with an error status
├── BinaryPageError the page is not text, but a PDF document, an image, an archive or the like └──
ExtractionError the page was fetched, but a required field is missing or it cannot be read
"""

from __future__ import annotations

from http import HTTPStatus

from aioflow.errors import AioflowError

ABSENT = frozenset({404, 410})


class WebError(AioflowError):
    """A request failed; `attempts` is the number of times that it was sent.

    `sent` is False if certainly nothing of it reached the host: then even an effect may be tried again.
    """

    attempts: int = 1
    sent: bool = True


class RequestRefusedError(WebError):
    """The request was not sent."""

    attempts = 0
    sent = False


class AddressRefusedError(RequestRefusedError):
    """The address is not one that a plan may reach."""


class RobotsRefusedError(RequestRefusedError):
    """The host's robots.txt forbids the request."""


class SiteDownError(RequestRefusedError):
    """The robots.txt of the site could not be fetched, so that nothing may be fetched from it.

    `status` is the status of its response, None if there was none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class CircuitOpenError(RequestRefusedError):
    """The host failed too often, or asked for it, and is left alone for a while."""


class NotRecordedError(RequestRefusedError):
    """There is no stored answer, and the network is not to be used."""


class ConnectionFailedError(WebError):
    """The connection could not be made, or broke."""


class ResponseTimeoutError(WebError):
    """The answer took longer than a limit."""


class BadResponseError(WebError):
    """The answer makes no sense."""


class ResponseTooLargeError(WebError):
    """The answer is larger than a limit."""


class HttpStatusError(WebError):
    """The answer has an error status; 404 and 410 say that there is no such page."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
        self.means_absence = status in ABSENT


def status_text(status: int) -> str:
    """Return a status with its name, where it has one: `404 Not Found`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


class BinaryPageError(WebError):
    """The page is not text, so that no wrapper can read it."""


class ExtractionError(WebError):
    """The page cannot be read as its wrapper says."""
