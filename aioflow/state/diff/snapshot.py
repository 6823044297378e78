"""The rows of a table by key: scanned once, then looked up. In memory up to the limit, then on disk."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from aioflow.memory import Memory, Spillable, batch_size
from aioflow.relation import Batch, Row
from aioflow.state.errors import DiskFullError

if TYPE_CHECKING:
    import sqlite3

Keys: TypeAlias = Callable[[Batch], Sequence[Hashable]]
Found: TypeAlias = tuple[int, Row]  # the number of a row, and the row

_BATCH_ROWS = 1024
_MOST_VARIABLES = 256  # of one SQL statement
_KEY_OVERHEAD_BYTES = 160  # a slot in a dictionary, a number and the tuple around a key


class SameKeyError(Exception):
    """Two rows have one key."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.row = row


class Remembered(Spillable):
    """Rows with different keys, numbered as they came; which of them were seen is noted by number.

    `append` them all, `seal` it, then `find` what is wanted. Beyond the account's limit a row costs one byte.
    """

    def __init__(self, memory: Memory, keys: Keys) -> None:
        super().__init__(memory)
        self._keys = keys
        self._numbers: dict[Hashable, int] = {}
        self._rows: Batch = []
        self._disk: _RowFile | None = None
        self.seen = bytearray()

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def is_on_disk(self) -> bool:
        """Whether `seal` takes time, and belongs on another thread."""
        return self._disk is not None

    def append(self, batch: Batch) -> None:
        """Add rows; a SameKeyError if one has the key of another."""
        keys = self._keys(batch)
        if self._disk is None and self.reserve(batch_size(batch) + _KEY_OVERHEAD_BYTES * len(batch)):
            first = len(self._rows)
            self._numbers.update(zip(keys, range(first, first + len(batch)), strict=True))
            self._rows += batch
            if len(self._numbers) != len(self._rows):
                raise SameKeyError(self._repeated(keys, batch, first))
        else:
            if self._disk is None:
                self._disk = _RowFile(self._memory)
            twice = [row for key, row in zip(keys, batch, strict=True) if key in self._numbers]
            if twice:
                raise SameKeyError(twice[0])
            self._disk.append(list(map(hash, keys)), batch)
        self.seen.extend(bytes(len(batch)))

    def _repeated(self, keys: Sequence[Hashable], batch: Batch, first: int) -> Row:
        """The row of a batch whose key an earlier row has."""
        known = set(self._keys(self._rows[:first]))
        for key, row in zip(keys, batch, strict=True):
            if key in known:
                return row
            known.add(key)
        raise AssertionError("no key is there twice")

    def seal(self) -> None:
        """All rows are there. A SameKeyError if two of those on disk have one key."""
        if self._disk is not None:
            self._disk.seal()
            for rows in self._disk.of_one_hash():
                keys = self._keys(rows)
                for place, key in enumerate(keys):
                    if key in keys[:place]:
                        raise SameKeyError(rows[place])

    def find(self, keys: Sequence[Hashable]) -> list[Found | None]:
        """For each key the number and the row that has it, or None."""
        rows, number_of = self._rows, self._numbers.get
        numbers = list(map(number_of, keys))
        found: list[Found | None] = [None if each is None else (each, rows[each]) for each in numbers]
        if self._disk is not None:
            self._find_on_disk(self._disk, keys, found)
        return found

    def _find_on_disk(self, disk: _RowFile, keys: Sequence[Hashable], found: list[Found | None]) -> None:
        wanted = [place for place, each in enumerate(found) if each is None]
        numbers, rows = disk.find({hash(keys[place]) for place in wanted})
        first = len(self._rows)
        stored = {
            key: (first + number, row)
            for key, number, row in zip(self._keys(rows), numbers, rows, strict=True)
        }
        for place in wanted:
            found[place] = stored.get(keys[place])

    def see(self, which: Callable[[Batch], Sequence[bool]]) -> int:
        """Note which of the rows that were not seen are now; return how many."""
        unseen = (number for number, is_seen in enumerate(bytes(self.seen)) if not is_seen)
        found = 0
        for batch in self.unseen():
            # In this order: a batch that has ended takes no further number.
            for is_seen, number in zip(which(batch), unseen, strict=False):
                self.seen[number] = is_seen
                found += is_seen
        return found

    def unseen(self) -> Iterator[Batch]:
        """The rows that were not seen, in order."""
        seen = self.seen
        for start in range(0, len(self._rows), _BATCH_ROWS):
            batch = self._rows[start : start + _BATCH_ROWS]
            left = [row for number, row in enumerate(batch, start) if not seen[number]]
            if left:
                yield left
        if self._disk is not None:
            yield from self._disk.rows_without(seen[len(self._rows) :])

    def close_files(self) -> None:
        self._numbers, self._rows = {}, []
        if self._disk is not None:
            self._disk.close()
            self._disk = None


