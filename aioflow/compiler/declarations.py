"""Mistakes in the declarations of plans, other than those of their inputs and outputs.

These are parameters and their uses, ONCE, MAX_DEPTH and COMMIT, also where they concern calls between plans:
a level of a recursion that cannot end, or a COMMIT that would be ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from aioflow.authoring.operator import Operator
from aioflow.authoring.setting import bind_plan_setting
from aioflow.compiler.analysis import InferredCall, LinkedProgram, reachable
from aioflow.compiler.callgraph import CallGraph
from aioflow.compiler.findings import Findings
from aioflow.compiler.fitting import has_trait, inside_literal
from aioflow.compiler.parameters import BUILT_IN, Reference, references
from aioflow.compiler.resolution import UNIVERSAL_OPTIONS, Report, Resolved
from aioflow.compiler.wiring import downstream, variables
from aioflow.errors import Diagnostic, SettingError, declared_output, suggestion
from aioflow.plan import Constant, Plan, Setting, Statement, Word
from aioflow.relation import Row, Schema
from aioflow.source import Span

# From rows to keys: two rows with equal keys count as the same.
Keys: TypeAlias = Callable[[Sequence[Row]], Sequence[Hashable]]


def check_declarations(plan: Plan, findings: Findings) -> None:
    """Parameters declared twice or under a taken name, wrong defaults, a limit that lets nothing through."""
    report = findings.at(plan)
    _check_parameters(plan, report)
    if plan.max_depth is not None and plan.max_depth < 1:
        report(Diagnostic(f"MAX_DEPTH must be at least 1, not {plan.max_depth}", plan.name_span))
    if plan.once is not None:
        _check_once_alone(plan, plan.once, report)
    for option in plan.options:
        if option.name.lower() == "commit" and option.values != (Word("batch"),):
            found = ", ".join(map(str, option.values))
            report(Diagnostic(f"COMMIT takes 'batch', not {found!r}", option.span or plan.name_span))


def _check_parameters(plan: Plan, report: Report) -> None:
    declared = {parameter.name.lower() for parameter in plan.parameters}
    known = set(BUILT_IN)
    for parameter in plan.parameters:
        key = parameter.name.lower()
        if key in BUILT_IN:
            report(Diagnostic(f"every plan has a parameter {parameter.name!r} already", parameter.span))
        elif key in known:
            report(Diagnostic(f"the parameter {parameter.name!r} is declared twice", parameter.span))
        elif key in UNIVERSAL_OPTIONS:
            taken = f"{parameter.name!r} cannot be a parameter: every statement has an option {key.upper()}"
            report(Diagnostic(taken, parameter.span))
        for reference in references(parameter.default):
            if reference.name.lower() in declared - known:
                message = f"the default of {parameter.name!r} may use the parameters before it only"
                report(Diagnostic(message, parameter.default_span or parameter.span))
            elif reference.name.lower() not in known:
                report(_unknown_parameter(reference, sorted(known), parameter.default_span, parameter.span))
        known.add(key)


# --- ONCE -----------------------------------------------------------------------------------------


def keys_of(plan: Plan, schema: Schema) -> Keys | None:
    """The keys by which ONCE compares the rows of an input; None if they lack an attribute that it names."""
    unbound = bind_plan_setting("once", plan.once, None)
    if not all(name in schema for name in unbound.names):
        return None
    keys: Keys = bind_plan_setting("once", plan.once, schema).of
    return keys


def _check_once_alone(plan: Plan, once: str, report: Report) -> None:
    if not once.strip():
        report(Diagnostic("ONCE names no attribute", plan.once_span or plan.name_span))
    else:
        try:
            bind_plan_setting("once", once, None)
        except SettingError as error:
            report(_wrong_once(plan, error))
    if not plan.inputs:
        message = "ONCE needs an input: its attributes are looked for there"
        report(Diagnostic(message, plan.once_span or plan.name_span))


def check_once(activation: InferredCall, calls: CallGraph, report: Report) -> bool:
    """Report a ONCE that suits none of the inputs which it looks at; True when that is so."""
    plan = activation.plan
    places = [place for place in range(len(plan.inputs)) if not calls.is_handed_down(plan, place)]
    inputs = [activation.inputs[place] for place in places]
    if plan.once is None or not inputs or None in inputs:
        return False
    try:
        names = bind_plan_setting("once", plan.once, None).names
    except SettingError:
        return False  # reported, whatever the inputs are
    schemas = [schema for schema in inputs if schema is not None]
    suited = [schema for schema in schemas if all(name in schema for name in names)]
    if not suited:
        report(_unsuited_once(plan, names, schemas))
        return True
    try:
        for schema in suited:
            bind_plan_setting("once", plan.once, schema)
    except SettingError as error:
        report(_wrong_once(plan, error))
        return True
    return False


def _unsuited_once(plan: Plan, names: Sequence[str], schemas: Sequence[Schema]) -> Diagnostic:
    known = dict.fromkeys(name for schema in schemas for name in schema)
    shown = ", ".join(known) or "no attributes"
    unknown = next((name for name in names if name not in known), None)
    if unknown is None:
        message = f"ONCE: no input has all of {', '.join(names)}"
    else:
        hint = suggestion(unknown, known)
        message = f"ONCE: unknown attribute {unknown!r}{hint} (the inputs have: {shown})"
    return Diagnostic(message, plan.once_span or plan.name_span)


def _wrong_once(plan: Plan, error: SettingError) -> Diagnostic:
    span = plan.once_span
    if span is not None and error.offset is not None:
        span = inside_literal(span, error.offset)
    return Diagnostic(f"ONCE: {error.message}", span or plan.name_span)


def check_emitted(root: InferredCall, linked: LinkedProgram, findings: Findings) -> None:
    """Report rows emitted to an output that the main plan declares: two relations would become one."""
    declared = {output.name for output in root.plan.outputs}
    for activation in reachable([root]):
        for index, resolved in enumerate(linked.statements(activation.plan)):
            if resolved is None or not isinstance(resolved.target, Operator):
                continue
            setting = resolved.target.emits_to
            name = (activation.bound.get(index) or {}).get(setting or "")
            if name in declared and setting is not None:
                message = declared_output(name, root.plan.name)
                findings.at(activation.plan, index)(Diagnostic(message, resolved.setting_spans.get(setting)))


# --- uses of parameters -------------------------------------------------------------------------


def check_references(plan: Plan, findings: Findings) -> None:
    """Every `$name` and `${name}` must be a parameter."""
    names = [parameter.name for parameter in plan.parameters]
    known = {name.lower() for name in names} | BUILT_IN.keys()
    for index, statement in enumerate(plan.statements):
        for value, span in constants(statement):
            for reference in references(value):
                if reference.name.lower() not in known:
                    mistake = _unknown_parameter(reference, [*names, *BUILT_IN], span, statement.name_span)
                    findings.at(plan, index)(mistake)


def warn_of_unused_parameters(plan: Plan, findings: Findings) -> None:
    """Parameters that neither a statement nor another's default uses."""
    if not plan.parameters:
        return
    values = [value for statement in plan.statements for value, _ in constants(statement)]
    values += [parameter.default for parameter in plan.parameters]
    used = {reference.name.lower() for value in values for reference in references(value)}
    for parameter in plan.parameters:
        if parameter.name.lower() not in used:
            message = f"the parameter {parameter.name!r} is never used"
            findings.at(plan)(Diagnostic(message, parameter.span, "warning"))


