"""The shared part of email, notify and phone: tuples become messages in the outbox of a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

import msgspec

from aioflow import AioflowError, Context, Schema, SettingError, Stream, interleave
from aioflow.authoring.operator import Firing, Settings, StoreUse
from aioflow.messages import Delivery, EmailContent, MessageTiming, ShortMessages
from aioflow.relation import UNTOLD, Batch, Row
from aioflow.runtime.spill import RowBuffer, walk

# A relation that has come to its end.
Kept: TypeAlias = tuple[Schema, RowBuffer]


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


def check_timing(settings: Settings) -> None:
    """Raise a SettingError for times of messages that make no sense together."""
    for name in ("digest", "debounce"):
        if settings[name] is not None and settings["each"]:
            told = f"with EACH there is a message for each tuple, and {name.upper()} makes one of many"
            raise SettingError(told, setting=name)
    if settings["digest"] is not None and settings["debounce"] is not None:
        raise SettingError("a message is due by DIGEST or by DEBOUNCE, not by both", setting="debounce")


class PostOptions(msgspec.Struct, frozen=True):
    """The options of a statement for the delivery of its messages, beside their content.

    `like` is the setting that tells it from other statements of its plan, from run to run.
    """

    like: str
    timing: MessageTiming
    delivery: Delivery = "at-least-once"
    database: str | None = None


class Poster:
    """Puts the messages of one statement into the outbox of the run, or gathers rows for its digests."""

    def __init__(
        self, channel: str, account: str, options: PostOptions, recipe: Mapping[str, Any], context: Context
    ) -> None:
        from aioflow.messages import Outbox  # needed to run, not to check

        self._channel = channel
        self._account = account
        self._options = options
        self._recipe = recipe
        self._context = context
        self._outbox = context.service(Outbox)
        # Messages that wait from earlier runs are delivered with this run, even if it has none.
        self._outbox.attend(options.database)

    async def post(self, contents: list[dict[str, Any]]) -> None:
        """Put messages into the outbox."""
        options = self._options
        for content in contents:
            await self._outbox.post(
                *(self._channel, self._account, content),
                where=self._context.where,
                delivery=options.delivery,
                database=options.database,
                quiet=options.timing.quiet,
            )

    async def tell(
        self, messages: ShortMessages, relations: Sequence[Kept], contents: list[dict[str, Any]]
    ) -> None:
        """Post the messages about relations, or have their rows told later, with those of other runs.

        The contents are made in both cases, so a mistake in them is one of this run.
        """
        if self._options.timing.gathers and await self._gather(relations, messages.doubt):
            messages.warnings.clear()  # of a message that is not sent
            return
        _warn(messages, self._context)
        await self.post(contents)

    async def _gather(self, relations: Sequence[Kept], doubt: str) -> bool:
        """Gather rows; return False if they are too many for a digest."""
        from aioflow.messages import DigestRecipe, gathered_rows

        batches = [(schema, rows.batches()) for schema, rows in relations]
        rows = await self._context.in_thread(gathered_rows, batches, *self._outbox.most_gathered)
        if rows is None:
            return False
        options = self._options
        statement = self._context.number_in_plan(options.like)
        recipe = DigestRecipe(
            *(self._channel, self._account, statement, self._recipe, options.timing, options.delivery)
        )
        where, database = self._context.where, options.database
        await self._outbox.gather(recipe, rows, doubt=doubt, where=where, database=database)
        return True


def told(
    rel: Stream,
    messages: ShortMessages,
    poster: Poster,
    each: bool,
    even_if_empty: bool,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Post messages, and yield the tuples whose messages are in the outbox."""
    if each:
        return _told_each(rel, messages, poster, context)
    return _told_whole(rel, messages, poster, even_if_empty, context)


async def _told_each(
    rel: Stream, messages: ShortMessages, poster: Poster, context: Context
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
            await poster.post(written)
            context.fired()
            posted.append(row)
        if posted:
            yield posted


async def _told_whole(
    rel: Stream, messages: ShortMessages, poster: Poster, even_if_empty: bool, context: Context
) -> AsyncGenerator[Batch, None]:
    """Post one message for the whole relation."""
    with RowBuffer(context.memory) as rows:
        async for batch in rel.batches():
            rows.append(batch)
        if not len(rows) and not even_if_empty:
            return
        messages.doubt = _doubt(rel)
        schema = rel.schema or UNTOLD
        contents = await context.in_thread(messages.for_relation, schema, rows)
        await poster.tell(messages, [(schema, rows)], contents)
        async for batch in walk(rows, rows.batches()):
            yield batch


async def told_together(
    rels: Sequence[Stream], content: EmailContent, poster: Poster, even_if_empty: bool, context: Context
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
        await poster.tell(content, relations, contents)
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
