"""The circuit breaker: who fails often in a row is left alone, tried by one, and trusted again."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from aioflow.testing import run
from aioflow.web.client import Client
from aioflow.web.errors import (
    BadResponseError,
    CircuitOpenError,
    ConnectionFailedError,
    ResponseTimeoutError,
    RobotsRefusedError,
    WebError,
)
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts
from aioflow.web.http import Request, Response
from aioflow.web.retries import RetryFetcher
from aioflow.web.settings import HttpSettings, WebSettings
from tests.web.scripted import Allowance, Answer, Site, answer

A, B = "http://a.example/", "http://b.example/"


class Switch:
    """A site that answers as it is told at the moment."""

    def __init__(
        self, answer: Callable[[], Answer], *, failures: int = 3, retries: int = 0, seconds: float = 0.0
    ) -> None:
        self.answer = answer
        self.site = Site(lambda request: self.answer(), seconds=seconds)
        settings = HttpSettings(retries=retries, breaker_failures=failures, breaker_seconds=30)
        self.hosts = Hosts(WebSettings(settings))
        self.fetcher = RetryFetcher(self.site, self.hosts)

    async def ask(self, times: int = 1, url: str = A) -> list[str]:
        """What came of requests one after the other: a status, or the name of an error."""
        return [await self._one(url) for _ in range(times)]

    async def _one(self, url: str) -> str:
        try:
            return str((await self.fetcher.fetch(Request(url))).status)
        except WebError as error:
            return type(error).__name__

    def state(self) -> str:
        return self.hosts.at(A).breaker.state(asyncio.get_running_loop().time())


def broken() -> Answer:
    return ConnectionFailedError("connection refused")


FAILURES: list[Callable[[], Answer]] = [
    broken,
    lambda: ResponseTimeoutError("too slow"),
    lambda: answer(500),
    lambda: answer(503),
    lambda: answer(599),
]
NO_FAILURES: list[Callable[[], Answer]] = [
    lambda: answer(200),
    lambda: answer(404),
    lambda: answer(429),
    lambda: answer(501),
    lambda: answer(505),
    lambda: BadResponseError("no sense"),
    lambda: RobotsRefusedError("no"),
]


@pytest.mark.parametrize("failure", FAILURES)
def test_it_opens_after_so_many_failures_in_a_row(failure: Callable[[], Answer]) -> None:
    async def main() -> None:
        switch = Switch(failure)
        assert "CircuitOpenError" not in await switch.ask(2)
        assert switch.state() == "closed"
        await switch.ask()
        assert switch.state() == "open"

    run(main())


def test_that_it_opens_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        await Switch(broken).ask(5)

    run(main())
    assert caplog.messages == [
        "a.example is left alone after 3 failures in a row, the last: connection refused; "
        "one request tries it in 30 s"
    ]


@pytest.mark.parametrize("other", NO_FAILURES)
def test_what_is_no_failure_of_the_host_does_not_open_it(other: Callable[[], Answer]) -> None:
    async def main() -> None:
        switch = Switch(other)
        assert "CircuitOpenError" not in await switch.ask(20)

    run(main())


def test_an_answer_in_between_starts_the_count_again() -> None:
    async def main() -> None:
        switch = Switch(broken)
        for _ in range(5):
            switch.answer = broken
            assert "CircuitOpenError" not in await switch.ask(2)
            switch.answer = answer
            assert await switch.ask() == ["200"]

    run(main())


def test_other_hosts_are_not_concerned() -> None:
    async def main() -> None:
        switch = Switch(broken)
        await switch.ask(3)
        assert await switch.ask(1, B) == ["ConnectionFailedError"]

    run(main())


def test_zero_failures_never_open_it() -> None:
    async def main() -> None:
        assert await Switch(broken, failures=0).ask(50) == ["ConnectionFailedError"] * 50

    run(main())


async def asked_at_once(switch: Switch, count: int) -> list[str]:
    return [each for found in await asyncio.gather(*(switch.ask() for _ in range(count))) for each in found]


def test_who_comes_while_it_is_open_waits_for_the_probe_and_follows_its_success() -> None:
    async def main() -> list[float]:
        switch = Switch(broken, seconds=1)
        await switch.ask(3)
        switch.answer = answer
        waiting = asyncio.create_task(asked_at_once(switch, 3))
        await asyncio.sleep(30.5)
        assert switch.state() == "half-open"
        late = asyncio.create_task(switch.ask())
        assert await waiting + await late == ["200"] * 4
        assert switch.state() == "closed"
        return switch.site.times()

    assert run(main()) == [0, 1, 2, 33, 34, 34, 34]


def test_who_waited_for_a_probe_that_failed_is_refused_and_so_is_who_comes_long_before_the_next() -> None:
    async def main() -> list[float]:
        switch = Switch(broken)
        await switch.ask(3)
        found = await asked_at_once(switch, 3)
        assert found == ["ConnectionFailedError", "CircuitOpenError", "CircuitOpenError"]
        await asyncio.sleep(29)
        assert await asked_at_once(switch, 3) == ["CircuitOpenError"] * 3
        await asyncio.sleep(1)
        switch.answer = answer
        assert await asked_at_once(switch, 3) == ["200"] * 3
        return switch.site.times()

    assert run(main()) == [0, 0, 0, 30, 90, 90, 90]


def test_nothing_is_held_while_the_probe_is_waited_for() -> None:
    async def main() -> None:
        switch = Switch(broken)
        await switch.ask(3)
        allowance = Allowance(1)
        fetcher = RetryFetcher(HostQueueFetcher(switch.site, switch.hosts), switch.hosts)
        tasks = [asyncio.create_task(fetcher.fetch(Request(A, permit=allowance))) for _ in range(5)]
        await asyncio.sleep(15)
        host = switch.hosts.at(A)
        assert (allowance.asked, host.slots.used, host.aside, host.inside) == ([], 0, 5, 0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (host.aside, host.users) == (0, 0)

    run(main())


def test_the_refusal_says_since_when_and_why_and_until_when() -> None:
    async def main() -> None:
        switch = Switch(broken)
        await switch.ask(4)
        await asyncio.sleep(12)
        with pytest.raises(CircuitOpenError) as caught:
            await switch.fetcher.fetch(Request("http://user:secret@a.example/page"))
        message = str(caught.value)
        assert message.startswith("http://a.example/page: a.example is left alone since 20")
        assert "after 4 failures in a row, the last: connection refused; until 20" in message
        assert message.endswith("(for 48 s more)")
        assert caught.value.attempts == 0
        assert not caught.value.sent

    run(main())


def test_while_probes_fail_it_stays_open_twice_as_long_up_to_ten_times() -> None:
    async def main() -> list[float]:
        switch = Switch(broken)
        await switch.ask(3)
        for _ in range(10 * 200):
            await asyncio.sleep(1)
            await switch.ask()
        times = switch.site.times()[2:]
        return [later - earlier for earlier, later in pairwise(times)]

    assert run(main())[:7] == [30, 60, 120, 240, 300, 300, 300]


def test_after_a_success_it_starts_anew() -> None:
    async def main() -> list[float]:
        switch = Switch(broken)
        await switch.ask(4)
        await asyncio.sleep(60)
        switch.answer = answer
        await switch.ask()
        switch.answer = broken
        assert await switch.ask(5) == ["ConnectionFailedError"] * 4 + ["CircuitOpenError"]
        return switch.site.times()

    assert run(main()) == [0, 0, 0, 30, 90, 90, 90, 90, 120]


def test_what_was_under_way_when_it_opened_changes_nothing() -> None:
    async def main() -> None:
        answers: list[Answer] = [broken(), broken(), broken(), answer(), broken()]
        delays = iter([1, 1, 1, 2, 3])

        class Late:
            async def fetch(self, request: Request) -> Response:
                number = int(next(delays))
                found = answers.pop(0)
                await asyncio.sleep(number)
                if isinstance(found, Exception):
                    raise found
                assert isinstance(found, Response)
                return found

            async def close(self) -> None:
                pass

        switch = Switch(broken)
        fetcher = RetryFetcher(Late(), switch.hosts)
        await asyncio.gather(*(fetcher.fetch(Request(A)) for _ in range(5)), return_exceptions=True)
        assert switch.hosts.at(A).breaker.until() == 31
        assert switch.state() == "open"

    run(main())


@pytest.mark.parametrize("outcome", ["cancelled", "refused"])
def test_a_probe_that_says_nothing_leaves_the_next_one_to_try(outcome: str) -> None:
    async def main() -> None:
        switch = Switch(broken, seconds=1)
        await switch.ask(3)
        await asyncio.sleep(30)
        switch.answer = lambda: RobotsRefusedError("no")
        probe = asyncio.create_task(switch.ask())
        await asyncio.sleep(0.5)
        if outcome == "cancelled":
            probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        assert switch.state() == "half-open"
        switch.answer = answer
        assert await switch.ask() == ["200"]
        assert switch.state() == "closed"

    run(main())


def test_an_odd_answer_to_the_probe_is_an_answer() -> None:
    async def main() -> None:
        switch = Switch(broken)
        await switch.ask(3)
        await asyncio.sleep(30)
        switch.answer = lambda: BadResponseError("no sense")
        assert await switch.ask() == ["BadResponseError"]
        assert switch.state() == "closed"

    run(main())


# --- one bad page is not a bad host -------------------------------------------------------------


async def in_order(fetch: Callable[[str], Coroutine[Any, Any, str]], count: int, window: int) -> Counter[str]:
    """What became of so many pages, of which none is asked for before those a window behind are there."""
    found: Counter[str] = Counter()
    under_way: deque[asyncio.Task[str]] = deque()
    for number in range(1, count + 1):
        if len(under_way) == window:
            found[await under_way.popleft()] += 1
        under_way.append(asyncio.create_task(fetch(f"{A}{number}")))
    for task in under_way:
        found[await task] += 1
    return found


def page(url: str) -> int:
    number = int(url.removeprefix(A))
    return 404 if number % 7 == 0 else 500 if number % 11 == 0 else 200


@pytest.mark.parametrize("seed", range(5))
def test_bad_pages_of_a_fine_host_cost_no_other_pages(seed: int) -> None:
    async def main() -> Counter[str]:
        site = Site(lambda request: answer(page(request.url)), seconds=0.01)
        settings = WebSettings(HttpSettings(robots=False))
        async with Client.open(settings, random=Random(seed), network=site) as client:

            async def fetch(url: str) -> str:
                try:
                    return str((await client.fetch(Request(url))).status)
                except WebError as error:
                    return type(error).__name__

            # In order, the good pages are soon there, and all that is sent are bad ones again.
            return await in_order(fetch, 2000, settings.http.window_rows)

    assert run(main()) == Counter(str(page(f"{A}{number}")) for number in range(1, 2001))


def test_a_request_counts_once_however_often_it_is_repeated() -> None:
    async def main() -> None:
        switch = Switch(lambda: answer(503), failures=3, retries=3)
        for state in ("closed", "closed", "open"):
            assert await switch.ask() == ["503"]
            assert switch.state() == state
        assert len(switch.site.sent) == 12

    run(main())


def test_a_request_that_is_saved_by_a_retry_is_no_failure() -> None:
    async def main() -> None:
        answers = [answer(503), answer()] * 10
        switch = Switch(lambda: answers.pop(0), failures=1, retries=1)
        assert await switch.ask(10) == ["200"] * 10

    run(main())
