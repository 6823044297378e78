"""Calls of a registered function for tuples: what it gives, made into tuples and joined to its arguments."""

from __future__ import annotations

import operator
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from inspect import isasyncgenfunction
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from aioflow import Context, Document, Record, Relation, Row, Schema
from aioflow.function import Function
from aioflow.operators.dependent_join import DependentJoin
from aioflow.relation import Batch, picker
from aioflow.rows import row_of_mapping, value_of
from aioflow.spill import RowBuffer

_PIECE_RESULTS = 256
_SINGLE = (str, bytes, Mapping, Relation, Document)
_PLAIN = frozenset({str, int, float, bool, type(None)})
_SCALARS = _PLAIN - {type(None)}


class FunctionCalls:
    """Calls of one function for the tuples of one input."""

    def __init__(self, function: Function, schema: Schema, joining: DependentJoin, context: Context) -> None:
        self._function = function
        self._joining = joining
        self._context = context
        self._results = function.returns
        self._call = _caller(function, schema)
        self._columns = _columns(function, schema)
        # The attribute that a result which is no mapping stands for.
        only = function.returns is not None and len(function.returns) == 1
        self._scalar_name = function.returns.names[0] if function.returns and only else function.name

    # --- calling --------------------------------------------------------------------------------

    def caller(self) -> Callable[[Row], Awaitable[Batch] | AsyncGenerator[Batch, None]]:
        """What `map_concurrently` is to call for each tuple."""
        if isasyncgenfunction(self._function.call):
            return self.one_by_one
        return self.on_loop if self._function.is_async else self.in_thread

    async def on_loop(self, row: Row) -> Batch:
        return self._rows(_results(await self._call(row)))

    async def one_by_one(self, row: Row) -> AsyncGenerator[Batch, None]:
        """The results of an async generator as they come: at least one list."""
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

    def at_once(self, batch: Batch) -> Iterator[Batch | Schema]:
        """Call the function here and now for each tuple of a batch; what an operator then yields."""
        whole = self._whole(batch)
        if whole is not None:
            self._context.fired()
            yield whole
            return
        ready: Batch = []
        for row in batch:
            for piece in self._pieces(row):
                if self._joining.results is None:
                    yield from self.joined(row, piece)
                else:
                    ready += self._joining.rows(row, piece)
                if len(ready) >= _PIECE_RESULTS:
                    yield ready
                    ready = []
        if ready:
            yield ready

    def _whole(self, batch: Batch) -> Batch | None:
        """All results of a batch, if each tuple has one, and that need only be put behind it.

        None if it is not so, or a call failed: the calls are then made again, one by one. Only a pure
        function is tried like this.
        """
        if not (self._function.pure and self._joining.only_adds):
            return None
        try:
            answers = list(map(self._function.call, *self._columns(batch)))
            results = self._singles(answers)
        except Exception:
            return None  # which tuple it was will be found one by one
        return None if results is None else list(map(operator.add, batch, results))

    def _singles(self, answers: list[Any]) -> Iterable[Row] | None:
        assert self._results is not None
        names = self._results.names
        kinds = set(map(type, answers))
        if len(names) == 1 and kinds <= _SCALARS:
            return zip(answers)  # one-tuples
        if kinds != {dict} or set(map(len, answers)) != {len(names)}:
            return None
        values = [list(map(itemgetter(name), answers)) for name in names]
        return zip(*values, strict=True) if _PLAIN.issuperset(map(type, chain(*values))) else None

    def _pieces(self, row: Row) -> Iterator[Batch]:
        """The results of one call in lists of a bearable length: at least one list, unless the call fails."""
        try:
            pieces = self._called(row)
            for piece in self._all_or_none(pieces) if self._context.takes_failures else pieces:
                self._context.fired()
                yield piece
        except Exception as error:
            self._context.fail(row, error)

    def _called(self, row: Row) -> Iterator[Batch]:
        results = iter(_results(self._call(row)))
        is_empty = True
        while some := list(islice(results, _PIECE_RESULTS)):
            if piece := self._rows(some):
                is_empty = False
                yield piece
            if len(some) < _PIECE_RESULTS:
                break
        if is_empty:
            yield []

    def _all_or_none(self, pieces: Iterator[Batch]) -> Iterator[Batch]:
        """The same lists, but none of them before the last is there."""
        first, second = next(pieces), next(pieces, None)
        if second is None:
            yield first
            return
        with RowBuffer(self._context.memory) as held:
            for piece in chain((first, second), pieces):
                held.append(piece)
            yield from held.batches()

    # --- joining --------------------------------------------------------------------------------

    def joined(self, row: Row, results: Batch) -> Iterator[Batch | Schema]:
        """A tuple with its results; the first results tell the attributes where nobody declared them."""
        if self._joining.results is None:
            if self._results is None:
                self._joining.hold(row)
                return
            yield from self._joining.start(self._results)
        if rows := self._joining.rows(row, results):
            yield rows

    def end(self) -> Iterator[Batch | Schema]:
        """What is left when no result told any attributes."""
        if self._joining.results is None and len(self._joining):
            yield from self._joining.start(Schema(()))

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
        return [_checked(row_of_mapping(self._results or Schema(()), mapping)) for mapping in mappings]


def _caller(function: Function, schema: Schema) -> Callable[[Row], Any]:
    """The function as one of a row: it gets the values that it takes, or the whole tuple as a mapping."""
    call = function.call
    if function.takes is None:
        return lambda row: call(Record(schema, row))
    positions = [schema.position(name) for name in function.takes]
    if len(positions) == 1:
        only = positions[0]
        return lambda row: call(row[only])
    pick = picker(positions)
    return lambda row: call(*pick(row))


def _columns(function: Function, schema: Schema) -> Callable[[Batch], list[Iterable[Any]]]:
    """The arguments of calls for a whole batch, one iterable for each parameter."""
    if function.takes is None:
        record = partial(Record, schema)
        return lambda batch: [map(record, batch)]
    getters = [itemgetter(schema.position(name)) for name in function.takes]
    return lambda batch: [map(getter, batch) for getter in getters]


def _results(answer: Any) -> Iterable[Any]:
    """What a function gave, as any number of results."""
    if answer is None:
        return ()
    if isinstance(answer, Iterable) and not isinstance(answer, _SINGLE):
        return answer
    return (answer,)


def _checked(row: Row) -> Row:
    """Values as relations carry them."""
    return row if _PLAIN.issuperset(map(type, row)) else tuple(map(value_of, row))
