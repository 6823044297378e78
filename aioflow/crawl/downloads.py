"""Downloads of whole pages, for crawlers: requests within limits, and answers as attributes of tuples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from aioflow.authoring.context import Context, Position
from aioflow.authoring.services import Scope, ServiceHost
from aioflow.crawl.documents import decoded, page_language
from aioflow.crawl.media_types import MediaTypes, media_type
from aioflow.relation import Batch, Row, Schema, Type
from aioflow.web.errors import ABSENT, ResponseTooLargeError, WebError
from aioflow.web.http import BodyLimits, Request, Response
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.calls import WrapperSession, accepted
from aioflow.wrappers.media import SNIFFED_BYTES

if TYPE_CHECKING:
    from aioflow.jobs import JobRecords

DOWNLOADED = Schema(
    ("final-url", "status", "mime", "charset", "language", "size", "fetched", "seconds", "body"),
    (
        Type.CHAR,
        Type.NUMBER,
        Type.CHAR,
        Type.CHAR,
        Type.CHAR,
        Type.NUMBER,
        Type.DATE,
        Type.NUMBER,
        None,  # a document, or a text
    ),
)


class DownloadLimits(msgspec.Struct, frozen=True):
    """What a statement may download: so many bytes and seconds a page, these types, so many pages in all."""

    most_bytes: int | None = None
    seconds: float | None = None
    types: MediaTypes | None = None
    pages: int | None = None
    rank: Callable[[Row], Any] | None = None  # sorts as the tuples whose pages are asked for first


class PageQuota:
    """The pages that a statement may still ask for, over all levels of its recursion."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self._left = pages
        self._is_told = False

    def take(self) -> bool:
        """Claim a page; False if none is left."""
        if not self._left:
            return False
        self._left -= 1
        return True

    def tell(self) -> bool:
        """Return whether somebody has yet to be told that none is left."""
        is_new, self._is_told = not self._is_told, True
        return is_new


