"""Dataclasses whose methods are written late behave as the standard library's."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from copy import copy
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from aioflow.dataclass import dataclass

Decorator = Callable[..., Any]


def house(decorator: Decorator, **options: Any) -> Any:
    """A class with everything that classes of aioflow have."""

    class House:
        """A house."""

        kinds: ClassVar[int] = 3
        address: str
        beds: int = 2
        features: list[str] = field(default_factory=list, compare=False)
        seen: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
        note: str = field(default="none", kw_only=True)
        constant: int = field(default=7, init=False)

        @cached_property
        def rooms(self) -> int:
            return self.beds + 1

    return decorator(**options)(House) if options else decorator(House)


def results(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


CALLS: tuple[Callable[[Any], Any], ...] = (
    lambda house: repr(house("12 Oak Street")),
    lambda house: repr(house("12 Oak Street", 3, ["den"], note="a")),
    lambda house: house(),
    lambda house: house("a", 1, [], "positional"),
    lambda house: house("a", seen={}),
    lambda house: house("a", colour="red"),
    lambda house: house("a", address="b"),
    lambda house: house("a", 1, [], beds=2),
    lambda house: house("a") == house("a", features=["not compared"]),
    lambda house: house("a") == house("b"),
    lambda house: house("a") == ("a", 2),
    lambda house: setattr(house("a"), "beds", 3),
    lambda house: setattr(house("a"), "other", 3),
    lambda house: delattr(house("a"), "address"),
    lambda house: asdict(replace(house("a"), beds=4)),
    lambda house: [each.name for each in fields(house)],
    lambda house: house.__match_args__,
    lambda house: house("a").rooms,
    lambda house: house("a").features is house("a").features,
    lambda house: house.beds,
    lambda house: house.features,
)
BY_VALUE: tuple[Callable[[Any], Any], ...] = (
    lambda house: hash(house("a")) == hash(house("a", features=["x"])),
    lambda house: hash(house("a")),
)
OPTIONS: tuple[dict[str, bool], ...] = ({}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False})
# The hash of an object that is equal to itself alone says nothing.
CASES = [(options, call) for options in OPTIONS for call in CALLS + (BY_VALUE if "eq" not in options else ())]
MANY = 40  # more than are made before their __init__ is compiled


@pytest.mark.parametrize(("options", "call"), CASES)
def test_they_do_what_those_of_the_standard_library_do(
    options: dict[str, bool], call: Callable[[Any], Any]
) -> None:
    ours, theirs = house(dataclass, **options), house(dataclasses.dataclass, **options)
    for _ in range(MANY):
        assert results(lambda: call(ours)) == results(lambda: call(theirs))


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Narrow:
    """Without a dictionary."""

    x: int
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Solid(Point):
    z: int = 0

    def __post_init__(self) -> None:
        if self.z < 0:
            raise ValueError("below the ground")


class Named(Point):
    """A subclass that is no dataclass itself."""


@dataclass(frozen=True)
class Told:
    """A class with methods of its own."""

    word: str

    def __repr__(self) -> str:
        return f"<{self.word}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Told)


def test_a_subclass_has_the_fields_of_both() -> None:
    for _ in range(MANY):
        assert repr(Solid(1, z=3)) == "Solid(x=1, y=0, z=3)"
        assert Solid(1, 2, 3) != Point(1, 2)
        with pytest.raises(ValueError, match="below the ground"):
            Solid(1, 2, -1)


def test_the_attributes_of_a_plain_subclass_are_its_own() -> None:
    named = Named(1)
    named.label = "here"  # type: ignore[attr-defined]  # no field
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        named.x = 2  # type: ignore[misc]  # frozen
    assert vars(named) == {"x": 1, "y": 0, "label": "here"}


def test_methods_of_the_class_are_kept() -> None:
    assert repr(Told("a")) == "<a>"
    assert Told("a") == Told("b")
    assert hash(Told("a")) == hash(Told("a"))


def test_a_class_that_holds_itself_can_be_shown() -> None:
    @dataclass
    class Node:
        following: Any = None

    node = Node()
    node.following = node
    assert repr(node).endswith("Node(following=...)")


def test_they_can_be_pickled_and_matched() -> None:
    match pickle.loads(pickle.dumps(Point(1, 2))):
        case Point(x, y):
            assert (x, y) == (1, 2)
        case _:
            raise AssertionError


def test_one_with_slots_has_no_dictionary_and_can_be_copied() -> None:
    narrow = Narrow(1, ["a"])
    assert not hasattr(narrow, "__dict__")
    assert pickle.loads(pickle.dumps(narrow)) == copy(narrow) == narrow == replace(narrow)
    assert repr(narrow) == "Narrow(x=1, names=['a'])"
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        narrow.x = 2  # type: ignore[misc]  # frozen
