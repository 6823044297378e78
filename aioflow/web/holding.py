"""Bodies that are held until they are complete: a body that breaks off fails before its content is used.

The retry layer above sends the request again. A body larger than the limit of its request is passed on as it
arrives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import chain

from aioflow.runtime.spill import RowBuffer, off_loop, walk
from aioflow.web.http import BodyStream, Fetcher, Hold, Request, Response
from aioflow.web.settings import KIBIBYTE

_PAGES_BELOW = 300  # nobody reads the bodies of other answers
# A small body is one piece, which can be shared.
_ONE_PIECE_BYTES = 256 * KIBIBYTE


class HoldingFetcher:
    """Reads the streamed bodies of pages, as far as their requests have them held."""

    def __init__(self, inner: Fetcher) -> None:
        self._inner = inner

    async def fetch(self, request: Request) -> Response:
        response = await self._inner.fetch(request)
        body = response.body
        if request.hold is not None and not isinstance(body, bytes) and response.status < _PAGES_BELOW:
            await _hold(response, body, request.hold)
        return response

    async def close(self) -> None:
        await self._inner.close()


async def _hold(response: Response, body: BodyStream, hold: Hold) -> None:
    # On the account of the run: in memory, and on disk when that is short.
    held = RowBuffer(hold.memory)
    size = 0
    rest = aiter(body)
    try:
        async for chunk in rest:
            held.append([(chunk,)])
            size += len(chunk)
            if size > hold.most_bytes:
                response.body = HeldBody(held, rest, body)
                response.overflows = True
                return
        await body.close()
    except BaseException:
        held.close()
        await body.close()
        raise
    if size > _ONE_PIECE_BYTES:
        response.body = HeldBody(held, None, body)
        return
    response.body = await off_loop(held, b"".join, _chunks(held))
    held.close()


class HeldBody:
    """A body that was read already, or the beginning of one with its rest on the way."""

    def __init__(self, held: RowBuffer, rest: AsyncIterator[bytes] | None, body: BodyStream) -> None:
        self._held = held
        self._beginning = walk(held, _chunks(held))
        self._rest = rest
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        async for chunk in self._beginning:
            return chunk
        if self._rest is None:
            raise StopAsyncIteration
        self._held.close()
        return await anext(self._rest)

    def whole(self) -> bytes:
        """Return the whole body, however much of it was read; it must be held whole, and not be closed."""
        return b"".join(_chunks(self._held))

    async def close(self) -> None:
        self._beginning = walk(self._held, iter(()))
        self._held.close()
        await self._body.close()


def _chunks(held: RowBuffer) -> Iterator[bytes]:
    return (chunk for (chunk,) in chain.from_iterable(held.batches()))
