"""diff, which finds the changes of a relation since the last run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, Literal, TypeVar

from aioflow import Context, Schema, SettingError, Stream, To, operator
from aioflow.authoring.operator import Settings, StoreUse
from aioflow.authoring.services import ServiceHost
from aioflow.expressions import Attributes
from aioflow.operators.held import when_ended
from aioflow.operators.settings import Duration, PositiveCount, Share
from aioflow.relation import Batch
from aioflow.runtime.spill import RowBuffer, off_loop, walk
from aioflow.state import (
    APART_SECONDS,
    CONFIRMING_RUNS,
    SHARE,
    Connection,
    Databases,
    Difference,
    DiffSpec,
    EmptyBaseline,
    Storable,
    Transaction,
    WrittenTableName,
    changed_schema,
    open_difference,
)
from aioflow.values.quantities import count_text

T = TypeVar("T")

_SHARE = Share(SHARE)
_RUNS = PositiveCount(CONFIRMING_RUNS)
_APART = Duration(APART_SECONDS)


def _wish(settings: Settings) -> DiffSpec:
    key, ignore, guard = settings["key"], settings["ignore"], settings["guard"]
    return DiffSpec(
        settings["table"],
        None if key is None else key.names,
        () if ignore is None else ignore.names,
        settings["evolve"],
        None if guard == "off" else float(guard),
        settings["duplicates"],
        settings["first"],
        int(settings["confirm_runs"]),
        float(settings["confirm_apart"]),
    )


def _diff_schema(
    inputs: Sequence[Schema | None], settings: Settings
) -> tuple[Schema | None, Schema | None, None]:
    wish, schema = _wish(settings), inputs[0]
    both = [name for name in wish.ignore if name in (wish.key or ())]
    if both:
        raise SettingError(f"{both[0]!r} cannot be both part of the KEY and ignored", setting="ignore")
    if schema is None:
        return None, None, None
    key = wish.key_of(schema.names)
    if not key and not schema.open:
        raise SettingError("nothing is left to tell tuples apart by", setting="ignore")
    return schema, changed_schema(schema, key), None


def _requires(settings: Settings, host: ServiceHost) -> Iterable[str]:
    assert host.run is not None
    database = host.run.default("database", settings["db"])
    return host.service(Databases).problems(database, host.run.folder)


@operator(
    outputs=("added", "changed", "removed"),
    schema=_diff_schema,
    firing="end",
    effects=True,
    store=lambda settings: StoreUse(settings["db"], "compare", whole=True, table=settings["table"]),
    requires=_requires,
)
async def diff(
    rel: Stream,
    *,
    table: WrittenTableName,
    key: Attributes | None = None,
    ignore: Attributes | None = None,
    evolve: bool = False,
    guard: Share | Literal["off"] = _SHARE,
    duplicates: Literal["error", "first"] = "error",
    first: Literal["baseline", "news"] = "baseline",
    confirm_runs: PositiveCount = _RUNS,
    confirm_apart: Duration = _APART,
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[To, None]:
    """Compare a relation with the table that stores its last state, and store the new state.

    All results leave at the end of the input. A changed tuple has its attributes, `old-NAME` with the
    previous value of each attribute outside the key, and `changes` with the names of those that differ
    (`price, agent`). A removed tuple has the values that the table had. The first run, when there is no such
    table, stores all tuples and reports none.

    Changes that look false are held back. After a partial input (a page failed, a body broke off, a wrapper
    found less than usual) nothing is deleted. After a doubtful input nothing is believed at all. If a column
    becomes null in every tuple, the table keeps its values, and no change is reported. If more than the share
    GUARD of the table's rows vanishes at once, these rows are held. If about as many others appear, those are
    held too, since the key may have been redesigned. Changes that are held are a suspect, which the run and
    `aioflow suspects` show with its reason. After `aioflow suspects confirm TABLE` the next whole run applies
    it. Rows are also believed to be gone when they are missing in CONFIRM_RUNS whole runs.

    Arguments:
        rel: the current tuples, each key once; equal tuples count once.
        table: the table with the last state, created in the first run. Its other columns stay as they are.
        key: the attributes that tell tuples apart; without it whole tuples are compared, and none is ever
            `changed`.
        ignore: attributes that are stored, but not compared.
        evolve: add columns for attributes that the table does not have.
        guard: the share of the table's rows that may vanish at once; `off` believes every whole run.
        duplicates: `error` makes different tuples with one key an error, `first` ignores all but the first.
        first: in the first run, `baseline` stores all tuples and reports none, `news` reports them as added.
        confirm_runs: the number of whole runs in which a row must be missing before it is believed to be
            gone.
        confirm_apart: the least time between these runs.
        db: the database, by its name in the configuration.

    Examples:
        diff (houses, "houses" : new, changed, sold) {KEY: "url"; IGNORE: "views"}
        diff (urls, "seen" : new-urls) {FIRST: news}
    """
    settings: dict[str, Any] = {"table": table, "key": key, "ignore": ignore, "evolve": evolve}
    settings |= {"guard": guard, "duplicates": duplicates}
    settings["first"] = context.run.default("first") or first  # a task decides for its plan
    wish = _wish(settings | {"confirm_runs": confirm_runs, "confirm_apart": confirm_apart})
    with RowBuffer(context.memory) as taken:
        if (
            context.sees_own_writes
        ):  # read the table after the writes upstream, which pass their rows on to here
            async for batch in rel.batches():
                taken.append(batch)
        results = _compared(rel, taken, wish, db, context)
        # A statement that gets a row and looks for it in the table finds it there, once the comparison has
        # ended.
        async with aclosing(when_ended(results, context) if context.is_read_back else results) as items:
            async for item in items:
                yield item


async def _compared(
    rel: Stream, taken: RowBuffer, wish: DiffSpec, db: str | None, context: Context
) -> AsyncGenerator[To, None]:
    transaction = context.service(Transaction)
    async with _view(transaction, wish.table, db, context) as connection:
        schema = None if rel.is_untold else rel.schema
        opened = await open_difference(
            connection, wish, schema, context.where, context.memory, transaction.origin
        )
    if opened is None:
        await _note_empty_baseline(wish, rel, db, context)
        return
    with opened as difference:
        await off_loop(difference, difference.arrange)
        transaction.stage(db, difference.write, position=context.position)
        yield To("removed", difference.table_schema)
        storable = Storable(rel.schema or Schema(()), db, context)
        async for batch in _batches(taken, rel, context):
            storable.check(batch)
            await off_loop(difference, difference.compare, batch)
        await _judge(difference, rel, wish, context)
        for name, batches in (
            ("added", difference.added()),
            ("changed", difference.changed()),
            ("removed", difference.removed()),
        ):
            async for batch in walk(difference, batches):
                transaction.count_changes(wish.table, name, len(batch))
                yield To(name, batch)
                await context.sleep(0)
        await _worker(difference, context)(difference.take_over_silently)
        transaction.complete(difference.write)


async def _batches(taken: RowBuffer, rel: Stream, context: Context) -> AsyncGenerator[Batch, None]:
    """Yield the tuples that were taken before, and then those still to come."""
    async for batch in walk(taken, taken.batches()):
        yield batch
        await context.sleep(0)
    async for batch in rel.batches():
        yield batch


async def _note_empty_baseline(wish: DiffSpec, rel: Stream, db: str | None, context: Context) -> None:
    """Record, for a table that does not exist, that a whole run found nothing: later tuples are new."""
    if not rel.marks.is_whole:
        return
    transaction = context.service(Transaction)
    write = EmptyBaseline(context.where, wish, transaction.origin)
    transaction.stage(db, write, position=context.position)
    transaction.complete(write)


def _worker(difference: Difference, context: Context) -> Callable[..., Awaitable[Any]]:
    """Return a function that calls others where they do not keep the event loop."""
    return context.in_thread if difference.takes_time else partial(off_loop, difference)


async def _judge(difference: Difference, rel: Stream, wish: DiffSpec, context: Context) -> None:
    """Decide which changes are reported, and warn about those that are held back."""
    call = _worker(difference, context)
    judgement = await call(difference.settle, rel.marks)
    if difference.repeated:
        await call(difference.check_repeated)
        context.count("repeated", difference.repeated)
    run = context.run
    suspect = await call(difference.judge, judgement, run.run_id, run.started)
    if suspect is not None and suspect.holds_anything:
        context.service(Transaction).hold(wish.table, suspect.held)
        reasons = "; ".join(reason.text for reason in suspect.reasons)
        why = reasons if reasons.endswith("?") else f"{reasons}."
        context.warn(
            f"held back from the table {wish.table!r}: {suspect.held}. Why: {why} `aioflow suspects "
            f"confirm {wish.table}` lets the next whole run apply it"
        )
    if difference.is_first and not judgement.doubts:
        rows = count_text(difference.found.added, "row")
        told = "tells everything" if wish.first == "news" else "tells nothing (FIRST: news tells everything)"
        context.note(f"the first run of the table {wish.table!r}: it remembers {rows} and {told}")


@asynccontextmanager
async def _view(
    transaction: Transaction, table: str, db: str | None, context: Context
) -> AsyncIterator[Connection]:
    """Open the view in which the table is compared: after writes of this run with them, else as it is now."""
    permit = partial(context.permit, label=f"read {table}")
    if context.sees_own_writes:
        async with transaction.own_view(db, context, permit) as connection:
            yield connection
        return
    async with permit(), transaction.snapshot(db) as connection:
        yield connection
