"""diff beside others: rows and tables that come or go between the comparison and the commit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from aioflow import RunError
from aioflow.operators import differences
from aioflow.state import open_difference
from tests.operators.database_plans import run, run_on, table


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'houses.db'}"


@pytest.fixture
def was_read(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when a comparison has read its table."""
    event = asyncio.Event()

    async def opened(*arguments: Any) -> Any:
        found = await open_difference(*arguments)
        event.set()
        return found

    monkeypatch.setattr(differences, "open_difference", opened)
    return event


async def compared(
    url: str, clauses: str, was_read: asyncio.Event, first: Any, others: Callable[[], Any], *rest: Any
) -> None:
    """Compare tuples, while something else happens behind the first."""

    async def tuples() -> AsyncIterator[Any]:
        yield first
        await was_read.wait()
        await asyncio.to_thread(others)
        for each in rest:
            yield each

    await run_on(url, f'diff (x, "t" : out) {{{clauses}}}', outputs="out", x=tuples())


def diffed(url: str, clauses: str, *rows: Any) -> Callable[[], Any]:
    return lambda: run(url, f'diff (x, "t" : out) {{{clauses}}}', outputs="out", x=list(rows))


@pytest.mark.parametrize("clauses", ["GUARD: off", 'KEY: "k"; GUARD: off'])
async def test_what_another_run_added_while_it_removed_as_much_is_not_added_twice(
    url: str, clauses: str, was_read: asyncio.Event
) -> None:
    x, y = {"k": "x", "n": 1}, {"k": "y", "n": 1}
    await asyncio.to_thread(diffed(url, clauses, x))
    was_read.clear()
    with pytest.raises(RunError, match=r"'y'.* added by another run"):
        await compared(url, clauses, was_read, x, diffed(url, clauses, y), y)
    assert [row[0] for row in await asyncio.to_thread(table, url)] == ["y"]


async def test_a_table_that_vanished_meanwhile_is_not_made_anew(url: str, was_read: asyncio.Event) -> None:
    def drop() -> None:
        connection = sqlite3.connect(url.removeprefix("sqlite:"))
        connection.execute("drop table t")
        connection.commit()
        connection.close()

    await asyncio.to_thread(diffed(url, 'KEY: "k"', {"k": "x"}))
    was_read.clear()
    with pytest.raises(RunError, match="removed by another run"):
        await compared(url, 'KEY: "k"', was_read, {"k": "x"}, drop, {"k": "y"})


@pytest.mark.parametrize("names", [("rowid",), ("_rowid_",), ("rowid", "_rowid_")])
async def test_attributes_may_be_called_like_the_ids_of_rows(url: str, names: tuple[str, ...]) -> None:
    rows = [{**dict.fromkeys(names, number), "k": number, "n": 1} for number in range(3)]
    await asyncio.to_thread(diffed(url, 'KEY: "k"', *rows))
    changed = [{**row, "n": 2} for row in rows]
    result = await run_on(url, 'diff (x, "t" : a, out) {KEY: "k"}', outputs="out", x=changed)
    assert [record["n"] for record in result.outputs["out"]] == [2, 2, 2]
    assert [row[-1] for row in await asyncio.to_thread(table, url)] == [2, 2, 2]
