"""Random statements: one function for each operator, which writes it on variables that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.naive.writer import INTEGERS, TEXTS, TYPES, Names, Signature, Var, Writer

ALWAYS = ("n", "k", "a", "b", "m")
# Functions for apply with what they return, and whether they may fail.
FUNCTIONS = {
    "t_double": (("k",), False),
    "t_replace": (("n",), False),
    "t_scalar": (("s",), False),
    "t_several": (("i",), False),
    "t_slow": (("k",), False),
    "t_slow_several": (("i", "s"), False),
    "t_effect": (("s",), False),
    "t_odd_fails": (("s",), True),
    "t_slow_fails": (("k",), True),
    "t_always_fails": (("s",), True),
    "t_few_fail": (("s",), True),
    "t_small_gone": (("s",), True),
    "t_gone_or_broken": (("k",), True),
}


def joined(names: Names, added: Names) -> Names:
    return tuple(dict.fromkeys((*names, *added)))


def select(writer: Writer) -> Var:
    rows = writer.pick()
    return writer.one("select", [rows], [f'"{writer.condition(rows)}"'], rows.names)


def select_by_relation(writer: Writer) -> Var:
    """Conditions that are data: made by format, all must hold."""
    rows = writer.numbered()
    numbers = writer.numbered()
    text = writer.one("format", [numbers], ['"n != %s"', '"n"'], joined(numbers.names, ("text",)))
    few = writer.one("select", [text], ['"n is not null"'], text.names)
    if writer.chance(0.5):
        few = writer.one("project", [few], ['"text"'], ("text",))
    return writer.one("select", [rows, few], [], rows.names)


def project(writer: Writer) -> Var:
    rows = writer.pick()
    if writer.chance(0.15):
        return writer.one("project", [rows], ['"*"'], rows.names)
    if writer.chance(0.1) and len(rows.plain) > 1:
        dropped = writer.random.choice(rows.plain)
        kept = tuple(name for name in rows.names if name != dropped)
        return writer.one("project", [rows], [f'"* except {dropped}"'], kept)
    names = writer.some(ALWAYS)
    parts = ", ".join(writer.expression(rows, name) for name in names)
    return writer.one("project", [rows], [f'"{parts}"'], names)


def join(writer: Writer) -> Var:
    left, right = writer.pick(lambda each: bool(each.plain)), writer.pick(lambda each: bool(each.plain))
    parts, once = _join_condition(writer, left, right)
    kind = writer.random.choice(("inner", "inner", "left", "right", "full", "semi", "anti"))
    options = [] if kind == "inner" and writer.chance(0.7) else [f"TYPE: {kind}"]
    both = (set(left.names) & set(right.names)) - once
    if kind in ("semi", "anti"):
        names = left.names
    else:
        mine = [f"left.{name}" if name in both else name for name in left.names]
        its = [f"right.{name}" if name in both else name for name in right.names if name not in once]
        names = (*mine, *its)
    if len(set(names)) < len(names):  # an attribute is named `left.n` already: no join of joins here
        return select(writer)
    result = writer.one("join", [left, right], [f'"{" and ".join(parts)}"'], names, *options)
    return _renamed(writer, result) if both and writer.chance(0.8) else result


def _join_condition(writer: Writer, left: Var, right: Var) -> tuple[list[str], set[str]]:
    common = [name for name in left.plain if name in right.plain]
    parts, once = [], set()
    if common and writer.chance(0.9):
        for name in writer.some(common)[:2]:
            parts.append(f"left.{name} = right.{name}")
            once.add(name)
    pairs = [
        (one, other)
        for one in left.plain
        for other in right.plain
        if one != other and TYPES[one] == TYPES[other] and "m" not in (one, other)
    ]
    if pairs and (not parts or writer.chance(0.2)):
        one, other = writer.random.choice(pairs)
        parts.append(f"left.{one} {writer.random.choice(('=', '=', '<', '!='))} right.{other}")
    integers = [name for name in common if name in INTEGERS and name not in once]
    if integers and writer.chance(0.3):
        name = writer.random.choice(integers)
        parts.append(f"left.{name} {writer.random.choice(('<=', '>', '!='))} right.{name}")
    if not parts:
        parts.append(f"left.{left.plain[0]} is not null")
    return parts, once


def _renamed(writer: Writer, variable: Var) -> Var:
    """Attributes without `left.` and `right.`: one of the two under the plain name."""
    chosen: dict[str, str] = {}
    for name in variable.names:
        side, dot, plain = name.partition(".")
        if not dot:
            chosen[name] = name
        elif plain not in chosen or (side == "right" and writer.chance(0.5)):
            chosen[plain] = f"`{name}` as {plain}"
    return writer.one("project", [variable], [f'"{", ".join(chosen.values())}"'], tuple(chosen))


def union(writer: Writer) -> Var:
    first = writer.pick()
    if not first.plain or set(first.plain) != set(first.names):
        others = [variable for variable in writer.variables if set(variable.names) == set(first.names)]
        inputs = [first, *writer.random.sample(others, min(len(others), 2))]
    else:
        inputs = [
            first,
            *(writer.adapt(writer.pick(), first.names) for _ in range(writer.random.randint(1, 2))),
        ]
    return writer.one("union", inputs, [], first.names, *(["ALL"] if writer.chance(0.4) else []))


def _keyed(operator: str) -> Callable[[Writer], Var]:
    def write(writer: Writer) -> Var:
        left = writer.pick(lambda each: bool(each.plain))
        if writer.chance(0.4):
            right = writer.pick(lambda each: each != left and bool(set(each.plain) & set(left.plain)))
            common = [name for name in left.plain if name in right.plain]
            if common:
                on = ", ".join(writer.some(common)[:2])
                return writer.one(operator, [left, right], [], left.names, f'ON: "{on}"')
        ordinary = set(left.plain) == set(left.names)
        right = writer.adapt(writer.pick(lambda each: each != left), left.names) if ordinary else left
        return writer.one(operator, [left, right], [], left.names)

    return write


def distinct(writer: Writer) -> Var:
    rows = writer.pick()
    if writer.chance(0.2) and rows.plain:
        # By attributes only where there are no others: which tuple comes first is a matter of timing.
        names = writer.some(rows.plain)
        part = writer.one("project", [rows], [f'"{", ".join(names)}"'], names)
        return writer.one("distinct", [part], [f'"{", ".join(names)}"'], names)
    return writer.one("distinct", [rows], [], rows.names)


def null(writer: Writer) -> Var:
    writer.stops_early = True
    deciding, if_empty, otherwise = writer.pick_sure(), writer.pick_sure(), writer.pick_sure()
    if writer.chance(0.4):
        deciding = _emptied(writer, deciding)
    # Which inputs are still read once the decision fell is the operator's affair, so it sends no ENABLE.
    outputs = writer.add(
        "null", [deciding, if_empty, otherwise], [], [if_empty.names, otherwise.names], enable=False
    )
    return next(variable for variable in outputs if variable.name != "_")


def _emptied(writer: Writer, variable: Var) -> Var:
    condition = "n > 99" if "n" in variable.names else "1 = 2"
    return writer.one("select", [variable], [f'"{condition}"'], variable.names)


def empty(writer: Writer) -> Var:
    return _emptied(writer, writer.pick())


def pack(writer: Writer) -> Var:
    rows = writer.pick(lambda each: bool(each.plain) and "packed" not in each.names)
    if writer.chance(0.5):
        by = writer.some(rows.plain)[:2]
        packed = writer.one("pack", [rows], ['"packed"'], (*by, "packed"), f'BY: "{", ".join(by)}"')
    else:
        packed = writer.one("pack", [rows], ['"packed"'], ("packed",))
    if writer.chance(0.3):
        return packed
    # What is inside is known only at run time; the projection says it again.
    hidden = writer.one("unpack", [packed], ['"packed"'], ())
    writer.variables.remove(hidden)
    names = rows.plain
    return writer.one("project", [hidden], [f'"{", ".join(names)}"'], names)


def format_(writer: Writer) -> Var:
    rows = writer.pick(lambda each: bool(set(each.plain) & {*INTEGERS, *TEXTS, "b"}))
    names = [name for name in rows.plain if name != "m"]
    chosen = writer.some(names)[:2]
    if writer.chance(0.3):
        template = " and ".join(f"{{{name}}}" for name in chosen)
        constants = [f'"{template}"']
    else:
        template = ", ".join(f"{name} is %s" for name in chosen)
        constants = [f'"{template}"', f'"{", ".join(chosen)}"']
    if writer.chance(0.4):
        return writer.one("format", [rows], constants, joined(rows.names, ("s",)), 'AS: "s"')
    return writer.one("format", [rows], constants, joined(rows.names, ("text",)))


def apply(writer: Writer) -> Var:
    rows = writer.numbered()
    function = writer.random.choice(list(FUNCTIONS))
    returns, may_fail = FUNCTIONS[function]
    options = ["OUTER"] if writer.chance(0.25) else []
    if writer.chance(0.1):
        options.append(f"WORKERS: {writer.random.choice((1, 3))}")
    names = joined(rows.names, returns)
    return writer.add("apply", [rows], [f'"{function}"'], [names], options, "tuple", may_fail)[0]


BROKEN = ("t_odd_fails", "t_small_gone", "t_gone_or_broken", "t_slow_fails")


def broken(writer: Writer, rows: Var, functions: Sequence[str] = BROKEN, taken: float = 1.0) -> Var:
    """The tuples for which a function does not fail: something is missing, or known not to be there.

    `taken` is how often failures are taken right here.
    """
    function = writer.random.choice(functions)
    names = joined(rows.names, FUNCTIONS[function][0])
    before, writer.taken = writer.taken, taken
    made = writer.add("apply", [rows], [f'"{function}"'], [names], [], "tuple", fails=True)[0]
    writer.taken = before
    return made


def aggregate(writer: Writer) -> Var:
    rows = writer.pick(lambda each: bool(set(each.plain) & set(INTEGERS)))
    number = writer.random.choice([name for name in rows.plain if name in INTEGERS])
    calls = {
        "k": writer.random.choice(("count()", f"count({number})", f"sum({number})", f"t_spread({number})")),
        "i": writer.random.choice((f"min({number})", f"max({number})")),
    }
    fails = writer.chance(0.35)
    if fails:
        calls["i"] = f"{writer.random.choice(('t_large_fails', 't_large_fails', 't_large_gone'))}({number})"
    by = writer.some(rows.plain)[:2] if writer.chance(0.5) else ()
    by = tuple(name for name in by if name not in calls)
    names = (*by, "relation", *calls)
    text = ", ".join(f"{call} as {name}" for name, call in calls.items())
    options = [f'BY: "{", ".join(by)}"'] if by else []
    made = writer.add(
        "aggregate",
        [rows],
        [f'"{text}"'],
        [names],
        options,
        fails=fails,
        # Whether a group that was given before another one failed counts as a firing is left open.
        enable=not (fails and by),
    )[0]
    if writer.chance(0.4):
        return made
    return writer.one("project", [made], [f'"{", ".join((*by, *calls))}"'], (*by, *calls))


def sort(writer: Writer) -> Var:
    rows = writer.pick(lambda each: bool(each.plain))
    name = writer.random.choice(rows.plain)
    return writer.one("sort", [rows], [f'"{name}{writer.random.choice(("", " desc"))}"'], rows.names)


def limit(writer: Writer) -> Var:
    rows = writer.pick()
    return writer.one("limit", [rows], ["10000"], rows.names)


def first_of_sorted(writer: Writer) -> Var:
    """A limit that may cut: sorted by everything, so that the first tuples are known."""
    rows = writer.pick(lambda each: bool(each.plain) and each.plain == each.names)
    keys = ", ".join(f"{name}{writer.random.choice(('', ' desc'))}" for name in rows.names)
    result = writer.one("sort", [rows], [f'"{keys}"'], rows.names)
    if writer.chance(0.3):
        result = writer.one("select", [result], [f'"{writer.condition(result)}"'], result.names)
    if writer.chance(0.3):
        result = writer.one("distinct", [result], [], result.names)
    if writer.chance(0.3):
        result = writer.one("project", [result], ['"*"'], result.names)
    return writer.one("limit", [result], [str(writer.random.randint(1, 4))], result.names)


def sample(writer: Writer) -> Var:
    rows = writer.pick()
    return writer.one("sample", [rows], ["10000"], rows.names)


def window(writer: Writer) -> Var:
    """One piece of everything; its times are left out."""
    rows = writer.pick(lambda each: bool(each.plain))
    pieces = writer.one("window", [rows], ["10000"], ("window", "start", "end"))
    writer.variables.remove(pieces)
    hidden = writer.one("unpack", [pieces], ['"window"'], ())
    writer.variables.remove(hidden)
    return writer.one("project", [hidden], [f'"{", ".join(rows.plain)}"'], rows.plain)


def log(writer: Writer) -> Var:
    rows = writer.pick()
    writer.add("log", [rows], ['"seen"'], [])
    return rows


def series(writer: Writer) -> Var:
    return writer.one("series", [], [str(writer.random.randint(0, 4))], ("n",))


def call(writer: Writer) -> Var:
    """A call of another plan."""
    if not writer.callables:
        return series(writer)
    plan = writer.random.choice(list(writer.callables))
    return call_of(writer, plan)


def call_of(writer: Writer, plan: Signature) -> Var:
    pick = writer.pick_sure if plan.stops_early else writer.pick
    inputs = [writer.adapt(pick(), names) for names in plan.inputs]
    writer.stops_early |= plan.stops_early
    options = []
    if plan.parameter is not None and writer.chance(0.5):
        options.append(f"{plan.parameter.upper()}: {writer.random.choice((1, 2))}")
    outputs = writer.add(plan.name, inputs, [], plan.outputs, options, "call", plan.may_fail)
    return next(variable for variable in outputs if variable.name != "_")


WEIGHTS: dict[Callable[[Writer], Var], int] = {
    select: 6,
    select_by_relation: 1,
    project: 5,
    join: 7,
    union: 6,
    _keyed("intersect"): 3,
    _keyed("minus"): 4,
    distinct: 3,
    null: 6,
    empty: 2,
    pack: 3,
    format_: 2,
    apply: 7,
    aggregate: 6,
    sort: 1,
    limit: 1,
    first_of_sorted: 3,
    sample: 1,
    window: 1,
    log: 2,
    series: 2,
    call: 7,
}


def statement(writer: Writer) -> Var:
    """Write a random statement, with others around it where it needs them; its result."""
    return writer.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0](writer)
