"""Operators for databases: dbimport and dbquery read; dbappend, dbexport and dbupdate write."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Literal, cast

from aioflow import Context, InputError, Row, Schema, Stream, To, map_concurrently, operator
from aioflow.authoring.operator import Settings, StoreUse
from aioflow.authoring.services import ServiceHost
from aioflow.expressions import Attributes
from aioflow.operators.function_calls import DependentJoin
from aioflow.operators.held import when_ended
from aioflow.operators.settings import Conforming, Declared, DeclaredSchema
from aioflow.relation import Batch
from aioflow.state import (
    CHANGED,
    Append,
    Change,
    CommitError,
    Databases,
    DiskFullError,
    Export,
    Query,
    Storable,
    TableName,
    Transaction,
    TupleQueries,
    UpdateOutcome,
    Updates,
    WrittenTableName,
    check_key,
    query_rows,
    read,
    table_rows,
)


def _uses(access: Literal["read", "update"]) -> Callable[[Settings], StoreUse]:
    return lambda settings: StoreUse(settings.get("db"), access)


def missing_databases(settings: Settings, host: ServiceHost) -> Iterable[str]:
    assert host.run is not None
    database = host.run.default("database", settings["db"])
    return host.service(Databases).problems(database, host.run.folder)


# --- dbimport -----------------------------------------------------------------------------------


@operator(schema=lambda inputs, settings: settings["schema"], store=_uses("read"), requires=missing_databases)
async def dbimport(
    *,
    table: TableName,
    if_missing: Literal["fail", "empty"] = "fail",
    schema: DeclaredSchema | None = None,
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Schema | Batch, None]:
    """Read the rows of a table, and pass them on as they are read.

    The rows are those of the moment when the statement began, whatever is written meanwhile. They include the
    writes of statements before this one in the same run.

    Arguments:
        table: the name of a table or view.
        if_missing: `empty` gives no tuples if there is no such table, as in the first run of a plan.
        schema: the attributes with their types, such as `k char, price number`. The plan is checked with
            them, a missing table has them too, and a table with other columns is an error.
        db: a database of the configuration, `[database.NAME]`; by default the one named default, the only
            one, or else the file `aioflow.db` beside the plan.

    Examples:
        dbimport ("houses" : houses)
        dbimport ("seen" : seen) {IF_MISSING: empty; DB: memory}
    """
    address = context.service(Transaction).database_of(db)
    may_miss = if_missing == "empty"
    declared = Declared(cast(Schema | None, schema))
    rows = read(lambda connection: table_rows(connection, address, table, may_miss=may_miss), db, context)
    async with aclosing(rows):
        async for item in rows:
            yield declared.given(item)


# --- dbquery ------------------------------------------------------------------------------------


def _query_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    declared: Schema | None = settings["schema"]
    if declared is None or not inputs:
        return declared
    return None if inputs[0] is None else inputs[0].add(declared)


@operator(schema=_query_schema, firing="tuple", outside=True, store=_uses("read"), requires=missing_databases)
async def dbquery(
    rel: Stream | None = None,
    *,
    sql: Query,
    outer: bool = False,
    schema: DeclaredSchema | None = None,
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Schema | Batch, None]:
    """Pass on the rows of a query; with an input, query for each tuple and add the results.

    Attributes of the tuple are bound as `:zip`, or as `:"price-info"` if the name has other characters than
    letters, digits and `_`. A result with the name of an attribute of the tuple replaces it. Several queries
    are under way at once. The query sees the writes of statements before it in the same run, and nothing that
    others write after it began. If tuples keep arriving for a long time, later queries see writes made in
    between.

    Arguments:
        rel: the tuples to bind.
        sql: one statement that only reads, in the SQL of the database.
        outer: keep tuples without result, with nulls.
        schema: the attributes of the query with their types, such as `k char, price number`. The plan is
            checked with them, and a query with other attributes is an error.
        db: a database of the configuration; by default as for dbimport.

    Examples:
        dbquery ("select city, count(*) as n from houses group by city" : cities)
        dbquery ("select * from schools where zip = :zip", houses : choices) {OUTER}
    """
    declared = Declared(cast(Schema | None, schema))
    if rel is None:
        results = _asked_once(sql, outer, declared, db, context)
    else:
        results = _asked_for_each(rel, sql, outer, declared, db, context)
    async with aclosing(results):
        async for item in results:
            yield item


async def _asked_once(
    sql: Query, outer: bool, declared: Declared, db: str | None, context: Context
) -> AsyncGenerator[Schema | Batch, None]:
    nulls: Batch = []
    try:
        async with aclosing(read(lambda connection: query_rows(connection, sql), db, context)) as rows:
            async for item in rows:
                given = declared.given(item)
                nulls = [(None,) * len(given)] if outer and isinstance(given, Schema) else []
                yield given
        if nulls:
            yield nulls
    except Exception as error:
        context.fail((), error)
    else:
        context.fired()


async def _asked_for_each(
    rel: Stream, sql: Query, outer: bool, declared: Declared, db: str | None, context: Context
) -> AsyncGenerator[Schema | Batch, None]:
    assert rel.schema is not None
    queries = TupleQueries(sql, db, context)
    try:
        with DependentJoin(rel.schema, declared.schema, outer, context.memory) as joining:
            # In the run's own view the queries take permits themselves, once the view is open.
            permit = not queries.takes_permits
            ask = queries.ask if declared.schema is None else partial(_declared, queries, declared.schema)
            called = map_concurrently(ask, rel, context, permit=permit, window=queries.window)
            async with aclosing(called.batches()) as answers:
                async for found in answers:
                    joined: Batch = []
                    for row, (schema, rows) in found:
                        if joining.results is None:
                            yield joining.learn(schema)
                        elif schema.names != joining.results.names:
                            raise InputError(f"the query gives other attributes than before: {schema}")
                        joined += joining.rows(row, rows)
                    if joined:
                        yield joined
    finally:
        await queries.close()


async def _declared(
    queries: TupleQueries, schema: Schema, row: Row
) -> AsyncGenerator[tuple[Schema, Batch], None]:
    """Yield the results for one tuple as SCHEMA declares them; other results are a failure of that tuple."""
    async with aclosing(queries.ask(row)) as answers:
        async for given, rows in answers:
            yield schema, Conforming(schema, given).rows(rows)


# --- dbappend -----------------------------------------------------------------------------------


def _append_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    key: Attributes | None = settings["key"]
    if inputs[0] is not None and key is not None:
        check_key(inputs[0], key.names)
    return inputs[0]


@operator(
    outputs=("stored",),
    schema=_append_schema,
    firing="tuple",
    effects=True,
    store=lambda settings: StoreUse(
        settings["db"], "write", table=settings["table"], evolves=bool(settings["evolve"])
    ),
    requires=missing_databases,
)
async def dbappend(
    rel: Stream,
    *,
    table: WrittenTableName,
    key: Attributes | None = None,
    on_conflict: Literal["ignore", "update"] = "ignore",
    evolve: bool = False,
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Append the tuples to a table, which is created if it is missing, when the run has ended successfully.

    The tuples are passed on as they arrive. They are staged until the end of the run, and are then committed
    with all other writes of the run, all or none. Columns that the relation lacks become null. Keys are
    compared as in the language: null equals null, and 1 equals 1.0.

    Arguments:
        rel: the tuples.
        table: the name of the table.
        key: attributes that tell rows apart; the table gets a unique index on them.
        on_conflict: for a row whose key exists already, ignore leaves it as it is, and update gives it the
            other attributes of the tuple. Of several tuples with one key the first is stored, or the last one
            with update.
        evolve: add columns for attributes that the table lacks; otherwise these are an error.
        db: a database of the configuration; by default as for dbimport.

    Examples:
        dbappend (houses, "houses")
        dbappend (prices, "prices" : stored) {KEY: "url"; ON_CONFLICT: update; EVOLVE}
    """
    assert rel.schema is not None
    names = () if key is None else key.names
    write = Append(
        context.where,
        table,
        rel.schema,
        context.memory,
        key=names,
        updates=on_conflict == "update",
        evolve=evolve,
    )
    take = partial(storable_rows, Storable(rel.schema, db, context), context)
    async with aclosing(staged(rel.batches(), write, take, db, context)) as batches:
        async for batch in batches:
            yield batch


