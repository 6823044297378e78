"""Texts of any size for `check` and `fmt`, each of one shape, and the work that reading one takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType


def plan(name: str, *statements: str, header: str = "INPUT: a (x number, y char)\n  OUTPUT: out") -> str:
    body = "".join(f"    {statement}\n" for statement in statements)
    return f"PLAN {name}\n{{\n  {header}\n\n  BODY\n  {{\n{body}  }}\n}}\n"


def _select(number: int, before: str, after: str) -> str:
    return f'select ({before}, "x > {number}" : {after})'


def plans(size: int) -> str:
    """Plans that know nothing of each other."""
    return "\n".join(plan(f"p{n}", _select(n, "a", "b"), 'project (b, "x, y" : out)') for n in range(size))


def chain(size: int) -> str:
    """Each plan calls the next one."""
    calls = [f"p{n + 1} (b : out)" for n in range(size - 1)]
    ends = [*calls, _select(size, "b", "out")]
    return "\n".join(plan(f"p{n}", _select(n, "a", "b"), ends[n]) for n in range(size))


def undeclared_chain(size: int) -> str:
    """Each plan calls the next one, and only the first knows its attributes."""
    calls = [f"p{n + 1} (a : out)" for n in range(size - 1)]
    ends = [*calls, _select(size, "a", "out")]
    inner = [plan(f"p{n}", ends[n], header="INPUT: a\n  OUTPUT: out") for n in range(1, size)]
    return "\n".join([plan("p0", ends[0]), *inner])


def star(size: int) -> str:
    """One plan calls all others."""
    calls = [f"p{n} (a : o{n})" for n in range(size)]
    union = f"union ({', '.join(f'o{n}' for n in range(size))} : out)"
    return plans(size) + plan("main", *calls, union)


def ring(size: int) -> str:
    """A recursion over all plans."""
    return "\n".join(plan(f"p{n}", _select(n, "a", "b"), f"p{(n + 1) % size} (b : out)") for n in range(size))


def parameters_in_a_ring(size: int) -> str:
    """A recursion over all plans, one of which sets a parameter that has no default."""
    header = "INPUT: a (x number)\n  OUTPUT: out"
    needs = f"{header}\n  PARAM: low"
    calls = [plan(f"p{n}", f"p{(n + 1) % size} (a : out)", header=header) for n in range(1, size)]
    first = plan("p0", 'select (a, "x > ${low}" : b)', "p1 (b : out)", header=needs)
    return "\n".join([first, *calls])


def errors_in_a_chain(size: int) -> str:
    """Each plan calls the next one and drops what fails in it."""
    calls = [f"p{n + 1} (a : out) {{ERRORS: skip}}" for n in range(size - 1)]
    ends = [*calls, _select(size, "a", "out")]
    return "\n".join(plan(f"p{n}", ends[n]) for n in range(size))


def unknown_operators(size: int) -> str:
    """A mistake in each plan: the name of another one, misspelt."""
    return "\n".join(plan(f"plan_{n}", f"plam_{n} (a : out)") for n in range(size))


def statements(size: int) -> str:
    """One plan with so many statements."""
    names = ["a", *(f"v{n}" for n in range(size - 1)), "out"]
    return plan("p", *(_select(n, names[n], names[n + 1]) for n in range(size)))


def one_line(size: int) -> str:
    """The same, all of it on one line."""
    return statements(size).replace("\n", " ") + "\n"


def mistakes_on_one_line(size: int) -> str:
    """Statements on one line, each of which asks for an attribute that is not there."""
    return plan("p", *(f'select (a, "z > {n}" : _)' for n in range(size))).replace("\n", " ") + "\n"


def waits(size: int) -> str:
    """One plan whose statements wait for each other, with an input that is read first."""
    names = ["a", *(f"v{n}" for n in range(size))]
    lines = [
        f'select ({names[n]}, "x > 1" : {names[n + 1]}) {{ENABLE: e{n}; WAIT: {f"e{n - 1}" if n else "a"}}}'
        for n in range(size)
    ]
    return plan("p", *lines, f"minus (a, v{size - 1} : out) {{WAIT: e{size - 1}}}")


def clashes(size: int) -> str:
    """One plan, each variable of which has two producers."""
    lines = [f'select ({"a" if n < 2 else f"v{n // 2 - 1}"}, "x > 1" : v{n // 2})' for n in range(2 * size)]
    return plan("p", *lines, "union (v0, v1 : out)")


def one_name(size: int) -> str:
    """One plan, all statements of which give and read one variable."""
    return plan("p", *('select (v, "x > 1" : v)' for _ in range(size)), "union (a, v : out)")


def circles(size: int) -> str:
    """One plan with pairs of statements that wait for each other."""
    pairs = [
        line
        for n in range(size)
        for line in (f'select (b{n}, "x > 1" : c{n})', f'select (c{n}, "x > 1" : b{n})')
    ]
    return plan("p", *pairs, "union (a, b0 : out)")


def unknown_parameters(size: int) -> str:
    """One string with parameters that the plan does not have."""
    return plan("p", f'format (a, "\\t{"${low}" * size}", "x" : out)')


def outputs(size: int) -> str:
    """One plan with so many outputs, each of a statement with an opinion on its readers."""
    names = [f"o{n}" for n in range(size)]
    header = f"INPUT: a (x number)\n  OUTPUT: {', '.join(names)}"
    return plan("p", *(f"null (a, a, a : {name}, _)" for name in names), header=header)


def condition(size: int) -> str:
    """One long condition."""
    return plan("p", f'select (a, "{" or ".join(f"x = {n}" for n in range(size))}" : out)')


def wrappers(size: int) -> str:
    """Wrappers, each like the one before it."""
    first = 'WRAPPER w0 (x)\n{\n  GET: "http://a.example/{x}"\n  EACH: "li"\n  t: "b"\n}\n'
    others = [f'WRAPPER w{n} (x) LIKE w{n - 1}\n{{\n  t{n}: "b"\n}}\n' for n in range(1, size)]
    return "\n".join([first, *others, plan("p", f'wrapper ("w{min(size - 1, 3)}", a : out)')])


SHAPES: tuple[Callable[[int], str], ...] = (
    plans,
    chain,
    undeclared_chain,
    star,
    ring,
    parameters_in_a_ring,
    errors_in_a_chain,
    unknown_operators,
    statements,
    one_line,
    mistakes_on_one_line,
    waits,
    clashes,
    one_name,
    circles,
    unknown_parameters,
    outputs,
    condition,
)


def write_folder(folder: Path, size: int) -> Path:
    """A folder of plan files, each of which uses the next one; gives the first."""
    folder.mkdir()
    for number, text in enumerate(chain(size).split("\n\nPLAN")):
        text = text if text.startswith("PLAN") else "PLAN" + text
        use = f'USE "p{number + 1}.plan"\n\n' if number < size - 1 else ""
        (folder / f"p{number}.plan").write_text(use + text, "utf-8")
    return folder / "p0.plan"


def calls_of(work: Callable[[], object]) -> int:
    """How many calls, of functions in Python and in C, some work takes."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
