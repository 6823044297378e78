"""A farm of small pages that link to each other, for measuring crawlers: every answer is made beforehand.

It speaks just enough HTTP for keep-alive clients, on a port of its own, because a server with manners
would be slower than what it measures.
"""

from __future__ import annotations

import asyncio
from functools import cache

PAGES = 5000
LINKS = 20
_END = b"\r\n\r\n"
_LOREM = (
    "Every page of this farm has twenty links, and from the first one all others can be reached. There is "
    "nothing else to be found on any of them, however long one looks; but whoever has seen them all has been "
    "fast. " * 2
)


def farm_links(page: int, seed: int = 1) -> list[int]:
    """Return the pages that a page links to: some that are new, and some anywhere."""
    # Two children each make a tree over all pages; its shape leaves a crawler enough to do at any time.
    tree = [child for child in (2 * page + 1, 2 * page + 2) if child < PAGES]
    start = page * 2_654_435_761 + seed * 40_503
    return [*tree, *((start + step * 2_246_822_519 >> 7) % PAGES for step in range(LINKS - len(tree)))]


def farm_page(page: int, seed: int = 1) -> bytes:
    """A page of about two kilobytes."""
    links = "".join(map(_link, farm_links(page, seed)))
    lines = (
        '<!DOCTYPE html>\n<html lang="en">',
        f'<head><meta charset="utf-8"><title>Farm, page {page}</title></head>',
        f'<body><h1>Page {page}</h1>\n<p class="text">{_LOREM}</p>',
        f"<ul>\n{links}</ul>\n</body></html>\n",
    )
    return "\n".join(lines).encode()


@cache
def _link(page: int) -> str:
    return f'<li><a class="link" href="/farm/{page}">Page {page} of the farm</a></li>\n'


def farm_answers(seed: int = 1) -> dict[bytes, bytes]:
    """The whole answer to each request's target."""
    return {b"/farm/%d" % page: _answer(b"200 OK", farm_page(page, seed)) for page in range(PAGES)}


def _answer(status: bytes, body: bytes, kind: bytes = b"text/html; charset=utf-8") -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(body))
    return head + body


_NOT_FOUND = _answer(b"404 Not Found", b"no such page\n", b"text/plain")
_NOT_ALLOWED = _answer(b"405 Method Not Allowed", b"only GET\n", b"text/plain")


class Farm(asyncio.Protocol):
    """One connection."""

    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self._answers = answers
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        while (end := data.find(_END)) >= 0:
            self._transport.write(self._answer(data))
            data = data[end + len(_END) :]
        self._rest = data

    def _answer(self, request: bytes) -> bytes:
        if not request.startswith(b"GET "):
            return _NOT_ALLOWED
        return self._answers.get(request[4 : request.find(b" ", 4)], _NOT_FOUND)
