"""The winning path replayed: bindings, code and results of its rules, and for debugging a tree of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from aioflow.grammars.automaton import Operation, PathStep
from aioflow.grammars.checking import assigned_variables
from aioflow.grammars.errors import ScriptError
from aioflow.grammars.limits import TextWindow
from aioflow.grammars.matching import PathEvent
from aioflow.grammars.script.interpreter import FailedCode, Interpreter
from aioflow.grammars.syntax import Binding, CodeBlock, Rule
from aioflow.source import Source

SourceSpan: TypeAlias = tuple[int, int]


class BoundSpan(msgspec.Struct, frozen=True):
    """A variable with the value that was bound to it, and where the value stands in the source."""

    variable: str
    collects: bool
    value: Any
    start: int
    end: int


class RuleMatch(msgspec.Struct):
    """A rule with the part of the source that it matched, and all that happened inside."""

    rule: str
    start: int
    end: int = -1
    # What the rule skipped before its own body; a start rule may also skip after it.
    skipped: list[SourceSpan] = msgspec.field(default_factory=list)
    bindings: list[BoundSpan] = msgspec.field(default_factory=list)
    children: list[RuleMatch] = msgspec.field(default_factory=list)
    value: Any = None


class SettledRecord(msgspec.Struct, frozen=True):
    """A value that a `+=` of the start rule collected, which the rest of the source cannot change."""

    variable: str
    value: Any
    start: int
    end: int


class _OpenRule:
    """A call that has not ended on the replayed path."""

    __slots__ = ("match", "open_bindings", "result", "rule", "start", "tail", "variables")

    def __init__(
        self, rule: Rule, start: int, tail: tuple[PathStep, ...] | None, variables: dict[str, Any]
    ) -> None:
        self.rule = rule
        self.start = start
        self.tail = tail
        self.variables = variables
        self.open_bindings: list[int] = []
        # Value, start and end of the last call inside the open binding.
        self.result: tuple[Any, int, int] | None = None
        self.match: RuleMatch | None = None


class _RuleVariables(msgspec.Struct, frozen=True):
    """The variables of a rule in the order of its text, and those that only collect."""

    names: tuple[str, ...]
    collecting: tuple[str, ...]


class Replay:
    """Replays events in the order of the path; without `keeps` it forgets what was collected and skipped."""

    def __init__(
        self,
        window: TextWindow,
        grammar: Source,
        functions: Mapping[str, Callable[..., Any]],
        deadline: float,
        traces: bool = False,
        keeps: bool = True,
    ) -> None:
        self.interpreter = Interpreter(functions, deadline)
        self.skipped: list[SourceSpan] = []
        self.value: Any = None
        self.variables: dict[str, Any] = {}
        self.match: RuleMatch | None = None
        self.settled: list[SettledRecord] = []
        self._window = window
        self._grammar = grammar
        self._traces = traces
        self._keeps = keeps
        self._open: list[_OpenRule] = []
        self._skip_start = 0
        self._known: dict[str, _RuleVariables] = {}

    def advance(self, event: PathEvent) -> None:
        """Carry out the steps at one offset."""
        for step in event.steps:
            self._step(step, event.offset)

    def _step(self, step: PathStep, offset: int) -> None:
        operation, subject = step.operation, step.subject
        if operation is Operation.LEAVE:
            self._leave(offset)
        elif operation is Operation.SKIP:
            self._skip_start = offset
        elif operation is Operation.RESUME:
            self._resume(offset)
        elif operation is Operation.OPEN:
            self._open[-1].open_bindings.append(offset)
            self._open[-1].result = None
        elif isinstance(subject, Rule):
            self._enter(subject, step.tail, offset)
        elif isinstance(subject, Binding):
            self._bind(subject, offset)
        elif isinstance(subject, CodeBlock):
            self._run(subject, offset)

    # --- rules ----------------------------------------------------------------------------------

    def _variables_of(self, rule: Rule) -> _RuleVariables:
        known = self._known.get(rule.name)
        if known is None:
            found = assigned_variables(rule)
            collecting = tuple(name for name, only_collects in found.items() if only_collects)
            known = self._known[rule.name] = _RuleVariables(tuple(found), collecting)
        return known

    def _enter(self, rule: Rule, tail: tuple[PathStep, ...] | None, offset: int) -> None:
        variables: dict[str, Any] = {name: [] for name in self._variables_of(rule).collecting}
        entered = _OpenRule(rule, offset, tail, variables)
        if self._traces:
            entered.match = RuleMatch(rule.name, offset)
            outer = self._open[-1].match if self._open else None
            if outer is not None:
                outer.children.append(entered.match)
            else:
                self.match = entered.match
        self._open.append(entered)

    def _resume(self, offset: int) -> None:
        span = (self._skip_start, offset)
        self.skipped.append(span)
        # After the start rule, its remainder is skipped.
        match = self.match
        if self._open:
            self._open[-1].start = offset
            match = self._open[-1].match
        if match is not None:
            match.skipped.append(span)
            if self._open:
                match.start = offset

    def _leave(self, offset: int) -> None:
        while True:
            left = self._open.pop()
            value = self._value(left, offset)
            if left.match is not None:
                left.match.end, left.match.value = offset, value
            if not self._open:
                self.value, self.variables = value, left.variables
                return
            self._open[-1].result = (value, left.start, offset)
            if left.tail is None:
                return
            # The rule around ends with this call: the matcher went on behind both at once.
            for step in left.tail:
                self._step(step, offset)

    def _value(self, left: _OpenRule, offset: int) -> Any:
        rule = left.rule
        if not rule.result:
            if not self._keeps and not self._open:
                return None
            return self._text(left.start, offset)
        names = self._variables_of(rule).names
        if rule.result in names:
            return left.variables.get(rule.result)
        return {name: left.variables[name] for name in names if name in left.variables}

    def _text(self, start: int, end: int) -> str:
        """Return the text between two offsets without what was skipped."""
        pieces: list[str] = []
        for first, last in self.skipped[bisect_left(self.skipped, (start, start)) :]:
            pieces.append(self._window.slice(start, min(first, end)))
            start = last
        pieces.append(self._window.slice(start, end))
        return "".join(pieces)

    # --- bindings and code ----------------------------------------------------------------------

    def _bind(self, binding: Binding, offset: int) -> None:
        around = self._open[-1]
        start, end = around.open_bindings.pop(), offset
        if binding.called and around.result is not None:
            value, start, end = around.result
        else:
            value = self._text(start, offset)
        around.result = None
        settles = binding.collects and len(self._open) == 1
        if settles:
            self.settled.append(SettledRecord(binding.variable, value, start, end))
        if self._keeps or not settles:
            _assign(around.variables, binding, value)
        if around.match is not None:
            around.match.bindings.append(BoundSpan(binding.variable, binding.collects, value, start, end))

    def _run(self, code: CodeBlock, offset: int) -> None:
        around = self._open[-1]
        try:
            self.interpreter.run(code.block, around.variables)
        except FailedCode as failure:
            raise script_error(failure, self._grammar, around.rule.name, offset) from failure

    def forget(self) -> int:
        """Drop skipped spans that nothing open needs; return the offset before which no text is needed."""
        needed = self._window.end
        for depth, each in enumerate(self._open):
            if not each.rule.result and (depth or self._keeps):
                needed = min(needed, each.start)
            if each.open_bindings:
                needed = min(needed, each.open_bindings[0])
        if not self._keeps:
            del self.skipped[: bisect_left(self.skipped, (needed, needed))]
        return needed


def _assign(variables: dict[str, Any], binding: Binding, value: Any) -> None:
    if not binding.collects:
        variables[binding.variable] = value
        return
    known = variables.get(binding.variable, [])
    if not isinstance(known, list):
        known = [known]
    known.append(value)
    variables[binding.variable] = known


def script_error(failure: FailedCode, grammar: Source, rule: str, offset: int) -> ScriptError:
    """Return the error for code that failed, with its place in the grammar and in the source."""
    line, column = grammar.position(failure.place)
    return ScriptError(
        f"{grammar.name}:{line}:{column}: {failure.message}, at offset {offset:,} in the rule '{rule}'",
        offset,
        rule,
        line,
        column,
    )
