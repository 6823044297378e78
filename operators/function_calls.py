"""Calls of a registered function for tuples: its results become tuples, joined to the arguments.

The dependent join adds to a tuple the results that were computed from it.
"""

from __future__ import annotations

import operator
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from inspect import isasyncgenfunction
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from aioflow import Context, Document, Record, Relation, Row, Schema
from aioflow.authoring.function import Function
from aioflow.relation import UNTOLD, Batch, picker
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import DiskPause, RowBuffer, pauses_for_room, with_pauses
from aioflow.values.coercion import Declaration, row_of_mapping, value_of


class DependentJoin:
    """Joins results to the tuples that they were computed from; a result replaces an attribute of the same
    name.

    Tuples without result are dropped; with `outer` they get nulls. If the first result determines the
    attributes of results, `hold` the tuples before it and `start` with it.
    """

    def __init__(self, schema: Schema, results: Schema | None, outer: bool, memory: MemoryBudget) -> None:
        self._schema = schema
        self._outer = outer
        self._held = RowBuffer(memory)
        self.results: Schema | None = None
        self.only_adds = False  # true if a joined tuple is the tuple followed by its result
        if results is not None:
            self.learn(results)

    def learn(self, results: Schema) -> Schema:
        """Take the attributes of results, which are known from now on; return those of joined tuples."""
        self.results = results
        joined = self._schema.add(results)
        width = len(self._schema)
        # The positions of a joined tuple's attributes in the tuple followed by its result.
        self._order = [
            width + results.position(name) if name in results else self._schema.position(name)
            for name in joined.names
        ]
        self.only_adds = self._order == list(range(width + len(results)))
        self._nulls = (None,) * len(results)
        return joined

    def rows(self, row: Row, results: Sequence[Row]) -> Batch:
        """Return a tuple joined to each of its results."""
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

    def start(self, results: Schema) -> Iterator[Schema | Batch | DiskPause]:
        """Learn the attributes of results; yield the operator's schema and the tuples that were held."""
        yield self.learn(results)
        for batch in with_pauses(self._held, self._held.batches()):
            if isinstance(batch, DiskPause):
                yield batch
            else:
                yield [joined for row in batch for joined in self.rows(row, ())]
        self._held.close()

    def __enter__(self) -> DependentJoin:
        return self

    def __exit__(self, *failure: object) -> None:
        self._held.close()


_PIECE_RESULTS = 256
_SINGLE = (str, bytes, Mapping, Relation, Document)
_PLAIN = frozenset({str, int, float, bool, type(None)})
_SCALARS = _PLAIN - {type(None)}
_SINGLE_ANSWERS = _PLAIN | {dict}


