"""Random small grammars and sources, and their comparison with the oracle."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from aioflow.grammars import (
    GrammarError,
    ParsedSource,
    ParseError,
    ParseLimitError,
    ParseLimits,
    compile,
    interpretations,
)
from tests.grammars.oracle import Found, Item, Oracle, PlainRule, TooManyError, assigned, written

ALPHABET = "ab1"
_CLASSES = (("ab", "[ab]"), ("b1", "[b1]"), ("aab", "[aab]"), ("1", "[1]"), ("ab", "[a-b]"))
_VARIABLES = ("x", "y", "z")


class GrammarMaker:
    """Makes one random grammar."""

    def __init__(self, chance: random.Random, predicates: bool = True) -> None:
        self._chance = chance
        self._names = [f"r{number}" for number in range(chance.choice((1, 1, 2, 2, 3)))]
        self._predicates = predicates

    def rules(self) -> list[PlainRule]:
        chance = self._chance
        rules = []
        for name in self._names:
            body = self.item(chance.choice((2, 3, 3, 4)))
            printed = [("print", variable) for variable in assigned(body) if chance.random() < 0.3]
            if printed:
                body = ("sequence", (body, *printed))
            result = chance.choice(("", "", "x", "record"))
            if result == "x" and "x" not in assigned(body):
                result = "record"
            rules.append(PlainRule(name, body, result, chance.random() < 0.35))
        return rules

    def item(self, depth: int) -> Item:
        chance = self._chance
        if depth == 0 or chance.random() < 0.15:
            return self._small()
        kind = chance.choice(
            ("sequence", "sequence", "choice", "choice", "repeat", "repeat", "bind", "accept")
        )
        if kind in ("sequence", "choice"):
            return (kind, tuple(self.item(depth - 1) for _ in range(chance.choice((2, 2, 3)))))
        if kind == "repeat":
            return ("repeat", chance.choice("?*+"), self.item(depth - 1))
        if kind == "bind" or not self._predicates:
            return self._bind(depth)
        condition = chance.choice(
            (("shorter", 2), ("equal", "a"), ("equal", "1"), ("parity", 0), ("parity", 1))
        )
        return ("accept", self.item(depth - 1), condition)

    def _bind(self, depth: int) -> Item:
        collects = self._chance.random() < 0.5
        item = self.item(depth - 1)
        if collects and item[0] == "repeat" and item[2][0] == "call":
            item = item[2]  # the parser takes a repeated call apart
        return ("bind", self._chance.choice(_VARIABLES), collects, item)

    def _small(self) -> Item:
        chance = self._chance
        kind = chance.choice(("text", "text", "class", "not", "any", "any", "call", "call"))
        if kind == "text":
            return ("text", "".join(chance.choices(ALPHABET, k=chance.choice((1, 1, 2)))))
        if kind == "class":
            return ("class", *chance.choice(_CLASSES))
        if kind == "not":
            return chance.choice((("not", "a", "[^a]"), ("not", "1b", "[^1b]")))
        return ("any",) if kind == "any" else ("call", chance.choice(self._names))


@dataclass
class Outcome:
    """Figures of a campaign."""

    grammars: int = 0
    sources: int = 0
    matched: int = 0
    refused: int = 0
    too_many: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        for name in ("grammars", "sources", "matched", "refused", "too_many"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.problems += other.problems


def check_grammar(seed: int) -> Outcome:
    """Compare the matcher with the oracle for one random grammar and some sources."""
    chance = random.Random(seed)
    rules = GrammarMaker(chance, predicates=chance.random() < 0.5).rules()
    text = written(rules)
    outcome = Outcome(grammars=1)
    try:
        grammar = compile(text)
    except GrammarError as error:
        outcome.refused = 1
        unexpected = [each for each in error.errors if "left recursion" not in each.message]
        outcome.problems += [f"seed {seed}: {each}" for each in unexpected]
        return outcome
    for _ in range(4):
        source = "".join(chance.choices(ALPHABET, k=chance.choice((0, 1, 2, 3, 4, 5, 6))))
        start = chance.choice(rules).name
        outcome.sources += 1
        try:
            wanted = Oracle(rules, source).best(start)
        except TooManyError:
            outcome.too_many += 1
            continue
        outcome.matched += wanted is not None
        problem = _compare(grammar, source, start, wanted, chance)
        if problem:
            outcome.problems.append(f"seed {seed}, source {source!r}, start {start}: {problem}\n{text}")
    return outcome


def check_long_source(seed: int) -> Outcome:
    """Compare the matcher with a plain one over a source that is too long for the oracle."""
    chance = random.Random(seed)
    rules = GrammarMaker(chance, predicates=chance.random() < 0.3).rules()
    outcome = Outcome(grammars=1, sources=1)
    source = "".join(chance.choices(ALPHABET, k=chance.randrange(20, 150)))
    start = rules[0].name
    limits = ParseLimits(live_solutions=150)
    try:
        grammar = compile(written(rules))
    except GrammarError:
        outcome.refused = 1
        return outcome
    try:
        wanted = interpretations(grammar, source, start, count=1, limits=limits)[0].parsed
    except ParseLimitError:
        outcome.too_many = 1
        return outcome
    except ParseError:
        wanted = None
    try:
        found = grammar.parse(source, start)
    except ParseError:
        found = None
    outcome.matched = wanted is not None
    problem = ""
    if wanted is None or found is None:
        problem = "" if wanted is found else f"found {found}, but there is {wanted}"
    else:
        problem = _difference(found, Found(wanted.value, wanted.variables, wanted.output, wanted.skipped))
        problem = problem or _compare_stream(grammar, source, start, found, chance)
    if problem:
        outcome.problems.append(f"seed {seed}, source {source!r}, start {start}: {problem}\n{written(rules)}")
    return outcome


def _compare(grammar: Any, source: str, start: str, wanted: Found | None, chance: random.Random) -> str:
    try:
        found = grammar.parse(source, start)
    except ParseError as error:
        if not 0 <= error.offset <= len(source):
            return f"the offset {error.offset} is outside the source"
        return "" if wanted is None else f"{error}, but there is {wanted}"
    if wanted is None:
        return f"there is no interpretation, but found {found}"
    problem = _difference(found, wanted)
    return problem or _compare_stream(grammar, source, start, found, chance)


def _difference(found: ParsedSource, wanted: Found) -> str:
    for name in ("value", "variables", "output", "skipped"):
        if getattr(found, name) != getattr(wanted, name):
            return f"{name} is {getattr(found, name)!r}, not {getattr(wanted, name)!r}"
    return ""


def _compare_stream(grammar: Any, source: str, start: str, whole: ParsedSource, chance: random.Random) -> str:
    """Return how the records of a stream differ from those of the whole source."""
    stream = grammar.stream(start)
    records = []
    place = 0
    while place < len(source):
        size = chance.choice((1, 1, 2, 3))
        records += stream.feed(source[place : place + size])
        place += size
    found = stream.finish()
    records += stream.last_records()
    if (found.value, found.variables, found.output) != (whole.value, whole.variables, whole.output):
        return f"in pieces it is {found!r}, whole {whole!r}"
    collected: dict[str, list[Any]] = {}
    for record in records:
        collected.setdefault(record.variable, []).append(record.value)
    for name, variable in grammar.variables(start).items():
        if variable.collects and collected.get(name, []) != whole.variables.get(name, []):
            return f"the settled records of {name} are {collected.get(name)}, not {whole.variables.get(name)}"
    return ""
