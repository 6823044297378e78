"""Source texts, and the spans that place a piece of a plan in them."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

import msgspec

from aioflow.config.masking import mask_line
from aioflow.values.display import visible_lines

_LOOKED_AT_CHARACTERS = 2000
_SHOWN_CHARACTERS = 200  # of a line; one of a megabyte would bury the message


class Source(msgspec.Struct, frozen=True, dict=True):
    """A text with the name to show for it (a path as the user gave it, or `<plan>`)."""

    name: str
    text: str

    def __repr__(self) -> str:
        return f"Source(name={self.name!r})"

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
        """Return the text of a line without its end, or a part of it."""
        starts = self._line_starts
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        start = min(starts[number - 1] + first, end)
        return self.text[start : end if length is None else min(start + length, end)]


class Span(msgspec.Struct, frozen=True):
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
        # More of the line than is shown, since the cut may go through a credential.
        start = max(0, column - 1 - _LOOKED_AT_CHARACTERS)
        text = self.source.line(line, start, 2 * _LOOKED_AT_CHARACTERS).rstrip("\r")
        begin = column - 1 - start
        text, (start, end) = mask_line(text, begin, begin + self.end - self.start)
        first = max(0, start - _SHOWN_CHARACTERS // 2)
        shown = text[first : first + _SHOWN_CHARACTERS]
        before = shown[: start - first]
        width = max(1, min(end - start, len(shown) - len(before)))
        marked, after = shown[len(before) :][:width], shown[len(before) :][width:]
        before, marked, after = map(visible_lines, (before, marked, after))
        # Tabs are kept in the padding, so that the caret is in the right place whatever the width of a tab.
        padding = "".join("\t" if character == "\t" else " " for character in before)
        return f"    {before}{marked}{after}\n    {padding}{'^' * max(1, len(marked))}"

    def at(self, offset: int) -> Span:
        """Return a one-character span inside this one."""
        start = min(self.start + offset, max(self.start, self.end - 1))
        return Span(self.source, start, start + 1)
