"""Files of rows on disk that a run needs for a while: batches in order, and a private SQLite database.

Files are anonymous: they are unlinked as soon as they are made, so that even a killed process leaves none.
That is also why pickles are safe in them: no other process can write there. All of them are opened, used and
closed by the disk thread.

The database does not use `SqliteWorker`, the connection of the other databases. That has a thread for each
connection, and a plan may have a hundred structures on disk. A look-up is also part of a function that works
on a whole batch, which would need a second way to another thread and back.
"""

from __future__ import annotations

import pickle
import struct
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from aioflow.errors import ClosedError
from aioflow.relation import Batch, Row
from aioflow.runtime.memory import MemoryBudget

if TYPE_CHECKING:
    from sqlite3 import Connection

MOST_VARIABLES = 256  # of one SQL statement
_LENGTH = struct.Struct("<Q")


class SpillFile:
    """Batches one after the other in an anonymous file, which only the disk thread uses."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._disk = memory.disk
        self._file: BinaryIO | None = None
        self._starts: list[int] = []  # where each batch begins
        self._end = 0
        self._unwritten: deque[Sequence[Row]] = deque()
        self._failure: Exception | None = None
        self._is_closed = False
        self.count = 0  # of batches, those that wait to be written included
        memory.count_files(1)

    def append(self, rows: Sequence[Row]) -> None:
        """Hand over a batch, which must not change any more. A failure to write it is raised later."""
        if self._failure is not None:
            raise self._failure
        self.count += 1
        self._memory.count_spilled(len(rows))
        self._unwritten.append(rows)
        self._disk.write(self._write, rows)

    def _write(self, rows: Sequence[Row]) -> None:
        try:
            if not self._is_closed and self._failure is None:
                self._write_batch(rows)
        except Exception as error:  # told to the caller that appends or reads next
            self._failure = error
        self._unwritten.popleft()

    def _write_batch(self, rows: Sequence[Row]) -> None:
        if self._file is None:
            self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="aioflow-"))  # noqa: SIM115  # see _close
        data = pickle.dumps(rows, protocol=5)
        self._file.seek(self._end)
        self._file.write(_LENGTH.pack(len(data)))
        self._file.write(data)
        self._starts.append(self._end)
        self._end += _LENGTH.size + len(data)

    async def settle(self) -> None:
        """Wait until every batch is written, or its failure known, which is raised."""
        await self._disk.settle()
        if self._failure is not None:
            raise self._failure

    @property
    def unwritten(self) -> Sequence[Sequence[Row]]:
        """The batches that wait to be written."""
        return tuple(self._unwritten)

    def read(self, number: int) -> Batch:
        """Return a batch by its number, from 0."""
        return self._disk.wait(self.read_here, number)

    def read_here(self, number: int) -> Batch:
        """Return a batch by its number; only in the disk thread."""
        if self._failure is not None:
            raise self._failure
        if self._file is None:
            raise ClosedError("a file of rows was closed while it was read")
        self._file.seek(self._starts[number])
        (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
        return cast(Batch, pickle.loads(self._file.read(length)))

    def batches(self, first: int = 0, end: int | None = None) -> Iterator[Batch]:
        """Give the batches from one number up to another, by default up to the last one."""
        number = first
        while number < (self.count if end is None else end):
            yield self.read(number)
            number += 1

    def clear(self) -> None:
        self.count = 0
        self._disk.write(self._clear)

    def _clear(self) -> None:
        self._starts.clear()
        self._end = 0
        if self._file is not None:
            self._file.truncate(0)

    def close(self) -> None:
        self.forget()
        self._disk.finish(self._close)

    def forget(self) -> None:
        """Count the file as closed; it closes with its last use."""
        self._is_closed = True
        self._memory.count_files(-1)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # rows that it could not flush are not read any more
                file.close()

    def __del__(self) -> None:
        if self._file is not None:
            self._close()


class TemporaryDatabase:
    """A private SQLite database, opened with its first use."""

    def __init__(self, memory: MemoryBudget, *statements: str) -> None:
        self._memory = memory
        self._statements = statements  # that make its tables
        self._connection: Connection | None = None
        self.disk = memory.disk
        memory.count_files(1)

    def connection(self) -> Connection:
        """Return the connection; only in the disk thread."""
        if self._connection is None:
            self._connection = _connected(self._statements)
        return self._connection

    def fetched(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Give the results of a query, which the disk thread fetches."""
        cursor = self.disk.wait(lambda: self.connection().execute(query))
        while found := self.disk.wait(cursor.fetchmany, MOST_VARIABLES):
            yield from found

    def count_spilled(self, rows: int) -> None:
        self._memory.count_spilled(rows)

    def close(self) -> None:
        self.forget()
        self.disk.finish(self._close)

    def forget(self) -> None:
        """Count the database as closed; it closes with its last use."""
        self._memory.count_files(-1)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        if self._connection is not None:
            self._close()


