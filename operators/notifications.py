"""Short messages to people: notify and phone, which post them to the outbox of the run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from aioflow import AioflowError, Context, Schema, SettingError, Stream, operator
from aioflow.expressions import Template
from aioflow.messages import (
    BodyTemplate,
    Delivery,
    Notices,
    NotifyAccounts,
    Outbox,
    PhoneAccounts,
    PhoneNumbers,
    ShortMessages,
    TextMessages,
    check_wording,
    outbox_problems,
)
from aioflow.operator import Firing, Settings, StoreUse
from aioflow.relation import Batch, Row
from aioflow.services import ServiceHost
from aioflow.spill import RowBuffer


def _fires(settings: Settings) -> Firing:
    if settings.get("each"):
        return "tuple"
    return "end" if settings.get("even_if_empty") else "stream"


def _posts(settings: Settings) -> StoreUse:
    return StoreUse(settings.get("db"), "post", whole=not settings.get("each"))


def _check_each(settings: Settings) -> None:
    if settings["each"] and settings["even_if_empty"]:
        raise SettingError("with EACH there is a message for each tuple, so none for none", setting="each")


# --- notify -------------------------------------------------------------------------------------


def _notify_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    _check_each(settings)
    check_wording(title=settings["title"], body=settings["body"], each=settings["each"])
    return inputs[0]


def _notify_requires(settings: Settings, host: ServiceHost) -> Iterable[str]:
    yield from host.service(NotifyAccounts).problems(settings["via"])
    yield from outbox_problems(settings["db"], host)


@operator(
    outputs=("sent",),
    schema=_notify_schema,
    firing=_fires,
    effects=True,
    store=_posts,
    requires=_notify_requires,
)
async def notify(
    rel: Stream,
    *,
    title: Template | None = None,
    body: BodyTemplate | None = None,
    each: bool = False,
    even_if_empty: bool = False,
    via: str | None = None,
    delivery: Delivery = "at-least-once",
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Tell a chat, push service, webhook or desktop of a relation at its end, or of each tuple.

    Messages stand in the run's outbox, in its database and its transaction: they are delivered when the run
    has ended well, or not at all. Tuples are passed on once their message stands there. A message has a line
    for each tuple, up to `most_rows` of the account, and says how many more there are. There is none for an
    empty relation.

    Arguments:
        rel: the tuples.
        title: the title; with EACH attributes stand in it as `{name}`, otherwise `{count}`.
        body: the text as a template of Jinja2 over `rows` and `count`, with EACH over the attributes and
            `row`; `table` is what would stand there without.
        each: a message for each tuple.
        even_if_empty: a message also for a relation without tuples.
        via: an account of the configuration, `[notify.NAME]`; by default the one called default, or the only
            one there is.
        delivery: at-least-once, or at-most-once for what must rather be lost than come twice.
        db: the database whose outbox takes the messages.

    Examples:
        notify (houses, "{count} new houses") {VIA: team}
        notify (houses, "New in {city}" : told) {EACH; BODY: "{{ address }} for {{ price|number }}"}
    """
    account, settings = context.service(NotifyAccounts).find(via)
    post = _poster("notify", account, delivery, db, context)
    messages = Notices(settings, title, body, each=each)
    async with aclosing(_told(rel, messages, post, each, even_if_empty, context)) as batches:
        async for batch in batches:
            yield batch


# --- phone --------------------------------------------------------------------------------------


def _phone_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    _check_each(settings)
    check_wording(body=settings["body"], each=settings["each"])
    if settings["to"].from_data and not settings["each"]:
        raise SettingError("a number that tuples have needs EACH, a message for each of them", setting="to")
    return inputs[0]


def _phone_requires(settings: Settings, host: ServiceHost) -> Iterable[str]:
    accounts = host.service(PhoneAccounts)
    problems = accounts.problems(settings["via"])
    yield from problems
    if not problems and settings["to"].from_data:
        account, found = accounts.find(settings["via"])
        if not found.allow:
            yield (
                'numbers from data must be allowed: write allow = ["+49*"], with the numbers that messages '
                f"may go to, or how they begin, into [phone.{account}] of aioflow.toml"
            )
    yield from outbox_problems(settings["db"], host)


