"""From the words of an expression to its tree: operators by precedence, as in SQL."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache, wraps
from typing import NoReturn, TypeVar

from aioflow.errors import SettingError, suggestion
from aioflow.expressions.literals import number_literal, typed_literal
from aioflow.expressions.syntax import (
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Comparison,
    Concatenation,
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
)
from aioflow.expressions.tokens import KEYWORDS, Token, tokenize

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
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def at_end(self) -> bool:
        return self.tokens[self.index].kind == "end"

    @property
    def previous(self) -> Token | None:
        return self.tokens[self.index - 1] if self.index else None

    @property
    def following(self) -> Token:
        """The word after the next."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def accept(self, *words: str) -> Token | None:
        """Take the next word if it is one of these keywords or signs."""
        return self.advance() if self.token.keyword in words else None

    def expect(self, word: str, why: str = "") -> Token:
        return self.accept(word) or self.fail(f"expected '{word}'{why}")

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        """Raise `expected …, found …` at the next word."""
        raise SettingError(f"{expected}, found {self.token.shown}{hint}", offset=self.token.start)

    # --- operators ------------------------------------------------------------------------------

    def expression(self, power: int = 0) -> Node:
        """An expression whose operators bind more tightly than `power`."""
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

    def _is(self, left: Node, token: Token) -> Node:
        negated = self.accept("not") is not None
        word = self.accept(*_CONSTANTS)
        if word is None:
            after = "is not" if negated else "is"
            self.fail(f"expected null, true or false after '{after}'")
        return Is(token.start, left, _CONSTANTS[word.keyword], negated)

    def _test(self, left: Node, token: Token) -> Node:
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
        """An attribute, its dots included."""
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

    def call(self) -> Call:
        """A function with its arguments."""
        function = self.advance()
        self.expect("(")
        if self.token.keyword == "*" and self.following.keyword == ")":
            self.index += 2
            return Call(function.start, function.keyword, (), star=True)
        distinct = self.token.keyword == "distinct" and self.following.keyword not in (",", ")", ".")
        if distinct:
            self.advance()
        arguments = [] if self.token.keyword == ")" else self.items(self.expression)
        self.close("(", f" of {function.text}")
        return Call(function.start, function.keyword, tuple(arguments), distinct)

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
    """The subtraction that a name with `-` was probably meant as."""
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
    """The tree of an expression; a SettingError with the offset of the first mistake."""
    parser = Parser(text)
    node = parser.expression()
    parser.finish()
    return node
