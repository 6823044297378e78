"""A source on loopback that holds its answers back when a test says so: for runs that are killed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from tests.clocks import PATIENCE_SECONDS


class HiddenServer:
    """Answers queries with pages, and records those that it answered."""

    def __init__(self, page: Callable[[dict[str, str]], str]) -> None:
        self.answered: list[str] = []
        self.host = ""
        self._page = page
        self._lock = threading.Lock()
        self._free: int | None = None  # queries that are still answered
        self._is_held = threading.Event()
        self._is_released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def hold_after(self, number: int) -> None:
        """Answer so many queries, and keep the next ones waiting."""
        self._free = number

    def wait_until_held(self) -> None:
        assert self._is_held.wait(PATIENCE_SECONDS)

    def release(self) -> None:
        self._free = None
        self._is_released.set()

    def answer(self, path: str) -> bytes:
        query = urlsplit(path).query
        with self._lock:
            is_free = self._free is None or self._free > 0
            if is_free:
                self._free = None if self._free is None else self._free - 1
        if not is_free:
            self._is_held.set()
            self._is_released.wait(PATIENCE_SECONDS)
            return b"{}"  # to a client that is gone
        self.answered.append(query)
        return self._page(dict(parse_qsl(query))).encode()


@contextmanager
def hidden_server(page: Callable[[dict[str, str]], str]) -> Iterator[HiddenServer]:
    """A server of pages by their queries, for as long as a block lasts."""
    source = HiddenServer(page)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = source.answer(self.path)
            with suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Requests are recorded, not printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        source.host = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield source
        finally:
            source.release()
            server.shutdown()
            thread.join()
