"""SCHEMA: the attributes of a result, declared by the plan where they are otherwise known only in the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from aioflow import InputError, Row, Schema, SettingError
from aioflow.errors import suggestion
from aioflow.relation import Batch, Type
from aioflow.values.coercion import Declaration


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
