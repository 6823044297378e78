"""Templates: texts with the values of a row in them, the setting kind of `format` and of messages.

A placeholder is `%s`, `%.2f` or `%q` for the listed attributes in turn, or `{name}` or `{name:.2f}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, TypeAlias

import msgspec

from aioflow.errors import SettingError
from aioflow.expressions.code import first_schema, text_of, unbound
from aioflow.expressions.compiler import InputScope, ScopeColumn
from aioflow.expressions.operations import is_nan
from aioflow.expressions.projection import Attributes
from aioflow.expressions.syntax import Name, write_literal
from aioflow.relation import Row, Schema, Type, Value
from aioflow.values.counters import (
    NOT_A_LITERAL,
    NOT_A_NUMBER,
    NOT_A_TEXT,
    OUT_OF_RANGE,
    TEXT_TOO_LONG,
    Counters,
    UncomputableError,
)
from aioflow.values.text import LONGEST_TEXT, read_number, to_text

_PERCENT = re.compile(r"%([-+ 0]*)([0-9]*)(?:\.([0-9]*))?(.?)", re.DOTALL)
_SPECIFICATION = re.compile(r"([+]?0?[0-9]*,?)(\.[0-9]+)?([dfeg])")
_WIDEST, _MOST_DECIMALS = 1000, 100


class Placeholder(msgspec.Struct, frozen=True):
    """The form in which one value is written; `kind` is `s`, `q` or one of the number formats `d f e g`."""

    offset: int
    text: str
    kind: str
    write: Callable[[Value], str]
    name: str = ""

    @property
    def wants(self) -> str:
        return {"s": "a value", "q": "a literal"}.get(self.kind, "a number")

    def takes(self, type_: Type) -> bool:
        """Return whether a value of that type can be written so."""
        if self.kind in "sq":
            return type_ is not Type.RELATION
        return type_ in (Type.NUMBER, Type.CHAR)


# --- % ------------------------------------------------------------------------------------------


def parse_percent(text: str) -> list[str | Placeholder]:
    """The literal texts and the conversions of a %-format."""
    pieces: list[str | Placeholder] = []
    place = 0
    for found in _PERCENT.finditer(text):
        pieces.append(text[place : found.start()])
        pieces.append(_percent(found))
        place = found.end()
    return [*pieces, text[place:]]


def _percent(found: re.Match[str]) -> str | Placeholder:
    flags, width, precision, kind = found[1], found[2], found[3], found[4]
    if found[0] == "%%":
        return "%"
    offset = found.start()
    if not kind:
        raise SettingError("'%' stands alone; write '%%' for a percent sign", offset=offset)
    if kind not in "sqdfeg":
        hint = "; a named value is written {name}, without listed attributes" if kind == "(" else ""
        raise SettingError(
            f"unknown conversion '{found[0]}' (there are %s %d %f %e %g %q and %%){hint}", offset=offset
        )
    _check_size(found[0], width, precision or "", offset)
    if kind == "q":
        if found[0] != "%q":
            raise SettingError(f"'{found[0]}': %q takes no width", offset=offset)
        return Placeholder(offset, found[0], kind, _quoted)
    if kind == "s":
        return Placeholder(offset, found[0], kind, _text_writer(flags, width, precision))
    return Placeholder(offset, found[0], kind, _number_writer(_specification(flags, width, precision, kind)))


def _check_size(text: str, width: str, precision: str, offset: int) -> None:
    if int(width[:9] or 0) > _WIDEST or int(precision[:9] or 0) > _MOST_DECIMALS:
        raise SettingError(
            f"'{text}': the width is {_WIDEST} at most, with {_MOST_DECIMALS} decimals", offset=offset
        )


def _specification(flags: str, width: str, precision: str | None, kind: str) -> str:
    """The same in the words of `format`."""
    sign = "+" if "+" in flags else " " if " " in flags else ""
    align = "<" if "-" in flags else ""
    zero = "0" if "0" in flags and not align and width else ""
    if precision is None and kind in "fe":
        precision = "6"  # Decimals have no default of their own
    decimals = f".{precision or 0}" if precision is not None and kind != "d" else ""
    return f"{align}{sign}{zero}{width}{decimals}{kind}"


# --- {} -----------------------------------------------------------------------------------------


def parse_placeholders(text: str) -> list[str | Placeholder]:
    """The literal texts and the placeholders of a template."""
    pieces: list[str | Placeholder] = []
    place = 0
    for found in _BRACES.finditer(text):
        pieces.append(text[place : found.start()])
        pieces.append(_placeholder(found))
        place = found.end()
    return [*pieces, text[place:]]


_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def _placeholder(found: re.Match[str]) -> str | Placeholder:
    offset = found.start()
    if found[0] in ("{{", "}}"):
        return found[0][0]
    if found[1] is None:
        raise SettingError(f"'{found[0]}' stands alone; write '{found[0] * 2}' for a brace", offset=offset)
    name, colon, specification = found[1].partition(":")
    if not name.strip():
        raise SettingError("a placeholder names an attribute: {name}", offset=offset)
    if not colon:
        return Placeholder(offset + 1, found[0], "s", _plain, name.strip())
    numeric = _SPECIFICATION.fullmatch(specification)
    if numeric is None:
        raise SettingError(
            f"'{specification}' is not a format of numbers; write one like {{{name}:.2f}} or {{{name}:,d}}",
            offset=offset + 1 + len(name) + 1,
        )
    width, precision = re.sub(r"\D", "", numeric[1]), (numeric[2] or "").lstrip(".")
    _check_size(found[0], width, precision, offset)
    kind = numeric[3]
    if kind == "d":
        specification = f"{numeric[1]}d"
    elif kind in "fe" and not precision:
        specification = f"{numeric[1]}.6{kind}"
    return Placeholder(offset + 1, found[0], kind, _number_writer(specification), name.strip())


# --- values -------------------------------------------------------------------------------------


def _plain(value: Value) -> str:
    """A value as text, null as nothing."""
    if value is None:
        return ""
    text = to_text(value)
    if text is None:
        raise UncomputableError(NOT_A_TEXT)
    return text


def _text_writer(flags: str, width: str, precision: str | None) -> Callable[[Value], str]:
    if not width and precision is None:
        return _plain
    size = int(width or 0)
    longest = None if precision is None else int(precision or 0)

    def write(value: Value) -> str:
        text = _plain(value)[:longest]
        return text.ljust(size) if "-" in flags else text.rjust(size)

    return write


def _quoted(value: Value) -> str:
    literal = write_literal(value)
    if literal is None:
        raise UncomputableError(NOT_A_LITERAL)
    return literal


def _number_writer(specification: str) -> Callable[[Value], str]:
    whole = specification.endswith("d")

    def write(value: Value) -> str:
        if value is None:
            return ""
        number = read_number(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
            raise UncomputableError(NOT_A_NUMBER)
        try:
            if whole:
                return format(_cut(number), specification)
            # A float does not hold every integer.
            if isinstance(number, int):
                number = float(number) if abs(number) < 1 << 53 else Decimal(number)
            return format(number, specification)
        except (ArithmeticError, ValueError):
            raise UncomputableError(OUT_OF_RANGE) from None

    return write


def _cut(number: int | float | Decimal) -> int:
    """The number without its fraction, as Python's %d has it."""
    if is_nan(number) or (isinstance(number, Decimal) and number.adjusted() > 1000):
        raise UncomputableError(OUT_OF_RANGE)
    return int(number)


