"""Building blocks of crawlers: seed, normalize_url, allowed, seen, near_duplicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, ClassVar, Literal, Self

from aioflow import Context, Row, Schema, SettingError, Stream, To, operator, same_as_input
from aioflow.authoring.operator import BatchFunction, Settings, StoreUse
from aioflow.authoring.services import ServiceHost
from aioflow.crawl import (
    MOST_DISTANCE,
    TRAPS,
    CrawlAccount,
    CrawlClaims,
    CrawlTraps,
    DomainList,
    DroppedParameters,
    FingerprintBands,
    TrapNames,
    UrlNormalizer,
    UrlPatterns,
    UrlRules,
    simhash64,
)
from aioflow.expressions import Attributes, Counters
from aioflow.operators.keyed import keys_of
from aioflow.operators.seeds import DETAILS, SEED, Seeds, SeedUrls
from aioflow.operators.settings import Count, Duration, PositiveCount, tallied
from aioflow.relation import Batch, Type
from aioflow.runtime.spill import KeyedRows, off_loop
from aioflow.state import Databases, TableName, WrittenTableName


class TextAttribute(str):
    """A setting that names an attribute with texts; `position` is its column once the schema is known."""

    kind_name: ClassVar[str] = "the name of an attribute"
    binds_default: ClassVar[bool] = True

    position: int | None = None
    counters: Counters  # of the statement that has the setting

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if not isinstance(value, str):
            raise SettingError(f"must be {cls.kind_name}, not {value!r}")
        bound = cls(value)
        bound.counters = Counters()
        schema = inputs[0] if inputs else None
        if schema is not None:
            bound.position = schema.position(value)
            if schema.type_of(value) not in (None, Type.CHAR, Type.DOCUMENT):
                raise SettingError(f"{value!r} is a {schema.type_of(value)}, not a text")
        return bound


_URL = TextAttribute("url")
_TEXT = TextAttribute("text")


def _column(attribute: TextAttribute) -> int:
    assert attribute.position is not None
    return attribute.position


# --- normalize_url ------------------------------------------------------------------------------


def _normalized(settings: Settings) -> BatchFunction:
    url: TextAttribute = settings["url"]
    if url.position is None:  # the schema is not known yet
        return lambda batch: list(batch)
    normalizer = UrlNormalizer(
        settings["drop"], sort=settings["sort"], slash=settings["slash"], counters=url.counters
    )
    return partial(_normalized_rows, normalizer, url.position)


def _normalized_rows(normalizer: UrlNormalizer, column: int, batch: Sequence[Row]) -> Batch:
    urls = [row[column] for row in batch]
    forms = normalizer.normal(urls)
    if forms == urls:
        return list(batch)
    before, after = slice(column), slice(column + 1, None)
    return [
        (*row[before], form, *row[after]) for row, form in zip(batch, forms, strict=True) if form is not None
    ]


@operator(schema=same_as_input, batchwise=_normalized)
async def normalize_url(
    rel: Stream,
    *,
    drop: DroppedParameters | None = None,
    sort: bool = False,
    slash: Literal["keep", "drop"] = "keep",
    url: TextAttribute = _URL,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Bring URLs into one form, so that equal ones are equal texts; drop tuples without an http(s) URL.

    Scheme and host are in lower case, a host in another script is in ASCII, and a default port, the fragment,
    `.` and `..` in the path are gone. An empty path is `/`. Escapes are in capitals, and only where they are
    needed. Parameters that say who follows a link are left out, and ids of sessions, also from paths. Tuples
    with another text than an http(s) URL are counted as `not a URL`.

    Arguments:
        rel: the tuples.
        drop: the parameters that are left out: names such as `ref, utm_*`, with a value as in
            `sid=????????????????*` if only such values are meant. `tracking` and `sessions` stand for the
            lists of the library, `default` for both, `none` for no parameter. Without it, `default`.
        sort: sort the parameters by name.
        slash: `drop` leaves out the slash at the end of a path, which means another page on some sites.
        url: the attribute with the URL.

    Examples:
        normalize_url (links : urls)
        normalize_url (links : urls) {DROP: "default, ref"; SORT; URL: "link"}
    """
    normalized = _normalized({"drop": drop, "sort": sort, "slash": slash, "url": url})
    with tallied(context, url):
        async for batch in rel.batches():
            if rows := normalized(batch):
                yield list(rows)


# --- allowed ------------------------------------------------------------------------------------

