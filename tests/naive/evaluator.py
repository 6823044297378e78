"""Plans on whole relations: what each variable holds in the end, which signals were sent, what failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aioflow.plan import Option, ParameterReference, Plan, Program, Setting, Statement, Variable, Word
from aioflow.relation import Relation, Schema, identity
from tests.naive.bag import Bag
from tests.naive.marks import PARTIAL, WHOLE, Range, one_of, united
from tests.naive.operators import OPERATORS, Failed, Known, UndecidedError, Work

MOST_ROWS = 3000
MOST_CALLS = 400
UNIVERSAL = ("workers", "ordered", "buffer", "whole")
ERROR_NAMES = ("error", "error-kind", "attempts")
CALL_ERROR_NAMES = ("where", "tuple", *ERROR_NAMES)


@dataclass(frozen=True)
class Failure:
    """What failed inside a call and was not taken there."""

    where: str
    failed: Failed


@dataclass
class Shortest:
    """Where ONCE and MAX_DEPTH meet: the level at which each value of a plan is worked on.

    Levels are found one after the other, each by evaluating the whole recursion as far as levels are known:
    `beyond` are the values that came up to no known level, with the first at which they came.
    """

    level: dict[tuple[str, Hashable], int] = field(default_factory=dict)
    beyond: dict[tuple[str, Hashable], int] = field(default_factory=dict)

    def learn(self) -> None:
        """Of the values that came up those are certain that no shorter way can lead to."""
        lowest = min(self.beyond.values())
        self.level.update({value: level for value, level in self.beyond.items() if level == lowest})
        self.beyond = {}


@dataclass(frozen=True)
class Recursion:
    """What the calls of one recursion share or count: from the outermost call of its plans on."""

    depth: Mapping[str, int] = field(default_factory=dict)
    seen: dict[str, set[Hashable]] = field(default_factory=dict)
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    level: int = 0
    shortest: Shortest | None = None

    def enter(self, key: str, parameters: Mapping[str, Any]) -> Recursion:
        depth = {**self.depth, key: self.depth.get(key, 0) + 1}
        kept = {**self.kept, key: parameters}
        return replace(self, depth=depth, kept=kept, level=self.level + 1)


@dataclass(frozen=True)
class Bound:
    """A statement with its settings in place; `target` is the plan if it is a call."""

    statement: Statement
    target: Plan | None
    inputs: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def is_vouched_for(self) -> bool:
        return any(option.name.lower() == "whole" for option in self.statement.options)


@dataclass(frozen=True)
class Sent:
    """What became of a signal; `marks` of one that never came say whether something was missing."""

    came: bool
    marks: Range = WHOLE
    after: frozenset[int] = frozenset()


@dataclass
class Ended:
    """How a statement or call ended; `failure_marks` tell whether failures may be missing."""

    outputs: list[Bag]
    failures: list[Failure] = field(default_factory=list)
    dead: bool = False
    fired: bool = False
    failure_marks: Range = WHOLE
    after: frozenset[int] = frozenset()  # all writes that came before its end

    @property
    def failed_as_a_whole(self) -> bool:
        return any(failure.failed.whole for failure in self.failures)


class Evaluator:
    """Evaluates the plans of one program; `seen` counts what happened on the way."""

    def __init__(self, program: Program, operators: Mapping[str, Known] = OPERATORS) -> None:
        self.program = program
        self.operators = operators
        self.seen: Counter[str] = Counter()
        self.calls = 0
        self.failed = False
        self._reach = {plan.key: self._reachable(plan) for plan in program}
        self._shapes: dict[Hashable, list[tuple[str, ...] | None]] = {}

    def run(self, inputs: Mapping[str, Bag], parameters: Mapping[str, Any] | None = None) -> dict[str, Bag]:
        """The outputs of the main plan by name; `failed` tells whether the run ends with an error."""
        main = self.program.main
        given = [inputs[declaration.name] for declaration in main.inputs]
        values = self.parameters_of(main, parameters or {})
        ended = self.outermost(main, given, values)
        self.failed |= bool(ended.failures)
        if self.failed:
            self.seen["happened: run failed"] += 1
        return dict(zip((output.name for output in main.outputs), ended.outputs, strict=True))

    def outermost(self, plan: Plan, inputs: Sequence[Bag], values: Mapping[str, Any]) -> Ended:
        """A call from outside of the recursion that its plan may belong to."""
        if not self._is_levelled(plan):
            recursion = Recursion().enter(plan.key, values)
            return self.call(plan, self.entering(plan, inputs, recursion), values, recursion)
        before = self.seen.copy(), self.failed, self.calls
        shortest = Shortest()
        while True:
            self.seen, self.failed, self.calls = before[0].copy(), *before[1:]
            recursion = Recursion(shortest=shortest).enter(plan.key, values)
            ended = self.call(plan, self.entering(plan, inputs, recursion), values, recursion)
            if not shortest.beyond:
                self.seen["happened: levels in turn"] += 1
                return ended
            shortest.learn()

    def _is_levelled(self, plan: Plan) -> bool:
        """Whether ONCE and MAX_DEPTH meet in the recursion of a plan."""
        reached = [self.program.by_name[key] for key in self._reach[plan.key]]
        around = [each for each in reached if plan.key in self._reach[each.key]]
        return any(each.once is not None for each in around) and any(
            each.max_depth is not None for each in around
        )

    def entering(
        self, plan: Plan, inputs: Sequence[Bag], recursion: Recursion, passed: frozenset[int] | None = None
    ) -> list[Bag]:
        """The inputs of a call without the tuples whose ONCE value another call works on."""
        if passed is None:
            passed = frozenset(place for place in range(len(inputs)) if self._comes_back(plan.key, place))
        if plan.once is None:
            return list(inputs)
        names = [name.strip() for name in plan.once.split(",")]
        return [
            bag
            if place in passed or not set(names) <= set(bag.names or ())
            else _fresh(bag, names, plan, recursion)
            for place, bag in enumerate(inputs)
        ]

    # --- inputs that are only handed down ---

    def handed_down(self, caller: Plan, bound: Bound, callee: Plan) -> frozenset[int]:
        """The inputs of a recursive call that are inputs of the caller and come back to it unchanged."""
        own = [declaration.name for declaration in caller.inputs]
        return frozenset(
            place
            for place, name in enumerate(bound.inputs)
            if name in own and self._comes_back(caller.key, own.index(name))
        )

    def _comes_back(self, key: str, place: int) -> bool:
        """Whether recursive calls can bring an input of a plan back to itself without changing it."""
        found: set[tuple[str, int]] = set()
        pending = self._given_on(key, place)
        while pending:
            node = pending.pop()
            if node not in found:
                found.add(node)
                pending |= self._given_on(*node)
        return (key, place) in found

    def _given_on(self, key: str, place: int) -> set[tuple[str, int]]:
        plan = self.program.by_name[key]
        found = set()
        for statement in plan.statements:
            callee = statement.operator.lower()
            if callee in self.operators or not self.is_recursive(plan, self.program.by_name[callee]):
                continue
            given = [argument.name for argument in statement.arguments if isinstance(argument, Variable)]
            name = plan.inputs[place].name
            found |= {(callee, port) for port, argument in enumerate(given) if argument == name}
        return found

    def call(
        self, plan: Plan, inputs: Sequence[Bag], values: Mapping[str, Any], recursion: Recursion
    ) -> Ended:
        """One call of a plan, whatever made it."""
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise UndecidedError(f"more than {MOST_CALLS} calls")
        return _Call(self, plan, inputs, values, recursion).ended()

    # --- the call graph and parameters ---

    def _callees(self, plan: Plan) -> set[str]:
        names = {statement.operator.lower() for statement in plan.statements}
        return {name for name in names if name not in self.operators}

    def _reachable(self, plan: Plan) -> set[str]:
        found: set[str] = set()
        pending = self._callees(plan)
        while pending:
            key = pending.pop()
            if key not in found:
                found.add(key)
                pending |= self._callees(self.program.by_name[key])
        return found

    def is_recursive(self, caller: Plan, callee: Plan) -> bool:
        return caller.key in self._reach[callee.key]

    def parameters_of(self, plan: Plan, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            parameter.name.lower(): given.get(parameter.name.lower(), parameter.default)
            for parameter in plan.parameters
        }

    def bind(self, statement: Statement, values: Mapping[str, Any]) -> Bound:
        """A statement of a plan whose parameters have these values."""
        key = statement.operator.lower()
        target = None if key in self.operators else self.program.by_name[key]
        if target is None:
            positional: Sequence[str] = self.operators[key].settings
        else:
            positional = [parameter.name.lower() for parameter in target.parameters]
        settings: dict[str, Any] = {}
        constants = [argument for argument in statement.arguments if isinstance(argument, Setting)]
        for place, constant in enumerate(constants):
            name = constant.name.lower() if constant.name is not None else positional[place]
            settings[name] = _substitute(constant.value, values)
        for option in statement.options:
            if option.name.lower() not in UNIVERSAL:
                settings[option.name.lower()] = _option_value(option, values)
        inputs = tuple(argument.name for argument in statement.arguments if isinstance(argument, Variable))
        return Bound(statement, target, inputs, settings)

    # --- names of attributes where there are no tuples to tell ---

    def error_names(self, bound: Bound, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The attributes of an ERRORS variable."""
        if bound.target is not None:
            return CALL_ERROR_NAMES
        if self.operators[bound.statement.operator.lower()].fails_by_tuple(len(bound.inputs)):
            kept = [name for name in given or () if name not in ERROR_NAMES]
            return None if given is None else (*kept, *ERROR_NAMES)
        return ("relation", *ERROR_NAMES)

    def shape(
        self, plan: Plan, inputs: Sequence[tuple[str, ...] | None], values: Mapping[str, Any]
    ) -> list[tuple[str, ...] | None]:
        """The attributes of a plan's outputs."""
        key = (plan.key, tuple(inputs), tuple(sorted(map(repr, values.items()))))
        if key not in self._shapes:
            self._shapes[key] = [None] * len(plan.outputs)
            while True:
                found = _Shaping(self, plan, inputs, values).outputs()
                if found == self._shapes[key]:
                    break
                self._shapes[key] = found
        return self._shapes[key]


