"""Content encodings, decoded piece by piece, so that no body takes more memory or time than its limits.

These functions never wait. `bodies` decides on which thread they run.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from aioflow.web.errors import BadResponseError, ResponseTooLargeError
from aioflow.web.settings import KIBIBYTE, MEBIBYTE, HttpSettings

# A body that is small altogether may be as regular as it likes.
_FREE_BYTES = MEBIBYTE
_PIECE_BYTES = 64 * KIBIBYTE
# What a decompressor is given at once: it copies what follows the end of a member.
_WINDOW_BYTES = 16 * KIBIBYTE
_ENCODINGS_AT_MOST = 4
# Each costs time, even if nothing is in it.
_MEMBERS_AT_MOST = 10_000
# Servers pad the end of what they have compressed.
_PADDING = b"\0 \t\r\n"


class _Decompressor(Protocol):
    """The interface of `compression.zstd`; those of zlib and brotli are made to fit."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Inflater:
    """zlib with the interface of zstd."""

    def __init__(self, window_bits: int) -> None:
        self._inner = zlib.decompressobj(window_bits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        inner = self._inner
        piece = inner.decompress(inner.unconsumed_tail + data, max_length)
        # A full piece may leave more behind even though all input is taken.
        self.needs_input = not inner.unconsumed_tail and len(piece) < max_length
        return piece


class _Unbrotli:
    """brotli with the interface of zstd."""

    unused_data = b""

    def __init__(self, decompressor: Any) -> None:
        self._inner = decompressor
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return bool(self._inner.is_finished())

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        piece: bytes = self._inner.process(data, output_buffer_limit=max_length)
        self.needs_input = bool(self._inner.can_accept_more_data())
        return piece


def _inflater_for(start: bytes) -> _Decompressor:
    # `deflate` means the zlib format; some servers send the bare stream.
    is_zlib = start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0
    return _Inflater(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)


def _brotli() -> Callable[[bytes], _Decompressor] | None:
    for module in ("brotlicffi", "brotli"):
        try:
            begin = import_module(module).Decompressor
            # Versions before 1.2 have no bound for what they give at once.
            begin().process(b"", output_buffer_limit=1)
        except (ImportError, TypeError):
            continue
        return lambda start: _Unbrotli(begin())
    return None


def _zstandard() -> Callable[[bytes], _Decompressor] | None:
    for module in ("compression.zstd", "backports.zstd"):
        try:
            begin = import_module(module).ZstdDecompressor
        except ImportError:
            continue
        return lambda start: begin()
    return None


@cache
def _formats() -> dict[str, Callable[[bytes], _Decompressor]]:
    """Return a maker of decompressors for each encoding, given the first bytes; br and zstd if installed."""
    found: dict[str, Callable[[bytes], _Decompressor] | None] = {
        "gzip": lambda start: _Inflater(zlib.MAX_WBITS | 16),
        "deflate": _inflater_for,
        "br": _brotli(),
        "zstd": _zstandard(),
    }
    return {name: begin for name, begin in found.items() if begin is not None}


def accepted_encodings() -> str:
    """Return the value of Accept-Encoding."""
    return ", ".join(_formats())


class BodyDecoder:
    """The decoder of one body, for all its encodings.

    `feed` it, take `pieces` until there are none, and say `finish` at the end. It fails with a
    BadResponseError on what is not encoded as the headers say or is cut, and with a
    ResponseTooLargeError as soon as more comes out than `http` allows.
    """

    def __init__(self, header: Iterable[str], http: HttpSettings, url: str) -> None:
        self._url = url
        self._http = http
        names = [name.strip().lower().removeprefix("x-") for line in header for name in line.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > _ENCODINGS_AT_MOST:
            raise BadResponseError(f"{url}: encoded {len(names)} times over, at most {_ENCODINGS_AT_MOST}")
        self.stages = [_Stage(name, self._format(name)) for name in reversed(names)]
        self.fed_bytes = 0

    def _format(self, name: str) -> Callable[[bytes], _Decompressor]:
        try:
            return _formats()[name]
        except KeyError:
            raise BadResponseError(
                f"{self._url}: encoded as {name!r}, and only {accepted_encodings()} can be decoded"
            ) from None

    def feed(self, data: bytes) -> None:
        self.fed_bytes += len(data)
        self.stages[0].feed(data)

    def pieces(self, enough_bytes: int) -> list[bytes]:
        """Some of what is decoded, until it is enough; none when it has to be fed."""
        found: list[bytes] = []
        size = 0
        while size < enough_bytes and (piece := self._take(len(self.stages) - 1)):
            found.append(piece)
            size += len(piece)
        return found

    def finish(self) -> None:
        """The body has ended: fail if it ought to go on."""
        for stage in self.stages:
            if stage.is_open:
                raise BadResponseError(
                    f"{self._url}: the {stage.name} body is cut off after {self.fed_bytes} bytes"
                )

    def _take(self, index: int) -> bytes:
        stage = self.stages[index]
        while True:
            try:
                piece = stage.take()
            except Exception as error:  # each library has exceptions of its own
                why = f"not {stage.name}, as its headers say: {error}"
                raise BadResponseError(f"{self._url}: {why}") from error
            if piece:
                self._check(stage)
                return piece
            if index == 0:
                return b""
            piece = self._take(index - 1)
            if not piece:
                return b""
            stage.feed(piece)

    def _check(self, stage: _Stage) -> None:
        size, http = stage.given_bytes, self._http
        if size > http.body_bytes:
            raise ResponseTooLargeError(f"{self._url}: more than {http.body_bytes} bytes when decoded")
        used = self.fed_bytes - self.stages[0].held_bytes
        if size > _FREE_BYTES and size > used * http.decoding_ratio:
            raise ResponseTooLargeError(
                f"{self._url}: {used} bytes decode to {size}, over {http.decoding_ratio} times as many"
            )


class _Stage:
    """One encoding: what has been fed but not been decoded, and the member that is being decoded."""

    def __init__(self, name: str, begin: Callable[[bytes], _Decompressor]) -> None:
        self.name = name
        self.given_bytes = 0
        self._begin = begin
        self._held = b""
        self._offset = 0
        self._member: _Decompressor | None = None
        self._ended_members = 0

    @property
    def is_open(self) -> bool:
        """True if a member has begun and not ended."""
        return self._member is not None or self._offset < len(self._held)

    @property
    def held_bytes(self) -> int:
        return len(self._held) - self._offset

    def feed(self, data: bytes) -> None:
        """To be called when all that was fed before is taken."""
        self._held = self._held[self._offset :] + data
        self._offset = 0

    def take(self) -> bytes:
        """Return the next piece, empty when it has to be fed."""
        while True:
            member = self._member
            if member is None:
                if not self._open_member():
                    return b""
                continue
            window = self._window() if member.needs_input else b""
            if member.needs_input and not window:
                return b""
            piece = member.decompress(window, _PIECE_BYTES)
            if member.eof:
                self._offset -= len(member.unused_data)
                self._member = None
                self._ended_members += 1
            if piece:
                self.given_bytes += len(piece)
                return piece

    def _window(self) -> bytes:
        window = self._held[self._offset : self._offset + _WINDOW_BYTES]
        self._offset += len(window)
        return window

    def _open_member(self) -> bool:
        if self._ended_members:
            self._skip_padding()
        start = self._held[self._offset : self._offset + 2]
        if len(start) < (1 if self.name == "br" else 2):
            return False
        if self._ended_members and self.name not in ("gzip", "zstd"):
            raise ValueError(f"{self.held_bytes} bytes follow its end")
        if self._ended_members >= _MEMBERS_AT_MOST:
            raise ValueError(f"it has more than {_MEMBERS_AT_MOST} members")
        self._member = self._begin(start)
        return True

    def _skip_padding(self) -> None:
        while window := self._held[self._offset : self._offset + _WINDOW_BYTES]:
            rest = window.lstrip(_PADDING)
            self._offset += len(window) - len(rest)
            if rest:
                return