_REASON = Schema(("reason",), (Type.CHAR,))
_DEPTH = "depth"
_SCHEMES = ("http", "https")
_LENGTH = PositiveCount(2000)
_ALL_TRAPS = TrapNames(TRAPS)


def _allowed_schema(
    inputs: Sequence[Schema | None], settings: Settings
) -> tuple[Schema | None, Schema | None]:
    schema = inputs[0]
    if settings["depth"] is not None and schema is not None:
        try:
            schema.position(_DEPTH)
        except SettingError as error:
            error.setting = "depth"
            raise
    return schema, None if schema is None else schema.add(_REASON)


@operator(outputs=("kept", "refused"), schema=_allowed_schema, depends_on_arrival=True)
async def allowed(
    rel: Stream,
    *,
    domains: DomainList | None = None,
    follow: UrlPatterns | None = None,
    skip: UrlPatterns | None = None,
    depth: Count | None = None,
    schemes: tuple[str, ...] = _SCHEMES,
    length: PositiveCount = _LENGTH,
    traps: TrapNames = _ALL_TRAPS,
    url: TextAttribute = _URL,
    context: Context,
) -> AsyncGenerator[To, None]:
    """Keep the tuples whose URLs a crawl may follow. The others leave as `refused`, each with its `reason`.

    A pattern is a text in which `*` stands for any characters, or a regular expression between slashes. A
    text with `://` is compared with the whole URL, one that begins with `/` with path and query, and any
    other with everything after `://`. Between two patterns stands a comma with a space.

    Traps are parts of sites that never end: calendars far in the past or future, or with more than 2,000
    dates; combinations of parameters (more than 2,000 for a path, where no parameter has many values, or
    50,000 in any case); a segment of the path, or a group of them, three times in a row; more than 20
    segments; ids of sessions. What was left out is counted by reason, in the account of the run too.

    Arguments:
        rel: the tuples.
        domains: the domains to stay in. `example.com` means this host and all below it, `*.example.com` only
            those below it, and `example.com:8080` one port.
        follow: patterns; a URL must fit one of them.
        skip: patterns; a URL that fits one of them is refused.
        depth: the greatest value of the attribute `depth`.
        schemes: the schemes of URLs, http and https by default.
        length: the greatest length of a URL.
        traps: the traps to look out for: some of calendar, parameters, path-loops, path-depth, sessions;
            or none. By default all.
        url: the attribute with the URL.

    Examples:
        allowed (links : kept) {DOMAINS: "example.com"; DEPTH: 5}
        allowed (links : kept, refused) {FOLLOW: "/docs/*, /page=[0-9]+/"; SKIP: "*.pdf"; TRAPS: none}
    """
    shared = context.service(CrawlAccount)
    chosen: dict[str, Any] = {"domains": domains, "follow": follow, "skip": skip, "depth": depth}
    chosen |= {"schemes": _schemes(schemes), "length": int(length)}

    def make() -> UrlRules:
        return UrlRules(**chosen, traps=CrawlTraps(traps, year=context.run.started.year))

    rules = shared.rules(" ".join(map(str, (context.where, *chosen.values(), traps))), make)
    schema = rel.schema or Schema(())
    column = _column(url)
    depths = None if depth is None else schema.position(_DEPTH)
    passes_refused = context.reads_output("refused")
    add_reason = _adder(schema, _REASON)
    async for batch in rel.batches():
        reasons = rules.reasons(
            [row[column] for row in batch], None if depths is None else [row[depths] for row in batch]
        )
        if any(reasons):
            _count(Counter(filter(None, reasons)), shared, context)
            if passes_refused:
                pairs = zip(batch, reasons, strict=True)
                yield To("refused", [add_reason(row, (reason,)) for row, reason in pairs if reason])
            batch = [row for row, reason in zip(batch, reasons, strict=True) if reason is None]
        if batch:
            yield To("kept", batch)


def _schemes(names: Iterable[str]) -> list[str]:
    return [name.strip().lower() for each in names for name in each.split(",")]


def _count(reasons: Counter[str], shared: CrawlAccount, context: Context) -> None:
    shared.leave_out(reasons)
    for reason, number in reasons.items():
        context.count(f"refused: {reason}", number)


def _adder(schema: Schema, added: Schema) -> Callable[[Row, Row], Row]:
    """Return a function that adds values to a row; an attribute that is there already is replaced."""
    if not any(name in schema for name in added.names):
        return lambda row, values: row + values
    result = schema.add(added)
    places = [result.position(name) for name in added.names]

    def replace(row: Row, values: Row) -> Row:
        cells = [*row, *[None] * (len(result) - len(row))]
        for place, value in zip(places, values, strict=True):
            cells[place] = value
        return tuple(cells)

    return replace


