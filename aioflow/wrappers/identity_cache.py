"""A cache by identity: results live as long as their argument. A recursion asks for them at every level."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


class IdentityCache(Generic[Given, Made]):
    """A function of one argument that remembers its results by the identity of the argument."""

    def __init__(self, make: Callable[[Given], Made]) -> None:
        self._make = make
        self._made: dict[int, tuple[weakref.ref[Any], Made]] = {}

    def __call__(self, given: Given) -> Made:
        key = id(given)
        found = self._made.get(key)
        if found is not None and found[0]() is given:
            return found[1]
        made = self._make(given)
        # An identity is used again when its owner is gone: it is forgotten with it.
        self._made[key] = weakref.ref(given, lambda gone: self._forget(key, gone)), made
        return made

    def __len__(self) -> int:
        return len(self._made)

    def _forget(self, key: int, gone: weakref.ref[Any]) -> None:
        found = self._made.get(key)
        if found is not None and found[0] is gone:
            del self._made[key]
