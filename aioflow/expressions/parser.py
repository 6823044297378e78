"""From the tokens of an expression to its tree: operators by precedence, as in SQL.

The lists in settings are parsed here as well: projections, attributes, sort keys and aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache, wraps
from typing import NoReturn, TypeVar

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.expressions.syntax import (
    KEYWORDS,
    And,
    Arithmetic,
    Between,
    Case,
    Comparison,
    Concatenation,
    ExpressionToken,
    FunctionCall,
    In,
    Is,
    Like,
    Literal,
    Matches,
    Name,
    Negative,
    Node,
    Not,
    Or,
    number_literal,
    tokenize,
    typed_literal,
)

DEEPEST_NESTING = 100

_OR, _AND, _NOT, _COMPARISON, _CONCATENATION, _SUM, _PRODUCT, _SIGN = range(10, 90, 10)
_POWERS = {"or": _OR, "and": _AND, "||": _CONCATENATION, "+": _SUM, "-": _SUM}
_POWERS |= dict.fromkeys(("*", "/", "//", "%"), _PRODUCT)
_SPELLINGS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS = ("in", "between", "like", "ilike", "matches")
_POWERS |= dict.fromkeys((*_SPELLINGS, *_TESTS, "is", "not"), _COMPARISON)
_CONSTANTS = {"true": True, "false": False, "null": None}
_LITERAL_KINDS = ("date", "timestamp", "number")

_N = TypeVar("_N", bound=Node)
_Result = TypeVar("_Result")


class Parser:
    """Reads one text from left to right; lists (projections, sort keys, …) use it item by item."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> ExpressionToken:
        return self.tokens[self.index]

    @property
    def at_end(self) -> bool:
        return self.tokens[self.index].kind == "end"

    @property
    def previous(self) -> ExpressionToken | None:
        return self.tokens[self.index - 1] if self.index else None

    @property
    def following(self) -> ExpressionToken:
        """The word after the next."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def advance(self) -> ExpressionToken:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def accept(self, *words: str) -> ExpressionToken | None:
        """Take the next word if it is one of these keywords or signs."""
        return self.advance() if self.token.keyword in words else None

    def expect(self, word: str, why: str = "") -> ExpressionToken:
        return self.accept(word) or self.fail(f"expected '{word}'{why}")

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        """Raise `expected …, found …` at the next word."""
        raise SettingError(f"{expected}, found {self.token.shown}{hint}", offset=self.token.start)

    # --- operators ------------------------------------------------------------------------------

    def expression(self, power: int = 0) -> Node:
        """Return an expression whose operators bind more tightly than `power`."""
        self.depth += 1
        if self.depth > DEEPEST_NESTING:
            self._too_deep(self.token.start)
        left = self._operand(power)
        while True:
            binding = _POWERS.get(self.token.keyword, 0)
            if binding <= power:
                break
            left = self._checked(self._operation(left, binding))
        self.depth -= 1
        return left

    def _checked(self, node: _N) -> _N:
        if node.height > DEEPEST_NESTING:
            self._too_deep(node.offset)
        return node

    def _too_deep(self, offset: int) -> NoReturn:
        raise SettingError(
            f"the expression is nested too deeply: more than {DEEPEST_NESTING} levels", offset=offset
        )

    def _operation(self, left: Node, binding: int) -> Node:
        if binding == _COMPARISON:
            return self._comparison(left)
        token = self.advance()
        if binding == _OR:
            return Or(token.start, self._chain(left, token.keyword, binding))
        if binding == _AND:
            return And(token.start, self._chain(left, token.keyword, binding))
        if binding == _CONCATENATION:
            return Concatenation(token.start, self._chain(left, token.keyword, binding))
        return Arithmetic(token.start, token.keyword, left, self.expression(binding))

    def _chain(self, left: Node, word: str, binding: int) -> tuple[Node, ...]:
        parts = [left, self.expression(binding)]
        while self.accept(word):
            parts.append(self.expression(binding))
        return tuple(parts)

    def _comparison(self, left: Node) -> Node:
        token = self.advance()
        node: Node
        if token.keyword == "is":
            node = self._is(left, token)
        elif token.keyword == "not":
            if self.token.keyword not in _TESTS:
                self.fail("expected 'in', 'between', 'like', 'ilike' or 'matches' after 'not'")
            node = Not(token.start, self._test(left, self.advance()))
        elif token.keyword in _TESTS:
            node = self._test(left, token)
        else:
            node = Comparison(token.start, _SPELLINGS[token.keyword], left, self.expression(_COMPARISON))
        if _POWERS.get(self.token.keyword) == _COMPARISON:
            self._chained()
        return node

    def _chained(self) -> NoReturn:
        if self.token.keyword in _SPELLINGS:
            hint = "write 'a < b and b < c', or put one in parentheses"
        else:
            hint = "put one in parentheses"
        raise SettingError(
            f"{self.token.shown} cannot follow another comparison; {hint}", offset=self.token.start
        )

    def _is(self, left: Node, token: ExpressionToken) -> Node:
        negated = self.accept("not") is not None
        word = self.accept(*_CONSTANTS)
        if word is None:
            after = "is not" if negated else "is"
            self.fail(f"expected null, true or false after '{after}'")
        return Is(token.start, left, _CONSTANTS[word.keyword], negated)

    def _test(self, left: Node, token: ExpressionToken) -> Node:
        if token.keyword == "in":
            self.expect("(", " after 'in'")
            choices = self.items(self.expression)
            self.close("(")
            return In(token.start, left, tuple(choices))
        if token.keyword == "between":
            low = self.expression(_COMPARISON)
            self.expect("and", " between the two limits of 'between'")
            return Between(token.start, left, low, self.expression(_COMPARISON))
        pattern = self.expression(_COMPARISON)
        if token.keyword == "matches":
            return Matches(token.start, left, pattern)
        escape = self.expression(_COMPARISON) if self.accept("escape") else None
        return Like(token.start, left, pattern, escape, token.keyword == "ilike")

    # --- operands -------------------------------------------------------------------------------

    def _operand(self, power: int) -> Node:
        token = self.token
        if token.kind == "number":
            return Literal(self.advance().start, number_literal(token.text))
        if token.kind == "string":
            return Literal(self.advance().start, token.string)
        if token.keyword in _CONSTANTS:
            return Literal(self.advance().start, _CONSTANTS[token.keyword])
        if token.keyword == "(":
            return self._parenthesis()
        if token.keyword in ("-", "+"):
            return self._signed()
        if token.keyword == "not" and power <= _NOT:
            return self._checked(Not(self.advance().start, self.expression(_NOT)))
        if token.keyword == "case":
            return self._checked(self._case())
        if token.kind == "quoted" or (token.kind == "name" and token.keyword not in KEYWORDS):
            return self._named()
        return self._no_operand()

    def _parenthesis(self) -> Node:
        self.advance()
        inside = self.expression()
        self.close("(")
        return inside

    def _signed(self) -> Node:
        sign = self.advance()
        operand = self.expression(_SIGN)
        if sign.keyword == "+":
            return operand
        if isinstance(operand, Literal) and type(operand.value) in (int, float):
            return Literal(sign.start, -operand.value)
        if isinstance(operand, Literal) and isinstance(operand.value, Decimal):
            return Literal(sign.start, operand.value.copy_negate())
        return self._checked(Negative(sign.start, operand))

    def _named(self) -> Node:
        token, following = self.token, self.following
        if token.kind == "name":
            if following.keyword == "(":
                return self._checked(self.call())
            if following.kind == "string" and token.keyword in _LITERAL_KINDS:
                self.advance()
                return typed_literal(token.keyword, self.advance())
        return self.name()

    def name(self) -> Name:
        """Return an attribute, its dots included."""
        start = self.token.start
        parts = [self.word()]
        while self.accept("."):
            parts.append(self.word())
        return Name(start, tuple(parts))

    def word(self, expected: str = "expected a name") -> str:
        """One name, plain or in backticks."""
        token = self.token
        if token.kind not in ("name", "quoted"):
            self.fail(expected)
        if token.kind == "name" and token.keyword in KEYWORDS:
            self.fail(expected, f", a keyword; as a name write `{token.text}`")
        return self.advance().name

    def call(self) -> FunctionCall:
        """Return a function with its arguments."""
        function = self.advance()
        self.expect("(")
        if self.token.keyword == "*" and self.following.keyword == ")":
            self.index += 2
            return FunctionCall(function.start, function.keyword, (), star=True)
        distinct = self.token.keyword == "distinct" and self.following.keyword not in (",", ")", ".")
        if distinct:
            self.advance()
        arguments = [] if self.token.keyword == ")" else self.items(self.expression)
        self.close("(", f" of {function.text}")
        return FunctionCall(function.start, function.keyword, tuple(arguments), distinct)

    def _case(self) -> Case:
        start = self.advance().start
        subject = None if self.token.keyword == "when" else self.expression()
        branches = []
        while self.accept("when"):
            condition = self.expression()
            self.expect("then", " after the condition of 'when'")
            branches.append((condition, self.expression()))
        if not branches:
            self.fail("expected 'when' in 'case'")
        default = self.expression() if self.accept("else") else None
        self.expect("end", " to close 'case'")
        return Case(start, subject, tuple(branches), default)

    def _no_operand(self) -> NoReturn:
        token, before = self.token, self.previous
        if before is None and token.kind == "end":
            raise SettingError("the expression is empty", offset=0)
        hint = ""
        if token.kind == "name":
            hint = f", a keyword; as a name write `{token.text}`" if token.keyword != "not" else ""
            hint = hint or "; put it in parentheses"
        elif before is not None and before.text + token.text in ("=<", "=>"):
            hint = f"; write '{token.text}='"
        place = f" after {before.shown}" if before is not None else ""
        self.fail(f"expected a value{place}", hint)

    # --- lists and ends -------------------------------------------------------------------------

    def items(self, item: Callable[[], _Result]) -> list[_Result]:
        """One or more items between commas."""
        found = [item()]
        while self.accept(","):
            found.append(item())
        return found

    def close(self, opening: str, of: str = "") -> None:
        """The `)` that belongs to an opening one."""
        if not self.accept(")"):
            self.fail(f"expected an operator or the ')' that closes '{opening}'{of}", self.operator_hint())

    def finish(self, also: str = "") -> None:
        """The end of the text; `also` says what else may stand here."""
        if self.at_end:
            return
        if self.token.keyword == ")":
            raise SettingError("this ')' has no '('", offset=self.token.start)
        self.fail(f"expected an operator{also} or the end", self.operator_hint())

    def operator_hint(self) -> str:
        token, before = self.token, self.previous
        if before is not None and before.kind == "name" and "-" in before.text and token.kind != "end":
            return (
                f"; '{before.text}' is one name; for subtraction write '{_spaced(before.text, token.text)}'"
            )
        if token.kind == "string" and before is not None and before.kind == "name":
            return f"; literals with a kind are {', '.join(_LITERAL_KINDS)}"
        if token.keyword == "as":
            return "; a value is converted by char(x), number(x), date(x) or boolean(x)"
        if token.kind == "name":
            return suggestion(token.text, ("and", "or", "is", *_TESTS))
        return ""


def _spaced(name: str, following: str) -> str:
    """Return the subtraction that a name with `-` was probably meant as."""
    left, _, right = name.partition("-")
    return f"{left} - {right or following}"


_LONGEST_REMEMBERED = 2000


def remembered(parse: Callable[[str], _Result]) -> Callable[[str], _Result]:
    """Parse a text only once: plans are checked, inferred and bound, each time from the same text."""
    cached = lru_cache(maxsize=1024)(parse)

    @wraps(parse)
    def parse_once(text: str) -> _Result:
        return cached(text) if len(text) <= _LONGEST_REMEMBERED else parse(text)

    return parse_once


@remembered
def parse_expression(text: str) -> Node:
    """Return the tree of an expression; raise a SettingError with the offset of the first mistake."""
    parser = Parser(text)
    node = parser.expression()
    parser.finish()
    return node


class ProjectionItem(msgspec.Struct, frozen=True):
    """`expression as name`."""

    offset: int
    name: str
    node: Node


class Star(msgspec.Struct, frozen=True):
    """`*` or `* except a, b`: all attributes but these."""

    offset: int
    excepted: tuple[Name, ...] = ()


@remembered
def parse_attributes(text: str) -> tuple[Name, ...]:
    """`a, b`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the list of attributes is empty", offset=0)
    names = parser.items(parser.name)
    if not parser.at_end:
        parser.fail("expected ',' or the end", parser.operator_hint())
    return tuple(names)


