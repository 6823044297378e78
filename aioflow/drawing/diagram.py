"""A plan as a diagram: boxes for statements, inputs and outputs, and the edges between them.

What Mermaid, DOT and SVG have in common; how each looks is left to their modules.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from aioflow.plan import (
    Constant,
    Option,
    ParameterReference,
    Plan,
    Program,
    Setting,
    Statement,
    Variable,
    Word,
)

LINE_WIDTH = 34
LINES_AT_MOST = 5


@dataclass(frozen=True)
class Box:
    """A statement (an operator or the call of a plan), or an input or output of the plan."""

    id: str
    kind: Literal["operator", "call", "input", "output"]
    title: str
    lines: tuple[str, ...] = ()
    recursive: bool = False


@dataclass(frozen=True)
class Edge:
    """A variable on its way from the box that produces it to one that uses it."""

    source: str
    target: str
    variable: str
    kind: Literal["data", "errors", "signal"] = "data"


@dataclass(frozen=True)
class Diagram:
    name: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


def diagrams_of(program: Program, *, all_plans: bool = False) -> list[Diagram]:
    """Return the diagram of the main plan, followed, on request, by those of all plans that it reaches."""
    calls = {plan.key: set(_called(plan, program)) for plan in program}
    reached = {key: _reachable(key, calls) for key in calls}
    main = program.main.key
    keys = [main]
    if all_plans:
        keys += [plan.key for plan in program if plan.key in reached[main] and plan.key != main]
    return [_diagram(program.by_name[key], reached) for key in keys]


def _called(plan: Plan, program: Program) -> Iterator[str]:
    for statement in plan.statements:
        if statement.operator.lower() in program.by_name:
            yield statement.operator.lower()


def _reachable(start: str, calls: Mapping[str, set[str]]) -> set[str]:
    """Return the plans that a plan calls, directly or through others; itself only if it recurs."""
    found: set[str] = set()
    waiting = list(calls[start])
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += calls[key]
    return found


def _diagram(plan: Plan, reached: Mapping[str, set[str]]) -> Diagram:
    boxes = [Box(f"in{number}", "input", each.name) for number, each in enumerate(plan.inputs, 1)]
    boxes += [_statement_box(f"s{number}", each, plan, reached) for number, each in _numbered(plan)]
    boxes += [Box(f"out{number}", "output", each.name) for number, each in enumerate(plan.outputs, 1)]
    return Diagram(plan.name, tuple(boxes), tuple(dict.fromkeys(_edges(plan))))


def _numbered(plan: Plan) -> Iterator[tuple[int, Statement]]:
    return enumerate(plan.statements, 1)


def _statement_box(box_id: str, statement: Statement, plan: Plan, reached: Mapping[str, set[str]]) -> Box:
    key = statement.operator.lower()
    lines = tuple(_lines(statement))
    if key not in reached:
        return Box(box_id, "operator", statement.operator, lines)
    return Box(box_id, "call", statement.operator, lines, recursive=plan.key in reached[key] | {key})


# --- edges --------------------------------------------------------------------------------------


def _edges(plan: Plan) -> Iterator[Edge]:
    producers = _producers(plan)

    def edge(variable: Variable, target: str, signal: bool = False) -> Iterator[Edge]:
        if variable.name in producers:
            source, kind = producers[variable.name]
            yield Edge(source, target, variable.name, "signal" if signal else kind)

    for number, statement in _numbered(plan):
        for argument in statement.arguments:
            if isinstance(argument, Variable):
                yield from edge(argument, f"s{number}")
        for signal in statement.wait:
            yield from edge(signal, f"s{number}", signal=True)
    for number, output in enumerate(plan.outputs, 1):
        yield from edge(output, f"out{number}")


def _producers(plan: Plan) -> dict[str, tuple[str, Literal["data", "errors", "signal"]]]:
    found: dict[str, tuple[str, Literal["data", "errors", "signal"]]] = {}
    for number, declared in enumerate(plan.inputs, 1):
        found.setdefault(declared.name, (f"in{number}", "data"))
    for number, statement in _numbered(plan):
        for output in statement.outputs:
            found.setdefault(output.name, (f"s{number}", "data"))
        for signal in (*statement.enable, *statement.done):
            found.setdefault(signal.name, (f"s{number}", "signal"))
        if isinstance(statement.errors, Variable):
            found.setdefault(statement.errors.name, (f"s{number}", "errors"))
    return found


# --- the text in a box --------------------------------------------------------------------------


def _lines(statement: Statement) -> list[str]:
    """Settings and options, shortened to what fits into a box."""
    texts = [_setting_text(each) for each in statement.arguments if isinstance(each, Setting)]
    texts += [_option_text(option) for option in statement.options]
    if statement.errors == "skip":
        texts.append("ERRORS skip")
    lines = [line for text in texts for line in _wrap(text)]
    if len(lines) > LINES_AT_MOST:
        lines = [*lines[: LINES_AT_MOST - 1], "…"]
    return lines


def _setting_text(setting: Setting) -> str:
    text = constant_text(setting.value)
    return f"{setting.name} = {text}" if setting.name else text


def _option_text(option: Option) -> str:
    return " ".join([option.name.upper(), ", ".join(map(constant_text, option.values))]).strip()


def constant_text(value: Constant | Word) -> str:
    """Return a constant as a reader knows it, strings without their quotes."""
    if isinstance(value, str | ParameterReference | Word):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(constant_text, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value}"


def _wrap(text: str) -> list[str]:
    # Two lines hold most conditions; of a longer text the beginning tells enough.
    return textwrap.wrap(text, LINE_WIDTH, max_lines=2, placeholder=" …", break_on_hyphens=False) or ['""']
