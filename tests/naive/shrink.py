"""Makes a program that shows a disagreement smaller: fewer statements, clauses, plans and rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.naive.bag import Bag
from tests.naive.generator import MAIN, Example
from tests.naive.writer import PlanText

MOST_TRIES = 1500


def shrink(example: Example, still_wrong: Callable[[Example], bool]) -> Example:
    """A smaller example that is wrong too; `still_wrong` also says no to what is not a valid program."""
    tries = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(example):
            tries += 1
            if tries > MOST_TRIES:
                return example
            if still_wrong(smaller):
                example = smaller
                progress = True
                break
    return example


def _smaller(example: Example) -> Iterator[Example]:
    yield from _without_plans(example)
    for number, plan in enumerate(example.plans):
        for changed in _smaller_plans(plan):
            yield example.with_plans([*example.plans[:number], changed, *example.plans[number + 1 :]])
    for name, bag in example.inputs.items():
        for place in range(len(bag.rows)):
            rows = (*bag.rows[:place], *bag.rows[place + 1 :])
            yield replace(example, inputs={**example.inputs, name: Bag(bag.names, rows)})


def _without_plans(example: Example) -> Iterator[Example]:
    for plan in example.plans:
        if plan.name != MAIN and not any(
            re.search(rf"\b{plan.name} \(", statement)
            for other in example.plans
            if other is not plan
            for statement in other.statements
        ):
            yield example.with_plans([other for other in example.plans if other is not plan])


def _smaller_plans(plan: PlanText) -> Iterator[PlanText]:
    for place, statement in enumerate(plan.statements):
        others = (*plan.statements[:place], *plan.statements[place + 1 :])
        yield replace(plan, statements=others)
        yield from _bypassed(plan, statement, others)
        for simpler in _simpler(statement):
            yield replace(plan, statements=(*plan.statements[:place], simpler, *plan.statements[place + 1 :]))
    yield from _fewer_outputs(plan)


def _bypassed(plan: PlanText, statement: str, others: tuple[str, ...]) -> Iterator[PlanText]:
    """Without the statement; who read its results reads one of its inputs."""
    given, _, made = statement.partition("(")[2].partition(")")[0].rpartition(" : ")
    for old in re.findall(r"\b[vx]\d+\b", made):
        for new in re.findall(r"\b(?:[vx]\d+|in\d|input\d|top)\b", re.sub(r'"[^"]*"', "", given)):
            if not new.startswith(("v", "x")) and any(re.search(rf"\b{old}\b", line) for line in plan.header):
                continue  # an output that is an input shows nothing
            renamed = [re.sub(rf"\b{old}\b", new, other) for other in others]
            header = [re.sub(rf"\b{old}\b", new, line) for line in plan.header]
            yield replace(plan, statements=tuple(renamed), header=tuple(header))


def _simpler(statement: str) -> Iterator[str]:
    """The statement with one clause or variable input less."""
    head, brace, clauses = statement.partition(" {")
    if brace:
        parts = clauses.rstrip("}").split("; ")
        for place in range(len(parts)):
            rest = parts[:place] + parts[place + 1 :]
            yield f"{head} {{{'; '.join(rest)}}}" if rest else head
    if head.startswith("union ("):
        inputs, _, outputs = head[len("union (") :].partition(" : ")
        names = inputs.split(", ")
        for place in range(len(names) if len(names) > 1 else 0):
            kept = ", ".join(names[:place] + names[place + 1 :])
            yield f"union ({kept} : {outputs}{brace}{clauses}"


def _fewer_outputs(plan: PlanText) -> Iterator[PlanText]:
    for place, line in enumerate(plan.header):
        names = line.removeprefix("OUTPUT: ").split(", ")
        if line.startswith("OUTPUT: ") and plan.name == MAIN and len(names) > 1:
            for left_out in range(len(names)):
                kept = ", ".join(names[:left_out] + names[left_out + 1 :])
                yield replace(
                    plan, header=(*plan.header[:place], f"OUTPUT: {kept}", *plan.header[place + 1 :])
                )
        if line.startswith(("PARAM", "MAX_DEPTH", "ONCE")):
            yield replace(plan, header=(*plan.header[:place], *plan.header[place + 1 :]))
