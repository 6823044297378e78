"""Infers the schema of every variable before anything runs, by following the statements.

Calls are followed with the schemas and parameters that they are made with. A recursion starts with unknown
schemas and is repeated until nothing changes any more. A recursion whose schemas change from level to level
is cut off, and its schemas stay unknown.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Literal

import msgspec

from aioflow.authoring.operator import Settings
from aioflow.compiler.fitting import errors_schema, fit, value_or_unknown, wrong_numbers
from aioflow.compiler.linking import LinkedProgram
from aioflow.compiler.parameters import UNKNOWN, ParameterScope
from aioflow.compiler.resolution import Resolved
from aioflow.compiler.wiring import variables
from aioflow.errors import Diagnostic
from aioflow.plan import InputDeclaration, Plan, Variable
from aioflow.relation import Schema

Schemas = tuple[Schema | None, ...]

# Beyond these a call is followed with nothing known of its inputs and parameters. A level of a recursion
# over several plans has a call of each.
_LEVELS_AT_MOST: Final = 8
_VARIANTS_AT_MOST: Final = 256
# Beyond this the outputs of a recursion that keep changing count as unknown.
_ROUNDS_AT_MOST: Final = 10
_REMEMBERED_AT_MOST: Final = 10_000


class InferredCall(msgspec.Struct, eq=False):
    """A plan as it is called with certain parameters and input schemas."""

    scope: ParameterScope
    inputs: Schemas
    outputs: Schemas
    # How many recursive calls lie around the one that first came to this.
    depth: int = 0
    schemas: dict[str, Schema | None] = msgspec.field(default_factory=dict)
    bound: dict[int, Settings | None] = msgspec.field(default_factory=dict)
    problems: dict[int, tuple[Diagnostic, ...]] = msgspec.field(default_factory=dict)
    calls: dict[int, InferredCall] = msgspec.field(default_factory=dict)
    callers: dict[InferredCall, None] = msgspec.field(default_factory=dict)
    state: Literal["new", "running", "done", "queued"] = "new"
    # A result that this used has changed since.
    outdated: bool = False
    position: int = 0
    rounds: int = 0

    @property
    def plan(self) -> Plan:
        return self.scope.plan

    def begin(self) -> None:
        self.state, self.position, self.outdated = "running", 0, False
        names = (declaration.name for declaration in self.plan.inputs)
        self.schemas = dict(zip(names, self.inputs, strict=True))
        self.bound.clear()
        self.problems.clear()
        self.calls.clear()


class _Code(msgspec.Struct, frozen=True):
    """The statements of a plan, ready to be followed."""

    statements: Sequence[Resolved | None]
    order: Sequence[int]


class Inference:
    """The schemas in the plans of a program; answers are remembered."""

    def __init__(self, linked: LinkedProgram) -> None:
        self._linked = linked
        self._codes: dict[str, _Code] = {}
        self._activations: dict[tuple[object, ...], InferredCall] = {}
        self._variants: Counter[str] = Counter()

    def plan_schemas(
        self, plan: Plan, parameters: Mapping[str, Any] | ParameterScope, inputs: Sequence[Schema | None]
    ) -> Mapping[str, Schema | None]:
        """Return the schema of every variable of a plan called like this; None where only the run will tell.

        A ParameterScope also knows the parameters of a mutual recursion around the call.
        """
        return self.follow(plan, parameters, inputs).schemas

    def outputs(
        self, plan: Plan, parameters: Mapping[str, Any] | ParameterScope, inputs: Sequence[Schema | None]
    ) -> Schemas:
        """Return the schemas of a plan's outputs."""
        return self.follow(plan, parameters, inputs).outputs

    def follow(
        self, plan: Plan, parameters: Mapping[str, Any] | ParameterScope, inputs: Sequence[Schema | None]
    ) -> InferredCall:
        """Return all that is known of a plan called like this."""
        if len(self._activations) > _REMEMBERED_AT_MOST + 4 * len(self._linked.program.by_name):
            self._activations.clear()
            self._variants.clear()
        declared = _with_declarations(plan.inputs, inputs)
        scope = (
            parameters
            if isinstance(parameters, ParameterScope)
            else ParameterScope.outermost(plan, parameters)
        )
        root = self._activation(scope, declared)
        if root.state == "new":
            self._solve(root)
        return root

    # --- the work list --------------------------------------------------------------------------

    def _solve(self, root: InferredCall) -> None:
        """Follow new calls depth first; then again each call that used a result which changed since."""
        queue = deque([root])
        while queue:
            stack = [queue.popleft()]
            stack[0].begin()
            while stack:
                callee = self._advance(stack[-1])
                if callee is not None:
                    callee.begin()
                    stack.append(callee)
                else:
                    self._finish(stack.pop(), queue)

    def _advance(self, activation: InferredCall) -> InferredCall | None:
        """Follow the statements up to the first call that was never followed; return that call."""
        code = self._code(activation.plan)
        while activation.position < len(code.order):
            index = code.order[activation.position]
            resolved = code.statements[index]
            if resolved is None:
                pass
            elif resolved.plan is None:
                self._follow_operator(activation, index, resolved)
            else:
                callee = self._callee(activation, index, resolved, resolved.plan)
                if callee.state == "new":
                    return callee
                callee.callers[activation] = None
                activation.calls[index] = callee
                _assign(activation, resolved, callee.outputs)
            activation.position += 1
        return None

    def _finish(self, activation: InferredCall, queue: deque[InferredCall]) -> None:
        outputs = tuple(activation.schemas.get(output.name) for output in activation.plan.outputs)
        activation.rounds += 1
        if activation.rounds > _ROUNDS_AT_MOST:
            outputs = (None,) * len(outputs)
        changed = outputs != activation.outputs
        activation.outputs = outputs
        activation.state = "done"
        outdated = list(activation.callers) if changed else []
        for caller in [*outdated, *([activation] if activation.outdated else [])]:
            if caller.state == "done":
                caller.state = "queued"
                queue.append(caller)
            elif caller.state == "running":
                caller.outdated = True

    # --- statements -----------------------------------------------------------------------------

    def _follow_operator(self, activation: InferredCall, index: int, resolved: Resolved) -> None:
        inputs = [activation.schemas.get(name) for name in resolved.inputs]
        fitted = fit(resolved, activation.scope.values, inputs)
        activation.bound[index] = fitted.bound
        if fitted.problems:
            activation.problems[index] = fitted.problems
        _assign(activation, resolved, fitted.outputs)

    def _callee(self, caller: InferredCall, index: int, resolved: Resolved, plan: Plan) -> InferredCall:
        given = [caller.schemas.get(name) for name in resolved.inputs]
        mismatches = _mismatches(resolved, plan, given)
        # As declared, so that the plan's own statements do not report the same again.
        given = [None if place in mismatches else schema for place, schema in enumerate(given)]
        numbers = wrong_numbers(resolved, caller.scope.values)
        problems = tuple(chain(chain.from_iterable(mismatches.values()), numbers))
        if problems:
            caller.problems[index] = problems
        recursive = self._linked.calls.is_recursive(caller.plan, plan)
        values = caller.scope.values
        settings = {name: value_or_unknown(value, values) for name, value in resolved.settings.items()}
        settings.update(dict.fromkeys(resolved.unknown, UNKNOWN))
        scope = caller.scope.enter(plan, settings, recursive=recursive)
        depth = caller.depth + 1 if recursive else 0
        deepest = _LEVELS_AT_MOST * self._linked.calls.plans_around(plan)
        if depth > deepest or self._variants[plan.key] > _VARIANTS_AT_MOST:
            unknown = {parameter.name.lower(): UNKNOWN for parameter in plan.parameters}
            scope, given = ParameterScope.outermost(plan, unknown), [None] * len(given)
        return self._activation(scope, _with_declarations(plan.inputs, given), depth)

    def _activation(self, scope: ParameterScope, inputs: Schemas, depth: int = 0) -> InferredCall:
        key = (scope.key, inputs)
        if key not in self._activations:
            self._variants[scope.plan.key] += 1
            unknown = (None,) * len(scope.plan.outputs)
            self._activations[key] = InferredCall(scope, inputs, unknown, depth)
        return self._activations[key]

    def _code(self, plan: Plan) -> _Code:
        code = self._codes.get(plan.key)
        if code is None:
            code = self._codes[plan.key] = _Code(
                self._linked.statements(plan), self._linked.wiring(plan).order()
            )
        return code


