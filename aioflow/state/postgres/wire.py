"""One connection of asyncpg: its calls raise aioflow's errors, and a cancelled call has really ended.

Statements are prepared once in each transaction, since a later one may find other tables. Records become rows
of the language, in batches whose size follows that of the rows.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import asyncpg

from aioflow.config.masking import mask
from aioflow.errors import suggestion
from aioflow.relation import Batch
from aioflow.runtime.memory import batch_size
from aioflow.state.driver import Address
from aioflow.state.errors import ConflictError, DatabaseError
from aioflow.state.postgres.errors import FAILURES, missing_table, not_connected, shown_address, translated
from aioflow.state.postgres.schema import DATES, kind_of
from aioflow.state.postgres.values import (
    CalendarError,
    RefusedError,
    bound,
    decoder_of,
    register,
    shown_value,
)

FIRST_ROWS = 16

_MOST_ROWS = 1024
_MOST_BYTES = 1 << 20
_RECORD = 2249  # a row that is no named type's
_BEFORE_VERB = re.compile(r"(?:[\s;]|--[^\n]*(?:\n|$))*")
_COMMENT_SIGN = re.compile(r"/\*|\*/")
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_CONTROL = frozenset({"begin", "start", "commit", "end", "rollback", "abort"})
_TWO_PHASED = re.compile(r"prepare\s+transaction\b", re.IGNORECASE)


def verb_of(sql: str) -> str:
    """Return the word with which a statement begins, in small letters."""
    found = _WORD.match(sql, _start(sql))
    return found.group().lower() if found else ""


def controls_transaction(sql: str) -> bool:
    """Return whether a statement would begin or end a transaction."""
    return verb_of(sql) in _CONTROL or _TWO_PHASED.match(sql, _start(sql)) is not None


def _start(sql: str) -> int:
    at = 0
    while True:
        found = _BEFORE_VERB.match(sql, at)
        at = found.end() if found else at
        if not sql.startswith("/*", at):
            return at
        at = _end_of_comment(sql, at)


def _end_of_comment(sql: str, start: int) -> int:
    depth = 0
    for sign in _COMMENT_SIGN.finditer(sql, start):  # comments nest
        depth += 1 if sign.group() == "/*" else -1
        if depth == 0:
            return sign.end()
    return len(sql)


# --- results ------------------------------------------------------------------------------------


def is_listed(kind: Any) -> bool:
    """Return whether values of a type have several parts, by asyncpg's description of it."""
    return kind.kind in ("array", "composite") or kind.oid == _RECORD


