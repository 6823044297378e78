"""Mutates valid texts and reads them: a plan or its mistakes must come out, soon, and nothing else.

python -m tests.language.fuzz --count 100000 --seed 1
"""

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from aioflow.errors import InputError, PlanError
from aioflow.language import format_text, loads, parse
from aioflow.plan import PlanFile
from tests.language.samples import SAMPLES

SECONDS_AT_MOST = 2.0
TOKENS = (
    *"(){}[],:;=$#\"'`\\/-.\n",
    '"""',
    "/*",
    "*/",
    "//",
    " ",
    "PLAN",
    "PLAN q {",
    "USE",
    "INPUT",
    "OUTPUT:",
    "PARAM:",
    "MAX_DEPTH: 5",
    "ONCE",
    "BODY",
    "BODY {",
    "WAIT: e",
    "ERRORS: skip",
    "WRAPPER w {",
    "op (a : b)",
    "null",
    "true",
    "a",
    "x-1",
    "1e5",
    "1.2.3",
    "\0",
    "\r",
    "\ufeff",
    "é",
    "\U0001f600",
    "\u2028",
    "\ud800",
)
Mutation = Callable[[str, random.Random], str]


def _place(text: str, chance: random.Random) -> int:
    return chance.randint(0, len(text))


def delete(text: str, chance: random.Random) -> str:
    start = _place(text, chance)
    length: int = chance.choice((1, 1, 2, 5, 40))
    return text[:start] + text[start + length :]


def insert(text: str, chance: random.Random) -> str:
    start = _place(text, chance)
    token: str = chance.choice(TOKENS) * chance.choice((1, 1, 1, 2, 50))
    return text[:start] + token + text[start:]


def replace(text: str, chance: random.Random) -> str:
    start = _place(text, chance)
    token: str = chance.choice(TOKENS)
    return text[:start] + token + text[start + chance.randint(1, 3) :]


def truncate(text: str, chance: random.Random) -> str:
    return text[: _place(text, chance)] if chance.random() < 0.5 else text[_place(text, chance) :]


def move(text: str, chance: random.Random) -> str:
    start, end = sorted((_place(text, chance), _place(text, chance)))
    rest = text[:start] + text[end:]
    target = _place(rest, chance)
    return rest[:target] + text[start:end] + rest[target:]


def swap_lines(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


def splice(text: str, chance: random.Random) -> str:
    other = chance.choice(list(SAMPLES.values()))
    return text[: _place(text, chance)] + other[_place(other, chance) :]


MUTATIONS: tuple[Mutation, ...] = (
    delete,
    delete,
    insert,
    insert,
    replace,
    truncate,
    move,
    swap_lines,
    splice,
)


@dataclass
class Report:
    """What became of the mutated texts."""

    plans: int = 0
    mistakes: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)


def mutated(chance: random.Random) -> str | bytes:
    """A sample after one to four mutations, now and then with a byte of it changed."""
    text = chance.choice(list(SAMPLES.values()))
    for _ in range(chance.randint(1, 4)):
        text = chance.choice(MUTATIONS)(text, chance)
    if chance.random() > 0.1:
        return text
    content = bytearray(text.encode("utf-8", errors="surrogatepass") or b" ")
    content[chance.randrange(len(content))] = chance.randrange(256)
    return bytes(content)


def examine(content: str | bytes) -> str | None:
    """None for a text that is a plan, its messages for one with mistakes; raises what should not happen."""
    try:
        plan_file = parse(content, "fuzz.plan")
    except PlanError as error:
        found = error
    else:
        assert_formatting_is_safe(content, plan_file)
        assert_loading_is_safe(content)
        return None
    assert found.diagnostics, "no mistake is told"
    assert all(each.span and each.message for each in found.diagnostics), "a mistake without a place"
    return str(found)


def assert_formatting_is_safe(content: str | bytes, plan_file: PlanFile) -> None:
    formatted = format_text(content)
    assert parse(formatted) == plan_file, "formatting changes the meaning"
    assert format_text(formatted) == formatted, "formatting twice changes the layout"


def assert_loading_is_safe(content: str | bytes) -> None:
    try:
        loads(content, "fuzz.plan", folder=".")
    except (PlanError, InputError) as error:
        str(error)


def fuzz(count: int, seed: int) -> Report:
    """Examine so many mutated texts."""
    report = Report()
    for number in range(count):
        content = mutated(random.Random(f"{seed}/{number}"))
        began = time.process_time()
        try:
            messages = examine(content)
        except Exception as error:
            report.failures.append(f"seed {seed}/{number}: {type(error).__name__}: {error}\n{content!r}")
            continue
        taken = time.process_time() - began
        report.slowest = max(report.slowest, taken)
        if taken > SECONDS_AT_MOST:
            report.failures.append(f"seed {seed}/{number}: took {taken:.1f} s\n{content!r}")
        report.plans += messages is None
        report.mistakes += messages is not None
    return report


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    report = fuzz(given.count, given.seed)
    print(f"{report.plans} plans, {report.mistakes} with mistakes, slowest {report.slowest:.3f} s")
    for failure in report.failures:
        print(failure)
    return 1 if report.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
