"""What has changed since the last run: diff."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Literal

from aioflow import Context, Schema, SettingError, Stream, To, operator
from aioflow.expressions import Attributes
from aioflow.operator import Settings, StoreUse
from aioflow.operators.held import when_ended
from aioflow.operators.quantities import Share
from aioflow.relation import Batch
from aioflow.services import ServiceHost
from aioflow.spill import RowBuffer
from aioflow.state import (
    SHARE,
    Connection,
    Databases,
    Difference,
    Suspect,
    Transaction,
    Wish,
    WrittenTableName,
    changed_schema,
    open_difference,
)

_SHARE = Share(SHARE)


def _wish(settings: Settings) -> Wish:
    key, ignore, guard = settings["key"], settings["ignore"], settings["guard"]
    return Wish(
        settings["table"],
        None if key is None else key.names,
        () if ignore is None else ignore.names,
        settings["evolve"],
        None if guard == "off" else float(guard),
        settings["duplicates"],
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
    if not key:
        raise SettingError("nothing is left to tell tuples apart by", setting="ignore")
    return schema, changed_schema(schema, key), None


def _requires(settings: Settings, host: ServiceHost) -> Iterable[str]:
    assert host.run is not None
    return host.service(Databases).problems(settings["db"], host.run.folder)


@operator(
    outputs=("added", "changed", "removed"),
    schema=_diff_schema,
    firing="end",
    effects=True,
    store=lambda settings: StoreUse(settings["db"], "compare", whole=True),
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
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[To, None]:
    """Compare a relation with what a table remembers of it; the table then remembers the relation.

    `added` and `changed` leave while tuples come in, `removed` at the end. A changed tuple has its
    attributes, `old-NAME` with the value before for each attribute outside the key, and `changes` with the
    names of those that differ (`price, agent`). A removed one is as the table had it. In the first run, when
    there is no such table, everything is added. Where a later statement of the plan reads or updates the
    database, all of them leave at the end.

    When more than 30 % of the table's rows would vanish at once, and at least 20, the source may have been
    cut short: nothing is deleted, `removed` is empty, and the table is marked as suspect (`aioflow suspects
    list`). The next run deletes them if nearly the same rows vanish again (to 90 %), or whatever vanishes
    then after `aioflow suspects confirm TABLE`. A run in which less vanishes takes the mark off.

    Arguments:
        rel: the tuples as they are now, each key once; the same tuple several times counts once.
        table: the table that remembers; made in the first run. Its other columns stay as they are.
        key: the attributes that tell tuples apart; without it a tuple is compared as a whole, and nothing is
            ever `changed`.
        ignore: attributes that are stored, but whose changes do not count.
        evolve: add columns for attributes that the table does not have.
        guard: the share of the table's rows above which a run is suspect; `off` believes every run.
        duplicates: what different tuples with one key are: an error, or all but the first are ignored.
        db: the database, by its name in the configuration.

    Examples:
        diff (houses, "houses" : new, changed, sold) {KEY: "url"; IGNORE: "views"}
        diff (urls, "seen" : new-urls)
    """
    settings = {"table": table, "key": key, "ignore": ignore, "evolve": evolve}
    wish = _wish({**settings, "guard": guard, "duplicates": duplicates})
    with RowBuffer(context.memory) as taken:
        if context.sees_own_writes:  # the table is read when it has all rows that are passed on to here
            async for batch in rel.batches():
                taken.append(batch)
        results = _compared(rel, taken, wish, db, context)
        # Whoever gets a row and looks for it in the table finds it there when the comparison has ended.
        async with aclosing(when_ended(results, context) if context.is_read_back else results) as items:
            async for item in items:
                yield item


async def _compared(
    rel: Stream, taken: RowBuffer, wish: Wish, db: str | None, context: Context
) -> AsyncGenerator[To, None]:
    transaction = context.service(Transaction)
    async with _view(transaction, wish.table, db, context) as connection:
        opened = await open_difference(connection, wish, rel.schema, context.where, context.memory)
    if opened is None:
        return
    with opened as difference:
        if difference.is_large:
            await context.in_thread(difference.arrange)
        transaction.stage(db, difference.write, position=context.position)
        yield To("removed", difference.table_schema)
        async for batch in _batches(taken, rel, context):
            added, changed = difference.compare(batch)
            if added:
                yield To("added", added)
            if changed:
                yield To("changed", changed)
        if difference.repeated:
            await context.in_thread(difference.check_repeated)
            context.count("repeated", difference.repeated)
        mark = await _mark(difference, context)
        if mark is None:
            for batch in difference.vanished():
                yield To("removed", batch)
                await context.sleep(0)
        difference.finish(mark)
        transaction.complete(difference.write)


async def _batches(taken: RowBuffer, rel: Stream, context: Context) -> AsyncGenerator[Batch, None]:
    """All tuples: those that were taken before, and those that are to come."""
    for batch in taken.batches():
        yield batch
        await context.sleep(0)
    async for batch in rel.batches():
        yield batch


@asynccontextmanager
async def _view(
    transaction: Transaction, table: str, db: str | None, context: Context
) -> AsyncIterator[Connection]:
    """What the table is compared in: behind writes of this run as they made it, else as it is now."""
    permit = partial(context.permit, label=f"read {table}")
    if context.sees_own_writes:
        async with transaction.own_view(db, context, permit) as connection:
            yield connection
        return
    async with permit(), transaction.snapshot(db) as connection:
        yield connection


async def _mark(difference: Difference, context: Context) -> Suspect | None:
    """The mark to leave when so much would vanish that it is not believed yet."""
    if not difference.is_suspect:
        return None
    mark = await context.in_thread(difference.judge, context.run.run_id, context.run.started)
    if mark is not None:
        context.warn(
            f"{mark.vanishing} of {mark.total} rows of the table {mark.table!r} would vanish, as if the "
            "source had been cut short: nothing was deleted. The next run that sees the same deletes them, "
            f"as does the next one after `aioflow suspects confirm {mark.table}`"
        )
    return mark
