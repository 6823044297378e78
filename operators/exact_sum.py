"""Sums of numbers of all kinds, exact until the end: they do not depend on the order of the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from aioflow.expressions import quotient

Number: TypeAlias = int | float | Decimal

# Enough digits that sums of Decimals anybody uses are exact; a limit, so that 1E+999999 + 1 takes no forever.
_EXACT = Context(prec=4000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_MOST_PARTS = 64


class ExactSum:
    """Adds up integers, floats and Decimals.

    The sum of integers is one; among floats it is the float nearest to the exact sum; a float among
    Decimals counts as the Decimal that it is written as, once all floats are added up.
    """

    def __init__(self) -> None:
        self.count = 0
        self._integers = 0
        self._floats: list[float] = []  # their exact sum, and what did not fit, is that of all floats so far
        self._past_floats = Fraction(0)
        self._special = 0.0  # the sum of infinities and NaNs
        self._decimals = Decimal(0)
        self._has_floats = False
        self._has_decimals = False

    def add(self, numbers: Sequence[Number]) -> None:
        """Add some numbers."""
        self.count += len(numbers)
        integers = [number for number in numbers if isinstance(number, int)]
        self._integers += sum(integers)
        if len(integers) == len(numbers):
            return
        if floats := [number for number in numbers if isinstance(number, float)]:
            self._add_floats(floats)
        if decimals := [number for number in numbers if isinstance(number, Decimal)]:
            self._add_decimals(decimals)

    def _add_floats(self, floats: list[float]) -> None:
        self._has_floats = True
        if not all(map(math.isfinite, floats)):
            self._special = sum([number for number in floats if not math.isfinite(number)], self._special)
            floats = [number for number in floats if math.isfinite(number)]
        self._floats += floats
        if len(self._floats) > _MOST_PARTS:
            try:
                self._floats = _parts(self._floats)
            except OverflowError:  # past the largest float
                self._past_floats += sum(map(Fraction, self._floats))
                self._floats = []

    def _add_decimals(self, decimals: Iterable[Decimal]) -> None:
        self._has_decimals = True
        for number in decimals:
            self._decimals = _EXACT.add(self._decimals, number)

    @property
    def total(self) -> Number:
        """The sum; 0 of nothing."""
        if self._has_decimals:
            return self._decimal_total()
        if not self._has_floats:
            return self._integers
        if self._special:  # also NaN, which is true
            return self._special
        return _nearest(self._integers + self._exact_floats())

    @property
    def mean(self) -> Number | None:
        """The average; None of nothing."""
        if not self.count:
            return None
        if self._has_decimals:
            total = self._decimal_total()
            digits = len(total.as_tuple().digits)
            return Context(prec=digits + 28, traps=[]).divide(total, Decimal(self.count))
        if not self._has_floats:
            return quotient(self._integers, self.count)
        return self._special or _nearest((self._integers + self._exact_floats()) / self.count)

    def _exact_floats(self) -> Fraction:
        return sum(map(Fraction, self._floats), self._past_floats)

    def _decimal_total(self) -> Decimal:
        total = _EXACT.add(self._decimals, Decimal(self._integers))
        if self._has_floats:
            floats = self._special or _nearest(self._exact_floats())
            total = _EXACT.add(total, Decimal(repr(floats)))
        return total


def _parts(floats: list[float]) -> list[float]:
    """A few floats with the same exact sum: the nearest float to it, the nearest to what is left, …"""
    parts: list[float] = []
    while rest := math.fsum([*floats, *(-part for part in parts)]):
        parts.append(rest)
    return parts


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
