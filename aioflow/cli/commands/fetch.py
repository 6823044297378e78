"""`aioflow fetch`: makes one request as a plan would, and reports on its answer."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from aioflow.cli.config import web_configuration, web_options
from aioflow.cli.exit import FAILED, OK, guarded, os_error_text, print_message, run_interruptibly
from aioflow.cli.options import Cache, LogFile, LogFormat, LogFormatName, Offline, Record, Replay, Verbose
from aioflow.cli.output.colour import Colour, print_json
from aioflow.cli.output.destination import OutputDestination
from aioflow.cli.output.logs import LogOptions, logged
from aioflow.config.configuration import Configuration
from aioflow.config.masking import mask
from aioflow.config.secrets import Secrets
from aioflow.errors import InputError
from aioflow.values.display import visible, visible_lines
from aioflow.values.quantities import count_text, duration_text
from aioflow.web.errors import RequestRefusedError, WebError
from aioflow.web.http import SAFE_METHODS, Request, Response
from aioflow.web.settings import WebSettings, web_settings
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.charsets import detect
from aioflow.wrappers.media import medium_of

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): *([^\r\n\0]*)")
_TEXTUAL = re.compile(r"text/|application/(.*[+])?(json|xml|javascript)|application/xhtml", re.IGNORECASE)
_METHOD = re.compile(r"[A-Za-z]+")
_ORIGINS = {
    None: "from the network",
    "cache": "from the cache, still fresh",
    "revalidated": "from the cache, unchanged says the server",
    "replay": "from the recording",
}


@guarded
def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="An http:// or https:// address.")],
    method: Annotated[
        str | None, typer.Option("--method", "-X", metavar="METHOD", help="GET, or POST if there is --data.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="'NAME: VALUE'", help="A header; the value may be secret:NAME."
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="TEXT", help="The body of the request; @FILE reads it.")
    ] = None,
    head: Annotated[bool, typer.Option("--head", "-I", help="Ask for the headers only.")] = False,
    output: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write the body to a file; - is stdout.")
    ] = None,
    body: Annotated[
        bool, typer.Option("--body", help="Write the body to stdout, and the report to stderr.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The report as a JSON object.")] = False,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Make one request as a plan would, and tell all about its answer, or why it was refused."""
    options = FetchOptions(url, method, header or (), data, head, output, body, json)
    with logged(LogOptions(verbose, log_file, log_format)):
        sys.exit(fetch_url(options, web_configuration(web_options(offline, cache, record, replay))))


@dataclass(frozen=True)
class FetchOptions:
    """The options of one request."""

    url: str
    method: str | None = None
    headers: Sequence[str] = ()
    data: str | None = None
    head: bool = False
    output: str | None = None
    body: bool = False
    as_json: bool = False

    @property
    def destination(self) -> str | None:
        """The file that the body goes to, if any; - is stdout."""
        return self.output or ("-" if self.body else None)


def fetch_url(options: FetchOptions, configuration: Configuration) -> int:
    """Make a request and report on its answer; return the exit code."""
    request = request_of(options)
    settings = web_settings(configuration)
    # A body on stdout stands there alone.
    report = sys.stderr if options.destination == "-" else sys.stdout
    # A file that cannot be written is noticed before the request is sent.
    destination = OutputDestination(overwrite=options.destination) if options.destination else None
    try:
        response, body = run_interruptibly(_response(request, settings))
        # The reader of the report may leave before its end: the file is written first.
        if destination is not None and destination.name is not None:
            _write(_for_output(response, body, destination), destination)
        _tell(request, response, body, report, as_json=options.as_json, offline=settings.http.offline)
        if destination is not None and destination.name is None:
            _write_out(response, body, destination)
    except WebError as error:
        _tell_failure(error, options, report)
        return FAILED
    finally:
        if destination is not None:
            destination.abandon()
    return OK if response.status < HTTPStatus.BAD_REQUEST else FAILED


