"""Kinds of settings that families share: quantities, declared attributes, expressions that count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from aioflow import Context, InputError, Row, Schema, SettingError
from aioflow.errors import suggestion
from aioflow.relation import Batch, Type
from aioflow.values.coercion import Declaration
from aioflow.values.quantities import seconds

if TYPE_CHECKING:
    from aioflow.expressions import Counters


def _refuse(kind_name: str, value: Any) -> SettingError:
    return SettingError(f"must be {kind_name}, not {'null' if value is None else repr(value)}")


class Count(int):
    """A number of tuples, which may be zero."""

    kind_name: ClassVar[str] = "a whole number, 0 or more"
    least: ClassVar[int] = 0

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if isinstance(value, bool) or not isinstance(value, int) or value < cls.least:
            raise _refuse(cls.kind_name, value)
        return cls(value)


class PositiveCount(Count):
    """A number of tuples, at least one."""

    kind_name: ClassVar[str] = "a whole number, 1 or more"
    least: ClassVar[int] = 1


class Positive(float):
    """A number above zero, such as a time in seconds."""

    kind_name: ClassVar[str] = "a number above 0"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise _refuse(cls.kind_name, value)
        return cls(value)


class Duration(float):
    """A time span in seconds, written as `90s`, `5m` or `1h30m`."""

    kind_name: ClassVar[str] = "a time span such as 90s, 5m or 1h30m"

    def __str__(self) -> str:
        for unit, size in (("h", 3600), ("m", 60)):
            if self >= size and not self % size:
                return f"{self // size:g}{unit}"
        return f"{float(self):g}s"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise _refuse(cls.kind_name, value)
        try:
            return cls(seconds(str(value)))
        except InputError:
            raise _refuse(cls.kind_name, value) from None


class Share(float):
    """A part of a whole."""

    kind_name: ClassVar[str] = "a number from 0 to 1"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise _refuse(cls.kind_name, value)
        return cls(value)


class DeclaredSchema:
    """A setting that declares attributes, `"k char, price number"`; the operator gets a Schema."""

    kind_name: ClassVar[str] = "a list of attributes with their types"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Schema:
        found = dict(attributes_of(value, cls.kind_name, typed=False))
        return Schema(tuple(found), tuple(found.values()))


def attributes_of(value: Any, kind_name: str, *, typed: bool) -> Iterator[tuple[str, Type | None]]:
    """Yield the attributes that a text lists, `price number, seen date`; with `typed`, each needs a type."""
    if not isinstance(value, str):
        raise SettingError(f"must be {kind_name}, in quotes, not {value!r}")
    expected = "'name type'" if typed else "'name' or 'name type'"
    seen, offset = set(), 0
    for part in value.split(","):
        place = offset + len(part) - len(part.lstrip())
        offset += len(part) + 1
        name, _, kind = part.strip().rpartition(" ")
        if kind.lower() not in list(Type) or not name:
            name, kind = part.strip(), ""
        name = name.strip()
        is_one = name.startswith("`") or len(name.split()) == 1 or typed
        if not name or not is_one or (typed and not kind):
            raise SettingError(f"expected {expected} (types: {', '.join(Type)})", offset=place)
        name = name.strip("`")
        if name in seen:
            raise SettingError(f"attribute {name!r} appears twice", offset=place)
        seen.add(name)
        yield name, Type(kind.lower()) if kind else None


class Conforming:
    """Turns rows with the attributes of a source into rows with the declared attributes.

    An attribute that was not declared is an InputError. A declared attribute that is missing is an InputError
    too, unless the source `may_lack` attributes: then it is null.
    """

    def __init__(self, declared: Schema, given: Schema, *, may_lack: bool = False) -> None:
        for name in given.names:
            if name not in declared:
                known = ", ".join(declared.names)
                near = suggestion(name, declared.names)
                raise InputError(f"attribute {name!r} is not declared{near} (SCHEMA declares: {known})")
        for name in declared.names:
            if name not in given and not may_lack:
                has = ", ".join(given.names) or "no attributes"
                raise InputError(
                    f"the result has no attribute {name!r}, which SCHEMA declares (it has: {has})"
                )
        self._same = declared.names == given.names
        self._places = [given.position(name) if name in given else None for name in declared.names]
        self._declaration = Declaration(declared)

    def rows(self, batch: Batch) -> Batch:
        """Return the rows as declared; raise an InputError for a value that does not fit."""
        rows = batch if self._same else list(map(self._arranged, batch))
        try:
            return self._declaration.rows(rows)
        except SettingError as error:
            raise InputError(f"{error.message}, as SCHEMA declares") from None

    def _arranged(self, row: Row) -> Row:
        return tuple([None if place is None else row[place] for place in self._places])


class Declared:
    """The schema and rows that a source yields, as a plan declares them; unchanged if it declares nothing."""

    def __init__(self, declared: Schema | None, *, may_lack: bool = False) -> None:
        self.schema = declared
        self._may_lack = may_lack
        self._conforming: Conforming | None = None

    def given(self, item: Schema | Batch) -> Schema | Batch:
        if self.schema is None:
            return item
        if isinstance(item, Schema):
            self._conforming = Conforming(self.schema, item, may_lack=self._may_lack)
            return self.schema
        return item if self._conforming is None else self._conforming.rows(item)


class Counting(Protocol):
    """A bound expression with counters."""

    @property
    def counters(self) -> Counters: ...


@contextmanager
def tallied(context: Context, *expressions: Counting) -> Iterator[None]:
    """Add the counters of expressions to those of the run after the block, even if it ends early."""
    try:
        yield
    finally:
        for expression in expressions:
            for what, number in expression.counters.take().items():
                context.count(what, number)
