"""Where a piece of a plan stands: source texts and the spans in them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from functools import cached_property

from aioflow.dataclass import dataclass

_SHOWN_CHARACTERS = 200  # of a line; one of a megabyte would bury the message


@dataclass(frozen=True)
class Source:
    """A text with the name to show for it (a path as the user gave it, or `<plan>`)."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        starts.extend(index + 1 for index, character in enumerate(self.text) if character == "\n")
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int, first: int = 0, length: int | None = None) -> str:
        """The text of a line without its end, or a part of it."""
        starts = self._line_starts
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        start = min(starts[number - 1] + first, end)
        return self.text[start : end if length is None else min(start + length, end)]


@dataclass(frozen=True)
class Span:
    """Part of a source text, as offsets; `end` is exclusive."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    @property
    def place(self) -> str:
        """`file:line:column`."""
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    @property
    def excerpt(self) -> str:
        """The source line with carets under the span."""
        line, column = self.source.position(self.start)
        first = max(0, column - 1 - _SHOWN_CHARACTERS // 2)
        shown = self.source.line(line, first, _SHOWN_CHARACTERS).rstrip("\r")
        before = shown[: column - 1 - first]
        width = max(1, min(self.end - self.start, len(shown) - len(before)))
        # Tabs are kept in the padding, so that the caret stands right whatever a tab's width is.
        padding = "".join("\t" if character == "\t" else " " for character in before)
        return f"    {shown}\n    {padding}{'^' * width}"

    def at(self, offset: int) -> Span:
        """A one-character span inside this one."""
        start = min(self.start + offset, max(self.start, self.end - 1))
        return Span(self.source, start, start + 1)
