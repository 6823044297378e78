"""Relations as XML documents and back: rel2xml, xml2rel."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Literal, TypeAlias, cast

from aioflow import (
    Context,
    Document,
    InputError,
    Relation,
    Row,
    Schema,
    SettingError,
    Stream,
    map_concurrently,
    operator,
)
from aioflow.authoring.operator import Settings
from aioflow.operators.function_calls import DependentJoin
from aioflow.relation import Batch, Type, Value
from aioflow.values.quantities import byte_text, size_text
from aioflow.xml import AttributePaths, DocumentReader, ItemPath, RelationWriter

Nulls: TypeAlias = Literal["nil", "omit"]

# Texts of this length are read on the event loop, longer ones in threads of their own.
_SHORT_CHARACTERS = 1 << 14


def _rel2xml_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    RelationWriter(Schema(()), settings["root"], settings["row"])
    return Schema((settings["as"],), (Type.DOCUMENT,))


@operator(schema=_rel2xml_schema, firing="end", needs_whole=(0,))
async def rel2xml(
    rel: Stream,
    *,
    root: str = "relation",
    row: str = "row",
    as_: str = "xml",
    nulls: Nulls = "nil",
    context: Context,
) -> AsyncGenerator[Row, None]:
    """Make one XML document of the whole relation, even of an empty one, as the attribute `xml`.

    There is an element for each tuple, with an element for each of its attributes, in their order. Types are
    marked with `xsi:type` and nulls with `xsi:nil`, so that `xml2rel` gives the same tuples back. Embedded
    relations and XML documents become elements inside.

    Arguments:
        rel: the tuples.
        root: the name of the root element.
        row: the name of the element for a tuple.
        as: the attribute with the document.
        nulls: `omit` leaves the elements of nulls out, so that a query may compute with all that are there.

    Examples:
        rel2xml (houses : document)
        rel2xml (houses : document) {ROOT: "houses"; ROW: "house"}
    """
    writer = RelationWriter(rel.schema or Schema(()), root, row, omits_nulls=nulls == "omit")
    reserved = 0
    try:
        async for batch in rel.batches():
            writer.add(batch)
            if (more := writer.characters - _UNCOUNTED_CHARACTERS - reserved) > 0:
                if not context.memory.reserve(more):
                    raise InputError(_too_long(writer.characters, context.memory.limit_bytes))
                reserved += more
        yield (Document(writer.text(), "xml"),)
    finally:
        context.memory.release(reserved)


# A document up to this length takes no more room than a page.
_UNCOUNTED_CHARACTERS = 1 << 20


def _too_long(characters: int, limit_bytes: int) -> str:
    return (
        f"the XML document of the relation has more than {size_text(characters)}, which memory "
        f"({byte_text(limit_bytes)}) has no room for; make several documents of it, or allow more memory"
    )


def _xml2rel_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    schema = inputs[0]
    paths: AttributePaths = settings["attributes"]
    index = _index(settings["index"])
    if settings["index"] in paths.schema:
        raise SettingError(
            f"{settings['index']!r} is the number of the element: call one of them something else, with "
            "`path as name` or with INDEX",
            setting="attributes",
        )
    if schema is None:
        return None
    kind = schema.type_of(settings["attribute"])
    if kind not in (None, Type.CHAR, Type.DOCUMENT):
        raise SettingError(f"{settings['attribute']!r} is a {kind}, not a document", setting="attribute")
    return schema.add(index.add(paths.schema))


def _index(name: str) -> Schema:
    return Schema((name,), (Type.NUMBER,))


@operator(schema=_xml2rel_schema, firing="tuple")
async def xml2rel(
    rel: Stream,
    *,
    attribute: str,
    each: ItemPath,
    attributes: AttributePaths,
    index: str = "index",
    outer: bool = False,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Make a tuple of each iterating element of a document, and join it to the tuple with the document.

    The attribute `index` is the number of the element in the document, from 1. A missing element is null.
    Repeated elements make a tuple for each combination. Values have the types that `xsi:type` marks, others
    are texts. One that is not of its type is null, and counted. A tuple without such elements, or whose
    document is null, is dropped. A text that is no XML is an error.

    Arguments:
        rel: the tuples.
        attribute: the attribute with the document.
        each: the iterating element: `house` at any depth but not inside of another one, `//house` there too,
            `/catalogue/house` at its place.
        attributes: the elements below it, as names or paths, with another name or a type if needed:
            `price number, address/city, @id as number, . as text`.
        index: the name of the attribute with the number of the element.
        outer: keep tuples without iterating elements, with nulls.

    Examples:
        xml2rel (pages, "xml", "house", "price number, address/city" : houses)
        xml2rel (feeds, "xml", "entry", "title, link/@href, dc:date as published" : entries)
    """
    assert rel.schema is not None
    reader = DocumentReader(each, attributes)
    position = rel.schema.position(attribute)

    async def read(row: Row) -> AsyncGenerator[Batch, None]:
        found_any = False
        async with aclosing(_rows_of(row[position], reader, context)) as batches:
            async for batch in batches:
                found_any = True
                yield batch
        if not found_any:
            yield []

    # A document that no reader looks at should not go along with each of its elements.
    is_read = context.reads_attribute(attribute)
    results = _index(index).add(attributes.schema)
    with DependentJoin(rel.schema, results, outer, context.memory) as joining:
        async with aclosing(map_concurrently(read, rel, context, permit=False).batches()) as read_rows:
            async for found in read_rows:
                for row, rows in found:
                    if not is_read:
                        row = (*row[:position], None, *row[position + 1 :])
                    if joined := joining.rows(row, rows):
                        yield joined


