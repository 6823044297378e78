"""A table that diff watches in tests, from run to run and day to day, and relations that are not whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

import aioflow.operators.differences  # noqa: F401  # registers it
from aioflow import Context, Result, Row, Stream, operator, same_as_input
from aioflow.relation import Batch, identity
from aioflow.runtime.session import MODES, Mode
from aioflow.state import Connection
from aioflow.state.databases import Databases
from aioflow.state.diff.suspects import Suspect, confirm_suspect, read_suspects
from aioflow.wholeness import PROVEN_EMPTY, WHOLE, Marks, partial
from tests.operators.database_plans import configuration, run_on, table

T = TypeVar("T")

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
DAY = timedelta(days=1)
MARKS = {
    "whole": WHOLE,
    "partial": partial("page 3 failed"),
    "asked": partial("no rows on 1 page; has the page changed?"),
    "doubtful": Marks(doubtful=partial("a side lacks rows").partial),
    "empty": PROVEN_EMPTY,
}


@operator(schema=same_as_input)
async def suspicion_marked(rel: Stream, *, mark: str, context: Context) -> AsyncGenerator[Batch, None]:
    """Pass tuples on as a relation with those marks."""
    async for batch in rel.batches():
        yield batch
    context.mark(MARKS[mark])


class Table:
    """A table that diff watches, from run to run and day to day."""

    def __init__(self, url: str, options: str = 'KEY: "k"', name: str = "t") -> None:
        self.url = url
        self.options = options
        self.name = name
        self.now = START
        self.warnings: list[str] = []
        self.notes: tuple[str, ...] = ()

    def see(
        self, *rows: Row, mark: str = "whole", after: timedelta = DAY, mode: Mode = "D+S+", **options: Any
    ) -> tuple[list[Row], ...]:
        """Run diff the next day; return what is told."""
        self.now += after
        statements = (
            f'suspicion_marked (rel, "{mark}" : marked) '
            f'diff (marked, "{self.name}" : added, changed, removed) {{{self.options}}}'
        )
        rel = [dict(zip("kav", row, strict=True)) for row in rows]
        result: Result = asyncio.run(
            run_on(
                self.url,
                statements,
                outputs="added, changed, removed",
                rel=rel,
                clock=lambda: self.now,
                mode=mode,
                **options,
            )
        )
        self.warnings = [each for each in result.warnings if "held back" in each]
        self.notes = result.statistics.notes
        self.account = result.account
        return tuple(
            [record.row for record in result.outputs[name]] for name in ("added", "changed", "removed")
        )

    def ask(self, question: Callable[[Connection], Awaitable[T]]) -> T:
        """Return the answer to a question to the database."""

        async def main() -> T:
            databases = Databases(configuration(self.url))
            connection = await databases.connect(databases.address("default", Path()))
            try:
                return await question(connection)
            finally:
                await connection.close()

        return asyncio.run(main())

    def confirm(self, *, quietly: bool = False) -> None:
        async def confirm(connection: Connection) -> None:
            async with connection.transaction("write"):
                assert await confirm_suspect(connection, self.name, quietly=quietly)

        self.ask(confirm)

    def suspects(self) -> list[Suspect]:
        return self.ask(read_suspects)

    def rows(self) -> list[Row]:
        return table(self.url, self.name)


# --- random relations ---------------------------------------------------------------------------

NUMBERS = (None, float("nan"), 0, 1, 1.0, Decimal(1), 2.5, Decimal("2.5"), Decimal("0.1"), 0.1, -1, -2)
TEXTS = (None, "", "1", "x", "y", "null", "Ünï", "'", "a-b", " ")
BOOLEANS = (None, True, False)
DATES = (
    None,
    date(2026, 1, 31),
    datetime(2026, 1, 31),
    datetime(2026, 1, 31, 12),
    datetime(2026, 1, 31, tzinfo=UTC),
)
# PostgreSQL's columns are of one kind; SQLite's may hold anything.
COLUMNS: dict[str, list[tuple[Any, ...]]] = {
    "sqlite": [(*NUMBERS, *TEXTS, *BOOLEANS, *DATES), (*range(6), None), (None, "x", "y")],
    "postgresql": [NUMBERS, TEXTS, BOOLEANS, DATES[:2], (*range(6), None), (None, "x", "y")],
}


@st.composite
def days(draw: st.DrawFn, database: str) -> list[tuple[list[Row], str, bool, int, Mode]]:
    """Relations from day to day, how whole they are, whether a person confirms before, hours, and modes."""
    columns = st.sampled_from(COLUMNS[database])
    row = st.tuples(*(st.sampled_from(draw(columns)) for _ in range(3)))
    relation = st.lists(row, max_size=7, unique_by=lambda row: identity(row[:1]))
    mark = st.sampled_from(["whole", "whole", "whole", "partial", "doubtful"])
    day = st.tuples(relation, mark, st.booleans(), st.sampled_from([1, 24, 30]), st.sampled_from(MODES))
    return draw(st.lists(day, min_size=2, max_size=7))