class CrawlSession:
    """The client as the wrappers of the run use it, with their cookies, and the quotas of its statements."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, web: WrapperSession) -> None:
        self.web = web
        # All levels of a tail recursion have the same caller.
        self._quotas: dict[tuple[Position | None, int], PageQuota] = {}

    @classmethod
    def open_service(cls, host: ServiceHost) -> CrawlSession:
        return cls(host.service(WrapperSession))

    def quota(self, position: Position, pages: int) -> PageQuota:
        """Return the quota of a statement."""
        return self._quotas.setdefault((position.caller, position.index), PageQuota(pages))

    async def close(self) -> None:
        """The client belongs to the engine."""


class Downloads:
    """The downloads of one statement."""

    def __init__(self, schema: Schema, limits: DownloadLimits, outer: bool, context: Context) -> None:
        self._records: JobRecords | None = None
        if context.run.is_job:
            from aioflow.jobs import JobRecords, RecordingContext  # few runs are jobs

            self._records = context.service(JobRecords)
            context = RecordingContext.around(context)
        session = context.service(CrawlSession)
        web = session.web
        self.window = max(context.workers, web.settings.window_rows)
        self._position = schema.position("url")
        self._fetch = web.fetch
        self._outer = outer
        self._context = context
        self._types = limits.types
        self._rank = limits.rank
        self._most_bytes = min(limits.most_bytes or web.settings.body_bytes, web.settings.body_bytes)
        self._quota = None if limits.pages is None else session.quota(context.position, limits.pages)
        types = None if limits.types is None else limits.types.text
        self._stage = f"download {self._most_bytes} {limits.seconds} {types} {outer}"
        self._place = f"download {_path_of(context.position)}"
        most = None if limits.most_bytes is None else self._most_bytes
        accepts = None if limits.types is None else limits.types.accepts
        self._request: Mapping[str, Any] = {
            "limits": None if most is None and accepts is None else BodyLimits(most, accepts),
            "timeout_seconds": limits.seconds,
            "kind": "download",
            "permit": context.permit,
            "watch": web.watch(context),
            "cookies": web.cookies,
            "urgent": context.urgent,
        }

    async def rows(self, row: Row) -> Batch:
        """Return the attributes of a tuple's page: one row; none without a URL, or for a missing page."""
        url = row[self._position]
        if url is None:
            self._context.count("null urls")
            return []
        if not isinstance(url, str):
            url = str(url)
        if self._quota is not None and not await self._may_ask(self._quota, url):
            self._note_end(self._quota)
            return []
        # Those of one statement can be compared with each other, and with none of another.
        rank = () if self._rank is None else (self._place, self._rank(row))
        if self._records is None:
            return await self._fetched(url, rank)
        return await self._recorded(self._records, url, rank)

    async def _may_ask(self, quota: PageQuota, url: str) -> bool:
        """Claim a page of the quota; under a job, those of earlier attempts stay claimed."""
        if self._records is None or self._records.exchange is None:
            return quota.take()
        from aioflow.jobs.recording import record_key

        (is_ours,) = await self._records.exchange.claim(self._place, [record_key("", (url,))], quota.pages)
        return is_ours

    async def _recorded(self, records: JobRecords, url: str, rank: tuple[Any, ...]) -> Batch:
        """Return what a record of the job has of a page, or download it and record that."""
        from aioflow.jobs.recording import record_key, recorded_call

        key = record_key(self._stage, (url,))
        rows, _ = await recorded_call(records, key, lambda: self._fetched(url, rank), self._context)
        return rows

    async def _fetched(self, url: str, rank: tuple[Any, ...]) -> Batch:
        response = await self._fetch(Request(url, rank=rank, **self._request))
        if response.status in ABSENT:
            return self._missing(response)
        return [await self._page(accepted(response))]

    def _note_end(self, quota: PageQuota) -> None:
        self._context.count("urls beyond MAX_PAGES")
        if quota.tell():
            self._context.note(f"stopped at MAX_PAGES: {quota.pages:,}")

    def _missing(self, response: Response) -> Batch:
        """A page that is known not to exist lacks no rows."""
        self._context.count("missing pages")
        if not self._outer:
            return []
        nothing = (None, None, None, None)
        return [(response.url, response.status, *nothing, *_times(response), None)]

    async def _page(self, response: Response) -> Row:
        said = response.headers.get("Content-Type", "")
        body = response.body
        assert isinstance(body, bytes), "no streamed body was asked for"
        if self._records is not None:
            from aioflow.jobs.recording import note_page

            note_page(response.url, has_items=True)
        start = body[:SNIFFED_BYTES]
        mime = media_type(said, start)
        if response.unread or (self._types is not None and not self._types.accepts(said, start)):
            self._context.count("bodies refused")
            size = len(body) or _said_size(response)
            return (response.url, response.status, mime, None, None, size, *_times(response), None)
        if len(body) > self._most_bytes:  # a stored one, which was fetched with other limits
            raise self._too_large(response)
        content, charset = await decoded(body, said, mime)
        language = page_language(content, response.headers.get("Content-Language"))
        return (
            *(response.url, response.status, mime, charset, language, len(body)),
            *_times(response),
            content,
        )

    def _too_large(self, response: Response) -> WebError:
        shown = without_userinfo(response.url)
        return ResponseTooLargeError(f"{shown}: a body of more than {self._most_bytes} bytes")


def _path_of(position: Position) -> str:
    """Return the place of a statement in its plan and in the calls that lead there, the same in each run."""
    indexes = []
    place: Position | None = position
    while place is not None:
        indexes.append(str(place.index))
        place = place.caller
    return ".".join(reversed(indexes))


def _times(response: Response) -> tuple[datetime, float]:
    timing = response.timing
    return datetime.now(UTC), round(max(0.0, timing.total_seconds - timing.waited_seconds), 6)


def _said_size(response: Response) -> int | None:
    """Return the size of a body that was left where it is, if its host tells."""
    said = response.headers.get("Content-Length", "")
    return int(said) if said.isdecimal() and "Content-Encoding" not in response.headers else None
