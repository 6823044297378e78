"""All that is known of a program before it runs: bound statements, and the schema of every variable.

Each plan is linked once. Its calls are followed with the schemas and parameters that they are made with. A
recursion starts with unknown schemas and is repeated until nothing changes any more. One whose schemas change
from level to level is cut off, and its schemas stay unknown.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from aioflow.authoring.operator import Registry, Settings
from aioflow.compiler.callgraph import CallGraph
from aioflow.compiler.fitting import errors_schema, fit, value_or_unknown, wrong_numbers
from aioflow.compiler.parameters import UNKNOWN, ParameterScope
from aioflow.compiler.resolution import (
    Report,
    Resolved,
    Target,
    find_target,
    input_limits,
    resolve_statement,
)
from aioflow.compiler.wiring import Wiring, variables
from aioflow.errors import Diagnostic, PlanError, suggestion
from aioflow.plan import InputDeclaration, Plan, Program, Statement, Variable
from aioflow.relation import Schema


class LinkedProgram:
    """The calls between the plans of a program, and the bound statements and the wiring of each plan."""

    def __init__(self, program: Program, registry: Registry) -> None:
        self.program = program
        self.calls = CallGraph(program)
        self._registry = registry
        self._statements: dict[str, tuple[Resolved | None, ...]] = {}
        self._wirings: dict[str, Wiring] = {}

    def link(
        self,
        plan: Plan,
        report_at: Callable[[int], Report],
        suggest: Callable[[str, Iterable[str]], str] = suggestion,
    ) -> Sequence[Resolved | None]:
        """Bind the statements of a plan; `report_at` gives, for a statement, the function to report to."""
        names = self.wiring(plan).producers.keys()
        parameters = {parameter.name.lower() for parameter in plan.parameters}
        self._statements[plan.key] = tuple(
            resolve_statement(
                statement, self.program, self._registry, report_at(index), names, parameters, suggest
            )
            for index, statement in enumerate(plan.statements)
        )
        return self._statements[plan.key]

    def statements(self, plan: Plan) -> Sequence[Resolved | None]:
        """Return the bound statements of a plan; None for each one that names no operator and no plan."""
        known = self._statements.get(plan.key)
        return known if known is not None else self.link(plan, lambda _: _ignore)

    def resolved(self, plan: Plan) -> tuple[Resolved, ...]:
        """Return the bound statements of a plan without mistakes."""
        return tuple(resolved for resolved in self.statements(plan) if resolved is not None)

    def wiring(self, plan: Plan) -> Wiring:
        """Return the wiring of a plan; variables that stand where their statements take none are left out."""
        known = self._wirings.get(plan.key)
        if known is None:
            known = self._wirings[plan.key] = Wiring(without_excess(plan, self.target))
        return known

    def target(self, statement: Statement) -> Target | None:
        """Return the operator or plan that a statement names."""
        return find_target(statement.operator, self.program, self._registry)


def _ignore(_: Diagnostic) -> None:
    """Report nothing."""


def without_excess(plan: Plan, target_of: Callable[[Statement], Target | None]) -> Plan:
    """Return the plan without the variables that stand where their statements take none."""
    statements = tuple(_trimmed(each, target_of(each)) for each in plan.statements)
    is_whole = all(one is other for one, other in zip(statements, plan.statements, strict=True))
    return plan if is_whole else replace(plan, statements=statements)


def _trimmed(statement: Statement, target: Target | None) -> Statement:
    given = variables(statement)
    most = input_limits(target)[1] if target else None
    if most is None or len(given) <= most:
        return statement
    settings = tuple(each for each in statement.arguments if not isinstance(each, Variable))
    return replace(statement, arguments=(*given[:most], *settings))


Schemas = tuple[Schema | None, ...]

# Beyond these a call is followed with nothing known of its inputs and parameters. A level of a recursion
# over several plans has a call of each.
_LEVELS_AT_MOST: Final = 8
_VARIANTS_AT_MOST: Final = 256
# Of all plans together: a chain of plans that each call the next twice doubles the calls at every level. A
# program may be followed a few times as a whole, however large it is.
_STATEMENTS_AT_MOST: Final = 15_000
_TIMES_AT_MOST: Final = 4
_STATEMENTS_OF_CALL: Final = 5  # a call costs about as much as so many statements
# Beyond this the outputs of a recursion that keep changing count as unknown.
_ROUNDS_AT_MOST: Final = 10
_REMEMBERED_AT_MOST: Final = 10_000


class InferredCall(msgspec.Struct, eq=False):
    """A plan as it is called with certain parameters and input schemas."""

    scope: ParameterScope
    inputs: Schemas
    outputs: Schemas
    # The number of recursive calls around the one that first came to this.
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
        self._effort = 0
        whole = sum(map(_effort, linked.program))
        self._effort_at_most = _STATEMENTS_AT_MOST + _TIMES_AT_MOST * whole

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
            self._effort = 0
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
        if (
            depth > deepest
            or self._variants[plan.key] > _VARIANTS_AT_MOST
            or self._effort > self._effort_at_most
        ):
            unknown = {parameter.name.lower(): UNKNOWN for parameter in plan.parameters}
            scope, given = ParameterScope.outermost(plan, unknown), [None] * len(given)
        return self._activation(scope, _with_declarations(plan.inputs, given), depth)

    def _activation(self, scope: ParameterScope, inputs: Schemas, depth: int = 0) -> InferredCall:
        key = (scope.key, inputs)
        if key not in self._activations:
            self._variants[scope.plan.key] += 1
            self._effort += _effort(scope.plan)
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


def _effort(plan: Plan) -> int:
    return len(plan.statements) + _STATEMENTS_OF_CALL


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


class Analysis(msgspec.Struct, frozen=True):
    """A linked program, its schemas, the call of its main plan, and the mistakes and warnings found in it."""

    linked: LinkedProgram
    inference: Inference
    root: InferredCall
    diagnostics: Sequence[Diagnostic]

    @property
    def program(self) -> Program:
        return self.linked.program

    def called_with(self, parameters: Mapping[str, Any]) -> Analysis:
        """The same program with other parameters of its main plan; the diagnostics stay as they were."""
        main = self.program.main
        return replace(self, root=self.inference.follow(main, parameters, [None] * len(main.inputs)))

    def calls(self) -> Iterator[InferredCall]:
        """Every call that a run may make, from that of the main plan on."""
        return reachable([self.root])

    def raise_mistakes(self) -> None:
        """Raise a PlanError if the program has mistakes."""
        mistakes = [found for found in self.diagnostics if found.severity == "error"]
        if mistakes:
            raise PlanError(mistakes)
