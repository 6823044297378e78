"""The matcher: the best interpretation of a source that arrives in pieces, and its part that is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import NamedTuple, TypeAlias

from aioflow.grammars.automaton import PathStep
from aioflow.grammars.closures import Question, TooLongClosureError
from aioflow.grammars.errors import ParseError, ParseLimitError
from aioflow.grammars.limits import ParseLimits, TextWindow
from aioflow.grammars.subsets import CACHE_BYTES_AT_MOST, Link, Subsets, TooManySolutionsError, Transition

_BLOCK_CHARACTERS = 1 << 16
_BYTES_PER_LINK = 12
# Settling goes back over what is not settled; so many steps for each piece and character bound its cost.
_CREDIT_PER_PIECE, _CREDIT_PER_CHARACTER = 256, 4


class PathEvent(NamedTuple):
    """Steps of the winning path before the character at an offset."""

    offset: int
    steps: tuple[PathStep, ...]


# A way back over one character, or the length of a run that changes nothing.
_Trail: TypeAlias = "list[Link | int]"


class Matching:
    """One source, from the first character to the last."""

    def __init__(
        self,
        subsets: Subsets,
        start: str,
        limits: ParseLimits,
        window: TextWindow,
        holds: Callable[[Question, str, int], bool],
    ) -> None:
        self._subsets = subsets
        self._limits = limits
        self._window = window
        self._holds = holds
        self._deadline = monotonic() + limits.seconds
        self._state = subsets.initial(start)
        self._start = start
        self._trail: _Trail = []
        # Everything before the trail is settled, and so many of the steps of its first link.
        self._done = 0
        self._settled_at = 0
        self.position = 0
        self._bytes_before = subsets.bytes_used
        self._bytes_held = 0
        self._credit = 0

    # --- forward --------------------------------------------------------------------------------

    def begin_piece(self) -> float:
        """Give the next piece its time; return its end."""
        self._deadline = monotonic() + self._limits.seconds
        return self._deadline

    def feed(self, text: str) -> None:
        """Follow all interpretations over the next piece of the source; it is in the window already."""
        self._credit += _CREDIT_PER_PIECE + _CREDIT_PER_CHARACTER * len(text)
        base = self.position
        place = 0
        while place < len(text):
            stop = min(place + _BLOCK_CHARACTERS, len(text))
            while place < stop:
                place = self._quick(text, place, stop)
                self.position = base + place
                if place < stop:
                    self._slow(text[place])
                    place += 1
                    self.position = base + place
            self._check_limits()

    def _quick(self, text: str, place: int, stop: int) -> int:
        """Follow known transitions; return where the first unknown one is."""
        transition: Transition | None = None
        table = self._state.table
        append = self._trail.append
        try:
            while place < stop:
                transition = table[text[place]]
                if transition.run is None:
                    append(transition.link)
                    table = transition.table
                    place += 1
                else:
                    run_end = transition.run(text, place, stop).end()  # type: ignore[union-attr]  # at least 1
                    append(run_end - place)
                    place = run_end
        except KeyError:
            pass
        if transition is not None:
            self._state = transition.target
        return place

    def _slow(self, character: str) -> None:
        """Follow one transition that is not known yet, or depends on predicates."""
        self._check_limits()
        try:
            state = self._subsets.resolved(self._state, self._ask)
            found = self._subsets.transition(state, character, self._limits.live_solutions)
        except TooManySolutionsError:
            raise self._limit(
                f"more than {self._limits.live_solutions:,} interpretations are alive at once"
            ) from None
        except TooLongClosureError:
            raise self._limit("too many ways lead from here to the next character") from None
        if found is None:
            raise self._failure(f"no interpretation goes on with {character!r}")
        self._trail.append(found.link)
        self._state = found.target

    def _ask(self, question: Question) -> bool:
        _, length = question
        return self._holds(question, self._window.slice(self.position - length, self.position), self.position)

    def _check_limits(self) -> None:
        if monotonic() > self._deadline:
            raise self._limit(f"the parse takes longer than {self._limits.seconds:g} seconds")
        if self._subsets.bytes_used > CACHE_BYTES_AT_MOST:
            self._learn_anew()
        learned = self._subsets.bytes_used - self._bytes_before
        used = len(self._trail) * _BYTES_PER_LINK + learned + self._bytes_held
        if used > self._limits.memory_bytes:
            raise self._limit(f"the parse takes more than {self._limits.memory_bytes:,} bytes")

    def _learn_anew(self) -> None:
        """Go on with new subsets: of the old ones, the trail holds the links alone."""
        self._bytes_held += max(0, self._subsets.bytes_used - self._bytes_before)
        self._subsets = Subsets(self._subsets.automaton)
        self._state = self._subsets.adopted(self._state)
        self._bytes_before = self._subsets.bytes_used

    @property
    def rule(self) -> str:
        """The rule in which the best interpretation is."""
        states = self._state.states
        return states[0].rule.name if states else self._start

    def _limit(self, problem: str) -> ParseLimitError:
        return ParseLimitError(
            f"{problem}, at offset {self.position:,} in the rule '{self.rule}'", self.position, self.rule
        )

    def _failure(self, problem: str) -> ParseError:
        return ParseError(
            f"{problem}, at offset {self.position:,} in the rule '{self.rule}'", self.position, self.rule
        )

    # --- backward -------------------------------------------------------------------------------

    def finish(self) -> list[PathEvent]:
        """Return the rest of the winning path, at the end of the source."""
        try:
            state = self._subsets.resolved(self._state, self._ask)
        except TooLongClosureError:
            raise self._limit("too many ways lead from here to the end") from None
        assert state.closures is not None  # all questions are answered
        for index, closure in enumerate(state.closures):
            if closure.accepted is not None:
                events = self._path(len(self._trail), index, self.position)
                return [*events, PathEvent(self.position, closure.accepted)]
        raise self._failure("the source ends before any interpretation does")

    def settled(self) -> list[PathEvent]:
        """Return the part of the path that all surviving interpretations agree on, since the last call."""
        if len(self._trail) > self._credit:
            return []
        alive = set(range(len(self._state.states)))
        self._credit -= len(self._trail)
        return self._settle(alive)

    @property
    def settled_until(self) -> int:
        """The offset before which no text is needed any more, neither for the path nor for predicates."""
        oldest = max((age for each in self._state.states for age in each.ages), default=0)
        return min(self._settled_at, self.position - oldest)

    def _settle(self, alive: set[int]) -> list[PathEvent]:
        count, position = len(self._trail), self.position
        branches: set[int] = alive
        link: Link | None = None
        while len(alive) > 1 and count:
            count -= 1
            entry = self._trail[count]
            if isinstance(entry, int):
                position -= entry
                continue
            position -= 1
            branches, link = alive, entry
            alive = {entry.origins[index] for index in alive}
        if len(alive) > 1:
            return []
        (root,) = alive
        events = self._path(count, root, position)
        shared = _shared_steps(link, branches) if link is not None else ()
        return self._cut(events, count, position, shared)

    def _cut(
        self, events: list[PathEvent], count: int, position: int, shared: tuple[PathStep, ...]
    ) -> list[PathEvent]:
        done = self._done if count == 0 else 0
        if len(shared) > done:
            events.append(PathEvent(position, shared[done:]))
            done = len(shared)
        self._bytes_held = self._bytes_held * (len(self._trail) - count) // max(1, len(self._trail))
        del self._trail[:count]
        self._settled_at = position
        self._done = done
        return events

    def _path(self, count: int, index: int, position: int) -> list[PathEvent]:
        """Return the path over the first `count` entries of the trail to a survivor."""
        events: list[PathEvent] = []
        trail = self._trail
        for number in range(count - 1, -1, -1):
            entry = trail[number]
            if isinstance(entry, int):
                position -= entry
                continue
            position -= 1
            if entry.steps is not None:
                steps = entry.steps[index]
                if steps is not None:
                    if number == 0 and self._done:
                        steps = steps[self._done :]
                    events.append(PathEvent(position, steps))
            index = entry.origins[index]
        events.reverse()
        return events


def _shared_steps(link: Link, branches: set[int]) -> tuple[PathStep, ...]:
    """Return the steps with which all ways over a character begin."""
    if link.steps is None:
        return ()
    ways: Iterator[tuple[PathStep, ...]] = (link.steps[index] or () for index in branches)
    shared = next(ways)
    for steps in ways:
        length = 0
        for one, other in zip(shared, steps, strict=False):
            if one is not other:
                break
            length += 1
        shared = shared[:length]
    return shared
