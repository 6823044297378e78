"""Relations: their attributes, tuples and values, and the equality of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from itertools import chain
from math import isfinite, isnan
from operator import itemgetter, ne
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.errors import SettingError, UntoldAttributeError, suggestion

Value: TypeAlias = Any
Row: TypeAlias = tuple[Value, ...]
Batch: TypeAlias = list[Row]
Predicate: TypeAlias = Callable[[Row], bool]
DocumentKind: TypeAlias = Literal["html", "xml", "json"]


class Type(StrEnum):
    """The type of an attribute; an unknown type is None."""

    CHAR = "char"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    RELATION = "relation"
    DOCUMENT = "document"


class Schema(msgspec.Struct, frozen=True, dict=True):
    """The attributes of a relation, in order.

    An `open` schema belongs to a relation that ended empty before its attributes were known, or to one made
    from it. It has every other attribute as well, as null. A statement that needs such an attribute asks for
    it with `position`, and is then bound to a schema that lists it. `aliases` are other names of listed
    attributes, since a join may not know yet whether an attribute needs `left.` before it.
    """

    names: tuple[str, ...]
    types: tuple[Type | None, ...] = ()
    open: bool = False
    aliases: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.types:
            msgspec.structs.force_setattr(self, "types", (None,) * len(self.names))
        repeated = [name for name, count in Counter(self.names).items() if count > 1]
        if repeated:
            raise SettingError(f"attribute {repeated[0]!r} appears twice")

    @classmethod
    def of(cls, *names: str, **types: Type | str | None) -> Schema:
        """Return a schema, as in `Schema.of("a", "b", price="number")`."""
        kinds = [None if kind is None else Type(kind) for kind in types.values()]
        return cls((*names, *types), (*(None for _ in names), *kinds))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __str__(self) -> str:
        parts = (
            f"{name} {kind}" if kind else name for name, kind in zip(self.names, self.types, strict=True)
        )
        return f"({', '.join([*parts, '…'] if self.open else parts)})"

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def _hash(self) -> int:
        return hash((self.names, self.types, self.open, self.aliases))

    def __hash__(self) -> int:
        return self._hash

    def position(self, name: str) -> int:
        """Return the column of an attribute; raise a SettingError with a suggestion when there is none."""
        try:
            return self._positions[name]
        except KeyError:
            if self.open:
                raise UntoldAttributeError(self, name) from None
            raise SettingError(unknown_attribute(name, self)) from None

    def type_of(self, name: str) -> Type | None:
        return self.types[self.position(name)]

    def add(self, *others: Schema) -> Schema:
        """Return this schema with other attributes added; one of the same name keeps its position."""
        merged = dict(zip(self.names, self.types, strict=True))
        for other in others:
            merged.update(zip(other.names, other.types, strict=True))
        return self._like(merged, *others)

    def pick(self, names: Iterable[str]) -> Schema:
        """Return a schema of these attributes only, in this order."""
        chosen = tuple(names)
        return Schema(chosen, tuple(self.types[self.position(name)] for name in chosen))

    def without(self, *names: str) -> Schema:
        """Return a schema without these attributes."""
        kept = {name: kind for name, kind in zip(self.names, self.types, strict=True) if name not in names}
        return self._like(kept)

    def closed(self) -> Schema:
        """Return a schema of the listed attributes only."""
        return Schema(self.names, self.types) if self.open else self

    def listing(self, *names: str) -> Schema:
        """Return this schema, with these attributes listed if it is open: added, or renamed to an alias."""
        schema = self
        for name in names:
            if schema.open and name not in schema:
                schema = schema._listing_one(name)
        return schema

    def _listing_one(self, name: str) -> Schema:
        aliases = dict(self.aliases)
        if name in aliases:
            return self._renamed(aliases[name], name)
        for other in _counterparts(name):
            if other in aliases:  # a user of left.a knows that the other one is right.a
                return self._renamed(aliases[other], other).add(Schema((name,)))
        return self.add(Schema((name,)))

    def _renamed(self, old: str, new: str) -> Schema:
        """Rename an attribute to its alias; asking for the name without `left.` renames it back."""
        names = tuple(new if name == old else name for name in self.names)
        aliases = [(alias, name) for alias, name in self.aliases if name != old]
        if new.count(".") > old.count("."):
            aliases.append((old, new))
        return Schema(names, self.types, self.open, _aliases_for(names, aliases))

    def _like(self, attributes: Mapping[str, Type | None], *others: Schema) -> Schema:
        """Return a schema of these attributes, open if this one or one of the others is."""
        names, types = tuple(attributes), tuple(attributes.values())
        schemas = (self, *others)
        if not any(schema.open for schema in schemas):
            return Schema(names, types)
        aliases = chain.from_iterable(schema.aliases for schema in schemas)
        return Schema(names, types, True, _aliases_for(names, aliases))

    def untyped(self) -> Schema:
        return Schema(self.names)


_OTHER_SIDE = {"left": "right", "right": "left"}

# The schema of a relation that ended empty before its attributes were known.
UNTOLD = Schema((), open=True)


def _counterparts(name: str) -> Iterator[str]:
    """Yield the names with one `left` or `right` before the last part exchanged: `right.a` for `left.a`."""
    parts = name.split(".")
    for place, part in enumerate(parts[:-1]):
        if part in _OTHER_SIDE:
            yield ".".join((*parts[:place], _OTHER_SIDE[part], *parts[place + 1 :]))


def _aliases_for(names: Sequence[str], aliases: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the aliases of these attributes. An alias may be the name of another, until that is renamed."""
    return tuple(dict.fromkeys((alias, name) for alias, name in aliases if name in names))


