"""Services: opened when first asked for, shared, and closed with their engine or run whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, ClassVar

import pytest

from aioflow import Context, Engine, Row, RunError, Stream, loads, operator
from aioflow.authoring.operator import same_as_input
from aioflow.authoring.services import Scope, ServiceHost, Services

opened: list[str] = []
closed: list[str] = []


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
    """Lives as long as its run, and tells how that ended."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, host: ServiceHost) -> None:
        self.pool = host.service(Pool)
        self.host = host
        self.is_broken = False

    @classmethod
    def open_service(cls, host: ServiceHost) -> Ledger:
        opened.append("ledger")
        assert host.run is not None
        return cls(host)

    async def close(self) -> None:
        await asyncio.sleep(0)
        closed.append("ledger, ended well" if self.host.ended_well else "ledger")
        self.host.warn("the ledger was closed")
        if self.is_broken:
            raise RunError("the ledger cannot be written")


@operator(schema=same_as_input, name="with_ledger")
async def with_ledger(rows: Stream, *, broken: bool = False, context: Context) -> AsyncGenerator[Row, None]:
    """Pass tuples on and look at services."""
    ledger = context.service(Ledger)
    assert context.service(Ledger) is ledger
    assert context.service(Pool) is ledger.pool
    ledger.is_broken = broken
    async for row in rows:
        if row[0] < 0:
            raise ValueError("negative")
        yield (row[0] * ledger.pool.size,)


PLAN = "PLAN p { INPUT: x OUTPUT: out BODY { with_ledger (x : a) with_ledger (a : out) {%s} } }"


@pytest.fixture(autouse=True)
def _forget() -> None:
    opened.clear()
    closed.clear()


async def _run(numbers: list[int], clauses: str = "", **engine: Any) -> Any:
    async with Engine(**engine) as running:
        return await running.run(loads(PLAN % clauses), x=[{"n": number} for number in numbers])


def test_a_service_is_opened_once_and_closed_with_its_engine_or_run() -> None:
    result = asyncio.run(_run([1, 2], configuration={"pool": {"size": 3}}))
    assert [row["n"] for row in result] == [9, 18]
    assert opened == ["ledger", "pool"]
    assert closed == ["ledger, ended well", "pool"]
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
    assert closed == ["ledger, ended well"] * 3 + ["pool"]


def test_a_failed_run_closes_its_services_and_they_can_tell() -> None:
    with pytest.raises(RunError, match="negative"):
        asyncio.run(_run([1, -1]))
    assert closed == ["ledger", "pool"]


def test_a_run_that_its_reader_leaves_has_not_ended_well() -> None:
    async def main() -> None:
        async with Engine(capacity_rows=1) as engine:
            rows = [{"n": number} for number in range(1000)]
            async with engine.stream(loads(PLAN % ""), x=rows) as stream:
                async for _ in stream:
                    break

    asyncio.run(main())
    assert closed == ["ledger", "pool"]


def test_a_service_that_cannot_be_closed_fails_the_run_and_the_others_are_closed() -> None:
    with pytest.raises(RunError, match="the ledger cannot be written"):
        asyncio.run(_run([1], "BROKEN"))
    assert closed == ["ledger, ended well", "pool"]


def test_another_can_stand_in_for_a_service_and_belongs_to_who_gave_it() -> None:
    result = asyncio.run(_run([1], services={Pool: Pool(10)}))
    assert [row["n"] for row in result] == [100]
    assert opened == ["ledger"]
    assert closed == ["ledger, ended well"]


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
