"""Tokens, constants and trees of expressions; names in a tree are not yet looked up.

Nodes are compared by identity only: no user needs more, and classes without `__eq__` load faster.
"""

from __future__ import annotations

import re
import typing
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from aioflow.errors import SettingError
from aioflow.expressions.operations import is_nan
from aioflow.relation import Document, Value
from aioflow.values.text import LONGEST_NUMBER, exact_number, read_date, read_number


class Node(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Part of an expression; `offset` is the place in its text that a message points at."""

    offset: int

    @cached_property
    def height(self) -> int:
        """The number of levels of the tree below, this one included."""
        return 1 + max((child.height for child in self.children), default=0)

    @property
    def children(self) -> tuple[Node, ...]:
        return ()


class Literal(Node, frozen=True, eq=False):
    """A constant."""

    value: Value


class Name(Node, frozen=True, eq=False):
    """An attribute; dots separate the parts: `left.zip`."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return ".".join(self.parts)


class Negative(Node, frozen=True, eq=False):
    """`-a`."""

    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


class Arithmetic(Node, frozen=True, eq=False):
    """`a + b`, and likewise `-`, `*`, `/`, `//`, `%`."""

    sign: str
    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


class Comparison(Node, frozen=True, eq=False):
    """`a = b`, and likewise `!=`, `<`, `<=`, `>`, `>=`; other spellings are already replaced."""

    sign: str
    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


class And(Node, frozen=True, eq=False):
    """`a and b and …`, flat."""

    parts: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.parts


class Or(Node, frozen=True, eq=False):
    """`a or b or …`, flat."""

    parts: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.parts


class Not(Node, frozen=True, eq=False):
    """`not a`; the negative forms of `in`, `between`, `like` and `matches` are inside one as well."""

    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


class Concatenation(Node, frozen=True, eq=False):
    """`a || b || …`, flat."""

    parts: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.parts


class In(Node, frozen=True, eq=False):
    """`a in (b, …)`."""

    operand: Node
    choices: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand, *self.choices)


class Between(Node, frozen=True, eq=False):
    """`a between low and high`."""

    operand: Node
    low: Node
    high: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand, self.low, self.high)


class Like(Node, frozen=True, eq=False):
    """`a like pattern escape character`, or `ilike`."""

    operand: Node
    pattern: Node
    escape: Node | None
    ignore_case: bool

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand, self.pattern, *((self.escape,) if self.escape else ()))


class Matches(Node, frozen=True, eq=False):
    """`a matches pattern`."""

    operand: Node
    pattern: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand, self.pattern)


class Is(Node, frozen=True, eq=False):
    """`a is null`, `a is true`, `a is false`, or with `not`: `value` is None, True or False."""

    operand: Node
    value: bool | None
    negated: bool

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


class Case(Node, frozen=True, eq=False):
    """`case when condition then result … else default end`; with a subject each `when` is compared to it."""

    subject: Node | None
    branches: tuple[tuple[Node, Node], ...]
    default: Node | None

    @property
    def children(self) -> tuple[Node, ...]:
        inside = [node for branch in self.branches for node in branch]
        return tuple(node for node in (self.subject, *inside, self.default) if node is not None)


class FunctionCall(Node, frozen=True, eq=False):
    """`function(a, …)`; `star` is `count(*)`, `distinct` is for aggregate functions."""

    function: str
    arguments: tuple[Node, ...]
    distinct: bool = False
    star: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        return self.arguments


def names_in(*nodes: Node) -> tuple[Name, ...]:
    """Return every name in the trees, in order of appearance."""
    found: list[Name] = []
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Name):
            found.append(node)
        waiting.extend(reversed(node.children))
    return tuple(found)


LONGEST_EXPRESSION = 100_000

Kind: TypeAlias = typing.Literal["name", "quoted", "number", "string", "sign", "end"]

KEYWORDS = frozenset({
    "and", "or", "not", "in", "between", "like", "ilike", "matches", "is", "null", "true", "false",
    "case", "when", "then", "else", "end", "as",
})  # fmt: skip

# `a-b` is one name. Names in backticks and both kinds of strings double their quote to contain it.
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<name>[^\W\d][\w-]*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<sign><=|>=|<>|!=|==|\|\||//|[-+*/%=<>(),.])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)

_CLOSERS = {"'": "text", '"': "text", "`": "name"}
_HINTS = {
    "&": "; for both conditions write 'and'",
    "!": "; write 'not' or '!='",
    "|": "; write 'or', or '||' to join texts",
    "^": "; write power(a, b)",
    "“": "; strings stand in straight quotes",
    "”": "; strings stand in straight quotes",
    "‘": "; strings stand in straight quotes",
    "’": "; strings stand in straight quotes",
    "[": "; names of other characters stand in backticks",
    ";": "; an expression is not a statement",
    "\\": "; a quote inside a text is doubled",
}


