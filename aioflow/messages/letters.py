"""Letters: the content of mails, made of a statement's draft and its tuples when it fires."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from aioflow.expressions.template import Template
from aioflow.messages.attachments import Encoding, TooLargeError, make_file
from aioflow.messages.composing import (
    Excerpt,
    html_message,
    html_page,
    html_table,
    text_message,
    text_table,
)
from aioflow.messages.drafts import COUNT, RECIPIENTS, Draft
from aioflow.messages.email_settings import Account
from aioflow.messages.mailboxes import AddressError, Mailbox, Recipients
from aioflow.messages.mime import clean_text, one_line
from aioflow.messages.templates import BodyTemplate, identifiers
from aioflow.quantities import byte_text
from aioflow.relation import Batch, Row, Schema
from aioflow.spill import RowBuffer

if TYPE_CHECKING:
    from aioflow.messages.sandbox import Budget

# The variables of a template.
Variables: TypeAlias = Callable[["Budget"], Mapping[str, Any]]


class Letters:
    """Makes the content of messages: plain JSON, in which nothing is left to be looked up."""

    def __init__(self, draft: Draft, account: Account, encoding: Encoding, plan: str = "") -> None:
        self._draft = draft
        self._account = account
        self._encoding = encoding
        self._plan = plan
        self.warnings: list[str] = []

    def for_relation(self, schema: Schema, rows: RowBuffer) -> list[dict[str, Any]]:
        """The one message for all tuples."""
        shown = list(islice(chain.from_iterable(rows.batches()), self._account.settings.most_rows))
        excerpt = Excerpt(schema, shown, len(rows), bool(self._draft.attach), self._plan)
        variables = _relation_variables(schema, rows)
        return [self._letter(excerpt, COUNT, (len(rows),), variables, rows.batches, {})]

    def for_tuple(self, schema: Schema, row: Row) -> list[dict[str, Any]]:
        """The message for one tuple; an AddressError, TemplateError or TooLargeError says why not."""
        excerpt = Excerpt(schema, [row], 1, bool(self._draft.attach), self._plan, is_tuple=True)
        from_data = self._from_data(row)
        return [self._letter(excerpt, schema, row, _tuple_variables(schema, row), lambda: [[row]], from_data)]

    def _letter(
        self,
        excerpt: Excerpt,
        named: Schema,
        values: Row,
        variables: Variables,
        batches: Callable[[], Iterable[Batch]],
        from_data: Mapping[str, list[Mailbox]],
    ) -> dict[str, Any]:
        subject = self._subject(named, values)
        content = {
            **self._addresses(from_data),
            "subject": subject,
            "text": clean_text(self._text(excerpt, variables)),
            "html": clean_text(self._html(excerpt, subject, variables)),
        }
        most = self._account.settings.most_bytes
        used = len(content["text"].encode()) + len(content["html"].encode())
        if used > most:
            raise TooLargeError(
                f"the text of the message is larger than {byte_text(most)}: tell less, or allow more with "
                "most_bytes in the table [email.…] of the configuration"
            )
        content["attachments"] = []
        for kind in dict.fromkeys(self._draft.attach):
            stem = self._plan or "relation"
            file = make_file(kind, stem, excerpt.schema, batches(), self._encoding, most, used)
            used += len(file.data)
            content["attachments"].append(file.as_json())
        return content

    # --- the parts ------------------------------------------------------------------------------

    def _from_data(self, row: Row) -> dict[str, list[Mailbox]]:
        found: dict[str, list[Mailbox]] = {}
        for name in RECIPIENTS:
            given: Recipients | None = getattr(self._draft, name)
            found[name] = given.of_row(row) if given is not None else []
            for mailbox in found[name]:
                if not self._account.settings.allows(mailbox):
                    raise AddressError(self._not_allowed(mailbox))
        return found

    def _not_allowed(self, mailbox: Mailbox) -> str:
        told = f"{mailbox.address!r} comes from data, and is not allowed: [email.{self._account.name}] allow "
        if mailbox.is_routed:
            return f"{told}must have it as a whole, since % or ! in it can lead elsewhere"
        return told + "has " + (", ".join(self._account.settings.allow) or "none")

    def _addresses(self, from_data: Mapping[str, list[Mailbox]]) -> dict[str, Any]:
        content: dict[str, Any] = {"from": str(self._account.sender)}
        for name in RECIPIENTS:
            given: Recipients | None = getattr(self._draft, name)
            constant = given.constant if given is not None else ()
            content[name] = [str(mailbox) for mailbox in (*constant, *from_data.get(name, ()))]
        reply_to = self._draft.reply_to.constant[0] if self._draft.reply_to else self._account.reply_to
        content["reply_to"] = None if reply_to is None else str(reply_to)
        return content

    def _subject(self, schema: Schema, row: Row) -> str:
        """The subject; the template as it stands where a value has no text of that form."""
        text = Template(self._draft.subject.text, schema).formatter().row(row)
        return clean_text(one_line(self._draft.subject.text if text is None else text))

    def _text(self, excerpt: Excerpt, variables: Variables) -> str:
        if self._draft.body is None:
            return text_message(excerpt)
        return _filled(self._draft.body, variables, text_table(excerpt))

    def _html(self, excerpt: Excerpt, subject: str, variables: Variables) -> str:
        if self._draft.body_html is None:
            # Who has written the text wants that one to be read.
            return "" if self._draft.body is not None else html_message(excerpt, subject)
        from markupsafe import Markup

        filled = _filled(self._draft.body_html, variables, Markup(html_table(excerpt)))
        return filled if "<html" in filled[:1000].lower() else html_page(filled, subject)


def _filled(template: BodyTemplate, variables: Variables, table: str) -> str:
    from aioflow.messages.sandbox import Budget

    budget = Budget()
    return template.render({"table": table, **variables(budget)}, budget)


def _relation_variables(schema: Schema, rows: RowBuffer) -> Variables:
    def variables(budget: Budget) -> Mapping[str, Any]:
        from aioflow.messages.sandbox import RowsView

        walked = RowsView(schema, lambda: chain.from_iterable(rows.batches()), len(rows), budget)
        return {"rows": walked, "count": len(rows)}

    return variables


def _tuple_variables(schema: Schema, row: Row) -> Variables:
    def variables(budget: Budget) -> Mapping[str, Any]:
        from aioflow.messages.sandbox import RowView

        values = RowView(schema, row, budget)
        return {name: values[attribute] for name, attribute in identifiers(schema).items()} | {"row": values}

    return variables