def storable_rows(storable: Storable, context: Context, batch: Batch) -> Batch:
    """Return the tuples that can be stored; the others fail, each by itself."""
    refused = storable.refused(batch)
    for number, error in refused.items():
        context.fail(batch[number], error)
    stored = [row for number, row in enumerate(batch) if number not in refused] if refused else batch
    if stored:
        context.fired()
    return stored


def _always() -> bool:
    return True


async def staged(
    rows: AsyncIterable[Batch],
    write: Append | Export,
    take: Callable[[Batch], Batch],
    db: str | None,
    context: Context,
    *,
    is_wanted: Callable[[], bool] = _always,
) -> AsyncGenerator[Batch, None]:
    """Stage all tuples that `take` returns of batches, and pass them on.

    Nothing is written unless the write `is_wanted` when all of them are there.
    """
    transaction = context.service(Transaction)
    try:
        transaction.stage(db, write, position=context.position, shape=write.shape)
        async for batch in rows:
            write.add(stored := take(batch))
            if stored:
                yield stored
        await write.settle()
    except CommitError:
        raise
    except DiskFullError as error:
        # ERRORS does not apply to this failure: a run that cannot stage its writes must end.
        raise CommitError(f"{context.where}: {error}; nothing of this run was stored") from error
    except Exception as error:
        # If ERRORS takes the failure, the incomplete write must not happen.
        transaction.withdraw(write, error)
        raise
    if not is_wanted():
        write.close()
    transaction.complete(write)


