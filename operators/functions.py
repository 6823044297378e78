"""Python functions in plans: apply, for each tuple; aggregate, on whole relations."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice, repeat
from typing import Any, cast

from aioflow import Context, Document, Record, Relation, Row, Schema, Stream, map_concurrently, operator
from aioflow.expressions import Aggregates, Attributes
from aioflow.function import Function, FunctionName
from aioflow.operator import Settings
from aioflow.operators.aggregation import PACKED, Calls, KeptGroups, RunningGroups, Whole
from aioflow.operators.dependent_join import DependentJoin
from aioflow.operators.keyed import in_batches
from aioflow.operators.tally import tallied
from aioflow.relation import Batch, Type
from aioflow.rows import row_of_mapping, value_of

_PIECE_RESULTS = 256
_SINGLE = (str, bytes, Mapping, Relation, Document)
_PLAIN = frozenset({str, int, float, bool, type(None)})
_SCALARS = _PLAIN - {type(None)}
_MISSING = object()


# --- apply --------------------------------------------------------------------------------------


def _apply_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    returns = settings["function"].returns
    return None if inputs[0] is None or returns is None else inputs[0].add(returns)


@operator(schema=_apply_schema, firing="tuple", effects=lambda settings: not settings["function"].pure)
async def apply(
    rel: Stream, *, function: FunctionName, outer: bool = False, context: Context
) -> AsyncGenerator[Batch | Schema, None]:
    """Call a registered Python function with each tuple and add its results.

    The function gets the tuple as a mapping. It gives a mapping, a single value (the attribute is named
    like the function), None for no result, or many of these: as a list, or one by one as a generator. A
    result named like an attribute of the tuple replaces it. Async functions, and those registered as
    blocking, which run on worker threads, are called for several tuples at once.

    Arguments:
        rel: the tuples.
        function: the name under which it was registered.
        outer: keep tuples without result, beside nulls.

    Examples:
        apply (houses, "geocode" : located)
        apply (pages, "links" : found) {OUTER; WORKERS: 4; ERRORS: failed}
    """
    if rel.schema is None:
        return
    called = cast(Function, function)
    with DependentJoin(rel.schema, called.returns, outer, context.memory) as joining:
        calls = _Calls(called, rel.schema, joining, context)
        if called.is_async or called.blocking:
            call = calls.on_loop if called.is_async else calls.in_thread
            # A call on a thread takes its permit with the thread.
            permit, source = called.is_async, called.source
            async for row, results in map_concurrently(call, rel, context, permit=permit, source=source):
                for given in calls.joined(row, results):
                    yield given
        else:
            async for batch in rel.batches():
                for given in calls.at_once(batch):
                    yield given
        for given in calls.end():
            yield given


class _Calls:
    """Calls of one function: what it gives, made into tuples and joined to those it was called with."""

    def __init__(self, function: Function, schema: Schema, joining: DependentJoin, context: Context) -> None:
        self._function = function
        self._schema = schema
        self._joining = joining
        self._context = context
        self._results = function.returns

    # --- calling ---

    async def on_loop(self, row: Row) -> Batch:
        answer = self._function.call(Record(self._schema, row))
        if inspect.isasyncgen(answer):
            return self._rows([result async for result in answer])
        return self._rows(_results(await answer))

    async def in_thread(self, row: Row) -> Batch:
        def call() -> list[Any]:
            return list(_results(self._function.call(Record(self._schema, row))))

        return self._rows(await self._context.in_thread(call, source=self._function.source))

    def at_once(self, batch: Batch) -> Iterator[Batch | Schema]:
        """Call the function here and now for each tuple of a batch; what an operator then yields."""
        ready: Batch = []
        call, schema, fail = self._function.call, self._schema, self._context.fail
        for row in batch:
            try:
                answer = call(Record(schema, row))
                single = self._single(answer)
            except Exception as error:
                fail(row, error)
                continue
            if single is not None:
                self._context.fired()
                ready.append(row + single)
                continue
            for piece in self._pieces(row, answer):
                if self._joining.results is None:
                    yield from self.joined(row, piece)
                else:
                    ready += self._joining.rows(row, piece)
                if len(ready) >= _PIECE_RESULTS:
                    yield ready
                    ready = []
        if ready:
            yield ready

    def _single(self, answer: Any) -> Row | None:
        """The one result that most functions give, when it need only be put behind the tuple."""
        if not self._joining.only_adds or self._results is None:
            return None
        if answer.__class__ is dict and len(answer) == len(self._results):
            result = tuple(map(answer.get, self._results.names, repeat(_MISSING)))
            if _MISSING in result:
                return None
        elif len(self._results) == 1 and answer.__class__ in _SCALARS:
            if self._results.names[0] != self._function.name:
                return None
            result = (answer,)
        else:
            return None
        return result if _PLAIN.issuperset(map(type, result)) else None

    def _pieces(self, row: Row, answer: Any) -> Iterator[Batch]:
        """The results of one call in lists of a bearable length: at least one list, unless the call fails."""
        results: Iterator[Any] | None = None
        while True:
            try:
                is_first = results is None
                if results is None:
                    results = iter(_results(answer))
                piece = self._rows(islice(results, _PIECE_RESULTS))
            except Exception as error:
                self._context.fail(row, error)
                return
            if is_first:
                self._context.fired()
            if is_first or piece:
                yield piece
            if len(piece) < _PIECE_RESULTS:
                return

    # --- joining ---

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
        name = self._function.name
        mappings = [
            result if isinstance(result, Mapping) else {name: result}
            for result in results
            if result is not None
        ]
        if self._results is None and mappings:
            self._results = Schema(tuple(dict.fromkeys(chain.from_iterable(mappings))))
        return [_checked(row_of_mapping(self._results or Schema(()), mapping)) for mapping in mappings]


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


# --- aggregate ----------------------------------------------------------------------------------


def _aggregate_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    by: Attributes | None = settings["by"]
    results: Schema = settings["functions"].schema
    groups = Schema(())
    if by is not None:
        groups = Schema(by.names) if inputs[0] is None else inputs[0].pick(by.names)
    packed = (PACKED,) if settings["relation"] else ()
    parts = (*groups.names, *packed, *results.names)
    types = (*groups.types, *(Type.RELATION for _ in packed), *results.types)
    return Schema(parts, types)


@operator(
    schema=_aggregate_schema,
    firing="end",
    grouped_by="by",
    depends_on_arrival=lambda settings: any(
        call.function.depends_on_arrival for call in settings["functions"].calls
    ),
)
async def aggregate(
    rel: Stream,
    *,
    functions: Aggregates,
    by: Attributes | None = None,
    relation: bool = True,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Compute functions of the whole relation, or of groups of it, at its end.

    One tuple comes out, also for an empty relation, or one for each group: the attributes that groups
    are made by, the tuples themselves packed in `relation`, and the results. Built in are count, sum,
    avg, min, max, first and list; others are registered in Python. Nulls are left out, as in SQL.

    Arguments:
        rel: the tuples.
        functions: calls such as `sum(price) as total, count() as n`; the argument may be an expression,
            with `distinct` before it each value counts once.
        by: the attributes that make groups.
        relation: `false` leaves out the packed tuples, which then need not be kept.

    Examples:
        aggregate (houses, "count() as n, avg(price) as price" : summary)
        aggregate (houses, "max(price) as top" : tops) {BY: "city"; RELATION: false}
    """
    calls = Calls(functions, rel.schema or Schema(()), context.memory)
    with tallied(context, functions), closing(_aggregation(calls, by, relation)) as aggregation:
        async for batch in rel.batches():
            aggregation.add(batch)
        for results in in_batches(aggregation.results()):
            yield results


def _aggregation(calls: Calls, by: Attributes | None, packs: bool) -> Whole | KeptGroups | RunningGroups:
    if by is None:
        return Whole(calls, packs)
    if packs or not calls.are_small:
        return KeptGroups(calls, by.positions or (), packs)
    return RunningGroups(calls, by.positions or ())
