"""Blocks of crawlers between the frontier and the store: download, content_filter, soft_404_filter,
extract_links and extract_text.

Each works alone; `plans/crawl.plan` composes them. The family `storing` has the last block, `store`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Any, Literal

from aioflow import Context, Row, Schema, SettingError, Stream, To, map_concurrently, operator
from aioflow.authoring.operator import Settings
from aioflow.crawl import (
    ADDRESSES,
    DOWNLOADED,
    LINKS,
    MARKUP_TYPES,
    PAGE_TAGS,
    SOFT_404,
    CrawlAccount,
    DownloadLimits,
    Downloads,
    LinkReading,
    MediaTypes,
    MissingPages,
    PageLinks,
    PageText,
    is_heavy,
    links_aside,
    links_of,
    media_type,
    page_text,
    page_title,
    unpacked,
)
from aioflow.errors import InputError, suggestion
from aioflow.expressions import Attributes, SortKeys
from aioflow.operators.function_calls import DependentJoin
from aioflow.operators.settings import Count, Positive
from aioflow.relation import Batch, Type, Value
from aioflow.values.quantities import byte_count
from aioflow.wholeness import partial as partially

# After so much work on pages others have their turn.
_STRETCH_SECONDS = 0.01
# Of a process that reads a page.
_PROCESS_SECONDS = 60.0
_PROCESS_BYTES = 2_000_000_000


class ByteSize(int):
    """A number of bytes, written as `500kB` or `10MB`."""

    kind_name = "a size such as 500kB or 10MB"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> ByteSize:
        refusal = SettingError(f"must be {cls.kind_name}, not {value!r}")
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise refusal
        try:
            size = value if isinstance(value, int) else byte_count(value)
        except InputError:
            raise refusal from None
        if size < 0:
            raise refusal
        return cls(size)


def needs(schema: Schema | None, *names: str) -> None:
    """Ask a relation for the attributes that an operator works on; a SettingError if it lacks one."""
    if schema is not None:
        for name in names:
            schema.position(name)


def place_of(schema: Schema, name: str) -> int | None:
    return schema.position(name) if name in schema else None


# --- download -----------------------------------------------------------------------------------


def _download_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    needs(inputs[0], "url")
    return None if inputs[0] is None else inputs[0].add(DOWNLOADED)


@operator(schema=_download_schema, firing="tuple", outside=True)
async def download(
    rel: Stream,
    *,
    types: MediaTypes | None = None,
    max_bytes: ByteSize | None = None,
    seconds: Positive | None = None,
    max_pages: Count | None = None,
    priority: SortKeys | None = None,
    outer: bool = False,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Fetch the page at the `url` of each tuple, and add what came.

    These attributes are added: `final-url` (after redirects), `status`, `mime` (what the first bytes show,
    else what the host says), `charset`, `language`, `size` in bytes, `fetched` (a time), `seconds`, and
    `body`: an HTML, XML or JSON document, or a text. The body of anything else is null, and so is one that
    TYPES refuses, which is not read beyond its first bytes. The client keeps to robots.txt, rates and all
    other limits, and several pages are on their way at once.

    A page that is answered by 404 or 410 is known not to exist: its tuple is dropped and counted, or kept
    with OUTER. Other error statuses, and bodies that break off or exceed a limit, are failures of their
    tuple.

    Arguments:
        rel: the tuples.
        types: the media types whose bodies are read, such as `text/html, application/*+xml`; by default all.
        max_bytes: the size of a body, decoded; a larger one is given up. By default `http.body_bytes`.
        seconds: the time for a request with its body; by default `http.total_seconds`.
        max_pages: the number of pages that are asked for, over all levels of a tail recursion. Further
            tuples are dropped and counted.
        priority: sort keys such as `depth, score desc`: of the tuples that wait for their host, those that
            come first in this order are asked for first, over all levels of a recursion.
        outer: keep the tuples of missing pages, with their status and without a body.

    Examples:
        download (links : pages)
        download (links : pages) {TYPES: "text/html"; MAX_BYTES: "2MB"; SECONDS: 30; ERRORS: failed}
    """
    assert rel.schema is not None
    pages = None if max_pages is None else int(max_pages)
    rank = None if priority is None else priority.key
    limits = DownloadLimits(max_bytes, seconds, types, pages, rank)
    downloads = Downloads(rel.schema, limits, outer, context)
    with DependentJoin(rel.schema, DOWNLOADED, False, context.memory) as joining:
        calls = map_concurrently(downloads.rows, rel, context, permit=False, window=downloads.window)
        async with aclosing(calls.batches()) as results:
            async for found in results:
                joined = [each for row, rows in found for each in joining.rows(row, rows)]
                if joined:
                    yield joined


