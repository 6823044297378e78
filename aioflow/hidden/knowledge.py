"""Knowledge about dependencies between attributes: `make = BMW excludes body = truck`.

A query that only covers excluded points is not sent. Answers are compared with what is said to be excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from aioflow.errors import InputError
from aioflow.hidden.space import Codes, ListAxis, Region, Space

_WORD = " excludes "


class _Exclusion(msgspec.Struct, frozen=True):
    text: str
    place: int
    value: int
    other_place: int
    other_value: int

    def covers(self, codes: Region) -> bool:
        """Return whether a region, or a tuple, has both values."""
        return codes[self.place] == self.value and codes[self.other_place] == self.other_value


class Knowledge:
    """Pairs of values that no tuple has together."""

    def __init__(self, space: Space, dependencies: Iterable[str] = ()) -> None:
        self._space = space
        self._exclusions = [self._exclusion(each) for each in dependencies]

    def _exclusion(self, text: str) -> _Exclusion:
        one, other = conditions_of(text)
        return _Exclusion(text, *self._condition(*one, text), *self._condition(*other, text))

    def _condition(self, name: str, value: str, text: str) -> tuple[int, int]:
        names = [axis.name for axis in self._space.axes]
        if name not in names:
            raise InputError(
                f"{text!r}: {f'{name} = {value}'!r} is no condition on one of {', '.join(names)}"
            )
        place = names.index(name)
        axis = self._space.axes[place]
        if not isinstance(axis, ListAxis):
            raise InputError(f"{text!r}: dependencies are between values of menus, and {name!r} is a range")
        numbers = [number for number, each in enumerate(axis.values) if is_written(each, value)]
        if not numbers:
            raise InputError(f"{text!r}: {name!r} has no value {value!r}")
        return place, numbers[0]

    def excludes(self, region: Region) -> bool:
        """Return whether no tuple can lie in a region."""
        return any(each.covers(region) for each in self._exclusions)

    def check(self, tuples: Sequence[Codes], doubt: Callable[[str], None]) -> None:
        """Note a doubt for each dependency that tuples contradict."""
        for each in self._exclusions:
            if any(each.covers(codes) for codes in tuples):
                doubt(f"the dependency {each.text!r} is wrong: a tuple has both values")


def conditions_of(text: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the names and values of the two conditions of a dependency."""
    parts = [part.partition("=") for part in text.split(_WORD)]
    if len(parts) != 2 or not all(name.strip() and found for name, found, _ in parts):
        raise InputError(f"a dependency is like 'make = BMW excludes body = truck', not {text!r}")
    (name, _, value), (other, _, excluded) = parts
    return (name.strip(), value.strip()), (other.strip(), excluded.strip())


def is_written(value: Any, text: str) -> bool:
    """Return whether a text stands for a value."""
    return str(value) == text.strip("\"'") or repr(value) == text
