"""Retries: of what may be repeated, ever later, within a budget, and when the host says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from aioflow.testing import run
from aioflow.web.errors import (
    AddressRefusedError,
    BadResponseError,
    CircuitOpenError,
    ConnectionFailedError,
    ResponseTimeoutError,
    ResponseTooLargeError,
    RobotsRefusedError,
    WebError,
)
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts
from aioflow.web.http import Request, Response, Timing
from aioflow.web.retries import RetryFetcher
from aioflow.web.settings import HttpSettings, WebSettings
from tests.web.scripted import Allowance, Answer, Chunks, Site, answer

A, B = "http://a.example/", "http://b.example/"


class Largest(Random):
    """Never lucky: always the longest wait."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Scene:
    """The answers of a site one after the other, the last one for ever; retries and turns around it."""

    def __init__(
        self, *answers: Answer, random: Random | None = None, seconds: float = 0.0, **http: Any
    ) -> None:
        left = list(answers)
        self.site = Site(lambda request: left.pop(0) if len(left) > 1 else left[0], seconds=seconds)
        self.hosts = Hosts(WebSettings(HttpSettings(**{"breaker_failures": 0, **http})))
        self.fetcher = RetryFetcher(HostQueueFetcher(self.site, self.hosts), self.hosts, random or Largest())

    async def fetch(self, url: str = A, **request: Any) -> Response:
        return await self.fetcher.fetch(Request(url, **request))


def broken(*, sent: bool = True) -> ConnectionFailedError:
    error = ConnectionFailedError("broken")
    error.sent = sent
    return error


PASSING = [broken(), ResponseTimeoutError("slow"), *map(answer, (408, 425, 429, 500, 502, 503, 504))]


@pytest.mark.parametrize("trouble", PASSING, ids=lambda each: str(getattr(each, "status", each)))
def test_trouble_that_may_pass_is_tried_again(trouble: Answer) -> None:
    async def main() -> tuple[int, int, int]:
        scene = Scene(trouble, trouble, answer())
        response = await scene.fetch()
        return response.status, response.attempts, len(scene.site.sent)

    assert run(main()) == (200, 3, 3)


@pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 401, 403, 404, 410, 501, 505, 507])
def test_an_answer_that_would_stay_the_same_is_returned(status: int) -> None:
    async def main() -> tuple[int, int, int]:
        scene = Scene(answer(status))
        response = await scene.fetch()
        return response.status, response.attempts, len(scene.site.sent)

    assert run(main()) == (status, 1, 1)


@pytest.mark.parametrize("kind", [BadResponseError, ResponseTooLargeError])
def test_an_answer_that_makes_no_sense_is_not_asked_for_again(kind: type[WebError]) -> None:
    async def main() -> tuple[int, int]:
        scene = Scene(kind("no"))
        with pytest.raises(kind) as caught:
            await scene.fetch()
        return caught.value.attempts, len(scene.site.sent)

    assert run(main()) == (1, 1)


@pytest.mark.parametrize("kind", [AddressRefusedError, RobotsRefusedError])
def test_what_was_refused_is_not_tried_again(kind: type[WebError]) -> None:
    async def main() -> tuple[int, int]:
        scene = Scene(kind("no"))
        with pytest.raises(kind) as caught:
            await scene.fetch()
        return caught.value.attempts, len(scene.site.sent)

    assert run(main()) == (0, 1)


def test_a_refusal_after_a_failure_says_how_often_it_was_sent() -> None:
    async def main() -> int:
        scene = Scene(broken(), RobotsRefusedError("no"))
        with pytest.raises(RobotsRefusedError) as caught:
            await scene.fetch()
        return caught.value.attempts

    assert run(main()) == 1


@pytest.mark.parametrize("trouble", [broken(), ResponseTimeoutError("slow"), *map(answer, (429, 503))])
def test_what_is_not_safe_is_not_repeated(trouble: Answer) -> None:
    async def main() -> tuple[int, int]:
        scene = Scene(trouble)
        try:
            outcome: Response | WebError = await scene.fetch(method="POST", is_safe=False)
        except WebError as error:
            outcome = error
        return outcome.attempts, len(scene.site.sent)

    assert run(main()) == (1, 1)


def test_what_is_not_safe_is_repeated_if_nothing_was_sent() -> None:
    async def main() -> tuple[int, int]:
        scene = Scene(broken(sent=False), broken(sent=False), answer(201))
        response = await scene.fetch(method="POST", is_safe=False)
        return response.status, response.attempts

    assert run(main()) == (201, 3)


