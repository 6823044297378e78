"""dbappend and dbimport with SQLite, beside aiosqlite as one would write it by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import aiosqlite

from aioflow import Row
from aioflow.benchmarks.harness import Bench, experiment
from aioflow.benchmarks.stored_houses import (
    APPEND,
    IMPORT,
    claim_stores,
    houses,
    run_with,
    sample_stores,
)

RAW_APPEND, RAW_IMPORT = "aiosqlite executemany", "aiosqlite fetchall"
# As the engine's own: readers and a writer at once, and what is committed is on disk.
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL")
_TABLE = "create table houses (url text, address text, price integer, beds integer, listed text)"


@experiment(
    "How fast are appends and imports with SQLite beside the driver alone?",
    work="100,000 houses (url, address, price, beds, day) into an empty table, and out of it again: dbappend "
    "and dbimport, and aiosqlite with executemany in one transaction and with fetchall",
    limit="the driver alone, which knows the table, and looks at no value",
    name="store-sqlite",
)
def sqlite_store(bench: Bench) -> None:
    rows = houses(bench.size(100_000, 500))
    with TemporaryDirectory(prefix="aioflow-bench-") as folder:
        file = Path(folder, "houses.db")
        sample_stores(
            bench,
            rows,
            partial(_empty, file),
            {
                "dbappend": partial(run_with, APPEND, f"sqlite:{file}"),
                RAW_APPEND: partial(_append, file, rows),
            },
            {
                "dbimport": partial(run_with, IMPORT, f"sqlite:{file}"),
                RAW_IMPORT: partial(_import, file),
            },
            rounds=7,
        )
    claim_stores(bench, RAW_APPEND, RAW_IMPORT)


def _empty(file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()


async def _append(file: Path, rows: list[Row]) -> int:
    async with aiosqlite.connect(file) as database:
        for pragma in _PRAGMAS:
            await database.execute(f"pragma {pragma}")
        await database.execute(_TABLE)
        values = ((url, address, price, beds, day.isoformat()) for url, address, price, beds, day in rows)
        await database.executemany("insert into houses values (?, ?, ?, ?, ?)", values)
        await database.commit()
        return len(rows)


async def _import(file: Path) -> int:
    async with aiosqlite.connect(file) as database, database.execute("select * from houses") as cursor:
        return len(list(await cursor.fetchall()))
