"""Mistakes in how plans call each other: levels that cannot end, a COMMIT that would be ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aioflow.analysis.callgraph import CallGraph
from aioflow.analysis.findings import Findings
from aioflow.analysis.fitting import has_trait
from aioflow.analysis.resolve import Resolved
from aioflow.analysis.wiring import Wiring, downstream, variables
from aioflow.errors import Diagnostic
from aioflow.operator import Operator
from aioflow.plan import Plan, Program

Statements = Mapping[str, Sequence[Resolved | None]]
# A plan, and which of its inputs never end.
_Called = tuple[str, frozenset[int]]

_BOTH = "where ONCE and MAX_DEPTH meet, a level begins when the one above it has ended"


def check_commits(program: Program, calls: CallGraph, findings: Findings) -> None:
    """COMMIT counts in the plan that is run, and would be ignored in one that it calls."""
    main = program.main
    called = calls.reached_from(main) - {main.key}
    for plan in program:
        for option in plan.options:
            if plan.key in called and option.name.lower() == "commit":
                message = f"COMMIT counts in the plan that is run, and {plan.name} is called here"
                hint = f"; write it into {main.name}"
                findings.at(plan)(Diagnostic(message + hint, option.span or plan.name_span))


def check_levels(
    program: Program,
    statements: Statements,
    wirings: Mapping[str, Wiring],
    calls: CallGraph,
    findings: Findings,
) -> None:
    """Recursions whose levels begin one after the other: what never ends, or waits for a later level."""
    levelled = [plan for plan in program if calls.is_levelled(plan)]
    if not levelled:
        return
    for plan in levelled:
        _check_dependent_calls(plan, statements[plan.key], wirings[plan.key], calls, findings)
    _Endless(program, statements, wirings, calls, findings).check()


def _check_dependent_calls(
    plan: Plan, statements: Sequence[Resolved | None], wiring: Wiring, calls: CallGraph, findings: Findings
) -> None:
    """A call that waits for the results of another one would be above the levels below that one."""
    recursive = [
        index
        for index, resolved in enumerate(statements)
        if resolved is not None and resolved.plan is not None and calls.is_recursive(plan, resolved.plan)
    ]
    readers = wiring.readers()
    successors = [reader for index in recursive for reader in readers[index] if reader != index]
    for index in sorted(downstream(readers, successors).intersection(recursive)):
        found = statements[index]
        assert found is not None
        message = f"this call of {found.target.name} waits for results of its own recursion: {_BOTH}"
        findings.at(plan, index)(Diagnostic(message, found.statement.name_span))


class _Endless:
    """Follows what never ends through the statements and calls of a program."""

    def __init__(
        self,
        program: Program,
        statements: Statements,
        wirings: Mapping[str, Wiring],
        calls: CallGraph,
        findings: Findings,
    ) -> None:
        self._program = program
        self._statements = statements
        self._wirings = wirings
        self._calls = calls
        self._findings = findings
        self._outputs: dict[_Called, frozenset[int]] = {}
        self._callers: dict[_Called, set[_Called]] = {}
        self._reported: set[tuple[str, int, int]] = set()

    def check(self) -> None:
        pending = [(plan.key, frozenset[int]()) for plan in self._program]
        self._outputs = dict.fromkeys(pending, frozenset())
        while pending:
            called = pending.pop()
            endless = self._follow(called, pending.append)
            if endless != self._outputs[called]:
                self._outputs[called] = endless
                pending += self._callers.get(called, ())

    def _follow(self, called: _Called, discover: Callable[[_Called], None]) -> frozenset[int]:
        """The outputs of a plan that never end."""
        plan = self._program.by_name[called[0]]
        endless = {plan.inputs[place].name for place in called[1]}
        statements = self._statements[plan.key]
        for index in self._wirings[plan.key].order():
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
            inner = (resolved.plan.key, inputs)
            self._callers.setdefault(inner, set()).add(called)
            if inner not in self._outputs:
                self._outputs[inner] = frozenset()
                discover(inner)
            names = [resolved.outputs[place] for place in self._outputs[inner]]
            endless.update(name for name in names if name is not None)
        return frozenset(place for place, output in enumerate(plan.outputs) if output.name in endless)

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
