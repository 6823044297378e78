"""Results of grammars as tuples: the attributes, as far as the text of a grammar tells, and the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from aioflow.errors import InputError, SettingError, suggestion
from aioflow.grammars.checking import items_within
from aioflow.grammars.errors import ParseLimitError
from aioflow.grammars.grammar import Grammar, ParsedSource
from aioflow.grammars.script.syntax import Action, Conditional, Expression, Invocation, Loop, SetMember
from aioflow.grammars.script.values import XmlElement
from aioflow.grammars.syntax import Binding, CodeBlock, Rule
from aioflow.relation import Document, Relation, Row, Schema, Type, Value
from aioflow.values.coercion import value_of

_DEEPEST = 100
# Of one record: code can make values that contain others many times over.
_VALUES_AT_MOST = 100_000
# The attribute of a record that is a text, as in lists of values.
_VALUE = "value"

ShapeKind: TypeAlias = Literal["text", "record", "list", "unknown"]


class ValueShape(msgspec.Struct, frozen=True):
    """The kind of a value that a rule or a variable has: of a record its `rule`, of a list its `element`."""

    kind: ShapeKind
    rule: str = ""
    element: ValueShape | None = None

    @property
    def type(self) -> Type | None:
        return {"text": Type.CHAR, "unknown": None}.get(self.kind, Type.RELATION)


_TEXT, _UNKNOWN = ValueShape("text"), ValueShape("unknown")


class RecordShapes:
    """The shapes of the results of a grammar's rules; what code computes is unknown."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._rules: dict[str, ValueShape] = {}
        self._variables: dict[str, dict[str, ValueShape]] = {}

    def of_rule(self, name: str) -> ValueShape:
        """Return the shape of a rule's result."""
        known = self._rules.get(name)
        if known is None:
            self._rules[name] = _UNKNOWN  # of a rule that contains itself
            known = self._rules[name] = self._of_result(name)
        return known

    def _of_result(self, name: str) -> ValueShape:
        rule = self._grammar.rules[name]
        if not rule.result:
            return _TEXT
        if self._grammar.returns_record(name):
            return ValueShape("record", name)
        return self.of_variables(name).get(rule.result, _UNKNOWN)

    def members(self, rule: str) -> dict[str, ValueShape]:
        """Return the shapes of the members of a record that a rule returns."""
        result = self._grammar.rules[rule].result
        return {name: shape for name, shape in self.of_variables(rule).items() if name != result}

    def of_variables(self, rule: str) -> dict[str, ValueShape]:
        """Return the shapes of all variables of a rule."""
        known = self._variables.get(rule)
        if known is None:
            known = self._variables[rule] = self._of_variables(self._grammar.rules[rule])
        return known

    def _of_variables(self, rule: Rule) -> dict[str, ValueShape]:
        bound: dict[str, set[tuple[bool, str]]] = {}
        for item in items_within(rule.body):
            if isinstance(item, Binding):
                bound.setdefault(item.variable, set()).add((item.collects, item.called))
        changes = any(
            isinstance(each, CodeBlock) and _changes(each.block) for each in items_within(rule.body)
        )
        found: dict[str, ValueShape] = {}
        for name, variable in self._grammar.variables(rule.name).items():
            shape = _UNKNOWN if variable.is_computed else self._of_bindings(bound.get(name, set()))
            found[name] = _UNKNOWN if changes and shape.kind != "text" else shape
        return found

    def _of_bindings(self, bindings: set[tuple[bool, str]]) -> ValueShape:
        if len(bindings) != 1:
            return _UNKNOWN
        ((collects, called),) = bindings
        value = self.of_rule(called) if called else _TEXT
        return ValueShape("list", element=value) if collects else value

    def schema(self, rule: str) -> Schema:
        """Return the attributes of the records that a rule returns."""
        members = self.members(rule)
        return Schema(tuple(members), tuple(shape.type for shape in members.values()))


def _changes(block: Sequence[Action]) -> bool:
    """Return whether code may change values that it does not assign to a variable."""
    for action in block:
        if isinstance(action, SetMember):
            return True
        if isinstance(action, Conditional) and (_changes(action.then) or _changes(action.otherwise)):
            return True
        if isinstance(action, Loop) and _changes(action.body):
            return True
        expression: Expression | None = getattr(action, "expression", None)
        if isinstance(expression, Invocation) and expression.owner is not None:
            return True
    return False


