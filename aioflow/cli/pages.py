"""Pages for people who write wrappers: from the web or a file, and what a wrapper reads in them."""

from __future__ import annotations

import asyncio
import mimetypes
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aioflow.cli.exit import os_error_text
from aioflow.errors import Diagnostic, InputError, PlanError, SettingError
from aioflow.plan import Program
from aioflow.relation import Row, Value
from aioflow.web.http import Request, Response
from aioflow.web.settings import WebSettings
from aioflow.wrappers.media import check_is_text
from aioflow.wrappers.readers.reader import Found, PageHead, compiled, reader, reader_names

if TYPE_CHECKING:
    from aioflow.web.client import Client
    from aioflow.web.cookies import CookieStore
    from aioflow.wrappers.definition import Extraction, Wrapper


# What mimetypes does not know, or only where the system has a table of its own.
_KINDS = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".ndjson": "application/x-ndjson",
    ".tsv": "text/tab-separated-values",
}
_WITH_OPTIONS = {
    **dict.fromkeys(("application/jsonl", "application/x-ndjson", "application/x-jsonlines"), "json lines"),
    "text/tab-separated-values": 'csv delimiter "\\t"',
}


@dataclass(frozen=True)
class FetchedPage:
    """A page as it came; one that was saved has a `path` in place of a `response`."""

    head: PageHead
    body: bytes
    response: Response | None = None
    path: str | None = None


class Browser:
    """Fetches pages one after the other, with one client and its cookies."""

    def __init__(self, settings: WebSettings) -> None:
        self._settings = settings
        self._runner = asyncio.Runner()
        self._client: Client | None = None
        self._cookies: CookieStore | None = None

    def fetch(self, request: Request) -> FetchedPage:
        return self._runner.run(self._fetch(request))

    async def _fetch(self, request: Request) -> FetchedPage:
        if self._client is None:
            from aioflow.web.client import Client
            from aioflow.web.cookies import CookieStore

            self._client = Client.open(self._settings)
            self._cookies = CookieStore() if self._settings.http.cookies else None
        response = await self._client.fetch(replace(request, cookies=self._cookies))
        body = await response.read()
        return FetchedPage(PageHead(response.url, response.status, response.headers), body, response)

    def close(self) -> None:
        if self._client is not None:
            self._runner.run(self._client.close())
        self._runner.close()


def saved_page(path: str, url: str | None = None) -> FetchedPage:
    """A page from a file; `url` is where it was once, for its links."""
    file = Path(path)
    try:
        body = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read page: {os_error_text(error)}") from error
    kind = _KINDS.get(file.suffix.lower()) or mimetypes.guess_type(file.name)[0]
    headers = {"Content-Type": kind} if kind else {}
    return FetchedPage(PageHead(url or file.resolve().as_uri(), headers=headers), body, path=path)


def reader_for(page: FetchedPage) -> str:
    """The reader, with its options, that goes with what a page says it is; HTML when that tells nothing."""
    said = page.head.content_type.partition(";")[0].strip().lower()
    if said in _WITH_OPTIONS:
        return _WITH_OPTIONS[said]
    for name in reader_names():
        # A package whose reader cannot be loaded is in nobody's way here.
        with suppress(SettingError):
            if said in reader(name).content_types:
                return name
    kinds = {"json": "json", "xml": "xml", "csv": "csv", "plain": "text", "html": "html"}
    return next((name for ending, name in kinds.items() if said.endswith(ending)), "html")


# --- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extracted:
    """The rows of an extraction from a page. `unreadable` counts values that could not be read, by field."""

    rows: Sequence[Row]
    next_page: Value = None
    unreadable: Mapping[str, int] = field(default_factory=Counter)
    is_proven_empty: bool = False  # by EMPTY


def extract(extraction: Extraction, page: FetchedPage) -> Extracted:
    """The rows of a page."""
    check_is_text(extraction, page.head, page.body, len(page.body))
    reading = compiled(extraction).open(page.head)
    rows = [*reading.feed(page.body), *reading.end()]
    return Extracted(rows, reading.next_page, dict(reading.unreadable), reading.is_proven_empty)


def explain(extraction: Extraction, page: FetchedPage) -> list[Found]:
    """Where in a page the values of its rows came from."""
    return list(compiled(extraction).explain(page.head, page.body))


# --- wrappers -----------------------------------------------------------------------------------


def wrapper_of(program: Program, name: str) -> Wrapper:
    """A wrapper of a program that has no mistakes."""
    from aioflow.wrappers.inheritance import resolve, text_named
    from aioflow.wrappers.language import WrapperText

    text = text_named(name, program)
    assert isinstance(text, WrapperText)
    mistakes = [found for found in text.problems(program) if found.severity == "error"]
    if mistakes:
        raise PlanError(sorted(mistakes, key=_place))
    return resolve(name, program)


def _place(diagnostic: Diagnostic) -> int:
    return diagnostic.span.start if diagnostic.span else 0
