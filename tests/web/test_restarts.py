"""Slow requests are sent again: by which rule, to whom, how often at most, and what is left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import aioflow
from aioflow.restart.policies import read_policy
from aioflow.testing import run
from aioflow.web.errors import ConnectionFailedError
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts
from aioflow.web.http import Request, Response
from aioflow.web.latency_store import read_records
from aioflow.web.restarts import RestartFetcher
from aioflow.web.retries import RetryFetcher
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings
from tests.web.scripted import Chunks, answer

A, B = "http://a.example/", "http://b.example/"


class Source:
    """Answers after the seconds that are given for each request in turn, the last for all that follow."""

    def __init__(self, *seconds: float | Exception) -> None:
        self._left: Iterator[float | Exception] = iter(seconds[:-1])
        self._last = seconds[-1]
        self.sent: list[tuple[float, str]] = []
        self.requests: list[Request] = []
        self.cancelled = 0
        self.under_way = 0
        self.statuses: list[int] = []
        self.bodies: list[Chunks] = []
        self.streams = False

    async def fetch(self, request: Request) -> Response:
        number = len(self.sent)
        self.sent.append((asyncio.get_running_loop().time(), request.url))
        self.requests.append(request)
        found = next(self._left, self._last)
        self.under_way += 1
        try:
            await asyncio.sleep(1.0 if isinstance(found, Exception) else found)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        if isinstance(found, Exception):
            raise found
        status = self.statuses.pop(0) if self.statuses else 200
        body: Any = str(number).encode()
        if self.streams:
            body = Chunks(body)
            self.bodies.append(body)
        response = answer(status, body=body)
        response.url = request.url
        return response

    def becomes(self, seconds: float) -> None:
        self._left, self._last = iter(()), seconds

    async def close(self) -> None:
        """Nothing is open."""


class Scene:
    """A client's layers from restarts down to a source, on the clock of the loop."""

    def __init__(self, source: Source, *, own: dict[str, HostSettings] | None = None, **http: Any) -> None:
        settings = {"breaker_failures": 0, "restart_extra": 1.0, "latencies": False, "robots": False, **http}
        self.source = source
        self.hosts = Hosts(WebSettings(HttpSettings(**settings), own or {}))
        self.fetcher = RestartFetcher(HostQueueFetcher(source, self.hosts), self.hosts, Random(1))
        self.seconds: list[float] = []

    async def fetch(self, url: str = A, **request: Any) -> Response:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        response = await self.fetcher.fetch(Request(url, **request))
        self.seconds.append(loop.time() - begun)
        return response

    async def many(self, count: int, url: str = A, **request: Any) -> None:
        for _ in range(count):
            await self.fetch(url, **request)

    @property
    def extra(self) -> int:
        return sum(host.counters.extra for host in self.hosts)


def scene(*seconds: float | Exception, **settings: Any) -> Scene:
    return Scene(Source(*seconds), **settings)


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


# --- one slow request -----------------------------------------------------------------------------


def test_a_slow_request_is_given_up_and_sent_again() -> None:
    async def main() -> None:
        here = scene(60, 1, restart="5")
        response = await here.fetch()
        assert (response.body, here.source.cancelled, here.extra) == (b"1", 1, 1)
        assert here.seconds == [pytest.approx(6, rel=0.02)]
        assert not others()

    run(main())


def test_a_hedge_keeps_the_first_request_running() -> None:
    async def main() -> None:
        here = scene(7, 60, restart="hedge 5")
        response = await here.fetch()
        assert (response.body, here.source.cancelled, here.extra) == (b"0", 1, 1)
        assert here.seconds == [pytest.approx(7, rel=0.02)]
        assert not others()

    run(main())


def test_the_faster_second_request_of_a_hedge_wins() -> None:
    async def main() -> None:
        here = scene(60, 1, restart="hedge 5")
        response = await here.fetch()
        assert (response.body, here.source.cancelled) == (b"1", 1)
        assert (here.source.under_way, others()) == (0, set())

    run(main())


def test_requests_that_are_fast_enough_are_left_alone() -> None:
    async def main() -> None:
        here = scene(4, restart="5")
        await here.many(20)
        assert (len(here.source.sent), here.extra) == (20, 0)

    run(main())


@pytest.mark.parametrize("rule", ["off", "p95", "auto"])
def test_without_a_rule_or_knowledge_the_answer_is_waited_for(rule: str) -> None:
    async def main() -> None:
        here = scene(600, restart=rule, total_seconds=1000.0)
        await here.fetch()
        assert len(here.source.sent) == 1

    run(main())


