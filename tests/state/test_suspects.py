"""What is held back, as the database keeps it, and fingerprints of keys."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aioflow.relation import Document, Relation, Row, Schema, identity
from aioflow.state.diff.suspects import (
    Suspect,
    confirm_suspect,
    fingerprint,
    fingerprints,
    forget_suspect,
    read_suspect,
    read_suspects,
    write_suspect,
)
from aioflow.state.driver import Address
from aioflow.state.sqlite.driver import SQLITE
from aioflow.state.system_tables import prepare
from aioflow.wholeness import Reason

NOTICED = datetime(2026, 1, 31, 10, tzinfo=UTC)


VALUES: list[Any] = [
    *(None, True, False, 0, 0.0, Decimal("-0.00"), 1, 1.0, Decimal("1.0"), -1, -2, 2**61 - 1, 10**23, 1e23),
    *(Decimal("1e23"), Decimal("1e5000"), 100, Decimal("1.00e2"), 0.1, Decimal("0.1"), Decimal("0.10"), 2.5),
    *(Decimal("2.5"), float("nan"), Decimal("NaN")),
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


@given(st.lists(ROWS, max_size=3) | st.lists(st.lists(st.text(st.characters(codec=None))).map(tuple)))
def test_fingerprints_of_many_rows_are_those_of_each(rows: list[Row]) -> None:
    assert fingerprints(rows) == list(map(fingerprint, rows))


def test_every_process_has_the_same_fingerprints() -> None:
    code = "from aioflow.state.diff.suspects import fingerprint; print(fingerprint(('x', 1, None, 2.5)))"
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


async def test_suspects_are_kept_confirmed_and_forgotten(tmp_path: Path) -> None:
    address = Address("default", f"sqlite:{tmp_path / 'test.db'}", "test.db", tmp_path / "test.db")
    connection = await SQLITE.connect(address)
    suspect = Suspect(
        *("t", "run", NOTICED, NOTICED, 60, 30, 1, 2, ("price", "agent")),
        (Reason("page 3 failed"), Reason("fewer rows", "plan/search/1")),
    )
    try:
        assert await read_suspects(connection) == []
        await prepare(connection, SQLITE, address, print)
        async with connection.transaction("write"):
            await write_suspect(connection, replace(suspect, gone=1))
            await write_suspect(connection, suspect)
            await write_suspect(connection, replace(suspect, table="other"))
            await write_suspect(connection, Suspect("empty", "run", NOTICED, NOTICED))
        assert await read_suspect(connection, "t") == suspect
        confirmed = replace(suspect, confirmed="quiet", confirmed_columns=suspect.columns)
        assert await confirm_suspect(connection, "t", quietly=True) == confirmed
        assert await read_suspect(connection, "t") == confirmed
        assert [each.confirmed for each in await read_suspects(connection)] == ["", "quiet"]
        assert await forget_suspect(connection, "t")
        assert not await forget_suspect(connection, "t")
        assert await confirm_suspect(connection, "t") is None
        assert await confirm_suspect(connection, "empty") is None
        assert [each.table for each in await read_suspects(connection)] == ["other"]
    finally:
        await connection.close()


def test_what_is_held_is_said_in_words() -> None:
    suspect = Suspect("t", "run", NOTICED, NOTICED, 60, 30, 1, 2, ("price", "agent"), (), True)
    assert suspect.held == (
        "30 of 60 rows seem to be gone; 1 row that seems new; 2 rows that seem changed; "
        "price, agent are empty; no run has seen the whole yet"
    )
    assert replace(suspect, gone=1).held.startswith("1 of 60 rows seems to be gone; ")