# --- seen ---------------------------------------------------------------------------------------


class ClaimedKey(str):
    """A setting with the attributes that `seen` compares; `positions` are their columns."""

    kind_name: ClassVar[str] = Attributes.kind_name
    binds_default: ClassVar[bool] = True

    positions: tuple[int, ...] = ()

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        found = Attributes.bind(value, inputs)
        bound = cls(", ".join(found.names))
        bound.positions = found.positions or ()
        return bound


_KEY = ClaimedKey("url")


def _seen_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    if settings["for"] is not None and settings["remember"] is None:
        raise SettingError("FOR says how long a table remembers; name one with REMEMBER", setting="for")
    if settings["set"] is not None and settings["remember"] is not None:
        raise SettingError("the table of REMEMBER is a set of its own; leave out SET", setting="set")
    return inputs[0]


def _seen_store(settings: Settings) -> StoreUse | None:
    table = settings["remember"]
    return None if table is None else StoreUse(settings["db"], "write", table=table)


def _missing_database(name: str) -> Callable[[Settings, Any], Iterable[str]]:
    def problems(settings: Settings, host: ServiceHost) -> Iterable[str]:
        if settings[name] is None:
            return ()
        assert host.run is not None
        database = host.run.default("database", settings["db"])
        return host.service(Databases).problems(database, host.run.folder)

    return problems


