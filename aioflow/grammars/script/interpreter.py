"""Carries out code blocks and asks predicates, within a number of steps and a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from aioflow.errors import message_of
from aioflow.grammars.script.syntax import (
    Action,
    Binary,
    Block,
    Conditional,
    Constant,
    Element,
    Evaluation,
    Expression,
    Invocation,
    Loop,
    MatchedText,
    Member,
    ScriptVariable,
    SetMember,
    SetVariable,
    Unary,
)
from aioflow.grammars.script.values import (
    BUILT_IN,
    TEXT_METHODS,
    ScriptValueError,
    XmlElement,
    arithmetic,
    as_number,
    as_text,
    compared,
    element_of,
    is_true,
    member_of,
    set_member,
    shown,
)

OUTPUT_AT_MOST = 100_000_000
_STEPS_BETWEEN_CLOCKS = 256


class FailedCode(Exception):  # noqa: N818  # becomes a ScriptError where rule and offset are known
    """A statement failed; `place` is its offset in the text of the grammar."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


class Interpreter:
    """Code of one parse: its functions, its output, and what is left of its time."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]], deadline: float) -> None:
        self.output: list[str] = []
        self._written = 0
        self._functions: dict[str, Callable[..., Any]] = {
            **{name: function for name, function in BUILT_IN.items() if function},
            "print": self._print,
            "println": self._println,
            **functions,
        }
        self.deadline = deadline
        self._steps = 0
        self._variables: dict[str, Any] = {}
        self._matched = ""

    def take_output(self) -> str:
        """Return what was printed since the last call."""
        text = "".join(self.output)
        self.output.clear()
        self._written = 0
        return text

    def run(self, block: Block, variables: dict[str, Any]) -> None:
        """Carry out statements; assignments change `variables`."""
        self._variables = variables
        for action in block:
            self._act(action)

    def holds(self, condition: Expression, matched: str) -> bool:
        """Return whether the condition of a predicate holds for a text."""
        self._variables, self._matched = {}, matched
        return is_true(self._value(condition))

    def _println(self, *values: object) -> None:
        self._print(*values, "\n")

    def _print(self, *values: object) -> None:
        for value in values:
            text = as_text(value)
            self._written += len(text)
            if self._written > OUTPUT_AT_MOST:
                raise ScriptValueError(f"the output is longer than {OUTPUT_AT_MOST:,} characters")
            self.output.append(text)

    # --- statements -----------------------------------------------------------------------------

    def _act(self, action: Action) -> None:
        self._count(action.offset)
        if isinstance(action, SetVariable):
            self._variables[action.name] = self._value(action.value)
        elif isinstance(action, Evaluation):
            self._value(action.expression)
        elif isinstance(action, SetMember):
            self._set_member(action)
        elif isinstance(action, Conditional):
            for each in action.then if is_true(self._value(action.test)) else action.otherwise:
                self._act(each)
        else:
            self._loop(action)

    def _count(self, place: int) -> None:
        self._steps += 1
        if self._steps % _STEPS_BETWEEN_CLOCKS == 0 and monotonic() > self.deadline:
            raise FailedCode("the time of the parse is over", place)

    def _set_member(self, action: SetMember) -> None:
        owner = self._value(action.owner)
        if owner is None and isinstance(action.owner, ScriptVariable):
            owner = self._variables[action.owner.name] = {}
        value = self._value(action.value)
        self._guarded(lambda: set_member(owner, action.name, value), action.offset)

    def _loop(self, action: Loop) -> None:
        values = self._value(action.values)
        if isinstance(values, XmlElement):
            values = values.children
        if not isinstance(values, list | dict | str | None):
            raise FailedCode(f"{shown(values)} has no elements to go through", action.offset)
        outside = self._variables.get(action.name, _UNBOUND)
        for each in list(values or ()):
            self._variables[action.name] = each
            for statement in action.body:
                self._act(statement)
        if outside is _UNBOUND:
            self._variables.pop(action.name, None)
        else:
            self._variables[action.name] = outside

    # --- expressions ----------------------------------------------------------------------------

    def _value(self, expression: Expression) -> Any:
        return _EVALUATIONS[type(expression)](self, expression)

    def _constant(self, expression: Constant) -> Any:
        return expression.value

    def _variable(self, expression: ScriptVariable) -> Any:
        return self._variables.get(expression.name)

    def _matched_text(self, expression: MatchedText) -> Any:
        return self._matched

    def _member(self, expression: Member) -> Any:
        owner = self._value(expression.owner)
        return self._guarded(lambda: member_of(owner, expression.name), expression.offset)

    def _element(self, expression: Element) -> Any:
        owner, index = self._value(expression.owner), self._value(expression.index)
        return self._guarded(lambda: element_of(owner, index), expression.offset)

    def _unary(self, expression: Unary) -> Any:
        value = self._value(expression.operand)
        if expression.sign == "!":
            return not is_true(value)
        number = as_number(value)
        if number is None:
            raise FailedCode(f"'-' needs a number, not {shown(value)}", expression.offset)
        return -number

    def _binary(self, expression: Binary) -> Any:
        sign = expression.sign
        left = self._value(expression.left)
        if sign == "&&":
            return is_true(left) and is_true(self._value(expression.right))
        if sign == "||":
            return is_true(left) or is_true(self._value(expression.right))
        right = self._value(expression.right)
        operation = arithmetic if sign in "+-*/%" else compared
        return self._guarded(lambda: operation(sign, left, right), expression.offset)

    def _invocation(self, expression: Invocation) -> Any:
        self._count(expression.offset)
        arguments = [self._value(each) for each in expression.arguments]
        if expression.owner is None:
            function = self._functions[expression.name]
            return self._guarded(lambda: function(*arguments), expression.offset)
        owner = self._value(expression.owner)
        return self._guarded(lambda: self._method(owner, expression.name, arguments), expression.offset)

    def _method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        if isinstance(owner, XmlElement) and name == "addChild" and len(arguments) == 1:
            return owner.add(arguments[0])
        if isinstance(owner, XmlElement) and name == "prettyPrint" and not arguments:
            for line in owner.lines():
                self._println(line)
            return None
        if isinstance(owner, list) and name == "add" and len(arguments) == 1:
            return owner.append(arguments[0])
        if isinstance(owner, str) and name in TEXT_METHODS:
            return TEXT_METHODS[name](owner, *arguments)
        if name == "length" and not arguments:
            return member_of(owner, name)
        raise ScriptValueError(f"{shown(owner)} has no method '{name}' with {len(arguments)} arguments")

    def _guarded(self, call: Callable[[], Any], place: int) -> Any:
        try:
            return call()
        except FailedCode:
            raise
        except ScriptValueError as error:
            raise FailedCode(str(error), place) from error
        except Exception as error:  # registered functions may fail in any way
            raise FailedCode(f"{type(error).__name__}: {message_of(error)}", place) from error


_UNBOUND = object()

_EVALUATIONS: dict[type, Callable[[Interpreter, Any], Any]] = {
    Constant: Interpreter._constant,
    ScriptVariable: Interpreter._variable,
    MatchedText: Interpreter._matched_text,
    Member: Interpreter._member,
    Element: Interpreter._element,
    Unary: Interpreter._unary,
    Binary: Interpreter._binary,
    Invocation: Interpreter._invocation,
}
