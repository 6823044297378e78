"""Projections and lists of attributes: the setting kinds of `project`, `distinct`, `BY`, `ON`, `KEY`.

`Keys` is the setting kind of ONCE: it tells which tuples count as the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar

import msgspec

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate, first_schema, shallow, text_of, unbound
from aioflow.expressions.compiler import Compiler, InputScope
from aioflow.expressions.parser import (
    ProjectionItem,
    Star,
    parse_attributes,
    parse_expressions,
    parse_projection,
)
from aioflow.expressions.predicates import Filter
from aioflow.expressions.syntax import Name
from aioflow.relation import Batch, Row, Schema, identities, picker, value_identities
from aioflow.values.counters import Counters


class Attributes(msgspec.Struct, frozen=True):
    """A list of attributes, `"a, b"`: `names`, and their `positions` once the schema is known.

    `row` takes those columns of a row, always as a tuple.
    """

    kind_name: ClassVar[str] = "a list of attributes"
    may_repeat: ClassVar[bool] = False

    names: tuple[str, ...]
    positions: tuple[int, ...] | None

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Attributes:
        """The constant is a text with commas, or a list of names."""
        if isinstance(value, tuple | list) and all(isinstance(name, str) for name in value):
            names = [Name(0, (name,)) for name in value]
        else:
            names = list(parse_attributes(text_of(value, cls.kind_name)))
        schema = first_schema(inputs)
        seen: set[str] = set()
        for name in names:
            if name.text in seen and not cls.may_repeat:
                raise SettingError(f"attribute {name.text!r} appears twice", offset=name.offset)
            seen.add(name.text)
        texts = tuple(name.text for name in names)
        if schema is None:
            return cls(texts, None)
        scope = InputScope(schema)
        return cls(texts, tuple(scope.column(name).position for name in names))

    @property
    def row(self) -> Evaluate:
        return unbound if self.positions is None else picker(self.positions)


class RepeatableAttributes(Attributes, frozen=True):
    """A list in which an attribute may appear more than once, as for the conversions of a format."""

    may_repeat = True


class Projection(msgspec.Struct, frozen=True, eq=False):
    """Attributes renamed or computed: `"a, b as c, n - 1 as n"`, `"*"`, `"* except a"`.

    `schema` is that of the results, None while a star stands for attributes that are not known; `row`
    makes a result from a row, `rows` from a batch, which is faster. `positions` are the columns it reads,
    None while the input's schema is not known. `columns` are the columns it takes when it computes
    nothing, else None.
    """

    kind_name: ClassVar[str] = "a projection"

    text: str
    schema: Schema | None
    names: tuple[str, ...]
    positions: tuple[int, ...] | None
    columns: tuple[int, ...] | None
    row: Evaluate
    rows: Filter
    counters: Counters

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Projection:
        text = text_of(value, cls.kind_name)
        return shallow(lambda: cls._bound(text, first_schema(inputs)))

    @classmethod
    def _bound(cls, text: str, schema: Schema | None) -> Projection:
        compiler = Compiler(InputScope(schema))
        items = parse_projection(text)
        results = _results(items, schema, compiler)
        names = tuple(compiler.names)
        out = Schema(tuple(results), tuple(code.type for code in results.values()))
        if schema is None:
            # Without a star the attributes of the result are known, whatever those of the input are.
            known = None if any(isinstance(item, Star) for item in items) else out
            return cls(text, known, names, None, None, unbound, unbound, compiler.counters)
        if schema.open and any(isinstance(item, Star) for item in items):
            out = _open_like(schema, out, results)
        codes = tuple(results.values())
        positions = tuple(code.position for code in codes if code.position is not None)
        columns = positions if len(positions) == len(codes) else None
        row, rows = (_computed(codes), _computed_rows(codes)) if columns is None else _picked(columns)
        return cls(text, out, names, compiler.positions, columns, row, rows, compiler.counters)


def _results(
    items: Sequence[ProjectionItem | Star], schema: Schema | None, compiler: Compiler
) -> dict[str, Code]:
    """The code that computes each attribute of the result."""
    results: dict[str, Code] = {}
    for item in items:
        pairs = _star(item, schema, compiler) if isinstance(item, Star) else [(item.name, item)]
        for name, each in pairs:
            if name in results:
                raise SettingError(f"attribute {name!r} appears twice", offset=each.offset)
            results[name] = compiler.value(each.node)
    return results


def _star(item: Star, schema: Schema | None, compiler: Compiler) -> list[tuple[str, ProjectionItem]]:
    for excepted in item.excepted:
        compiler.scope.column(excepted)
    left_out = {excepted.text for excepted in item.excepted}
    names = [name for name in schema or () if name not in left_out]
    return [(name, ProjectionItem(item.offset, name, Name(item.offset, (name,)))) for name in names]


def _open_like(schema: Schema, out: Schema, results: Mapping[str, Code]) -> Schema:
    """The result of a star on an open schema is open as well."""
    kept = {
        name for name, code in results.items() if name in schema and code.position == schema.position(name)
    }
    aliases = tuple((alias, name) for alias, name in schema.aliases if name in kept)
    return Schema(out.names, out.types, open=True, aliases=aliases)


def _picked(columns: tuple[int, ...]) -> tuple[Evaluate, Filter]:
    pick = picker(columns)
    if len(columns) == 1:
        only = columns[0]
        return pick, lambda batch: [(row[only],) for row in batch]
    return pick, lambda batch: list(map(pick, batch))


def _computed(codes: tuple[Code, ...]) -> Evaluate:
    closures = tuple(code.evaluate for code in codes)

    def compute(row: Row) -> Row:
        return tuple([closure(row) for closure in closures])

    return compute


def _computed_rows(codes: tuple[Code, ...]) -> Filter:
    """Column by column: taking columns and making tuples then happens outside the interpreter."""
    closures = tuple(code.evaluate if code.position is None else itemgetter(code.position) for code in codes)

    def compute(batch: Batch) -> Batch:
        return list(zip(*[map(closure, batch) for closure in closures], strict=True))

    return compute


class Keys(msgspec.Struct, frozen=True):
    """Attributes or expressions, `"url, lower(lang)"`: `names` are the attributes that they read.

    `of` gives a stand-in for each row of a batch: equal exactly when all values of the two rows are.
    """

    kind_name: ClassVar[str] = "a list of attributes or expressions"

    text: str
    names: tuple[str, ...]
    of: Callable[[Sequence[Row]], Sequence[Hashable]]

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Keys:
        text = text_of(value, cls.kind_name)
        return shallow(lambda: cls._bound(text, first_schema(inputs)))

    @classmethod
    def _bound(cls, text: str, schema: Schema | None) -> Keys:
        compiler = Compiler(InputScope(schema))
        codes = [compiler.value(node) for node in parse_expressions(text)]
        return cls(text, tuple(compiler.names), unbound if schema is None else _stand_ins(codes))


def _stand_ins(codes: Sequence[Code]) -> Callable[[Sequence[Row]], Sequence[Hashable]]:
    closures = [code.evaluate if code.position is None else itemgetter(code.position) for code in codes]
    if len(closures) == 1:
        only = closures[0]
        return lambda rows: value_identities(list(map(only, rows)))
    return lambda rows: identities(list(zip(*[map(closure, rows) for closure in closures], strict=True)))
