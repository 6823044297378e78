"""Rules compiled to a nondeterministic automaton whose silent edges carry what the winner has to do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from aioflow.grammars.characters import ANY, FALLBACK_SPECIFICITY, Alphabet
from aioflow.grammars.checking import finishing_rules, is_nullable, items_within, nullable_rules
from aioflow.grammars.syntax import (
    Binding,
    Choice,
    CodeBlock,
    Item,
    Predicate,
    Prune,
    Repetition,
    Rule,
    RuleCall,
    Sequence,
    Terminals,
)

NODES_AT_MOST = 200_000


class Operation(IntEnum):
    """What happens at a place of the winning path; positions are between characters."""

    ENTER = 1
    LEAVE = 2
    SKIP = 3  # skipped characters begin
    RESUME = 4  # skipped characters end
    OPEN = 5  # the item of a binding begins
    BIND = 6  # the item of a binding ends
    RUN = 7  # a code block


class PathStep(NamedTuple):
    """An operation of the path with the rule, binding or code block that it concerns."""

    operation: Operation
    subject: Rule | Binding | CodeBlock | None = None
    # Of ENTER: the steps that follow the call if nothing but the end of its rule does.
    tail: tuple[PathStep, ...] | None = None


class NodeKind(IntEnum):
    CONSUME = 1
    SPLIT = 2
    STEP = 3
    CALL = 4
    RETURN = 5
    BEGIN = 6  # of a predicate
    ASK = 7
    PRUNE = 8
    ACCEPT = 9
    DEAD = 10


class AutomatonNode:
    """A node; the attributes in use depend on its kind."""

    __slots__ = (
        "bit",
        "following",
        "in_predicate",
        "inner",
        "kind",
        "predicate",
        "rule",
        "specificity",
        "step",
        "tail",
    )

    def __init__(self, kind: NodeKind, rule: Rule, *following: AutomatonNode) -> None:
        self.kind = kind
        self.rule = rule
        # In written order: the first is preferred. A call continues at the first, and enters `inner`.
        self.following: tuple[AutomatonNode, ...] = following
        self.inner: AutomatonNode | None = None
        self.in_predicate = False
        self.bit = 0
        self.specificity = 0
        self.step: PathStep | None = None
        self.predicate: Predicate | None = None
        self.tail: tuple[PathStep, ...] | None = None


class TooManyNodesError(Exception):
    """The grammar needs more nodes than the limit allows; `rule` is the one that was compiled."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.name)
        self.rule = rule


# Rules in `accept` skip nothing: they are compiled twice if they stand inside and outside.
_RuleForm: TypeAlias = tuple[str, bool]


