"""Live events: states of runs, changes of tasks, lines of logs and progress, as server-sent events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from aioflow.service.events import EventSubscription, ServiceEvent
from aioflow.service.rest.declarations import EVENT_STREAM, RestCall, RouteTable
from aioflow.service.rest.progress import EVERY_SECONDS
from aioflow.service.rest.refusals import RestError, encode
from aioflow.service.store.tasks import find_task
from aioflow.service.store.tokens import read_tokens

TABLE = RouteTable("events")

LISTENERS_AT_MOST = 100
LISTENERS_OF_TOKEN = 20
_HEARTBEAT_SECONDS = 15.0
_CHECK_SECONDS = 5.0  # between looks at the token of a listener
_PAUSE_SECONDS = 0.1
_DIGITS = 18  # of the number of an event, which is smaller
_EVENTS_AT_ONCE = 200  # of one kind; the number of those that were left out is told
_HEARTBEAT = b": still here\n\n"


class EventsQuery(msgspec.Struct, frozen=True):
    """Events of one task or one run only, or of some kinds."""

    task: Annotated[str, Meta(max_length=400)] | None = None
    run: Annotated[str, Meta(max_length=200)] | None = None
    kind: list[Literal["run", "task", "log", "progress", "alert"]] = msgspec.field(default_factory=list)


@TABLE.add("GET", "/api/events", content=EVENT_STREAM, refusals=(404, 429))
async def watch_events(call: RestCall[EventsQuery, None]) -> web.StreamResponse:
    """Send events as they happen, with their kind as the name of the event and JSON as its data.

    Kinds are run, task, log, progress, alert, and dropped for events that were left out. Progress has the
    rows of each statement and each edge, and comes every half second while a run is under way. The first
    event, ready, lists the runs under way. Comments are sent while nothing happens.

    A listener who sends the id of its last event as Last-Event-ID gets the events since then. If some of them
    are not kept any more, the event dropped has their number, or null if the service was started anew.
    """
    context = call.context
    if context.listeners >= LISTENERS_AT_MOST:
        raise RestError(429, f"{LISTENERS_AT_MOST} others listen to events already")
    name = "" if call.token is None else call.token.name
    if context.listening[name] >= LISTENERS_OF_TOKEN:
        raise RestError(429, f"{LISTENERS_OF_TOKEN} others listen to events with this token already")
    task_id = None
    if call.query.task is not None:
        async with context.service.database.reading() as statements:
            task_id = (await find_task(statements, call.query.task)).task_id
    context.listening[name] += 1
    try:
        return await _Watch(call, task_id).send()
    finally:
        context.listening[name] -= 1
        context.listening += Counter()  # those that nobody listens with are forgotten


class _Watch:
    """One listener."""

    def __init__(self, call: RestCall[EventsQuery, None], task_id: str | None) -> None:
        self._call = call
        self._context = call.context
        self._task_id = task_id
        self._clock = asyncio.get_running_loop().time
        self._shown: dict[str, Any] = {}  # the progress of runs that was sent last
        self._progress_sent = float("-inf")
        self._known, self._is_elsewhere = self._last_event()

    async def send(self) -> web.StreamResponse:
        """Send events until the listener goes, its token is revoked, or the server stops."""
        response = web.StreamResponse(
            headers={"Content-Type": f"{EVENT_STREAM}; charset=utf-8", "X-Accel-Buffering": "no"}
        )
        hub = self._context.service.events
        with hub.subscribed(after=self._known) as subscription:
            number = hub.published if self._known is None else self._known
            await response.prepare(self._call.request)
            await response.write(self._ready(number))
            if self._is_elsewhere:
                await response.write(_event("dropped", {"number": None}))
            if self._known is not None and self._known < hub.published:
                # As a whole: this many were kept for it.
                await response.write(b"".join(self._events(await subscription.next_batch(), at_once=None)))
            sent = checked = self._clock()
            while not self._context.closing.is_set():
                written = b"".join([*self._events(await _next(subscription)), *self._progress()])
                if self._clock() - checked >= _CHECK_SECONDS:
                    if not await self._may_listen():
                        break
                    checked = self._clock()
                if not written and self._clock() - sent >= _HEARTBEAT_SECONDS:
                    written = _HEARTBEAT
                if written:
                    await response.write(written)
                    sent = self._clock()
                    await asyncio.sleep(_PAUSE_SECONDS)  # events that come meanwhile go together
        await response.write_eof()
        return response

    def _last_event(self) -> tuple[int | None, bool]:
        """Return the number of the last event that the listener has, and whether it is another service's."""
        text = self._call.request.headers.get("Last-Event-ID", "")
        epoch, _, number = text.rpartition(":")
        hub = self._context.service.events
        is_ours = epoch == hub.epoch and number.isdecimal() and len(number) < _DIGITS
        if is_ours and int(number) <= hub.published:
            return int(number), False
        return None, bool(text)

    def _id(self, number: int) -> str:
        return f"{self._context.service.events.epoch}:{number}"

    def _ready(self, number: int) -> bytes:
        service = self._context.service
        running = [run_id for run_id in service.runner.streams if self._is_wanted_run(run_id)]
        content = {"service_id": service.service_id, "running": running}
        return _event("ready", content, self._id(number))

    def _events(
        self, events: Iterable[ServiceEvent], at_once: int | None = _EVENTS_AT_ONCE
    ) -> Iterator[bytes]:
        counts: dict[str, int] = {}
        for event in events:
            if not self._is_wanted(event):
                continue
            counts[event.kind] = counts.get(event.kind, 0) + 1
            if at_once is None or counts[event.kind] <= at_once:
                yield _event(event.kind, event, self._id(event.number) if event.number else None)
        for kind, count in counts.items():
            if at_once is not None and count > at_once:
                yield _event("dropped", {"kind": kind, "number": count - at_once})

    def _progress(self) -> Iterator[bytes]:
        """Yield the progress of runs that have gone on since it was last sent."""
        if not self._wants("progress") or self._clock() - self._progress_sent < EVERY_SECONDS:
            return
        self._progress_sent = self._clock()
        found = self._context.progress.look()
        for run_id, progress in found.items():
            figures = (progress.steps, progress.edges, progress.rows_out)
            if self._is_wanted_run(run_id) and self._shown.get(run_id) != figures:
                self._shown[run_id] = figures
                yield _event("progress", progress)
        self._shown = {run_id: figures for run_id, figures in self._shown.items() if run_id in found}

    def _is_wanted(self, event: ServiceEvent) -> bool:
        if event.kind == "dropped":
            return True
        query = self._call.query
        return (
            self._wants(event.kind)
            and (query.run is None or event.run_id == query.run)
            and (self._task_id is None or event.task_id == self._task_id)
        )

    def _is_wanted_run(self, run_id: str) -> bool:
        query, tasks = self._call.query, self._context.service.runner.tasks
        return (query.run is None or run_id == query.run) and (
            self._task_id is None or tasks.get(run_id) == self._task_id
        )

    def _wants(self, kind: str) -> bool:
        return not self._call.query.kind or kind in self._call.query.kind

    async def _may_listen(self) -> bool:
        async with self._context.service.database.reading() as statements:
            known = await read_tokens(statements)
        token = self._call.token
        return token is not None and any(
            (each.name, each.created) == (token.name, token.created) for each in known
        )


async def _next(subscription: EventSubscription) -> list[ServiceEvent]:
    try:
        async with asyncio.timeout(EVERY_SECONDS):
            return await subscription.next_batch()
    except TimeoutError:
        return []


def _event(kind: str, data: Any, id: str | None = None) -> bytes:
    place = "" if id is None else f"id: {id}\n"
    return f"{place}event: {kind}\ndata: ".encode() + encode(data) + b"\n\n"