@remembered
def parse_expressions(text: str) -> tuple[Node, ...]:
    """`a, lower(b)`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the list of attributes is empty", offset=0)
    nodes = parser.items(parser.expression)
    parser.finish(", ','")
    return tuple(nodes)


@remembered
def parse_projection(text: str) -> tuple[ProjectionItem | Star, ...]:
    """`a, b as c, n - 1 as n, *, * except a`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the projection is empty", offset=0)
    items = parser.items(lambda: _projected(parser))
    parser.finish(", 'as', ','")
    return tuple(items)


def _projected(parser: Parser) -> ProjectionItem | Star:
    start = parser.token.start
    if parser.accept("*"):
        return Star(start, _excepted(parser))
    node = parser.expression()
    end = parser.tokens[parser.index - 1].end
    if parser.accept("as"):
        return ProjectionItem(start, parser.name().text, node)
    if isinstance(node, Name):
        return ProjectionItem(start, node.text, node)
    if not parser.at_end and parser.token.keyword != ",":
        parser.finish(", 'as', ','")
    written = parser.text[start:end]
    raise SettingError(f"a computed attribute needs a name: write '{written} as …'", offset=start)


def _excepted(parser: Parser) -> tuple[Name, ...]:
    """Return the names after `except`, in parentheses or up to the next item that is more than a name."""
    if not parser.accept("except"):
        return ()
    if parser.accept("("):
        names = parser.items(parser.name)
        parser.close("(")
        return tuple(names)
    names = [parser.name()]
    while parser.token.keyword == "," and _bare_name_follows(parser):
        parser.advance()
        names.append(parser.name())
    return tuple(names)


