"""PostgreSQL, through asyncpg: found by URLs `postgresql://user@host/name`, with the extra `postgres`.

A table's name is one name, whatever it contains: tables of other schemas are reached through the search path
(`postgresql://…/name?search_path=sales,public`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import SplitResult, parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

from aioflow.errors import InputError, MissingExtraError
from aioflow.relation import Batch, Schema, Type
from aioflow.state.driver import Address, Connection, quote_name

CONNECT_SECONDS = 10.0

_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_OWN_TABLES = (
    "select tablename::text from pg_tables where schemaname = current_schema() "
    "and starts_with(tablename::text, 'aioflow_') and tablename::text !~ '_before_v[0-9]+$' order by 1"
)


@dataclass(frozen=True)
class PostgresDriver:
    """Opens connections to PostgreSQL."""

    schemes: tuple[str, ...] = ("postgresql", "postgres")

    def check(self, address: Address) -> None:
        if find_spec("asyncpg") is None:
            raise MissingExtraError("PostgreSQL", "postgres")
        _arguments(address)

    async def connect(self, address: Address) -> Connection:
        self.check(address)
        from aioflow.state.postgres.connection import connect

        return await connect(address, _arguments(address))

    def unstorable(self, schema: Schema, batch: Batch) -> Sequence[tuple[int, int, str]]:
        from aioflow.state.postgres.values import text_problem

        places = [place for place, kind in enumerate(schema.types) if kind in (Type.CHAR, None)]
        found = []
        for number, row in enumerate(batch):
            for place in places:
                value = row[place]
                if isinstance(value, str) and (problem := text_problem(value)) is not None:
                    found.append((number, place, problem))
                    break
        return found

    async def copy_before_upgrade(self, connection: Connection, address: Address, version: int) -> str:
        """Copy the tables beside themselves. The copy of an upgrade that failed is replaced."""
        async with connection.transaction("write"):
            for (table,) in await connection.fetch(_OWN_TABLES):
                copy = quote_name(f"{table}_before_v{version}")
                await connection.run(f"drop table if exists {copy}")
                await connection.run(f"create table {copy} as table {quote_name(table)}")
        return f"in the tables aioflow_*_before_v{version} of {address.shown or address.name}"


POSTGRES = PostgresDriver()


def _arguments(address: Address) -> dict[str, Any]:
    """Return the arguments for asyncpg. Raise an InputError, which never shows the URL, for a wrong one."""
    shown = address.shown or address.name
    try:
        parts = urlsplit(address.url)
        if "," not in parts.netloc:  # there may be several servers
            _ = parts.port
    except ValueError:
        raise InputError(f"{shown}: no URL of a database; write postgresql://user@host:5432/name") from None
    options = parse_qs(parts.query, keep_blank_values=True)
    mode = options.get("sslmode", ["prefer"])[-1]
    if mode not in _SSL_MODES:
        raise InputError(f"{shown}: sslmode is {mode!r}; it can be {', '.join(_SSL_MODES)}")
    return {
        "dsn": _without_timeout(parts) if "connect_timeout" in options else address.url,
        "timeout": _seconds(shown, options.get("connect_timeout", [""])[-1]),
        "server_settings": {} if "application_name" in options else {"application_name": "aioflow"},
        # A schema that somebody changes makes cached statements fail, in the middle of a transaction.
        "statement_cache_size": 0,
    }


def _without_timeout(parts: SplitResult) -> str:
    """Return the URL without the timeout, which asyncpg would send to the server as a setting."""
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "connect_timeout"]
    return urlunsplit(parts._replace(query=urlencode(query)))


def _seconds(shown: str, text: str) -> float:
    if not text:
        return CONNECT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        raise InputError(f"{shown}: connect_timeout is {text!r}, and not a number of seconds") from None
    return seconds if seconds > 0 else CONNECT_SECONDS
