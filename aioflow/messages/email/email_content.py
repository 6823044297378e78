"""The content of mails: made of a statement's draft and its tuples when the statement fires.

A draft is all that a statement says of its mails, and is checked before the run. Subjects have `{count}` or
attributes in braces, or are templates of Jinja2, as bodies are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import msgspec

from aioflow.errors import SettingError
from aioflow.expressions.template import Template
from aioflow.messages.content.attachments import FileKind, TooLargeError, ValueEncoding, make_file
from aioflow.messages.content.tables import (
    Excerpt,
    doubtful_html,
    doubtful_subject,
    doubtful_text,
    html_message,
    html_page,
    html_sections,
    html_table,
    text_message,
    text_sections,
    text_table,
)
from aioflow.messages.content.templates import BodyTemplate, HtmlTemplate, identifiers
from aioflow.messages.email.addresses import AddressError, Mailbox, Recipients
from aioflow.messages.email.mime import clean_text, one_line
from aioflow.messages.email.settings import EmailAccount
from aioflow.plan import NAME_PATTERN
from aioflow.relation import Batch, Row, Schema, Type
from aioflow.runtime.spill import RowBuffer
from aioflow.values.quantities import byte_text, count_text

if TYPE_CHECKING:
    from aioflow.messages.content.sandbox import LoopBudget


# What the subject of a message for a whole relation may name.
COUNT = Schema(("count",), (Type.NUMBER,))
_MARKS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


class Subject(msgspec.Struct, frozen=True):
    """A subject; `template` is None where it is not Jinja's.

    A text with `{{ … }}` or `{% … %}` is Jinja's, unless it has a placeholder, `{count}`: beside one,
    doubled braces are braces.
    """

    kind_name: ClassVar[str] = "a template"

    text: str
    schema: Schema | None
    template: BodyTemplate | None

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Subject:
        plain = Template.bind(value, inputs)
        is_template = _MARKS.search(plain.text) is not None and "{" not in _MARKS.sub("", plain.text)
        return cls(plain.text, plain.schema, BodyTemplate.bind(value, inputs) if is_template else None)

    def check(self, *, each: bool, relations: Mapping[str, Schema | None]) -> None:
        """Look for names that do not exist; a SettingError tells the first."""
        if self.template is not None:
            self.template.check(each=each, relations=relations, table=False)
        else:
            Template(self.text, self.schema if each else COUNT).formatter()

    def of_row(self, schema: Schema, row: Row) -> str:
        """The text of one without Jinja, as it stands where a value has no text of that form."""
        text = Template(self.text, schema).formatter().row(row)
        return self.text if text is None else text


T = TypeVar("T")


RECIPIENTS = ("to", "cc", "bcc")
_RESERVED = ("count", "table", "row")


class Headings(tuple[str, ...]):
    """The headings of several relations: `"New, Changed, Gone"`, or a list."""

    __slots__ = ()
    kind_name: ClassVar[str] = "a list of headings"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Headings:
        texts = value.split(",") if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise SettingError(f"must be {cls.kind_name}, not {value!r}")
        return cls(text.strip() for text in texts)


class EmailDraft(msgspec.Struct, frozen=True):
    """All that a statement says about its mails, beside the tuples themselves."""

    to: Recipients
    subject: Subject
    cc: Recipients | None = None
    bcc: Recipients | None = None
    reply_to: Recipients | None = None
    body: BodyTemplate | None = None
    body_html: HtmlTemplate | None = None
    attach: Sequence[FileKind] = ()
    each: bool = False
    names: Sequence[str] = ()
    headings: Sequence[str] = ()

    def as_recipe(self, plan: str) -> dict[str, Any]:
        """Return the draft as plain JSON, for messages about whole relations that a plan sends."""
        recipients = {name: getattr(self, name) for name in (*RECIPIENTS, "reply_to")}
        templates = {name: getattr(self, name) for name in ("subject", "body", "body_html")}
        lists = {name: list(getattr(self, name)) for name in ("attach", "names", "headings")}
        return {
            **{
                name: each and [str(mailbox) for mailbox in each.constant]
                for name, each in recipients.items()
            },
            **{name: each and each.text for name, each in templates.items()},
            **lists,
            "plan": plan,
        }

    @classmethod
    def of_recipe(cls, recipe: Mapping[str, Any]) -> EmailDraft:
        """Return the draft of a recipe; raise a SettingError for a recipe that is none."""
        kinds: dict[str, Any] = dict.fromkeys((*RECIPIENTS, "reply_to"), Recipients)
        kinds |= {"subject": Subject, "body": BodyTemplate, "body_html": HtmlTemplate}
        settings: dict[str, Any] = {name: tuple(recipe[name]) for name in ("attach", "names", "headings")}
        for name, kind in kinds.items():
            settings[name] = None if recipe[name] is None else kind.bind(recipe[name], (None,))
        return cls(**settings)

    @property
    def takes_recipients_from_data(self) -> bool:
        return any(each is not None and each.from_data for each in (self.to, self.cc, self.bcc))

    def check(self, schemas: Sequence[Schema | None]) -> None:
        """Look for mistakes before anything runs; a SettingError names the setting."""
        self._check_relations(len(schemas))
        for name in (*RECIPIENTS, "reply_to"):
            self._check_recipients(name)
        relations = self.named(schemas)
        for name in ("subject", "body", "body_html"):
            template: Subject | BodyTemplate | None = getattr(self, name)
            if template is not None:
                _naming(name, template.check, each=self.each, relations=relations)

    def named(self, relations: Sequence[T]) -> dict[str, T]:
        """Relations by the names that templates have for them; a single one is also called `rows`."""
        names = [name.replace("-", "_") for name in self.names]
        found = {name: each for name, each in zip(names, relations, strict=True) if name not in _RESERVED}
        return found | ({"rows": relations[0]} if len(relations) == 1 else {})

    def heading(self, place: int) -> str:
        """The heading of a relation: by default its name, for several of them."""
        if self.headings:
            return self.headings[place]
        return self.names[place].replace("-", " ").replace("_", " ").capitalize() if self.names[1:] else ""

    def _check_relations(self, count: int) -> None:
        if self.each and count > 1:
            raise SettingError("with EACH there is a message for each tuple of one relation", setting="each")
        for name in ("names", "headings"):
            given: Sequence[str] = getattr(self, name)
            if given and len(given) != count:
                told = f"{count_text(len(given), name[:-1])} for {count_text(count, 'relation')}"
                raise SettingError(told, setting=name)
        for place, name in enumerate(self.names):
            if not re.fullmatch(NAME_PATTERN, name):
                raise SettingError(f"{name!r} is no name", setting="names")
            if name in self.names[:place]:
                raise SettingError(f"two of the relations are called {name!r}: set NAMES", setting="names")

    def _check_recipients(self, name: str) -> None:
        given: Recipients | None = getattr(self, name)
        if given is None:
            return
        if given.from_data and name == "reply_to":
            raise SettingError("answers do not go to addresses from data", setting=name, offset=given.offset)
        if given.from_data and not self.each:
            raise SettingError(
                f"{given.from_data[0].text!r} takes an address from each tuple: say EACH for a message each",
                setting=name,
                offset=given.offset,
            )
        if name == "reply_to" and len(given.constant) != 1:
            raise SettingError("answers go to one address", setting=name)


def _naming(name: str, check: Callable[..., Any], **arguments: Any) -> None:
    try:
        check(**arguments)
    except SettingError as error:
        error.setting = name
        raise


# The variables of a template.
Variables: TypeAlias = Callable[["LoopBudget"], Mapping[str, Any]]
# A relation that has come to its end.
Kept: TypeAlias = tuple[Schema, RowBuffer]


class _File(msgspec.Struct, frozen=True):
    """A file that is made of a relation and attached, and its name."""

    stem: str
    schema: Schema
    batches: Callable[[], Iterable[Batch]]


class EmailContent:
    """Makes the content of messages: plain JSON, in which nothing is left to be looked up."""

    def __init__(
        self, draft: EmailDraft, account: EmailAccount, encoding: ValueEncoding, plan: str = ""
    ) -> None:
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
        return [self._content(excerpts, COUNT, (count,), variables, files, {})]

    def for_relation(self, schema: Schema, rows: RowBuffer) -> list[dict[str, Any]]:
        """The one message for all tuples of a relation."""
        return self.for_relations([(schema, rows)])

    def for_tuple(self, schema: Schema, row: Row) -> list[dict[str, Any]]:
        """The message for one tuple; an AddressError, TemplateError or TooLargeError says why not."""
        excerpt = Excerpt(schema, [row], 1, bool(self._draft.attach), self._plan, is_tuple=True)
        variables, file = _tuple_variables(schema, row), _File(self._stem, schema, lambda: [[row]])
        return [self._content([excerpt], schema, row, variables, [file], self._from_data(row))]

    @property
    def _stem(self) -> str:
        return self._plan or "relation"

    def _excerpt(self, place: int, schema: Schema, rows: RowBuffer) -> Excerpt:
        shown = list(islice(chain.from_iterable(rows.batches()), self._account.settings.most_rows))
        attached, heading = bool(self._draft.attach), self._draft.heading(place)
        return Excerpt(schema, shown, len(rows), attached, self._plan, heading=heading)

    def _content(
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
    from aioflow.messages.content.sandbox import LoopBudget

    budget = LoopBudget()
    given = {} if table is None else {"table": table}
    return template.render({**given, **variables(budget)}, budget)


def _relation_variables(relations: Mapping[str, Kept], count: int) -> Variables:
    def variables(budget: LoopBudget) -> Mapping[str, Any]:
        from aioflow.messages.content.sandbox import RowsView

        def walked(schema: Schema, rows: RowBuffer) -> RowsView:
            return RowsView(schema, lambda: chain.from_iterable(rows.batches()), len(rows), budget)

        return {name: walked(*kept) for name, kept in relations.items()} | {"count": count}

    return variables


def _tuple_variables(schema: Schema, row: Row) -> Variables:
    def variables(budget: LoopBudget) -> Mapping[str, Any]:
        from aioflow.messages.content.sandbox import RowView

        values = RowView(schema, row, budget)
        return {name: values[attribute] for name, attribute in identifiers(schema).items()} | {"row": values}

    return variables
