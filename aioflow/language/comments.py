"""Assigns comments and blank lines to the line of the plan that stands next to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aioflow.source import Source

Stretch = tuple[int, int]


class Notes(NamedTuple):
    """The comments before a line and after it; an empty text in `leading` is a blank line."""

    leading: tuple[str, ...] = ()
    trailing: str | None = None


NO_NOTES = Notes()


class NotesByPlace:
    """The notes of each stretch of text, found by the offset where it starts."""

    def __init__(self, source: Source, comments: Sequence[Stretch], stretches: Sequence[Stretch]) -> None:
        self._source = source
        self._comments = sorted(comments)
        self._next = 0
        self._notes: dict[int, Notes] = {}
        length = len(source.text)
        position, previous = 0, -1
        for start, end in (*stretches, (length, length)):
            position = self._give_trailing(previous, position, start)
            leading = self._take_leading(position, start, end)
            if leading:
                self._notes[start] = Notes(leading)
            position, previous = end, start
        # What stands at the end of the text has no stretch to lead.
        self.closing = self._notes.pop(length, NO_NOTES).leading

    def __getitem__(self, start: int) -> Notes:
        return self._notes.get(start, NO_NOTES)

    def _give_trailing(self, previous: int, position: int, limit: int) -> int:
        """Comments on the line where the previous stretch ended are its own."""
        trailing = []
        while previous >= 0 and self._next < len(self._comments):
            start, end = self._comments[self._next]
            if start >= limit or "\n" in self._source.text[position:end]:
                break
            trailing.append(self._source.text[start:end].rstrip())
            position = end
            self._next += 1
        if trailing:
            self._notes[previous] = Notes(self[previous].leading, " ".join(trailing))
        return position

    def _take_leading(self, position: int, start: int, end: int) -> tuple[str, ...]:
        """Comments before a stretch, and those inside it, which move to before it."""
        leading: list[str] = []
        while self._next < len(self._comments) and self._comments[self._next][0] < end:
            comment = self._comments[self._next]
            if comment[0] < start:
                self._add_blank_line(leading, position, comment[0])
                position = comment[1]
            elif position < start:
                self._add_blank_line(leading, position, start)
                position = start
            leading.append(self._text(comment))
            self._next += 1
        if position < start:
            self._add_blank_line(leading, position, start)
        return tuple(leading)

    def _add_blank_line(self, leading: list[str], position: int, start: int) -> None:
        if self._source.text.count("\n", position, start) > 1:
            leading.append("")

    def _text(self, comment: Stretch) -> str:
        """The comment, the lines after its first moved left by as much as that will be."""
        start, end = comment
        first, *others = self._source.text[start:end].split("\n")
        if not others:
            return first.rstrip()
        margin = self._source.position(start)[1] - 1
        moved = [line[min(margin, len(line) - len(line.lstrip(" "))) :].rstrip() for line in others]
        return "\n".join([first.rstrip(), *moved])
