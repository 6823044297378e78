"""The results of a run as somebody reads them."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncGenerator, Iterator
from itertools import repeat
from types import TracebackType

from aioflow.errors import InputError
from aioflow.outputs import Port
from aioflow.relation import Batch, Record
from aioflow.running import Run
from aioflow.statistics import RunStatistics


class RunStream:
    """The rows of one run: `async for row in stream`. The run begins with the first read.

    Leaving the loop stops the run: at once when the stream is used as `async with` or closed with
    `aclose`, else as soon as nobody holds the stream any more.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._records: Iterator[Record] = iter(())

    def __aiter__(self) -> RunStream:
        declared = self._run.outputs
        if self._run.output is None and len(declared) > 1:
            names = ", ".join(declared)
            raise InputError(
                f"the plan has several outputs ({names}): pick one with output=…, or use .named()"
            )
        return self

    async def __anext__(self) -> Record:
        while True:
            for record in self._records:
                return record
            letter = await self._receive()
            if letter is None:
                raise StopAsyncIteration
            port, rows = letter
            if port.name == self._wanted:
                assert port.schema is not None
                self._records = map(Record, repeat(port.schema), rows)

    async def named(self) -> AsyncGenerator[tuple[str, Record], None]:
        """(output, row) of all outputs as they come, also of those that the plan emits to."""
        async for name, records in self.batches():
            for record in records:
                yield name, record

    async def batches(self) -> AsyncGenerator[tuple[str, list[Record]], None]:
        """(output, rows) of all outputs, batch by batch."""
        while (letter := await self._receive()) is not None:
            port, rows = letter
            schema = port.schema
            assert schema is not None
            yield port.name, [Record(schema, row) for row in rows]

    @property
    def _wanted(self) -> str | None:
        if self._run.output is not None:
            return self._run.output
        return self._run.outputs[0] if self._run.outputs else None

    async def _receive(self) -> tuple[Port, Batch] | None:
        run = self._run
        if run.is_over:
            run.raise_failure()
            return None
        try:
            if not run.has_started:
                run.start()
            letter = await run.mailbox.take()
        except BaseException as error:
            await run.stop(interrupted=isinstance(error, CancelledError))
            raise
        if letter is None:
            await run.stop()
            run.raise_failure()
        return letter

    async def aclose(self) -> None:
        """Stop the run, if it still runs, and release everything it holds."""
        await self._run.stop()

    async def __aenter__(self) -> RunStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._run.stop(interrupted=isinstance(error, CancelledError))

    def __del__(self) -> None:
        self._run.abandon()

    @property
    def is_ending(self) -> bool:
        """Whether the run works on nothing more: it stores, delivers and releases what it has."""
        return self._run.is_ending

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended well, what it wrote is stored, and all of its rows were read."""
        return self._run.is_complete

    def statistics(self) -> RunStatistics:
        """What the run has done so far."""
        return self._run.statistics()