def unknown_attribute(name: str, schema: Schema) -> str:
    known = ", ".join(schema.names) or "no attributes"
    return f"unknown attribute {name!r}{suggestion(name, schema.names)} (there are: {known})"


class Record(Mapping[str, Value]):
    """A tuple as users see it: a read-only mapping from attribute to value."""

    __slots__ = ("row", "schema")

    def __init__(self, schema: Schema, row: Row) -> None:
        self.schema = schema
        self.row = row

    def __getitem__(self, name: str) -> Value:
        try:
            return self.row[self.schema._positions[name]]
        except KeyError:
            if self.schema.open:
                known_as = dict(self.schema.aliases).get(name)
                return None if known_as is None else self[known_as]
            known = ", ".join(self.schema.names) or "none"
            raise KeyError(f"{name!r} (attributes: {known})") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.schema.names)

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        return f"Record({dict(self)!r})"

    def __hash__(self) -> int:
        return hash((self.schema.names, identity(self.row)))


class Document(msgspec.Struct, frozen=True):
    """An HTML, XML or JSON text, opaque until an operator reads it; equal by content.

    It is immutable. Every parser gets a tree of its own, so no consumer sees another's changes.
    """

    text: str
    kind: DocumentKind = "html"

    def __str__(self) -> str:
        return self.text


# The schema of a relation that is a list of values.
LIST = Schema(("value",))


