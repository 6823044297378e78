"""email, which posts mail to the outbox of the run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing

from aioflow import Context, Schema, Stream, operator
from aioflow.authoring.operator import Settings
from aioflow.authoring.services import ServiceHost
from aioflow.messages import (
    BodyTemplate,
    Debounce,
    Delivery,
    DigestTimes,
    EmailDraft,
    FileKind,
    Headings,
    HtmlTemplate,
    MessageTiming,
    QuietHours,
    Recipients,
    Subject,
)
from aioflow.operators.posting import (
    Poster,
    PostOptions,
    check_each,
    check_timing,
    fires,
    posts,
    told,
    told_together,
)
from aioflow.relation import Batch
from aioflow.values.cells import cell, json_text

_DRAFTED = (
    *("to", "subject", "cc", "bcc", "reply_to", "body", "body_html", "attach", "each", "names", "headings"),
)
_NO_HEADINGS = Headings()


def _draft(settings: Settings) -> EmailDraft:
    return EmailDraft(**{name: settings[name] for name in _DRAFTED})


def _schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    check_each(settings)
    check_timing(settings)
    _draft(settings).check(inputs)
    return inputs[0]


def _missing(settings: Settings, host: ServiceHost) -> Iterable[str]:
    from aioflow.messages import EmailAccounts, outbox_problems

    yield from outbox_problems(settings["db"], host)
    accounts = host.service(EmailAccounts)
    assert host.run is not None
    via = host.run.default("email", settings["via"])
    problems = accounts.problems(via)
    yield from problems
    if not problems and _draft(settings).takes_recipients_from_data:
        account = accounts.find(via)
        if not account.settings.allow:
            yield (
                f'addresses from data must be allowed: write allow = ["example.org"], with the domains or '
                f"addresses that mail may go to, into [email.{account.name}] of aioflow.toml"
            )


@operator(
    outputs=("sent",),
    schema=_schema,
    firing=fires,
    effects=True,
    store=posts,
    requires=_missing,
    input_names="names",
)
async def email(
    rel: Stream,
    *more: Stream,
    to: Recipients,
    subject: Subject,
    cc: Recipients | None = None,
    bcc: Recipients | None = None,
    reply_to: Recipients | None = None,
    body: BodyTemplate | None = None,
    body_html: HtmlTemplate | None = None,
    attach: tuple[FileKind, ...] = (),
    each: bool = False,
    even_if_empty: bool = False,
    via: str | None = None,
    delivery: Delivery = "at-least-once",
    digest: DigestTimes | None = None,
    debounce: Debounce | None = None,
    quiet: QuietHours | None = None,
    db: str | None = None,
    headings: Headings = _NO_HEADINGS,
    names: tuple[str, ...] = (),
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Mail relations as tables at their end, or a message for each tuple, and pass the tuples on.

    Messages are stored in the outbox of the run, in its database and its transaction: they are delivered if
    the run ends successfully, or not at all. Tuples are passed on when their message is stored. There is no
    message if all relations are empty. Every copy of a message has the same Message-ID. A table that is
    longer than the account's `most_rows` is cut, and says so. Changed tuples of `diff` are shown as blocks
    with the old and the new value of each change. Several relations become sections of one message, without
    the empty ones; the tuples of the first relation are passed on. A message about a doubtful relation says
    in its subject and in its first line that it may be wrong, and why.

    Arguments:
        rel: the tuples.
        more: further relations for the same message, with any attributes.
        to: addresses, `"Ann <ann@example.org>, bob@example.org"` or a list; with EACH also from the tuple,
            `"{name} <{email}>"`, if the account allows that address or its domain.
        subject: the subject; with EACH it may have attributes as `{name}`, otherwise `{count}`. With `{{ …
            }}`, and none of these, it is a Jinja2 template like BODY: `{{ count|plural("house", "houses")
            }}`.
        cc: more addresses.
        bcc: addresses that other recipients do not see.
        reply_to: the address for replies; by default that of the account.
        body: the text, as a Jinja2 template with `rows` and `count`, or with the attributes and `row` for
            EACH; `table` is the default text. The names of variables stand for their relations too, and are
            the only way to several relations; `count` is then that of all. The message then has no HTML.
        body_html: the same for HTML, in which all values are escaped.
        attach: files with all tuples: csv, json, xml; with several relations, files for each.
        each: a message for each tuple.
        even_if_empty: send a message even for a relation without tuples.
        via: an account of the configuration, `[email.NAME]`; by default the one named default, or the only
            one.
        delivery: at-least-once, or at-most-once for messages that should rather be lost than arrive twice.
        digest: times at which one message tells the tuples of all runs since the last one: `hourly`, `"daily
            08:00"`, `"weekly mon 08:00"`, each also with a time zone, or a schedule such as `"0 8,18 * * *"`.
        debounce: a time span such as `"30m"`. The message is sent when there were no further tuples for so
            long, and tells the tuples of all runs. It waits for ten such spans at most.
        quiet: hours such as `"22:00-07:00"`, also with a time zone, in which the message is not delivered; by
            default those of the account; `off` for none.
        db: the database of the outbox.
        headings: the headings of several relations, `"New, Changed, Gone"` or a list; by default their names.
        names: the names of the relations; by default those of the variables.

    Examples:
        email (houses, to="me@example.org", subject="{count} new houses") {ATTACH: csv}
        email (new, changed, gone, to="me@example.org", subject="{{ count|plural('house', 'houses') }}")
        email (houses, to="me@example.org", subject="{count} new houses") {DIGEST: daily 08:00}
        email (orders, to="{email}", subject="Order {number}" : sent) {EACH; BODY: "Thank you, {{ name }}!"}
    """
    from aioflow.messages import EmailAccounts, EmailContent, ValueEncoding  # needed to run, not to check

    draft = EmailDraft(to, subject, cc, bcc, reply_to, body, body_html, attach, each, names, headings)
    account = context.service(EmailAccounts).find(context.run.default("email", via))
    content = EmailContent(draft, account, ValueEncoding(cell, json_text), context.run.plan)
    timing = MessageTiming.of(digest, debounce, quiet, account.settings.quiet)
    options = PostOptions("subject", timing, delivery, db)
    poster = Poster("email", account.name, options, draft.as_recipe(context.run.plan), context)
    passed = (
        told_together((rel, *more), content, poster, even_if_empty, context)
        if more
        else told(rel, content, poster, each, even_if_empty, context)
    )
    async with aclosing(passed) as batches:
        async for batch in batches:
            yield batch
