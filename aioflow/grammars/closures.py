"""Automaton states with their stacks, and the silent ways from each to the next characters."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from aioflow.grammars.automaton import Automaton, AutomatonNode, NodeKind, Operation, PathStep
from aioflow.grammars.syntax import Predicate, Rule

STEPS_AT_MOST = 200_000
_UNIVERSAL_AT_MOST = 20


class StackFrame:
    """A call that has not ended: where it continues, and the frame below. Frames are shared by solutions."""

    __slots__ = ("after", "below")

    def __init__(self, after: AutomatonNode, below: StackFrame | None) -> None:
        self.after = after
        self.below = below


# The predicate, and how many characters it has matched so far.
Question: TypeAlias = tuple[Predicate, int]
Answers: TypeAlias = dict[Question, bool]


class AutomatonState:
    """The state of a solution after a character: a node, its stack, and the lengths of open predicates.

    Two solutions in the same state have the same future.
    """

    __slots__ = ("ages", "closure", "is_universal", "node", "stack")

    def __init__(self, node: AutomatonNode, stack: StackFrame | None, ages: tuple[int, ...]) -> None:
        self.node = node
        self.stack = stack
        self.ages = ages
        # None if it is not known, or depends on the answers of predicates.
        self.closure: Closure | None = None
        self.is_universal: bool | None = None

    @property
    def rule(self) -> Rule:
        return self.node.rule


class Way(NamedTuple):
    """A silent way to a terminal and over it."""

    bit: int
    specificity: int
    target: AutomatonState
    steps: tuple[PathStep, ...] | None
    prunes: bool


class Closure:
    """All ways from one state, the preferred first; `accepted` has the steps if the end can be here."""

    __slots__ = ("_matching", "accepted", "mask", "ways")

    def __init__(self, ways: list[Way], accepted: tuple[PathStep, ...] | None) -> None:
        self.ways = ways
        self.accepted = accepted
        self.mask = 0
        for way in ways:
            self.mask |= way.bit
        self._matching: dict[int, list[Way]] = {}

    def matching(self, character_mask: int) -> list[Way]:
        """Return the ways over a character, the most specific first, among these in written order."""
        key = character_mask & self.mask
        known = self._matching.get(key)
        if known is None:
            found = [way for way in self.ways if way.bit & key]
            known = self._matching[key] = sorted(found, key=lambda way: way.specificity)
        return known


class UnansweredError(Exception):
    """A closure needs the answer of a predicate."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question


class TooLongClosureError(Exception):
    """The silent ways from one state are too many."""


_Links: TypeAlias = "tuple[_Links, PathStep] | None"


class _Walk:
    """One depth-first walk over silent edges, in written order; a node met again has a better way already."""

    def __init__(self, states: AutomatonStates, answers: Answers) -> None:
        self._states = states
        self._answers = answers
        self._ways: list[Way] = []
        self._accepted: tuple[PathStep, ...] | None = None
        self._waiting: list[tuple[AutomatonNode, StackFrame | None, tuple[int, ...], _Links, bool]] = []

    def closure(self, state: AutomatonState) -> Closure:
        waiting = self._waiting
        waiting.append((state.node, state.stack, state.ages, None, False))
        visited = set()
        while waiting:
            node, stack, ages, links, prunes = waiting.pop()
            key = (node, stack, ages)
            if key in visited:
                continue
            visited.add(key)
            if len(visited) > STEPS_AT_MOST:
                raise TooLongClosureError
            if node.kind is NodeKind.SPLIT:
                for each in reversed(node.following):
                    waiting.append((each, stack, ages, links, prunes))
            else:
                self._follow(node, stack, ages, links, prunes)
        return Closure(self._ways, self._accepted)

    def _follow(
        self,
        node: AutomatonNode,
        stack: StackFrame | None,
        ages: tuple[int, ...],
        links: _Links,
        prunes: bool,
    ) -> None:
        kind = node.kind
        if kind is NodeKind.CONSUME:
            older = tuple([age + 1 for age in ages]) if ages else ages
            target = self._states.state(node.following[0], stack, older)
            self._ways.append(Way(node.bit, node.specificity, target, _steps(links), prunes))
        elif kind is NodeKind.STEP:
            assert node.step is not None  # of its kind
            self._waiting.append((node.following[0], stack, ages, (links, node.step), prunes))
        elif kind is NodeKind.CALL:
            assert node.step is not None  # of its kind
            if node.tail is None:
                stack = self._states.frame(node.following[0], stack)
            inner = self._states.automaton.inner(node)
            self._waiting.append((inner, stack, ages, (links, node.step), prunes))
        elif kind is NodeKind.RETURN:
            assert stack is not None  # the start rule is called as well
            self._waiting.append((stack.after, stack.below, ages, (links, _LEAVE), prunes))
        else:
            self._follow_rare(node, stack, ages, links, prunes)

    def _follow_rare(
        self,
        node: AutomatonNode,
        stack: StackFrame | None,
        ages: tuple[int, ...],
        links: _Links,
        prunes: bool,
    ) -> None:
        kind = node.kind
        if kind is NodeKind.BEGIN:
            self._waiting.append((node.following[0], stack, (*ages, 0), links, prunes))
        elif kind is NodeKind.ASK:
            assert node.predicate is not None  # of its kind
            question = (node.predicate, ages[-1])
            answer = self._answers.get(question)
            if answer is None:
                raise UnansweredError(question)
            if answer:
                self._waiting.append((node.following[0], stack, ages[:-1], links, prunes))
        elif kind is NodeKind.PRUNE:
            self._waiting.append((node.following[0], stack, ages, links, True))
        elif kind is NodeKind.ACCEPT and self._accepted is None:
            self._accepted = _steps(links) or ()


