"""The dependent join: a tuple with the results that were computed from it added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aioflow import Row, Schema
from aioflow.relation import Batch
from aioflow.spill import Memory, RowBuffer


class DependentJoin:
    """Joins results to the tuples that they were computed from; a result replaces an attribute of its name.

    Tuples without result are dropped unless `outer`: then they get nulls. Where only the first result
    tells which attributes results have, `hold` what comes before it and `start` with it.
    """

    def __init__(self, schema: Schema, results: Schema | None, outer: bool, memory: Memory) -> None:
        self._schema = schema
        self._outer = outer
        self._held = RowBuffer(memory)
        self.results: Schema | None = None
        self.only_adds = False  # whether a joined tuple is the tuple followed by its result
        if results is not None:
            self.learn(results)

    def learn(self, results: Schema) -> Schema:
        """From now on the attributes of results are known; the attributes of joined tuples."""
        self.results = results
        joined = self._schema.add(results)
        width = len(self._schema)
        # Where the attributes of a joined tuple stand in the tuple followed by its result.
        self._order = [
            width + results.position(name) if name in results else self._schema.position(name)
            for name in joined.names
        ]
        self.only_adds = self._order == list(range(width + len(results)))
        self._nulls = (None,) * len(results)
        return joined

    def rows(self, row: Row, results: Sequence[Row]) -> Batch:
        """A tuple with each of its results."""
        if not results:
            if not self._outer:
                return []
            results = (self._nulls,)
        if self.only_adds:
            return [row + result for result in results]
        order = self._order
        return [tuple([both[place] for place in order]) for both in (row + result for result in results)]

    def hold(self, row: Row) -> None:
        """Keep a tuple without result until the attributes of results are known."""
        if self._outer:
            self._held.append([row])

    def start(self, results: Schema) -> Iterator[Schema | Batch]:
        """Learn the attributes of results; what an operator then yields: its schema and what was kept."""
        yield self.learn(results)
        for batch in self._held.batches():
            yield [joined for row in batch for joined in self.rows(row, ())]
        self._held.close()

    def __enter__(self) -> DependentJoin:
        return self

    def __exit__(self, *failure: object) -> None:
        self._held.close()
