"""Whether rows of a relation may be missing or wrong, worked out naively.

Where that depends on what arrives first, the marks are a range: the least that an engine must find and the
most that it may. It does in these cases:

- Of a relation whose first tuple decides (the first input of null), marks count as far as they had come.
- A statement that has several reasons not to fire ends with the marks of the one that was known first.
- The output that null does not take is told before the input that it takes has ended, and a recursion does
  not wait for an input that it only hands down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Marks:
    """Rows may be missing, or wrong; `cut`: of a sorted relation that lacks rows the first may be wrong."""

    partial: bool = False
    doubtful: bool = False
    cut: bool = False

    def __or__(self, other: Marks) -> Marks:
        return Marks(self.partial or other.partial, self.doubtful or other.doubtful, self.cut or other.cut)

    def __and__(self, other: Marks) -> Marks:
        return Marks(self.partial and other.partial, self.doubtful and other.doubtful, self.cut and other.cut)

    def __str__(self) -> str:
        return " and ".join(name for name in ("partial", "doubtful") if getattr(self, name)) or "whole"


@dataclass(frozen=True)
class Range:
    """The least and the most marks that a relation may have; mostly they are the same."""

    least: Marks = Marks()
    most: Marks = Marks()

    def __or__(self, other: Range) -> Range:
        return Range(self.least | other.least, self.most | other.most)

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"between {self.least} and {self.most}"

    @property
    def is_exact(self) -> bool:
        return self.least == self.most

    def allows(self, found: Marks) -> bool:
        """Whether an engine that found these marks is right; `cut` is not told."""
        at_least = Marks(self.least.partial, self.least.doubtful)
        return at_least | found == found and self.most | found == self.most

    def _each(self, change: Callable[[Marks], Marks]) -> Range:
        return Range(change(self.least), change(self.most))

    @property
    def as_doubt(self) -> Range:
        """The marks of results for which a missing row makes a row."""
        return self._each(lambda marks: Marks(False, marks.partial or marks.doubtful, marks.cut))

    @property
    def as_sorted(self) -> Range:
        return self._each(lambda marks: Marks(marks.partial, marks.doubtful, marks.cut or marks.partial))

    @property
    def of_first_rows(self) -> Range:
        """The marks of the first rows of a relation that is sorted: the plan asked for no more."""
        return self._each(lambda marks: Marks(False, marks.doubtful or marks.cut))

    @property
    def of_one_row(self) -> Range:
        """The marks that may have come with the first of the rows."""
        return self._each(lambda marks: Marks(False, marks.doubtful, marks.cut or marks.partial)).or_less

    @property
    def or_less(self) -> Range:
        return Range(Marks(), self.most)


WHOLE = Range()
PARTIAL = Range(Marks(partial=True), Marks(partial=True))


def united(ranges: Iterable[Range]) -> Range:
    """The marks of a relation that has the rows of all."""
    return reduce(Range.__or__, ranges, WHOLE)


def one_of(ranges: Iterable[Range]) -> Range:
    """The marks of any of these, or of some together."""
    given = list(ranges)
    if not given:
        return WHOLE
    least = reduce(Marks.__and__, (each.least for each in given))
    return Range(least, united(given).most)