class Relation:
    """A relation as a value: embedded in a tuple, opaque until unpacked; equal as a bag.

    `rows` is any sized iterable that can be iterated repeatedly: a list, or rows that were spilled to disk. A
    relation that `is_list` is a list of values: its only attribute is `value`, and it is written as a JSON
    list of values, not of objects. Otherwise it is like any other relation.
    """

    __slots__ = ("is_list", "rows", "schema")

    def __init__(self, schema: Schema, rows: Sequence[Row] | RowStore = (), *, is_list: bool = False) -> None:
        self.schema = schema
        self.rows = rows
        self.is_list = is_list

    @classmethod
    def from_mappings(cls, mappings: Iterable[Mapping[str, Value]]) -> Relation:
        """Return a relation with the attributes of all mappings, in order of appearance."""
        given = list(mappings)
        names = tuple(dict.fromkeys(chain.from_iterable(given)))
        return cls(Schema(names), [tuple([mapping.get(name) for name in names]) for mapping in given])

    @classmethod
    def of_values(cls, values: Iterable[Value], kind: Type | None = None) -> Relation:
        """Return a list of values, all of that type if one is given."""
        return cls(Schema(LIST.names, (kind,)), [(value,) for value in values], is_list=True)

    def __iter__(self) -> Iterator[Record]:
        return (Record(self.schema, row) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relation) and _bag(self) == _bag(other)

    def __hash__(self) -> int:
        return hash(_bag(self))

    def __repr__(self) -> str:
        return f"Relation({self.schema}, {len(self)} rows)"

    def __reduce__(self) -> tuple[Any, ...]:
        return _relation_again, (self.schema, list(self.rows), self.is_list)


def _relation_again(schema: Schema, rows: list[Row], is_list: bool) -> Relation:
    return Relation(schema, rows, is_list=is_list)


class RowStore:
    """Rows of a Relation that are stored elsewhere: their number, and iteration over them."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Row]:
        raise NotImplementedError


def _bag(relation: Relation) -> tuple[tuple[str, ...], frozenset[tuple[Hashable, int]]]:
    names = tuple(sorted(relation.schema.names))
    order = [relation.schema.position(name) for name in names]
    counts = Counter(identity(tuple(row[position] for position in order)) for row in relation.rows)
    return names, frozenset(counts.items())


# --- equality of tuples -------------------------------------------------------------------------
#
# Values are equal as the language has it. A number is the decimal that it is written as: 0.1 is Decimal 0.1,
# and whole numbers are exact in all classes. A date is a moment: its midnight, in UTC where nothing else is
# said. Python's own equality is right for texts, integers, floats and datetimes without a zone. It is not for
# booleans (True == 1), for NaN (unequal to itself), for Decimals beside floats, dates and zones. Those values
# are replaced; all others stand for themselves, so that the identity of an ordinary row is the row itself.

_PLAIN = frozenset({str, int, type(None)})
_PLAIN_BUT_NAN = _PLAIN | {float}
_DAYS = frozenset({date, type(None)})
_PLAIN_TYPES = frozenset({Type.CHAR, Type.RELATION, Type.DOCUMENT})
_NAN = ("nan",)
_TRUE, _FALSE = ("boolean", True), ("boolean", False)
_EPOCH = datetime(1970, 1, 1)


def decimal_of(number: float) -> Decimal:
    """Return the Decimal that a float equals: its shortest form, or for a whole number its exact value."""
    return Decimal(number) if number.is_integer() else Decimal(repr(float(number)))


def since_epoch(value: date) -> timedelta:
    """Return the time since 1970 in UTC: a date is its midnight, a time without a zone is UTC."""
    if not isinstance(value, datetime):
        return timedelta(days=value.toordinal()) - _EPOCH_DAYS
    offset = value.utcoffset()
    elapsed = value.replace(tzinfo=None) - _EPOCH
    # Subtracted from the difference: near the years 1 and 9999 the UTC time itself may not exist.
    return elapsed if offset is None else elapsed - offset


_EPOCH_DAYS = timedelta(days=_EPOCH.toordinal())


def _canonical(value: Value) -> Hashable:
    if value.__class__ in _PLAIN:
        return value  # type: ignore[no-any-return]  # str, int and None are hashable
    if value is True:
        return _TRUE
    if value is False:
        return _FALSE
    if isinstance(value, float):
        return _NAN if value != value else value
    if isinstance(value, Decimal):
        return _canonical_decimal(value)
    if isinstance(value, date):
        return _canonical_date(value)
    return value  # type: ignore[no-any-return]  # documents and relations are hashable


def _canonical_decimal(value: Decimal) -> Hashable:
    if value.is_nan():
        return _NAN
    rounded = float(value)
    if not isfinite(rounded) or rounded.is_integer():
        return value  # Python compares it with integers and whole floats as the language does
    if decimal_of(rounded) == value:
        return rounded
    # In Python a Decimal equals the float whose exact binary fraction it is: 0.1000000000000000055…
    return ("binary", rounded) if value == rounded else value


def _canonical_date(value: date) -> Hashable:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if value.tzinfo is None:
        return value
    elapsed = since_epoch(value)
    try:
        return _EPOCH + elapsed
    except OverflowError:  # near the years 1 and 9999
        return ("moment", elapsed)


def identity(row: Row) -> Row:
    """Return a hashable stand-in for a tuple: equal exactly when the tuples are equal."""
    if _PLAIN.issuperset(map(type, row)):
        return row
    return tuple(map(_canonical, row))


def identities(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the `identity` of each row; fast for a batch of plain values, or of floats without NaN."""
    return rows if _are_plain(list(chain.from_iterable(rows))) else _by_columns(rows)


