"""Templates: texts with the values of a row in them, the setting kind of `format` and of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar, TypeAlias

from aioflow.dataclass import dataclass
from aioflow.errors import SettingError
from aioflow.expressions.binding import first_schema, text_of, unbound
from aioflow.expressions.conversions import Conversion, parse_percent, parse_placeholders
from aioflow.expressions.counters import TEXT_TOO_LONG, Counters, UncomputableError
from aioflow.expressions.projection import Attributes
from aioflow.expressions.reading import LONGEST_TEXT
from aioflow.expressions.scope import Column, InputScope
from aioflow.expressions.syntax import Name
from aioflow.relation import Row, Schema, Value

Format: TypeAlias = Callable[[Row], str | None]


@dataclass(frozen=True)
class Formatter:
    """A template bound to columns: `row(row)` is the text, None where a value has none of that form."""

    names: tuple[str, ...]
    positions: tuple[int, ...] | None
    row: Format = field(repr=False)
    counters: Counters = field(repr=False, compare=False)


@dataclass(frozen=True)
class Template:
    """A text with `{name}` placeholders, or with `%s` conversions for listed attributes.

    Which of the two it is depends on whether attributes are listed, so its mistakes are found by
    `formatter(attributes)`.
    """

    kind_name: ClassVar[str] = "a template"

    text: str
    schema: Schema | None

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Template:
        return cls(text_of(value, cls.kind_name), first_schema(inputs))

    def formatter(self, attributes: Attributes | None = None) -> Formatter:
        """The template as a function of rows; a SettingError with an offset for what is wrong in it."""
        if attributes is None:
            pieces = parse_placeholders(self.text)
            names = [piece.name for piece in pieces if isinstance(piece, Conversion)]
        else:
            pieces = parse_percent(self.text)
            names = list(attributes.names)
            _check_count(pieces, names)
        scope = InputScope(self.schema)
        counters = Counters()
        if self.schema is None:
            return Formatter(tuple(names), None, unbound, counters)
        given = iter(names)
        fields: list[str | tuple[int, Conversion]] = []
        for piece in pieces:
            if isinstance(piece, str):
                fields.append(piece)
                continue
            column = scope.column(Name(piece.offset, (next(given),)))
            _check_type(piece, column)
            fields.append((column.position, piece))
        positions = tuple(field[0] for field in fields if isinstance(field, tuple))
        return Formatter(tuple(names), positions, _format(fields, counters), counters)


def _check_count(pieces: Sequence[str | Conversion], names: list[str]) -> None:
    conversions = [piece for piece in pieces if isinstance(piece, Conversion)]
    if len(conversions) == len(names):
        return
    place = conversions[len(names)].offset if len(conversions) > len(names) else None
    has = f"{len(conversions)} conversion{'s' * (len(conversions) != 1)}"
    listed = f"{len(names)} attribute{'s are' if len(names) != 1 else ' is'} listed"
    raise SettingError(f"the format has {has}, but {listed}: {', '.join(names)}", offset=place)


def _check_type(conversion: Conversion, column: Column) -> None:
    if column.type is not None and not conversion.takes(column.type):
        raise SettingError(
            f"'{conversion.text}' writes {conversion.wants}, not a {column.type}", offset=conversion.offset
        )


def _format(fields: list[str | tuple[int, Conversion]], counters: Counters) -> Format:
    parts: list[tuple[int, Callable[[Value], str]]] = []
    texts = [""]
    for each in fields:
        if isinstance(each, str):
            texts[-1] += each
        else:
            parts.append((each[0], each[1].write))
            texts.append("")
    first, *rest = texts

    def write(row: Row) -> str | None:
        written = [first]
        try:
            for (position, convert), text in zip(parts, rest, strict=True):
                written += convert(row[position]), text
        except UncomputableError as error:
            counters[str(error)] += 1
            return None
        result = "".join(written)
        if len(result) > LONGEST_TEXT:
            counters[TEXT_TOO_LONG] += 1
            return None
        return result

    return write
