"""Turns: slots and permits are held while a host answers, at no other time; hosts are apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from aioflow.runtime.budget import current_run
from aioflow.testing import VirtualLoop, assert_nothing_left, run
from aioflow.web.errors import AddressRefusedError, CircuitOpenError, ConnectionFailedError, WebError
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts
from aioflow.web.http import BodyStream, Permit, Request, Response, Timing
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings
from tests.web.scripted import Allowance, Chunks, Site, answer

A, B = "http://a.example/", "http://b.example/"


def polite(
    site: Site,
    hosts: dict[str, HostSettings] | None = None,
    *,
    concurrency: int = 2,
    rate: float | None = None,
) -> tuple[HostQueueFetcher, Hosts]:
    state = Hosts(WebSettings(HttpSettings(concurrency=concurrency, rate=rate), hosts or {}))
    return HostQueueFetcher(site, state), state


def assert_all_released(hosts: Hosts, allowance: Allowance | None = None) -> None:
    for host in hosts:
        assert (host.slots.used, host.slots.waiting) == (0, 0)
        assert (host.pace.waiting, host.inside, host.in_flight, host.users) == (0, 0, 0, 0)
    if allowance is not None:
        assert (allowance.permits.used, allowance.permits.waiting) == (0, 0)


def test_a_host_gets_no_more_requests_at_once_than_it_should() -> None:
    async def main() -> None:
        site = Site(seconds=1)
        fetcher, hosts = polite(site, concurrency=3)
        await asyncio.gather(*(fetcher.fetch(Request(f"{A}{number}")) for number in range(10)))
        assert site.most_in_flight == 3
        assert site.times() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
        assert_all_released(hosts)

    run(main())


def test_one_host_is_one_whatever_its_spelling() -> None:
    async def main() -> None:
        site = Site(seconds=1)
        fetcher, hosts = polite(site, concurrency=1)
        spellings = [
            "http://a.example/x",
            "http://A.Example:80/y",
            "http://u:p@a.example?z",
            "http://a.example./",
        ]
        await asyncio.gather(*map(fetcher.fetch, map(Request, spellings)))
        assert site.most_in_flight == 1
        assert [host.key for host in hosts] == ["a.example:80"]

    run(main())


def test_urgent_requests_go_first() -> None:
    async def main(rate: float | None) -> list[str]:
        site = Site(seconds=1)
        fetcher, _ = polite(site, concurrency=1, rate=rate)
        names = ("a", "b", "u1", "c", "u2")
        requests = (Request(A + name, urgent=name.startswith("u")) for name in names)
        await asyncio.gather(*map(fetcher.fetch, requests))
        return [url.removeprefix(A) for url in site.urls]

    assert run(main(None)) == ["a", "u1", "u2", "b", "c"]
    assert run(main(0.5)) == ["a", "u1", "u2", "b", "c"]


def test_a_throttled_host_does_not_keep_another_waiting() -> None:
    async def main() -> None:
        site = Site(seconds=0.1)
        own = {"a.example": HostSettings(rate=1, concurrency=15), "b.example": HostSettings(concurrency=15)}
        fetcher, hosts = polite(site, own)
        allowance = Allowance(15)

        async def fetch(url: str) -> float:
            await fetcher.fetch(Request(url, permit=allowance))
            return asyncio.get_running_loop().time()

        slow = [asyncio.create_task(fetch(f"{A}{number}")) for number in range(500)]
        await asyncio.sleep(0.5)
        quick = await asyncio.gather(*(fetch(f"{B}{number}") for number in range(30)))
        assert max(quick) == pytest.approx(0.7)  # as if there were no other
        await asyncio.gather(*slow)
        assert site.times(A) == [float(second) for second in range(500)]
        assert_all_released(hosts, allowance)

    run(main())


def test_a_slow_host_holds_only_as_many_permits_as_it_may_have_requests() -> None:
    async def main() -> None:
        site = Site(seconds=100)
        fetcher, _ = polite(site)
        allowance = Allowance(15)
        slow = [asyncio.create_task(fetcher.fetch(Request(A, permit=allowance))) for _ in range(50)]
        await asyncio.sleep(1)
        assert (allowance.held, allowance.permits.waiting) == (2, 0)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    run(main())


def test_a_throttled_host_keeps_its_rate_while_permits_are_long_waited_for() -> None:
    async def main() -> None:
        site = Site(seconds=10)
        own = {"a.example": HostSettings(rate=1, concurrency=30), "b.example": HostSettings(concurrency=100)}
        fetcher, hosts = polite(site, own)
        allowance = Allowance(20)
        crowd = [asyncio.create_task(fetcher.fetch(Request(B, permit=allowance))) for _ in range(60)]
        await asyncio.sleep(0)
        await asyncio.gather(*(fetcher.fetch(Request(A, permit=allowance)) for _ in range(10)), *crowd)
        # All permits are free again at the same moment, and the first ten asked long ago.
        assert site.times(A) == [30.0 + second for second in range(10)]
        assert_all_released(hosts, allowance)

    run(main())


def test_who_misses_the_moment_keeps_the_place_in_the_line() -> None:
    async def main() -> list[tuple[float, str]]:
        site = Site()
        fetcher, _ = polite(site, concurrency=3, rate=1)
        allowance = Allowance(1)
        await allowance.permits.acquire()
        tasks = [asyncio.create_task(fetcher.fetch(Request(A + name, permit=allowance))) for name in "abcdef"]
        await asyncio.sleep(2.5)  # three have asked for a permit, and get it at the same moment
        allowance.permits.release()
        await asyncio.gather(*tasks)
        return [(when, url.removeprefix(A)) for when, url in site.sent]

    assert run(main()) == [(2.5 + number, name) for number, name in enumerate("abcdef")]


def test_who_is_cancelled_before_sending_leaves_the_moment_to_the_next() -> None:
    async def main() -> list[float]:
        site = Site()
        fetcher, _ = polite(site, rate=0.01)
        allowance = Allowance(1)
        await allowance.permits.acquire()
        first = asyncio.create_task(fetcher.fetch(Request(A, permit=allowance)))
        await asyncio.sleep(1)
        first.cancel()
        await asyncio.wait([first])
        await fetcher.fetch(Request(A))
        return site.times()

    assert run(main()) == [1]


def test_during_a_pause_nobody_asks_for_a_permit() -> None:
    async def main() -> int:
        site = Site(lambda request: answer(429, {"Retry-After": "30"}), seconds=1)
        fetcher, _ = polite(site, concurrency=1)
        allowance = Allowance(5)
        tasks = [asyncio.create_task(fetcher.fetch(Request(A, permit=allowance))) for _ in range(5)]
        await asyncio.sleep(20)
        asked = len(allowance.asked)
        await asyncio.gather(*tasks)
        return asked

    assert run(main()) == 1


def test_nothing_is_held_during_a_pause_and_all_requests_of_the_host_wait() -> None:
    async def main() -> None:
        answers = iter([answer(429, {"Retry-After": "30"})])
        site = Site(lambda request: next(answers, None) or answer(), seconds=1)
        fetcher, hosts = polite(site)
        allowance = Allowance(2)
        tasks = [asyncio.create_task(fetcher.fetch(Request(A, permit=allowance))) for _ in range(6)]
        await asyncio.sleep(5)
        assert allowance.held == 0
        assert hosts.at(A).slots.used == 0
        await fetcher.fetch(Request(B, permit=allowance))
        responses = await asyncio.gather(*tasks)
        assert sorted(response.status for response in responses) == [200] * 5 + [429]
        assert site.times(A) == [0, 0, 31, 31, 32, 32]
        assert site.times(B) == [5]

    run(main())


@pytest.mark.parametrize(("status", "stored"), [(200, None), (301, None), (429, "replay")])
def test_only_an_answer_of_a_host_in_trouble_pauses_it(status: int, stored: str | None) -> None:
    async def main() -> list[float]:
        site = Site(lambda request: answer(status, {"Retry-After": "30"}, stored=stored))
        fetcher, _ = polite(site)
        await fetcher.fetch(Request(A))
        await fetcher.fetch(Request(A))
        return site.times()

    assert run(main()) == [0, 0]


@pytest.mark.parametrize("rate", [None, 1000])
def test_a_pause_longer_than_the_limit_is_not_waited_for(rate: float | None) -> None:
    async def main() -> str:
        site = Site(lambda request: answer(503, {"Retry-After": "5000"}))
        fetcher, hosts = polite(site, rate=rate)
        await fetcher.fetch(Request(A))
        await asyncio.sleep(1000)
        with pytest.raises(CircuitOpenError) as caught:
            await fetcher.fetch(Request("http://me:hush@a.example/x"))
        assert asyncio.get_running_loop().time() == 1000
        assert hosts.at(A).counters.refused == {"CircuitOpenError": 1}
        assert_all_released(hosts)
        await asyncio.sleep(2600)
        await fetcher.fetch(Request(A))
        assert site.times() == [0, 3600]
        return str(caught.value)

    message = run(main())
    assert message.startswith(
        "http://a.example/x: a.example has asked to be left alone for longer than http.retry_after_seconds, "
        "so that this is not waited for; it is asked again from 20"
    )
    assert message.endswith(" on (in 2600 s)")


@pytest.mark.parametrize("rate", [None, 0.5])
def test_who_waits_when_the_pause_becomes_too_long_is_refused(rate: float | None) -> None:
    async def main() -> None:
        answers = [answer(429, {"Retry-After": "60"}), answer(429, {"Retry-After": "5000"}), answer()]
        site = Site(lambda request: answers.pop(0), seconds=1)
        fetcher, hosts = polite(site, rate=rate, concurrency=1)
        found = await asyncio.gather(*(fetcher.fetch(Request(A)) for _ in range(5)), return_exceptions=True)
        assert [type(each) for each in found] == [Response, Response, *[CircuitOpenError] * 3]
        assert (asyncio.get_running_loop().time(), len(site.sent)) == (62, 2)
        assert_all_released(hosts)
        await asyncio.sleep(5000)
        await fetcher.fetch(Request(A))

    run(main())


# What hosts say, and from when on the next request is sent: after as much of it as the limit lets pass.
ABSURD = [
    (("7",), 7),
    (("1.5",), 1.5),
    (("3600",), 3600),
    (("3600.5",), 3600),
    (("3601",), 3600),
    (("99999999999999",), 3600),
    (("9" * 190,), 3600),
    (("1" + "0" * 199,), 3600),
    (("Fri, 31 Dec 9999 23:59:59 GMT",), 3600),
    (("Friday, 31-Dec-60 23:59:59 GMT",), 3600),
    (("5", "99999999999999"), 3600),
    (("99999999999999", "5"), 3600),
    (("5", "20"), 20),
    (("20", "5"), 20),
    (("-5", "3"), 3),
    (("5, 99999999999999",), 3600),
    ((), 0),
    (("0",), 0),
    (("-1",), 0),
    (("-99999999999999",), 0),
    (("Thu, 01 Jan 1970 00:00:00 GMT",), 0),
    (("",), 0),
    (("soon",), 0),
    (("soon", "5"), 0),
    (("1e20",), 0),
    (("inf",), 0),
    (("nan",), 0),
    (("9" * 5000,), 0),
    (("0x7fffffff",), 0),
]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("values", "seconds"), ABSURD)
def test_no_host_is_left_alone_for_longer_than_the_limit(
    values: tuple[str, ...], seconds: float, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> list[float]:
        site = Site(lambda request: answer(status, [("Retry-After", value) for value in values]))
        fetcher, hosts = polite(site)
        await fetcher.fetch(Request(A))
        if hosts.at(A).pace.refuses(0):
            with pytest.raises(CircuitOpenError):
                await fetcher.fetch(Request(A))
            await asyncio.sleep(hosts.at(A).pace.paused_until)
        await fetcher.fetch(Request(A))
        return site.times()

    assert run(main()) == [0, seconds]
    is_capped = seconds == 3600 and values != ("3600",)
    assert any("which is capped at 3600 s" in each for each in caplog.messages) == is_capped


@pytest.mark.parametrize(
    ("asked", "limit", "seconds", "told"),
    [
        ("600", 5, 600, "600 s, longer than http.retry_after_seconds (5 s); requests"),
        ("600", 0, 600, "600 s, longer than http.retry_after_seconds (0 s); requests"),
        ("9000", 5, 3600, "9000 s, longer than http.retry_after_seconds (5 s), which is capped at 3600 s;"),
        ("9000", 7200, 7200, "longer than http.retry_after_seconds (7200 s), which is capped at 7200 s;"),
    ],
)
def test_who_does_not_want_to_wait_still_leaves_the_host_alone(
    asked: str, limit: float, seconds: float, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> float:
        hosts = Hosts(WebSettings(HttpSettings(retry_after_seconds=limit)))
        await HostQueueFetcher(Site(lambda request: answer(503, {"Retry-After": asked})), hosts).fetch(
            Request(A)
        )
        return hosts.at(A).pace.refusing_until

    assert run(main()) == seconds
    assert told in caplog.text


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        ("60", ["a.example asks to be left alone for 60 s; requests to it wait so long"]),
        (
            "5000",
            [
                "a.example asks to be left alone for 5000 s, longer than http.retry_after_seconds (3600 s), "
                "which is capped at 3600 s; requests to it are refused so long"
            ]
            * 2,
        ),
    ],
)
def test_a_pause_is_told(seconds: str, told: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        site = Site(lambda request: answer(503, {"Retry-After": seconds}), seconds=1)
        fetcher, _ = polite(site)
        for _ in range(2):
            await asyncio.gather(*(fetcher.fetch(Request(A)) for _ in range(2)))
            await asyncio.sleep(5000)

    run(main())
    assert caplog.messages == told


def test_the_answer_says_how_long_it_was_waited_for() -> None:
    async def main() -> list[Timing]:
        site = Site(lambda request: answer(timing=Timing(0, 0.5, 1)), seconds=1)
        fetcher, _ = polite(site, concurrency=1)
        responses = await asyncio.gather(*(fetcher.fetch(Request(A)) for _ in range(3)))
        return [response.timing for response in responses]

    assert run(main()) == [Timing(0, 0.5, 1), Timing(1, 1.5, 2), Timing(2, 2.5, 3)]


def test_without_a_rate_and_with_free_slots_nothing_suspends() -> None:
    class Instant:
        async def fetch(self, request: Request) -> Response:
            return answer()

        async def close(self) -> None:
            pass

    async def main() -> None:
        hosts = Hosts(WebSettings())
        coroutine = HostQueueFetcher(Instant(), hosts).fetch(Request(A))
        with pytest.raises(StopIteration):
            coroutine.send(None)

    run(main())


def test_the_permit_is_asked_for_by_the_name_of_the_host_and_without_passwords() -> None:
    async def main() -> None:
        fetcher, _ = polite(Site())
        allowance = Allowance(1)
        for url in ("https://Me:secret@a.example/x?y", "http://a.example:8080/"):
            await fetcher.fetch(Request(url, permit=allowance))
        assert allowance.asked == [
            ("a.example", "https://a.example/x?y"),
            ("a.example:8080", "http://a.example:8080/"),
        ]

    run(main())


@pytest.mark.parametrize("url", ["ftp://a.example/", "file:///etc/passwd", "http:///x", "", "http://a:b:c/"])
def test_what_is_no_address_is_refused(url: str) -> None:
    async def main() -> None:
        fetcher, _ = polite(Site())
        with pytest.raises(AddressRefusedError):
            await fetcher.fetch(Request(url))

    run(main())


def test_a_failure_passes_and_releases_everything() -> None:
    async def main() -> None:
        fetcher, hosts = polite(Site(lambda request: ConnectionFailedError("broken")))
        allowance = Allowance(1)
        for _ in range(5):
            with pytest.raises(ConnectionFailedError):
                await fetcher.fetch(Request(A, permit=allowance))
        assert_all_released(hosts, allowance)

    run(main())


def test_closing_closes_what_is_inside() -> None:
    async def main() -> bool:
        site = Site()
        fetcher, _ = polite(site)
        await fetcher.close()
        return site.is_closed

    assert run(main())


# --- bodies that are read while they come ---


def test_a_streamed_body_holds_slot_and_permit_only_while_a_piece_is_waited_for() -> None:
    async def main() -> None:
        site = Site(lambda request: answer(body=Chunks(b"one", b"two", seconds=1)))
        fetcher, hosts = polite(site, concurrency=1)
        allowance = Allowance(1)
        response = await fetcher.fetch(Request(A, streamed=True, permit=allowance))
        slots = hosts.at(A).slots
        assert (allowance.held, slots.used) == (0, 0)
        assert not isinstance(response.body, bytes)
        pieces = aiter(response.body)
        read = asyncio.ensure_future(anext(pieces))
        await asyncio.sleep(0.5)
        assert (allowance.held, slots.used) == (1, 1)
        assert await read == b"one"
        assert (allowance.held, slots.used) == (0, 0)
        assert [piece async for piece in pieces] == [b"two"]
        assert_all_released(hosts, allowance)

    run(main())


def test_two_streams_that_wait_for_each_other_do_not_need_two_permits() -> None:
    async def main() -> list[bytes]:
        site = Site(lambda request: answer(body=Chunks(b"1", b"2", b"3", seconds=1)))
        fetcher, hosts = polite(site, concurrency=1)
        allowance = Allowance(1)
        left = await fetcher.fetch(Request(A, streamed=True, permit=allowance))
        right = await fetcher.fetch(Request(A, streamed=True, permit=allowance))
        both: list[bytes] = []
        async for piece in left.chunks():
            both.append(piece)
            other = await anext(aiter(right_body(right)))
            both.append(other)
        await right.close()
        assert_all_released(hosts, allowance)
        return both

    def right_body(response: Response) -> BodyStream:
        assert not isinstance(response.body, bytes)
        return response.body

    assert run(main()) == [b"1", b"1", b"2", b"2", b"3", b"3"]


def test_a_body_is_read_on_while_new_requests_wait_for_their_rate() -> None:
    async def main() -> float:
        site = Site(lambda request: answer(body=Chunks(*[b"x"] * 5, seconds=1)))
        fetcher, hosts = polite(site, concurrency=1, rate=0.01)
        response = await fetcher.fetch(Request(A, streamed=True))
        others = [asyncio.create_task(fetcher.fetch(Request(A))) for _ in range(3)]
        assert await response.read() == b"xxxxx"
        ended = asyncio.get_running_loop().time()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        assert_all_released(hosts)
        return ended

    assert run(main()) == 6


def test_pieces_go_before_new_requests() -> None:
    async def main() -> list[float]:
        site = Site(
            lambda request: answer(body=Chunks(b"x", seconds=1) if request.streamed else b""), seconds=1
        )
        fetcher, _ = polite(site, concurrency=1)
        response = await fetcher.fetch(Request(A, streamed=True))
        others = [asyncio.create_task(fetcher.fetch(Request(A))) for _ in range(3)]
        await asyncio.sleep(0.5)
        assert await response.read() == b"x"
        ended = asyncio.get_running_loop().time()
        await asyncio.gather(*others)
        return [ended, *site.times()]

    # One request is under way at 1.5 already. Between the piece and the end of the body another has its turn.
    assert run(main()) == [5, 0, 1, 3, 5]


def test_a_body_that_breaks_fails_and_lets_go() -> None:
    async def main() -> None:
        chunks = Chunks(b"one", ConnectionFailedError("cut"))
        fetcher, hosts = polite(Site(lambda request: answer(body=chunks)))
        response = await fetcher.fetch(Request(A, streamed=True))
        with pytest.raises(ConnectionFailedError):
            async for _ in response.chunks():
                pass
        assert_all_released(hosts)
        await response.close()
        assert chunks.is_closed

    run(main())


def test_a_body_that_is_closed_lets_go_of_it() -> None:
    async def main() -> None:
        chunks = Chunks(b"one", b"two")
        fetcher, hosts = polite(Site(lambda request: answer(body=chunks)))
        response = await fetcher.fetch(Request(A, streamed=True))
        assert hosts.at(A).is_used  # it must not be forgotten while it may be read from
        await response.close()
        await response.close()
        assert chunks.is_closed
        assert_all_released(hosts)

    run(main())


def test_the_times_of_a_streamed_body_count_from_when_the_request_was_handed_over() -> None:
    async def main() -> Timing:
        site = Site(lambda request: answer(body=Chunks(b"x", seconds=1), timing=Timing(0, 1, 0)), seconds=1)
        fetcher, _ = polite(site, rate=0.2)
        await (await fetcher.fetch(Request(A))).close()
        response = await fetcher.fetch(Request(A, streamed=True))
        await response.read()
        return response.timing

    # Handed over at 1, sent at 5, first byte at 6, its only piece at 7, its end at 8.
    assert run(main()) == Timing(4, 5, 7)


def test_waits_for_pieces_count_as_waiting() -> None:
    async def main() -> float:
        site = Site(lambda request: answer(body=Chunks(b"x") if request.streamed else b""), seconds=2)
        fetcher, _ = polite(site, concurrency=1)
        response = await fetcher.fetch(Request(A, streamed=True))
        other = asyncio.create_task(fetcher.fetch(Request(A)))
        await asyncio.sleep(0)
        await response.read()
        await other
        return response.timing.waited_seconds

    assert run(main()) == 2


# --- cancelling ---


def waiting_permit(allowance: Allowance) -> Permit:
    """A permit that takes its time to come and to go."""

    def permit(source: str, label: str) -> AbstractAsyncContextManager[None]:
        @asynccontextmanager
        async def held() -> AsyncIterator[None]:
            async with allowance.permits:
                await asyncio.sleep(0)
                yield
                await asyncio.sleep(0)

        return held()

    return permit


@pytest.mark.parametrize("streamed", [False, True])
def test_cancelling_at_any_step_releases_slot_and_permit(streamed: bool) -> None:
    """Cancels each of several requests before each step that the loop takes."""

    def attempt(step: int, victim: int) -> bool:
        """Whether the run was long enough to reach that step."""
        reached = False

        async def main() -> None:
            nonlocal reached
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            site = Site(lambda request: answer(body=Chunks(b"1", b"2", seconds=1)), seconds=1)
            fetcher, hosts = polite(site, concurrency=2, rate=2)
            allowance = Allowance(1)

            async def one() -> None:
                request = Request(A, streamed=streamed, permit=waiting_permit(allowance))
                async with await fetcher.fetch(request) as response:
                    if streamed:
                        await response.read()

            tasks = [asyncio.create_task(one()) for _ in range(4)]

            def cancel(number: int) -> None:
                nonlocal reached
                if number == step:
                    reached = not all(task.done() for task in tasks)
                    tasks[victim].cancel()

            loop.before_step = cancel
            results = await asyncio.gather(*tasks, return_exceptions=True)
            loop.before_step = None
            assert sum(isinstance(result, asyncio.CancelledError) for result in results) <= 1
            assert sum(isinstance(result, WebError) for result in results) == 0
            assert_all_released(hosts, allowance)
            async with asyncio.timeout(10):  # the next one finds everything free
                await (await fetcher.fetch(Request(A))).close()
            assert_all_released(hosts, allowance)
            assert_nothing_left()

        run(main())
        return reached

    for victim in range(4):
        step = 1  # at 0 there are no requests yet
        while attempt(step, victim):
            step += 1
        assert step > 30


# --- memory ---


def test_hosts_that_nobody_uses_are_forgotten_but_for_the_last_ones() -> None:
    async def main() -> None:
        site = Site()
        hosts = Hosts(WebSettings(), idle_hosts=100)
        fetcher = HostQueueFetcher(site, hosts)
        for number in range(2000):
            await fetcher.fetch(Request(f"http://h{number}.example/"))
            if number % 10 == 0:
                await asyncio.sleep(1)
                await fetcher.fetch(Request(A))
            assert len(hosts) <= 100
        assert hosts.known("a.example:80") is not None
        assert hosts.known("h1999.example:80") is not None
        assert hosts.known("h0.example:80") is None
        assert hosts.forgotten_hosts + len(hosts) == 2001
        assert hosts.forgotten.requests + sum(host.counters.requests for host in hosts) == 2200

    run(main())


def test_a_host_that_is_used_or_to_be_left_alone_is_not_forgotten() -> None:
    async def main() -> None:
        def respond(request: Request) -> Response:
            paused = request.url.startswith("http://paused")
            return answer(429, {"Retry-After": "60"}) if paused else answer(body=Chunks(b"x"))

        hosts = Hosts(WebSettings(HttpSettings(), {"rated.example": HostSettings(rate=0.01)}), idle_hosts=10)
        fetcher = HostQueueFetcher(Site(respond), hosts)
        kept = {name: f"http://{name}.example/" for name in ("paused", "rated", "streaming")}
        responses = [await fetcher.fetch(Request(url, streamed=True)) for url in kept.values()]
        before = {name: hosts.at(url) for name, url in kept.items()}
        await responses[1].close()
        for number in range(100):
            await (await fetcher.fetch(Request(f"http://h{number}.example/"))).close()
        assert {name: hosts.at(url) for name, url in kept.items()} == before
        await responses[2].close()
        await asyncio.sleep(1000)
        for number in range(100):
            await (await fetcher.fetch(Request(f"http://h{number}.example/"))).close()
        assert all(hosts.known(f"{name}.example:80") is None for name in kept)

    run(main())


def test_hosts_to_be_left_alone_are_not_kept_without_end() -> None:
    async def main() -> int:
        hosts = Hosts(WebSettings(), idle_hosts=10, left_alone_hosts=50)
        fetcher = HostQueueFetcher(Site(lambda request: answer(429, {"Retry-After": "3600"})), hosts)
        for number in range(1000):
            await fetcher.fetch(Request(f"http://h{number}.example/"))
        return len(hosts)

    assert run(main()) <= 80


def test_a_run_with_many_requests_does_not_keep_another_from_a_throttled_host() -> None:
    async def main() -> None:
        fetcher, hosts = polite(Site(), concurrency=10, rate=1)
        ends: dict[str, float] = {}

        async def work(name: str, requests: int) -> None:
            current_run.set(name)
            await asyncio.gather(*(fetcher.fetch(Request(f"{A}{name}{each}")) for each in range(requests)))
            ends[name] = asyncio.get_running_loop().time()

        large = asyncio.create_task(work("large", 100))
        await asyncio.sleep(10.5)
        await asyncio.gather(large, work("small", 3))
        assert ends["small"] <= 17  # every second turn is its own
        assert ends["large"] == 102
        assert_all_released(hosts)

    run(main())
