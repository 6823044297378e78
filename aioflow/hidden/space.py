"""The space of a form: its axes, and regions of it, which are what queries ask for.

Algorithms see whole numbers only: a value's number on its scale, or its place in the domain of a menu.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from aioflow.errors import InputError
from aioflow.hidden.attributes import Attribute, Numeric, Predicates
from aioflow.hidden.scales import Scale, scale_for

Extent: TypeAlias = tuple[int | None, int | None]
# On a range axis an extent, on a list axis the number of a value; None leaves the attribute open.
Predicate: TypeAlias = Extent | int | None
Region: TypeAlias = tuple[Predicate, ...]
Codes: TypeAlias = tuple[int | None, ...]
_VALUES_AT_MOST = 10_000_000
_FAR_OUT, _VAST = 2**63, 2**32


class RangeAxis:
    """An ordered attribute of which ranges can be asked for, or one side of a range only."""

    def __init__(self, attribute: Numeric) -> None:
        self.name = attribute.name
        self.attribute = attribute
        self.predicates: Predicates = attribute.predicates
        # Without bounds, the first value that is seen decides between numbers and dates.
        is_bound = attribute.low is not None or attribute.high is not None
        self._scale: Scale | None = scale_for(attribute) if is_bound else None
        self.low = self._end(attribute.low)
        self.high = self._end(attribute.high)
        self.least_shown = self.most_shown = 0  # of the values in answers
        if is_bound:
            self._bound_by_scale()

    def _end(self, value: Any) -> int | None:
        if value is None or self._scale is None:
            return None
        try:
            return self._scale.encode(value)
        except ValueError as error:
            raise InputError(f"{self.name!r}: {value!r} is no end of its range: {error}") from error

    @property
    def is_one_sided(self) -> bool:
        return self.predicates != "range"

    def encode(self, value: Any) -> int:
        if self._scale is None:
            self._learn_scale(value)
        assert self._scale is not None
        number = self._scale.encode(value)
        if (self.low is not None and number < self.low) or (self.high is not None and number > self.high):
            raise ValueError(f"it lies outside of {self.attribute.low} to {self.attribute.high}")
        if number > self.most_shown:
            self.most_shown = number
        elif number < self.least_shown:
            self.least_shown = number
        return number

    def is_far_out(self, predicate: Predicate) -> bool:
        """Return whether an open end begins beyond all values in answers, and beyond 64 bits."""
        low, high = self.extent(predicate)
        if low is not None and high is None:
            return low > max(self.most_shown, _FAR_OUT)
        return low is None and high is not None and high < min(self.least_shown, -_FAR_OUT)

    def _learn_scale(self, value: Any) -> None:
        try:
            self._scale = scale_for(self.attribute, value)
        except InputError as error:
            raise ValueError(str(error)) from error
        self._bound_by_scale()

    def _bound_by_scale(self) -> None:
        """A calendar has a first and a last day; numbers have no end."""
        assert self._scale is not None
        first, last = self._scale.ends
        self.low = first if self.low is None else self.low
        self.high = last if self.high is None else self.high

    def is_vast(self, predicate: Predicate) -> bool:
        """Return whether a range has no end, or more values than could be asked for one by one."""
        low, high = self.extent(predicate)
        return low is None or high is None or high - low >= _VAST

    def decode(self, number: int | None) -> Any:
        if number is None:
            return None
        if self._scale is None:
            self._scale = scale_for(self.attribute)
        return self._scale.decode(number)

    def extent(self, predicate: Predicate) -> Extent:
        """Return the ends of a predicate, where the attribute's own bounds count."""
        return predicate if isinstance(predicate, tuple) else (self.low, self.high)

    def predicate(self, low: int | None, high: int | None) -> Predicate:
        return None if (low, high) == (self.low, self.high) else (low, high)

    def holds(self, predicate: Predicate, code: int | None) -> bool:
        if not isinstance(predicate, tuple):
            return True
        low, high = predicate
        return code is not None and (low is None or code >= low) and (high is None or code <= high)

    def condition(self, predicate: Predicate) -> Any:
        assert isinstance(predicate, tuple)
        low, high = predicate
        is_open = low == self.low and self.attribute.low is None and low != high
        ends_open = high == self.high and self.attribute.high is None and low != high
        return None if is_open else self.decode(low), None if ends_open else self.decode(high)