_LEAVE = PathStep(Operation.LEAVE)


def _steps(links: _Links) -> tuple[PathStep, ...] | None:
    if links is None:
        return None
    found: list[PathStep] = []
    while links is not None:
        links, step = links
        found.append(step)
    return tuple(reversed(found))


class AutomatonStates:
    """All states of one automaton that were met: equal ones are one object."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self._frames: dict[tuple[AutomatonNode, StackFrame | None], StackFrame] = {}
        self._states: dict[tuple[AutomatonNode, StackFrame | None, tuple[int, ...]], AutomatonState] = {}

    def __len__(self) -> int:
        return len(self._frames) + len(self._states)

    def frame(self, after: AutomatonNode, below: StackFrame | None) -> StackFrame:
        known = self._frames.get((after, below))
        return known or self._frames.setdefault((after, below), StackFrame(after, below))

    def state(self, node: AutomatonNode, stack: StackFrame | None, ages: tuple[int, ...]) -> AutomatonState:
        key = (node, stack, ages)
        known = self._states.get(key)
        return known or self._states.setdefault(key, AutomatonState(*key))

    def adopted(self, state: AutomatonState) -> AutomatonState:
        """Return the equal state of these, for one that others have made."""
        frames: list[StackFrame] = []
        frame = state.stack
        while frame is not None:
            frames.append(frame)
            frame = frame.below
        stack: StackFrame | None = None
        for each in reversed(frames):
            stack = self.frame(each.after, stack)
        return self.state(state.node, stack, state.ages)

    def closure(self, state: AutomatonState, answers: Answers) -> Closure:
        """Return the ways from a state; raise UnansweredError if an answer is missing."""
        if state.closure is not None:
            return state.closure
        try:
            state.closure = _Walk(self, {}).closure(state)
        except UnansweredError:
            return _Walk(self, answers).closure(state)
        return state.closure

    def is_universal(self, state: AutomatonState) -> bool:
        """Return whether a solution in this state accepts any rest of the source."""
        if state.is_universal is None:
            self._find_universal(state)
        return bool(state.is_universal)

    def _find_universal(self, state: AutomatonState) -> None:
        # The greatest set of accepting states in which every character leads to a state of the set. Such sets
        # are small; with recursion the search could go on over ever deeper stacks.
        reached: dict[AutomatonState, list[AutomatonState]] = {}
        waiting = [state]
        for each in waiting:
            if each in reached or each.is_universal is not None:
                continue
            if len(reached) == _UNIVERSAL_AT_MOST:
                state.is_universal = False
                return
            reached[each] = self._after_any(each)
            if each in reached[each]:
                each.is_universal = True
            else:
                waiting.extend(reached[each])
        remaining = {each for each in reached if reached[each] and each.is_universal is None}
        shrinks = True
        while shrinks:
            kept = {
                each
                for each in remaining
                if any(target.is_universal or target in remaining for target in reached[each])
            }
            shrinks = len(kept) < len(remaining)
            remaining = kept
        for each in reached:
            each.is_universal = each.is_universal or each in remaining

    def _after_any(self, state: AutomatonState) -> list[AutomatonState]:
        """Return the states to which every character leads, none if the source may not end here."""
        if state.ages:
            return []
        try:
            closure = self.closure(state, {})
        except UnansweredError:
            return []
        if closure.accepted is None:
            return []
        any_bit = self.automaton.any_bit
        return [way.target for way in closure.ways if way.bit == any_bit and not way.target.ages]
