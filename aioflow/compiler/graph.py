"""The routing of a program, computed once before it runs: readers, recursive calls, priorities.

A `Routine` is a plan made ready for one set of parameter values; each call of it shares the routine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.authoring.operator import Operator
from aioflow.compiler.analysis import Analysis, Inference
from aioflow.compiler.declarations import Keys, keys_of
from aioflow.compiler.fitting import has_trait
from aioflow.compiler.parameters import ParameterScope, substitute
from aioflow.compiler.resolution import Resolved
from aioflow.compiler.step import Schemas, Step, TailCalls
from aioflow.compiler.stores import ReadBack, reads_after_writes, store_use
from aioflow.compiler.wiring import topological_order
from aioflow.errors import Diagnostic, PlanError
from aioflow.plan import Plan
from aioflow.relation import Schema

# Outputs of a routine whose rows go into a merging statement of an enclosing call, by its key.
Enclosing: TypeAlias = tuple[tuple[int, Hashable], ...]


class VariableReader(msgspec.Struct, frozen=True):
    """A reader of a variable: an input of a step, an output of the plan, or a step that WAITs."""

    kind: Literal["input", "output", "wait"]
    number: int  # of the step, or of the output
    port: int = 0  # which input of the step


class Routine(msgspec.Struct, eq=False):
    """A plan with its routing table, for certain values of its parameters."""

    plan: Plan
    scope: ParameterScope
    variables: tuple[str, ...]
    steps: tuple[Step, ...]
    readers: tuple[tuple[VariableReader, ...], ...]  # by variable
    buffers: tuple[int | None, ...]  # by variable: the capacity that its producer asks for
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    signals: int
    enclosing: Enclosing
    merged: frozenset[int]  # steps that an enclosing statement does the work of
    has_effects: bool
    inference: Inference
    order: tuple[int, ...] = ()  # steps that are no calls, each after those it reads; for a loop
    is_loop: bool = False  # every level is a function of its input's rows
    _bystanders: dict[frozenset[int], frozenset[int]] = msgspec.field(default_factory=dict)
    _schemas: dict[Schemas, Schemas] = msgspec.field(default_factory=dict)
    _latest: tuple[Schemas, Schemas | None] = ((), None)

    def schemas(self, inputs: Schemas) -> Schemas:
        """Return the schemas of all variables, as far as the inputs determine them; cached for later."""
        latest, known = self._latest
        if known is not None and latest == inputs:
            return known
        known = self._schemas.get(inputs)
        if known is None:
            found = self.inference.plan_schemas(self.plan, self.scope, inputs)
            known = self._schemas[inputs] = tuple(found.get(name) for name in self.variables)
        self._latest = inputs, known
        return known

    def bystanders(self, untaken: frozenset[int]) -> frozenset[int]:
        """Return the steps that lead only to outputs of the plan which its caller does not take.

        They get the rows that there are, but keep no step at work for themselves.
        """
        found = self._bystanders.get(untaken)
        if found is None:
            found = self._bystanders[untaken] = self._find_bystanders(untaken)
        return found

    def _find_bystanders(self, untaken: frozenset[int]) -> frozenset[int]:
        written = [[*_written(step), *(() if step.errors is None else (step.errors,))] for step in self.steps]
        readers = [[reader for variable in names for reader in self.readers[variable]] for names in written]
        edges = [[each.number for each in found if each.kind != "output"] for found in readers]
        bystanders: set[int] = set()
        for number in reversed(topological_order(edges)):
            step = self.steps[number]
            if step.pinned or step.pinned_until_enabled or not readers[number]:
                continue  # a result that the plan itself never reads was meant so
            if all(
                reader.number in (untaken if reader.kind == "output" else bystanders)
                for reader in readers[number]
            ):
                bystanders.add(number)
        return frozenset(bystanders)


class Graph:
    """A checked program made ready to run."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.program = analysis.program
        self.calls = analysis.linked.calls
        self.root = analysis.root.scope
        self._resolved = {plan.key: analysis.linked.resolved(plan) for plan in self.program}
        self._routines: dict[tuple[Hashable, Enclosing], Routine] = {}
        self._callees: dict[tuple[Step, Routine, bool], Routine] = {}
        self._effects: dict[str, bool] = {}
        self._outside: dict[str, bool] = {}
        self._keys: dict[tuple[str, Schema], Keys | None] = {}
        self._read_back: ReadBack | None = None
        self._numbers: dict[tuple[Step, str], int] = {}
        self._places = {plan.key: place for place, plan in enumerate(self.program)}

    def routine(self, scope: ParameterScope, enclosing: Enclosing = ()) -> Routine:
        """Return the routine of a scope's plan."""
        key = (scope.key, enclosing)
        if key not in self._routines:
            self._routines[key] = _Builder(self, scope, enclosing).routine()
            self._find_loop(self._routines[key])
        return self._routines[key]

    def _find_loop(self, routine: Routine) -> None:
        """Tail calls of itself beside steps that keep nothing make a plan a loop."""
        steps = {number: step for number, step in enumerate(routine.steps) if number not in routine.merged}
        if self._loops(routine, steps.values()):
            working = {number for number, step in steps.items() if not step.is_call}
            routine.order = tuple(
                number for number in topological_order(_edges(routine)) if number in working
            )
            routine.is_loop = True

    def _loops(self, routine: Routine, steps: Collection[Step]) -> bool:
        calls = [step for step in steps if step.is_call]
        if not calls or len(routine.inputs) != 1 or routine.signals:
            return False
        if not all(step.is_call or step.needs_no_task for step in steps):
            return False
        if not all(step.tail is not None and not step.data_waits for step in calls):
            return False
        return all(self.callee(step, routine, tail=True) is routine for step in calls)

    def callee(self, step: Step, caller: Routine, tail: bool) -> Routine:
        """Return the routine that a call runs; a tail call leaves merging to the code around the caller."""
        routine = self._callees.get((step, caller, tail))
        if routine is None:
            scope = step.scope.enter(step.callee, step.settings, recursive=step.recursive)
            enclosing = step.tail.enclosing(dict(caller.enclosing)) if tail and step.tail else ()
            routine = self._callees[step, caller, tail] = self.routine(scope, enclosing)
        return routine

    def resolved(self, plan: Plan) -> tuple[Resolved, ...]:
        """Return the statements of a plan, bound to what they name."""
        return self._resolved[plan.key]

    def order_of(self, plan: Plan, index: int) -> int:
        return self._places[plan.key] * 1_000_000 + index

    def has_effects(self, plan: Plan) -> bool:
        """Return whether a call of the plan may change the world."""
        if not self._effects:
            self._effects = self._anywhere(_changes_the_world)
        return self._effects[plan.key]

    def asks_outside(self, plan: Plan) -> bool:
        """Return whether a call of the plan may wait on the outside world for each of its tuples."""
        if not self._outside:
            self._outside = self._anywhere(_asks_outside)
        return self._outside[plan.key]

    def once_keys(self, plan: Plan) -> Callable[[Schema], Keys | None]:
        """Return a function from an input's schema to the keys of ONCE; None where ONCE does not apply."""
        return partial(self._once_keys, plan)

    def _once_keys(self, plan: Plan, schema: Schema) -> Keys | None:
        key = (plan.key, schema)
        if key not in self._keys:
            self._keys[key] = keys_of(plan, schema)
        return self._keys[key]

    def sees_own_writes(self, plan: Plan, index: int) -> bool:
        """Return whether a statement reads a store after a write of the same run may have happened."""
        return (plan.key, index) in self._reads_after_writes().reads

    @property
    def writes_early(self) -> bool:
        """True if some statement looks at what others have written, or changes it, before the run ends."""
        uses = (store_use(resolved) for plan in self.program for resolved in self.resolved(plan))
        return bool(self._reads_after_writes().reads) or any(use and use.access == "update" for use in uses)

    def is_read_back(self, plan: Plan, index: int) -> bool:
        """Return whether a statement writes to a store that a later one of the same run may read."""
        return (plan.key, index) in self._reads_after_writes().writes

    def _reads_after_writes(self) -> ReadBack:
        if self._read_back is None:
            self._read_back = reads_after_writes(self.analysis.linked)
        return self._read_back

    def runs_once(self, plan: Plan) -> bool:
        """Return whether a run calls a plan once at most."""
        return self.calls.is_called_once(plan, self.program.main)

    def number_of(self, step: Step, setting: str) -> int:
        """Return the number of a statement among those with its plan, operator and value of a setting."""
        number = self._numbers.get((step, setting))
        if number is None:
            earlier = self.resolved(step.plan)[: step.index]
            values = [
                substitute(each.settings.get(setting), step.scope.values)
                for each in earlier
                if each.target.name == step.name
            ]
            own = _folded(step.settings.get(setting))
            number = self._numbers[step, setting] = 1 + sum(_folded(value) == own for value in values)
        return number

    def refuse_endless(self, mode: str) -> None:
        """A mode that waits for the end of every stream cannot run a plan that has none."""
        mistakes = []
        for plan in self.program:
            for resolved in self.resolved(plan):
                target = resolved.target
                if isinstance(target, Operator) and has_trait(
                    target, "endless", resolved.settings, unknown=False
                ):
                    message = f"{target.name} never ends: the plan cannot run in mode {mode}, only in D+S+"
                    mistakes.append(Diagnostic(message, resolved.statement.name_span))
        if mistakes:
            raise PlanError(mistakes)

    def _anywhere(self, is_so: Callable[[Resolved], bool]) -> dict[str, bool]:
        """For each plan, whether something is true of a statement in it or in a plan that it calls."""
        direct = {plan.key: any(map(is_so, self.resolved(plan))) for plan in self.program}
        changed = True
        while changed:  # until no plan learns anything from another one
            changed = False
            for name, callees in self.calls.callees.items():
                if not direct[name] and any(direct[callee] for callee in callees):
                    direct[name] = changed = True
        return direct