Format: TypeAlias = Callable[[Row], str | None]


@dataclass(frozen=True)
class Formatter:
    """A template bound to columns: `row(row)` is the text, None where a value has none of that form."""

    names: tuple[str, ...]
    positions: tuple[int, ...] | None
    row: Format = field(repr=False)
    counters: Counters = field(repr=False, compare=False)


class Template(msgspec.Struct, frozen=True):
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
            names = [piece.name for piece in pieces if isinstance(piece, Placeholder)]
        else:
            pieces = parse_percent(self.text)
            names = list(attributes.names)
            _check_count(pieces, names)
        scope = InputScope(self.schema)
        counters = Counters()
        if self.schema is None:
            return Formatter(tuple(names), None, unbound, counters)
        given = iter(names)
        fields: list[str | tuple[int, Placeholder]] = []
        for piece in pieces:
            if isinstance(piece, str):
                fields.append(piece)
                continue
            column = scope.column(Name(piece.offset, (next(given),)))
            _check_type(piece, column)
            fields.append((column.position, piece))
        positions = tuple(field[0] for field in fields if isinstance(field, tuple))
        return Formatter(tuple(names), positions, _format(fields, counters), counters)


def _check_count(pieces: Sequence[str | Placeholder], names: list[str]) -> None:
    conversions = [piece for piece in pieces if isinstance(piece, Placeholder)]
    if len(conversions) == len(names):
        return
    place = conversions[len(names)].offset if len(conversions) > len(names) else None
    has = f"{len(conversions)} conversion{'s' * (len(conversions) != 1)}"
    listed = f"{len(names)} attribute{'s are' if len(names) != 1 else ' is'} listed"
    raise SettingError(f"the format has {has}, but {listed}: {', '.join(names)}", offset=place)


def _check_type(conversion: Placeholder, column: ScopeColumn) -> None:
    if column.type is not None and not conversion.takes(column.type):
        raise SettingError(
            f"'{conversion.text}' writes {conversion.wants}, not a {column.type}", offset=conversion.offset
        )


def _format(fields: list[str | tuple[int, Placeholder]], counters: Counters) -> Format:
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
