"""The events of a service, for those who watch it: a bounded buffer for each listener."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from secrets import token_hex
from typing import Any, Literal, TypeAlias

import msgspec

ServiceEventKind: TypeAlias = Literal["run", "task", "log", "progress", "alert", "dropped"]

_EVENTS_AT_MOST = 1_000
_LINE_CHARACTERS = 2_000  # of a line of a log, which has the whole line


class ServiceEvent(msgspec.Struct, frozen=True):
    """Something that happened: a run changed its state, a task was changed, a run wrote a line of its log."""

    kind: ServiceEventKind
    time: datetime
    task_id: str = ""
    run_id: str = ""
    data: Mapping[str, Any] = msgspec.field(default_factory=dict)
    number: int = 0  # of those that this service has published


class EventHub:
    """Passes events on to listeners. A slow listener loses the oldest events, and learns their number.

    The latest events are kept for listeners who come back.
    """

    def __init__(self) -> None:
        self.published = 0  # events so far, which are numbered from 1
        self.epoch = token_hex(4)  # numbers of another epoch are those of another process
        self._was_watched = False
        self._recent: deque[ServiceEvent] = deque(maxlen=_EVENTS_AT_MOST)
        self._subscriptions: list[EventSubscription] = []

    @property
    def is_watched(self) -> bool:
        return bool(self._subscriptions)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody listens, or did so and may come back."""
        return self._was_watched

    def publish(self, event: ServiceEvent) -> None:
        self.published += 1
        event = msgspec.structs.replace(_shortened(event), number=self.published)
        self._recent.append(event)
        for subscription in self._subscriptions:
            subscription.add(event)

    @contextmanager
    def subscribed(self, after: int | None = None) -> Iterator[EventSubscription]:
        """Get all events that are published meanwhile, and before them those after a number."""
        self._was_watched = True
        subscription = EventSubscription()
        if after is not None:
            subscription.replay([each for each in self._recent if each.number > after], after)
        self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.remove(subscription)


def _shortened(event: ServiceEvent) -> ServiceEvent:
    line = event.data.get("line", "")
    if len(line) <= _LINE_CHARACTERS:
        return event
    return msgspec.structs.replace(event, data={**event.data, "line": f"{line[:_LINE_CHARACTERS]}…"})


class EventSubscription:
    """The events for one listener."""

    def __init__(self) -> None:
        self._events: deque[ServiceEvent] = deque()
        self._arrived = asyncio.Event()
        self._dropped = 0

    def replay(self, events: Sequence[ServiceEvent], after: int) -> None:
        """Begin with these events; those between them and a number are not kept any more."""
        for event in events:
            self.add(event)
        if events:
            self._dropped += events[0].number - after - 1

    def add(self, event: ServiceEvent) -> None:
        if len(self._events) == _EVENTS_AT_MOST:
            self._events.popleft()
            self._dropped += 1
        self._events.append(event)
        self._arrived.set()

    async def next_batch(self) -> list[ServiceEvent]:
        """Return the events that have come, as soon as there are any; nothing is lost if it is cancelled."""
        await self._arrived.wait()
        self._arrived.clear()
        events = list(self._events)
        self._events.clear()
        if self._dropped:
            lost = ServiceEvent("dropped", events[0].time, data={"number": self._dropped})
            self._dropped = 0
            events.insert(0, lost)
        return events

    async def batches(self) -> AsyncIterator[list[ServiceEvent]]:
        """Yield the events that have come, as soon as there are any."""
        while True:
            yield await self.next_batch()
