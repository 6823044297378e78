"""Recording and replay: exchanges are written to a file as JSON lines, and answered from it later.

The file holds no secret: credentials are masked in headers, and so is every secret that this process has used
in URLs and bodies.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, TypeAlias

from aioflow.config.folders import shown_path
from aioflow.config.masking import MASK, mask_values
from aioflow.config.secrets import PREFIX
from aioflow.errors import InputError, suggestion
from aioflow.web.errors import NotRecordedError, WebError
from aioflow.web.http import HARMLESS, BodyStream, Fetcher, Request, Response
from aioflow.web.settings import KIBIBYTE, WebSettings
from aioflow.web.urls import without_userinfo

_Key: TypeAlias = tuple[str, str, str | None]
_Place: TypeAlias = tuple[int, int]  # offset and length of a line

_READ_ON_THE_LOOP_BYTES = 64 * KIBIBYTE
_SUGGESTED_FROM_AT_MOST = 1000
_SECRET_ANSWERS = frozenset(
    {"authentication-info", "authorization", "proxy-authentication-info", "x-auth-token"}
)
_COOKIE_VALUE = re.compile(r"^([^=;]*=)[^;]*")


class RecordFetcher:
    """Writes down each exchange, behind those that are in the file already.

    A streamed answer is written when it was read to its end, or when its reader left it; it then says so.
    """

    def __init__(self, inner: Fetcher, path: Path, settings: WebSettings) -> None:
        self._inner = inner
        self._path = path
        self._hidden = _SECRET_ANSWERS | _secret_headers(settings)
        self._file = _open(path)  # before anything is sent that could not be recorded
        self._writing = threading.Lock()

    async def fetch(self, request: Request) -> Response:
        response = await self._inner.fetch(request)
        if isinstance(response.body, bytes):
            await self.write(request, response, response.body, is_cut=response.unread)
        else:
            response.body = _RecordedBody(self, request, response, response.body)
        return response

    async def close(self) -> None:
        try:
            await self._inner.close()
        finally:
            self._file.close()

    async def write(self, request: Request, response: Response, body: bytes, *, is_cut: bool = False) -> None:
        """Append one exchange."""
        recorded = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request": _recorded_request(request),
            "response": {
                "status": response.status,
                "headers": [[name, self._shown(name, value)] for name, value in response.headers.items()],
                **({"is_cut": True} if is_cut else {}),
            },
        }
        await asyncio.to_thread(self._append, recorded, body)

    def _shown(self, name: str, value: str) -> str:
        if name.lower() in self._hidden:
            return MASK
        return mask_values(_COOKIE_VALUE.sub(rf"\1{MASK}", value) if name.lower() == "set-cookie" else value)

    def _append(self, recorded: dict[str, Any], body: bytes) -> None:
        recorded["response"] |= _recorded_body(body)
        line = json.dumps(recorded, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        try:
            with self._writing:
                # One call for the whole line: several processes may write to one file.
                written = self._file.write(line)
                while written < len(line):
                    written += self._file.write(line[written:])
        except OSError as error:
            raise WebError(f"{shown_path(self._path)}: cannot record: {error.strerror}") from error


class _RecordedBody:
    """A body that is kept while it is read, and recorded at its end."""

    def __init__(
        self, recorder: RecordFetcher, request: Request, response: Response, body: BodyStream
    ) -> None:
        self._recorder = recorder
        self._request = request
        self._response = response
        self._body = body
        self._rest: AsyncIterator[bytes] | None = None
        self._kept: list[bytes] | None = []

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._rest is None:
            self._rest = aiter(self._body)
        try:
            chunk = await anext(self._rest)
        except StopAsyncIteration:
            await self._write(is_cut=False)
            raise
        except WebError:
            self._kept = None  # a body that broke off is not recorded
            raise
        if self._kept is not None:
            self._kept.append(chunk)
        return chunk

    async def close(self) -> None:
        try:
            await self._write(is_cut=True)
        finally:
            await self._body.close()

    async def _write(self, *, is_cut: bool) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            await self._recorder.write(self._request, self._response, b"".join(kept), is_cut=is_cut)


class ReplayFetcher:
    """Answers from a recording, equal requests in the recorded order and the last answer again and again.

    Requests are equal if method, URL and body are. The file is read once for where the answers stand.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"there is no recording {shown_path(path)} to replay")
        self._path = path
        self._index: dict[_Key, list[_Place]] | None = None
        self._reading = asyncio.Lock()

    async def fetch(self, request: Request) -> Response:
        async with self._reading:
            if self._index is None:
                self._index = await asyncio.to_thread(self._read_index)
        places = self._index.get(_key(_recorded_request(request)))
        if not places:
            raise self._not_recorded(request, self._index)
        offset, length = places.pop(0) if len(places) > 1 else places[0]
        if length > _READ_ON_THE_LOOP_BYTES:
            found, body = await asyncio.to_thread(self._read, offset, length)
        else:
            found, body = self._read(offset, length)
        return self._response(request, found, body)

    async def close(self) -> None:
        """There is nothing to release."""

    def _response(self, request: Request, found: Mapping[str, Any], body: bytes) -> Response:
        from multidict import CIMultiDict, CIMultiDictProxy

        headers = CIMultiDict((name, value) for name, value in found.get("headers", ()))
        cookies = tuple(headers.getall("Set-Cookie", ()))
        whole: bytes | BodyStream = body
        unread = bool(found.get("is_cut")) and request.limits is not None
        if found.get("is_cut") and not unread:
            error = NotRecordedError(
                f"{_shown_url(request)}: of this body only the first {len(body)} bytes were recorded"
            )
            if not request.streamed:
                raise error
            whole = _CutBody(body, error)
        return Response(
            *(request.url, found["status"], CIMultiDictProxy(headers), whole, cookies),
            stored="replay",
            unread=unread,
        )

    def _read_index(self) -> dict[_Key, list[_Place]]:
        index: dict[_Key, list[_Place]] = {}
        offset = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    index.setdefault(self._checked(line, number), []).append((offset, len(line)))
                offset += len(line)
        return index

    def _checked(self, line: bytes, number: int) -> _Key:
        try:
            return _exchange(line)
        except ValueError as error:
            raise InputError(
                f"{shown_path(self._path)}:{number}: this line is no recorded exchange: {error}"
            ) from error

    def _read(self, offset: int, length: int) -> tuple[Mapping[str, Any], bytes]:
        with self._path.open("rb") as file:
            file.seek(offset)
            found = json.loads(file.read(length))["response"]
        return found, _body(found)

    def _not_recorded(self, request: Request, index: Iterable[_Key]) -> NotRecordedError:
        known = [url for _, url, _ in index]
        near = suggestion(request.url, known) if len(known) <= _SUGGESTED_FROM_AT_MOST else ""
        body = "" if request.body is None else " with this body"
        missing = f"{shown_path(self._path)} has no answer to this {request.method}{body}"
        return NotRecordedError(f"{_shown_url(request)}: {missing}{near}")


