"""Contributions: the rows that one statement of one run adds to a digest, and their form in the database.

A contribution has everything that a message needs as plain JSON, since the process that composes the digest
may not have the plan. Values are written without loss.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from aioflow.messages.outbox.rows import DamageError
from aioflow.relation import Batch, Relation, Row, Schema, Type, Value
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import RowBuffer
from aioflow.values.json import decode_json, encode_json

# The columns of a contribution, as the transaction of a run writes them.
CONTRIBUTED = (
    *("key", "digest", "channel", "account", "row_count", "byte_count", "created", "place", "due", "latest"),
    *("run_id", "statement", "doubt", "recipe", "content"),
)
READ = ("key", "channel", "account", "run_id", "statement", "doubt", "recipe", "content")


class GatheredRows(msgspec.Struct, frozen=True):
    """The relations of one message as text, and the number of their rows."""

    text: str
    row_count: int

    @property
    def byte_count(self) -> int:
        return len(self.text.encode())


class DigestContribution(msgspec.Struct, frozen=True):
    """The rows that one run adds to a digest, with the recipe of the message."""

    key: str
    channel: str
    account: str
    run_id: str
    statement: str
    doubt: str
    recipe: Mapping[str, Any]
    relations: list[Relation]


def digest_key(*identity: Any) -> str:
    """Return the key of the digest that all statements with this identity share; its parts are plain JSON."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


# --- rows as text ---------------------------------------------------------------------------------


def gathered_rows(
    relations: Sequence[tuple[Schema, Iterable[Batch]]], most_rows: int, most_bytes: int
) -> GatheredRows | None:
    """Return relations as text; None if they have more rows, or take more bytes, than a digest may have."""
    texts, rows, size = [], 0, 0
    for schema, batches in relations:
        pieces = [encode_json(Relation(schema, []))]
        for batch in batches:
            pieces.append(encode_json(Relation(schema, batch)))
            rows += len(batch)
            size += len(pieces[-1].encode())
            if rows > most_rows or size > most_bytes:
                return None
        texts.append(_listed(pieces))
    return GatheredRows(_listed(texts), rows)


def _listed(texts: Iterable[str]) -> str:
    """Return texts of values as the text of a list, as `values.json` writes it."""
    return f'{{"$list":[{",".join(texts)}]}}'


def contribution_of(row: Row) -> DigestContribution:
    """Return the contribution of a row of the columns READ; a DamageError says what is wrong with it."""
    values = dict(zip(READ, row, strict=True))
    for name, value in values.items():
        if not isinstance(value, str):
            raise DamageError(f"its {name} is no text")
    try:
        recipe = json.loads(values["recipe"])
        relations = [_joined(_inner(each)) for each in _inner(decode_json(values["content"]))]
    except (ValueError, RecursionError) as error:
        raise DamageError(f"its rows cannot be read: {error}") from error
    if not isinstance(recipe, dict):
        raise DamageError("its recipe is no JSON object")
    texts = {name: values[name] for name in READ if name not in ("recipe", "content")}
    return DigestContribution(**texts, recipe=recipe, relations=relations)


def _inner(value: Value) -> list[Value]:
    if not isinstance(value, Relation) or not value.is_list:
        raise ValueError("it is no list of relations")
    return [each for (each,) in value.rows]


# --- relations of several runs --------------------------------------------------------------------


def joined(contributions: Sequence[DigestContribution]) -> list[Relation]:
    """Return the relations of all contributions, each with the rows of all of them, in their order."""
    counts = {len(each.relations) for each in contributions}
    if len(counts) != 1:
        raise DamageError("its contributions have different numbers of relations")
    return [_joined(parts) for parts in zip(*(each.relations for each in contributions), strict=True)]


def _joined(parts: Sequence[Value]) -> Relation:
    """Return the rows of several relations, with null for attributes that only others of them have."""
    relations = [part for part in parts if isinstance(part, Relation)]
    if len(relations) != len(parts):
        raise ValueError("it is no list of relations")
    types: dict[str, Type | None] = {}
    for relation in relations:
        for name, kind in zip(relation.schema.names, relation.schema.types, strict=True):
            types[name] = kind if types.get(name, kind) == kind else None
    schema = Schema(tuple(types), tuple(types.values()))
    rows: Batch = []
    for relation in relations:
        rows += relation.rows if relation.schema.names == schema.names else _widened(relation, schema)
    return Relation(schema, rows)


@contextmanager
def kept_rows(relations: Sequence[Relation]) -> Iterator[list[tuple[Schema, RowBuffer]]]:
    """Give relations as those that write messages take them."""
    memory = MemoryBudget(sys.maxsize)
    with ExitStack() as stack:
        kept = [(each.schema, stack.enter_context(RowBuffer(memory))) for each in relations]
        for (_, rows), relation in zip(kept, relations, strict=True):
            rows.append(list(relation.rows))
        yield kept


def _widened(relation: Relation, schema: Schema) -> Batch:
    places = [relation.schema.position(name) if name in relation.schema else None for name in schema.names]
    return [tuple(None if place is None else row[place] for place in places) for row in relation.rows]