class _Failure:
    """Takes the place of the answer of a call that failed."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class FunctionCalls:
    """Calls of one function for the tuples of one input; `declared` is the schema of results in the plan."""

    def __init__(
        self,
        function: Function,
        schema: Schema,
        joining: DependentJoin,
        context: Context,
        declared: Schema | None = None,
    ) -> None:
        self._function = function
        self._joining = joining
        self._context = context
        self._results = returns = function.returns or declared
        self._declaration = None if declared is None else Declaration(declared)
        self._argument, self._call_with = _parameter(function, schema)
        # The attribute for a result that is not a mapping.
        only = returns is not None and len(returns) == 1
        self._scalar_name = returns.names[0] if returns and only else function.name

    # --- calling --------------------------------------------------------------------------------

    def _call(self, row: Row) -> Any:
        return self._call_with(self._argument(row))

    def caller(self) -> Callable[[Row], Awaitable[Batch] | AsyncGenerator[Batch, None]]:
        """Return the function that `map_concurrently` calls for each tuple."""
        if isasyncgenfunction(self._function.call):
            return self.one_by_one
        return self.on_loop if self._function.is_async else self.in_thread

    async def on_loop(self, row: Row) -> Batch:
        return self._rows(_results(await self._call(row)))

    async def one_by_one(self, row: Row) -> AsyncGenerator[Batch, None]:
        """Yield the results of an async generator as they come, in at least one list."""
        is_first = True
        async with aclosing(self._call(row)) as results:
            async for result in results:
                yield self._rows((result,))
                is_first = False
        if is_first:
            yield []

    async def in_thread(self, row: Row) -> Batch:
        def call() -> list[Any]:
            return list(_results(self._call(row)))

        return self._rows(await self._context.in_thread(call, source=self._function.source))

    def at_once(self, batch: Batch) -> Iterator[Batch | Schema | DiskPause]:
        """Call the function at once for each tuple of a batch; yield the operator's output."""
        ready: Batch = []
        for given in self._given(batch):
            if not isinstance(given, list):
                yield given  # a schema comes before any tuple, and a pause is as good anywhere
                continue
            ready += given
            if len(ready) >= _PIECE_RESULTS:
                yield ready
                ready = []
        if ready:
            yield ready

    def _given(self, batch: Batch) -> Iterator[Batch | Schema | DiskPause]:
        """Process tuples with single results in bulk, and the others one by one."""
        rows, start = iter(batch), 0
        while start < len(batch):
            answers, last = self._single_answers(rows)
            end = start + len(answers)
            if answers:
                yield from self._joined_singles(batch[start:end], answers)
            if end < len(batch):
                yield from self._joined_pieces(batch[end], last)
            start = end + 1

    def _single_answers(self, rows: Iterator[Row]) -> tuple[list[Any], Any]:
        """Return the answers for the next tuples while each is one result or none, and the first other
        answer.
        """
        call = self._call_with
        answers: list[Any] = []
        # No `map` of calls: there a StopIteration of the function would look like the end of the tuples.
        for argument in map(self._argument, rows):
            try:
                answer = call(argument)
            except Exception as error:
                return answers, _Failure(error)
            if answer.__class__ not in _SINGLE_ANSWERS:
                return answers, answer
            answers.append(answer)
        return answers, None

    def _joined_singles(self, rows: Batch, answers: list[Any]) -> Iterator[Batch | Schema | DiskPause]:
        in_bulk = self._joining.only_adds and self._declaration is None
        results = self._singles(answers) if in_bulk else None
        if results is not None:
            self._context.fired()
            yield list(map(operator.add, rows, results))
            return
        for row, answer in zip(rows, answers, strict=True):
            yield from self._joined_pieces(row, answer)

    def _joined_pieces(self, row: Row, answer: Any) -> Iterator[Batch | Schema | DiskPause]:
        for piece in self._pieces(row, answer):
            if isinstance(piece, DiskPause):
                yield piece
            elif self._joining.results is None:
                yield from self.joined(row, piece)
            else:
                yield self._joining.rows(row, piece)

    def _singles(self, answers: list[Any]) -> Iterable[Row] | None:
        """Return all results if each tuple has one and relations can carry it as it is; None otherwise."""
        assert self._results is not None
        names = self._results.names
        kinds = set(map(type, answers))
        if len(names) == 1 and kinds <= _SCALARS:
            return zip(answers)  # one-tuples
        if kinds != {dict} or set(map(len, answers)) != {len(names)}:
            return None
        try:
            values = [list(map(itemgetter(name), answers)) for name in names]
        except KeyError:
            return None
        return zip(*values, strict=True) if _PLAIN.issuperset(map(type, chain(*values))) else None

    def _pieces(self, row: Row, answer: Any) -> Iterator[Batch | DiskPause]:
        """Yield the results in an answer in lists of bounded length, at least one unless it fails."""
        if isinstance(answer, _Failure):
            self._context.fail(row, answer.error)
            return
        try:
            pieces = self._answered(answer)
            for piece in self._all_or_none(pieces) if self._context.takes_failures else pieces:
                if not isinstance(piece, DiskPause):
                    self._context.fired()
                yield piece
        except Exception as error:
            self._context.fail(row, error)

    def _answered(self, answer: Any) -> Iterator[Batch]:
        results = iter(_results(answer))
        is_first = True
        while True:
            taken = list(islice(results, _PIECE_RESULTS))
            piece = self._rows(taken)
            if is_first or piece:
                yield piece
            is_first = False
            if len(taken) < _PIECE_RESULTS:  # some of those taken may be no results
                return

    def _all_or_none(self, pieces: Iterator[Batch]) -> Iterator[Batch | DiskPause]:
        """Yield the same lists, but none of them before the last one is complete."""
        first, second = next(pieces), next(pieces, None)
        if second is None:
            yield first
            return
        with RowBuffer(self._context.memory) as held:
            for piece in chain((first, second), pieces):
                held.append(piece)
                yield from pauses_for_room(held.disk)
            yield from with_pauses(held, held.batches())

    # --- joining --------------------------------------------------------------------------------

    def joined(self, row: Row, results: Batch) -> Iterator[Batch | Schema | DiskPause]:
        """Yield a tuple with its results; the first results determine attributes that were not declared."""
        if self._joining.results is None:
            if self._results is None:
                self._joining.hold(row)
                return
            yield from self._joining.start(self._results)
        if rows := self._joining.rows(row, results):
            yield rows

    def end(self) -> Iterator[Batch | Schema | DiskPause]:
        """Yield the held tuples, if no result determined the attributes."""
        if self._joining.results is None:
            yield from self._joining.start(UNTOLD)

    def _rows(self, results: Iterable[Any]) -> Batch:
        mappings = [
            result if isinstance(result, Mapping) else {self._scalar_name: result}
            for result in results
            if result is not None
        ]
        if self._results is None and mappings:
            names = tuple(dict.fromkeys(chain.from_iterable(mappings)))
            for name in names:
                if not isinstance(name, str):
                    raise TypeError(f"attribute names are text: a result has the key {name!r}")
            self._results = Schema(names)
        rows = [_checked(row_of_mapping(self._results or Schema(()), mapping)) for mapping in mappings]
        return rows if self._declaration is None else self._declaration.rows(rows)


def _parameter(function: Function, schema: Schema) -> tuple[Callable[[Row], Any], Callable[[Any], Any]]:
    """Return a function that makes the argument of a call from a tuple, and the function that takes it.

    The argument is the only value that the function takes, a tuple of several, or the whole tuple as a
    mapping.
    """
    if function.takes is None:
        return partial(Record, schema), function.call
    positions = [schema.position(name) for name in function.takes]
    if len(positions) == 1:
        return itemgetter(positions[0]), function.call
    return picker(positions), lambda values: function.call(*values)


def _results(answer: Any) -> Iterable[Any]:
    """Return the answer of a function as any number of results."""
    if answer is None:
        return ()
    if isinstance(answer, Iterable) and not isinstance(answer, _SINGLE):
        return answer
    return (answer,)


def _checked(row: Row) -> Row:
    """Return the values as relations carry them."""
    return row if _PLAIN.issuperset(map(type, row)) else tuple([value_of(value) for value in row])
