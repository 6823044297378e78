"""Lazily determinised ordered subsets: the surviving solutions after a character, ranked, as one state.

Each transition is computed once, and keeps for every survivor which predecessor it came from. No library does
this: regular expressions (`re`, google-re2) prefer by written order, and know no specificity or recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from aioflow.grammars.automaton import Automaton, PathStep
from aioflow.grammars.characters import run_of
from aioflow.grammars.closures import (
    Answers,
    AutomatonState,
    AutomatonStates,
    Closure,
    Question,
    UnansweredError,
    Way,
)

# Rough sizes of the objects that a parse makes, for its limit on memory.
_BYTES_PER_TRANSITION = 400
_BYTES_PER_SURVIVOR = 32
_BYTES_PER_STATE = 250

# What sources have taught; past this, a matcher learns anew.
CACHE_BYTES_AT_MOST = 64_000_000

_Run: TypeAlias = Callable[[str, int, int], "re.Match[str] | None"]


class Link:
    """The way back over one character: the predecessor of each survivor, and the steps on its way."""

    __slots__ = ("origins", "steps")

    def __init__(
        self, origins: tuple[int, ...], steps: tuple[tuple[PathStep, ...] | None, ...] | None
    ) -> None:
        self.origins = origins
        self.steps = steps


class Transition:
    """What a character leads to. A `run` jumps over all characters that change nothing."""

    __slots__ = ("link", "run", "table", "target")

    def __init__(self, target: SubsetState, link: Link, run: _Run | None) -> None:
        self.target = target
        self.table = target.table
        self.link = link
        self.run = run


class SubsetState:
    """Surviving solutions, the best first; `groups` has where each group of equal specificities begins."""

    __slots__ = ("branch", "closures", "groups", "mask", "states", "table", "transitions")

    def __init__(self, states: tuple[AutomatonState, ...], groups: tuple[int, ...]) -> None:
        self.states = states
        self.groups = groups
        # None while they depend on the answers of predicates.
        self.closures: tuple[Closure, ...] | None = None
        self.mask = 0
        self.transitions: dict[int, Transition | None] = {}
        # By character, for the matcher; empty while answers are missing.
        self.table: dict[str, Transition] = {}
        self.branch: _Branch | None = None

    def set_closures(self, closures: tuple[Closure, ...]) -> None:
        mask = 0
        for each in closures:
            mask |= each.mask
        self.mask = mask
        self.closures = closures


class _Branch:
    """A node of the tree of answers that a state depends on: a question, or the state with all answers."""

    __slots__ = ("answered", "question", "resolved")

    def __init__(self) -> None:
        self.question: Question | None = None
        self.answered: dict[bool, _Branch] = {}
        self.resolved: SubsetState | None = None


class TooManySolutionsError(Exception):
    """More solutions live at once than the limit allows."""


class Subsets:
    """The states and transitions of one automaton, as far as sources have asked for them."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self._states = AutomatonStates(automaton)
        self._known: dict[tuple[tuple[AutomatonState, ...], tuple[int, ...]], SubsetState] = {}
        self._runs: dict[tuple[int, int], _Run | None] = {}
        self._bytes = 0

    @property
    def bytes_used(self) -> int:
        """About how much memory the states and transitions take."""
        return self._bytes + 250 * len(self._states)

    def initial(self, rule: str) -> SubsetState:
        """Return the state before the first character for a start rule."""
        state = self._states.state(self.automaton.start(rule), None, ())
        return self._state((state,), (0,))

    def adopted(self, state: SubsetState) -> SubsetState:
        """Return the state of other subsets of the same automaton as one of these."""
        states = tuple([self._states.adopted(each) for each in state.states])
        return self._state(states, state.groups)

    def _state(self, states: tuple[AutomatonState, ...], groups: tuple[int, ...]) -> SubsetState:
        key = (states, groups)
        known = self._known.get(key)
        if known is not None:
            return known
        state = SubsetState(states, groups)
        try:
            state.set_closures(tuple([self._states.closure(each, {}) for each in states]))
        except UnansweredError:
            state.closures = None
        self._bytes += _BYTES_PER_STATE + _BYTES_PER_SURVIVOR * len(states)
        return self._known.setdefault(key, state)

    def resolved(self, state: SubsetState, ask: Callable[[Question], bool]) -> SubsetState:
        """Return the state in which all questions of predicates are answered."""
        if state.closures is not None:
            return state
        branch = state.branch
        if branch is None:
            branch = state.branch = _Branch()
        answers: Answers = {}
        while branch.resolved is None:
            if branch.question is None:
                self._grow(branch, state, answers)
                continue
            answer = answers[branch.question] = ask(branch.question)
            branch = branch.answered.setdefault(answer, _Branch())
        return branch.resolved

    def _grow(self, branch: _Branch, state: SubsetState, answers: Answers) -> None:
        try:
            closures = tuple([self._states.closure(each, answers) for each in state.states])
        except UnansweredError as error:
            branch.question = error.question
            return
        resolved = SubsetState(state.states, state.groups)
        resolved.set_closures(closures)
        self._bytes += _BYTES_PER_STATE + 3 * _BYTES_PER_SURVIVOR * len(closures)
        branch.resolved = resolved

    def transition(self, state: SubsetState, character: str, solutions_at_most: int) -> Transition | None:
        """Return what a character leads to from a state without open questions; None if nothing survives."""
        character_mask = self.automaton.alphabet.mask(character)
        key = character_mask & state.mask
        # Threads that share a grammar may compute a transition twice: the same one.
        try:
            found = state.transitions[key]
        except KeyError:
            found = state.transitions[key] = self._computed(state, key, solutions_at_most)
        if found is not None:
            state.table[character] = found
        return found

    def _computed(self, state: SubsetState, key: int, solutions_at_most: int) -> Transition | None:
        survivors = self._survivors(state, key, solutions_at_most)
        if not survivors.targets:
            return None
        target = self._state(tuple(survivors.targets), tuple(survivors.groups))
        origins = tuple(survivors.origins)
        steps = None if all(each is None for each in survivors.steps) else tuple(survivors.steps)
        run = None
        if target is state and steps is None and origins == tuple(range(len(origins))):
            run = self._run(key, state.mask)
        self._bytes += _BYTES_PER_TRANSITION + 2 * _BYTES_PER_SURVIVOR * len(origins)
        return Transition(target, Link(origins, steps), run)

    def _run(self, key: int, mask: int) -> _Run | None:
        if (key, mask) not in self._runs:
            characters = self.automaton.alphabet.alike(key, mask)
            self._runs[key, mask] = None if characters is None else run_of(characters).match
        return self._runs[key, mask]

    def _survivors(self, state: SubsetState, key: int, solutions_at_most: int) -> _Survivors:
        assert state.closures is not None  # the caller has answered all questions
        found = _Survivors(self._states, solutions_at_most)
        ends = (*state.groups[1:], len(state.closures))
        for start, end in zip(state.groups, ends, strict=True):
            ranked = [
                (way.specificity, index, way)
                for index in range(start, end)
                for way in state.closures[index].matching(key)
            ]
            if end - start > 1:
                ranked.sort(key=_specificity)
            if found.add_group(ranked):
                break
        return found