def _connected(statements: Sequence[str]) -> Connection:
    import sqlite3  # only runs that spill pay for it

    # The empty name makes SQLite use an anonymous file, written only as its cache overflows. The thread is
    # not checked: a database that was forgotten is closed where it is collected.
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    for pragma in (
        "journal_mode = OFF",
        "synchronous = OFF",
        "cache_size = -2048",
        "locking_mode = EXCLUSIVE",
    ):
        connection.execute(f"PRAGMA {pragma}")
    for statement in ("BEGIN", *statements):
        connection.execute(statement)
    return connection


class DiskTable:
    """Pickled entries by hash."""

    def __init__(self, memory: MemoryBudget) -> None:
        # An index of its own stays small: it alone answers for keys that were never added.
        self._database = TemporaryDatabase(
            memory,
            "CREATE TABLE entries (hash INTEGER, entry BLOB)",
            "CREATE INDEX by_hash ON entries (hash)",
        )

    def add(self, entries: Sequence[tuple[int, Any]]) -> None:
        """Add entries, each with its hash."""
        self._database.count_spilled(len(entries))
        self._database.disk.wait(self._add, entries)

    def _add(self, entries: Sequence[tuple[int, Any]]) -> None:
        connection = self._database.connection()
        # In order of their hashes: neighbours go to one page of the index.
        ordered = sorted(entries, key=itemgetter(0))
        # Many rows a statement: after each, the thread has to wait for the interpreter's lock.
        most = MOST_VARIABLES // 2
        for start in range(0, len(ordered), most):
            some = ordered[start : start + most]
            places = ",".join(["(?,?)"] * len(some))
            values = chain.from_iterable((code, pickle.dumps(entry, 5)) for code, entry in some)
            connection.execute(f"INSERT INTO entries VALUES {places}", list(values))

    def find(self, codes: Iterable[int]) -> dict[int, list[Any]]:
        """Return the entries with one of these hashes, by hash and in the order of their arrival."""
        return self._database.disk.wait(self._find, codes)

    def _find(self, codes: Iterable[int]) -> dict[int, list[Any]]:
        connection = self._database.connection()
        found: dict[int, list[Any]] = {}
        different = sorted(set(codes))
        for start in range(0, len(different), MOST_VARIABLES):
            some = different[start : start + MOST_VARIABLES]
            places = ",".join("?" * len(some))
            query = f"SELECT hash, entry FROM entries WHERE hash IN ({places}) ORDER BY rowid"
            for code, entry in connection.execute(query, some):
                found.setdefault(code, []).append(pickle.loads(entry))
        return found

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Give all entries with their hashes, in the order of those."""
        for code, entry in self._database.fetched("SELECT hash, entry FROM entries ORDER BY hash, rowid"):
            yield code, pickle.loads(entry)

    def close(self) -> None:
        self._database.close()

    def forget(self) -> None:
        """Count the table as closed; it closes with its last use."""
        self._database.forget()
