"""Mistakes of a grammar as a whole: names that do not exist, and rules that call themselves first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from aioflow.errors import Suggestions
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
from aioflow.grammars.script.values import BUILT_IN, EFFECTS
from aioflow.grammars.syntax import (
    Binding,
    Choice,
    CodeBlock,
    Item,
    Predicate,
    Repetition,
    Rule,
    RuleCall,
    Terminals,
)
from aioflow.grammars.syntax import Sequence as ItemSequence
from aioflow.language.mistakes import Mistakes

_RULES_SHOWN = 10


def check_rules(
    rules: Sequence[Rule], functions: Mapping[str, Callable[..., Any]], mistakes: Mistakes, start: int = 0
) -> None:
    """Note every mistake that no rule has alone."""
    known: dict[str, Rule] = {}
    for rule in rules:
        if rule.name in known:
            line = mistakes.source.position(known[rule.name].offset)[0]
            mistakes.add(
                f"the rule '{rule.name}' is defined twice, first on line {line}",
                rule.offset,
                rule.offset + len(rule.name),
            )
        known.setdefault(rule.name, rule)
    if not rules and not mistakes:
        mistakes.add("the grammar has no rules; one begins with 'rule'", start)
    suggestions = Suggestions()
    for rule in rules:
        _check_calls(rule, known, suggestions, mistakes)
        _CodeCheck(rule, functions, suggestions, mistakes).check()
    _check_left_recursion(known, mistakes)


# --- items --------------------------------------------------------------------------------------


def parts_of(item: Item) -> tuple[Item, ...]:
    """Return the items directly inside an item."""
    if isinstance(item, ItemSequence):
        return item.items
    if isinstance(item, Choice):
        return item.alternatives
    if isinstance(item, Repetition | Binding | Predicate):
        return (item.item,)
    return ()


def items_within(item: Item) -> Iterator[Item]:
    """Yield an item and all items inside it, in the order of the text."""
    waiting = [item]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(parts_of(each)))


def _check_calls(rule: Rule, known: Collection[str], suggestions: Suggestions, mistakes: Mistakes) -> None:
    for item in items_within(rule.body):
        if isinstance(item, RuleCall) and item.name not in known:
            hint = suggestions(item.name, known)
            mistakes.add(f"unknown rule '{item.name}'{hint}", item.offset, item.offset + len(item.name))


# --- recursion ----------------------------------------------------------------------------------


def nullable_rules(rules: Mapping[str, Rule]) -> set[str]:
    """Return the rules that can match without a character."""
    return _least(rules, is_nullable)


def finishing_rules(rules: Mapping[str, Rule]) -> set[str]:
    """Return the rules that can end at all: the others call themselves on every way."""
    return _least(rules, _can_finish)


def _least(rules: Mapping[str, Rule], holds: Callable[[Item, set[str]], bool]) -> set[str]:
    """Return the least set of rules whose bodies hold, given the set itself."""
    callers: dict[str, list[str]] = {name: [] for name in rules}
    for name, rule in rules.items():
        for item in items_within(rule.body):
            if isinstance(item, RuleCall) and item.name in callers:
                callers[item.name].append(name)
    found: set[str] = set()
    waiting = list(rules)
    while waiting:
        name = waiting.pop()
        if name not in found and holds(rules[name].body, found):
            found.add(name)
            waiting.extend(callers[name])
    return found


def is_nullable(item: Item, rules: Collection[str]) -> bool:
    """Return whether an item can match without a character, given the rules that can."""
    if isinstance(item, Terminals):
        return not item.sets
    if isinstance(item, RuleCall):
        return item.name in rules
    if isinstance(item, Choice):
        return any(is_nullable(each, rules) for each in item.alternatives)
    if isinstance(item, Repetition) and item.sign != "+":
        return True
    return all(is_nullable(each, rules) for each in parts_of(item))


def _can_finish(item: Item, rules: Collection[str]) -> bool:
    if isinstance(item, RuleCall):
        return item.name in rules
    if isinstance(item, Choice):
        return any(_can_finish(each, rules) for each in item.alternatives)
    if isinstance(item, Repetition) and item.sign != "+":
        return True
    return all(_can_finish(each, rules) for each in parts_of(item))


def _first_calls(item: Item, nullable: Collection[str]) -> Iterator[RuleCall]:
    """Yield the calls that an item can make before it has consumed a character."""
    if isinstance(item, RuleCall):
        yield item
    elif isinstance(item, ItemSequence):
        for each in item.items:
            yield from _first_calls(each, nullable)
            if not is_nullable(each, nullable):
                return
    else:
        for each in parts_of(item):
            yield from _first_calls(each, nullable)


def _check_left_recursion(rules: Mapping[str, Rule], mistakes: Mistakes) -> None:
    nullable = nullable_rules(rules)
    calls = {
        name: [call for call in _first_calls(rule.body, nullable) if call.name in rules]
        for name, rule in rules.items()
    }
    cycles = _cycles({name: [call.name for call in found] for name, found in calls.items()})
    told: set[int] = set()
    for name in rules:
        for call in calls[name]:
            if cycles[name] == cycles[call.name] and cycles[name] not in told:
                told.add(cycles[name])
                mistakes.add(
                    f"left recursion: '{name}' calls itself before a character is consumed "
                    f"({_shown((name, *_way(call.name, name, calls)))})",
                    call.offset,
                    call.offset + len(call.name),
                )


def _shown(way: Sequence[str]) -> str:
    if len(way) > _RULES_SHOWN:
        way = [*way[: _RULES_SHOWN - 2], "…", way[-1]]
    return " -> ".join(way)


def _cycles(calls: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return a number for each rule: rules that reach each other have the same one (Kosaraju)."""
    callers: dict[str, list[str]] = {name: [] for name in calls}
    for name, called in calls.items():
        for each in called:
            callers[each].append(name)
    numbers: dict[str, int] = {}
    for number, start in enumerate(reversed(_ended(calls))):
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in numbers:
                numbers[name] = number
                waiting.extend(callers[name])
    return numbers


