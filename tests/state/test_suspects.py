"""When a run is suspect, and when what vanishes is believed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.relation import Document, Relation, Row, Schema, identity
from aioflow.state.driver import Address
from aioflow.state.own_tables import prepare
from aioflow.state.sqlite import SQLITE
from aioflow.state.suspects import (
    Suspect,
    confirm_suspect,
    fingerprint,
    forget_suspect,
    is_suspect,
    mark_suspect,
    read_suspects,
    sampled,
)

NOTICED = datetime(2026, 1, 31, 10, tzinfo=UTC)


def suspect(vanishing: int, total: int = 10_000) -> Suspect:
    return Suspect("t", "run", NOTICED, vanishing, total)


def keys(first: int, end: int) -> list[Row]:
    return [(number,) for number in range(first, end)]


@pytest.mark.parametrize(
    ("vanishing", "total", "expected"),
    [(19, 19, False), (20, 20, True), (20, 66, True), (20, 67, False), (300, 1000, False), (301, 1000, True)],
)
def test_more_than_the_share_and_at_least_twenty_rows_are_suspect(
    vanishing: int, total: int, expected: bool
) -> None:
    assert is_suspect(vanishing, total, 0.3) is expected


@pytest.mark.parametrize(
    ("first", "again", "expected"),
    [
        ((0, 100), (0, 100), True),
        ((0, 100), (0, 91), True),
        ((0, 100), (0, 89), False),
        ((0, 100), (0, 110), True),
        ((0, 100), (0, 113), False),
        ((0, 100), (100, 200), False),
        ((0, 5000), (0, 5000), True),
        ((0, 5000), (200, 5200), True),
        ((0, 5000), (1500, 6500), False),
        ((0, 5000), (0, 9000), False),
    ],
)
def test_what_vanishes_again_is_believed_when_it_is_nearly_the_same(
    first: tuple[int, int], again: tuple[int, int], expected: bool
) -> None:
    before, _ = sampled(suspect(first[1] - first[0]), keys(*first), None)
    now, seen_again = sampled(suspect(again[1] - again[0]), keys(*again), before)
    assert before.settles(now, seen_again) is expected
    assert replace(before, confirmed=True).settles(now, 0)


VALUES: list[Any] = [
    *(None, True, False, 0, 1, 1.0, Decimal("1.0"), -1, 2.5, Decimal("2.5"), float("nan"), Decimal("NaN")),
    *("", "1", "None", date(2026, 1, 31), datetime(2026, 1, 31), NOTICED),
    *(NOTICED.astimezone(timezone(timedelta(hours=1))), Document("1", "html"), Document("1", "xml")),
    *(Relation(Schema(("a", "b")), [(1, 2), (3, 4)]), Relation(Schema(("b", "a")), [(4, 3), (2, 1.0)])),
    Relation(Schema(("a", "b")), [(1, 2)]),
]
ROWS = st.lists(st.sampled_from(VALUES), max_size=3).map(tuple)


@settings(deadline=None)
@given(ROWS, ROWS)
def test_fingerprints_are_equal_exactly_when_tuples_are(one: Row, other: Row) -> None:
    assert (fingerprint(one) == fingerprint(other)) is (identity(one) == identity(other))


def test_every_process_has_the_same_fingerprints() -> None:
    code = "from aioflow.state.suspects import fingerprint; print(fingerprint(('x', 1, None, 2.5)))"
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert prints == {fingerprint(("x", 1, None, 2.5))}


async def test_marks_are_kept_confirmed_and_forgotten(tmp_path: Path) -> None:
    address = Address("default", f"sqlite:{tmp_path / 'test.db'}", "test.db", tmp_path / "test.db")
    connection = await SQLITE.connect(address)
    try:
        assert await read_suspects(connection) == []
        await prepare(connection, SQLITE, address, print)
        mark, _ = sampled(suspect(30, 60), keys(0, 30), None)
        async with connection.transaction("write"):
            await mark_suspect(connection, replace(mark, vanishing=1))
            await mark_suspect(connection, mark)
            await mark_suspect(connection, replace(mark, table="other"))
        assert await read_suspects(connection, "t") == [mark]
        assert await confirm_suspect(connection, "t")
        assert [each.confirmed for each in await read_suspects(connection)] == [False, True]
        assert await forget_suspect(connection, "t")
        assert not await forget_suspect(connection, "t")
        assert not await confirm_suspect(connection, "t")
        assert [each.table for each in await read_suspects(connection)] == ["other"]
    finally:
        await connection.close()