def _option_value(option: Option, values: Mapping[str, Any]) -> Any:
    if not option.values:
        return True
    value = option.values[0]
    return value.text if isinstance(value, Word) else _substitute(value, values)


def _substitute(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, ParameterReference):
        return values[value.name.lower()]
    if isinstance(value, str):
        return re.sub(r"\$\{([\w-]+)\}", lambda match: str(values[match[1].lower()]), value)
    return value


def _fresh(bag: Bag, names: Sequence[str], plan: Plan, recursion: Recursion) -> Bag:
    """The tuples whose ONCE value is new in this recursion, and at its level."""
    places = [bag.known.index(name) for name in names] if bag.rows else []
    seen = recursion.seen.setdefault(plan.key, set())
    fresh = []
    for row in bag.rows:
        key = identity(tuple(row[place] for place in places))
        if key not in seen and _has_turn((plan.key, key), plan, recursion):
            seen.add(key)
            fresh.append(row)
    return replace(bag, rows=tuple(fresh))


def _has_turn(value: tuple[str, Hashable], plan: Plan, recursion: Recursion) -> bool:
    shortest = recursion.shortest
    if shortest is None:
        return True
    if recursion.level == 1:
        shortest.level.setdefault(value, 1)
    known = shortest.level.get(value)
    if known is not None:
        return known == recursion.level
    if plan.max_depth is not None and recursion.depth[plan.key] > plan.max_depth:
        return True  # to be cut off
    shortest.beyond[value] = min(recursion.level, shortest.beyond.get(value, recursion.level))
    return False


