"""Files of rows on disk that a run needs for a while: batches in order, and a private SQLite database.

Files are anonymous: they are unlinked as soon as they are made, so that even a killed process leaves none.
That is also why pickles are safe in them: no other process can write there. All of them are opened, used and
closed by the disk thread.

The database does not use `SqliteWorker`, the connection of the other databases. That has a thread for each
connection, and a plan may have a hundred structures on disk. A look-up is also part of a function that works
on a whole batch, which would need a second way to another thread and back.
"""

from __future__ import annotations

import io
import pickle
import struct
import tempfile
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from aioflow.errors import ClosedError
from aioflow.relation import Batch, Document, DocumentKind, Row
from aioflow.runtime.memory import LARGE_CHARACTERS, MemoryBudget

if TYPE_CHECKING:
    from sqlite3 import Connection, Cursor

MOST_VARIABLES = 256  # of one SQL statement
_LENGTH = struct.Struct("<Q")


class StoredDocuments:
    """Large documents in a file: each is written once, though many rows have it, and read once for them.

    Only the disk thread uses it. Rows with one document follow each other, so the last few are remembered.
    """

    def __init__(self, write: Callable[[str], int], read: Callable[[int], str]) -> None:
        self._write, self._read = write, read
        self._written: OrderedDict[int, tuple[Document, int]] = OrderedDict()
        self._known: OrderedDict[int, Document] = OrderedDict()

    def dumps(self, value: Any) -> bytes:
        """Return a pickle that refers to large documents by their places."""
        buffer = io.BytesIO()
        _RowPickler(buffer, self).dump(value)
        return buffer.getvalue()

    def loads(self, data: bytes) -> Any:
        _reading.documents = self
        try:
            return pickle.loads(data)
        finally:
            _reading.documents = None

    def put(self, document: Document) -> int:
        """Return the place of a document."""
        found = self._written.pop(id(document), None)
        place = self._write(document.text) if found is None else found[1]
        self._written[id(document)] = document, place
        _trim(self._written)
        return place

    def get(self, place: int, kind: DocumentKind) -> Document:
        document = self._known.pop(place, None)
        if document is None:
            document = Document(self._read(place), kind)
        self._known[place] = document
        _trim(self._known)
        return document

    def clear(self) -> None:
        self._written.clear()
        self._known.clear()


_REMEMBERED = 4
_reading = threading.local()


def _trim(remembered: OrderedDict[int, Any]) -> None:
    if len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)


class _RowPickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, documents: StoredDocuments) -> None:
        super().__init__(buffer, protocol=5)
        self._documents = documents

    def reducer_override(self, value: Any) -> Any:
        if type(value) is Document and len(value.text) >= LARGE_CHARACTERS:
            return _stored_document, (self._documents.put(value), value.kind)
        return NotImplemented


def _stored_document(place: int, kind: DocumentKind) -> Document:
    documents: StoredDocuments = _reading.documents
    return documents.get(place, kind)


class SpillFile:
    """Batches one after the other in an anonymous file, which only the disk thread uses."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._disk = memory.disk
        self._file: BinaryIO | None = None
        self._documents = StoredDocuments(self._write_text, self._read_text)
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
        self._starts.append(self._write_data(self._documents.dumps(rows)))

    def _write_data(self, data: bytes) -> int:
        """Write at the end; return where that was."""
        assert self._file is not None
        start = self._end
        self._file.seek(start)
        self._file.write(_LENGTH.pack(len(data)))
        self._file.write(data)
        self._end += _LENGTH.size + len(data)
        return start

    def _read_data(self, start: int) -> bytes:
        assert self._file is not None
        self._file.seek(start)
        (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
        return self._file.read(length)

    def _write_text(self, text: str) -> int:
        return self._write_data(text.encode("utf-8", "surrogatepass"))

    def _read_text(self, start: int) -> str:
        return self._read_data(start).decode("utf-8", "surrogatepass")

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
        return cast(Batch, self._documents.loads(self._read_data(self._starts[number])))

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
        self._documents.clear()
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
            "CREATE TABLE documents (place INTEGER PRIMARY KEY, text BLOB)",
        )
        self._documents = StoredDocuments(self._write_text, self._read_text)

    def _write_text(self, text: str) -> int:
        data = text.encode("utf-8", "surrogatepass")
        place = (
            self._database.connection().execute("INSERT INTO documents (text) VALUES (?)", (data,)).lastrowid
        )
        return cast(int, place)

    def _read_text(self, place: int) -> str:
        query = "SELECT text FROM documents WHERE place = ?"
        (data,) = self._database.connection().execute(query, (place,)).fetchone()
        return cast(bytes, data).decode("utf-8", "surrogatepass")

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
            dumps = self._documents.dumps
            values = chain.from_iterable((code, dumps(entry)) for code, entry in some)
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
                found.setdefault(code, []).append(self._documents.loads(entry))
        return found

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Give all entries with their hashes, in the order of those."""
        disk = self._database.disk
        query = "SELECT hash, entry FROM entries ORDER BY hash, rowid"
        cursor = disk.wait(lambda: self._database.connection().execute(query))
        while found := disk.wait(self._fetched, cursor):
            yield from found

    def _fetched(self, cursor: Cursor) -> list[tuple[int, Any]]:
        return [(code, self._documents.loads(entry)) for code, entry in cursor.fetchmany(MOST_VARIABLES)]

    def close(self) -> None:
        self._database.close()

    def forget(self) -> None:
        """Count the table as closed; it closes with its last use."""
        self._database.forget()