def test_a_request_is_sent_again_at_most_so_often() -> None:
    async def main() -> None:
        here = scene(60, restart="5", restarts=3, restart_extra=10.0)
        await here.fetch()
        assert len(here.source.sent) == 4
        assert here.seconds == [pytest.approx(3 * 5 + 60, rel=0.02)]

    run(main())


@pytest.mark.parametrize("rule", ["5", "hedge 5"])
def test_only_requests_that_are_safe_to_repeat_are_sent_again(rule: str) -> None:
    async def main() -> None:
        here = scene(60, restart=rule)
        await here.fetch(method="POST", is_safe=False)
        assert len(here.source.sent) == 1

    run(main())


def test_the_rule_of_a_request_stands_above_that_of_its_host() -> None:
    async def main() -> None:
        here = scene(60, 1, 60, restart="5", own={"b.example": HostSettings(restart="off")})
        await here.fetch(restart=read_policy("20"))
        assert here.seconds == [pytest.approx(21, rel=0.02)]
        await here.fetch(restart=read_policy("off"))
        await here.fetch(B)
        assert len(here.source.sent) == 4

    run(main())


def test_the_error_of_the_last_attempt_is_raised() -> None:
    async def main() -> None:
        here = scene(60, ConnectionFailedError("broken"), restart="5")
        with pytest.raises(ConnectionFailedError):
            await here.fetch()
        assert not others()

    run(main())


def test_a_hedge_survives_the_failure_of_one_of_its_requests() -> None:
    async def main() -> None:
        here = scene(9, ConnectionFailedError("broken"), restart="hedge 5")
        response = await here.fetch()
        assert response.body == b"0"

    run(main())


def test_bodies_of_attempts_that_lose_are_closed() -> None:
    async def main() -> None:
        here = scene(7, 2, restart="hedge 5")  # both answer at the same moment
        here.source.streams = True
        response = await here.fetch()
        winner = int(await response.read())
        await response.close()
        assert all(body.is_closed for number, body in enumerate(here.source.bodies) if number != winner)

    run(main())


@pytest.mark.parametrize("after", [1.0, 5.2, 5.5, 8.0])
@pytest.mark.parametrize("rule", ["5", "hedge 5"])
def test_a_cancelled_request_leaves_nothing(rule: str, after: float) -> None:
    async def main() -> None:
        here = scene(60, restart=rule, own={"a.example": HostSettings(concurrency=2)})
        task = asyncio.ensure_future(here.fetch())
        await asyncio.sleep(after)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (here.source.under_way, others()) == (0, set())
        host = here.hosts.at(A)
        assert (host.in_flight, host.users, host.inside) == (0, 0, 0)

    run(main())


# --- politeness -----------------------------------------------------------------------------------


def test_extra_requests_are_capped() -> None:
    async def main() -> None:
        here = scene(60, restart="5", restart_extra=0.05)
        await here.many(400)
        assert here.extra <= 0.05 * 400
        assert here.extra >= 0.05 * 400 - 2

    run(main())


def test_extra_requests_keep_to_the_rate_of_their_host() -> None:
    async def main() -> None:
        here = scene(60, restart="5", own={"a.example": HostSettings(rate=0.1, burst=1)})
        await asyncio.gather(*(here.fetch() for _ in range(10)))
        times = sorted(when for when, _ in here.source.sent)
        assert all(later - earlier >= 9.99 for earlier, later in pairwise(times))

    run(main())


def test_a_slow_request_does_not_wait_for_the_rate_to_be_sent_again() -> None:
    async def main() -> None:
        here = scene(60, restart="5", own={"a.example": HostSettings(rate=0.01, burst=1)})
        await here.fetch()
        assert here.extra == 0

    run(main())


def test_attempts_take_slots_of_their_host() -> None:
    async def main() -> None:
        here = scene(60, restart="hedge 5", own={"a.example": HostSettings(concurrency=1)})
        await here.many(3)
        assert here.extra == 0  # the only slot is taken by the first attempt

    run(main())


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_host_in_trouble_is_sent_nothing_extra(status: int) -> None:
    async def main() -> None:
        here = scene(1, 60, restart="5")
        here.source.statuses = [status]
        await here.fetch()
        await here.fetch()  # it is slow, but the host was in trouble just now
        assert here.extra == 0
        await asyncio.sleep(40)
        await here.fetch()
        assert here.extra > 0

    run(main())


def test_a_host_that_is_slow_for_all_is_sent_nothing_extra() -> None:
    async def main() -> None:
        here = scene(*[1.0] * 200, 60, restart="5", restarts=1)
        await here.many(300)
        assert 1 <= here.extra <= 5  # until it is clear that all are slow

    run(main())


# --- learning -------------------------------------------------------------------------------------


