"""Pieces of a text as it arrives: lines, and paragraphs between blank lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aioflow.expressions.counters import UncomputableError
from aioflow.expressions.patterns import Pattern
from aioflow.wrappers.loop_time import limit_text

_EXCERPT = 200


class Block:
    """A piece of text, where it begins, and the match that it was found by."""

    __slots__ = ("match", "start", "text")

    def __init__(self, text: str, start: int, match: Any = None) -> None:
        self.text = text
        self.start = start
        self.match = match

    def place_of(self, pattern: Pattern | None, group: int) -> tuple[int, int] | None:
        """Where in the whole text a group of a pattern is found, or of the match of the block itself."""
        if pattern is None:
            if self.match is None:
                return self.start, self.start + len(self.text)
            # A block is its own match, or a line in which one was found.
            before = self.match.start() if self.match.group() == self.text else 0
            start, end = self.match.span(group)
            return None if start < 0 else (self.start + start - before, self.start + end - before)
        try:
            found = pattern.search(self.text)
        except UncomputableError:
            return None
        if found is None or found.start(group) < 0:
            return None
        start, end = found.span(group)
        return self.start + start, self.start + end


class _Split:
    """The lines of a text that comes in pieces, blank ones too, and where each begins."""

    def __init__(self) -> None:
        self._parts: list[str] = []  # of the line that has not ended
        self._size = 0
        self._start = 0

    def feed(self, text: str) -> Iterator[tuple[str, int]]:
        """The lines that have ended."""
        if "\n" not in text:
            if text:
                self._parts.append(text)
                self._size += len(text)
                limit_text(self._size)
            return
        lines = "".join([*self._parts, text]).split("\n")
        self._parts = [lines.pop()]
        self._size = len(self._parts[0])
        for line in lines:
            yield line.removesuffix("\r"), self._start
            self._start += len(line) + 1

    def end(self) -> Iterator[tuple[str, int]]:
        """The last line."""
        yield "".join(self._parts).removesuffix("\r"), self._start


class Lines:
    """The lines of a text that are not blank."""

    def __init__(self) -> None:
        self._split = _Split()

    def feed(self, text: str) -> Iterator[Block]:
        """The lines that have ended."""
        return _not_blank(self._split.feed(text))

    def end(self) -> Iterator[Block]:
        """The last line."""
        return _not_blank(self._split.end())


def _not_blank(lines: Iterator[tuple[str, int]]) -> Iterator[Block]:
    return (Block(line, start) for line, start in lines if line and not line.isspace())


class Paragraphs:
    """Lines that no blank line parts, together."""

    def __init__(self) -> None:
        self._split = _Split()
        self._open: list[str] = []
        self._size = 0
        self._start = 0

    def feed(self, text: str) -> Iterator[Block]:
        """The paragraphs that have ended."""
        for line, start in self._split.feed(text):
            yield from self._add(line, start)

    def end(self) -> Iterator[Block]:
        """The last paragraph."""
        for line, start in self._split.end():
            yield from self._add(line, start)
        yield from self._close()

    def _add(self, line: str, start: int) -> Iterator[Block]:
        if not line or line.isspace():
            yield from self._close()
            return
        if not self._open:
            self._start = start
        self._open.append(line)
        self._size += len(line)
        limit_text(self._size)

    def _close(self) -> Iterator[Block]:
        if self._open:
            lines, self._open, self._size = self._open, [], 0
            yield Block("\n".join(lines), self._start)


def lines_text(text: str, start: int, end: int) -> str:
    """`line 3`, or `lines 3-5`, for a place in a text."""
    first = text.count("\n", 0, start) + 1
    last = first + text.count("\n", start, end)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def excerpt(text: str) -> str:
    """The beginning of an item."""
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
