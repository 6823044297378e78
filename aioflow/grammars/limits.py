"""Limits of a parse, and the text that it may still need."""

from __future__ import annotations

from bisect import bisect_right

import msgspec


class ParseLimits(msgspec.Struct, frozen=True):
    """How much one parse may take; past a limit it ends with a ParseLimitError."""

    # Interpretations that are followed at once. Recursion can double them at every character.
    live_solutions: int = 2000
    # For each piece of a source that arrives in pieces.
    seconds: float = 60.0
    memory_bytes: int = 1_000_000_000


class TextWindow:
    """The source as far as it was fed, without the beginning that nothing needs any more."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._starts: list[int] = []
        self.start = 0
        self.end = 0

    def add(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)
            self._starts.append(self.end)
            self.end += len(piece)

    def slice(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        if start >= end:
            return ""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        if first == last:
            return self._pieces[first][start - self._starts[first] : end - self._starts[first]]
        parts = [self._pieces[first][start - self._starts[first] :]]
        parts += self._pieces[first + 1 : last]
        parts.append(self._pieces[last][: end - self._starts[last]])
        return "".join(parts)

    def drop(self, before: int) -> None:
        """Forget the pieces that end before an offset."""
        count = bisect_right(self._starts, before) - 1
        if count > 0:
            del self._pieces[:count], self._starts[:count]
            self.start = self._starts[0]
