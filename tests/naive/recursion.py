"""Random recursive plans, each of which ends: every level counts n down, or unfolds a value only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from tests.naive.body import statement
from tests.naive.writer import PlanText, Signature, Var, Writer

EXTRAS = ((), ("a",), ("k", "a"), ("m",), ("b", "k"))


class RecursivePlan:
    """A plan whose levels count n down to 0, with room for random statements at each level."""

    def __init__(
        self,
        random: Random,
        name: str,
        callables: Sequence[Signature],
        callee: str | None = None,
        sure: bool = False,
    ) -> None:
        names = ("n", *random.choice(EXTRAS))
        self.names = names
        self.top = Var("top", names)
        # A sure plan takes every failure where it happens, so that its results may decide a null.
        self.sure = sure
        usable = [plan for plan in callables if not (sure and plan.may_fail)]
        self.writer = Writer(random, name, (self.top,), usable, taken=1.0 if sure else 0.6)
        self.callee = callee or name
        self.header: list[str] = []
        self.step = "1"

    def here(self) -> Var:
        """What a level gives of its own: random statements, then the attributes of the output."""
        writer = self.writer
        result = self.top
        for _ in range(writer.random.randint(0, 2)):
            result = statement(writer)
        return writer.adapt(result, self.names)

    def next_input(self, step: str | None = None) -> Var:
        writer = self.writer
        more = writer.add("select", [self.top], ['"n > 0"'], [self.names], signals=False)[0]
        rest = "".join(f", {name}" for name in self.names if name != "n")
        parts = f'"n - {step or self.step} as n{rest}"'
        result = writer.add("project", [more], [parts], [self.names], signals=False)[0]
        if writer.chance(0.2):
            return writer.one("distinct", [result], [], self.names)
        return result

    def recur(self, given: Var, signals: bool = False, taken: bool = False) -> Var:
        writer = self.writer
        # A call with signals or ERRORS is no tail call; both kinds must occur.
        made = writer.add(self.callee, [given], [], [self.names], [], "call", fails=taken, signals=signals)
        if not self.sure:
            writer.open_failures.add(made[0].name)
        return made[0]

    def union(self, *inputs: Var) -> Var:
        options = ["ALL"] if self.writer.chance(0.5) else []
        return self.writer.add("union", inputs, [], [self.names], options, signals=False)[0]

    def finished(self, *outputs: Var) -> tuple[PlanText, Signature]:
        writer = self.writer
        declared = {variable.name for variable in writer.inputs} if writer.chance(0.7) else None
        text = writer.text(outputs, self.header, declared)
        parameter = writer.parameters[0].partition(" ")[0] if writer.parameters else None
        names = tuple(output.names for output in outputs)
        return text, Signature(
            writer.name, (self.names,), names, writer.may_fail, parameter, writer.stops_early
        )


def tail(plan: RecursivePlan) -> Var:
    rest = plan.recur(plan.next_input())
    return plan.union(plan.here(), rest)


def direct(plan: RecursivePlan) -> Var:
    """The call's output is the plan's: no level gives anything, and the last one ends dead."""
    plan.here()
    return plan.recur(plan.next_input())


def not_tail(plan: RecursivePlan) -> Var:
    writer = plan.writer
    rest = plan.recur(plan.next_input(), signals=True)
    if writer.chance(0.5):
        changed = writer.one("select", [rest], [f'"{writer.condition(rest)}"'], plan.names)
    else:
        changed = writer.adapt(statement(writer), plan.names)
    return plan.union(plan.here(), rest, changed)


def with_errors(plan: RecursivePlan) -> Var:
    rest = plan.recur(plan.next_input(), signals=True, taken=True)
    return plan.union(plan.here(), rest)


def tree(plan: RecursivePlan) -> Var:
    here = plan.here()
    first = plan.recur(plan.next_input(), signals=plan.writer.chance(0.3))
    second = plan.recur(plan.next_input("2"))
    return plan.union(here, first, second)


def limited(plan: RecursivePlan) -> Var:
    plan.header.append(f"MAX_DEPTH: {plan.writer.random.randint(1, 2)} stop")
    return plan.writer.random.choice((tail, not_tail))(plan)


def too_deep(plan: RecursivePlan) -> Var:
    plan.header.append("MAX_DEPTH: 2")
    return tail(plan)


def parameterised(plan: RecursivePlan) -> Var:
    plan.writer.parameters.append("stride = 1")
    plan.step = "${stride}"
    return plan.writer.random.choice((tail, not_tail, tree))(plan)


KINDS: dict[Callable[[RecursivePlan], Var], int] = {
    tail: 6,
    direct: 2,
    not_tail: 5,
    with_errors: 3,
    tree: 5,
    limited: 6,
    too_deep: 1,
    parameterised: 4,
}


def recursive(
    random: Random, name: str, callables: Sequence[Signature]
) -> tuple[list[PlanText], list[Signature]]:
    """One plan that calls itself, or two that call each other."""
    kind = random.random()
    if kind < 0.12:
        return reachable(random, name)
    if kind < 0.3:
        return mutual(random, name, callables)
    plan = RecursivePlan(random, name, callables, sure=random.random() < 0.6)
    result = random.choices(list(KINDS), list(KINDS.values()))[0](plan)
    text, signature = plan.finished(result)
    return [text], [signature]


def mutual(
    random: Random, name: str, callables: Sequence[Signature]
) -> tuple[list[PlanText], list[Signature]]:
    sure = random.random() < 0.6
    first = RecursivePlan(random, f"{name}_ping", callables, f"{name}_pong", sure)
    second = RecursivePlan(random, f"{name}_pong", callables, f"{name}_ping", sure)
    second.names, second.top = first.names, Var("top", first.names)
    second.writer.inputs, second.writer.variables = (second.top,), [second.top]
    texts, signatures = [], []
    for plan in (first, second):
        text, signature = plan.finished(random.choice((tail, not_tail))(plan))
        texts.append(text)
        signatures.append(signature)
    fails, stops = any(each.may_fail for each in signatures), any(each.stops_early for each in signatures)
    return texts, [replace(each, may_fail=fails, stops_early=stops) for each in signatures]


def reachable(random: Random, name: str) -> tuple[list[PlanText], list[Signature]]:
    """Every node of a graph with cycles: only ONCE makes an end."""
    top = Var("top", ("n",))
    writer = Writer(random, name, (top,))
    known = writer.add("select", [top], ['"n is not null"'], [("n",)], signals=False)[0]
    numbers = '"case when n > 2 then 0 else n + 1 end as n"' if writer.chance(0.5) else '"3 - n as n"'
    following = writer.add("project", [known], [numbers], [("n",)], signals=False)[0]
    rest = writer.add(name, [following], [], [("n",)], signals=False)[0]
    result = writer.add("union", [top, rest], [], [("n",)], signals=False)[0]
    text = writer.text([result], ['ONCE: "n"'], {top.name})
    return [text], [Signature(name, (("n",),), (("n",),))]