@operator(
    schema=_seen_schema,
    depends_on_arrival=True,
    store=_seen_store,
    requires=_missing_database("remember"),
    effects=lambda settings: settings["remember"] is not None,
)
async def seen(
    rel: Stream,
    *,
    key: ClaimedKey = _KEY,
    set_: str | None = None,
    remember: WrittenTableName | None = None,
    for_: Duration | None = None,
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Keep the first tuple for each URL in the whole run, in all calls and levels of a recursive plan.

    URLs are compared as they are; `normalize_url` makes equal ones equal texts. All statements of a run share
    what they have seen, unless SET names a set of its own. With REMEMBER a table keeps it from run to run: it
    is read when the first tuple comes, and written when the run has ended successfully. A run that fails
    remembers nothing.

    Arguments:
        rel: the tuples.
        key: the attributes to compare, `url` by default.
        set: the name of the set; statements with other sets do not share what they have seen.
        remember: a table with what earlier runs have seen, in the columns `key` and `seen-at`. It is created
            when it is missing.
        for: the time after which the table forgets, such as 30d; without it, it never does.
        db: a database of the configuration; by default as for dbimport.

    Examples:
        seen (links : fresh)
        seen (links : fresh) {REMEMBER: "visited"; FOR: 30d}
    """
    claims = context.service(CrawlClaims)
    if remember is None:
        known = claims.of_run(set_ or "", context)
    else:
        known = claims.remembered(remember, db, None if for_ is None else float(for_), context)
    keys = keys_of(key.positions)
    async for batch in rel.batches():
        is_new = await known.claim(keys(batch))
        fresh = batch if all(is_new) else [row for row, new in zip(batch, is_new, strict=True) if new]
        if fresh:
            yield fresh


# --- seed ---------------------------------------------------------------------------------------

_NO_URLS = SeedUrls()


def _seed_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema:
    if not any(settings[name] for name in ("urls", "file", "table", "sitemap")):
        raise SettingError(
            'seed needs a URL, as in seed ("https://a.example/" : out); or FILE, TABLE, SITEMAP'
        )
    if settings["details"] and not settings["sitemap"]:
        raise SettingError("only the entries of a SITEMAP have details", setting="details")
    return SEED.add(DETAILS) if settings["details"] else SEED


def _seed_store(settings: Settings) -> StoreUse | None:
    return None if settings["table"] is None else StoreUse(settings["db"], "read")


@operator(schema=_seed_schema, store=_seed_store, requires=_missing_database("table"))
async def seed(
    *,
    urls: SeedUrls = _NO_URLS,
    file: str | None = None,
    table: TableName | None = None,
    sitemap: SeedUrls = _NO_URLS,
    details: bool = False,
    db: str | None = None,
    url: str = "url",
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Give the URLs that a crawl begins with, as `url` and `depth`, which is 0.

    They are constants, or come from a file, a table or a sitemap, or from several of these. A sitemap may be
    XML, an index of sitemaps, text, compressed by gzip, or the robots.txt of a site, whose Sitemap lines
    count. It is read as it arrives. A sitemap that cannot be read is an error that says where, and so is one
    with more than 50,000 URLs or 50 MB, the limits of the protocol.

    Arguments:
        urls: http(s) URLs.
        file: a file with URLs: a text with one on each line, where `#` begins a comment, or csv, jsonl and
            the other formats of `read`. The path is relative to the plan's.
        table: a table with URLs.
        sitemap: URLs of sitemaps, or of a robots.txt.
        details: add `lastmod`, `changefreq` and `priority` of the sitemap's entries; null where one is
            missing or wrong.
        db: a database of the configuration; by default as for dbimport.
        url: the attribute of the file or table with the URL.

    Examples:
        seed ("https://a.example/", "https://b.example/" : urls)
        seed (FILE="urls.csv" : urls) {URL: "address"}
        seed (SITEMAP="https://a.example/sitemap.xml" : urls) {DETAILS}
    """
    width = len(DETAILS) if details else 0
    found = Seeds(context, url).of(urls, file, table, sitemap, db)
    async with aclosing(found) as batches:
        async for batch in batches:
            yield [(*row[:2], *row[2 : 2 + width], *[None] * (2 + width - len(row))) for row in batch]


# --- near_duplicates ----------------------------------------------------------------------------

_DUPLICATE = Schema(("duplicate-of", "distance"), (Type.CHAR, Type.NUMBER))
_FOUND_NONE = (None, None)


class Distance(Count):
    """The number of bits in which fingerprints may differ."""

    kind_name: ClassVar[str] = f"a whole number from 0 to {MOST_DISTANCE}"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        bound = super().bind(value, inputs)
        if bound > MOST_DISTANCE:
            raise SettingError(f"must be {cls.kind_name}, not {value}")
        return bound


_NEAR = Distance(3)


@operator(
    schema=lambda inputs, settings: None if inputs[0] is None else inputs[0].add(_DUPLICATE),
    depends_on_arrival=True,
)
async def near_duplicates(
    rel: Stream,
    *,
    text: TextAttribute = _TEXT,
    distance: Distance = _NEAR,
    url: TextAttribute = _URL,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Mark pages whose text is nearly that of an earlier page; all pages stay.

    `duplicate-of` is the URL of the first such page, `distance` the number of bits in which the fingerprints
    (simhash of 64 bits) differ. Both are null for a page that is like no earlier one, and for a text without
    words. Pages are compared with those that are no duplicates themselves.

    Arguments:
        rel: the pages.
        text: the attribute with the text.
        distance: the number of bits that may differ, at most 7. With 3, about one word in 200 may.
        url: the attribute with the URL.

    Examples:
        near_duplicates (pages : marked)
        near_duplicates (pages : marked) {TEXT: "body"; DISTANCE: 5}
    """
    add = _adder(rel.schema or Schema(()), _DUPLICATE)
    texts, urls = _column(text), _column(url)
    with KeyedRows(context.memory) as index:
        marking = NearPages(index, FingerprintBands(distance))
        async for batch in rel.batches():
            prints = await context.in_thread(_fingerprints, [row[texts] for row in batch])
            marks = await off_loop(index, marking.marks, prints, [row[urls] for row in batch])
            yield [add(row, mark) for row, mark in zip(batch, marks, strict=True)]


def _fingerprints(texts: Sequence[Any]) -> list[int]:
    """Return the fingerprint of each text; 0 for a null."""
    return [0 if text is None else simhash64(str(text)) for text in texts]


class NearPages:
    """The pages that are no duplicates, by the bands of their fingerprints."""

    def __init__(self, index: KeyedRows, bands: FingerprintBands) -> None:
        self._index = index
        self._bands = bands
        self._pages = 0

    def marks(self, fingerprints: Sequence[int], urls: Sequence[Any]) -> list[Row]:
        """Return URL and distance of the first near page for each page, which is then known itself."""
        return list(map(self._mark, fingerprints, urls))

    def _mark(self, fingerprint: int, url: Any) -> Row:
        if not fingerprint:
            return _FOUND_NONE
        keys = self._bands.keys(fingerprint)
        pages = [row for rows in self._index.get_all(keys) for row in rows]
        near = self._bands.nearest(fingerprint, pages)
        if near is not None:
            return near
        self._pages += 1
        page = (self._pages, fingerprint, url)
        self._index.add_all(keys, [page] * len(keys))
        return _FOUND_NONE
