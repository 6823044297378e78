"""A statement made ready to run, and its settings bound to the actual schemas of its inputs.

The results of a tail call, which is a recursive call, may go straight to the outermost call. They are results
of the plan itself, or reach them only through merging statements (unions, all of one kind); the merging
statement of the outermost call then does the work of all of these.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import msgspec

from aioflow.authoring.context import Position
from aioflow.authoring.operator import BatchFunction, Firing, Operator
from aioflow.compiler.callgraph import CallGraph
from aioflow.compiler.parameters import ParameterScope
from aioflow.compiler.resolution import Resolved
from aioflow.compiler.wiring import Wiring, downstream
from aioflow.errors import SettingError, UntoldAttributeError
from aioflow.plan import Plan
from aioflow.relation import Schema


class Path(msgspec.Struct, frozen=True):
    """The way from an output of a call to an output of the plan, through merging statements of one key."""

    output: int
    key: Hashable | None  # None: it is the output itself


class MergedOutputs(msgspec.Struct, frozen=True):
    """The ways of a tail call's outputs; None for one that is not needed."""

    paths: tuple[Path | None, ...]

    def enclosing(self, around: Mapping[int, Hashable]) -> tuple[tuple[int, Hashable], ...]:
        """Return the outputs of the called plan that go into merging statements."""
        found = []
        for number, path in enumerate(self.paths):
            key = None if path is None else path.key if path.key is not None else around.get(path.output)
            if key is not None:
                found.append((number, key))
        return tuple(found)


class TailCalls:
    """The tail calls and mergeable statements of one plan."""

    def __init__(self, plan: Plan, statements: Sequence[Resolved], calls: CallGraph) -> None:
        self._plan = plan
        self._statements = statements
        self._calls = calls
        self._uses: dict[str, list[int]] = {}
        self._outputs: dict[str, list[int]] = {}
        for number, statement in enumerate(statements):
            for name in (*statement.inputs, *statement.wait):
                self._uses.setdefault(name, []).append(number)
        for number, output in enumerate(plan.outputs):
            self._outputs.setdefault(output.name, []).append(number)

    def of(self, number: int) -> MergedOutputs | None:
        """Return the ways of a statement's outputs if it is a tail call."""
        call = self._statements[number]
        if not isinstance(call.target, Plan) or not self._calls.is_recursive(self._plan, call.target):
            return None
        if call.enable or call.done or call.errors or call.skip_errors or call.ordered or call.whole:
            return None
        paths: list[Path | None] = []
        for name in call.outputs:
            path = self._path(name) if name is not None else None
            if path is None and name is not None:
                return None
            paths.append(path)
        return MergedOutputs(tuple(paths))

    def merged_into(self, enclosing: Mapping[int, Hashable]) -> dict[int, int]:
        """Statements that do nothing but merge for an output that is merged again outside: by number."""
        merged = {}
        for number, statement in enumerate(self._statements):
            key = self._merging_key(statement)
            path = self._path(statement.outputs[0]) if key is not None and statement.outputs[0] else None
            if path is not None and path.key in (None, key) and enclosing.get(path.output) == key:
                merged[number] = path.output
        return merged

    def _path(self, name: str) -> Path | None:
        """Return the path of a variable, if it leads only to one output of the plan through merging
        statements.
        """
        key: Hashable | None = None
        for _ in range(len(self._statements) + 1):
            uses, outputs = self._uses.get(name, []), self._outputs.get(name, [])
            if len(outputs) == 1 and not uses:
                return Path(outputs[0], key)
            if outputs or len(uses) != 1:
                return None
            statement = self._statements[uses[0]]
            merging = self._merging_key(statement)
            if merging is None or (key is not None and merging != key) or statement.outputs[0] is None:
                return None
            key, name = merging, statement.outputs[0]
        return None

    def _merging_key(self, statement: Resolved) -> Hashable | None:
        target = statement.target
        if not isinstance(target, Operator) or target.flattens is None:
            return None
        signals = statement.wait or statement.enable or statement.done
        if signals or statement.errors or statement.skip_errors or statement.ordered or statement.whole:
            return None
        return target.flattens(statement.settings)


Schemas: TypeAlias = tuple[Schema | None, ...]


class Counted(Protocol):
    """Counts of a setting at work, such as divisions by zero."""

    def take(self) -> Mapping[str, int]: ...


class Bound(msgspec.Struct, frozen=True):
    """A step's settings and output schemas for certain schemas of its inputs.

    `inputs` are these schemas; an open one also lists the attributes that the settings asked of it.
    """

    arguments: Mapping[str, Any]
    schemas: Schemas
    inputs: Schemas
    function: BatchFunction | None = None
    counted: tuple[Counted, ...] = ()


@dataclass(eq=False)
class Step:
    """A statement ready to run. Variables and signals are numbers within the routine."""

    resolved: Resolved
    plan: Plan
    index: int  # of the statement in its plan
    order: int  # in the text of the whole program
    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]
    errors: int | None
    signal_waits: tuple[int, ...]
    data_waits: tuple[int, ...]
    enable: tuple[int, ...]
    done: tuple[int, ...]
    settings: Mapping[str, Any]
    workers: int | None
    buffer: int | None
    scope: ParameterScope
    wiring: Wiring = field(repr=False)  # of the plan
    recursive: bool = False
    handed_down: frozenset[int] = frozenset()  # inputs of a call that unfold no level
    counts_levels: bool = False  # a call that is to know its depth
    is_limited: bool = False  # a recursive call that only the engine's limit may bound
    urgent: bool = False
    urgent_if: frozenset[int] = frozenset()  # outputs of the plan that its results reach
    pinned: bool = False  # never stopped for want of readers
    pinned_until_enabled: bool = False  # nor before its ENABLE, which a step waits for
    needed: frozenset[str] | None = None  # attributes of the outputs that are read; None: all
    tail: MergedOutputs | None = None
    sees_own_writes: bool = False  # it reads a store that a statement before it writes to
    is_read_back: bool = False  # it writes to a store that a statement after it reads
    is_call: bool = field(init=False)
    needs_no_task: bool = field(init=False)  # it can work wherever its input is written
    operator: Operator = field(init=False)  # of a statement that is no call
    firing: Firing = field(init=False)
    needs_whole: frozenset[int] = field(init=False)  # inputs in which a missing row makes a row
    vouched: bool = field(init=False)  # WHOLE: its results count as whole, whatever became of its inputs
    fails_by_tuple: bool = field(init=False)
    _bound: dict[Schemas, Bound] = field(default_factory=dict, repr=False)
    _latest: tuple[Schemas, Bound | None] = field(default=((), None), repr=False)
    _later: frozenset[int] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.is_call = isinstance(self.resolved.target, Plan)
        self.vouched = self.resolved.whole
        self.needs_whole = frozenset()
        if isinstance(self.resolved.target, Operator):
            self.operator = self.resolved.target
            self.firing = self.operator.fires(self.settings)
            self.needs_whole = self.operator.whole_inputs(self.settings)
            self.fails_by_tuple = self.operator.fails_by_tuple(self.settings, len(self.inputs))
        resolved = self.resolved
        signals = (*resolved.wait, *resolved.enable, *resolved.done)
        clauses = (*signals, resolved.errors, resolved.skip_errors, resolved.whole)
        is_plain = len(self.outputs) == 1 and not any(clauses)
        self.needs_no_task = not self.is_call and is_plain and self.operator.is_batchwise(len(self.inputs))

    @property
    def callee(self) -> Plan:
        assert isinstance(self.resolved.target, Plan)
        return self.resolved.target

    @property
    def name(self) -> str:
        return self.resolved.target.name

    @property
    def statement_key(self) -> tuple[str, int]:
        """The identity of the statement, which routines with other parameters share."""
        return self.plan.key, self.index

    @property
    def where(self) -> str:
        """The statement's place and operator, for messages."""
        span = self.resolved.statement.name_span or self.resolved.statement.span
        place = span.place if span else f"plan {self.plan.name}, statement {self.index + 1}"
        return f"{place}: {self.name}"

    @property
    def line(self) -> int | None:
        span = self.resolved.statement.span
        return span.line if span else None

    def position(self, iteration: int, caller: Position | None) -> Position:
        """Return the position of the statement in one call of its plan."""
        if self._later is None:
            readers = self.wiring.readers()
            self._later = frozenset(downstream(readers, readers[self.index]))
        depth = 0 if caller is None else caller.depth + 1
        return Position(self.index, self._later, iteration, caller, depth)

    def bind(self, inputs: Schemas) -> Bound:
        """Settings and output schemas for these inputs; computed once for each combination."""
        latest, bound = self._latest
        if bound is not None and latest == inputs:
            return bound  # comparing the very same schemas is faster than hashing them
        bound = self._bound.get(inputs)
        if bound is None:
            bound = self._bound[inputs] = self._bind_listing(inputs)
        self._latest = inputs, bound
        return bound

    def _bind_listing(self, given: Schemas) -> Bound:
        """Bind, and list in open schemas the attributes asked of them, until no more are asked."""
        inputs = tuple(
            [
                msgspec.structs.replace(schema) if schema is not None and schema.open else schema
                for schema in given
            ]
        )
        while True:
            try:
                return self._bind_to(inputs, given)
            except UntoldAttributeError as question:
                inputs = _answered(question, inputs)

    def _bind_to(self, inputs: Schemas, given: Schemas) -> Bound:
        operator = self.operator
        settings = operator.bind(self.settings, inputs)
        schemas = operator.output_schemas(inputs, settings)
        is_batchwise = operator.is_batchwise(len(self.inputs))
        function = operator.batchwise(settings) if operator.batchwise and is_batchwise else None
        if function is not None and inputs[0] is not None and given[0] is not None:
            function = _padded(function, len(inputs[0]) - len(given[0]))
        counted = tuple(value.counters for value in settings.values() if hasattr(value, "counters"))
        return Bound(operator.arguments(settings), schemas, inputs, function, counted)


def _answered(question: UntoldAttributeError, inputs: Schemas) -> Schemas:
    """Return the inputs, with the attribute listed in the one that was asked, or else in all open ones."""
    asked = [schema is question.schema for schema in inputs]
    answered = tuple(
        schema.listing(question.name) if schema is not None and (is_asked or not any(asked)) else schema
        for schema, is_asked in zip(inputs, asked, strict=True)
    )
    if answered == inputs:
        raise SettingError(question.args[0])
    return answered


def _padded(function: BatchFunction, nulls: int) -> BatchFunction:
    """Return a function for rows that lack some attributes at their end: these are null."""
    if not nulls:
        return function
    padding = (None,) * nulls
    return lambda rows: function([row + padding for row in rows])
