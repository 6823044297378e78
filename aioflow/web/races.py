"""Races between the attempts at one request, of which the first answer wins.

Each attempt goes through the layers below as a request of its own: it takes a turn, a slot and a permit. One
response comes out. Attempts that lose are cancelled, and have ended before the response is passed on.
"""

from __future__ import annotations

import asyncio
from asyncio import Task, TimerHandle
from dataclasses import replace
from random import Random
from typing import NamedTuple

from aioflow.restart.learning import Decision, Observation
from aioflow.runtime.shielded import run_shielded
from aioflow.web.errors import ConnectionFailedError, ResponseTimeoutError, WebError
from aioflow.web.hosts import Host, Hosts
from aioflow.web.http import Fetcher, Request, Response, personal
from aioflow.web.latencies import HostAllowance, LatencyBook, SourceRecord
from aioflow.web.urls import with_host

# Shares of requests whose first attempt goes to a mirror of which little is known, or to any.
_TRY_NEW_MIRROR = 0.1
_TRY_ANY_MIRROR = 0.01
_TROUBLE = (ConnectionFailedError, ResponseTimeoutError)
_WAITING = ((0, None),)
_ERRORS = 400  # statuses from here on bring no page
# A time to give up is that of the slowest fast answer so far: the next one may take a little longer.
_MARGIN = 1.01


class Mirror(NamedTuple):
    """A host that has the page: the asked one itself, or one that is configured beside it."""

    host: Host
    record: SourceRecord
    allowance: HostAllowance
    url: str

    def is_in_trouble(self, now: float) -> bool:
        return self.host.breaker.is_open or self.host.pace.refuses(now) or self.allowance.is_in_trouble(now)


class Races:
    """Runs requests whose policy may send them again when they are slow."""

    def __init__(self, inner: Fetcher, hosts: Hosts, book: LatencyBook, random: Random | None = None) -> None:
        self._inner = inner
        self._hosts = hosts
        self._book = book
        self._random = random or Random()

    async def fetch(self, request: Request) -> Response:
        """Return the first response to a request that is safe to repeat."""
        host = self._hosts.at(request.url)
        policy = request.restart or self._book.policy(host.key)
        if not policy.is_on:
            return await self._inner.fetch(request)
        host.users += 1
        try:
            mirrors = await self._mirrors(host, request)
            asked = mirrors[0]
            asked.allowance.note_request()
            asked.record.counts.requests += 1
            asked.record.counts.rule = str(policy)
            others = [each.record for each in mirrors[1:]]
            decision = asked.record.decide(policy, others, self._book.limits, self._book.clock())
            race = _Race(self, request, mirrors, self._available(mirrors, decision))
            response = await race.run()
            response.url = request.url if response.url in race.asked_urls else response.url
        finally:
            host.users -= 1
        await self._book.save_some()
        return response

    async def close(self) -> None:
        await self._book.close()

    async def _mirrors(self, host: Host, request: Request) -> list[Mirror]:
        """Return the asked host and its mirrors; what is meant for the host alone goes to no other."""
        found = [await self._mirror(host, request.kind, request.url)]
        if not personal(request.headers) and request.cookies is None:
            for name in self._book.mirrors(host.key):
                url = with_host(request.url, name)
                found.append(await self._mirror(self._hosts.at(url), request.kind, url))
        return found

    async def _mirror(self, host: Host, kind: str, url: str) -> Mirror:
        record = await self._book.record(host.key, kind)
        return Mirror(host, record, self._book.allowance(host.key), url)

    def _available(self, mirrors: list[Mirror], decision: Decision) -> Decision:
        """Return the decision without hosts in trouble, and at times with a first step to learn from."""
        if len(mirrors) == 1:
            return decision
        now = asyncio.get_running_loop().time()
        well = [index for index, each in enumerate(mirrors) if not each.is_in_trouble(now)] or [0]
        new = [index for index in well if not mirrors[index].record.is_known]
        chance = self._random.random()
        if new and chance < _TRY_NEW_MIRROR:
            return Decision(((self._random.choice(new), None),))
        if chance < _TRY_ANY_MIRROR:
            return Decision(((self._random.choice(well), None),))
        steps = [step for step in decision.steps if step[0] in well] or [(well[0], None)]
        steps[-1] = (steps[-1][0], None)
        return decision.with_steps(tuple(steps))

    async def attempt(self, request: Request) -> Response:
        return await self._inner.fetch(request)

    def clock(self) -> float:
        return self._book.clock()

    def is_left_running(self, decision: Decision) -> bool:
        return self._random.random() < decision.left_running


