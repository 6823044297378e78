"""Expressions as frozen trees, as the parser makes them; names are not yet looked up.

Nodes are compared by identity only: nobody needs more, and classes without `__eq__` load faster.
"""

from __future__ import annotations

from dataclasses import field

from aioflow.dataclass import dataclass
from aioflow.relation import Value


@dataclass(frozen=True, eq=False)
class Node:
    """Part of an expression; `offset` is the place in its text that a message points at."""

    offset: int
    height: int = field(init=False, default=1, repr=False)

    def __post_init__(self) -> None:
        height = 1 + max((child.height for child in self.children), default=0)
        object.__setattr__(self, "height", height)

    @property
    def children(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Literal(Node):
    """A constant."""

    value: Value


@dataclass(frozen=True, eq=False)
class Name(Node):
    """An attribute; dots separate the parts: `left.zip`."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, eq=False)
class Negative(Node):
    """`-a`."""

    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, eq=False)
class Arithmetic(Node):
    """`a + b`, and likewise `-`, `*`, `/`, `//`, `%`."""

    sign: str
    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, eq=False)
class Comparison(Node):
    """`a = b`, and likewise `!=`, `<`, `<=`, `>`, `>=`; other spellings are already replaced."""

    sign: str
    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, eq=False)
class And(Node):
    """`a and b and …`, flat."""

    parts: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, eq=False)
class Or(Node):
    """`a or b or …`, flat."""

    parts: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, eq=False)
class Not(Node):
    """`not a`; the negative forms of `in`, `between`, `like` and `matches` are inside one as well."""

    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, eq=False)
class Concatenation(Node):
    """`a || b || …`, flat."""

    parts: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True, eq=False)
class In(Node):
    """`a in (b, …)`."""

    operand: Node
    choices: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand, *self.choices)


@dataclass(frozen=True, eq=False)
class Between(Node):
    """`a between low and high`."""

    operand: Node
    low: Node
    high: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Like(Node):
    """`a like pattern escape character`, or `ilike`."""

    operand: Node
    pattern: Node
    escape: Node | None
    ignore_case: bool

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand, self.pattern, *((self.escape,) if self.escape else ()))


@dataclass(frozen=True, eq=False)
class Matches(Node):
    """`a matches pattern`."""

    operand: Node
    pattern: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand, self.pattern)


@dataclass(frozen=True, eq=False)
class Is(Node):
    """`a is null`, `a is true`, `a is false`, or with `not`: `value` is None, True or False."""

    operand: Node
    value: bool | None
    negated: bool

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, eq=False)
class Case(Node):
    """`case when condition then result … else default end`; with a subject each `when` is compared to it."""

    subject: Node | None
    branches: tuple[tuple[Node, Node], ...]
    default: Node | None

    @property
    def children(self) -> tuple[Node, ...]:
        inside = [node for branch in self.branches for node in branch]
        return tuple(node for node in (self.subject, *inside, self.default) if node is not None)


@dataclass(frozen=True, eq=False)
class Call(Node):
    """`function(a, …)`; `star` is `count(*)`, `distinct` is for aggregate functions."""

    function: str
    arguments: tuple[Node, ...]
    distinct: bool = False
    star: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        return self.arguments


def names_in(*nodes: Node) -> tuple[Name, ...]:
    """Every name in the trees, in order of appearance."""
    found: list[Name] = []
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Name):
            found.append(node)
        waiting.extend(reversed(node.children))
    return tuple(found)
