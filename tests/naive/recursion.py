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
    plan.writer.may_fail = True
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
    if kind < 0.2:
        return reachable(random, name)
    if kind < 0.33:
        return handed_down(random, name)
    if kind < 0.47:
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
    """Every node of a graph with cycles: only ONCE makes an end; with MAX_DEPTH by the shortest way."""
    names = random.choice((("n",), ("n", "a")))
    top = Var("top", names)
    writer = Writer(random, name, (top,))
    known = writer.add("select", [top], ['"n is not null"'], [names], signals=False)[0]
    results = [top]
    followed = [_following(writer, known, names) for _ in range(random.choice((1, 1, 2)))]
    for following in followed:
        # Without clauses: a call that waits for the other one has no level.
        rest = Var(writer.fresh("v"), names)
        writer.lines.append(f"{name} ({following.name} : {rest.name})")
        results.append(rest)
    if writer.chance(0.3):
        results = [writer.add("select", [each], ['"n >= 0"'], [names], signals=False)[0] for each in results]
    options = ["ALL"] if writer.chance(0.6) else []
    result = writer.add("union", results, [], [names], options, signals=False)[0]
    header = [f'ONCE: "{", ".join(names)}"']
    if writer.chance(0.7):
        header.append(f"MAX_DEPTH: {random.randint(1, 5)} stop")
    text = writer.text([result], header, {top.name})
    return [text], [Signature(name, (names,), (names,))]


def _following(writer: Writer, known: Var, names: tuple[str, ...]) -> Var:
    """The next nodes, some of them late."""
    if writer.chance(0.5):
        late = (*names, "k")
        known = writer.add("apply", [known], ['"t_slow"'], [late], kind="tuple", signals=False)[0]
    rest = "".join(f", {name}" for name in names if name != "n")
    numbers = writer.random.choice(
        (
            "case when n > 4 then 0 else n + 1 end as n",
            "5 - n as n",
            "case when n > 3 then 1 else n + 2 end as n",
        )
    )
    return writer.add("project", [known], [f'"{numbers}{rest}"'], [names], signals=False)[0]


def handed_down(random: Random, name: str) -> tuple[list[PlanText], list[Signature]]:
    """Every level gets the same second input: it alone must not unfold any."""
    top, given = Var("top", ("n",)), Var("given", ("n", "k"))
    writer = Writer(random, name, (top, given))
    below = [statement(writer)] if writer.chance(0.5) else []
    more = writer.add("select", [top], ['"n > 0"'], [("n",)], signals=False)[0]
    following = writer.add("project", [more], ['"n - 1 as n"'], [("n",)], signals=False)[0]
    found = writer.add("join", [top, given], ['"left.n = right.n"'], [("n", "k")], signals=False)[0]
    here = writer.adapt(writer.random.choice((found, given, top, *below)), ("n", "k"))
    rest = writer.add(name, [following, given], [], [("n", "k")], [], "call", signals=writer.chance(0.3))[0]
    result = writer.add("union", [here, rest], [], [("n", "k")], ["ALL"], signals=False)[0]
    text = writer.text([result], declared={top.name, given.name})
    return [text], [
        Signature(name, (("n",), ("n", "k")), (("n", "k"),), writer.may_fail, None, writer.stops_early)
    ]
