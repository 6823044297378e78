"""Equal requests that are under way at once are made once, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioflow.testing import assert_nothing_left, run
from aioflow.web import coalescing as shared
from aioflow.web.coalescing import CoalescingFetcher
from aioflow.web.cookies import CookieStore
from aioflow.web.errors import ConnectionFailedError, HttpStatusError
from aioflow.web.http import Request, Response
from tests.web.scripted import Chunks, Script, answer

URL = "http://a.test/"


def fetch(fetcher: CoalescingFetcher, **more: Any) -> asyncio.Task[Response]:
    return asyncio.create_task(fetcher.fetch(Request(URL, **more)))


def test_equal_gets_are_made_once() -> None:
    async def main() -> None:
        script = Script({URL: answer(body=b"page")}, seconds=1)
        fetcher = CoalescingFetcher(script)
        responses = await asyncio.gather(*(fetch(fetcher, headers={"Accept": "a"}) for _ in range(5)))
        assert [response.body for response in responses] == [b"page"] * 5
        assert len({id(response) for response in responses}) == 5
        assert (len(script.requests), fetcher.shared) == (1, 4)
        await fetch(fetcher)
        assert len(script.requests) == 2
        await fetcher.close()
        assert script.is_closed
        assert_nothing_left()

    run(main())


STORE = CookieStore()


@pytest.mark.parametrize(
    "other",
    [
        {"method": "POST"},
        {"method": "HEAD"},
        {"headers": {"Accept": "b"}},
        {"cookies": STORE},
        {"streamed": True},
        {"robots": False},
        {"timeout_seconds": 3.0},
        {"is_safe": False},
        {"body": b"x"},
    ],
)
def test_what_differs_is_made_by_itself(other: dict[str, Any]) -> None:
    async def main() -> int:
        script = Script({URL: answer()}, seconds=1)
        fetcher = CoalescingFetcher(script)
        await asyncio.gather(fetch(fetcher), fetch(fetcher, **other))
        return len(script.requests)

    assert run(main()) == 2


@pytest.mark.parametrize("request_fields", [{"method": "POST"}, {"is_safe": False}])
def test_what_may_have_an_effect_is_never_shared(request_fields: dict[str, Any]) -> None:
    async def main() -> int:
        script = Script({URL: answer()}, seconds=1)
        fetcher = CoalescingFetcher(script)
        await asyncio.gather(*(fetch(fetcher, **request_fields) for _ in range(3)))
        return len(script.requests)

    assert run(main()) == 3


def test_an_error_is_everyones() -> None:
    async def main() -> None:
        error = ConnectionFailedError("http://a.test/: refused")
        error.attempts = 4
        script = Script({URL: error}, seconds=1)
        fetcher = CoalescingFetcher(script)
        outcomes = await asyncio.gather(*(fetch(fetcher) for _ in range(3)), return_exceptions=True)
        assert [(type(each), str(each), each.attempts) for each in outcomes] == [  # type: ignore[union-attr]
            (ConnectionFailedError, "http://a.test/: refused", 4)
        ] * 3
        assert len(set(map(id, outcomes))) == 3
        assert len(script.requests) == 1

    run(main())


def test_an_error_with_a_status_is_everyones_too() -> None:
    async def main() -> None:
        fetcher = CoalescingFetcher(Script({URL: HttpStatusError("no", 500)}, seconds=1))
        outcomes = await asyncio.gather(*(fetch(fetcher) for _ in range(2)), return_exceptions=True)
        assert [each.status for each in outcomes] == [500, 500]  # type: ignore[union-attr]

    run(main())


def test_a_follower_takes_over_from_a_cancelled_leader() -> None:
    async def main() -> None:
        script = Script({URL: answer(body=b"page")}, seconds=10)
        fetcher = CoalescingFetcher(script)
        tasks = [fetch(fetcher) for _ in range(4)]
        await asyncio.sleep(1)
        tasks[0].cancel()
        await asyncio.sleep(1)
        tasks[1].cancel()
        tasks[2].cancel()
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [True, True, True, False]
        assert tasks[3].result().body == b"page"
        assert (len(script.requests), script.cancelled) == (3, 2)
        assert_nothing_left()

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("first", range(12))
@pytest.mark.parametrize("seed", range(6))
def test_whoever_is_cancelled_at_whichever_step_the_others_are_answered(
    first: int, seed: int, streamed: bool
) -> None:
    victims = (seed % 4, (seed * 7 + first) % 4)
    tasks: list[asyncio.Task[Response]] = []
    begun = 0

    def before_step(step: int) -> None:
        for index, victim in enumerate(victims):
            if tasks and step == begun + first + index * (1 + seed % 3):
                tasks[victim].cancel()

    async def main() -> None:
        nonlocal begun
        bodies: list[Chunks] = []

        def new_answer(request: Request) -> Response:
            if not streamed:
                return answer(body=b"page")
            bodies.append(Chunks(b"pa", b"ge", seconds=1))
            return answer(body=bodies[-1])

        script = Script({URL: new_answer}, seconds=1)
        fetcher = CoalescingFetcher(script)
        tasks.extend(fetch(fetcher, streamed=streamed) for _ in range(4))
        begun = asyncio.get_running_loop().steps  # type: ignore[attr-defined]
        await asyncio.wait(tasks)
        for number, task in enumerate(tasks):
            if task.cancelled():
                assert number in victims
            else:
                response = task.result()
                assert await response.read() == b"page"
        assert all(body.is_closed for body in bodies[:-1])
        assert fetcher._flights == {}
        # Each further request has a cancelled leader to explain it.
        assert len(script.requests) <= 1 + sum(task.cancelled() for task in tasks)
        assert_nothing_left()

    run(main(), seed=seed, before_step=before_step)


@pytest.mark.parametrize("turns", range(8))
def test_a_follower_that_is_cancelled_as_it_is_to_lead_passes_that_on(turns: int) -> None:
    async def main() -> None:
        script = Script({URL: answer(body=b"page")}, seconds=10)
        fetcher = CoalescingFetcher(script)
        tasks = [fetch(fetcher) for _ in range(3)]
        await asyncio.sleep(1)
        tasks[0].cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        assert tasks[2].result().body == b"page"
        assert_nothing_left()

    run(main())


def test_nobody_leads_when_everybody_is_cancelled() -> None:
    async def main() -> None:
        script = Script({URL: answer()}, seconds=10)
        fetcher = CoalescingFetcher(script)
        tasks = [fetch(fetcher) for _ in range(3)]
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert len(script.requests) == 1
        assert (await fetch(fetcher)).status == 200
        assert_nothing_left()

    run(main())


def test_a_streamed_answer_that_is_small_is_shared() -> None:
    async def main() -> None:
        body = Chunks(b"a", b"b", seconds=1)
        script = Script({URL: answer(body=body)}, seconds=1)
        fetcher = CoalescingFetcher(script)
        leader, follower = await asyncio.gather(*(fetch(fetcher, streamed=True) for _ in range(2)))
        assert (leader.body, follower.body) == (b"ab", b"ab")
        assert (len(script.requests), body.is_closed) == (1, True)

    run(main())


def test_a_streamed_answer_that_is_large_is_asked_for_by_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "READ_AHEAD_BYTES", 3)

    async def main() -> None:
        bodies = [Chunks(b"ab", b"cd", b"ef", seconds=1) for _ in range(3)]
        script = Script({URL: [answer(body=body) for body in bodies]}, seconds=1)
        fetcher = CoalescingFetcher(script)
        responses = await asyncio.gather(*(fetch(fetcher, streamed=True) for _ in range(3)))
        assert [await response.read() for response in responses] == [b"abcdef"] * 3
        assert len(script.requests) == 3
        assert all(body.has_ended for body in bodies)

    run(main())


def test_a_streamed_answer_that_nobody_else_waits_for_is_not_read_ahead() -> None:
    async def main() -> None:
        bodies = [Chunks(b"a", b"b"), Chunks(b"c")]
        script = Script({URL: [answer(body=body) for body in bodies]})
        fetcher = CoalescingFetcher(script)
        response = await fetcher.fetch(Request(URL, streamed=True))
        assert response.body is bodies[0]
        assert bodies[0].given == 0
        # A reader that stands still does not keep anybody else waiting.
        late = await fetcher.fetch(Request(URL, streamed=True))
        assert await late.read() == b"c"
        await response.close()

    run(main())


def test_a_streamed_answer_that_breaks_off_fails_for_everyone() -> None:
    async def main() -> None:
        body = Chunks(b"a", ConnectionFailedError("cut"))
        script = Script({URL: answer(body=body)}, seconds=1)
        fetcher = CoalescingFetcher(script)
        outcomes = await asyncio.gather(
            *(fetch(fetcher, streamed=True) for _ in range(2)), return_exceptions=True
        )
        assert [str(each) for each in outcomes] == ["cut", "cut"]
        assert body.is_closed

    run(main())
