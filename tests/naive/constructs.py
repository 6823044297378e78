"""What a program is made of: how often each operator and construct stands in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from aioflow.plan import Plan, Program, Setting, Statement, Variable, Word
from tests.naive.bag import Bag
from tests.naive.evaluator import Evaluator
from tests.naive.operators import OPERATORS

# Every operator and construct that random plans must show; `happened` is told by the naive evaluator.
HAPPENINGS = (
    "happened: call",
    "happened: recursive call",
    "happened: recursion that ended",
    "happened: MAX_DEPTH stop",
    "happened: input only handed down",
    "happened: levels in turn",
    "happened: WAIT that never came",
    "happened: dead statement",
    "happened: dead input beside a live one",
    "happened: tuple failure taken",
    "happened: whole relation failure taken",
    "happened: call failure taken",
    "happened: absence taken",
    "happened: marks that somebody vouched for",
    "happened: limit that cut",
    "happened: run failed",
    "marks: whole",
    "marks: partial",
    "marks: doubtful",
    "marks: partial and doubtful",
    "marks: left open in part",
)
CONSTRUCTS = (
    "4 levels of subplans",
    "ALL",
    "BUFFER",
    "BY",
    "DONE",
    "ENABLE",
    "ERRORS of a call",
    "ERRORS of a relation",
    "ERRORS of tuples",
    "ERRORS: skip",
    "MAX_DEPTH",
    "ON",
    "ONCE",
    "ONCE with several attributes",
    "ORDERED",
    "OUTER",
    "PARAM",
    "TYPE: anti",
    "TYPE: full",
    "TYPE: inner",
    "TYPE: left",
    "TYPE: right",
    "TYPE: semi",
    "WHOLE",
    "WAIT on a signal",
    "WAIT on a variable",
    "WORKERS",
    "call",
    "call that sets a parameter",
    "diamond",
    "empty input",
    "empty input that tells nothing",
    "fan-out",
    "mutual recursion",
    "output that nobody needs",
    "recursive call",
    "tree recursion",
)


# What is best when it is rare.
MAY_BE_RARE = ("marks: left open in part",)


def names() -> list[str]:
    return [*(f"operator {name}" for name in sorted(OPERATORS)), *CONSTRUCTS, *HAPPENINGS]


def constructs(program: Program, inputs: Mapping[str, Bag]) -> Counter[str]:
    """The operators and constructs of a program, each as often as it stands there."""
    found: Counter[str] = Counter()
    evaluator = Evaluator(program)
    for plan in program:
        _of_plan(found, plan, evaluator)
    found["empty input"] += sum(not bag.rows for bag in inputs.values())
    found["empty input that tells nothing"] += sum(bag.untold for bag in inputs.values())
    found["4 levels of subplans"] += any(plan.name.startswith("sub4") for plan in program)
    return found


def _of_plan(found: Counter[str], plan: Plan, evaluator: Evaluator) -> None:
    found["PARAM"] += bool(plan.parameters)
    found["MAX_DEPTH"] += plan.max_depth is not None
    found["ONCE"] += plan.once is not None
    found["ONCE with several attributes"] += plan.once is not None and "," in plan.once
    uses = Counter(
        argument.name
        for statement in plan.statements
        for argument in statement.arguments
        if isinstance(argument, Variable)
    )
    found["fan-out"] += sum(count > 1 for count in uses.values())
    found["diamond"] += _diamonds(plan)
    signals = {
        signal.name for statement in plan.statements for signal in (*statement.enable, *statement.done)
    }
    for statement in plan.statements:
        _of_statement(found, statement, signals)
        _of_call(found, plan, statement, evaluator)
    own_calls = sum(statement.operator.lower() == plan.key for statement in plan.statements)
    found["tree recursion"] += own_calls > 1


def _diamonds(plan: Plan) -> int:
    """Statements whose inputs stem from one variable by different ways."""
    sources: dict[str, set[str]] = {declaration.name: {declaration.name} for declaration in plan.inputs}
    count = 0
    pending = list(plan.statements)
    while pending:
        for statement in list(pending):
            inputs = [argument.name for argument in statement.arguments if isinstance(argument, Variable)]
            if all(name in sources for name in inputs):
                origins = [sources[name] for name in dict.fromkeys(inputs)]
                count += len(set().union(*origins)) < sum(map(len, origins))
                errors = [statement.errors] if isinstance(statement.errors, Variable) else []
                for variable in (*statement.outputs, *errors):
                    sources[variable.name] = set().union(*origins) | {variable.name}
                pending.remove(statement)
    return count


def _of_statement(found: Counter[str], statement: Statement, signals: set[str]) -> None:
    key = statement.operator.lower()
    if key in OPERATORS:
        found[f"operator {key}"] += 1
    found["ENABLE"] += bool(statement.enable)
    found["DONE"] += bool(statement.done)
    for waited in statement.wait:
        found["WAIT on a signal" if waited.name in signals else "WAIT on a variable"] += 1
    if statement.errors == "skip":
        found["ERRORS: skip"] += 1
    elif statement.errors is not None:
        inputs = sum(isinstance(argument, Variable) for argument in statement.arguments)
        kind = "a call"
        if key in OPERATORS:
            kind = "tuples" if OPERATORS[key].fails_by_tuple(inputs) else "a relation"
        found[f"ERRORS of {kind}"] += 1
    for option in statement.options:
        name = option.name.upper()
        if name == "TYPE" and option.values:
            value = option.values[0]
            name = f"TYPE: {value.text if isinstance(value, Word) else value}"
        if name in CONSTRUCTS:
            found[name] += 1
    found["output that nobody needs"] += any(output.name == "_" for output in statement.outputs)


def _of_call(found: Counter[str], plan: Plan, statement: Statement, evaluator: Evaluator) -> None:
    target = evaluator.program.by_name.get(statement.operator.lower())
    if target is None:
        return
    recursive = evaluator.is_recursive(plan, target)
    found["recursive call" if recursive else "call"] += 1
    found["mutual recursion"] += recursive and target.key != plan.key
    parameters = {parameter.name.lower() for parameter in target.parameters}
    named = {option.name.lower() for option in statement.options}
    constants = any(isinstance(argument, Setting) for argument in statement.arguments)
    found["call that sets a parameter"] += bool(parameters & named) or constants