def _specificity(ranked: tuple[int, int, object]) -> int:
    return ranked[0]


class _Survivors:
    """Collects the solutions after a character in their order, without those that cannot win."""

    def __init__(self, states: AutomatonStates, at_most: int) -> None:
        self._automaton_states = states
        self._at_most = at_most
        self._seen: set[AutomatonState] = set()
        self.targets: list[AutomatonState] = []
        self.origins: list[int] = []
        self.steps: list[tuple[PathStep, ...] | None] = []
        self.groups: list[int] = []

    def add_group(self, ranked: Sequence[tuple[int, int, Way]]) -> bool:
        """Add the ways from solutions of equal rank, sorted; return whether all that follow are dropped."""
        last = -1
        any_rest = begins = False
        for specificity, index, way in ranked:
            if specificity != last:
                if any_rest:
                    # Each way to the end from a lower rank loses against one of this rank.
                    return True
                last = specificity
                begins = True
            if way.target in self._seen:
                continue
            if begins:
                self.groups.append(len(self.targets))
                begins = False
            self._add(index, way)
            if way.prunes:
                return True
            any_rest = any_rest or self._automaton_states.is_universal(way.target)
        return any_rest

    def _add(self, index: int, way: Way) -> None:
        self._seen.add(way.target)
        self.targets.append(way.target)
        self.origins.append(index)
        self.steps.append(way.steps)
        if len(self.targets) > self._at_most:
            raise TooManySolutionsError
