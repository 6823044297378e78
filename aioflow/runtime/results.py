"""The results of a run as its caller reads them."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator
from itertools import repeat
from types import TracebackType
from typing import Generic, TypeVar

from aioflow.errors import BEING_READ, InputError
from aioflow.relation import Record, Schema
from aioflow.runtime.account import RunAccount
from aioflow.runtime.run import Run, RunState
from aioflow.runtime.statistics import EdgeSample, RunStatistics

T = TypeVar("T")


class RunStream:
    """The rows of one run: `async for row in stream`. The run begins with the first read.

    Leaving the loop stops the run: at once if the stream is used with `async with` or closed with `aclose`,
    else when the stream is garbage-collected. One task reads at a time; any task may close.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._output = ""
        self._records: Iterator[Record] = iter(())  # of that output, received and not yet given
        self._is_being_read = False

    def __aiter__(self) -> RunStream:
        declared = self._run.outputs
        if self._run.output is None and len(declared) > 1:
            names = ", ".join(declared)
            raise InputError(
                f"the plan has several outputs ({names}): pick one with output=…, or use .named()"
            )
        return self

    async def __anext__(self) -> Record:
        wanted = self._wanted
        while True:
            for record in self._records if self._output == wanted else ():
                return record
            await self._receive()

    def named(self) -> RunIterator[tuple[str, Record]]:
        """Return an iterator of (output, row) for all outputs, including those that the plan emits to."""
        return RunIterator(self, self._next_named)

    def batches(self) -> RunIterator[tuple[str, list[Record]]]:
        """Return an iterator of (output, rows) for all outputs, batch by batch."""
        return RunIterator(self, self._next_batch)

    async def _next_named(self) -> tuple[str, Record]:
        while True:
            for record in self._records:
                return self._output, record
            await self._receive()

    async def _next_batch(self) -> tuple[str, list[Record]]:
        records = list(self._records)
        if not records:
            await self._receive()
            records = list(self._records)  # maybe none: an output was named, and has no rows yet
        return self._output, records

    @property
    def _wanted(self) -> str | None:
        if self._run.output is not None:
            return self._run.output
        return self._run.outputs[0] if self._run.outputs else None

    @property
    def schema(self) -> Schema | None:
        """The attributes of the output that is read; None as long as they are unknown."""
        wanted = self._wanted
        return None if wanted is None else self._run.schema_of(wanted)

    async def _receive(self) -> None:
        """Wait for the next rows of any output; raise StopAsyncIteration after the last."""
        run = self._run
        if self._is_being_read:
            raise InputError(BEING_READ)
        self._is_being_read = True
        try:
            batch = None
            if not run.is_over:
                if not run.has_started:
                    run.start()
                batch = await run.output_queue.take()
        except BaseException as error:
            await run.stop(interrupted=isinstance(error, CancelledError))
            raise
        finally:
            self._is_being_read = False
        if batch is None:
            self._records = iter(())  # maybe of another output, which is not read
            await run.stop()
            run.raise_failure()
            raise StopAsyncIteration
        port, rows = batch
        assert port.schema is not None
        run.session.memory.hand_out(rows)
        self._output, self._records = port.name, map(Record, repeat(port.schema), rows)

    async def aclose(self) -> None:
        """Stop the run if it is still running, and release everything. A task that reads it gets an error."""
        await self._close()

    async def _close(self, *, interrupted: bool = False) -> None:
        self._run.output_queue.was_cut |= bool(list(self._records))
        await self._run.stop(interrupted=interrupted)

    async def __aenter__(self) -> RunStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(interrupted=isinstance(error, CancelledError))

    def take_back(self) -> None:
        """Close the files of relations in rows that were read, for a reader that passes none of them on."""
        self._run.session.memory.take_back()

    def __del__(self) -> None:
        self._run.abandon()

    @property
    def state(self) -> RunState:
        """The state of the run, such as RUNNING, COMMITTING or DELIVERING."""
        return self._run.state

    @property
    def is_ending(self) -> bool:
        """True if no statement works any more, and the run stores, delivers and releases."""
        return self._run.is_ending

    @property
    def is_complete(self) -> bool:
        """True if the run has ended successfully, its writes are stored, and all of its rows were read."""
        return self._run.is_complete

    def account(self) -> RunAccount:
        """Return the account of the run so far, to be shown or stored."""
        return self._run.account()

    def statistics(self) -> RunStatistics:
        """Return the statistics of the run so far."""
        return self._run.statistics()

    def edge_samples(self) -> tuple[EdgeSample, ...]:
        """Return the latest row that each statement under way has taken from each of its inputs."""
        return self._run.edge_samples()


class RunIterator(Generic[T]):
    """One way to read the stream of a run. Unlike an async generator, any task may close it."""

    def __init__(self, stream: RunStream, read: Callable[[], Awaitable[T]]) -> None:
        self._stream = stream
        self._read = read

    def __aiter__(self) -> RunIterator[T]:
        return self

    async def __anext__(self) -> T:
        return await self._read()

    async def aclose(self) -> None:
        """Stop the run, as the stream's own `aclose` does."""
        await self._stream.aclose()
