"""store, the block of crawlers that keeps pages: in a table, or as files in a folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from functools import partial

from aioflow import Context, Document, Row, Schema, SettingError, Stream, operator
from aioflow.authoring.operator import Settings, StoreUse
from aioflow.authoring.services import ServiceHost
from aioflow.crawl import PageFiles
from aioflow.files import FileAccess
from aioflow.operators.databases import missing_databases, staged, storable_rows
from aioflow.operators.fetching import PageTextReader, needs, place_of
from aioflow.relation import Batch, Type, Value
from aioflow.state import Append, Storable, WrittenTableName
from aioflow.web import canonical

STORED = Schema(
    ("url", "final-url", "status", "mime", "language", "title", "text", "size", "depth", "fetched"),
    (
        *(Type.CHAR, Type.CHAR, Type.NUMBER, Type.CHAR, Type.CHAR, Type.CHAR, Type.CHAR),
        *(Type.NUMBER, Type.NUMBER, Type.DATE),
    ),
)


def _store_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema:
    if (settings["table"] is None) == (settings["folder"] is None):
        raise SettingError("pages go to a table, or to a FOLDER", setting="table")
    if settings["folder"] is not None and settings["db"] is not None:
        raise SettingError("a FOLDER has no database", setting="db")
    needs(inputs[0], "url", "body")
    return STORED


def _store_use(settings: Settings) -> StoreUse | None:
    if settings["table"] is None:
        return None
    return StoreUse(settings["db"], "write", table=settings["table"])


def _store_missing(settings: Settings, host: ServiceHost) -> Iterable[str]:
    return () if settings["table"] is None else missing_databases(settings, host)


@operator(
    outputs=("stored",),
    schema=_store_schema,
    firing="tuple",
    effects=True,
    store=_store_use,
    requires=_store_missing,
)
async def store(
    rel: Stream,
    *,
    table: WrittenTableName | None = None,
    folder: str | None = None,
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Store pages in a table, or as files in a folder, each under the canonical form of its address.

    A page that is there already is replaced, so that a crawl may be repeated. What is stored is passed on:
    `url` (canonical), `final-url`, `status`, `mime`, `language`, `title`, `text` (what people see), `size`,
    `depth` and `fetched`.

    The table is written as `dbappend` writes it, when the run has ended successfully. A folder gets the page
    itself as a file in UTF-8, named by a hash of its address, as soon as it is there, and at the end
    `index.jsonl` with the other attributes, without the text. Of several tuples with one address, a table
    has the last, and a folder the first.

    Arguments:
        rel: pages, as `download` gives them.
        table: the name of the table.
        folder: a folder, relative to the plan's, in the place of a table.
        db: a database of the configuration; by default as for dbimport.

    Examples:
        store (pages, "pages")
        store (pages : stored) {FOLDER: "pages"}
    """
    assert rel.schema is not None
    pages = _StoredPages(rel, context)
    if table is None:
        async with aclosing(_to_folder(pages, folder or "", context)) as batches:
            async for batch in batches:
                yield batch
        return
    write = Append(context.where, table, STORED, context.memory, key=("url",), updates=True)
    take = partial(storable_rows, Storable(STORED, db, context), context)
    async with aclosing(staged(pages.batches(), write, take, db, context)) as batches:
        async for batch in batches:
            yield batch


class _StoredPages:
    """Pages as they are stored."""

    def __init__(self, rel: Stream, context: Context) -> None:
        assert rel.schema is not None
        self._rel = rel
        self._context = context
        self._body = rel.schema.position("body")
        self._url = rel.schema.position("url")
        given = (name for name in STORED.names if name not in ("url", "title", "text"))
        self._places = {name: place_of(rel.schema, name) for name in given}
        self._reading = PageTextReader(context, has_text=True)

    async def batches(self) -> AsyncGenerator[Batch, None]:
        async for batch in self._rel.batches():
            yield [row for _, row in await self.stored(batch)]

    async def with_bodies(self) -> AsyncGenerator[list[tuple[Value, Row]], None]:
        async for batch in self._rel.batches():
            yield await self.stored(batch)

    async def stored(self, batch: Batch) -> list[tuple[Value, Row]]:
        """Return the bodies of pages, and the pages as they are stored."""
        found = []
        for row, text in await self._reading.read(batch, self._body):
            values = {name: None if place is None else row[place] for name, place in self._places.items()}
            values |= {"url": canonical_or_same(row[self._url]), "title": text.title, "text": text.text}
            found.append((row[self._body], tuple([values[name] for name in STORED.names])))
        return found


def canonical_or_same(url: Value) -> str:
    """Return the canonical form of an address; what is no address stays as it is."""
    try:
        return canonical(str(url))
    except ValueError:
        return str(url)


async def _to_folder(pages: _StoredPages, folder: str, context: Context) -> AsyncGenerator[Batch, None]:
    target = context.service(FileAccess).find(folder, context.folder, "write")
    files = PageFiles(target, folder)
    try:
        await context.in_thread(files.start)
        async for stored in pages.with_bodies():
            entries = []
            for body, row in stored:
                entry = dict(zip(STORED.names, row, strict=True))
                del entry["text"]
                kind = body.kind if isinstance(body, Document) else "text"
                entries.append((entry, "" if body is None else str(body), kind))
            await context.in_thread(files.write, entries)
            yield [row for _, row in stored]
        await context.in_thread(files.end)
        files.commit()
    finally:
        files.abandon()
