"""The bounds of theorem 1 of Sheng, Zhang, Tao and Jin (2012) on the number of queries."""

from __future__ import annotations

import math

from aioflow.hidden.space import Space

# The proof of lemma 2 asks for a constant of at least 20 for each numeric attribute.
NUMERIC_CONSTANT = 20


def theorem_1(space: Space, n: int, k: int) -> int:
    """Return the most queries for n tuples, k an answer. The first query, which leaves all open, is added."""
    ratio = n / k
    sizes = [len(space.list_axis(place)) for place in space.lists]
    categorical = 0.0
    if len(sizes) == 1:
        categorical = sizes[0]
    elif sizes:
        categorical = sum(sizes) + ratio * sum(min(size, ratio) for size in sizes)
    numeric = NUMERIC_CONSTANT * (len(space.ranges) + len(space.one_sided)) * ratio
    return math.ceil(categorical + numeric) + 1