# --- content_filter -----------------------------------------------------------------------------


def _filter_schema(inputs: Sequence[Schema | None], settings: Settings) -> Sequence[Schema | None] | None:
    schema = inputs[0]
    needs(schema, "body")
    return None if schema is None else (schema, schema.add(_REASON))


_REASON = Schema(("reason",), (Type.CHAR,))


class LanguageList(frozenset[str]):
    """A setting that lists languages: `en, de-AT`."""

    kind_name = "a list of languages"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> LanguageList:
        names = [name.strip().lower() for name in value.split(",")] if isinstance(value, str) else []
        if not names or not all(name.replace("-", "").isalnum() and name.isascii() for name in names):
            raise SettingError(f"must be {cls.kind_name}, such as 'en, de', not {value!r}")
        return cls(names)

    def has(self, language: str) -> bool:
        """Return whether a language, or one that it is a form of, is in the list."""
        name = language.lower()
        return name in self or any(name.startswith(f"{each}-") for each in self)


@operator(outputs=("kept", "refused"), schema=_filter_schema, firing="tuple")
async def content_filter(
    rel: Stream,
    *,
    types: MediaTypes = MARKUP_TYPES,
    min_size: ByteSize | None = None,
    max_size: ByteSize | None = None,
    languages: LanguageList | None = None,
    context: Context,
) -> AsyncGenerator[To, None]:
    """Keep the pages with contents of some types, sizes and languages; the others leave with a `reason`.

    The type is that of `mime`, which `download` has made sure of, or else that of the `body` itself. A page
    without a body is refused. The language is what the page's root element or its host says; a page without
    one is kept.

    Arguments:
        rel: pages, as `download` gives them.
        types: media types; by default HTML, XHTML and XML.
        min_size: the least size, such as "1kB".
        max_size: the greatest size.
        languages: languages such as `en, de`; `en` includes en-GB.

    Examples:
        content_filter (pages : kept, refused)
        content_filter (pages : kept) {TYPES: "text/html"; LANGUAGES: "en, de"; MAX_SIZE: "2MB"}
    """
    assert rel.schema is not None
    refusal = _refusals(rel.schema, types, min_size, max_size, languages)
    async for batch in rel.batches():
        reasons = list(map(refusal, batch))
        context.fired()
        if not any(reasons):
            yield To("kept", batch)
            continue
        refused = [(row, reason) for row, reason in zip(batch, reasons, strict=True) if reason]
        _count([reason for _, reason in refused], context)
        if kept := [row for row, reason in zip(batch, reasons, strict=True) if not reason]:
            yield To("kept", kept)
        with DependentJoin(rel.schema, _REASON, False, context.memory) as joining:
            yield To("refused", [each for row, why in refused for each in joining.rows(row, ((why,),))])


def _count(reasons: Sequence[str], context: Context) -> None:
    """Count pages that are left out."""
    context.service(CrawlAccount).leave_out_pages(reasons)
    for reason in reasons:
        context.count(f"refused: {reason}")


def _refusals(
    schema: Schema,
    types: MediaTypes,
    min_size: int | None,
    max_size: int | None,
    languages: LanguageList | None,
) -> Callable[[Row], str | None]:
    """Return a function that says why a page is refused; None for a page that is kept."""
    body_place = schema.position("body")
    mime_place, size_place = place_of(schema, "mime"), place_of(schema, "size")
    language_place = place_of(schema, "language")

    def reason(row: Row) -> str | None:
        body: Any = row[body_place]
        mime: Any = row[mime_place] if mime_place is not None else None
        if mime is None and body is not None:
            mime = media_type("", str(body)[:1024].encode("utf-8", "replace"))
        if mime not in types:
            return f"the type is {mime}" if mime else "there is no body"
        if body is None:
            return "there is no body"
        size: Any = row[size_place] if size_place is not None else None
        if size is None and (min_size or max_size is not None):
            size = len(str(body).encode("utf-8", "replace"))
        if min_size is not None and size < min_size:
            return "it is too small"
        if max_size is not None and size > max_size:
            return "it is too large"
        if languages is not None and language_place is not None:
            language: Any = row[language_place]
            if language and not languages.has(language):
                return f"the language is {language}"
        return None

    return reason


# --- soft_404_filter ----------------------------------------------------------------------------


def _soft_404_schema(inputs: Sequence[Schema | None], settings: Settings) -> Sequence[Schema | None] | None:
    needs(inputs[0], "url")
    return _filter_schema(inputs, settings)


