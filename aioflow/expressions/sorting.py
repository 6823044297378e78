"""Sort keys, and the order of values of all kinds: the setting kind of `sort`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf, nextafter
from typing import Any, ClassVar, TypeAlias

import msgspec

from aioflow.errors import SettingError
from aioflow.expressions.code import Evaluate, first_schema, shallow, text_of, unbound
from aioflow.expressions.compiler import Compiler, InputScope
from aioflow.expressions.operations import is_nan, kind_of
from aioflow.expressions.parser import parse_sort_keys
from aioflow.relation import Row, Schema, Type, Value, decimal_of, since_epoch
from aioflow.values.counters import Counters

# Kinds in the order in which they sort where a column mixes them. A NaN is greater than every number.
_RANKS = {Type.BOOLEAN: 1, Type.NUMBER: 2, Type.DATE: 4, Type.CHAR: 5, Type.DOCUMENT: 6, Type.RELATION: 7}
_NAN_RANK = 3
_ALL_WHOLE = 1 << 53  # no float from here on has a fraction
_FIRST, _LAST = (-100, 0), (100, 0)

Place: TypeAlias = tuple[Any, ...]


class SortKey(msgspec.Struct, frozen=True):
    """One key: what it sorts by, in which direction, and where nulls go."""

    evaluate: Evaluate
    position: int | None
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class SortKeys:
    """Sort keys, such as `"price desc, city"`. `key(row)` returns a value that sorts as the row does.

    Nulls come last in both directions unless the key says `nulls first`.
    """

    kind_name: ClassVar[str] = "a list of sort keys"

    text: str
    keys: tuple[SortKey, ...]
    names: tuple[str, ...]
    positions: tuple[int, ...] | None
    key: Callable[[Row], Any] = field(repr=False)
    counters: Counters = field(repr=False, compare=False)

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> SortKeys:
        text = text_of(value, cls.kind_name)
        return shallow(lambda: cls._bound(text, first_schema(inputs)))

    @classmethod
    def _bound(cls, text: str, schema: Schema | None) -> SortKeys:
        compiler = Compiler(InputScope(schema))
        keys = []
        for item in parse_sort_keys(text):
            code = compiler.value(item.node)
            if code.type is Type.RELATION:
                raise SettingError(f"{code.shown} has no order to sort by", offset=item.node.offset)
            evaluate = code.evaluate if schema is not None else unbound
            keys.append(SortKey(evaluate, code.position, item.descending, item.nulls_first))
        key = _row_key(tuple(keys)) if schema is not None else unbound
        return cls(text, tuple(keys), tuple(compiler.names), compiler.positions, key, compiler.counters)


def _row_key(keys: tuple[SortKey, ...]) -> Callable[[Row], Any]:
    parts = tuple((key.evaluate, _place(key)) for key in keys)
    if len(parts) == 1:
        evaluate, place = parts[0]
        return lambda row: place(evaluate(row))
    return lambda row: [place(evaluate(row)) for evaluate, place in parts]


def _place(key: SortKey) -> Callable[[Value], Place]:
    null = _FIRST if key.nulls_first else _LAST
    place = _descending if key.descending else _ascending
    return lambda value: null if value is None else place(value)


def _ascending(value: Value) -> Place:
    if value.__class__ is str:
        return 5, value
    kind = kind_of(value)
    if kind is Type.NUMBER:
        return (_NAN_RANK, 0) if is_nan(value) else (2, *_number_place(value))
    if kind is Type.DATE:
        return 4, since_epoch(value)
    if kind is Type.DOCUMENT:
        return 6, value.text
    return _RANKS[kind or Type.RELATION], value if kind is not Type.RELATION else 0


def _number_place(value: Value) -> Place:
    """A key that Python sorts as the language does: to Python a float is a binary fraction, not as written.

    So a Decimal that no float equals stands after the float below it.
    """
    if not isinstance(value, Decimal):
        return (value,)
    rounded = float(value)
    if abs(rounded) >= _ALL_WHOLE:
        return (value,)
    written = decimal_of(rounded)
    if written == value:
        return (rounded,)
    return (rounded if written < value else nextafter(rounded, -inf), value)


def _descending(value: Value) -> Place:
    if isinstance(value, Decimal):
        rank, *place = _ascending(value.copy_negate())  # `-` would round to the context's precision
        return (-rank, *place)
    rank, comparable = _ascending(value)
    return -rank, _Reversed(comparable) if isinstance(comparable, str) else -comparable


class _Reversed:
    """A text that sorts the other way round."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: _Reversed) -> bool:
        return other.text < self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)
