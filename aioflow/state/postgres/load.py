"""Many rows into a table by COPY, with the number of the row that was refused.

One COPY takes as many rows as can be encoded in a tenth of a second, so that other tasks get their turn. Rows
that are on disk are read by the disk thread, a few batches at a time.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import chain
from time import thread_time

import asyncpg

from aioflow.config.masking import mask
from aioflow.relation import Batch, Row
from aioflow.runtime.spill import OwnedItems, walk
from aioflow.state.driver import ColumnNeed
from aioflow.state.errors import ConflictError
from aioflow.state.postgres.schema import TableColumn
from aioflow.state.postgres.values import RowEncoder, is_binary, shown_value
from aioflow.state.postgres.wire import Wire

_SECONDS = 0.1
_BATCH_ROWS = 4096
_SHOWN_CHARACTERS = 400
_LINE = re.compile(r"\bline (\d+)(?:, column ([^:]+))?")


class Load:
    """Copies batches of rows into columns of a table."""

    def __init__(
        self,
        wire: Wire,
        table: str,
        columns: Sequence[TableColumn],
        batches: Iterable[Batch],
        needs: Sequence[ColumnNeed],
    ) -> None:
        self._wire = wire
        self._table = table
        self._names = [column.name for column in columns]
        self._encoder = RowEncoder(columns, needs)
        self._is_binary = all(map(is_binary, columns))
        self._batches = _pieces(batches)
        self._on_disk: AsyncIterator[Batch] | None = None
        if isinstance(batches, OwnedItems) and batches.is_on_disk:
            self._on_disk = walk(batches, self._batches)
        self._sent: list[Batch] = []  # by the COPY that is under way
        self._before = 0  # rows that are copied
        self._has_ended = False
        self._lost: Exception | None = None  # what made the batches end too early

    async def run(self) -> int:
        """Copy all rows and return their number. After a failure the transaction must be undone."""
        while not self._has_ended:
            try:
                async with self._wire.calling(writes=True):
                    await self._copy_or_conflict()
            except Exception:
                if self._lost is not None:
                    raise self._lost from None
                raise
            self._before += sum(map(len, self._sent))
            self._sent = []
        return self._before

    async def _copy_or_conflict(self) -> None:
        try:
            await self._copy()
        except Exception as error:
            conflict = self._conflict(error) if self._lost is None else None
            if conflict is None:
                raise
            raise conflict from error

    async def _copy(self) -> None:
        if self._is_binary and self._on_disk is not None:
            async with aclosing(self._rows()) as records:
                await self._wire.raw.copy_records_to_table(self._table, columns=self._names, records=records)
        elif self._is_binary:
            rows = chain.from_iterable(map(self._encoder.encode, self._some()))
            await self._wire.raw.copy_records_to_table(self._table, columns=self._names, records=rows)
        else:
            async with aclosing(self._lines()) as lines:
                await self._wire.raw.copy_to_table(
                    self._table, columns=self._names, source=lines, format="text", encoding="utf-8"
                )

    async def _rows(self) -> AsyncGenerator[Row, None]:
        async with aclosing(self._some_from_disk()) as batches:
            async for batch in batches:
                for row in self._encoder.encode(batch):
                    yield row

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        as_line = self._encoder.as_line
        async with aclosing(self._some_from_disk()) as batches:
            async for batch in batches:
                yield "".join([f"{as_line(row)}\n" for row in batch]).encode()

    async def _some_from_disk(self) -> AsyncGenerator[Batch, None]:
        """Yield the batches of one COPY, wherever they are."""
        if self._on_disk is None:
            for batch in self._some():
                yield batch
            return
        deadline = thread_time() + _SECONDS
        while (found := await self._next_from_disk(self._on_disk)) is not None:
            self._sent.append(found)
            yield found
            if thread_time() >= deadline:
                return
        self._has_ended = True

    async def _next_from_disk(self, batches: AsyncIterator[Batch]) -> Batch | None:
        try:
            return await anext(batches, None)
        except Exception as error:
            self._lost = error
            raise

    def _some(self) -> Iterator[Batch]:
        deadline = thread_time() + _SECONDS
        while (batch := self._next()) is not None:
            self._sent.append(batch)
            yield batch
            if thread_time() >= deadline:
                return
        self._has_ended = True

    def _next(self) -> Batch | None:
        try:
            return next(self._batches, None)
        except Exception as error:
            self._lost = error
            raise

    # --- what was refused -----------------------------------------------------------------------

    def _conflict(self, error: Exception) -> ConflictError | None:
        """Return the error that names a row, if one is at fault by its values or by the server's answer."""
        if not isinstance(error, asyncpg.PostgresError):
            return self._refusal()
        found = _LINE.search(error.context or "")
        if found is None or (error.sqlstate or "")[:2] not in ("22", "23", "54"):
            return None
        place = int(found[1]) - 1
        row = next((row for at, row in enumerate(chain.from_iterable(self._sent)) if at == place), None)
        if row is None:
            return None
        reason = self._encoder.refused(row) or "; ".join(filter(None, (error.args[0], error.detail)))
        return self._named(place, row, reason)

    def _refusal(self) -> ConflictError | None:
        for place, row in enumerate(chain.from_iterable(self._sent)):
            if (reason := self._encoder.refused(row)) is not None:
                return self._named(place, row, reason)
        return None

    def _named(self, place: int, row: Row, reason: str) -> ConflictError:
        pairs = zip(self._names, row, strict=False)
        shown = shown_row(", ".join(f"{name}={shown_value(value)}" for name, value in pairs))
        return ConflictError(
            mask(f"the table {self._table!r} cannot take row {self._before + place + 1} ({shown}): {reason}")
        )


def shown_row(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _pieces(batches: Iterable[Batch]) -> Generator[Batch, None, None]:
    """Yield batches that are small enough to be encoded quickly."""
    for batch in batches:
        if len(batch) <= _BATCH_ROWS:
            yield batch
        else:
            for start in range(0, len(batch), _BATCH_ROWS):
                yield batch[start : start + _BATCH_ROWS]