def test_after_the_last_attempt_an_error_status_is_the_answer() -> None:
    async def main() -> tuple[int, int, int]:
        scene = Scene(answer(503), retries=3)
        response = await scene.fetch()
        return response.status, response.attempts, len(scene.site.sent)

    assert run(main()) == (503, 4, 4)


def test_after_the_last_attempt_a_failure_is_raised() -> None:
    async def main() -> tuple[int, int]:
        scene = Scene(broken(), retries=2)
        with pytest.raises(ConnectionFailedError) as caught:
            await scene.fetch()
        return caught.value.attempts, len(scene.site.sent)

    assert run(main()) == (3, 3)


def test_without_retries_there_are_none() -> None:
    async def main() -> int:
        scene = Scene(answer(503), retries=0)
        return (await scene.fetch()).attempts

    assert run(main()) == 1


def test_waits_double_up_to_the_longest() -> None:
    async def main() -> list[float]:
        scene = Scene(answer(500), retries=6, retry_base_seconds=0.5, retry_most_seconds=5)
        await scene.fetch()
        return scene.site.times()

    assert run(main()) == [0, 0.5, 1.5, 3.5, 7.5, 12.5, 17.5]


def test_waits_are_random_from_nothing_to_the_whole_and_come_again_with_the_seed() -> None:
    async def main(seed: int) -> list[float]:
        scene = Scene(answer(500), retries=1, retry_base_seconds=1, retry_budget=1, random=Random(seed))
        waits = []
        for _ in range(200):
            before = len(scene.site.sent)
            await scene.fetch()
            first, second = scene.site.times()[before:]
            waits.append(second - first)
        return waits

    waits = run(main(1))
    assert all(0 <= wait <= 1 for wait in waits)
    assert min(waits) < 0.1
    assert max(waits) > 0.9
    assert run(main(1)) == waits
    assert run(main(2)) != waits


def test_nothing_is_held_while_it_waits() -> None:
    async def main() -> None:
        scene = Scene(answer(500), answer(), seconds=1, concurrency=1)
        allowance = Allowance(1)
        first = asyncio.create_task(scene.fetch(permit=allowance))
        await asyncio.sleep(1.1)
        assert (allowance.held, scene.hosts.at(A).slots.used) == (0, 0)
        await scene.fetch(permit=allowance)
        assert scene.site.times() == [0, 1.1]
        assert (await first).attempts == 2

    run(main())


def test_many_requests_that_fail_are_not_all_repeated() -> None:
    async def main() -> int:
        scene = Scene(answer(500), retries=3, retry_budget=0.25)
        for _ in range(1000):
            await scene.fetch()
        return len(scene.site.sent)

    assert run(main()) == 1000 + 250 + 10  # a quarter, and what a host starts with


def test_what_is_saved_for_retries_is_bounded_and_each_host_has_its_own() -> None:
    async def main() -> tuple[int, int]:
        scene = Scene(*[answer()] * 5000, answer(500), retries=3, retry_budget=0.25)
        for _ in range(5000):
            await scene.fetch()
        for _ in range(200):
            await scene.fetch()
        sent = len(scene.site.sent) - 5000
        return sent, (await scene.fetch(B)).attempts

    sent, attempts = run(main())
    assert sent == 200 + 100 + 49  # the first one found it full
    assert attempts == 4


def test_a_single_request_has_all_its_retries() -> None:
    async def main() -> int:
        scene = Scene(answer(500), retries=15)
        return (await scene.fetch()).attempts

    assert run(main()) == 16


# --- Retry-After ---


@pytest.mark.parametrize("status", [429, 503])
def test_the_host_is_asked_again_when_it_says_so(status: int) -> None:
    async def main() -> list[float]:
        scene = Scene(answer(status, {"retry-after": "120"}), answer())
        await scene.fetch()
        return scene.site.times()

    assert run(main()) == [0, 120]


