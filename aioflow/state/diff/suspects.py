"""Suspects: the rows and columns that diff holds back from a table, and the reasons.

A page that was cut short, or a site that was down or redesigned, looks like a catalogue that has changed. So
uncertain changes are neither stored nor told until a whole run, repetition or a person has settled them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from aioflow.relation import Batch, Document, Relation, Row, Schema, decimal_of, identity
from aioflow.state.driver import Connection
from aioflow.state.health import accept_baseline
from aioflow.state.system_tables import HELD, SUSPECTS, from_stamp, stamp
from aioflow.values.quantities import count_text
from aioflow.wholeness import Reason

# A person's decision on a suspect: none, that it is true, or that it is to be applied without a message.
Confirmation: TypeAlias = Literal["", "tell", "quiet"]

# In place of a number of runs: the key of a row that seems new. Below it, of one that a person has taken
# over as old under another key, and that has not come yet; each whole run without it counts down.
NEW = -1
_COLUMNS = (
    *("table_name", "run_id", "noticed", "seen", "total", "gone", "added", "changed"),
    *("column_names", "reasons", "incomplete", "confirmed"),
)
# Beyond this a Decimal is not made an integer, which would take all its digits.
_LONGEST_EXPONENT = 10_000
HELD_COLUMNS = ("table_name", "row_key", "runs", "counted")


class Suspect(msgspec.Struct, frozen=True):
    """The changes held back from a table since `noticed`. `run_id` and `seen` are of the latest run.

    `gone`, `added` and `changed` count rows that were neither stored nor told; `columns` are those that went
    empty. An `incomplete` table has not seen a whole run yet.
    """

    table: str
    run_id: str
    noticed: datetime
    seen: datetime
    total: int = 0
    gone: int = 0
    added: int = 0
    changed: int = 0
    columns: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    incomplete: bool = False
    confirmed: Confirmation = ""
    confirmed_columns: tuple[str, ...] = ()  # of `columns`, those that were empty when it was confirmed

    @property
    def holds_anything(self) -> bool:
        """Return whether there is anything for a person to look at."""
        return bool(
            self.gone or self.added or self.changed or self.columns or self.incomplete or self.reasons
        )

    @property
    def held(self) -> str:
        """Return what is held back, in words."""
        parts = []
        if self.gone:
            parts.append(f"{self.gone:,} of {count_text(self.total, 'row')} {_seems(self.gone)} to be gone")
        if self.added:
            parts.append(f"{count_text(self.added, 'row')} that {_seems(self.added)} new")
        if self.changed:
            parts.append(f"{count_text(self.changed, 'row')} that {_seems(self.changed)} changed")
        if self.columns:
            parts.append(f"{', '.join(self.columns)} {'is' if len(self.columns) == 1 else 'are'} empty")
        if self.incomplete:
            parts.append("no run has seen the whole yet")
        return "; ".join(parts) or ("everything that it found" if self.reasons else "nothing")


def _seems(count: int) -> str:
    return "seems" if count == 1 else "seem"


def fingerprint(row: Row) -> str:
    """Return a short text, the same in every process for tuples that are equal."""
    return blake2b(_text(row).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def fingerprints(rows: Sequence[Row]) -> list[str]:
    """Return the `fingerprint` of each row, which is fast for rows of texts."""
    if not all(map(_ONLY_TEXTS.issuperset, (map(type, row) for row in rows))):
        return list(map(fingerprint, rows))
    texts = (f"({','.join([f'{len(part) + 4}:str {part}' for part in row])})" for row in rows)
    return [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() for text in texts]


_ONLY_TEXTS = frozenset({str})


def _text(row: Row) -> str:
    parts = [_value_text(value) for value in identity(row)]
    return f"({','.join(f'{len(part)}:{part}' for part in parts)})"


def _value_text(value: Any) -> str:
    """Return a text for the identity of a value. Equal values have the same text."""
    if isinstance(value, str):
        return f"str {value}"
    if value is None or isinstance(value, tuple):  # True, NaN and the like are tuples
        return str(value)
    if isinstance(value, datetime):
        return f"datetime {value.isoformat()}"
    if isinstance(value, Document):
        return f"document {value.kind} {value.text}"
    if isinstance(value, Relation):
        return _relation_text(value)
    return f"number {_number_text(value)}"


def _number_text(value: int | float | Decimal) -> str:
    """Return one text for equal numbers of all classes. Their hash will not do: -1 and -2 share one."""
    if isinstance(value, int):
        return f"{value:x}"
    decimal = value if isinstance(value, Decimal) else decimal_of(value)
    if not decimal.is_finite():
        return str(decimal)
    sign, digits, exponent = decimal.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    assert isinstance(exponent, int)
    exponent += len(text) - len(short)
    if 0 <= exponent <= _LONGEST_EXPONENT or not short:
        return f"{int(decimal):x}"  # as the equal int
    return f"{'-' * sign}{short}e{exponent}"


def _relation_text(relation: Relation) -> str:
    names = sorted(relation.schema.names)
    order = [relation.schema.position(name) for name in names]
    return "relation " + _text(
        (*names, *sorted(_text(tuple(row[at] for at in order)) for row in relation.rows))
    )


# --- kept in the database -------------------------------------------------------------------------


async def read_suspects(connection: Connection) -> list[Suspect]:
    """Return what is held back, by table."""
    return [suspect for suspect in await _read(connection, "") if suspect.holds_anything]


async def read_suspect(connection: Connection, table: str) -> Suspect | None:
    """Return what is remembered of a table beside its rows, if anything is."""
    found = await _read(connection, f" WHERE table_name = {_place(connection)}", table)
    return found[0] if found else None


async def _read(connection: Connection, condition: str, *values: str) -> list[Suspect]:
    found = await connection.columns(SUSPECTS)
    if found is None or "reasons" not in {column.name for column in found}:
        return []  # not made yet, or of an older version, which the next run that writes upgrades
    query = f"SELECT {', '.join(_COLUMNS)} FROM {SUSPECTS}{condition} ORDER BY table_name"
    return [_suspect(row) for row in await connection.fetch(query, values)]


async def read_held(connection: Connection, table: str) -> AsyncGenerator[Batch, None]:
    """Yield (key, runs, counted) of the rows that are held back, in batches."""
    query = f"SELECT row_key, runs, counted FROM {HELD} WHERE table_name = {_place(connection)}"
    async with aclosing(connection.select(query, (table,))) as parts:
        async for part in parts:
            if not isinstance(part, Schema):
                yield part


async def write_suspect(connection: Connection, suspect: Suspect) -> None:
    """Store a suspect in place of the earlier one of its table. Must be called within a transaction."""
    await connection.run(f"DELETE FROM {SUSPECTS} WHERE table_name = {_place(connection)}", (suspect.table,))
    reasons = [[reason.text, reason.baseline] for reason in suspect.reasons]
    await connection.run(
        f"INSERT INTO {SUSPECTS} ({', '.join(_COLUMNS)}) "
        f"VALUES ({connection.dialect.placeholders(len(_COLUMNS))})",
        (
            *(suspect.table, suspect.run_id, stamp(suspect.noticed), stamp(suspect.seen)),
            *(suspect.total, suspect.gone, suspect.added, suspect.changed),
            *(json.dumps(suspect.columns), json.dumps(reasons, ensure_ascii=False)),
            *(int(suspect.incomplete), _confirmation_text(suspect)),
        ),
    )


async def forget_held(connection: Connection, table: str) -> None:
    """Delete the keys that are held back. Must be called within a transaction."""
    await connection.run(f"DELETE FROM {HELD} WHERE table_name = {_place(connection)}", (table,))


async def confirm_suspect(connection: Connection, table: str, *, quietly: bool = False) -> Suspect | None:
    """Let the next whole run apply what is held back now. Return it, or None when nothing is."""
    suspect = await read_suspect(connection, table)
    if suspect is None or not suspect.holds_anything:
        return None
    # An incomplete baseline is accepted as it is: rows that come from now on are new.
    confirmed = replace(
        suspect,
        confirmed="quiet" if quietly else "tell",
        confirmed_columns=suspect.columns,
        incomplete=False,
    )
    await write_suspect(connection, confirmed)
    # The figures of the wrapper are then the new usual ones: otherwise no run would be whole again.
    for baseline in {reason.baseline for reason in suspect.reasons if reason.baseline is not None}:
        await accept_baseline(connection, baseline)
    return confirmed


async def forget_suspect(connection: Connection, table: str) -> bool:
    """Forget what is held back of a table. Return whether there was anything."""
    await forget_held(connection, table)
    return bool(
        await connection.run(f"DELETE FROM {SUSPECTS} WHERE table_name = {_place(connection)}", (table,))
    )


def _place(connection: Connection) -> str:
    return connection.dialect.placeholders(1)


def _suspect(row: Row) -> Suspect:
    table, run_id, noticed, seen, total, gone, added, changed, columns, reasons, incomplete, confirmed = row
    return Suspect(
        *(table, run_id, from_stamp(noticed), from_stamp(seen), total, gone, added, changed),
        tuple(json.loads(columns)),
        tuple(Reason(text, baseline) for text, baseline in json.loads(reasons)),
        bool(incomplete),
        *_confirmation(confirmed),
    )


def _confirmation_text(suspect: Suspect) -> str:
    """Return `tell ["price"]`: the decision of a person, and the columns it covers."""
    return f"{suspect.confirmed} {json.dumps(suspect.confirmed_columns)}" if suspect.confirmed else ""


def _confirmation(text: str) -> tuple[Confirmation, tuple[str, ...]]:
    found, _, columns = text.partition(" ")
    kind: Confirmation = "quiet" if found == "quiet" else "tell" if found == "tell" else ""
    return kind, tuple(json.loads(columns)) if kind else ()