def _bare_name_follows(parser: Parser) -> bool:
    """Return whether the next item is only a name, which is left out since `*` has the attribute already."""
    index = parser.index + 1
    while parser.tokens[index].kind in ("name", "quoted") and parser.tokens[index + 1].keyword == ".":
        index += 2
    name, following = parser.tokens[index], parser.tokens[index + 1 : index + 2]
    return name.kind in ("name", "quoted") and (following[0].kind == "end" or following[0].keyword == ",")


# --- sort keys ----------------------------------------------------------------------------------


class SortItem(msgspec.Struct, frozen=True):
    """`expression desc nulls first`."""

    node: Node
    descending: bool
    nulls_first: bool


@remembered
def parse_sort_keys(text: str) -> tuple[SortItem, ...]:
    """`price desc, city, opened nulls first`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the list of sort keys is empty", offset=0)
    items = parser.items(lambda: _sorted_by(parser))
    parser.finish(", 'asc', 'desc', 'nulls', ','")
    return tuple(items)


def _sorted_by(parser: Parser) -> SortItem:
    node = parser.expression()
    direction = parser.accept("asc", "desc")
    first = False
    if parser.accept("nulls"):
        word = parser.accept("first", "last") or parser.fail("expected 'first' or 'last' after 'nulls'")
        first = word.keyword == "first"
    return SortItem(node, direction is not None and direction.keyword == "desc", first)


# --- aggregates ---------------------------------------------------------------------------------


class AggregateItem(msgspec.Struct, frozen=True):
    """`call as name`; `name` is empty without `as`, and `written` is the call's own text."""

    node: FunctionCall
    name: str
    written: str


@remembered
def parse_aggregates(text: str) -> tuple[AggregateItem, ...]:
    """`sum(price) as total, count() as n`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the list of aggregate functions is empty", offset=0)
    items = parser.items(lambda: _aggregated(parser))
    if not parser.at_end:
        parser.fail("expected 'as', ',' or the end")
    return tuple(items)


def _aggregated(parser: Parser) -> AggregateItem:
    start = parser.token.start
    if parser.token.kind != "name" or parser.following.keyword != "(":
        parser.fail("expected a function with its argument, as in 'sum(price)'")
    node = parser.call()
    written = parser.text[start : parser.tokens[parser.index - 1].end]
    name = parser.name().text if parser.accept("as") else ""
    return AggregateItem(node, name, written)