def _changes_the_world(resolved: Resolved, settings: Mapping[str, Any] | None = None) -> bool:
    target = resolved.target
    if isinstance(target, Plan):
        return False
    return has_trait(target, "effects", resolved.settings if settings is None else settings, unknown=True)


def _asks_outside(resolved: Resolved) -> bool:
    target = resolved.target
    return isinstance(target, Operator) and has_trait(target, "outside", resolved.settings, unknown=True)


class _Builder:
    """Makes the routine of one plan."""

    def __init__(self, graph: Graph, scope: ParameterScope, enclosing: Enclosing) -> None:
        self.graph = graph
        self.scope = scope
        self.plan = scope.plan
        self.enclosing = enclosing
        self.resolved = graph.resolved(self.plan)
        self.variables: dict[str, int] = {}
        self.signals: dict[str, int] = {}
        self.awaited = {name for resolved in self.resolved for name in resolved.wait}
        self.tails = TailCalls(self.plan, self.resolved, graph.calls)
        self.merged = self.tails.merged_into(dict(enclosing))

    def routine(self) -> Routine:
        self._number_names()
        steps = [self._step(index) for index in range(len(self.resolved))]
        readers = self._readers(steps)
        self._find_urgent(steps, readers)
        self._find_needed(steps, readers)
        return Routine(
            self.plan,
            self.scope,
            tuple(self.variables),
            tuple(steps),
            readers,
            self._buffers(steps),
            tuple(self.variables[declared.name] for declared in self.plan.inputs),
            tuple(self.variables[output.name] for output in self.plan.outputs),
            len(self.signals),
            self.enclosing,
            frozenset(self.merged),
            self.graph.has_effects(self.plan),
            self.graph.analysis.inference,
        )

    def _number_names(self) -> None:
        names = [declared.name for declared in self.plan.inputs]
        for resolved in self.resolved:
            names += [name for name in (*resolved.outputs, resolved.errors) if name is not None]
            for signal in (*resolved.enable, *resolved.done):
                self.signals.setdefault(signal, len(self.signals))
        for name in names:
            self.variables.setdefault(name, len(self.variables))

    def _step(self, index: int) -> Step:
        resolved = self.resolved[index]
        target = resolved.target
        values = self.scope.values
        settings = {name: substitute(value, values) for name, value in resolved.settings.items()}
        effects = (
            self.graph.has_effects(target)
            if isinstance(target, Plan)
            else _changes_the_world(resolved, settings)
        )
        return Step(
            resolved,
            self.plan,
            index,
            self.graph.order_of(self.plan, index),
            tuple(self.variables[name] for name in resolved.inputs),
            tuple(None if name is None else self.variables[name] for name in resolved.outputs),
            None if resolved.errors is None else self.variables[resolved.errors],
            tuple(self.signals[name] for name in resolved.wait if name in self.signals),
            tuple(self.variables[name] for name in resolved.wait if name not in self.signals),
            tuple(self.signals[name] for name in resolved.enable),
            tuple(self.signals[name] for name in resolved.done),
            settings,
            _whole_number(substitute(resolved.workers, values)),
            _whole_number(substitute(resolved.buffer, values)),
            self.scope,
            self.graph.analysis.linked.wiring(self.plan),
            **(self._recursion(resolved, target) if isinstance(target, Plan) else {}),
            # A step that waits for a signal needs it, whatever becomes of the statement's results.
            pinned=effects or any(name in self.awaited for name in resolved.done),
            pinned_until_enabled=any(name in self.awaited for name in resolved.enable),
            tail=self.tails.of(index),
            sees_own_writes=self.graph.sees_own_writes(self.plan, index),
            is_read_back=self.graph.is_read_back(self.plan, index),
        )

    def _recursion(self, resolved: Resolved, callee: Plan) -> dict[str, Any]:
        """Return the part of a call in the recursion that it belongs to, or begins."""
        calls = self.graph.calls
        recursive = calls.is_recursive(self.plan, callee)
        limited = recursive and calls.is_unbounded(callee) and self.graph.asks_outside(callee)
        return {
            "recursive": recursive,
            "handed_down": calls.handed_down(self.plan, resolved.statement, callee),
            "counts_levels": limited or callee.max_depth is not None or calls.is_levelled(callee),
            "is_limited": limited,
        }

    def _readers(self, steps: Sequence[Step]) -> tuple[tuple[VariableReader, ...], ...]:
        readers: list[list[VariableReader]] = [[] for _ in self.variables]
        for number, step in enumerate(steps):
            for port, variable in enumerate(step.inputs):
                if number in self.merged:
                    readers[variable].append(VariableReader("output", self.merged[number]))
                else:
                    readers[variable].append(VariableReader("input", number, port))
            for variable in step.data_waits:
                readers[variable].append(VariableReader("wait", number))
        for number, output in enumerate(self.plan.outputs):
            readers[self.variables[output.name]].append(VariableReader("output", number))
        return tuple(map(tuple, readers))

    def _buffers(self, steps: Sequence[Step]) -> tuple[int | None, ...]:
        buffers: list[int | None] = [None] * len(self.variables)
        for step in steps:
            for variable in _written(step):
                buffers[variable] = step.buffer
        return tuple(buffers)

    def _find_needed(self, steps: Sequence[Step], readers: Sequence[Sequence[VariableReader]]) -> None:
        """Find the attributes of each step's results that its readers need, where all of them can tell."""
        for step in steps:
            found: set[str] = set()
            for reader in [reader for variable in _written(step) for reader in readers[variable]]:
                names = _read_by(steps[reader.number]) if reader.kind == "input" else None
                if names is None:
                    break
                found |= names
            else:
                step.needed = frozenset(found)

    def _find_urgent(self, steps: Sequence[Step], readers: Sequence[Sequence[VariableReader]]) -> None:
        """Mark the steps whose results lead into a recursive call, here or after an output of the plan."""
        edges = [
            [
                reader.number
                for variable in _written(step)
                for reader in readers[variable]
                if reader.kind == "input"
            ]
            for step in steps
        ]
        for number in reversed(topological_order(edges)):
            step = steps[number]
            reached = {
                reader.number
                for variable in _written(step)
                for reader in readers[variable]
                if reader.kind == "output"
            }
            for successor in edges[number]:
                reached |= steps[successor].urgent_if
                step.urgent |= steps[successor].urgent or steps[successor].recursive
            step.urgent_if = frozenset(reached)


def _edges(routine: Routine) -> list[list[int]]:
    """For each step without a call of a plan the steps that read its first output."""
    edges: list[list[int]] = []
    for step in routine.steps:
        variable = None if step.is_call else step.outputs[0]
        readers = () if variable is None else routine.readers[variable]
        edges.append([each.number for each in readers if each.kind == "input"])
    return edges


def _written(step: Step) -> list[int]:
    return [variable for variable in step.outputs if variable is not None]


def _read_by(step: Step) -> frozenset[str] | None:
    if step.is_call or step.operator.reads is None:
        return None
    return step.operator.reads(step.operator.bind(step.settings, (None,) * len(step.inputs)))


def _folded(value: Any) -> Any:
    """Return a value as it compares: most that are texts are names, whose case does not count."""
    return value.lower() if isinstance(value, str) else value


def _whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
