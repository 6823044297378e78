"""One connection of asyncpg: everything raises aioflow's errors, and a cancelled call has really ended.

Statements are prepared once a transaction: a later one may find other tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import asyncpg

from aioflow.errors import suggestion
from aioflow.secrets import mask
from aioflow.state.driver import Address
from aioflow.state.errors import ConflictError, DatabaseError
from aioflow.state.postgres_codecs import CalendarError, register
from aioflow.state.postgres_encoding import RefusedError, bound, shown_value
from aioflow.state.postgres_errors import FAILURES, missing_table, not_connected, shown_address, translated
from aioflow.state.postgres_statements import controls_transaction, dated, verb_of

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
        """Connect, with what asyncpg needs to know."""
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
        """Whether one was begun, even if it has failed."""
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
        """Stands around everything that goes to the server."""
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
        """A suggestion. A transaction that has failed answers no more questions: they are asked elsewhere."""
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
        """Find out what the types are that the server does not bring along."""
        unknown = {kind.oid for kind in kinds if kind.oid >= _FIRST_OWN_OID} - self._bases.keys()
        if unknown:
            self._bases.update(await self.raw.fetch(_BASES, list(unknown)))

    def forget_statements(self) -> None:
        """Tables may be other ones from now on, or statements be gone with what was undone."""
        self._statements.clear()

    def bound(self, statement: Any, values: Sequence[Any]) -> list[Any]:
        """Values for the parameters of a statement."""
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
        """Stands around what decodes a result."""
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
