"""Goes through the automaton of plan.lark, token by token; grammar.py repairs what does not fit."""

from __future__ import annotations

from typing import Any

from aioflow.language.nodes import Nodes
from aioflow.language.scanner import END, Token
from aioflow.language.tables import RULES, STARTS, STATES

_NODES = Nodes()
# Without a method: the parts of a list that the grammar repeats.
_MAKERS = tuple(getattr(_NODES, origin, None) for origin, _ in RULES)


class Reading:
    """A piece that is being read by a rule of the grammar."""

    def __init__(self, start: str) -> None:
        first, self._last = STARTS[start]
        self._states = [first]
        self._values: list[Any] = []

    def take(self, token: Token) -> bool:
        """Go on with a token, if it fits."""
        fits = self._advance(self._states, token.type, self._values)
        if fits and token.type != END:
            self._values.append(token)
        return fits

    @property
    def result(self) -> Any:
        """What the rule made of the piece, once the end has been taken."""
        return self._values[-1]

    def would_take(self, *kinds: str) -> bool:
        """Whether tokens of these kinds fit one after the other."""
        states = self._states.copy()
        return all(self._advance(states, kind) for kind in kinds)

    def accepts(self) -> set[str]:
        """The kinds of tokens that fit next."""
        return {kind for kind in STATES[self._states[-1]] if kind.isupper() and self.would_take(kind)}

    def _advance(self, states: list[int], kind: str, values: list[Any] | None = None) -> bool:
        """Pass a token of this kind, and before it the ends of rules; these make `values`, if given."""
        while (action := STATES[states[-1]].get(kind)) is not None:
            if action >= 0:
                states.append(action)
                return True
            origin, shape = RULES[~action]
            if shape:
                del states[-len(shape) :]
            states.append(STATES[states[-1]][origin])
            if values is not None:
                _make(~action, shape, values)
            if kind == END and states[-1] == self._last:
                return True
        return False


def _make(rule: int, shape: str, values: list[Any]) -> None:
    """Replace the values of a rule's parts by what the rule makes of them."""
    first = len(values) - len(shape)
    parts: list[Any] = []
    for fate, value in zip(shape, values[first:], strict=True):
        if fate == "+":
            parts.append(value)
        elif fate == "*":
            # Taken over when it comes first: lists grow part by part, and must not be copied each time.
            parts = parts + value if parts else value
    make = _MAKERS[rule]
    values[first:] = [parts if make is None else make(parts)]