class _Attempt:
    """A request on its way; `after` is the time to give it up."""

    __slots__ = ("after", "begun", "index", "is_again", "is_slow", "mirror", "sent", "task")

    def __init__(self, mirror: Mirror, index: int, after: float | None, *, is_again: bool) -> None:
        self.mirror = mirror
        self.index = index
        self.after = after
        self.is_again = is_again
        self.is_slow = False
        self.begun = asyncio.get_running_loop().time()
        self.sent: float | None = None
        self.task: Task[Response]


class _Race:
    """The attempts at one request."""

    def __init__(
        self,
        races: Races,
        request: Request,
        mirrors: list[Mirror],
        decision: Decision,
    ) -> None:
        self._races = races
        self._request = request
        self._mirrors = mirrors
        self._decision = decision
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._running: list[_Attempt] = []
        self._steps = 0
        self._changed = asyncio.Event()
        self._timer: TimerHandle | None = None
        # The moment at which the first attempt was slow, and whether it was asked again then.
        self._slow_since: float | None = None
        self._asked_again = False
        self._is_failing_over = False
        self.asked_urls = {each.url for each in mirrors}

    async def run(self) -> Response:
        """Return the first response, or raise the error of the last attempt."""
        if self._decision.steps == _WAITING:
            return await self._alone()
        try:
            return await self._first()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._running:
                await run_shielded(self._end())

    async def _alone(self) -> Response:
        """Return the response to the only attempt, for which no task is needed."""
        attempt = _Attempt(self._mirrors[0], 0, None, is_again=False)
        request = replace(self._request, sent=lambda: self._was_sent(attempt))
        has_ended = False
        try:
            response = await self._races.attempt(request)
            has_ended = True
        except WebError as error:
            has_ended = True
            self._failed(attempt, error)
            raise
        finally:
            if not has_ended:  # cancelled: it takes longer than this
                self._observe(attempt, answered=False)
        if attempt.mirror.allowance.note_status(response.status, self._loop.time()):
            self._observe(attempt, answered=True)
        return response

    async def _first(self) -> Response:
        self._start(self._decision.steps[0])
        while True:
            await self._changed.wait()
            self._changed.clear()
            for attempt in tuple(self._running):
                if attempt.task.done():
                    response = await self._ended(attempt)
                    if response is not None:
                        return response
                elif self._is_due(attempt):
                    response = await self._was_slow(attempt)
                    if response is not None:
                        return response

    def _start(self, step: tuple[int, float | None]) -> None:
        index, after = step
        mirror = self._mirrors[index]
        attempt = _Attempt(mirror, index, after, is_again=self._steps > 0)
        self._steps += 1
        # Further attempts go first: slot and turn of the first one were their own a moment ago.
        request = replace(
            self._request,
            url=mirror.url,
            urgent=self._request.urgent or attempt.is_again,
            sent=lambda: self._was_sent(attempt),
        )
        attempt.task = self._loop.create_task(self._races.attempt(request))
        attempt.task.add_done_callback(lambda _: self._changed.set())
        self._running.append(attempt)

    def _was_sent(self, attempt: _Attempt) -> None:
        attempt.sent = self._loop.time()
        if attempt.after is not None:
            self._timer = self._loop.call_later(attempt.after * _MARGIN, self._changed.set)

    def _is_due(self, attempt: _Attempt) -> bool:
        if attempt.after is None or attempt.sent is None or attempt.is_slow:
            return False
        return self._loop.time() >= attempt.sent + attempt.after * _MARGIN

    # --- slow attempts --------------------------------------------------------------------------

    async def _was_slow(self, attempt: _Attempt) -> Response | None:
        """Send the request again if that is allowed; return a response that came at this very moment."""
        attempt.is_slow = True
        counts = self._mirrors[0].record.counts
        assert attempt.after is not None
        attempt.mirror.record.note_speed(attempt.after * _MARGIN)
        if not attempt.is_again:
            self._slow_since = self._loop.time()
        reason = self._reason_to_wait(attempt)
        if reason is not None:
            counts.held_back[reason] = counts.held_back.get(reason, 0) + 1
            return None
        if not self._decision.keeps_first:
            attempt.task.cancel()
            await asyncio.wait([attempt.task])
            if not attempt.task.cancelled():
                return await self._ended(attempt)
            self._given_up(attempt)
        self._asked_again = True
        self._mirrors[0].allowance.spend()
        counts.extra += 1
        self._mirrors[0].host.counters.extra += 1
        self._start(self._decision.steps[self._steps])
        return None

    def _reason_to_wait(self, attempt: _Attempt) -> str | None:
        """Return why the request is not sent again now, or None."""
        now = self._loop.time()
        asked, following = self._mirrors[0], self._mirrors[self._decision.steps[self._steps][0]]
        host = following.host
        if not attempt.is_again and self._races.is_left_running(self._decision):
            return "left running to learn from"
        if attempt.mirror.is_in_trouble(now) or following.is_in_trouble(now):
            return "the host is in trouble"
        if attempt.mirror.record.is_slow_for_all():
            return "the host is slow for all"
        if host.pace.waiting or not host.pace.may_send(now):
            return "the rate limit"
        if self._decision.keeps_first and not host.slots.is_spare:
            return "the host has no slot for a second request"
        return "the cap on extra requests" if asked.allowance.is_spent else None

    def _given_up(self, attempt: _Attempt) -> None:
        """Take note of an attempt that was cancelled."""
        self._running.remove(attempt)
        if attempt.sent is None:
            return
        self._observe(attempt, answered=False)
        if self._request.watch is not None:
            self._request.watch.count_given_up(attempt.mirror.host.key)

    # --- attempts that have ended ---------------------------------------------------------------

    async def _ended(self, attempt: _Attempt) -> Response | None:
        """Return the response of an attempt, or None if another one is waited for; or raise its error."""
        if attempt in self._running:
            self._running.remove(attempt)
        try:
            response = attempt.task.result()
        except WebError as error:
            self._failed(attempt, error)
            if self._goes_on(attempt):
                return None
            raise
        is_well = attempt.mirror.allowance.note_status(response.status, self._loop.time())
        # A page that a mirror lacks or refuses may well be there: only the asked host says that it is not.
        is_believed = is_well and (attempt.index == 0 or response.status < _ERRORS)
        if not is_believed and self._goes_on(attempt):
            await response.close()
            return None
        if is_well:
            self._observe(attempt, answered=True)
        self._note_gain()
        response.timing.first_byte_seconds += attempt.begun - self._begun
        response.timing.total_seconds += attempt.begun - self._begun
        return response

    def _goes_on(self, attempt: _Attempt) -> bool:
        """Return whether another attempt may still bring the page; a mirror that failed is replaced once."""
        if self._running:
            return True
        if attempt.index == 0 or self._is_failing_over:
            return False
        self._is_failing_over = True
        self._start((0, None))
        return True

    def _failed(self, attempt: _Attempt, error: WebError) -> None:
        if isinstance(error, _TROUBLE):
            attempt.mirror.allowance.note_trouble(self._loop.time())
        if isinstance(error, ResponseTimeoutError):
            self._observe(attempt, answered=False)

    def _observe(self, attempt: _Attempt, *, answered: bool) -> None:
        if attempt.sent is None:
            return
        seconds = self._loop.time() - attempt.sent
        if not attempt.is_slow:
            attempt.mirror.record.note_speed(seconds)
        seen = Observation(self._races.clock(), seconds, answered)
        attempt.mirror.record.add(seen, again=attempt.is_again)

    def _note_gain(self) -> None:
        if self._slow_since is None:
            return
        counts = self._mirrors[0].record.counts
        seconds = self._loop.time() - self._slow_since
        if self._asked_again:
            counts.asked_again += 1
            counts.asked_again_seconds += seconds
        else:
            counts.left_running += 1
            counts.left_running_seconds += seconds

    async def _end(self) -> None:
        """Cancel the attempts that are left, and wait for them; a response that came is closed."""
        for attempt in self._running:
            attempt.task.cancel()
        await asyncio.wait([attempt.task for attempt in self._running])
        for attempt in tuple(self._running):
            if attempt.task.cancelled():
                self._given_up(attempt)
            elif attempt.task.exception() is None:
                await attempt.task.result().close()
        self._running.clear()
