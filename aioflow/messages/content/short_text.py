"""Short messages about tuples, as the outbox holds them: notices for chat services, and texts for phones.

A message has a line for each tuple, or the text of a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from aioflow.errors import InputError, SettingError
from aioflow.expressions import Formatter, Template
from aioflow.messages.chat.settings import NotifySettings
from aioflow.messages.content.tables import (
    Excerpt,
    Shown,
    doubtful_subject,
    doubtful_text,
    shown_changes,
    value_text,
)
from aioflow.messages.content.templates import BodyTemplate, identifiers
from aioflow.messages.sms.segments import clean, cut, segments, split
from aioflow.messages.sms.settings import PhoneSettings, phone_number
from aioflow.relation import Row, Schema, Type, Value
from aioflow.runtime.spill import RowBuffer

_MOST_VALUE_CHARACTERS = 300
_BLANKS = re.compile("[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]+")


class ShortText(msgspec.Struct, frozen=True):
    """The text of tuples: by a template, or else line by line, for phones without the names of attributes.

    What is too long for a phone is cut as a whole, and nothing is added that its alphabet does not have.
    """

    template: BodyTemplate | None = None
    for_phones: bool = False

    def of_row(self, schema: Schema, row: Row) -> str:
        """The text of a message about one tuple."""
        if self.template is None:
            return self._row(schema, row, ", " if self.for_phones else "\n")
        from aioflow.messages.content.sandbox import LoopBudget, RowView, view

        budget = LoopBudget()
        attributes = {
            name: view(row[schema.position(attribute)], budget)
            for name, attribute in identifiers(schema).items()
        }
        plain = self._row(schema, row, "\n")
        variables = {**attributes, "row": RowView(schema, row, budget), "table": plain}
        return self.template.render(variables, budget)

    def of_relation(self, excerpt: Excerpt, rows: RowBuffer) -> str:
        """The text of a message about a relation; a template may walk all of its rows."""
        if self.template is None:
            return self._lines(excerpt)
        from aioflow.messages.content.sandbox import LoopBudget, RowsView

        budget = LoopBudget()
        walked = RowsView(excerpt.schema, lambda: chain.from_iterable(rows.batches()), len(rows), budget)
        variables = {"rows": walked, "count": excerpt.count, "table": self._lines(excerpt)}
        return self.template.render(variables, budget)

    def _lines(self, excerpt: Excerpt) -> str:
        if not excerpt.count:
            return "No rows."
        lines = [self._row(excerpt.schema, row, ", ") for row in excerpt.rows]
        more = excerpt.more.replace("…", "...") if self.for_phones else excerpt.more
        return "\n".join(filter(None, [*lines, more]))

    def _row(self, schema: Schema, row: Row, separator: str) -> str:
        """The attributes that have a value."""
        changes = shown_changes(schema)
        if changes is None:
            texts = {name: self._text(value) for name, value in zip(schema.names, row, strict=True)}
        else:
            texts = {shown.name: self._changed(shown) for shown in changes(row)}
        texts = {name: one_line(text) for name, text in texts.items()}
        if self.for_phones or len(schema) == 1:
            return separator.join(filter(None, texts.values()))
        return separator.join(f"{one_line(name)}: {text}" for name, text in texts.items() if text)

    def _changed(self, shown: Shown) -> str:
        if not shown.is_changed:
            return self._text(shown.value)
        return f"{self._text(shown.before)} {'->' if self.for_phones else '→'} {self._text(shown.value)}"

    def _text(self, value: Value) -> str:
        text = value_text(value)
        if self.for_phones or len(text) <= _MOST_VALUE_CHARACTERS:
            return text
        return f"{text[: _MOST_VALUE_CHARACTERS - 1]}…"


def one_line(text: str) -> str:
    """A text without line ends and other controls, as a title must be."""
    return _BLANKS.sub(" ", text).strip()


Content: TypeAlias = dict[str, Any]  # plain JSON, in which nothing is left to be looked up

# What the title of a message for a whole relation may name.
_COUNT = Schema(("count",), (Type.NUMBER,))
_PHONE_ROWS = 20
_SUBJECT_CHARACTERS = 60


class ShortMessages(Protocol):
    """Makes the messages of one statement. What cannot be said is an AioflowError.

    It may work on another thread, so what there is to be told of it waits in `warnings`. `doubt` is why the
    tuples may be wrong, if they may.
    """

    doubt: str

    @property
    def warnings(self) -> list[str]: ...

    def for_relation(self, schema: Schema, rows: RowBuffer) -> list[Content]: ...

    def for_tuple(self, schema: Schema, row: Row) -> list[Content]: ...


def check_wording(*, title: Template | None = None, body: BodyTemplate | None, each: bool) -> None:
    """Look for names that a title or template cannot have: of tuples with `each`, else of the relation."""
    with _about("title"):
        _formatter(title, each)
    with _about("body"):
        if body is not None:
            body.check(each=each)


@contextmanager
def _about(setting: str) -> Iterator[None]:
    try:
        yield
    except SettingError as error:
        error.setting = setting
        raise


def _formatter(title: Template | None, each: bool) -> Formatter | None:
    if title is None:
        return None
    return title.formatter() if each else Template(title.text, _COUNT).formatter()


def _body(recipe: Mapping[str, Any]) -> BodyTemplate | None:
    return None if recipe["body"] is None else BodyTemplate(recipe["body"], None)


def _excerpt(schema: Schema, rows: RowBuffer, most_rows: int) -> Excerpt:
    return Excerpt(schema, list(islice(chain.from_iterable(rows.batches()), most_rows)), len(rows))


# --- notify -------------------------------------------------------------------------------------


class Notices:
    """The messages of `notify`: one for each URL of an account, all with the same text."""

    def __init__(
        self, settings: NotifySettings, title: Template | None, body: BodyTemplate | None, *, each: bool
    ) -> None:
        self._settings = settings
        self._title = _formatter(title, each)
        self._wording = ShortText(body)
        self.warnings: list[str] = []
        self.doubt = ""

    @staticmethod
    def recipe(title: Template | None, body: BodyTemplate | None) -> Content:
        """Return what a statement says of its notices about whole relations, as plain JSON."""
        return {"subject": title and title.text, "body": body and body.text}

    @classmethod
    def of_recipe(cls, settings: NotifySettings, recipe: Mapping[str, Any]) -> Notices:
        """Return the notices of a recipe."""
        title = None if recipe["subject"] is None else Template(recipe["subject"], None)
        return cls(settings, title, _body(recipe), each=False)

    def for_relation(self, schema: Schema, rows: RowBuffer) -> list[Content]:
        """The messages about all tuples."""
        excerpt = _excerpt(schema, rows, self._settings.most_rows)
        return self._contents(self._wording.of_relation(excerpt, rows), (len(rows),))

    def for_tuple(self, schema: Schema, row: Row) -> list[Content]:
        """The messages about one tuple."""
        return self._contents(self._wording.of_row(schema, row), row)

    def _contents(self, text: str, row: Row) -> list[Content]:
        title = "" if self._title is None else self._title.row(row)
        if title is None:
            raise InputError("the title cannot be written for this tuple")
        if not (title.strip() or text.strip()):
            raise InputError("the message says nothing: it has neither a title nor a text")
        subject = doubtful_subject(one_line(clean(title)), self.doubt)
        said = {"subject": subject, "text": clean(doubtful_text(text.strip("\n"), self.doubt))}
        return [{"to": url, **said} for url in self._settings.url]


# --- phone --------------------------------------------------------------------------------------


class PhoneNumbers(msgspec.Struct, frozen=True):
    """A setting that says which numbers get a message; with `{attribute}`, those that tuples have."""

    kind_name: ClassVar[str] = "a phone number, or a list of them"

    constant: tuple[str, ...]
    from_data: tuple[Formatter, ...] = ()

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> PhoneNumbers:
        texts = list(value) if isinstance(value, list | tuple) else [value]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise SettingError(f"must be {cls.kind_name}, in quotes, not {value!r}")
        try:
            constant = [phone_number(text) for text in texts if "{" not in text]
        except InputError as error:
            raise SettingError(str(error)) from None
        templates = [Template.bind(text, inputs).formatter() for text in texts if "{" in text]
        return cls(tuple(dict.fromkeys(constant)), tuple(templates))


class TextMessages:
    """The messages of `phone`: one for each number, or several if the text is long."""

    def __init__(
        self, account: str, settings: PhoneSettings, to: PhoneNumbers, body: BodyTemplate | None
    ) -> None:
        self._account = account
        self._settings = settings
        self._to = to
        self._wording = ShortText(body, for_phones=True)
        self.warnings: list[str] = []
        self.doubt = ""
        self._has_warned = False

    @staticmethod
    def recipe(to: PhoneNumbers, body: BodyTemplate | None) -> Content:
        """Return what a statement says of its texts about whole relations, as plain JSON."""
        return {"to": list(to.constant), "body": body and body.text}

    @classmethod
    def of_recipe(cls, account: str, settings: PhoneSettings, recipe: Mapping[str, Any]) -> TextMessages:
        """Return the texts of a recipe."""
        return cls(account, settings, PhoneNumbers.bind(recipe["to"], ()), _body(recipe))

    def for_relation(self, schema: Schema, rows: RowBuffer) -> list[Content]:
        """The messages about all tuples."""
        text = self._wording.of_relation(_excerpt(schema, rows, _PHONE_ROWS), rows)
        return self._contents(text, list(self._to.constant))

    def for_tuple(self, schema: Schema, row: Row) -> list[Content]:
        """The messages about one tuple."""
        from_data = [self._number(template.row(row) or "") for template in self._to.from_data]
        numbers = list(dict.fromkeys((*self._to.constant, *from_data)))
        return self._contents(self._wording.of_row(schema, row), numbers)

    def _number(self, text: str) -> str:
        number = phone_number(text)
        if not self._settings.allows(number):
            raise InputError(
                f"the number {number} comes from data, and [phone.{self._account}] does not allow it: "
                f'allow = ["{number}"], or how numbers may begin, as "{number[:3]}*"'
            )
        return number

    def _contents(self, text: str, numbers: list[str]) -> list[Content]:
        return [
            {"to": number, "subject": one_line(part)[:_SUBJECT_CHARACTERS], "text": part}
            for part in self._fitting(clean(doubtful_text(text, self.doubt) if text.strip() else "").strip())
            for number in numbers
        ]

    def _fitting(self, text: str) -> list[str]:
        """The text as one message, or several."""
        if not text:
            raise InputError("the text message says nothing")
        most = self._settings.most_segments
        if self._settings.too_long == "split":
            return [part.strip() for part in split(text, most) if part.strip()]
        if not self._has_warned and (needed := len(segments(text))) > most:
            self._has_warned = True
            self.warnings.append(
                f"a text message of {needed} segments was cut to {most}; allow more with most_segments in "
                f'[phone.{self._account}], or several messages with too_long = "split"'
            )
        return [cut(text, most)]