def constants(statement: Statement) -> Iterator[tuple[Constant, Span | None]]:
    """Every constant of a statement with its place."""
    for argument in statement.arguments:
        if isinstance(argument, Setting):
            yield argument.value, argument.span
    for option in statement.options:
        spans = option.spans or (option.span,) * len(option.values)
        for value, span in zip(option.values, spans, strict=True):
            if not isinstance(value, Word):
                yield value, span


def _unknown_parameter(
    reference: Reference, known: list[str], span: Span | None, default: Span | None
) -> Diagnostic:
    place = span
    if span is not None and reference.offset is not None:
        place = inside_literal(span, reference.offset)
    if not reference.name:
        return Diagnostic("'${' names no parameter; the two characters themselves are written '$${'", place)
    hint = suggestion(reference.name, known)
    return Diagnostic(f"unknown parameter {reference.name!r}{hint}", place or default)


# --- values for parameters ----------------------------------------------------------------------


def check_required(caller: Plan, resolved: Resolved, calls: CallGraph, main: Plan, report: Report) -> None:
    """A call must set the parameters without default; a recursive one keeps those of the call around it."""
    callee = resolved.plan
    if callee is None:
        return
    given = resolved.settings.keys() | resolved.unknown
    unset = [each for each in callee.parameters if each.required and each.name.lower() not in given]
    if unset and calls.always_inside(caller, callee, main):
        return
    for parameter in unset:
        option = f"{{{parameter.name.upper()}: …}}"
        message = f"{callee.name} needs its parameter {parameter.name!r}: {option}"
        report(Diagnostic(message, resolved.statement.name_span))


def check_given(plan: Plan, parameters: Mapping[str, Any], report: Report) -> None:
    """The parameters that a run sets must exist, and it must set those without default."""
    names = [parameter.name for parameter in plan.parameters]
    known = {name.lower() for name in names}
    given = {name.lower() for name in parameters}
    for name in parameters:
        if name.lower() not in known and name.lower() not in BUILT_IN:
            message = f"{plan.name} has no parameter {name!r}{suggestion(name, names)}"
            report(Diagnostic(message, plan.name_span))
    for parameter in plan.parameters:
        if parameter.required and parameter.name.lower() not in given:
            report(
                Diagnostic(f"the parameter {parameter.name!r} must be set", parameter.span or plan.name_span)
            )


# A plan, and which of its inputs never end.
_Called = tuple[str, frozenset[int]]

_BOTH = "where ONCE and MAX_DEPTH meet, a level begins when the one above it has ended"


