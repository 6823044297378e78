"""Finds the column that a name in an expression means, and words the message when there is none."""

from __future__ import annotations

from typing import Protocol

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.expressions.syntax import Name
from aioflow.relation import Schema, Type


class ScopeColumn(msgspec.Struct, frozen=True):
    """A place in the row, and its type where that is known; position -1 while the schema is not."""

    position: int
    type: Type | None


class Scope(Protocol):
    """Finds columns by name; `known` is False while a schema is not."""

    @property
    def known(self) -> bool: ...

    def column(self, name: Name) -> ScopeColumn: ...


UNKNOWN = ScopeColumn(-1, None)


class InputScope(msgspec.Struct, frozen=True):
    """The attributes of one input. `left.a` is the attribute that a join named so."""

    schema: Schema | None

    @property
    def known(self) -> bool:
        return self.schema is not None

    def column(self, name: Name) -> ScopeColumn:
        if self.schema is None:
            return UNKNOWN
        if name.text not in self.schema and not self.schema.open:
            raise unknown_attribute(name, name.text, self.schema)
        return ScopeColumn(self.schema.position(name.text), self.schema.type_of(name.text))


class JoinScope(msgspec.Struct, frozen=True):
    """The attributes of two inputs, for rows of the left joined to rows of the right."""

    left: Schema | None
    right: Schema | None

    @property
    def known(self) -> bool:
        return self.left is not None and self.right is not None

    def side(self, name: Name) -> tuple[str, str]:
        """`left` or `right`, and the attribute there."""
        first = name.parts[0].lower()
        if first in ("left", "right") and len(name.parts) > 1:
            return first, ".".join(name.parts[1:])
        schemas = (("left", self.left), ("right", self.right))
        sides = [side for side, schema in schemas if schema is None or name.text in schema]
        if not sides:
            sides = [side for side, schema in schemas if schema is not None and schema.open][:1]
        if not sides and self.left is not None and self.right is not None:
            raise unknown_attribute(name, name.text, self.left.add(self.right))
        if len(sides) > 1 and self.known:
            raise SettingError(
                f"both inputs have {name.text!r}; write left.{name.text} or right.{name.text}",
                offset=name.offset,
            )
        return sides[0], name.text

    def column(self, name: Name) -> ScopeColumn:
        side, attribute = self.side(name)
        schema = self.left if side == "left" else self.right
        if schema is None:
            return UNKNOWN
        if attribute not in schema and not schema.open:
            raise unknown_attribute(name, attribute, schema)
        before = 0 if side == "left" or self.left is None else len(self.left)
        return ScopeColumn(before + schema.position(attribute), schema.type_of(attribute))


def unknown_attribute(name: Name, attribute: str, schema: Schema) -> SettingError:
    """Return the error for a name that is no attribute, with the likeliest way to mend it."""
    known = ", ".join(schema.names) or "no attributes"
    split = _subtraction(attribute, schema)
    if split is not None:
        hint = f": '{attribute}' is one name; for subtraction write '{split}'"
    else:
        hint = suggestion(attribute, schema.names)
    if not hint and len(name.parts) == 1:
        hint = f"; a text stands in quotes: '{attribute}'"
    return SettingError(f"unknown attribute {attribute!r}{hint} (there are: {known})", offset=name.offset)


def _subtraction(attribute: str, schema: Schema) -> str | None:
    """`n - 1` for the name `n-1` when there is an `n`."""
    parts = attribute.split("-")
    for count in range(len(parts) - 1, 0, -1):
        left, right = "-".join(parts[:count]), "-".join(parts[count:])
        if left in schema:
            return f"{left} - {right or '…'}"
    return None
