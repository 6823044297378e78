"""Subjects of mails: with `{count}` or attributes in braces, or templates of Jinja2 as bodies are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from aioflow.dataclass import dataclass
from aioflow.expressions.template import Template
from aioflow.messages.templates import BodyTemplate
from aioflow.relation import Row, Schema, Type

# What the subject of a message for a whole relation may name.
COUNT = Schema(("count",), (Type.NUMBER,))
_MARKS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


@dataclass(frozen=True)
class Subject:
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