class ExpressionToken(NamedTuple):
    """A word; `keyword` is its lower-case form when it is one that has a meaning of its own."""

    kind: Kind
    text: str
    start: int
    end: int
    keyword: str

    @property
    def shown(self) -> str:
        """The token as messages name it."""
        if self.kind == "end":
            return "the end"
        return self.text if self.kind in ("string", "quoted") else f"'{self.text}'"

    @property
    def name(self) -> str:
        """The name that a plain or quoted name stands for."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def string(self) -> str:
        """The text that a string stands for."""
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


def tokenize(text: str) -> list[ExpressionToken]:
    """Return all words of an expression, the last of kind `end`; raise a SettingError for what is no word."""
    if len(text) > LONGEST_EXPRESSION:
        raise SettingError(
            f"the expression is too long: {len(text):,} characters, {LONGEST_EXPRESSION:,} at most"
        )
    tokens: list[ExpressionToken] = []
    place = 0
    while not tokens or tokens[-1].kind != "end":
        found = _TOKEN.match(text, place)
        if found is None:
            raise _no_word(text, place)
        kind: Kind = found.lastgroup  # type: ignore[assignment]  # the groups are the kinds
        word = found[kind]
        keyword = word if kind == "sign" else word.lower() if kind == "name" else ""
        place = found.end()
        tokens.append(ExpressionToken(kind, word, place - len(word), place, keyword))
        if kind == "number" and (wrong := _WORD_CHARACTER.match(text, place)):
            raise _number_in_name(tokens[-1], text, wrong.end())
    return tokens


_WORD_CHARACTER = re.compile(r"[\w.]+")
_SPACE = re.compile(r"\s*")


def _no_word(text: str, place: int) -> SettingError:
    start = _SPACE.match(text, place).end()  # type: ignore[union-attr]  # matches anything
    character = text[start]
    if character in _CLOSERS:
        if text.startswith("``", start):
            return SettingError("a name in backticks is empty", offset=start)
        return SettingError(f"the {_CLOSERS[character]} that begins here has no end", offset=start)
    hint = _HINTS.get(character, "")
    return SettingError(f"unexpected character {character!r}{hint}", offset=start)


def _number_in_name(number: ExpressionToken, text: str, end: int) -> SettingError:
    word = text[number.start : end]
    hint = "" if "." in word else f"; a name that begins with a digit stands in backticks: `{word}`"
    return SettingError(f"'{word}' is not a number{hint}", offset=number.start)


_SPECIAL_NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def number_literal(text: str) -> Value:
    """Return an int, a float, or a Decimal when a float cannot keep all of the digits."""
    if text.isdecimal() and len(text) <= LONGEST_NUMBER:
        return int(text)
    return exact_number(text)


def typed_literal(kind: str, token: ExpressionToken) -> Literal:
    """`date '2026-01-31'`, `timestamp '2026-01-31T08:00'`, `number 'inf'`."""
    text = token.string.strip()
    value: Value
    if kind == "number":
        value = _SPECIAL_NUMBERS.get(text.lower())
        if value is None:
            value = read_number(text)
    else:
        value = read_date(text)
        if kind == "date" and isinstance(value, datetime):
            value = None
        if kind == "timestamp" and isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
    if value is None:
        raise SettingError(f"{token.text} is not a {kind}; write {_EXAMPLES[kind]}", offset=token.start)
    return Literal(token.start, value)


_EXAMPLES = {
    "date": "date '2026-01-31'",
    "timestamp": "timestamp '2026-01-31T08:30:00'",
    "number": "number '12.50'",
}


def write_literal(value: Value) -> str | None:
    """Return a value as an expression would have it: `x = literal` holds for it. None for relations."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Document):
        return "'" + str(value).replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat()}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, int | float | Decimal):
        return _write_number(value)
    return None


def _write_number(value: int | float | Decimal) -> str:
    if is_nan(value):
        return "number 'nan'"
    if value in (float("inf"), float("-inf")):
        return f"number '{'-' if value < 0 else ''}inf'"
    if isinstance(value, int) and value.bit_length() > 3000:
        return format(Decimal(value), "f")
    return repr(value) if not isinstance(value, Decimal) else str(value)


def write_name(name: str) -> str:
    """Return an attribute's name as an expression would have it, in backticks where it needs them."""
    plain = name.replace("-", "_")
    if plain.isidentifier() and not name.startswith("-") and name.lower() not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"