def reachable(roots: Sequence[InferredCall]) -> Iterator[InferredCall]:
    """Yield the calls that these lead to, each once, callers before the plans that they call."""
    seen = dict.fromkeys(roots)
    pending = deque(roots)
    while pending:
        activation = pending.popleft()
        yield activation
        for callee in activation.calls.values():
            if callee not in seen:
                seen[callee] = None
                pending.append(callee)


def _assign(activation: InferredCall, resolved: Resolved, outputs: Schemas) -> None:
    for name, schema in zip(resolved.outputs, outputs, strict=True):
        if name is not None:
            activation.schemas[name] = schema
    if resolved.errors is not None:
        inputs = [activation.schemas.get(name) for name in resolved.inputs]
        activation.schemas[resolved.errors] = errors_schema(resolved, inputs)


def _with_declarations(
    declarations: Sequence[InputDeclaration], given: Sequence[Schema | None]
) -> tuple[Schema | None, ...]:
    """Return the schemas of a plan's inputs: as given, completed by the declarations."""
    return tuple(
        _completed(schema, declaration.schema)
        for declaration, schema in zip(declarations, given, strict=True)
    )


def _completed(schema: Schema | None, declared: Schema | None) -> Schema | None:
    if schema is None or declared is None:
        return declared if schema is None else schema
    types = tuple(
        kind or (declared.type_of(name) if name in declared else None)
        for name, kind in zip(schema.names, schema.types, strict=True)
    )
    return Schema(schema.names, types)


def _mismatches(
    resolved: Resolved, plan: Plan, given: Sequence[Schema | None]
) -> dict[int, list[Diagnostic]]:
    """Return the attributes that a call's inputs lack of those that the plan declares, by input."""
    arguments = variables(resolved.statement)
    found = {
        place: list(_lacks(arguments[place], schema, plan.inputs[place], plan))
        for place, schema in enumerate(given)
        if schema is not None
    }
    return {place: lacking for place, lacking in found.items() if lacking}


def _lacks(
    argument: Variable, schema: Schema, declaration: InputDeclaration, plan: Plan
) -> Iterator[Diagnostic]:
    declared = declaration.schema or Schema(())
    place = f"input {declaration.name!r} of {plan.name}"
    for name, wanted in zip(declared.names, declared.types, strict=True):
        if name not in schema:
            has = ", ".join(schema.names) or "no attributes"
            message = f"{argument.name!r} has no attribute {name!r}, which {place} declares (it has: {has})"
            yield Diagnostic(message, argument.span)
        elif wanted and schema.type_of(name) not in (None, wanted):
            found = f"{name!r} of {argument.name!r} is {schema.type_of(name)}"
            yield Diagnostic(f"{found}, but {place} declares it {wanted}", argument.span)
