"""What a mistaken statement must have meant, so that one mistake is not reported again as others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aioflow.analysis.findings import Findings
from aioflow.analysis.resolve import Target, input_limits, output_names
from aioflow.analysis.wiring import Wiring, variables
from aioflow.errors import Diagnostic
from aioflow.plan import Plan, Statement, Variable


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


def without_excess(plan: Plan, target_of: Callable[[Statement], Target | None]) -> Plan:
    """The plan without the variables that stand where their statements take none."""
    return replace(plan, statements=tuple(_trimmed(each, target_of(each)) for each in plan.statements))


def _trimmed(statement: Statement, target: Target | None) -> Statement:
    given = variables(statement)
    most = input_limits(target)[1] if target else None
    if most is None or len(given) <= most:
        return statement
    settings = tuple(each for each in statement.arguments if not isinstance(each, Variable))
    return replace(statement, arguments=(*given[:most], *settings))
