"""Response bodies as they arrive: decoded, and within the limits on size and time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from aiohttp import ClientPayloadError, ClientResponse, hdrs

from aioflow.web.aiohttp_errors import FAULTS, web_error
from aioflow.web.connections import Deadline, HttpExchange
from aioflow.web.decoding import BodyDecoder
from aioflow.web.errors import ConnectionFailedError, ResponseTimeoutError, ResponseTooLargeError, WebError
from aioflow.web.settings import KIBIBYTE, MEBIBYTE

# What is decoded between two turns of the event loop, about a millisecond's work; a thread does the rest.
_AT_ONCE_BYTES = 256 * KIBIBYTE
_IN_THREAD_BYTES = MEBIBYTE
_SMALL_INPUT_BYTES = 32 * KIBIBYTE


class Body:
    """A body that is still on its way, or still encoded; for one reader.

    The total limit counts the time in which the network was waited for, not that of a busy reader.
    """

    def __init__(
        self, answer: ClientResponse, exchange: HttpExchange, on_end: Callable[[Body], object]
    ) -> None:
        self._answer = answer
        self._content = answer.content
        self._exchange = exchange
        self._on_end = on_end
        self._received_bytes = 0
        self._waited_seconds = exchange.timing.first_byte_seconds
        self._pieces: deque[bytes] = deque()
        self._is_undecoded = False
        self._is_small = False
        self._has_ended = False
        self._error: WebError | None = None
        self._check_length()
        self._decoder = self._find_decoder(answer.headers.getall(hdrs.CONTENT_ENCODING, ()))
        if exchange.closed is not None and not self._content.is_eof():
            exchange.closed.add_done_callback(self._lose_connection)

    def _check_length(self) -> None:
        length = None if self._content.is_eof() else self._answer.content_length
        if length is not None and length > self._exchange.http.body_bytes:
            raise self._too_large(f"{length} bytes, which is more than")

    def _find_decoder(self, encodings: Sequence[str]) -> BodyDecoder | None:
        # Answers without a body may still say how it would have been encoded.
        if not encodings or (self._content.is_eof() and not self._content.total_bytes):
            return None
        decoder = BodyDecoder(encodings, self._exchange.http, self._exchange.url)
        return decoder if decoder.stages else None

    # --- reading ---

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._next_piece()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def read(self) -> bytes:
        """Return the whole body."""
        pieces = []
        while piece := await self._next_piece():
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def close(self) -> None:
        """Release the connection, without reading the rest of the body."""
        self.abandon("it was closed before its end")

    def abandon(self, why: str) -> None:
        """Have every further read fail."""
        self._end(ConnectionFailedError(f"{self._exchange.url}: {why}"))

    async def _next_piece(self) -> bytes:
        if self._error is not None:
            raise self._error
        if self._pieces:
            return self._pieces.popleft()
        if self._has_ended:
            return b""
        try:
            piece = await self._receive_piece()
        except WebError as error:
            self._end(error)
            raise
        except FAULTS as error:
            failure = self._error or web_error(error, self._exchange.url, self._exchange.http)
            self._end(failure)
            raise failure from error
        except BaseException:
            self.abandon("reading it was broken off")
            raise
        if not piece:
            self._end(None)
        return piece

    async def _receive_piece(self) -> bytes:
        decoder = self._decoder
        while True:
            if decoder is not None and self._is_undecoded:
                self._pieces.extend(await self._decode(decoder))
                if self._pieces:
                    return self._pieces.popleft()
            data = await self._receive()
            if not data:
                if decoder is not None:
                    decoder.finish()
                self._check_end()
                return b""
            if decoder is None:
                return data
            decoder.feed(data)
            self._is_undecoded = True
            self._is_small = len(data) <= _SMALL_INPUT_BYTES and len(decoder.stages) == 1

    async def _receive(self) -> bytes:
        content = self._content
        if content.is_eof() or content.total_bytes > self._received_bytes:
            data = await content.readany()
        else:
            data = await self._wait()
        self._received_bytes += len(data)
        if self._received_bytes > self._exchange.http.body_bytes:
            raise self._too_large("more than")
        return data

    async def _wait(self) -> bytes:
        exchange, deadline = self._exchange, Deadline()
        began = asyncio.get_running_loop().time()
        idle = exchange.http.idle_seconds
        left = exchange.total_seconds - self._waited_seconds
        deadline.set(began + min(idle, left))
        try:
            with deadline:
                return await self._content.readany()
        except TimeoutError:
            if not deadline.has_expired:
                raise
            limit = f"{idle:g} s passed without a byte of the body"
            if left < idle:
                limit = f"its body was not whole within {exchange.total_seconds:g} s"
            raise ResponseTimeoutError(f"{exchange.url}: {limit}") from None
        finally:
            self._waited_seconds += asyncio.get_running_loop().time() - began

    async def _decode(self, decoder: BodyDecoder) -> list[bytes]:
        """Some pieces: the first of a small input here, all else on a thread."""
        if self._is_small:
            self._is_small = False
            enough = _AT_ONCE_BYTES
            pieces = decoder.pieces(enough)
        else:
            from anyio import to_thread  # late: most bodies are small

            enough = _IN_THREAD_BYTES
            pieces = await to_thread.run_sync(decoder.pieces, enough)
        self._is_undecoded = sum(map(len, pieces)) >= enough
        return pieces

    # --- ending ---

    def _check_end(self) -> None:
        """Raise an error if the end of the connection, which ends the body, was a break and not a close."""
        headers, closed = self._answer.headers, self._exchange.closed
        if hdrs.CONTENT_LENGTH in headers or headers.get(hdrs.TRANSFER_ENCODING, "").lower() == "chunked":
            return
        if closed is not None and closed.done() and not closed.cancelled() and closed.exception() is not None:
            raise ConnectionFailedError(f"{self._exchange.url}: the body broke off: {closed.exception()}")

    def _lose_connection(self, closed: asyncio.Future[None]) -> None:
        """Tell the reader: aiohttp does not, of bad framing and of connections that it closes itself."""
        if self._content.is_eof() or self._content.exception() is not None:
            return
        error = ClientPayloadError("the connection was closed")
        error.__cause__ = None if self._exchange.protocol is None else self._exchange.protocol.exception()
        self._content.set_exception(error)

    def _end(self, error: WebError | None) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        exchange = self._exchange
        exchange.timing.total_seconds = asyncio.get_running_loop().time() - exchange.started
        if exchange.closed is not None:
            exchange.closed.remove_done_callback(self._lose_connection)
        if error is not None:
            self._error = error
            self._pieces.clear()
            cut(self._answer)
        self._on_end(self)

    def _too_large(self, what: str) -> ResponseTooLargeError:
        limit = self._exchange.http.body_bytes
        return ResponseTooLargeError(f"{self._exchange.url}: a body of {what} {limit} bytes")


def cut(answer: ClientResponse) -> None:
    """Give up a connection on which more may come."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        # To close politely would mean to wait for the other side, under TLS.
        connection.transport.abort()
    answer.close()