@operator(outputs=("kept", "refused"), schema=_soft_404_schema, depends_on_arrival=True)
async def soft_404_filter(rel: Stream, *, context: Context) -> AsyncGenerator[To, None]:
    """Keep the pages that are there. Those that only say “not found” leave with the `reason` soft 404.

    Some hosts answer 200 for pages that do not exist. A page whose title or first words say that there is
    none, in one of eleven languages, is compared with the answer to an address beside it that cannot exist.
    It is refused if both have seven of ten words in common, words of the URL aside. There is one such request
    for a folder, and at most 100 for a host. A page that says it in other words is kept.

    Arguments:
        rel: pages, as `download` gives them.

    Examples:
        soft_404_filter (pages : kept)
        soft_404_filter (pages : kept, refused)
    """
    assert rel.schema is not None
    missing = context.service(MissingPages)
    url, body = rel.schema.position("url"), rel.schema.position("body")
    async for batch in rel.batches():
        refused = [row for row in batch if await missing.has(str(row[url]), row[body], context)]
        if not refused:
            yield To("kept", batch)
            continue
        _count([SOFT_404] * len(refused), context)
        left_out = set(map(id, refused))
        if kept := [row for row in batch if id(row) not in left_out]:
            yield To("kept", kept)
        with DependentJoin(rel.schema, _REASON, False, context.memory) as joining:
            yield To("refused", [each for row in refused for each in joining.rows(row, ((SOFT_404,),))])


# --- extract_links ------------------------------------------------------------------------------


class TagList(tuple[str, ...]):
    """A setting that lists the elements whose links are read."""

    kind_name = "a list of elements"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> TagList:
        if not isinstance(value, str):
            raise SettingError(f"must be {cls.kind_name}, such as 'a, area', not {value!r}")
        names = dict.fromkeys(name.strip().lower() for name in value.split(",") if name.strip())
        for name in names:
            if name not in ADDRESSES:
                hint = suggestion(name, ADDRESSES) or f" (there are: {', '.join(ADDRESSES)})"
                raise SettingError(f"{name!r} is no element with a link{hint}")
        if not names:
            raise SettingError(f"must be {cls.kind_name}, such as 'a, area', not {value!r}")
        return cls(names)


_TAGS = TagList(PAGE_TAGS)


def _links_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    schema, keep = inputs[0], settings["keep"]
    needs(schema, "body")
    if keep is None:
        return LINKS
    if taken := set(keep.names) & set(LINKS.names):
        raise SettingError(f"links have an attribute {min(taken)!r} of their own", setting="keep")
    if schema is None:
        return None
    return LINKS.add(Schema(keep.names, tuple(map(schema.type_of, keep.names))))


