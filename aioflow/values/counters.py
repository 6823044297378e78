"""Counts of problems in the evaluation of rows, by name; the value in the row is null."""

from __future__ import annotations

DIVISION_BY_ZERO = "division by zero"
NOT_A_NUMBER = "not a number"
NOT_A_DATE = "not a date"
NOT_A_TEXT = "not a text"
NOT_A_URL = "not a URL"
NOT_A_BOOLEAN = "not a boolean"
UNLIKE_KINDS = "unlike kinds compared"
OUT_OF_RANGE = "number out of range"
DATE_OUT_OF_RANGE = "date out of range"
TEXT_TOO_LONG = "text too long"
NOT_A_LITERAL = "no literal for a relation"
NOT_WHOLE = "not a whole number"
NOT_A_RELATION = "not a relation"
PATTERN_TOO_SLOW = "pattern took too long"
UNKNOWN_UNIT = "unknown unit of time"
BAD_LAYOUT = "bad layout of a date"
BAD_PATTERN = "bad pattern"


class Counters(dict[str, int]):
    """Counts by name, without zeros."""

    def __missing__(self, key: str) -> int:
        return 0

    def take(self) -> dict[str, int]:
        """Return the counts so far, and start again from zero."""
        taken = dict(self)
        self.clear()
        return taken


class UncomputableError(Exception):
    """A function has no result for these values; the result is null, and counted under the message."""