class ListAxis:
    """An attribute of which single values can be asked for. Its domain grows if answers show other values."""

    def __init__(self, name: str, values: Iterable[Any] | None, *, is_required: bool = False) -> None:
        self.name = name
        self.is_required = is_required
        self.is_learnt = values is None
        self.is_wrong = False  # if answers show values that a given domain lacks
        self.learnt: list[int] = []  # values that the domain did not have
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}
        for value in values or ():
            self._add(value)

    def _add(self, value: Any) -> int:
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def __len__(self) -> int:
        return len(self.values)

    def encode(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._add(value)
            self.learnt.append(number)
        return number

    def holds(self, predicate: Predicate, code: int | None) -> bool:
        return predicate is None or predicate == code

    def condition(self, predicate: Predicate) -> Any:
        assert isinstance(predicate, int)
        return self.values[predicate]


Axis: TypeAlias = RangeAxis | ListAxis


class Space:
    """The axes of a form, in the order of its attributes."""

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        self.attributes = attributes
        self.axes: list[Axis] = [_axis(each) for each in attributes]
        places = range(len(self.axes))
        self.lists = [place for place in places if isinstance(self.axes[place], ListAxis)]
        ranges = [place for place in places if place not in self.lists]
        self.ranges = [place for place in ranges if not self.range_axis(place).is_one_sided]
        self.one_sided = [place for place in ranges if self.range_axis(place).is_one_sided]
        self.whole: Region = (None,) * len(self.axes)

    def range_axis(self, place: int) -> RangeAxis:
        axis = self.axes[place]
        assert isinstance(axis, RangeAxis)
        return axis

    def list_axis(self, place: int) -> ListAxis:
        axis = self.axes[place]
        assert isinstance(axis, ListAxis)
        return axis

    # --- regions ------------------------------------------------------------------------------------

    def extent(self, region: Region, place: int) -> Extent:
        return self.range_axis(place).extent(region[place])

    def between(self, region: Region, place: int, low: int | None, high: int | None) -> Region:
        """Return the part of a region that lies between two ends on a range axis."""
        return _with(region, place, self.range_axis(place).predicate(low, high))

    def at(self, region: Region, place: int, value: int) -> Region:
        """Return the part of a region that has a value on a list axis."""
        return _with(region, place, value)

    def free_ranges(self, region: Region) -> list[int]:
        """Return the range axes on which a region has more than one value."""
        return [place for place in self.ranges if not _is_single(self.extent(region, place))]

    def free_lists(self, region: Region) -> list[int]:
        return [place for place in self.lists if region[place] is None]

    def holds(self, region: Region, codes: Codes) -> bool:
        """Return whether a tuple lies in a region."""
        return all(holds(predicate, codes[place]) for place, holds, predicate in self.checks(region))

    def checks(self, region: Region) -> list[tuple[int, Callable[[Predicate, int | None], bool], Predicate]]:
        """Return what a tuple in a region has to fulfil: places, checks and predicates."""
        return [
            (place, self.axes[place].holds, each) for place, each in enumerate(region) if each is not None
        ]

    def exact(self, region: Region) -> dict[int, int]:
        """Return the values of the attributes of which a region has one, by their places."""
        found = {place: each for place in self.lists if isinstance(each := region[place], int)}
        for place in self.ranges:
            low, high = self.extent(region, place)
            if low is not None and low == high:
                found[place] = low
        return found

    def point(self, region: Region) -> dict[str, Any]:
        """Return the values of a region that is a point."""
        found = {}
        for place, axis in enumerate(self.axes):
            if isinstance(axis, RangeAxis):
                low, high = axis.extent(region[place])
                if low == high and low is not None:
                    found[axis.name] = axis.decode(low)
            elif (predicate := region[place]) is not None:
                found[axis.name] = axis.condition(predicate)
        return found

    def query(self, region: Region) -> dict[str, Any]:
        """Return the conditions of a region by the names of attributes."""
        return {
            axis.name: axis.condition(predicate)
            for axis, predicate in zip(self.axes, region, strict=True)
            if predicate is not None
        }

    def shown(self, query: Mapping[str, Any]) -> str:
        """Return a query as text for people."""
        return ", ".join(f"{name} {_shown(value)}" for name, value in query.items()) or "everything"


def identity(row: tuple[Any, ...]) -> Any:
    """Return what equal tuples share: the tuple, or a text if it holds values that have no hash."""
    try:
        hash(row)
    except TypeError:
        return repr(row)
    return row


def counted(rows: Iterable[tuple[Any, ...]]) -> Counter[Any]:
    """Return how often each tuple occurs."""
    return Counter(map(identity, rows))


def _axis(attribute: Attribute) -> Axis:
    if not isinstance(attribute, Numeric):
        return ListAxis(attribute.name, attribute.domain, is_required=attribute.required)
    axis = RangeAxis(attribute)
    if attribute.predicates != "value":
        return axis
    return ListAxis(attribute.name, map(axis.decode, single_values(axis)))


def single_values(axis: RangeAxis) -> range:
    """Return the numbers of all values of an axis; an InputError says that they are too many."""
    assert axis.low is not None
    assert axis.high is not None
    if axis.high - axis.low >= _VALUES_AT_MOST:
        raise InputError(f"{axis.name!r}: {axis.high - axis.low + 1:,} single values are too many to ask for")
    return range(axis.low, axis.high + 1)


def _with(region: Region, place: int, predicate: Predicate) -> Region:
    return (*region[:place], predicate, *region[place + 1 :])


def _is_single(extent: Extent) -> bool:
    return extent[0] is not None and extent[0] == extent[1]


def _shown(value: Any) -> str:
    if not isinstance(value, tuple):
        return f"= {value}"
    low, high = value
    if low == high:
        return f"= {low}"
    if low is None:
        return f"<= {high}"
    return f">= {low}" if high is None else f"{low} to {high}"


class QueryAnswer(msgspec.Struct, frozen=True):
    """The tuples of an answer, as numbers and as they came, and whether there are more.

    Of an `is_undecided` answer nobody said so: it has exactly as many tuples as an answer can have. An
    `is_known` one was not asked for: its tuples are those of an earlier crawl.
    """

    codes: Sequence[Codes]
    rows: Sequence[tuple[Any, ...]]
    overflows: bool
    is_undecided: bool = False
    total: int | None = None
    is_known: bool = False

    def __len__(self) -> int:
        return len(self.rows)