def request_of(options: FetchOptions) -> Request:
    """Return the request that the options ask for."""
    if not options.url.lower().startswith(("http://", "https://")):
        raise InputError(f"{options.url!r} is no http:// or https:// address")
    by_default = "HEAD" if options.head else "GET" if options.data is None else "POST"
    method = (options.method or by_default).upper()
    if not _METHOD.fullmatch(method):
        raise InputError(f"--method {method}: not a method of HTTP")
    if options.head and method != "HEAD":
        raise InputError(f"--head asks by HEAD, --method by {method}: give one of them")
    headers = dict(map(_header, options.headers))
    if options.data is not None and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    return Request(
        options.url,
        method,
        headers,
        _data(options.data),
        is_safe=method in SAFE_METHODS,
    )


async def _response(request: Request, settings: WebSettings) -> tuple[Response, bytes]:
    """Return the answer to one request, and its body."""
    # Other commands import this module, and make no requests.
    from aioflow.web.client import Client

    client = Client.open(settings)
    try:
        response = await client.fetch(request)
        return response, await response.read()
    finally:
        await client.close()


def _header(text: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(text)
    if found is None:
        name, colon, _ = text.partition(":")
        if not colon:
            raise InputError(f"--header {name}: expected 'NAME: VALUE'")
        if _HEADER.fullmatch(f"{name}:"):
            raise InputError(f"--header {name}: its value must not have line breaks or NUL in it")
        raise InputError(f"--header {name!r}: a name is made of ASCII letters, digits and signs like -")
    return found[1], Secrets().fill_in(found[2])


def _data(text: str | None) -> bytes | None:
    if text is None or not text.startswith("@"):
        return None if text is None else text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read --data: {os_error_text(error)}") from error


def _for_output(response: Response, body: bytes, destination: OutputDestination) -> bytes:
    """Return the body as it is or, for a terminal, as text without control sequences."""
    if not os.isatty(destination.descriptor):
        return body
    content_type = response.headers.get("Content-Type", "")
    found = detect(body, content_type, markup="html" in content_type or "xml" in content_type)
    return visible_lines(body.decode(found.codec, "backslashreplace")).encode()


def _write(body: bytes, destination: OutputDestination) -> None:
    try:
        with open(destination.descriptor, "wb", closefd=False) as file:
            file.write(body)
        destination.commit()
    except OSError as error:
        # The system knows only the descriptor, not the name.
        error.filename = destination.name
        raise


def _write_out(response: Response, body: bytes, destination: OutputDestination) -> None:
    """Write the body to stdout; a body that is no text is not written to a terminal."""
    if sys.stdout.isatty() and _kind_of(response, body) is not None:
        print_message("note", "the body is not shown, since it is no text; -o FILE saves it")
    else:
        _write(_for_output(response, body, destination), destination)


# --- the report ---------------------------------------------------------------------------------


def _tell(
    request: Request, response: Response, body: bytes, report: TextIO, *, as_json: bool, offline: bool
) -> None:
    if as_json:
        print_json(_described(request, response, body), report)
    else:
        print(mask("\n".join(_report(request, response, body, Colour(report), offline))), file=report)
    report.flush()


def _tell_failure(error: WebError, options: FetchOptions, report: TextIO) -> None:
    refused = isinstance(error, RequestRefusedError)
    if not options.as_json:
        print_message("refused" if refused else "failed", visible(str(error)))
        return
    described = {
        "url": without_userinfo(options.url),
        "error": str(error),
        "error-kind": type(error).__name__,
        "refused": refused,
        "attempts": 0 if refused else error.attempts,
    }
    print_json(described, report)


def _report(request: Request, response: Response, body: bytes, paint: Colour, offline: bool) -> Iterator[str]:
    colour = "green" if response.status < 300 else "yellow" if response.status < 400 else "red"
    status = paint(f"bold {colour}", status_text(response.status))
    yield f"{status}  {request.method} {shown_url(response.url)}"
    facts = {
        "redirected": " → ".join([shown_url(hop) for hop in response.hops]),
        "answer": _origin(response, offline),
        "attempts": str(response.attempts) if response.attempts > 1 else "",
        "time": _timing_text(response),
        "body": _body_text(response, body),
    }
    for name, text in facts.items():
        if text:
            yield f"{paint('dim', f'{name:<10}')}  {text}"
    yield ""
    for name, value in _headers(response):
        yield f"{paint('cyan', visible(name))}: {visible(value)}"


def _described(request: Request, response: Response, body: bytes) -> dict[str, Any]:
    timing = response.timing
    return {
        "url": without_userinfo(response.url),
        "method": request.method,
        "status": response.status,
        "hops": [without_userinfo(hop) for hop in response.hops],
        "stored": response.stored,
        "attempts": response.attempts,
        "waited-seconds": timing.waited_seconds,
        "first-byte-seconds": timing.first_byte_seconds,
        "total-seconds": timing.total_seconds,
        "body-bytes": len(body),
        "sent-bytes": sent_bytes(response, body),
        "charset": charset_of(response, body),
        "kind": _kind_of(response, body),
        "headers": [list(header) for header in _headers(response)],
    }


def status_text(status: int) -> str:
    """`200 OK`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def shown_url(url: str) -> str:
    return visible(without_userinfo(url))


def _origin(response: Response, offline: bool) -> str:
    age = response.headers.get("Age", "")
    if offline and response.stored == "cache" and age.isdecimal():
        # Offline, an answer is used whether it is fresh or not.
        old = f"{age} s" if int(age) < 60 else duration_text(int(age))
        return f"from the cache, {old} old; the server was not asked"
    return _ORIGINS.get(response.stored, str(response.stored))


def _timing_text(response: Response) -> str:
    timing = response.timing
    if response.stored in ("cache", "replay"):
        return f"{timing.total_seconds:.3f} s in all"
    return (
        f"{timing.waited_seconds:.3f} s waited, {timing.first_byte_seconds:.3f} s to the first byte, "
        f"{timing.total_seconds:.3f} s in all"
    )


def _body_text(response: Response, body: bytes) -> str:
    if not body:
        return "none"
    encoding = visible(response.headers.get("Content-Encoding", ""))
    sent = sent_bytes(response, body)
    text = count_text(len(body), "byte")
    if encoding:
        text += f", sent as {encoding}" + (f" in {count_text(sent, 'byte')}" if sent is not None else "")
    if (medium := medium_of(body, response.headers.get("Content-Type", ""))) is not None:
        return f"{text}, {medium.words} ({medium.type}), which no wrapper can read"
    charset = charset_of(response, body)
    return f"{text}, {charset}" if charset else text


def sent_bytes(response: Response, body: bytes) -> int | None:
    """Return how many bytes crossed the network; None if the answer does not say."""
    said = response.headers.get("Content-Length", "")
    if said.isdecimal():
        return int(said)
    return None if response.headers.get("Content-Encoding") else len(body)


def charset_of(response: Response, body: bytes) -> str | None:
    """Return the encoding of a text and its origin; None for a body that is no text."""
    content_type = response.headers.get("Content-Type", "")
    if medium_of(body, content_type) is not None:
        return None
    if not body or not _TEXTUAL.match(content_type):
        return None
    found = detect(body, content_type, markup="html" in content_type or "xml" in content_type)
    if found.said_by != "nobody":
        who = {"mark": "its byte order mark", "header": "the header", "page": "the page"}
        return f"{found.codec} by {who.get(found.said_by, found.said_by)}"
    return f"{found.codec if _is_utf8(body) else 'windows-1252'} by its looks"


def _kind_of(response: Response, body: bytes) -> str | None:
    """Return the media type of a body that is no text; None for text."""
    medium = medium_of(body, response.headers.get("Content-Type", ""))
    return None if medium is None else medium.type


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _headers(response: Response) -> Iterator[tuple[str, str]]:
    yield from response.headers.items()
    names = {name.lower() for name in response.headers}
    if "set-cookie" not in names:
        yield from (("Set-Cookie", cookie) for cookie in response.set_cookies)
