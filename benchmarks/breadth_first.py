"""A plain breadth-first matcher of grammars, as the paper on Jedi describes it: to compare with.

It keeps every surviving solution as an object with its path, sorts and prunes them at each character, and
remembers nothing but the silent ways of the automaton.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from aioflow.grammars import Grammar
from aioflow.grammars.automaton import Automaton, PathStep
from aioflow.grammars.closures import AutomatonState, AutomatonStates, Way
from aioflow.grammars.limits import TextWindow
from aioflow.grammars.matching import PathEvent
from aioflow.grammars.replay import Replay


class Solution(NamedTuple):
    """A path to a state; solutions of equal rank have had the same specificities so far."""

    state: AutomatonState
    rank: int
    before: Solution | None
    offset: int
    steps: tuple[PathStep, ...] | None


class BreadthFirst:
    """Matches sources by one grammar without predicates."""

    def __init__(self, grammar: Grammar, start: str) -> None:
        self._grammar = grammar
        self._automaton = Automaton(grammar.rules)
        self._states = AutomatonStates(self._automaton)
        self._start = self._automaton.start(start)

    def match(self, source: str) -> list[PathEvent]:
        """Return the winning path."""
        mask = self._automaton.alphabet.mask
        solutions = [Solution(self._states.state(self._start, None, ()), 0, None, 0, None)]
        for offset, character in enumerate(source):
            solutions = self._next(solutions, mask(character), offset)
        for solution in solutions:
            accepted = self._states.closure(solution.state, {}).accepted
            if accepted is not None:
                return [*_path(solution), PathEvent(len(source), accepted)]
        raise AssertionError("no interpretation covers the source")

    def _next(self, solutions: list[Solution], mask: int, offset: int) -> list[Solution]:
        candidates: list[tuple[int, int, Way, Solution]] = []
        for solution in solutions:
            for way in self._states.closure(solution.state, {}).ways:
                if way.bit & mask:
                    candidates.append((solution.rank, way.specificity, way, solution))  # noqa: PERF401
        candidates.sort(key=lambda each: each[:2])
        found: list[Solution] = []
        seen = set()
        rank, last = -1, (-1, -1)
        for before, specificity, way, solution in candidates:
            if (before, specificity) != last:
                rank, last = rank + 1, (before, specificity)
            if way.target not in seen:
                seen.add(way.target)
                found.append(Solution(way.target, rank, solution, offset, way.steps))
        return found

    def parse(self, source: str) -> Any:
        """Return the result of the start rule."""
        window = TextWindow()
        window.add(source)
        replay = Replay(window, self._grammar.source, self._grammar.functions, float("inf"))
        for event in self.match(source):
            replay.advance(event)
        return replay.value


def _path(solution: Solution | None) -> list[PathEvent]:
    events = []
    while solution is not None:
        if solution.steps is not None:
            events.append(PathEvent(solution.offset, solution.steps))
        solution = solution.before
    return events[::-1]
