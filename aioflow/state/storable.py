"""Rows that a database cannot hold, found while they are staged: they fail as tuples, not as a whole run."""

from __future__ import annotations

from aioflow.context import Context
from aioflow.relation import Batch, Schema
from aioflow.state.databases import driver_for
from aioflow.state.transaction import Transaction


class UnstorableError(ValueError):
    """A tuple has a value that its database cannot hold."""


class Storable:
    """Tells the tuples of one statement that its database can hold from those that it cannot."""

    def __init__(self, schema: Schema, db: str | None, context: Context) -> None:
        self._schema = schema
        self._unstorable = driver_for(context.service(Transaction).database_of(db).url).unstorable

    def check(self, batch: Batch) -> None:
        """Raise an UnstorableError for the first tuple that cannot be stored."""
        for error in self.refused(batch).values():
            raise error

    def refused(self, batch: Batch) -> dict[int, UnstorableError]:
        """Why tuples cannot be stored, by their numbers in the batch."""
        names = self._schema.names
        return {
            number: UnstorableError(f"the value of {names[place]!r} {reason}")
            for number, place, reason in self._unstorable(self._schema, batch)
        }
