"""Writes one random plan, statement by statement; each reads earlier ones only, so none is on a cycle.

An attribute's name tells its kind: n, k and i are small integers, m a number that may be 1 or 1.0; a, s
and text are texts, b is a boolean. What depends on how a number is written never meets an m.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from tests.naive.operators import OPERATORS

INTEGERS = ("n", "k", "i")
TEXTS = ("a", "s", "text")
TYPES = {**dict.fromkeys((*INTEGERS, "m"), "number"), **dict.fromkeys(TEXTS, "char"), "b": "boolean"}

# What an ERRORS variable carries: failed tuples, the whole input, or what failed inside a call.
Kind = Literal["tuple", "whole", "call"]
Names = tuple[str, ...]


@dataclass(frozen=True)
class Var:
    """A variable with the attributes of its relation."""

    name: str
    names: Names

    @property
    def plain(self) -> Names:
        """Its attributes that expressions can use freely."""
        return tuple(name for name in self.names if name in TYPES)


@dataclass(frozen=True)
class PlanText:
    """A plan in pieces that can be left out one by one."""

    name: str
    header: tuple[str, ...]
    statements: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"PLAN {self.name}", "{", *(f"  {line}" for line in self.header), "  BODY", "  {"]
        return "\n".join([*lines, *(f"    {statement}" for statement in self.statements), "  }", "}"])


@dataclass(frozen=True)
class Signature:
    """A plan that others may call."""

    name: str
    inputs: tuple[Names, ...]
    outputs: tuple[Names, ...]
    may_fail: bool = False
    parameter: str | None = None
    stops_early: bool = False  # a null in it may stop what feeds its inputs


def typed(names: Sequence[str]) -> str:
    return ", ".join(f"{name} {TYPES[name]}" for name in names)


@dataclass
class Writer:
    """A plan that is being written."""

    random: Random
    name: str
    inputs: tuple[Var, ...]
    callables: Sequence[Signature] = ()
    taken: float = 0.9  # how many of the failures are taken where they happen
    lines: list[str] = field(default_factory=list)
    variables: list[Var] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    may_fail: bool = False
    stops_early: bool = False
    waits: bool = True  # whether statements may wait for others
    # Variables behind a failure that is not taken where it happens. What feeds a null may be stopped
    # before it fails, which nobody can foresee: so these are kept away from it.
    open_failures: set[str] = field(default_factory=set)
    _count: int = 0
    _new_errors: list[Var] = field(default_factory=list)
    _new_signals: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.variables.extend(self.inputs)

    # --- choices ---

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def some(self, names: Sequence[str], at_least: int = 1) -> Names:
        """Some of these, in their order."""
        count = self.random.randint(min(at_least, len(names)), len(names))
        chosen = set(self.random.sample(list(names), count))
        return tuple(name for name in names if name in chosen)

    def pick(self, fits: Callable[[Var], bool] = lambda variable: True) -> Var:
        """A variable, rather a new one; one that fits is made if there is none."""
        fitting = [variable for variable in self.variables if fits(variable)]
        if not fitting:
            return self.make_fitting()
        if self.chance(0.45):
            return self.random.choice(fitting[-3:])
        given = [variable for variable in fitting if variable in self.inputs]
        return self.random.choice(given if given and self.chance(0.4) else fitting)

    def pick_sure(self) -> Var:
        """A variable with no untaken failure behind it."""
        return self.pick(lambda variable: variable.name not in self.open_failures)

    def make_fitting(self) -> Var:
        return self.adapt(self.random.choice(self.inputs), ("n", "k", "a"))

    def numbered(self) -> Var:
        """A variable with the attribute n, which functions need."""
        return self.pick(lambda variable: "n" in variable.names)

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    # --- statements ---

    def add(
        self,
        operator: str,
        inputs: Sequence[Var],
        constants: Sequence[str] = (),
        outputs: Sequence[Names] = (),
        options: Sequence[str] = (),
        kind: Kind = "whole",
        fails: bool = False,
        signals: bool = True,
        enable: bool = True,
    ) -> list[Var]:
        """Write a statement with random clauses; its outputs."""
        known = OPERATORS.get(operator)
        if known is not None and known.fails_by_tuple(len(inputs)):
            kind = "tuple"
        clauses = [*options, *self._clauses(signals, enable), *self._errors(kind, fails, inputs)]
        clauses = list({clause.partition(":")[0]: clause for clause in clauses}.values())
        made = [Var(self.fresh("v"), names) for names in outputs]
        # What leads to an output that nobody takes may be stopped early: nobody can foresee whether it fails.
        if len(made) > 1 and not (kind == "call" and fails) and self.chance(0.15):
            unneeded = self.random.randrange(len(made))
            made[unneeded] = Var("_", made[unneeded].names)
        arguments = [variable.name for variable in inputs]
        # Constants may stand anywhere among the variables, in their own order.
        place = len(arguments) if self.chance(0.8) else 0
        arguments[place:place] = constants
        colon = f" : {', '.join(variable.name for variable in made)}" if made else ""
        body = f" {{{'; '.join(clauses)}}}" if clauses else ""
        self.lines.append(f"{operator} ({', '.join(arguments)}{colon}){body}")
        new = [variable for variable in (*made, *self._new_errors) if variable.name != "_"]
        taken = any(clause.startswith("ERRORS") for clause in clauses)
        untaken = fails and (kind == "call" or not taken)
        if untaken or any(variable.name in self.open_failures for variable in inputs):
            self.open_failures.update(variable.name for variable in new)
        self.variables += new
        self.signals += self._new_signals
        self._new_errors, self._new_signals = [], []
        return made

    def one(
        self, operator: str, inputs: Sequence[Var], constants: Sequence[str], names: Names, *options: str
    ) -> Var:
        return self.add(operator, inputs, constants, [names], options)[0]

    def _clauses(self, signals: bool, enable: bool) -> list[str]:
        clauses = []
        if self.chance(0.1 if self.signals else 0.03) and self.waits:
            clauses.append(f"WAIT: {', '.join(self._waited())}")
        if signals and enable and self.chance(0.13):
            clauses.append(f"ENABLE: {self._signal('e')}")
        if signals and self.chance(0.13):
            clauses.append(f"DONE: {self._signal('d')}")
        if self.chance(0.03):
            clauses.append(f"BUFFER: {self.random.choice((1, 2, 7))}")
        if signals and self.chance(0.03):
            clauses.append("ORDERED")
        if self.chance(0.03):
            clauses.append(f"WORKERS: {self.random.choice((1, 2, 5))}")
        if signals and self.chance(0.04):
            clauses.append("WHOLE")
        return clauses

    def _signal(self, prefix: str) -> str:
        name = self.fresh(prefix)
        self._new_signals.append(name)
        return name

    def _waited(self) -> list[str]:
        names = [variable.name for variable in self.variables]
        if self.signals and self.chance(0.75):
            names = self.signals
        return self.random.sample(names, min(len(names), 2 if self.chance(0.15) else 1))

    def _errors(self, kind: Kind, fails: bool, inputs: Sequence[Var]) -> list[str]:
        choice = self.random.random()
        taken = max(self.taken, 0.85) if kind == "call" else self.taken
        if choice > (taken if fails else 0.03):
            self.may_fail |= fails
            return []
        if choice < 0.01 or (fails and choice < 0.25):
            return ["ERRORS: skip"]
        about = ("error", "error-kind", "attempts")
        if kind == "tuple":
            names = tuple(dict.fromkeys((*inputs[0].names, *about)))
        else:
            names = ("relation", *about) if kind == "whole" else ("where", "tuple", *about)
        made = Var(self.fresh("x"), names)
        self._new_errors.append(made)
        return [f"ERRORS: {made.name}"]

    # --- making one relation fit another's attributes ---

    def adapt(self, variable: Var, names: Names) -> Var:
        """The variable itself if it has these attributes, else a projection to them."""
        if set(variable.names) == set(names):
            return variable
        parts = ", ".join(self.expression(variable, name) for name in names)
        return self.one("project", [variable], [f'"{parts}"'], names)

    def expression(self, variable: Var, name: str) -> str:
        """A projection's part that gives an attribute."""
        if name in variable.names and self.chance(0.9):
            return name
        own = [each for each in variable.plain if each in INTEGERS]
        if name == "n":
            if own and self.chance(0.7):
                chosen = self.random.choice(own)
                return f"case when {chosen} > 3 then 3 when {chosen} < 0 then 0 else {chosen} end as n"
            return f"{self.random.randint(0, 3)} as n"
        if name in INTEGERS:
            if own and self.chance(0.7):
                sign, number = self.random.choice("+-*"), self.random.randint(1, 3)
                return f"{self.random.choice(own)} {sign} {number} as {name}"
            return f"{self.random.randint(0, 9)} as {name}"
        if name == "m":
            return f"{self.random.choice(('1', '1.0', 'null', *own))} as m"
        if name == "b":
            return f"{self.condition(variable)} as b" if own else "true as b"
        texts = [each for each in variable.plain if each in TEXTS]
        if texts and self.chance(0.6):
            return f"{self.random.choice(texts)} || 'z' as {name}"
        return f"'{self.random.choice('xyz')}' as {name}"

    def condition(self, variable: Var) -> str:
        """A condition on a variable's tuples."""
        names = variable.plain
        if not names:
            return "1 = 1"
        name = self.random.choice(names)
        simple = self.random.choice(self._conditions(name, names))
        match self.random.randrange(8):
            case 0:
                return f"not ({simple})"
            case 1:
                return f"{simple} or {self.random.choice(self._conditions(names[0], names))}"
            case 2:
                return f"{simple} and {self.random.choice(self._conditions(names[-1], names))}"
        return simple

    def _conditions(self, name: str, names: Names) -> list[str]:
        common = [f"{name} is null", f"{name} is not null", f"{name} = {name}"]
        if name in INTEGERS:
            other = self.random.choice([each for each in names if each in INTEGERS])
            number = self.random.randint(0, 3)
            return [
                f"{name} >= {min(number, 1)}",
                f"{name} <= {number + 1}",
                f"{name} != {number}",
                f"{name} <= {other} + 1",
                f"{name} in (0, {number}, {number + 1})",
                f"{name} between {number - 1} and {number + 2}",
                f"{name} + 1 < {other} * 2",
                *common[:2],
            ]
        if name == "m":
            return ["m = 1", "m in (1, 2)", "m != 2.5", *common[:2]]
        if name == "b":
            return ["b = true", "b = false", *common[:2]]
        return [f"{name} != 'x'", f"{name} like 'x%'", f"{name} in ('x', 'y')", f"{name} < 'y'", *common[:2]]

    def text(
        self, outputs: Sequence[Var], header: Sequence[str] = (), declared: Collection[str] | None = None
    ) -> PlanText:
        """The finished plan; its statements in random order, since order says nothing.

        Unless it is said which inputs are `declared`, some are.
        """
        shown = []
        for variable in self.inputs:
            told = self.chance(0.6) if declared is None else variable.name in declared
            shown.append(f"{variable.name} ({typed(variable.names)})" if told else variable.name)
        lines = [f"INPUT: {', '.join(shown)}"] if shown else []
        lines.append(f"OUTPUT: {', '.join(variable.name for variable in outputs)}")
        if self.parameters:
            lines.append(f"PARAM: {', '.join(self.parameters)}")
        statements = list(self.lines)
        if self.chance(0.5):
            self.random.shuffle(statements)
        return PlanText(self.name, (*lines, *header), tuple(statements))