def kinds_of(attributes: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(kind_of(each.type.oid, is_listed(each.type)) for each in attributes)


def dated(attributes: Sequence[Any]) -> list[str]:
    """Return the columns of a result that have dates."""
    return [each.name for each in attributes if each.type.oid in DATES]


def row_decoder(attributes: Sequence[Any]) -> Callable[[Sequence[Any]], Batch]:
    """Return a function that turns asyncpg's records into rows of the language."""
    decoders = [
        (place, decode)
        for place, each in enumerate(attributes)
        if (decode := decoder_of(each.type.oid, is_listed(each.type))) is not None
    ]
    if not decoders:
        return lambda records: list(map(tuple, records))

    def decode_rows(records: Sequence[Any]) -> Batch:
        columns: list[Sequence[Any]] = list(zip(*records, strict=True))
        for place, decode in decoders if columns else ():
            columns[place] = [None if value is None else decode(value) for value in columns[place]]
        return list(zip(*columns, strict=True))

    return decode_rows


def next_size(size: int, batch: Batch) -> int:
    """Return how many rows to ask for next: more than before, as long as they are small."""
    fitting = _MOST_BYTES * len(batch) // max(1, batch_size(batch))
    return max(1, min(4 * size, _MOST_ROWS, fitting))


_REST_SECONDS = 10.0
_CLOSE_SECONDS = 5.0
_KEPT_STATEMENTS = 100
# Types of users: for a domain, what it is a domain of.
_BASES = (
    "select oid, case typtype when 'd' then typbasetype else oid end from pg_type where oid = any($1::oid[])"
)
_FIRST_OWN_OID = 16_384
_KNOWN_TABLES = (
    "select relname::text from pg_class "
    "where relkind in ('r', 'p', 'v', 'm', 'f') and pg_table_is_visible(oid) "
    "and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
)


class Wire:
    """A connection to the server, and the statements that are prepared there."""

    def __init__(self, raw: Any, address: Address, arguments: dict[str, Any]) -> None:
        self.raw = raw
        self.shown = shown_address(address)
        self._address = address
        self._arguments = arguments
        self._statements: dict[str, Any] = {}
        self._bases: dict[int, int] = {}

    @classmethod
    async def open(cls, address: Address, arguments: dict[str, Any]) -> Wire:
        """Connect with the arguments for asyncpg."""
        try:
            raw = await asyncpg.connect(**arguments)
        except (*FAILURES, ValueError) as error:
            raise not_connected(error, address) from error
        try:
            await register(raw)
        except BaseException:
            raw.terminate()
            raise
        return cls(raw, address, arguments)

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction was begun, even if it has failed."""
        return not self.raw.is_closed() and bool(self.raw.is_in_transaction())

    async def close(self) -> None:
        self._statements.clear()
        try:
            await self.raw.close(timeout=_CLOSE_SECONDS)
        except FAILURES:
            self.raw.terminate()
        except BaseException:
            self.raw.terminate()
            raise

    # --- calls ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def calling(self, sql: str = "", *, writes: bool = False) -> AsyncIterator[None]:
        """Translate the errors of calls to the server, and wait for a cancelled one to end."""
        try:
            yield
        except asyncio.CancelledError:
            await self._come_to_rest()
            raise
        except FAILURES as error:
            is_closed = self.raw.is_closed()
            failure = translated(error, self._address, sql=sql, is_closed=is_closed, writes=writes)
            if (table := missing_table(error)) is not None:
                failure = type(failure)(f"{failure}{await self._nearest_table(table)}")
            raise failure from error

    async def command(self, sql: str) -> str:
        """Execute what has no values and no rows; the answer of the server."""
        async with self.calling(sql):
            status: str = await self.raw.execute(sql)
            return status

    async def undo(self, sql: str) -> None:
        """Leave a transaction or savepoint because of an error, which is the one to be told."""
        self.forget_statements()
        if not self.in_transaction:
            return
        try:
            await self.command(sql)
        except DatabaseError:
            self.raw.terminate()  # the server then undoes it by itself
        except BaseException:
            self.raw.terminate()
            raise

    async def _come_to_rest(self) -> None:
        """Wait until the server has given up what was cancelled; the next question is answered only then."""
        if self.raw.is_closed():
            return
        try:
            async with asyncio.timeout(_REST_SECONDS):
                await self.raw.execute("select 1")
        except asyncpg.PostgresError:
            pass  # an answer as well: the transaction has failed
        except FAILURES:
            self.raw.terminate()
        except BaseException:
            self.raw.terminate()
            raise

    async def _nearest_table(self, table: str) -> str:
        """Return a suggestion for a table's name.

        A transaction that has failed answers no questions, so another connection asks.
        """
        with suppress(*FAILURES):
            if not self.in_transaction:
                return suggestion(table, await _table_names(self.raw))
            other = await asyncpg.connect(**self._arguments)
            try:
                return suggestion(table, await _table_names(other))
            finally:
                other.terminate()
        return ""

    # --- statements -----------------------------------------------------------------------------

    async def prepared(self, sql: str, *, is_kept: bool = True) -> Any:
        if controls_transaction(sql):
            raise DatabaseError(
                f"{self.shown}: {verb_of(sql)!r} cannot be run: where a transaction begins and ends is not "
                "for single statements to say"
            )
        statement = self._statements.get(sql) if is_kept else None
        if statement is None:
            statement = await self.raw.prepare(sql)
            await self._look_up(statement.get_parameters())
            if is_kept and self.in_transaction and len(self._statements) < _KEPT_STATEMENTS:
                self._statements[sql] = statement
        return statement

    async def _look_up(self, kinds: Sequence[Any]) -> None:
        """Look up the types that are not built into the server."""
        unknown = {kind.oid for kind in kinds if kind.oid >= _FIRST_OWN_OID} - self._bases.keys()
        if unknown:
            self._bases.update(await self.raw.fetch(_BASES, list(unknown)))

    def forget_statements(self) -> None:
        """Drop prepared statements. Tables may have changed, or an undone transaction took them along."""
        self._statements.clear()

    def bound(self, statement: Any, values: Sequence[Any]) -> list[Any]:
        """Return the values for the parameters of a statement."""
        kinds = statement.get_parameters()
        if len(kinds) != len(values):
            raise DatabaseError(f"{self.shown}: the statement takes {len(kinds)} values, not {len(values)}")
        fitting = []
        for value, kind in zip(values, kinds, strict=True):
            try:
                fitting.append(bound(value, self._bases.get(kind.oid, kind.oid), kind.kind))
            except RefusedError as error:
                found = f"value {len(fitting) + 1}, {shown_value(value)}, {error}"
                raise ConflictError(mask(f"{self.shown}: {found} ({kind.name} is asked for)")) from None
        return fitting

    @contextmanager
    def reading(self, attributes: Sequence[Any]) -> Iterator[None]:
        """Explain dates that Python's calendar does not have while a result is decoded."""
        try:
            yield
        except CalendarError:
            names = ", ".join(map(repr, dated(attributes))) or "the result"
            raise DatabaseError(
                f"{self.shown}: {names}: a date is infinite or outside of the years 1 to 9999, and so "
                "none of the language; leave it out in a query, or cast it to text"
            ) from None


async def _table_names(raw: Any) -> list[str]:
    return [name for (name,) in await raw.fetch(_KNOWN_TABLES)]
