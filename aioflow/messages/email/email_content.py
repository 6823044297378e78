"""Letters: the content of mails, made of a statement's draft and its tuples when it fires."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any, TypeAlias

from aioflow.dataclass import dataclass
from aioflow.messages.attachments import Encoding, TooLargeError, make_file
from aioflow.messages.composing import (
    Excerpt,
    html_message,
    html_page,
    html_sections,
    html_table,
    text_message,
    text_sections,
    text_table,
)
from aioflow.messages.doubt import doubtful_html, doubtful_subject, doubtful_text
from aioflow.messages.drafts import RECIPIENTS, Draft
from aioflow.messages.email_settings import Account
from aioflow.messages.mailboxes import AddressError, Mailbox, Recipients
from aioflow.messages.mime import clean_text, one_line
from aioflow.messages.subjects import COUNT
from aioflow.messages.templates import BodyTemplate, identifiers
from aioflow.quantities import byte_text
from aioflow.relation import Batch, Row, Schema
from aioflow.spill import RowBuffer

if TYPE_CHECKING:
    from aioflow.messages.sandbox import Budget

# The variables of a template.
Variables: TypeAlias = Callable[["Budget"], Mapping[str, Any]]
# A relation that has come to its end.
Kept: TypeAlias = tuple[Schema, RowBuffer]


@dataclass(frozen=True)
class _File:
    """What is attached of a relation, named so."""

    stem: str
    schema: Schema
    batches: Callable[[], Iterable[Batch]]


class Letters:
    """Makes the content of messages: plain JSON, in which nothing is left to be looked up."""

    def __init__(self, draft: Draft, account: Account, encoding: Encoding, plan: str = "") -> None:
        self._draft = draft
        self._account = account
        self._encoding = encoding
        self._plan = plan
        self.warnings: list[str] = []
        self.doubt = ""

    def for_relations(self, relations: Sequence[Kept]) -> list[dict[str, Any]]:
        """The one message for all tuples of a relation, or of several."""
        excerpts = [self._excerpt(place, *kept) for place, kept in enumerate(relations)]
        count = sum(excerpt.count for excerpt in excerpts)
        variables = _relation_variables(self._draft.named(relations), count)
        single = len(relations) == 1
        files = [
            _File(self._stem if single else name, schema, rows.batches)
            for name, (schema, rows) in zip(self._draft.names, relations, strict=True)
        ]
        return [self._letter(excerpts, COUNT, (count,), variables, files, {})]

    def for_relation(self, schema: Schema, rows: RowBuffer) -> list[dict[str, Any]]:
        """The one message for all tuples of a relation."""
        return self.for_relations([(schema, rows)])

    def for_tuple(self, schema: Schema, row: Row) -> list[dict[str, Any]]:
        """The message for one tuple; an AddressError, TemplateError or TooLargeError says why not."""
        excerpt = Excerpt(schema, [row], 1, bool(self._draft.attach), self._plan, is_tuple=True)
        variables, file = _tuple_variables(schema, row), _File(self._stem, schema, lambda: [[row]])
        return [self._letter([excerpt], schema, row, variables, [file], self._from_data(row))]

    @property
    def _stem(self) -> str:
        return self._plan or "relation"

    def _excerpt(self, place: int, schema: Schema, rows: RowBuffer) -> Excerpt:
        shown = list(islice(chain.from_iterable(rows.batches()), self._account.settings.most_rows))
        attached, heading = bool(self._draft.attach), self._draft.heading(place)
        return Excerpt(schema, shown, len(rows), attached, self._plan, heading=heading)

    def _letter(
        self,
        excerpts: Sequence[Excerpt],
        named: Schema,
        values: Row,
        variables: Variables,
        files: Sequence[_File],
        from_data: Mapping[str, list[Mailbox]],
    ) -> dict[str, Any]:
        subject = doubtful_subject(self._subject(named, values, variables), self.doubt)
        content = {
            **self._addresses(from_data),
            "subject": subject,
            "text": clean_text(doubtful_text(self._text(excerpts, variables), self.doubt)),
            "html": clean_text(doubtful_html(self._html(excerpts, subject, variables), self.doubt)),
        }
        most = self._account.settings.most_bytes
        used = len(content["text"].encode()) + len(content["html"].encode())
        if used > most:
            raise TooLargeError(
                f"the text of the message is larger than {byte_text(most)}: tell less, or allow more with "
                "most_bytes in the table [email.…] of the configuration"
            )
        content["attachments"] = []
        for each, kind in product(files, dict.fromkeys(self._draft.attach)):
            file = make_file(kind, each.stem, each.schema, each.batches(), self._encoding, most, used)
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

    def _subject(self, schema: Schema, row: Row, variables: Variables) -> str:
        """One line, whatever its values have in them."""
        subject = self._draft.subject
        filled = (
            subject.of_row(schema, row) if subject.template is None else _filled(subject.template, variables)
        )
        return clean_text(one_line(filled))

    def _text(self, excerpts: Sequence[Excerpt], variables: Variables) -> str:
        if self._draft.body is None:
            return text_message(*excerpts)
        return _filled(self._draft.body, variables, _table(excerpts, text_table, text_sections))

    def _html(self, excerpts: Sequence[Excerpt], subject: str, variables: Variables) -> str:
        if self._draft.body_html is None:
            # Who has written the text wants that one to be read.
            return "" if self._draft.body is not None else html_message(excerpts[0], subject, *excerpts[1:])
        from markupsafe import Markup

        table = Markup(_table(excerpts, html_table, html_sections))
        filled = _filled(self._draft.body_html, variables, table)
        return filled if "<html" in filled[:1000].lower() else html_page(filled, subject)


def _table(
    excerpts: Sequence[Excerpt],
    single: Callable[[Excerpt], str],
    several: Callable[[Sequence[Excerpt]], str],
) -> str:
    return single(excerpts[0]) if len(excerpts) == 1 else several(excerpts)


def _filled(template: BodyTemplate, variables: Variables, table: str | None = None) -> str:
    from aioflow.messages.sandbox import Budget

    budget = Budget()
    given = {} if table is None else {"table": table}
    return template.render({**given, **variables(budget)}, budget)


def _relation_variables(relations: Mapping[str, Kept], count: int) -> Variables:
    def variables(budget: Budget) -> Mapping[str, Any]:
        from aioflow.messages.sandbox import RowsView

        def walked(schema: Schema, rows: RowBuffer) -> RowsView:
            return RowsView(schema, lambda: chain.from_iterable(rows.batches()), len(rows), budget)

        return {name: walked(*kept) for name, kept in relations.items()} | {"count": count}

    return variables


def _tuple_variables(schema: Schema, row: Row) -> Variables:
    def variables(budget: Budget) -> Mapping[str, Any]:
        from aioflow.messages.sandbox import RowView

        values = RowView(schema, row, budget)
        return {name: values[attribute] for name, attribute in identifiers(schema).items()} | {"row": values}

    return variables
