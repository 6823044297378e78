"""What is counted for each host, and what readers of it see."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta

import pytest

from aioflow.testing import run
from aioflow.web.errors import (
    AddressRefusedError,
    CircuitOpenError,
    ConnectionFailedError,
    ResponseTimeoutError,
    WebError,
)
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts
from aioflow.web.http import Request
from aioflow.web.retries import RetryFetcher
from aioflow.web.robots import RobotsFetcher
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings
from aioflow.web.statistics import (
    FORGOTTEN,
    HostCounters,
    LatencyStatistics,
    SourceStatistics,
    Statistics,
    summarize,
)
from tests.web.scripted import Answer, Chunks, Site, answer

A, B = "http://a.example/", "http://b.example/"


class Scene:
    """All layers around answers by path."""

    def __init__(self, answers: dict[str, Answer], http: HttpSettings, seconds: float = 0.0) -> None:
        self.site = Site(lambda request: answers.get(request.url.removeprefix(A), answer()), seconds=seconds)
        self.hosts = Hosts(WebSettings(http, {"b.example": HostSettings(robots=False)}), idle_hosts=10)
        self.statistics = Statistics(self.hosts)
        inner = RobotsFetcher(HostQueueFetcher(self.site, self.hosts), self.hosts)
        self.fetcher = RetryFetcher(inner, self.hosts)

    async def fetch(self, *paths: str) -> None:
        for path in paths:
            with suppress(WebError):
                await (await self.fetcher.fetch(Request(A + path))).close()

    @property
    def a(self) -> SourceStatistics:
        found = self.statistics.source("a.example:80")
        assert found is not None
        return found


PLAIN = HttpSettings(robots=False, retries=0, breaker_failures=0)


def test_answers_failures_and_refusals_are_counted_by_kind() -> None:
    async def main() -> None:
        answers: dict[str, Answer] = {
            "ok": answer(body=b"12345"),
            "moved": answer(301),
            "gone": answer(410),
            "error": answer(500),
            "odd": answer(999),
            "broken": ConnectionFailedError("broken"),
            "slow": ResponseTimeoutError("slow"),
            "private": AddressRefusedError("private"),
        }
        scene = Scene(answers, PLAIN)
        await scene.fetch("ok", "ok", "moved", "gone", "error", "odd", "broken", "broken", "slow", "private")
        found = scene.a
        assert found.requests == 10
        assert found.answers == {"2xx": 2, "3xx": 1, "4xx": 1, "5xx": 1, "9xx": 1}
        assert found.failures == {"ConnectionFailedError": 2, "ResponseTimeoutError": 1}
        assert found.refused == {"AddressRefusedError": 1}
        assert found.bytes_in == 10
        assert (found.in_flight, found.waiting, found.cancelled, found.retries) == (0, 0, 0, 0)
        assert found.robots == "off"

    run(main())


def test_every_request_that_was_sent_is_accounted_for() -> None:
    async def main() -> None:
        scene = Scene(
            {"broken": ConnectionFailedError("broken"), "busy": answer(503)}, HttpSettings(), seconds=1
        )
        tasks = [
            asyncio.create_task(scene.fetch(path)) for path in ("broken", "busy", "x", "y", "broken", "z") * 5
        ]
        for step in range(100):
            found = scene.a if scene.hosts.known("a.example:80") else SourceStatistics("a.example:80")
            refused = sum(number for kind, number in found.refused.items() if kind != "CircuitOpenError")
            ended = sum(found.answers.values()) + sum(found.failures.values()) + refused + found.cancelled
            assert found.requests == ended + found.in_flight
            assert found.in_flight <= 2
            await asyncio.sleep(0.1)
            if step % 10 == 5:
                tasks[step // 10 * 2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert scene.a.cancelled > 0
        assert (scene.a.in_flight, scene.a.waiting) == (0, 0)

    run(main())


def test_retries_waiting_and_flight_are_seen_as_they_stand() -> None:
    async def main() -> None:
        scene = Scene({"busy": answer(503)}, HttpSettings(robots=False, concurrency=1), seconds=1)
        tasks = [asyncio.create_task(scene.fetch("x")) for _ in range(3)]
        await asyncio.sleep(0.5)
        assert (scene.a.in_flight, scene.a.waiting) == (1, 2)
        await asyncio.gather(*tasks)
        await scene.fetch("busy")
        assert (scene.a.retries, scene.a.requests) == (3, 3 + 4)

    run(main())


def test_a_streamed_body_counts_as_it_is_read() -> None:
    async def main() -> None:
        chunks = Chunks(b"123", b"4567", ConnectionFailedError("cut"))
        scene = Scene({"stream": answer(body=chunks)}, PLAIN)
        response = await scene.fetcher.fetch(Request(A + "stream", streamed=True))
        assert scene.a.bytes_in == 0
        with pytest.raises(ConnectionFailedError):
            await response.read()
        assert (scene.a.bytes_in, scene.a.failures) == (7, {"ConnectionFailedError": 1})

    run(main())


def test_pause_breaker_rate_and_robots_are_seen() -> None:
    async def main() -> None:
        answers: dict[str, Answer] = {
            "robots.txt": answer(body=b"User-agent: *\nDisallow: /x\nCrawl-delay: 4"),
            "busy": answer(429, {"Retry-After": "100"}),
            "broken": ConnectionFailedError("broken"),
        }
        scene = Scene(answers, HttpSettings(retries=0, breaker_failures=1, concurrency=3), seconds=1)
        assert scene.statistics.source("a.example:80") is None
        first = asyncio.create_task(scene.fetch("page"))
        await asyncio.sleep(0.5)
        assert (scene.a.robots, scene.a.waiting, scene.a.in_flight) == ("reading", 1, 1)
        await first
        await scene.fetch("x", "busy")
        found = scene.a
        assert (found.robots, found.rate, found.concurrency) == ("rules", 0.25, 3)
        assert found.refused == {"RobotsRefusedError": 1}
        assert found.paused_until is not None
        assert timedelta(seconds=95) < found.paused_until - datetime.now(UTC) <= timedelta(seconds=100)
        assert (found.breaker, found.breaker_until) == ("closed", None)
        await scene.fetch("broken", "broken", "page")
        found = scene.a
        assert (found.breaker, found.paused_until) == ("open", None)
        assert found.breaker_until is not None
        assert found.refused == {"RobotsRefusedError": 1, "CircuitOpenError": 1}

    run(main())


@pytest.mark.parametrize(("status", "state"), [(404, "absent"), (500, "unreachable")])
def test_a_robots_txt_that_is_none_is_seen(status: int, state: str) -> None:
    async def main() -> str:
        scene = Scene({"robots.txt": answer(status)}, HttpSettings())
        await scene.fetch("page")
        return scene.a.robots

    assert run(main()) == state


def test_latencies_are_those_of_the_last_answers() -> None:
    counters = HostCounters()
    for number in range(2500):
        counters.answered(200, float(number))
    assert counters.recent_latencies() == tuple(float(number) for number in range(1500, 2500))
    found = summarize(counters.recent_latencies())
    assert (found.p50, found.p90, found.p99, found.maximum) == (2000, 2400, 2490, 2499)


def test_latency_is_from_sending_to_the_answer() -> None:
    async def main() -> LatencyStatistics:
        scene = Scene({}, PLAIN, seconds=0.25)
        await asyncio.gather(*(scene.fetch("x") for _ in range(10)))
        return scene.a.latency

    assert run(main()) == LatencyStatistics(0.25, 0.25, 0.25, 0.25, (0.25,) * 10)


def test_what_is_shown_of_a_host_is_not_buried_under_its_latencies() -> None:
    source = SourceStatistics("a.example:80", latency=summarize([0.125] * 1000))
    assert source.latency.recent[-1] == 0.125
    assert "p99=0.125" in repr(source)
    assert len(repr(source)) < 500


def test_no_answer_has_no_latency() -> None:
    assert summarize(()) == LatencyStatistics(None, None, None, None, ())
    assert summarize((3.0,)) == LatencyStatistics(3, 3, 3, 3, (3.0,))


def test_hosts_that_are_forgotten_still_count_in_sum() -> None:
    async def main() -> None:
        scene = Scene({}, PLAIN)
        for number in range(100):
            await scene.fetcher.fetch(Request(f"http://h{number}.example/"))
        sources = scene.statistics.sources()
        assert len(sources) <= 11
        assert sources[-1].host == FORGOTTEN
        assert sum(source.requests for source in sources) == 100
        assert sum(source.answers["2xx"] for source in sources) == 100

    run(main())


def test_the_values_do_not_change() -> None:
    async def main() -> None:
        scene = Scene({}, PLAIN)
        await scene.fetch("x")
        before = scene.a
        await scene.fetch("x")
        assert (before.requests, before.answers) == (1, {"2xx": 1})
        with pytest.raises(FrozenInstanceError):
            before.requests = 7  # type: ignore[misc]

    run(main())


def test_a_refusal_by_the_breaker_sends_nothing() -> None:
    async def main() -> None:
        scene = Scene({"x": answer(500)}, HttpSettings(robots=False, retries=0, breaker_failures=1))
        await scene.fetch("x", "x")
        with pytest.raises(CircuitOpenError):
            await scene.fetcher.fetch(Request(A))
        assert scene.a.requests == 2

    run(main())