# --- dbexport -----------------------------------------------------------------------------------


@operator(
    outputs=("stored",),
    schema=lambda inputs, settings: inputs[0],
    firing="end",
    effects=True,
    store=lambda settings: StoreUse(settings["db"], "write", whole=True, table=settings["table"]),
    requires=missing_databases,
)
async def dbexport(
    rel: Stream,
    *,
    table: WrittenTableName,
    partial_: Literal["refuse", "allow"] = "refuse",
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[To, None]:
    """Replace the content of a table with this relation when the run has ended successfully.

    An empty relation empties the table. A table that has just these attributes keeps its indexes and
    permissions; otherwise it is created again. Readers see the table as it was before or as it is after,
    never in between. The tuples are passed on when the run has all of them. A relation that lacks rows, or
    may be wrong, leaves the table as it was, and none of its tuples is passed on; a warning says why.

    Arguments:
        rel: the tuples.
        table: the name of the table.
        partial: `allow` accepts a relation that lacks rows or may be wrong.
        db: a database of the configuration; by default as for dbimport.

    Examples:
        dbexport (houses, "houses")
        dbexport (summary, "summary" : stored) {DB: warehouse; PARTIAL: allow}
    """
    schema = None if rel.is_untold else rel.schema
    write = Export(context.where, table, schema, context.memory)
    whole_only = partial_ == "refuse"
    storable = Storable(schema or Schema(()), db, context)

    def checked(batch: Batch) -> Batch:
        storable.check(batch)
        return batch

    def is_wanted() -> bool:
        return rel.marks.is_whole or not whole_only

    rows = staged(rel.batches(), write, checked, db, context, is_wanted=is_wanted)
    async with aclosing(when_ended(rows, context, "stored")) as results:
        async for result in results:
            if is_wanted():
                yield result
    if not is_wanted():
        reason = rel.marks.reasons[0].text
        context.warn(f"the table {table!r} stays as it was, since the relation is not whole: {reason}")


# --- dbupdate -----------------------------------------------------------------------------------


def _update_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    if cast(Change, settings["sql"]).returns_rows:
        return None
    if not inputs:
        return CHANGED
    return None if inputs[0] is None else inputs[0].add(CHANGED)


@operator(
    schema=_update_schema, firing="tuple", effects=True, store=_uses("update"), requires=missing_databases
)
async def dbupdate(
    rel: Stream | None = None, *, sql: Change, db: str | None = None, context: Context
) -> AsyncGenerator[Schema | Batch, None]:
    """Execute an SQL statement; with an input, once for each tuple in order, and pass the tuples on.

    A tuple leaves with `changed`, the number of rows that the statement changed for it; without input that is
    the only attribute. If the statement has RETURNING, the tuple leaves with each returned row instead.
    Attributes of the tuple are bound as `:zip` or `:"price-info"`.

    The statement is executed at once, after all earlier writes of the run, and is committed with the run.
    From here to the end of the run, other runs that write to the database wait.

    Arguments:
        rel: the tuples to bind.
        sql: one statement, in the SQL of the database.
        db: a database of the configuration; by default as for dbimport.

    Examples:
        dbupdate ("update runs set last = current_timestamp")
        dbupdate ("delete from houses where url = :url", sold : gone) {ERRORS: failed}
    """
    updates = Updates(sql, db, context)
    if rel is None:
        outcomes = await updates.run([()])
        with DependentJoin(Schema(()), None, False, context.memory) as joining:
            for item in _joined(outcomes, joining, context):
                yield item
        return
    assert rel.schema is not None
    with DependentJoin(rel.schema, None, False, context.memory) as joining:
        async for batch in rel.batches():
            outcomes = await updates.run(batch)
            for item in _joined(outcomes, joining, context):
                yield item


def _joined(
    outcomes: Iterable[UpdateOutcome], joining: DependentJoin, context: Context
) -> Iterable[Schema | Batch]:
    """Yield the tuples for which the statement was executed, with its results; report failures."""
    joined: Batch = []
    for outcome in outcomes:
        if outcome.error is not None:
            context.fail(outcome.row, outcome.error)
            continue
        context.fired()
        if joining.results is None:
            yield joining.learn(outcome.schema)
        joined += joining.rows(outcome.row, outcome.results)
    if joined:
        yield joined
