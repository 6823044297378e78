"""dbappend and dbimport with PostgreSQL, beside asyncpg as one would write it by hand."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from aioflow import Row
from aioflow.benchmarks.harness import Bench, experiment
from aioflow.benchmarks.postgres_server import ServerMissingError, postgres_server
from aioflow.benchmarks.stored_houses import (
    APPEND,
    COLUMNS,
    IMPORT,
    claim_stores,
    houses,
    not_measured,
    run_with,
    sample_stores,
)

RAW_APPEND, RAW_IMPORT = "asyncpg COPY", "asyncpg fetch"
_TABLE = "create table houses (url text, address text, price bigint, beds bigint, listed date)"


@experiment(
    "How fast are appends and imports with PostgreSQL beside the driver alone?",
    work="100,000 houses (url, address, price, beds, day) into an empty table, and out of it again: dbappend "
    "and dbimport, and asyncpg with one COPY and with one fetch; a server of its own on this machine",
    limit="the driver alone, which knows the table, and looks at no value",
    name="store-postgres",
)
def postgres_store(bench: Bench) -> None:
    try:
        import asyncpg

        with postgres_server() as url:
            _measure(bench, asyncpg, url)
    except ImportError:
        not_measured(bench, RAW_APPEND, RAW_IMPORT, "asyncpg is not installed")
    except ServerMissingError as error:
        not_measured(bench, RAW_APPEND, RAW_IMPORT, str(error))


def _measure(bench: Bench, asyncpg: Any, url: str) -> None:
    rows = houses(bench.size(100_000, 500))
    sample_stores(
        bench,
        rows,
        lambda: asyncio.run(_empty(asyncpg, url)),
        {"dbappend": partial(run_with, APPEND, url), RAW_APPEND: partial(_append, asyncpg, url, rows)},
        {"dbimport": partial(run_with, IMPORT, url), RAW_IMPORT: partial(_import, asyncpg, url)},
        rounds=7,
    )
    claim_stores(bench, RAW_APPEND, RAW_IMPORT)


async def _empty(asyncpg: Any, url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("drop table if exists houses")
    await connection.execute("checkpoint")  # the pages of the one before are not for this one
    await connection.close()


async def _append(asyncpg: Any, url: str, rows: list[Row]) -> int:
    connection = await asyncpg.connect(url)
    async with connection.transaction():
        await connection.execute(_TABLE)
        await connection.copy_records_to_table("houses", records=rows, columns=COLUMNS)
    await connection.close()
    return len(rows)


async def _import(asyncpg: Any, url: str) -> int:
    connection = await asyncpg.connect(url)
    found = await connection.fetch("select * from houses")
    await connection.close()
    return len(found)
