"""Bodies that are files: received into a temporary file, within a size and a time, a few at once."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aioflow.service.rest.declarations import BYTES
from aioflow.service.rest.refusals import RestError

if TYPE_CHECKING:
    from aiohttp import web

    from aioflow.service.rest.context import RestContext

UPLOAD_BYTES = 256 << 20
_SECONDS = 600.0
_AT_ONCE = 2
_PIECE_BYTES = 1 << 20


@asynccontextmanager
async def uploaded(request: web.Request, context: RestContext) -> AsyncIterator[Path]:
    """Yield the path of a file with the body of a request; it is removed afterwards."""
    if request.content_type != BYTES:
        raise RestError(415, f"the body must be {BYTES}, not {request.content_type[:80]!r}")
    if (request.content_length or 0) > UPLOAD_BYTES:
        raise _too_large()
    if context.uploads >= _AT_ONCE:
        raise RestError(429, f"{_AT_ONCE} files are being uploaded; wait for one of them")
    context.uploads += 1
    try:
        with tempfile.NamedTemporaryFile(prefix="aioflow-upload-") as file:
            try:
                async with asyncio.timeout(_SECONDS):
                    await _receive(request, file, context)
            except TimeoutError:
                raise RestError(400, "the body did not arrive in time") from None
            yield Path(file.name)
    finally:
        context.uploads -= 1


async def _receive(
    request: web.Request, file: tempfile._TemporaryFileWrapper[bytes], context: RestContext
) -> None:
    received = 0
    waiting = bytearray()
    async for data in request.content.iter_any():
        received += len(data)
        if received > UPLOAD_BYTES:
            raise _too_large()
        waiting += data
        if len(waiting) >= _PIECE_BYTES:
            await context.in_thread(lambda piece=bytes(waiting): file.write(piece))  # type: ignore[misc]
            waiting.clear()
    file.write(waiting)
    file.flush()


def _too_large() -> RestError:
    return RestError(413, f"the file is larger than {UPLOAD_BYTES:,} bytes")
