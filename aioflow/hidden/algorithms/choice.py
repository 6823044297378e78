"""The algorithms by name, with what each needs of a form, and their start."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Literal, TypeAlias, get_args

from aioflow.errors import InputError
from aioflow.hidden.algorithms.points import AtLeaf, end_at_point
from aioflow.hidden.algorithms.ranges import Shrink, by_rank, halves
from aioflow.hidden.algorithms.trees import SliceCover, TreeSearch
from aioflow.hidden.form_crawler import FormCrawler, Step
from aioflow.hidden.space import QueryAnswer, Region, Space

Algorithm: TypeAlias = Literal[
    "auto", "binary-shrink", "squares", "rank-shrink", "dfs", "slice-cover", "lazy-slice-cover", "hybrid"
]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
_OF_RANGES = ("binary-shrink", "squares", "rank-shrink")
_OF_LISTS = ("dfs", "slice-cover", "lazy-slice-cover")


def check_algorithm(name: str, space: Space) -> None:
    """Raise an InputError if an algorithm cannot work on a form."""
    if name not in ALGORITHMS:
        raise InputError(f"there is no algorithm {name!r}; there are {', '.join(ALGORITHMS)}")
    if name in _OF_RANGES and space.lists:
        of = space.axes[space.lists[0]].name
        raise InputError(f"{name} works on ranges, and {of!r} has single values; use hybrid or auto")
    if name in _OF_LISTS and space.ranges:
        of = space.axes[space.ranges[0]].name
        raise InputError(f"{name} works on single values, and {of!r} is a range; use hybrid or auto")


def roots(space: Space, region: Region) -> Iterator[Region]:
    """Yield the regions to begin with: one for each combination of values that the form requires."""
    required = [
        place for place in space.lists if space.list_axis(place).is_required and region[place] is None
    ]
    for values in product(*(range(len(space.list_axis(place))) for place in required)):
        root = region
        for place, value in zip(required, values, strict=True):
            root = space.at(root, place, value)
        yield root


def first_step(name: str, crawler: FormCrawler, root: Region) -> Step:
    """Return the step with which an algorithm begins on a region."""
    space = crawler.space
    order = [place for place in space.lists if root[place] is None]
    if name == "auto":
        from aioflow.hidden.algorithms.auto import Auto

        return Auto(crawler, root).begin
    if name == "binary-shrink":
        return partial(Shrink(crawler, halves).visit, root)
    if name == "squares":
        return partial(Shrink(crawler, halves, longest=True).visit, root)
    if name == "rank-shrink":
        return partial(Shrink(crawler, by_rank).visit, root)
    at_leaf = _rank_shrink_at if name == "hybrid" else end_at_point
    if name == "slice-cover" and order:
        return SliceCover(crawler, root, order, at_leaf).begin
    return partial(_search(crawler, root, order, name, at_leaf).visit, root)


def _search(crawler: FormCrawler, root: Region, order: list[int], name: str, at_leaf: AtLeaf) -> TreeSearch:
    return TreeSearch(crawler, root, order, "never" if name == "dfs" else "when needed", at_leaf)


async def _rank_shrink_at(crawler: FormCrawler, region: Region, answer: QueryAnswer) -> None:
    await Shrink(crawler, by_rank).divide(region, answer)