@pytest.mark.parametrize("value", ["-5", "0", "soon", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_time_that_is_over_or_makes_no_sense_leaves_the_usual_wait(value: str) -> None:
    async def main() -> list[float]:
        scene = Scene(answer(503, {"Retry-After": value}), answer())
        await scene.fetch()
        return scene.site.times()

    assert run(main()) == [0, 0.5]


def test_too_long_a_time_is_not_waited_for_but_the_host_is_left_alone() -> None:
    async def main() -> list[float]:
        scene = Scene(answer(503, {"Retry-After": "3601"}), answer())
        assert (await scene.fetch()).status == 503
        with pytest.raises(CircuitOpenError) as caught:
            await scene.fetch()
        assert (caught.value.attempts, asyncio.get_running_loop().time()) == (0, 0)
        await asyncio.sleep(3600)
        await scene.fetch()
        return scene.site.times()

    assert run(main()) == [0, 3600]


def test_all_requests_to_the_host_wait_and_hold_nothing() -> None:
    async def main() -> None:
        scene = Scene(answer(429, {"Retry-After": "60"}), answer(), seconds=1, concurrency=1)
        allowance = Allowance(3)
        tasks = [asyncio.create_task(scene.fetch(permit=allowance)) for _ in range(3)]
        await asyncio.sleep(2)
        assert allowance.held == 0
        await asyncio.gather(*tasks)
        assert scene.site.times() == [0, 61, 62, 63]

    run(main())


def test_what_is_not_safe_pauses_the_host_as_well() -> None:
    async def main() -> list[float]:
        scene = Scene(answer(429, {"Retry-After": "60"}), answer())
        assert (await scene.fetch(method="POST", is_safe=False)).status == 429
        await scene.fetch()
        return scene.site.times()

    assert run(main()) == [0, 60]


def test_a_stored_answer_is_not_waited_for() -> None:
    async def main() -> list[float]:
        scene = Scene(answer(503, {"Retry-After": "60"}, stored="replay"), answer())
        await scene.fetch()
        return scene.site.times()

    assert run(main()) == [0, 0]


# --- bodies, times, breaker, cancelling ---


def test_the_body_of_an_answer_that_is_given_up_is_closed() -> None:
    async def main() -> None:
        chunks = [Chunks(b"sorry"), Chunks(b"here")]
        scene = Scene(answer(503, body=chunks[0]), answer(body=chunks[1]))
        response = await scene.fetch(streamed=True)
        assert [each.is_closed for each in chunks] == [True, False]
        assert await response.read() == b"here"

    run(main())


def test_times_count_from_the_first_attempt() -> None:
    async def main() -> Timing:
        scene = Scene(answer(503), answer(timing=Timing(0, 0.5, 1)), seconds=1)
        return (await scene.fetch()).timing

    assert run(main()) == Timing(0.5, 2, 2.5)


def test_who_opens_the_breaker_gets_the_failure_itself() -> None:
    async def main() -> tuple[int, int]:
        scene = Scene(answer(500), breaker_failures=1)
        response = await scene.fetch()
        return response.status, response.attempts

    assert run(main()) == (500, 4)


def test_who_is_to_repeat_while_another_opens_the_breaker_waits_for_the_probe() -> None:
    async def main() -> tuple[int, int, list[float]]:
        scene = Scene(answer(503), answer(501), broken(), answer(), breaker_failures=1, retries=1)
        first = asyncio.create_task(scene.fetch())
        await asyncio.sleep(0.1)
        assert (await scene.fetch(A, is_safe=False)).status == 501
        with pytest.raises(ConnectionFailedError):
            await scene.fetch(A, is_safe=False)
        response = await first
        return response.status, response.attempts, scene.site.times()

    assert run(main()) == (200, 2, [0, 0.1, 0.1, 30.1])


def test_who_is_to_repeat_when_the_probe_fails_is_refused() -> None:
    async def main() -> tuple[str, int]:
        scene = Scene(answer(503), broken(), breaker_failures=1, retries=1)
        first = asyncio.create_task(scene.fetch())
        await asyncio.sleep(0.1)
        for _ in range(2):
            with pytest.raises(ConnectionFailedError):
                await scene.fetch(is_safe=False)
        with pytest.raises(CircuitOpenError) as caught:
            await first
        return str(caught.value), caught.value.attempts

    message, attempts = run(main())
    assert "the last: broken" in message
    assert attempts == 1


@pytest.mark.parametrize("seconds", [0.5, 1.2])
def test_cancelling_an_attempt_or_a_wait_leaves_nothing(seconds: float) -> None:
    async def main() -> Sequence[int]:
        scene = Scene(answer(503), seconds=1)
        task = asyncio.create_task(scene.fetch())
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        host = scene.hosts.at(A)
        return host.users, host.inside, host.aside, host.in_flight, host.slots.used

    assert run(main()) == (0, 0, 0, 0, 0)
