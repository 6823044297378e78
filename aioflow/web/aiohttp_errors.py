"""Translation of aiohttp's exceptions into aioflow's errors."""

from __future__ import annotations

import asyncio
from ssl import SSLCertVerificationError

import aiohttp
from aiohttp.http_exceptions import ContentLengthError, HttpProcessingError, TransferEncodingError

from aioflow.web.errors import (
    AddressRefusedError,
    BadResponseError,
    ConnectionFailedError,
    RequestRefusedError,
    ResponseTimeoutError,
    ResponseTooLargeError,
    WebError,
)
from aioflow.web.settings import HttpSettings

# What a fetch may meet below it; anything else is a mistake in the program.
FAULTS = (aiohttp.ClientError, OSError, RuntimeError, ValueError)
# aiohttp says by its words only which limit a header went past.
_TOO_MUCH_HEADER = ("Got more than", "Too many headers")


# What aiohttp raises before it has sent anything to the host: while it resolves, connects, asks a proxy for a
# way through, or agrees on encryption.
_NOTHING_SENT = (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError)


def web_error(error: BaseException, url: str, http: HttpSettings) -> WebError:
    """Return the error for a failed request for `url`."""
    found = _explained(error, url, http)
    if isinstance(error, _NOTHING_SENT):
        found.sent = False
    return found


def _explained(error: BaseException, url: str, http: HttpSettings) -> WebError:
    match error:
        case AddressRefusedError():
            return AddressRefusedError(f"{url}: {error}")
        case WebError():
            return error
        case aiohttp.InvalidURL():
            return AddressRefusedError(f"{url}: this is no http(s) URL")
        case aiohttp.ConnectionTimeoutError():
            return ResponseTimeoutError(f"{url}: no connection within {http.connect_seconds:g} s")
        case aiohttp.ClientHttpProxyError():
            return ConnectionFailedError(f"{url}: the proxy answered {error.status} {error.message}")
        case aiohttp.ClientResponseError():
            return _bad_head(error.message, url, http)
        case aiohttp.ClientPayloadError():
            return _bad_body(error, url, http)
        case aiohttp.ClientError() | OSError():
            return ConnectionFailedError(f"{url}: {_broken(error)}")
        case ValueError():
            # aiohttp checks methods and headers before it sends them.
            return RequestRefusedError(f"{url}: this request cannot be sent: {error}")
        case _:
            return ConnectionFailedError(f"{url}: the connection was closed")


def _broken(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the name {error.host} cannot be resolved: {_reason(error.os_error)}"
        case aiohttp.ClientProxyConnectionError():
            return f"no connection to the proxy: {_reason(error.os_error)}"
        case aiohttp.ClientConnectorCertificateError():
            return f"the certificate of {error.host} is not accepted: {_reason(error.certificate_error)}"
        case aiohttp.ClientConnectorError():
            return f"no connection to {error.host}:{error.port}: {_reason(error.os_error)}"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before the answer was whole"
        case _:
            return f"the connection broke: {_reason(error)}"


def _bad_head(message: str, url: str, http: HttpSettings) -> WebError:
    if message.startswith(_TOO_MUCH_HEADER):
        return too_much_header(url, http)
    return BadResponseError(f"{url}: the answer is not HTTP: {_first_line(message)}")


def _bad_body(error: aiohttp.ClientPayloadError, url: str, http: HttpSettings) -> WebError:
    cause = error.__cause__
    if isinstance(cause, HttpProcessingError) and not isinstance(
        cause, ContentLengthError | TransferEncodingError
    ):
        return _bad_head(cause.message, url, http)
    what = cause.message if isinstance(cause, HttpProcessingError) else str(error)
    return ConnectionFailedError(f"{url}: the body broke off: {_first_line(what)}")


def too_much_header(url: str, http: HttpSettings) -> ResponseTooLargeError:
    return ResponseTooLargeError(
        f"{url}: more than {http.header_bytes} bytes of headers, or too many of them"
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, asyncio.TimeoutError):
        return "it took too long"
    return _first_line(str(error)) or type(error).__name__


def _first_line(text: str) -> str:
    # The parser of aiohttp goes on with the bytes that it found.
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].rstrip(":") == "Bad status line":
        lines = lines[1:]
    return lines[0].strip().rstrip(":") if lines else ""