@operator(outputs=("links",), schema=_links_schema, firing="tuple")
async def extract_links(
    rel: Stream,
    *,
    tags: TagList = _TAGS,
    unique: bool = True,
    nofollow: Literal["skip", "follow"] = "skip",
    keep: Attributes | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Find the links of each page; each of them becomes a tuple.

    A link has the attributes `url` (absolute, without fragment; `<base>` counts), `anchor` (its text), `rel`,
    `tag`, `position` (its number in the page), `depth` (one more than that of the page; 1 if the page has
    none) and `parent` (the page's `final-url`, else its `url`). Pages are the HTML documents in `body`, and
    XML: addresses in attributes named href, and in the elements of feeds and sitemaps. Long pages are read in
    other processes.

    Arguments:
        rel: pages, as `download` gives them.
        tags: the elements whose links are read: a, area, frame, iframe, and link where it leads to a page.
            Others are audio, embed, img, object, script, source, track and video.
        unique: each address once for a page, with its first anchor; `false` gives all.
        nofollow: `skip` leaves out links with rel=nofollow, and those of pages with such a <meta
            name="robots">, and counts them.
        keep: attributes of the page that its links get as well.

    Examples:
        extract_links (pages : links)
        extract_links (pages : links) {TAGS: "a, img"; NOFOLLOW: follow; KEEP: "site"}
    """
    assert rel.schema is not None
    columns = LinkReading(
        tags,
        unique,
        nofollow == "follow",
        context.reads_attribute("anchor"),
        any(map(context.reads_attribute, ("rel", "tag", "position"))),
    )
    pages = _LinkPages(rel.schema, columns, keep, context)
    is_read = context.reads_output("links")
    async for batch in rel.batches():
        if not is_read:  # by nobody: a plan has a caller that does not take this output
            continue
        found: Batch = []
        began = perf_counter()
        for row in batch:
            if is_heavy(row[pages.body], has_links=True):
                async with aclosing(pages.links_aside(row)) as pieces:
                    async for piece in pieces:
                        yield piece
            else:
                found += pages.links(row)
            if perf_counter() - began > _STRETCH_SECONDS:
                yield found
                found = []
                await asyncio.sleep(0)
                began = perf_counter()
        context.fired()
        if found:
            yield found


class _LinkPages:
    """The pages of one statement, and where their attributes are."""

    def __init__(
        self, schema: Schema, reading: LinkReading, keep: Attributes | None, context: Context
    ) -> None:
        self.body = schema.position("body")
        self._final, self._url = place_of(schema, "final-url"), place_of(schema, "url")
        self._depth = place_of(schema, "depth")
        self._kept = () if keep is None else tuple(map(schema.position, keep.names))
        self._reading = reading
        self._context = context

    def links(self, row: Row) -> Batch:
        """Return the links of a page."""
        try:
            page = links_of(row[self.body], *self._about(row), self._reading)
        except Exception as error:
            self._context.fail(row, error)
            return []
        self._note(page, row)
        return page.rows

    async def links_aside(self, row: Row) -> AsyncGenerator[Batch, None]:
        """Yield the links of a long page, which another process reads."""
        try:
            page = await self._context.in_process(
                links_aside,
                row[self.body],
                *self._about(row),
                self._reading,
                seconds=_PROCESS_SECONDS,
                memory_bytes=_PROCESS_BYTES,
            )
        except Exception as error:
            self._context.fail(row, error)
            return
        self._note(page, row)
        for piece in page.packed:
            yield unpacked(piece)
            await asyncio.sleep(0)

    def _about(self, row: Row) -> tuple[str, int, Row]:
        """Return the address of a page, its depth, and the values that its links get."""
        url: Value = row[self._final] if self._final is not None else None
        if url is None and self._url is not None:
            url = row[self._url]
        depth: Value = row[self._depth] if self._depth is not None else 0
        kept = tuple([row[place] for place in self._kept])
        return ("" if url is None else str(url)), (depth if isinstance(depth, int) else 0), kept

    def _note(self, page: PageLinks, row: Row) -> None:
        if page.nofollow:
            self._context.count("nofollow links", page.nofollow)
        if page.is_cut:
            url, _, _ = self._about(row)
            text = f"{self._context.where}: {url}: the page nests too deeply, and was flattened"
            self._context.mark(partially(text))


# --- extract_text -------------------------------------------------------------------------------

_TEXT = Schema(("title", "text"), (Type.CHAR, Type.CHAR))


def _text_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    needs(inputs[0], "body")
    return None if inputs[0] is None else inputs[0].add(_TEXT)


@operator(schema=_text_schema, firing="tuple")
async def extract_text(rel: Stream, *, context: Context) -> AsyncGenerator[Batch, None]:
    """Add the `title` and the visible `text` of each page, with single spaces.

    Scripts, styles and markup are left out. A statement that nobody asks for `text` reads the title only,
    which takes a fraction of the time. Long pages are read in other processes.

    Arguments:
        rel: pages, as `download` gives them.

    Example:
        extract_text (pages : texts)
    """
    assert rel.schema is not None
    body = rel.schema.position("body")
    reading = PageTextReader(context, has_text=context.reads_attribute("text"))
    with DependentJoin(rel.schema, _TEXT, False, context.memory) as joining:
        async for batch in rel.batches():
            texts = await reading.read(batch, body)
            if joined := [
                each for row, found in texts for each in joining.rows(row, ((found.title, found.text),))
            ]:
                yield joined


class PageTextReader:
    """Reads the titles and texts of pages."""

    def __init__(self, context: Context, *, has_text: bool) -> None:
        self._context = context
        self._has_text = has_text

    async def read(self, batch: Batch, body: int) -> list[tuple[Row, PageText]]:
        """Return tuples with what is in their pages; those that cannot be read fail."""
        found = []
        began = perf_counter()
        for row in batch:
            try:
                text = await self._text(row[body])
            except Exception as error:
                self._context.fail(row, error)
                continue
            if text.is_cut:
                self._context.count("pages that nest too deeply")
            found.append((row, text))
            if perf_counter() - began > _STRETCH_SECONDS:
                await asyncio.sleep(0)
                began = perf_counter()
        self._context.fired()
        return found

    async def _text(self, document: Value) -> PageText:
        if not self._has_text:
            return PageText(page_title(document), None)
        if not is_heavy(document):
            return page_text(document)
        return await self._context.in_process(
            page_text, document, seconds=_PROCESS_SECONDS, memory_bytes=_PROCESS_BYTES
        )
