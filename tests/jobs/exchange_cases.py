"""What every home of an exchange has to do; the tests of each home run these."""

from __future__ import annotations

from typing import Any

from aioflow.jobs import Exchange, StageRecord


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def record(*rows: tuple[Any, ...], **told: Any) -> StageRecord:
    return StageRecord(list(rows), **told)


async def check_the_first_record_of_a_key_wins(exchange: Exchange) -> None:
    await exchange.put(key(1), record((1, "a")))
    await exchange.put(key(1), record((2, "b")))
    await exchange.flush()
    await exchange.put(key(1), record((3, "c")))
    await exchange.flush()
    found = await exchange.find(key(1))
    assert found is None or found.rows == [(1, "a")]


async def check_claims_are_bounded_and_kept(exchange: Exchange) -> None:
    assert await exchange.claim("pages", [key(1), key(2), key(1)], 2) == [True, True, True]
    assert await exchange.claim("pages", [key(3), key(2)], 2) == [False, True]
    assert await exchange.claim("others", [key(3)], 1) == [True]
    assert await exchange.claim("pages", [key(3)]) == [True]
