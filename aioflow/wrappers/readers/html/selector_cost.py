"""Selectors with several descendant steps, and pages so deep that matching them would take far too long.

Lexbor matches from right to left, and where a step fails it tries every other ancestor for the step before:
with k steps and d ancestors up to d over k ways for one element. `b div div div p` on 400 nested <div>, two
kilobytes, takes seconds, and holds Python's lock meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import comb
from typing import TYPE_CHECKING

from aioflow.wrappers.readers.html.css import Selector
from aioflow.wrappers.readers.html.nodes import find_first

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

# So many ways take a fifth of a second.
_MOST_WAYS = 20_000_000
_HARMLESS_STEPS = 1
# Levels that a page is compared with; hardly any page has more than the first.
_LEVELS = (40, 64, 100)


class SelectorCost:
    """The depth that pages may have for the selectors of an extraction."""

    def __init__(self, steep: Sequence[Selector]) -> None:
        self._steps = max(selector.steps for selector in steep)
        self._few_tags = _few_tags(self._steps)
        ends = tuple(dict.fromkeys(end for selector in steep for end in selector.ends))
        self._deeper = [
            (_MOST_WAYS // comb(level, self._steps), _deeper(level, ends)) for level in reversed(_LEVELS)
        ]

    @classmethod
    def of(cls, selectors: Iterable[Selector]) -> SelectorCost | None:
        """None when no page can be too deep for any of them."""
        steep = [selector for selector in selectors if selector.steps > _HARMLESS_STEPS]
        return cls(steep) if steep else None

    def tags(self, body: bytes) -> int:
        """How many tags a page has at most, 0 if there are so few that it cannot be too deep."""
        if len(body) < 3 * self._few_tags:
            return 0
        tags = body.count(b"<")
        return tags if tags > self._few_tags else 0

    def is_exceeded_by(self, root: LexborNode, tags: int) -> bool:
        """Whether an element that a selector could mean is too deep in a page of so many tags."""
        fitting = (deeper for most_tags, deeper in self._deeper if tags <= most_tags)
        return find_first(next(fitting, self._deeper[-1][1]), root) is not None


@cache
def _few_tags(steps: int) -> int:
    """The most tags that are harmless however they are nested."""
    tags = steps
    # The worst is about so much depth, and all others at the end of it.
    while (tags - (depth := tags * steps // (steps + 1))) * comb(depth, steps) <= _MOST_WAYS:
        tags += 1
    return tags


def _deeper(level: int, ends: tuple[str, ...]) -> str:
    """A selector for what has more ancestors: it climbs from parent to parent, in one way only."""
    return ",".join(f"{'*>' * level}{end}" for end in ends)
