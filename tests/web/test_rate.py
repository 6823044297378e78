"""The pace of a host: never more than rate + burst in any second, whoever sends and however long it took."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.testing import run
from aioflow.web.errors import ConnectionFailedError, WebError
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts, RateLimiter
from aioflow.web.http import Request, Response
from aioflow.web.retries import RetryFetcher
from aioflow.web.robots import RobotsFetcher
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings
from tests.web.scripted import Allowance, Site, answer


def most_in_a_second(times: list[float]) -> int:
    times = sorted(times)
    return max((sum(start <= when <= start + 1 for when in times) for start in times), default=0)


async def send(
    pace: RateLimiter, sent: list[tuple[float, str]], name: str = "", *, urgent: bool = False
) -> None:
    """Take turns until something is sent."""
    loop = asyncio.get_running_loop()
    place = pace.place(urgent)
    while True:
        await pace.turn(place)
        if pace.send(loop.time()):
            sent.append((loop.time(), name))
            return
        pace.give_back()


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    async def main() -> list[float]:
        pace, sent = RateLimiter(4, 3), list[tuple[float, str]]()
        await asyncio.gather(*(send(pace, sent) for _ in range(7)))
        return [when for when, _ in sent]

    assert run(main()) == [0, 0, 0, 0.25, 0.5, 0.75, 1]


def test_a_burst_is_not_saved_up_for_longer_than_it_is() -> None:
    async def main() -> list[float]:
        pace, sent = RateLimiter(1, 2), list[tuple[float, str]]()
        await asyncio.sleep(1000)
        await asyncio.gather(*(send(pace, sent) for _ in range(4)))
        return [when for when, _ in sent]

    assert run(main()) == [1000, 1000, 1001, 1002]


def test_without_a_rate_only_a_pause_is_waited_for() -> None:
    async def main() -> list[float]:
        pace, sent = RateLimiter(None, 1), list[tuple[float, str]]()
        assert pace.is_free(0)
        pace.pause(5)
        pace.pause(3)
        assert not pace.is_free(0)
        await asyncio.gather(*(send(pace, sent) for _ in range(3)))
        return [when for when, _ in sent]

    assert run(main()) == [5, 5, 5]


def test_a_pause_holds_for_those_who_wait_already() -> None:
    async def main() -> list[float]:
        pace, sent = RateLimiter(1, 1), list[tuple[float, str]]()
        tasks = [asyncio.create_task(send(pace, sent)) for _ in range(3)]
        await asyncio.sleep(0.5)
        pace.pause(10)
        await asyncio.gather(*tasks)
        return [when for when, _ in sent]

    assert run(main()) == [0, 10, 11]


def test_urgent_ones_go_first_and_the_others_in_order() -> None:
    async def main() -> list[str]:
        pace, sent = RateLimiter(1, 1), list[tuple[float, str]]()
        names = ("a", "b", "c", "u1", "d", "u2")
        await asyncio.gather(*(send(pace, sent, name, urgent=name.startswith("u")) for name in names))
        return [name for _, name in sent]

    assert run(main()) == ["a", "u1", "u2", "b", "c", "d"]


def test_turns_that_were_given_back_are_given_to_the_next() -> None:
    async def main() -> list[float]:
        pace, sent = RateLimiter(0.1, 1), list[tuple[float, str]]()
        await pace.turn(pace.place(False))
        others = [asyncio.create_task(send(pace, sent)) for _ in range(2)]
        await asyncio.sleep(3)
        pace.give_back()
        await asyncio.gather(*others)
        return [when for when, _ in sent]

    assert run(main()) == [3, 13]


@pytest.mark.parametrize("seed", range(30))
def test_cancelled_waits_cost_the_others_no_time(seed: int) -> None:
    async def main() -> tuple[list[float], int]:
        pace, sent = RateLimiter(1, 1), list[tuple[float, str]]()
        random = Random(seed)
        tasks = [asyncio.create_task(send(pace, sent)) for _ in range(10)]
        await asyncio.sleep(random.choice([0, 0.5, 1, 2]))
        for task in random.sample(tasks, 4):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [when for when, _ in sent], pace.waiting

    times, waiting = run(main(), seed=seed)
    assert waiting == 0
    assert times == [float(second) for second in range(len(times))]


def test_who_no_longer_waits_is_not_remembered() -> None:
    async def main() -> tuple[int, int]:
        pace = RateLimiter(None, 1)
        pace.pause(3600)
        tasks = [asyncio.create_task(send(pace, [])) for _ in range(10)]
        await asyncio.sleep(1)
        before = pace.waiting
        for task in tasks[3:6]:
            task.cancel()
        await asyncio.wait(tasks[3:6])
        after = pace.waiting
        await asyncio.gather(*tasks, return_exceptions=True)
        return before, after

    assert run(main()) == (10, 7)


def test_a_slower_pace_counts_from_what_was_sent_last() -> None:
    async def main() -> list[float]:
        pace, sent = RateLimiter(None, 1), list[tuple[float, str]]()
        await send(pace, sent)
        await asyncio.sleep(2)
        pace.change(10, 1, 2.0)
        await asyncio.gather(send(pace, sent), send(pace, sent))
        return [when for when, _ in sent]

    assert run(main()) == [0, 10, 20]


def test_a_faster_pace_holds_at_once_for_those_who_wait() -> None:
    async def main() -> list[float]:
        pace, sent = RateLimiter(0.1, 1), list[tuple[float, str]]()
        tasks = [asyncio.create_task(send(pace, sent)) for _ in range(3)]
        await asyncio.sleep(2)
        pace.change(0, 1, 2.0)
        await asyncio.gather(*tasks)
        return [when for when, _ in sent]

    assert run(main()) == [0, 2, 2]


# --- the whole way: random arrivals, slow permits, several hosts, failures, robots.txt, cancelling ---

HOSTS = ("http://a.example", "http://b.example", "https://a.example")

ARRIVALS = st.lists(
    st.tuples(
        st.floats(0, 3),  # when
        st.integers(0, len(HOSTS) - 1),
        st.booleans(),  # urgent
        st.none() | st.floats(0, 2),  # cancelled after
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=150)
@given(
    arrivals=ARRIVALS,
    rate=st.floats(0.3, 12),
    burst=st.integers(1, 4),
    concurrency=st.integers(1, 6),
    permits=st.integers(1, 4),
    robots=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_no_host_ever_gets_more_than_rate_and_burst_in_any_second(
    arrivals: list[tuple[float, int, bool, float | None]],
    rate: float,
    burst: int,
    concurrency: int,
    permits: int,
    robots: bool,
    seed: int,
) -> None:
    web = WebSettings(HttpSettings(rate=rate, burst=burst, concurrency=concurrency, robots=robots))
    random = Random(seed)

    def respond(request: Request) -> Response | Exception:
        if request.url.endswith("/robots.txt"):
            return answer(body=b"User-agent: *\nDisallow: /never")
        kind = random.random()
        if kind < 0.2:
            return ConnectionFailedError("broken")
        return answer(503, {"Retry-After": "0.3"} if kind < 0.3 else {}) if kind < 0.4 else answer()

    async def main() -> Site:
        site, allowance, hosts = Site(respond, seconds=0.2), Allowance(permits), Hosts(web)
        fetcher = RetryFetcher(RobotsFetcher(HostQueueFetcher(site, hosts), hosts), hosts, Random(seed))

        async def one(when: float, host: int, urgent: bool, patience: float | None) -> None:
            await asyncio.sleep(when)
            try:
                async with asyncio.timeout(patience):
                    await fetcher.fetch(Request(f"{HOSTS[host]}/page", urgent=urgent, permit=allowance))
            except (TimeoutError, WebError):
                pass

        await asyncio.gather(*(one(*arrival) for arrival in arrivals))
        assert allowance.held == 0
        for host in hosts:
            assert (host.slots.used, host.pace.waiting, host.inside, host.users) == (0, 0, 0, 0)
        return site

    site = run(main(), seed=seed)
    for host in HOSTS:
        assert most_in_a_second(site.times(host + "/")) <= rate + burst


@settings(deadline=None, max_examples=60)
@given(
    arrivals=st.lists(st.floats(0, 5), min_size=2, max_size=25),
    delay=st.floats(0.5, 8),
    seed=st.integers(0, 2**32),
)
def test_a_crawl_delay_lies_between_any_two_requests(arrivals: list[float], delay: float, seed: int) -> None:
    async def main() -> list[float]:
        site = Site(lambda request: answer(body=f"User-agent: *\nCrawl-delay: {delay}".encode()), seconds=0.1)
        hosts = Hosts(WebSettings(HttpSettings(burst=3, concurrency=5)))
        fetcher = RobotsFetcher(HostQueueFetcher(site, hosts), hosts)

        async def one(when: float) -> None:
            await asyncio.sleep(when)
            await fetcher.fetch(Request("http://a.example/page"))

        await asyncio.gather(*map(one, arrivals))
        return site.times()

    times = run(main(), seed=seed)
    assert len(times) == len(arrivals) + 1
    assert all(later - earlier >= delay - 1e-9 for earlier, later in pairwise(times))


def test_hosts_take_their_own_settings_before_the_common_ones() -> None:
    def effective(own: HostSettings, **common: Any) -> tuple[float | None, int]:
        hosts = Hosts(WebSettings(HttpSettings(**common), {"a.example": own}))
        host = hosts.at("https://A.example/x")
        return host.pace.rate, host.slots.count

    assert effective(HostSettings()) == (None, 2)
    assert effective(HostSettings(), rate=5, concurrency=3) == (5, 3)
    assert effective(HostSettings(rate=2, concurrency=9), rate=5, concurrency=3) == (2, 9)
    assert effective(HostSettings(rate=0), rate=5) == (None, 2)


def test_settings_with_a_port_are_for_that_port() -> None:
    web = WebSettings(
        HttpSettings(), {"a.example": HostSettings(rate=1), "a.example:8080": HostSettings(rate=3)}
    )
    hosts = Hosts(web)
    rates = [hosts.at(f"http://a.example{port}/").pace.rate for port in ("", ":80", ":8080", ":81")]
    assert rates == [1, 1, 3, 1]
    assert [host.key for host in hosts] == ["a.example:80", "a.example:8080", "a.example:81"]