class _Call:
    """The evaluation of one call of a plan."""

    def __init__(
        self,
        evaluator: Evaluator,
        plan: Plan,
        inputs: Sequence[Bag],
        values: Mapping[str, Any],
        recursion: Recursion,
    ) -> None:
        self.evaluator = evaluator
        self.seen = evaluator.seen
        self.plan = plan
        self.values = values
        self.recursion = recursion
        names = [declaration.name for declaration in plan.inputs]
        self.bags = dict(zip(names, inputs, strict=True))
        self.signals: dict[str, Sent] = {}
        self.failures: list[Failure] = []
        self.failure_marks = WHOLE
        self.after: frozenset[int] = frozenset()

    def ended(self) -> Ended:
        pending = list(self.plan.statements)
        while pending:
            ready = [statement for statement in pending if self._is_ready(statement)]
            assert ready, f"a cycle in {self.plan.name}"
            for statement in ready:
                self._evaluate(statement)
                pending.remove(statement)
        outputs = [self.bags[output.name] for output in self.plan.outputs]
        fired = any(bag.rows for bag in outputs)
        return Ended(outputs, self.failures, fired=fired, failure_marks=self.failure_marks, after=self.after)

    def _is_ready(self, statement: Statement) -> bool:
        known = self.bags.keys() | self.signals.keys()
        needed = [argument.name for argument in statement.arguments if isinstance(argument, Variable)]
        return known >= {*needed, *(waited.name for waited in statement.wait)}

    def _evaluate(self, statement: Statement) -> None:
        bound = self.evaluator.bind(statement, self.values)
        target = bound.target
        waited = [self._awaited(each.name) for each in statement.wait]
        after = frozenset[int]().union(*(signal.after for signal in waited))
        inputs = [self.bags[name] for name in bound.inputs]
        inputs = [replace(bag, after=bag.after | after) for bag in inputs]
        reasons = self._reasons_not_to_fire(bound, inputs, waited)
        if reasons:
            self._settle(bound, self._dead(bound, inputs, one_of(reasons)), inputs)
            return
        if any(bag.dead for bag in inputs):
            self.seen["happened: dead input beside a live one"] += 1
        if target is None:
            ended = self._operator(bound, [bag.revived() for bag in inputs], after)
        else:
            ended = self._subplan(bound, target, inputs)
        self._settle(bound, ended, inputs)

    def _awaited(self, name: str) -> Sent:
        """What became of a signal, or of a variable whose first tuple is waited for."""
        if name in self.signals:
            return self.signals[name]
        bag = self.bags[name]
        return Sent(bool(bag.rows), bag.marks, bag.after)

    def _reasons_not_to_fire(
        self, bound: Bound, inputs: Sequence[Bag], waited: Sequence[Sent]
    ) -> list[Range]:
        """The marks of each reason: signals and tuples that never came, and inputs that are all dead."""
        reasons = [signal.marks for signal in waited if not signal.came]
        self.seen["happened: WAIT that never came"] += bool(reasons)
        if inputs and all(bag.dead for bag in inputs):
            reasons.append(self._marks_of_inputs(bound, inputs))
        return reasons

    def _marks_of_inputs(self, bound: Bound, inputs: Sequence[Bag]) -> Range:
        """What a statement that did not fire knows; a recursion does not wait for what it only hands down."""
        handed_down: frozenset[int] = frozenset()
        if bound.target is not None and self.evaluator.is_recursive(self.plan, bound.target):
            handed_down = self.evaluator.handed_down(self.plan, bound, bound.target)
        return united(
            bag.marks.or_less if place in handed_down else bag.marks for place, bag in enumerate(inputs)
        )

    def _dead(self, bound: Bound, inputs: Sequence[Bag], marks: Range) -> Ended:
        self.seen["happened: dead statement"] += 1
        shape = _Shaping(self.evaluator, self.plan, (), self.values)
        names = shape.statement(bound, [bag.names for bag in inputs], self.recursion)
        outputs = [Bag(each, (), dead=True, marks=marks) for each in names]
        return Ended(outputs, dead=True, failure_marks=marks)

    def _operator(self, bound: Bound, inputs: list[Bag], after: frozenset[int]) -> Ended:
        operator = self.evaluator.operators[bound.statement.operator.lower()]
        work = Work(inputs, bound.settings, after=after.union(*(bag.after for bag in inputs)))
        outputs = operator.evaluate(work)
        if any(len(bag.rows) > MOST_ROWS for bag in outputs):
            raise UndecidedError(f"more than {MOST_ROWS} rows")
        self.seen.update(f"happened: {each}" for each in work.happened)
        failures = [Failure(self._where(bound.statement), failed) for failed in work.failed]
        told = operator.marks(work, len(outputs))
        lacking = PARTIAL if any(failed.lacks_rows for failed in work.failed) else WHOLE
        is_sorted = operator.is_sorted(work)
        after = work.after | work.wrote
        outputs = [
            replace(bag, marks=marks | lacking, is_sorted=is_sorted, after=after)
            for bag, marks in zip(outputs, told, strict=True)
        ]
        ended = Ended(outputs, failures, failure_marks=one_of(told), after=after)
        if operator.firing == "tuple":
            ended.fired = work.firings > 0
        elif operator.firing == "start" or operator.fires_at_end(bound.settings):
            ended.fired = not ended.failed_as_a_whole
        else:
            ended.fired = any(bag.rows for bag in inputs) and not ended.failed_as_a_whole
        return ended

    def _where(self, statement: Statement) -> str:
        span = statement.name_span
        assert span is not None, "a plan that was read from a text"
        return f"{span.place}: {statement.operator}"

    # --- calls ---

    def _subplan(self, bound: Bound, plan: Plan, inputs: list[Bag]) -> Ended:
        if not self.evaluator.is_recursive(self.plan, plan):
            self.seen["happened: call"] += 1
            return self.evaluator.outermost(plan, inputs, self.evaluator.parameters_of(plan, bound.settings))
        kept = self.recursion.kept.get(plan.key, {})
        values = self.evaluator.parameters_of(plan, {**kept, **bound.settings})
        recursion = self.recursion.enter(plan.key, values)
        handed_down = self.evaluator.handed_down(self.plan, bound, plan)
        inputs = self.evaluator.entering(plan, inputs, recursion, handed_down)
        if not any(bag.rows for place, bag in enumerate(inputs) if place not in handed_down):
            self.seen["happened: recursion that ended"] += 1
            if any(bag.rows for bag in inputs):
                self.seen["happened: input only handed down"] += 1
            return self._dead(bound, inputs, self._marks_of_inputs(bound, inputs))
        if plan.max_depth is not None and recursion.depth[plan.key] > plan.max_depth:
            if plan.stop_at_max_depth:
                self.seen["happened: MAX_DEPTH stop"] += 1
                return self._dead(bound, inputs, WHOLE)  # the bound defines the whole
            self.evaluator.failed = True
            return self._dead(bound, inputs, WHOLE)
        self.seen["happened: recursive call"] += 1
        return self.evaluator.call(plan, inputs, values, recursion)

    # --- what a statement leaves behind ---

    def _settle(self, bound: Bound, ended: Ended, inputs: Sequence[Bag]) -> None:
        statement = bound.statement
        outputs = ended.outputs
        if bound.is_vouched_for:
            self._count_vouched(outputs)
            outputs = [replace(bag, marks=WHOLE) for bag in outputs]
        for variable, bag in zip(statement.outputs, outputs, strict=False):
            self.bags[variable.name] = bag
        if statement.errors is None:
            self.failures += ended.failures
            self.failure_marks |= ended.failure_marks
        else:
            self._take_errors(bound, ended, inputs)
        self.after |= ended.after
        marks = self._marks_of_signals(bound, outputs)
        for signal in statement.enable:
            self.signals[signal.name] = Sent(ended.fired, marks, ended.after)
        for signal in statement.done:  # whose failures were taken, has ended well
            self.signals[signal.name] = Sent(not ended.dead, marks, ended.after)

    def _marks_of_signals(self, bound: Bound, outputs: Sequence[Bag]) -> Range:
        """Why a signal might have come; of null only one output tells, and which is its affair."""
        marks = [bag.marks for bag in outputs]
        return united(marks) if bound.target is not None else one_of(marks)

    def _count_vouched(self, outputs: Sequence[Bag]) -> None:
        self.seen["happened: marks that somebody vouched for"] += any(bag.marks != WHOLE for bag in outputs)

    def _take_errors(self, bound: Bound, ended: Ended, inputs: Sequence[Bag]) -> None:
        call = bound.target is not None
        for failure in ended.failures:
            kind = "call" if call else "whole relation" if failure.failed.whole else "tuple"
            self.seen[f"happened: {kind} failure taken"] += 1
            self.seen["happened: absence taken"] += not failure.failed.lacks_rows
        errors = bound.statement.errors
        if isinstance(errors, Variable):
            names = self.evaluator.error_names(bound, inputs[0].names if inputs else ())
            rows = tuple(_error_row(failure, call) for failure in ended.failures)
            marks = ended.failure_marks
            self.bags[errors.name] = Bag(names, rows, dead=ended.dead, marks=marks, after=ended.after)