class _CutBody:
    """The beginning of a body, after which nothing was recorded."""

    def __init__(self, beginning: bytes, error: NotRecordedError) -> None:
        self._beginning = beginning
        self._error = error

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        beginning, self._beginning = self._beginning, b""
        if not beginning:
            raise self._error
        return beginning

    async def close(self) -> None:
        self._beginning = b""


# --- how exchanges are written ------------------------------------------------------------------


def _recorded_request(request: Request) -> dict[str, Any]:
    body = request.body
    return {
        "method": request.method,
        "url": _shown_url(request),
        "headers": {
            name: mask_values(value) if name.lower() in HARMLESS else MASK
            for name, value in request.headers.items()
        },
        "body": None if body is None else sha256(_masked(body)).hexdigest(),
    }


def _exchange(line: bytes) -> _Key:
    """Return the key of a recorded exchange; raises a ValueError that says why a line is none."""
    try:
        recorded = json.loads(line.rstrip(b"\r\n"))
        int(recorded["response"]["status"])
        _body(recorded["response"])
        return _key(recorded["request"])
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg} at column {error.colno}") from error
    except KeyError as error:
        raise ValueError(f"without {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError("its parts are not those of one") from error


def _key(recorded: Mapping[str, Any]) -> _Key:
    """Return the key by which requests are equal."""
    return recorded.get("method", "GET"), recorded["url"], recorded.get("body")


def _shown_url(request: Request) -> str:
    return mask_values(without_userinfo(request.url.partition("#")[0]))


def _recorded_body(body: bytes) -> dict[str, str]:
    """Return a body as text where it is one, which is read and compared more easily."""
    try:
        return {"text": mask_values(body.decode())}
    except UnicodeDecodeError:
        return {"base64": b64encode(_masked(body)).decode()}


def _body(found: Mapping[str, Any]) -> bytes:
    if "base64" in found:
        return b64decode(found["base64"], validate=True)
    text: str = found.get("text", "")
    return text.encode()


def _masked(data: bytes) -> bytes:
    return mask_values(data.decode("latin-1")).encode("latin-1")


def _secret_headers(settings: WebSettings) -> frozenset[str]:
    return frozenset(
        name.lower()
        for host in settings.hosts.values()
        for name, text in host.headers.items()
        if PREFIX in text
    )


def _open(path: Path) -> FileIO:
    """Return the file to append to: a recording or a new file."""
    shown = shown_path(path)
    try:
        _check_is_recording(path)
        file = FileIO(path, "a+", opener=lambda name, flags: os.open(name, flags, 0o600))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if not path.parent.is_dir():
            reason = f"there is no folder {shown_path(path.parent)}"
        raise InputError(f"cannot record to {shown}: {reason}") from error
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")  # the last writer was stopped in its line
    return file


def _check_is_recording(path: Path) -> None:
    """Refuse to write into a file that is not a recording."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        try:
            _exchange(file.readline())
        except ValueError as error:
            raise InputError(
                f"cannot record to {shown_path(path)}: it holds something else than a recording "
                f"(line 1: {error}); name another file"
            ) from error
