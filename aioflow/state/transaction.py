"""The transaction of a run: the writes of its statements are committed together when the run has ended well.

Writes are staged elsewhere and applied in one short transaction at the end. Only a run that must see its own
writes before its end, through `own_view`, opens the transaction earlier and keeps other writers waiting. A
statement that reads there first has the writes applied that come before it, as far as they are staged. The
transaction has them then, and nothing of them is kept elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from aioflow.authoring.context import Context, Position, RunInfo
from aioflow.authoring.services import AccountEntry, Scope, ServiceHost
from aioflow.config.configuration import as_configuration
from aioflow.errors import AioflowError
from aioflow.runtime.shielded import run_shielded
from aioflow.state.crash_points import moment
from aioflow.state.databases import Databases
from aioflow.state.diff.settings import HISTORY, ChangeOrigin
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import BusyError, CommitError, DisconnectedError, StateError
from aioflow.state.lock_wait import LockWait
from aioflow.state.staged import Write
from aioflow.state.system_tables import check_fence, note_run, run_lock, was_committed
from aioflow.state.tables import Shape, Shapes

_BEGUN = moment("transaction begun", "the write lock is held, nothing is written")
_APPLIED = moment("writes applied", "everything is written, nothing is committed")
_COMMITTED = moment(
    "transaction committed", "the run's writes and messages are durable, nothing is delivered"
)


class _Undo(Exception):  # noqa: N818  # no error: a way out
    """Leaves a transaction so that nothing of it remains."""


class _Staging(msgspec.Struct):
    """The statement that made some writes. Writes without a position are seen by no statement."""

    position: Position | None
    is_seen: bool = False  # some of it was applied for another statement to see


class Transaction:
    """The writes of one run, all of them to one database; a service of the run."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, host: ServiceHost, run: RunInfo) -> None:
        self._host = host
        self._run = run
        self._databases = host.service(Databases)
        self._address: Address | None = None
        self._under_way: dict[Write, _Staging] = {}  # in the order in which their statements began
        self._complete: dict[Write, _Staging] = {}  # in the order in which they ended
        self._shapes = Shapes()
        self._live: AsyncExitStack | None = None
        self._connection: Connection | None = None  # of the open transaction
        self._broken: AioflowError | None = None  # the error that kept a write from being applied early
        self._file: tuple[int, int] | None = None
        self._using = asyncio.Lock()
        self._commits = 0
        self._held: dict[str, str] = {}  # by table: the changes that are held back from it, in words
        self._changes: dict[str, dict[str, int]] = {}  # by table: the numbers of rows that diff told

    @classmethod
    def open_service(cls, host: ServiceHost) -> Transaction:
        assert host.run is not None, "a transaction belongs to a run"
        return cls(host, host.run)

    # --- for statements -------------------------------------------------------------------------

    def database_of(self, database: str | None) -> Address:
        return self._databases.address(self._run.default("database", database), self._run.folder)

    @property
    def origin(self) -> ChangeOrigin:
        """Return the origin of the changes that statements of this run notice."""
        settings = as_configuration(self._host.configuration).section(HISTORY)
        return ChangeOrigin.of(self._run, settings)

    def stage(
        self,
        database: str | None,
        write: Write,
        *,
        position: Position | None = None,
        shape: Shape | None = None,
    ) -> None:
        """Register a write of a statement, which may still grow.

        Statements that come after the position see what stands in the write. A CommitError is raised when
        another statement makes something else of the same table, as the shapes tell.
        """
        address = self._bind(database)
        if shape is not None:
            self._shapes.add(shape, capitals_differ=address.path is None)
        self._under_way.setdefault(write, _Staging(position))

    def complete(self, write: Write) -> None:
        """The statement has ended: nothing more comes."""
        self._complete[write] = self._under_way.pop(write)
        self._drop_empty(write)

    def withdraw(self, write: Write, error: Exception) -> None:
        """The statement has failed: nothing of it is written. A CommitError when that cannot be any more."""
        staging = self._under_way.get(write)
        if staging is not None and staging.is_seen:
            told = str(error) if isinstance(error, AioflowError) else f"{type(error).__name__}: {error}"
            raise CommitError(
                f"{write.where}: {told}; the run has read rows of it already; nothing of this run was stored"
            ) from error
        self._under_way.pop(write, None)
        write.close()

    def may_write_to(self, database: str | None) -> bool:
        """Return whether the run writes to this database, as far as it is known already."""
        return self._address is None or self._address.url == self.database_of(database).url

    @asynccontextmanager
    async def own_view(
        self,
        database: str | None,
        context: Context,
        permit: Callable[[], AbstractAsyncContextManager[None]] | None = None,
        *,
        changes: bool = False,
    ) -> AsyncIterator[Connection]:
        """Open a view of the database after the writes before a statement, for one user at a time.

        From the first time on the run holds the write lock, unless it has written nothing to this database
        and the statement `changes` nothing. Pass nothing on before this block has ended, since a reader may
        itself wait for the view. The permit is taken last, since a statement that waits for it may hold the
        lock.
        """
        permit = permit or context.permit
        if changes:
            self._bind(database)
        elif self._address is None or not self.may_write_to(database):
            async with permit(), self.snapshot(database) as connection:
                yield connection
            return
        async with self._using:
            if self._connection is None:
                await self._open_early()
            assert self._connection is not None
            await run_shielded(self._apply_early(context.position))
            async with permit():
                yield self._connection

    @asynccontextmanager
    async def snapshot(self, database: str | None) -> AsyncIterator[Connection]:
        """The database as it is now, for reading; it stays so however long that takes."""
        connection = await self._databases.connect_to_read(self.database_of(database))
        try:
            async with connection.transaction("snapshot"):
                yield connection
        finally:
            await connection.close()

    def _bind(self, database: str | None) -> Address:
        address = self.database_of(database)
        if self._address is not None and self._address.url != address.url:
            raise StateError(
                f"a run writes to one database, here {self._address.shown}; it cannot write to "
                f"{address.shown} as well (reading others is free)"
            )
        self._address = address
        return address

    def hold(self, table: str, what: str) -> None:
        """Have the account of the run tell what is held back from a table."""
        self._held[table] = what

    def count_changes(self, table: str, kind: str, number: int) -> None:
        """Have the account of the run tell how many rows of a table were added, changed or removed."""
        changes = self._changes.setdefault(table, {"added": 0, "changed": 0, "removed": 0})
        changes[kind] += number

    def account(self) -> AccountEntry | None:
        if not self._commits and not self._held:
            return None
        lines = tuple(
            f"held back from {table}: {what} (aioflow suspects)" for table, what in self._held.items()
        )
        figures: dict[str, Any] = {"commits": self._commits, "held": dict(self._held)}
        if self._changes:
            figures["changes"] = self._changes
        return AccountEntry("state", figures, lines)

    # --- committing -----------------------------------------------------------------------------

    async def conclude(self) -> None:
        """Take every write as complete: all statements have ended."""
        self._complete |= self._under_way
        self._under_way.clear()

    @property
    def wants_checkpoint(self) -> bool:
        return self._live is not None or bool(self._ready())

    async def commit(self) -> bool:
        """Make durable what can be applied by now; return whether there was anything."""
        async with self._using:
            writes = list(self._ready())
            for write in writes:
                write.seal()
            if self._live is not None:
                await self._commit_early(writes)
            elif writes:
                await self._commit_staged(writes)
            else:
                return False
            self._commits += 1
            self._forget(writes)
            return True

    async def close(self) -> None:
        """Release everything; writes that were not committed are lost."""
        try:
            await self._leave(_Undo())
        finally:
            for write in (*self._complete, *self._under_way):
                write.close()

    def _ready(self) -> dict[Write, _Staging]:
        """Return the writes that can be applied, each after those whose statements it depends on."""
        ready = [(write, staging) for write, staging in self._complete.items() if not write.is_empty]
        for write, staging in self._under_way.items():
            if not write.whole and not write.is_empty:
                later = (at for at, (_, other) in enumerate(ready) if _comes_after(other, staging))
                ready.insert(next(later, len(ready)), (write, staging))
        return dict(ready)

    def _forget(self, writes: Iterable[Write]) -> None:
        """Let go of what was applied and needs never be again."""
        for write in writes:
            write.forget()
            self._drop_empty(write)

    def _drop_empty(self, write: Write) -> None:
        """Let go of a write to which nothing more comes; rows may have come while others were applied."""
        if write.is_empty and self._complete.pop(write, None) is not None:
            write.close()

    async def _commit_staged(self, writes: Sequence[Write]) -> None:
        """Everything in one short transaction; a server that goes away meanwhile is waited for."""
        assert self._address is not None
        patience = self._patience()
        now = datetime.now(UTC)
        lost = False
        async with AsyncExitStack() as stack:
            await _committing(patience.take_turn(self._databases.turn(self._address), stack))
            while True:
                try:
                    async with self._connected() as connection:
                        if lost and await was_committed(connection, self._run.run_id, now):
                            return
                        await self._write(connection, writes, now, patience)
                        return
                except (BusyError, DisconnectedError) as error:
                    lost = lost or isinstance(error, DisconnectedError)
                    await self._outlast(error, patience)
                except StateError as error:
                    raise _not_stored(error) from error

    async def _write(
        self, connection: Connection, writes: Sequence[Write], now: datetime, patience: LockWait
    ) -> None:
        async with AsyncExitStack() as stack:
            await patience.enter(connection, stack, run_lock(connection))
            _BEGUN()
            for write in writes:
                await _apply(write, connection)
            await _committing(self._note(connection, now))
            _APPLIED()
            await _committing(stack.aclose())
        _COMMITTED()

    # --- a transaction that is opened early -----------------------------------------------------

    async def _open_early(self) -> None:
        assert self._address is not None
        async with AsyncExitStack() as stack:
            patience = self._patience()
            await patience.take_turn(self._databases.turn(self._address), stack)
            connection = await stack.enter_async_context(self._connected())
            await patience.enter(connection, stack, run_lock(connection))
            _BEGUN()
            self._file = _file_at(self._address)
            self._connection, self._live = connection, stack.pop_all()

    async def _apply_early(self, position: Position) -> None:
        """Apply what comes before a statement; once something cannot be, nothing of the run takes hold."""
        assert self._connection is not None
        self._expect_unbroken()
        reader = _Staging(position)
        seen = {write: each for write, each in self._ready().items() if _comes_after(reader, each)}
        # All at one moment: of a row that is on its way, nothing is applied before what it came from.
        for write, staging in seen.items():
            staging.is_seen = True
            write.seal()
        try:
            for write in seen:
                await _apply(write, self._connection)
        except AioflowError as error:
            self._broken = error
            raise
        self._forget(seen)  # if this transaction is lost the run is: nothing is ever applied again

    def _expect_unbroken(self) -> None:
        if self._broken is not None:
            raise CommitError(str(self._broken)) from self._broken

    async def _commit_early(self, writes: Sequence[Write]) -> None:
        assert self._connection is not None
        now = datetime.now(UTC)
        try:
            self._expect_unbroken()
            for write in writes:
                await _apply(write, self._connection)
            self._expect_same_file()
            await _committing(self._note(self._connection, now))
            _APPLIED()
        except BaseException as error:
            await self._leave(_Undo())
            if isinstance(error, StateError):
                raise _not_stored(error) from error
            raise
        try:
            await self._leave(None)
        except DisconnectedError as error:
            await self._find_out(now, error)
        except StateError as error:
            raise _not_stored(error) from error
        _COMMITTED()

    def _expect_same_file(self) -> None:
        """Raise an error if the file of the database was replaced: a commit to the old one would be lost."""
        assert self._address is not None
        if _file_at(self._address) != self._file:
            raise StateError(f"{self._address.shown} was removed or replaced while the run wrote to it")

    async def _find_out(self, now: datetime, error: DisconnectedError) -> None:
        """Raise an error if a commit at which the connection was lost did not happen."""
        patience = self._patience()
        while True:
            try:
                async with self._connected() as connection:
                    if not await was_committed(connection, self._run.run_id, now):
                        raise _not_stored(error) from error
                    return
            except DisconnectedError as again:
                await self._outlast(again, patience)

    async def _outlast(self, error: BusyError | DisconnectedError, patience: LockWait) -> None:
        """Wait for others that write, or for a server that is away, as long as the settings say."""
        try:
            await patience.pause(error)
        except (BusyError, DisconnectedError) as last:
            raise _not_stored(last) from last

    async def _leave(self, undo: _Undo | None) -> None:
        """End the transaction that was opened early, if one was."""
        live, self._live, self._connection = self._live, None, None
        if live is None:
            return
        if undo is None:
            await live.aclose()
            return
        with suppress(_Undo, DisconnectedError):  # a server that is gone undoes it too
            await live.__aexit__(type(undo), undo, None)

    async def _note(self, connection: Connection, now: datetime) -> None:
        """Note the run in the database that it wrote to, which tells later whether a lost commit happened."""
        identity = self._run.identity
        if identity is not None and identity.occurrence:
            await check_fence(connection, identity.occurrence, identity.fence)
        await note_run(connection, self._run.run_id, self._run.plan, self._run.started, now)

    # --- connections ----------------------------------------------------------------------------

    def _patience(self) -> LockWait:
        assert self._address is not None
        seconds = self._databases.settings(self._address.name).wait_seconds
        return LockWait(self._address, seconds, self._host.warn)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        """A connection to a database that has our own tables."""
        assert self._address is not None
        connection = await self._databases.connect(self._address)
        try:
            await self._databases.prepare(connection, self._address, self._host.warn)
            yield connection
        finally:
            await connection.close()


def _file_at(address: Address) -> tuple[int, int] | None:
    """Return the file of a database, if it is one."""
    if address.path is None:
        return None
    try:
        found = address.path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _comes_after(later: _Staging, earlier: _Staging) -> bool:
    if later.position is None or earlier.position is None:
        return False
    return later.position.comes_after(earlier.position)


async def _apply(write: Write, connection: Connection) -> None:
    if write.is_empty:
        return
    try:
        await write.apply(connection)
    except (BusyError, DisconnectedError):
        raise
    except StateError as error:
        raise CommitError(f"{write.where}: {error}; nothing of this run was stored") from error


async def _committing(work: Awaitable[None]) -> None:
    """Await work of the commit, whose failure is not that of a statement."""
    try:
        await work
    except (BusyError, DisconnectedError):
        raise
    except StateError as error:
        raise _not_stored(error) from error


def _not_stored(error: StateError) -> CommitError:
    return CommitError(f"{error}; nothing of this run was stored")
