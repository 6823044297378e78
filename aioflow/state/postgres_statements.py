"""Statements of SQL and their results: what a text begins with, rows of the language, sizes of batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from aioflow.memory import batch_size
from aioflow.relation import Batch
from aioflow.state.postgres_codecs import decoder_of
from aioflow.state.postgres_types import DATES, kind_of

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
    """The word with which a statement begins, in small letters."""
    found = _WORD.match(sql, _start(sql))
    return found.group().lower() if found else ""


def controls_transaction(sql: str) -> bool:
    """Whether a statement would begin or end a transaction."""
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
    """Whether a type, as asyncpg tells it, has values of several parts."""
    return kind.kind in ("array", "composite") or kind.oid == _RECORD


def kinds_of(attributes: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(kind_of(each.type.oid, is_listed(each.type)) for each in attributes)


def dated(attributes: Sequence[Any]) -> list[str]:
    """The columns of a result that have dates."""
    return [each.name for each in attributes if each.type.oid in DATES]


def row_decoder(attributes: Sequence[Any]) -> Callable[[Sequence[Any]], Batch]:
    """A function that makes rows of the language of asyncpg's records."""
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
    """How many rows to ask for next: more than before, as long as they are small."""
    fitting = _MOST_BYTES * len(batch) // max(1, batch_size(batch))
    return max(1, min(4 * size, _MOST_ROWS, fitting))