def _error_row(failure: Failure, call: bool) -> tuple[Any, ...]:
    failed = failure.failed
    about = (str(failed.error), type(failed.error).__name__, 1)
    packed = Relation(Schema(failed.names), list(failed.rows))
    if call:
        return (failure.where, packed, *about)
    if failed.whole:
        return (packed, *about)
    kept = [
        value for name, value in zip(failed.names, failed.rows[0], strict=True) if name not in ERROR_NAMES
    ]
    return (*kept, *about)


class _Shaping:
    """The attributes of every variable of a plan, as far as the text tells."""

    def __init__(
        self,
        evaluator: Evaluator,
        plan: Plan,
        inputs: Sequence[tuple[str, ...] | None],
        values: Mapping[str, Any],
    ) -> None:
        self.evaluator = evaluator
        self.plan = plan
        self.values = values
        names = [declaration.name for declaration in plan.inputs]
        self.names: dict[str, tuple[str, ...] | None] = dict(zip(names, inputs, strict=False))

    def outputs(self) -> list[tuple[str, ...] | None]:
        pending = list(self.plan.statements)
        while pending:
            rest = [statement for statement in pending if not self._shaped(statement)]
            assert len(rest) < len(pending), f"a cycle in {self.plan.name}"
            pending = rest
        return [self.names[output.name] for output in self.plan.outputs]

    def _shaped(self, statement: Statement) -> bool:
        bound = self.evaluator.bind(statement, self.values)
        if not all(name in self.names for name in bound.inputs):
            return False
        given = [self.names[name] for name in bound.inputs]
        found = self.statement(bound, given, Recursion().enter(self.plan.key, self.values))
        for variable, names in zip(statement.outputs, found, strict=False):
            self.names[variable.name] = names
        if isinstance(statement.errors, Variable):
            first = given[0] if given else ()
            self.names[statement.errors.name] = self.evaluator.error_names(bound, first)
        return True

    def statement(
        self,
        bound: Bound,
        inputs: Sequence[tuple[str, ...] | None],
        recursion: Recursion,
    ) -> list[tuple[str, ...] | None]:
        """The attributes of a statement's outputs."""
        target = bound.target
        if target is None:
            operator = self.evaluator.operators[bound.statement.operator.lower()]
            bags = operator.evaluate(Work([Bag(names) for names in inputs], bound.settings, only_names=True))
            return [bag.names for bag in bags]
        recursive = self.evaluator.is_recursive(self.plan, target)
        kept = recursion.kept.get(target.key, {}) if recursive else {}
        values = self.evaluator.parameters_of(target, {**kept, **bound.settings})
        return self.evaluator.shape(target, inputs, values)
