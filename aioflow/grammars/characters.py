"""Sets of characters as ranges of code points: their size is how specific a terminal is."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import msgspec

LAST_CODE_POINT = 0x10FFFF

_COMPARISONS_AT_MOST = 100_000

CodeRange: TypeAlias = tuple[int, int]


class CharacterSet(msgspec.Struct, frozen=True, dict=True):
    """Code points as ranges, both ends included, in order, neither overlapping nor adjacent."""

    ranges: tuple[CodeRange, ...]

    @cached_property
    def size(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __contains__(self, code: int) -> bool:
        place = bisect_right(self.ranges, (code, LAST_CODE_POINT)) - 1
        return place >= 0 and code <= self.ranges[place][1]

    def inverted(self) -> CharacterSet:
        """Return all other characters."""
        ranges: list[CodeRange] = []
        start = 0
        for first, last in self.ranges:
            if first > start:
                ranges.append((start, first - 1))
            start = last + 1
        if start <= LAST_CODE_POINT:
            ranges.append((start, LAST_CODE_POINT))
        return CharacterSet(tuple(ranges))

    def pattern(self) -> str:
        """Return the set as a class of a regular expression."""
        if len(self.ranges) == 1 and self.ranges[0] == (0, LAST_CODE_POINT):
            return r"[\x00-\U0010ffff]"
        return "[" + "".join(_written(first, last) for first, last in self.ranges) + "]"


def _written(first: int, last: int) -> str:
    return f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}"


def character_set(ranges: Iterable[CodeRange]) -> CharacterSet:
    """Return the union of ranges in any order."""
    merged: list[CodeRange] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return CharacterSet(tuple(merged))


ANY = CharacterSet(((0, LAST_CODE_POINT),))

# A skipped character ranks below every written terminal, also below `.`.
FALLBACK_SPECIFICITY = ANY.size + 1


class Alphabet:
    """The character sets of one grammar: each has a bit, and a character has the bits of its sets."""

    def __init__(self) -> None:
        self._bits: dict[CharacterSet, int] = {}
        self._masks: dict[str, int] = {}
        self._sets: list[CharacterSet] = []

    def bit(self, characters: CharacterSet) -> int:
        """Return the bit of a set; new sets are numbered in the order of asking."""
        known = self._bits.get(characters)
        if known is None:
            known = self._bits[characters] = 1 << len(self._sets)
            self._sets.append(characters)
            self._masks = {}
        return known

    def mask(self, character: str) -> int:
        """Return the bits of all sets that have a character."""
        known = self._masks.get(character)
        if known is None:
            code = ord(character)
            known = sum(1 << number for number, each in enumerate(self._sets) if code in each)
            self._masks[character] = known
        return known

    def alike(self, wanted: int, of: int) -> CharacterSet | None:
        """Return the characters whose bits among those `of` a state are `wanted`; None if that takes long."""
        concerned = [(1 << n, each) for n, each in enumerate(self._sets) if of & (1 << n)]
        borders = {0, LAST_CODE_POINT + 1}
        for _, each in concerned:
            for first, last in each.ranges:
                borders |= {first, last + 1}
        if len(borders) * len(concerned) > _COMPARISONS_AT_MOST:
            return None
        ordered = sorted(borders)
        return character_set(
            (start, end - 1)
            for start, end in pairwise(ordered)
            if sum(bit for bit, each in concerned if start in each) == wanted
        )


def run_of(characters: CharacterSet) -> re.Pattern[str]:
    """Return the expression for a longest run of these characters; it takes linear time."""
    return re.compile(characters.pattern() + "+")
