"""What short messages say of tuples: a line for each, or the text of a template."""

from __future__ import annotations

import re
from itertools import chain

from aioflow.dataclass import dataclass
from aioflow.messages.changes import Shown, shown_changes
from aioflow.messages.composing import Excerpt, value_text
from aioflow.messages.templates import BodyTemplate, identifiers
from aioflow.relation import Row, Schema, Value
from aioflow.spill import RowBuffer

_MOST_VALUE_CHARACTERS = 300
_BLANKS = re.compile("[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True)
class Wording:
    """How tuples are told: by a template, or else line by line, for phones without the names of attributes.

    What is too long for a phone is cut as a whole, and nothing is added that its alphabet does not have.
    """

    template: BodyTemplate | None = None
    for_phones: bool = False

    def of_row(self, schema: Schema, row: Row) -> str:
        """The text of a message about one tuple."""
        if self.template is None:
            return self._row(schema, row, ", " if self.for_phones else "\n")
        from aioflow.messages.sandbox import Budget, RowView, view

        budget = Budget()
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
        from aioflow.messages.sandbox import Budget, RowsView

        budget = Budget()
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
