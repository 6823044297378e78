"""News, rows and feeds of tasks, from the history that diff keeps in their databases."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from aioflow.errors import AioflowError
from aioflow.relation import Value
from aioflow.service.errors import NotFoundError
from aioflow.service.feeds import FeedInfo, atom, json_feed, rss
from aioflow.service.rest.content import Cursor, Limit, Moment
from aioflow.service.rest.declarations import RestCall, RouteTable
from aioflow.service.rest.refusals import RestError
from aioflow.service.store.tasks import find_task, read_tasks, renew_feed_key
from aioflow.service.task import Task
from aioflow.state.databases import Databases
from aioflow.state.driver import Connection
from aioflow.state.history import ChangeKind, RowChange, read_changes, read_rows, tracked_tables
from aioflow.values.cells import json_text

TABLE = RouteTable("history")

_FEED_ENTRIES = 100
_FEEDS: Mapping[str, tuple[Callable[[list[RowChange], FeedInfo], bytes], str]] = {
    "news.rss": (rss, "application/rss+xml"),
    "news.atom": (atom, "application/atom+xml"),
    "news.json": (json_feed, "application/feed+json"),
}


class NewsQuery(msgspec.Struct, frozen=True):
    """`quiet` includes changes that were applied without a message."""

    after: Moment | None = None
    before: Moment | None = None
    table: list[str] = msgspec.field(default_factory=list)
    kind: list[Literal["added", "changed", "removed"]] = msgspec.field(default_factory=list)
    run: Annotated[str, Meta(max_length=200)] | None = None
    quiet: bool = False
    cursor: Cursor | None = None
    limit: Limit = 50


class NewsEntry(msgspec.Struct, frozen=True):
    """A change of a row: `before` and `after` are the whole row, null where there was or is none."""

    table: str
    row_key: str
    kind: ChangeKind
    noticed: datetime
    run_id: str
    is_told: bool
    columns: list[str]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class NewsPage(msgspec.Struct, frozen=True):
    """Changes, the newest first."""

    news: list[NewsEntry]
    next: str | None = None


class RowsQuery(msgspec.Struct, frozen=True):
    """`table` may be left out if the task compares one table only."""

    table: Annotated[str, Meta(max_length=200)] | None = None
    gone: bool = True
    present: bool = True
    cursor: Cursor | None = None
    limit: Limit = 50


class ChangedValue(msgspec.Struct, frozen=True):
    noticed: datetime
    column: str
    before: Any
    after: Any


class RowEntry(msgspec.Struct, frozen=True):
    """A row from first to last sight. It is `gone` since a moment, or still there."""

    row: dict[str, Any]
    row_key: str
    first_seen: datetime
    last_seen: datetime
    gone: datetime | None
    is_missing: bool
    is_first_known: bool
    changes: list[ChangedValue]
    absences: list[list[datetime]]


class RowPage(msgspec.Struct, frozen=True):
    """Rows of a table, those that are gone last."""

    table: str | None
    tables: list[str]
    rows: list[RowEntry]
    next: str | None = None


class FeedAddresses(msgspec.Struct, frozen=True):
    """Secret addresses of the feeds of a task: everybody who knows one can read its news."""

    rss: str
    atom: str
    json: str


@TABLE.add("GET", "/api/tasks/{name}/news", refusals=(404, 422))
async def list_news(call: RestCall[NewsQuery, None]) -> NewsPage:
    """List the changes that the runs of a task have found."""
    query = call.query
    async with _database_of(call, await _task(call)) as (task, connection):
        if connection is None:
            return NewsPage([])
        found = await read_changes(
            connection,
            task_id=task.task_id,
            tables=query.table or None,
            run_id=query.run,
            after=query.after,
            before=query.before,
            kinds=query.kind or None,
            include_quiet=query.quiet,
            cursor=query.cursor,
            limit=query.limit,
        )
    following = found[-1].cursor if len(found) == query.limit else None
    return NewsPage([_news(change) for change in found], following)


@TABLE.add("GET", "/api/tasks/{name}/rows", refusals=(404, 422))
async def list_rows(call: RestCall[RowsQuery, None]) -> RowPage:
    """List the rows of a table that a task compares, with their history."""
    query = call.query
    async with _database_of(call, await _task(call)) as (task, connection):
        if connection is None:
            return RowPage(None, [], [])
        tables = [each.table for each in await tracked_tables(connection, task.task_id)]
        if query.table is not None and query.table not in tables:
            known = ", ".join(tables) or "none"
            raise NotFoundError(f"task {task.name!r} compares no table {query.table!r:.80} (tables: {known})")
        table = query.table or (tables[0] if tables else None)
        if table is None:
            return RowPage(None, [], [])
        found = await read_rows(
            connection,
            table,
            include_present=query.present,
            include_gone=query.gone,
            cursor=query.cursor,
            limit=query.limit,
        )
    rows = [
        RowEntry(
            *(_plain(each.row), each.row_key, each.first_seen, each.last_seen, each.gone),
            *(each.is_missing, each.is_first_known),
            [
                ChangedValue(change.noticed, change.column, _value(change.before), _value(change.after))
                for change in each.changes
            ],
            [list(times) for times in each.absences],
        )
        for each in found
    ]
    return RowPage(table, tables, rows, found[-1].cursor if len(found) == query.limit else None)


@TABLE.add("GET", "/api/tasks/{name}/feed-address", role="editor", refusals=(404,))
async def show_feed_address(call: RestCall[None, None]) -> FeedAddresses:
    """Return the secret addresses of the feeds of a task."""
    return _feed_addresses(call, await _task(call))


@TABLE.add("POST", "/api/tasks/{name}/feed-address", role="owner", refusals=(404,))
async def renew_feed_address(call: RestCall[None, None]) -> FeedAddresses:
    """Give the feeds of a task new addresses; the old ones lead nowhere from now on."""
    async with call.context.service.database.writing() as statements:
        task = await renew_feed_key(statements, await find_task(statements, call.path["name"]))
    return _feed_addresses(call, task)


@TABLE.add("GET", "/feeds/{key}/{feed}", role=None, content="application/rss+xml", refusals=(404, 429))
async def read_feed(call: RestCall[None, None]) -> web.Response:
    """Return the news of a task as RSS (news.rss), Atom (news.atom) or JSON Feed (news.json)."""
    if call.path["feed"] not in _FEEDS:
        raise RestError(404, f"a feed is one of {', '.join(_FEEDS)}")
    async with call.context.service.database.reading() as statements:
        tasks = await read_tasks(statements)
    task = next((each for each in tasks if each.feed_key and _is_key(each, call.path["key"])), None)
    if task is None:
        # A right address works even if others behind the same proxy have guessed too often.
        limit, address = call.context.authentication.limit, call.request.remote or ""
        limit.refuse(address)
        limit.note(address)
        raise RestError(404, "there is no such feed")
    write, content_type = _FEEDS[call.path["feed"]]
    async with _database_of(call, task) as (_, connection):
        changes = (
            []
            if connection is None
            else await read_changes(connection, task_id=task.task_id, limit=_FEED_ENTRIES)
        )
    own = f"{_base(call)}{call.request.rel_url.raw_path}"
    updated = changes[0].noticed if changes else task.created
    body = write(changes, FeedInfo(task.name, _base(call), own, updated))
    return web.Response(body=body, content_type=content_type, charset="utf-8")


def _is_key(task: Task, key: str) -> bool:
    from hmac import compare_digest

    return compare_digest(task.feed_key.encode(), key.encode())


def _base(call: RestCall[Any, Any]) -> str:
    return (call.context.service.settings.url or call.context.service.address).rstrip("/")


def _feed_addresses(call: RestCall[Any, Any], task: Task) -> FeedAddresses:
    return FeedAddresses(*(f"{_base(call)}/feeds/{task.feed_key}/{name}" for name in _FEEDS))


async def _task(call: RestCall[Any, Any]) -> Task:
    async with call.context.service.database.reading() as statements:
        return await find_task(statements, call.path["name"])


@asynccontextmanager
async def _database_of(call: RestCall[Any, Any], task: Task) -> AsyncIterator[tuple[Task, Connection | None]]:
    """Open the database that a task writes to, to read; None if it writes to none, or has not run yet."""
    runner = call.context.service.runner
    try:
        program = await runner.program_of(task.definition, task.version)
        address = await runner.address_of(program, task.definition)
    except AioflowError:
        address = None  # a plan that cannot be read any more has no database
    if address is None or address.is_missing:
        yield task, None
        return
    connection = await call.context.service.engine.services.service(Databases).connect_to_read(address)
    try:
        async with connection.transaction("snapshot"):
            yield task, connection
    finally:
        await connection.close()


def _news(change: RowChange) -> NewsEntry:
    return NewsEntry(
        *(change.table, change.row_key, change.kind, change.noticed, change.run_id, change.is_told),
        *(list(change.columns), _row(change.before), _row(change.after)),
    )


def _row(row: Mapping[str, Value] | None) -> dict[str, Any] | None:
    return None if row is None else _plain(row)


def _plain(row: Mapping[str, Value]) -> dict[str, Any]:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Value) -> Any:
    return json.loads(json_text(value))
