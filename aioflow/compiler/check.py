"""Finds every mistake in a program before anything runs, and warns of code that looks like one.

The result is an `Analysis`, from which the run is prepared. A statement with a missing colon is repaired
first, so that its mistake is not reported again as others. The modules `declarations`, `naming`,
`reachability` and `stores` each check one subject.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from aioflow.authoring.operator import Operator, Registry
from aioflow.authoring.services import ServiceHost
from aioflow.compiler.analysis import Analysis, Inference, InferredCall, LinkedProgram, reachable
from aioflow.compiler.declarations import (
    check_commits,
    check_declarations,
    check_emitted,
    check_given,
    check_levels,
    check_once,
    check_references,
    check_required,
    warn_of_unused_parameters,
)
from aioflow.compiler.findings import Damage, Findings
from aioflow.compiler.naming import check_names
from aioflow.compiler.reachability import (
    CheckedPlan,
    needs_tuples,
    plans_with_effects,
    warn_of_one_sided_waits,
    warn_of_unused,
)
from aioflow.compiler.resolution import (
    Resolved,
    Target,
    find_target,
    input_limits,
    output_names,
)
from aioflow.compiler.stores import check_stores, check_tables, warn_of_late_acts
from aioflow.compiler.wiring import Wiring, variables
from aioflow.errors import Diagnostic, PlanError, suggestion
from aioflow.plan import Plan, Program, Statement, Variable
from aioflow.relation import Schema


def check_endless(roots: Sequence[InferredCall], linked: LinkedProgram, findings: Findings) -> None:
    """ERRORS has results held until a firing has ended, so a statement that has it must end."""
    inside = _endless_inside(roots, linked)
    for root in roots:
        for index, statement in enumerate(linked.statements(root.plan)):
            if statement is None or not (statement.errors or statement.skip_errors):
                continue
            call = root.calls.get(index)
            found = _endless(root, index, statement) if call is None else inside.get(call)
            if found:
                message = f"{found} never ends, so that ERRORS would hold its results for ever"
                findings.at(root.plan, index)(Diagnostic(message, statement.statement.name_span))


def _endless_inside(roots: Sequence[InferredCall], linked: LinkedProgram) -> dict[InferredCall, str]:
    """The calls in which something never ends, with the nearest statement that does not."""
    found: dict[InferredCall, str] = {}
    callers: dict[InferredCall, list[InferredCall]] = {}
    for activation in reachable(roots):
        for callee in activation.calls.values():
            callers.setdefault(callee, []).append(activation)
        for index, statement in enumerate(linked.statements(activation.plan)):
            if statement is not None and (name := _endless(activation, index, statement)):
                found[activation] = f"in {activation.plan.name}, {name}"
                break
    pending = deque(found)
    while pending:
        callee = pending.popleft()
        for caller in callers.get(callee, ()):
            if caller not in found:
                found[caller] = found[callee]
                pending.append(caller)
    return found


def _endless(activation: InferredCall, index: int, statement: Resolved) -> str | None:
    bound = activation.bound.get(index)
    operator = statement.target
    if bound is None or not isinstance(operator, Operator) or not operator.has("endless", bound):
        return None
    return operator.name


def supply_missing_colons(
    plan: Plan, target_of: Callable[[Statement], Target | None], findings: Findings
) -> Plan:
    """The plan with arguments that must have been meant as outputs made so; each is reported.

    That is so when a statement has no outputs, and the last of its arguments are read elsewhere
    while nothing produces them.
    """
    candidates = [index for index, each in enumerate(plan.statements) if each.arguments and not each.outputs]
    if not candidates:
        return plan
    wiring = Wiring(plan)
    statements = list(plan.statements)
    for index in candidates:
        target = target_of(statements[index])
        missing = _meant_as_outputs(statements[index], index, target, wiring) if target else 0
        if missing:
            arguments = statements[index].arguments
            outputs = tuple(each for each in arguments[-missing:] if isinstance(each, Variable))
            statements[index] = replace(statements[index], arguments=arguments[:-missing], outputs=outputs)
            first = outputs[0]
            message = f"a ':' is missing before {first.name!r}: it is used as an output"
            findings.at(plan, index)(Diagnostic(message, first.span))
    is_whole = all(one is other for one, other in zip(statements, plan.statements, strict=True))
    return plan if is_whole else replace(plan, statements=tuple(statements))


def _meant_as_outputs(statement: Statement, index: int, target: Target, wiring: Wiring) -> int:
    trailing = 0
    for argument in reversed(statement.arguments):
        if not isinstance(argument, Variable) or argument.name in wiring.producers:
            break
        if all(use.statement == index for use in wiring.uses[argument.name]):
            break
        trailing += 1
    fewest, most = input_limits(target)
    left = len(variables(statement)) - trailing
    fits = fewest <= left and (most is None or left <= most)
    return trailing if fits and trailing <= len(output_names(target)) else 0


def check(
    program: Program,
    registry: Registry,
    *,
    inputs: Mapping[str, Schema | None] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> list[Diagnostic]:
    """Every mistake and warning, in the order of the text; the arguments are those of `analyse`."""
    return list(analyse(program, registry, inputs=inputs, parameters=parameters).diagnostics)


def analyse(
    program: Program,
    registry: Registry,
    *,
    inputs: Mapping[str, Schema | None] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Analysis:
    """Check a program, and return all that was learned of it.

    `inputs` are the schemas of the main plan's inputs, as far as they are known. `parameters` are those that
    a run sets: when they are given, each parameter without default must be among them.
    """
    return _Check(program, registry).run(inputs or {}, parameters)


def check_rest(error: PlanError, registry: Registry) -> list[Diagnostic]:
    """The syntax errors of a text, and with them all mistakes in the parts that could be read.

    Mistakes that may be a consequence of a syntax error are left out.
    """
    program = error.program
    if not isinstance(program, Program):
        return list(error.diagnostics)
    looking = _Check(program, registry)
    looking.run({}, None)
    damage = Damage(program, error.diagnostics, partial(looking.is_known, program))
    rest = [
        found
        for place, found in looking.findings.mistakes()
        if not damage.explains(place, found, looking.linked.wiring(place.plan).producers)
    ]
    files = {plan.span.source.name: place for place, plan in enumerate(program) if plan.span}

    def position(found: Diagnostic) -> tuple[int, int]:
        return (files.get(found.span.source.name, -1), found.span.start) if found.span else (-1, 0)

    return sorted([*error.diagnostics, *rest], key=position)


def check_readiness(analysis: Analysis, host: ServiceHost) -> None:
    """Ask every statement that requires something; raises a PlanError with all that is missing."""
    linked = analysis.linked
    demanding = {
        (plan.key, index): resolved.target
        for plan in linked.program
        for index, resolved in enumerate(linked.statements(plan))
        if resolved is not None
        and isinstance(resolved.target, Operator)
        and resolved.target.requires is not None
    }
    if not demanding:
        return
    found: dict[str, Diagnostic] = {}  # several statements may miss the same
    for call in analysis.calls():
        for index, bound in call.bound.items():
            operator = demanding.get((call.plan.key, index))
            if operator is None or operator.requires is None or bound is None:
                continue
            span = call.plan.statements[index].name_span
            for problem in operator.requires(bound, host):
                found.setdefault(problem, Diagnostic(f"{operator.name}: {problem}", span))
    if found:
        raise PlanError(list(found.values()))


class _Check:
    def __init__(self, program: Program, registry: Registry) -> None:
        self.registry = registry
        self.item_problems = program.item_problems
        self.findings = Findings(program)
        self.program = self._repaired(program)
        self.linked = LinkedProgram(self.program, registry)
        self.calls = self.linked.calls

    def run(self, inputs: Mapping[str, Schema | None], parameters: Mapping[str, Any] | None) -> Analysis:
        main = self.program.main
        for plan in self.program:
            self._check_plan(plan)
        for found in self.item_problems:
            self.findings.in_item(found)
        self._check_arguments(inputs, parameters)
        check_commits(self.linked, self.findings)
        check_levels(self.linked, self.findings)
        inference = Inference(self.linked)
        roots = {}
        for plan in self.program:
            schemas = [inputs.get(each.name) if plan.key == main.key else None for each in plan.inputs]
            given = (parameters or {}) if plan.key == main.key else {}
            roots[plan.key] = inference.follow(plan, given, schemas)
        self._report_problems(list(roots.values()))
        check_endless(list(roots.values()), self.linked, self.findings)
        for look in (check_emitted, check_stores, check_tables, warn_of_late_acts):
            look(roots[main.key], self.linked, self.findings)
        self._warn(roots)
        return Analysis(self.linked, inference, roots[main.key], self.findings.in_order())

    # --- plan by plan ---------------------------------------------------------------------------

    def _repaired(self, program: Program) -> Program:
        def repaired(plan: Plan) -> Plan:
            return supply_missing_colons(plan, partial(self._target, program), self.findings)

        plans = {plan.key: repaired(plan) for plan in program}
        if all(plans[plan.key] is plan for plan in program):
            return program  # its cached parts, such as its wrappers, are found again by the run
        return replace(program, main=plans[program.main.key], plans=tuple(plans.values()))

    def is_known(self, program: Program, statement: Statement) -> bool:
        return self._target(program, statement) is not None

    def _target(self, program: Program, statement: Statement) -> Target | None:
        return find_target(statement.operator, program, self.registry)

    def _check_plan(self, plan: Plan) -> None:
        if self.registry.get(plan.name) is not None:
            message = f"the plan {plan.name!r} is named like an operator"
            self.findings.at(plan)(Diagnostic(message, plan.name_span))
        check_declarations(plan, self.findings)
        check_references(plan, self.findings)
        resolved = self.linked.link(plan, partial(self.findings.at, plan), self.findings.suggestion)
        for index, found in enumerate(resolved):
            if found is not None and found.plan is not None:
                check_required(plan, found, self.calls, self.program.main, self.findings.at(plan, index))
        check_names(self.linked.wiring(plan), self.findings, recurs=self.calls.recurs(plan))

    def _check_arguments(
        self, inputs: Mapping[str, Schema | None], parameters: Mapping[str, Any] | None
    ) -> None:
        main = self.program.main
        names = [declaration.name for declaration in main.inputs]
        for name in inputs:
            if name not in names:
                message = f"{main.name} has no input {name!r}{suggestion(name, names)}"
                self.findings.at(main)(Diagnostic(message, main.name_span))
        if parameters is not None:
            check_given(main, parameters, self.findings.at(main))

    # --- findings of the inference --------------------------------------------------------------

    def _report_problems(self, roots: Sequence[InferredCall]) -> None:
        """Each statement once: as it stands by itself, else in the first call that makes it a mistake."""
        reported: set[tuple[str, int]] = set()
        called_from = _callers(roots)
        for activation in reachable(roots):
            plan = activation.plan
            suffix = called_from.get(activation, "")
            for index, problems in activation.problems.items():
                if (plan.key, index) in reported:
                    continue
                reported.add((plan.key, index))
                for problem in problems:
                    shown = replace(problem, message=problem.message + suffix)
                    self.findings.at(plan, index)(shown)
            if (plan.key, -1) not in reported and check_once(activation, self.calls, self.findings.at(plan)):
                reported.add((plan.key, -1))

    # --- warnings -------------------------------------------------------------------------------

    def _warn(self, roots: Mapping[str, InferredCall]) -> None:
        subjects = {
            key: CheckedPlan(
                self.linked.wiring(activation.plan), self.linked.statements(activation.plan), activation
            )
            for key, activation in roots.items()
        }
        has_effects = plans_with_effects(subjects, self.calls.callees)
        for subject in subjects.values():
            self._lint(subject)
            self._warn_of_endless_recursion(subject)
            if not self.findings.is_mistaken(subject.plan):
                warn_of_unused_parameters(subject.plan, self.findings)
                warn_of_unused(subject, has_effects, self.findings)
                warn_of_one_sided_waits(subject, self.findings)

    def _lint(self, subject: CheckedPlan) -> None:
        opinionated = [
            (index, resolved, resolved.target.lint, subject.activation.bound.get(index))
            for index, resolved in enumerate(subject.resolved)
            if resolved and isinstance(resolved.target, Operator) and resolved.target.lint
        ]
        is_needed = needs_tuples(subject) if opinionated else bool
        for index, resolved, lint, bound in opinionated:
            if bound is not None:
                outputs = [name if is_needed(name) else None for name in resolved.outputs]
                for message in lint(resolved.inputs, outputs, bound):
                    found = Diagnostic(message, resolved.statement.name_span, "warning")
                    self.findings.at(subject.plan, index)(found)

    def _warn_of_endless_recursion(self, subject: CheckedPlan) -> None:
        plan = subject.plan
        for index, resolved in enumerate(subject.resolved):
            if resolved is None or resolved.plan is None or resolved.inputs:
                continue
            if plan.max_depth is None and self.calls.is_recursive(plan, resolved.plan):
                message = (
                    f"this recursive call of {resolved.plan.name} has no inputs: nothing ends the recursion"
                )
                found = Diagnostic(message, resolved.statement.name_span, "warning")
                self.findings.at(plan, index)(found)


def _callers(roots: Sequence[InferredCall]) -> dict[InferredCall, str]:
    """For each activation that is no root, where it is first called from."""
    found: dict[InferredCall, str] = {}
    outermost = set(roots)
    for activation in reachable(roots):
        for index, callee in activation.calls.items():
            if callee in outermost or callee in found:
                continue
            span = activation.plan.statements[index].name_span
            line = f"on line {span.line}" if span else f"in statement {index + 1}"
            found[callee] = f" (when called {line} of {activation.plan.name})"
    return found