class GrammarRecords:
    """The records of sources that are parsed with one start rule.

    They are the values of the variable `each`. Without it they are the result of the rule: the values of a
    list, or one record. If the rule returns a text and has one variable that collects, they are its values.
    """

    TEXT_ATTRIBUTE: ClassVar[str] = _VALUE

    def __init__(self, grammar: Grammar, start: str | None = None, each: str | None = None) -> None:
        try:
            self.start = grammar.start_rule(start)
        except InputError as error:
            raise SettingError(str(error), setting="start") from None
        self.shapes = RecordShapes(grammar)
        self.rule = grammar.rules[self.start]
        self.variables = self.shapes.of_variables(self.start)
        if each is not None and each not in self.variables:
            known = ", ".join(self.variables) or "none"
            hint = suggestion(each, self.variables) or f" (there are: {known})"
            raise SettingError(f"the rule {self.start!r} has no variable {each!r}{hint}", setting="each")
        self.variable = each if each is not None else self._collecting(grammar)
        shape = self._shape()
        self.shape = shape.element if shape.kind == "list" and shape.element is not None else shape
        has_code = any(isinstance(each, CodeBlock) for each in items_within(self.rule.body))
        variable = grammar.variables(self.start).get(self.variable)
        # True if records are final as soon as they are settled.
        self.are_early = variable is not None and variable.collects and not has_code

    def _collecting(self, grammar: Grammar) -> str:
        """Return the variable whose values are the records, empty if the result itself is."""
        collecting = [name for name, each in grammar.variables(self.start).items() if each.collects]
        if self.rule.result:
            return self.rule.result if self.rule.result in collecting else ""
        return collecting[0] if len(collecting) == 1 else ""

    def _shape(self) -> ValueShape:
        if self.variable:
            return self.variables[self.variable]
        if self.rule.result or not self.variables:
            return self.shapes.of_rule(self.start)
        return ValueShape("record", self.start)

    @property
    def page_shape(self) -> ValueShape:
        """The shape of the record of all variables of the start rule."""
        return ValueShape("record", self.start)

    @property
    def schema(self) -> Schema | None:
        """The attributes of the records; None if only the results tell."""
        if self.shape.kind == "record":
            return self.shapes.schema(self.shape.rule)
        return None if self.shape.kind == "unknown" else Schema((_VALUE,), (self.shape.type,))

    def values(self, parsed: ParsedSource) -> list[Any]:
        """Return the records of a source that was parsed."""
        if self.variable:
            found = parsed.variables.get(self.variable)
        else:
            found = parsed.value if self.rule.result or not self.variables else parsed.variables
        if isinstance(found, list):
            return found
        return [] if found is None else [found]

    def mappings(self, parsed: ParsedSource, values_at_most: int = _VALUES_AT_MOST) -> list[dict[str, Value]]:
        """Return the records as mappings of values that relations carry.

        A ParseLimitError is raised for a record with more values.
        """
        carrier = ValueCarrier(self.shapes, values_at_most)
        return [carrier.members(value, self.shape) for value in self.values(parsed)]


class ValueCarrier:
    """Makes values that relations carry of the values of grammars; a ParseLimitError bounds their number."""

    def __init__(self, shapes: RecordShapes, values_at_most: int = _VALUES_AT_MOST) -> None:
        self._shapes = shapes
        self._most = values_at_most
        self._count = 0

    def members(self, value: Any, shape: ValueShape = _UNKNOWN) -> dict[str, Value]:
        """Return the members of a record by their names; a text is a record of its own."""
        shapes = self._shapes.members(shape.rule) if shape.kind == "record" else {}
        if isinstance(value, Mapping):
            return {name: self.carried(each, shapes.get(name, _UNKNOWN)) for name, each in value.items()}
        return {_VALUE: self.carried(value, shape)}

    def carried(self, value: Any, shape: ValueShape = _UNKNOWN, depth: int = 0) -> Value:
        """Return a value as relations carry it: lists and records embed."""
        self._count = self._count + 1 if depth else 0
        if isinstance(value, str):
            # An option that is not there binds an empty text.
            return None if not value and shape.kind in ("record", "list") else value
        if value is None or isinstance(value, bool | int | Decimal | float | date):
            return value
        if depth > _DEEPEST:
            raise ParseLimitError(f"a record is nested more than {_DEEPEST} levels deep", 0)
        if self._count > self._most:
            raise ParseLimitError(f"a record has more than {self._most:,} values", 0)
        if isinstance(value, list | tuple):
            return self._relation(value, shape.element or _UNKNOWN, depth)
        if isinstance(value, Mapping):
            return self._relation([value], shape, depth)
        return Document(str(value), "xml") if isinstance(value, XmlElement) else value_of(value)

    def _relation(self, values: Sequence[Any], shape: ValueShape, depth: int) -> Relation:
        if shape.kind == "record":
            shapes = self._shapes.members(shape.rule)
            schema = self._shapes.schema(shape.rule)
        elif values and all(isinstance(each, Mapping) for each in values):
            shapes = {}
            schema = Schema(tuple(dict.fromkeys(name for each in values for name in each)))
        else:
            carried = [self.carried(each, shape, depth + 1) for each in values]
            return Relation.of_values(carried, shape.type)
        return Relation(schema, [self._row(each, schema, shapes, depth) for each in values])

    def _row(self, value: Any, schema: Schema, shapes: Mapping[str, ValueShape], depth: int) -> Row:
        return tuple(
            [self.carried(value.get(name), shapes.get(name, _UNKNOWN), depth + 1) for name in schema.names]
        )
