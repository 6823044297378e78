"""The circuit breaker: who fails often in a row is left alone, tried by one, and trusted again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from aioflow.testing import run
from aioflow.web.errors import (
    BadResponseError,
    CircuitOpenError,
    ConnectionFailedError,
    ResponseTimeoutError,
    RobotsRefusedError,
    WebError,
)
from aioflow.web.hosts import Hosts
from aioflow.web.messages import Request, Response
from aioflow.web.retries import RetryFetcher
from aioflow.web.settings import HttpSettings, WebSettings
from tests.web.scripted import Answer, Site, answer

A, B = "http://a.example/", "http://b.example/"


class Switch:
    """A site that answers as it is told at the moment."""

    def __init__(self, answer: Callable[[], Answer], *, failures: int = 3, seconds: float = 0.0) -> None:
        self.answer = answer
        self.site = Site(lambda request: self.answer(), seconds=seconds)
        settings = HttpSettings(retries=0, breaker_failures=failures, breaker_seconds=30)
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
        assert "CircuitOpenError" not in await switch.ask(3)
        assert switch.state() == "open"
        assert await switch.ask(2) == ["CircuitOpenError"] * 2
        assert len(switch.site.sent) == 3

    run(main())


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


def test_the_refusal_says_since_when_and_why_and_until_when() -> None:
    async def main() -> None:
        switch = Switch(broken)
        await switch.ask(3)
        await asyncio.sleep(12)
        with pytest.raises(CircuitOpenError) as caught:
            await switch.fetcher.fetch(Request("http://user:secret@a.example/page"))
        message = str(caught.value)
        assert message.startswith("http://a.example/page: a.example is left alone since 20")
        assert "after 3 failures in a row, the last: connection refused; until 20" in message
        assert message.endswith("(for 18 s more)")
        assert caught.value.attempts == 0
        assert not caught.value.sent

    run(main())


def test_one_probe_is_sent_while_the_others_are_refused_and_its_success_closes() -> None:
    async def main() -> None:
        switch = Switch(broken, seconds=1)
        await switch.ask(3)
        await asyncio.sleep(30)
        assert switch.state() == "half-open"
        switch.answer = answer
        probe = asyncio.create_task(switch.ask())
        await asyncio.sleep(0.5)
        assert switch.state() == "half-open"
        with pytest.raises(CircuitOpenError, match="one request is trying it now"):
            await switch.fetcher.fetch(Request(A))
        assert await probe == ["200"]
        assert switch.state() == "closed"
        assert await switch.ask(3) == ["200"] * 3

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
        await switch.ask(3)
        await asyncio.sleep(30)
        await switch.ask()
        await asyncio.sleep(60)
        switch.answer = answer
        await switch.ask()
        switch.answer = broken
        assert await switch.ask(4) == ["ConnectionFailedError"] * 3 + ["CircuitOpenError"]
        await asyncio.sleep(29)
        assert await switch.ask() == ["CircuitOpenError"]
        await asyncio.sleep(1)
        return [float(name == "ConnectionFailedError") for name in await switch.ask()]

    assert run(main()) == [1]


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