def bimodal(seed: int, count: int, slow: float = 20.0, share: float = 0.1) -> list[float]:
    random = Random(seed)
    return [slow if random.random() < share else random.uniform(0.9, 1.1) for _ in range(count)]


def test_auto_asks_again_once_the_gain_is_certain() -> None:
    async def main() -> None:
        here = scene(*bimodal(1, 3000), restart="auto")
        await here.many(40)
        assert here.extra == 0
        await here.many(1000)
        assert here.extra > 60
        late = here.seconds[-500:]
        assert sum(late) / len(late) < 1.6  # 2.9 without

    run(main())


def test_auto_never_asks_an_even_source_again() -> None:
    async def main() -> None:
        random = Random(2)
        here = scene(*[random.uniform(1.0, 3.0) for _ in range(2000)], restart="auto")
        await here.many(1500)
        assert here.extra == 0

    run(main())


def test_auto_is_off_where_second_attempts_are_as_slow_as_the_first() -> None:
    async def main() -> None:
        """Every tenth page is heavy, whoever asks for it."""
        here = scene(1.0, restart="auto")
        random = Random(3)
        heavy = {f"{A}{number}" for number in range(3000) if random.random() < 0.1}

        async def fetch(request: Request) -> Response:
            here.source.sent.append((asyncio.get_running_loop().time(), request.url))
            await asyncio.sleep(20.0 if request.url in heavy else random.uniform(0.9, 1.1))
            response = answer()
            response.url = request.url
            return response

        here.source.fetch = fetch  # type: ignore[method-assign]
        for number in range(3000):
            await here.fetch(f"{A}{number}")
        first, last = here.extra, len(here.source.sent)
        assert last - 3000 == first
        assert first < 60  # it tried, saw that nothing is gained, and stopped

    run(main())


def test_pages_of_each_wrapper_have_latencies_of_their_own() -> None:
    async def main() -> None:
        here = scene(1.0, restart="p90", restarts=1)
        await here.many(60, kind="fast")
        here.source.becomes(9)
        await here.many(60, kind="slow")
        assert here.extra == 0
        await here.fetch(kind="fast")
        assert here.extra == 1

    run(main())


def test_a_percentile_follows_the_latencies() -> None:
    async def main() -> None:
        random = Random(4)
        here = scene(*[random.uniform(0.0, 10.0) for _ in range(1000)], 1, restart="p95", restarts=1)
        await here.many(500)
        here.source.becomes(60)
        await here.fetch()
        assert here.seconds[-1] == pytest.approx(9.5 + 60, rel=0.02)

    run(main())


# --- mirrors --------------------------------------------------------------------------------------


def mirrored(rule: str = "5", **more: Any) -> dict[str, HostSettings]:
    return {"a.example": HostSettings(restart=rule, mirrors=("b.example",), **more)}


async def learn(here: Scene, count: int = 200) -> None:
    await here.many(count)


def test_mirrors_are_asked_first_where_they_are_faster() -> None:
    async def main() -> None:
        here = scene(1.0, own=mirrored("auto"))

        async def fetch(request: Request) -> Response:
            here.source.sent.append((0.0, request.url))
            await asyncio.sleep(1.0 if request.url.startswith(B) else 3.0)
            response = answer()
            response.url = request.url
            return response

        here.source.fetch = fetch  # type: ignore[method-assign]
        await learn(here, 1500)
        last = [url for _, url in here.source.sent[-300:]]
        assert sum(url.startswith(B) for url in last) > 280
        assert (await here.fetch()).url == A  # whoever answered, the page is the asked one

    run(main())


@pytest.mark.parametrize(
    "request_settings", [{"headers": {"Authorization": "Bearer x"}}, {"headers": {"Cookie": "a=1"}}]
)
def test_what_is_meant_for_a_host_goes_to_no_mirror(request_settings: dict[str, Any]) -> None:
    async def main() -> None:
        here = scene(60, own=mirrored("auto"))
        await here.many(300, **request_settings)
        assert {url for _, url in here.source.sent} == {A}

    run(main())


def test_a_mirror_that_fails_is_replaced_by_the_asked_host() -> None:
    async def main() -> None:
        here = scene(1.0, own=mirrored("auto"))

        async def fetch(request: Request) -> Response:
            if request.url.startswith(B):
                raise ConnectionFailedError("no such host")
            await asyncio.sleep(1.0)
            response = answer()
            response.url = request.url
            return response

        here.source.fetch = fetch  # type: ignore[method-assign]
        await here.many(300)  # none of them fails

    run(main())


