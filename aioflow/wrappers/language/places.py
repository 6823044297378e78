"""Where a part of a string's value stands in the source, behind quotes and escapes."""

from __future__ import annotations

from aioflow.pattern import pattern
from aioflow.source import Span

_CHARACTER = pattern(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])|[\s\S]")


def place_in(literal: Span, start: int, end: int | None = None) -> Span:
    """The place of characters of the value of a string literal; that of all of it when it is no string."""
    text = literal.source.text[literal.start : literal.end]
    is_raw = text[:1] in ("r", "R")
    start_of_quotes = 1 if is_raw else 0
    if text[start_of_quotes : start_of_quotes + 1] not in ("'", '"'):
        return literal
    width = 3 if text.startswith('"""', start_of_quotes) else 1
    begin, last = start_of_quotes + width, len(text) - width
    characters = (
        range(begin, last) if is_raw else (each.start() for each in _CHARACTER.finditer(text, begin, last))
    )
    offsets = [*characters, last]
    wanted_end = start + 1 if end is None else max(end, start + 1)
    first = offsets[min(start, len(offsets) - 1)]
    behind = offsets[min(wanted_end, len(offsets) - 1)]
    return Span(literal.source, literal.start + first, literal.start + max(behind, first + 1))
