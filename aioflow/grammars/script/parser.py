"""From the words of a code block to its statements; a mistake loses one statement, not the block."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

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
from aioflow.grammars.tokens import KEYWORDS

if TYPE_CHECKING:
    from aioflow.grammars.parser import GrammarParser

_POWERS = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4}
_POWERS |= {"+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_CONSTANTS = {"true": True, "false": False, "null": None}
# Words that begin or end statements are no variables.
RESERVED = KEYWORDS | frozenset({"else", "for", "in"}) | frozenset(_CONSTANTS)
_DIGITS_AT_MOST = 1000


class ScriptParser:
    """Reads code from the same words as its parser of grammars."""

    def __init__(self, parser: GrammarParser) -> None:
        self._parser = parser

    def block(self, closing: str) -> Block:
        """Return the statements up to the closing word, which is taken."""
        parser = self._parser
        actions: list[Action] = []
        while not parser.accept(closing):
            if parser.token.kind == "end" or parser.token.text in ("rule", "strict"):
                parser.fail(f"expected '{closing}' after the statements")
            place = parser.token.start
            read = parser.recovered(self._statement)
            if read is not None:
                actions.extend(read)
            else:
                self._skip_statement(closing, place)
        return tuple(actions)

    def _skip_statement(self, closing: str, place: int) -> None:
        parser = self._parser
        if parser.token.start == place and parser.token.text != closing:
            parser.advance()
        while parser.token.kind != "end" and parser.token.text not in (closing, "end", "rule", "strict"):
            if parser.advance().text == ";":
                return

    def _statement(self) -> Block:
        parser = self._parser
        with parser.nested():
            if parser.accept(";"):
                return ()
            if parser.token.text == "if":
                return (self._condition(),)
            if parser.token.text == "for":
                return (self._loop(),)
            action = self._simple()
            if parser.token.text != "end":  # the last semicolon of a block may be left out
                parser.expect(";", " after a statement")
            return (action,)

    def _condition(self) -> Conditional:
        parser = self._parser
        offset = parser.advance().start
        test = self.expression()
        then = self._body()
        otherwise = self._body() if parser.accept("else") else ()
        return Conditional(test, then, otherwise, offset)

    def _loop(self) -> Loop:
        parser = self._parser
        offset = parser.advance().start
        is_enclosed = parser.accept("(") is not None
        name = parser.word("the variable of the loop", RESERVED)
        parser.expect("in", " after the variable of the loop")
        values = self.expression()
        if is_enclosed:
            parser.expect(")", " after the values of the loop")
        return Loop(name.text, values, self._body(), offset)

    def _body(self) -> Block:
        return self.block("}") if self._parser.accept("{") else self._statement()

    def _simple(self) -> Action:
        parser = self._parser
        start = parser.token.start
        target = self.expression()
        if sign := parser.accept("=", "+="):
            value = self.expression()
            if sign.text == "+=":
                value = Binary("+", target, value, sign.start)
            if isinstance(target, ScriptVariable):
                return SetVariable(target.name, value, start)
            if isinstance(target, Member):
                return SetMember(target.owner, target.name, value, start)
            parser.fail_at("only a variable or a member can be assigned to", start, sign.start)
        if not isinstance(target, Invocation):
            parser.fail_at("this statement has no effect; expected an assignment or a call", start)
        return Evaluation(target, start)

    # --- expressions ----------------------------------------------------------------------------

    def expression(self, power: int = 0) -> Expression:
        """Return an expression whose operators bind more tightly than `power`."""
        parser = self._parser
        with parser.nested():
            left = self._operand()
            depth = 0
            while (binding := _POWERS.get(parser.token.text, 0)) > power and parser.token.kind == "sign":
                sign = parser.advance()
                left = Binary(sign.text, left, self.expression(binding), sign.start)
                depth += 1
                parser.check_depth(depth)
            return left

    def _operand(self) -> Expression:
        parser = self._parser
        token = parser.token
        if token.kind == "sign" and token.text in ("!", "-"):
            parser.advance()
            return Unary(token.text, self.expression(6), token.start)
        return self._parts(self._plain())

    def _plain(self) -> Expression:
        parser = self._parser
        token = parser.token
        if parser.accept("("):
            inner = self.expression()
            parser.expect(")", "")
            return inner
        if parser.accept("$$"):
            return MatchedText(token.start)
        if token.kind == "literal":
            return Constant(parser.advance().text, token.start)
        if token.kind == "number":
            return self._number()
        if token.kind == "word" and token.text in _CONSTANTS:
            return Constant(_CONSTANTS[parser.advance().text], token.start)
        name = parser.word("a value", RESERVED)
        if parser.accept("("):
            return Invocation(None, name.text, self._arguments(), name.start)
        return ScriptVariable(name.text, name.start)

    def _number(self) -> Constant:
        token = self._parser.advance()
        if len(token.text) > _DIGITS_AT_MOST:
            self._parser.fail_at("the number has too many digits", token.start)
        return Constant(Decimal(token.text) if "." in token.text else int(token.text), token.start)

    def _parts(self, owner: Expression) -> Expression:
        """Return `owner.name`, `owner.name(…)` and `owner[index]` around an operand."""
        parser = self._parser
        depth = 0
        while sign := parser.accept(".", "["):
            depth += 1
            parser.check_depth(depth)
            if sign.text == "[":
                owner = Element(owner, self.expression(), sign.start)
                parser.expect("]", "")
                continue
            name = parser.word("the name of a member", frozenset())
            if parser.accept("("):
                owner = Invocation(owner, name.text, self._arguments(), name.start)
            else:
                owner = Member(owner, name.text, name.start)
        return owner

    def _arguments(self) -> tuple[Expression, ...]:
        parser = self._parser
        arguments: list[Expression] = []
        if parser.accept(")"):
            return ()
        arguments.append(self.expression())
        while parser.accept(","):
            arguments.append(self.expression())
        parser.expect(")", " after the arguments")
        return tuple(arguments)
