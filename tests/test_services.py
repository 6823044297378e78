"""Services: opened when first asked for, shared, and closed with their engine or run whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from aioflow import Context, Engine, Row, RunError, Stream, loads, operator
from aioflow.authoring.operator import same_as_input
from aioflow.authoring.services import Deliveries, Scope, ServiceHost, Services
from aioflow.runtime.events import Event, MessagesDelivered, RunCommitted, RunEnded, Warned
from aioflow.runtime.run import RunState

opened: list[str] = []
closed: list[str] = []
reached: list[str] = []  # of the ledger


class Pool:
    """Lives as long as its engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, size: int) -> None:
        self.size = size

    @classmethod
    def open_service(cls, host: ServiceHost) -> Pool:
        opened.append("pool")
        assert host.run is None
        return cls(host.configuration.get("pool", {}).get("size", 1))

    async def close(self) -> None:
        closed.append("pool")


class Ledger:
    """Lives as long as its run, and takes part in its end."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, host: ServiceHost) -> None:
        self.pool = host.service(Pool)
        self.host = host
        self.broken = ""

    @classmethod
    def open_service(cls, host: ServiceHost) -> Ledger:
        opened.append("ledger")
        assert host.run is not None
        return cls(host)

    wants_checkpoint = False

    async def conclude(self) -> None:
        self._reach("conclude")

    async def commit(self) -> bool:
        await asyncio.sleep(0)
        self._reach("commit")
        return True

    async def committed(self) -> Deliveries | None:
        self._reach("committed")
        return Deliveries(sent=2, waiting=1)

    async def close(self) -> None:
        await asyncio.sleep(0)
        closed.append("ledger")
        self.host.warn("the ledger was closed")
        self._reach("close")

    def _reach(self, stage: str) -> None:
        reached.append(stage)
        if self.broken == stage:
            raise RunError(f"the ledger cannot {stage}")


@operator(schema=same_as_input, name="with_ledger")
async def with_ledger(rows: Stream, *, broken: str = "", context: Context) -> AsyncGenerator[Row, None]:
    """Pass tuples on and look at services."""
    ledger = context.service(Ledger)
    assert context.service(Ledger) is ledger
    assert context.service(Pool) is ledger.pool
    ledger.broken = broken
    async for row in rows:
        if row[0] < 0:
            raise ValueError("negative")
        yield (row[0] * ledger.pool.size,)


PLAN = "PLAN p { INPUT: x OUTPUT: out BODY { with_ledger (x : a) with_ledger (a : out) {%s} } }"


@pytest.fixture(autouse=True)
def _forget() -> None:
    opened.clear()
    closed.clear()
    reached.clear()


async def _run(numbers: list[int], clauses: str = "", **engine: Any) -> Any:
    async with Engine(**engine) as running:
        return await running.run(loads(PLAN % clauses), x=[{"n": number} for number in numbers])


def test_a_service_is_opened_once_and_closed_with_its_engine_or_run() -> None:
    result = asyncio.run(_run([1, 2], configuration={"pool": {"size": 3}}))
    assert [row["n"] for row in result] == [9, 18]
    assert opened == ["ledger", "pool"]
    assert closed == ["ledger", "pool"]
    assert result.warnings == ("the ledger was closed",)


def test_a_service_that_is_never_asked_for_is_never_opened() -> None:
    async def main() -> None:
        async with Engine() as engine:
            await engine.run(loads("PLAN p { INPUT: x OUTPUT: out BODY { distinct (x : out) } }"), x=[])

    asyncio.run(main())
    assert opened == closed == []


def test_one_can_look_at_a_service_without_opening_it() -> None:
    services = Services({}, {})
    opened.clear()
    assert (services.opened(Pool), opened) == (None, [])
    pool = services.service(Pool)
    assert services.opened(Pool) is pool
    given = Pool(3)
    assert Services({}, {Pool: given}).opened(Pool) is given


def test_runs_of_one_engine_share_it_and_have_their_own() -> None:
    async def main() -> None:
        async with Engine() as engine:
            await asyncio.gather(*(engine.run(loads(PLAN % ""), x=[{"n": 1}]) for _ in range(3)))

    asyncio.run(main())
    assert sorted(opened) == ["ledger"] * 3 + ["pool"]
    assert closed == ["ledger"] * 3 + ["pool"]


def test_a_failed_run_only_closes_its_services() -> None:
    with pytest.raises(RunError, match="negative"):
        asyncio.run(_run([1, -1]))
    assert reached == ["close"]
    assert closed == ["ledger", "pool"]


def test_a_run_that_its_reader_leaves_has_not_ended_well() -> None:
    async def main() -> None:
        async with Engine(capacity_rows=1) as engine:
            rows = [{"n": number} for number in range(1000)]
            async with engine.stream(loads(PLAN % ""), x=rows) as stream:
                async for _ in stream:
                    break

    asyncio.run(main())
    assert reached == ["close"]
    assert closed == ["ledger", "pool"]


def test_a_service_that_cannot_be_closed_fails_the_run_and_the_others_are_closed() -> None:
    with pytest.raises(RunError, match="the ledger cannot close"):
        asyncio.run(_run([1], "BROKEN: close"))
    assert reached == ["conclude", "commit", "committed", "close"]
    assert closed == ["ledger", "pool"]


@pytest.mark.parametrize(
    ("stage", "expected"), [("conclude", ["conclude", "close"]), ("commit", ["conclude", "commit", "close"])]
)
def test_a_service_that_cannot_commit_fails_the_run_and_nothing_follows(
    stage: str, expected: list[str]
) -> None:
    with pytest.raises(RunError, match=f"the ledger cannot {stage}"):
        asyncio.run(_run([1], f"BROKEN: {stage}"))
    assert reached == expected
    assert closed == ["ledger", "pool"]


def test_a_failure_after_the_commit_is_a_warning() -> None:
    result = asyncio.run(_run([1], "BROKEN: committed"))
    assert result.warnings == ("the ledger cannot committed", "the ledger was closed")
    assert result.account.outcome == "ended"


# --- the states of a run --------------------------------------------------------------------------


async def _events(numbers: list[int], clauses: str = "", text: str = PLAN) -> list[Any]:
    """The events of a run from its commit on, and the states of the run at that time."""
    seen: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, RunCommitted | MessagesDelivered | Warned | RunEnded):
            seen.append((event, stream.state))

    async with Engine() as engine:
        engine.subscribe(listen)
        stream = engine.stream(loads(text % clauses), x=[{"n": number} for number in numbers])
        states = [stream.state]
        with suppress(RunError):
            async for _ in stream:
                states += [stream.state]
        states.append(stream.state)
    rows = states[1:-1]
    assert states == [RunState.NOT_STARTED, *[RunState.RUNNING] * len(rows), RunState.CLOSED]
    return seen


def test_a_run_commits_delivers_and_closes_in_this_order() -> None:
    seen = asyncio.run(_events([1]))
    assert [(type(event), state) for event, state in seen] == [
        (RunCommitted, RunState.COMMITTING),
        (MessagesDelivered, RunState.DELIVERING),
        (Warned, RunState.CLOSING),
        (RunEnded, RunState.CLOSED),
    ]
    committed, delivered, _, ended = (event for event, _ in seen)
    assert (committed.plan, committed.number) == ("p", 1)
    assert (delivered.sent, delivered.failed, delivered.waiting) == (2, 0, 1)
    assert ended.outcome == "ended"


def test_the_log_has_the_commit_and_the_deliveries(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="aioflow.engine"):
        asyncio.run(_run([1]))
    lines = [record.getMessage() for record in caplog.records if record.name == "aioflow.engine"]
    committed, delivered, ended = (" ".join(["run", *line.split()[2:]]) for line in lines[-3:])
    assert committed == "run of p has committed"
    assert delivered == "run of p has delivered: 2 messages sent, 0 given up, 1 waiting"
    assert ended == "run of p has ended"


@pytest.mark.parametrize(
    ("numbers", "clauses"), [([-1], ""), ([1], "BROKEN: conclude"), ([1], "BROKEN: commit")]
)
def test_a_run_that_fails_publishes_no_commit(numbers: list[int], clauses: str) -> None:
    seen = asyncio.run(_events(numbers, clauses))
    assert [type(event) for event, _ in seen] == [Warned, RunEnded]
    assert seen[-1][0].outcome == "failed"


def test_a_run_whose_delivery_fails_has_committed() -> None:
    seen = asyncio.run(_events([1], "BROKEN: committed"))
    assert [type(event) for event, _ in seen] == [RunCommitted, Warned, Warned, RunEnded]


def test_a_run_with_nothing_to_commit_publishes_no_commit() -> None:
    seen = asyncio.run(_events([1], text="PLAN p { INPUT: x OUTPUT: out BODY { distinct (x : out) {%s} } }"))
    assert [type(event) for event, _ in seen] == [RunEnded]


def test_another_can_stand_in_for_a_service_and_belongs_to_who_gave_it() -> None:
    result = asyncio.run(_run([1], services={Pool: Pool(10)}))
    assert [row["n"] for row in result] == [100]
    assert opened == ["ledger"]
    assert closed == ["ledger"]


class Slow:
    """Takes its time to close."""

    scope: ClassVar[Scope] = "engine"

    @classmethod
    def open_service(cls, host: ServiceHost) -> Slow:
        return cls()

    async def close(self) -> None:
        await asyncio.sleep(60)


def test_who_is_cancelled_while_services_close_still_closes_the_others() -> None:
    async def main() -> None:
        services = Services({}, {})
        services.service(Pool)
        services.service(Slow)
        closing = asyncio.create_task(services.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    asyncio.run(main())
    assert closed == ["pool"]