def check_commits(linked: LinkedProgram, findings: Findings) -> None:
    """COMMIT counts in the plan that is run, and would be ignored in one that it calls."""
    main = linked.program.main
    called = linked.calls.reached_from(main) - {main.key}
    for plan in linked.program:
        for option in plan.options:
            if plan.key in called and option.name.lower() == "commit":
                message = f"COMMIT counts in the plan that is run, and {plan.name} is called here"
                hint = f"; write it into {main.name}"
                findings.at(plan)(Diagnostic(message + hint, option.span or plan.name_span))


def check_levels(linked: LinkedProgram, findings: Findings) -> None:
    """Report endless inputs, and waits for a later level, where levels begin one after the other."""
    levelled = [plan for plan in linked.program if linked.calls.is_levelled(plan)]
    if not levelled:
        return
    for plan in levelled:
        _check_dependent_calls(plan, linked, findings)
    _Endless(linked, findings).check()


def _check_dependent_calls(plan: Plan, linked: LinkedProgram, findings: Findings) -> None:
    """A call that waits for the results of another one would be above the levels below that one."""
    statements = linked.statements(plan)
    is_recursive = linked.calls.is_recursive
    recursive = [
        index
        for index, resolved in enumerate(statements)
        if resolved is not None and resolved.plan is not None and is_recursive(plan, resolved.plan)
    ]
    readers = linked.wiring(plan).readers()
    successors = [reader for index in recursive for reader in readers[index] if reader != index]
    for index in sorted(downstream(readers, successors).intersection(recursive)):
        found = statements[index]
        assert found is not None
        message = f"this call of {found.target.name} waits for results of its own recursion: {_BOTH}"
        findings.at(plan, index)(Diagnostic(message, found.statement.name_span))


class _Endless:
    """Follows endless relations through the statements and calls of a program."""

    def __init__(self, linked: LinkedProgram, findings: Findings) -> None:
        self._linked = linked
        self._calls = linked.calls
        self._findings = findings
        self._outputs: dict[_Called, frozenset[int]] = {}
        self._callers: dict[_Called, set[_Called]] = {}
        self._reported: set[tuple[str, int, int]] = set()

    def check(self) -> None:
        pending = [(plan.key, frozenset[int]()) for plan in self._linked.program]
        self._outputs = dict.fromkeys(pending, frozenset())
        while pending:
            called = pending.pop()
            endless = self._follow(called, pending.append)
            if endless != self._outputs[called]:
                self._outputs[called] = endless
                pending += self._callers.get(called, ())

    def _follow(self, called: _Called, discover: Callable[[_Called], None]) -> frozenset[int]:
        """The outputs of a plan that never end."""
        plan = self._linked.program.by_name[called[0]]
        endless = {plan.inputs[place].name for place in called[1]}
        statements = self._linked.statements(plan)
        for index in self._linked.wiring(plan).order():
            resolved = statements[index]
            if resolved is None:
                continue
            if resolved.plan is None:
                if _never_ends(resolved, endless):
                    endless.update(name for name in (*resolved.outputs, resolved.errors) if name)
                continue
            inputs = frozenset(place for place, name in enumerate(resolved.inputs) if name in endless)
            if not (called[1] and self._calls.is_recursive(plan, resolved.plan)):
                self._report(plan, index, resolved, inputs)  # else the outermost call was reported
            found = self._call((resolved.plan.key, inputs), called, discover)
            endless.update(name for place in found if (name := resolved.outputs[place]) is not None)
        return frozenset(place for place, output in enumerate(plan.outputs) if output.name in endless)

    def _call(self, inner: _Called, caller: _Called, discover: Callable[[_Called], None]) -> frozenset[int]:
        """Return the outputs of a call that never end, as far as they are known."""
        self._callers.setdefault(inner, set()).add(caller)
        if inner not in self._outputs:
            self._outputs[inner] = frozenset()
            discover(inner)
        return self._outputs[inner]

    def _report(self, plan: Plan, index: int, resolved: Resolved, inputs: frozenset[int]) -> None:
        callee = resolved.plan
        if callee is None or not self._calls.is_levelled(callee):
            return
        arguments = variables(resolved.statement)
        for place in sorted(inputs - self._calls.handed_down(plan, resolved.statement, callee)):
            if (plan.key, index, place) not in self._reported:
                self._reported.add((plan.key, index, place))
                argument = arguments[place]
                message = f"{argument.name!r} never ends, and {callee.name} needs its end: {_BOTH}"
                self._findings.at(plan, index)(Diagnostic(message, argument.span))


def _never_ends(resolved: Resolved, endless: set[str]) -> bool:
    operator = resolved.target
    assert isinstance(operator, Operator)
    if resolved.unknown or resolved.has_wrong_inputs:
        return False
    if has_trait(operator, "endless", resolved.settings, unknown=False):
        return True
    reads = any(name in endless for name in resolved.inputs)
    return reads and not has_trait(operator, "ends_early", resolved.settings, unknown=False)