async def _rows_of(value: Value, reader: DocumentReader, context: Context) -> AsyncGenerator[Batch, None]:
    """Yield the tuples of a document; count what is not there or not right."""
    if value is None:
        context.count("null documents")
        return
    text = _text(value)
    misfits: Counter[str] = Counter()
    batches = reader.batches(text, misfits)
    found_any = False
    async with aclosing(_taken(batches, context, is_long=len(text) > _SHORT_CHARACTERS)) as taken:
        async for batch in taken:
            found_any = True
            yield batch
    for what, number in misfits.items():
        context.count(what, number)
    if not found_any:
        context.count("documents without such elements")


async def _taken(batches: Iterator[Batch], context: Context, *, is_long: bool) -> AsyncGenerator[Batch, None]:
    """Yield those lists of a reader that have tuples. A long document is read in a thread of its own.

    lxml wants one thread from the first piece of a document to the release of its last element: else memory
    is freed that belongs to another thread, and the process dies. So this is no work for a pool of threads.
    """
    if not is_long:
        for batch in batches:
            if batch:
                yield batch
        return
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, "aioflow-xml")
    try:
        while True:
            async with context.permit():
                found = await loop.run_in_executor(thread, _next, batches)
            if isinstance(found, Exception):
                raise found
            if found is None:
                return
            if found:
                yield found
    finally:
        # It ends after what it does just now, and gives back all elements there.
        thread.submit(_close, batches)
        thread.shutdown(wait=False)


def _next(batches: Iterator[Batch]) -> Batch | Exception | None:
    """Return the next list, None at the end, or the error, without what its traceback holds on to."""
    try:
        return next(batches, None)
    except Exception as error:
        error.__traceback__ = error.__context__ = error.__cause__ = None
        return error


def _close(batches: Iterator[Batch]) -> None:
    cast("Generator[Batch, None, None]", batches).close()


def _text(value: Value) -> str:
    if isinstance(value, Relation):
        raise SettingError("an XML document is read, not an embedded relation, which unpack reads")
    if isinstance(value, Document) and value.kind == "json":
        raise SettingError("an XML document is read, and this one is JSON")
    if not isinstance(value, str | Document):
        raise SettingError(f"an XML document is read, not {value!r:.60}")
    return str(value)
