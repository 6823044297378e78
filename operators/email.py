"""Mail: email, which posts messages to the outbox of the run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing

from aioflow import Context, Schema, Stream, operator
from aioflow.authoring.operator import Settings
from aioflow.authoring.services import ServiceHost
from aioflow.messages import (
    BodyTemplate,
    Delivery,
    EmailDraft,
    FileKind,
    Headings,
    HtmlTemplate,
    Recipients,
    Subject,
)
from aioflow.operators.posting import check_each, fires, poster, posts, told, told_together
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
    _draft(settings).check(inputs)
    return inputs[0]


def _missing(settings: Settings, host: ServiceHost) -> Iterable[str]:
    from aioflow.messages import EmailAccounts, outbox_problems

    yield from outbox_problems(settings["db"], host)
    accounts = host.service(EmailAccounts)
    problems = accounts.problems(settings["via"])
    yield from problems
    if not problems and _draft(settings).takes_recipients_from_data:
        account = accounts.find(settings["via"])
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
    db: str | None = None,
    headings: Headings = _NO_HEADINGS,
    names: tuple[str, ...] = (),
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Mail relations at their end as tables, unless all are empty, or each tuple; pass tuples on when posted.

    Messages stand in the run's outbox, in its database and its transaction: they are delivered when the run
    has ended well, or not at all. Every copy of a message has the same Message-ID. A table that is longer
    than the account's `most_rows` is cut, and says so. Tuples that have changed, as `diff` gives them, are
    blocks with the old value and the new one of what has changed. Several relations are sections of one
    message, without those that are empty; the tuples that are passed on are those of the first. A message
    about a doubtful relation says in its subject and in its first line that it may be wrong, and why.

    Arguments:
        rel: the tuples.
        more: further relations for the same message, of any attributes.
        to: addresses, `"Ann <ann@example.org>, bob@example.org"` or a list; with EACH also from the tuple,
            `"{name} <{email}>"`, if the account allows that address or its domain.
        subject: the subject; with EACH attributes stand in it as `{name}`, otherwise `{count}`. With
            `{{ … }}`, and none of these, it is a template of Jinja2 as BODY is:
            `{{ count|plural("house", "houses") }}`.
        cc: more addresses.
        bcc: addresses that nobody else is told.
        reply_to: where answers go; by default what the account says.
        body: the text as a template of Jinja2 over `rows` and `count`, with EACH over the attributes and
            `row`; `table` is what would stand there without. Relations are also known by the names of their
            variables, and several only so; `count` is then that of all. The message has no HTML then.
        body_html: the same for HTML, in which all values are escaped.
        attach: files with all tuples: csv, json, xml; of several relations those of each.
        each: a message for each tuple.
        even_if_empty: a message also for a relation without tuples.
        via: an account of the configuration, `[email.NAME]`; by default the one called default, or the only
            one there is.
        delivery: at-least-once, or at-most-once for what must rather be lost than come twice.
        db: the database whose outbox takes the messages.
        headings: the headings of several relations, `"New, Changed, Gone"` or a list; by default their names.
        names: the names of the relations; by default those of the variables.

    Examples:
        email (houses, to="me@example.org", subject="{count} new houses") {ATTACH: csv}
        email (new, changed, gone, to="me@example.org", subject="{{ count|plural('house', 'houses') }}")
        email (orders, to="{email}", subject="Order {number}" : sent) {EACH; BODY: "Thank you, {{ name }}!"}
    """
    from aioflow.messages import EmailAccounts, EmailContent, ValueEncoding  # what a run needs, and no check

    draft = EmailDraft(to, subject, cc, bcc, reply_to, body, body_html, attach, each, names, headings)
    account = context.service(EmailAccounts).find(via)
    content = EmailContent(draft, account, ValueEncoding(cell, json_text), context.run.plan)
    post = poster("email", account.name, delivery, db, context)
    passed = (
        told_together((rel, *more), content, post, even_if_empty, context)
        if more
        else told(rel, content, post, each, even_if_empty, context)
    )
    async with aclosing(passed) as batches:
        async for batch in batches:
            yield batch
