"""Random programs with inputs: up to four levels of subplans below the main plan, some of them recursive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from tests.naive.bag import Bag
from tests.naive.body import ALWAYS, broken, call_of, statement
from tests.naive.recursion import recursive
from tests.naive.writer import Names, PlanText, Signature, Var, Writer

VALUES: Mapping[str, tuple[Any, ...]] = {
    "n": (0, 1, 1, 2, 2, 3, 3, None),
    "k": (0, 1, 2, 2, 5, None),
    "m": (1, 1.0, Decimal(1), 2, 2.5, float("nan"), None),
    "a": ("x", "x", "y", "", "1", None),
    "b": (True, False, None),
}
MAIN = "main_plan"


@dataclass(frozen=True)
class Example:
    """A random program with its inputs; `seed` makes it again."""

    seed: int
    plans: tuple[PlanText, ...]
    inputs: Mapping[str, Bag]

    @property
    def text(self) -> str:
        return "\n\n".join(map(str, self.plans)) + "\n"

    def with_plans(self, plans: Sequence[PlanText]) -> Example:
        return replace(self, plans=tuple(plans))


def example(seed: int) -> Example:
    """The random program of a seed."""
    random = Random(seed)
    plans: list[PlanText] = []
    below: list[Signature] = []
    for level in range(random.choice((0, 1, 1, 2, 2, 3, 4)), 0, -1):
        texts, signatures = _level(random, level, below)
        plans += texts
        # A plan may call those further down as well.
        below = [*signatures, *random.sample(below, min(len(below), 1))]
    names = {f"input{number}": _input_names(random) for number in range(random.choice((1, 2, 2, 3)))}
    inputs = {name: _rows(random, attributes) for name, attributes in names.items()}
    plans.append(_main(random, inputs, below))
    random.shuffle(plans)
    return Example(seed, tuple(plans), inputs)


def _input_names(random: Random) -> Names:
    rest = ALWAYS[1:]
    chosen = set(random.sample(rest, random.randint(0, 3)))
    return ("n", *(name for name in rest if name in chosen))


def _rows(random: Random, names: Names) -> Bag:
    if random.random() < 0.12:
        return Bag(names, untold=random.random() < 0.6)
    count = random.randint(2, 7)
    return Bag(names, tuple(tuple(random.choice(VALUES[name]) for name in names) for _ in range(count)))


def _level(random: Random, level: int, below: Sequence[Signature]) -> tuple[list[PlanText], list[Signature]]:
    texts: list[PlanText] = []
    signatures: list[Signature] = []
    for number in range(random.choice((1, 1, 2))):
        name = f"sub{level}{'abc'[number]}"
        if random.random() < 0.45:
            more, made = recursive(random, name, below)
        else:
            more, made = _subplan(random, name, below)
        texts += more
        signatures += made
    return texts, signatures


def _subplan(random: Random, name: str, below: Sequence[Signature]) -> tuple[list[PlanText], list[Signature]]:
    inputs = tuple(Var(f"in{number}", _input_names(random)) for number in range(random.choice((1, 1, 2))))
    writer = Writer(random, name, inputs, below, taken=0.5)
    if random.random() < 0.2:
        writer.parameters.append("stride = 1")
    outputs = _body(writer, below, random.randint(1, 3), random.choice((1, 1, 2)))
    parameter = "stride" if writer.parameters else None
    signature = Signature(
        name,
        tuple(variable.names for variable in inputs),
        tuple(variable.names for variable in outputs),
        writer.may_fail,
        parameter,
        writer.stops_early,
    )
    return [writer.text(outputs)], [signature]


def _main(random: Random, given: Mapping[str, Bag], below: Sequence[Signature]) -> PlanText:
    inputs = tuple(Var(name, bag.known) for name, bag in given.items())
    writer = Writer(random, MAIN, inputs, below, taken=0.65)
    outputs = _body(writer, below, random.randint(2, 5), random.choice((1, 2, 3)))
    return writer.text(outputs, declared={name for name, bag in given.items() if not bag.untold})


def _body(writer: Writer, below: Sequence[Signature], statements: int, outputs: int) -> list[Var]:
    """Random statements around at least one call, and the results to give."""
    is_main = writer.name == MAIN
    for rows in writer.inputs:
        if writer.chance(0.75 if is_main else 0.3):
            broken(writer, rows, taken=1.0 if is_main else 0.6)  # else around the call
            writer.variables.remove(rows)  # so that the marks of the other one reach many statements
    results = [statement(writer) for _ in range(statements)]
    if below:
        results.append(call_of(writer, writer.random.choice(list(below))))
        results += [statement(writer) for _ in range(writer.random.randint(0, 2))]
    if writer.parameters:
        rows = writer.numbered()
        results.append(writer.one("select", [rows], ['"n != ${stride}"'], rows.names))
    failed = [variable for variable in writer.variables if "error" in variable.names]
    if failed and writer.chance(0.3):
        results.append(writer.random.choice(failed))
    return list({variable.name: variable for variable in reversed(results)}.values())[:outputs]
