"""A variable's whole content: a bag of tuples, or a dead stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from aioflow.relation import Relation, Row, Schema, identity
from tests.naive.marks import WHOLE, Range


@dataclass(frozen=True)
class Bag:
    """Tuples with the names of their attributes; `names` is None when nothing is known of an empty one.

    Of an input that is `untold` the engine does not learn the names.
    """

    names: tuple[str, ...] | None
    rows: tuple[Row, ...] = ()
    dead: bool = False
    untold: bool = False
    marks: Range = WHOLE
    is_sorted: bool = False  # rows come in this order, and after all marks that tell of wrong rows
    after: frozenset[int] = frozenset()  # the writes that came before it, by their numbers

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.known) for row in self.rows), (self.names, self.rows[:1])

    @property
    def schema(self) -> Schema | None:
        return None if self.names is None else Schema(self.names)

    @property
    def known(self) -> tuple[str, ...]:
        """The names, none for a bag of which nothing is known."""
        return self.names or ()

    def revived(self) -> Bag:
        """What a dead stream counts as beside a live one."""
        return replace(self, dead=False)

    def in_order(self, names: Sequence[str]) -> tuple[Row, ...]:
        """The rows with their columns in another order."""
        if self.names is None or self.names == tuple(names):
            return self.rows
        places = [self.names.index(name) for name in names]
        return tuple(tuple(row[place] for place in places) for row in self.rows)

    def relation(self) -> Relation:
        return Relation(Schema(() if self.untold else self.known), list(self.rows))


def from_mappings(names: Sequence[str], mappings: Iterable[Mapping[str, Any]]) -> Bag:
    return Bag(tuple(names), tuple(tuple(map(mapping.get, names)) for mapping in mappings))


def counted(mappings: Iterable[Mapping[str, Any]], *, all_told: bool = True) -> Counter[Hashable]:
    """A bag of mappings in a form that can be compared: equal when the bags are.

    Where not all inputs told their attributes, and nobody asks, a null attribute may be missing, and one may
    lack the `left.` before its name.
    """
    return Counter(_canonical(mapping, all_told) for mapping in mappings)


def counted_bag(bag: Bag, *, all_told: bool = True) -> Counter[Hashable]:
    return counted((dict(zip(bag.known, row, strict=True)) for row in bag.rows), all_told=all_told)


def _canonical(mapping: Mapping[str, Any], all_told: bool) -> Hashable:
    if all_told:
        pairs = sorted(mapping.items(), key=itemgetter(0))
    else:
        found = [(name.rpartition(".")[2], value) for name, value in mapping.items() if value is not None]
        pairs = sorted(found, key=lambda pair: (pair[0], repr(pair[1])))
    return tuple(name for name, _ in pairs), identity(tuple(_value(value, all_told) for _, value in pairs))


def _value(value: Any, all_told: bool) -> Any:
    # An empty embedded relation equals any other: of some nothing is known but that they are empty.
    if isinstance(value, Relation):
        return frozenset(counted(value, all_told=all_told).items())
    return value