def _by_columns(rows: Sequence[Row]) -> Sequence[Row]:
    return list(zip(*map(value_identities, zip(*rows, strict=True)), strict=True))


def value_identities(values: Sequence[Value]) -> Sequence[Hashable]:
    """Hashable stand-ins for values: equal exactly when the values are equal."""
    if _are_plain(values):
        return values
    if _DAYS.issuperset(map(type, values)):
        return [day and datetime(day.year, day.month, day.day) for day in values]
    return list(map(_canonical, values))


def identities_of(schema: Schema) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Return `identities` for rows of a schema, which skips columns whose type leaves no doubt."""
    doubtful = [place for place, kind in enumerate(schema.types) if kind not in _PLAIN_TYPES]
    if len(doubtful) == len(schema):
        return identities
    if not doubtful:
        return lambda rows: rows
    columns = [itemgetter(place) for place in doubtful]

    def of_rows(rows: Sequence[Row]) -> Sequence[Row]:
        values = list(chain.from_iterable([map(column, rows) for column in columns]))
        return rows if _are_plain(values) else _by_columns(rows)

    return of_rows


def _are_plain(values: Sequence[Value]) -> bool:
    """Return whether Python's own equality is right for these values."""
    kinds = set(map(type, values))
    if kinds <= _PLAIN:
        return True
    # NaN alone is unequal to itself.
    return kinds <= _PLAIN_BUT_NAN and not any(map(ne, values, values))


def picker(positions: Sequence[int]) -> Callable[[Row], Row]:
    """Return a function that returns these columns of a row, always as a tuple."""
    if len(positions) == 1:
        only = positions[0]
        return lambda row: (row[only],)
    if not positions:
        return lambda row: ()
    return itemgetter(*positions)


def type_of_value(value: Value) -> Type | None:
    """Return the type of a value, None for null; raise a SettingError if no relation can carry it."""
    if value is None:
        return None
    for kind, classes in _CLASSES:
        if isinstance(value, classes):
            return kind
    raise SettingError(
        f"a value of type {type(value).__name__!r} cannot be carried by a relation "
        "(char, number, boolean, date, relation, document or null)"
    )


_CLASSES: tuple[tuple[Type, tuple[type, ...]], ...] = (
    (Type.BOOLEAN, (bool,)),
    (Type.CHAR, (str,)),
    (Type.NUMBER, (int, float, Decimal)),
    (Type.DATE, (date,)),  # datetime is a date
    (Type.RELATION, (Relation,)),
    (Type.DOCUMENT, (Document,)),
)


def is_empty(value: Value) -> bool:
    """Return whether a value is null or a relation without tuples."""
    return value is None or (isinstance(value, Relation) and not len(value))


def is_missing(value: Value) -> bool:
    """Return whether a value is null or NaN, which have no place in an order."""
    return value is None or (isinstance(value, float) and isnan(value))