def _ended(calls: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the rules in the order in which a depth-first walk leaves them."""
    ended: list[str] = []
    entered: set[str] = set()
    for start in calls:
        waiting = [(start, False)]
        while waiting:
            name, leaves = waiting.pop()
            if leaves:
                ended.append(name)
            elif name not in entered:
                entered.add(name)
                waiting.append((name, True))
                waiting.extend((each, False) for each in calls[name])
    return ended


def _way(start: str, target: str, calls: Mapping[str, Sequence[RuleCall]]) -> list[str]:
    """Return the shortest chain of rules from one to another, both included; empty if there is none."""
    origins: dict[str, str] = {start: ""}
    waiting = [start]
    for name in waiting:
        if name == target:
            chain = [name]
            while origins[chain[-1]]:
                chain.append(origins[chain[-1]])
            return chain[::-1]
        for call in calls[name]:
            if call.name not in origins:
                origins[call.name] = name
                waiting.append(call.name)
    return []


# --- code ---------------------------------------------------------------------------------------


def assigned_variables(rule: Rule) -> dict[str, bool]:
    """Return the variables of a rule in the order of the text, and whether each only collects."""
    found: dict[str, bool] = {}
    for item in items_within(rule.body):
        if isinstance(item, Binding):
            found[item.variable] = found.get(item.variable, True) and item.collects
        elif isinstance(item, CodeBlock):
            for name in _assigned(item.block):
                found[name] = False
    return found


class RuleVariable(msgspec.Struct, frozen=True):
    """A variable of a rule: a list if it only `collects`.

    `rule` is the rule whose result is bound to it, wherever it is bound; empty if that is a text, or differs.
    `is_computed` if code assigns to it.
    """

    collects: bool
    rule: str
    is_computed: bool


def rule_variables(rule: Rule) -> dict[str, RuleVariable]:
    """Return the variables of a rule in the order of its text, as far as the text tells."""
    bound: dict[str, set[str]] = {}
    computed: set[str] = set()
    for item in items_within(rule.body):
        if isinstance(item, Binding):
            bound.setdefault(item.variable, set()).add(item.called)
        elif isinstance(item, CodeBlock):
            computed.update(_assigned(item.block))
    found = {}
    for name, collects in assigned_variables(rule).items():
        called = bound.get(name, set())
        found[name] = RuleVariable(collects, called.pop() if len(called) == 1 else "", name in computed)
    return found


def _assigned(block: Block) -> Iterator[str]:
    for action in block:
        if isinstance(action, SetVariable):
            yield action.name
        elif isinstance(action, SetMember) and isinstance(action.owner, ScriptVariable):
            yield action.owner.name
        elif isinstance(action, Conditional):
            yield from _assigned(action.then)
            yield from _assigned(action.otherwise)
        elif isinstance(action, Loop):
            yield from _assigned(action.body)


class _CodeCheck:
    """Names in the code and in the predicates of one rule."""

    def __init__(
        self,
        rule: Rule,
        functions: Mapping[str, Callable[..., Any]],
        suggestions: Suggestions,
        mistakes: Mistakes,
    ) -> None:
        self._rule = rule
        self._functions = {*functions, *BUILT_IN}
        self._variables = {*assigned_variables(rule), *([rule.result] if rule.result else [])}
        self._suggestions = suggestions
        self._mistakes = mistakes
        self._in_predicate = False

    def check(self) -> None:
        for item in items_within(self._rule.body):
            if isinstance(item, CodeBlock):
                self._in_predicate = False
                self._block(item.block, frozenset())
            elif isinstance(item, Predicate):
                self._in_predicate = True
                self._expression(item.condition, frozenset())

    def _block(self, block: Block, loops: frozenset[str]) -> None:
        for action in block:
            self._action(action, loops)

    def _action(self, action: Action, loops: frozenset[str]) -> None:
        if isinstance(action, Conditional):
            self._expression(action.test, loops)
            self._block(action.then, loops)
            self._block(action.otherwise, loops)
        elif isinstance(action, Loop):
            self._expression(action.values, loops)
            self._block(action.body, loops | {action.name})
        elif isinstance(action, Evaluation):
            self._expression(action.expression, loops)
        else:
            self._expression(action.value, loops)
            if isinstance(action, SetMember):
                self._expression(action.owner, loops)

    def _expression(self, expression: Expression, loops: frozenset[str]) -> None:
        waiting = [expression]
        while waiting:
            each = waiting.pop()
            if isinstance(each, ScriptVariable):
                self._variable(each, loops)
            elif isinstance(each, MatchedText) and not self._in_predicate:
                self._mistakes.add(
                    "'$$' has a meaning in the condition of 'accept' only", each.offset, each.offset + 2
                )
            elif isinstance(each, Invocation):
                self._invocation(each)
            waiting.extend(inner_expressions(each))

    def _variable(self, variable: ScriptVariable, loops: frozenset[str]) -> None:
        end = variable.offset + len(variable.name)
        if self._in_predicate:
            self._mistakes.add(
                f"'{variable.name}' is not known in a condition: variables are bound after the parse; "
                "the matched text is '$$'",
                variable.offset,
                end,
            )
        elif variable.name not in self._variables and variable.name not in loops:
            hint = self._suggestions(variable.name, self._variables | loops)
            self._mistakes.add(f"unknown variable '{variable.name}'{hint}", variable.offset, end)

    def _invocation(self, call: Invocation) -> None:
        end = call.offset + len(call.name)
        if call.owner is None and call.name not in self._functions:
            hint = self._suggestions(call.name, self._functions)
            self._mistakes.add(f"unknown function '{call.name}'{hint}", call.offset, end)
        elif self._in_predicate and call.name in EFFECTS:
            self._mistakes.add(f"a condition has no effects: '{call.name}' is for code", call.offset, end)


def inner_expressions(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly inside an expression."""
    if isinstance(expression, Binary):
        return (expression.left, expression.right)
    if isinstance(expression, Unary):
        return (expression.operand,)
    if isinstance(expression, Member):
        return (expression.owner,)
    if isinstance(expression, Element):
        return (expression.owner, expression.index)
    if isinstance(expression, Invocation):
        return (*((expression.owner,) if expression.owner else ()), *expression.arguments)
    assert isinstance(expression, Constant | ScriptVariable | MatchedText)
    return ()