@operator(
    outputs=("sent",),
    schema=_phone_schema,
    firing=_fires,
    effects=True,
    store=_posts,
    requires=_phone_requires,
)
async def phone(
    rel: Stream,
    *,
    to: PhoneNumbers,
    body: BodyTemplate | None = None,
    each: bool = False,
    even_if_empty: bool = False,
    via: str | None = None,
    delivery: Delivery = "at-least-once",
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Send a text message about a relation at its end, unless it is empty, or about each tuple.

    Messages stand in the run's outbox, in its database and its transaction: they are delivered when the run
    has ended well, or not at all. Tuples are passed on once their message stands there. A message has the
    values of each tuple on a line. One that is longer than the account's `most_segments` is cut, with a mark
    and a warning, or sent as several where its `too_long` says so.

    Arguments:
        rel: the tuples.
        to: a number with the code of its country, `"+49 151 12345678"`, or a list; with EACH also from the
            tuple, `"{mobile}"`, if the account allows that number.
        body: the text as a template of Jinja2 over `rows` and `count`, with EACH over the attributes and
            `row`; `table` is what would stand there without.
        each: a message for each tuple.
        even_if_empty: a message also for a relation without tuples.
        via: an account of the configuration, `[phone.NAME]`; by default the one called default, or the only
            one there is.
        delivery: at-least-once, or at-most-once for what must rather be lost than come twice.
        db: the database whose outbox takes the messages.

    Examples:
        phone (houses, to="+49 151 12345678") {BODY: "{{ count }} new houses"}
        phone (alarms, to="{mobile}" : told) {EACH; BODY: "{{ sensor }} is at {{ value }}"}
    """
    account, settings = context.service(PhoneAccounts).find(via)
    post = _poster("phone", account, delivery, db, context)
    messages = TextMessages(account, settings, to, body)
    async with aclosing(_told(rel, messages, post, each, even_if_empty, context)) as batches:
        async for batch in batches:
            yield batch


# --- posting ------------------------------------------------------------------------------------


def _poster(
    channel: str, account: str, delivery: Delivery, database: str | None, context: Context
) -> Callable[[list[dict[str, Any]]], Awaitable[None]]:
    outbox = context.service(Outbox)

    async def post(contents: list[dict[str, Any]]) -> None:
        for content in contents:
            await outbox.post(
                *(channel, account, content), where=context.where, delivery=delivery, database=database
            )

    return post


async def _told(
    rel: Stream,
    messages: ShortMessages,
    post: Callable[[list[dict[str, Any]]], Awaitable[None]],
    each: bool,
    even_if_empty: bool,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """The tuples whose messages stand in the outbox."""
    if each:
        async for batch in rel.batches():
            assert rel.schema is not None
            told: Batch = []
            # Templates may take their time.
            all_written = await context.in_thread(_written, messages, rel.schema, batch)
            _warn(messages, context)
            for row, written in all_written:
                if isinstance(written, AioflowError):
                    context.fail(row, written)
                    continue
                await post(written)
                context.fired()
                told.append(row)
            if told:
                yield told
        return
    with RowBuffer(context.memory) as rows:
        async for batch in rel.batches():
            rows.append(batch)
        if not len(rows) and not even_if_empty:
            return
        contents = await context.in_thread(messages.for_relation, rel.schema or Schema(()), rows)
        _warn(messages, context)
        await post(contents)
        for batch in rows.batches():
            yield batch


def _warn(messages: ShortMessages, context: Context) -> None:
    while messages.warnings:
        context.warn(messages.warnings.pop(0))


def _written(
    messages: ShortMessages, schema: Schema, batch: Batch
) -> list[tuple[Row, list[dict[str, Any]] | AioflowError]]:
    """The messages for tuples, or why there is none; on a worker thread."""
    return [(row, _written_one(messages, schema, row)) for row in batch]


def _written_one(messages: ShortMessages, schema: Schema, row: Row) -> list[dict[str, Any]] | AioflowError:
    try:
        return messages.for_tuple(schema, row)
    except AioflowError as error:
        return error