class Automaton:
    """The nodes of all rules, each compiled when it is first entered."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self.rules = rules
        self.alphabet = Alphabet()
        for rule in rules.values():
            for item in items_within(rule.body):
                if isinstance(item, Terminals):
                    for each in item.sets:
                        self.alphabet.bit(each)
        self.any_bit = self.alphabet.bit(ANY)
        self._nullable = nullable_rules(rules)
        self._finishing = finishing_rules(rules)
        self._entries: dict[_RuleForm, AutomatonNode] = {}
        self._starts: dict[str, AutomatonNode] = {}
        self._count = 0

    def can_finish(self, name: str) -> bool:
        return name in self._finishing

    def start(self, name: str) -> AutomatonNode:
        """Return the node before a start rule and, unless it is strict, after it the remainder."""
        known = self._starts.get(name)
        if known is None:
            rule = self.rules[name]
            after = AutomatonNode(NodeKind.ACCEPT, rule)
            if not rule.is_strict:
                after = self._skipping(rule, after)
            call = self._call(rule, False, after)
            known = self._starts.setdefault(name, call)
        return known

    def _node(self, kind: NodeKind, rule: Rule, *following: AutomatonNode) -> AutomatonNode:
        self._count += 1
        if self._count > NODES_AT_MOST:
            raise TooManyNodesError(rule)
        return AutomatonNode(kind, rule, *following)

    def _step(self, rule: Rule, step: PathStep, following: AutomatonNode) -> AutomatonNode:
        node = self._node(NodeKind.STEP, rule, following)
        node.step = step
        return node

    def entry(self, name: str, in_predicate: bool) -> AutomatonNode:
        """Return the first node of a rule; it is known before its body, which may call the rule."""
        form = (name, in_predicate)
        known = self._entries.get(form)
        if known is not None:
            return known
        rule = self.rules[name]
        if name not in self._finishing:
            return self._entries.setdefault(form, self._node(NodeKind.DEAD, rule))
        first = self._entries[form] = self._node(NodeKind.SPLIT, rule)
        body = _BodyCompiler(self, rule, in_predicate).compiled(rule.body, self._node(NodeKind.RETURN, rule))
        if not rule.is_strict and not in_predicate:
            body = self._skipping(rule, body)
        first.following = (body,)
        return first

    def _skipping(self, rule: Rule, following: AutomatonNode) -> AutomatonNode:
        """Return nodes that skip as few characters as possible before `following`."""
        skipped = self._node(NodeKind.CONSUME, rule)
        skipped.bit, skipped.specificity = self.any_bit, FALLBACK_SPECIFICITY
        resume = self._step(rule, PathStep(Operation.RESUME, rule), following)
        skipped.following = (self._node(NodeKind.SPLIT, rule, resume, skipped),)
        begin = self._step(rule, PathStep(Operation.SKIP, rule), skipped)
        return self._node(NodeKind.SPLIT, rule, following, begin)

    def _call(self, called: Rule, in_predicate: bool, after: AutomatonNode) -> AutomatonNode:
        node = self._node(NodeKind.CALL, called, after)
        node.tail = _tail(after)
        node.step = PathStep(Operation.ENTER, called, node.tail)
        node.in_predicate = in_predicate
        return node

    def inner(self, call: AutomatonNode) -> AutomatonNode:
        """Return the first node of the rule that a node calls."""
        if call.inner is None:
            assert call.rule is not None  # a call knows its rule
            call.inner = self.entry(call.rule.name, call.in_predicate)
        return call.inner

    def compile_all(self) -> None:
        """Compile every rule, so that a grammar that is too large is found at once."""
        in_predicates = any(
            isinstance(item, Predicate) for rule in self.rules.values() for item in items_within(rule.body)
        )
        for name in self.rules:
            self.entry(name, False)
            if in_predicates:
                self.entry(name, True)

    def is_nullable(self, item: Item) -> bool:
        return is_nullable(item, self._nullable)


def _tail(after: AutomatonNode) -> tuple[PathStep, ...] | None:
    """Return the steps from a node to the end of its rule if there is no choice on the way."""
    steps: list[PathStep] = []
    node = after
    while node.kind in (NodeKind.STEP, NodeKind.SPLIT) and len(node.following) == 1:
        if node.step is not None:
            steps.append(node.step)
        node = node.following[0]
    return tuple(steps) if node.kind is NodeKind.RETURN else None


class _BodyCompiler:
    """Compiles items backwards: each gets the node that follows it."""

    def __init__(self, automaton: Automaton, rule: Rule, in_predicate: bool) -> None:
        self._automaton = automaton
        self._rule = rule
        self._in_predicate = in_predicate

    def compiled(self, item: Item, after: AutomatonNode) -> AutomatonNode:
        """Return the first node of an item."""
        if isinstance(item, Terminals):
            return self._terminals(item, after)
        if isinstance(item, Sequence):
            for each in reversed(item.items):
                after = self.compiled(each, after)
            return after
        if isinstance(item, Choice):
            ways = [self.compiled(each, after) for each in item.alternatives]
            return self._node(NodeKind.SPLIT, *ways)
        if isinstance(item, Repetition):
            return self._repetition(item, after)
        if isinstance(item, RuleCall):
            called = self._automaton.rules[item.name]
            return self._automaton._call(called, self._in_predicate, after)
        return self._with_steps(item, after)

    def _with_steps(self, item: Item, after: AutomatonNode) -> AutomatonNode:
        if isinstance(item, Binding):
            bind = self._automaton._step(self._rule, PathStep(Operation.BIND, item), after)
            return self._automaton._step(
                self._rule, PathStep(Operation.OPEN, item), self.compiled(item.item, bind)
            )
        if isinstance(item, CodeBlock):
            return self._automaton._step(self._rule, PathStep(Operation.RUN, item), after)
        if isinstance(item, Predicate):
            return self._predicate(item, after)
        assert isinstance(item, Prune)
        return self._node(NodeKind.PRUNE, after)

    def _node(self, kind: NodeKind, *following: AutomatonNode) -> AutomatonNode:
        return self._automaton._node(kind, self._rule, *following)

    def _terminals(self, item: Terminals, after: AutomatonNode) -> AutomatonNode:
        for characters in reversed(item.sets):
            node = self._node(NodeKind.CONSUME, after)
            node.bit = self._automaton.alphabet.bit(characters)
            node.specificity = characters.size
            after = node
        return after

    def _repetition(self, item: Repetition, after: AutomatonNode) -> AutomatonNode:
        if item.sign == "?":
            return self._node(NodeKind.SPLIT, self.compiled(item.item, after), after)
        head = self._node(NodeKind.SPLIT)
        body = self.compiled(item.item, head)
        # A closure visits a node once: an iteration that comes back to `head` without a character ends there.
        head.following = (body, after)
        if item.sign == "*":
            return head
        if self._automaton.is_nullable(item.item):
            # Only the first iteration may be empty, so it has nodes of its own, also on the stack.
            return self.compiled(item.item, self._node(NodeKind.SPLIT, head))
        return body

    def _predicate(self, item: Predicate, after: AutomatonNode) -> AutomatonNode:
        ask = self._node(NodeKind.ASK, after)
        ask.predicate = item
        inside = _BodyCompiler(self._automaton, self._rule, True)
        return self._node(NodeKind.BEGIN, inside.compiled(item.item, ask))
