"""Mail: email, which posts messages to the outbox of the run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing

from aioflow import Context, Schema, Stream, operator
from aioflow.expressions import Template
from aioflow.messages import BodyTemplate, Delivery, Draft, FileKind, HtmlTemplate, Recipients
from aioflow.operator import Settings
from aioflow.operators.encoding import cell, json_text
from aioflow.operators.posting import check_each, fires, poster, posts, told
from aioflow.relation import Batch
from aioflow.services import ServiceHost

_DRAFTED = ("to", "subject", "cc", "bcc", "reply_to", "body", "body_html", "attach", "each")


def _draft(settings: Settings) -> Draft:
    return Draft(**{name: settings[name] for name in _DRAFTED})


def _schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    check_each(settings)
    _draft(settings).check(inputs[0])
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
)
async def email(
    rel: Stream,
    *,
    to: Recipients,
    subject: Template,
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
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Mail a relation at its end as a table, unless it is empty, or each tuple; pass tuples on when posted.

    Messages stand in the run's outbox, in its database and its transaction: they are delivered when the run
    has ended well, or not at all. Every copy of a message has the same Message-ID. A table that is longer
    than the account's `most_rows` is cut, and says so.

    Arguments:
        rel: the tuples.
        to: addresses, `"Ann <ann@example.org>, bob@example.org"` or a list; with EACH also from the tuple,
            `"{name} <{email}>"`, if the account allows that address or its domain.
        subject: the subject; with EACH attributes stand in it as `{name}`, otherwise `{count}`.
        cc: more addresses.
        bcc: addresses that nobody else is told.
        reply_to: where answers go; by default what the account says.
        body: the text as a template of Jinja2 over `rows` and `count`, with EACH over the attributes and
            `row`; `table` is what would stand there without. The message has no HTML then.
        body_html: the same for HTML, in which all values are escaped.
        attach: files with all tuples: csv, json, xml.
        each: a message for each tuple.
        even_if_empty: a message also for a relation without tuples.
        via: an account of the configuration, `[email.NAME]`; by default the one called default, or the only
            one there is.
        delivery: at-least-once, or at-most-once for what must rather be lost than come twice.
        db: the database whose outbox takes the messages.

    Examples:
        email (houses, to="me@example.org", subject="{count} new houses") {ATTACH: csv}
        email (orders, to="{email}", subject="Order {number}" : sent) {EACH; BODY: "Thank you, {{ name }}!"}
    """
    from aioflow.messages import EmailAccounts, Encoding, Letters  # what a run needs, and no check

    draft = Draft(to, subject, cc, bcc, reply_to, body, body_html, attach, each)
    account = context.service(EmailAccounts).find(via)
    letters = Letters(draft, account, Encoding(cell, json_text), context.run.plan)
    post = poster("email", account.name, delivery, db, context)
    async with aclosing(told(rel, letters, post, each, even_if_empty, context)) as batches:
        async for batch in batches:
            yield batch
