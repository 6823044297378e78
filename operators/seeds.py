"""The sources of seed: constants, files, tables and sitemaps, each as batches of URLs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from aioflow import Context, InputError, Row, Schema, SettingError
from aioflow.crawl import SitemapEntry, SitemapError, SitemapReader
from aioflow.files import FileAccess
from aioflow.operators.formats import formats
from aioflow.relation import Batch, Type, Value
from aioflow.state import Transaction, read, table_rows
from aioflow.web import HttpStatusError, Request, Traffic, has_host

SEED = Schema(("url", "depth"), (Type.CHAR, Type.NUMBER))
DETAILS = Schema(("lastmod", "changefreq", "priority"), (Type.DATE, Type.CHAR, Type.NUMBER))

_DEEPEST_INDEX = 3
_MOST_SITEMAPS = 50_000
_BATCH_ROWS = 1024
_LONGEST_LINE = 1 << 16
_OK = 200


class SeedUrls(tuple[str, ...]):
    """A setting with http(s) URLs."""

    __slots__ = ()

    kind_name: ClassVar[str] = "http(s) URLs"
    takes_all_constants: ClassVar[bool] = True

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> SeedUrls:
        values = value if isinstance(value, tuple) else (value,)
        for each in values:
            if not isinstance(each, str) or not has_host(each.strip()):
                is_short = isinstance(each, str) and "://" not in each and has_host(f"https://{each.strip()}")
                hint = f"; did you mean 'https://{each.strip()}'?" if is_short else ""
                raise SettingError(f"{each!r} is no http(s) URL{hint}")
        return cls(each.strip() for each in values)


class Seeds:
    """Reads seeds as rows: URL and depth, and the details of a sitemap's entry."""

    def __init__(self, context: Context, attribute: str) -> None:
        self._context = context
        self._attribute = attribute

    async def of(
        self, urls: SeedUrls, file: str | None, table: str | None, sitemaps: SeedUrls, db: str | None
    ) -> AsyncGenerator[Batch, None]:
        """Yield the seeds of every source that is given."""
        if urls:
            yield [(url, 0) for url in urls]
        sources = []
        if file is not None:
            sources.append(self._of_file(file))
        if table is not None:
            sources.append(self._of_table(table, db))
        if sitemaps:
            sources.append(self._of_sitemaps(sitemaps))
        for source in sources:
            async with aclosing(source) as batches:
                async for batch in batches:
                    if batch:
                        yield batch

    # --- files and tables -----------------------------------------------------------------------

    async def _of_file(self, path: str) -> AsyncGenerator[Batch, None]:
        target = self._context.service(FileAccess).find(path, self._context.folder, "read")
        with _opened(path, target) as file:
            if target.suffix.lower() == ".txt":
                lines = _lines(file, path)
                while (batch := await self._context.in_thread(next, lines, None)) is not None:
                    yield batch
                return
            items = formats.for_path(path).read(file, path, {})
            column = 0
            while (item := await self._context.in_thread(next, items, None)) is not None:
                if isinstance(item, Schema):
                    column = self._column(item, f"the file {path!r}")
                else:
                    yield self._rows([row[column] for row in item])

    async def _of_table(self, table: str, db: str | None) -> AsyncGenerator[Batch, None]:
        address = self._context.service(Transaction).database_of(db)
        items = read(
            lambda connection: table_rows(connection, address, table, may_miss=False), db, self._context
        )
        column = 0
        async with aclosing(items):
            async for item in items:
                if isinstance(item, Schema):
                    column = self._column(item, f"the table {table!r}")
                else:
                    yield self._rows([row[column] for row in item])

    def _column(self, schema: Schema, what: str) -> int:
        if self._attribute not in schema:
            has = ", ".join(schema.names) or "no attributes"
            raise InputError(f"{what} has no attribute {self._attribute!r}, but {has}; name one with URL")
        return schema.position(self._attribute)

    def _rows(self, urls: Sequence[Value]) -> Batch:
        found: Batch = [(url, 0) for url in urls if isinstance(url, str) and url]
        if len(found) < len(urls):
            self._context.count("no texts", len(urls) - len(found))
        return found

    # --- sitemaps -------------------------------------------------------------------------------

    async def _of_sitemaps(self, urls: Sequence[str]) -> AsyncGenerator[Batch, None]:
        waiting = [(url, 0) for url in reversed(urls)]
        known = set(urls)
        while waiting:
            url, level = waiting.pop()
            inner: list[tuple[str, int]] = []
            async with aclosing(self._entries(url)) as pieces:
                async for entries in pieces:
                    for entry in entries:
                        if entry.is_sitemap and entry.url not in known:
                            known.add(entry.url)
                            inner.append((entry.url, level + 1))
                    yield [_seed_row(entry) for entry in entries if not entry.is_sitemap]
            if inner and level >= _DEEPEST_INDEX:
                raise SitemapError(f"the sitemap {url} stands {level} indexes deep and is an index itself")
            if len(known) > _MOST_SITEMAPS:
                raise SitemapError(f"{urls[0]} leads to more than {_MOST_SITEMAPS:,} sitemaps")
            waiting += reversed(inner)

    async def _entries(self, url: str) -> AsyncGenerator[list[SitemapEntry], None]:
        """Yield the entries of one sitemap as they arrive."""
        context = self._context
        traffic = context.service(Traffic)
        request = Request(url, streamed=True, permit=context.permit, watch=traffic.watch(context))
        reader = SitemapReader(url)
        async with await traffic.fetch(request) as response:
            if response.status != _OK:
                raise HttpStatusError(f"the sitemap {url}: status {response.status}", response.status)
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    for entries in reader.feed(chunk):
                        yield entries
                        await context.sleep(0)
        yield reader.end()


def _seed_row(entry: SitemapEntry) -> Row:
    return entry.url, 0, entry.lastmod, entry.changefreq, entry.priority


def _opened(path: str, target: Path) -> BinaryIO:
    try:
        return target.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path!r}: {error.strerror}") from error


def _lines(file: BinaryIO, path: str) -> Iterator[Batch]:
    """Yield the URLs of a text file, one on each line; on a worker thread."""
    batch: Batch = []
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}, line {number}: no UTF-8 text ({error.reason})") from None
        if text and not text.startswith("#"):
            batch.append((text, 0))
        if len(batch) >= _BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch
