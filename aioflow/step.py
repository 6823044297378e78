"""A statement made ready to run, and its settings bound to the schemas that its inputs turn out to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol, TypeAlias

from aioflow.analysis.parameters import Scope
from aioflow.analysis.resolve import Resolved
from aioflow.dataclass import dataclass
from aioflow.operator import BatchFunction, Firing, Operator
from aioflow.plan import Plan
from aioflow.relation import Schema
from aioflow.tail import Merged

Schemas: TypeAlias = tuple[Schema | None, ...]


class Counted(Protocol):
    """What a setting counts while it works, such as divisions by zero."""

    def take(self) -> Mapping[str, int]: ...


@dataclass(frozen=True)
class Bound:
    """A step's settings and output schemas for certain schemas of its inputs."""

    arguments: Mapping[str, Any]
    schemas: Schemas
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
    scope: Scope
    recursive: bool = False
    handed_down: frozenset[int] = frozenset()  # inputs of a call that unfold no level
    counts_levels: bool = False  # a call that is to know its depth
    is_limited: bool = False  # a recursive call that only the engine's limit may bound
    urgent: bool = False
    urgent_if: frozenset[int] = frozenset()  # outputs of the plan that its results reach
    pinned: bool = False  # never stopped for want of readers
    pinned_until_enabled: bool = False  # nor before its ENABLE, which somebody waits for
    needed: frozenset[str] | None = None  # attributes of the outputs that anybody reads; None: all
    tail: Merged | None = None
    sees_own_writes: bool = False  # it reads a store that a statement before it writes to
    is_call: bool = field(init=False)
    is_plain: bool = field(init=False)  # one input, one output, no clauses
    needs_no_task: bool = field(init=False)  # it can work wherever its input is written
    operator: Operator = field(init=False)  # of a statement that is no call
    firing: Firing = field(init=False)
    _bound: dict[Schemas, Bound] = field(default_factory=dict, repr=False)
    _latest: tuple[Schemas, Bound | None] = field(default=((), None), repr=False)

    def __post_init__(self) -> None:
        self.is_call = isinstance(self.resolved.target, Plan)
        if isinstance(self.resolved.target, Operator):
            self.operator = self.resolved.target
            self.firing = self.operator.fires(self.settings)
        resolved = self.resolved
        clauses = (*resolved.wait, *resolved.enable, *resolved.done, resolved.errors, resolved.skip_errors)
        self.is_plain = len(self.inputs) == len(self.outputs) == 1 and not any(clauses)
        self.needs_no_task = not self.is_call and self.is_plain and self.operator.batchwise is not None

    @property
    def callee(self) -> Plan:
        assert isinstance(self.resolved.target, Plan)
        return self.resolved.target

    @property
    def name(self) -> str:
        return self.resolved.target.name

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

    def bind(self, inputs: Schemas) -> Bound:
        """Settings and output schemas for these inputs; computed once for each combination."""
        latest, bound = self._latest
        if bound is not None and latest == inputs:
            return bound  # comparing the very same schemas is faster than hashing them
        bound = self._bound.get(inputs)
        if bound is None:
            settings = self.operator.bind(self.settings, inputs)
            operator = self.operator
            schemas = operator.output_schemas(inputs, settings)
            function = operator.batchwise(settings) if operator.batchwise and self.is_plain else None
            counted = tuple(value.counters for value in settings.values() if hasattr(value, "counters"))
            bound = Bound(operator.arguments(settings), schemas, function, counted)
            self._bound[inputs] = bound
        self._latest = inputs, bound
        return bound