@pytest.mark.parametrize("status", [403, 404, 410, 500])
def test_only_the_asked_host_says_that_a_page_is_not_there(status: int) -> None:
    async def main() -> None:
        here = scene(1.0, own=mirrored("auto"))
        has_page = True

        async def fetch(request: Request) -> Response:
            here.source.sent.append((0.0, request.url))
            is_mirror = request.url.startswith(B)
            await asyncio.sleep(1.0 if is_mirror else 3.0)
            response = answer(status if is_mirror and not has_page else 200, body=request.url.encode())
            response.url = request.url
            return response

        here.source.fetch = fetch  # type: ignore[method-assign]
        await here.many(600)
        has_page = False  # it is new, and the mirror does not have it yet
        before = len(here.source.sent)
        found = [await here.fetch() for _ in range(20)]
        assert {(each.status, each.body) for each in found} == {(200, A.encode())}
        assert any(url.startswith(B) for _, url in here.source.sent[before:])

    run(main())


# --- between runs ---------------------------------------------------------------------------------


def test_latencies_are_kept_between_runs(tmp_path: Path) -> None:
    file = tmp_path / "latencies.sqlite"

    async def main(seed: int, count: int) -> int:
        here = scene(*bimodal(seed, 2000), restart="auto", latencies=file)
        try:
            await here.many(count, kind="search")
        finally:
            await here.fetcher.close()
        return here.extra

    run(main(1, 400))
    assert run(main(2, 40)) > 0  # it knows from the first request
    (record,) = read_records(file)
    assert (record.host, record.kind, record.counts.requests) == ("a.example:80", "search", 440)
    assert record.counts.extra > 0


def test_a_file_of_latencies_that_cannot_be_used_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "latencies.sqlite"
    file.write_bytes(b"this is something else entirely" * 100)

    async def main() -> None:
        here = scene(1, restart="auto", latencies=file)
        try:
            await here.many(250)
        finally:
            await here.fetcher.close()

    with caplog.at_level(logging.WARNING):
        run(main())
    assert len(caplog.records) == 1
    assert "latencies are not kept" in caplog.text
    assert file.read_bytes().startswith(b"this is something else")


# --- with the other layers ------------------------------------------------------------------------


def test_failures_are_retried_above_restarts() -> None:
    async def main() -> None:
        here = scene(60, ConnectionFailedError("broken"), 1, restart="5", retries=2)
        retrying = RetryFetcher(here.fetcher, here.hosts, Random(1))
        response = await retrying.fetch(Request(A))
        assert (response.body, response.attempts) == (b"2", 2)

    run(main())


def test_a_page_counts_as_slow_until_its_body_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [Chunks(b"slow", b"ly", seconds=60.0), Chunks(b"fast")]

    class Slow(Source):
        async def fetch(self, request: Request) -> Response:
            response = await super().fetch(request)
            response.body = bodies[len(self.sent) - 1]
            return response

    source = Slow(1)
    monkeypatch.setattr("aioflow.web.transport.Transport", lambda *_, **__: source)
    configuration = {"http": {"restart_extra": 1, "robots": False, "latencies": False}}

    async def main() -> list[Any]:
        async with aioflow.Engine(configuration=configuration) as engine:
            return [row async for row in engine.stream(aioflow.loads(PLAN), numbers=[{"n": 1}])]

    assert [row["text"] for row in run(main())] == ["fast"]
    assert bodies[0].is_closed


PLAN = """
WRAPPER page (n)
{
  GET: "http://a.example/{n}"
  RESTART: 5
  READ: text
  text: "(?s).*"
}
PLAN p
{
  INPUT: numbers (n number)
  OUTPUT: out
  BODY { wrapper ("page", numbers : out) }
}
"""


def test_a_wrapper_says_by_what_rule_its_requests_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(60, 1)
    monkeypatch.setattr("aioflow.web.transport.Transport", lambda *_, **__: source)
    configuration = {"http": {"restart_extra": 1, "robots": False, "latencies": False}}

    async def main() -> tuple[list[Any], str]:
        async with aioflow.Engine(configuration=configuration) as engine:
            rows = engine.stream(aioflow.loads(PLAN), numbers=[{"n": 1}])
            found = [row async for row in rows]
            return found, str(rows.account())

    found, account = run(main())
    assert [row["text"] for row in found] == ["1"]
    assert len(source.sent) == 2
    assert "1 given up as slow" in account


def test_the_rule_of_a_host_is_checked_with_its_settings() -> None:
    from aioflow.errors import InputError
    from aioflow.web.settings import web_settings

    with pytest.raises(InputError, match=r"host\.\"a\.example\"\.restart must be auto, off, seconds"):
        web_settings({"host": {"a.example": {"restart": "often"}}})
