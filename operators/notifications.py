"""Operators for short messages: notify and phone, which post them to the outbox of the run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing

from aioflow import Context, Schema, SettingError, Stream, operator
from aioflow.authoring.operator import Settings
from aioflow.authoring.services import ServiceHost
from aioflow.expressions import Template
from aioflow.messages import (
    BodyTemplate,
    Debounce,
    Delivery,
    DigestTimes,
    MessageTiming,
    Notices,
    NotifyAccounts,
    PhoneAccounts,
    PhoneNumbers,
    QuietHours,
    TextMessages,
    check_wording,
    outbox_problems,
)
from aioflow.operators.posting import Poster, PostOptions, check_each, check_timing, fires, posts, told
from aioflow.relation import Batch

# --- notify -------------------------------------------------------------------------------------


def _notify_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    check_each(settings)
    check_timing(settings)
    check_wording(title=settings["title"], body=settings["body"], each=settings["each"])
    return inputs[0]


def _notify_requires(settings: Settings, host: ServiceHost) -> Iterable[str]:
    assert host.run is not None
    yield from host.service(NotifyAccounts).problems(host.run.default("notify", settings["via"]))
    yield from outbox_problems(settings["db"], host)


@operator(
    outputs=("sent",),
    schema=_notify_schema,
    firing=fires,
    effects=True,
    store=posts,
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
    digest: DigestTimes | None = None,
    debounce: Debounce | None = None,
    quiet: QuietHours | None = None,
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Notify a chat, push service, webhook or desktop of a relation at its end, or of each tuple.

    Messages are stored in the outbox of the run, in its database and its transaction: they are delivered if
    the run ends successfully, or not at all. Tuples are passed on when their message is stored. A message has
    a line for each tuple, up to `most_rows` of the account, and says how many more there are. There is no
    message for an empty relation. A message about a doubtful relation says that it may be wrong, and why.

    Arguments:
        rel: the tuples.
        title: the title; with EACH it may have attributes as `{name}`, otherwise `{count}`.
        body: the text, as a Jinja2 template with `rows` and `count`, or with the attributes and `row` for
            EACH; `table` is the default text.
        each: a message for each tuple.
        even_if_empty: send a message even for a relation without tuples.
        via: an account of the configuration, `[notify.NAME]`; by default the one named default, or the only
            one.
        delivery: at-least-once, or at-most-once for messages that should rather be lost than arrive twice.
        digest: times at which one message tells the tuples of all runs since the last one: `hourly`, `"daily
            08:00"`, `"weekly mon 08:00"`, each also with a time zone, or a schedule such as `"0 8,18 * * *"`.
        debounce: a time span such as `"30m"`. The message is sent when there were no further tuples for so
            long, and tells the tuples of all runs. It waits for ten such spans at most.
        quiet: hours such as `"22:00-07:00"`, also with a time zone, in which the message is not delivered; by
            default those of the account; `off` for none.
        db: the database of the outbox.

    Examples:
        notify (houses, "{count} new houses") {VIA: team}
        notify (houses, "{count} new houses") {DEBOUNCE: 30m; QUIET: 22:00-07:00}
        notify (houses, "New in {city}" : told) {EACH; BODY: "{{ address }} for {{ price|number }}"}
    """
    account, settings = context.service(NotifyAccounts).find(context.run.default("notify", via))
    timing = MessageTiming.of(digest, debounce, quiet, settings.quiet)
    options = PostOptions("title", timing, delivery, db)
    poster = Poster("notify", account, options, Notices.recipe(title, body), context)
    messages = Notices(settings, title, body, each=each)
    async with aclosing(told(rel, messages, poster, each, even_if_empty, context)) as batches:
        async for batch in batches:
            yield batch


# --- phone --------------------------------------------------------------------------------------


def _phone_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    check_each(settings)
    check_timing(settings)
    check_wording(body=settings["body"], each=settings["each"])
    if settings["to"].from_data and not settings["each"]:
        raise SettingError("a number that tuples have needs EACH, a message for each of them", setting="to")
    return inputs[0]


def _phone_requires(settings: Settings, host: ServiceHost) -> Iterable[str]:
    assert host.run is not None
    via = host.run.default("phone", settings["via"])
    accounts = host.service(PhoneAccounts)
    problems = accounts.problems(via)
    yield from problems
    if not problems and settings["to"].from_data:
        account, found = accounts.find(via)
        if not found.allow:
            yield (
                'numbers from data must be allowed: write allow = ["+49*"], with the numbers that messages '
                f"may go to, or how they begin, into [phone.{account}] of aioflow.toml"
            )
    yield from outbox_problems(settings["db"], host)


@operator(
    outputs=("sent",),
    schema=_phone_schema,
    firing=fires,
    effects=True,
    store=posts,
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
    digest: DigestTimes | None = None,
    debounce: Debounce | None = None,
    quiet: QuietHours | None = None,
    db: str | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Send a text message about a relation at its end, unless it is empty, or about each tuple.

    Messages are stored in the outbox of the run, in its database and its transaction: they are delivered if
    the run ends successfully, or not at all. Tuples are passed on when their message is stored. A message has
    the values of each tuple on a line. A message that is longer than the account's `most_segments` is cut,
    with a mark and a warning, or sent as several if its `too_long` says so. A message about a doubtful
    relation says that it may be wrong, and why.

    Arguments:
        rel: the tuples.
        to: a number with its country code, `"+49 151 12345678"`, or a list; with EACH also from the tuple,
            `"{mobile}"`, if the account allows that number.
        body: the text, as a Jinja2 template with `rows` and `count`, or with the attributes and `row` for
            EACH; `table` is the default text.
        each: a message for each tuple.
        even_if_empty: send a message even for a relation without tuples.
        via: an account of the configuration, `[phone.NAME]`; by default the one named default, or the only
            one.
        delivery: at-least-once, or at-most-once for messages that should rather be lost than arrive twice.
        digest: times at which one message tells the tuples of all runs since the last one: `hourly`, `"daily
            08:00"`, `"weekly mon 08:00"`, each also with a time zone, or a schedule such as `"0 8,18 * * *"`.
        debounce: a time span such as `"30m"`. The message is sent when there were no further tuples for so
            long, and tells the tuples of all runs. It waits for ten such spans at most.
        quiet: hours such as `"22:00-07:00"`, also with a time zone, in which the message is not delivered; by
            default those of the account; `off` for none.
        db: the database of the outbox.

    Examples:
        phone (houses, to="+49 151 12345678") {BODY: "{{ count }} new houses"}
        phone (alarms, to="{mobile}" : told) {EACH; BODY: "{{ sensor }} is at {{ value }}"}
    """
    account, settings = context.service(PhoneAccounts).find(context.run.default("phone", via))
    timing = MessageTiming.of(digest, debounce, quiet, settings.quiet)
    options = PostOptions("to", timing, delivery, db)
    poster = Poster("phone", account, options, TextMessages.recipe(to, body), context)
    messages = TextMessages(account, settings, to, body)
    async with aclosing(told(rel, messages, poster, each, even_if_empty, context)) as batches:
        async for batch in batches:
            yield batch