class _RowFile:
    """Rows in a private temporary SQLite database: written in order, then found by hash."""

    def __init__(self, memory: Memory) -> None:
        import sqlite3  # only a table that is too large for the memory pays for it

        self._memory = memory
        # The empty name makes SQLite use an anonymous file. Its index is made by another thread.
        self._connection: sqlite3.Connection = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False
        )
        memory.count_files(1)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -2048"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("BEGIN")
        self._connection.execute(
            "CREATE TABLE entries (number INTEGER PRIMARY KEY, hash INTEGER, entry BLOB)"
        )

    def append(self, hashes: Sequence[int], rows: Batch) -> None:
        dump = pickle.dumps
        with _told():
            self._connection.executemany(
                "INSERT INTO entries (hash, entry) VALUES (?, ?)",
                ((code, dump(row, 5)) for code, row in zip(hashes, rows, strict=True)),
            )
        self._memory.count_spilled(len(rows))

    def seal(self) -> None:
        """Sorting all hashes at once takes a fraction of what keeping them sorted would."""
        with _told():
            self._connection.execute("CREATE INDEX by_hash ON entries (hash)")

    def of_one_hash(self) -> Iterator[Batch]:
        """Rows that share a hash, and perhaps a key."""
        query = "SELECT hash FROM entries GROUP BY hash HAVING count(*) > 1"
        for (code,) in self._connection.execute(query):
            yield self.find({code})[1]

    def find(self, hashes: set[int]) -> tuple[list[int], Batch]:
        """Numbers, from 0, and rows that have one of these hashes."""
        numbers: list[int] = []
        rows: Batch = []
        # In their order: neighbours are on one page of the index.
        ordered = sorted(hashes)
        load = pickle.loads
        for start in range(0, len(ordered), _MOST_VARIABLES):
            some = ordered[start : start + _MOST_VARIABLES]
            query = f"SELECT number, entry FROM entries WHERE hash IN ({','.join('?' * len(some))})"
            for number, entry in self._connection.execute(query, some):
                numbers.append(number - 1)
                rows.append(load(entry))
        return numbers, rows

    def rows_without(self, seen: bytearray) -> Iterator[Batch]:
        """The rows whose numbers are not marked, in order."""
        batch: Batch = []
        for number, entry in self._connection.execute("SELECT number, entry FROM entries ORDER BY number"):
            if not seen[number - 1]:
                batch.append(pickle.loads(entry))
                if len(batch) == _BATCH_ROWS:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def close(self) -> None:
        self._connection.close()
        self._memory.count_files(-1)


@contextmanager
def _told() -> Iterator[None]:
    """What SQLite says when it has no room for its file is told as what it is."""
    import sqlite3

    try:
        yield
    except sqlite3.OperationalError as error:
        raise DiskFullError(
            f"what a table holds did not fit into the folder for temporary files: {error}; make room there, "
            "or name another by TMPDIR"
        ) from error
