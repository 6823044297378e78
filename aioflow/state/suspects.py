"""Runs in which suspiciously much would have vanished from a table: when one is, and what is kept of it.

A page that was cut short, or a site that was down, looks like a catalogue that has shrunk. So nothing is
deleted until a second run has seen nearly the same rows vanish, or a person has confirmed it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from heapq import nsmallest
from typing import Any

from aioflow.dataclass import dataclass
from aioflow.relation import Document, Relation, Row, identity
from aioflow.state.driver import Connection
from aioflow.state.own_tables import SUSPECTS, from_stamp, stamp

FEWEST_ROWS = 20
SHARE = 0.3

_NEARLY = 0.9
_SAMPLE_SIZE = 256
_COLUMNS = "table_name, run_id, noticed, vanishing, total, sample, confirmed"


def is_suspect(vanishing: int, total: int, share: float) -> bool:
    """Whether so many rows of a table are more than can be believed."""
    return vanishing >= FEWEST_ROWS and vanishing > share * total


@dataclass(frozen=True)
class Suspect:
    """The mark that a suspect run leaves on a table.

    `sample` has fingerprints of rows that would have vanished: of all, or of so many as a fair sample needs.
    """

    table: str
    run_id: str
    noticed: datetime
    vanishing: int
    total: int
    sample: tuple[str, ...] = ()
    confirmed: bool = False

    def settles(self, again: Suspect, seen_again: int) -> bool:
        """Whether what would vanish now may: it is nearly the same, or somebody has confirmed it.

        `seen_again` is how many of the sample are among what would vanish now.
        """
        if self.confirmed or not self.sample:
            return self.confirmed
        share = seen_again / len(self.sample)
        # Both ways: what vanished vanishes again, and hardly anything else does.
        return share >= _NEARLY and share * self.vanishing >= _NEARLY * again.vanishing


def sampled(suspect: Suspect, keys: Iterable[Row], before: Suspect | None) -> tuple[Suspect, int]:
    """The mark with a sample of these keys, and how many of an earlier mark's sample are among them."""
    wanted = frozenset(before.sample) if before is not None else frozenset()
    again = 0

    def fingerprints() -> Iterable[str]:
        nonlocal again
        for key in keys:
            found = fingerprint(key)
            again += found in wanted
            yield found

    # The smallest hashes are a sample by chance, and the same one whoever takes it.
    return replace(suspect, sample=tuple(nsmallest(_SAMPLE_SIZE, fingerprints()))), again


def fingerprint(row: Row) -> str:
    """A short text, the same in every process for tuples that are equal."""
    return blake2b(_text(row).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _text(row: Row) -> str:
    parts = [_value_text(value) for value in identity(row)]
    return f"({','.join(f'{len(part)}:{part}' for part in parts)})"


def _value_text(value: Any) -> str:
    """A text for what stands for a value: the same for equal ones."""
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
    # Equal numbers of different classes have one hash, which does not change from process to process.
    return f"number {hash(value)}"


def _relation_text(relation: Relation) -> str:
    names = sorted(relation.schema.names)
    order = [relation.schema.position(name) for name in names]
    return "relation " + _text(
        (*names, *sorted(_text(tuple(row[at] for at in order)) for row in relation.rows))
    )


# --- kept in the database -------------------------------------------------------------------------


async def read_suspects(connection: Connection, table: str | None = None) -> list[Suspect]:
    """The marks on a table, so at most one, or on all; none where aioflow's own tables are not there yet."""
    if await connection.columns(SUSPECTS) is None:
        return []
    query = f"SELECT {_COLUMNS} FROM {SUSPECTS}"
    if table is None:
        rows = await connection.fetch(f"{query} ORDER BY table_name")
    else:
        rows = await connection.fetch(f"{query} WHERE table_name = {_place(connection)}", (table,))
    return [_suspect(row) for row in rows]


async def mark_suspect(connection: Connection, suspect: Suspect) -> None:
    """Within a transaction: leave a mark, in the place of one before."""
    await forget_suspect(connection, suspect.table)
    sample = json.dumps(suspect.sample, separators=(",", ":"))
    await connection.run(
        f"INSERT INTO {SUSPECTS} ({_COLUMNS}) VALUES ({connection.dialect.placeholders(7)})",
        (
            *(suspect.table, suspect.run_id, stamp(suspect.noticed), suspect.vanishing, suspect.total),
            *(sample, int(suspect.confirmed)),
        ),
    )


async def confirm_suspect(connection: Connection, table: str) -> bool:
    """Let the next run delete what vanishes then; whether there was a mark."""
    confirm = f"UPDATE {SUSPECTS} SET confirmed = 1 WHERE table_name = {_place(connection)}"
    return bool(await connection.run(confirm, (table,)))


async def forget_suspect(connection: Connection, table: str) -> bool:
    """Take the mark off a table; whether there was one."""
    return bool(
        await connection.run(f"DELETE FROM {SUSPECTS} WHERE table_name = {_place(connection)}", (table,))
    )


def _place(connection: Connection) -> str:
    return connection.dialect.placeholders(1)


def _suspect(row: Row) -> Suspect:
    table, run_id, noticed, vanishing, total, sample, confirmed = row
    return Suspect(
        table, run_id, from_stamp(noticed), vanishing, total, tuple(json.loads(sample)), bool(confirmed)
    )
