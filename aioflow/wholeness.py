"""The wholeness of a relation that has ended: whether rows may be missing or wrong, and why.

A relation is *partial* when rows may be missing: a tuple failed, a body broke off, or a limit that no user
asked for cut something. It is *doubtful* when rows may be wrong, because an input in which missing rows make
rows was partial. Streams and steps pass the marks on; operators act on them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

# More reasons do not help a person, and a deep recursion may have one at each level.
_REASONS_AT_MOST = 8


class Reason(msgspec.Struct, frozen=True):
    """A sentence that says why a relation is not whole; `baseline` names figures that a person can accept."""

    text: str
    baseline: str | None = None


class Marks(msgspec.Struct, frozen=True):
    """The marks of a relation, each as its reasons; a relation without any is whole.

    `cut` holds the reasons for which the first rows alone may be the wrong ones: those of a sorted relation
    that lacks rows. `proven_empty` says that a source has shown that it has no items now, rather than that
    none were found.
    """

    partial: tuple[Reason, ...] = ()
    doubtful: tuple[Reason, ...] = ()
    cut: tuple[Reason, ...] = ()
    proven_empty: bool = False

    @property
    def is_whole(self) -> bool:
        return not (self.partial or self.doubtful)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return all reasons, each once."""
        return _joined(self.doubtful, self.partial)

    def united(self, other: Marks) -> Marks:
        """Return the marks of a relation that has the rows of both."""
        if other is self or other == WHOLE:
            return self
        if self == WHOLE:
            return other
        return Marks(
            _joined(self.partial, other.partial),
            _joined(self.doubtful, other.doubtful),
            _joined(self.cut, other.cut),
            self.proven_empty or other.proven_empty,
        )

    @property
    def as_doubt(self) -> Marks:
        """Return these marks as doubts, for an operator in which missing rows make rows."""
        return Marks(doubtful=self.reasons, cut=self.cut)

    @property
    def as_sorted(self) -> Marks:
        """Return the marks of the same relation in order."""
        return replace(self, cut=_joined(self.cut, self.partial))

    @property
    def of_first_rows(self) -> Marks:
        """Return the marks of the first rows, if only these were asked for: nothing of them is missing."""
        return Marks(doubtful=_joined(self.doubtful, self.cut))

    @property
    def of_rows_so_far(self) -> Marks:
        """Return the marks of the rows so far: they, or the first of them, may be wrong."""
        return Marks(doubtful=self.doubtful, cut=_joined(self.cut, self.partial))


WHOLE = Marks()
PROVEN_EMPTY = Marks(proven_empty=True)


def partial(text: str, baseline: str | None = None) -> Marks:
    """Return the marks of a relation that lacks rows for this reason."""
    return Marks(partial=(Reason(text, baseline),))


def _joined(first: Iterable[Reason], second: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys((*first, *second)))[:_REASONS_AT_MOST]
