"""Feeds the rows that a user gave into an input of the main plan."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from itertools import islice

from aioflow.errors import AioflowError, InputError
from aioflow.outlet import Outlet
from aioflow.plan import InputDeclaration
from aioflow.relation import Relation
from aioflow.rows import Intake, RowsIn, batches_of
from aioflow.session import Session
from aioflow.stream import Stream

_BATCH_ROWS = 256


class Feed:
    """One input of a run, which feeds the stream that the plan reads."""

    def __init__(self, session: Session, declaration: InputDeclaration, rows: RowsIn, stream: Stream) -> None:
        self._session = session
        self._name = declaration.name
        self._rows = rows
        self._intake = Intake(declaration.name, declaration.schema)
        self._task: asyncio.Task[None] | None = None
        self._outlet = Outlet([stream], self._unread)
        schema = self._intake.peek(rows)
        if schema is not None:
            self._outlet.open(schema)

    @property
    def name(self) -> str:
        return self._name

    @property
    def rows(self) -> int:
        """How many were taken."""
        return self._outlet.sent

    def start(self) -> None:
        if self._outlet.unread:
            self._outlet.end()
            return
        self._task = self._session.spawn(self._feed())
        self._task.add_done_callback(self._feed_ended)

    def _feed_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None or (task.cancelled() and not self._outlet.ended):
            self._session.fail(InputError(f"input {self._name!r}: its source failed: {error or 'cancelled'}"))

    def _unread(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._outlet.end()

    async def _feed(self) -> None:
        intake = self._intake
        relation = intake.whole(self._rows)
        try:
            if relation is not None:
                await self._feed_relation(relation)
            else:
                await self._feed_mappings()
        except AioflowError as error:
            self._session.fail(error)
        except Exception as error:
            failure = InputError(f"input {self._name!r}: its source failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._session.fail(failure)
        else:
            self._outlet.end()

    async def _pass_gate(self) -> None:
        if self._session.checkpoints is not None:
            await self._session.checkpoints.gate()

    async def _feed_relation(self, relation: Relation) -> None:
        rows = iter(relation.rows)
        while batch := list(islice(rows, _BATCH_ROWS)):
            await self._pass_gate()
            if self._outlet.push(batch):
                await self._outlet.drain()

    async def _feed_mappings(self) -> None:
        outlet, intake = self._outlet, self._intake
        async with aclosing(batches_of(self._rows)) as batches:
            async for mappings in batches:
                rows = intake.batch(mappings)
                if outlet.schema is None and intake.schema is not None:
                    outlet.open(intake.schema)
                await self._pass_gate()
                if rows and outlet.push(rows):
                    await outlet.drain()
