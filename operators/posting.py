"""The shared part of email, notify and phone: tuples become messages in the outbox of a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

from aioflow import AioflowError, Context, Schema, SettingError, Stream, interleave
from aioflow.authoring.operator import Firing, Settings, StoreUse
from aioflow.messages import Delivery, EmailContent, ShortMessages
from aioflow.relation import UNTOLD, Batch, Row
from aioflow.runtime.spill import RowBuffer, walk

Post: TypeAlias = Callable[[list[dict[str, Any]]], Awaitable[None]]


def fires(settings: Settings) -> Firing:
    """Return the firing: for each tuple with EACH, else for the relation."""
    if settings.get("each"):
        return "tuple"
    return "end" if settings.get("even_if_empty") else "stream"


def posts(settings: Settings) -> StoreUse:
    """Return the use that a statement with messages makes of a database."""
    return StoreUse(settings.get("db"), "post", whole=not settings.get("each"))


def check_each(settings: Settings) -> None:
    """Raise a SettingError for settings that make no sense with EACH."""
    if settings["each"] and settings["even_if_empty"]:
        raise SettingError("with EACH there is a message for each tuple, so none for none", setting="each")


def poster(channel: str, account: str, delivery: Delivery, database: str | None, context: Context) -> Post:
    """Return a function that puts messages into the outbox of the run."""
    from aioflow.messages import Outbox  # needed to run, not to check

    outbox = context.service(Outbox)
    outbox.attend(
        database
    )  # messages that wait from earlier runs are delivered with this run, even if it has none

    async def post(contents: list[dict[str, Any]]) -> None:
        for content in contents:
            await outbox.post(
                *(channel, account, content), where=context.where, delivery=delivery, database=database
            )

    return post


def told(
    rel: Stream,
    messages: ShortMessages,
    post: Post,
    each: bool,
    even_if_empty: bool,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Post messages, and yield the tuples whose messages are in the outbox."""
    if each:
        return _told_each(rel, messages, post, context)
    return _told_whole(rel, messages, post, even_if_empty, context)


async def _told_each(
    rel: Stream, messages: ShortMessages, post: Post, context: Context
) -> AsyncGenerator[Batch, None]:
    """Post a message for each tuple."""
    async for batch in rel.batches():
        assert rel.schema is not None
        posted: Batch = []
        messages.doubt = _doubt(rel)
        # Templates may take their time.
        all_written = await context.in_thread(_written, messages, rel.schema, batch)
        _warn(messages, context)
        for row, written in all_written:
            if isinstance(written, AioflowError):
                context.fail(row, written)
                continue
            await post(written)
            context.fired()
            posted.append(row)
        if posted:
            yield posted


async def _told_whole(
    rel: Stream, messages: ShortMessages, post: Post, even_if_empty: bool, context: Context
) -> AsyncGenerator[Batch, None]:
    """Post one message for the whole relation."""
    with RowBuffer(context.memory) as rows:
        async for batch in rel.batches():
            rows.append(batch)
        if not len(rows) and not even_if_empty:
            return
        messages.doubt = _doubt(rel)
        contents = await context.in_thread(messages.for_relation, rel.schema or UNTOLD, rows)
        _warn(messages, context)
        await post(contents)
        async for batch in walk(rows, rows.batches()):
            yield batch


async def told_together(
    rels: Sequence[Stream], content: EmailContent, post: Post, even_if_empty: bool, context: Context
) -> AsyncGenerator[Batch, None]:
    """Yield the tuples of the first relation, once the message about all relations is in the outbox."""
    with ExitStack() as stack:
        kept = {rel: stack.enter_context(RowBuffer(context.memory)) for rel in rels}
        async for rel, batch in interleave(*rels):
            kept[rel].append(batch)
        if not any(map(len, kept.values())) and not even_if_empty:
            return
        relations = [(rel.schema or Schema(()), rows) for rel, rows in kept.items()]
        content.doubt = _doubt(*rels)
        contents = await context.in_thread(content.for_relations, relations)
        _warn(content, context)
        await post(contents)
        first = kept[rels[0]]
        async for batch in walk(first, first.batches()):
            yield batch


def _doubt(*rels: Stream) -> str:
    """Return the reason why tuples that have arrived may be wrong; an empty text if there is none."""
    reasons = [reason for rel in rels for reason in rel.marks.doubtful]
    return reasons[0].text if reasons else ""


def _warn(messages: ShortMessages, context: Context) -> None:
    while messages.warnings:
        context.warn(messages.warnings.pop(0))


def _written(
    messages: ShortMessages, schema: Schema, batch: Batch
) -> list[tuple[Row, list[dict[str, Any]] | AioflowError]]:
    """Return the messages for tuples, or the errors in their place; on a worker thread."""
    return [(row, _written_one(messages, schema, row)) for row in batch]


def _written_one(messages: ShortMessages, schema: Schema, row: Row) -> list[dict[str, Any]] | AioflowError:
    try:
        return messages.for_tuple(schema, row)
    except AioflowError as error:
        return error
