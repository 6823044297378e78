"""The best few interpretations of a short source, to tell why one wins; the matcher knows only the best."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

import msgspec

from aioflow.errors import InputError
from aioflow.grammars.automaton import Automaton, PathStep
from aioflow.grammars.closures import Answers, AutomatonState, AutomatonStates, Closure, UnansweredError, Way
from aioflow.grammars.errors import ParseError, ParseLimitError
from aioflow.grammars.grammar import Grammar, ParsedSource, replayed
from aioflow.grammars.limits import ParseLimits
from aioflow.grammars.matching import PathEvent
from aioflow.grammars.replay import script_error
from aioflow.grammars.script.interpreter import FailedCode, Interpreter
from aioflow.grammars.syntax import Predicate

LONGEST_SOURCE = 100_000


class Interpretation(msgspec.Struct, frozen=True):
    """One way to read a source, with its result. `sizes` has the size of the set that matched each character.

    `rules` has the rule in which each character was matched.
    """

    parsed: ParsedSource
    sizes: tuple[int, ...]
    rules: tuple[str, ...]


class Parting(msgspec.Struct, frozen=True):
    """The first character that two interpretations match by different terminals; the smaller size wins.

    At the end of the source, with sizes of 0, only the written order tells them apart.
    """

    offset: int
    sizes: tuple[int, int]
    rules: tuple[str, str]


class _Solution(NamedTuple):
    state: AutomatonState
    rank: int
    before: _Solution | None
    way: Way | None


class _Alternatives:
    """A breadth-first matcher that keeps several solutions for each state, not only the best."""

    def __init__(self, grammar: Grammar, source: str, count: int, limits: ParseLimits) -> None:
        self._grammar = grammar
        self._source = source
        self._limits = limits
        self._deadline = monotonic() + limits.seconds
        self._count = count
        self._automaton = Automaton(grammar.rules)
        self._states = AutomatonStates(self._automaton)
        self._interpreter = Interpreter(grammar.functions, self._deadline)

    def solutions(
        self, start: str, unlike: Sequence[int] = ()
    ) -> list[tuple[_Solution, tuple[PathStep, ...]]]:
        """Return the best solutions, the best first, each with its last steps.

        With `unlike`, only those whose first sizes are others than these.
        """
        alive = [_Solution(self._states.state(self._automaton.start(start), None, ()), 0, None, None)]
        for offset, character in enumerate(self._source):
            mask = self._automaton.alphabet.mask(character)
            alive = self._next(alive, mask, offset, are_distinct=offset < len(unlike))
            if offset == len(unlike) - 1:
                alive = [each for each in alive if _sizes(each) != tuple(unlike)]
                if not alive:
                    return []
            if not alive:
                if unlike:
                    return []
                raise ParseError(f"no interpretation goes on with {character!r}", offset, start)
            if len(alive) > self._limits.live_solutions * self._count or monotonic() > self._deadline:
                rule = alive[0].state.rule.name
                raise ParseLimitError(
                    f"too many interpretations to compare, at offset {offset:,} in the rule '{rule}'",
                    offset,
                    rule,
                )
        found = []
        for solution in alive:
            accepted = self._closure(solution.state, len(self._source)).accepted
            if accepted is not None:
                found.append((solution, accepted))
        return found[: self._count]

    def _next(self, alive: list[_Solution], mask: int, offset: int, *, are_distinct: bool) -> list[_Solution]:
        candidates = [
            (solution.rank, way.specificity, way, solution)
            for solution in alive
            for way in self._closure(solution.state, offset).ways
            if way.bit & mask
        ]
        candidates.sort(key=lambda each: each[:2])
        found: list[_Solution] = []
        kept: dict[AutomatonState, int] = {}
        known: set[tuple[AutomatonState, int]] = set()
        rank, last = -1, (-1, -1)
        for before, specificity, way, solution in candidates:
            if (before, specificity) != last:
                rank, last = rank + 1, (before, specificity)
            if are_distinct and (way.target, rank) in known:
                continue
            if kept.get(way.target, 0) < self._count:
                known.add((way.target, rank))
                kept[way.target] = kept.get(way.target, 0) + 1
                found.append(_Solution(way.target, rank, solution, way))
        return found

    def _closure(self, state: AutomatonState, offset: int) -> Closure:
        answers: Answers = {}
        while True:
            try:
                return self._states.closure(state, answers)
            except UnansweredError as error:
                predicate, length = error.question
                text = self._source[offset - length : offset]
                answers[error.question] = self._holds(predicate, text, state.rule.name, offset)

    def _holds(self, predicate: Predicate, text: str, rule: str, offset: int) -> bool:
        try:
            return self._interpreter.holds(predicate.condition, text)
        except FailedCode as failure:
            raise script_error(failure, self._grammar.source, rule, offset) from failure


def interpretations(
    grammar: Grammar,
    source: str,
    start: str | None = None,
    count: int = 2,
    limits: ParseLimits | None = None,
    at: int | None = None,
) -> list[Interpretation]:
    """Return the best interpretations of a source, the winner first, at most `count`.

    Code of each runs. Interpretations that differ only in silent steps count as one. With `at`, those after
    the winner part from it by their sizes at this offset or before.
    """
    if len(source) > LONGEST_SOURCE:
        raise InputError(f"the source has more than {LONGEST_SOURCE:,} characters; take a part of it")
    name = grammar.start_rule(start)
    found = _Alternatives(grammar, source, count, limits or ParseLimits()).solutions(name)
    if not found:
        raise ParseError("the source ends before any interpretation does", len(source), name)
    if at is not None and source:
        sizes = _sizes(found[0][0])[: min(at, len(source) - 1) + 1]
        others = _Alternatives(grammar, source, max(count, 2), limits or ParseLimits())
        found = [found[0], *others.solutions(name, sizes)][:count]
    return [_interpretation(grammar, source, solution, last) for solution, last in found]


def _ways(solution: _Solution) -> list[Way]:
    """Return the ways that led to a solution, one for each character."""
    ways: list[Way] = []
    before: _Solution | None = solution
    while before is not None and before.way is not None:
        ways.append(before.way)
        before = before.before
    ways.reverse()
    return ways


def _sizes(solution: _Solution) -> tuple[int, ...]:
    return tuple(way.specificity for way in _ways(solution))


def _interpretation(
    grammar: Grammar, source: str, solution: _Solution, last: tuple[PathStep, ...]
) -> Interpretation:
    ways = _ways(solution)
    events = [PathEvent(offset, way.steps) for offset, way in enumerate(ways) if way.steps]
    return Interpretation(
        replayed(grammar, source, [*events, PathEvent(len(source), last)]),
        tuple(way.specificity for way in ways),
        tuple(way.target.rule.name for way in ways),
    )


def parting(best: Interpretation, other: Interpretation) -> Parting:
    """Return where two interpretations part, and by which terminals."""
    for offset, sizes in enumerate(zip(best.sizes, other.sizes, strict=True)):
        if sizes[0] != sizes[1]:
            return Parting(offset, sizes, (best.rules[offset], other.rules[offset]))
    last = len(best.sizes)
    return Parting(last, (0, 0), (best.rules[-1], other.rules[-1]) if last else ("", ""))
